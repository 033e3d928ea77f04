"""The constraints that a table can be declared to have, named as SDV's are. Public.

Each says what it declares of single columns, which rules of their cells follow, and what has to be
decided of whole rows. ``Constraints`` are those of a table, and what they say together. None is
fitted, and none sees the private table.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations, pairwise
from typing import Any, ClassVar, NamedTuple

import numpy as np
import pandas as pd

from sdv_privpgd.base.arguments import check_fields, check_integer, shown
from sdv_privpgd.columns.bins import BELOW_ONE
from sdv_privpgd.columns.column import Column
from sdv_privpgd.columns.cuts import column_of
from sdv_privpgd.columns.decoders import decoder_for
from sdv_privpgd.columns.differences import OrderedPair
from sdv_privpgd.columns.encoding import encode_table
from sdv_privpgd.columns.facts import CategoryFacts, ColumnFacts, DateFacts, NumberFacts, single
from sdv_privpgd.columns.schema import Schema
from sdv_privpgd.constraints.repair import ConstraintError, Predicate
from sdv_privpgd.constraints.rules import Combinations, Order, Rule, possible_of

_LABELS = ("categorical", "ordinal", "boolean")


class Constraint:
    """What all rows meet."""

    sdtypes: ClassVar[Sequence[Sequence[str]]] = ()
    """The columns have sdtypes of one of these groups."""

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that it names; none where it is a black box."""
        named = [given for name, given in vars(self).items() if "column_name" in name]
        several = list | tuple | pd.Index
        return tuple(each for own in named for each in (own if isinstance(own, several) else [own]))

    def declares(self, name: str, known: Mapping[str, Any]) -> dict[str, Any]:
        """Returns what it declares of one of its columns, of which these facts are known."""
        del name, known
        return {}

    def rules(self, columns: Mapping[str, Column]) -> Sequence[Rule]:
        """Returns what it says of the cells of its columns.

        Raises ``ConstraintError`` for values that they cannot have.
        """
        del columns
        return ()

    def require(self, sdtypes: Mapping[str, str]) -> None:
        """Raises ``ConstraintError`` unless it fits the sdtypes of the modelled columns."""
        names = self.columns
        if odd := {type(each).__name__ for each in names if not isinstance(each, str)}:
            raise ConstraintError(f"{type(self).__name__} takes names of columns, got {min(odd)}.")
        unknown = [name for name in names if name not in sdtypes]
        if unknown or len(set(names)) < len(names):
            raise ConstraintError(
                f"{self!r} names {unknown or list(names)!r}: it takes different columns that are "
                "modelled, and no keys, ids or personal data, which are generated. Choose from "
                f"{list(sdtypes)!r}."
            )
        own = {name: sdtypes[name] for name in names}
        if names and not any(set(own.values()) <= set(group) for group in self.sdtypes):
            groups = " or ".join(repr(list(group)) for group in self.sdtypes)
            raise ConstraintError(f"{self!r} takes columns of the sdtypes {groups}, got {own!r}.")

    def get_constraint_dict(self) -> dict[str, Any]:
        """Returns its name and its arguments, as SDV writes them to a file."""
        return {"class_name": type(self).__name__, "parameters": dict(vars(self))}


class InOrder(Constraint):
    """Columns of which each is at most the next, or below it."""

    sdtypes = (("numerical",), ("datetime",))
    strict_boundaries: bool

    def order(self, low: Column, high: Column) -> Order:
        """Returns what it says of two of its columns."""
        return Order(low, high, bool(self.strict_boundaries))

    def rules(self, columns: Mapping[str, Column]) -> Sequence[Rule]:
        own = (columns[name] for name in self.columns)
        return [self.order(low, high) for low, high in combinations(own, 2)]


@dataclass(frozen=True)
class Inequality(InOrder):
    """One column of numbers or dates is at most another, where none is missing.

    Args:
        low_column_name: The lower one.
        high_column_name: The higher one.
        strict_boundaries: Whether they are never equal.

    >>> Inequality("admitted", "discharged").columns
    ('admitted', 'discharged')
    """

    low_column_name: str
    high_column_name: str
    strict_boundaries: bool = False


