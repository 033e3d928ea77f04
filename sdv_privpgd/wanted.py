"""What conditions, one a row, want of one modelled column. Public: a user wrote them."""

import numpy as np
import pandas as pd

from sdv_privpgd.between import Between, shares, span
from sdv_privpgd.cells import Interval
from sdv_privpgd.transformers import ColumnTransformer

ANYTHING = object()
"""The cell of a condition that wants nothing of the column."""


class Wanted:
    """A value of the column, a range, or nothing, wanted by each of some conditions.

    Attributes:
        name: The column.
        possible: Which conditions the declared domain can meet; bool.
        wishes: The same number for conditions that want the same, 0 for those that want nothing.

    Raises:
        ValueError: For a range that says nothing about the column.
    """

    def __init__(self, transformer: ColumnTransformer, conditions: pd.Series) -> None:
        self._transformer, column = transformer, transformer.column
        self.name = column.name
        self._ranged = is_range(conditions)
        self._exact = ~self._ranged & is_wanted(conditions)
        self._values = conditions.loc[self._exact]
        self._codes, self._positions = transformer.encode(self._values)
        self._which, ranges = pd.factorize(conditions.loc[self._ranged])
        self._spans = [span(column, each) for each in ranges]
        self._fits = [shares(column, each) for each in self._spans]

        self.wishes = np.zeros(len(conditions), dtype=np.int64)
        self.wishes[self._exact] = 1 + self._codes
        self.wishes[self._ranged] = 1 + column.size + self._which
        self.possible = np.ones(len(conditions), dtype=bool)
        self.possible[self._exact] = transformer.holds(self._values)
        met = np.array([fit.any() for fit in self._fits], dtype=bool)
        self.possible[self._ranged] = met[self._which]

    def fit(self, wish: int) -> np.ndarray:
        """How well each code fits one of the wishes, the best 1, shape (code,)."""
        size = self._transformer.column.size
        if wish <= size:
            return (np.arange(size) == wish - 1).astype(np.float64)
        fit = self._fits[wish - 1 - size]
        return fit / fit.max()

    def place(self, codes: np.ndarray, positions: np.ndarray) -> np.ndarray:
        """The positions in the cells of codes that fit, moved to what is wanted there."""
        positions, ranged = positions.copy(), np.flatnonzero(self._ranged)
        positions[self._exact] = self._positions
        for index, span in enumerate(self._spans):
            rows = ranged[self._which == index]
            positions[rows] = self._transformer.column.inside(codes[rows], positions[rows], *span)
        return positions

    def write(self, decoded: pd.Series, *, holds_missing: bool) -> pd.Series:
        """The column at places that fit, with each value that was asked for as exact as it was."""
        if self._ranged.any() and isinstance(self._transformer.column.cells, Interval):
            decoded[self._ranged] = np.clip(decoded[self._ranged], *self._bounds())
        if self._exact.any():
            holds_missing = holds_missing or bool(decoded.isna().any())
            values = self._transformer.rewrite(self._values, holds_missing=holds_missing)
            places = np.arange(len(decoded))
            places[self._exact] = len(decoded) + np.arange(len(values))
            both = pd.concat([decoded, values], ignore_index=True)
            decoded = both.take(places).set_axis(decoded.index)
        return decoded

    def _bounds(self) -> tuple[np.ndarray, np.ndarray]:
        """The first and the last value of each condition's range, as the cells hold values."""
        first, last = np.array(self._spans).T
        return first[self._which], last[self._which]


def is_range(conditions: pd.Series) -> np.ndarray:
    """Which conditions want a range of values; bool."""
    if conditions.dtype != object:
        return np.zeros(len(conditions), dtype=bool)
    return np.array([isinstance(cell, Between) for cell in conditions], dtype=bool)


def is_wanted(conditions: pd.Series) -> np.ndarray:
    """Which conditions want anything of the column; bool."""
    if conditions.dtype != object:
        return np.ones(len(conditions), dtype=bool)
    return np.array([cell is not ANYTHING for cell in conditions], dtype=bool)
