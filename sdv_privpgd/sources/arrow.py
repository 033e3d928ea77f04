"""Arrow's batches as pandas' columns, and tables of Arrow, Polars, DuckDB and Ibis as sources.

A cell becomes the same value whatever the others are: pandas would make floats of whole numbers
beside a missing one. What is asked of a table is public: names of columns and the number of rows; a
database filters nothing and counts no cell.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from copy import copy
from functools import partial
from typing import Any

import pandas as pd
import pyarrow as pa

from sdv_privpgd.base import cached_property
from sdv_privpgd.columns.arrow_dtypes import INDEX, dtypes_of, schema_of_polars
from sdv_privpgd.columns.scalars import quiet
from sdv_privpgd.sources.source import BLOCK, Batch, Source, SourceError
from sdv_privpgd.sources.texts import repeated

Scan = Callable[..., Iterable[pa.RecordBatch]]
"""All rows with the columns of these names, from the first one on."""


class ArrowSource:
    """Rows that some library hands out as Arrow's batches."""

    def __init__(
        self,
        schema: pa.Schema,
        scan: Scan,
        count: Callable[[], int],
        called: str,
        *,
        sorts: Callable[[list[str]], Any] | None = None,
    ) -> None:
        """Takes a schema, what reads rows of it and counts them, and its name in messages.

        Where the source has no order of its own, rows are read sorted ``by`` some columns. What
        ``sorts`` no row by these refuses those that have no order.
        """
        self.names = [name for name in schema.names if not name.startswith(INDEX)]
        self.dtypes = dtypes_of(schema)
        self._scan, self._count, self._called = scan, count, called
        self._sorts = sorts

    def ordered(self, by: Sequence[str]) -> "ArrowSource":
        """The same rows in an order that follows from these columns, or that the source has.

        Raises ``SourceError`` if they cannot be sorted by.
        """
        if self._sorts is None:
            return self
        made = copy(self)
        with quiet(f"{self._called}, sorted by {', '.join(by)},"):
            self._sorts(list(by))
        vars(made)["_scan"] = partial(self._scan, by=list(by))
        return made

    def num_rows(self) -> int:
        return self._number

    def batches(self, names: Sequence[str]) -> Iterator[Batch]:
        number, read = max(self._number, 1), 0
        with quiet(self._called):
            batches = iter(self._scan(list(names)))
        while True:
            with quiet(self._called):
                batch = next(batches, None)
                if batch is None:
                    return
                parts = [batch.slice(at, BLOCK) for at in range(0, batch.num_rows, BLOCK)]
            for part in parts:
                read += part.num_rows
                with quiet(self._called):
                    columns = {name: series_of(part.column(name)) for name in names}
                yield Batch(min(read / number, 1.0), columns)

    @cached_property
    def _number(self) -> int:
        with quiet(self._called):
            return self._count()


def series_of(array: pa.Array) -> pd.Series:
    """A column of a batch, each cell for itself. Private as the batch is.

    Text becomes categories, so that each text is read once.
    """
    kind = array.type
    if pa.types.is_dictionary(kind) and not is_text(kind.value_type):
        return series_of(array.dictionary_decode())
    if pa.types.is_dictionary(kind) or is_text(kind):
        return _categories(array)
    if pa.types.is_integer(kind) or pa.types.is_boolean(kind):
        return _whole(array)
    if pa.types.is_date(kind):
        return array.to_pandas(date_as_object=False)
    if pa.types.is_time(kind):  # not all that databases have are objects of Python
        return pd.Series(pd.arrays.ArrowExtensionArray(array))
    return array.to_pandas()


def is_text(kind: pa.DataType) -> bool:
    """Whether cells of a type are text."""
    is_view = getattr(pa.types, "is_string_view", lambda _: False)
    return pa.types.is_string(kind) or pa.types.is_large_string(kind) or is_view(kind)


def _categories(array: Any) -> pd.Series:
    if not pa.types.is_dictionary(array.type):
        array = array.cast(pa.large_binary()).dictionary_encode()
    # Not all programs write text alone: Arrow would refuse a whole batch for one cell.
    found = array.dictionary.cast(pa.large_binary()).to_pylist()
    values = [each if each is None else each.decode(errors="replace") for each in found]
    codes = array.indices.cast(pa.int64()).fill_null(-1).to_numpy(zero_copy_only=False)
    return repeated(values, codes)


def _whole(array: Any) -> pd.Series:
    if not array.null_count:
        return pd.Series(array.to_numpy(zero_copy_only=False))
    missing = array.is_null().to_numpy(zero_copy_only=False)
    is_truth = pa.types.is_boolean(array.type)
    values = array.fill_null(False if is_truth else 0).to_numpy(zero_copy_only=False)
    kind = pd.arrays.BooleanArray if is_truth else pd.arrays.IntegerArray
    return pd.Series(kind(values.copy(), missing.copy()))


