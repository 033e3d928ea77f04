"""Strategies that choose in rounds, and MST: what they ask for, in which order and for how much."""

from dataclasses import replace
from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest
from answers import open_curator
from selecting import (
    ADD,
    HUGE,
    Limited,
    chain,
    cliques_of,
    dependence,
    maximum_spanning_tree,
    rounds_of,
)
from small_engine import MaximumEntropy, measured_by

from sdv_privpgd.base.domain import Domain
from sdv_privpgd.methods import pipeline
from sdv_privpgd.methods.adaptive import AIM, MWEM, Adaptive
from sdv_privpgd.methods.mst import MST
from sdv_privpgd.privacy.dataset import Dataset
from sdv_privpgd.privacy.queries import Adjacency, CountQuery


@pytest.mark.parametrize(
    ("strategy", "shares", "queries", "fits"),
    [
        # The first of the strategy's fits has nothing to start from; nor has the release's.
        (Adaptive(rounds=3, marginals=2), [(1, 60), (1, 60), (3, 10)] * 3,
         [10, 9, 2, 8, 7, 2, 6, 5, 2], [False, True, False]),
        (MWEM(rounds=4), [(1, 40), (9, 40)] * 4, [10, 1] * 4, [False, True, True, False]),
    ],
)  # fmt: skip
def test_rounds_are_equal_and_a_tenth_of_each_pays_for_its_choices(strategy, shares, queries, fits):
    engine = MaximumEntropy()
    release = pipeline.run(open_curator(chain()), replace(strategy, engine=engine))
    spent = [charge for charge in release.ledger.charges if charge.mu_squared]
    assert [charge.mu_squared / release.ledger.budget for charge in spent] == [
        Fraction(*each) for each in shares
    ]
    assert [charge.num_queries for charge in spent] == queries
    assert all(len(clique) == 2 for clique in cliques_of(release.measurements))
    assert engine.fits == fits


@pytest.mark.parametrize(
    ("strategy", "number"),
    [
        (Adaptive(), 10),
        (Adaptive(marginals=4, rounds=2), 8),
        (Adaptive(marginals=20), 10),
        (Adaptive(workload=(("a", "b"), ("c", "d"))), 2),
        (MWEM(), 5),
        (MWEM(rounds=3), 3),
        (MWEM(workload=(("a", "b"), ("c", "d"))), 2),
    ],
    ids=repr,
)
def test_rounds_end_with_the_cliques_and_only_mwem_measures_one_twice(strategy, number):
    measured = cliques_of(measured_by(strategy, open_curator(chain(100))))
    pairs = [clique for clique in measured if len(clique) == 2]
    assert len(pairs) == number
    assert isinstance(strategy, MWEM) or len(set(pairs)) == number


@pytest.mark.parametrize(
    "strategy",
    [Adaptive(rounds=1, marginals=1), MWEM(rounds=1), MWEM(workload=(("a", "b"), ("c", "d")))],
    ids=repr,
)
def test_the_last_round_measures_each_column_alone_that_no_other_table_has(strategy):
    curator = open_curator(chain())
    measured = cliques_of(measured_by(strategy, curator))
    pairs = [clique for clique in measured if len(clique) == 2]
    left = sorted(set("abcde") - {name for pair in pairs for name in pair})
    assert measured == pairs + [(name,) for name in left]
    assert left
    assert curator.ledger.remaining == 0


def test_with_a_huge_budget_rounds_measure_what_depends_most_and_the_model_grows():
    table = chain()
    measured = cliques_of(
        measured_by(Adaptive(rounds=4, marginals=1), open_curator(table, epsilon=HUGE))
    )
    strongest = sorted(
        table.domain.cliques(2), key=lambda pair: dependence(table, pair), reverse=True
    )
    assert measured[0] == strongest[0]
    # a and c depend on each other through b alone, which the model knows by then.
    assert set(measured[1:]) & {("a", "c")} == set()
    strategy = Adaptive(rounds=4, marginals=1, max_megabytes=4.0)
    measured = cliques_of(measured_by(strategy, open_curator(chain(), epsilon=HUGE), Limited()))
    assert len(set(measured)) == 4


def test_with_a_huge_budget_mwem_measures_what_is_furthest_from_uniform_and_its_model_grows():
    table = chain()
    curator = open_curator(table, epsilon=HUGE)
    first, *_ = cliques_of(measured_by(MWEM(rounds=1), curator))
    counts = {pair: table.counts(pair) for pair in table.domain.cliques(2)}
    far = {pair: np.abs(c - c.sum() / 9).sum() for pair, c in counts.items()}
    assert first == max(far, key=far.get)
    curator = open_curator(chain(), epsilon=HUGE)
    measured = cliques_of(measured_by(MWEM(rounds=4, max_megabytes=2.0), curator, Limited()))
    # 0.5, 1, 1.5 and 2 MiB: one pair at first for want of less, and another in the last round.
    pairs = [clique for clique in measured if len(clique) == 2]
    assert len(set(pairs[:3])) == 1
    assert len(set(pairs)) == 2


