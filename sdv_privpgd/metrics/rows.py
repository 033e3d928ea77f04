"""Columns, embeddings and cells of tables of codes, which the metrics compare."""

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from sdv_privpgd.base.domain import Clique, Domain

Columns = Mapping[str, np.ndarray]
"""One array for each attribute, all of the same length."""

_MOST_DENSE = 1 << 22
"""Largest table that is counted in an array; larger ones are counted only where rows are."""


def average(errors: Mapping[Any, float]) -> float:
    """The mean of what a metric finds of each part of the tables."""
    return float(np.mean(list(errors.values())))


def columns(domain: Domain, codes: np.ndarray) -> dict[str, np.ndarray]:
    """The codes of each attribute, in the smallest unsigned type.

    A code outside its attribute's domain goes to the nearest code inside, as in ``Dataset``.
    Raises ``ValueError`` unless there is one column for each attribute, and at least one row.
    """
    if codes.ndim != 2 or codes.shape[1] != len(domain):
        raise ValueError(f"Codes need one column for each of the {len(domain)} attributes.")
    if len(codes) == 0:
        raise ValueError("Tables need at least one row to be compared, got an empty one.")
    clipped = {
        name: np.clip(codes[:, axis].astype(np.int64), 0, size - 1)
        for axis, (name, size) in enumerate(zip(domain.attributes, domain.sizes, strict=True))
    }
    return {
        name: column.astype(np.min_scalar_type(size - 1))
        for (name, column), size in zip(clipped.items(), domain.sizes, strict=True)
    }


def centers(size: int) -> np.ndarray:
    """The centers of an attribute's cells in [0, 1], float64."""
    return (2 * np.arange(size) + 1) / (2 * size)


def embedded(domain: Domain, table: Columns) -> np.ndarray:
    """The centers of the rows' cells, float64, shape (row, attribute)."""
    places = [
        centers(size)[table[name]]
        for name, size in zip(domain.attributes, domain.sizes, strict=True)
    ]
    return np.stack(places, axis=1)


def differences(
    domain: Domain, clique: Clique, real: Columns, synthetic: Columns
) -> tuple[np.ndarray, np.ndarray]:
    """The cells of a clique in which the shares of rows differ, and real minus synthetic there.

    Cells are indices into the flattened table. Shares that are equal as fractions differ by exactly
    zero, because division rounds equal quotients to the same float.
    """
    shape = domain.shape(clique)
    ours, theirs = (_cells(table, clique, shape) for table in (real, synthetic))
    size = math.prod(shape)
    if size <= _MOST_DENSE:
        cells = np.arange(size)
    else:
        cells, places = np.unique(np.concatenate((ours, theirs)), return_inverse=True)
        ours, theirs, size = places[: len(ours)], places[len(ours) :], len(cells)
    shares = [np.bincount(rows, minlength=size) / len(rows) for rows in (ours, theirs)]
    difference = shares[0] - shares[1]
    differing = np.flatnonzero(difference)
    return cells[differing], difference[differing]


def ratio(error: float, scale: float) -> float:
    """The error in units of the scale: 0 without an error, infinite if only the scale is 0."""
    if error == 0:
        return 0.0
    return math.inf if scale == 0 else float(error / scale)


def _cells(table: Columns, clique: Clique, shape: tuple[int, ...]) -> np.ndarray:
    cells = table[clique[0]].astype(np.int64)
    for name, size in zip(clique[1:], shape[1:], strict=True):
        cells *= size
        cells += table[name]
    return cells
