"""Codes in groups: of about equal counts, and the tables that were measured over them. Public."""

import numpy as np

from sdv_privpgd.base.domain import Grouping
from sdv_privpgd.estimate.consistency import ConsistentTables


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


def over_groups(tables: ConsistentTables, grouping: Grouping) -> ConsistentTables:
    """The pairs that were measured over these groups, and the groups' own counts.

    The pairs are as they were measured: they need not agree with the marginals.
    """
    measured = {
        clique: table for clique, table in tables.grouped[grouping].items() if len(clique) == 2
    }
    return ConsistentTables(
        total=tables.total,
        one_way={
            name: grouping.sums(tables.one_way[name], (name,)) for name in grouping.attributes
        },
        tables={clique: table.counts for clique, table in measured.items()},
        variances={clique: table.variance for clique, table in measured.items()},
        grouped={},
    )
