"""A rough range of numbers or dates from the first look, and where to cut it finely. Public."""

import math
from collections.abc import Collection, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from sdv_privpgd.columns.bins import EDGES_OF_YEARS, Ticks
from sdv_privpgd.columns.cutting import column_of
from sdv_privpgd.columns.date_formats import survive_writing
from sdv_privpgd.columns.dates import EARLIEST, LATEST, has_zone, to_ticks
from sdv_privpgd.columns.facts import DateFacts, NumberFacts
from sdv_privpgd.columns.readings import MOST_PLACES, UNITS
from sdv_privpgd.columns.scalars import LARGEST_WHOLE
from sdv_privpgd.columns.units import unit_of_format
from sdv_privpgd.columns.usual_codes import USUAL_DATES, USUAL_NUMBERS
from sdv_privpgd.discovery.bounds import counted_in, inside, within
from sdv_privpgd.discovery.grids import DAY, POWERS, YEARS
from sdv_privpgd.discovery.looks import SINGLE
from sdv_privpgd.discovery.searching import Stretch
from sdv_privpgd.discovery.zoom import ABOUT_ZERO, Picture
from sdv_privpgd.estimate.noisy_tables import NoisyTable

_NEAR = 16
"""A range begins with zero if it would begin nearer to zero than this part of its end."""

_FINE_CELLS = 256
"""The approximate number of cells of the second grid."""

_ZERO = int(np.searchsorted(POWERS.cells.edges, 0.0)) - 1
"""The cell about zero."""

_TINY = 2.0 ** -np.arange(21, 65)
"""Numbers that cut the cell about zero, with both signs, where most rows lie in it."""

_SURE = 2.0
"""A cell seems empty if it holds fewer rows than this many standard deviations."""

_MOST_ALONE = 64
"""At most this many numbers get a cell of their own because many rows share them."""


class Precision(NamedTuple):
    """The precision that numbers or dates seem to have.

    Attributes:
        code: The decimal places, or the index in ``UNITS``; a larger code means no precision.
        is_clear: Whether that was more than noise.
    """

    code: int
    is_clear: bool


def rough_numbers(
    known: NumberFacts,
    stretch: Stretch | None,
    noisy: NoisyTable | None,
    precision: Precision | None,
) -> NumberFacts:
    """What is known of numbers with their range and their precision.

    The range is the declared one, or one of powers of two that reaches one further at each end.
    """
    places = known.decimal_places
    if precision is not None:
        places = None if precision.code > MOST_PLACES else precision.code
    is_tiny = (
        places is None
        and noisy is not None
        and _is_tiny(
            Picture(POWERS.cells.edges, noisy.counts, np.full(noisy.counts.size, noisy.variance))
        )
    )
    ranged = known if stretch is None else within(known, *_ends_of_powers(stretch, places, is_tiny))
    low, high = (float(end) if end.denominator > 1 else int(end) for end in ranged.ends)
    if precision is not None and not precision.is_clear:
        places = _places_of_width(float(high) - float(low))
    if places is not None and not _has_number(ranged, places):
        places = None
    return replace(ranged, decimal_places=places, cuts=None, frequencies=None)


def rough_dates(
    known: DateFacts, stretch: Stretch | None, precision: Precision | None, utc: bool
) -> DateFacts:
    """What is known of dates with their range, declared or of the first grid's cells.

    The format is left out if it cannot write the ends of the range.
    """
    found = known if stretch is None else _found_dates(known, stretch, precision, utc)
    return replace(found, cuts=None, frequencies=None)


def first_picture(facts: NumberFacts | DateFacts, noisy: NoisyTable) -> Picture:
    """The cells of the first grid that lie in a range."""
    if isinstance(facts, NumberFacts):
        edges = POWERS.cells.edges
    else:
        edges = np.append(YEARS.cells.starts, YEARS.cells.last + 1) * float(DAY)
    low, high = map(float, facts.ends)
    held = np.flatnonzero((edges[1:] > low) & (edges[:-1] <= high))
    inner = np.clip(edges[[*held, held[-1] + 1]], low, high)
    inner[[0, -1]] = low, high
    return Picture.of(inner, NoisyTable(noisy.counts[held], noisy.variance))


