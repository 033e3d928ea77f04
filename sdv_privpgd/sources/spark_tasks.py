"""What Spark's workers run: totals of the parts of a table, and totals of these.

A worker hands on rows of ``ROW`` alone: the number of a part, and a total. It writes to nothing
else, so that a task that Spark runs again, or twice at once, counts once: of all that it tried
Spark keeps the rows of one.

Rows and totals come as Arrow's batches, as ``DataFrame.mapInArrow`` has them. An exception names
its kind alone, as it is: a worker's traceback goes to logs, and may quote cells.
"""

import pickle
import re
import zlib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.metadata import version as version_of
from typing import Any

import pandas as pd
import pyarrow as pa

from sdv_privpgd.sources.arrow import series_of
from sdv_privpgd.sources.source import Columns, SourceError, Tally

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
    """A task that makes the total of a part of the rows. A part without rows has none.

    Attributes:
        names: The columns that come, in order; one more has the number of the part.
        tally: What is added up.
        zone: The time zone in which instants are read, as pandas calls it.
        version: The package's, on the driver.
    """

    names: tuple[str, ...]
    tally: Tally[Columns, Any]
    zone: str
    version: str = _VERSION

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yields one row, or none."""
        with _silenced():
            require_version(self.version)
            part, total = None, self.tally.zero()
            for table in _blocks(batches):
                *columns, parts = (column.combine_chunks() for column in table.columns)
                part = parts[0].as_py()
                self.tally.add(
                    total,
                    {
                        name: column_of(array, self.zone)
                        for name, array in zip(self.names, columns, strict=True)
                    },
                )
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
        piece = 1 << 20  # bytes of a row of the last total: messages have a limit
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
            for number, start in enumerate(range(0, len(held), piece)):
                yield _row(number, held[start : start + piece])


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