@dataclass(frozen=True)
class Range(InOrder):
    """One column of numbers or dates lies between two others, where none is missing.

    Args:
        low_column_name: The lowest one.
        middle_column_name: The one between.
        high_column_name: The highest one.
        strict_boundaries: Whether they are never equal.

    >>> Range("born", "admitted", "died", strict_boundaries=False).columns
    ('born', 'admitted', 'died')
    """

    low_column_name: str
    middle_column_name: str
    high_column_name: str
    strict_boundaries: bool = True


@dataclass(frozen=True)
class FixedIncrements(Constraint):
    """A column of numbers has multiples of a whole number alone.

    Args:
        column_name: The column.
        increment_value: The whole number, at least 1.

    >>> FixedIncrements("price", 5).declares("price", {"sdtype": "numerical"})
    {'increment': 5}
    """

    sdtypes = (("numerical",),)
    column_name: str
    increment_value: int

    def __post_init__(self) -> None:
        check_fields(self, check_integer, "increment_value")

    def declares(self, name: str, known: Mapping[str, Any]) -> dict[str, Any]:
        del name
        return {"increment": math.lcm(self.increment_value, int(known.get("increment") or 1))}


@dataclass(frozen=True)
class OneHotEncoding(Constraint):
    """Exactly one of the columns is 1 (or true), and the others are 0. None is missing.

    Args:
        column_names: The columns.

    >>> OneHotEncoding(["red", "green"]).declares("red", {"sdtype": "categorical"})
    {'range_is_nullable': False, 'range_values': [0, 1]}
    """

    sdtypes = (("numerical", *_LABELS),)
    column_names: Sequence[str]

    def declares(self, name: str, known: Mapping[str, Any]) -> dict[str, Any]:
        del name
        usual = {"numerical": {"increment": 1, "range_min": 0, "range_max": 1}, "boolean": {}}.get(
            known["sdtype"], {"range_values": [0, 1]}
        )
        lacking = {key: fact for key, fact in usual.items() if known.get(key) is None}
        return {"range_is_nullable": False, **lacking}

    def rules(self, columns: Mapping[str, Column]) -> Sequence[Rule]:
        own = [columns[name] for name in self.columns]
        zero, one = (np.array([_code(column, value) for column in own]) for value in (0, 1))
        codes = np.where(np.eye(len(own), dtype=bool), one, zero)
        codes = codes[(codes >= 0).all(axis=1)]
        return [Combinations(self.columns, tuple(each.size for each in own), codes, tied=True)]


class Decides(Constraint):
    """What can be decided row by row."""

    is_valid: Callable[[pd.DataFrame], Any]
    name: str
    """The name used in messages."""

    def decides(self, schema: Schema) -> bool:
        """Whether rows of the schema have to be decided, beside the rules of their cells."""
        del schema
        return True

    def __call__(self, columns: Mapping[str, pd.Series]) -> np.ndarray:
        """Returns which rows meet it, bool."""
        valid = pd.Series(self.is_valid(pd.DataFrame(dict(columns))))
        if len(valid) != len(next(iter(columns.values()))):
            raise ValueError(f"{self.name} gave {len(valid)} answers, not one for each row")
        return valid.eq(True).to_numpy(dtype=bool, na_value=False)


