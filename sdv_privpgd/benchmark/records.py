"""The file of results: Parquet, one row a metric of a run, written whole and atomically.

A run is one method on one table at one epsilon with one seed and one set of settings. A run that
failed has one row, with its error's class in place of a metric. That of a strategy that does not go
with an engine has the reason as well.
"""

import json
import os
import platform
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime, timezone
from importlib.metadata import distributions
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pandas as pd

RUN = ("method", "table", "epsilon", "seed", "settings")
"""The columns that identify the run of a row."""

_COLUMNS = {
    "method": "string",
    "table": "string",
    "epsilon": "float64",  # as claimed
    "seed": "int64",
    "settings": "string",  # JSON
    "metric": "string",
    "value": "float64",
    "error": "string",
    "reason": "string",  # why an arm's parts do not go together
    "delta": "float64",
    "adjacency": "string",
    "spent_epsilon": "float64",
    "rows": "int64",
    "columns": "int64",
    "fit_seconds": "float64",
    "sample_seconds": "float64",
    "score_seconds": "float64",
    "peak_mebibytes": "float64",
    "versions": "string",  # JSON
    "finished": "string",  # ISO 8601, UTC
}

_PACKAGES = ("sdv-privpgd", "numpy", "scipy", "torch", "numba", "scikit-learn")


@dataclass(frozen=True, kw_only=True)
class Run:
    """The identity of a run. ``settings`` is JSON with sorted keys."""

    method: str
    table: str
    epsilon: float
    seed: int
    settings: str


def canonical(settings: Mapping) -> str:
    """Settings as JSON. The same settings always give the same text."""
    return json.dumps(settings, sort_keys=True)


def read(path: Path) -> "pd.DataFrame":
    """All rows of a file."""
    import pandas as pd

    return pd.read_parquet(path)


def held(path: Path, *, failed: bool = True) -> set[Run]:
    """The runs that a file holds, with or without those that failed."""
    return {_run(row) for row in _rows(path) if failed or row["error"] is None}


def append(path: Path, run: Run, facts: Mapping, scores: Mapping[str, float]) -> None:
    """Adds a run to a file, or replaces the same run in it.

    A reader sees the file before or after, never half of it. Only one process may write at a time,
    because the file is read and replaced.
    """
    import pyarrow as pa
    from pyarrow import parquet

    versions = {"python": platform.python_version(), **_versions()}
    now = datetime.now(timezone.utc).isoformat(timespec="seconds")
    common = {**asdict(run), **facts, "versions": json.dumps(versions), "finished": now}
    metrics: Sequence[dict] = [{"metric": name, "value": value} for name, value in scores.items()]
    added = [{**common, **metric} for metric in metrics or [{}]]
    kept = [row for row in _rows(path) if _run(row) != run]
    schema = pa.schema([(name, getattr(pa, kind)()) for name, kind in _COLUMNS.items()])
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = path.with_name(f".{path.name}.{os.getpid()}")
    parquet.write_table(pa.Table.from_pylist([*kept, *added], schema=schema), draft)
    os.replace(draft, path)


def _run(row: Mapping) -> Run:
    return Run(**{key: row[key] for key in RUN})


def _rows(path: Path) -> list[dict]:
    """A file's rows as plain values, ``None`` where there is none."""
    from pyarrow import parquet

    return parquet.read_table(path).to_pylist() if path.exists() else []


def _versions() -> dict[str, str]:
    """The versions of the packages that are installed."""
    installed = {found.metadata["Name"]: found.version for found in distributions()}
    return {name: installed[name] for name in _PACKAGES if name in installed}
