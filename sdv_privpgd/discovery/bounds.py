"""The ranges and cuts that cells of numbers and dates make. Public."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from sdv_privpgd.columns.bins import Interval, Ticks
from sdv_privpgd.columns.column import Column
from sdv_privpgd.columns.dates import to_ticks
from sdv_privpgd.columns.facts import DateFacts, NumberFacts, Ranged, exactly, single
from sdv_privpgd.columns.scalars import Number
from sdv_privpgd.columns.units import unit_of_format
from sdv_privpgd.discovery.grids import DAY


def within(known: Ranged, low: Number, high: Number) -> Ranged:
    """The facts with the bounds found, unless they are declared, and none beyond the other."""
    first = low if known.low is None else known.low
    last = high if known.high is None else known.high
    if first > last:
        return single(known, "high" if known.low is None else "low")
    return replace(known, low=first, high=last)


def inside(cuts: Sequence[Number], facts: NumberFacts | DateFacts) -> tuple:
    """The cuts that lie in the range."""
    low, high = facts.ends
    return tuple(cut for cut in cuts if low < exactly(cut) <= high)


def starts_of(column: Column) -> list[float] | list[int]:
    """The smallest number of each cell, of dates in nanoseconds since 1970."""
    if isinstance(column.cells, Interval):
        return column.cells.edges[: column.num_values].tolist()
    assert isinstance(column.cells, Ticks)
    starts = column.cells.starts
    if column.unit is not None:
        return _nanoseconds(starts, column.unit)
    return (starts / 10 ** (column.decimal_places or 0)).tolist()


def edges_of(column: Column) -> np.ndarray:
    """Where the cells begin, and where the next one would, float64, of dates in nanoseconds."""
    cells = column.cells
    if isinstance(cells, Interval):
        return np.append(cells.edges[: len(cells)], cells.edges[-1])
    assert isinstance(cells, Ticks)
    ticks, unit = np.append(cells.starts, cells.last + 1), column.unit
    if unit is None:
        return ticks / 10.0 ** (column.decimal_places or 0)
    if unit in ("M", "Y"):
        ticks, unit = ticks.astype(f"datetime64[{unit}]").astype("datetime64[D]").astype(int), "D"
    return ticks * float(np.timedelta64(1, unit) / np.timedelta64(1, "ns"))


def range_of(column: Column, ends: tuple[int, int]) -> tuple[Number, Number]:
    """The range from one cell to another, of dates in nanoseconds since 1970."""
    first, last = ends
    if isinstance(column.cells, Interval):
        edges, largest = column.cells.edges, float(column.cells.largest[last])
        is_one = edges[last] == largest  # a cap, which no range goes beyond
        return float(edges[first]), largest if is_one else float(edges[last + 1])
    assert isinstance(column.cells, Ticks)
    low = int(column.cells.starts[first])
    high = int(column.cells.starts[last] + column.cells.widths[last]) - 1
    if column.unit is not None:
        low, high = _nanoseconds(np.array([low, high]), column.unit)
        return counted_in(low, high, column.unit, column.datetime_format)
    scale = 10 ** (column.decimal_places or 0)
    return (low, high) if scale == 1 else (low / scale, high / scale)


def counted_in(low: int, high: int, unit: str, datetime_format: str | None) -> tuple[int, int]:
    """A range of moments, in nanoseconds since 1970, as bounds of dates of a unit or a format.

    The unit of dates without a format follows from their bounds.
    """
    if datetime_format is not None:
        own = unit_of_format(datetime_format)
        low, high = _nanoseconds(to_ticks(np.array([low, high]), own), own)
    elif high % DAY == 0:
        # Bounds that are both whole days would be those of a column of days.
        high += DAY - int(np.timedelta64(1, unit) / np.timedelta64(1, "ns"))
    return low, high


def _nanoseconds(ticks: np.ndarray, unit: str) -> list[int]:
    moments = ticks.astype(f"datetime64[{unit}]").astype("datetime64[ns]")
    return moments.astype(np.int64).tolist()
