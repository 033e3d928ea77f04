"""Strategies choose what their papers say, measure nothing in vain and spend exactly all."""

from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import combinations, pairwise

import numpy as np
import pytest
from small_engine import Joint, MaximumEntropy

from sdv_privpgd import pipeline
from sdv_privpgd.domain import Domain
from sdv_privpgd.privacy.accounting import stddev_for
from sdv_privpgd.privacy.curator import Curator
from sdv_privpgd.privacy.dataset import Dataset
from sdv_privpgd.privacy.ledger import Books, PrivacyLedger
from sdv_privpgd.privacy.queries import Adjacency, CountQuery, MarginalQuery
from sdv_privpgd.select import triples
from sdv_privpgd.select.aim import AIM
from sdv_privpgd.select.all_pairs import AllPairs
from sdv_privpgd.select.approximation import affordable, expected_noise
from sdv_privpgd.select.independent import Independent
from sdv_privpgd.select.mst import MST
from sdv_privpgd.select.mwem import MWEM
from sdv_privpgd.select.strategy import Strategy
from sdv_privpgd.select.workload import checked_workload, downward_closure
from sdv_privpgd.synthesize.engine import Engine, Model

REPLACE, ADD = Adjacency.REPLACE_ONE, Adjacency.ADD_REMOVE
HUGE = 1e4
ONE_ROUND = AllPairs(first_share=Fraction(1), triples=Fraction(0))
PAIRS = AllPairs(columns=False, triples=Fraction(0))
STRATEGIES = [AllPairs(), Independent(), MST(), AIM(rounds_per_attribute=2), MWEM()]


def open_curator(dataset, *, epsilon=1.0, adjacency=REPLACE, seed=0):
    ledger = PrivacyLedger.open(epsilon, 1e-5, adjacency)
    return Curator(dataset, Books(ledger, words=np.random.default_rng(seed).bytes))


def cliques_of(measurements):
    return [m.query.clique for m in measurements if isinstance(m.query, MarginalQuery)]


def chain(num_rows=2_000):
    """a - b - c - d, each link weaker than the one before; e depends on b alone, and weakest."""
    rng = np.random.default_rng(0)
    columns = [rng.integers(0, 3, num_rows)]
    for keep in (0.9, 0.8, 0.7):
        stays = rng.random(num_rows) < keep
        columns.append(np.where(stays, columns[-1], rng.integers(0, 3, num_rows)))
    columns.append(np.where(rng.random(num_rows) < 0.6, columns[1], rng.integers(0, 3, num_rows)))
    return Dataset(Domain(tuple("abcde"), (3,) * 5), np.stack(columns, axis=1))


def dependence(dataset, pair):
    """L1 distance of a pair's counts from those of independence, in counts."""
    counts = dataset.counts(pair)
    product = np.outer(counts.sum(axis=1), counts.sum(axis=0)) / counts.sum()
    return np.abs(counts - product).sum()


def maximum_spanning_tree(dataset):
    """By brute force over all sets of d - 1 pairs that join all attributes."""
    names = dataset.domain.attributes
    weights = {pair: dependence(dataset, pair) for pair in combinations(names, 2)}

    def joins(edges):
        reached = {names[0]}
        for _ in edges:
            reached |= {name for edge in edges if reached & set(edge) for name in edge}
        return len(reached) == len(names)

    trees = (edges for edges in combinations(weights, len(names) - 1) if joins(edges))
    return set(max(trees, key=lambda edges: sum(weights[edge] for edge in edges)))


def test_they_and_the_small_engine_are_what_the_protocols_say(domain):
    assert all(isinstance(strategy, Strategy) for strategy in STRATEGIES)
    assert isinstance(MaximumEntropy(), Engine)
    assert isinstance(Joint(domain, np.full(domain.sizes, 1 / 24)), Model)


