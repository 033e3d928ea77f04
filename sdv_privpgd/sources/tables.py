"""Tables of other libraries as sources: Arrow, Polars, DuckDB and Ibis.

Each hands out Arrow's batches. What is asked of it is public: names of columns and the number of
rows; a database filters nothing and counts no cell.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from types import MappingProxyType
from typing import Any

import pyarrow as pa
import pyarrow.dataset

from sdv_privpgd.sources.arrow import BLOCK, ArrowSource
from sdv_privpgd.sources.source import Source, SourceError
from sdv_privpgd.sources.withheld import withheld


def of_arrow(table: Any) -> Source:
    """The source of an Arrow table or data set."""
    if isinstance(table, pa.RecordBatch):
        table = pa.Table.from_batches([table])
    if isinstance(table, pa.Table):
        called = "The Arrow table"
        return ArrowSource(
            table.schema, lambda names: table.select(names).to_batches(), lambda: len(table), called
        )
    if isinstance(table, pyarrow.dataset.Dataset):
        return of_dataset(table, "The Arrow data set")
    raise SourceError(
        f"A {type(table).__name__} can be read once, and a fit reads its rows several times: give "
        "an Arrow table or data set."
    )


def of_dataset(dataset: pyarrow.dataset.Dataset, called: str) -> Source:
    """The source of a data set of Arrow."""

    def scan(names: list[str]) -> Iterator[pa.RecordBatch]:
        # Arrow reads ahead as fast as it can, up to a gigabyte of its own.
        return dataset.to_batches(
            columns=names, batch_size=BLOCK, batch_readahead=2, fragment_readahead=1
        )

    return ArrowSource(dataset.schema, scan, dataset.count_rows, called)


def of_polars(table: Any) -> Source:
    """The source of a DataFrame of Polars, or of a lazy one, which is collected in batches.

    Raises ``SourceError`` for anything else that is Polars'.
    """
    import polars

    if isinstance(table, polars.DataFrame):

        def slices(names: list[str]) -> Iterator[pa.RecordBatch]:
            chosen = table.select(names)
            for start in range(0, len(chosen), BLOCK):
                yield from chosen.slice(start, BLOCK).to_arrow().to_batches()

        return ArrowSource(
            _schema_of(table.clear()), slices, lambda: len(table), "The Polars table"
        )
    if not isinstance(table, polars.LazyFrame):
        raise SourceError(f"The table must be a DataFrame, and not a {type(table).__name__}.")
    called = "The lazy Polars table"

    def collected(names: list[str]) -> Iterator[pa.RecordBatch]:
        for part in table.select(names).collect_batches(chunk_size=BLOCK):
            yield from part.to_arrow().to_batches()

    with withheld(called):
        schema = _schema_of(polars.DataFrame(schema=table.collect_schema()))
    return ArrowSource(
        schema, collected, lambda: table.select(polars.len()).collect().item(), called
    )


def _schema_of(empty: Any) -> pa.Schema:
    """Arrow's schema of a table of Polars without rows.

    Types that Arrow has not, such as Int128, are structs there: a column of one is refused by its
    name if somebody asks for it.
    """
    found = [_field(empty.select(name), name, kind) for name, kind in empty.schema.items()]
    return pa.schema(found)


def _field(empty: Any, name: str, kind: Any) -> pa.Field:
    try:
        return empty.to_arrow().schema.field(0)
    except pa.ArrowException:
        return pa.field(name, pa.struct([(f"{kind} of Polars", pa.null())]))


def of_duckdb(relation: Any) -> Source:
    """The source of a DuckDB relation. Its connection is used, and has to stay open.

    Raises ``SourceError`` for anything else that is DuckDB's.
    """
    called = "The DuckDB relation"
    if not hasattr(relation, "aggregate"):
        raise SourceError(
            f"Give a DuckDB relation, such as connection.table('visits'), and not a "
            f"{type(relation).__name__}."
        )

    def quoted(names: Iterable[str]) -> str:
        return ", ".join('"{}"'.format(name.replace('"', '""')) for name in names)

    def scan(names: list[str]) -> Any:
        chosen = relation.project(quoted(names))
        read = getattr(chosen, "to_arrow_reader", None) or chosen.fetch_record_batch
        return read(BLOCK)

    def in_order(by: list[str]) -> Callable[[list[str]], Any]:
        relation.limit(0).order(quoted(by)).to_arrow_table()  # refuses what has no order

        def scan(names: list[str]) -> Any:
            chosen = relation.project(quoted(dict.fromkeys([*names, *by]))).order(quoted(by))
            read = getattr(chosen, "to_arrow_reader", None) or chosen.fetch_record_batch
            return read(BLOCK)

        return scan

    with withheld(called):
        schema = relation.limit(0).to_arrow_table().schema
    count = lambda: int(relation.aggregate("count(*)").fetchall()[0][0])
    return ArrowSource(schema, scan, count, called, in_order=in_order)


def of_ibis(table: Any) -> Source:
    """The source of an Ibis table, of any of its databases.

    Raises ``SourceError`` for anything else that is Ibis'.
    """
    called = "The Ibis table"
    if not hasattr(table, "to_pyarrow_batches") or not hasattr(table, "schema"):
        raise SourceError(f"Give an Ibis table, and not a {type(table).__name__}.")

    def in_order(by: list[str]) -> Callable[[list[str]], Any]:
        table.order_by(by).limit(0).to_pyarrow()  # refuses what has no order

        def scan(names: list[str]) -> Any:
            chosen = table.select(list(dict.fromkeys([*names, *by]))).order_by(by)
            return chosen.to_pyarrow_batches(chunk_size=BLOCK)

        return scan

    with withheld(called):
        schema = table.schema().to_pyarrow()
    return ArrowSource(
        schema,
        lambda names: table.select(names).to_pyarrow_batches(chunk_size=BLOCK),
        lambda: int(table.count().execute()),
        called,
        in_order=in_order,
    )


OPENERS: Mapping[str, Callable[[Any], Source]] = MappingProxyType(
    {
        "pyarrow": of_arrow,
        "polars": of_polars,
        "duckdb": of_duckdb,
        "_duckdb": of_duckdb,
        "ibis": of_ibis,
    }
)
"""What opens a table, by the library that it is of."""
