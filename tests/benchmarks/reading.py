"""Time and memory from rows to the exact tables of all pairs, by source and number of rows.

A part of ``scale``. Public rows of a simulator are counted; no noise is timed, for it does not grow
with the rows.
"""

import time
from pathlib import Path

from benchmarks.experiment import apart
from sdv_privpgd.benchmark.fits import PeakMemory, Stopwatch

SOURCES = ("parquet", "duckdb", "polars", "arrow", "csv", "frame")
"""Files of Parquet, a DuckDB relation and a lazy Polars frame of them, an Arrow table, a file of
CSV, and a frame of pandas."""

_LARGEST = {"arrow": 10**7, "csv": 10**7, "frame": 10**7}
"""Rows of sources that are in memory or slow."""


def lines(folder, numbers, sources):
    """One line for each source and number of rows, in fresh processes."""
    for number in numbers:
        for source in sources:
            if number <= _LARGEST.get(source, number):
                size = {"source": source, "rows": number}
                yield {**size, **apart(once, **size, folder=folder)}


def once(source, rows, folder):
    from benchmarks.visits import COLUMNS, write_visits

    folder = write_visits(Path(folder), rows)
    opened = _table(source, folder)
    wall, cpu, memory = Stopwatch(), Stopwatch(time.process_time), PeakMemory()
    for name in _counted(opened):
        wall.lap(name)
        cpu.lap(name)
    used, pairs = sum(cpu.seconds.values()), len(COLUMNS) * (len(COLUMNS) - 1) // 2 * rows
    return {
        **{f"{name}_s": wall.seconds.get(name, 0.0) for name in ("look", "encode", "count")},
        "Mrows_per_s": rows / sum(wall.seconds.values()) / 1e6,
        "cpu_s": used,
        # From rows to counts: a look is for what is not declared.
        "Mpairs/core_s": pairs / (used - cpu.seconds.get("look", 0.0)) / 1e6,
        "peak_MiB": memory.mebibytes(),
    }


def _table(source, folder):
    """What a user of the source has."""
    if source == "parquet":
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


def _counted(table):
    """Looks, encodes and counts all pairs; gives the name of each stage when it has ended."""
    from benchmarks.visits import COLUMNS
    from sdv_privpgd.columns.bins import SIGNED_POWERS
    from sdv_privpgd.columns.parser import read_table
    from sdv_privpgd.columns.readings import Reading
    from sdv_privpgd.columns.schema import Schema
    from sdv_privpgd.privacy.boundary import PrivateTable
    from sdv_privpgd.privacy.ledger import FitLedger, PrivacyLedger
    from sdv_privpgd.privacy.queries import Adjacency, MarginalQuery

    schema = Schema.from_sdv(COLUMNS)
    shared = FitLedger(PrivacyLedger.open(1.0, 1e-9, Adjacency.REPLACE_ONE))
    opened, errors = PrivateTable.opened(table, COLUMNS, read_table(COLUMNS))
    if errors:
        raise ValueError(" ".join(errors))
    cells = SIGNED_POWERS
    grid = {"cells": cells}
    kinds = {name: ["grid", "numbers"] for name in ("age", "stay", "visits", "bmi")}
    kinds |= {name: ["categories"] for name in ("ward", "diagnosis", "region")}
    asked = [Reading(name=name, asks=frozenset(asks), **grid) for name, asks in kinds.items()]
    opened.first_queries(asked, shared)
    yield "look"
    curator = opened.curator(schema, shared)
    yield "encode"
    queries = [MarginalQuery(clique) for clique in schema.domain().cliques(2)]
    curator.measure(queries, shared.ledger.budget / 2, what="all pairs")
    yield "count"
