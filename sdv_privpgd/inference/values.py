"""The values that a column's codes stand for: their ends, and their means. Public arithmetic."""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from sdv_privpgd.columns.bins import Categories, Ticks
from sdv_privpgd.columns.column import Column

HEAVY, HEAVIEST = 0.02, 0.1
"""Parts of the mean distance from the median that lie inside one code: from the first on an
interval of a mean has to allow for it, from the second on it is worth a word."""

FAR = 10.0
"""So many mean distances from the median no rows are expected: of a normal column one row in 10^15
lies there, of an exponential one three in 10^4."""

CALENDAR = (
    pd.Timestamp(np.datetime64("0001-01-01", "s")),
    pd.Timestamp(np.datetime64("9999-12-31", "s")),
)
"""The first and the last day of the calendar, which stand for dates without a known end."""


@dataclass(frozen=True)
class CodeValues:
    """The lowest and the highest value of each code of an ordered column, and the mean in it.

    ``means`` are those of rows as they are sampled: spread evenly in a cell, and over cells that
    share a code as often as they are known to occur; ``deviations`` are the standard deviations of
    these rows. Missing has no entry. ``is_shaped`` says whether it was looked into where in a code
    rows lie; if not, all may have one value.
    """

    lows: np.ndarray
    highs: np.ndarray
    means: np.ndarray
    deviations: np.ndarray
    is_shaped: bool = False

    def heavy(self, counts: np.ndarray, least: float = HEAVY) -> np.ndarray:
        """Which codes carry so much that a mean depends on how their rows are spread. Public.

        What is unknown inside these codes is more than a part ``least`` of how far values lie from
        their median. They are wide codes of rows far from the others, as at the end of a long tail;
        or any that many rows are in, where nobody has looked into where.
        """
        shares, middle, around = self._spread(counts)
        is_far = (np.abs(self.means - middle) > around) | (not self.is_shaped)
        return is_far & (shares * self.deviations > least * around)

    def far_reaching(
        self, counts: np.ndarray, errors: np.ndarray | float = 0.0, least: float = HEAVY
    ) -> np.ndarray:
        """Which codes reach so far that few of their rows could make a mean. Public.

        Where a range ends far beyond the rows, its last code holds both the end of the rows and all
        values beyond it, where noise may hide some. These codes reach farther than ``FAR`` mean
        distances from the median, and their rows, with ``errors`` more, would move the mean by more
        than a part ``least`` of the mean distance if they lay at its end.
        """
        shares, middle, around = self._spread(counts)
        more = shares + errors / max(float(np.maximum(counts, 0.0).sum()), 1e-9)
        farthest = np.maximum(self.highs - middle, middle - self.lows).astype(np.float64)
        reach = np.maximum(self.highs - self.means, self.means - self.lows).astype(np.float64)
        return (farthest > FAR * around) & (more * reach > least * around)

    def crowded(self, counts: np.ndarray, errors: float, least: float) -> np.ndarray:
        """Which codes of several values have at least a part of all rows. Public.

        They do without ``errors``, too. Of few codes they have four times as many as each code on
        average.
        """
        shares = (counts - errors) / max(float(np.maximum(counts, 0.0).sum()), 1e-9)
        return (self.highs > self.lows) & (shares > max(least, 4 / len(shares)))

    def _spread(self, counts: np.ndarray) -> tuple[np.ndarray, float, float]:
        """The share of each code, the median, and the mean distance of rows from it."""
        shares = np.maximum(counts, 0.0) / max(float(np.maximum(counts, 0.0).sum()), 1e-9)
        middle = float(self.means[min(int((np.cumsum(shares) < 0.5).sum()), len(shares) - 1)])
        return shares, middle, float((shares * np.abs(self.means - middle)).sum())

    @property
    def are_single(self) -> bool:
        """Whether each code is a single value."""
        return bool(np.array_equal(self.lows, self.highs))


def code_values(column: Column) -> CodeValues:
    """The values of a column's codes; ticks for dates, indices for ordered categories."""
    cells = column.cells
    if isinstance(cells, Categories):
        lows = highs = means = np.arange(len(cells))
    elif isinstance(cells, Ticks):
        lows, highs = cells.starts, cells.starts + cells.widths - 1
        means = cells.starts + (cells.widths - 1) / 2
    else:
        lows, highs = cells.edges[: len(cells)], cells.edges[-len(cells) :]
        means = (lows + highs) / 2
    spreads = _spreads(column)
    if column.merging is not None:
        # A cell's own share of a code is what a range that covers this cell alone covers of it.
        whole = column.merging.covered(np.ones(len(means)))
        squares = column.merging.covered(np.square(means) + np.square(spreads)) / whole
        means = column.merging.covered(means) / whole
        spreads = np.sqrt(np.maximum(squares - np.square(means), 0.0))
        codes = np.asarray(column.merging.codes)
        order = np.argsort(codes, kind="stable")
        starts = np.searchsorted(codes[order], np.arange(column.num_values))
        lows, highs = (
            np.minimum.reduceat(lows[order], starts),
            np.maximum.reduceat(highs[order], starts),
        )
    if column.sdtype == "numerical":
        lows, highs, means, spreads = (
            column.numbers(each) for each in (lows, highs, means, spreads)
        )
    means, spreads = (np.asarray(each, np.float64) for each in (means, spreads))
    return CodeValues(lows, highs, means, spreads, is_shaped=column.merging is not None)


def _spreads(column: Column) -> np.ndarray:
    """The standard deviation of values that are spread evenly in each cell."""
    cells = column.cells
    if isinstance(cells, Categories):
        return np.zeros(len(cells))
    if isinstance(cells, Ticks):
        return np.sqrt((np.square(np.asarray(cells.widths, dtype=np.float64)) - 1) / 12)
    return (cells.edges[-len(cells) :] - cells.edges[: len(cells)]) / math.sqrt(12)


def as_users(column: Column, value: Any) -> Any:
    """A value of ``code_values`` as users know it: a number, a date or a category."""
    if isinstance(column.cells, Categories):
        return column.cells.values[int(value)]
    if column.unit is not None:
        # Months and years have no length, so whole ticks alone are moments.
        return pd.Timestamp(np.array([value], dtype=np.int64).astype(f"M8[{column.unit}]")[0])
    return value.item() if isinstance(value, np.generic) else value


def value_at(column: Column, code: int, position: float) -> Any:
    """The value at a position in [0, 1) of a code, as users know it."""
    value = column.at(np.array([code]), np.array([position]))
    if column.sdtype == "numerical":
        value = column.numbers(value)
    return as_users(column, value[0])
