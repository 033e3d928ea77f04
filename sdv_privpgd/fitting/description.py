"""What is public of a table: declared before a fit, and found by it."""

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any, TypeVar

from sdv_privpgd.base import cached_property
from sdv_privpgd.base.domain import FieldsAlone
from sdv_privpgd.columns.column import EXACT_IN_FLOAT
from sdv_privpgd.columns.cuts import USUAL_BINS, column_of
from sdv_privpgd.columns.date_formats import on_dates
from sdv_privpgd.columns.declarations import TimeOfDay
from sdv_privpgd.columns.differences import OrderedPair, chosen, differences_of, told_apart
from sdv_privpgd.columns.dtypes import (
    dtypes_kept,
    facts_of_dtype,
    is_of_days,
    is_of_times,
    is_whole,
    unordered,
)
from sdv_privpgd.columns.facts import (
    CategoryFacts,
    ColumnFacts,
    DateFacts,
    NumberFacts,
    TruthFacts,
    without_domain,
)
from sdv_privpgd.columns.mismatch import on_ends, on_wide
from sdv_privpgd.columns.names import on_repeated_ids, repeated_ids
from sdv_privpgd.columns.parser import checked, read_facts, read_table
from sdv_privpgd.columns.scalars import LARGEST_WHOLE
from sdv_privpgd.columns.schema import PublicDomainError, Schema
from sdv_privpgd.columns.visits import Ordered, Visits, as_read, since, time_facts
from sdv_privpgd.columns.vocabulary import words_of
from sdv_privpgd.constraints.kinds import Constraints, Limits
from sdv_privpgd.constraints.rules import Order, Rule, count_rule, visit_rules
from sdv_privpgd.discovery.plan import worth_a_look
from sdv_privpgd.discovery.ranges import inside
from sdv_privpgd.estimate.prior import PublicRows
from sdv_privpgd.inference.question_list import Question, with_borders

if TYPE_CHECKING:
    from sdv_privpgd.fitting.prior import PublicTable

Known = TypeVar("Known", bound=ColumnFacts)


