"""A choice is charged first, exact in its odds, and costs what the proof says."""

import inspect
import json
import math
from fractions import Fraction
from itertools import accumulate

import mpmath
import numpy as np
import pytest
from scipy.special import expit, ndtri

from sdv_privpgd.privacy import selection
from sdv_privpgd.privacy.accounting import (
    epsilon_of,
    log_delta,
    mu_squared_of,
    mu_squared_of_range,
    range_epsilon_of,
    stddev_for,
)
from sdv_privpgd.privacy.curator import Curator
from sdv_privpgd.privacy.dataset import Dataset
from sdv_privpgd.privacy.ledger import Books, PrivacyBudgetError, PrivacyLedger
from sdv_privpgd.privacy.noise import SAMPLING_DELTA
from sdv_privpgd.privacy.queries import Adjacency, MarginalQuery, ModelErrorQuery
from sdv_privpgd.privacy.selection import exponential_choice
from sdv_privpgd.report.privacy import privacy_report

REPLACE, ADD = Adjacency.REPLACE_ONE, Adjacency.ADD_REMOVE
MUS = (1e-4, 0.01, 0.1, 0.6, 1.0, 3.0, 20.0)


def range_epsilon_exactly(mu):
    """2 log(p / (1 - p)) for p = Phi(mu / 2), in 80 digits: an independent reference."""
    with mpmath.workdps(80):
        tail = mpmath.erfc(mpmath.mpf(mu) / 2 / mpmath.sqrt(2)) / 2
        return 2 * (mpmath.log1p(-tail) - mpmath.log(tail))


@pytest.mark.parametrize("mu", MUS)
def test_the_range_epsilon_is_rounded_down_and_hardly_so(mu):
    found, exact = range_epsilon_of(Fraction(mu) ** 2), range_epsilon_exactly(mu)
    assert found < exact
    assert found == pytest.approx(float(exact), rel=3e-13, abs=1e-14)


@pytest.mark.parametrize("mu", MUS)
def test_what_a_range_epsilon_costs_is_rounded_up_and_hardly_so(mu):
    epsilon = range_epsilon_exactly(mu)
    cost = mu_squared_of_range(Fraction(float(epsilon)))
    assert float(cost) == pytest.approx(mu**2, rel=1e-12 + 1e-14 / mu)
    with mpmath.workdps(80):
        assert range_epsilon_exactly(math.sqrt(cost)) >= epsilon * (1 - mpmath.mpf(2) ** -50)


def test_small_choices_cost_what_the_notes_say():
    # privacy.md section 3: mu ~ 0.627 epsilon for small epsilon.
    assert math.sqrt(mu_squared_of_range(Fraction(1, 100))) / 0.01 == pytest.approx(0.627, abs=5e-4)


@pytest.mark.parametrize("mu_squared", [Fraction(0), Fraction(-1), Fraction(1, 10**40)])
def test_a_budget_without_a_range_epsilon_is_refused(mu_squared):
    with pytest.raises(ValueError, match="raise epsilon"):
        range_epsilon_of(mu_squared)


