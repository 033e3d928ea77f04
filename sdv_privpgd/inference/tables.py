"""All noisy tables as tidy rows, with the labels that users know, and as files. Public."""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd

from sdv_privpgd.base import one_blas_thread
from sdv_privpgd.base.domain import Clique, Grouping
from sdv_privpgd.columns.bins import Merging
from sdv_privpgd.columns.column import Column
from sdv_privpgd.columns.labels import MISSING, code_labels
from sdv_privpgd.columns.schema import Schema
from sdv_privpgd.estimate.noisy_tables import made_once, own_variance
from sdv_privpgd.inference.linear import LinearEstimate
from sdv_privpgd.methods.pipeline import Release
from sdv_privpgd.privacy.queries import CountQuery, GroupedMarginalQuery, MarginalQuery

MEASURED, CONSISTENT = "measured", "consistent"


@one_blas_thread
def noisy_tables(
    release: Release,
    schema: Schema,
    path: str | Path | None = None,
    *,
    kinds: Collection[str] = (MEASURED, CONSISTENT),
    most: int | None = None,
) -> pd.DataFrame:
    """Every measured table, and the consistent tables that follow from all of them.

    ``FittedTable.noisy_tables`` says what the columns are. ``kinds`` and ``most``, the largest
    number of columns of a table, leave out the others.
    """
    path = None if path is None else Path(path)
    if path is not None and path.suffix not in (".parquet", ".csv"):
        raise ValueError(f"path must end in .parquet or .csv, got {str(path)!r}.")
    columns = schema.named
    parts = [
        *(_measured(release, columns, most) if MEASURED in kinds else ()),
        *(_consistent(release, columns, most) if CONSISTENT in kinds else ()),
    ]
    frame = pd.concat(parts, ignore_index=True)
    most = max((int(name.split("_")[1]) for name in frame if name.startswith("column_")), default=0)
    named = [f"{word}_{at}" for at in range(1, most + 1) for word in ("column", "label")]
    frame = frame.reindex(columns=["kind", *named, "estimate", "stddev", "round"])
    for name in ("kind", *named):
        frame[name] = frame[name].astype("category")
    if path is not None:
        getattr(frame, f"to_{path.suffix[1:]}")(path, index=False)
    return frame


def _measured(
    release: Release, columns: dict[str, Column], most: int | None
) -> Iterator[pd.DataFrame]:
    """The measured tables, in the order in which they were asked for."""
    asked: dict[tuple, int] = {}
    labels_of = {name: code_labels(column) for name, column in columns.items()}
    in_groups: dict[Grouping, dict[str, list[str]]] = {}
    for measurement in release.measurements:
        query = measurement.query
        if isinstance(query, CountQuery):
            clique, labels = (), []
        elif isinstance(query, MarginalQuery):
            clique, labels = query.clique, [labels_of[name] for name in query.clique]
        elif isinstance(query, GroupedMarginalQuery):
            clique = query.clique
            if query.grouping not in in_groups:
                in_groups[query.grouping] = {
                    name: group_labels(columns[name], query.grouping[name])
                    for name in query.grouping.attributes
                }
            labels = [in_groups[query.grouping][name] for name in clique]
        else:
            continue
        if most is not None and len(clique) > most:
            continue
        key = (frozenset(clique), isinstance(query, GroupedMarginalQuery))
        asked[key] = asked.get(key, 0) + 1
        stddev = own_variance(measurement) ** 0.5
        yield _rows(MEASURED, clique, labels, measurement.answer, stddev, asked[key])


def _consistent(
    release: Release, columns: dict[str, Column], most: int | None
) -> Iterator[pd.DataFrame]:
    """The linear estimate of each table over codes that was measured."""
    domain = release.domain
    estimate = made_once(LinearEstimate, domain, release.measurements)
    measured = (m.query.clique for m in release.measurements if isinstance(m.query, MarginalQuery))
    labels_of = {name: code_labels(column) for name, column in columns.items()}
    ordered = (tuple(domain.attributes[axis] for axis in sorted(domain.axes(c))) for c in measured)
    for clique in dict.fromkeys(ordered):
        if most is not None and len(clique) > most:
            continue
        found = estimate.table(clique)
        assert found is not None  # it was measured
        labels = [labels_of[name] for name in clique]
        yield _rows(CONSISTENT, clique, labels, found[0], np.sqrt(found[1]), None)


def _rows(
    kind: str,
    clique: Clique,
    labels: Sequence[Sequence[str]],
    counts: np.ndarray,
    stddev: np.ndarray | float,
    round_number: int | None,
) -> pd.DataFrame:
    """The cells of a table as rows."""
    codes = np.unravel_index(np.arange(counts.size), counts.shape)
    found: dict[str, object] = {"kind": kind}
    for axis, name in enumerate(clique):
        found[f"column_{axis + 1}"] = name
        found[f"label_{axis + 1}"] = np.array(labels[axis], dtype=object)[codes[axis]]
    found["estimate"] = counts.astype(np.float64).ravel()
    found["stddev"] = np.broadcast_to(stddev, counts.shape).astype(np.float64).ravel()
    found["round"] = pd.array([round_number] * counts.size, dtype="Int64")
    return pd.DataFrame(found)


def group_labels(column: Column, groups: np.ndarray) -> list[str]:
    """One text for each group of a column's codes."""
    values = groups[: column.num_values]
    own, codes = np.unique(values, return_inverse=True)
    cells = codes if column.merging is None else codes[np.asarray(column.merging.codes)]
    merging = Merging(tuple(cells.tolist()), (1.0,) * len(cells))
    texts = code_labels(replace(column, merging=merging, nullable=False))
    found = dict(zip(own.tolist(), texts, strict=True))
    if column.nullable:
        last = int(groups[-1])
        found[last] = f"{found[last]} or {MISSING}" if last in found else MISSING
    return [found[group] for group in sorted(found)]
