"""PrivMRF measures useful tables inside its graph, the worst fitted last; the graph is chordal."""

import math
from itertools import combinations

import numpy as np
import pytest
from answers import open_curator
from selecting import chain, cliques_of
from small_engine import MaximumEntropy, measured_by

from sdv_privpgd.base.domain import Domain
from sdv_privpgd.methods.privmrf import (
    PrivMRF,
    dependence_graph,
    dependences,
    edges_of,
    first_tables,
)
from sdv_privpgd.privacy.dataset import Dataset
from sdv_privpgd.privacy.queries import Adjacency, MarginalQuery
from sdv_privpgd.synthesize.graphical import JunctionTree

ENGINE = MaximumEntropy(sweeps=5)


@pytest.mark.parametrize("adjacency", Adjacency)
@pytest.mark.parametrize("epsilon", [0.3, 2.0])
def test_all_tables_are_useful_and_lie_inside_the_graph(epsilon, adjacency):
    table = chain(3_000)
    curator = open_curator(table, epsilon=epsilon, adjacency=adjacency)
    strategy = PrivMRF(max_megabytes=200 / 2**17)  # 200 cells
    measured = measured_by(strategy, curator, ENGINE)
    known = dependences(curator.measurements)
    shares = {pair: value / (2 * 3_000) for pair, value in known.items()}
    graph = dependence_graph(curator.domain, shares, 200)
    for each in measured:
        if isinstance(each.query, MarginalQuery):
            clique = each.query.clique
            assert any(set(clique) <= set(own) for own in graph.cliques)
            if len(clique) > 1:
                noise = math.sqrt(2 / math.pi) * each.stddev * table.domain.size(clique)
                # Later tables may have a little less noise than was foreseen, never more.
                assert noise <= 3_000 / 6 * 1.05


def test_budgets_and_numbers_of_tables_are_the_published_ones():
    curator = open_curator(chain(), epsilon=2.0)
    measured = measured_by(PrivMRF(), curator, ENGINE)
    budget = curator.ledger.budget
    charges = [charge for charge in curator.ledger.charges if charge.mu_squared]
    assert charges[0].what == "dependence of all pairs"
    assert charges[0].mu_squared == budget / 10
    assert charges[0].stddev == pytest.approx(6 * math.sqrt(10) / math.sqrt(budget / 10), rel=1e-6)
    choices = sum(charge.mu_squared for charge in charges if charge.temperature is not None)
    assert 0 < choices <= budget / 10
    tables = cliques_of(measured)
    assert len(tables) <= 5 + 4
    assert any(len(clique) > 2 for clique in tables)
    first, *later = [charge for charge in charges[1:] if charge.temperature is None]
    each = first.mu_squared / first.num_queries
    assert all(charge.mu_squared / charge.num_queries >= each for charge in later)


def test_few_rows_have_no_useful_pair_and_two_that_depend_are_one_table():
    curator = open_curator(chain(30), epsilon=0.5)
    measured = measured_by(PrivMRF(), curator, ENGINE)
    assert cliques_of(measured) == [(name,) for name in "abcde"]
    assert curator.ledger.remaining == 0
    codes = np.repeat(np.arange(3), 400)[:, None] * np.ones(2, dtype=np.int64)
    curator = open_curator(Dataset(Domain(("a", "b"), (3, 3)), codes), epsilon=2.0)
    assert cliques_of(measured_by(PrivMRF(), curator, ENGINE)) == [("a", "b")]


def test_of_three_that_make_one_only_together_all_are_measured_in_the_end():
    """Pairs of the three are independent: their dependence comes from a fourth, weak one."""
    rng = np.random.default_rng(0)
    a, b = rng.integers(0, 2, (2, 4_000))
    codes = np.stack([a, b, a ^ b, np.where(rng.random(4_000) < 0.3, a, b)], axis=1)
    table = Dataset(Domain(tuple("abcd"), (2,) * 4), codes)
    measured = measured_by(PrivMRF(), open_curator(table, epsilon=20.0), ENGINE)
    assert any({"a", "b", "c"} <= set(clique) for clique in cliques_of(measured))


def test_the_seed_of_candidates_is_all_that_is_drawn_here():
    runs = [
        measured_by(PrivMRF(candidates=2, seed=seed), open_curator(chain(), seed=4), ENGINE)
        for seed in (0, 0, 1)
    ]
    first, again, other = ([each.query for each in run] for run in runs)
    assert first == again != other


def random_case(seed, number=7):
    rng = np.random.default_rng(seed)
    domain = Domain(tuple("abcdefg"[:number]), tuple(rng.integers(2, 7, number).tolist()))
    return domain, {pair: float(rng.normal(0.02, 0.03)) for pair in domain.cliques(2)}


@pytest.mark.parametrize("max_cells", [100, 600])
@pytest.mark.parametrize("seed", range(3))
def test_it_is_chordal_and_no_larger_than_allowed(seed, max_cells):
    networkx = pytest.importorskip("networkx")
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