@pytest.mark.parametrize("adjacency", Adjacency)
@pytest.mark.parametrize("strategy", STRATEGIES)
def test_a_fit_spends_all_of_the_budget_and_returns_each_measurement_once(
    dataset, strategy, adjacency
):
    curator = open_curator(dataset, adjacency=adjacency)
    release = pipeline.run(curator, strategy, MaximumEntropy())
    assert release.ledger.remaining == 0
    assert release.measurements == curator.measurements
    values = sum(charge.num_values for charge in release.ledger.charges if charge.stddev)
    assert values == sum(m.answer.size for m in release.measurements if m.stddev)
    counted = [m for m in release.measurements if isinstance(m.query, CountQuery)]
    assert len(counted) == 1
    assert np.isclose(release.model.marginal(("a",)).sum(), 1)


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_the_same_answers_give_the_same_questions(dataset, strategy):
    first, second = (
        strategy.run(open_curator(dataset, seed=5), MaximumEntropy()) for _ in range(2)
    )
    assert [m.query for m in first] == [m.query for m in second]
    for one, other in zip(first, second, strict=True):
        np.testing.assert_array_equal(one.answer, other.answer)


@pytest.mark.parametrize("adjacency", Adjacency)
@pytest.mark.parametrize("strategy", [Independent(), MST(), AIM(), MWEM()])
def test_one_attribute_is_measured_once_with_everything(strategy, adjacency):
    table = Dataset(Domain(("a",), (3,)), np.zeros((5, 1), dtype=np.int64))
    curator = open_curator(table, adjacency=adjacency)
    (measurement,) = strategy.run(curator, MaximumEntropy())
    assert measurement.query == MarginalQuery(("a",))
    (charge,) = curator.ledger.charges
    assert charge.mu_squared == curator.ledger.budget


# Independent and MST


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
    release = pipeline.run(curator, MST(), MaximumEntropy(sweeps=60))
    for pair in maximum_spanning_tree(table):
        expected = table.counts(pair) / 2_000
        np.testing.assert_allclose(release.model.marginal(pair), expected, atol=1e-6)


# Workloads


def test_a_closure_has_every_subset_once_and_weighs_what_it_shares():
    weights = downward_closure([("a", "b"), ("b", "c", "d")])
    assert set(weights) == {
        ("a",), ("b",), ("c",), ("d",), ("a", "b"), ("b", "c"), ("b", "d"), ("c", "d"),
        ("b", "c", "d"),
    }  # fmt: skip
    # Shared attributes with either clique, by hand.
    assert weights["a",] == 1
    assert weights["b",] == 2
    assert weights["a", "b"] == 2 + 1
    assert weights["c", "d"] == 0 + 2
    assert weights["b", "c", "d"] == 1 + 3
    assert list(weights) == sorted(weights, key=len)


def test_a_workload_is_put_in_order_and_checked(domain):
    assert checked_workload(domain, None) == (("a", "b"), ("a", "c"), ("b", "c"))
    assert checked_workload(domain, [("c", "a"), ("a", "c"), ("b",)]) == (("a", "c"), ("b",))
    for workload, message in (
        ([], "empty"),
        ([()], "distinct"),
        ([("a", "a")], "distinct"),
        ([("a", "x")], "not in the domain"),
    ):
        with pytest.raises(ValueError, match=message):
            checked_workload(domain, workload)


def test_only_models_within_the_limit_are_affordable(domain):
    @dataclass
    class Cells(MaximumEntropy):
        def megabytes(self, domain, cliques):
            return float(sum(domain.size(clique) for clique in cliques))

    pairs = list(domain.cliques(2))  # 6, 8 and 12 cells
    assert affordable(Cells(), domain, [], pairs, 8) == pairs[:2]
    assert affordable(Cells(), domain, [], pairs, 1) == pairs[:1]
    assert affordable(Cells(), domain, [("b", "c")], pairs, 17.9) == [("b", "c")]
    assert affordable(Cells(), domain, [("b", "c")], pairs, 18) == [("a", "b"), ("b", "c")]
    assert affordable(Cells(), domain, [("a", "b", "c")], pairs, 0) == pairs


