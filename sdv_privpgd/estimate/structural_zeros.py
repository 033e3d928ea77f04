"""Structural zeros: cells that no row can be in are emptied in noisy tables. Public.

The noise in these cells is removed, and the remaining cells are shifted evenly to keep the
marginals. It is post-processing of noisy answers by declared facts, and free.
"""

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from sdv_privpgd.base.domain import Clique
from sdv_privpgd.estimate.consistency import ConsistentTables

Possible = Mapping[Clique, np.ndarray]
"""True for the cells of some cliques that can hold rows; axes in the clique's order."""

_SWEEPS = 50
"""Alternating shifts of a table's axes; after 50, pairs of 32 codes are exact to 1e-3 of a
record."""


def possible_cells(clique: Clique, shape: tuple[int, ...], possible: Possible) -> np.ndarray:
    """Marks the cells of a clique's table that can hold rows, by all that ``possible`` says."""
    allowed = np.ones(shape, dtype=bool)
    for known, own in possible.items():
        if set(known) <= set(clique):
            ordered = own.transpose([known.index(name) for name in clique if name in known])
            others = tuple(axis for axis, name in enumerate(clique) if name not in known)
            allowed &= np.expand_dims(ordered, others)
    return allowed


def few_choices(allowed: np.ndarray) -> bool:
    """Whether each code of a pair's attributes goes with at most two codes of the other.

    That is so where one of several columns is 1, or where two columns say the same.
    """
    return allowed.ndim == 2 and max(allowed.sum(axis=0).max(), allowed.sum(axis=1).max()) <= 2


def emptied(tables: ConsistentTables, possible: Possible) -> ConsistentTables:
    """The same tables, with 0 in the cells that no row can be in."""
    one_way = dict(tables.one_way)
    for clique, own in possible.items():
        for axis, name in enumerate(clique):
            others = tuple(other for other in range(len(clique)) if other != axis)
            kept = one_way[name] * own.any(axis=others)
            if kept.any():
                one_way[name] = kept * (tables.total / kept.sum())
    found = {}
    for clique, counts in tables.tables.items():
        allowed = possible_cells(clique, counts.shape, possible)
        for axis, name in enumerate(clique):
            others = tuple(other for other in range(len(clique)) if other != axis)
            allowed &= np.expand_dims(one_way[name] > 0, others)
        margins = [one_way[name] for name in clique]
        found[clique] = counts if allowed.all() else _shifted(counts * allowed, allowed, margins)
    return replace(tables, one_way=one_way, tables=found)


def _shifted(counts: np.ndarray, allowed: np.ndarray, margins: list[np.ndarray]) -> np.ndarray:
    """The counts with these marginals, as far as the possible cells allow it."""
    for _ in range(_SWEEPS):
        for axis, margin in enumerate(margins):
            others = tuple(other for other in range(counts.ndim) if other != axis)
            cells = allowed.sum(axis=others, keepdims=True)
            missing = np.expand_dims(margin, others) - counts.sum(axis=others, keepdims=True)
            counts = counts + allowed * (missing / np.maximum(cells, 1))
    return counts
