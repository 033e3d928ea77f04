"""A rough range of numbers or dates from the first look, and where to cut it finely. Public."""

import math
from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np

from sdv_privpgd.columns.bins import Ticks
from sdv_privpgd.columns.dates import has_zone, survive_writing, to_ticks
from sdv_privpgd.columns.parsing import describe, unit_of_format
from sdv_privpgd.columns.readings import MOST_PLACES, UNITS
from sdv_privpgd.columns.scalars import LARGEST_WHOLE
from sdv_privpgd.discovery.grids import DAY, POWERS, YEARS
from sdv_privpgd.discovery.looks import SINGLE, Look
from sdv_privpgd.discovery.searching import Stretch
from sdv_privpgd.discovery.wording import dated, inside, within
from sdv_privpgd.estimate.noisy_tables import NoisyTable

_NEAR = 16
"""A range begins with zero if it would begin nearer to zero than this part of its end."""

_ABOUT_ZERO = 2.0**-19
"""The width of the cell about zero of ``SignedPowers``."""

_FINE_CELLS = 256
"""The approximate number of cells of the second grid."""

_SURE = 2.0
"""A cell seems empty if it holds fewer rows than this many standard deviations."""

_MOST_ALONE = 64
"""At most this many numbers get a cell of their own because many rows share them."""


class Precision(NamedTuple):
    """The precision that numbers or dates seem to have.

    Attributes:
        code: The decimal places, or the index in ``UNITS``; a larger code means no precision.
        is_clear: Whether that was more than noise.

    >>> Precision(code=2, is_clear=True).code
    2
    """

    code: int
    is_clear: bool


def rough_numbers(
    look: Look,
    stretch: Stretch | None,
    noisy: NoisyTable | None,
    precision: Precision | None,
    alone: Sequence[float],
) -> dict:
    """The range of numbers, its cuts and its precision.

    The range is the declared one, or one of powers of two that reaches one further at each end.

    >>> facts = {"sdtype": "numerical", "decimal_places": 0}
    >>> look = Look(name="age", facts=facts, asks=frozenset())
    >>> zero = len(POWERS.cells.edges) // 2 - 1
    >>> stretch = Stretch(zero, zero + 26, is_clear=True)
    >>> found = rough_numbers(look, stretch, None, None, [])
    >>> found["range_min"], found["range_max"]
    (0, 128)
    """
    facts = look.facts
    places = facts.get("decimal_places")
    if precision is not None:
        places = None if precision.code > MOST_PLACES else precision.code
    bounds = facts
    if stretch is not None:
        ends = zip(("range_min", "range_max"), _ends_of_powers(stretch, places), strict=True)
        bounds = within(facts, dict(ends))
    low, high = bounds["range_min"], bounds["range_max"]
    if precision is not None and not precision.is_clear:
        places = _places_of_width(float(high) - float(low))
    if places is not None and not _has_number(low, high, places):
        places = None
    found = {"range_min": low, "range_max": high, "decimal_places": places, "cut_points": None}
    scale = math.inf if places is None else 10**places
    if noisy is None or low == high or (high - low) * scale < SINGLE:  # each number has a cell
        return found
    edges = POWERS.cells.edges
    held = np.flatnonzero((edges[1:] > float(low)) & (edges[:-1] <= float(high)))
    parts = np.clip(edges[[*held, held[-1] + 1]], float(low), float(high))
    parts[[0, -1]] = float(low), float(high)
    cuts = {*_fine_cuts(parts, _part(noisy, held), scale), *_around(alone[:_MOST_ALONE], scale)}
    return {**found, "cut_points": inside({**facts, **found}, sorted(cuts)) or None}


def rough_dates(
    look: Look,
    stretch: Stretch | None,
    noisy: NoisyTable | None,
    precision: Precision | None,
    utc: bool,
) -> dict:
    """The range of dates, declared or of the first grid's cells, and its cuts.

    The format is left out if it cannot write all dates of the range.

    >>> look = Look(name="born", facts={"sdtype": "datetime"}, asks=frozenset())
    >>> found = rough_dates(look, Stretch(100, 120, is_clear=True), None, None, utc=False)
    >>> found["range_min"][:4], found["range_max"][:4]
    ('1991', '2011')
    """
    found = {} if stretch is None else _found_dates(look.facts, stretch, precision, utc)
    known = {**look.facts, **found, "cut_points": None, "frequencies": None}
    if noisy is None:
        return found
    column = describe(look.name, known)
    assert isinstance(column.cells, Ticks)
    assert column.unit is not None
    ends = column.cells.first, column.cells.last + 1
    days = np.append(YEARS.cells.starts, YEARS.cells.last + 1)
    edges = np.clip(to_ticks(days * DAY, column.unit), *ends)
    cuts = _cut_ticks(edges, noisy, column.unit)
    return {**found, "cut_points": inside(known, cuts) or None}


