"""Rows of a person that count as one together: each as 1 / the number of those that are used.

Counts stay integers: a count of one is U units, and each of n rows of a person is the whole number
of units in U / n. So all rows of a person are U units together, or less. A tally is added up for
the people of each n apart, and the sum of these, each times its weight, is that of weighed rows.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from sdv_privpgd.base.domain import Domain
from sdv_privpgd.columns.encoding import encode_table
from sdv_privpgd.columns.schema import Schema
from sdv_privpgd.privacy.counting import (
    CliqueCounts,
    CutCounts,
    RecordNumber,
    Tables,
    units_of,
    weights_of,
)
from sdv_privpgd.privacy.dataset import Dataset, Records
from sdv_privpgd.sources.source import Columns, Numbered, Tally


class Encoding:
    """Makes codes of columns: those of a schema, and last the number of the person's rows."""

    def __init__(self, schema: Schema, numbered: Numbered | None) -> None:
        """Takes a schema and, where rows are weighed, the column of their numbers."""
        self._schema, self._numbered = schema, numbered
        self.domain, self.read = schema.domain(), list(schema.read)
        if numbered is not None:
            names, last = self.domain.attributes, "number"
            while last in names:
                last += "'"
            self.domain = Domain((*names, last), (*self.domain.sizes, numbered.most))
            self.read.append(numbered.name)

    def codes(self, columns: Columns) -> np.ndarray:
        """The codes of private columns, of shape (attribute, record)."""
        codes = encode_table(columns, self._schema).T
        if self._numbered is None:
            return codes
        numbers = np.asarray(columns[self._numbered.name], dtype=np.int64)
        return np.vstack([codes, (numbers - 1)[None].astype(codes.dtype)])


class ByNumber:
    """A tally for each number of rows that a person may have, which is the last code."""

    def __init__(self, tally: Tally[Any, Any], most: int) -> None:
        """Takes a tally and the largest number of rows."""
        self._tally, self._most = tally, most

    def zero(self) -> list[Any]:
        return [self._tally.zero() for _ in range(self._most)]

    def add(self, total: list[Any], item: Any) -> None:
        for number, own in enumerate(total):
            self._tally.add(own, item[:-1, item[-1] == number])

    def merge(self, total: list[Any], other: list[Any]) -> None:
        for own, others in zip(total, other, strict=True):
            self._tally.merge(own, others)


class ColumnsByNumber(ByNumber):
    """The same over columns, one of which has the numbers."""

    def __init__(self, tally: Tally[Any, Any], numbered: Numbered) -> None:
        """Takes a tally and the column of the numbers."""
        super().__init__(tally, numbered.most)
        self._name = numbered.name

    def add(self, total: list[Any], item: Any) -> None:
        numbers = np.asarray(item[self._name], dtype=np.int64)
        columns: Mapping[str, Any] = {n: cells for n, cells in item.items() if n != self._name}
        for number, own in enumerate(total, start=1):
            rows = numbers == number
            if rows.any():
                self._tally.add(own, {name: cells[rows] for name, cells in columns.items()})


class WeighedRecords(Records):
    """Records that count in units, each as its weight."""

    def __init__(self, inner: Records, domain: Domain) -> None:
        """Takes records whose last attribute is the number, less one, of their person's rows.

        ``domain`` is that of the others.
        """
        super().__init__(domain)
        self._inner, self._most = inner, inner.domain.sizes[-1]
        self.units, self.in_one_pass = units_of(self._most), inner.in_one_pass

    def total(self, tally: Tally[np.ndarray, Tables]) -> Tables:
        parts: Any = self._inner.total(ByNumber(tally, self._most))
        # Who is asked decides, not the rows: sums of sigmoids or waves have up to 2^20 of their own
        # units a row, and those of 35 million people would wrap around in 64 bits.
        are_counts = isinstance(tally, CliqueCounts | CutCounts | RecordNumber)
        return weighed(parts, weights_of(self._most), "int64" if are_counts else "object")


def records_of(schema: Schema, codes: np.ndarray, most: int | None, rows: int = 1) -> Records:
    """Codes, of shape (record, attribute), as records in memory. Private as they are.

    Where people are weighed, of ``most`` rows at most, each is one of a person of so many ``rows``.
    """
    domain = schema.domain()
    if most is None:
        return Dataset(domain, codes)
    whole = Encoding(schema, Numbered.among(schema.read, most)).domain
    numbers = np.full((len(codes), 1), rows - 1)
    return WeighedRecords(Dataset(whole, np.hstack([codes, numbers])), domain)


def weighed(parts: Sequence[Tables], weights: Sequence[int], kind: str) -> Tables:
    """The sum of totals, each times its weight: of int64, or of Python's integers as objects."""
    return [
        np.sum(
            [table.astype(kind) * weight for table, weight in zip(tables, weights, strict=True)],
            axis=0,
        )
        for tables in zip(*parts, strict=True)
    ]
