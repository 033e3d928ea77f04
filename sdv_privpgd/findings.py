"""What noisy answers about a column say of its range, its precision and its categories. Public."""

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd
from scipy.stats import norm

from sdv_privpgd.cells import Interval, SignedPowers, Ticks
from sdv_privpgd.coercion import LARGEST_WHOLE, quiet
from sdv_privpgd.columns import Column
from sdv_privpgd.dates import (
    EARLIEST,
    LATEST,
    has_zone,
    instants,
    survive_writing,
    to_ticks,
    write_dates,
)
from sdv_privpgd.declaring import MOST_CATEGORIES, unit_of_format
from sdv_privpgd.keys import Key, in_order
from sdv_privpgd.measure import Measurement, NoisyTable
from sdv_privpgd.support import pooled, supported_one_way

_FALSE_ALARMS = 1e-3
"""Chance that some empty cell of a column's grid seems to hold rows."""

_NEGLIGIBLE, _SURE = 0.01, 2.0
"""A tail of a range is left out if, surely by so many standard deviations, it holds less of all
rows than this."""

_NEAR = 16
"""A range that begins nearer to zero than this part of its end begins with zero."""

_ABOUT_ZERO = 2.0**-19
"""Width of the cell about zero of ``SignedPowers``."""

_FINE_CELLS, _SINGLE = 256, 513
"""About as many cells has the second grid; whole numbers up to so many have one each."""

MOST_PLACES = 6
"""Decimal places that are told apart; numbers with more have no precision."""

