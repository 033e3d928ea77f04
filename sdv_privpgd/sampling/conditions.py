"""Conditions on one modelled column, one for each row of a table. Public: a user wrote them."""

import numpy as np
import pandas as pd

from sdv_privpgd.columns.encoders import ColumnEncoder
from sdv_privpgd.sampling.between import Between, shares, span

ANYTHING = object()
"""The cell of a condition that asks nothing of the column."""


class Wanted:
    """Conditions on a column: each asks for a value, for a range, or for nothing.

    Attributes:
        name: The column.
        possible: Which conditions the declared domain can meet; bool.
        wishes: A number for each condition, equal for equal conditions; 0 for those that ask
            nothing.

    Raises:
        ValueError: For a range that says nothing about the column.
    """

    def __init__(self, encoder: ColumnEncoder, conditions: pd.Series) -> None:
        self._encoder, column = encoder, encoder.column
        self.name = column.name
        self._ranged = is_range(conditions)
        self._exact = ~self._ranged & is_wanted(conditions)
        self._values = conditions.loc[self._exact]
        codes, _ = encoder.encode(self._values)
        self._which, ranges = pd.factorize(conditions.loc[self._ranged])
        self._spans = [span(column, each) for each in ranges]
        self._fits = [shares(column, each) for each in self._spans]

        self.wishes = np.zeros(len(conditions), dtype=np.int64)
        self.wishes[self._exact] = 1 + codes
        self.wishes[self._ranged] = 1 + column.size + self._which
        self.possible = np.ones(len(conditions), dtype=bool)
        self.possible[self._exact] = encoder.holds(self._values)
        met = np.array([fit.any() for fit in self._fits], dtype=bool)
        self.possible[self._ranged] = met[self._which]

    def fit(self, wish: int) -> np.ndarray:
        """The fit of each code to one of the wishes, shape (code,); the best is 1."""
        size = self._encoder.column.size
        if wish <= size:
            return (np.arange(size) == wish - 1).astype(np.float64)
        fit = self._fits[wish - 1 - size]
        return fit / fit.max()

    def write(
        self, decoded: pd.Series, codes: np.ndarray, positions: np.ndarray, *, holds_missing: bool
    ) -> pd.Series:
        """The decoded column with the values asked for, or values of the ranges, in their rows.

        A value that was asked for is written exactly.
        """
        holds_missing = holds_missing or bool(decoded.isna().any())
        ranged = np.flatnonzero(self._ranged)
        for index, ends in enumerate(self._spans):
            rows = ranged[self._which == index]
            values = self._encoder.within(
                codes[rows], positions[rows], ends, holds_missing=holds_missing
            )
            decoded = put(decoded, rows, values)
        if self._exact.any():
            values = self._encoder.rewrite(self._values, holds_missing=holds_missing)
            decoded = put(decoded, np.flatnonzero(self._exact), values)
        return decoded


def put(series: pd.Series, rows: np.ndarray, values: pd.Series) -> pd.Series:
    """The series with other values in some rows, in a dtype that holds both."""
    places = np.arange(len(series))
    places[rows] = len(series) + np.arange(len(values))
    return pd.concat([series, values], ignore_index=True).take(places).set_axis(series.index)


def is_range(conditions: pd.Series) -> np.ndarray:
    """Marks the conditions that ask for a range of values; bool."""
    if conditions.dtype != object:
        return np.zeros(len(conditions), dtype=bool)
    return np.array([isinstance(cell, Between) for cell in conditions], dtype=bool)


def is_wanted(conditions: pd.Series) -> np.ndarray:
    """Marks the conditions that ask anything of the column; bool."""
    if conditions.dtype != object:
        return np.ones(len(conditions), dtype=bool)
    return np.array([cell is not ANYTHING for cell in conditions], dtype=bool)
