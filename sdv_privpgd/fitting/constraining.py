"""What is declared of several columns together, as a fit asks it. Public."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from sdv_privpgd.columns.facts import ColumnFacts
from sdv_privpgd.columns.ordered import OrderedPair
from sdv_privpgd.columns.schema import Schema
from sdv_privpgd.constraints.repair import Predicate
from sdv_privpgd.constraints.rules import Rule


class Limits(NamedTuple):
    """What constraints say of rows.

    Attributes:
        rules: Of the cells of a few columns.
        checks: Of whole rows.
        refusals: Sentences on the constraints that no row of these columns can meet.
    """

    rules: Sequence[Rule]
    checks: Sequence[Predicate]
    refusals: Sequence[str]


class Constraints(Protocol):
    """What constraints say of columns, before and after their domains are known."""

    def facts(self, columns: Mapping[str, Mapping], domain: Mapping) -> dict[str, dict]:
        """The public domain, with what the constraints declare of single columns."""
        ...

    def pairs(self) -> list[OrderedPair]:
        """The columns that are in order."""
        ...

    def widened(self, schema: Schema, undeclared: Mapping[str, ColumnFacts]) -> Schema:
        """The schema with room for rows in order, where discovered ranges leave none."""
        ...

    def limits(self, schema: Schema) -> Limits:
        """What they say of the rows of a schema."""
        ...

    def require_possible(self, declared: Schema, undeclared: Mapping[str, ColumnFacts]) -> None:
        """Raises for a constraint that nothing discovered could make possible."""
        ...


@dataclass(frozen=True)
class Unconstrained:
    """No constraint at all."""

    def facts(self, columns: Mapping[str, Mapping], domain: Mapping) -> dict[str, dict]:
        del columns
        return {name: dict(facts) for name, facts in domain.items()}

    def pairs(self) -> list[OrderedPair]:
        return []

    def widened(self, schema: Schema, undeclared: Mapping[str, ColumnFacts]) -> Schema:
        del undeclared
        return schema

    def limits(self, schema: Schema) -> Limits:
        del schema
        return Limits((), (), ())

    def require_possible(self, declared: Schema, undeclared: Mapping[str, ColumnFacts]) -> None:
        """Nothing is asked, so nothing is impossible."""
