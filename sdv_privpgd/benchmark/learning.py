"""What rows are for, on decoded values: learn from synthetic rows, be tested on real ones.

    python -m sdv_privpgd.benchmark learning --tables bank adult --epsilons 1 0.2 --seeds 5

80 % of a table's rows are fitted as a user would (``fit_table``, with ranges and categories
declared as the other benchmarks declare them), and as many synthetic rows are compared with the
20 % that no fit has seen. The arms: ``PrivPGD``; ``target``, the same with ``target`` set to the
label; ``MST``, ``AIM``, ``MWEM`` and ``Independent``, with our engine; ``Real``, the fitted rows
themselves: what a perfect synthesizer would reach; and ``DP-EBM``, InterpretML's private boosting,
a model that is fitted to the real rows without any synthetic ones (``private_models``).

``auroc``, ``f1`` (macro) and ``accuracy``, or ``r2``, are those of gradient boosting, ``linear_``
of a linear model; ``pmse`` says how well boosting tells synthetic from real rows; ``tv2`` and
``tv3`` are mean distances of 2-way and 3-way tables in cells made of both tables' values; ``tail``
says how far the ends of columns of numbers lie off (``metrics.usefulness``). Means over the seeds,
and the standard error of the first score. Compared with real rows: the numbers that it prints are
not private.
"""

import argparse
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from sdv_privpgd.benchmark.declarations import TABLES, check_names
from sdv_privpgd.benchmark.fits import FOLDER, columns_of
from sdv_privpgd.benchmark.meters import Stopwatch, print_table

if TYPE_CHECKING:
    import pandas as pd

    from sdv_privpgd.metrics.reading import Described

_PRIVATE_MODEL = "DP-EBM"

_STRATEGIES = ("MST", "AIM", "MWEM", "Independent")

_ARMS = ("PrivPGD", "target", *_STRATEGIES, _PRIVATE_MODEL, "Real")


def add_command(commands) -> None:
    """Adds ``learning`` to the command line."""
    parser = commands.add_parser("learning", help="what models learn from decoded rows")
    parser.add_argument("--tables", nargs="+", default=["adult"], metavar="TABLE")
    parser.add_argument("--arms", nargs="+", choices=_ARMS, default=("PrivPGD", "target", "Real"))
    parser.add_argument("--epsilons", nargs="+", type=float, default=[1.0])
    parser.add_argument("--seeds", type=int, default=1, help="repetitions with fresh noise")
    parser.add_argument("--rows", type=int, default=None, help="of each table; default: all")
    parser.add_argument("--bins", type=int, help="cells of a column of numbers; default: a rule")
    parser.add_argument("--times", type=int, default=1, help="sample so many times the fitted rows")
    parser.add_argument("--data", type=Path, default=FOLDER, help="folder of the tables")
    parser.set_defaults(run=_learning)


@dataclass(frozen=True, kw_only=True)
class Task:
    """A table, what is declared of it, and its rows to fit and to test.

    >>> from dataclasses import fields
    >>> [field.name for field in fields(Task)]
    ['name', 'label', 'facts', 'columns', 'train', 'test']
    """

    name: str
    label: str
    facts: Mapping[str, Mapping]
    columns: "Sequence[Described]"
    train: "pd.DataFrame"
    test: "pd.DataFrame"


def _learning(arguments: argparse.Namespace) -> None:
    check_names(arguments.tables)
    shape: list[str] = []
    for name in arguments.tables:
        task = task_of(name, arguments.data, arguments.rows)
        runs = [("Real", np.inf)] if "Real" in arguments.arms else []
        runs += product([arm for arm in arguments.arms if arm != "Real"], arguments.epsilons)
        for arm, epsilon in runs:
            seeds = range(1 if arm == "Real" else arguments.seeds)
            found = [_run(task, arm, epsilon, seed, arguments) for seed in seeds]
            means = {key: float(np.mean([run[key] for run in found])) for key in found[0]}
            row = {"table": name[:14], "arm": arm, "epsilon": epsilon, **means}
            if len(seeds) > 1:
                main = [run[next(iter(run))] for run in found]
                row["+-"] = float(np.std(main, ddof=1) / np.sqrt(len(main)))
            print_table([row], header=list(row) != shape)
            shape = list(row)


def task_of(name: str, folder: Path, num_rows: int | None = None) -> Task:
    """The task of one of ``TABLES``, or of ``num_rows`` of its rows, from its files in a folder."""
    from sklearn.model_selection import train_test_split

    from sdv_privpgd.benchmark.tables import SPLIT_SEED, TEST_SHARE, rows_and_facts
    from sdv_privpgd.columns.schema import Schema
    from sdv_privpgd.metrics.reading import Described

    frame, facts = rows_and_facts(name, folder)
    if num_rows is not None and num_rows < len(frame):
        frame = frame.sample(n=num_rows, random_state=SPLIT_SEED)
    train, test = train_test_split(
        np.arange(len(frame)), test_size=TEST_SHARE, random_state=SPLIT_SEED
    )
    return Task(
        name=name,
        label=TABLES[name].label,
        facts=facts,
        columns=[Described.of(column) for column in Schema.from_sdv(facts).columns],
        train=frame.take(train),
        test=frame.take(test),
    )


def _run(
    task: Task, arm: str, epsilon: float, seed: int, arguments: argparse.Namespace
) -> dict[str, float]:
    """The scores of one fit, the models' first."""
    from sdv_privpgd.metrics.usefulness import usefulness

    watch, test = Stopwatch(), columns_of(task.test)
    if arm == _PRIVATE_MODEL:
        from sdv_privpgd.benchmark.private_models import scores_of_dp_ebm

        found = scores_of_dp_ebm(
            task.columns, task.facts, columns_of(task.train), test, task.label, epsilon
        )
        watch.lap("fit")
        return {**found, "fit_s": watch.seconds["fit"]}
    rows = task.train if arm == "Real" else _synthetic(task, arm, epsilon, seed, arguments)
    watch.lap("fit")
    found = usefulness(task.columns, columns_of(rows), test, task.label, seed=seed)
    return {**found, "fit_s": watch.seconds["fit"]}


def _synthetic(
    task: Task, arm: str, epsilon: float, seed: int, arguments: argparse.Namespace
) -> "pd.DataFrame":
    """As many rows as were fitted, or a multiple of that."""
    from sdv_privpgd import fit_table

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that categories are rare
        fitted = fit_table(
            task.train,
            task.facts,
            epsilon,
            num_bins=arguments.bins,
            strategy=arm.lower() if arm in _STRATEGIES else "all_pairs",
            target=task.label if arm == "target" else None,
            seed=seed,
        )
    return fitted.sample(arguments.times * len(task.train))
