"""Where the rows of a column come to lie within its declared range, for columns of many shapes.

A simulated column of whole numbers and two of categories go in, as many synthetic rows come out.
Most rows lie in one stretch of the declared range, ``--share`` of them in another where a shape
has one. ``W1`` is the distance of the column from its own rows in standard deviations, ``far`` the
share of the rows there, with a tenth of the stretch beside it; ``missed`` is the share of the fits
with less than 60 % or more than 140 % of them. Medians, but for ``missed``. Not private, and
nobody's.
"""

import math
from typing import NamedTuple

import numpy as np
import pandas as pd

from benchmarks.experiment import options, quiet
from sdv_privpgd import Categorical, Numerical, fit_table


class Shape(NamedTuple):
    """A column's declared range, the stretch of most rows, and that of the others if any."""

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


@options(
    shapes=list(SHAPES),
    rows=2_500,
    share=0.1,
    columns=2,
    epsilon=1.0,
    fits=12,
    method="privpgd",
)
def rows(given):
    for name in given.shapes:
        with quiet():
            runs = [_run(SHAPES[name], seed, given) for seed in range(given.fits)]
        medians = {key: float(np.median([run[key] for run in runs])) for key in runs[0]}
        medians["W1 mean"] = float(np.mean([run["W1"] for run in runs]))
        medians["missed"] = float(np.mean([run["missed"] for run in runs]))
        yield {"shape": name, **medians}


def simulated(shape, rows, share, columns, seed):
    """A table with a column ``x`` of that shape, and which of its rows lie far away.

    Half of the categories depend on that.
    """
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


def _run(shape, seed, given):
    """The errors of one fit."""
    table, far = simulated(shape, given.rows, given.share, given.columns, seed)
    fitted = fit_table(
        table,
        {"x": Numerical(*shape.declared, decimal_places=0)}
        | {name: Categorical(["x", "y", "z"]) for name in table.columns[1:]},
        epsilon=given.epsilon,
        method=given.method,
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
