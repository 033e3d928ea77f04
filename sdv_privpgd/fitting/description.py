"""What is public of a table: declared before a fit, and found by it."""

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cached_property
from typing import Any

from sdv_privpgd.columns.column import EXACT_IN_FLOAT
from sdv_privpgd.columns.cutting import USUAL_BINS, column_of
from sdv_privpgd.columns.dtypes import facts_of_dtype, is_whole, unordered
from sdv_privpgd.columns.facts import CategoryFacts, ColumnFacts, DateFacts, NumberFacts
from sdv_privpgd.columns.ids import repeated_ids
from sdv_privpgd.columns.ordered import OrderedPair, chosen, differences_of, told_apart
from sdv_privpgd.columns.parsing import read_table
from sdv_privpgd.columns.scalars import LARGEST_WHOLE
from sdv_privpgd.columns.schema import PublicDomainError, Schema
from sdv_privpgd.columns.times_of_day import on_days
from sdv_privpgd.columns.visits import Ordered, Visits
from sdv_privpgd.columns.vocabulary import check_facts, modelled
from sdv_privpgd.columns.wording import words_of
from sdv_privpgd.constraints.limits import Constraints, Limits
from sdv_privpgd.constraints.visits import visit_rules
from sdv_privpgd.discovery.bounds import inside
from sdv_privpgd.discovery.looks import worth_a_look
from sdv_privpgd.domain import FieldsAlone


