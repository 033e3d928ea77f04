"""From the cells of a column to its codes, wholly by public facts.

A value becomes a code, the number of its cell, and a position in [0, 1) inside the cell. Missing is
the last code. Nothing is learned from a table: two tables that differ in one cell differ in at most
one code of that column. ``columns/decoders.py`` has the way back, which sees no table.

Values that do not fit are placed silently, because a message would reveal something about the data.
A number or a date outside its range goes to the first or the last cell. An unreadable value or an
undeclared category is missing. Where nothing may be missing it is the value for all others, if one
is declared, and else it goes to the first cell.
"""

import numpy as np
import pandas as pd

from sdv_privpgd.columns.bins import Categories, Ticks
from sdv_privpgd.columns.column import Column
from sdv_privpgd.columns.dates import BEYOND, by_zone, instants, to_ticks
from sdv_privpgd.columns.dtypes import clock_in, zone_in
from sdv_privpgd.columns.scalars import dense, indices, quiet, real_numbers, truths, whole_numbers
from sdv_privpgd.columns.units import DAYS


def encode(column: Column, series: pd.Series) -> tuple[np.ndarray, np.ndarray]:
    """The int64 codes and float64 positions of a private column's cells."""
    with quiet():
        return located(column, *read(column, series))


def read(column: Column, series: pd.Series) -> tuple[np.ndarray, np.ndarray]:
    """The values of a private column's cells, for ``column.locate``, and which are missing."""
    series, cells = dense(series), column.cells
    with quiet():
        if column.unit is not None:  # dates, which are text or timestamps
            moments, missing = moments_of(column, series)
            return to_ticks(moments, column.unit), missing
        if isinstance(cells, Categories):
            return indices_in(column, series, len(cells) - 1 if cells.has_other else -1)
        if isinstance(cells, Ticks):
            return _ticks_of_numbers(column, series)
        return real_numbers(series, column.number_format)


def _ticks_of_numbers(column: Column, series: pd.Series) -> tuple[np.ndarray, np.ndarray]:
    """Whole ticks of a column of integers, of declared decimal places or of an increment."""
    increment = column.increment or 1
    if column.decimal_places == 0:
        numbers, missing = whole_numbers(series, column.number_format)
        return (numbers + increment // 2) // increment, missing
    numbers, missing = real_numbers(series, column.number_format)
    scale = float(1 / column.tick)
    low, high = (end / scale for end in column.cells.ends)
    return np.rint(np.clip(numbers, low, high) * scale).astype(np.int64), missing


def moments_of(column: Column, series: pd.Series) -> tuple[np.ndarray, np.ndarray]:
    """Nanoseconds since 1970 on the clock by which it is counted, and which are missing.

    Where its dtype names a time zone, dates without one are of that zone. Days are else those that
    cells show, whatever their offset from UTC is.
    """
    zone = zone_in(column)
    as_shown = zone is None and column.unit in DAYS
    moments, missing = instants(series, column.datetime_format, as_shown=as_shown)
    moments = np.clip(moments, *BEYOND)
    if zone is not None:
        moments = by_zone(moments, series, column.datetime_format, zone, clock_in(column))
    return moments, missing


def indices_in(column: Column, series: pd.Series, other: int) -> tuple[np.ndarray, np.ndarray]:
    """The index of each cell's category, ``other`` for values that were not declared.

    It is found by Python's equality: a declared 1 is found as 1, 1.0 and ``True``.
    """
    assert isinstance(column.cells, Categories)
    values = column.cells.values
    if column.sdtype == "boolean" and values == (False, True):
        return truths(series)
    return indices(series, {value: index for index, value in enumerate(values)}, other)


def located(
    column: Column, values: np.ndarray, missing: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """The codes and positions of values, and of missing ones."""
    codes, positions = column.locate(values)
    has_other = isinstance(column.cells, Categories) and column.cells.has_other
    codes[missing] = column.size - 1 if column.nullable or has_other else 0
    positions[missing] = 0.5
    return codes, positions
