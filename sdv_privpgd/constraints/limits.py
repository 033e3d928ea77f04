"""What the constraints of a table say together: of columns, and of rows of a schema. Public."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations, pairwise
from typing import NamedTuple

import numpy as np

from sdv_privpgd.columns.column import Column
from sdv_privpgd.columns.cutting import column_of
from sdv_privpgd.columns.decoders import decoder_for
from sdv_privpgd.columns.differences import OrderedPair
from sdv_privpgd.columns.facts import CategoryFacts, ColumnFacts, DateFacts, NumberFacts, single
from sdv_privpgd.columns.schema import Schema
from sdv_privpgd.constraints.kinds import Constraint, Decides, InOrder
from sdv_privpgd.constraints.repair import ConstraintError, Predicate
from sdv_privpgd.constraints.rules import Rule

_IN_2000 = 946_684_800 * 10**9
"""The first of January 2000, in nanoseconds since 1970."""


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


@dataclass(frozen=True)
class Constraints:
    """What is declared of several columns together, before and after their domains are known."""

    declared: tuple[Constraint, ...] = ()

    def facts(self, columns: Mapping[str, Mapping], domain: Mapping) -> dict[str, dict]:
        """Returns the public domain, with what the constraints declare of modelled columns."""
        found = {name: dict(facts) for name, facts in domain.items()}
        sdtypes = {name: facts["sdtype"] for name, facts in columns.items()}
        for constraint in self.declared:
            constraint.require(sdtypes)
            for name in constraint.columns:
                own = found.get(name, {})
                declared = constraint.declares(name, {**columns[name], **own})
                if declared:
                    found[name] = {**own, **declared}
        return found

    def pairs(self) -> list[OrderedPair]:
        """Returns the columns that are in order, each with the next one."""
        return [
            OrderedPair(low, high, bool(each.strict_boundaries))
            for each in self._in_order
            for low, high in pairwise(each.columns)
        ]

    def widened(self, schema: Schema, undeclared: Mapping[str, ColumnFacts]) -> Schema:
        """Returns the schema with room for rows in order, where discovered ranges leave none.

        ``undeclared`` says what was known of the columns that were looked into: a declared bound
        stays.
        """
        columns = {column.name: column for column in schema.columns}
        for each in self._in_order:
            for low, high in combinations(each.columns, 2):
                for name, end in ((high, "high"), (low, "low")):
                    order = each.order(columns[low], columns[high])
                    is_free = name in undeclared and getattr(undeclared[name], end) is None
                    if is_free and not order.possible()[order.names].any():
                        columns[name] = order.widened(name)
        return Schema(tuple(columns.values()))

    def limits(self, schema: Schema) -> Limits:
        """Returns what they say of the rows of a schema."""
        said = [_limits(constraint, schema) for constraint in self.declared]
        return Limits(
            [rule for each in said for rule in each.rules],
            [check for each in said for check in each.checks],
            [refusal for each in said for refusal in each.refusals],
        )

    def require_possible(self, declared: Schema, undeclared: Mapping[str, ColumnFacts]) -> None:
        """Raises ``ConstraintError`` for what no columns with these declared facts can meet.

        ``undeclared`` says what is known of columns to look into. An order with a declared end at
        each side is possible for these or not at all; a black box must decide rows of text or of
        numbers.
        """
        known = {column.name: column for column in declared.columns}
        for each in self.declared:
            _ = _rules(each, declared)
        for each in self._in_order:
            for low, high in combinations(each.columns, 2):
                lowest = known.get(low) or _only(low, undeclared[low], "low")
                highest = known.get(high) or _only(high, undeclared[high], "high")
                if lowest is not None and highest is not None:
                    _require_some(each, [each.order(lowest, highest)], "bounds", [low, high])
        boxes = Constraints(tuple(each for each in self.declared if not each.columns))
        refusals = [
            boxes.limits(Schema((*declared.columns, *_made_up(known, undeclared, values)))).refusals
            for values in (["a", "b"], [0, 1])
        ]
        if all(refusals):
            raise ConstraintError(refusals[0][0])

    @property
    def _in_order(self) -> list[InOrder]:
        return [each for each in self.declared if isinstance(each, InOrder)]


def _limits(constraint: Constraint, schema: Schema) -> Limits:
    try:
        return Limits(_rules(constraint, schema), _checks(constraint, schema), ())
    except ConstraintError as error:
        return Limits((), (), [str(error)])


def _rules(constraint: Constraint, schema: Schema) -> Sequence[Rule]:
    """Returns what a constraint says of cells, if the schema has all of its columns.

    Raises ``ConstraintError`` for one that no row of these values can meet.
    """
    columns = {column.name: column for column in schema.columns}
    if not columns.keys() >= set(constraint.columns):
        return ()
    rules = constraint.rules(columns)
    _require_some(constraint, rules, "values", list(constraint.columns))
    return rules


def _require_some(
    constraint: Constraint, rules: Sequence[Rule], what: str, names: list[str]
) -> None:
    if not all(cells.any() for rule in rules for cells in rule.possible().values()):
        raise ConstraintError(f"{constraint!r} cannot be met by the declared {what} of {names!r}.")


def _checks(constraint: Constraint, schema: Schema) -> list[Predicate]:
    """Returns a constraint that has to decide rows, tried out on rows of the schema.

    Raises ``ConstraintError`` for one that cannot decide them.
    """
    if not (isinstance(constraint, Decides) and constraint.decides(schema)):
        return []
    tried = {
        column.name: decoder_for(column).decode(
            np.array([0, column.num_values - 1]), np.full(2, 0.5)
        )
        for column in schema.columns
    }
    try:
        _ = constraint(tried) if tried else None
    except Exception as error:
        raise ConstraintError(
            f"{constraint.name} must decide each row of the modelled columns {list(tried)!r} by "
            "itself, before any fit: a fit of its own is never called, for it would read the "
            f"private table. It raised {type(error).__name__}: {error}."
        ) from error
    return [constraint]


def _only(name: str, facts: ColumnFacts, end: str) -> Column | None:
    """Returns a column of one declared bound alone; ``None`` if that is not declared."""
    assert isinstance(facts, NumberFacts | DateFacts)
    if getattr(facts, end) is None:
        return None
    return column_of(name, replace(single(facts, end), nullable=facts.nullable is True))


def _made_up(
    known: Mapping[str, Column], undeclared: Mapping[str, ColumnFacts], values: list
) -> list[Column]:
    """Returns columns of the undeclared ones' sdtypes, with values of their own or these."""
    found = []
    for name, facts in undeclared.items():
        if name in known:
            continue
        own: ColumnFacts = facts
        if isinstance(facts, CategoryFacts):
            own = replace(facts, values=tuple(values))
        elif isinstance(facts, NumberFacts | DateFacts):
            start = _IN_2000 if isinstance(facts, DateFacts) else 0
            known_end = replace(facts, low=start) if facts.low is facts.high is None else facts
            own = single(known_end, "high" if known_end.low is None else "low")
        found.append(column_of(name, replace(own, nullable=True)))
    return found
