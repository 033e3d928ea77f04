"""Tables that agree and have no negative cells: what rows can have. Public: post-processing."""

from collections.abc import Mapping

import numpy as np

from sdv_privpgd.base.domain import Clique
from sdv_privpgd.estimate.consistency import ConsistentTables, reconciled
from sdv_privpgd.estimate.noisy_tables import NoisyTable
from sdv_privpgd.estimate.structural_zeros import Possible, possible_cells
from sdv_privpgd.estimate.support import simplex_projection

_ROUNDS = 100
"""The most rounds; pairs of Adult at epsilon 1 end after some twenty."""

_CLOSE = 1e-3
"""Share of the records by which tables may still disagree at the end."""


def possible_tables(tables: ConsistentTables, possible: Possible) -> Mapping[Clique, np.ndarray]:
    """The tables without negative cells, which nearly agree and sum to the total.

    Norm-sub, which takes as much from each positive cell, and consistency take turns until tables
    agree to within a thousandth of the records (Zhang et al. 2021, who take 400 turns, and then
    some that empty the smallest cells). Cells that no row can be in stay empty.
    """
    total = tables.total
    one_way = {name: counts[counts > 0] for name, counts in tables.one_way.items()}
    places = {clique: np.ix_(*tables.support(clique)) for clique in tables.tables}
    allowed = {
        clique: possible_cells(clique, counts.shape, possible)[places[clique]]
        for clique, counts in tables.tables.items()
    }
    now = {clique: counts[places[clique]] for clique, counts in tables.tables.items()}
    for _ in range(_ROUNDS):
        positive = {clique: _positive(now[clique], allowed[clique], total) for clique in now}
        now = reconciled(
            {clique: NoisyTable(own, tables.variances[clique]) for clique, own in positive.items()},
            one_way,
            total,
        )
        apart = [np.abs(now[clique] - own).sum() for clique, own in positive.items()]
        if max(apart, default=0.0) <= _CLOSE * total:
            break
    found = {}
    for clique, counts in tables.tables.items():
        found[clique] = np.zeros(counts.shape)
        found[clique][places[clique]] = _positive(now[clique], allowed[clique], total)
    return found


def _positive(counts: np.ndarray, allowed: np.ndarray, total: float) -> np.ndarray:
    """The nearest counts without negative cells that sum to the total."""
    found = np.zeros(counts.shape)
    if allowed.any():
        found[allowed] = simplex_projection(counts[allowed], total)
    return found
