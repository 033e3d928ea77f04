"""Ranges and cuts of numbers and dates in SDV's words, as people declare them. Public."""

from collections.abc import Mapping

import numpy as np
import pandas as pd

from sdv_privpgd.columns.bins import Interval, Ticks
from sdv_privpgd.columns.column import Column
from sdv_privpgd.columns.dates import instants, write_dates
from sdv_privpgd.columns.scalars import quiet
from sdv_privpgd.discovery.grids import DAY


def within(facts: Mapping, found: dict) -> dict:
    """The facts found, with declared bounds in their place, and no bound beyond the other.

    >>> within({"sdtype": "numerical", "range_min": 0}, {"range_min": -8, "range_max": 128})
    {'range_min': 0, 'range_max': 128}
    """
    declared = {key: facts[key] for key in ("range_min", "range_max") if facts.get(key) is not None}
    merged = {**found, **declared}
    low, high = _places(facts, [merged["range_min"], merged["range_max"]])
    if declared and low > high:
        (bound,) = declared.values()
        merged |= {"range_min": bound, "range_max": bound}
    return merged


def inside(facts: Mapping, cuts: list) -> list:
    """The cuts that lie in the range.

    >>> inside({"sdtype": "numerical", "range_min": 0, "range_max": 10}, [-5, 5, 15])
    [5]
    """
    low, high, *places = _places(facts, [facts["range_min"], facts["range_max"], *cuts])
    return [cut for cut, place in zip(cuts, places, strict=True) if low < place <= high]


def starts_of(column: Column) -> list:
    """The smallest number or date of each cell.

    >>> starts_of(Column(name="age", sdtype="numerical", cells=Ticks(0, 9, 2), decimal_places=0))
    [0.0, 5.0]
    """
    if isinstance(column.cells, Interval):
        return column.cells.edges.tolist()
    assert isinstance(column.cells, Ticks)
    starts = column.cells.starts
    if column.unit is not None:
        return _words(starts, column.unit, column.datetime_format, column.utc)
    return (starts / 10 ** (column.decimal_places or 0)).tolist()


def numbers_at(column: Column) -> np.ndarray:
    """The smallest number of each cell, of dates in units of their precision.

    >>> numbers_at(Column(name="age", sdtype="numerical", cells=Ticks(0, 9, 2), decimal_places=0))
    array([0., 5.])
    """
    cells = column.cells
    assert isinstance(cells, Interval | Ticks)
    starts = cells.edges if isinstance(cells, Interval) else cells.starts
    return np.asarray(starts, dtype=np.float64)[: column.num_values]


def range_of(column: Column, ends: tuple[int, int]) -> dict:
    """The range from one cell to another in SDV's words.

    >>> age = Column(name="age", sdtype="numerical", cells=Ticks(0, 9, 2), decimal_places=0)
    >>> range_of(age, (0, 1))
    {'range_min': 0, 'range_max': 9}
    """
    first, last = ends
    if isinstance(column.cells, Interval):
        edges = column.cells.edges
        return {
            "range_min": float(edges[first]),
            "range_max": float(edges[min(last + 1, len(edges) - 1)]),
        }
    assert isinstance(column.cells, Ticks)
    low = int(column.cells.starts[first])
    high = int(column.cells.starts[last] + column.cells.widths[last]) - 1
    if column.sdtype == "datetime":
        unit = column.unit or "D"
        low, high = np.array([low, high]).astype(f"M8[{unit}]").astype("M8[ns]").astype(int)
        return dated(int(low), int(high), unit, column.datetime_format, column.utc)
    scale = 10 ** (column.decimal_places or 0)
    if scale == 1:
        return {"range_min": low, "range_max": high}
    return {"range_min": low / scale, "range_max": high / scale}


def dated(first: int, last: int, unit: str, datetime_format: str | None, utc: bool) -> dict:
    """A range of days or moments, given in nanoseconds since 1970, in SDV's words.

    >>> dated(0, 30 * DAY, "D", "%Y-%m-%d", utc=False)
    {'range_min': '1970-01-01', 'range_max': '1970-01-31'}
    """
    if datetime_format is None and last % DAY == 0:
        # Bounds that are both whole days would be read as those of a column of days.
        last += DAY - int(np.timedelta64(1, unit) / np.timedelta64(1, "ns"))
    low, high = _words(np.array([first, last]), "ns", datetime_format, utc)
    return {"range_min": low, "range_max": high}


def _places(facts: Mapping, values: list) -> list:
    """Numbers as they are, dates in nanoseconds since 1970. Public."""
    if facts["sdtype"] == "numerical":
        return values
    with quiet():
        return instants(pd.Series(values, dtype=object), facts.get("datetime_format"))[0].tolist()


def _words(ticks: np.ndarray, unit: str, datetime_format: str | None, utc: bool) -> list[str]:
    """Dates as they are declared, with an offset if they have a time zone."""
    return [str(date) for date in write_dates(ticks, unit, datetime_format, utc)]
