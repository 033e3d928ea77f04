"""Which of SDV's constraints are taken, and the columns that each one names."""

from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd
from sdv import cag
from sdv.cag.base import BaseConstraint
from sdv.cag.programmable_constraint import ProgrammableConstraintHarness
from sdv.errors import SynthesizerInputError
from sdv.metadata import Metadata


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


def taken(constraint: Any, metadata: Metadata, modelled: Sequence[str]) -> BaseConstraint:
    """The constraint as SDV keeps it.

    Raises:
        SynthesizerInputError: For one that would have to be learned from the table, that is about
            columns which are not modelled, or that is none of SDV's.
        ConstraintNotMetError: SDV's, for one that does not fit the metadata.
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
    generated = [name for name in names_of(constraint) if name not in modelled]
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


def names_of(constraint: BaseConstraint) -> list[str]:
    """The columns of a constraint that is no black box; none of another one."""
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