@pytest.mark.parametrize(("adjacency", "unit"), [(REPLACE, 2), (ADD, 1)])
def test_the_expected_noise_is_the_mean_of_the_noise_that_is_added(domain, adjacency, unit):
    ledger = PrivacyLedger.open(1.0, 1e-5, adjacency, 3)
    clique, part = ("b", "c"), ledger.budget / 50
    stddev = stddev_for(9 * unit, part)
    found = expected_noise(ledger, domain, clique, part)
    noise = np.random.default_rng(0).normal(0, stddev, (4_000, 12))
    # A sum of 12 absolute normals has a deviation of 0.6 sqrt(12) sigma: 0.34 % in 4,000.
    assert found == pytest.approx(np.abs(noise).sum(axis=1).mean(), rel=0.02)
    assert found != pytest.approx(1.1 * np.abs(noise).sum(axis=1).mean(), rel=0.02)


# AIM


def rounds_of(ledger):
    """The choice and the measurement of each round, in mu^2 as shares of the budget."""
    charges = [c for c in ledger.charges if c.what != "1-way marginals" and c.mu_squared]
    return [
        (choice.mu_squared / ledger.budget, table.mu_squared / ledger.budget)
        for choice, table in zip(charges[::2], charges[1::2], strict=True)
    ]


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


@dataclass
class Limited(MaximumEntropy):
    """Weighs every clique of two attributes at 1 MiB, and remembers what it was asked."""

    def megabytes(self, domain, cliques):
        return float(sum(len(clique) > 1 for clique in set(cliques)))


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


# MWEM


def test_rounds_of_mwem_are_equal_and_start_from_the_uniform_distribution():
    curator = open_curator(chain())
    engine = MaximumEntropy()
    release = pipeline.run(curator, MWEM(rounds=4), engine)
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


