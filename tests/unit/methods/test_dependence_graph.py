"""The graph is chordal, stays within its size, and joins what depends."""

from itertools import combinations

import numpy as np
import pytest

from sdv_privpgd.base.domain import Domain
from sdv_privpgd.methods.privmrf import dependence_graph, edges_of, first_tables
from sdv_privpgd.synthesize.graphical import JunctionTree

networkx = pytest.importorskip("networkx")


def random_case(seed, number=7):
    rng = np.random.default_rng(seed)
    domain = Domain(tuple("abcdefg"[:number]), tuple(rng.integers(2, 7, number).tolist()))
    return domain, {pair: float(rng.normal(0.02, 0.03)) for pair in domain.cliques(2)}


@pytest.mark.parametrize("max_cells", [100, 600])
@pytest.mark.parametrize("seed", range(3))
def test_it_is_chordal_and_no_larger_than_allowed(seed, max_cells):
    domain, known = random_case(seed)
    tree = dependence_graph(domain, known, max_cells)
    graph = networkx.Graph([tuple(edge) for edge in edges_of(tree)])
    graph.add_nodes_from(domain.attributes)
    assert networkx.is_chordal(graph)
    maximal = {frozenset(clique) for clique in networkx.find_cliques(graph)}
    assert maximal == {frozenset(clique) for clique in tree.cliques}
    assert tree.num_cells <= max_cells


def test_dependent_pairs_and_chains_are_joined_where_there_is_room():
    domain, known = random_case(1, number=6)
    joined = edges_of(dependence_graph(domain, known, 1e9))
    assert {frozenset(pair) for pair, value in known.items() if value > 0.001} <= joined
    domain = Domain(tuple("abcd"), (3,) * 4)
    known = dict.fromkeys(domain.cliques(2), -0.01)
    known |= {("a", "b"): 0.4, ("b", "c"): 0.3, ("c", "d"): 0.2}
    tree = dependence_graph(domain, known, 1e6)
    assert {frozenset(clique) for clique in tree.cliques} == {
        frozenset(pair) for pair in (("a", "b"), ("b", "c"), ("c", "d"))
    }


@pytest.mark.parametrize("seed", range(4))
def test_graphs_are_as_good_as_any_pair_more_and_first_tables_cover_all(seed):
    domain, known = random_case(seed, number=4)
    limit = 60
    tree = dependence_graph(domain, known, limit)
    score = lambda each: sum(known[p] for p in known if frozenset(p) in edges_of(each))
    for pair in known:
        wider = JunctionTree.of(domain, [*tree.cliques, pair])
        assert wider.num_cells > limit or score(wider) <= score(tree) + 1e-6
    domain, known = random_case(seed)
    tree = dependence_graph(domain, known, 500)
    is_useful = lambda clique: domain.size(clique) <= 60
    found = first_tables(domain, tree.cliques, known, is_useful)
    assert len(found) <= len(domain)
    assert {name for clique in found for name in clique} == set(domain.attributes)
    for clique in found:
        assert len(clique) == 1 or is_useful(clique)
        assert any(set(clique) <= set(own) for own in tree.cliques)
    assert not any(set(one) <= set(other) for one, other in combinations(found, 2))


def test_an_attribute_is_measured_with_what_tells_most_of_it():
    domain = Domain(tuple("abc"), (2, 2, 2))
    known = {("a", "b"): 0.3, ("a", "c"): 0.2, ("b", "c"): 0.01}
    pairs = first_tables(domain, [("a", "b", "c")], known, lambda clique: len(clique) < 3)
    assert pairs == [("a", "b"), ("a", "c")]
    # Where b and c say the same of a, the second adds little: (0.3 + 0.2) / sqrt(2 + 0.9) < 0.3.
    known["b", "c"] = 0.9
    together = first_tables(domain, [("a", "b", "c")], known, lambda clique: True)
    assert ("a", "b", "c") not in together
