"""A choice is exact in its odds, and costs what the proof says."""

import math
from fractions import Fraction
from itertools import accumulate

import mpmath
import numpy as np
import pytest
from answers import Words
from scipy.special import expit, ndtri

from sdv_privpgd.privacy import selection
from sdv_privpgd.privacy.accounting import (
    log_delta,
    mu_squared_of,
    mu_squared_of_range,
    range_epsilon_of,
    stddev_for,
)
from sdv_privpgd.privacy.queries import ModelErrorQuery
from sdv_privpgd.privacy.selection import exponential_choice

MUS = (1e-4, 0.01, 0.1, 0.6, 1.0, 3.0, 20.0)


def range_epsilon_exactly(mu):
    """2 log(p / (1 - p)) for p = Phi(mu / 2), in 80 digits: an independent reference."""
    with mpmath.workdps(80):
        tail = mpmath.erfc(mpmath.mpf(mu) / 2 / mpmath.sqrt(2)) / 2
        return 2 * (mpmath.log1p(-tail) - mpmath.log(tail))


@pytest.mark.parametrize("mu", MUS)
def test_range_epsilons_are_rounded_down_and_their_costs_up_and_hardly_so(mu):
    found, exact = range_epsilon_of(Fraction(mu) ** 2), range_epsilon_exactly(mu)
    assert found < exact
    assert found == pytest.approx(float(exact), rel=3e-13, abs=1e-14)
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
