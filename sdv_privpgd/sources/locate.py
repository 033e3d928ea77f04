"""Finds the source of what a user has, bounded to so many rows of a person, as it is to be read."""

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

import pandas as pd

from sdv_privpgd.columns.column import Column
from sdv_privpgd.columns.dtypes import is_unreadable
from sdv_privpgd.columns.facts import ColumnFacts
from sdv_privpgd.columns.links import Tree
from sdv_privpgd.columns.recoding import Recoding, recoded
from sdv_privpgd.columns.visits import Visits
from sdv_privpgd.sources.csv import CsvFiles, CsvSource, public_dtype
from sdv_privpgd.sources.families import Families, FamilySource, KeySource, SiblingSource
from sdv_privpgd.sources.files import open_files
from sdv_privpgd.sources.frames import FrameSource
from sdv_privpgd.sources.people import PeopleSource
from sdv_privpgd.sources.source import (
    Batch,
    Cluster,
    Columns,
    MappedTally,
    Orderable,
    Source,
    SourceError,
    Tally,
    Total,
)
from sdv_privpgd.sources.texts import converted
from sdv_privpgd.sources.visits import VisitsSource

KINDS = (
    "a DataFrame of pandas or Polars, an Arrow table or data set, a DuckDB relation, an Ibis "
    "table, a Spark DataFrame, or a path or pattern of Parquet or CSV files"
)
"""What is taken, in words."""


class UnknownKindError(SourceError):
    """Raised for a table of a kind that is not known."""


def open_source(
    table: Any, facts: Mapping[str, Mapping[str, Any]] | None = None, person: str | None = None
) -> Source:
    """The rows of a table, of which no cell is read yet: one of ``KINDS``, or a source.

    Texts of CSV files are read by the facts on each column, in SDV's words. The column that tells
    people apart has to be of one type in all files. Raises ``UnknownKindError`` for anything else,
    and ``SourceError`` if it or its columns cannot be read.
    """
    if isinstance(table, pd.DataFrame):
        return FrameSource.of(table)
    listed = list(table) if isinstance(table, list | tuple) else [table]
    if listed and all(isinstance(each, str | os.PathLike) for each in listed):
        return open_files(table, {} if facts is None else facts, person)
    if isinstance(table, CsvFiles):
        return CsvSource(table.paths, facts or {}, table.how)
    if opener := _opener_of(table):
        return opener(table)
    if isinstance(table, Source):
        return table
    raise UnknownKindError(f"The table must be {KINDS}, and not of type {type(table).__name__}.")


def of_people(
    source: Source, person: str, most: int, numbered: bool = False, *, columns: Iterable[str] = ()
) -> Source:
    """The same source without the rows of a person beyond so many.

    If they are to be ``numbered``, its ``numbered`` names one more column: how many rows of a row's
    person are used. A database may give rows in an order that others' rows have a part in: they are
    sorted by the person and the ``columns`` that are to be read.

    Raises ``SourceError`` if there is no such column, or if it has dates.
    """
    _require_ids(source, person)
    if isinstance(source, Cluster):
        return source.of_people(person, most, numbered=numbered)
    return PeopleSource(_settled(source, [person, *columns]), person, most, numbered=numbered)


def of_visits(
    source: Source, visits: Visits, clock: Column, *, columns: Iterable[str] = ()
) -> Source:
    """The same source with a person's rows in order, each told of the one before.

    Of rows at one time the order is that of the source, or that of ``of_people`` for a database.

    Raises ``SourceError`` if there is no column of people.
    """
    _require_ids(source, visits.person)
    return VisitsSource(_settled(source, [visits.person, *columns]), visits, clock)


def of_families(
    sources: Mapping[str, Source],
    tree: Tree,
    columns: Mapping[str, Sequence[str]],
    siblings: Mapping[tuple[str, bool], int],
    most: int,
    clocks: Mapping[str, Sequence[Column]],
) -> tuple[dict[str, Source], dict[tuple[str, bool], Source], dict[tuple[str, str], Source]]:
    """Tables that belong together, with what is added of their families, and pairs of siblings.

    The last ones have keys to be counted: those of ``tree.counted``.

    Raises ``SourceError`` if there is no such column of keys.
    """
    settled = {}
    for name, source in sources.items():
        keys = tree.keys_of(name)
        for each in keys:
            _require_ids(source, each)
        read = [*keys, *columns[name], *(each.name for each in clocks[name][:1])]
        settled[name] = _settled(source, read)
    families = Families(settled, tree, most, clocks)
    pairs = {
        (name, in_order): SiblingSource(
            families, name, tree.paired(name, columns[name]), each, in_order=in_order
        )
        for (name, in_order), each in siblings.items()
    }
    rows = {name: FamilySource(families, name) for name in tree.tables}
    keys = {each: KeySource(families, *each) for each in tree.counted}
    return {**rows}, {**pairs}, {**keys}


