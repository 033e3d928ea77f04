"""The public facts on one column, and the cells that follow from them."""

from collections.abc import Collection
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np

from sdv_privpgd.columns.bins import Categories, Merging, Reals, Ticks
from sdv_privpgd.columns.number_formats import NumberFormat

EXACT_IN_FLOAT = 2**53
"""Whole numbers up to this size are float64 numbers."""


@dataclass(frozen=True, kw_only=True)
class Column:
    """Public facts on one modelled column.

    Attributes:
        name: Its name in the user's table.
        sdtype: ``numerical``, ``datetime``, ``categorical``, ``ordinal`` or ``boolean``.
        cells: The cells that its values fall in. Dates and numbers of known decimal places have
            ``Ticks``, other numbers have an ``Interval``.
        merging: Says which cells share a code; ``None`` if each has its own.
        nullable: Whether a value may be missing. Missing has a code of its own, the last one.
        decimal_places: A tick of a numerical column is 10**-decimal_places.
        increment: If it is set, a tick of a numerical column is this whole number instead: all
            values are multiples of it. They are integers if ``decimal_places`` is 0, else floats.
        number_format: How a numerical column's text is written; ``None`` if its values are numbers.
        unit: A tick of a datetime column is one of NumPy's units, counted from 1970.
        datetime_format: How a datetime column's strings are written; ``None`` for timestamps.
        offset: How strings write their offset from UTC, if all write the same one.
        utc: Whether dates carry a time zone; it is UTC unless the dtype names another.
        dtype: The dtype that values are written in, as far as possible; ``Decimal`` or ``time`` for
            objects of that type, ``int`` for dates that are whole numbers. ``None`` if none is
            known: then the values decide.
    """

    name: str
    sdtype: str
    cells: Categories | Ticks | Reals
    merging: Merging | None = None
    nullable: bool = True
    decimal_places: int | None = None
    increment: int | None = None
    number_format: NumberFormat | None = None
    unit: str | None = None
    datetime_format: str | None = None
    offset: str | None = None
    utc: bool = False
    dtype: Any = None

    @property
    def num_values(self) -> int:
        """The number of codes of values; missing is not counted."""
        return len(self.cells if self.merging is None else self.merging)

    @property
    def size(self) -> int:
        """The number of codes: those of values, and one for missing if the column is nullable."""
        return self.num_values + self.nullable

    @property
    def is_ordered(self) -> bool:
        """Whether the order of the codes of values has a meaning."""
        return self.sdtype in ("numerical", "datetime", "ordinal")

    def locate(self, values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The codes of values, as the cells hold values, and their positions in the codes."""
        codes, positions = self.cells.locate(values)
        return (codes, positions) if self.merging is None else self.merging.locate(codes, positions)

    def at(self, codes: np.ndarray, positions: np.ndarray) -> np.ndarray:
        """The values at positions of codes, as the cells hold values."""
        if self.merging is not None:
            codes, positions = self.merging.at(codes, positions)
        return self.cells.at(codes, positions)

    def shares(self, low: Any, high: Any) -> np.ndarray:
        """The share of each code that a range covers."""
        shares = self.cells.shares(low, high)
        return shares if self.merging is None else self.merging.covered(shares)

    def within(self, codes: np.ndarray, positions: np.ndarray, low: Any, high: Any) -> np.ndarray:
        """The values at positions of the part of each code that a range covers."""
        if self.merging is not None:
            narrowed = self.merging.narrowed(self.cells.shares(low, high))
            codes, positions = narrowed.at(codes, positions)
        return np.clip(self.cells.between(codes, positions, low, high), low, high)

    def cut(self, values: Collection[Any]) -> "Column":
        """The column of ordered values with codes that begin at these values, as far as it can.

        Values are as the cells hold them.
        """
        if isinstance(self.cells, Categories):
            cells, merging, starts = self.cells, self.merging, np.arange(len(self.cells))
        else:
            cells, merging = self.cells.cut(values), self.merging
            starts = cells.starts
            if merging is not None:
                of_cell = np.searchsorted(self.cells.starts, starts, side="right") - 1
                merging = merging.cut(of_cell, cells.masses)
        if merging is not None:
            for cell in np.flatnonzero(np.isin(starts[1:], list(values))).tolist():
                merging = merging.split(cell + 1)
        return replace(self, cells=cells, merging=merging)

    @property
    def tick(self) -> Fraction:
        """The distance between neighboring numbers of a numerical column."""
        if self.increment is not None:
            return Fraction(self.increment)
        return Fraction(1, 10 ** (self.decimal_places or 0))

    def numbers(self, values: np.ndarray) -> np.ndarray:
        """The numbers that a numerical column's cells hold as ``values``.

        They are int64 if the column has integers, else the nearest float64 numbers.
        """
        if self.increment is not None:
            values = values * self.increment
            return values if self.decimal_places == 0 else values.astype(np.float64)
        if not self.decimal_places:
            return values
        # The float64 number nearest to the decimal, which is how literals are read.
        return values / 10.0**self.decimal_places
