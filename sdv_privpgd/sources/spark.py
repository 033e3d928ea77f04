"""A Spark DataFrame as a source: its rows are counted where they are, and do not come here.

One scan answers all questions of a round: each worker adds up the rows of a part of the table
(``DataFrame.mapInArrow``), workers add up these totals, ``WIDTH`` at a time, and the last total
comes to the driver. Any server of Spark Connect will do, and a session of classic Spark.

A task that failed or was slow may run again. Totals are rows of Spark's, keyed by the parts that
they are of, and nothing is counted on the side, so that each part is in the sum once. What Spark
itself cannot repeat, such as a table that another program writes to meanwhile, has to be stored
first.

What tells rows of other rows (families, visits) has to see them in one order, each time. For it
alone they come here, those of a range of hashes at a time, and none is kept.

A worker hands on rows of ``ROW`` alone: the number of a part, and a total, or rows. It writes to
nothing else, so that a task that Spark runs again, or twice at once, counts once: of all that it
tried Spark keeps the rows of one. Rows and totals come as Arrow's batches, as ``mapInArrow`` has
them. An exception names its kind alone, as it is: a worker's traceback goes to logs, and may quote
cells.
"""

import logging
import pickle
import re
import secrets
import zlib
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from copy import copy
from dataclasses import dataclass
from importlib.metadata import version as version_of
from itertools import groupby, pairwise
from typing import Any
from uuid import uuid4

import numpy as np
import pandas as pd
import pyarrow as pa

from sdv_privpgd.base import cached_property
from sdv_privpgd.columns.arrow_dtypes import dtypes_of_spark, zone_of_spark
from sdv_privpgd.columns.dtypes import is_whole
from sdv_privpgd.columns.scalars import quiet
from sdv_privpgd.sources.arrow import series_of
from sdv_privpgd.sources.people import person_of
from sdv_privpgd.sources.source import BLOCK, Batch, Columns, SourceError, Tally, Total, free_name

ROW = "part long, total binary"
"""The columns of all that workers hand on, in Spark's words."""

_VERSION = version_of("sdv-privpgd")

_ENDED = "A task ended with"
"""How the message of an exception of a task begins. The name of its kind follows."""

WIDTH = 16
"""Totals that one task adds up, about."""

_BLOCK = 1 << 16
"""Rows that are counted at once, at least: Spark's own batches are small."""

_BYTES = 1 << 28
"""The same in bytes, so that no column of long texts is too large for Arrow."""

_PIECE = _BYTES >> 8
"""Bytes of a row of the last total, or of rows on their way: messages have a limit."""

_CALLED = "The Spark DataFrame"

_SPELLING = "sdv_privpgd_person_of"
"""What ``person_of`` is called in Spark."""


