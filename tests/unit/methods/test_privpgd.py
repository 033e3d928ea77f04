"""PrivPGD asks for all pairs, over groups where that pays, for what depends again, and triples."""

from fractions import Fraction
from itertools import combinations, product

import numpy as np
import pytest
from answers import counted_curator, open_curator
from hypothesis import given
from hypothesis import strategies as st
from selecting import ADD, REPLACE, chain, cliques_of
from small_engine import measured_by

from sdv_privpgd.base.domain import Domain, Grouping
from sdv_privpgd.estimate.denoising import equal_groups
from sdv_privpgd.methods import coarse_pairs
from sdv_privpgd.methods.coarse_pairs import most_helpful, part_for
from sdv_privpgd.methods.privpgd import PrivPGD
from sdv_privpgd.privacy.accounting import stddev_for
from sdv_privpgd.privacy.dataset import Dataset
from sdv_privpgd.privacy.queries import GroupedMarginalQuery, QuadrantQuery
from sdv_privpgd.synthesize.particles.descent import ParticleGradientDescent

PAIRS = Domain(tuple("abcde"), (3,) * 5).cliques(2)
ONE_ROUND = PrivPGD(first_share=Fraction(1), triples=Fraction(0))
TWO_ROUNDS = PrivPGD(columns=False, triples=Fraction(0))


def shares_of(curator, strategy=ONE_ROUND):
    """The cliques that were asked about and each charge's share of what is left of mu^2."""
    left = curator.ledger.remaining
    measured = measured_by(strategy, curator)
    charges = [charge for charge in curator.ledger.charges if "marginals" in charge.what]
    return cliques_of(measured), [charge.mu_squared / left for charge in charges]


def of_five_codes(epsilon, adjacency=REPLACE):
    domain = Domain(tuple("abcde"), (5,) * 5)
    codes = np.random.default_rng(0).integers(0, 5, (2_000, 5))
    return counted_curator(Dataset(domain, codes), epsilon=epsilon, adjacency=adjacency)


@pytest.mark.parametrize("adjacency", [REPLACE, ADD])
def test_the_louder_the_noise_the_more_goes_to_columns_alone(adjacency):
    names = Domain(tuple("abcde"), (5,) * 5)
    before = Fraction(0)
    for epsilon in (0.7, 0.5, 0.3, 0.03):
        curator = of_five_codes(epsilon, adjacency)
        asked, (one_way, pairs) = shares_of(curator)
        assert asked == [*names.cliques(1), *names.cliques(2)]
        assert before < one_way
        assert one_way + pairs == 1
        before = one_way
    # Else nothing would be left for pairs, where private rows seem to be hardly any.
    assert part_for(1e12, 10.0) == Fraction(49, 50)


def test_the_share_of_columns_makes_the_forecast_of_all_noise_least():
    """sigma^2 = 2 x 10 / mu^2; each column is the sum of 5 in 4 tables, a mean of 400."""
    curator = of_five_codes(1.0)
    _, (share, _) = shares_of(curator)
    sigma = stddev_for(20, curator.ledger.budget * Fraction(99, 100))
    noise = sigma * (5 / 4) ** 0.5 / 400
    gain = (20 * 5 / 4) / (2 * 5) - 1  # of five questions beside the sums of four tables
    part = np.linspace(0, 0.999, 1_000)
    of_columns = 22 * noise**0.75 / np.sqrt(1 + gain * part)
    best = part[np.argmin(of_columns + 1 / np.sqrt(1 - part))]
    assert float(share) == pytest.approx(best, abs=2e-3)


def test_columns_are_asked_alone_or_again_where_that_pays():
    domain = Domain(tuple("abcde"), (2,) * 5)
    table = Dataset(domain, np.random.default_rng(0).integers(0, 2, (100, 5)))
    asked, shares = shares_of(counted_curator(table, epsilon=0.1))
    assert asked == list(domain.cliques(2))
    assert shares == [1]
    constant = Dataset(Domain(tuple("abc"), (1, 1, 2)), np.zeros((50, 3), np.int64))
    curator = open_curator(constant, epsilon=1.0)
    assert len(measured_by(TWO_ROUNDS, curator)) > 3
    assert curator.ledger.remaining == 0


@pytest.mark.parametrize(
    ("opened", "num_rows"), [(counted_curator, 2_000_000), (open_curator, 2_000)]
)
def test_where_the_noise_is_quiet_or_unknown_pairs_take_all(opened, num_rows):
    cliques, shares = shares_of(opened(chain(num_rows)))
    assert cliques == list(PAIRS)
    assert shares == [1]


