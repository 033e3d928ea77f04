"""Stops a fit whose first noisy counts say that what is declared of a column is not in the table.

A misspelled codebook makes all cells ``other`` or missing. The first noisy counts of the column,
which are paid for either way, show it. What is left of the budget then stays unspent.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction

from sdv_privpgd.columns.bins import Categories
from sdv_privpgd.columns.column import Column
from sdv_privpgd.columns.schema import PublicDomainError, Schema
from sdv_privpgd.estimate.noisy_tables import (
    NoisyTable,
    estimate_total,
    margin_estimates,
    noisy_tables,
)
from sdv_privpgd.privacy.curator import Curator
from sdv_privpgd.privacy.ledger import Books, Charge, PrivacyLedger
from sdv_privpgd.report.advice import to_check
from sdv_privpgd.report.known_facts import SURE
from sdv_privpgd.words import share

_NEARLY_ALL = 0.9
"""The share of rows that surely have none of the declared values, from which on a fit stops."""

_WORTH_KEEPING = Fraction(1, 10)
"""The part of the budget that must be left. With less of it the fit ends, and then it warns."""


class MisfitError(PublicDomainError):
    """Raised in the middle of a fit if nearly no row has a declared value of a column.

    >>> isinstance(MisfitError("Column 'ward' is 'other'."), ValueError)
    True
    """


class WatchedBooks(Books):
    """Books with a look at what was answered before each new charge.

    Attributes:
        lookout: What looks. What it raises leaves the books as they are.

    >>> from sdv_privpgd.privacy.queries import Adjacency
    >>> WatchedBooks(PrivacyLedger.open(1.0, 1e-5, Adjacency.REPLACE_ONE)).lookout is None
    True
    """

    __slots__ = ("lookout",)

    def __init__(self, ledger: PrivacyLedger) -> None:
        super().__init__(ledger)
        self.lookout: Lookout | None = None

    def charge(self, charge: Charge) -> None:
        if self.lookout is not None:
            self.lookout()
        super().charge(charge)


@dataclass
class Lookout:
    """Looks at the first noisy counts of each column of which values are declared. Public.

    Called before each question, it raises ``MisfitError`` if none of the declared values seems to
    be there: post-processing of noisy answers.

    Attributes:
        curator: Whose answers it looks at.
        schema: The columns.
        declared: What is declared of them, in SDV's words.
        left: The columns of which it is not yet sure that declared values are there.

    >>> import numpy as np
    >>> from sdv_privpgd.privacy.dataset import Dataset
    >>> from sdv_privpgd.privacy.queries import Adjacency, MarginalQuery
    >>> ward = {"range_values": ["A", "B"], "other_value": "other"}
    >>> schema = Schema.from_sdv({"ward": {"sdtype": "categorical", **ward}})
    >>> books = Books(PrivacyLedger.open(9.0, 1e-5, Adjacency.REPLACE_ONE))
    >>> curator = Curator(Dataset(schema.domain(), np.full((1_000, 1), 2)), books)
    >>> lookout = Lookout(curator, schema, {"ward": ward})
    >>> lookout()  # nothing was asked yet
    >>> _ = curator.measure([MarginalQuery(("ward",))], books.ledger.remaining / 9, what="wards")
    >>> try:
    ...     lookout()
    ... except MisfitError as error:
    ...     print(str(error)[46:102])
    It found none of the values that are declared of 'ward':
    """

    curator: Curator
    schema: Schema
    declared: Mapping[str, Mapping]
    left: set[str] = field(init=False)

    def __post_init__(self) -> None:
        self.left = {
            column.name
            for column in self.schema.columns
            if _says_values(column, self.declared.get(column.name, {}))
        }

    def __call__(self) -> None:
        """Looks at what was answered since the last time."""
        if not self.left or not self.curator.measurements:
            return
        domain, ledger = self.curator.domain, self.curator.ledger
        new = [
            answer
            for answer in self.curator.measurements
            if self.left & set(getattr(answer.query, "clique", ()))
        ]
        if not new or ledger.remaining < ledger.budget * _WORTH_KEEPING:
            return
        known = margin_estimates(noisy_tables(domain, new), 1)
        total = estimate_total(domain, self.curator.measurements).value
        said = []
        for column in self.schema.columns:
            table = known.get((column.name,))
            if column.name in self.left and table is not None:
                if _are_there(column, table):
                    self.left.discard(column.name)
                    continue
                said += _misfit(column, table, total, self.declared.get(column.name, {}))
        if said:
            spent = f"Epsilon {ledger.spent():.3g} of {ledger.epsilon:g} is spent; no more was."
            raise MisfitError(
                " ".join(["The fit stopped after its first noisy counts.", *said, spent])
            )


def _says_values(column: Column, declared: Mapping) -> bool:
    """Whether it is declared which values a column has."""
    ends = all(declared.get(key) is not None for key in ("range_min", "range_max"))
    values = declared.get("range_values")
    return column.sdtype == "boolean" or ends or (values is not None and len(values) > 0)


def _has_other(column: Column) -> bool:
    return isinstance(column.cells, Categories) and column.cells.has_other


def _are_there(column: Column, table: NoisyTable) -> bool:
    """Whether some rows surely have a declared value."""
    number = column.num_values - _has_other(column)
    return table.counts[:number].sum() > SURE * math.sqrt(number * table.variance)


def _misfit(column: Column, table: NoisyTable, total: float, declared: Mapping) -> list[str]:
    """A sentence if the rows surely have other values, or none, in place of the declared ones."""
    cells, error = column.cells, SURE * math.sqrt(table.variance)
    beside = {"other": table.counts[column.num_values - 1] if _has_other(column) else 0.0}
    if column.nullable and not declared.get("range_is_nullable"):
        beside["missing"] = table.counts[-1]
    whose = max(beside, key=lambda name: beside[name])
    part = beside[whose] / max(total, 1.0)
    if part - error / max(total, 1.0) < _NEARLY_ALL:
        return []
    if whose == "other" and isinstance(cells, Categories):
        where = f"are {cells.values[-1]!r}"
        remedy = (
            "Check the codebook against how its cells are written (capitals, spaces, numbers or "
            "text)."
        )
    else:
        where = "are missing, or cannot be read as what is declared"
        remedy = f"{to_check(column)} If they are missing indeed, declare range_is_nullable=True."
    return [
        f"It found none of the values that are declared of {column.name!r}: "
        f"{share(min(part, 1.0))} of its cells, by noisy counts, {where}. "
        f"{remedy}"
    ]