def finely_cut(
    facts: NumberFacts | DateFacts, picture: Picture, alone: Collection[float]
) -> NumberFacts | DateFacts:
    """The facts with cuts of fine cells: more of them where many rows are.

    Single numbers that many rows share, and those that codebooks use, have a cell of their own.
    Where there are few numbers in the range, each of them has one.
    """
    column = column_of("", facts)
    if isinstance(facts, DateFacts):
        assert isinstance(column.cells, Ticks)
        assert column.unit is not None
        edges = to_ticks(picture.edges.astype(np.int64), column.unit)
        edges[[0, -1]] = column.cells.first, column.cells.last + 1
        cuts: Sequence = _cut_ticks(replace(picture, edges=edges), column.unit)
        return replace(facts, cuts=inside(cuts, facts) or None)
    low, high = facts.ends
    scale = math.inf if facts.decimal_places is None else 10**facts.decimal_places
    if low == high or (high - low) * scale < SINGLE:
        return facts
    usual = [] if math.isinf(scale) else sorted(USUAL_NUMBERS)
    single = [*list(alone)[:_MOST_ALONE], *usual]
    found = {*_fine_cuts(picture, scale), *_around(single, scale)}
    if math.isinf(scale) and _is_tiny(picture):
        found |= {*_TINY.tolist(), *(-_TINY).tolist()}
    return replace(facts, cuts=inside(sorted(found), facts) or None)


def _ends_of_powers(
    stretch: Stretch, places: int | None, is_tiny: bool
) -> tuple[int | float, int | float]:
    """Returns a range of cells of ``SignedPowers``, one wider at each end for what noise hides.

    It is without the negative part of the cell about zero, unless most rows lie in this cell.
    """
    edges, zero = POWERS.cells.edges, _ZERO
    first, last = _one_wider(stretch)
    # An end that is near zero, compared with the other end, becomes zero.
    low = 0 if abs(first - zero) <= 1 else _exactly(edges[first])
    high = 0 if abs(last - zero) <= 1 else _exactly(edges[last + 1])
    low, high = (0 if 0 < low <= high / _NEAR else low), (0 if 0 > high >= low / _NEAR else high)
    if is_tiny:
        return min(low, float(edges[zero])), max(high, float(edges[zero + 1]))
    if places is None:
        return low, high
    # Ends are rounded outwards to whole ticks: a range between two ticks has no number.
    scale = 10**places
    low = math.floor(low * scale) / scale if isinstance(low, float) else low
    return low, math.ceil(high * scale) / scale if isinstance(high, float) else high


def _one_wider(stretch: Stretch) -> tuple[int, int]:
    """The first and the last cell, one wider at each end: by a power of two, but among years."""
    edges, ends = POWERS.cells.edges, np.array([stretch.first, stretch.last + 1])
    is_extra = np.isin(edges, EDGES_OF_YEARS)
    if edges[ends[0]] >= EDGES_OF_YEARS[0] and edges[ends[1]] <= EDGES_OF_YEARS[-1]:
        is_extra[:] = False
    steps = np.flatnonzero(~is_extra)
    return int(steps[steps <= ends[0]][-2:][0]), int(steps[steps >= ends[1]][:2][-1]) - 1


def _places_of_width(width: float) -> int:
    """The decimal places that write a thousandth of a range: rounding to them loses nothing."""
    if width <= 0:
        return 0
    return min(max(3 - math.floor(math.log10(width)), 0), MOST_PLACES)


def _has_number(facts: NumberFacts, places: int) -> bool:
    """Whether a number with this many decimal places lies in the range."""
    (low, high), scale = facts.ends, 10**places
    return math.ceil(low * scale) <= math.floor(high * scale)


def _around(alone: Sequence[float], scale: float) -> list[float]:
    """Cuts before and after single numbers, which give each a cell of its own."""
    if math.isinf(scale):
        return [cut for number in alone for cut in (number, float(np.nextafter(number, np.inf)))]
    ticks = {round(number * scale) for number in alone if abs(number) * scale < LARGEST_WHOLE}
    return [cut / scale for tick in ticks for cut in (tick, tick + 1)]


