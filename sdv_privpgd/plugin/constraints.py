"""SDV's constraints, taken apart: what each declares of columns, of cells and of rows.

A constraint is never fitted and never sees the private table. Those that can be decided row by row
from what the user declared are enforced on synthetic rows; the others are refused.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from itertools import combinations, pairwise
from typing import Any

import numpy as np
import pandas as pd
from sdv import cag
from sdv.cag.base import BaseConstraint
from sdv.cag.programmable_constraint import ProgrammableConstraintHarness
from sdv.errors import SynthesizerInputError
from sdv.metadata import Metadata

from sdv_privpgd.columns.bins import BELOW_ONE
from sdv_privpgd.columns.column import Column
from sdv_privpgd.columns.encoders import encode_table, encoder_for
from sdv_privpgd.columns.ordered import OrderedPair
from sdv_privpgd.columns.parsing import describe
from sdv_privpgd.columns.schema import Schema
from sdv_privpgd.constraints.orders import Order
from sdv_privpgd.constraints.rules import Combinations, OneHot, Rule
from sdv_privpgd.fitting.constraining import Limits


class FixedCombinations(cag.FixedCombinations):
    """Some columns together take only the combinations of values that are declared here.

    SDV's own class learns them from the table, which would not be private.

    Args:
        column_names: At least two categorical, ordinal or boolean columns.
        combinations: A DataFrame with these columns, or a list of one tuple a combination. Public:
            write it from documentation. A column whose categories are not declared has those that
            occur here.
        table_name: As in SDV.

    >>> import pandas as pd
    >>> towns = FixedCombinations(["country", "town"], [("AT", "Graz"), ("DE", "Ulm")])
    >>> towns.are_listed(pd.DataFrame({"country": ["AT", "AT"], "town": ["Graz", "Ulm"]})).tolist()
    [True, False]
    """

    def __init__(
        self,
        column_names: list[str],
        combinations: pd.DataFrame | Sequence[Sequence],
        table_name: str | None = None,
    ) -> None:
        super().__init__(column_names, table_name)
        table = pd.DataFrame(combinations)
        if not isinstance(combinations, pd.DataFrame) and len(table.columns) == len(column_names):
            table.columns = column_names
        lacking = [name for name in column_names if name not in table.columns]
        if lacking or table.empty:
            raise ValueError(
                f"combinations must be a DataFrame with the columns {column_names!r} or a list of "
                f"tuples of {len(column_names)} values, with at least one entry; it lacks "
                f"{lacking!r}."
            )
        own = table[column_names].astype(object)
        self.combinations = own.where(own.notna(), None).drop_duplicates().to_numpy().tolist()

    def columns(self) -> dict[str, pd.Series]:
        """The listed values of each column, one entry a combination."""
        values = zip(*self.combinations, strict=True)
        return {
            name: pd.Series(own, dtype=object)
            for name, own in zip(self.column_names, values, strict=True)
        }

    def are_listed(self, table: pd.DataFrame) -> pd.Series:
        """Which rows of a table have a declared combination."""
        listed = set(map(tuple, self.combinations))
        own = table[self.column_names].astype(object)
        rows = own.where(own.notna(), None).itertuples(index=False, name=None)
        return pd.Series([row in listed for row in rows], index=own.index, dtype=bool)

    def _is_valid(self, data: Mapping[str, pd.DataFrame], metadata: Metadata) -> dict:
        valid = {name: pd.Series(True, index=table.index) for name, table in data.items()}
        name = str(self._get_single_table_name(metadata))
        return {**valid, name: self.are_listed(data[name])}


@dataclass(frozen=True)
class RowCheck:
    """What a constraint says of rows, under the name of its class.

    >>> check = RowCheck("Adults", lambda rows: rows["age"] >= 18)
    >>> check({"age": pd.Series([17, 18])})
    array([False,  True])
    """

    name: str
    is_valid: Callable[[pd.DataFrame], Any]

    def __call__(self, columns: Mapping[str, pd.Series]) -> np.ndarray:
        """Which rows are valid, bool."""
        valid = pd.Series(self.is_valid(pd.DataFrame(dict(columns))))
        if len(valid) != len(next(iter(columns.values()))):
            raise ValueError(f"is_valid gave {len(valid)} answers, not one a row")
        return valid.eq(True).to_numpy(dtype=bool, na_value=False)


def taken(constraint: Any, metadata: Metadata, modelled: Sequence[str]) -> BaseConstraint:
    """The constraint as SDV keeps it.

    Raises:
        SynthesizerInputError: For one that would have to be learned from the table, that is about
            columns which are not modelled, or that is none of SDV's.
        ConstraintNotMetError: SDV's, for one that does not fit the metadata.

    >>> days = {"came": {"sdtype": "numerical"}, "left": {"sdtype": "numerical"}}
    >>> metadata = Metadata.load_from_dict({"tables": {"stays": {"columns": days}}})
    >>> type(taken(cag.Inequality("came", "left"), metadata, ["came", "left"])).__name__
    'Inequality'
    """
    if isinstance(constraint, cag.ProgrammableConstraint):
        constraint = ProgrammableConstraintHarness(constraint)
    elif type(constraint) is cag.FixedCombinations:
        raise SynthesizerInputError(
            "sdv.cag.FixedCombinations learns the combinations from the private table, outside the "
            "privacy budget. Declare them with sdv_privpgd.FixedCombinations(column_names, "
            "combinations)."
        )
    elif not isinstance(constraint, _KINDS):
        raise SynthesizerInputError(
            f"{type(constraint).__name__} is not supported: it may have to learn from the private "
            f"table. Supported are {[kind.__name__ for kind in _KINDS]} and subclasses of "
            "SingleTableProgrammableConstraint."
        )
    constraint.validate(metadata=metadata)
    generated = [name for name in _names(constraint) if name not in modelled]
    if generated:
        raise SynthesizerInputError(
            f"{type(constraint).__name__} is about {generated!r}, which are not modelled but "
            "generated: they are keys, ids or personal data."
        )
    return constraint


_KINDS = (
    cag.Inequality,
    cag.Range,
    cag.FixedIncrements,
    cag.OneHotEncoding,
    FixedCombinations,
)


def _names(constraint: BaseConstraint) -> list[str]:
    """The columns of a constraint that is no black box."""
    if isinstance(constraint, cag.Inequality):
        return [constraint._low_column_name, constraint._high_column_name]
    if isinstance(constraint, cag.Range):
        return [
            constraint._low_column_name,
            constraint._middle_column_name,
            constraint._high_column_name,
        ]
    if isinstance(constraint, cag.FixedIncrements):
        return [constraint.column_name]
    if isinstance(constraint, cag.OneHotEncoding):
        return constraint._column_names
    return constraint.column_names if isinstance(constraint, FixedCombinations) else []


@dataclass(frozen=True)
class SdvConstraints:
    """SDV's constraints, as a fit asks what they say (``fitting.constraining.Constraints``).

    >>> (pair,) = SdvConstraints((cag.Inequality("came", "left"),)).pairs()
    >>> pair.low, pair.high
    ('came', 'left')
    """

    constraints: tuple[BaseConstraint, ...] = ()

    def facts(self, columns: Mapping[str, Mapping], domain: Mapping) -> dict[str, dict]:
        return declared(self.constraints, columns, domain)

    def pairs(self) -> list[OrderedPair]:
        return ordered_pairs(self.constraints)

    def widened(self, schema: Schema, undeclared: Mapping[str, Mapping]) -> Schema:
        return widened(self.constraints, schema, undeclared)

    def limits(self, schema: Schema) -> Limits:
        met, refusals = met_by(self.constraints, schema)
        return Limits(rules_of(met, schema), checks_of(met, schema), refusals)

    def require_possible(self, declared: Schema, undeclared: Mapping[str, Mapping]) -> None:
        rules_of(self.constraints, declared)
        require_possible(self.constraints, declared, undeclared)


def declared(
    constraints: Sequence[BaseConstraint], described: Mapping[str, Mapping], domain: Mapping
) -> dict[str, dict]:
    """The public domain with what the constraints declare of single columns. In SDV's words.

    >>> described = {"a": {"sdtype": "numerical"}, "b": {"sdtype": "numerical"}}
    >>> declared([cag.OneHotEncoding(["a", "b"])], described, {})["a"]
    {'range_is_nullable': False, 'increment': 1, 'range_min': 0, 'range_max': 1}
    """
    found = {name: dict(facts) for name, facts in domain.items()}
    for constraint in constraints:
        for name in _names(constraint):
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
    constraints: Sequence[BaseConstraint], schema: Schema, undeclared: Mapping[str, Mapping]
) -> Schema:
    """The schema with room for rows in order, where no row of the discovered ranges is.

    ``undeclared`` says of the columns that were looked into what was known: a declared bound stays.

    >>> day = {"sdtype": "numerical", "decimal_places": 0, "range_is_nullable": False}
    >>> came, left = ({**day, "range_min": low, "range_max": low + 9} for low in (20, 0))
    >>> schema = Schema.from_sdv({"came": came, "left": left})
    >>> wider = widened([cag.Inequality("came", "left")], schema, {"came": {}, "left": {}})
    >>> met_by([cag.Inequality("came", "left")], wider)[1]  # no refusals any more
    []
    """
    columns = {column.name: column for column in schema.columns}
    for constraint in constraints:
        if not isinstance(constraint, cag.Inequality | cag.Range):
            continue
        for low, high in combinations(_names(constraint), 2):
            for name, bound in ((high, "range_max"), (low, "range_min")):
                order = Order(columns[low], columns[high], bool(constraint.strict_boundaries))
                is_free = name in undeclared and undeclared[name].get(bound) is None
                if is_free and not order.possible()[order.names].any():
                    columns[name] = order.widened(name)
    return Schema(tuple(columns.values()))


def ordered_pairs(constraints: Sequence[BaseConstraint]) -> list[OrderedPair]:
    """The columns that constraints put in order, each with the next one.

    >>> [(pair.low, pair.high) for pair in ordered_pairs([cag.Range("came", "moved", "left")])]
    [('came', 'moved'), ('moved', 'left')]
    """
    return [
        OrderedPair(low, high, bool(constraint.strict_boundaries))
        for constraint in constraints
        if isinstance(constraint, cag.Inequality | cag.Range)
        for low, high in pairwise(_names(constraint))
    ]


def rules_of(constraints: Sequence[BaseConstraint], schema: Schema) -> list[Rule]:
    """What the constraints say of the cells of the columns, if the schema has all of theirs.

    Raises ``SynthesizerInputError`` for one that no row of the declared values can meet.

    >>> day = {"sdtype": "numerical", "range_min": 0, "range_max": 9, "decimal_places": 0}
    >>> schema = Schema.from_sdv({"came": day, "left": day})
    >>> [type(rule).__name__ for rule in rules_of([cag.Inequality("came", "left")], schema)]
    ['Order']
    """
    columns = {column.name: column for column in schema.columns}
    found: list[Rule] = []
    for constraint in constraints:
        if not columns.keys() >= set(_names(constraint)):
            continue
        own = [columns[name] for name in _names(constraint)]
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


def met_by(
    constraints: Sequence[BaseConstraint], schema: Schema
) -> tuple[list[BaseConstraint], list[str]]:
    """The constraints that rows of the schema can meet, and of each other one why not. Public.

    >>> day = {"sdtype": "numerical", "decimal_places": 0, "range_is_nullable": False}
    >>> came, left = ({**day, "range_min": low, "range_max": low + 9} for low in (20, 0))
    >>> schema = Schema.from_sdv({"came": came, "left": left})
    >>> met, refusals = met_by([cag.Inequality("came", "left")], schema)
    >>> met, len(refusals)
    ([], 1)
    """
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
    constraints: Sequence[BaseConstraint], declared: Schema, undeclared: Mapping[str, Mapping]
) -> None:
    """Raises ``SynthesizerInputError`` for what no columns with these declared facts can meet.

    ``undeclared`` says what is known of columns to look into. An order with a declared end at each
    side is possible for these or not at all; a black box must decide rows of text or of numbers.

    >>> day = {"sdtype": "numerical", "range_min": 0, "range_max": 9, "decimal_places": 0}
    >>> schema = Schema.from_sdv({"came": day, "left": day})
    >>> require_possible([cag.Inequality("came", "left")], schema, {})  # some rows can meet it
    """
    known = {column.name: column for column in declared.columns}
    for constraint in constraints:
        if isinstance(constraint, cag.Inequality | cag.Range):
            for low, high in combinations(_names(constraint), 2):
                lowest = known.get(low) or _only(low, undeclared[low], "range_min")
                highest = known.get(high) or _only(high, undeclared[high], "range_max")
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


def _only(name: str, facts: Mapping, bound: str) -> Column | None:
    """A column with one declared bound as its only value; ``None`` if that is not declared."""
    if facts.get(bound) is None:
        return None
    ends = dict.fromkeys(("range_min", "range_max"), facts[bound])
    nullable = facts.get("range_is_nullable") is True
    return describe(name, {**facts, **ends, "range_is_nullable": nullable})


def _made_up(
    known: Mapping[str, Column], undeclared: Mapping[str, Mapping], values: list
) -> list[Column]:
    """Columns of the undeclared ones' sdtypes, which hold some values of their own or these."""
    found = []
    for name, facts in undeclared.items():
        if name in known:
            continue
        own: dict[str, Any] = {"range_values": values}
        if facts["sdtype"] in ("numerical", "datetime"):
            start = 0 if facts["sdtype"] == "numerical" else "2000-01-01"
            if facts.get("datetime_format") is not None:
                start = date(2000, 1, 1).strftime(facts["datetime_format"])
            ends = [facts[key] for key in ("range_min", "range_max") if facts.get(key) is not None]
            own = dict.fromkeys(("range_min", "range_max"), (ends or [start])[0])
        found.append(describe(name, {**facts, **own, "range_is_nullable": True}))
    return found


