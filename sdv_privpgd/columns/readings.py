"""What is read of columns of which little is known: codes on a first grid, and precisions.

As the encoders do it reads cell by cell, and learns nothing: a cell decides its own codes alone.
"""

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from sdv_privpgd.columns.bins import Reals, Ticks
from sdv_privpgd.columns.column import Column
from sdv_privpgd.columns.dates import BEYOND, instants, precisions, to_ticks
from sdv_privpgd.columns.encoders import encode
from sdv_privpgd.columns.facts import CategoryFacts, ColumnFacts, DateFacts, NumberFacts, TruthFacts
from sdv_privpgd.columns.number_formats import NumberFormat
from sdv_privpgd.columns.scalars import (
    LARGEST_WHOLE,
    MOMENTS,
    are_there,
    canonical,
    decimal_places,
    dense,
    distinct,
    indices,
    plain,
    real,
    real_numbers,
    truths,
)
from sdv_privpgd.columns.units import COARSE
from sdv_privpgd.columns.values import LOOKS, Value, kind_of

MOST_PLACES = 6
"""Decimal places that are told apart; numbers with more have no precision."""

STEPS = tuple(
    by * Fraction(10) ** power
    for power in range(MOST_PLACES, -MOST_PLACES - 1, -1)
    for by in (5, 1)
)[1:]
"""Of which numbers are multiples, descending, from a million on."""


@dataclass(frozen=True, kw_only=True)
class Reading:
    """What is to be read of one column. Public.

    It ``asks`` for values with their numbers of cells (``categories``, ``numbers``), and for codes,
    one a cell: of the first grid (``grid``), and of how precise a cell is (``precision``): of which
    of ``STEPS`` a number is a multiple. The ``cells`` of that grid are of numbers or days since
    1970; missing is the code after the last.
    """

    name: str
    asks: frozenset[str]
    cells: Reals | Ticks
    datetime_format: str | None = None
    number_format: NumberFormat | None = None

    @property
    def sizes(self) -> dict[str, int]:
        """How many codes of each kind there are. Public."""
        told_apart = len(COARSE if self._are_dates else STEPS)
        every = {"grid": len(self.cells) + 1, "precision": told_apart + 2}
        return {kind: size for kind, size in every.items() if kind in self.asks}

    def codes(self, series: pd.Series) -> Iterator[np.ndarray]:
        """The codes of a private column's cells, of each kind in ``sizes`` and in its order."""
        series = dense(series)
        if "grid" in self.asks:
            kind, unit = ("datetime", "D") if self._are_dates else ("numerical", None)
            own = {"datetime_format": self.datetime_format, "number_format": self.number_format}
            own |= {"cells": self.cells, "unit": unit, "dtype": series.dtype}
            yield encode(Column(name=self.name, sdtype=kind, **own), series)[0]
        if "precision" in self.asks:
            if self._are_dates:
                yield precisions(series, self.datetime_format)
            else:
                yield steps_of(*real_numbers(series, self.number_format))

    @property
    def _are_dates(self) -> bool:
        return isinstance(self.cells, Ticks)

    def finite_numbers(self, series: pd.Series) -> np.ndarray:
        """The numbers of a private column, one a cell, and NaN where there is none."""
        numbers, missing = real_numbers(series, self.number_format)
        return np.where(missing, np.nan, numbers)


def steps_of(numbers: np.ndarray, missing: np.ndarray | bool) -> np.ndarray:
    """The place of the first of ``STEPS`` that each number is a multiple of, int64.

    It is one after the last for numbers that are of none, and two for missing ones.
    """
    places = decimal_places(numbers, missing, MOST_PLACES)
    left = np.rint(np.where(missing, 0.0, numbers) * 10.0 ** np.minimum(places, MOST_PLACES))
    steps, held = 2 * (MOST_PLACES + places), np.arange(len(places))
    for factor in (5, 2) * MOST_PLACES:  # from each step to the one before
        held = held[np.fmod(left[held], factor) == 0]
        left[held] /= factor
        steps[held] -= 1
    return np.where(places > MOST_PLACES, len(STEPS) + places - MOST_PLACES - 1, steps)


