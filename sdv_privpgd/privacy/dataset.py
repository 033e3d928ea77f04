"""A private table of integer codes."""

import math
from collections.abc import Iterable

import numpy as np

from sdv_privpgd.domain import Clique, Domain, Grouping, code_type

_BLOCK = 1 << 16
"""Records that are counted at a time: their cells fit the cache."""


class Dataset:
    """Integer codes of a domain, one row a record. Private: ``boundary`` makes it for a curator.

    It has no public view of itself: ``repr`` names the domain alone and pickling is refused, so
    that no log, message or file can come to hold a record.

    >>> dataset = Dataset(Domain(("age", "ill"), (3, 2)), np.array([[0, 1], [2, 1], [2, 0]]))
    >>> dataset
    Dataset(Domain(attributes=('age', 'ill'), sizes=(3, 2)))
    >>> dataset.counts(("ill",))
    array([1, 2])
    """

    __slots__ = ("_codes", "domain")

    def __init__(self, domain: Domain, codes: np.ndarray) -> None:
        """Takes codes of shape (record, attribute).

        A code outside its attribute's domain goes to the nearest code inside: an error would
        depend on the private values. Codes that nobody can change are taken over without a copy
        if they have the domain's ``code_type`` and lie attribute by attribute in memory.
        """
        if codes.ndim != 2 or codes.shape[1] != len(domain):
            raise ValueError(f"Codes need one column for each of the {len(domain)} attributes.")
        self.domain = domain
        # One row an attribute: every count reads whole columns.
        columns = codes.T
        self._codes = columns if _may_be_kept(columns, domain) else _clipped(columns, domain)

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

    def counts_of(
        self, cliques: Iterable[Clique], grouping: Grouping | None = None
    ) -> list[np.ndarray]:
        """The int64 table of each clique, from one pass over the records. Private.

        With a grouping, which must fit the domain, its groups are counted in place of the codes.
        Besides the tables it needs no memory that grows with the records or the cliques.
        """
        cliques = list(cliques)
        domain = self.domain if grouping is None else grouping.domain
        shapes = [domain.shape(clique) for clique in cliques]
        axes_of = [domain.axes(clique) for clique in cliques]
        tables = [np.zeros(math.prod(shape), dtype=np.int64) for shape in shapes]
        for start in range(0, self._codes.shape[1], _BLOCK):
            block = self._codes[:, start : start + _BLOCK]
            if grouping is not None:
                columns = zip(grouping.attributes, self.domain.axes(domain.attributes), strict=True)
                block = np.stack([grouping[name][block[axis]] for name, axis in columns])
            cells = np.empty(block.shape[1], dtype=np.int64)
            leading, begun = (), np.zeros_like(cells)
            for axes, shape, table in zip(axes_of, shapes, tables, strict=True):
                if axes[:-1] != leading:
                    # Cliques of a workload come sorted: few differ in more than the last.
                    leading, begun = axes[:-1], np.zeros_like(cells)
                    for axis, size in zip(leading, shape, strict=False):
                        begun *= size
                        begun += block[axis]
                np.multiply(begun, shape[-1] if shape else 1, out=cells)
                if axes:
                    cells += block[axes[-1]]
                table += np.bincount(cells, minlength=len(table))
        return [table.reshape(shape) for table, shape in zip(tables, shapes, strict=True)]

    def lookup_sum(self, attributes: Clique, contributions: list[np.ndarray]) -> np.ndarray:
        """Each record's int64 sum of one table entry an attribute. Private, shape (record,)."""
        total = np.zeros(self._codes.shape[1], dtype=np.int64)
        for axis, table in zip(self.domain.axes(attributes), contributions, strict=True):
            total += table[self._codes[axis]]
        return total


def _may_be_kept(columns: np.ndarray, domain: Domain) -> bool:
    """Whether codes of shape (attribute, record) are as ``Dataset`` keeps them, for good."""
    holder = columns
    while isinstance(holder, np.ndarray):
        if holder.flags.writeable:
            return False  # a later write through it would change the table
        holder = holder.base
    return (
        holder is None
        and columns.dtype == code_type(domain)
        and columns.flags.c_contiguous
        and all(row.max(initial=0) < size for row, size in zip(columns, domain.sizes, strict=True))
    )


def _clipped(columns: np.ndarray, domain: Domain) -> np.ndarray:
    """An own copy of codes of shape (attribute, record), each inside its attribute's domain."""
    own = np.empty(columns.shape, dtype=code_type(domain))
    for axis, size in enumerate(domain.sizes):
        for start in range(0, columns.shape[1], _BLOCK):
            with np.errstate(invalid="ignore"):  # a warning would depend on the private values
                part = columns[axis, start : start + _BLOCK].astype(np.int64)
            own[axis, start : start + _BLOCK] = np.clip(part, 0, size - 1)
    own.setflags(write=False)
    return own