@dataclass(frozen=True)
class FixedCombinations(Decides):
    """Some columns together take only the combinations of values that are declared here.

    It is for ``add_constraints`` of SDV's classes as well: SDV's own class learns the combinations
    from the table, which would not be private.

    Args:
        column_names: At least two categorical, ordinal or boolean columns.
        combinations: A DataFrame with these columns, or a list of tuples. Public: write it from
            documentation. A column whose categories are not declared has those that
            occur here.

    >>> import pandas as pd
    >>> towns = FixedCombinations(["country", "town"], [("AT", "Graz"), ("DE", "Ulm")])
    >>> towns.is_valid(pd.DataFrame({"country": ["AT", "AT"], "town": ["Graz", "Ulm"]})).tolist()
    [True, False]
    """

    sdtypes = (_LABELS,)
    name = "FixedCombinations"
    column_names: Sequence[str]
    combinations: pd.DataFrame | Sequence[Sequence]

    def __post_init__(self) -> None:
        names, given = list(self.column_names), self.combinations
        table = pd.DataFrame(given)
        if not isinstance(given, pd.DataFrame) and len(table.columns) == len(names):
            table.columns = names
        lacking = [name for name in names if name not in table.columns]
        if lacking or table.empty or len(names) < 2:
            raise ValueError(
                f"combinations must be a DataFrame with the columns {names!r}, at least two, or a "
                f"list of tuples of {len(names)} values, with at least one entry; it lacks "
                f"{lacking!r}."
            )
        own = table[names].astype(object)
        listed = own.where(own.notna(), None).drop_duplicates().to_numpy().tolist()
        object.__setattr__(self, "combinations", listed)

    def values(self) -> dict[str, pd.Series]:
        """Returns the listed values of each column, an entry for each combination."""
        listed = zip(*self.combinations, strict=True)
        pairs = zip(self.columns, listed, strict=True)
        return {name: pd.Series(own, dtype=object) for name, own in pairs}

    def declares(self, name: str, known: Mapping[str, Any]) -> dict[str, Any]:
        if known["sdtype"] == "boolean" or known.get("range_values") is not None:
            return {}
        return {"range_values": list(self.values()[name].dropna().unique())}

    def is_valid(self, table: pd.DataFrame) -> pd.Series:
        """Returns which rows of a table have a declared combination."""
        listed = set(map(tuple, self.combinations))
        own = table[list(self.columns)].astype(object)
        rows = own.where(own.notna(), None).itertuples(index=False, name=None)
        return pd.Series([row in listed for row in rows], index=own.index, dtype=bool)

    def rules(self, columns: Mapping[str, Column]) -> Sequence[Rule]:
        values, own = self.values(), Schema(tuple(columns[name] for name in self.columns))
        for column in own.columns:
            known = decoder_for(column).holds(values[column.name])
            has_other = getattr(column.cells, "has_other", False)
            if not (known.all() or has_other):
                unknown = list(dict.fromkeys(values[column.name][~known]))
                raise ConstraintError(
                    f"The combinations have {unknown!r} of {column.name!r}, which its declared "
                    "values do not hold. Add them to its range_values (or range_is_nullable)."
                )
        codes = encode_table(values, own).astype(np.int64)
        return [Combinations(own.domain().attributes, own.domain().sizes, codes)]

    def decides(self, schema: Schema) -> bool:
        merged = {column.name for column in schema.columns if column.merging is not None}
        return bool(merged & set(self.columns))  # combinations of values that share a code


@dataclass(frozen=True)
class ProgrammableConstraint(Decides):
    """A function decides of each row by itself whether it may be.

    Args:
        is_valid: It takes a DataFrame of the modelled columns and gives a truth for each row. It is
            tried out on made-up rows before a fit, and never sees the private table. No file of a
            model can hold it; SDV's ``save`` can if it lies at the top of a module.
        name: What messages call it; the name of the function if it is empty.

    >>> few = ProgrammableConstraint(lambda rows: rows["beds"] <= 2 * rows["rooms"], "few beds")
    >>> few({"beds": pd.Series([2, 9]), "rooms": pd.Series([1, 3])}).tolist()
    [True, False]
    """

    is_valid: Callable[[pd.DataFrame], Any]
    name: str = ""

    def __post_init__(self) -> None:
        if not callable(self.is_valid):
            raise ValueError(
                f"is_valid must be a function of a DataFrame, got {shown(self.is_valid)}."
            )
        own = self.name or getattr(self.is_valid, "__name__", type(self.is_valid).__name__)
        object.__setattr__(self, "name", own)


def _code(column: Column, value: int) -> int:
    """Returns the code of a column that is a cell of this value alone; -1 if there is none."""
    codes, decoder = np.arange(column.num_values), decoder_for(column)
    first, last = (
        decoder.decode(codes, np.full(codes.shape, position)).astype(object)
        for position in (0.0, BELOW_ONE)
    )
    is_value = (first.eq(value) & last.eq(value)).to_numpy(dtype=bool)
    return int(codes[is_value][0]) if is_value.any() else -1


_IN_2000 = 946_684_800 * 10**9
"""The first of January 2000, in nanoseconds since 1970."""


