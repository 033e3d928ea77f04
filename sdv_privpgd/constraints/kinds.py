"""The constraints that a table can be declared to have, named as SDV's are. Public.

Each says what it declares of single columns, which rules of their cells follow, and what has to be
decided of whole rows. None is fitted, and none sees the private table.
"""

import abc
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any, ClassVar

import numpy as np
import pandas as pd

from sdv_privpgd.columns.bins import BELOW_ONE
from sdv_privpgd.columns.column import Column
from sdv_privpgd.columns.decoders import decoder_for
from sdv_privpgd.columns.encoding import encode_table
from sdv_privpgd.columns.schema import Schema
from sdv_privpgd.constraints.repair import ConstraintError
from sdv_privpgd.constraints.rules import Combinations, OneHot, Order, Rule

_LABELS = ("categorical", "ordinal", "boolean")


class Constraint(abc.ABC):
    """What all rows meet."""

    sdtypes: ClassVar[Sequence[Sequence[str]]] = ()
    """The columns have sdtypes of one of these groups."""

    @property
    @abc.abstractmethod
    def columns(self) -> tuple[str, ...]:
        """The columns that it names; none where it is a black box."""

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

    @property
    def columns(self) -> tuple[str, ...]:
        return (self.low_column_name, self.high_column_name)


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

    @property
    def columns(self) -> tuple[str, ...]:
        return (self.low_column_name, self.middle_column_name, self.high_column_name)


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
        if not isinstance(self.increment_value, int) or self.increment_value < 1:
            raise ValueError(
                f"increment_value must be a whole number from 1 on, got {self.increment_value!r}."
            )

    @property
    def columns(self) -> tuple[str, ...]:
        return (self.column_name,)

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

    @property
    def columns(self) -> tuple[str, ...]:
        return tuple(self.column_names)

    def declares(self, name: str, known: Mapping[str, Any]) -> dict[str, Any]:
        del name
        usual = {"numerical": {"increment": 1, "range_min": 0, "range_max": 1}, "boolean": {}}.get(
            known["sdtype"], {"range_values": [0, 1]}
        )
        lacking = {key: fact for key, fact in usual.items() if known.get(key) is None}
        return {"range_is_nullable": False, **lacking}

    def rules(self, columns: Mapping[str, Column]) -> Sequence[Rule]:
        own = [columns[name] for name in self.columns]
        zero, one = (tuple(_single(column, value) for column in own) for value in (0, 1))
        return [OneHot(self.columns, zero, one)]


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

    @property
    def columns(self) -> tuple[str, ...]:
        return tuple(self.column_names)

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
            raise ValueError(f"is_valid must be a function of a DataFrame, got {self.is_valid!r}.")
        own = self.name or getattr(self.is_valid, "__name__", type(self.is_valid).__name__)
        object.__setattr__(self, "name", own)

    @property
    def columns(self) -> tuple[str, ...]:
        return ()


def _single(column: Column, value: int) -> np.ndarray:
    """Returns which codes of a column are cells of one value alone, this one; bool."""
    codes, decoder = np.arange(column.num_values), decoder_for(column)
    first, last = (
        decoder.decode(codes, np.full(codes.shape, position)).astype(object)
        for position in (0.0, BELOW_ONE)
    )
    is_value = (first.eq(value) & last.eq(value)).to_numpy(dtype=bool)
    return np.append(is_value, np.zeros(column.size - column.num_values, dtype=bool))
