"""The first look of discovery: what is asked of columns of which little is known. Public."""

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction

from sdv_privpgd.base.progress import Progress
from sdv_privpgd.columns.facts import DateFacts, NumberFacts
from sdv_privpgd.columns.readings import Reading, attribute_of
from sdv_privpgd.columns.values import Value
from sdv_privpgd.discovery.categories import Values
from sdv_privpgd.discovery.grids import POWERS, YEARS
from sdv_privpgd.discovery.looks import Look
from sdv_privpgd.discovery.ranges import Rough, roughly
from sdv_privpgd.discovery.transcript import Asker
from sdv_privpgd.privacy.boundary import PrivateTable
from sdv_privpgd.privacy.measurement import Measurement
from sdv_privpgd.privacy.queries import Adjacency, CountQuery, MarginalQuery

_PARTS = {"categories": 4, "grid": 4, "numbers": 2, "precision": 1, "rows": 1}
"""How the look's budget is divided. A precision and the number of rows are hard to miss."""

_OF_NUMBERS = _PARTS["grid"] + _PARTS["numbers"] + _PARTS["precision"]
"""The parts of a number or date; those that it does not ask for are left for closer looks."""


@dataclass(frozen=True, kw_only=True)
class FirstLook:
    """What is asked of all columns.

    Attributes:
        looks: What is known of each column, and what is to be found.
        aware: The columns whose dtype says that dates have a time zone.
    """

    looks: Mapping[str, Look]
    aware: frozenset[str]

    @classmethod
    def at(cls, table: PrivateTable, looks: Mapping[str, Look]) -> "FirstLook":
        """The look at the columns of a table, of which it sees what their dtypes say in public."""
        return cls(looks=looks, aware=frozenset(name for name in looks if table.is_aware(name)))

    @property
    def readings(self) -> list[Reading]:
        """What is to be read of each column."""
        return [_reading_of(look) for look in self.looks.values()]

    def rows(self, asker: Asker, mu_squared: Fraction) -> Measurement | None:
        """The number of rows, where it says something. Public."""
        if not self._asks_rows:
            return None
        part = mu_squared / self._parts(asker.adjacency) * _PARTS["rows"]
        (rows,) = asker.measure([CountQuery()], part, what="number of rows")
        return rows

    def numbers(self, asker: Asker, mu_squared: Fraction, delta: Fraction) -> Values:
        """The frequent values of numbers. Public."""
        names, part = self.part("numbers", mu_squared, asker.adjacency)
        what = "numbers that many rows share"
        return asker.discover(part, delta, what=what, names=names) if names else {}

    def part(
        self, kind: str, mu_squared: Fraction, adjacency: Adjacency
    ) -> tuple[list[str], Fraction]:
        """Returns the columns that are asked for something, and their part of the look's budget."""
        names = [name for name, look in self.looks.items() if kind in look.asks]
        return names, mu_squared / self._parts(adjacency) * _PARTS[kind] * len(names)

    def measured(
        self,
        asker: Asker,
        mu_squared: Fraction,
        kinds: tuple[str, ...],
        what: str,
        progress: Progress,
    ) -> dict[tuple[str, str], Measurement]:
        """The answers on grids of some kinds, of equal parts, by kind and column. Public."""
        parts = {kind: self.part(kind, mu_squared, asker.adjacency) for kind in kinds}
        asked = [(kind, name) for kind, (names, _) in parts.items() for name in names]
        if not asked:
            return {}
        part = sum((own for _, own in parts.values()), Fraction(0))
        queries = [MarginalQuery((attribute_of(*each),)) for each in asked]
        answers = asker.measure(queries, part, what=what, progress=progress)
        return dict(zip(asked, answers, strict=True))

    def rough(
        self,
        answers: Mapping[tuple[str, str], Measurement],
        rows: Measurement | None,
        numbers: Values,
    ) -> dict[str, Rough]:
        """What the answers say of each number and date. Public."""
        return {
            name: roughly(
                look,
                {kind: answers[kind, name] for kind in look.asks if (kind, name) in answers},
                rows,
                _most_frequent(numbers.get(name, [])),
                utc=name in self.aware,
            )
            for name, look in self.looks.items()
            if isinstance(look.known, NumberFacts | DateFacts)
        }

    @property
    def _asks_rows(self) -> bool:
        return any(look.asks & {"categories", "grid", "precision"} for look in self.looks.values())

    def _parts(self, adjacency: Adjacency) -> int:
        """How many parts the look has."""
        rows = CountQuery().l2_sensitivity_squared(adjacency) * self._asks_rows
        return rows + sum(
            _PARTS["categories"] if "categories" in look.asks else _OF_NUMBERS
            for look in self.looks.values()
            if look.asks
        )

    def cost(self, mu_squared: Fraction, adjacency: Adjacency) -> Fraction:
        """What is asked costs, but for categories."""
        kinds = [kind for look in self.looks.values() for kind in look.asks if kind != "categories"]
        rows = CountQuery().l2_sensitivity_squared(adjacency) * self._asks_rows
        parts = rows + sum(_PARTS[kind] for kind in kinds)
        return mu_squared / max(self._parts(adjacency), 1) * parts


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
