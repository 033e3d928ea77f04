"""Private records in batches: as codes, in a file or on a cluster, and what a first look counts.

Rows may count as less than one: those of a person together as one, or each as its weight. Counts
stay integers: a count of one is U units, and each of n rows of a person is the whole number of
units in U / n. So all rows of a person are U units together, or less. A row with a weight w of its
own, from 0 to an upper end u, is the whole number of units nearest to U w / u: U, or less. A tally
counts each row so many times.
"""

import math
import tempfile
import threading
import weakref
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from sdv_privpgd.base.domain import Clique, Domain, code_type
from sdv_privpgd.columns.encoding import encode_table, parts_of_one
from sdv_privpgd.columns.facts import WeightFacts
from sdv_privpgd.columns.readings import Rarer, Readable, Reading, attribute_of
from sdv_privpgd.columns.scalars import key_counts, quiet
from sdv_privpgd.columns.schema import Schema
from sdv_privpgd.columns.values import Value
from sdv_privpgd.privacy.counting import (
    Bound,
    CodeTally,
    TableCounts,
    Tables,
    Weights,
    units_of,
    weights_of,
)
from sdv_privpgd.privacy.dataset import BLOCK, Dataset, Records
from sdv_privpgd.privacy.value_counts import KindCounts, NumberCounts
from sdv_privpgd.sources.source import Cluster, Columns, MappedTally, SourceError, free_name


