"""The modelled columns of a table, made from facts or from SDV's words."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from typing import Any, NoReturn

from sdv_privpgd.base.arguments import check_integer
from sdv_privpgd.base.domain import Domain
from sdv_privpgd.columns.column import Column
from sdv_privpgd.columns.cuts import USUAL_BINS, column_of
from sdv_privpgd.columns.differences import Difference
from sdv_privpgd.columns.facts import ColumnFacts, without_domain
from sdv_privpgd.columns.parser import read_table
from sdv_privpgd.columns.vocabulary import needed


class PublicDomainError(ValueError):
    """Raised if a range or categories are needed that nobody declared public.

    >>> try:
    ...     Schema.from_sdv({"age": {"sdtype": "numerical"}})
    ... except PublicDomainError as error:
    ...     print(str(error)[:72])
    These columns need a public domain: 'age' (numerical: range_min and rang
    """


@dataclass(frozen=True)
class Schema:
    """The modelled columns of a table, in the order of the metadata. Public.

    Attributes:
        columns: The user's columns.
        differences: The differences of columns in order, which are attributes that no user sees.
    """

    columns: tuple[Column, ...]
    differences: tuple[Difference, ...] = ()

    @classmethod
    def of(cls, known: Mapping[str, ColumnFacts], num_bins: int = USUAL_BINS) -> "Schema":
        """The columns that have these facts.

        Those that do not name their number of codes have ``num_bins``. Raises ``PublicDomainError``
        if columns lack their range or categories.
        """
        check_integer("num_bins", num_bins)
        if lacking := without_domain(known):
            _raise_undeclared({name: known[name] for name in lacking})
        return cls(tuple(column_of(name, facts, num_bins) for name, facts in known.items()))

    @classmethod
    def from_sdv(
        cls,
        columns: Mapping[str, Mapping],
        *,
        keys: Collection[str] = (),
        public_domain: Mapping[str, Mapping] | None = None,
        num_bins: int = USUAL_BINS,
    ) -> "Schema":
        """The schema of SDV's metadata and a public domain, as ``read_table`` reads them.

        Numbers and dates may have ``cut_points``, at which all cells but the first begin. If
        ``frequencies`` of these cells are given and there are many cells, they are merged to
        ``num_bins``. Raises as ``of`` and ``read_table``.
        """
        return cls.of(read_table(columns, keys, public_domain), num_bins)

    @property
    def attributes(self) -> tuple[Column, ...]:
        """Everything that has codes: the columns, then the differences."""
        return (*self.columns, *(difference.column for difference in self.differences))

    @property
    def named(self) -> dict[str, Column]:
        """All that has codes, by name."""
        return {each.name: each for each in self.attributes}

    @property
    def read(self) -> list[str]:
        """The names of the user's columns that its codes are made of."""
        ends = [end for each in self.differences for end in (each.low, each.high)]
        return list(dict.fromkeys(column.name for column in (*self.columns, *ends)))

    def typed(self, dtypes: Mapping[str, Any]) -> "Schema":
        """The same columns, with these dtypes for the values of some of them."""
        columns = tuple(
            replace(column, dtype=dtypes[column.name]) if column.name in dtypes else column
            for column in self.columns
        )
        return replace(self, columns=columns)

    def domain(self) -> Domain:
        """The domain of the encoded table: one attribute a column, with its number of codes."""
        return Domain(
            tuple(column.name for column in self.attributes),
            tuple(column.size for column in self.attributes),
        )


def _raise_undeclared(lacking: Mapping[str, ColumnFacts]) -> NoReturn:
    named = [
        f"{name!r} ({facts.sdtype}: {' and '.join(needed(facts.sdtype))})"
        for name, facts in lacking.items()
    ]
    raise PublicDomainError(
        f"These columns need a public domain: {', '.join(named)}. Declare what is known "
        "without looking at the data with public_domain={column: {...}} (without SDV in columns), "
        "or, if the ranges in the metadata come from documentation and not from the data, pass "
        "public_metadata=True."
    )
