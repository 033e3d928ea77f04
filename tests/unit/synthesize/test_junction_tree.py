"""Junction trees: laws of any cliques, sizes of known graphs, marginals against the whole table."""

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sdv_privpgd.base.domain import Domain
from sdv_privpgd.synthesize.graphical import GraphicalModel, JunctionTree

NAMES = tuple("abcdefg")


@st.composite
def cliques_of_a_domain(draw):
    number = draw(st.integers(0, len(NAMES)))
    names = NAMES[:number]
    sizes = draw(st.lists(st.integers(1, 4), min_size=number, max_size=number))
    chosen = st.sets(st.sampled_from(names), max_size=3).map(sorted).map(tuple)
    cliques = draw(st.lists(chosen, max_size=9)) if names else []
    return Domain(names, tuple(sizes)), cliques


@given(cliques_of_a_domain())
def test_any_cliques_get_a_tree_that_holds_them(made):
    domain, cliques = made
    tree = JunctionTree.of(domain, cliques)
    assert all(any(set(clique) <= set(own) for own in tree.cliques) for clique in cliques)
    assert {name for own in tree.cliques for name in own} == set(domain.attributes)
    assert not any(set(a) < set(b) for a in tree.cliques for b in tree.cliques)
    assert len(set(tree.cliques)) == len(tree.cliques)
    for at, (own, parent) in enumerate(zip(tree.cliques, tree.parents, strict=True)):
        assert list(own) == sorted(own)  # the domain's order
        assert (parent == -1) if at == 0 else (0 <= parent < at)
        earlier = {name for other in tree.cliques[:at] for name in other}
        shared = set(own) & set(tree.cliques[parent]) if at else set()
        assert set(own) & earlier == shared == set(tree.separators[at])


@given(cliques_of_a_domain(), st.integers(0, 10**6))
def test_marginals_are_those_of_the_whole_table(made, seed):
    domain, cliques = made
    rng = np.random.default_rng(seed)
    potentials = {clique: rng.normal(0, 3, domain.shape(clique)) for clique in cliques}
    logs = np.zeros(domain.sizes)
    for clique, values in potentials.items():
        others = tuple(axis for axis, name in enumerate(domain.attributes) if name not in clique)
        logs = logs + np.expand_dims(values, others)
    table = np.exp(logs) / np.exp(logs).sum()
    tree = JunctionTree.of(domain, cliques)
    model = GraphicalModel.of_potentials(domain, tree, potentials)
    for clique, found in zip(tree.cliques, model.tables, strict=True):
        expected = np.einsum(table, range(len(domain)), domain.axes(clique))
        np.testing.assert_allclose(found, expected, rtol=1e-10)


def test_the_largest_potentials_neither_over_nor_underflow():
    domain = Domain(("a", "b", "c"), (3, 3, 3))
    rng = np.random.default_rng(0)
    pairs = {pair: rng.normal(0, 1e4, (3, 3)) for pair in domain.cliques(2)[:2]}
    model = GraphicalModel.of_potentials(domain, JunctionTree.of(domain, pairs), pairs)
    for table in model.tables:
        assert np.isfinite(table).all()
        assert table.sum() == pytest.approx(1, abs=1e-12)
        assert (table > 0).all()


@pytest.mark.parametrize("seed", range(20))
def test_a_tree_of_pairs_is_its_own_tree_whatever_the_sizes(seed):
    rng = np.random.default_rng(seed)
    domain = Domain(NAMES, tuple(int(size) for size in rng.integers(1, 100, len(NAMES))))
    pairs = {
        tuple(sorted((name, NAMES[int(rng.integers(at))])))
        for at, name in enumerate(NAMES)
        if at > 0
    }
    assert set(JunctionTree.of(domain, pairs).cliques) == pairs


def test_a_cycle_is_cut_by_its_cheapest_chord():
    domain = Domain(("a", "b", "c", "d"), (2, 50, 3, 60))
    cycle = [("a", "b"), ("b", "c"), ("c", "d"), ("a", "d")]
    tree = JunctionTree.of(domain, cycle)
    assert set(tree.cliques) == {("a", "b", "c"), ("a", "c", "d")}
    assert tree.num_cells == 2 * 50 * 3 + 2 * 3 * 60


def test_all_pairs_are_one_clique():
    domain = Domain(NAMES, (2,) * len(NAMES))
    assert JunctionTree.of(domain, combinations(NAMES, 2)).cliques == (NAMES,)