class TestAllPairs:
    @staticmethod
    def shares(epsilon, *, num_rows=2_000, adjacency=REPLACE, known=True, strategy=ONE_ROUND):
        """The cliques that were asked about and each charge's share of mu^2."""
        curator = open_curator(chain(num_rows), epsilon=epsilon, adjacency=adjacency)
        if known:
            curator.measure([CountQuery()], curator.ledger.budget / 100, what="number of rows")
        left = curator.ledger.remaining
        measured = strategy.run(curator, MaximumEntropy())
        charges = [charge for charge in curator.ledger.charges if "marginals" in charge.what]
        return cliques_of(measured), [charge.mu_squared / left for charge in charges]

    @pytest.mark.parametrize("adjacency", [REPLACE, ADD])
    def test_the_louder_the_noise_the_more_goes_to_columns_alone(self, adjacency):
        names = Domain(tuple("abcde"), (3,) * 5)
        before = Fraction(0)
        for epsilon in (1.0, 0.5, 0.3):
            asked, (one_way, pairs) = self.shares(epsilon, adjacency=adjacency)
            assert asked == [*names.cliques(1), *names.cliques(2)]
            assert before < one_way <= Fraction(15, 100)
            assert one_way + pairs == 1
            before = one_way

    def test_the_share_is_one_and_a_half_times_the_relative_noise(self):
        """sigma^2 = 2 x 10 / mu^2; each column is the sum of 3 in 4 tables, a mean of 2,000 / 3."""
        curator = open_curator(chain(), epsilon=1.0)
        sigma = stddev_for(20, curator.ledger.budget)
        _, (one_way, _) = self.shares(1.0)
        assert float(one_way) == pytest.approx(1.5 * sigma * (3 / 4) ** 0.5 / (2_000 / 3), abs=5e-4)

    @pytest.mark.parametrize(
        "quiet", [{"num_rows": 2_000_000}, {"known": False}], ids=["many rows", "rows unknown"]
    )
    def test_where_the_noise_is_quiet_or_unknown_pairs_take_all(self, quiet):
        asked, shares = self.shares(1.0, **quiet)
        assert asked == list(Domain(tuple("abcde"), (3,) * 5).cliques(2))
        assert shares == [1]

    @pytest.mark.parametrize("adjacency", [REPLACE, ADD])
    def test_the_second_round_asks_again_about_what_depends(self, adjacency):
        """Attributes next to each other in the chain depend most."""
        pairs = list(Domain(tuple("abcde"), (3,) * 5).cliques(2))
        asked, shares = self.shares(2.0, adjacency=adjacency, strategy=PAIRS)
        assert asked[:10] == pairs
        again = asked[10:]
        assert again
        assert len(set(again)) == len(again) < 10
        assert {("a", "b"), ("b", "c")} & set(again)
        assert shares[0] == Fraction(2, 3)
        assert sum(shares) == 1

    @pytest.mark.parametrize("epsilon", [0.05, 1.0, 10.0])
    def test_no_answer_of_the_second_round_is_noisier_than_the_first(self, epsilon):
        curator = open_curator(chain(), epsilon=epsilon)
        measured = PAIRS.run(curator, MaximumEntropy())
        assert max(each.stddev for each in measured[10:]) <= measured[0].stddev
        assert curator.ledger.remaining == 0

    def test_attributes_that_promise_nothing_are_asked_again_all_the_same(self):
        """Without two values nothing can depend, and the budget is there to be spent."""
        constant = Dataset(Domain(tuple("abc"), (1, 1, 2)), np.zeros((50, 3), np.int64))
        curator = open_curator(constant, epsilon=1.0)
        assert len(PAIRS.run(curator, MaximumEntropy())) > 3
        assert curator.ledger.remaining == 0

    @pytest.mark.parametrize("share", [0, -1, 1.5])
    def test_a_share_of_the_first_round_outside_its_range_is_refused(self, share):
        with pytest.raises(ValueError, match="first_share must be above 0 and at most 1, got"):
            AllPairs(first_share=share)

    @pytest.mark.parametrize("share", [1, -0.1])
    def test_a_share_of_the_triples_outside_its_range_is_refused(self, share):
        with pytest.raises(ValueError, match="triples must be at least 0 and below 1, got"):
            AllPairs(triples=share)

    @pytest.mark.parametrize("adjacency", [REPLACE, ADD])
    def test_triples_take_their_share_last_in_groups_of_about_equal_counts(self, adjacency):
        domain = Domain(tuple("abcd"), (12, 5, 3, 1))
        codes = np.random.default_rng(0).integers(0, domain.sizes, (5_000, 4))
        curator = open_curator(Dataset(domain, codes), epsilon=2.0, adjacency=adjacency)
        measured = AllPairs(columns=False).run(curator, MaximumEntropy())
        charge = curator.ledger.charges[-1]
        assert charge.mu_squared / curator.ledger.budget == Fraction(1, 10)
        assert curator.ledger.remaining == 0
        assert charge.num_queries == 1  # an attribute of one value is in none
        query = measured[-1].query
        assert query.clique == ("a", "b", "c")
        assert query.grouping.domain.sizes == (4, 4, 3, 1)
        np.testing.assert_array_equal(query.grouping["a"], np.repeat([0, 1, 2, 3], 3))
        assert not any(len(each.query.clique) > 2 for each in measured[:-1])

    def test_of_many_triples_those_with_the_strongest_pairs_are_measured(self, monkeypatch):
        monkeypatch.setattr(triples, "MOST", 3)
        curator = open_curator(chain(20_000), epsilon=5.0)
        measured = AllPairs().run(curator, MaximumEntropy())
        asked = [each.query.clique for each in measured if len(each.query.clique) == 3]
        assert asked == [("a", "b", "c"), ("a", "b", "e"), ("b", "c", "d")]

    def test_two_attributes_have_no_triple(self):
        two = Dataset(Domain(("a", "b"), (3, 2)), np.zeros((50, 2), np.int64))
        curator = open_curator(two, epsilon=1.0)
        measured = AllPairs().run(curator, MaximumEntropy())
        assert {each.query.clique for each in measured} == {("a", "b")}
        assert curator.ledger.remaining == 0
