"""Looks into columns: the facts that discovery has to find, and its questions. Public."""

from collections.abc import Mapping
from dataclasses import dataclass

from sdv_privpgd.columns.bins import Ticks
from sdv_privpgd.columns.parsing import describe

SINGLE = 513
"""Up to this many whole numbers have a cell each on the second grid."""


@dataclass(frozen=True, kw_only=True)
class Look:
    """A column that discovery looks into.

    Attributes:
        name: The column's name.
        facts: The facts that are known of it, in SDV's words.
        asks: The questions of the first look: which values many rows have (``categories``,
            ``numbers``), in which groups (``coarse``) and cells (``grid``) of the first grid rows
            lie, and how precise they are (``precision``).

    >>> Look(name="age", facts={"sdtype": "numerical"}, asks=frozenset()).has_domain
    False
    """

    name: str
    facts: Mapping
    asks: frozenset[str]

    @property
    def sdtype(self) -> str:
        return self.facts["sdtype"]

    @property
    def has_range(self) -> bool:
        """Whether both ends of the range of numbers or dates are declared."""
        return all(self.facts.get(key) is not None for key in ("range_min", "range_max"))

    @property
    def has_domain(self) -> bool:
        """Whether the range or the categories are declared, so that only a shape is to be found."""
        if self.sdtype in ("numerical", "datetime"):
            return self.has_range
        values = self.facts.get("range_values")
        return values is not None and len(values) > 0


def look_into(name: str, facts: Mapping) -> Look:
    """Decides what the first look has to ask to find what is not known of a column.

    >>> sorted(look_into("age", {"sdtype": "numerical", "decimal_places": 0}).asks)
    ['coarse', 'grid', 'numbers']
    """
    look = Look(name=name, facts=facts, asks=frozenset())
    if look.sdtype not in ("numerical", "datetime"):
        asks = set() if look.has_domain else {"categories"}
    elif look.has_range:
        asks = _of_declared(look)
    else:
        asks = {"coarse", "grid", "numbers", "precision"}
        if not _lacks_precision(look):
            asks -= {"precision"}
    if look.sdtype == "datetime":
        asks -= {"numbers"}
    return Look(name=name, facts=facts, asks=frozenset(asks))


def _of_declared(look: Look) -> set[str]:
    """The questions about a declared range: a wide one is looked into twice.

    A narrow one has cells that are fine enough at once. Whether it is narrow is not known if its
    precision is not.
    """
    if look.sdtype == "numerical" and _lacks_precision(look):
        low, high = (float(look.facts[key]) for key in ("range_min", "range_max"))
        return {"precision", "grid"} | ({"numbers"} if high - low >= SINGLE else set())
    cells = describe(look.name, look.facts).cells
    is_wide = not isinstance(cells, Ticks) or cells.last - cells.first >= SINGLE
    return {"grid", "numbers"} if is_wide else set()


def _lacks_precision(look: Look) -> bool:
    key = "datetime_format" if look.sdtype == "datetime" else "decimal_places"
    return look.facts.get(key) is None
