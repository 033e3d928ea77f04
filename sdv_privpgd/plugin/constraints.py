"""SDV's constraints as a fit asks for them, and what they say of whole rows.

A constraint is never fitted and never sees the private table. Those that can be decided row by row
from what the user declared are enforced on synthetic rows; the others are refused.
``constraint_kinds`` has the kinds, and ``constraint_facts`` what they say of columns and cells.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Any

import numpy as np
import pandas as pd
from sdv import cag
from sdv.cag.base import BaseConstraint
from sdv.cag.programmable_constraint import ProgrammableConstraintHarness
from sdv.errors import SynthesizerInputError
from sdv.metadata import Metadata

from sdv_privpgd.columns.column import Column
from sdv_privpgd.columns.cutting import column_of
from sdv_privpgd.columns.encoders import encoder_for
from sdv_privpgd.columns.facts import CategoryFacts, ColumnFacts, DateFacts, NumberFacts, single
from sdv_privpgd.columns.ordered import OrderedPair
from sdv_privpgd.columns.schema import Schema
from sdv_privpgd.constraints.orders import Order
from sdv_privpgd.fitting.constraining import Limits
from sdv_privpgd.plugin.constraint_facts import declared, ordered_pairs, rules_of, widened
from sdv_privpgd.plugin.constraint_kinds import FixedCombinations, names_of

_IN_2000 = 946_684_800 * 10**9
"""The first of January 2000, in nanoseconds since 1970."""


@dataclass(frozen=True)
class SdvConstraints:
    """SDV's constraints, as a fit asks what they say (``fitting.constraining.Constraints``)."""

    constraints: tuple[BaseConstraint, ...] = ()

    def facts(self, columns: Mapping[str, Mapping], domain: Mapping) -> dict[str, dict]:
        return declared(self.constraints, columns, domain)

    def pairs(self) -> list[OrderedPair]:
        return ordered_pairs(self.constraints)

    def widened(self, schema: Schema, undeclared: Mapping[str, ColumnFacts]) -> Schema:
        return widened(self.constraints, schema, undeclared)

    def limits(self, schema: Schema) -> Limits:
        met, refusals = met_by(self.constraints, schema)
        return Limits(rules_of(met, schema), checks_of(met, schema), refusals)

    def require_possible(self, declared: Schema, undeclared: Mapping[str, ColumnFacts]) -> None:
        rules_of(self.constraints, declared)
        require_possible(self.constraints, declared, undeclared)


@dataclass(frozen=True)
class RowCheck:
    """What a constraint says of rows, under the name of its class."""

    name: str
    is_valid: Callable[[pd.DataFrame], Any]

    def __call__(self, columns: Mapping[str, pd.Series]) -> np.ndarray:
        """Which rows are valid, bool."""
        valid = pd.Series(self.is_valid(pd.DataFrame(dict(columns))))
        if len(valid) != len(next(iter(columns.values()))):
            raise ValueError(f"is_valid gave {len(valid)} answers, not one a row")
        return valid.eq(True).to_numpy(dtype=bool, na_value=False)


def met_by(
    constraints: Sequence[BaseConstraint], schema: Schema
) -> tuple[list[BaseConstraint], list[str]]:
    """The constraints that rows of the schema can meet, and of each other one why not. Public."""
    reasons = [_refusal(constraint, schema) for constraint in constraints]
    pairs = list(zip(constraints, reasons, strict=True))
    met = [constraint for constraint, reason in pairs if reason is None]
    return met, [reason for reason in reasons if reason is not None]


def _refusal(constraint: BaseConstraint, schema: Schema) -> str | None:
    try:
        rules_of([constraint], schema)
        checks_of([constraint], schema)
    except SynthesizerInputError as error:
        return str(error)
    return None