@dataclass(frozen=True, kw_only=True)
class Description(FieldsAlone):
    """What is declared of a table's columns, what was found, and what follows.

    Attributes:
        columns: SDV's description of each column, in order; at least its sdtype.
        facts: What is declared of each modelled column, also by constraints.
        keys: Columns that are keys. They are not modelled.
        patterns: Of the keys that are made with the rows; ``None`` for whole numbers.
        constraints: What is declared of several columns together.
        num_bins: Cells of a number or date that does not name its own; ``None`` for at most 32,
            and no more than the noise can pay for where a fit looks where rows lie.
        discovers: Whether what is not declared may be found privately.
        enforce_rounding: Whether values have their decimal places.
        kept: Columns of which rows must have just what the model says.
        dtypes: Those of the table that no cell chose.
        discovered: What was found of columns.
        shapes: How frequent the cells of differences are, as far as that was found.
        visits: The order of a person's rows, if each is told of the one before.
        timeless: Columns of dates of which it is known that they have no time of the day.
        public: Rows that a fit leans on, as codes of any schema of these columns.
        given: Columns that another fit has asked about: of them alone nothing is asked.
        linked: Columns that links add to the rows.
        questions: Those that get a part of the budget. Codes begin where their conditions do.
        counted_by: The column of how many rows a family has, where each counts as a part of one.
        clocks: Columns by which links have rows in order, or from which on they are.
        counts: Columns that say how many children rows have, by those that links add.
    """

    columns: Mapping[str, Mapping]
    facts: Mapping[str, ColumnFacts]
    keys: Collection[str] = ()
    patterns: Mapping[str, str | None] = field(default_factory=dict)
    constraints: Constraints = field(default_factory=Constraints)
    num_bins: int | None = None
    discovers: bool = True
    enforce_rounding: bool = True
    kept: frozenset[str] = frozenset()
    dtypes: Mapping[str, Any] = field(default_factory=dict)
    discovered: Mapping[str, ColumnFacts] = field(default_factory=dict)
    shapes: Mapping[str, Sequence[float]] = field(default_factory=dict)
    visits: Visits | None = None
    timeless: frozenset[str] = frozenset()
    public: "PublicTable | None" = None
    given: tuple[str, ...] = ()
    linked: tuple[str, ...] = ()
    questions: tuple[Question, ...] = ()
    counted_by: tuple[str, ...] = ()
    clocks: Sequence[str] = ()
    counts: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def of(
        cls,
        columns: Mapping[str, Mapping],
        public_domain: Mapping[str, Mapping] | None = None,
        *,
        keys: Collection[str] = (),
        constraints: Constraints | None = None,
        **others: Any,
    ) -> "Description":
        """The description of a table in SDV's words, which are read here and nowhere else.

        ``public_domain`` goes before what ``columns`` say; ``others`` are the other attributes.

        Raises:
            ValueError: For words that name no column, mean nothing or contradict each other.
        """
        constraints = Constraints() if constraints is None else constraints
        facts = read_table(columns, keys, public_domain, constraints.facts)
        if not others.get("enforce_rounding", True):
            facts = {name: _unrounded(each) for name, each in facts.items()}
        return cls(columns=columns, facts=facts, keys=keys, constraints=constraints, **others)

    def dtypes_kept(self, dtypes: Mapping[str, Any]) -> dict[str, Any]:
        """The dtypes that rows come back in, of a table's, because no cell chose them. Public."""
        return dtypes_kept(dtypes, self.columns, self.modelled, self.keys)

    def dated(self, dtypes: Mapping[str, Any]) -> "Description":
        """The same, of a table whose dtypes may say that dates have no time of the day, or no day.

        Of the times of the day of such a dtype nothing has to be declared.
        """
        days = frozenset(name for name in self.modelled if is_of_days(dtypes[name]))
        times = {
            name: known.and_found(read_facts(name, {"sdtype": "datetime", **TimeOfDay()}))
            for name, known in self.facts.items()
            if is_of_times(dtypes[name]) and isinstance(known, DateFacts) and known.is_blank
        }
        return replace(self, timeless=self.timeless | days, facts={**self.facts, **times})

    def of_dtypes(self, dtypes: Mapping[str, Any]) -> "Description":
        """The same, of a table with these dtypes."""
        return replace(self.dated(dtypes), dtypes=self.dtypes_kept(dtypes))

    def on_ids(self, people: str | None, *, says_whose: bool) -> list[str]:
        """Sentences on ids other than the column of ``people``: on kinds, and on whose rows are."""
        ids = [name for name in self.repeated_ids if name != people]
        # A declared key has a pattern, if only that of numbers; those of SDV's metadata have none.
        of_sdv = [name for name in self.keys if name not in self.patterns]
        keys = [name for name in of_sdv if self.columns[name]["sdtype"] == "id"]
        return on_repeated_ids(ids, keys, says_whose=says_whose)

    @property
    def on_dates(self) -> list[str]:
        """A sentence on dates that are counted in days though nobody said so, if there are any."""
        but = {*self.timeless, *self.given}  # what is given is another table's to say
        return on_dates({name: e for name, e in self.facts.items() if name not in but})

    @property
    def on_prior(self) -> Sequence[str]:
        """A sentence on columns of public rows that cannot be read, if there are any."""
        return () if self.public is None else self.public.notes

    @property
    def on_wide(self) -> list[str]:
        """Sentences on types and declared ranges that hold more than is told apart."""
        return [*on_wide(self.dtypes, self.facts), *on_ends(self.facts, self.facts)]

    @property
    def on_constraints(self) -> list[str]:
        """A sentence on constraints that hardly any row may meet, if all domains are declared."""
        is_known = not without_domain(self.stated)
        return self.constraints.diagnostics(self.declared_schema) if is_known else []

    @property
    def modelled(self) -> list[str]:
        """The columns that are measured; the others are generated."""
        return list(self.facts)

    @property
    def value_sources(self) -> dict[str, str]:
        """Where each column's values come from: declared, found privately, or made up."""
        unknown = without_domain(self.undeclared)
        sources = {name: "declared" if name in self.facts else "made up" for name in self.columns}
        return sources | dict.fromkeys(unknown, "found privately")

    @cached_property
    def measured(self) -> dict[str, str]:
        """The sdtype of each column that is measured: the modelled ones, and what visits add."""
        kinds = {name: facts.sdtype for name, facts in self.facts.items()}
        return kinds if self.visits is None else kinds | self.visits.sdtypes(kinds)

    @property
    def added(self) -> tuple[str, ...]:
        """The columns that say what came before a row, or what it leads to: no table has them."""
        return self.linked if self.visits is None else self.visits.added

    @property
    def ordered(self) -> Ordered | None:
        """The order of a person's rows, and what is public of the column that says it."""
        if self.visits is None:
            return None
        by = self.visits.by
        return self.visits, column_of(by, as_read(self.stated[by]), self.most_bins)

    @property
    def repeated_ids(self) -> tuple[str, ...]:
        """Columns of ids that are no keys, so that several rows may have one."""
        return repeated_ids(self.columns, self.keys)

    @property
    def most_bins(self) -> int:
        """The largest number of cells of a number or date that does not name its own."""
        return USUAL_BINS if self.num_bins is None else self.num_bins

    @cached_property
    def schema(self) -> Schema:
        """The modelled columns. Raises ``PublicDomainError`` where a domain is not known."""
        schema = Schema.of(self.known, self.most_bins).typed(self._written)
        if self.discovered:
            schema = self.constraints.widened(schema, self.undeclared)
        return self._with_visits(self._with_borders(schema))

    @cached_property
    def attributes(self) -> Schema:
        """The columns and the differences of those in order: all that has codes."""
        return self._with_differences(self.shapes)

    @cached_property
    def public_rows(self) -> PublicRows | None:
        """The public rows that a fit leans on, as codes of the ``attributes``."""
        return None if self.public is None else self.public.codes(self.attributes)

    @cached_property
    def shapeless(self) -> Schema:
        """As ``attributes``, with fine cells of differences, of which no shape is known."""
        return self._with_differences(None)

    @cached_property
    def declared(self) -> "Description":
        """The same table before anything was found."""
        return replace(self, discovered={}, shapes={}) if self.discovered or self.shapes else self

    @cached_property
    def declared_schema(self) -> Schema:
        """The modelled columns whose domain is declared."""
        whole = {name: facts for name, facts in self.stated.items() if not facts.lacks_domain}
        return self._with_visits(self._with_borders(Schema.of(whole, self.most_bins)))

    @cached_property
    def undeclared(self) -> dict[str, ColumnFacts]:
        """What is known of each column that is to be looked into privately."""
        return self.lacking if self.discovers else {}

    @cached_property
    def short_ranges(self) -> dict[str, ColumnFacts]:
        """What is declared of numbers and dates that nobody looks into, as their cells are few.

        It is only counted how many rows lie beyond their ranges.
        """
        known = self.stated if self.discovers else {}
        return {
            name: facts
            for name, facts in known.items()
            if isinstance(facts, NumberFacts | DateFacts)
            and name not in (*self.undeclared, *self.given)
        }

    @property
    def orders(self) -> Collection[str]:
        """The columns by which rows are in order, or from which on they are."""
        return self.clocks if self.visits is None else {self.visits.by}

    @cached_property
    def lacking(self) -> dict[str, ColumnFacts]:
        """What is known of each column that it would help to look into."""
        return worth_a_look(self.stated, self.most_bins)

    @cached_property
    def pairs(self) -> list[OrderedPair]:
        """The pairs of columns whose difference is modelled."""
        pairs = self.constraints.pairs()
        return chosen(pair for pair in pairs if not {pair.low, pair.high} & self.kept)

    @cached_property
    def stated(self) -> dict[str, ColumnFacts]:
        """What is declared of each modelled column, also by its dtype, as far as it is to hold.

        Raises ``ValueError`` for numbers of which there are none in their dtype.
        """
        return {name: self._typed(name, facts) for name, facts in self.facts.items()}

    @cached_property
    def known(self) -> dict[str, ColumnFacts]:
        """What is known of each modelled column, declared or found."""
        return self._and_found(self.stated)

    @cached_property
    def in_words(self) -> dict[str, dict]:
        """What is declared of each modelled column and what was found, in SDV's words."""
        return {name: words_of(facts) for name, facts in self._and_found(self.facts).items()}

    def _and_found(self, known: Mapping[str, ColumnFacts]) -> dict[str, ColumnFacts]:
        found = self._found
        all_known = {
            name: each.and_found(found[name]) if name in found else each
            for name, each in known.items()
        }
        for by in self.clocks:  # a clock of whole days has whole days between rows
            facts = all_known.get(by)
            if since(by) in known and isinstance(facts, DateFacts):
                all_known[since(by)] = time_facts(column_of(by, facts), unit=facts.finest)
        return all_known

    @property
    def words(self) -> dict[str, dict]:
        """What is declared of each column, in SDV's words."""
        declared = {name: words_of(facts) for name, facts in self.facts.items()}
        return {name: {**each, **declared.get(name, {})} for name, each in self.columns.items()}

    @cached_property
    def limits(self) -> Limits:
        """What the constraints and the order of rows say of rows."""
        limits, own = self.constraints.limits(self.attributes), ()
        if self.visits is not None:
            own = visit_rules(self.visits, self.schema.columns)
        elif limits.rules or limits.checks:  # by which rows may move to before their start
            own = self._starts(self.attributes)
        return limits._replace(rules=(*limits.rules, *own))

    def said_by_links(self, schema: Schema) -> list[Rule]:
        """What links say of rows: none comes before its start, and counts are those of children."""
        counts = (count_rule(schema.named[e], schema.named[of]) for e, of in self.counts.items())
        return [*self._starts(schema), *counts]

    def _starts(self, schema: Schema) -> list[Rule]:
        own, later = schema.named, self.clocks[:1]
        return [Order(own[e], own[c], strict=False) for e in self.clocks[1:] for c in later]

    def require_possible(self) -> None:
        """Raises for an order or a constraint that nothing discovered could make possible."""
        self.require_order()
        if self.visits is not None and self.stated[self.visits.by].lacks_domain:
            raise PublicDomainError(
                f"sequence_index={self.visits.by!r} needs a column whose range is declared: the "
                "cells of how long ago the row before was follow from it."
            )
        self.constraints.require_possible(self.declared_schema, self.lacking)

    def require_order(self) -> None:
        """Raises ``ValueError`` for an order of rows by columns that are not there or have none."""
        if self.visits is not None:
            kinds = {name: facts.sdtype for name, facts in self.facts.items()}
            self.visits.require(self.columns, kinds)

    @property
    def uncategorized(self) -> list[str]:
        """The columns whose categories are to be found."""
        named = {n: e for n, e in self.undeclared.items() if isinstance(e, CategoryFacts)}
        return [name for name, facts in named.items() if facts.lacks_domain]

    @property
    def parts_looked_into(self) -> tuple[Fraction, Fraction]:
        """What parts of discovery's share go to all looks, and to categories beside that.

        Looks have that of the columns, without those of which another fit has found what there is,
        and without truths, of which there is nothing to be found. Few categories of many columns
        have more each, so that rarer ones are found: as much as the root of their part is more
        than it.
        """
        given = {*self.given} - self.undeclared.keys()
        asked = sum(
            not isinstance(facts, TruthFacts) and name not in given
            for name, facts in self.facts.items()
        )
        looked, own = (
            Fraction(len(names), max(asked, 1)) for names in (self.undeclared, self.uncategorized)
        )
        return looked, min(Fraction(math.sqrt(own)) - own, 1 - looked)

    @cached_property
    def _found(self) -> dict[str, ColumnFacts]:
        """What was found, as far as it is to be used."""
        return {name: self._used(name, facts) for name, facts in self.discovered.items()}

    def _typed(self, name: str, facts: ColumnFacts) -> ColumnFacts:
        if not isinstance(facts, NumberFacts):
            return facts
        if name in self.dtypes:
            facts = facts_of_dtype(self.dtypes[name]).and_found(facts)
        return checked(name, facts if self.enforce_rounding else _unrounded(facts))

    def _used(self, name: str, found: ColumnFacts) -> ColumnFacts:
        stated = self.stated[name]
        if name in self.orders and getattr(found, "whole", None) in ("Y", "M"):
            return replace(found, whole="D")  # what lies between rows is counted in days
        if not (isinstance(found, NumberFacts) and isinstance(stated, NumberFacts)):
            return found
        if not self.enforce_rounding:
            found = replace(found, decimal_places=None)
        return found if stated.increment is None else _rounded_out(found, stated)

    @property
    def _written(self) -> Mapping[str, Any]:
        """The dtypes of columns that are written in them. Categories that were found have no order.

        They are in that of the alphabet, which need not be the one that they were in.
        """
        found = {n: e for n, e in self.discovered.items() if isinstance(e, CategoryFacts)}
        has_values = {name for name, facts in found.items() if facts.values is not None}
        return {
            name: unordered(dtype) if name in has_values else dtype
            for name, dtype in self.dtypes.items()
            if self.enforce_rounding or not is_whole(dtype)
        }

    def _with_visits(self, schema: Schema) -> Schema:
        """The schema with the columns that say what came before."""
        if self.visits is None:
            return schema
        unit = getattr(self.stated[self.visits.by], "finest", None)
        added = self.visits.columns_of(schema.named, self.most_bins, unit)
        return Schema((*schema.columns, *added))

    def _with_borders(self, schema: Schema) -> Schema:
        return Schema(tuple(with_borders(each, self.questions) for each in schema.columns))

    def _with_differences(self, shapes: Mapping[str, Sequence[float]] | None) -> Schema:
        named = {name for pair in self.pairs for name in (pair.low, pair.high)}
        columns = tuple(
            told_apart(column) if column.name in named else column for column in self.schema.columns
        )
        found = differences_of(self.pairs, columns, num_bins=self.most_bins, shapes=shapes)
        return Schema(columns, found)


def _rounded_out(found: NumberFacts, stated: NumberFacts) -> NumberFacts:
    """What was found of numbers, its range widened to multiples of the stated increment.

    It ends where multiples cannot be told from other numbers any more.
    """
    (low, high), step = found.ends, stated.increment
    assert step is not None
    places = found.decimal_places if stated.decimal_places is None else stated.decimal_places
    largest = (LARGEST_WHOLE - 1 if places == 0 else EXACT_IN_FLOAT) // step
    first, last = (
        max(-largest, min(rounded(end / step), largest))
        for rounded, end in ((math.floor, low), (math.ceil, high))
    )
    ranged = replace(found, low=first * step, high=last * step)
    cuts = inside(found.cuts or (), ranged)
    if len(cuts) == len(found.cuts or ()):
        return ranged
    return replace(ranged, cuts=cuts, frequencies=None)


def _unrounded(facts: Known) -> Known:
    return replace(facts, decimal_places=None) if isinstance(facts, NumberFacts) else facts
