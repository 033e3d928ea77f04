"""A part of the budget for random linear thresholds, or for finer columns: decoded values.

    python -m sdv_privpgd.benchmark thresholds --tables adult diamonds --epsilons 1 0.2 --seeds 3

80 % of a table's rows are fitted as a user would (``fit_table``, with ranges and categories
declared as the other benchmarks declare them). The arms: ``PrivPGD``; ``thresholds``, where
``--share`` of the budget is for ``--number`` random linear thresholds over all ordered columns, by
the label's categories if it has some (``hyperplanes``), which the particles are fitted to besides
the tables (``tilting``); ``free``, the same with so much more budget that the tables have what they
have in ``PrivPGD`` and the thresholds 99 times that, hardly any noise; and ``finer``, where
discovery, which counts columns of numbers on grids of up to 513 cells, has ``--finer`` of the
budget where it has a fifth. ``free`` is no bound on what thresholds could give: on Adult its rows
answer them worse than those of ``thresholds``.

Scores of a model: ``auroc``, ``f1`` (macro) and ``accuracy``, or ``r2``, of gradient boosting
that is tested on the other 20 % of the rows; the rest are errors. ``tv2`` and ``tv3`` are mean
distances of 2-way and 3-way tables, ``w1`` and ``tail`` those of columns of numbers and of
their ends, beside the fitted rows. ``linear`` is the mean error of other random linear thresholds
of numbers, by the label (``metrics.conditional``), in parts of a thousand.

At the end the mean over tables of each score's difference from ``PrivPGD`` and of each error's
change in percent, with the standard error over tables. Compared with real rows: the numbers that it
prints are not private.
"""

import argparse
import warnings
from collections.abc import Mapping, Sequence
from fractions import Fraction
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from sdv_privpgd.benchmark.declarations import check_names
from sdv_privpgd.benchmark.fits import FOLDER, columns_of
from sdv_privpgd.benchmark.hyperplanes import HyperplaneQuery, WithHyperplanes
from sdv_privpgd.benchmark.learning import Task, task_of
from sdv_privpgd.benchmark.meters import Stopwatch, print_table
from sdv_privpgd.benchmark.tilting import ParticlesWithHyperplanes

if TYPE_CHECKING:
    import pandas as pd

BASE, FREE, FINER = "PrivPGD", "free", "finer"
_ARMS = (BASE, "thresholds", FREE, FINER)

_USUAL, _DELTA = 0.2, 1e-5

_FREELY = Fraction(99, 100)
"""The share of the thresholds that are free, of a budget that is 100 times as large."""

ERRORS = ("tv2", "tv3", "w1", "tail", "linear")
"""What is better where it is smaller."""

_NOT_COMPARED = ("fit_s",)


def add_command(commands) -> None:
    """Adds ``thresholds`` to the command line."""
    parser = commands.add_parser("thresholds", help="budget for linear thresholds, finer columns")
    parser.add_argument("--tables", nargs="+", default=["adult"], metavar="TABLE")
    parser.add_argument("--arms", nargs="+", choices=_ARMS, default=_ARMS)
    parser.add_argument("--epsilons", nargs="+", type=float, default=[1.0])
    parser.add_argument("--seeds", type=int, default=1, help="repetitions with fresh noise")
    parser.add_argument("--rows", type=int, default=None, help="of each table; default: all")
    parser.add_argument("--share", type=Fraction, default=Fraction(1, 10), help="for thresholds")
    parser.add_argument("--number", type=int, default=64, help="of thresholds")
    parser.add_argument("--finer", type=float, default=0.4, help="share for discovery")
    parser.add_argument("--data", type=Path, default=FOLDER, help="folder of the tables")
    parser.set_defaults(run=_thresholds)


def _thresholds(arguments: argparse.Namespace) -> None:
    check_names(arguments.tables)
    shape: list[str] = []
    means: dict[tuple[str, float, str], dict[str, float]] = {}
    for name in arguments.tables:
        task = task_of(name, arguments.data, arguments.rows)
        for arm, epsilon in product(arguments.arms, arguments.epsilons):
            found = [_run(task, arm, epsilon, seed, arguments) for seed in range(arguments.seeds)]
            own = {key: float(np.mean([run[key] for run in found])) for key in found[0]}
            means[arm, epsilon, name] = own
            row = {"table": name[:13], "arm": arm, "epsilon": epsilon, **own}
            print_table([row], header=list(row) != shape)
            shape = list(row)
    if BASE in arguments.arms:
        for epsilon in arguments.epsilons:
            changes = compared(means, epsilon, arguments.tables)
            for place, (arm, own) in enumerate(changes.items()):
                row = {"arm": arm, "epsilon": epsilon, **own}
                print_table([row], header=place == 0)


