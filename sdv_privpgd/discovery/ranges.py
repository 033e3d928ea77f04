"""The range, the precision and the shape of a column, as noisy answers show them. Public."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np

from sdv_privpgd.columns.bins import Ticks
from sdv_privpgd.columns.column import Column
from sdv_privpgd.columns.cutting import USUAL_BINS, column_of
from sdv_privpgd.columns.date_formats import survive_writing
from sdv_privpgd.columns.dates import EARLIEST, LATEST, has_zone, to_ticks
from sdv_privpgd.columns.facts import ColumnFacts, DateFacts, NumberFacts
from sdv_privpgd.columns.readings import MOST_PLACES, UNITS
from sdv_privpgd.columns.scalars import LARGEST_WHOLE
from sdv_privpgd.columns.units import unit_of_format
from sdv_privpgd.columns.usual_codes import USUAL_DATES, USUAL_NUMBERS
from sdv_privpgd.discovery.bounds import (
    counted_in,
    edges_of,
    inside,
    range_of,
    starts_of,
    within,
)
from sdv_privpgd.discovery.density import Density, last_clear
from sdv_privpgd.discovery.grids import DAY, POWERS, YEARS, Stretch
from sdv_privpgd.discovery.looks import SINGLE, Look
from sdv_privpgd.estimate.noisy_tables import NoisyTable, Total
from sdv_privpgd.privacy.queries import Measurement

_TINY = 2.0 ** -np.arange(21, 65)
"""Numbers that cut the cell about zero, with both signs, where most rows lie in it."""


class Rough(NamedTuple):
    """The findings of the looks so far on a column. Public.

    Attributes:
        known: What is known of the column now.
        is_clear: Whether its range was more than noise.
        density: The counts of cells in the range.
        total: The number of rows that have a value, if it was asked for and no bound is declared:
            beyond one there may be rows.
        alone: Numbers that many rows share, the most frequent first, and their noisy counts.
    """

    known: ColumnFacts
    is_clear: bool = True
    density: Density | None = None
    total: Total | None = None
    alone: Mapping[float, float] = MappingProxyType({})

    def cut(self, stddev: float) -> ColumnFacts:
        """What is known of the column, in as fine cells as noise of this ``stddev`` can pay for.

        Single numbers that many rows share, and those that codebooks use, have a cell of their own.
        """
        facts, density = self.known, self.density
        if density is None or not isinstance(facts, NumberFacts | DateFacts):
            return facts
        if isinstance(facts, DateFacts):
            return replace(facts, cuts=inside(_cut_dates(facts, density, stddev), facts) or None)
        low, high = facts.ends
        scale = math.inf if facts.decimal_places is None else 10**facts.decimal_places
        if low == high:
            return facts
        usual = [] if math.isinf(scale) else sorted(USUAL_NUMBERS)
        single = [*list(self.alone)[: SINGLE // 8], *usual]
        found = {
            *density.fine_edges(SINGLE, scale, stddev)[1:-1].tolist(),
            *_around(single, scale),
        }
        if math.isinf(scale) and density.is_tiny:
            found |= {*_TINY.tolist(), *(-_TINY).tolist()}
        return replace(facts, cuts=inside(sorted(found), facts) or None)

    def first_cuts(self) -> ColumnFacts:
        """What is known of a column with a declared range, in cells for the first look into it.

        They are of equal width, and those of the grid for columns of which nothing is known.
        """
        facts = self.known
        assert isinstance(facts, NumberFacts | DateFacts)
        grid = YEARS if isinstance(facts, DateFacts) else POWERS
        low, high = edges_of(column_of("", facts))[[0, -1]]
        even = np.linspace(low, high, USUAL_BINS + 1)[1:-1]
        cuts = [
            each for each in sorted({*even.tolist(), *grid.edges.tolist()}) if low < each < high
        ]
        return self._cut(cuts)

    def closer(self, rows: float | None, stddev: float) -> ColumnFacts | None:
        """The same in the cells of the next look; ``None`` if no cell surely has many rows."""
        if self.density is None:
            return self.first_cuts()
        whole = rows if self.total is None else self.total.value
        whole = float(self.density.counts.sum()) if whole is None else whole
        edges = self.density.closer(whole, self.alone, stddev)
        return None if edges is None else self._cut(edges[1:-1].tolist())

    def _cut(self, cuts: Sequence[float]) -> ColumnFacts:
        facts = self.known
        assert isinstance(facts, NumberFacts | DateFacts)
        whole = [round(each) for each in cuts] if isinstance(facts, DateFacts) else cuts
        return replace(facts, cuts=inside(whole, facts) or None)

    def seen(self, edges: np.ndarray, noisy: NoisyTable) -> "Rough":
        """The same after another look."""
        return self._replace(density=Density.of(edges, noisy, self.density))


def roughly(
    look: Look,
    counted: Measurement | None,
    precise: Measurement | None,
    rows: Measurement | None,
    alone: Mapping[float, float],
    *,
    utc: bool = False,
) -> Rough:
    """The range of a number or date on the first grid, and its precision.

    Args:
        look: The column, and what was known of it.
        counted: The counts of the cells of the grid, if they were asked for.
        precise: The counts of precisions, if they were.
        rows: The number of rows; ``None`` if no answer needs it.
        alone: Numbers that many rows share, the most frequent first, and their noisy counts.
        utc: Whether dates without a format have a time zone.
    """
    known = look.known
    assert isinstance(known, NumberFacts | DateFacts)
    grid = YEARS if isinstance(known, DateFacts) else POWERS
    stretch, total, density = None, None, None
    if counted is not None:
        total, stretch = _total(counted, rows), grid.held(_of_values(counted))
        density = stretch.density
    precision = None if precise is None else _of_values(precise)
    if isinstance(known, DateFacts):
        found: NumberFacts | DateFacts = _rough_dates(known, stretch, precision, utc)
    else:
        is_tiny = density is not None and density.is_tiny
        found = _rough_numbers(known, stretch, precision, is_tiny)
    if density is not None:
        density = density.within(*edges_of(column_of(look.name, found))[[0, -1]])
    is_open = known.low is None and known.high is None
    is_clear = stretch is None or stretch.is_clear
    return Rough(found, is_clear, density, total if is_open else None, alone)


def looked_into(
    column: Column,
    answer: Measurement,
    look: Look,
    rough: Rough,
    total: Total | None = None,
) -> NumberFacts | DateFacts:
    """What the fine cells say of a column: its precision, its range and where to cut that.

    And whether values are missing. A precision that was declared is not found. ``total`` is the
    number of rows in a declared range.
    """
    known, has_range, before = look.known, look.has_range, rough.density
    assert isinstance(known, NumberFacts | DateFacts)
    table, missing = _of_values(answer), float(answer.answer[column.num_values])
    if isinstance(known, DateFacts) and column.datetime_format != known.datetime_format:
        # The bounds were given up with the format that they were written in.
        known, has_range, before = replace(known, low=None, high=None), False, None
    density = Density.of(edges_of(column), table, before)
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
    held = within(known, *range_of(column, (first, last - 1)))
    nullable = None
    if known.nullable is None and not has_range:
        nullable = missing > answer.stddev
    cuts = starts_of(column)[first + 1 : last]
    shape: dict[str, Any] = {"nullable": nullable, "cuts": inside(cuts, held)}
    if cuts and len(shape["cuts"]) == len(cuts):
        shape["frequencies"] = tuple(density.rows(light=True)[first:last].tolist())
    if isinstance(held, DateFacts):
        written, aware = column.datetime_format, column.datetime_format is None and column.utc
        return DateFacts(
            low=held.low, high=held.high, datetime_format=written, aware=aware, **shape
        )
    places = column.decimal_places if held.decimal_places is None else None
    return NumberFacts(low=held.low, high=held.high, decimal_places=places, **shape)


def _rough_numbers(
    known: NumberFacts, stretch: Stretch | None, precision: NoisyTable | None, is_tiny: bool
) -> NumberFacts:
    """What is known of numbers with their range and their precision.

    The range is the declared one, or one of powers of two that reaches one further at each end.
    """
    places, is_clear = known.decimal_places, True
    if precision is not None:
        code, is_clear = _finest(precision)
        places = None if code > MOST_PLACES else code
    ranged = known
    if stretch is not None:
        ranged = within(known, *_ends(stretch, places, is_tiny))
    low, high = (float(end) if end.denominator > 1 else int(end) for end in ranged.ends)
    if places is not None and not is_clear:
        places = max(places, _places_of_width(float(high) - float(low)))
    if places is not None and math.ceil(low * 10**places) > math.floor(high * 10**places):
        places = None  # no such number lies in the range
    return replace(ranged, decimal_places=places, cuts=None, frequencies=None)


def _finest(precision: NoisyTable) -> tuple[int, bool]:
    """The last code that clearly holds rows, else the largest one; and whether one clearly does."""
    counts = precision.counts
    _, end = last_clear(counts, np.full(counts.size, precision.variance))
    return (end - 1, True) if end else (int(counts.argmax()), False)


def _ends(stretch: Stretch, places: int | None, is_tiny: bool) -> tuple[int | float, int | float]:
    """Returns a range that is twice as wide for what noise hides, but among years.

    It is without the negative part of the cell about zero, unless most rows lie in this cell.
    """
    low, high = stretch.low, stretch.high
    if (low, high) != (1800.0, 2100.0):
        low, high = (2 * low if low < 0 else low / 2), (2 * high if high > 0 else high / 2)
    tiny = 2 * _TINY[0] if is_tiny else 0.0
    # An end near zero, beside the other end, becomes zero, if that loses no clear rows.
    near, seen = max(4 * _TINY[0], abs(low) / 16, abs(high) / 16), stretch.density
    below, above = (
        last_clear(seen.counts[side], seen.variances[side])[1] > 0
        for side in (seen.edges[1:] <= 0, seen.edges[:-1] >= 0)
    )
    low = -tiny if abs(low) <= near and not (low < 0 and below) else low
    high = tiny if abs(high) <= near and not (high > 0 and above) else high
    if places is None:
        return _exactly(low), _exactly(high)
    # Ends are rounded outwards to whole ticks: a range between two ticks has no number.
    scale = 10**places
    return _exactly(math.floor(low * scale) / scale), _exactly(math.ceil(high * scale) / scale)


def _exactly(edge: float) -> float | int:
    """An end, within the size up to which whole numbers are read."""
    edge = min(max(edge, float(-LARGEST_WHOLE)), float(LARGEST_WHOLE))
    return max(int(edge), 1 - LARGEST_WHOLE) if edge == int(edge) else float(edge)


def _places_of_width(width: float) -> int:
    """The decimal places that write a thousandth of a range: rounding to them loses nothing."""
    if width <= 0:
        return 0
    return min(max(3 - math.floor(math.log10(width)), 0), MOST_PLACES)


def _around(alone: Sequence[float], scale: float) -> list[float]:
    """Cuts before and after single numbers, which give each a cell of its own."""
    if math.isinf(scale):
        return [cut for number in alone for cut in (number, float(np.nextafter(number, np.inf)))]
    ticks = {round(number * scale) for number in alone if abs(number) * scale < LARGEST_WHOLE}
    return [cut / scale for tick in ticks for cut in (tick, tick + 1)]


def _rough_dates(
    known: DateFacts, stretch: Stretch | None, precision: NoisyTable | None, utc: bool
) -> DateFacts:
    """What is known of dates with their range, declared or of the first grid's cells.

    A format that cannot write that range is given up, and with it all bounds.
    """
    known = replace(known, cuts=None, frequencies=None)
    if stretch is None:
        return known
    low, high = int(stretch.low), int(stretch.high) - DAY
    unit = "D" if precision is None else UNITS[min(_finest(precision)[0], len(UNITS) - 1)]
    written = known.datetime_format
    if written is not None:
        utc, own = utc or has_zone(written), unit_of_format(written)
        if not survive_writing(to_ticks(np.array([low, high]), own), own, written):
            low, high = counted_in(low, high, unit, None)
            return replace(known, low=low, high=high, datetime_format=None, aware=utc)
    aware = written is None and (utc or known.aware)
    return replace(within(known, *counted_in(low, high, unit, written)), aware=aware)


def _cut_dates(facts: DateFacts, density: Density, stddev: float) -> list[int]:
    """Cuts of times into cells of whole units, in nanoseconds.

    Days that stand for unknown or never have cells of their own, which cost next to nothing.
    """
    column = column_of("", facts)
    assert isinstance(column.cells, Ticks)
    assert column.unit is not None
    edges = to_ticks(np.minimum(density.edges, float(LATEST)).astype(np.int64), column.unit)
    edges[[0, -1]] = first, last = column.cells.first, column.cells.last + 1
    cuts = np.ceil(replace(density, edges=edges).fine_edges(SINGLE, 1.0, stddev)[1:-1])
    days = (int(day.astype(np.int64)) * DAY for day in USUAL_DATES)
    told = [day for day in days if EARLIEST < day <= LATEST - DAY]
    own = to_ticks(np.array([*told, *(each + DAY for each in told)]), column.unit)
    own = own[(own > first) & (own < last)]
    ticks = np.unique(np.concatenate((cuts.astype(np.int64), own)))
    moments = ticks.astype(f"datetime64[{column.unit}]").astype("datetime64[ns]")
    return moments.astype(np.int64).tolist()


def _of_values(answer: Measurement) -> NoisyTable:
    """The counts without the last one, that of missing."""
    return NoisyTable(answer.answer[:-1].astype(np.float64), answer.stddev**2)


def _total(answer: Measurement, rows: Measurement | None) -> Total:
    """The approximate number of rows that have a value."""
    assert rows is not None  # asked for wherever a grid is
    number = max(float(rows.answer[0]) - max(float(answer.answer[-1]), 0.0), 1.0)
    return Total(number, math.hypot(rows.stddev, answer.stddev))
