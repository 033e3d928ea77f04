"""A public simulator of hospital visits, 12 columns, into Parquet and CSV files of any length."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

_PART = 1 << 20
"""Rows that are simulated at a time."""

_FILE = 1 << 24
"""Rows of a Parquet file, at most."""

_WARDS, _DIAGNOSES, _REGIONS = 12, 30, 16

COLUMNS: dict[str, dict] = {
    "age": {"sdtype": "numerical", "range_min": 0, "range_max": 99, "decimal_places": 0},
    "cost": {"sdtype": "numerical", "range_min": 0, "range_max": 500_000, "decimal_places": 2},
    "ward": {"sdtype": "categorical", "range_values": [f"ward {i}" for i in range(_WARDS)]},
    "ill": {"sdtype": "boolean"},
    "came": {"sdtype": "datetime", "range_min": "2015-01-01", "range_max": "2024-12-31"},
    "stay": {"sdtype": "numerical", "range_min": 0, "range_max": 60, "decimal_places": 0},
    "bmi": {"sdtype": "numerical", "range_min": 10, "range_max": 60, "decimal_places": 1},
    "diagnosis": {"sdtype": "categorical", "range_values": [f"D{i:02}" for i in range(_DIAGNOSES)]},
    "region": {"sdtype": "categorical", "range_values": [f"R{i:02}" for i in range(_REGIONS)]},
    "visits": {"sdtype": "numerical", "range_min": 0, "range_max": 20, "decimal_places": 0},
    "insurance": {"sdtype": "ordinal", "range_values": [1, 2, 3]},
    "score": {"sdtype": "numerical", "range_min": 0.0, "range_max": 1.0},
}
"""What is declared of each column, in SDV's words."""


def simulated_visits(num_rows: int, seed: int = 0) -> Iterator[pa.Table]:
    """Parts of a table of so many rows. Nobody's: public."""
    for start in range(0, num_rows, _PART):
        yield _part(min(_PART, num_rows - start), np.random.default_rng((seed, start)))


def write_visits(folder: Path, num_rows: int) -> Path:
    """Parquet files of so many rows in a folder, which are made unless they are there."""
    made = folder / f"visits-{num_rows}"
    if made.exists():
        return made
    unfinished = folder / f".visits-{num_rows}"
    unfinished.mkdir(parents=True, exist_ok=True)
    writer, rows, number = None, 0, 0
    for part in simulated_visits(num_rows):
        if writer is not None and rows >= _FILE:
            writer.close()
            writer, rows = None, 0
        if writer is None:
            writer = pq.ParquetWriter(unfinished / f"visits-{number:03}.parquet", part.schema)
            number += 1
        writer.write_table(part, row_group_size=1 << 18)
        rows += part.num_rows
    if writer is not None:
        writer.close()
    return unfinished.rename(made)


def _part(number: int, rng: np.random.Generator) -> pa.Table:
    age = np.clip(rng.normal(52, 22, number), 0, 105).astype(np.int64)
    diagnosis = np.minimum(rng.geometric(0.12, number) - 1, _DIAGNOSES - 1)
    stay = rng.poisson(1 + age / 20 + diagnosis / 8)
    ward = (diagnosis // 3 + rng.integers(0, 3, number)) % _WARDS
    came = np.datetime64("2015-01-01", "us") + rng.integers(0, 3_650, number) * np.timedelta64(
        86_400_000_000, "us"
    )
    visits = rng.poisson(2 + age / 30)
    return pa.table(
        {
            "age": age,
            "cost": np.round(np.exp(rng.normal(6.5, 0.9, number)) * (1 + stay), 2),
            "ward": _named(ward, COLUMNS["ward"]["range_values"]),
            "ill": pa.array(rng.random(number) < 0.2 + age / 250),
            "came": pa.array(came),
            "stay": pa.array(stay, mask=rng.random(number) < 0.02),
            "bmi": np.round(rng.normal(26, 4, number), 1),
            "diagnosis": _named(diagnosis, COLUMNS["diagnosis"]["range_values"]),
            "region": _named(rng.integers(0, _REGIONS, number), COLUMNS["region"]["range_values"]),
            "visits": visits,
            "insurance": 1 + (visits + rng.integers(0, 2, number)) % 3,
            "score": rng.random(number),
        }
    )


def _named(codes: np.ndarray, names: list[str]) -> pa.Array:
    values = pa.DictionaryArray.from_arrays(pa.array(codes.astype(np.int32)), pa.array(names))
    return values.cast(pa.string())
