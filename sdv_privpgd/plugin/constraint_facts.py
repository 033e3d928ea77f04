"""What SDV's constraints declare of columns and of their cells.

From the declared facts alone: no constraint is fitted, and none sees the private table.
"""

import math
from collections.abc import Mapping, Sequence
from itertools import combinations, pairwise

import numpy as np
from sdv import cag
from sdv.cag.base import BaseConstraint
from sdv.errors import SynthesizerInputError

from sdv_privpgd.columns.bins import BELOW_ONE
from sdv_privpgd.columns.column import Column
from sdv_privpgd.columns.encoders import encoder_for
from sdv_privpgd.columns.encoding import encode_table
from sdv_privpgd.columns.facts import ColumnFacts
from sdv_privpgd.columns.ordered import OrderedPair
from sdv_privpgd.columns.schema import Schema
from sdv_privpgd.constraints.orders import Order
from sdv_privpgd.constraints.rules import Combinations, OneHot, Rule
from sdv_privpgd.plugin.constraint_kinds import FixedCombinations, names_of


def declared(
    constraints: Sequence[BaseConstraint], described: Mapping[str, Mapping], domain: Mapping
) -> dict[str, dict]:
    """The public domain with what the constraints declare of single columns. In SDV's words."""
    found = {name: dict(facts) for name, facts in domain.items()}
    for constraint in constraints:
        for name in names_of(constraint):
            facts = found.setdefault(name, {})
            known = {**described[name], **facts}
            numerical = described[name]["sdtype"] == "numerical"
            if isinstance(constraint, cag.FixedIncrements):
                step = int(constraint.increment_value)
                facts["increment"] = math.lcm(step, int(facts.get("increment") or 1))
            elif isinstance(constraint, cag.OneHotEncoding):
                facts["range_is_nullable"] = False
                if numerical:
                    facts.setdefault("increment", 1)
                    for key, value in (("range_min", 0), ("range_max", 1)):
                        if known.get(key) is None:
                            facts[key] = value
            if known.get("range_values") is None and not numerical:
                if isinstance(constraint, cag.OneHotEncoding):
                    values = [0, 1]
                elif isinstance(constraint, FixedCombinations):
                    values = list(constraint.columns()[name].dropna().unique())
                else:
                    continue
                if described[name]["sdtype"] in ("categorical", "ordinal"):
                    facts["range_values"] = values
    return {name: facts for name, facts in found.items() if facts or name in domain}


def widened(
    constraints: Sequence[BaseConstraint], schema: Schema, undeclared: Mapping[str, ColumnFacts]
) -> Schema:
    """The schema with room for rows in order, where no row of the discovered ranges is.

    ``undeclared`` says of the columns that were looked into what was known: a declared bound stays.
    """
    columns = {column.name: column for column in schema.columns}
    for constraint in constraints:
        if not isinstance(constraint, cag.Inequality | cag.Range):
            continue
        for low, high in combinations(names_of(constraint), 2):
            for name, end in ((high, "high"), (low, "low")):
                order = Order(columns[low], columns[high], bool(constraint.strict_boundaries))
                is_free = name in undeclared and getattr(undeclared[name], end) is None
                if is_free and not order.possible()[order.names].any():
                    columns[name] = order.widened(name)
    return Schema(tuple(columns.values()))


def ordered_pairs(constraints: Sequence[BaseConstraint]) -> list[OrderedPair]:
    """The columns that constraints put in order, each with the next one."""
    return [
        OrderedPair(low, high, bool(constraint.strict_boundaries))
        for constraint in constraints
        if isinstance(constraint, cag.Inequality | cag.Range)
        for low, high in pairwise(names_of(constraint))
    ]


def rules_of(constraints: Sequence[BaseConstraint], schema: Schema) -> list[Rule]:
    """What the constraints say of the cells of the columns, if the schema has all of theirs.

    Raises ``SynthesizerInputError`` for one that no row of the declared values can meet.
    """
    columns = {column.name: column for column in schema.columns}
    found: list[Rule] = []
    for constraint in constraints:
        if not columns.keys() >= set(names_of(constraint)):
            continue
        own = [columns[name] for name in names_of(constraint)]
        rules: list[Rule] = []
        if isinstance(constraint, cag.Inequality | cag.Range):
            strict = bool(constraint.strict_boundaries)
            rules = [Order(low, high, strict) for low, high in combinations(own, 2)]
        elif isinstance(constraint, cag.OneHotEncoding):
            rules = [
                OneHot(
                    tuple(column.name for column in own),
                    tuple(_single(column, 0) for column in own),
                    tuple(_single(column, 1) for column in own),
                )
            ]
        elif isinstance(constraint, FixedCombinations):
            rules = [_combinations(constraint, own)]
        if not all(cells.any() for rule in rules for cells in rule.possible().values()):
            raise SynthesizerInputError(
                f"{constraint!r} cannot be met by the declared values of "
                f"{[column.name for column in own]!r}."
            )
        found += rules
    return found


def _single(column: Column, value: int) -> np.ndarray:
    """Which codes of a column are cells of one value alone, this one; bool."""
    codes, transformer = np.arange(column.num_values), encoder_for(column)
    first, last = (
        transformer.decode(codes, np.full(codes.shape, position)).astype(object)
        for position in (0.0, BELOW_ONE)
    )
    is_value = (first.eq(value) & last.eq(value)).to_numpy(dtype=bool)
    return np.append(is_value, np.zeros(column.size - column.num_values, dtype=bool))


def _combinations(constraint: FixedCombinations, columns: Sequence[Column]) -> Combinations:
    values = constraint.columns()
    for column in columns:
        known = encoder_for(column).holds(values[column.name])
        has_other = getattr(column.cells, "has_other", False)
        if not (known.all() or has_other):
            unknown = list(dict.fromkeys(values[column.name][~known]))
            raise SynthesizerInputError(
                f"The combinations have {unknown!r} of {column.name!r}, which its declared values "
                "do not hold. Add them to its range_values (or range_is_nullable)."
            )
    own = Schema(tuple(columns))
    return Combinations(
        own.domain().attributes, own.domain().sizes, encode_table(values, own).astype(np.int64)
    )