@dataclass(frozen=True, kw_only=True)
class Readable:
    """Whether the cells of a column are as it is declared. Public.

    Its codes are 0 for cells that are, 1 for missing ones, 2 for what is there and no declared
    value, 3 and 4 for what lies below and above a declared range, or all that is told apart. Where
    no values are declared, all others that are of the declared type are as they should be; of
    categories those that are written as one of ``LOOKS`` have its place from 5 on, and so have
    moments with a zone, which are no categories. A cell has one code, and alone says which.
    """

    name: str
    facts: ColumnFacts

    @property
    def sizes(self) -> dict[str, int]:
        """How many codes there are. Public."""
        return {"read": 5 + len(LOOKS) * self._is_open}

    @property
    def _is_open(self) -> bool:
        return isinstance(self.facts, CategoryFacts) and self.facts.lacks_domain

    def codes(self, series: pd.Series) -> Iterator[np.ndarray]:
        """The codes of a private column's cells."""
        series = dense(series)
        looks = 0
        if self._is_open:
            listed, places = distinct(series)
            looks = np.array([_look(cell) for cell in listed])[places]
        values, missing, low, high = self._read(series)
        unparsed = np.array(missing)
        unparsed[missing] = are_there(series.loc[missing])
        codes = [np.maximum(looks, 2), 1, 3, 4]
        yield np.select([unparsed, missing, values < low, values > high], codes, looks)

    def _read(self, series: pd.Series) -> tuple[np.ndarray, np.ndarray, Any, Any]:
        """Values, which cells have none that is declared, and the ends of the range."""
        facts, placed, endless = self.facts, real, (-np.inf, np.inf)
        if isinstance(facts, NumberFacts):
            values, missing = real_numbers(series, facts.number_format)
            endless = np.nextafter([-float(LARGEST_WHOLE), float(LARGEST_WHOLE)], 0.0)
        elif isinstance(facts, DateFacts):
            moments, missing = instants(series, facts.datetime_format)
            unit = "ns" if facts.lacks_domain else facts.unit
            placed = lambda moment: to_ticks(np.array(moment), unit)
            values = placed(np.clip(moments, *BEYOND))
            endless = placed(BEYOND[0] + 1), placed(BEYOND[1] - 1)
        elif isinstance(facts, TruthFacts) and facts.values is None:
            values, missing = truths(series)
        else:  # of those that nobody declared all have the same index
            known = dict.fromkeys(facts.values or (), 0)
            values, missing = indices(series, known, -1 if facts.values else 0)
        low, high = (
            most if (end := getattr(facts, name, None)) is None else placed(end)
            for name, most in zip(("low", "high"), endless, strict=True)
        )
        return values, missing, low, high


def _look(cell: Any) -> int:
    """The code of how a text or a number is written, that of a zoned moment, and 0 of all else."""
    is_zoned = any(type(cell) is kind for kind in MOMENTS) and cell.tzinfo is not None
    read = "00:00" if is_zoned else plain(cell)  # looks like a time
    text = str(read).strip() if type(read) in (str, float, Decimal) else ""
    return next((n for n, look in enumerate(LOOKS.values(), 5) if look.fullmatch(text)), 0)


class Rarer(NamedTuple):
    """What is asked of columns some of whose values were ``found``: about all others. Public.

    A row that has other values in more than ``most`` columns is counted in each of them by a part
    of one, so that it counts as much as in ``most``. It is a multiple of 1 / ``parts``.
    """

    found: Mapping[str, Collection[Value]]
    most: int
    parts: int = 2**8

    def cells(self, name: str, series: pd.Series) -> "RarerCells":
        """What a private column's cells are, each by itself."""
        listed, places = distinct(dense(series))
        keys = list(map(canonical, listed))
        known = {(kind_of(key), key) for key in self.found[name]}
        others = [key is not None and (kind_of(key), key) not in known for key in keys]
        return RarerCells(keys, np.arange(len(keys))[places], np.array(others, dtype=bool))


class RarerCells(NamedTuple):
    """Values, and the place of each cell's among them; and which are rarer."""

    values: list[Value | None]
    places: np.ndarray
    are_rarer: np.ndarray


def attribute_of(kind: str, name: str) -> str:
    """The attribute of one kind of codes of a column, in a first look. Public."""
    return f"{kind} {name}"