_DAY = 86_400 * 10**9
YEARS = Ticks(EARLIEST // _DAY + 1, LATEST // _DAY - 1, 584)
"""The first grid of dates: about a year each, in days since 1970, all of which can be bounds."""

UNITS = ("D", "s", "ns")
"""Of ``dates.precisions``."""


def roughly(
    facts: Mapping, grid: Measurement, precision: Measurement | None, *, utc: bool = False
) -> dict:
    """The range of a number or date on the first grid, where to cut it and its precision.

    The precision if that was asked for; ``utc`` says that dates without a format have a time zone.
    """
    inside = _significant(grid, grid.answer.size - 1)
    ends = int(inside[0]), int(inside[-1])
    fine = None
    if precision is not None:
        fine = int(_significant(precision, precision.answer.size - 1)[-1])
    if facts["sdtype"] == "datetime":
        found = _rough_dates(facts, ends, grid.answer[:-1], fine, utc)
    else:
        found = _within(facts, _rough_numbers(facts, ends, grid.answer[:-1], fine))
    cuts = _inside({**facts, **found}, found.get("cut_points", []))
    return {**found, "cut_points": cuts or None, "num_bins": _SINGLE}


def looked_into(column: Column, answer: Measurement, facts: Mapping) -> dict:
    """The range of the fine cells that hold rows, whether missing has, and where to cut."""
    size = column.num_values
    table = NoisyTable(answer.answer.astype(np.float64), answer.stddev**2)
    total = max(float(table.counts.sum()), 1.0)
    supported = supported_one_way(table, size + 1, total)
    inside = np.flatnonzero(supported[:size])
    first, last = (int(inside[0]), int(inside[-1])) if inside.size else (0, size - 1)
    # Nothing is cut off that may hold rows that matter.
    tails = table.counts[:first], table.counts[last + 1 : size]
    before, after = (_may_hold(tail, answer.stddev, total) for tail in tails)
    first, last = 0 if before else first, size - 1 if after else last
    found = _within(facts, _range(column, (first, last)))
    if facts.get("range_is_nullable") is None:
        found["range_is_nullable"] = bool(supported[size] > 0)
    cuts = _starts(column)[first + 1 : last + 1]
    found["cut_points"] = _inside({**facts, **found}, cuts)
    if cuts and found["cut_points"] == cuts:
        inner = NoisyTable(table.counts[first : last + 1], table.variance)
        found["frequencies"] = pooled(inner).tolist()
    return found


def _may_hold(tail: np.ndarray, stddev: float, total: float) -> bool:
    """Whether cells that seem empty may together hold a part of all rows that matters."""
    most = tail.sum() + _SURE * stddev * math.sqrt(tail.size)
    return bool(tail.size and most > _NEGLIGIBLE * total)


def categories(found: list[tuple[Key | None, int]]) -> dict:
    """Values that differ, the more frequent of two that Python finds equal, and one for the rest.

    Numbers have no word for the rest: there it is missing.
    """
    most: dict[Any, tuple[int, Key]] = {}
    for key, number in found:
        if key is not None and (key not in most or number > most[key][0]):
            most[key] = number, key
    values = in_order(key for _, key in most.values())
    if len(values) > MOST_CATEGORIES:
        number = {key: number for number, key in most.values()}
        return {**_named(values), "frequencies": [float(max(number[key], 0)) for key in values]}
    return _named(values)


def _named(values: list[Key]) -> dict:
    """The values, and a word for the rest."""
    if values and not any(isinstance(value, str) for value in values):
        return {"range_values": values}
    other = "other"
    while other in values:
        other = f"any {other}"
    return {"range_values": values, "other_value": other}


def frequencies(answer: Measurement, size: int) -> list[float]:
    """How often each of the first codes occurs."""
    counts = answer.answer[:size].astype(np.float64)
    return pooled(NoisyTable(counts, answer.stddev**2)).tolist()


def _significant(measurement: Measurement, size: int) -> np.ndarray:
    """The first codes that hold rows, ascending: at least that of the largest count."""
    counts = measurement.answer[:size]
    least = norm.isf(_FALSE_ALARMS / size) * measurement.stddev
    return np.flatnonzero(counts >= min(least, counts.max()))


def _rough_numbers(
    facts: Mapping, ends: tuple[int, int], counts: np.ndarray, precision: int | None
) -> dict:
    """The range of cells of ``SignedPowers`` and one more at each end, and the decimal places."""
    edges = SignedPowers().edges
    zero = len(edges) // 2 - 1
    first, last = max(ends[0] - 1, 0), min(ends[1] + 1, len(edges) - 2)
    # An end that is near to zero, for the size of the other, is zero.
    low = 0 if abs(first - zero) <= 1 else _exactly(edges[first])
    high = 0 if abs(last - zero) <= 1 else _exactly(edges[last + 1])
    low, high = (0 if 0 < low <= high / _NEAR else low), (0 if 0 > high >= low / _NEAR else high)
    places = facts.get("decimal_places") if precision is None else precision
    if places is not None and places > MOST_PLACES:
        places = None
    scale = math.inf if places is None else 10**places
    # Outwards to whole ticks: a range between two of them has no number.
    if isinstance(low, float) and places is not None:
        low = math.floor(low * scale) / scale
    if isinstance(high, float) and places is not None:
        high = math.ceil(high * scale) / scale
    found = {"range_min": low, "range_max": high, "decimal_places": places}
    if low == high or (high - low) * scale < _SINGLE:  # each number has a cell
        return found
    rough = np.clip(edges[first : last + 2], low, high)
    rough[[0, -1]] = low, high
    return {**found, "cut_points": _fine_cuts(rough, counts[first : last + 1], scale)}


def _fine_cuts(edges: np.ndarray, counts: np.ndarray, scale: float) -> list[float]:
    """Where to cut cells finely: often where there are many rows, much width or many powers.

    Not finer than ticks of 1 / scale.
    """
    if scale < math.inf:
        edges = np.ceil(edges * scale) / scale
    widths, held = np.diff(edges), np.maximum(counts, 0.0)
    cells = np.flatnonzero(widths)
    shares = held / max(held.sum(), 1.0) + widths / widths.sum() + 1 / cells.size
    numbers = np.ceil(_FINE_CELLS / 3 * shares)
    # About zero all is one cell: numbers so small are as good as zero.
    numbers[(edges[:-1] <= 0) & (edges[1:] > 0) & (widths <= _ABOUT_ZERO)] = 1
    numbers = np.minimum(numbers, np.rint(widths * scale)).astype(int)
    ends = zip(edges[cells], edges[cells + 1], numbers[cells], strict=True)
    cuts = [np.linspace(low, high, number, endpoint=False) for low, high, number in ends]
    return [float(cut) for cut in np.concatenate(cuts)[1:]]


def _exactly(edge: float) -> float | int:
    """A power of two as a number that whole numbers are read up to."""
    return max(int(edge), 1 - LARGEST_WHOLE) if edge == int(edge) else float(edge)


def _rough_dates(
    facts: Mapping, ends: tuple[int, int], counts: np.ndarray, precision: int | None, utc: bool
) -> dict:
    """The range of years of the first grid and its cuts; no format where it cannot write them."""
    first, last = ends
    edges = np.append(YEARS.starts, YEARS.last + 1)[first : last + 2]
    low, high = int(edges[0]) * _DAY, int(edges[-1] - 1) * _DAY
    unit = "D" if precision is None else UNITS[min(precision, len(UNITS) - 1)]
    written = facts.get("datetime_format")
    own = unit if written is None else unit_of_format(written)
    if written is not None:
        utc = utc or has_zone(written)
        bounds = to_ticks(np.array([low, high]), own)
        if not survive_writing(bounds, own, written):
            written, own = None, unit
    found = _dated(low, high, unit, written, utc)
    if written == facts.get("datetime_format"):
        found = _within(facts, found)
    cuts = _cut_years(edges, counts[first : last + 1], own)
    return {**found, "datetime_format": written, "cut_points": cuts}


def _cut_years(edges: np.ndarray, counts: np.ndarray, unit: str) -> list[np.datetime64]:
    """Where to cut years, given as days, into cells of whole units, and not below seconds.

    Nowhere if the dates are so few that each has a cell.
    """
    unit = "s" if unit in ("us", "ns") else unit
    ticks = to_ticks(edges * _DAY, unit)
    if ticks[-1] - ticks[0] < _SINGLE:
        return []
    cuts = np.ceil(_fine_cuts(ticks.astype(np.float64), counts, 1.0)).astype(np.int64)
    return list(np.unique(cuts).astype(f"datetime64[{unit}]").astype("datetime64[ns]"))


def _dated(first: int, last: int, unit: str, datetime_format: str | None, utc: bool) -> dict:
    """A range in SDV's words of days, or of moments, in nanoseconds since 1970."""
    if datetime_format is None and last % _DAY == 0:
        # Bounds that are whole days would be read as a column of days.
        last += _DAY - int(np.timedelta64(1, unit) / np.timedelta64(1, "ns"))
    low, high = _words(np.array([first, last]), "ns", datetime_format, utc)
    return {"range_min": low, "range_max": high}


def _words(ticks: np.ndarray, unit: str, datetime_format: str | None, utc: bool) -> list[str]:
    """Dates as they are declared; with an offset where they have a time zone."""
    return [str(date) for date in write_dates(ticks, unit, datetime_format, utc)]


def _within(facts: Mapping, found: dict) -> dict:
    """What was found, with a bound that was declared in its place, and the other not beyond it."""
    declared = {key: facts[key] for key in ("range_min", "range_max") if facts.get(key) is not None}
    merged = {**found, **declared}
    low, high = _places(facts, [merged["range_min"], merged["range_max"]])
    if declared and low > high:
        (bound,) = declared.values()
        merged |= {"range_min": bound, "range_max": bound}
    return merged


def _inside(facts: Mapping, cuts: list) -> list:
    """The cuts that lie in the range."""
    low, high, *places = _places(facts, [facts["range_min"], facts["range_max"], *cuts])
    return [cut for cut, place in zip(cuts, places, strict=True) if low < place <= high]


def _places(facts: Mapping, values: list) -> list:
    """Public numbers as they are, dates in nanoseconds since 1970."""
    if facts["sdtype"] == "numerical":
        return values
    with quiet():
        return instants(pd.Series(values, dtype=object), facts.get("datetime_format"))[0].tolist()


def _starts(column: Column) -> list:
    """The smallest number or date of each cell."""
    if isinstance(column.cells, Interval):
        return column.cells.edges.tolist()
    assert isinstance(column.cells, Ticks)
    starts = column.cells.starts
    if column.unit is not None:
        return _words(starts, column.unit, column.datetime_format, column.utc)
    return (starts / 10 ** (column.decimal_places or 0)).tolist()


def _range(column: Column, ends: tuple[int, int]) -> dict:
    """The range from one cell to another in SDV's words."""
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
        return _dated(int(low), int(high), unit, column.datetime_format, column.utc)
    scale = 10 ** (column.decimal_places or 0)
    if scale == 1:
        return {"range_min": low, "range_max": high}
    return {"range_min": low / scale, "range_max": high / scale}