def _ends_of_powers(stretch: Stretch, places: int | None) -> tuple[Any, Any]:
    """Returns a range of cells of ``SignedPowers``, one wider at each end for what noise hides."""
    edges = POWERS.cells.edges
    zero = len(edges) // 2 - 1
    first, last = max(stretch.first - 1, 0), min(stretch.last + 1, len(edges) - 2)
    # An end that is near zero, compared with the other end, becomes zero.
    low = 0 if abs(first - zero) <= 1 else _exactly(edges[first])
    high = 0 if abs(last - zero) <= 1 else _exactly(edges[last + 1])
    low, high = (0 if 0 < low <= high / _NEAR else low), (0 if 0 > high >= low / _NEAR else high)
    if places is None:
        return low, high
    # Ends are rounded outwards to whole ticks: a range between two ticks has no number.
    scale = 10**places
    low = math.floor(low * scale) / scale if isinstance(low, float) else low
    return low, math.ceil(high * scale) / scale if isinstance(high, float) else high


def _places_of_width(width: float) -> int:
    """The decimal places that write a thousandth of a range: rounding to them loses nothing."""
    if width <= 0:
        return 0
    return min(max(3 - math.floor(math.log10(width)), 0), MOST_PLACES)


def _has_number(low: Any, high: Any, places: int) -> bool:
    """Whether a number with this many decimal places lies in a range."""
    scale = 10**places
    return math.ceil(Fraction(str(low)) * scale) <= math.floor(Fraction(str(high)) * scale)


def _around(alone: Sequence[float], scale: float) -> list[float]:
    """Cuts before and after single numbers, which give each a cell of its own."""
    if math.isinf(scale):
        return [cut for number in alone for cut in (number, float(np.nextafter(number, np.inf)))]
    ticks = {round(number * scale) for number in alone if abs(number) * scale < LARGEST_WHOLE}
    return [cut / scale for tick in ticks for cut in (tick, tick + 1)]


def _part(noisy: NoisyTable, cells: np.ndarray) -> NoisyTable:
    return NoisyTable(noisy.counts[cells], noisy.variance)


def _fine_cuts(edges: np.ndarray, noisy: NoisyTable, scale: float) -> list[float]:
    """Cuts of cells into finer ones: more where there are many rows, much width or many powers.

    They are not finer than ticks of 1 / scale. A cell that seems empty beside others that are not
    stays whole: the noise of its parts would spread rows over it.
    """
    if scale < math.inf:
        edges = np.ceil(edges * scale) / scale
    widths, held = np.diff(edges), np.maximum(noisy.counts, 0.0)
    cells = np.flatnonzero(widths)
    full = held > _SURE * math.sqrt(noisy.variance)
    full |= not full[cells].any()
    shares = held / max(held.sum(), 1.0)
    shares += widths * full / max((widths * full).sum(), 1e-300) + full / full.sum()
    numbers = np.where(full, np.ceil(_FINE_CELLS / 3 * shares), 1.0)
    # The cell about zero stays whole: numbers so small are as good as zero.
    numbers[(edges[:-1] <= 0) & (edges[1:] > 0) & (widths <= _ABOUT_ZERO)] = 1
    numbers = np.minimum(numbers[cells], np.rint(widths[cells] * scale)).astype(int)
    ends = zip(edges[cells], edges[cells + 1], numbers, strict=True)
    cuts = [np.linspace(low, high, number, endpoint=False) for low, high, number in ends]
    return [float(cut) for cut in np.concatenate(cuts)[1:]]


def _exactly(edge: float) -> float | int:
    """A power of two, within the size up to which whole numbers are read."""
    return max(int(edge), 1 - LARGEST_WHOLE) if edge == int(edge) else float(edge)


def _found_dates(facts: Mapping, stretch: Stretch, precision: Precision | None, utc: bool) -> dict:
    """The range of cells of the first grid, and the format if it can write that range."""
    starts = np.append(YEARS.cells.starts, YEARS.cells.last + 1)
    low, high = int(starts[stretch.first]) * DAY, int(starts[stretch.last + 1] - 1) * DAY
    unit = "D" if precision is None else UNITS[min(precision.code, len(UNITS) - 1)]
    written = facts.get("datetime_format")
    if written is not None:
        utc, own = utc or has_zone(written), unit_of_format(written)
        if not survive_writing(to_ticks(np.array([low, high]), own), own, written):
            written = None
    found = {**dated(low, high, unit, written, utc), "datetime_format": written}
    return within(facts, found) if written == facts.get("datetime_format") else found


def _cut_ticks(edges: np.ndarray, noisy: NoisyTable, unit: str) -> list[np.datetime64]:
    """Cuts of times between edges into cells of whole units, which are not below seconds.

    There are none if there are so few dates that each has a cell.
    """
    if edges[-1] - edges[0] < SINGLE:
        return []
    cuts = np.ceil(_fine_cuts(edges.astype(np.float64), noisy, 1.0)).astype(np.int64)
    return list(np.unique(cuts).astype(f"datetime64[{unit}]").astype("datetime64[ns]"))