class Weighing(NamedTuple):
    """What each row counts as: whole units, of which each of its last codes has a byte."""

    name: str
    """Of the column that says it: of weights, or how many rows of a row's person are used."""
    bound: Weights | tuple[str, int, bool]

    @property
    def units(self) -> int:
        """The units of a count of one."""
        return self.bound.units if isinstance(self.bound, Weights) else units_of(self.bound[1])

    @property
    def sizes(self) -> tuple[int, ...]:
        return (256,) * -(-self.units.bit_length() // 8)

    def of_rows(self, columns: Columns) -> np.ndarray:
        """The units of rows by their private columns, int64."""
        cells = columns[self.name]
        if isinstance(self.bound, Weights):
            parts = parts_of_one(cells, self.bound.low, self.bound.high)
            return np.rint(parts * self.units).astype(np.int64)
        return np.array(weights_of(self.bound[1]))[np.asarray(cells, dtype=np.int64) - 1]

    def coded(self, units: np.ndarray) -> np.ndarray:
        """The codes of rows of so many units, of shape (attribute, record)."""
        return np.array([units >> 8 * byte & 255 for byte in range(len(self.sizes))])


class Encoding:
    """Makes codes of columns: those of a schema, and last those that say what a row counts as."""

    def __init__(self, schema: Schema, weighing: Weighing | None) -> None:
        """Takes a schema and, where rows are weighed, how."""
        self._schema, self._weighing = schema, weighing
        self.domain, self.read = schema.domain(), list(schema.read)
        if weighing is not None:
            names, sizes = self.domain.attributes, weighing.sizes
            longest = max(map(len, names), default=0)  # no attribute has so long a name
            own = ("#" * (longest + place) for place in range(1, len(sizes) + 1))
            self.domain = Domain((*names, *own), (*self.domain.sizes, *sizes))
            self.read = list(dict.fromkeys([*self.read, weighing.name]))

    def blocks(self, columns: Columns) -> list[np.ndarray]:
        """The codes of private columns, of shape (attribute, record), in blocks for the cache."""
        codes = encode_table(columns, self._schema).T
        if self._weighing is not None:
            own = self._weighing.coded(self._weighing.of_rows(columns))
            codes = np.vstack([codes, own.astype(codes.dtype)])
        return [codes[:, at : at + BLOCK] for at in range(0, codes.shape[1], BLOCK)]


class InUnits(CodeTally):
    """A tally of records in units, of which the last codes say how many each has."""

    def __init__(self, tally: CodeTally, weighing: Weighing) -> None:
        """Takes a tally and what rows count as."""
        self._tally, self._bytes = tally, 256 ** np.arange(len(weighing.sizes))

    def zero(self) -> Tables:
        # Who is asked decides, not the rows: sums of sigmoids or waves have up to 2^20 of their own
        # units a row, and those of 35 million people would wrap around in 64 bits.
        kind = np.int64 if isinstance(self._tally, TableCounts) else object
        return [table.astype(kind) for table in self._tally.zero()]

    def add(self, total: Tables, item: np.ndarray, units: np.ndarray | None = None) -> None:
        del units  # the codes have them
        split = -len(self._bytes)
        self._tally.add(total, item[:split], self._bytes @ item[split:])


class WeighedRecords(Records):
    """Records that count in units, each as its weight."""

    def __init__(self, inner: Records, domain: Domain, weighing: Weighing) -> None:
        """Takes records whose last attributes are the codes of what they count as.

        ``domain`` is that of the others.
        """
        super().__init__(domain)
        self._inner, self._weighing = inner, weighing
        self.units, self.in_one_pass = weighing.units, inner.in_one_pass

    def total(self, tally: CodeTally) -> Tables:
        return self._inner.total(InUnits(tally, self._weighing))


def weighing_of(bound: Bound, names: Sequence[str]) -> Weighing | None:
    """What rows count as by what is done about people, from a column that is none of these."""
    if bound is None or not (isinstance(bound, Weights) or bound[2]):
        return None
    return Weighing(free_name(names), bound)


def records_of(schema: Schema, codes: np.ndarray, bound: Bound, rows: int = 1) -> Records:
    """Codes, of shape (record, attribute), as records in memory. Private as they are.

    Where people are weighed each is one of a person of so many ``rows``, and where rows are, each
    counts as one.
    """
    domain, weighing = schema.domain(), weighing_of(bound, schema.read)
    if weighing is None:
        return Dataset(domain, codes)
    units = weighing.units // (1 if isinstance(bound, Weights) else rows)
    own = weighing.coded(np.full(len(codes), units)).T
    encoded = Dataset(Encoding(schema, weighing).domain, np.hstack([codes, own]))
    return WeighedRecords(encoded, domain, weighing)


_IN_MEMORY = 1 << 25
"""Bytes of codes that stay in memory."""


class StoredRecords(Records):
    """Records in a file that no other process can open, which goes with them or with the process.

    Few records stay in memory.
    """

    def __init__(self, domain: Domain, parts: Iterable[np.ndarray]) -> None:
        """Takes codes of the domain, of its ``code_type``, in blocks of shape (attribute, record).

        Raises ``SourceError`` if the folder for temporary files cannot hold them.
        """
        super().__init__(domain)
        self._lock = threading.Lock()  # threads may share a curator, and a file has one place
        self._sizes: list[int] = []
        self._file = tempfile.SpooledTemporaryFile(max_size=_IN_MEMORY)  # noqa: SIM115
        weakref.finalize(self, self._file.close)
        for part in parts:
            try:
                self._file.write(part.tobytes())
            except OSError as error:
                raise SourceError(
                    "The folder for temporary files cannot hold the codes of the table "
                    f"({error.strerror}): name another one with the environment variable TMPDIR."
                ) from None
            self._sizes.append(part.shape[1])

    def blocks(self) -> Iterator[np.ndarray]:
        kind, width, place = np.dtype(code_type(self.domain)), len(self.domain), 0
        for size in self._sizes:
            with self._lock:
                self._file.seek(place)
                held = self._file.read(size * width * kind.itemsize)
            place += len(held)
            yield np.frombuffer(held, kind).reshape(width, size)


class MarginRecords(Records):
    """Records of which single attributes alone were counted, all in one reading."""

    def __init__(self, domain: Domain, tables: Mapping[Clique, np.ndarray], units: int) -> None:
        """Takes the int64 table of each attribute, and of none: the number of records.

        All are in ``units``.
        """
        super().__init__(domain)
        self.units, self._tables = units, tables

    def total(self, tally: CodeTally) -> Tables:
        if not isinstance(tally, TableCounts) or not tally.are_single:
            raise ValueError("Of these records tables of one attribute alone were counted.")
        return [self._tables[clique].copy() for clique in tally.cliques]


class ClusterRecords(Records):
    """Records of a cluster: each question is a reading of all of them, where they are."""

    in_one_pass = True

    def __init__(self, source: Cluster, encoding: Encoding) -> None:
        super().__init__(encoding.domain)
        self._source, self._encoding = source, encoding

    def total(self, tally: CodeTally) -> Tables:
        return self._source.total(self._encoding.read, MappedTally(tally, self._encoding.blocks))


def rarer_counts(
    rarer: Rarer, columns: Columns, units: np.ndarray
) -> Iterator[tuple[str, list[tuple[Value | None, int]]]]:
    """The rarer values of private columns, by column, and the units of the rows of each, in parts.

    A row adds all of its own: in ``most`` columns one in each, and in k of them, if these are more,
    the root of ``most`` / k rounded down, so that the squares of what it adds have no larger sum.
    So no value is left to another column that has its own in the same rows. Missing cells are not
    counted.
    """
    read = {name: rarer.cells(name, columns[name]) for name in rarer.found}
    own = [each.are_rarer[each.places] for each in read.values()]
    one = rarer.parts**2
    squares = [one, *(one * min(rarer.most, k) // k for k in range(1, len(read) + 1))]
    whole = units * np.array(list(map(math.isqrt, squares)))[np.sum(own, axis=0)]
    for (name, each), are_rarer in zip(read.items(), own, strict=True):
        counts = np.bincount(each.places[are_rarer], whole[are_rarer])
        yield name, [(each.values[at], int(counts[at])) for at in np.flatnonzero(counts)]


class Seen(NamedTuple):
    """What was counted so far, in units of what rows count as. Private."""

    tables: dict[Clique, np.ndarray]  # int64 counts of each attribute's codes, and of all rows
    values: dict[str, Any]  # by column of which they were asked for: how many rows have each


class Looking:
    """The tally of a first look: what its readings ask for. It holds public facts alone."""

    def __init__(
        self,
        readings: Sequence[Reading | Readable],
        weighing: Weighing | None = None,
        rarer: Rarer | None = None,
    ) -> None:
        """Takes what is to be read and, where rows are weighed, how.

        Of columns of which all values are asked for these are counted, or ``rarer`` ones alone.
        Where weights are read each row counts as one, which is the most that a row counts as.
        """
        self.readings, self._weighing, self._rarer = tuple(readings), weighing, rarer
        own = [] if weighing is None else [weighing.name]
        self.names = list(dict.fromkeys([*(each.name for each in readings), *own]))
        self.sizes = {
            attribute_of(kind, each.name): size
            for each in self.readings
            for kind, size in each.sizes.items()
        }

    def zero(self) -> Seen:
        sizes = {(): 1} | {(name,): size for name, size in self.sizes.items()}
        return Seen(
            {clique: np.zeros(size, dtype=np.int64) for clique, size in sizes.items()},
            {
                **{each.name: KindCounts() for each in self._readings_of("categories")},
                **{each.name: NumberCounts() for each in self._readings_of("numbers")},
            },
        )

    def add(self, total: Seen, item: Columns) -> None:
        units = np.ones(len(next(iter(item.values()), ())), dtype=np.int64)
        whole = units
        if self._weighing is not None:
            units, whole = self._weighing.of_rows(item), whole * self._weighing.units
        total.tables[()] += units.sum()
        with quiet():
            named = [each.name for each in self._readings_of("categories")]
            found = ((name, key_counts(item[name], units)) for name in named)
            if self._rarer is not None:
                found = rarer_counts(self._rarer, item, units)
            for name, counts in found:
                total.values[name].add(counts)
            for each in self._readings_of("numbers"):
                total.values[each.name].add(each.finite_numbers(item[each.name]), units)
            for each in self.readings:
                own = whole if isinstance(getattr(each, "facts", None), WeightFacts) else units
                for kind, codes in zip(each.sizes, each.codes(item[each.name]), strict=True):
                    table = total.tables[attribute_of(kind, each.name),]
                    table += np.bincount(codes, own, len(table)).astype(np.int64)

    def merge(self, total: Seen, other: Seen) -> None:
        for clique, table in other.tables.items():
            total.tables[clique] += table
        for name, found in other.values.items():
            total.values[name].merge(found)

    def _readings_of(self, kind: str) -> list[Reading]:
        return [each for each in self.readings if isinstance(each, Reading) and kind in each.asks]
