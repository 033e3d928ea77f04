"""Time and memory from rows to the exact tables of all pairs, by source and number of rows.

Public rows of a simulator are counted; no noise is timed, for it does not grow with the rows.
"""

import argparse
import json
import time
from collections import Counter
from collections.abc import Callable, Iterator
from itertools import combinations
from pathlib import Path
from typing import Any

from sdv_privpgd.benchmark.meters import (
    PeakMemory,
    Stopwatch,
    in_fresh_process,
    print_table,
    write_csv,
)

SOURCES = ("parquet", "duckdb", "polars", "arrow", "csv", "frame", "tuples")
"""Files of Parquet, a DuckDB relation and a lazy Polars frame of them, an Arrow table, a file of
CSV, a frame of pandas; and a tuple for each row and pair, as dpsynth's pipeline makes them."""

_LARGEST = {"arrow": 10**7, "csv": 10**7, "frame": 10**7, "tuples": 10**6}
"""Rows of sources that are in memory or slow."""


def read_all(arguments: argparse.Namespace) -> None:
    """Prints, and writes, one line for each source and number of rows, in fresh processes."""
    rows = []
    for num_rows in arguments.rows:
        for source in arguments.sources:
            if num_rows > _LARGEST.get(source, num_rows):
                continue
            asked = ["scale-reading-once", source, str(num_rows), "--folder", str(arguments.folder)]
            rows.append(in_fresh_process(asked))
            print_table(rows[-1:], header=len(rows) == 1)
            if arguments.out is not None:
                write_csv(rows, arguments.out / "reading.csv")


def add_once(commands: Any) -> None:
    """Adds a single run to the command line."""
    once = commands.add_parser("scale-reading-once", help="one run of scale --from-files")
    once.add_argument("source", choices=SOURCES)
    once.add_argument("rows", type=int)
    once.add_argument("--folder", type=Path, required=True)
    once.set_defaults(run=_once)


def _once(arguments: argparse.Namespace) -> None:
    from sdv_privpgd.benchmark.visits import COLUMNS, write_visits

    folder = write_visits(arguments.folder, arguments.rows)
    count = _tuples if arguments.source == "tuples" else _counted
    opened = _table(arguments.source, folder)
    wall, cpu, memory = Stopwatch(), Stopwatch(time.process_time), PeakMemory()
    for name in count(opened):
        wall.lap(name)
        cpu.lap(name)
    seconds, used = sum(wall.seconds.values()), sum(cpu.seconds.values())
    pairs = len(COLUMNS) * (len(COLUMNS) - 1) // 2 * arguments.rows
    found = {
        "source": arguments.source,
        "rows": arguments.rows,
        **{f"{name}_s": wall.seconds.get(name, 0.0) for name in ("look", "encode", "count")},
        "Mrows_per_s": arguments.rows / seconds / 1e6,
        "cpu_s": used,
        # From rows to counts: a look is for what is not declared.
        "Mpairs_per_core_s": pairs / (used - cpu.seconds.get("look", 0.0)) / 1e6,
        "peak_MiB": memory.mebibytes(),
    }
    print(json.dumps(found))


def _table(source: str, folder: Path) -> Any:
    """What a user of the source has."""
    if source == "parquet" or source == "tuples":
        return folder
    if source == "duckdb":
        import duckdb

        return duckdb.connect().sql(f"select * from '{folder}/*.parquet'")
    if source == "polars":
        import polars

        return polars.scan_parquet(f"{folder}/*.parquet")
    import pyarrow.csv
    import pyarrow.parquet

    if source == "csv":
        path = folder.with_suffix(".csv")
        if not path.exists():
            pyarrow.csv.write_csv(pyarrow.parquet.read_table(folder), path)
        return path
    table = pyarrow.parquet.read_table(folder)
    return table.to_pandas() if source == "frame" else table


def _counted(table: Any) -> Iterator[str]:
    """Looks, encodes and counts all pairs; gives the name of each stage when it has ended."""
    from sdv_privpgd.benchmark.visits import COLUMNS
    from sdv_privpgd.columns.bins import SignedPowers
    from sdv_privpgd.columns.readings import Reading
    from sdv_privpgd.columns.schema import Schema
    from sdv_privpgd.privacy.boundary import PrivateTable
    from sdv_privpgd.privacy.ledger import Books, PrivacyLedger
    from sdv_privpgd.privacy.queries import Adjacency, MarginalQuery

    schema = Schema.from_sdv(COLUMNS)
    books = Books(PrivacyLedger.open(1.0, 1e-9, Adjacency.REPLACE_ONE))
    opened, errors = PrivateTable.opened(table, COLUMNS, COLUMNS)
    if errors:
        raise ValueError(" ".join(errors))
    cells = SignedPowers()
    grid = {"cells": cells, "groups": (0,) * len(cells)}
    numbers = [
        Reading(name=name, asks=frozenset(["coarse", "numbers"]), **grid)
        for name in ("age", "stay", "visits", "bmi")
    ]
    texts = [
        Reading(name=name, asks=frozenset(["categories"]), **grid)
        for name in ("ward", "diagnosis", "region")
    ]
    opened.first_look([*numbers, *texts], books)
    yield "look"
    curator = opened.curator(schema, books)
    yield "encode"
    queries = [MarginalQuery(clique) for clique in schema.domain().cliques(2)]
    curator.measure(queries, books.ledger.budget / 2, what="all pairs")
    yield "count"


def _tuples(folder: Path) -> Iterator[str]:
    """A tuple for each row and pair of its codes, counted one by one."""
    from sdv_privpgd.benchmark.visits import COLUMNS
    from sdv_privpgd.columns.encoding import encode_table
    from sdv_privpgd.columns.schema import Schema
    from sdv_privpgd.sources.opening import open_source

    schema, found = Schema.from_sdv(COLUMNS), Counter()
    pairs = list(combinations(range(len(COLUMNS)), 2))
    add: Callable = found.update
    for batch in open_source(folder).batches(list(COLUMNS)):
        for row in encode_table(batch.columns, schema).tolist():
            add((a, b, row[a], row[b]) for a, b in pairs)
    yield "count"
