"""Neighboring codes put into groups that hold about equal counts."""

import numpy as np


def equal_groups(counts: np.ndarray, most: int) -> np.ndarray:
    """The group of each code: at most ``most`` runs of neighboring codes with about equal counts.

    The sum of the groups' squared counts is the smallest possible. ``counts`` must not be negative.
    """
    size = len(counts)
    if size <= most:
        return np.arange(size)
    before = np.concatenate([[0.0], np.cumsum(counts)])
    squares = np.square(before[None, :] - before[:, None])  # of the codes from row to column
    squares[np.tril_indices(size + 1)] = np.inf  # no run is empty
    best, starts = squares[0], []
    for _ in range(most - 1):
        longer = best[:, None] + squares
        starts.append(longer.argmin(axis=0))
        best = longer.min(axis=0)
    edges = [size]
    for start in reversed(starts):
        edges.append(int(start[edges[-1]]))
    return np.searchsorted(np.sort(edges[1:]), np.arange(size), side="right")
