"""Independent measures each attribute; MST a tree of the pairs that depend most."""

from dataclasses import replace

import numpy as np
import pytest
from answers import open_curator
from selecting import HUGE, chain, cliques_of, maximum_spanning_tree
from small_engine import MaximumEntropy

from sdv_privpgd.methods import pipeline
from sdv_privpgd.methods.fixed import Independent
from sdv_privpgd.methods.mst import MST
from sdv_privpgd.privacy.dataset import Dataset
from sdv_privpgd.privacy.queries import Adjacency


def test_independent_measures_each_attribute_in_one_release(dataset, domain):
    curator = open_curator(dataset)
    measurements = Independent().run(curator, MaximumEntropy())
    assert cliques_of(measurements) == [("a",), ("b",), ("c",)]
    assert len(curator.ledger.charges) == 1


@pytest.mark.parametrize("adjacency", Adjacency)
def test_with_a_huge_budget_the_tree_is_the_maximum_spanning_tree(adjacency):
    table = chain()
    tree = maximum_spanning_tree(table)
    assert tree == {("a", "b"), ("b", "c"), ("c", "d"), ("b", "e")}
    curator = open_curator(table, epsilon=HUGE, adjacency=adjacency)
    measured = cliques_of(MST().run(curator, MaximumEntropy()))
    assert measured[:5] == list(table.domain.cliques(1))
    assert set(measured[5:]) == tree
    assert len(measured) == 9


def test_with_a_tiny_budget_the_tree_is_another_at_times():
    trees = set()
    for seed in range(10):
        curator = open_curator(chain(200), epsilon=0.05, seed=seed)
        trees.add(tuple(sorted(cliques_of(MST().run(curator, MaximumEntropy()))[5:])))
    assert len(trees) > 5


@pytest.mark.parametrize("seed", range(5))
def test_a_tree_joins_all_attributes_without_a_cycle(seed):
    curator = open_curator(chain(50), epsilon=0.1, seed=seed)
    tree = cliques_of(MST().run(curator, MaximumEntropy()))[5:]
    assert len(set(tree)) == 4
    assert {name for pair in tree for name in pair} == set("abcde")


def test_thirds_of_the_budget_go_to_columns_choices_and_pairs():
    curator = open_curator(chain())
    MST().run(curator, MaximumEntropy())
    one_way, *choices, pairs = curator.ledger.charges
    third = curator.ledger.budget / 3
    assert one_way.mu_squared == third
    assert [choice.mu_squared for choice in choices] == [third / 4] * 4
    assert choices[0].num_queries == 10
    assert pairs.mu_squared == third


def test_of_two_attributes_the_only_pair_is_chosen_for_nothing(domain, dataset):
    pair = Dataset(domain.project(("b", "c")), np.zeros((9, 2), dtype=np.int64))
    curator = open_curator(pair)
    measured = MST().run(curator, MaximumEntropy())
    assert cliques_of(measured) == [("b",), ("c",), ("b", "c")]
    one_way, pairs = curator.ledger.charges
    assert one_way.mu_squared == curator.ledger.budget / 3
    assert pairs.mu_squared == curator.ledger.budget * 2 / 3


def test_a_tree_reproduces_its_pairs_when_nothing_is_noisy():
    table = chain()
    curator = open_curator(table, epsilon=1e6)
    release = pipeline.run(curator, replace(MST(), engine=MaximumEntropy(sweeps=60)))
    for pair in maximum_spanning_tree(table):
        expected = table.counts(pair) / 2_000
        np.testing.assert_allclose(release.model.marginal(pair), expected, atol=1e-6)