def checks_of(constraints: Sequence[BaseConstraint], schema: Schema) -> list[RowCheck]:
    """What has to be decided of rows, not of cells; tried out on rows of the schema.

    That is what programmable constraints say, and combinations of values that share a code.
    Raises ``SynthesizerInputError`` for one that cannot decide them.

    >>> day = {"sdtype": "numerical", "range_min": 0, "range_max": 9, "decimal_places": 0}
    >>> schema = Schema.from_sdv({"came": day, "left": day})
    >>> checks_of([cag.Inequality("came", "left")], schema)  # cells decide all of it
    []
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
    """Which rows of a table meet a constraint, bool. For synthetic rows.

    >>> days = {"came": {"sdtype": "numerical"}, "left": {"sdtype": "numerical"}}
    >>> metadata = Metadata.load_from_dict({"tables": {"stays": {"columns": days}}})
    >>> rows = pd.DataFrame({"came": [1, 5], "left": [3, 4]})
    >>> valid_rows(cag.Inequality("came", "left", table_name="stays"), rows, metadata)
    array([ True, False])
    """
    if isinstance(constraint, cag.Range):
        # Unfitted, SDV's compares dates that are written as text letter by letter.
        low, middle, high = _names(constraint)
        parts = [
            cag.Inequality(*pair, strict_boundaries=constraint.strict_boundaries)
            for pair in ((low, middle), (middle, high), (low, high))
        ]
        return np.all([valid_rows(part, table, metadata) for part in parts], axis=0)
    if isinstance(constraint, cag.ProgrammableConstraint):
        constraint = ProgrammableConstraintHarness(constraint)
    return pd.Series(constraint.is_valid(table, metadata)).to_numpy(dtype=bool)


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
