"""Time and memory from rows to the exact tables of all pairs, by source and number of rows.

A part of ``scale``. Public rows of a simulator are counted; no noise is timed, for it does not grow
with the rows.
"""

import time
from pathlib import Path

import numpy as np
import pyarrow as pa
from pyarrow import dataset

from benchmarks.experiment import apart
from sdv_privpgd.benchmark.fits import PeakMemory, Stopwatch

SOURCES = ("parquet", "duckdb", "polars", "arrow", "csv", "frame")
"""Files of Parquet, a DuckDB relation and a lazy Polars frame of them, an Arrow table, a file of
CSV, and a frame of pandas."""

_LARGEST = {"arrow": 10**7, "csv": 10**7, "frame": 10**7}
"""Rows of sources that are in memory or slow."""


_PART, _FILE = 1 << 20, 1 << 24
"""Rows that are simulated at a time, and those of a file, at most."""

_COLUMNS = {
    "age": {"sdtype": "numerical", "range_min": 0, "range_max": 99, "decimal_places": 0},
    "cost": {"sdtype": "numerical", "range_min": 0, "range_max": 500_000, "decimal_places": 2},
    "ward": {"sdtype": "categorical", "range_values": [f"ward {i}" for i in range(12)]},
    "ill": {"sdtype": "boolean"},
    "came": {"sdtype": "datetime", "range_min": "2015-01-01", "range_max": "2024-12-31"},
    "stay": {"sdtype": "numerical", "range_min": 0, "range_max": 60, "decimal_places": 0},
    "bmi": {"sdtype": "numerical", "range_min": 10, "range_max": 60, "decimal_places": 1},
    "diagnosis": {"sdtype": "categorical", "range_values": [f"D{i:02}" for i in range(30)]},
    "region": {"sdtype": "categorical", "range_values": [f"R{i:02}" for i in range(16)]},
    "visits": {"sdtype": "numerical", "range_min": 0, "range_max": 20, "decimal_places": 0},
    "insurance": {"sdtype": "ordinal", "range_values": [1, 2, 3]},
    "score": {"sdtype": "numerical", "range_min": 0.0, "range_max": 1.0},
}
"""What is declared of each column, in SDV's words."""


def lines(folder, numbers, sources):
    """One line for each source and number of rows, in fresh processes."""
    for number in numbers:
        for source in sources:
            if number <= _LARGEST.get(source, number):
                size = {"source": source, "rows": number}
                yield {**size, **apart(once, **size, folder=folder)}


def once(source, rows, folder):
    opened = _table(source, _files(Path(folder), rows))
    wall, cpu, memory = Stopwatch(), Stopwatch(time.process_time), PeakMemory()
    for name in _counted(opened):
        wall.lap(name)
        cpu.lap(name)
    used, pairs = sum(cpu.seconds.values()), len(_COLUMNS) * (len(_COLUMNS) - 1) // 2 * rows
    return {
        **{f"{name}_s": wall.seconds.get(name, 0.0) for name in ("look", "encode", "count")},
        "Mrows_per_s": rows / sum(wall.seconds.values()) / 1e6,
        "cpu_s": used,
        # From rows to counts: a look is for what is not declared.
        "Mpairs/core_s": pairs / (used - cpu.seconds.get("look", 0.0)) / 1e6,
        "peak_MiB": memory.mebibytes(),
    }


def _files(folder, rows):
    """A folder with files of so many simulated rows, which are made unless they are there."""
    made = folder / f"rows-{rows}"
    if not made.exists():
        unfinished = folder / f".rows-{rows}"
        batches = (
            batch
            for start in range(0, rows, _PART)
            for batch in _part(min(_PART, rows - start), start).to_batches()
        )
        kept = {"max_rows_per_file": _FILE, "max_rows_per_group": 1 << 18}
        schema = _part(1, 0).schema
        dataset.write_dataset(batches, unfinished, schema=schema, format="parquet", **kept)
        unfinished.rename(made)
    return made


def _part(number, seed):
    """A part of a table. Nobody's: public."""
    rng, cells = np.random.default_rng(seed), {}
    for name, facts in _COLUMNS.items():
        low, high, places = map(facts.get, ("range_min", "range_max", "decimal_places"))
        values = pa.array(facts.get("range_values", [False, True]))
        if facts["sdtype"] == "datetime":
            low, high = np.datetime64(low, "us"), np.datetime64(high, "us")
            cells[name] = low + (rng.random(number) * (high - low).astype(int)).astype("m8[us]")
        elif low is None:
            cells[name] = values.take(pa.array(rng.integers(len(values), size=number)))
        else:
            own = rng.uniform(low, high, number).round(15 if places is None else places)
            own = own.astype(np.int64) if places == 0 else own
            cells[name] = pa.array(own, mask=rng.random(number) < 0.02)
    return pa.table(cells)


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
    from sdv_privpgd.columns.bins import SIGNED_POWERS
    from sdv_privpgd.columns.parser import read_table
    from sdv_privpgd.columns.readings import Reading
    from sdv_privpgd.columns.schema import Schema
    from sdv_privpgd.privacy.boundary import PrivateTable
    from sdv_privpgd.privacy.ledger import FitLedger, PrivacyLedger
    from sdv_privpgd.privacy.queries import Adjacency, MarginalQuery

    schema = Schema.from_sdv(_COLUMNS)
    shared = FitLedger(PrivacyLedger.open(1.0, 1e-9, Adjacency.REPLACE_ONE))
    opened, errors = PrivateTable.opened(table, _COLUMNS, read_table(_COLUMNS))
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
