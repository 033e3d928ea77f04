"""Where the rows of a column come to lie within its declared range, for columns of many shapes.

    python -m sdv_privpgd.benchmark shapes --fits 12
    python -m sdv_privpgd.benchmark shapes --rows 10000 --share 0.02 --engine particles

A simulated column of whole numbers and two of categories go in, as many synthetic rows come out.
Most rows lie in one stretch of the declared range, ``--share`` of them in another where a shape
has one. ``W1`` is the distance of the column from its own rows in standard deviations, ``far`` the
share of the rows there, with a tenth of the stretch beside it; ``missed`` is the share of the fits
with less than 60 % or more than 140 % of them. Not private, and nobody's.
"""

import argparse
import logging
import math
import warnings
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from sdv_privpgd.benchmark.meters import print_table

if TYPE_CHECKING:
    import pandas as pd


class Shape(NamedTuple):
    """A column's declared range, the stretch of most rows, and that of the others if there is one.

    >>> SHAPES["far"].declared
    (40, 260)
    """

    declared: tuple[int, int]
    most: tuple[int, int]
    others: tuple[int, int] | None = None
    is_exponential: bool = False


SHAPES = {
    "even": Shape((40, 260), (40, 260)),
    "far": Shape((40, 260), (40, 100), (200, 260)),
    "far, narrow": Shape((40, 260), (40, 100), (235, 245)),
    "far below": Shape((0, 500), (400, 460), (20, 80)),
    "far, thousands": Shape((1_000, 1_500), (1_020, 1_100), (1_380, 1_480)),
    "far in wide": Shape((0, 10_000), (40, 100), (200, 260)),
    "short": Shape((0, 500), (0, 20)),
    "falling": Shape((0, 365), (0, 9), is_exponential=True),
    "falling in wide": Shape((0, 100_000), (0, 9), is_exponential=True),
}
"""The shapes by name."""


def add_command(commands) -> None:
    """Adds ``shapes`` to the command line."""
    parser = commands.add_parser("shapes", help="simulated columns within declared ranges")
    parser.add_argument("--shapes", nargs="+", choices=tuple(SHAPES), default=tuple(SHAPES))
    parser.add_argument("--rows", type=int, default=2_500)
    parser.add_argument("--share", type=float, default=0.1, help="of the rows that lie far away")
    parser.add_argument("--columns", type=int, default=2, help="of categories beside it")
    parser.add_argument("--epsilon", type=float, default=1.0)
    parser.add_argument("--fits", type=int, default=12, help="of each shape, with fresh rows")
    parser.add_argument("--strategy", default="all_pairs")
    parser.add_argument("--engine", default="particles", help="pgm is faster with few columns")
    parser.set_defaults(run=_shapes)


def _shapes(arguments: argparse.Namespace) -> None:
    logging.disable(logging.WARNING)
    warnings.simplefilter("ignore")  # few rows; what the fits warn of is not of interest here
    for name in arguments.shapes:
        runs = [_run(SHAPES[name], seed, arguments) for seed in range(arguments.fits)]
        medians = {key: float(np.median([run[key] for run in runs])) for key in runs[0]}
        medians["W1 mean"] = float(np.mean([run["W1"] for run in runs]))
        medians["missed"] = float(np.mean([run["missed"] for run in runs]))
        print_table([{"shape": name, **medians}], header=name == arguments.shapes[0])


def simulated(
    shape: Shape, rows: int, share: float, columns: int, seed: int
) -> "tuple[pd.DataFrame, np.ndarray]":
    """A table with a column ``x`` of that shape, and which of its rows lie far away.

    Half of the categories depend on that.

    >>> table, far = simulated(SHAPES["far"], 1_000, 0.1, 1, seed=0)
    >>> bool(table["x"][far].min() >= 200)
    True
    """
    import pandas as pd

    rng = np.random.default_rng(seed)
    low, high = shape.most
    values = rng.exponential(high, rows) if shape.is_exponential else rng.uniform(low, high, rows)
    far = np.zeros(rows, dtype=bool)
    if shape.others is not None:
        far = rng.random(rows) < share
        values[far] = rng.uniform(*shape.others, int(far.sum()))
    table = {"x": np.clip(np.rint(values), *shape.declared).astype(np.int64)}
    for number in range(columns):
        own = np.where(far, "x", "y") if number % 2 == 0 else rng.choice(["x", "y"], rows)
        table[f"c{number}"] = np.where(rng.random(rows) < 0.7, own, rng.choice(list("xyz"), rows))
    return pd.DataFrame(table), far


def _run(shape: Shape, seed: int, arguments: argparse.Namespace) -> dict[str, float]:
    """The errors of one fit."""
    from sdv_privpgd import Categorical, Numerical, fit_table

    table, far = simulated(shape, arguments.rows, arguments.share, arguments.columns, seed)
    fitted = fit_table(
        table,
        {"x": Numerical(*shape.declared, decimal_places=0)}
        | {name: Categorical(["x", "y", "z"]) for name in table.columns[1:]},
        epsilon=arguments.epsilon,
        strategy=arguments.strategy,
        engine=arguments.engine,
    )
    real, rows = (each["x"].to_numpy(float) for each in (table, fitted.sample(len(table))))
    levels = (np.arange(2_000) + 0.5) / 2_000
    distance = np.abs(np.quantile(real, levels) - np.quantile(rows, levels)).mean()
    found = {"W1": float(distance / real.std()), "far": math.nan, "missed": math.nan}
    if shape.others is not None:
        low, high = shape.others
        wide = (high - low) / 10
        share, true = ((rows >= low - wide) & (rows <= high + wide)).mean(), far.mean()
        found |= {"far": float(share), "missed": float(abs(share - true) > 0.4 * true)}
    return found