def compared(
    means: Mapping[tuple[str, float, str], Mapping[str, float]],
    epsilon: float,
    tables: Sequence[str],
) -> dict[str, dict[str, str]]:
    """Each arm's changes beside ``PrivPGD``, mean and standard error over tables, in words.

    Of scores the difference, of errors the change in percent.

    Args:
        means: The scores and errors by arm, epsilon and table.
        epsilon: The one to compare at.
        tables: Their names.

    >>> means = {("PrivPGD", 1.0, "a"): {"r2": 0.5, "tv3": 0.2}, ("free", 1.0, "a"): {"tv3": 0.1}}
    >>> compared(means, 1.0, ["a"])
    {'free': {'tv3 %': '-50'}}
    """
    found: dict[str, dict[str, str]] = {}
    for arm in dict.fromkeys(arm for arm, own, _ in means if arm != BASE and own == epsilon):
        changes: dict[str, list[float]] = {}
        for table in tables:
            base = means[BASE, epsilon, table]
            for key, value in means[arm, epsilon, table].items():
                if key in ERRORS:
                    changes.setdefault(f"{key} %", []).append(100 * (value / base[key] - 1))
                elif key not in _NOT_COMPARED:
                    changes.setdefault(key, []).append(value - base[key])
        found[arm] = {key: _in_words(values) for key, values in changes.items()}
    return found


def _in_words(values: Sequence[float]) -> str:
    mean = f"{np.mean(values):.2g}"
    if len(values) < 2:
        return mean
    return f"{mean}+-{np.std(values, ddof=1) / np.sqrt(len(values)):.1g}"


def _run(
    task: Task, arm: str, epsilon: float, seed: int, arguments: argparse.Namespace
) -> dict[str, float]:
    """The scores and errors of one fit."""
    from sdv_privpgd import fit_table

    watch, settings = Stopwatch(), _settings(task, arm, epsilon, seed, arguments)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that categories are rare
        fitted = fit_table(task.train, task.facts, seed=seed, **settings)
    watch.lap("fit")
    rows = fitted.sample(len(task.train))
    return {**_scores(task, rows, seed), "fit_s": watch.seconds["fit"]}


def _settings(
    task: Task, arm: str, epsilon: float, seed: int, arguments: argparse.Namespace
) -> dict[str, Any]:
    """The arguments of ``fit_table`` that make an arm."""
    if arm in (BASE, FINER):
        share = _USUAL if arm == BASE else arguments.finer
        return {"epsilon": epsilon, "discovery_share": share}
    from sdv_privpgd.synthesize.particles.descent import ParticleGradientDescent

    query = query_of(task, arguments.number, seed)
    share, usual = arguments.share, _USUAL
    if arm == FREE:
        epsilon, usual = _with_more(epsilon, 1 / (1 - _FREELY)), _USUAL * float(1 - _FREELY)
        share = _FREELY
    return {
        "epsilon": epsilon,
        "discovery_share": usual,
        "strategy": WithHyperplanes(query=query, share=share),
        "engine": ParticlesWithHyperplanes(base=ParticleGradientDescent(seed=seed)),
    }


def _with_more(epsilon: float, times: Fraction) -> float:
    """The epsilon of so many times the budget."""
    from sdv_privpgd.privacy.accounting import epsilon_of, mu_squared_of

    return epsilon_of(mu_squared_of(epsilon, _DELTA) * times, _DELTA)


def query_of(task: Task, number: int, seed: int) -> HyperplaneQuery:
    """Hyperplanes over all ordered columns of more than two values, by a label of categories.

    >>> from sdv_privpgd.benchmark.learning import Task
    >>> from sdv_privpgd.metrics.reading import Described
    >>> import pandas as pd
    >>> facts = {"age": {"sdtype": "numerical", "range_min": 0, "range_max": 99},
    ...          "ill": {"sdtype": "boolean"}}
    >>> kinds = [Described(name=name, sdtype=own["sdtype"]) for name, own in facts.items()]
    >>> none = pd.DataFrame()
    >>> task = Task(name="a", label="ill", facts=facts, columns=kinds, train=none, test=none)
    >>> query_of(task, 3, seed=0).features
    ('age',)
    """
    from sdv_privpgd.columns.schema import Schema

    columns = Schema.from_sdv(task.facts).columns
    numeric = {column.name for column in task.columns if column.is_numeric}
    label = None if task.label in numeric else task.label
    features = [
        each for each in columns if each.is_ordered and each.num_values > 2 and each.name != label
    ]
    return HyperplaneQuery(
        features=tuple(each.name for each in features),
        nullable=tuple(each.name for each in features if each.nullable),
        label=label,
        number=number,
        seed=seed,
    )


def _scores(task: Task, rows: "pd.DataFrame", seed: int) -> dict[str, float]:
    from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor

    from sdv_privpgd.metrics.conditional import linear_threshold_errors
    from sdv_privpgd.metrics.usefulness import distances, learning_scores, tail_error
    from sdv_privpgd.metrics.values import as_codes, common_cells

    real, made, test = (columns_of(each) for each in (task.train, rows, task.test))
    numeric = [column.name for column in task.columns if column.is_numeric]
    is_number = task.label in numeric
    kind = HistGradientBoostingRegressor if is_number else HistGradientBoostingClassifier
    models = {"": kind(random_state=seed)}
    found = learning_scores(task.columns, made, test, task.label, models=models, seed=seed)
    apart = distances(task.columns, real, made, seed=seed)
    found |= {f"tv{degree}": value for degree, value in apart.items()}
    cells = common_cells(task.columns, real, made)
    found["w1"] = float(np.nanmean([each.w1 for each in cells.values()]))
    found["tail"] = tail_error(task.columns, real, made)
    features = [name for name in numeric if name != task.label]
    errors = linear_threshold_errors(
        *as_codes(cells), features=features, labels=[task.label], seed=seed
    )
    return {**found, "linear": 1000 * errors.mean}
