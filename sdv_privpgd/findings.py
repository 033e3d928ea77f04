"""What noisy answers about a column say of its range, its precision and its categories. Public."""

import math
from collections.abc import Mapping
from itertools import pairwise
from typing import Any

import numpy as np
import pandas as pd
from scipy.stats import norm

from sdv_privpgd.cells import Interval, SignedPowers, Ticks
from sdv_privpgd.coercion import LARGEST_WHOLE
from sdv_privpgd.columns import Column, unit_of_format
from sdv_privpgd.dates import EARLIEST, LATEST, has_zone, survive_writing, to_ticks, write_dates
from sdv_privpgd.keys import Key
from sdv_privpgd.measure import Measurement, NoisyTable
from sdv_privpgd.support import supported_one_way

_FALSE_ALARMS = 1e-3
"""Chance that some empty cell of a column's grid seems to hold rows."""

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
        return _rough_dates(facts, ends, fine)
    return _within(facts, _rough_numbers(facts, ends, fine))


def looked_into(column: Column, answer: Measurement, facts: Mapping) -> dict:
    """The range of the fine cells that have support, whether missing has, and where to cut."""
    counts = answer.answer.astype(np.float64)
    table = NoisyTable(counts, answer.stddev**2)
    supported = supported_one_way(table, counts.size, max(float(counts.sum()), 1.0))
    inside = np.flatnonzero(supported[: column.num_values])
    first, last = (int(inside[0]), int(inside[-1])) if inside.size else (0, column.num_values - 1)
    found = _within(facts, _range(column, (first, last)))
    found["range_is_nullable"] = bool(supported[column.num_values] > 0)
    if column.sdtype == "numerical" and facts.get("cut_points") is None:
        starts = _starts(column)[first : last + 1]
        low, high = found["range_min"], found["range_max"]
        cuts = _cuts(supported[first : last + 1], int(facts["num_bins"]))
        found["cut_points"] = [float(starts[cut]) for cut in cuts if low < starts[cut] <= high]
    return found


def categories(found: list[tuple[Key, int]]) -> dict:
    """Values that differ, the more frequent of two that Python finds equal, and one for the rest.

    Numbers have no word for the rest: there it is missing.
    """
    most: dict[Any, tuple[int, Key]] = {}
    for key, number in found:
        if key not in most or number > most[key][0]:
            most[key] = number, key
    values = [key for _, key in most.values()]
    if values and not any(isinstance(value, str) for value in values):
        return {"range_values": values}
    other = "other"
    while other in values:
        other = f"any {other}"
    return {"range_values": values, "other_value": other}


def _significant(measurement: Measurement, size: int) -> np.ndarray:
    """The first codes that hold rows, ascending: at least that of the largest count."""
    counts = measurement.answer[:size]
    least = norm.isf(_FALSE_ALARMS / size) * measurement.stddev
    return np.flatnonzero(counts >= min(least, counts.max()))


def _rough_numbers(facts: Mapping, ends: tuple[int, int], precision: int | None) -> dict:
    """The range of cells of ``SignedPowers``, and the decimal places."""
    edges = SignedPowers().edges
    zero = len(edges) // 2 - 1
    # The cell about zero is taken as zero where it ends the range.
    low = 0 if ends[0] == zero else _exactly(edges[ends[0]])
    high = 0 if ends[1] == zero else _exactly(edges[ends[1] + 1])
    places = facts.get("decimal_places") if precision is None else precision
    if places is None or places > MOST_PLACES:
        return {"range_min": low, "range_max": high, "decimal_places": None}
    # Outwards to whole ticks: a range between two of them has no number.
    if isinstance(low, float):
        low = math.floor(low * 10**places) / 10**places
    if isinstance(high, float):
        high = math.ceil(high * 10**places) / 10**places
    return {"range_min": low, "range_max": high, "decimal_places": places}


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


def _cuts(counts: np.ndarray, num_cells: int) -> list[int]:
    """Where to cut a row of counts into cells; nowhere if equal widths are as good or better.

    A cell spreads its mass evenly, so it is cut where its counts differ most, by the squares that
    this saves, as long as any do; then the cells with the most mass are halved.
    """
    if counts.size <= num_cells or not counts.any():
        return []
    sums = np.concatenate(([0.0], np.cumsum(counts)))
    edges = [0, counts.size]
    while len(edges) <= num_cells:
        found = [_best_cut(sums, start, end) for start, end in pairwise(edges)]
        saved, cut = max(found)
        if saved <= 1e-9 * float(counts.sum()) ** 2:
            wide = [(sums[end] - sums[start], start, end) for start, end in pairwise(edges)]
            _, start, end = max(cell for cell in wide if cell[2] - cell[1] > 1)
            cut = (start + end) // 2
        edges = sorted([*edges, cut])
    cuts = edges[1:-1]
    widths = [at * counts.size // num_cells for at in range(1, num_cells)]
    return cuts if _misplaced(counts, cuts) < _misplaced(counts, widths) else []


def _best_cut(sums: np.ndarray, start: int, end: int) -> tuple[float, int]:
    """The sum of squares about the mean that the best cut of a cell saves, and where it is."""
    if end - start < 2:
        return 0.0, start
    at = np.arange(start + 1, end)
    left, right = sums[at] - sums[start], sums[end] - sums[at]
    whole = (sums[end] - sums[start]) ** 2 / (end - start)
    saved = left**2 / (at - start) + right**2 / (end - at) - whole
    best = int(saved.argmax())
    return float(saved[best]), int(at[best])


def _misplaced(counts: np.ndarray, cuts: list[int]) -> float:
    """How much mass is elsewhere if each cell spreads its own evenly."""
    return float(sum(np.abs(cell - cell.mean()).sum() for cell in np.split(counts, cuts)))


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