def require_possible(
    constraints: Sequence[BaseConstraint], declared: Schema, undeclared: Mapping[str, ColumnFacts]
) -> None:
    """Raises ``SynthesizerInputError`` for what no columns with these declared facts can meet.

    ``undeclared`` says what is known of columns to look into. An order with a declared end at each
    side is possible for these or not at all; a black box must decide rows of text or of numbers.
    """
    known = {column.name: column for column in declared.columns}
    for constraint in constraints:
        if isinstance(constraint, cag.Inequality | cag.Range):
            for low, high in combinations(names_of(constraint), 2):
                lowest = known.get(low) or _only(low, undeclared[low], "low")
                highest = known.get(high) or _only(high, undeclared[high], "high")
                if lowest is not None and highest is not None:
                    _require_order(constraint, lowest, highest)
    boxes = [each for each in constraints if isinstance(each, ProgrammableConstraintHarness)]
    refusals = [
        met_by(boxes, Schema((*declared.columns, *_made_up(known, undeclared, values))))[1]
        for values in (["a", "b"], [0, 1])
        if boxes
    ]
    if refusals and all(refusals):
        raise SynthesizerInputError(refusals[0][0])


def _require_order(constraint: cag.Inequality | cag.Range, low: Column, high: Column) -> None:
    order = Order(low, high, bool(constraint.strict_boundaries))
    if not order.possible()[order.names].any():
        raise SynthesizerInputError(
            f"{constraint!r} cannot be met by the declared bounds of {list(order.names)!r}."
        )


def _only(name: str, facts: ColumnFacts, end: str) -> Column | None:
    """A column with one declared bound as its only value; ``None`` if that is not declared."""
    assert isinstance(facts, NumberFacts | DateFacts)
    if getattr(facts, end) is None:
        return None
    return column_of(name, replace(single(facts, end), nullable=facts.nullable is True))


def _made_up(
    known: Mapping[str, Column], undeclared: Mapping[str, ColumnFacts], values: list
) -> list[Column]:
    """Columns of the undeclared ones' sdtypes, which hold some values of their own or these."""
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


def checks_of(constraints: Sequence[BaseConstraint], schema: Schema) -> list[RowCheck]:
    """What has to be decided of rows, not of cells; tried out on rows of the schema.

    That is what programmable constraints say, and combinations of values that share a code.
    Raises ``SynthesizerInputError`` for one that cannot decide them.
    """
    merged = {column.name for column in schema.columns if column.merging is not None}
    found = []
    for constraint in constraints:
        if isinstance(constraint, ProgrammableConstraintHarness):
            own = constraint.programmable_constraint
            found.append(RowCheck(type(own).__name__, own.is_valid))
        elif isinstance(constraint, FixedCombinations) and merged & set(constraint.column_names):
            found.append(RowCheck(type(constraint).__name__, constraint.are_listed))
    if not found or not schema.columns:
        return found
    tried = {
        column.name: encoder_for(column).decode(
            np.array([0, column.num_values - 1]), np.full(2, 0.5)
        )
        for column in schema.columns
    }
    for check in found:
        _try_out(check, tried)
    return found


def _try_out(check: RowCheck, rows: Mapping[str, pd.Series]) -> None:
    try:
        check(rows)
    except Exception as error:
        raise SynthesizerInputError(
            f"{check.name}.is_valid must decide each row of the modelled columns {list(rows)!r} by "
            "itself, before any fit: its fit is never called, for it would read the private table. "
            f"It raised {type(error).__name__}: {error}."
        ) from error


def valid_rows(constraint: BaseConstraint, table: pd.DataFrame, metadata: Metadata) -> np.ndarray:
    """Which rows of a table meet a constraint, bool. For synthetic rows."""
    if isinstance(constraint, cag.Range):
        # Unfitted, SDV's compares dates that are written as text letter by letter.
        low, middle, high = names_of(constraint)
        parts = [
            cag.Inequality(*pair, strict_boundaries=constraint.strict_boundaries)
            for pair in ((low, middle), (middle, high), (low, high))
        ]
        return np.all([valid_rows(part, table, metadata) for part in parts], axis=0)
    if isinstance(constraint, cag.ProgrammableConstraint):
        constraint = ProgrammableConstraintHarness(constraint)
    return pd.Series(constraint.is_valid(table, metadata)).to_numpy(dtype=bool)