def of_arrow(table: Any) -> Source:
    """The source of an Arrow table or data set."""
    import pyarrow.dataset

    if isinstance(table, pa.RecordBatch):
        table = pa.Table.from_batches([table])
    if isinstance(table, pa.Table):
        whole: Scan = lambda names: table.select(names).to_batches()
        return ArrowSource(table.schema, whole, lambda: len(table), "The Arrow table")
    if isinstance(table, pyarrow.dataset.Dataset):
        # Arrow reads ahead as fast as it can, up to a gigabyte of its own.
        least = {"batch_size": BLOCK, "batch_readahead": 2, "fragment_readahead": 1}
        scan: Scan = lambda names: table.to_batches(columns=names, **least)
        return ArrowSource(table.schema, scan, table.count_rows, "The Arrow data set")
    raise SourceError(
        f"A {type(table).__name__} can be read once, and a fit reads its rows several times: give "
        "an Arrow table or data set."
    )


def of_polars(table: Any) -> Source:
    """The source of a DataFrame of Polars, or of a lazy one, which is collected in batches.

    A lazy one may give rows in another order each time, after a join or a ``unique``.
    """
    import polars

    if isinstance(table, polars.DataFrame):

        def slices(names: list[str]) -> Iterator[pa.RecordBatch]:
            chosen = table.select(names)
            for start in range(0, len(chosen), BLOCK):
                yield from chosen.slice(start, BLOCK).to_arrow().to_batches()

        schema = schema_of_polars(table.clear())
        return ArrowSource(schema, slices, lambda: len(table), "The Polars table")
    if not isinstance(table, polars.LazyFrame):
        raise SourceError(f"The table must be a DataFrame, and not a {type(table).__name__}.")
    called = "The lazy Polars table"

    def collected(names: list[str], by: Sequence[str] = ()) -> Iterator[pa.RecordBatch]:
        chosen = table.select(list(dict.fromkeys([*names, *by])))
        chosen = chosen.sort(by, nulls_last=True) if by else chosen
        for part in chosen.collect_batches(chunk_size=BLOCK):
            yield from part.to_arrow().to_batches()

    with quiet(called):
        empty = polars.DataFrame(schema=table.collect_schema())
        schema = schema_of_polars(empty)
    count = lambda: table.select(polars.len()).collect().item()
    return ArrowSource(schema, collected, count, called, sorts=empty.sort)


def of_duckdb(relation: Any) -> Source:
    """The source of a DuckDB relation. Its connection is used, and has to stay open."""
    called = "The DuckDB relation"
    if not hasattr(relation, "aggregate"):
        usual = "a DuckDB relation, such as connection.table('visits')"
        raise SourceError(f"Give {usual}, and not a {type(relation).__name__}.")

    def quoted(names: Iterable[str]) -> str:
        return ", ".join('"{}"'.format(name.replace('"', '""')) for name in names)

    def scan(names: list[str], by: Sequence[str] = ()) -> Any:
        chosen = relation.project(quoted(dict.fromkeys([*names, *by])))
        chosen = chosen.order(quoted(by)) if by else chosen
        read = getattr(chosen, "to_arrow_reader", None) or chosen.fetch_record_batch
        return read(BLOCK)

    with quiet(called):
        schema = relation.limit(0).to_arrow_table().schema
    count = lambda: int(relation.aggregate("count(*)").fetchall()[0][0])
    sorts = lambda by: relation.limit(0).order(quoted(by)).to_arrow_table()
    return ArrowSource(schema, scan, count, called, sorts=sorts)


def of_ibis(table: Any) -> Source:
    """The source of an Ibis table, of any of its databases."""
    called = "The Ibis table"
    if not hasattr(table, "to_pyarrow_batches") or not hasattr(table, "schema"):
        raise SourceError(f"Give an Ibis table, and not a {type(table).__name__}.")

    def scan(names: list[str], by: Sequence[str] = ()) -> Any:
        chosen = table.select(list(dict.fromkeys([*names, *by])))
        chosen = chosen.order_by(by) if by else chosen
        return chosen.to_pyarrow_batches(chunk_size=BLOCK)

    with quiet(called):
        schema = table.schema().to_pyarrow()
    count = lambda: int(table.count().execute())
    sorts = lambda by: table.order_by(by).limit(0).to_pyarrow()
    return ArrowSource(schema, scan, count, called, sorts=sorts)


OPENERS: Mapping[str, Callable[[Any], Source]] = {
    "pyarrow": of_arrow, "polars": of_polars, "duckdb": of_duckdb, "_duckdb": of_duckdb,
    "ibis": of_ibis,
}  # fmt: skip
"""What opens a table, by the library that it is of."""
