"""Rows of a person in order: what is said of it, and the columns that say what came before. Public.

Columns are added to each row, made of the same person's rows alone: how long ago the row before
was, what it had in some columns, and how many rows the person has. Pairs of columns then see one
row after another, to the first order.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, TypeAlias

import numpy as np

from sdv_privpgd.base.arguments import check_known
from sdv_privpgd.columns.column import Column
from sdv_privpgd.columns.cuts import USUAL_BINS, column_of
from sdv_privpgd.columns.facts import CategoryFacts, ColumnFacts, DateFacts, NumberFacts
from sdv_privpgd.columns.units import IN_A_SECOND

_ORDERED = ("numerical", "datetime")

_NEVER_WRITTEN: dict[str, Any] = {"nullable": True, "number_format": None, "dtype": None}
"""What is known of what the row before had: the column's codes, and one for missing."""

_FINEST = 1000
"""Times without a precision: the first cell is this part of the longest time."""


@dataclass(frozen=True, kw_only=True)
class Visits:
    """The order of a person's rows, and what is known of the row before.

    Attributes:
        person: The column that says whose a row is.
        most: How many rows of a person are used.
        by: The column that says when a row was: numbers or dates of a declared range.
        previous: Columns of which a row is told what the row before had, the most telling first.
        context_columns: Columns in which all rows of a person have the same.
    """

    person: str
    most: int
    by: str
    previous: tuple[str, ...] = ()
    context_columns: tuple[str, ...] = ()

    @property
    def since(self) -> str:
        """The name of the column of how long ago the row before was; missing in a first row."""
        return since(self.by)

    @property
    def number(self) -> str:
        """The name of the column of how many rows the person has."""
        return "rows of the person"

    def before(self, name: str) -> str:
        """The name of the column of what the row before had; missing in a first row."""
        return f"{name} (row before)"

    @property
    def added(self) -> tuple[str, ...]:
        """The names of all columns that are added, in order."""
        return (self.since, *map(self.before, self.previous), self.number)

    def sdtypes(self, columns: Mapping[str, str]) -> dict[str, str]:
        """The sdtypes of the added columns, by those of the others."""
        kinds = {self.before(name): columns[name] for name in self.previous}
        return {self.since: "numerical", **kinds, self.number: "ordinal"}

    def require(self, columns: Collection[str], modelled: Mapping[str, str]) -> None:
        """Raises ``ValueError`` unless these columns can be put in order, by their sdtypes."""
        if modelled.get(self.by) not in _ORDERED:
            raise ValueError(
                f"sequence_index={self.by!r} is no modelled column of numbers or dates, by which "
                "rows could be put in order."
            )
        others = [name for name in modelled if name != self.by]
        check_known("previous", self.previous, others)
        check_known("context_columns", self.context_columns, others)
        if taken := [name for name in self.added if name in columns]:
            raise ValueError(
                f"Columns are called {taken!r}, as those are that sequence_index adds: rename them."
            )

    def columns_of(
        self, own: Mapping[str, Column], num_bins: int = USUAL_BINS, unit: str | None = None
    ) -> tuple[Column, ...]:
        """The added columns that the columns of these names have; some may be unknown yet.

        What the row before had has the codes of the column itself, and missing. How long ago it
        was has cells that grow with the time, by a public rule: in times of this ``unit``.
        """
        found = {
            self.before(name): replace(own[name], name=self.before(name), **_NEVER_WRITTEN)
            for name in self.previous
            if name in own
        }
        if self.by in own:
            facts = time_facts(own[self.by], num_bins, unit)
            found[self.since] = column_of(self.since, facts, num_bins)
        numbers = CategoryFacts(
            values=tuple(range(1, self.most + 1)), is_ordered=True, nullable=False
        )
        found[self.number] = column_of(self.number, numbers)
        return tuple(found[name] for name in self.added if name in found)


Ordered: TypeAlias = tuple[Visits, Column]
"""An order, and what is public of the column that says it."""


def since(by: str) -> str:
    """The name of the column of how long before a row the last one was, by what orders them."""
    return f"{by} (since the row before)"


def read_by(clock: Column, name: str, written: Any) -> Column:
    """The column of a name, read in the ticks of a clock; it is ``written`` as its facts say."""
    kept = {
        each: getattr(written, each, None) for each in ("datetime_format", "number_format", "dtype")
    }
    return replace(clock, name=name, **kept)


def as_read(facts: ColumnFacts) -> ColumnFacts:
    """What is known of a clock as its private cells are read, whatever was found of its unit."""
    return replace(facts, whole=None) if isinstance(facts, DateFacts) else facts


def steps(clock: Column) -> int:
    """How many ticks of a column of dates or numbers are one step of how long ago a row was.

    A step is a tick, such as a day, and no less than a second.
    """
    return IN_A_SECOND.get(clock.unit or "", 1)


def time_between(clock: Column, before: np.ndarray, now: np.ndarray) -> np.ndarray:
    """How long ago the row before was, as the added column's numbers; both as cells hold values."""
    apart = now - before
    return apart // steps(clock) if clock.unit is not None else clock.numbers(apart)


def time_after(clock: Column, before: np.ndarray, since: np.ndarray) -> np.ndarray:
    """The times of rows so long after others, not beyond the column's range.

    All are as the cells of their columns hold values.
    """
    return np.clip(before + since * steps(clock), *clock.cells.ends)


def time_facts(clock: Column, num_bins: int = USUAL_BINS, unit: str | None = None) -> NumberFacts:
    """The facts on the time since the row before: cells whose width grows with it.

    It is counted in steps of a ``unit``, that of the clock by default. Of a clock that was found to
    be whole in a coarser one it has multiples.
    """
    low, high = clock.cells.ends
    if clock.unit is None and clock.decimal_places is None and clock.increment is None:
        longest = max(high - low, np.finfo(float).tiny)
        cuts = np.geomspace(longest / _FINEST, longest, num_bins)[:-1]
        return NumberFacts(low=0.0, high=float(longest), cuts=tuple(cuts.tolist()))
    longest = max((int(high) - int(low)) // steps(clock), 1)
    grown = np.geomspace(1, longest, max(num_bins - 1, 1)).round()
    ticks = sorted({min(int(each), longest) for each in grown} if num_bins > 1 else set())
    places, increment, step = clock.decimal_places, clock.increment, clock.tick
    if clock.unit is not None:
        one, other = (
            np.timedelta64(1, "s" if each in IN_A_SECOND else each)  # pyright: ignore
            for each in (clock.unit, unit or clock.unit)
        )
        places, step = 0, Fraction(int(one // other))
        increment = int(step) if step > 1 else None
    numbers = [each * step for each in (*ticks, longest)]
    *cuts, end = [int(n) if n.denominator == 1 else float(n) for n in numbers]
    return NumberFacts(
        low=0, high=end, decimal_places=places, increment=increment, cuts=tuple(cuts)
    )
