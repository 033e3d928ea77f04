"""Ranges of values as conditions: what a user writes, and what it means for a column's cells."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd

from sdv_privpgd.columns.bins import Categories, Interval, Ticks
from sdv_privpgd.columns.column import Column
from sdv_privpgd.columns.dates import instants, to_ticks
from sdv_privpgd.columns.scalars import indices, plain, quiet


@dataclass(frozen=True)
class Between:
    """Any value from ``low`` to ``high``, both included, as a condition on a column. Public.

    ``None`` leaves an end open. It applies to numbers, dates and ordinal categories, which are
    compared in their declared order. Use it in SDV's conditions, as in ``Condition({"age":
    Between(30, 40), "ward": "B"}, num_rows=10)``, or in cells of a ``DataFrameCondition``. No range
    holds missing values.

    Raises:
        ValueError: If both ends are open, or an end is not a single value.

    >>> Between(30, 40)
    Between(low=30, high=40)
    >>> Between(low=65)  # and above
    Between(low=65, high=None)
    """

    low: Any = None
    high: Any = None

    def __post_init__(self) -> None:
        if self.low is None and self.high is None:
            raise ValueError("Between needs at least one end, as in Between(30, 40), got none.")
        try:
            hash((self.low, self.high))
        except TypeError as error:
            raise ValueError(
                "The ends of Between must be numbers, dates or categories, got "
                f"{self.low!r} and {self.high!r}."
            ) from error


Span = tuple[Any, Any]
"""The first and the last value of a range, as a column's cells hold values."""


def span(column: Column, between: Between) -> Span:
    """The range as a column's cells hold values. If it is empty, its first value is above its last.

    Raises:
        ValueError: If the column has no order, or an end is no value of its kind.
    """
    if not column.is_ordered:
        raise ValueError(
            f"Column {column.name!r} is {column.sdtype}: its values have no order, so {between!r} "
            "says nothing about it. Ask for one of its values instead."
        )
    first, last = column.cells.ends
    return (
        first if between.low is None else _end(column, between.low, math.ceil),
        last if between.high is None else _end(column, between.high, math.floor),
    )


def shares(column: Column, span: Span) -> np.ndarray:
    """The share of each code that a span covers, in [0, 1]; 0 for missing."""
    return np.append(column.shares(*span), np.zeros(int(column.nullable)))


def _end(column: Column, end: Any, rounded: Callable[[Any], int]) -> Any:
    """An end of a range as the cells hold it, rounded into the range."""
    if isinstance(column.cells, Categories):
        found = _index(column.cells, end)
    elif column.unit is not None:
        found = _tick_of_date(column, end, rounded)
    else:
        number = _number(end)
        if number is None or isinstance(column.cells, Interval):
            found = None if number is None else float(number)
        else:
            found = _tick(column.cells, column.tick, number, rounded)
    if found is None:
        raise ValueError(
            f"{end!r} cannot be an end of a range in column {column.name!r}, which is "
            f"{column.sdtype}."
        )
    return found


def _index(cells: Categories, end: Any) -> int | None:
    known = {value: index for index, value in enumerate(cells.values)}
    (index,), _ = indices(pd.Series([end], dtype=object), known)
    return None if index < 0 else int(index)


def _tick_of_date(column: Column, end: Any, rounded: Callable[[Any], int]) -> int | None:
    with quiet():
        moments, missing = instants(pd.Series([end], dtype=object), column.datetime_format)
    if missing[0]:
        return None
    assert column.unit is not None
    ticks = to_ticks(moments, column.unit)
    begun = ticks.astype(f"datetime64[{column.unit}]").astype("datetime64[ns]").astype(np.int64)
    return int(ticks[0]) + (rounded is math.ceil and bool(begun[0] < moments[0]))


def _tick(cells: Ticks, tick: Fraction, number: Fraction | float, rounded: Callable) -> int:
    """The tick next to a number; the one just outside the domain for all numbers further out."""
    return rounded(min(max(number, (cells.first - 1) * tick), (cells.last + 1) * tick) / tick)


def _number(end: Any) -> Fraction | float | None:
    """A number as it is written, 0.1 as a tenth, or an infinity; ``None`` for anything else."""
    number = plain(end)
    if isinstance(number, bool | str | bytes | None):
        return None
    if isinstance(number, float | Decimal) and not math.isfinite(number):
        return float(number)
    return Fraction(Decimal(repr(number)) if isinstance(number, float) else number)