@pytest.mark.parametrize("adjacency", [REPLACE, ADD])
def test_the_second_round_asks_again_about_what_depends(adjacency):
    """Attributes next to each other in the chain depend most."""
    curator = counted_curator(chain(), epsilon=2.0, adjacency=adjacency)
    asked, shares = shares_of(curator, TWO_ROUNDS)
    assert asked[:10] == list(PAIRS)
    again = asked[10:]
    assert again
    assert len(set(again)) == len(again) < 10
    assert {("a", "b"), ("b", "c")} & set(again)
    assert shares[0] == Fraction(2, 3)
    assert sum(shares) == 1


@pytest.mark.parametrize("epsilon", [0.05, 1.0, 10.0])
def test_no_answer_of_the_second_round_is_noisier_than_the_first(epsilon):
    curator = open_curator(chain(), epsilon=epsilon)
    measured = measured_by(TWO_ROUNDS, curator)
    assert max(each.stddev for each in measured[10:]) <= measured[0].stddev
    assert curator.ledger.remaining == 0


@pytest.mark.parametrize("adjacency", [REPLACE, ADD])
def test_triples_take_their_share_last_in_groups_of_about_equal_counts(adjacency):
    domain = Domain(tuple("abcd"), (12, 5, 3, 1))
    codes = np.random.default_rng(0).integers(0, domain.sizes, (5_000, 4))
    curator = open_curator(Dataset(domain, codes), epsilon=2.0, adjacency=adjacency)
    measured = measured_by(PrivPGD(columns=False), curator)
    charge = curator.ledger.charges[-1]
    assert charge.mu_squared / curator.ledger.budget == Fraction(1, 10)
    assert curator.ledger.remaining == 0
    assert charge.num_queries == 1  # an attribute of one value is in none
    query = measured[-1].query
    assert query.clique == ("a", "b", "c")
    assert query.grouping.domain.sizes == (4, 4, 3, 1)
    np.testing.assert_array_equal(query.grouping["a"], np.repeat([0, 1, 2, 3], 3))
    assert not any(len(each.query.clique) > 2 for each in measured[:-1])


def test_the_strongest_triples_are_measured_and_two_attributes_have_none(monkeypatch):
    two = Dataset(Domain(("a", "b"), (3, 2)), np.zeros((50, 2), np.int64))
    curator = open_curator(two, epsilon=1.0)
    measured = measured_by(PrivPGD(), curator)
    assert {each.query.clique for each in measured} == {("a", "b")}
    assert curator.ledger.remaining == 0
    monkeypatch.setattr(coarse_pairs, "MOST", 3)
    curator = open_curator(chain(20_000), epsilon=5.0)
    measured = measured_by(PrivPGD(), curator)
    asked = [each.query.clique for each in measured if len(each.query.clique) == 3]
    assert asked == [("a", "b", "c"), ("a", "b", "e"), ("b", "c", "d")]


def asked(strategy, *, table=None, epsilon=5.0, adjacency=REPLACE):
    """What was measured, and the ledger."""
    table = chain() if table is None else table
    curator = counted_curator(table, epsilon=epsilon, adjacency=adjacency)
    return measured_by(strategy, curator), curator.ledger


def over_groups(measured, degree=2):
    queries = [each.query for each in measured if isinstance(each.query, GroupedMarginalQuery)]
    return [query.clique for query in queries if len(query.clique) == degree]


def over_codes(measured):
    return [clique for clique in cliques_of(measured) if len(clique) == 2]


@pytest.mark.parametrize("adjacency", [REPLACE, ADD])
def test_all_are_asked_for_in_groups_and_those_that_depend_or_are_noisy_over_codes(adjacency):
    strategy = PrivPGD(most_pairs=2, first_share=Fraction(1))
    measured, ledger = asked(strategy, adjacency=adjacency)
    assert over_groups(measured) == list(PAIRS)
    assert over_codes(measured) == [("a", "b"), ("b", "c")]  # the strongest links of the chain
    assert ledger.remaining == 0
    said = [charge.what for charge in ledger.charges]
    assert "2-way marginals in groups" in said
    assert "2-way marginals that depend most, chosen by noisy answers: a x b, b x c" in said


def test_as_many_pairs_as_may_be_are_all_asked_for_over_codes():
    enough, default = (asked(each)[0] for each in (PrivPGD(most_pairs=10), PrivPGD()))
    assert [each.query for each in enough] == [each.query for each in default]
    assert not over_groups(default)


