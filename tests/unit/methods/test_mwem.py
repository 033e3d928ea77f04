"""MWEM has equal rounds and a model that grows with them."""

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from answers import open_curator
from selecting import ADD, HUGE, Limited, chain, cliques_of, rounds_of
from small_engine import MaximumEntropy

from sdv_privpgd.methods import pipeline
from sdv_privpgd.methods.aim import AIM
from sdv_privpgd.methods.mwem import MWEM
from sdv_privpgd.privacy.queries import Adjacency, CountQuery


def test_rounds_of_mwem_are_equal_and_start_from_the_uniform_distribution():
    curator = open_curator(chain())
    engine = MaximumEntropy()
    release = pipeline.run(curator, replace(MWEM(rounds=4), engine=engine))
    assert rounds_of(release.ledger) == [(Fraction(1, 40), Fraction(9, 40))] * 4
    assert all(len(clique) == 2 for clique in cliques_of(release.measurements))
    # The first of the strategy's three fits has nothing to start from; nor has the release's.
    assert engine.fits == [False, True, True, False]


def test_with_a_huge_budget_mwem_measures_what_is_furthest_from_uniform():
    table = chain()
    curator = open_curator(table, epsilon=HUGE)
    measured = cliques_of(MWEM(rounds=1).run(curator, MaximumEntropy()))
    counts = {pair: table.counts(pair) for pair in table.domain.cliques(2)}
    far = {pair: np.abs(c - c.sum() / 9).sum() for pair, c in counts.items()}
    assert measured == [max(far, key=far.get)]


@pytest.mark.parametrize("adjacency", Adjacency)
def test_mwem_alone_asks_for_the_number_of_rows_first(dataset, adjacency):
    curator = open_curator(dataset, adjacency=adjacency)
    measured = MWEM(rounds=2).run(curator, MaximumEntropy())
    assert isinstance(measured[0].query, CountQuery)
    count, *_ = curator.ledger.charges
    assert count.mu_squared == (curator.ledger.budget / 100 if adjacency is ADD else 0)
    assert curator.ledger.remaining == 0


def test_mwem_has_as_many_rounds_as_attributes_and_no_more_than_cliques():
    for strategy, rounds in (
        (MWEM(), 5),
        (MWEM(rounds=3), 3),
        (MWEM(workload=(("a", "b"), ("c", "d"))), 2),
    ):
        curator = open_curator(chain(100))
        assert len(cliques_of(strategy.run(curator, MaximumEntropy()))) == rounds


def test_mwems_model_grows_with_the_rounds():
    curator = open_curator(chain(), epsilon=HUGE)
    measured = cliques_of(MWEM(rounds=4, max_megabytes=2.0).run(curator, Limited()))
    # 0.5, 1, 1.5 and 2 MiB: one pair at first for want of less, and another in the last round.
    assert len(set(measured[:3])) == 1
    assert len(set(measured)) == 2


def test_mwem_takes_the_smallest_model_where_none_is_within_the_limit(domain, dataset):
    strategy = MWEM(rounds=2, max_megabytes=1e-9)
    measured = cliques_of(strategy.run(open_curator(dataset), MaximumEntropy()))
    assert measured == [("a", "b"), ("a", "b")]


@pytest.mark.parametrize(
    ("strategy", "changes", "message"),
    [
        (AIM(), {"rounds_per_attribute": 0}, "rounds_per_attribute must be at least 1, got 0"),
        (MWEM(), {"rounds": 0}, "rounds must be at least 1, got 0"),
    ],
)
def test_settings_without_a_round_are_refused(strategy, changes, message):
    with pytest.raises(ValueError, match=message):
        replace(strategy, **changes)
