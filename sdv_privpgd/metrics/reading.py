"""Reads the values of a table that may be looked at, each different value of a column once.

Values are read as the synthesizer reads them, but unreadable ones are told apart from missing ones.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from sdv_privpgd.columns.bins import Categories
from sdv_privpgd.columns.column import Column
from sdv_privpgd.columns.dates import instants
from sdv_privpgd.columns.number_formats import NumberFormat
from sdv_privpgd.columns.scalars import plain, real_numbers, truths

READ, UNREAD, EMPTY = 0, 1, 2
"""Results for a cell that should hold a number or a date."""


@dataclass(frozen=True, kw_only=True)
class Described:
    """The facts by which a column is read: its name, its sdtype and, if known, format and order."""

    name: str
    sdtype: str
    datetime_format: str | None = None
    number_format: NumberFormat | None = None
    order: tuple = ()

    @classmethod
    def of(cls, column: Column) -> "Described":
        """The description of a column that has a domain."""
        values = column.cells.values if isinstance(column.cells, Categories) else ()
        return cls(
            name=column.name,
            sdtype=column.sdtype,
            datetime_format=column.datetime_format,
            number_format=column.number_format,
            order=values if column.sdtype == "ordinal" else (),
        )

    @property
    def is_numeric(self) -> bool:
        """Whether its values are numbers, or dates in nanoseconds since 1970."""
        return self.sdtype in ("numerical", "datetime")

    @property
    def is_ordered(self) -> bool:
        """Whether the order of its values means something."""
        return self.is_numeric or bool(self.order)


def read_numbers(column: Described, series: pd.Series) -> tuple[np.ndarray, np.ndarray]:
    """The numbers of a column, or the nanoseconds of its dates, and the result for each cell.

    A result is ``READ``, ``UNREAD`` or ``EMPTY``. The numbers of cells that were not read mean
    nothing.
    """
    empty = series.isna().to_numpy(dtype=bool)
    distinct, places = _distinct(series)
    if column.sdtype == "datetime":
        numbers, unread = instants(distinct, column.datetime_format)
    else:
        numbers, unread = real_numbers(distinct, column.number_format)
    state = np.where(unread, UNREAD, READ)[places]
    state[empty] = EMPTY
    return numbers[places], state


def _distinct(series: pd.Series) -> tuple[pd.Series, np.ndarray | slice]:
    """The different values of a column that is slow to read, and each cell's index among them."""
    if isinstance(series.dtype, np.dtype) and series.dtype.kind in "biufM":
        return series, slice(None)
    listed = series.astype(object)
    try:
        places, distinct = pd.factorize(listed, use_na_sentinel=False)
    except TypeError:  # lists and the like have no hash
        return listed, slice(None)
    return pd.Series(distinct, dtype=object), places


def read_categories(column: Described, both: pd.Series) -> tuple[list, np.ndarray]:
    """The different categories, and each cell's index among them, with -1 for missing.

    Categories that are equal in Python are the same, as for the synthesizer: 1, 1.0 and ``True``.
    In a boolean column the words for true and false are the same as these values, too.
    """
    try:
        places, distinct = pd.factorize(both)
    except TypeError:  # lists and the like have no hash
        both = both.map(repr, na_action="ignore")
        places, distinct = pd.factorize(both)
    listed = [_key(cell) for cell in distinct]
    if column.sdtype == "boolean":
        values, unread = truths(pd.Series(distinct, dtype=object))
        known = zip(values, unread, listed, strict=True)
        listed = [key if no else bool(value) for value, no, key in known]
    place_of: dict = {}
    index = np.array([place_of.setdefault(key, len(place_of)) for key in listed] + [-1])
    return list(place_of), index[places]


def _key(cell: Any) -> Any:
    """A category that can be compared and named: the value itself or, for an object, its text."""
    value = plain(cell)
    return repr(cell) if value is None else value
