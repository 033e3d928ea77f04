"""A private table of integer codes."""

import math
from collections.abc import Iterable

import numpy as np

from sdv_privpgd.domain import Clique, Domain

_BLOCK = 1 << 16
"""Records that are counted at a time: their cells fit the cache."""


class Dataset:
    """Integer codes of a domain, one row a record. Private: only the curator may hold one.

    It has no public view of itself: ``repr`` names the domain alone and pickling is refused, so
    that no log, message or file can come to hold a record.
    """

    __slots__ = ("_codes", "domain")

    def __init__(self, domain: Domain, codes: np.ndarray) -> None:
        """Takes codes of shape (record, attribute).

        A code outside its attribute's domain goes to the nearest code inside: an error would
        depend on the private values.
        """
        if codes.ndim != 2 or codes.shape[1] != len(domain):
            raise ValueError(f"Codes need one column for each of the {len(domain)} attributes.")
        self.domain = domain
        # One row an attribute: every count reads whole columns.
        smallest = np.min_scalar_type(max(domain.sizes, default=1) - 1)
        self._codes = np.empty((len(domain), len(codes)), dtype=smallest)
        for axis, size in enumerate(domain.sizes):
            with np.errstate(invalid="ignore"):  # a warning would depend on the private values
                column = codes[:, axis].astype(np.int64)
            self._codes[axis] = np.clip(column, 0, size - 1, out=column)

    def __repr__(self) -> str:
        return f"Dataset({self.domain!r})"

    def __reduce__(self):
        raise TypeError("A Dataset is private and cannot be pickled or copied.")

    def num_records(self) -> int:
        """The number of records. Private under add/remove."""
        return self._codes.shape[1]

    def counts(self, clique: Clique) -> np.ndarray:
        """The int64 table of a clique: records per cell, one axis an attribute. Private."""
        (table,) = self.counts_of([clique])
        return table

    def counts_of(self, cliques: Iterable[Clique]) -> list[np.ndarray]:
        """The int64 table of each clique, from one pass over the records. Private.

        Besides the tables it needs no memory that grows with the records or the cliques.
        """
        cliques = list(cliques)
        shapes = [self.domain.shape(clique) for clique in cliques]
        axes_of = [self.domain.axes(clique) for clique in cliques]
        tables = [np.zeros(math.prod(shape), dtype=np.int64) for shape in shapes]
        for start in range(0, self._codes.shape[1], _BLOCK):
            block = self._codes[:, start : start + _BLOCK]
            for axes, shape, table in zip(axes_of, shapes, tables, strict=True):
                cells = np.zeros(block.shape[1], dtype=np.int64)
                for axis, size in zip(axes, shape, strict=True):
                    cells *= size
                    cells += block[axis]
                table += np.bincount(cells, minlength=len(table))
        return [table.reshape(shape) for table, shape in zip(tables, shapes, strict=True)]

    def lookup_sum(self, attributes: Clique, contributions: list[np.ndarray]) -> np.ndarray:
        """Each record's int64 sum of one table entry an attribute. Private, shape (record,)."""
        total = np.zeros(self._codes.shape[1], dtype=np.int64)
        for axis, table in zip(self.domain.axes(attributes), contributions, strict=True):
            total += table[self._codes[axis]]
        return total
