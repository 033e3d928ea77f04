"""The first look of discovery: what is asked of columns of which little is known. Public."""

import math
from collections.abc import Callable, Mapping
from fractions import Fraction
from typing import NamedTuple

from sdv_privpgd.base.progress import Progress
from sdv_privpgd.columns.facts import DateFacts, NumberFacts
from sdv_privpgd.columns.readings import Reading, attribute_of
from sdv_privpgd.columns.values import Value
from sdv_privpgd.discovery.categories import Values, found_categories, rarest_part
from sdv_privpgd.discovery.density import CLEAR
from sdv_privpgd.discovery.grids import POWERS, YEARS
from sdv_privpgd.discovery.looks import Look
from sdv_privpgd.discovery.ranges import Rough, roughly
from sdv_privpgd.discovery.transcript import Transcript
from sdv_privpgd.privacy.accounting import stddev_for
from sdv_privpgd.privacy.boundary import PrivateTable
from sdv_privpgd.privacy.ledger import Books, PrivacyLedger
from sdv_privpgd.privacy.queries import Adjacency, CountQuery, MarginalQuery, Measurement
from sdv_privpgd.privacy.thresholding import threshold_for

SIZES = "sizes of numbers and dates"
"""What the ledger says of the counts of the first grids."""

_PARTS = {"categories": 4, "grid": 4, "numbers": 2, "precision": 1}
"""How a column's budget is divided; the number of rows has one part of all columns. A precision and
that number are hard to miss."""


class Seen(NamedTuple):
    """What the first look found. Public.

    Attributes:
        rough: Of numbers and dates.
        categories: The values of columns of categories, and their noisy counts.
        cost: What all questions but those about categories have cost.
        for_categories: What these have cost.
    """

    rough: dict[str, Rough]
    categories: Values
    cost: Fraction
    for_categories: Fraction


def first_look(
    table: PrivateTable,
    looks: Mapping[str, Look],
    books: Books,
    mu_squared: Fraction,
    more: Fraction,
    delta: Fraction,
    *,
    transcript: Transcript,
    require: Callable[[Values, Measurement], None] | None,
    progress: Progress,
) -> Seen:
    """What little is known of columns after a first look at all of them. Public.

    Privacy: ``mu_squared`` at most, and ``more`` for categories; what a column does not ask for is
    left for closer looks. Whoever may ``require`` something of the categories is told of them.
    """
    readings = [_reading_of(look) for look in looks.values()]
    asker = transcript.asking(lambda: table.first_look(readings, books, progress), books)
    asks, asks_rows, rows_cost, part = _asked(looks, mu_squared, asker.adjacency)

    def counted(kind: str, what: str) -> dict[str, Measurement]:
        names = asks[kind]
        if not names:
            return {}
        queries = [MarginalQuery((attribute_of(kind, name),)) for name in names]
        own = part * _PARTS[kind] * len(names)
        answers = asker.measure(queries, own, what=what, progress=progress)
        return dict(zip(names, answers, strict=True))

    rows = None
    if asks_rows:
        (rows,) = asker.measure([CountQuery()], part, what="number of rows")
    own = part * _PARTS["categories"] * len(asks["categories"]) + more
    categories, for_categories = found_categories(asker, asks["categories"], own, delta, rows)
    if require is not None and categories and rows is not None:
        require(categories, rows)
    numbers: Values = {}
    if names := asks["numbers"]:
        what, own = "numbers that many rows share", part * _PARTS["numbers"] * len(names)
        numbers = asker.discover(own, delta, what=what, names=names)
    grids, precisions = (
        counted("grid", SIZES),
        counted("precision", "precisions of numbers and dates"),
    )
    rough = {
        name: roughly(
            look,
            grids.get(name),
            precisions.get(name),
            rows,
            _most_frequent(numbers.get(name, [])),
            utc=table.is_aware(name),
        )
        for name, look in looks.items()
        if isinstance(look.known, NumberFacts | DateFacts)
    }
    kinds = [kind for kind in _PARTS if kind != "categories"]
    cost = part * (rows_cost + sum(_PARTS[kind] * len(asks[kind]) for kind in kinds))
    return Seen(rough, categories, cost, for_categories)


class _Asked(NamedTuple):
    """What a first look asks of which columns, and one part of its budget."""

    asks: dict[str, list[str]]
    asks_rows: bool
    rows_cost: int
    part: Fraction


def _asked(looks: Mapping[str, Look], mu_squared: Fraction, adjacency: Adjacency) -> _Asked:
    asks = {kind: [name for name, look in looks.items() if kind in look.asks] for kind in _PARTS}
    asks_rows = any(asks[kind] for kind in ("categories", "grid", "precision"))
    of_numbers = sum(_PARTS.values()) - _PARTS["categories"]
    rows_cost = CountQuery().l2_sensitivity_squared(adjacency) * asks_rows
    parts = (
        rows_cost
        + _PARTS["categories"] * len(asks["categories"])
        + of_numbers * (len(looks) - len(asks["categories"]))
    )
    return _Asked(asks, asks_rows, rows_cost, mu_squared / max(parts, 1))


def least_rows(
    looks: Mapping[str, Look],
    ledger: PrivacyLedger,
    mu_squared: Fraction,
    more: Fraction,
    delta: Fraction,
) -> dict[str, int]:
    """Returns how many rows must share a category, or lie in a range, for it to be found. Public.

    It follows from noise and threshold of such a look. Of columns of which a range or categories
    are declared nothing is said.
    """
    asks, _, _, part = _asked(looks, mu_squared, ledger.adjacency)
    counted, found = ledger.rows_counted, {}
    square = MarginalQuery(("",)).l2_sensitivity_squared(ledger.adjacency) * counted**2
    if names := asks["categories"]:
        own = rarest_part(part * _PARTS["categories"] * len(names) + more)
        stddev = stddev_for(square * ledger.units**2 * len(names), own)
        shape = len(names), ledger.rows_per_person, ledger.adjacency, counted * ledger.units
        found = dict.fromkeys(names, math.ceil(threshold_for(stddev, delta, *shape) / ledger.units))
    stddev = stddev_for(square, part * _PARTS["grid"]) if asks["grid"] else 0.0
    found |= dict.fromkeys(asks["grid"], math.ceil(CLEAR * stddev))
    return {name: rows for name, rows in found.items() if looks[name].known.lacks_domain}


def _most_frequent(found: list[tuple[Value | None, int]]) -> dict[float, float]:
    """The numbers and their noisy counts, the largest first."""
    numbers = [(number, float(key)) for key, number in found if isinstance(key, int | float)]
    return {key: float(number) for number, key in sorted(numbers, reverse=True)}


def _reading_of(look: Look) -> Reading:
    grid = YEARS if isinstance(look.known, DateFacts) else POWERS
    return Reading(
        name=look.name,
        asks=look.asks,
        cells=grid.cells,
        datetime_format=getattr(look.known, "datetime_format", None),
        number_format=getattr(look.known, "number_format", None),
    )
