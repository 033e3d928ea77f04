"""What noisy answers about a column say of its range, its precision and its categories. Public."""

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd
from scipy.stats import norm

from sdv_privpgd.cells import Interval, SignedPowers, Ticks
from sdv_privpgd.coercion import LARGEST_WHOLE
from sdv_privpgd.columns import MOST_CATEGORIES, Column, unit_of_format
from sdv_privpgd.dates import EARLIEST, LATEST, has_zone, survive_writing, to_ticks, write_dates
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


def roughly(facts: Mapping, grid: Measurement, precision: Measurement | None) -> dict:
    """The range of a number or date on the first grid and its precision, if that was asked for."""
    inside = _significant(grid, grid.answer.size - 1)
    ends = int(inside[0]), int(inside[-1])
    fine = None
    if precision is not None:
        fine = int(_significant(precision, precision.answer.size - 1)[-1])
    if facts["sdtype"] == "datetime":
        return {**_rough_dates(facts, ends, fine), "num_bins": _FINE_CELLS}
    found = _within(facts, _rough_numbers(facts, ends, grid.answer[:-1], fine))
    low, high = found["range_min"], found["range_max"]
    cuts = [cut for cut in found.get("cut_points", []) if low < cut <= high]
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
    found["range_is_nullable"] = bool(supported[size] > 0)
    if column.sdtype == "numerical" and facts.get("cut_points") is None:
        low, high = found["range_min"], found["range_max"]
        cuts = [float(cut) for cut in _starts(column)[first + 1 : last + 1]]
        found["cut_points"] = [cut for cut in cuts if low < cut <= high]
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


def _rough_dates(facts: Mapping, ends: tuple[int, int], precision: int | None) -> dict:
    """The range of years of the first grid; no format where it cannot write them."""
    first = int(YEARS.starts[ends[0]])
    last = int(YEARS.starts[ends[1]] + YEARS.widths[ends[1]]) - 1
    unit = "D" if precision is None else UNITS[min(precision, len(UNITS) - 1)]
    written = facts.get("datetime_format")
    if written is not None:
        own = unit_of_format(written)
        bounds = to_ticks(np.array([first, last]) * _DAY, own)
        if not survive_writing(bounds, own, written):
            return {**_dated(first * _DAY, last * _DAY, unit, None), "datetime_format": None}
    return _within(facts, _dated(first * _DAY, last * _DAY, unit, written))


def _dated(first: int, last: int, unit: str, datetime_format: str | None) -> dict:
    """A range in SDV's words of days, or of moments, in nanoseconds since 1970."""
    if datetime_format is not None:
        ends = write_dates(
            np.array([first, last]), "ns", datetime_format, has_zone(datetime_format)
        )
        return {"range_min": str(ends[0]), "range_max": str(ends[1])}
    # Bounds that are whole days would be read as a column of days.
    beyond = {"D": 0, "s": _DAY - 10**9, "ns": _DAY - 1}[unit]
    high = last + (beyond if last % _DAY == 0 else 0)
    return {
        "range_min": str(np.datetime64(first, "ns")),
        "range_max": str(np.datetime64(high, "ns")),
    }


def _within(facts: Mapping, found: dict) -> dict:
    """What was found, with a bound that was declared in its place, and the other not beyond it."""
    declared = {key: facts[key] for key in ("range_min", "range_max") if facts.get(key) is not None}
    merged = {**found, **declared}

    def place(key: str) -> Any:
        value = merged[key]
        if facts["sdtype"] == "numerical":
            return value
        return pd.to_datetime(value, format=facts.get("datetime_format"), utc=True)

    if declared and place("range_min") > place("range_max"):
        (bound,) = declared.values()
        merged |= {"range_min": bound, "range_max": bound}
    return merged


def _starts(column: Column) -> np.ndarray:
    """The smallest number of each cell of a numerical column."""
    if isinstance(column.cells, Interval):
        return column.cells.edges
    assert isinstance(column.cells, Ticks)
    return column.cells.starts / 10 ** (column.decimal_places or 0)


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
        return _dated(int(low), int(high), unit, column.datetime_format)
    scale = 10 ** (column.decimal_places or 0)
    if scale == 1:
        return {"range_min": low, "range_max": high}
    return {"range_min": low / scale, "range_max": high / scale}
