"""Private tables of integer codes."""

from collections.abc import Iterable, Iterator, Sequence

import numpy as np

from sdv_privpgd.base.domain import Clique, Domain, Grouping, code_type
from sdv_privpgd.base.linear_thresholds import Cut
from sdv_privpgd.privacy.counting import CodeTally, TableCounts, Tables
from sdv_privpgd.sources.source import Opaque

BLOCK = 1 << 16
"""Records that are counted at a time: their cells fit the cache."""


class Records(Opaque):
    """Private records of integer codes, which can be counted. ``boundary`` makes them.

    Their ``repr`` names the domain alone.
    """

    in_one_pass = False
    """Whether all questions of a round are asked at once, because a pass takes long."""

    units = 1
    """What one record counts as, at most."""

    __slots__ = ("domain",)

    def __init__(self, domain: Domain) -> None:
        self.domain = domain

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.domain!r})"

    def blocks(self) -> Iterator[np.ndarray]:
        """The codes of all records, of shape (attribute, record), if they are at hand. Private."""
        raise NotImplementedError

    def total(self, tally: CodeTally) -> Tables:
        """A tally over all records. Private."""
        found = tally.zero()
        for block in self.blocks():
            tally.add(found, block)
        return found

    def counts(self, clique: Clique) -> np.ndarray:
        """The int64 table of a clique: records per cell, one axis an attribute. Private."""
        (table,) = self.counts_of([clique])
        return table

    def counts_of(
        self,
        cliques: Iterable[Clique],
        grouping: Grouping | None = None,
        cuts: Sequence[Sequence[Cut]] = (),
    ) -> Tables:
        """The int64 table of each clique, from one pass over the records. Private.

        With a grouping, which must fit the domain, its groups are counted in place of the codes.
        The ``cuts`` of a clique add an axis each. Besides the tables it needs no memory that grows
        with the records or the cliques.
        """
        tally = TableCounts(self.domain, tuple(cliques), grouping, cuts)
        tables = self.total(tally)
        return [table.reshape(shape) for table, shape in zip(tables, tally.shapes, strict=True)]


class Dataset(Records):
    """Records in memory."""

    __slots__ = ("_codes",)

    def __init__(self, domain: Domain, codes: np.ndarray) -> None:
        """Takes codes of shape (record, attribute).

        A code outside its attribute's domain goes to the nearest code inside: an error would
        depend on the private values.
        """
        if codes.ndim != 2 or codes.shape[1] != len(domain):
            raise ValueError(f"Codes need one column for each of the {len(domain)} attributes.")
        super().__init__(domain)
        # One row an attribute: every count reads whole columns. A later write changes no copy.
        self._codes = _clipped(codes.T, domain)

    def blocks(self) -> Iterator[np.ndarray]:
        for start in range(0, self._codes.shape[1], BLOCK):
            yield self._codes[:, start : start + BLOCK]


def _clipped(columns: np.ndarray, domain: Domain) -> np.ndarray:
    """An own copy of codes of shape (attribute, record), each inside its attribute's domain."""
    own = np.empty(columns.shape, dtype=code_type(domain))
    for axis, size in enumerate(domain.sizes):
        for start in range(0, columns.shape[1], BLOCK):
            with np.errstate(invalid="ignore"):  # a warning would depend on the private values
                part = columns[axis, start : start + BLOCK].astype(np.int64)
            own[axis, start : start + BLOCK] = np.clip(part, 0, size - 1)
    own.setflags(write=False)
    return own
