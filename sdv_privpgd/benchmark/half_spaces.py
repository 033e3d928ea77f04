"""Errors on the class-conditional queries of RAP++, beside other methods, on decoded values.

    python -m sdv_privpgd.benchmark half_spaces --tables adult acs_mobility --rows 50000

80 % of a table's rows are fitted as a user would (``fit_table``, with ranges and categories
declared, and the label as ``target``), and as many synthetic rows are compared with them, all in
cells that no method has: 1,024 of equal width for each number. ``LT`` is the mean error of the
share of rows of a class on a side of a random hyperplane over all numbers, ``MM`` below two random
thresholds, ``CM`` in a cell of two categories where a table has them (Vietri et al. 2022, section
5.1; all in units of 1e-4), ``LT_most`` the largest. ``LT`` draws thresholds as the paper does, over
numbers in [0, 1]; ``LTs`` over numbers of mean 0 and variance 1, where fewer hold all rows or
none. ``linear_f1`` is the macro F1 of logistic regression that learned from the synthetic rows, on
the 20 % of rows that no fit has seen, and ``f1`` that of boosting. ``Real`` are the fitted rows:
their queries are those of the test rows instead, which is what chance does to errors. "PGM" is
``MWEM`` with Private-PGM, as in the paper. Compared with real rows: the numbers are not private.
"""

import argparse
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from sdv_privpgd.benchmark.declarations import check_names
from sdv_privpgd.benchmark.fits import FOLDER, columns_of
from sdv_privpgd.benchmark.learning import Task, task_of
from sdv_privpgd.benchmark.meters import Stopwatch, print_table

if TYPE_CHECKING:
    import pandas as pd

_ARMS: dict[str, dict[str, Any]] = {
    "RAP++": {"strategy": "half_spaces", "engine": "rap++"},
    "RAP": {"strategy": "adaptive", "engine": "rap"},
    "PGM": {"strategy": "mwem", "engine": "pgm"},
    "DP-MERF": {"strategy": "mean_embedding", "engine": "generator"},
    "PrivPGD": {},
}

_CELLS, _FEWEST = 1_024, 10
"""Cells of a number, and the fewest values of what counts as one."""


def add_command(commands) -> None:
    """Adds ``half_spaces`` to the command line."""
    parser = commands.add_parser("half_spaces", help="errors on half-spaces of numbers, by class")
    parser.add_argument("--tables", nargs="+", default=["adult", "acs_mobility"], metavar="TABLE")
    parser.add_argument("--arms", nargs="+", choices=[*_ARMS, "Real"], default=[*_ARMS, "Real"])
    parser.add_argument("--epsilons", nargs="+", type=float, default=[1.0])
    parser.add_argument("--seeds", type=int, default=1, help="repetitions with fresh noise")
    parser.add_argument("--rows", type=int, default=None, help="of each table; default: all")
    parser.add_argument("--data", type=Path, default=FOLDER, help="folder of the tables")
    parser.set_defaults(run=_half_spaces)


def _half_spaces(arguments: argparse.Namespace) -> None:
    check_names(arguments.tables)
    header = True
    for name in arguments.tables:
        task = task_of(name, arguments.data, arguments.rows)
        for epsilon in arguments.epsilons:
            for arm in arguments.arms:
                runs = [
                    _run(task, arm, epsilon, seed)
                    for seed in range(1 if arm == "Real" else arguments.seeds)
                ]
                means = {key: float(np.mean([run[key] for run in runs])) for key in runs[0]}
                row = {"table": name[:14], "arm": arm, "epsilon": epsilon, **means}
                print_table([row], header=header)
                header = False


