"""Looks into columns: the facts that discovery has to find, and its questions. Public."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from fractions import Fraction

from sdv_privpgd.columns.bins import Interval, Ticks
from sdv_privpgd.columns.cutting import MOST_CATEGORIES, USUAL_BINS, column_of
from sdv_privpgd.columns.facts import (
    CategoryFacts,
    ColumnFacts,
    DateFacts,
    NumberFacts,
    TruthFacts,
)

LOOK_SHARE = Fraction(1, 4)
"""Part of what is left for some columns that a look takes before the last one."""

SINGLE = 513
"""About so many cells the fine grid has, and so many whole numbers are not looked at before."""


@dataclass(frozen=True, kw_only=True)
class Look:
    """A column that discovery looks into.

    Attributes:
        name: The column's name.
        known: The facts that are known of it.
        asks: The questions of the first look: which values many rows have (``categories``,
            ``numbers``), in which cells of the first grid rows lie (``grid``), and how precise they
            are (``precision``).
    """

    name: str
    known: ColumnFacts
    asks: frozenset[str]

    @property
    def has_range(self) -> bool:
        """Whether both ends of the range of numbers or dates are declared."""
        return isinstance(self.known, NumberFacts | DateFacts) and not self.known.lacks_domain


def worth_a_look(
    known: Mapping[str, ColumnFacts], num_bins: int = USUAL_BINS
) -> dict[str, ColumnFacts]:
    """The facts on each column that discovery should look into.

    These are columns without a domain, and those whose domain is so large that it matters where in
    it rows lie: many categories, or a range of more values than cells. An increment is left out,
    because a range is found first.
    """
    return {
        name: replace(facts, increment=None) if isinstance(facts, NumberFacts) else facts
        for name, facts in known.items()
        if facts.lacks_domain or _is_shapeless(name, facts, num_bins)
    }


def look_into(name: str, known: ColumnFacts) -> Look:
    """Decides what the first look has to ask to find what is not known of a column."""
    asks: set[str] = set()
    if isinstance(known, CategoryFacts) and known.lacks_domain:
        asks = {"categories"}
    elif isinstance(known, NumberFacts | DateFacts) and known.lacks_domain:
        asks = {"grid", "numbers", *({"precision"} if _lacks_precision(known) else ())}
    elif isinstance(known, NumberFacts | DateFacts):
        asks = _of_declared(name, known)
    if isinstance(known, DateFacts):
        asks -= {"numbers"}
    return Look(name=name, known=known, asks=frozenset(asks))


def _is_shapeless(name: str, facts: ColumnFacts, num_bins: int) -> bool:
    """Whether a domain has more values than cells, and nothing says where in it rows lie."""
    if isinstance(facts, CategoryFacts):
        return facts.frequencies is None and len(facts.values or ()) > MOST_CATEGORIES
    if isinstance(facts, TruthFacts) or facts.cuts is not None:
        return False
    cells = column_of(name, facts, num_bins).cells
    if isinstance(cells, Ticks):
        return cells.last - cells.first >= len(cells)
    return isinstance(cells, Interval) and cells.low < cells.high


def _of_declared(name: str, known: NumberFacts | DateFacts) -> set[str]:
    """The questions about a declared range: closer looks find where in it rows lie.

    They show single values of a narrow one. Whether it is narrow is not known if its precision is
    not.
    """
    if isinstance(known, NumberFacts) and _lacks_precision(known):
        return {"precision", "numbers"}
    cells = column_of(name, known).cells
    is_wide = not isinstance(cells, Ticks) or cells.last - cells.first >= SINGLE
    return {"numbers"} if is_wide else set()


def _lacks_precision(known: NumberFacts | DateFacts) -> bool:
    if isinstance(known, NumberFacts):
        return known.decimal_places is None
    return known.datetime_format is None
