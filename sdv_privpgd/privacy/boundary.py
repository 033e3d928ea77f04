"""Where a private table enters the core: it is opened, encoded and given to curators, unseen.

A fit holds a ``PrivateTable`` and never what is in it. It says what is to be read, in public words
(a schema, or readings of a first look), and gets a curator, who charges for every answer.

The rows are a source's: of a frame, of files, of a database. Nothing here looks into them: the
encoders read them, cell by cell.
"""

import abc
from collections.abc import Mapping, Sequence
from itertools import chain
from typing import Any

import numpy as np

from sdv_privpgd.base.domain import Domain
from sdv_privpgd.base.progress import Progress, silent
from sdv_privpgd.columns.column import Column
from sdv_privpgd.columns.dtypes import on_unreadable
from sdv_privpgd.columns.encoding import encode_table
from sdv_privpgd.columns.facts import ColumnFacts
from sdv_privpgd.columns.links import Tree
from sdv_privpgd.columns.mismatch import mismatches, misnamed
from sdv_privpgd.columns.readings import Rarer, Readable, Reading
from sdv_privpgd.columns.schema import Schema
from sdv_privpgd.columns.visits import Ordered
from sdv_privpgd.columns.vocabulary import MODELLED
from sdv_privpgd.privacy.counting import Bound, Weights
from sdv_privpgd.privacy.curator import Curator
from sdv_privpgd.privacy.dataset import Dataset, Records
from sdv_privpgd.privacy.ledger import FitLedger
from sdv_privpgd.privacy.queries import Adjacency, Measurement
from sdv_privpgd.privacy.streams import (
    ClusterRecords,
    Encoding,
    Looking,
    MarginRecords,
    StoredRecords,
    WeighedRecords,
    Weighing,
    records_of,
    weighing_of,
)
from sdv_privpgd.privacy.value_counts import ValueCounts
from sdv_privpgd.sources import locate
from sdv_privpgd.sources.frames import FrameSource
from sdv_privpgd.sources.redaction import sealed
from sdv_privpgd.sources.source import Cluster, Opaque, Source, SourceError, in_batches, total_of


class _Table(Opaque, abc.ABC):
    """A private table that curators answer for."""

    __slots__ = ("_bound",)

    @sealed
    def known_rows(self, adjacency: Adjacency) -> int | None:
        """The number of rows where the adjacency calls it public, else ``None``."""
        return self._number() if adjacency is Adjacency.REPLACE_ONE else None

    @sealed
    def curator(
        self,
        schema: Schema,
        shared: FitLedger,
        *,
        known: Sequence[Measurement] = (),
        progress: Progress = silent,
    ) -> Curator:
        """Who answers for the table as codes of a schema, and writes into the ledger.

        ``known`` are answers about these codes that were paid for earlier.

        Raises ``ValueError`` if the ledger is of another bound on people, and reads no row then.
        """
        shared.require(self._bound)
        return Curator(self._records(schema, progress), shared, known=known)

    @abc.abstractmethod
    def _number(self) -> int:
        """The number of rows."""

    @abc.abstractmethod
    def _records(self, schema: Schema, progress: Progress) -> Records:
        """The rows as codes."""