@dataclass(frozen=True, kw_only=True)
class Description(FieldsAlone):
    """What is declared of a table's columns in SDV's words, what was found, and what follows.

    Attributes:
        columns: Facts on each column in SDV's words, in order; at least its sdtype.
        keys: Columns that are keys. They are not modelled.
        patterns: Of the keys that are made with the rows; ``None`` for whole numbers.
        public_domain: Facts in the same words that go before those.
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
        timeless: Columns of dates whose type in the table has no time of the day.
    """

    columns: Mapping[str, Mapping]
    keys: Collection[str] = ()
    patterns: Mapping[str, str | None] = field(default_factory=dict)
    public_domain: Mapping[str, Mapping] = field(default_factory=dict)
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

    @property
    def on_days(self) -> list[str]:
        """A sentence on dates that are counted in days though nobody said so, if there are any."""
        facts = self.facts
        return on_days({name: facts[name] for name in facts if name not in self.timeless})

    @cached_property
    def modelled(self) -> list[str]:
        """The columns that are measured; the others are generated."""
        return modelled(self.columns, self.keys)

    @cached_property
    def measured(self) -> dict[str, str]:
        """The sdtype of each column that is measured: the modelled ones, and what visits add."""
        kinds = {name: str(self.columns[name]["sdtype"]) for name in self.modelled}
        return kinds if self.visits is None else kinds | self.visits.sdtypes(kinds)

    @property
    def ordered(self) -> Ordered | None:
        """The order of a person's rows, and what is public of the column that says it."""
        if self.visits is None:
            return None
        by = self.visits.by
        return self.visits, column_of(by, self.stated[by], self.most_bins)

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
        return self._with_visits(schema)

    @cached_property
    def attributes(self) -> Schema:
        """The columns and the differences of those in order: all that has codes."""
        return self._with_differences(self.shapes)

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
        return self._with_visits(Schema.of(whole, self.most_bins))

    @cached_property
    def undeclared(self) -> dict[str, ColumnFacts]:
        """What is known of each column that is to be looked into privately."""
        return self.lacking if self.discovers else {}

    @cached_property
    def short_ranges(self) -> dict[str, ColumnFacts]:
        """What is declared of numbers and dates that nobody looks into, as their cells are few.

        It is only counted how many rows lie beyond their ranges.
        """
        return {
            name: facts
            for name, facts in (self.stated if self.discovers else {}).items()
            if isinstance(facts, NumberFacts | DateFacts) and name not in self.undeclared
        }

    @cached_property
    def lacking(self) -> dict[str, ColumnFacts]:
        """What is known of each column that it would help to look into."""
        return worth_a_look(self.stated, self.most_bins)

    @cached_property
    def facts(self) -> dict[str, dict]:
        """What is declared of each modelled column, in SDV's words."""
        columns, domain = self._columns, self.domain
        return {name: {**columns[name], **domain.get(name, {})} for name in self.modelled}

    @cached_property
    def pairs(self) -> list[OrderedPair]:
        """The pairs of columns whose difference is modelled."""
        pairs = self.constraints.pairs()
        return chosen(pair for pair in pairs if not {pair.low, pair.high} & self.kept)

    @cached_property
    def domain(self) -> dict[str, dict]:
        """The public domain in SDV's words, with what constraints declare of single columns."""
        check_facts(self.public_domain)
        columns = {name: self._columns[name] for name in self.modelled}
        domain = self.constraints.facts(columns, self.public_domain)
        return domain if self.enforce_rounding else _without_rounding(domain)

    @cached_property
    def stated(self) -> dict[str, ColumnFacts]:
        """What is declared of each modelled column."""
        return read_table(self._columns, self.keys, self.domain)

    @cached_property
    def known(self) -> dict[str, ColumnFacts]:
        """What is known of each modelled column, declared or found."""
        return {
            name: stated.and_found(self._found[name]) if name in self._found else stated
            for name, stated in self.stated.items()
        }

    @cached_property
    def in_words(self) -> dict[str, dict]:
        """The public domain in SDV's words, with what was found."""
        found = {
            name: {**self.domain.get(name, {}), **self._in_words(name, facts)}
            for name, facts in self._found.items()
        }
        return {**self.domain, **found}

    @property
    def found_in_words(self) -> dict[str, dict]:
        """What was found of columns in SDV's words, just as it was found."""
        return {name: self._in_words(name, facts) for name, facts in self.discovered.items()}

    @cached_property
    def limits(self) -> Limits:
        """What the constraints and the order of rows say of rows."""
        limits = self.constraints.limits(self.attributes)
        if self.visits is None:
            return limits
        own = visit_rules(self.visits, self.schema.columns)
        return limits._replace(rules=(*limits.rules, *own))

    def require_possible(self) -> None:
        """Raises for an order or a constraint that nothing discovered could make possible."""
        self.require_order()
        if self.visits is not None and self.stated[self.visits.by].lacks_domain:
            raise PublicDomainError(
                f"sequence_by={self.visits.by!r} needs a column whose range is declared: the cells "
                "of how long ago the row before was follow from it."
            )
        self.constraints.require_possible(self.declared_schema, self.lacking)

    def require_order(self) -> None:
        """Raises ``ValueError`` for an order of rows by columns that are not there or have none."""
        if self.visits is not None:
            kinds = {name: str(self.columns[name]["sdtype"]) for name in self.modelled}
            self.visits.require(self.columns, kinds)

    @property
    def share_looked_into(self) -> Fraction:
        """What part of the columns is looked into. Truths have nothing to be found."""
        asked = sum(self.columns[name]["sdtype"] != "boolean" for name in self.modelled)
        return Fraction(len(self.undeclared), max(asked, 1))

    @cached_property
    def _columns(self) -> Mapping[str, Mapping]:
        """SDV's facts on columns, with what their dtypes say."""
        columns = _with_dtypes(self.columns, self.dtypes)
        return columns if self.enforce_rounding else _without_rounding(columns)

    @cached_property
    def _found(self) -> dict[str, ColumnFacts]:
        """What was found, as far as it is to be used."""
        return {name: self._used(name, facts) for name, facts in self.discovered.items()}

    def _in_words(self, name: str, found: ColumnFacts) -> dict[str, Any]:
        """What was found in SDV's words; a bound that was declared is written as it was."""
        words, stated = words_of(found), self.stated[name]
        if isinstance(stated, DateFacts) and isinstance(found, DateFacts):
            if stated.datetime_format != found.datetime_format:
                return words
            stated = replace(stated, aware=found.aware)
        known = words_of(stated)
        kept = [key for key in ("range_min", "range_max") if key in words.keys() & known.keys()]
        return {
            **words,
            **{key: self.facts[name][key] for key in kept if words[key] == known[key]},
        }

    def _used(self, name: str, found: ColumnFacts) -> ColumnFacts:
        stated = self.stated[name]
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
        dtypes = {
            name: unordered(dtype) if _has_found_values(self.discovered.get(name)) else dtype
            for name, dtype in self.dtypes.items()
        }
        if self.enforce_rounding:
            return dtypes
        return {name: dtype for name, dtype in dtypes.items() if not is_whole(dtype)}

    def _with_visits(self, schema: Schema) -> Schema:
        """The schema with the columns that say what came before."""
        if self.visits is None:
            return schema
        own = {column.name: column for column in schema.columns}
        return Schema((*schema.columns, *self.visits.columns_of(own, self.most_bins)))

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


def _with_dtypes(columns: Mapping[str, Mapping], dtypes: Mapping[str, Any]) -> dict[str, Mapping]:
    """The same facts on columns, on numbers with what their chosen dtypes say."""
    return {
        name: {**facts_of_dtype(dtypes[name]), **dict(facts)}
        if name in dtypes and facts["sdtype"] == "numerical"
        else facts
        for name, facts in dict(columns).items()
    }


def _without_rounding(columns: Mapping[str, Mapping]) -> dict[str, dict]:
    """The same facts on columns without their decimal places."""
    return {
        name: {key: value for key, value in dict(facts).items() if key != "decimal_places"}
        for name, facts in dict(columns).items()
    }


def _has_found_values(found: ColumnFacts | None) -> bool:
    return isinstance(found, CategoryFacts) and found.values is not None
