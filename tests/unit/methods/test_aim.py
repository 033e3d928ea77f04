"""AIM measures what its model has worst, and anneals where that tells nothing."""

from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest
from answers import open_curator
from selecting import HUGE, Limited, chain, cliques_of, dependence, maximum_spanning_tree, rounds_of
from small_engine import MaximumEntropy

from sdv_privpgd.base.domain import Domain
from sdv_privpgd.methods.aim import AIM
from sdv_privpgd.privacy.dataset import Dataset
from sdv_privpgd.privacy.queries import Adjacency, MarginalQuery


def test_rounds_of_aim_take_a_tenth_for_the_choice_and_the_last_takes_the_rest():
    curator = open_curator(chain(), epsilon=0.5)
    engine = MaximumEntropy()
    AIM(rounds_per_attribute=4).run(curator, engine)
    first = next(c for c in curator.ledger.charges if c.what == "1-way marginals")
    assert first.mu_squared == curator.ledger.budget * 5 * Fraction(9, 10) / 20
    rounds = rounds_of(curator.ledger)
    assert len(rounds) <= 20
    for choice, table in rounds:
        assert choice == (choice + table) / 10
    steps = [choice + table for choice, table in rounds]
    assert steps[0] == Fraction(1, 20)
    # A round costs what the one before did, or 4 times as much; the last one takes what is left.
    assert all(later in (before, 4 * before) for before, later in pairwise(steps[:-1]))
    assert sum(steps) == 1 - Fraction(9, 40)
    assert curator.ledger.remaining == 0
    # One fit for the columns, one a round but the last, each from where the former ended.
    assert engine.fits == [False] + [True] * (len(rounds) - 1)


def test_rounds_that_tell_nothing_anneal_and_rounds_that_do_tell_do_not():
    blank = Dataset(chain().domain, np.random.default_rng(0).integers(0, 3, (2_000, 5)))
    lengths = {}
    for name, table in (("blank", blank), ("chain", chain(20_000))):
        curator = open_curator(table, epsilon=0.5)
        AIM(rounds_per_attribute=8).run(curator, MaximumEntropy())
        lengths[name] = rounds_of(curator.ledger)
    # Independent data: 1 / 40, 4 / 40 and 16 / 40 are used up in a few rounds.
    assert len(lengths["blank"]) <= 6
    first, second = (choice + table for choice, table in lengths["chain"][:2])
    assert first == second == Fraction(1, 40)
    assert len(lengths["chain"]) > len(lengths["blank"])


@pytest.mark.parametrize("adjacency", Adjacency)
def test_with_a_huge_budget_aim_measures_the_worst_pair_first(adjacency):
    table = chain()
    curator = open_curator(table, epsilon=HUGE, adjacency=adjacency)
    measured = cliques_of(AIM().run(curator, MaximumEntropy()))
    assert measured[5] == max(
        table.domain.cliques(2),
        # All pairs of five attributes weigh alike: 2 with themselves, 1 with 6 others.
        key=lambda pair: dependence(table, pair),
    )
    assert set(maximum_spanning_tree(table)) <= set(measured)


def test_a_workload_of_single_attributes_is_the_independent_model():
    table = chain()
    strategy = AIM(workload=tuple(table.domain.cliques(1)), rounds_per_attribute=2)
    assert {
        len(clique) for clique in cliques_of(strategy.run(open_curator(table), MaximumEntropy()))
    } == {1}


def test_a_workload_of_one_attribute_of_many_is_measured_at_once():
    curator = open_curator(chain())
    (measurement,) = AIM(workload=(("c",),)).run(curator, MaximumEntropy())
    assert measurement.query == MarginalQuery(("c",))
    assert curator.ledger.remaining == 0


def test_a_workload_of_triples_measures_triples_where_they_matter():
    rng = np.random.default_rng(0)
    two = rng.integers(0, 2, (5_000, 2))
    parity = Dataset(
        Domain(("x", "y", "z"), (2, 2, 2)), np.column_stack([two, two.sum(axis=1) % 2])
    )
    strategy = AIM(workload=(("x", "y", "z"),), rounds_per_attribute=2)
    measured = cliques_of(strategy.run(open_curator(parity, epsilon=5.0), MaximumEntropy()))
    assert ("x", "y", "z") in measured


@pytest.mark.parametrize("limit", [0.5, 2.0])
def test_aims_model_never_outgrows_its_share_of_the_limit(limit):
    curator = open_curator(chain(), epsilon=5.0)
    strategy = AIM(rounds_per_attribute=3, max_megabytes=limit)
    measured = strategy.run(curator, Limited())
    spent, pairs = Fraction(0), set()
    tables = iter(measured)
    for charge in curator.ledger.charges:
        spent += charge.mu_squared
        if charge.stddev:
            new = {next(tables).query.clique for _ in range(charge.num_queries)}
            pairs |= {clique for clique in new if len(clique) > 1}
            assert len(pairs) <= limit * spent / curator.ledger.budget
    assert len(pairs) == int(limit)
    assert curator.ledger.remaining == 0