class Limits(NamedTuple):
    """What constraints say of the cells of a few columns, and of whole rows.

    ``refusals`` are sentences on the constraints that no row of these columns can meet.
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
        columns = schema.named
        for each in self._in_order:
            for low, high in combinations(each.columns, 2):
                for name, end in ((high, "high"), (low, "low")):
                    order = each.order(columns[low], columns[high])
                    is_free = name in undeclared and getattr(undeclared[name], end) is None
                    if is_free and not order.has_room:
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
        known = declared.named
        rules = [rule for each in self.declared for rule in _rules(each, declared)]
        possible = possible_of(rules, declared.domain())
        if impossible := [clique for clique, cells in possible.items() if not cells.any()]:
            raise ConstraintError(
                f"Constraints of {list(impossible[0])!r} contradict each other: no row meets all."
            )
        for (low, high), is_strict in _closed(self.pairs()).items():
            if low == high and is_strict:
                raise ConstraintError(
                    f"Constraints contradict each other: in their order {low!r} is below itself."
                )
            lowest = known.get(low) or _only(low, undeclared[low], "low")
            highest = known.get(high) or _only(high, undeclared[high], "high")
            if lowest and highest and not Order(lowest, highest, is_strict).has_room:
                raise ConstraintError(
                    f"The order of {[low, high]!r} cannot be met by the declared bounds."
                )
        boxes = Constraints(tuple(each for each in self.declared if not each.columns))
        refusals = [
            boxes.limits(Schema((*declared.columns, *_made_up(known, undeclared, values)))).refusals
            for values in (["a", "b"], [0, 1])
        ]
        if all(refusals):
            raise ConstraintError(refusals[0][0])

    def diagnostics(self, schema: Schema) -> list[str]:
        """Returns a sentence on black boxes, if no row that is made up of a schema meets them."""
        boxes = [each for each in self.declared if isinstance(each, Decides) and not each.columns]
        if not boxes or not schema.columns:
            return []
        rows = _rows_made_up(schema)
        if np.all([box(rows) for box in boxes], axis=0).any():
            return []
        return [
            f"None of a thousand rows that were made up meets {[box.name for box in boxes]!r}. If "
            "no row of the model does, all is spent for nothing: no rows can be sampled. Leave out "
            "columns that follow from others, and compute them from the synthetic rows."
        ]

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
    columns = schema.named
    if not columns.keys() >= set(constraint.columns):
        return ()
    rules = constraint.rules(columns)
    for rule in rules:
        cells = rule.possible().values()
        if not (rule.has_room if isinstance(rule, Order) else all(each.any() for each in cells)):
            names = list(constraint.columns)
            raise ConstraintError(
                f"{constraint!r} cannot be met by the declared values of {names!r}."
            )
    return rules


def _closed(pairs: Sequence[OrderedPair]) -> dict[tuple[str, str], bool]:
    """Returns all columns that are in order by some pairs one after the other, and if strictly."""
    found = {(each.low, each.high): each.strict for each in sorted(pairs, key=lambda p: p.strict)}
    for by in sorted({each.low for each in pairs}):
        for (low, middle), one in list(found.items()):
            for (again, high), other in list(found.items()):
                if middle == again == by:
                    found[low, high] = found.get((low, high), False) or one or other
    return found


def _checks(constraint: Constraint, schema: Schema) -> list[Predicate]:
    """Returns a constraint that has to decide rows, tried out on rows of the schema.

    Raises ``ConstraintError`` for one that cannot decide them.
    """
    if not (isinstance(constraint, Decides) and constraint.decides(schema)):
        return []
    tried = _rows_made_up(schema)
    try:
        _ = constraint(tried) if tried else None
    except Exception as error:
        raise ConstraintError(
            f"{constraint.name} must decide each row of the modelled columns {list(tried)!r} by "
            "itself, before any fit: a fit of its own is never called, for it would read the "
            f"private table. It raised {type(error).__name__}: {error}."
        ) from error
    return [constraint]


def _rows_made_up(schema: Schema) -> dict[str, pd.Series]:
    """Returns a thousand rows of a schema's values, each column by itself; the same every time."""
    generator, rows = np.random.default_rng(0), 1_000
    return {
        column.name: decoder_for(column).decode(
            generator.integers(0, column.num_values, rows), generator.random(rows)
        )
        for column in schema.columns
    }


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