class SparkSource:
    """The rows of a Spark DataFrame, as ``toPandas`` would show them.

    They stay on the workers, but for those of ``ordered``, which come in batches as well.
    Timestamps are read in the session's time zone, as Spark shows them, and have none themselves.
    """

    def __init__(self, frame: Any) -> None:
        """Takes a DataFrame of Spark, or of pandas on Spark. No row is read.

        Raises ``SourceError`` for anything else, for a stream, and if the workers cannot run the
        tasks: what they lack is found out before anything is spent.
        """
        # Of the class, because a column of Spark has attributes of every name.
        frame = frame.to_spark() if hasattr(type(frame), "to_spark") else frame
        if not hasattr(type(frame), "mapInArrow"):
            raise SourceError(f"Give a Spark DataFrame, and not a {type(frame).__name__}.")
        if frame.isStreaming:
            raise SourceError(
                "A stream has no end, and a fit reads its rows several times: give a Spark "
                "DataFrame of stored rows."
            )
        self._frame, self._session = frame, frame.sparkSession
        with quiet(_CALLED):
            fields = list(frame.schema.fields)
            self._zone = zone_of_spark(self._session.conf.get("spark.sql.session.timeZone"))
        self.names = [field.name for field in fields]
        self.dtypes = dtypes_of_spark(fields)
        self._require_ready()

    people: tuple[str, int, bool] | None = None  # as ``PeopleSource`` has them
    numbered: str | None = None
    _drawn: tuple[str, ...] = ()
    """Two hashes of a row, as Spark computes them, if rows are in their order."""

    def num_rows(self) -> int:
        return self._size[0]

    def ordered(self, by: Sequence[str]) -> "SparkSource":
        """The same rows in an order that a hash of these columns draws. They may come here.

        Its key comes from the operating system, and stays the same.
        """
        made, cells = copy(self), ", ".join(map(_hashed, map(_quoted, by)))
        vars(made)["_drawn"] = tuple(
            f"xxhash64('{secrets.token_hex(16)}', {cells}) AS {name}" for name in ("high", "low")
        )
        return made

    def batches(self, names: Sequence[str]) -> Iterator[Batch]:
        """Raises ``SourceError`` unless they are in order: no other row leaves the workers."""
        if not self._drawn:
            called = ", ".join(names)
            raise SourceError(f"Rows of Spark stay on its workers: {called} are not read.")
        number, read = max(self.num_rows(), 1), 0
        task = Rows(64 - max((2 * number // BLOCK).bit_length(), 1))
        with _stopped_with_us(self._session):
            with _quoting_no_worker():
                # No server is asked to keep an order but that of its own last step.
                rows = self._selected(names, *self._drawn).mapInArrow(task, ROW).orderBy("part")
                parts = groupby(rows.toLocalIterator(), lambda row: row[0])
            while True:
                with _quoting_no_worker():
                    _, held = next(parts, (None, None))
                    if held is None:
                        return
                    table = pa.concat_tables(in_table(row[1]) for row in held)
                    table = table.sort_by([("high", "ascending"), ("low", "ascending")])
                    columns = _columns_of(table, names, self._zone)
                read += table.num_rows
                yield Batch(min(read / number, 1.0), columns)

    def _selected(self, names: Sequence[str], *more: str) -> Any:
        """The columns of these names, called by their places, and more."""
        columns = [f"{_quoted(name)} AS c{place}" for place, name in enumerate(names)]
        return self._frame.selectExpr(*columns, *more)

    def total(self, names: Sequence[str], tally: Tally[Columns, Total]) -> Total:
        """A tally of all rows, with the columns of these names. Private.

        Raises ``SourceError`` if a task fails as often as Spark lets it.
        """
        rows = self._selected(names, "spark_partition_id() AS part")
        totals = rows.mapInArrow(PartTotal(tuple(names), tally, self._zone), ROW)
        groups = self._size[1]
        while (groups := -(-groups // WIDTH)) > 1:
            # By its key, a total that is made again goes where it went before.
            totals = totals.repartition(groups, "part")
            totals = totals.mapInArrow(SumOfTotals(tally, in_pieces=False), ROW)
        last = totals.repartition(1).mapInArrow(SumOfTotals(tally, in_pieces=True), ROW)
        pieces = sorted((part, bytes(piece)) for part, piece in self._collected(last))
        total = tally.zero()
        if pieces:
            # Arrays that were unpickled are equal to others, and are pickled again as other bytes.
            tally.merge(total, opened(b"".join(piece for _, piece in pieces)))
        return total

    def of_people(self, person: str, most: int, *, numbered: bool = False) -> "SparkSource":
        """The same rows without those of a person beyond so many, chosen by a hash with a key.

        The key comes from the operating system. All rows without a person count as those of one.
        Workers spell ids as ``person_of`` does, but for whole numbers, which have one spelling.
        """
        place = f"__place_{secrets.token_hex(8)}"
        hashed = ", ".join(map(_hashed, map(_quoted, self.names)))
        drawn = f"xxhash64('{secrets.token_hex(16)}', {hashed})"
        whose = f"__whose_{secrets.token_hex(8)}"
        spelled = _quoted(person)
        if not is_whole(self.dtypes.get(person)):
            self._session.udf.register(_SPELLING, _person_of, "string")
            spelled = f"{_SPELLING}({spelled})"
        window = f"PARTITION BY {whose} ORDER BY {drawn}"
        columns = ["*", f"row_number() OVER ({window}) AS {place}"]
        bounded = copy(self)
        bounded.__dict__.pop("_size", None)
        bounded.people = person, most, numbered
        if numbered:
            bounded.numbered = free_name(self.names)
            number = f"count(*) OVER (PARTITION BY {whose})"
            columns.append(f"least({number}, {most}) AS {_quoted(bounded.numbered)}")
        placed = self._frame.selectExpr("*", f"{spelled} AS {whose}").selectExpr(*columns)
        bounded.__dict__["_frame"] = placed.where(f"{place} <= {most}").drop(place, whose)
        return bounded

    @cached_property
    def _size(self) -> tuple[int, int]:
        """The number of rows, which is private, and how many parts they are in."""
        parts = self._frame.selectExpr("spark_partition_id() AS part")
        [(rows, last)] = self._collected(parts.selectExpr("count(*) AS rows", "max(part) AS last"))
        return int(rows), 1 if last is None else int(last) + 1

    def _collected(self, frame: Any) -> list[Any]:
        with _stopped_with_us(self._session), _quoting_no_worker():
            return frame.collect()

    def _require_ready(self) -> None:
        try:
            self._session.range(1).mapInArrow(Ready(), ROW).collect()
        except Exception as error:
            raise SourceError(
                f"Spark's workers cannot run sdv_privpgd ({type(error).__name__}, given above). "
                "Install the same version of sdv-privpgd, with pyarrow, in the Python that they "
                "run. Where they run another one, set it before the session begins, for workers "
                "on this machine by os.environ['PYSPARK_PYTHON'] = sys.executable."
            ) from error


def _person_of(cell: Any) -> str | None:
    """Whose row it is. Workers may have bytes as an array of them."""
    return person_of(bytes(cell) if type(cell) is bytearray else cell)


def _quoted(name: str) -> str:
    return "`{}`".format(name.replace("`", "``"))


def _hashed(cell: str) -> str:
    """What a hash is made of, for a cell: by itself it passes over missing ones.

    Servers may refuse bytes that are no text: to raise then would tell of a cell.
    """
    return f"isnull({cell}), TRY_CAST({cell} AS STRING)"


@contextmanager
def _quoting_no_worker() -> Iterator[None]:
    """Names the kind alone of an exception, here or on a worker."""
    with quiet(_CALLED), _unlogged():
        try:
            yield
        except Exception as error:
            kind = ended_with(error)
            if kind is None:
                raise
            raise SourceError(f"{_CALLED} cannot be read: a worker's {kind}.") from None


@contextmanager
def _unlogged() -> Iterator[None]:
    """PySpark and Py4J log what a query has failed of, with cells: not in here."""
    from pyspark.logger import PySparkLogger

    found = [PySparkLogger.getLogger(f"{each}QueryContextLogger") for each in ("SQL", "DataFrame")]
    found += [logging.getLogger(n) for n in list(logging.root.manager.loggerDict) if "py4j" in n]
    silent = logging.Filter("another")  # lets pass what a logger of that name says
    for each in found:
        each.addFilter(silent)
    try:
        yield
    finally:
        for each in found:
            each.removeFilter(silent)


@contextmanager
def _stopped_with_us(session: Any) -> Iterator[None]:
    """What is begun in here ends on the workers, too, when Ctrl-C or who reads it ends it here."""
    if not hasattr(session, "interruptTag"):  # before Spark 4 a classic session does it itself
        yield
        return
    tag = f"sdv-privpgd-{uuid4().hex}"
    session.addTag(tag)
    try:
        yield
    except (KeyboardInterrupt, GeneratorExit):
        session.interruptTag(tag)
        raise
    finally:
        session.removeTag(tag)


@dataclass(frozen=True)
class Ready:
    """A task that counts nothing, and succeeds where the others can run."""

    version: str = _VERSION
    """The package's, on the driver."""

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yields one row."""
        for _ in batches:
            pass
        require_version(self.version)
        yield _row(0, b"")


@dataclass(frozen=True)
class PartTotal:
    """A task that makes the total of a part of the rows. A part without rows has none."""

    names: tuple[str, ...]  # the columns that come, in order; one more has the number of the part
    tally: Tally[Columns, Any]  # what is added up
    zone: str  # the time zone in which instants are read, as pandas calls it
    version: str = _VERSION  # the package's, on the driver

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yields one row, or none."""
        with _silenced():
            require_version(self.version)
            part, total = None, self.tally.zero()
            for table in _blocks(batches):
                part = table.columns[-1][0].as_py()
                self.tally.add(total, _columns_of(table, self.names, self.zone))
            if part is not None:
                yield _row(part, closed(total))


@dataclass(frozen=True)
class SumOfTotals:
    """A task that adds up the totals that come to it, into one row, or into pieces of it.

    The numbers of the parts become those of groups of ``WIDTH`` parts; pieces are numbered from 0.
    """

    tally: Tally[Columns, Any]
    in_pieces: bool

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yields rows, or none if none come."""
        with _silenced():
            parts, total = [], self.tally.zero()
            for batch in batches:
                for part, held in zip(*batch.columns, strict=True):
                    parts.append(part.as_py())
                    self.tally.merge(total, opened(held.as_py()))
            if not parts:
                return
            held = closed(total)
            if not self.in_pieces:
                yield _row(min(parts) // WIDTH, held)
                return
            for number, start in enumerate(range(0, len(held), _PIECE)):
                yield _row(number, held[start : start + _PIECE])


@dataclass(frozen=True)
class Rows:
    """A task that hands on the rows themselves, those of a range of hashes together.

    The number of a range is that of its first bits; the order of what is handed on is no matter.
    """

    shift: int  # the other bits of a hash
    version: str = _VERSION  # the package's, on the driver

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yields rows, or none if none come."""
        with _silenced():
            require_version(self.version)
            for table in _blocks(batches):
                number = max(table.num_rows * _PIECE // max(table.nbytes, 1), 1)
                table = table.sort_by("high")
                parts = table["high"].to_numpy() >> self.shift
                firsts = [0, *(1 + np.flatnonzero(np.diff(parts))).tolist(), len(parts)]
                for first, end in pairwise(firsts):
                    for start in range(first, end, number):
                        held = table.slice(start, min(number, end - start))
                        yield _row(parts[first], in_bytes(held))


def in_bytes(table: pa.Table) -> bytes:
    """Rows on their way."""
    held = pa.BufferOutputStream()
    with pa.ipc.new_stream(held, table.schema) as stream:
        stream.write_table(table)
    return held.getvalue().to_pybytes()


def in_table(held: bytes) -> pa.Table:
    """Rows that have arrived."""
    return pa.ipc.open_stream(held).read_all()


def _columns_of(table: pa.Table, names: Sequence[str], zone: str) -> Columns:
    """The first columns of a table, by these names. Private."""
    arrays = [column.combine_chunks() for column in table.columns[: len(names)]]
    return {name: column_of(array, zone) for name, array in zip(names, arrays, strict=True)}


def column_of(array: pa.Array, zone: str) -> pd.Series:
    """A column of a batch; instants as a clock in the zone shows them. Private."""
    series = series_of(array)
    if getattr(series.dtype, "tz", None) is not None:
        return series.dt.tz_convert(zone).dt.tz_localize(None)
    return series


def closed(total: Any) -> bytes:
    """A total on its way. Counts of few rows are mostly zeros."""
    return zlib.compress(pickle.dumps(total, protocol=5), level=1)


def opened(held: bytes) -> Any:
    """A total that has arrived."""
    return pickle.loads(zlib.decompress(held))


def ended_with(error: Exception) -> str | None:
    """The kind of the exception of a task that ended another one, or the driver's wait for it."""
    found = re.search(rf"{_ENDED} (\w+)", str(error))
    return None if found is None else found[1]


def require_version(version: str) -> None:
    """Raises ``SourceError`` if a task comes from another version of the package."""
    if version != _VERSION:
        raise SourceError(
            f"Spark's workers have sdv-privpgd {_VERSION}, and the driver has {version}: "
            "install one version on all."
        )


def _blocks(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.Table]:
    """The same rows in fewer batches."""
    held: list[pa.RecordBatch] = []
    for batch in batches:
        if batch.num_rows:
            held.append(batch)
        if sum(map(len, held)) >= _BLOCK or sum(each.nbytes for each in held) >= _BYTES:
            yield pa.Table.from_batches(held)
            held = []
    if held:
        yield pa.Table.from_batches(held)


def _row(part: int, held: bytes) -> pa.RecordBatch:
    return pa.record_batch({"part": pa.array([part], pa.int64()), "total": pa.array([held])})


@contextmanager
def _silenced() -> Iterator[None]:
    try:
        yield
    except Exception as error:  # noqa: BLE001 - an encoder's or a library's
        kind = ended_with(error) or type(error).__name__
        raise SourceError(f"{_ENDED} {kind}.") from None
