"""Pairs become larger tables as the published rule says, which is spelled out here in full."""

from itertools import combinations

import numpy as np
import pytest

from sdv_privpgd.base.domain import Domain
from sdv_privpgd.methods.privsyn import combined


def by_enumeration(domain, pairs, max_cells):
    """All cliques, from the largest on; the first that may be taken is."""
    edges = {frozenset(pair) for pair in pairs}
    taken, used = [], set()
    for degree in range(len(domain), 2, -1):
        for clique in combinations(domain.attributes, degree):
            if (
                all(frozenset(pair) in edges for pair in combinations(clique, 2))
                and len(used & set(clique)) <= 2
                and domain.size(clique) <= max_cells
            ):
                taken.append(clique)
                used |= set(clique)
    covered = {frozenset(pair) for clique in taken for pair in combinations(clique, 2)}
    return taken, edges - covered


@pytest.mark.parametrize("seed", range(12))
def test_cliques_are_those_of_an_enumeration(seed):
    rng = np.random.default_rng(seed)
    domain = Domain(tuple("abcdefg"), tuple(rng.integers(2, 6, 7).tolist()))
    pairs = [pair for pair in domain.cliques(2) if rng.random() < 0.7]
    for max_cells in (0, 30, 100, 5_000):
        found = combined(domain, pairs, max_cells)
        taken, left = by_enumeration(domain, pairs, max_cells)
        assert [clique for clique in found if len(clique) > 2] == taken
        assert {frozenset(clique) for clique in found if len(clique) == 2} == left


def test_many_binary_attributes_that_all_depend_take_a_moment():
    domain = Domain(tuple(f"a{i}" for i in range(40)), (2,) * 40)
    found = combined(domain, domain.cliques(2), 5_000)
    assert max(len(clique) for clique in found) == 12  # 2^12 cells