def _fine_cuts(picture: Picture, scale: float) -> list[float]:
    """Cuts of cells into finer ones: more where there are many rows, much width or many powers.

    They are not finer than ticks of 1 / scale. A cell that seems empty beside others that are not
    stays whole: the noise of its parts would spread rows over it.
    """
    edges, held = picture.edges.astype(np.float64), np.maximum(picture.counts, 0.0)
    if scale < math.inf:
        edges = np.ceil(edges * scale) / scale
    widths = np.diff(edges)
    cells = np.flatnonzero(widths)
    full = held > _SURE * np.sqrt(picture.variances)
    full |= not full[cells].any()
    shares = held / max(held.sum(), 1.0)
    shares += widths * full / max((widths * full).sum(), 1e-300) + full / full.sum()
    numbers = np.where(full, np.ceil(_FINE_CELLS / 3 * shares), 1.0)
    # The cell about zero stays whole: beside others, numbers so small are as good as zero.
    numbers[(edges[:-1] <= 0) & (edges[1:] > 0) & (widths <= 2 * ABOUT_ZERO)] = 1
    numbers = np.minimum(numbers[cells], np.rint(widths[cells] * scale)).astype(int)
    ends = zip(edges[cells], edges[cells + 1], numbers, strict=True)
    cuts = [np.linspace(low, high, number, endpoint=False) for low, high, number in ends]
    return [float(cut) for cut in np.concatenate(cuts)[1:]]


def _is_tiny(picture: Picture) -> bool:
    """Whether most rows lie about zero, as amounts of substance in moles do."""
    held = np.where(picture.counts > _SURE * np.sqrt(picture.variances), picture.counts, 0.0)
    about = (picture.edges[:-1] >= -ABOUT_ZERO) & (picture.edges[1:] <= ABOUT_ZERO)
    return bool(2 * held[about].sum() > held.sum())


def _exactly(edge: float) -> float | int:
    """A power of two, within the size up to which whole numbers are read."""
    return max(int(edge), 1 - LARGEST_WHOLE) if edge == int(edge) else float(edge)


def _found_dates(
    known: DateFacts, stretch: Stretch, precision: Precision | None, utc: bool
) -> DateFacts:
    """What is known with the range of cells of the first grid.

    A format that cannot write that range is given up, and with it all bounds.
    """
    starts = np.append(YEARS.cells.starts, YEARS.cells.last + 1)
    low, high = int(starts[stretch.first]) * DAY, int(starts[stretch.last + 1] - 1) * DAY
    unit = "D" if precision is None else UNITS[min(precision.code, len(UNITS) - 1)]
    written = known.datetime_format
    if written is not None:
        utc, own = utc or has_zone(written), unit_of_format(written)
        if not survive_writing(to_ticks(np.array([low, high]), own), own, written):
            low, high = counted_in(low, high, unit, None)
            return replace(known, low=low, high=high, datetime_format=None, aware=utc)
    aware = written is None and (utc or known.aware)
    return replace(within(known, *counted_in(low, high, unit, written)), aware=aware)


def _cut_ticks(picture: Picture, unit: str) -> list[int]:
    """Cuts of times between edges into cells of whole units, which are not below seconds.

    There are none if there are so few dates that each has a cell. They are in nanoseconds.
    """
    edges = picture.edges
    if edges[-1] - edges[0] < SINGLE:
        return []
    cuts = np.ceil(_fine_cuts(picture, 1.0)).astype(np.int64)
    # Days that stand for unknown or never have cells of their own, which cost next to nothing.
    days = (int(day.astype(np.int64)) for day in USUAL_DATES)
    told = [day * DAY for day in days if EARLIEST < day * DAY <= LATEST - DAY]
    own = to_ticks(np.array([*told, *(each + DAY for each in told)]), unit)
    own = own[(own > edges[0]) & (own < edges[-1])]
    moments = (
        np.unique(np.concatenate((cuts, own)))
        .astype(f"datetime64[{unit}]")
        .astype("datetime64[ns]")
    )
    return moments.astype(np.int64).tolist()