WIDE = Domain(tuple("abcd"), (12, 8, 2, 1))


def of_quadrants(epsilon, adjacency=REPLACE, rows=2_000, **settings):
    """The quadrants that were asked for, and their part of what is left."""
    codes = np.random.default_rng(0).integers(0, WIDE.sizes, (rows, len(WIDE)))
    curator = counted_curator(Dataset(WIDE, codes), epsilon=epsilon, adjacency=adjacency)
    left = curator.ledger.remaining
    PrivPGD(columns=False, triples=Fraction(0), **settings).measure(curator)
    assert curator.ledger.remaining == 0
    charges = [charge for charge in curator.ledger.charges if "quadrants" in charge.what]
    found = [each for each in curator.measurements if isinstance(each.query, QuadrantQuery)]
    return found, charges, sum(charge.mu_squared for charge in charges) / left


@pytest.mark.parametrize("adjacency", [REPLACE, ADD])
def test_the_part_of_quadrants_makes_the_forecast_of_the_noise_of_correlations_least(adjacency):
    """sigma^2 = 2 x 6 / mu^2 of cells, and half as much under add/remove; 2,000 rows."""
    found, (charge,), part = of_quadrants(0.3, adjacency)
    assert [each.query.clique for each in found] == [("a", "b"), ("a", "c"), ("b", "c")]
    assert all(set(each.query.grouping.domain.sizes[:3]) == {2} for each in found)
    changed = 4 if adjacency is REPLACE else 1
    stddev = (3 * changed / float(charge.mu_squared)) ** 0.5
    assert [each.stddev for each in found] == pytest.approx([stddev] * 3, rel=1e-6)
    left, cells = charge.mu_squared / part, changed**0.5 * 6
    sizes = [12 * 8, 12 * 2, 8 * 2, 12, 8, 2]
    noise = stddev_for(cells, left) * np.mean(np.sqrt(sizes)) / 2_000
    own = stddev_for(3 * changed, left) * np.pi / 2 / 2_000
    parts = np.linspace(0, 0.999, 1_000)
    of_correlations = 4 * noise / np.sqrt(1 + ((noise / own) ** 2 - 1) * parts)
    best = parts[np.argmin(of_correlations + 1 / np.sqrt(1 - parts))]
    assert 0.05 < best < 0.5
    # Under add/remove the number of rows is noisy.
    assert float(part) == pytest.approx(best, abs=2e-3 if adjacency is REPLACE else 6e-3)


def test_quadrants_are_asked_for_where_that_pays_and_of_use_and_more_precisely_where_it_matters():
    assert of_quadrants(5.0, rows=20_000) == ([], [], 0)
    for of_no_use in ("pgm", ParticleGradientDescent(targets="consistent")):
        assert of_quadrants(0.3, engine=of_no_use) == ([], [], 0)
    found, charges, _ = of_quadrants(0.3, importance={"c": 6.0})
    noise = {each.query.clique: each.stddev for each in found}
    assert noise["a", "c"] == noise["b", "c"] < noise["a", "b"]
    assert "quadrants of pairs: a x b" in [charge.what for charge in charges]


def test_triples_are_of_pairs_over_codes_which_get_the_share_where_there_are_none():
    measured, ledger = asked(PrivPGD(most_pairs=6))
    (triples, pairs) = over_groups(measured, 3), set(over_codes(measured))
    assert triples
    assert all(pair in pairs for a, b, c in triples for pair in ((a, b), (a, c), (b, c)))
    groupings = {m.query.grouping for m in measured if isinstance(m.query, GroupedMarginalQuery)}
    assert len(groupings) == 1
    assert ledger.charges[-1].mu_squared / ledger.budget == Fraction(1, 10)
    measured, ledger = asked(PrivPGD(most_pairs=2))
    assert not over_groups(measured, 3)
    assert ledger.remaining == 0


def test_wanted_pairs_are_asked_for_and_attributes_of_one_value_are_no_obstacle():
    strategy = PrivPGD(most_pairs=2, pairs=(("e", "d"), ("a", "e")), first_share=Fraction(1))
    assert over_codes(asked(strategy)[0]) == [("a", "e"), ("d", "e")]
    three = PrivPGD(most_pairs=3, pairs=(("e", "d"), ("a", "e")), first_share=Fraction(1))
    assert set(over_codes(asked(three)[0])) == {("a", "b"), ("a", "e"), ("d", "e")}
    constant = Dataset(Domain(tuple("abc"), (1, 1, 2)), np.zeros((50, 3), np.int64))
    measured, ledger = asked(PrivPGD(most_pairs=1), table=constant)
    assert len(over_groups(measured)) == 3
    assert ledger.remaining == 0


