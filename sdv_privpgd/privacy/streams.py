"""Private records in batches: as codes, in a file or on a cluster, and what a first look counts.

Rows may count as less than one: those of a person together as one, or each as its weight. Counts
stay integers: a count of one is U units, and each of n rows of a person is the whole number of
units in U / n. So all rows of a person are U units together, or less. A row with a weight w of its
own, from 0 to an upper end u, is the whole number of units nearest to U w / u: U, or less. A tally
is added up apart for the rows with each binary digit of their units, and the sum of these, each
times what its digit is worth, is that of weighed rows.
"""

import tempfile
import threading
import weakref
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from sdv_privpgd.base.domain import Clique, Domain, code_type
from sdv_privpgd.columns.encoding import encode_table, parts_of_one
from sdv_privpgd.columns.facts import WeightFacts
from sdv_privpgd.columns.readings import Rarer, Readable, Reading, attribute_of
from sdv_privpgd.columns.scalars import key_counts, quiet
from sdv_privpgd.columns.schema import Schema
from sdv_privpgd.columns.values import Value
from sdv_privpgd.privacy.counting import Bound, TableCounts, Tables, Weights, units_of, weights_of
from sdv_privpgd.privacy.dataset import BLOCK, Dataset, Records
from sdv_privpgd.privacy.value_counts import KindCounts, NumberCounts
from sdv_privpgd.sources.source import Cluster, Columns, MappedTally, SourceError, Tally, free_name