@pytest.mark.parametrize("adjacency", Adjacency)
def test_mwem_alone_asks_for_the_number_of_rows_first(dataset, adjacency):
    curator = open_curator(dataset, adjacency=adjacency)
    measured = measured_by(MWEM(rounds=2), curator)
    assert isinstance(measured[0].query, CountQuery)
    count, *_ = curator.ledger.charges
    assert count.mu_squared == (curator.ledger.budget / 100 if adjacency is ADD else 0)
    assert curator.ledger.remaining == 0


def test_rounds_of_aim_take_a_tenth_for_the_choice_and_the_last_takes_the_rest():
    curator = open_curator(chain(), epsilon=0.5)
    engine = MaximumEntropy()
    measured_by(AIM(rounds_per_attribute=4), curator, engine)
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
        measured_by(AIM(rounds_per_attribute=8), curator)
        lengths[name] = rounds_of(curator.ledger)
    # Independent data: 1 / 40, 4 / 40 and 16 / 40 are used up in a few rounds.
    assert len(lengths["blank"]) <= 6
    first, second = (choice + table for choice, table in lengths["chain"][:2])
    assert first == second == Fraction(1, 40)
    assert len(lengths["chain"]) > len(lengths["blank"])


@pytest.mark.parametrize("adjacency", Adjacency)
def test_with_a_huge_budget_aim_and_mst_measure_what_is_worst_or_depends_most(adjacency):
    table = chain()
    curator = open_curator(table, epsilon=HUGE, adjacency=adjacency)
    measured = cliques_of(measured_by(AIM(), curator))
    assert measured[5] == max(
        table.domain.cliques(2),
        # All pairs of five attributes weigh alike: 2 with themselves, 1 with 6 others.
        key=lambda pair: dependence(table, pair),
    )
    assert set(maximum_spanning_tree(table)) <= set(measured)
    tree = maximum_spanning_tree(table)
    assert tree == {("a", "b"), ("b", "c"), ("c", "d"), ("b", "e")}
    curator = open_curator(table, epsilon=HUGE, adjacency=adjacency)
    measured = cliques_of(measured_by(MST(), curator))
    assert measured[:5] == list(table.domain.cliques(1))
    assert set(measured[5:]) == tree
    assert len(measured) == 9


def test_workloads_decide_what_is_measured():
    table = chain()
    strategy = AIM(workload=tuple(table.domain.cliques(1)), rounds_per_attribute=2)
    assert {len(clique) for clique in cliques_of(measured_by(strategy, open_curator(table)))} == {1}
    curator = open_curator(chain())
    measured = cliques_of(measured_by(AIM(workload=(("c",),)), curator))
    assert measured == [*table.domain.cliques(1)]  # a column of no clique is not made up
    assert curator.ledger.remaining == 0
    rng = np.random.default_rng(0)
    two = rng.integers(0, 2, (5_000, 2))
    parity = Dataset(
        Domain(("x", "y", "z"), (2, 2, 2)), np.column_stack([two, two.sum(axis=1) % 2])
    )
    strategy = AIM(workload=(("x", "y", "z"),), rounds_per_attribute=2)
    measured = cliques_of(measured_by(strategy, open_curator(parity, epsilon=5.0)))
    assert ("x", "y", "z") in measured


@pytest.mark.parametrize("limit", [0.5, 2.0])
def test_aims_model_never_outgrows_its_share_of_the_limit(limit):
    curator = open_curator(chain(), epsilon=5.0)
    strategy = AIM(rounds_per_attribute=3, max_megabytes=limit)
    measured = measured_by(strategy, curator, Limited())
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


def test_thirds_of_the_budget_go_to_columns_choices_and_pairs():
    curator = open_curator(chain())
    measured_by(MST(), curator)
    one_way, *choices, pairs = curator.ledger.charges
    third = curator.ledger.budget / 3
    assert one_way.mu_squared == third
    assert [choice.mu_squared for choice in choices] == [third / 4] * 4
    assert choices[0].num_queries == 10
    assert pairs.mu_squared == third


def test_a_single_pair_costs_nothing_and_noise_makes_other_trees(domain, dataset):
    pair = Dataset(domain.project(("b", "c")), np.zeros((9, 2), dtype=np.int64))
    curator = open_curator(pair)
    measured = measured_by(MST(), curator)
    assert cliques_of(measured) == [("b",), ("c",), ("b", "c")]
    one_way, pairs = curator.ledger.charges
    assert one_way.mu_squared == curator.ledger.budget / 3
    assert pairs.mu_squared == curator.ledger.budget * 2 / 3
    trees = set()
    for seed in range(10):
        curator = open_curator(chain(200), epsilon=0.05, seed=seed)
        trees.add(tuple(sorted(cliques_of(measured_by(MST(), curator))[5:])))
    assert len(trees) > 5
