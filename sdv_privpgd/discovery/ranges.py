"""The range, the precision and the shape of a column, as noisy answers show them. Public."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np

from sdv_privpgd.columns.bins import Categories, Reals, Ticks
from sdv_privpgd.columns.column import Column
from sdv_privpgd.columns.cuts import USUAL_BINS, column_of
from sdv_privpgd.columns.date_formats import survive_writing
from sdv_privpgd.columns.dates import BEYOND, CLOCKS, LATEST, to_ticks
from sdv_privpgd.columns.facts import ColumnFacts, DateFacts, NumberFacts, Ranged, exactly, single
from sdv_privpgd.columns.readings import MOST_PLACES, STEPS, steps_of
from sdv_privpgd.columns.scalars import LARGEST_WHOLE, Number
from sdv_privpgd.columns.units import COARSE, UNITS, has_zone, unit_of_format
from sdv_privpgd.columns.values import USUAL_DATES, USUAL_NUMBERS
from sdv_privpgd.discovery.density import DAY, POWERS, YEARS, Density, Grid, clear_from, last_clear
from sdv_privpgd.estimate.noisy_tables import NoisyTable, Total
from sdv_privpgd.privacy.queries import Measurement

SINGLE = 513
"""About so many cells the fine grid has, and so many whole numbers are not looked at before."""


class Rough(NamedTuple):
    """What is ``known`` of a column after the looks so far, and whether its range is clear. Public.

    ``density`` has the counts of cells in the range, and ``total`` the number of rows with a value,
    if it was asked for and no bound is declared: beyond one there may be rows. Many rows share
    numbers that stand ``alone``, the most frequent first, with their noisy counts.
    """

    known: ColumnFacts
    is_clear: bool = True
    density: Density | None = None
    total: Total | None = None
    alone: Mapping[float, float] = MappingProxyType({})

    @property
    def thinned(self) -> "Rough":
        """The same with fewer cells where no rows seem to be."""
        return self._replace(density=None if self.density is None else self.density.thinned())

    def cut(self, stddev: float, declared: Any) -> ColumnFacts:
        """What is known of the column, in as fine cells as noise of this ``stddev`` can pay for.

        Single numbers that many rows share, those and days that codebooks use, and ``declared``
        ends, where rows are capped, have cells of their own, which cost next to nothing.
        """
        facts, density = self.known, self.density
        if not isinstance(facts, NumberFacts | DateFacts) or density is None:
            return facts
        if facts.low == facts.high:
            return facts
        column = column_of("", facts)
        edges, cells = _ticks(column, density.edges), column.cells
        if whole := isinstance(cells, Ticks):
            edges[[0, -1]] = cells.first, cells.last + 1
        fine = replace(density, edges=edges).fine_edges(SINGLE, stddev, whole=whole)[1:-1]
        fine = np.ceil(fine).astype(np.int64) if whole else fine
        first, last = cells.ends
        after, before = np.nextafter(first, np.inf), last
        if whole:
            after, before = first + _alone(first), last + 1 - _alone(last)
        ends = [after] * (declared.low is not None) + [before] * (declared.high is not None)
        cuts = np.union1d(np.append(fine, ends), self._apart(column))
        return _cut_at(facts, _written(column, cuts[(cuts > first) & (cuts <= last)]))

    def _apart(self, column: Column) -> np.ndarray:
        """Where single numbers or days begin and end, in ticks of the column if it has any."""
        if column.unit is not None:
            days = np.array(USUAL_DATES).astype(np.int64) * DAY
            return to_ticks(np.append(days, days + DAY), column.unit)
        alone = [0.0, 1.0, *list(self.alone)[: SINGLE // 8]]
        if isinstance(column.cells, Reals):
            return np.append(alone, np.nextafter(alone, np.inf))
        ticks = _ticks(column, np.array([*alone, *USUAL_NUMBERS]))
        ticks = np.rint(ticks[np.isclose(ticks, np.rint(ticks), atol=0.01)])
        ticks = ticks[np.abs(ticks) < LARGEST_WHOLE].astype(np.int64)
        return np.append(ticks, ticks + _alone(ticks))

    def closer(self, rows: float | None, stddev: float) -> ColumnFacts | None:
        """What is known of it in the cells of the next look; ``None`` if it needs none.

        It does where a cell surely has many rows. A declared range is looked at in cells of equal
        width first, and those of the grid for columns of which nothing is known.
        """
        facts, density = self.known, self.density
        if not isinstance(facts, NumberFacts | DateFacts):
            return None
        if density is None:
            low, high = edges_of(column_of("", facts))[[0, -1]]
            cuts = np.union1d(np.linspace(low, high, USUAL_BINS + 1), grid_of(facts).edges)
            cuts = cuts[(cuts > low) & (cuts < high)]
        else:
            whole = rows if self.total is None else self.total.value
            whole = float(density.counts.sum()) if whole is None else whole
            edges = density.closer(whole, self.alone, stddev)
            if edges is None:
                return None
            cuts = edges[1:-1]
        cuts = np.rint(cuts) if isinstance(facts, DateFacts) else cuts
        found = _cut_at(facts, cuts.tolist())
        return found if found.cuts else None


def grid_of(known: ColumnFacts) -> Grid:
    """The first grid of a column."""
    return YEARS if isinstance(known, DateFacts) else POWERS


def roughly(
    known: NumberFacts | DateFacts,
    counted: Measurement | None,
    precise: Measurement | None,
    rows: Measurement | None,
    alone: Mapping[float, float],
    *,
    utc: bool = False,
) -> Rough:
    """The range of a number or date by what was ``counted`` on the first grid, and its precision.

    What was not asked for is ``None``. Dates without a format may have a time zone (``utc``).
    """
    density = total = ends = None
    if counted is not None:
        assert rows is not None  # asked for wherever a grid is
        there = max(float(rows.answer[0]) - max(float(counted.answer[-1]), 0.0), 1.0)
        total = Total(there, math.hypot(rows.stddev, counted.stddev))
        density, low, high = grid_of(known).held(_of_values(counted), total)
        ends = low, high
    precision = None if precise is None else _of_values(precise)
    if isinstance(known, DateFacts):
        found: NumberFacts | DateFacts = _rough_dates(known, ends, precision, utc)
    else:
        found = _rough_numbers(known, ends, density, precision, total)
        is_open = known.rounding is None and found.decimal_places is not None
        if precision is not None and is_open:
            found = replace(found, rounding=_rounding(found, precision, alone))
    is_clear = density is None or density.clear > 0
    if density is not None:
        density = density.within(*edges_of(column_of("", found))[[0, -1]])
    return Rough(found, is_clear, density, total if known.is_blank else None, alone)


def looked_into(
    column: Column,
    answer: Measurement,
    known: NumberFacts | DateFacts,
    rough: Rough,
    total: Total | None = None,
) -> NumberFacts | DateFacts:
    """What the fine cells say of a column: its precision, its range and where to cut that.

    And whether values are missing. A precision that was declared is not found. ``total`` is the
    number of rows in a declared range.
    """
    if isinstance(rough.known, DateFacts) and rough.known.of_times:
        known = rough.known  # perhaps in minutes
    has_range, before = not known.lacks_domain, rough.density
    table, missing = _of_values(answer), float(answer.answer[column.num_values])
    if isinstance(known, DateFacts) and column.datetime_format != known.datetime_format:
        # The bounds were given up with the format that they were written in.
        known, has_range, before = replace(known, low=None, high=None), False, None
    density = Density.of(edges_of(column), table, before)
    if isinstance(cells := column.cells, Ticks):  # which hold more round numbers, or fewer
        density = replace(density, expected=density.expected * cells.masses / cells.widths)
    total = rough.total if total is None else total
    if total is not None:
        density = density.summing_up_to(total)
    first, last = 0, column.num_values  # all cells if there is only noise
    if rough.is_clear:
        rows = max(float(table.counts.sum()) if total is None else total.value, 1.0)
        ends = last - density.backwards.end(rows), density.end(rows)
        first, last = min(ends[0], ends[1] - 1), max(ends[0] + 1, ends[1])
    first = 0 if known.low is not None else first
    last = column.num_values if known.high is not None else last
    held = _within(known, *_range_of(column, first, last - 1))
    nullable = missing > answer.stddev if known.nullable is None and not has_range else None
    assert not isinstance(column.cells, Categories)
    finer = _ticks(column, density.finer)
    finer = finer if isinstance(column.cells, Reals) else np.ceil(finer).astype(np.int64)
    cells = column.cells.cut(finer.tolist())
    edges, ends = edges_of(replace(column, cells=cells)), density.edges[[first, last]]
    is_kept = ~np.isin(edges, np.setdiff1d(density.idle, ends))
    edges, starts = edges[is_kept], cells.starts[is_kept[:-1]]
    first, last = np.searchsorted(edges, ends).tolist()
    cuts = _written(column, starts[first + 1 : last])
    shape: dict[str, Any] = {"nullable": nullable, "cuts": inside(cuts, held)}
    if cuts and len(shape["cuts"]) == len(cuts):
        shape["frequencies"] = tuple(density.light_shares(edges)[first:last].tolist())
    shape |= {"low": held.low, "high": held.high}
    if isinstance(held, DateFacts):
        written = column.datetime_format
        aware, whole = written is None and column.utc, getattr(rough.known, "whole", None)
        return DateFacts(datetime_format=written, aware=aware, whole=whole, **shape)
    places = column.decimal_places if held.decimal_places is None else None
    rounding = getattr(rough.known, "rounding", None)
    return NumberFacts(decimal_places=places, rounding=rounding, **shape)


def inside(cuts: Sequence[Number], facts: NumberFacts | DateFacts) -> tuple:
    """The cuts that lie in the range."""
    low, high = facts.ends
    return tuple(cut for cut in cuts if low < exactly(cut) <= high)


def edges_of(column: Column) -> np.ndarray:
    """Where the cells begin, and where the next one would, float64, of dates in nanoseconds."""
    cells, unit = column.cells, column.unit
    if isinstance(cells, Reals):
        return np.append(cells.edges[: len(cells)], cells.edges[-1])
    assert isinstance(cells, Ticks)
    ticks = np.append(cells.starts, cells.last + 1)
    if unit is None:
        return ticks / 10.0 ** (column.decimal_places or 0)
    if unit in ("M", "Y"):
        ticks, unit = ticks.astype(f"datetime64[{unit}]").astype("datetime64[D]").astype(int), "D"
    return ticks * float(np.timedelta64(1, unit) / np.timedelta64(1, "ns"))


def _cut_at(facts: Ranged, cuts: Sequence[Number]) -> Ranged:
    return replace(facts, cuts=inside(cuts, facts) or None)


def _within(known: Ranged, low: Number, high: Number) -> Ranged:
    """The facts with the bounds found, unless they are declared, and none beyond the other."""
    first = low if known.low is None else known.low
    last = high if known.high is None else known.high
    if first > last:
        return single(known, "high" if known.low is None else "low")
    return replace(known, low=first, high=last)


def _ticks(column: Column, values: np.ndarray) -> np.ndarray:
    """Numbers, or moments in nanoseconds since 1970, as the cells of a column hold them."""
    if isinstance(column.cells, Reals):
        return values.copy()
    if column.unit is None:
        ticks = values * 10.0 ** (column.decimal_places or 0)
        near = np.rint(ticks)
        # Not 7.0000001, and what is about zero stays beside zero.
        return np.where(np.isclose(ticks, near, rtol=1e-12, atol=0), near, ticks)
    return to_ticks(np.minimum(values, float(LATEST)).astype(np.int64), column.unit)


def _alone(ticks: Any) -> np.ndarray:
    """How many whole numbers the cell of one has: itself alone, if floats tell its edges apart."""
    return np.maximum(2 * np.spacing(np.abs(np.asarray(ticks, float))), 1).astype(np.int64)


def _written(column: Column, ticks: np.ndarray) -> list:
    """What the cells of a column hold as numbers, of dates as nanoseconds since 1970."""
    if column.unit is not None:
        return _nanoseconds(ticks, column.unit)
    places = column.decimal_places
    return (ticks / 10**places if places else ticks).tolist()


def _range_of(column: Column, first: int, last: int) -> tuple[Number, Number]:
    """The range from one cell to another, of dates in nanoseconds since 1970."""
    cells = column.cells
    if isinstance(cells, Reals):
        edges, largest = cells.edges, float(cells.largest[last])
        is_one = edges[last] == largest  # a cap, which no range goes beyond
        return float(edges[first]), largest if is_one else float(edges[last + 1])
    assert isinstance(cells, Ticks)
    ends = np.array([cells.starts[first], cells.starts[last] + cells.widths[last] - 1])
    low, high = _written(column, ends)
    if column.unit is None:
        return low, high
    return _counted_in(low, high, column.unit, column.datetime_format)


def _counted_in(low: int, high: int, unit: str, datetime_format: str | None) -> tuple[int, int]:
    """A range of moments, in nanoseconds since 1970, as bounds of dates of a unit or a format.

    The unit of dates without a format follows from their bounds.
    """
    if datetime_format is not None:
        own = unit_of_format(datetime_format)
        low, high = _nanoseconds(to_ticks(np.array([low, high]), own), own)
    elif high % DAY == 0 and UNITS.index(unit) < UNITS.index("D"):
        # Bounds that are both whole days would be those of a column of days.
        high += DAY - int(np.timedelta64(1, unit) / np.timedelta64(1, "ns"))
    return low, high


def _nanoseconds(ticks: np.ndarray, unit: str) -> list[int]:
    moments = to_ticks(ticks.astype(f"datetime64[{unit}]"), "ns")
    return np.maximum(moments, BEYOND[0]).tolist()  # the first year begins before


def _rough_numbers(
    known: NumberFacts,
    ends: tuple[float, float] | None,
    density: Density | None,
    precision: NoisyTable | None,
    total: Total | None,
) -> NumberFacts:
    """What is known of numbers with their range and their precision.

    The range is the declared one, or one of powers of two that reaches one further at each end.
    """
    places, is_clear = known.decimal_places, True
    if precision is not None and places is None:
        code, is_clear = _finest(precision, total)
        places = None if code == len(STEPS) else max((code + 1) // 2 - MOST_PLACES, 0)
    ranged = known
    if ends is not None and density is not None:
        ranged = _within(known, *_widened(*ends, density, places))
    low, high = (float(end) if end.denominator > 1 else int(end) for end in ranged.ends)
    if places is not None and not is_clear:
        width = float(high) - float(low)  # rounding to a thousandth of it loses nothing
        fine = min(max(3 - math.floor(math.log10(width)), 0), MOST_PLACES) if width > 0 else 0
        places = max(places, fine)
    if places is not None and math.ceil(low * 10**places) > math.floor(high * 10**places):
        places = None  # no such number lies in the range
    if known.decimal_places is None and max(abs(low), abs(high)) > 2.0**64:
        places = None  # all floats of that size are whole, and no type of whole numbers holds them
    return replace(ranged, decimal_places=places, cuts=None, frequencies=None)


def _rounding(
    found: NumberFacts, precision: NoisyTable, alone: Mapping[float, float]
) -> tuple[tuple[Number, float], ...] | None:
    """Steps, and the share of the numbers that seem to be rounded to each; ``None`` if none do.

    Numbers that have cells of their own do not count. Of a finer step's numbers chance makes some
    multiples of a coarser one.
    """
    (low, high), tick = found.ends, Fraction(1, 10 ** (found.decimal_places or 0))
    places, size = steps_of(np.array([*alone]), False), len(STEPS) + 1
    seen = precision.counts[:size] - np.bincount(places, [*alone.values()], size)[:size]
    noise = precision.variance * (1 + np.bincount(places, minlength=size)[:size])
    first = next((at for at, step in enumerate(STEPS) if step <= high - low), len(STEPS))
    steps = [*(step for step in STEPS[first:] if step > tick), tick]
    sizes, last = np.array([float(step) for step in steps]), len(steps) - 1
    rows, noise = (
        np.add.reduceat(each, [0, *range(first + 1, first + last + 1)]) for each in (seen, noise)
    )
    least, rounded = clear_from(size) * np.sqrt(noise), np.zeros(last + 1)
    for at in range(last, -1, -1):
        chances = np.diff(sizes[at] / sizes[: at + 1], prepend=0.0)
        if rows[at] > least[at] * (at < last):
            rounded[at] = rows[at] / chances[at]
            rows[: at + 1] -= rounded[at] * chances
    shares = rounded / max(rounded.sum(), 1.0)
    written = (int(step) if step >= 1 else float(step) for step in steps[:last])
    return tuple(each for each in zip(written, shares.tolist(), strict=False) if each[1]) or None


def _finest(precision: NoisyTable, total: Total | None = None) -> tuple[int, bool]:
    """The last code that clearly holds rows, else the largest one; and whether one clearly does.

    What of the ``total`` is in no coarser code says of finer ones, too: where many rows are zeros,
    those with cents are seen from fewer on.
    """
    counts = precision.counts
    _, end = last_clear(counts, np.full(counts.size, precision.variance))
    if total is not None:
        rest = (total.value - np.cumsum(counts))[:-1]
        of_rest = total.stddev**2 + precision.variance * np.arange(1, counts.size)
        both = counts[1:] / precision.variance + rest / of_rest
        deviations = np.sqrt(1 / precision.variance + 1 / of_rest)
        clear = np.flatnonzero(both > clear_from(counts.size) * deviations)
        end = max(end, int(clear[-1]) + 2 if clear.size else 0)
    return (end - 1, True) if end else (int(counts.argmax()), False)


def _widened(low: float, high: float, seen: Density, places: int | None) -> tuple[Number, Number]:
    """Returns a range that is twice as wide for what noise hides, but among years.

    An end that is near zero beside the other one is zero, if that loses no clear rows.
    """
    if (low, high) != (1800.0, 2100.0):
        low, high = (2 * low if low < 0 else low / 2), (2 * high if high > 0 else high / 2)
    near = max(abs(low), abs(high)) / 16
    below, above = (
        last_clear(seen.counts[side], seen.variances[side])[1] > 0
        for side in (seen.edges[1:] <= 0, seen.edges[:-1] >= 0)
    )
    low = 0.0 if abs(low) <= near and not (low < 0 and below) else low
    high = 0.0 if abs(high) <= near and not (high > 0 and above) else high
    if places is not None:  # rounded outwards: a range between two ticks has no number
        low, high = (
            math.floor(low * 10**places) / 10**places,
            math.ceil(high * 10**places) / 10**places,
        )
    return _whole(low), _whole(high)


def _whole(edge: float) -> float | int:
    """An end, within the size up to which whole numbers are read."""
    edge = min(max(edge, float(-LARGEST_WHOLE)), float(LARGEST_WHOLE))
    return max(int(edge), 1 - LARGEST_WHOLE) if edge == int(edge) else float(edge)


def _rough_dates(
    known: DateFacts, ends: tuple[float, float] | None, precision: NoisyTable | None, utc: bool
) -> DateFacts:
    """What is known of dates with their range, declared or of the first grid's cells.

    A format that cannot write that range is given up, and with it all bounds.
    """
    known = replace(known, cuts=None, frequencies=None)
    days = COARSE.index("D")
    place, is_clear = (days, False) if precision is None else _finest(precision)
    unit = (*COARSE, "ns")[place if is_clear else max(place, days)]  # months are no guess
    whole = [each for each in known.coarser if UNITS.index(each) <= UNITS.index(unit)]
    known = replace(known, whole=whole[0] if whole and precision is not None else None)
    if ends is None:
        return _in_minutes(known) if known.of_times and known.whole in ("h", "m") else known
    low, high = int(ends[0]), int(ends[1]) - DAY
    written = known.datetime_format
    if written is not None:
        utc, own = utc or has_zone(written), unit_of_format(written)
        if not survive_writing(to_ticks(np.array([low, high]), own), own, written):
            low, high = _counted_in(low, high, unit, None)
            return replace(known, low=low, high=high, datetime_format=None, aware=utc)
    aware = written is None and (utc or known.aware)
    return replace(_within(known, *_counted_in(low, high, unit, written)), aware=aware)


def _in_minutes(known: DateFacts) -> DateFacts:
    """Times of the day in minutes, if the range has a whole one of what they are whole in."""
    step = (60 if known.whole == "h" else 1) * 60 * 10**9
    first, last = (end // step * step for end in (known.ends[0] + step - 1, known.ends[1]))
    if first > last:
        return replace(known, whole=None)
    return replace(known, low=first, high=last, datetime_format=CLOCKS[1])


def _of_values(answer: Measurement) -> NoisyTable:
    """The counts without the last one, that of missing."""
    return NoisyTable(answer.answer[:-1].astype(np.float64), answer.stddev**2)
