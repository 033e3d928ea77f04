"""A Spark DataFrame as a source: its rows are counted where they are, and never come here.

One scan answers all questions of a round: each worker adds up the rows of a part of the table
(``DataFrame.mapInArrow``), workers add up these totals, ``WIDTH`` at a time, and the last total
comes to the driver. Any server of Spark Connect will do, and a session of classic Spark.

A task that failed or was slow may run again. Totals are rows of Spark's, keyed by the parts that
they are of, and nothing is counted on the side, so that each part is in the sum once. What Spark
itself cannot repeat, such as a table that another program writes to meanwhile, has to be stored
first.
"""

import secrets
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from copy import copy
from functools import cached_property
from types import MappingProxyType
from typing import Any
from uuid import uuid4

import pandas as pd
import pyarrow as pa

from sdv_privpgd.columns.dtypes import is_whole
from sdv_privpgd.sources.arrow import dtypes_of
from sdv_privpgd.sources.people import person_of
from sdv_privpgd.sources.source import Batch, Columns, Numbered, SourceError, Tally, Total
from sdv_privpgd.sources.spark_tasks import (
    ROW,
    WIDTH,
    PartTotal,
    Ready,
    SumOfTotals,
    ended_with,
    opened,
)
from sdv_privpgd.sources.withheld import withheld

_CALLED = "The Spark DataFrame"

_SPELLING = "sdv_privpgd_person_of"
"""What ``person_of`` is called in Spark."""

_ARROW = MappingProxyType(
    {
        "boolean": pa.bool_(),
        "byte": pa.int8(),
        "short": pa.int16(),
        "integer": pa.int32(),
        "long": pa.int64(),
        "float": pa.float32(),
        "double": pa.float64(),
        "string": pa.string(),
        "date": pa.date32(),
        # Spark has one unit of time, so it tells nothing of a column: pandas' own.
        "timestamp": pa.timestamp("ns"),
        "timestamp_ntz": pa.timestamp("ns"),
        **dict.fromkeys(("decimal", "binary", "char", "varchar", "void", "time"), pa.binary()),
        "array": pa.list_(pa.null()),
        "map": pa.map_(pa.string(), pa.null()),
        "daytimeinterval": pa.duration("us"),
        "yearmonthinterval": pa.month_day_nano_interval(),
    }
)
"""Arrow's types by the names of Spark's, binary for what are objects to pandas. All others are
structs, or of kinds that no type of column reads either."""


class SparkSource:
    """The rows of a Spark DataFrame, as ``toPandas`` would show them. They stay on the workers.

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
        with withheld(_CALLED):
            fields = list(frame.schema.fields)
            self._zone = _zone_of(self._session.conf.get("spark.sql.session.timeZone"))
        self.names = [field.name for field in fields]
        self.dtypes = _dtypes_of(fields)
        self._require_ready()

    people: tuple[str, int, bool] | None = None
    """By which column people are told apart, how many rows of each are read, if they are weighed.
    """

    numbered: Numbered | None = None
    """Where it says how many rows of a row's person are used, if it does."""

    def num_rows(self) -> int:
        return self._size[0]

    def batches(self, names: Sequence[str]) -> Iterator[Batch]:
        """Raises ``SourceError``: no row leaves the workers."""
        raise SourceError(f"Rows of Spark stay on its workers: {', '.join(names)} are not read.")

    def total(self, names: Sequence[str], tally: Tally[Columns, Total]) -> Total:
        """A tally of all rows, with the columns of these names. Private.

        Raises ``SourceError`` if a task fails as often as Spark lets it.
        """
        columns = [f"{_quoted(name)} AS c{place}" for place, name in enumerate(names)]
        rows = self._frame.selectExpr(*columns, "spark_partition_id() AS part")
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
        hashed = ", ".join(f"CAST({_quoted(name)} AS STRING)" for name in self.names)
        drawn = f"xxhash64('{secrets.token_hex(16)}', {hashed})"
        whose = f"__whose_{secrets.token_hex(8)}"
        spelled = _quoted(person)
        if not is_whole(self.dtypes.get(person)):
            self._session.udf.register(_SPELLING, person_of, "string")
            spelled = f"{_SPELLING}({spelled})"
        window = f"PARTITION BY {whose} ORDER BY {drawn}"
        columns = ["*", f"row_number() OVER ({window}) AS {place}"]
        bounded = copy(self)
        bounded.__dict__.pop("_size", None)
        bounded.people = person, most, numbered
        if numbered:
            bounded.numbered = Numbered.among(self.names, most)
            number = f"count(*) OVER (PARTITION BY {whose})"
            columns.append(f"least({number}, {most}) AS {_quoted(bounded.numbered.name)}")
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
        with withheld(_CALLED), _stopped_with_us(self._session):
            try:
                return frame.collect()
            except Exception as error:
                kind = ended_with(error)
                if kind is None:
                    raise
                raise SourceError(f"{_CALLED} cannot be read: a worker's {kind}.") from None

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


def _dtypes_of(fields: Sequence[Any]) -> Mapping[str, Any]:
    return dtypes_of(
        pa.schema(
            [
                pa.field(
                    field.name, _ARROW.get(field.dataType.typeName(), pa.struct([])), field.nullable
                )
                for field in fields
            ]
        )
    )


def _quoted(name: str) -> str:
    return "`{}`".format(name.replace("`", "``"))


def _zone_of(zone: str) -> str:
    """A time zone of Spark's, as pandas calls it. Raises ``SourceError`` if it knows none such."""
    zone = "UTC" if zone == "Z" else zone
    try:
        pd.Timestamp(0, tz=zone)
    except Exception:  # noqa: BLE001 - of the several libraries that know time zones
        raise SourceError(
            f"The session's time zone {zone} is unknown here: set spark.sql.session.timeZone to "
            "one such as Europe/Zurich."
        ) from None
    return zone


@contextmanager
def _stopped_with_us(session: Any) -> Iterator[None]:
    """What is begun in here ends on the workers, too, when Ctrl-C ends it here."""
    if not hasattr(session, "interruptTag"):  # before Spark 4 a classic session does it itself
        yield
        return
    tag = f"sdv-privpgd-{uuid4().hex}"
    session.addTag(tag)
    try:
        yield
    except KeyboardInterrupt:
        session.interruptTag(tag)
        raise
    finally:
        session.removeTag(tag)
