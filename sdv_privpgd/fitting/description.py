"""What is public of a table: declared before a fit, and found by it."""

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cached_property
from typing import Any

from sdv_privpgd.columns.dtypes import facts_of_dtype, is_whole
from sdv_privpgd.columns.ids import repeated_ids
from sdv_privpgd.columns.ordered import OrderedPair, chosen, differences_of, told_apart
from sdv_privpgd.columns.schema import Schema, check_facts
from sdv_privpgd.discovery.plan import without_domain
from sdv_privpgd.domain import FieldsAlone
from sdv_privpgd.fitting.constraining import Constraints, Limits, Unconstrained


@dataclass(frozen=True, kw_only=True)
class Description(FieldsAlone):
    """The columns of a table in SDV's words, and what follows from them.

    Attributes:
        columns: Facts on each column, in order; at least its sdtype.
        keys: Columns that are keys. They are not modelled.
        public_domain: Facts that go before those.
        constraints: What is declared of several columns together.
        num_bins: Cells of a number or date that does not name its own.
        discovers: Whether what is not declared may be found privately.
        enforce_rounding: Whether values have their decimal places.
        kept: Columns of which rows must have just what the model says.
        dtypes: Those of the table that no cell chose.
        discovered: What was found of columns, in the same words.
        shapes: How frequent the cells of differences are, as far as that was found.

    >>> columns = {"ill": {"sdtype": "boolean"}, "job": {"sdtype": "categorical"}}
    >>> description = Description(columns=columns)
    >>> description.modelled, list(description.undeclared)
    (['ill', 'job'], ['job'])
    """

    columns: Mapping[str, Mapping]
    keys: Collection[str] = ()
    public_domain: Mapping[str, Mapping] = field(default_factory=dict)
    constraints: Constraints = field(default_factory=Unconstrained)
    num_bins: int = 32
    discovers: bool = True
    enforce_rounding: bool = True
    kept: frozenset[str] = frozenset()
    dtypes: Mapping[str, Any] = field(default_factory=dict)
    discovered: Mapping[str, Mapping] = field(default_factory=dict)
    shapes: Mapping[str, Sequence[float]] = field(default_factory=dict)

    @cached_property
    def modelled(self) -> list[str]:
        """The columns that are measured; the others are generated."""
        return Schema.modelled(self.columns, self.keys, self.public_domain)

    @property
    def repeated_ids(self) -> tuple[str, ...]:
        """Columns of ids that are no keys, so that several rows may have one."""
        return repeated_ids(self.columns, self.keys)

    @cached_property
    def schema(self) -> Schema:
        """The modelled columns. Raises ``PublicDomainError`` where a domain is not known."""
        schema = Schema.from_sdv(**self.known, num_bins=self.num_bins).typed(self._written)
        return self.constraints.widened(schema, self.undeclared) if self.discovered else schema

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
        known = dict(self.declared.known)
        lacking = without_domain(Schema.undeclared(**known, num_bins=self.num_bins))
        for key in ("columns", "public_domain"):
            known[key] = {name: facts for name, facts in known[key].items() if name not in lacking}
        return Schema.from_sdv(**known, num_bins=self.num_bins)

    @cached_property
    def undeclared(self) -> dict[str, dict]:
        """What is known of each column that is to be looked into privately."""
        return self.lacking if self.discovers else {}

    @cached_property
    def lacking(self) -> dict[str, dict]:
        """What is known of each column that it would help to look into."""
        return Schema.undeclared(**self.declared.known, num_bins=self.num_bins)

    @cached_property
    def facts(self) -> dict[str, dict]:
        """What is declared of each modelled column."""
        known = self.declared.known
        columns, domain = known["columns"], known["public_domain"]
        return {name: {**columns[name], **domain.get(name, {})} for name in self.modelled}

    @cached_property
    def pairs(self) -> list[OrderedPair]:
        """The pairs of columns whose difference is modelled."""
        pairs = self.constraints.pairs()
        return chosen(pair for pair in pairs if not {pair.low, pair.high} & self.kept)

    @cached_property
    def known(self) -> dict[str, Any]:
        """What is known of the columns, declared or discovered, as ``Schema`` takes it."""
        columns = _with_dtypes(self.columns, self.dtypes)
        check_facts(self.public_domain)
        domain = self.constraints.facts(columns, self.public_domain)
        # Discovery has kept what was declared, but for a format that cannot write the dates.
        for name, facts in self.discovered.items():
            domain[name] = _rounded_out({**domain.get(name, {}), **facts})
        if not self.enforce_rounding:
            columns, domain = _without_rounding(columns), _without_rounding(domain)
        return {"columns": columns, "keys": self.keys, "public_domain": domain}

    @cached_property
    def limits(self) -> Limits:
        """What the constraints say of rows."""
        return self.constraints.limits(self.attributes)

    def require_possible(self) -> None:
        """Raises for a constraint that nothing discovered could make possible."""
        self.constraints.require_possible(self.declared_schema, self.lacking)

    @property
    def share_looked_into(self) -> Fraction:
        """What part of the columns is looked into. Truths have nothing to be found."""
        asked = sum(self.columns[name]["sdtype"] != "boolean" for name in self.modelled)
        return Fraction(len(self.undeclared), max(asked, 1))

    @property
    def _written(self) -> Mapping[str, Any]:
        """The dtypes of columns that are written in them."""
        if self.enforce_rounding:
            return self.dtypes
        return {name: dtype for name, dtype in self.dtypes.items() if not is_whole(dtype)}

    def _with_differences(self, shapes: Mapping[str, Sequence[float]] | None) -> Schema:
        named = {name for pair in self.pairs for name in (pair.low, pair.high)}
        columns = tuple(
            told_apart(column) if column.name in named else column for column in self.schema.columns
        )
        found = differences_of(self.pairs, columns, num_bins=self.num_bins, shapes=shapes)
        return Schema(columns, found)


def _rounded_out(facts: Mapping) -> dict:
    """The facts on a discovered column, its range widened to multiples of an increment."""
    if facts.get("increment") is None:
        return dict(facts)
    low, high, step = facts["range_min"], facts["range_max"], int(facts["increment"])
    ends = {"range_min": math.floor(low / step) * step, "range_max": math.ceil(high / step) * step}
    return {**facts, **ends}


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