@pytest.mark.parametrize("epsilon", [0.01, 0.3, 1.0, 4.0, 12.0])
def test_of_all_pairs_of_outcomes_the_one_in_the_middle_costs_the_most(epsilon):
    t = np.linspace(0, epsilon, 20_001)[1:-1]
    alpha = np.expm1(epsilon - t) / np.expm1(epsilon)
    beta = np.expm1(t) / np.expm1(epsilon)
    needed = -(ndtri(alpha) + ndtri(beta))
    cost = math.sqrt(mu_squared_of_range(Fraction(epsilon)))
    assert needed.max() <= cost
    assert needed[len(t) // 2] == pytest.approx(cost, rel=1e-9)
    # What a bound on the epsilon alone, without the range, would ask for is far more.
    assert -2 * ndtri(expit(-epsilon)) > 1.3 * cost


def probabilities(scores, temperature):
    with mpmath.workdps(60):
        weights = [mpmath.exp(mpmath.mpf(score) / temperature) for score in scores]
        return [weight / sum(weights) for weight in weights]


def excess(temperature, mu, scores, changed):
    """How far the exact odds of two lists of scores go above the Gaussian's delta, at the worst."""
    before, after = probabilities(scores, temperature), probabilities(changed, temperature)
    worst = -math.inf
    for epsilon in np.linspace(0, 3, 31):
        delta = sum(max(p - q * mpmath.exp(epsilon), 0) for p, q in zip(before, after, strict=True))
        worst = max(worst, float(delta) - math.exp(log_delta(epsilon, mu)))
    return worst


@pytest.mark.parametrize("mu", [0.05, 0.5, 1.5])
def test_the_exact_odds_of_neighbors_stay_below_the_gaussian(mu):
    epsilon = range_epsilon_of(Fraction(mu) ** 2)
    rng = np.random.default_rng(0)
    found = []
    for sensitivity in (1, 2, 6):
        for _ in range(10):
            scores = rng.integers(-20, 20, 5)
            changed = scores + rng.integers(-sensitivity, sensitivity, 5, endpoint=True)
            found.append(excess(2 * sensitivity / epsilon, mu, scores.tolist(), changed.tolist()))
        opposite = ([0, sensitivity], [sensitivity, 0])
        found.append(excess(2 * sensitivity / epsilon, mu, *opposite))
        assert excess(2 * sensitivity / (1.5 * epsilon), mu, *opposite) > 1e-3
    assert max(found) <= 1e-12
    assert max(found) > -0.01  # the pair in the middle comes close


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(("epsilon", "choices"), [(0.5, 8), (2.5, 8)])
def test_googles_privacy_loss_distribution_of_choices_and_noise_stays_below(epsilon, choices):
    pld = pytest.importorskip("dp_accounting.pld.privacy_loss_distribution")
    budget = mu_squared_of(epsilon, 1e-5)
    each = budget / 10 / choices
    gaussian = pld.from_gaussian_mechanism(
        stddev_for(1, budget * Fraction(9, 10)), value_discretization_interval=1e-4
    )

    def spent(factor, t):
        size = factor * range_epsilon_of(each)
        chances = [math.expm1(size - t * size) / math.expm1(size)]
        chances.append(1 - chances[0])
        odds = [chances[0] * math.exp(t * size), chances[1] * math.exp(t * size - size)]
        one = pld.from_two_probability_mass_functions(
            {index: math.log(chance) for index, chance in enumerate(chances)},
            {index: math.log(chance) for index, chance in enumerate(odds)},
            value_discretization_interval=1e-4,
        )
        return one.self_compose(choices).compose(gaussian).get_epsilon_for_delta(1e-5)

    # Within 1.5 % at a tenth for choices (the notes' table), and never above.
    worst = max(spent(1, t) for t in (0.25, 0.5, 0.75))
    assert 0.975 * epsilon < worst <= epsilon
    assert spent(1.5, 0.5) > epsilon


# The choice itself.


def probabilities_at(scores, temperature):
    top = max(scores)
    weights = [
        mpmath.exp(mpmath.mpf((s - top) * temperature.denominator) / temperature.numerator)
        for s in scores
    ]
    return [weight / sum(weights) for weight in weights]


class Words:
    """Gives out the parts of one number, and counts them."""

    def __init__(self, word, extra):
        self.parts = [word.to_bytes(8, "little"), extra.to_bytes(128, "little")]

    def __call__(self, size):
        part = self.parts.pop(0)
        assert len(part) == size
        return part


SCORES = [
    ([0, 0], Fraction(1)),
    ([5, 3, -2, 5], Fraction(7, 3)),
    ([10**15, 10**15 - 4, 0], Fraction(3)),
    ([2**58, -(2**58)], Fraction(1, 1000)),
    (list(range(40)), Fraction(12)),
]


@pytest.mark.parametrize(("scores", "temperature"), SCORES)
def test_a_number_falls_where_the_exact_odds_put_it(scores, temperature):
    rng = np.random.default_rng(1)
    words = [int.from_bytes(rng.bytes(8), "little") for _ in range(200)]
    with mpmath.workdps(400):
        ends = list(accumulate(probabilities_at(scores, temperature)))
        # The hardest ones, too: at the ends of the intervals, to one part in 2^64.
        near = [int(mpmath.floor(end * 2**64)) + by for end in ends for by in (-1, 0, 1)]
    words += [0, 2**64 - 1, *(word for word in near if 0 <= word < 2**64)]
    for word in words:
        extra = int.from_bytes(rng.bytes(128), "little")
        with mpmath.workdps(400):
            uniform = mpmath.mpf((word << 1024) | extra) / mpmath.mpf(2) ** 1088
            exact = next(index for index, end in enumerate(ends) if uniform < end)
        assert exponential_choice(scores, temperature, Words(word, extra)) == exact


def test_few_numbers_need_more_than_one_word_and_those_near_an_end_do():
    scores, temperature = SCORES[1]
    rng, drawn = np.random.default_rng(2), []

    def words(size):
        drawn.append(size)
        return rng.bytes(size)

    for _ in range(1000):
        exponential_choice(scores, temperature, words)
    assert set(drawn) == {8}
    exponential_choice(
        [0, 0], Fraction(1), lambda size: (drawn.append(size), bytes(size - 1) + b"\x80")[1]
    )
    assert drawn[-1] == 128


@pytest.mark.parametrize(("scores", "temperature"), SCORES)
def test_both_precisions_make_the_same_choice(scores, temperature, monkeypatch):
    def choices():
        return [
            exponential_choice(scores, temperature, np.random.default_rng(seed).bytes)
            for seed in range(60)
        ]

    quick = choices()
    monkeypatch.setattr(selection, "_ERROR", 1.0)
    assert choices() == quick


# The curator.


def open_curator(dataset, *, epsilon=1.0, adjacency=REPLACE, rows=1, seed=0):
    ledger = PrivacyLedger.open(epsilon, 1e-5, adjacency, rows)
    return Curator(dataset, Books(ledger, words=np.random.default_rng(seed).bytes))


def errors_of(domain, cliques=None, *, weight=1, bias=0):
    return [
        ModelErrorQuery(
            clique=clique,
            expected=np.zeros(domain.shape(clique), dtype=np.int64),
            bias=bias,
            weight=weight,
        )
        for clique in cliques or domain.cliques(2)
    ]


class SpyDataset(Dataset):
    """Fails when it is read before the ledger holds a charge; counts its reads."""

    __slots__ = ("curator", "reads")

    def counts_of(self, cliques):
        assert self.curator.ledger.charges, "the table was read before it was paid for"
        self.reads += 1
        return super().counts_of(cliques)


@pytest.fixture
def spy(domain, codes):
    table = SpyDataset(domain, codes)
    table.reads = 0
    table.curator = open_curator(table)
    return table


def test_the_charge_is_on_the_books_before_the_table_is_read(spy, domain):
    budget = spy.curator.ledger.budget
    assert spy.curator.select(errors_of(domain), budget / 3, what="a pair") in range(3)
    assert spy.reads == 1
    (charge,) = spy.curator.ledger.charges
    assert (charge.mechanism, charge.what, charge.num_queries) == ("exponential", "a pair", 3)
    assert charge.mu_squared == budget / 3
    assert charge.delta == SAMPLING_DELTA
    assert not charge.is_exact


def test_nothing_is_chosen_past_the_budget(spy, domain):
    budget = spy.curator.ledger.budget
    with pytest.raises(PrivacyBudgetError, match="left"):
        spy.curator.select(errors_of(domain), budget + Fraction(1, 10**40), what="a pair")
    with pytest.raises(ValueError, match="raise epsilon"):
        spy.curator.select(errors_of(domain), Fraction(1, 10**60), what="a pair")
    assert (spy.reads, spy.curator.ledger.charges) == (0, ())
    spy.curator.select(errors_of(domain), budget, what="a pair")
    assert spy.curator.ledger.remaining == 0


def test_a_single_score_is_chosen_unread_and_free(spy, domain):
    assert spy.curator.select(errors_of(domain)[:1], Fraction(1), what="a pair") == 0
    assert (spy.reads, spy.curator.ledger.charges) == (0, ())


def test_bad_scores_cost_nothing_and_read_nothing(spy, domain):
    wrong = ModelErrorQuery(clique=("a", "b"), expected=np.zeros((3, 2), dtype=np.int64))
    unknown = ModelErrorQuery(clique=("x",), expected=np.zeros(3, dtype=np.int64))
    for scores, message in (
        ([], "empty"),
        ([*errors_of(domain), wrong], r"need shape \(2, 3\)"),
        ([unknown], "not in the domain"),
    ):
        with pytest.raises(ValueError, match=message):
            spy.curator.select(scores, Fraction(1, 100), what="a pair")
    assert (spy.reads, spy.curator.ledger.charges) == (0, ())


def test_a_clique_is_counted_once_for_all_choices(spy, domain):
    part = spy.curator.ledger.budget / 4
    for cliques, reads in (
        (domain.cliques(2), [3]),
        (domain.cliques(2), [3, 0]),
        ((*domain.cliques(1), *domain.cliques(2)), [3, 0, 3]),
    ):
        spy.curator.select(errors_of(domain, cliques), part, what="a clique")
        assert len(spy.curator._tables) == sum(reads)


def test_no_caller_can_name_a_temperature_or_a_seed():
    assert list(inspect.signature(Curator.select).parameters) == [
        "self", "scores", "mu_squared", "what"
    ]  # fmt: skip


@pytest.mark.parametrize("adjacency", Adjacency)
@pytest.mark.parametrize(("weight", "rows"), [(1, 1), (3, 1), (1, 4), (5, 2)])
def test_the_temperature_grows_with_weight_rows_and_adjacency(dataset, adjacency, weight, rows):
    curator = open_curator(dataset, adjacency=adjacency, rows=rows)
    part = curator.ledger.budget / 10
    scores = errors_of(dataset.domain, weight=weight)
    curator.select([*errors_of(dataset.domain), *scores], part, what="a pair")
    (charge,) = curator.ledger.charges
    sensitivity = {REPLACE: 2 * weight * rows, ADD: weight * rows}
    assert dict(charge.sensitivity_squared) == {key: s**2 for key, s in sensitivity.items()}
    epsilon = range_epsilon_of(part)
    assert charge.range_epsilon_under(adjacency) == Fraction(epsilon)
    assert charge.temperature == 2 * sensitivity[adjacency] / Fraction(epsilon)


def test_a_choice_is_counted_under_the_other_adjacency_by_its_own_epsilon(dataset):
    curator = open_curator(dataset, epsilon=2.5)
    budget = curator.ledger.budget
    curator.select(errors_of(dataset.domain), budget / 2, what="a pair")
    curator.measure([MarginalQuery(("a",))], budget / 2, what="a")
    choice, noise = curator.ledger.charges
    half = range_epsilon_of(budget / 2) / 2  # add-remove: half the sensitivity, half the epsilon
    own = math.sqrt(mu_squared_of_range(choice.range_epsilon_under(REPLACE)))
    assert own == pytest.approx(math.sqrt(budget / 2), rel=1e-12)
    other = choice.mu_squared_under(ADD)
    with mpmath.workdps(60):  # mu = 2 Phi^-1(1 / (1 + exp(-epsilon / 2))) by its definition
        chance = 1 / (1 + mpmath.exp(-mpmath.mpf(half) / 2))
        exact = 2 * mpmath.sqrt(2) * mpmath.erfinv(2 * chance - 1)
        assert exact**2 <= mpmath.mpf(other.numerator) / other.denominator
    assert float(other) == pytest.approx(float(exact) ** 2, rel=1e-12)
    assert curator.ledger.spent(adjacency=ADD) == pytest.approx(
        epsilon_of(other + noise.mu_squared_under(ADD), 1e-5), rel=1e-12
    )
    assert curator.ledger.exact_releases == ()


def test_the_books_and_the_report_show_choices(dataset):
    curator = open_curator(dataset)
    part = curator.ledger.budget / 4
    for _ in range(2):
        curator.select(errors_of(dataset.domain), part, what="edge of a tree")
    curator.measure([MarginalQuery(("a",))], part, what="a table")
    book = json.loads(curator.ledger.to_json())
    choice, _, noise = book["charges"]
    (first, *_) = curator.ledger.charges
    assert Fraction(choice["temperature"]) == first.temperature
    assert choice["range_epsilon"] == {
        "replace_one": pytest.approx(range_epsilon_of(part)),
        "add_remove": pytest.approx(range_epsilon_of(part) / 2),
    }
    assert noise["temperature"] is None
    report = privacy_report(curator.ledger)
    assert "edge of a tree, 2 times" in report
    assert f"eps {range_epsilon_of(part):.3g}" in report
    assert "50 %" in report
    assert "range epsilon" in report
    plain = open_curator(dataset)
    plain.measure([MarginalQuery(("a",))], part, what="a table")
    assert "range epsilon" not in privacy_report(plain.ledger)


def test_with_a_huge_budget_the_largest_score_is_chosen(dataset, domain):
    true = [dataset.counts(clique) for clique in domain.cliques(2)]
    for worst in range(3):
        scores = [
            ModelErrorQuery(clique=clique, expected=counts + (3 if index == worst else 1))
            for index, (clique, counts) in enumerate(zip(domain.cliques(2), true, strict=True))
        ]
        values = [score.of_counts(counts) for score, counts in zip(scores, true, strict=True)]
        curator = open_curator(dataset, epsilon=1e4, seed=worst)
        chosen = curator.select(scores, curator.ledger.budget, what="a pair")
        assert chosen == int(np.argmax(values)) == worst


def test_the_curator_keeps_what_it_measured_in_order(dataset):
    curator = open_curator(dataset)
    part = curator.ledger.budget / 2
    assert curator.measurements == ()
    (first,) = curator.measure([MarginalQuery(("a",))], part, what="a")
    (second,) = curator.measure([MarginalQuery(("b",))], part, what="b")
    assert curator.measurements == (first, second)


# The score.


def test_the_error_of_a_model_is_its_weighted_distance_above_the_bias(dataset):
    clique = ("c", "a")
    counts = dataset.counts(clique)
    expected = np.arange(8, dtype=np.int64).reshape(4, 2)
    query = ModelErrorQuery(clique=clique, expected=expected, bias=7, weight=3)
    by_hand = 3 * (
        sum(abs(int(x) - int(y)) for x, y in zip(counts.flat, expected.flat, strict=True)) - 7
    )
    assert query.answer(dataset).tolist() == [by_hand]
    assert query.describe() == "error of the model on c x a"
    assert not expected.flags.writeable


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"expected": np.zeros((2, 3))}, "int64"),
        ({"weight": 0}, "weight"),
        ({"expected": np.full((2, 3), 2**61)}, "at most 2\\^60"),
        ({"expected": np.full((2, 3), -(2**63))}, "at most 2\\^60"),
        ({"bias": 2**61}, "at most 2\\^60"),
        ({"weight": 2**60, "bias": -2}, "at most 2\\^60"),
    ],
)
def test_numbers_that_could_wrap_around_are_refused(changes, message):
    with pytest.raises(ValueError, match=message):
        ModelErrorQuery(
            **{"clique": ("a", "b"), "expected": np.zeros((2, 3), dtype=np.int64), **changes}
        )