def require_column(source: Source, name: str, purpose: str) -> None:
    """Raises ``SourceError`` unless there is such a column."""
    if name not in source.names:
        raise SourceError(f"There is no column {name!r} to {purpose}.")


def _require_ids(source: Source, person: str) -> None:
    require_column(source, person, "tell people apart by")
    dtype = source.dtypes.get(person)
    inner = dtype.categories.dtype if isinstance(dtype, pd.CategoricalDtype) else dtype
    if getattr(inner, "kind", "O") in "mM":
        why = "moments, which are no ids: a time zone would make two of one"
    elif inner is not None and is_unreadable(inner):
        why = f"the dtype {dtype}, whose cells are no ids"
    else:
        return
    raise SourceError(
        f"The column {person!r} has {why}. Ids are text or whole numbers: convert it."
    )


def _settled(source: Source, names: Iterable[str]) -> Source:
    """The same rows in an order that no other person's rows have a part in."""
    if isinstance(source, Orderable):
        return source.ordered(list(dict.fromkeys(names)))
    return source


def _opener_of(table: Any) -> Callable[[Any], Source] | None:
    """What opens the tables of a library, which is there if somebody has one of its tables."""
    library = type(table).__module__.partition(".")[0]
    if library == "pyspark":
        from sdv_privpgd.sources.spark import SparkSource

        return SparkSource
    if library in ("pyarrow", "polars", "duckdb", "_duckdb", "ibis"):
        from sdv_privpgd.sources.arrow import OPENERS

        return OPENERS.get(library)
    return None


def as_read(source: Source, facts: Mapping[str, ColumnFacts]) -> Source:
    """The same source with missing codes and groups in the place of codes. No cell is read yet.

    Its dtypes are those of the source. Groups are written in the dtype of their codes where it can
    hold them.
    """
    rules = Recoding.of(facts)
    if not rules:
        return source
    if isinstance(source, FrameSource):
        return source.recoded(rules)
    kind = _MappedCluster if isinstance(source, Cluster) else _Mapped
    return kind(source, partial(recoded, rules=rules))


def retyped(source: Source, dtypes: Mapping[str, Any]) -> Source:
    """The same source with some columns in the dtypes that the user names."""
    found = {name: public_dtype(dtypes.get(name, own), own) for name, own in source.dtypes.items()}

    def mapped(columns: Columns) -> Columns:
        named = dtypes.keys() & columns.keys()
        return {**columns, **{n: converted(columns[n], dtypes[n]) for n in named}}

    return _Mapped(source, mapped, found)


class _Mapped:
    """Rows in batches whose columns are mapped as they come, to others of these dtypes."""

    def __init__(self, inner: Any, mapped: Callable, dtypes: Mapping | None = None) -> None:
        self.inner, self.mapped, self.names = inner, mapped, inner.names
        self.dtypes = inner.dtypes if dtypes is None else dtypes
        self.people = getattr(inner, "people", None)
        self.numbered = getattr(inner, "numbered", None)

    def num_rows(self) -> int:
        return self.inner.num_rows()

    def batches(self, names: Sequence[str]) -> Iterator[Batch]:
        for batch in self.inner.batches(names):
            yield batch._replace(columns=self.mapped(batch.columns))

    def ordered(self, by: Sequence[str]) -> Source:
        if not isinstance(self.inner, Orderable):
            return self
        return _Mapped(self.inner.ordered(by), self.mapped, self.dtypes)


class _MappedCluster(_Mapped):
    """Rows that are mapped where they are, by a tally that does it before it adds them up."""

    def total(self, names: Sequence[str], tally: Tally[Columns, Total]) -> Total:
        return self.inner.total(names, MappedTally(tally, partial(_alone, self.mapped)))

    def of_people(self, person: str, most: int, *, numbered: bool = False) -> Source:
        return _MappedCluster(self.inner.of_people(person, most, numbered=numbered), self.mapped)


def _alone(mapped: Callable[[Columns], Columns], columns: Columns) -> list[Columns]:
    return [mapped(columns)]
