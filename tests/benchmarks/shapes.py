"""How near synthetic columns of many shapes are to their own, declared and not.

A simulated column and two of categories, of which one depends on it, go in; as many synthetic rows
come out. ``KS`` is the Kolmogorov-Smirnov distance of the column from its own rows. ``width`` is
the distance of the 10 % and 90 % quantiles as a multiple of the true one; ``median`` and ``mean``
are how far off these are, in true widths. ``thousands`` is how many of the rows more, or fewer, are
multiples of a thousand. Medians over fits, for each shape, declared or not,
number of rows and epsilon. ``warned`` is the share of fits that call the column doubtful for its
wide cells, ``off`` that of fits whose mean is off by more than a tenth of how far rows lie from
their median, on average, and ``both`` that of fits with both. Not private, and nobody's.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import pandas as pd
from scipy.stats import ks_2samp

from benchmarks.experiment import options, quiet
from sdv_privpgd import Categorical, Datetime, Numerical, fit_table

Rng = np.random.Generator


class Shape(NamedTuple):
    """How to draw a column, and what is declared of it where something is."""

    draw: Callable[[Rng, int], np.ndarray]
    declared: Numerical | Datetime


def _mixed(share: float, first: Callable, second: Callable) -> Callable[[Rng, int], np.ndarray]:
    """So large a share of the first, and the second otherwise."""

    def draw(rng: Rng, size: int) -> np.ndarray:
        return np.where(rng.random(size) < share, first(rng, size), second(rng, size))

    return draw


def _whole(low: int, high: int) -> Callable[[Rng, int], np.ndarray]:
    return lambda rng, size: rng.integers(low, high, size)


def _normal(mean: float, deviation: float, places: int) -> Callable[[Rng, int], np.ndarray]:
    return lambda rng, size: rng.normal(mean, deviation, size).round(places)


def _money(median: float, spread: float) -> Callable[[Rng, int], np.ndarray]:
    return lambda rng, size: (median * np.exp(rng.normal(0, spread, size))).round(2)


def _falling(mean: float) -> Callable[[Rng, int], np.ndarray]:
    return lambda rng, size: rng.exponential(mean, size).round().astype(np.int64)


def _rounded(amounts: Callable[[Rng, int], np.ndarray]) -> Callable[[Rng, int], np.ndarray]:
    def draw(rng: Rng, size: int) -> np.ndarray:
        steps = rng.choice([1_000, 100, 1], size, p=[0.5, 0.3, 0.2])
        return (amounts(rng, size) / steps).round() * steps

    return draw


def _one(value: float) -> Callable[[Rng, int], np.ndarray]:
    return lambda _, size: np.full(size, value)


def _dates(first: str, days: int, unit: str = "D") -> Callable[[Rng, int], np.ndarray]:
    start = np.datetime64(first, unit)
    return lambda rng, size: (
        start
        + rng.integers(0, np.timedelta64(days, "D").astype(f"m8[{unit}]").astype(int), size).astype(
            f"m8[{unit}]"
        )
    )


def _whole_dates(rng: Rng, size: int) -> np.ndarray:
    days = _dates("2019-01-01", 1_096)(rng, size).astype("M8[D]").astype(str)
    return np.char.replace(days, "-", "").astype(np.int64)


SHAPES = {
    "age": Shape(_normal(45, 15, 0), Numerical(0, 120, decimal_places=0)),
    "even": Shape(_whole(40, 260), Numerical(40, 260, decimal_places=0)),
    "grade": Shape(_normal(100.02, 0.005, 4), Numerical(0, 200, decimal_places=4)),
    "latitude": Shape(_normal(13.03, 0.058, 5), Numerical(-90, 90, decimal_places=5)),
    "longitude": Shape(_normal(77.6, 0.06, 5), Numerical(-180, 180, decimal_places=5)),
    "west": Shape(_normal(-122.4, 0.04, 5), Numerical(-180, 180, decimal_places=5)),
    "serial": Shape(_whole(10**9, 10**9 + 500), Numerical(0, 2 * 10**9, decimal_places=0)),
    "unix day": Shape(_whole(1_700_000_000, 1_700_086_400), Numerical(0, 2**31, decimal_places=0)),
    "unix years": Shape(
        _whole(1_600_000_000, 1_700_000_000), Numerical(0, 2**31, decimal_places=0)
    ),
    "dates as numbers": Shape(_whole_dates, Numerical(19000101, 20991231, decimal_places=0)),
    "temperature": Shape(_normal(36.8, 0.5, 1), Numerical(30, 45, decimal_places=1)),
    "change": Shape(_normal(0, 0.02, 4), Numerical(-1, 1, decimal_places=4)),
    "real": Shape(_normal(0, 1, 12), Numerical(-10, 10)),
    "tiny": Shape(lambda rng, size: 1e-8 * np.exp(rng.normal(0, 1, size)), Numerical(0, 1e-5)),
    "money": Shape(_money(300, 1.2), Numerical(0, 1_000_000, decimal_places=2)),
    "large money": Shape(_money(80_000, 0.6), Numerical(0, 10**8, decimal_places=2)),
    "rounded money": Shape(_rounded(_money(15_000, 1)), Numerical(0, 10**6, decimal_places=0)),
    "heavy tail": Shape(
        lambda rng, size: (100 * (1 + rng.pareto(1.3, size))).round(2),
        Numerical(0, 10**7, decimal_places=2),
    ),
    "zeros and money": Shape(
        _mixed(0.6, _one(0), _money(300, 1.2)), Numerical(0, 1_000_000, decimal_places=2)
    ),
    "zeros and reals": Shape(
        _mixed(0.5, _one(0), lambda rng, size: rng.random(size).round(4)), Numerical(0, 1)
    ),
    "capped": Shape(
        _mixed(0.3, _one(9_999), _whole(0, 500)), Numerical(0, 9_999, decimal_places=0)
    ),
    "missing as 999": Shape(
        _mixed(0.1, _one(999), _normal(45, 15, 0)), Numerical(0, 999, decimal_places=0)
    ),
    "two lumps": Shape(
        _mixed(0.5, _normal(1_000, 1, 2), _normal(900_000, 100, 2)),
        Numerical(0, 1_000_000, decimal_places=2),
    ),
    "far": Shape(_mixed(0.1, _whole(200, 260), _whole(40, 100)), Numerical(40, 260)),
    "far, narrow": Shape(_mixed(0.1, _whole(235, 245), _whole(40, 100)), Numerical(40, 260)),
    "far below": Shape(
        _mixed(0.1, _whole(20, 80), _whole(400, 460)), Numerical(0, 500, decimal_places=0)
    ),
    "far in wide": Shape(
        _mixed(0.1, _whole(200, 260), _whole(40, 100)), Numerical(0, 10_000, decimal_places=0)
    ),
    "short": Shape(_whole(0, 20), Numerical(0, 500, decimal_places=0)),
    "falling": Shape(_falling(9), Numerical(0, 365, decimal_places=0)),
    "falling in wide": Shape(_falling(9), Numerical(0, 100_000, decimal_places=0)),
    "years": Shape(_whole(1950, 2020), Numerical(1900, 2100, decimal_places=0)),
    "days": Shape(_dates("2015-01-01", 3_000), Datetime("1900-01-01", "2099-12-31")),
    "days of a month": Shape(_dates("2024-02-01", 29), Datetime("1900-01-01", "2099-12-31")),
    "seconds of a day": Shape(
        _dates("2024-02-01", 1, "s"), Datetime("2000-01-01 00:00:00", "2030-01-01 00:00:01")
    ),
    "births": Shape(_dates("1930-01-01", 30_000), Datetime("1900-01-01", "2024-12-31")),
    "open end": Shape(
        _mixed(
            0.4,
            lambda _, size: np.full(size, np.datetime64("2099-12-31")),
            _dates("2018-01-01", 2_000),
        ),
        Datetime("2000-01-01", "2099-12-31"),
    ),
}


@options(
    shapes=list(SHAPES), rows=[300, 2_000, 20_000], epsilon=[0.2, 1.0, 5.0], declared=["yes", "no"],
    method="privpgd", fits=5,
)  # fmt: skip
def rows(given):
    for name in given.shapes:
        for declared in given.declared:
            for size in given.rows:
                for epsilon in given.epsilon:
                    with quiet():
                        runs = [
                            _run(SHAPES[name], size, epsilon, declared == "yes", seed, given.method)
                            for seed in range(given.fits)
                        ]
                    yield {
                        "shape": name,
                        "declared": declared,
                        "rows": size,
                        "epsilon": epsilon,
                        **{
                            key: float(_over_fits(key)([run[key] for run in runs]))
                            for key in runs[0]
                        },
                    }


def _over_fits(key):
    return np.mean if key in ("warned", "off", "both") else np.median


def _run(shape, size, epsilon, is_declared, seed, method="privpgd"):
    """The errors of one fit."""
    rng = np.random.default_rng(seed)
    values = shape.draw(rng, size)
    column = pd.Series(values if values.dtype.kind != "M" else values.astype("M8[ns]"))
    is_large = column > column.median()
    table = pd.DataFrame(
        {
            "x": column,
            "like": np.where(rng.random(size) < 0.8, is_large, rng.random(size) < 0.5).astype(int),
            "other": rng.choice(["x", "y", "z"], size),
        }
    )
    blank = Datetime() if isinstance(shape.declared, Datetime) else Numerical()
    fitted = fit_table(
        table,
        {
            "x": shape.declared if is_declared else blank,
            "like": Categorical([0, 1]),
            "other": Categorical(["x", "y", "z"]),
        },
        epsilon=epsilon,
        method=method,
        allow_lost=["x"],
    )
    found = fitted.sample(size)["x"].dropna()
    if column.dtype.kind == "M":  # rows with a day that stands for never come in another unit
        column, found = column.astype("M8[us]"), found.astype("M8[us]")
    real, made = (each.to_numpy().astype(np.float64) for each in (column, found))
    (low, middle, high), (first, half, last) = (
        np.quantile(each, [0.1, 0.5, 0.9]) for each in (real, made)
    )
    warned = any("Wide cells hide" in each for each in fitted.warnings)
    off = abs(made.mean() - real.mean()) > 0.1 * np.abs(real - middle).mean()
    return {
        "KS": float(ks_2samp(real, made).statistic),
        "width": float((last - first) / (high - low)),
        "median": float(abs(half - middle) / (high - low)),
        "mean": float(abs(made.mean() - real.mean()) / (high - low)),
        "thousands": float((made % 1_000 == 0).mean() - (real % 1_000 == 0).mean()),
        "warned": warned,
        "off": off,
        "both": warned and off,
    }