class Weighing(NamedTuple):
    """What each row counts as: whole units, of which each of its last codes has eight digits."""

    name: str
    """Of the column that says it: of weights, or how many rows of a row's person are used."""
    bound: Weights | tuple[str, int, bool]

    @property
    def units(self) -> int:
        """The units of a count of one."""
        return self.bound.units if isinstance(self.bound, Weights) else units_of(self.bound[1])

    @property
    def worth(self) -> list[int]:
        """The units of each digit."""
        return [1 << digit for digit in range(self.units.bit_length())]

    @property
    def sizes(self) -> tuple[int, ...]:
        return (256,) * -(-len(self.worth) // 8)

    def of_cells(self, cells: Any) -> np.ndarray:
        """The codes of a private column's cells, of shape (attribute, record)."""
        if isinstance(self.bound, Weights):
            parts = parts_of_one(cells, self.bound.low, self.bound.high)
            return self.coded(np.rint(parts * self.units).astype(np.int64))
        each = np.array(weights_of(self.bound[1]))
        return self.coded(each[np.asarray(cells, dtype=np.int64) - 1])

    def coded(self, units: np.ndarray) -> np.ndarray:
        """The codes of rows of so many units, of shape (attribute, record)."""
        return np.array([units >> 8 * byte & 255 for byte in range(len(self.sizes))])

    def rows_with(self, codes: np.ndarray) -> Iterator[np.ndarray]:
        """The rows that have each digit, bool."""
        own = codes[-len(self.sizes) :]
        return (own[at // 8] >> at % 8 & 1 == 1 for at in range(len(self.worth)))

    def parts_of(self, columns: Columns) -> Iterator[tuple[Columns, int]]:
        """The rows of private columns that have each digit, and what it is worth."""
        codes = self.of_cells(columns[self.name])
        for worth, rows in zip(self.worth, self.rows_with(codes), strict=True):
            if rows.any():
                yield {name: cells[rows] for name, cells in columns.items()}, worth


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
            own = self._weighing.of_cells(columns[self._weighing.name])
            codes = np.vstack([codes, own.astype(codes.dtype)])
        return [codes[:, at : at + BLOCK] for at in range(0, codes.shape[1], BLOCK)]


class ByDigit:
    """A tally for each digit of what rows count as, which are the last codes."""

    def __init__(self, tally: Tally[Any, Any], weighing: Weighing) -> None:
        """Takes a tally and what rows count as."""
        self._tally, self._weighing = tally, weighing

    def zero(self) -> list[Any]:
        return [self._tally.zero() for _ in self._weighing.worth]

    def add(self, total: list[Any], item: Any) -> None:
        others = item[: -len(self._weighing.sizes)]
        for own, rows in zip(total, self._weighing.rows_with(item), strict=True):
            self._tally.add(own, others[:, rows])

    def merge(self, total: list[Any], other: list[Any]) -> None:
        for own, others in zip(total, other, strict=True):
            self._tally.merge(own, others)


class WeighedRecords(Records):
    """Records that count in units, each as its weight."""

    def __init__(self, inner: Records, domain: Domain, weighing: Weighing) -> None:
        """Takes records whose last attributes are the codes of what they count as.

        ``domain`` is that of the others.
        """
        super().__init__(domain)
        self._inner, self._weighing = inner, weighing
        self.units, self.in_one_pass = weighing.units, inner.in_one_pass

    def total(self, tally: Tally[np.ndarray, Tables]) -> Tables:
        parts: Any = self._inner.total(ByDigit(tally, self._weighing))
        # Who is asked decides, not the rows: sums of sigmoids or waves have up to 2^20 of their own
        # units a row, and those of 35 million people would wrap around in 64 bits.
        kind, worth = np.int64 if isinstance(tally, TableCounts) else object, self._weighing.worth
        return [
            np.asarray(sum(each.astype(kind) * n for each, n in zip(own, worth, strict=True)))
            for own in zip(*parts, strict=True)
        ]


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

    def total(self, tally: Tally[np.ndarray, Tables]) -> Tables:
        found, kind, width = tally.zero(), np.dtype(code_type(self.domain)), len(self.domain)
        with self._lock:
            self._file.seek(0)
            for size in self._sizes:
                held = self._file.read(size * width * kind.itemsize)
                tally.add(found, np.frombuffer(held, kind).reshape(width, size))
        return found


class MarginRecords(Records):
    """Records of which single attributes alone were counted, all in one reading."""

    def __init__(self, domain: Domain, tables: Mapping[Clique, np.ndarray], units: int) -> None:
        """Takes the int64 table of each attribute, and of none: the number of records.

        All are in ``units``.
        """
        super().__init__(domain)
        self.units, self._tables = units, tables

    def total(self, tally: Tally[np.ndarray, Tables]) -> Tables:
        if not isinstance(tally, TableCounts) or not tally.are_single:
            raise ValueError("Of these records tables of one attribute alone were counted.")
        return [self._tables[clique].copy() for clique in tally.cliques]


class ClusterRecords(Records):
    """Records of a cluster: each question is a reading of all of them, where they are."""

    in_one_pass = True

    def __init__(self, source: Cluster, encoding: Encoding) -> None:
        super().__init__(encoding.domain)
        self._source, self._encoding = source, encoding

    def total(self, tally: Tally[np.ndarray, Tables]) -> Tables:
        return self._source.total(self._encoding.read, MappedTally(tally, self._encoding.blocks))


def rarer_counts(
    rarer: Rarer, columns: Columns
) -> Iterator[tuple[str, list[tuple[Value | None, int]]]]:
    """The rarer values of private columns, by column, and how many rows are counted for each.

    A row adds one in ``most`` columns at most. Where it has more, they follow each other, from one
    on that a hash of its own cells draws. So what it adds follows from its cells alone. Missing
    cells are not counted.
    """
    read = {name: rarer.cells(name, columns[name]) for name in rarer.found}
    own = [each.are_rarer[each.places] for each in read.values()]
    drawn = np.sum([each.hashes[each.places] for each in read.values()], axis=0)
    number = np.maximum(np.sum(own, axis=0), 1)
    rank = (drawn % number.astype(np.uint64)).astype(np.int64)
    for (name, each), are_rarer in zip(read.items(), own, strict=True):
        counted = each.places[are_rarer & (rank % number < rarer.most)]
        counts = np.bincount(counted)
        rank += are_rarer
        yield name, [(each.values[at], int(counts[at])) for at in np.flatnonzero(counts)]


@dataclass
class Seen:
    """What was counted so far, in units of what rows count as. Private."""

    tables: dict[Clique, np.ndarray]  # int64 counts of each attribute's codes, and of all rows
    values: dict[str, KindCounts]  # the values of the columns of which all were asked for
    numbers: dict[str, NumberCounts]  # those of the columns of which numbers were asked for


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
        self._unweighed = [
            e for e in readings if isinstance(getattr(e, "facts", None), WeightFacts)
        ]
        self.names = list(dict.fromkeys(each.name for each in readings))
        if weighing is not None:
            self.names = list(dict.fromkeys([*self.names, weighing.name]))
        self.sizes = {
            attribute_of(kind, each.name): size
            for each in self.readings
            for kind, size in each.sizes.items()
        }

    def zero(self) -> Seen:
        sizes = {(): 1} | {(name,): size for name, size in self.sizes.items()}
        return Seen(
            tables={clique: np.zeros(size, dtype=np.int64) for clique, size in sizes.items()},
            values={each.name: KindCounts() for each in self._asking("categories")},
            numbers={each.name: NumberCounts() for each in self._asking("numbers")},
        )

    def add(self, total: Seen, item: Columns) -> None:
        parts = [(item, 1)] if self._weighing is None else self._weighing.parts_of(item)
        for columns, worth in parts:
            self._add(total, columns, worth)
        if self._weighing is not None:
            self._count(total, self._unweighed, item, self._weighing.units)

    def _add(self, total: Seen, item: Columns, worth: int) -> None:
        total.tables[()] += worth * len(next(iter(item.values()), ()))
        with quiet():
            every = ((name, key_counts(item[name])) for name in total.values)
            for name, found in every if self._rarer is None else rarer_counts(self._rarer, item):
                total.values[name].add(found, worth)
            for each in self._asking("numbers"):
                total.numbers[each.name].add(each.finite_numbers(item[each.name]), worth)
        self._count(total, [e for e in self.readings if e not in self._unweighed], item, worth)

    def _count(
        self, total: Seen, readings: Iterable[Reading | Readable], item: Columns, worth: int
    ) -> None:
        """Adds what a column's cells are read as, where each row is worth the same."""
        with quiet():
            for each in readings:
                for kind, codes in zip(each.sizes, each.codes(item[each.name]), strict=True):
                    table = total.tables[attribute_of(kind, each.name),]
                    table += worth * np.bincount(codes, minlength=len(table))

    def merge(self, total: Seen, other: Seen) -> None:
        for clique, table in other.tables.items():
            total.tables[clique] += table
        for name, found in other.values.items():
            total.values[name].merge(found)
        for name, found in other.numbers.items():
            total.numbers[name].merge(found)

    def _asking(self, kind: str) -> list[Reading]:
        return [each for each in self.readings if isinstance(each, Reading) and kind in each.asks]