def _run(task: Task, arm: str, epsilon: float, seed: int) -> dict[str, float]:
    """The scores of one fit."""
    from sdv_privpgd.metrics.usefulness import learning_scores

    watch = Stopwatch()
    rows = task.train if arm == "Real" else _synthetic(task, arm, epsilon, seed)
    watch.lap("fit")
    compared = (task.test, task.train) if arm == "Real" else (task.train, rows)
    found = _errors(task, *compared)
    learned = learning_scores(
        task.columns, columns_of(rows), columns_of(task.test), task.label, seed=seed
    )
    kept = {name: learned[name] for name in ("linear_f1", "f1") if name in learned}
    return {**found, **kept, "fit_s": watch.seconds["fit"]}


def _synthetic(task: Task, arm: str, epsilon: float, seed: int) -> "pd.DataFrame":
    from sdv_privpgd import fit_table

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that categories are rare
        fitted = fit_table(
            task.train, task.facts, epsilon, target=task.label, seed=seed, **_ARMS[arm]
        )
    return fitted.sample(len(task.train))


def _errors(task: Task, real: "pd.DataFrame", synthetic: "pd.DataFrame") -> dict[str, float]:
    """The errors of the classes of queries, in units of 1e-4."""
    from sdv_privpgd.columns.encoding import encode_table
    from sdv_privpgd.columns.schema import Schema
    from sdv_privpgd.metrics.conditional import (
        categorical_marginal_errors,
        linear_threshold_errors,
        mixed_marginal_errors,
    )
    from sdv_privpgd.metrics.rows import columns, embedded

    schema = Schema.from_sdv(dict(task.facts), num_bins=_CELLS)
    domain = schema.domain()
    codes = [encode_table(columns_of(rows), schema) for rows in (real, synthetic)]
    others = [column for column in schema.columns if column.name != task.label]
    numbers = [
        column.name
        for column in others
        if column.sdtype == "numerical" and column.num_values >= _FEWEST
    ]
    categories = [column.name for column in others if column.name not in numbers]
    of_numbers: dict[str, Any] = {"features": numbers, "labels": [task.label]}
    straight = linear_threshold_errors(domain, *codes, **of_numbers)
    mixed = mixed_marginal_errors(domain, *codes, **of_numbers, num_queries=20_000)
    marginals = (
        categorical_marginal_errors(domain, *codes, features=categories, labels=[task.label]).mean
        if len(categories) > 1
        else float("nan")
    )
    points = [embedded(domain.project(numbers), columns(domain, own)) for own in codes]
    labels = [own[:, domain.axes((task.label,))[0]] for own in codes]
    scaled = _scaled_errors(points, labels, domain.size((task.label,)))
    errors = {
        "LT": straight.mean,
        "LT_most": straight.max,
        "LTs": scaled,
        "MM": mixed.mean,
        "CM": marginals,
    }
    return {name: 1e4 * error for name, error in errors.items()}


def _scaled_errors(points: list[np.ndarray], labels: list[np.ndarray], classes: int) -> float:
    """The mean error of 1,000 half-spaces of numbers that have mean 0 and variance 1 in the first.

    >>> rng = np.random.default_rng(0)
    >>> points, labels = rng.random((50, 2)), rng.integers(0, 2, 50)
    >>> _scaled_errors([points, points], [labels, labels], 2)
    0.0
    """
    rng = np.random.default_rng(0)
    mean, spread = points[0].mean(axis=0), np.maximum(points[0].std(axis=0), 1e-9)
    directions = rng.standard_normal((1_000, points[0].shape[1]))
    directions /= np.linalg.norm(directions, axis=1, keepdims=True)
    thresholds = rng.standard_normal(1_000)
    answers = []
    for own, label in zip(points, labels, strict=True):
        counts = np.zeros((classes, 1_000))
        for start in range(0, len(own), 1 << 13):
            part = slice(start, start + (1 << 13))
            below = ((own[part] - mean) / spread) @ directions.T <= thresholds
            for value in range(classes):
                counts[value] += below[label[part] == value].sum(axis=0)
        answers.append(counts / len(own))
    return float(np.abs(answers[0] - answers[1]).mean())