def test_pairs_with_an_important_attribute_are_asked_for_more_often_and_more_precisely():
    """e depends on b alone, and weakest."""
    strategy = PrivPGD(most_pairs=2, importance={"e": 6.0}, first_share=Fraction(1))
    measured, ledger = asked(strategy)
    assert ("b", "e") in over_codes(measured)
    noise = {
        each.query.clique: each.stddev
        for each in measured
        if isinstance(each.query, GroupedMarginalQuery)
    }
    assert noise["a", "e"] == pytest.approx(noise["a", "b"] / 6**0.5)
    assert ledger.remaining == 0


def test_what_cannot_be_asked_for_is_refused_before_anything_is_spent():
    curator = open_curator(chain())
    with pytest.raises(ValueError, match="are not in the domain"):
        measured_by(PrivPGD(pairs=(("a", "z"),)), curator)
    assert not curator.ledger.charges


LEVELS = (0.0, 1.0, 2.0, 4.0)
EQUAL = dict.fromkeys([(name,) for name in "abcd"], 1.0)


def expected_error(signals, variances, chosen, weights):
    return sum(
        weights[clique] ** 2
        * (1 / (1 / own + (1 + chosen.get(clique, 0)) / variances[clique])).sum()
        for clique, own in signals.items()
    )


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("budget", [1.0, 3.0, 6.0])
@pytest.mark.parametrize("is_weighted", [False, True])
def test_no_other_choice_of_the_same_cost_is_expected_to_be_better(seed, budget, is_weighted):
    rng = np.random.default_rng(seed)
    signals = {(name,): rng.lognormal(0, 3, rng.integers(1, 5)) for name in "abcd"}
    weights = EQUAL | {("b",): 4.0, ("c",): 2.0} if is_weighted else EQUAL
    variances = {clique: 1 / weight for clique, weight in weights.items()}
    chosen = most_helpful(signals, variances, LEVELS, budget, *([weights] if is_weighted else []))

    def cost(levels):
        return sum(level * weights[clique] for clique, level in levels.items())

    assert cost(chosen) <= budget
    choices = [
        dict(zip(signals, levels, strict=True)) for levels in product(LEVELS, repeat=len(signals))
    ]
    best = min(
        expected_error(signals, variances, other, weights)
        for other in choices
        if cost(other) <= cost(chosen)
    )
    assert expected_error(signals, variances, chosen, weights) == pytest.approx(best)


GROUPING = Grouping(("a", "b", "c"), ((0, 0), (1, 0, 1), (0, 1, 2, 1)))


def test_groups_are_a_domain_and_those_of_another_are_refused_uncounted(domain):
    assert GROUPING.domain == Domain(("a", "b", "c"), (1, 2, 3))
    assert GROUPING["b"].tolist() == [1, 0, 1]
    assert Grouping.of({name: GROUPING[name] for name in "abc"}) == GROUPING
    query = GroupedMarginalQuery(("a", "b"), Grouping(("a", "b"), ((0, 1), (0, 1))))
    with pytest.raises(ValueError, match="'b' has 3 codes and groups for 2 of them"):
        query.shape(domain)


@pytest.mark.parametrize(
    ("attributes", "groups", "message"),
    [
        (("a", "b"), ((0, 1),), "needs groups for each of its 2 attributes, got 1"),
        (("a",), ((0, 2),), r"The groups of 'a' must be 0, 1, ..., without a gap, got \(0, 2\)"),
        (("a",), ((1, 2),), "without a gap"),
        (("a",), ((),), "without a gap"),
    ],
)
def test_groups_that_are_none_are_refused(attributes, groups, message):
    with pytest.raises(ValueError, match=message):
        Grouping(attributes, groups)


@given(st.lists(st.integers(0, 20), min_size=1, max_size=9), st.integers(1, 4))
def test_equal_groups_have_the_smallest_sum_of_squares(counts, most):
    groups = equal_groups(np.array(counts, dtype=float), most)
    number = min(most, len(counts))
    assert (np.diff(groups) >= 0).all()
    assert set(groups.tolist()) == set(range(number))

    def squares(edges):
        parts = np.split(np.array(counts), list(edges))
        return sum(int(part.sum()) ** 2 for part in parts)

    best = min(squares(edges) for edges in combinations(range(1, len(counts)), number - 1))
    assert squares(np.flatnonzero(np.diff(groups)) + 1) == best