class PrivateTable(_Table):
    """The columns of a private table. What it shows is public, but for ``codes``."""

    __slots__ = ("_source", "_weighing")

    def __init__(self, source: Source | Mapping[str, Any], *, bound: Bound = None) -> None:
        """Takes a source, or pandas' columns of one length by name.

        Of a source the ``people`` say how many rows of a person it has, of columns the ``bound``,
        as ``PrivacyLedger`` has it: each row is taken for a person's only one. A ``bound`` of
        weights is for either: of a source a column has them, and of columns each row counts as one.
        """
        if isinstance(source, Mapping):
            weighing, columns = weighing_of(bound, list(source)), dict(source)
            if weighing is not None:
                whole = bound.high if isinstance(bound, Weights) else 1
                first = next(iter(source.values()))
                columns[weighing.name] = type(first)(whole, first.index)  # of no cell
            self._source = FrameSource(columns, list(source))
        else:
            found = getattr(source, "people", None), getattr(source, "numbered", None)
            bound, name = (bound, bound.column) if isinstance(bound, Weights) else found
            weighing = None if name is None or bound is None else Weighing(name, bound)
            self._source = source
        self._bound, self._weighing = bound, weighing

    @classmethod
    @sealed
    def opened(
        cls,
        table: Any,
        columns: Mapping[str, Mapping[str, Any]],
        facts: Mapping[str, ColumnFacts],
        *,
        has_others: bool = False,
        people: Bound = None,
        visits: Ordered | None = None,
    ) -> tuple["PrivateTable", list[str]]:
        """The rows of a table, and sentences on what does not fit. Public.

        Names and dtypes are looked at, and no cell.

        Args:
            table: What ``open_source`` takes.
            columns: What is declared of each column that must be there, in SDV's words.
            facts: The same of the modelled ones, as it was read.
            has_others: Whether the table may have other columns, which are not read.
            people: The column that tells people apart, how many rows of each are read, and whether
                each row counts as 1 / the number of its person's; without it all rows are read. Or
                the column of rows' weights, which are read as numbers.
            visits: The order of the rows of these people, if each row is to be told of the one
                before.
        """
        typed = columns
        if isinstance(people, Weights) and people.column not in facts:
            typed = {**columns, people.column: {"sdtype": "numerical"}}
        source = locate.open_source(table, typed, None if people is None else people[0])
        if errors := misnamed(source.names, columns, has_others):
            return cls({}), errors
        source = locate.as_read(source, facts)
        if visits is not None:
            source = locate.of_visits(source, *visits, columns=columns)
        elif isinstance(people, Weights):
            locate.require_column(source, people.column, "weigh rows by")
        elif people is not None:
            source = locate.of_people(source, *people, columns=columns)
        read = [name for name in columns if columns[name]["sdtype"] in MODELLED]
        read += [] if people is None else [people[0]]
        if errors := on_unreadable({name: source.dtypes[name] for name in read}):
            return cls({}), errors
        return cls(source, bound=people), mismatches(source.dtypes, facts)

    @staticmethod
    @sealed
    def together(
        tables: Mapping[str, "PrivateTable"],
        tree: Tree,
        columns: Mapping[str, Sequence[str]],
        siblings: Mapping[tuple[str, bool], int],
        most: int,
        clocks: Mapping[str, Sequence[Column]],
    ) -> tuple[dict[Any, "PrivateTable"], dict[Any, "PrivateTable"], dict[Any, "PrivateTable"]]:
        """Opened tables that belong together, and pairs of siblings. No row is read yet.

        Rows are those of families, and have what is added of these (``sources/families.py``, which
        has the proof that a family counts as one row). The last ones have keys, by
        table and column, and say of each whether what leads by it is ``lost``.

        Args:
            tables: The tables, opened as if each were alone.
            tree: How they belong together.
            columns: The columns of each that are to be read.
            siblings: Of tables of which pairs of siblings are asked for, of how many of them; of
                any two (``False``), or of those that follow each other in order (``True``).
            most: The most rows of a family, or pairs, that there are of any table.
            clocks: What is public of the column by which a table is in order, if it is, and of the
                parent's where that order begins, if it is known.
        """
        own = {name: each._source for name, each in tables.items()}  # noqa: SLF001
        found = locate.of_families(own, tree, columns, siblings, most, clocks)
        rows, pairs, keys = ({n: PrivateTable(own) for n, own in e.items()} for e in found)
        return rows, pairs, keys

    @property
    def dtypes(self) -> Mapping[str, Any]:
        """The dtypes of the source's columns, which no cell decides for us. Public."""
        return self._source.dtypes

    @sealed
    def codes(self, schema: Schema, progress: Progress = silent) -> np.ndarray:
        """The table as codes, for its owner, who asked SDV for them. Private as the table is.

        Raises ``SourceError`` if the rows are not in memory.
        """
        if not isinstance(self._source, FrameSource):
            raise SourceError("Codes are given for a table in memory alone: load it with pandas.")
        return encode_table(self._source.columns, schema, progress)

    @sealed
    def first_queries(
        self,
        readings: Sequence[Reading | Readable],
        shared: FitLedger,
        progress: Progress = silent,
        rarer: Rarer | None = None,
    ) -> Curator:
        """Who answers for what is read of columns of which little is known.

        His attributes are named by ``attribute_of``, and he may ``discover`` the values of the
        columns of which a reading asks for ``categories`` or ``numbers``; ``rarer`` categories
        alone where some were found.

        Raises ``ValueError`` if the ledger is of another bound on people, and reads no row then.
        """
        shared.require(self._bound)
        tally = Looking(readings, self._weighing, rarer)
        seen = total_of(self._source, tally.names, tally, progress)
        units = 1 if self._weighing is None else self._weighing.units
        domain = Domain(tuple(tally.sizes), tuple(tally.sizes.values()))
        records = MarginRecords(domain, seen.tables, units)
        found = {name: own.counted() for name, own in seen.values.items()}
        values = ValueCounts(found, *(() if rarer is None else (rarer.most, rarer.parts)))
        return Curator(records, shared, values=values)

    def _number(self) -> int:
        return self._source.num_rows()

    def _records(self, schema: Schema, progress: Progress) -> Records:
        """The rows as codes: in memory, in a file, or where they are."""
        weighing = self._weighing
        if isinstance(self._source, FrameSource) and weighing is None:
            return Dataset(schema.domain(), self.codes(schema, progress))
        encoding = Encoding(schema, weighing)
        if isinstance(self._source, Cluster):
            records = ClusterRecords(self._source, encoding)
        else:
            batches = in_batches(self._source, encoding.read, "encode", progress)
            blocks = chain.from_iterable(map(encoding.blocks, batches))
            records = StoredRecords(encoding.domain, blocks)
        return records if weighing is None else WeighedRecords(records, schema.domain(), weighing)


class EncodedTable(_Table):
    """The codes of a private table, as its owner got them from SDV's ``preprocess``."""

    __slots__ = ("_rows", "_table")

    def __init__(self, table: Any, *, bound: Bound = None, rows: int = 1) -> None:
        """Takes a pandas DataFrame with a column for each attribute, in any order.

        ``bound`` is what its owner says of people with several rows, as ``PrivacyLedger`` has it.
        Where people are weighed each record is one of a person of so many ``rows``, and where rows
        are, each counts as one.
        """
        self._table, self._bound, self._rows = table, bound, rows

    def _number(self) -> int:
        return len(self._table)

    def _records(self, schema: Schema, progress: Progress) -> Records:
        del progress  # nothing is left to be read
        names, table = list(schema.domain().attributes), self._table
        in_order = table if list(table.columns) == names else table[names]
        return records_of(schema, in_order.to_numpy(), self._bound, self._rows)


def without_table(schema: Schema, shared: FitLedger, known: Sequence[Measurement]) -> Curator:
    """Who knows what was answered earlier of a table that is not there any more."""
    none = np.empty((0, len(schema.domain())))
    return Curator(records_of(schema, none, shared.ledger.bound), shared, known=known)
