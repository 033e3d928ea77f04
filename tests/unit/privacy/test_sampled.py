"""Steps on samples cost what other accountants say, and compose as what they are charged as."""

import math

import numpy as np
import pytest
from scipy import fft
from scipy.stats import norm
from sdv_privpgd.privacy.sampled import excess, for_one, for_rows, noise_multiplier

from sdv_privpgd.privacy import sampled
from sdv_privpgd.privacy.accounting import epsilon_of, mu_squared_of

CASES = [(0.05, 3.4, 300), (0.01, 0.8, 500), (0.2, 6.0, 50)]


def epsilon_by_us(rate, steps, noise, delta):
    """The epsilon of the steps alone, one row more or less, from the masses of their losses."""
    losses, mass, _, lost = sampled._composed(rate, steps, noise)
    curve = sampled._above(losses, mass, lost)
    return losses[np.flatnonzero(curve <= delta)[0]]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(("rate", "noise", "steps"), CASES)
def test_opacus_says_the_same(rate, noise, steps):
    accountants = pytest.importorskip("opacus.accountants")
    accountant = accountants.PRVAccountant()
    accountant.history = [(noise, rate, steps)]
    theirs = accountant.get_epsilon(1e-5, eps_error=0.001, delta_error=1e-9)
    assert epsilon_by_us(rate, steps, noise, 1e-5) == pytest.approx(theirs, abs=0.003)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("rate", [0.002, 0.03, 0.4])
@pytest.mark.parametrize("noise", [0.7, 1.5, 8.0])
@pytest.mark.parametrize("steps", [1, 40, 1_000])
def test_no_epsilon_is_below_opacus_tight_one_or_above_its_loose_one(rate, noise, steps):
    accountants = pytest.importorskip("opacus.accountants")
    tight, loose = accountants.PRVAccountant(), accountants.RDPAccountant()
    tight.history = loose.history = [(noise, rate, steps)]
    bounds = loose.get_epsilon(1e-5)
    if bounds > 20:
        pytest.skip("of no use to anybody")
    ours = epsilon_by_us(rate, steps, noise, 1e-5)
    assert ours <= bounds + 1e-3
    # Theirs is an upper bound, to 0.01.
    assert abs(ours - tight.get_epsilon(1e-5, eps_error=0.01, delta_error=1e-9)) < 0.015


@pytest.mark.parametrize(("rate", "noise", "steps"), [*CASES, (0.03, 0.75, 100), (1.0, 9.0, 20)])
@pytest.mark.parametrize("factor", [0.8, 1.0, 1.3])
def test_the_delta_beyond_a_gaussian_is_google_s_in_both_orders(rate, noise, steps, factor):
    pld = pytest.importorskip("dp_accounting.pld.privacy_loss_distribution")
    mu = factor * rate * math.sqrt(steps * math.expm1(noise**-2))
    one = pld.from_gaussian_mechanism(
        noise, sampling_prob=rate, value_discretization_interval=2e-4, use_connect_dots=True
    )
    x, composed = np.linspace(0.0, 8 * mu, 100), one.self_compose(steps)
    theirs = np.array([composed.get_delta_for_epsilon(each) for each in x])
    expected = max(float((theirs - sampled._gaussian(x, mu)).max()), 0.0)
    assert excess(rate, steps, noise, mu) == pytest.approx(expected, rel=0.02, abs=2e-7)


@pytest.mark.parametrize(("rate", "noise", "steps"), CASES)
def test_google_says_the_same(rate, noise, steps):
    pld = pytest.importorskip("dp_accounting.pld.privacy_loss_distribution")
    one = pld.from_gaussian_mechanism(
        noise, sampling_prob=rate, value_discretization_interval=1e-4, use_connect_dots=True
    )
    theirs = one.self_compose(steps).get_epsilon_for_delta(1e-5)
    assert epsilon_by_us(rate, steps, noise, 1e-5) == pytest.approx(theirs, abs=1e-3)


@pytest.mark.parametrize(("rate", "noise", "steps"), [*CASES, (0.03, 0.7, 100), (1e-3, 0.6, 9_000)])
def test_rounding_moves_no_delta_by_more_than_is_added_for_it(rate, noise, steps):
    """The same transforms in numbers of 64 bits, where the processor has them."""
    losses, of_p, of_q, _ = sampled._composed(rate, steps, noise)
    points = sampled._POINTS
    ends = np.append(losses, -losses[0])
    mass, _ = sampled._step(ends, rate, noise)
    wide = ends.astype(np.longdouble)
    for found, one, x in [
        (of_p, mass.astype(np.longdouble), losses),
        (of_q[::-1], mass * np.exp(-wide), -losses[::-1]),
    ]:
        rolled = np.roll(one[:-1], -points)
        total = np.roll(fft.irfft(fft.rfft(rolled) ** steps, 2 * points), points)
        total = total if x is losses else total[::-1]
        kept = x >= 0
        own = sampled._above(x[kept], found[kept], 0.0)
        exact = sampled._above(x[kept].astype(np.longdouble), total[kept], 0.0)
        allowed = sampled._ERROR + sampled._STEP_ERROR * steps
        assert np.abs(own - exact).max() < allowed / 5


def test_what_lies_beyond_the_grid_is_never_promised(monkeypatch):
    grid = np.linspace(-1, 1, 2 * sampled._POINTS)
    nothing = np.zeros(len(grid))
    monkeypatch.setattr(sampled, "_composed", lambda *_: (grid, nothing, nothing, 0.3))
    assert excess(0.5, 10, 3.0, 0.9) >= 0.3


@pytest.mark.parametrize("mu", [0.05, 1.0])
def test_hardly_any_sample_needs_no_noise_and_the_search_ends(mu):
    assert 0.05 < noise_multiplier(2.0**-32, 3, mu, 1e-6) < 0.3


@pytest.mark.parametrize("rate", [1.0, 0.02])
def test_one_step_is_what_its_formula_says(rate):
    noise, mu, x = 2.0, 0.3, np.linspace(0, 1.5, 40_001)
    inner = np.log(1 + np.expm1(x) / rate)
    there = rate * (
        norm.cdf(0.5 / noise - inner * noise)
        - np.exp(inner) * norm.cdf(-0.5 / noise - inner * noise)
    )
    expected = max(np.max(there - sampled._gaussian(x, mu)), 0)
    assert excess(rate, 1, noise, mu) == pytest.approx(expected, rel=1e-3, abs=1e-7)
    assert excess(rate, 1, noise, mu) >= expected - 1e-12


def test_all_rows_in_each_step_are_a_gaussian_and_no_delta_saves_one_that_is_too_loud():
    assert excess(1.0, 4, 8.0, 0.25) < 1e-8
    assert excess(1.0, 4, 8.0, 0.24) > 1e-3


@pytest.mark.parametrize("epsilon", [0.2, 1.0, 5.0])
def test_what_composes_costs_hardly_more_than_what_does_not(epsilon):
    """A tenth of delta is set apart; the noise is what opacus asks for where nothing else is."""
    rate, steps, delta = 0.05, 300, 1e-5
    mu = math.sqrt(mu_squared_of(epsilon, 0.9 * delta))
    noise = noise_multiplier(rate, steps, mu, 0.1 * delta)
    alone = epsilon_by_us(rate, steps, noise, delta)
    assert 0.97 * epsilon < alone <= epsilon


def test_beside_a_gaussian_release_the_sum_holds():
    """Exact convolution of the losses of both, against mu^2 and delta added up."""
    rate, steps, delta, mu = 0.05, 100, 1e-6, 0.2
    noise = noise_multiplier(rate, steps, mu, delta)
    losses, mass, _, lost = sampled._composed(rate, steps, noise)
    other = 0.3
    x = np.linspace(0.0, 2.5, 26)
    # H of both is the mean over the other's losses of H of the steps.
    nodes, weights = np.polynomial.hermite_e.hermegauss(80)
    own = other**2 / 2 + other * nodes
    steps_at = np.interp(x[:, None] - own, losses, sampled._above(losses, mass, lost))
    both = steps_at @ weights / weights.sum()
    allowed = sampled._gaussian(x, math.hypot(mu, other)) + delta
    assert (both <= allowed + 1e-9).all()


def test_rows_together_cost_their_number_of_mu_and_more_delta():
    assert for_rows(0.2, 1e-7, 1) == 1e-7
    two = 1e-7 + norm.cdf(norm.ppf(1e-7) + 0.2)
    assert for_rows(0.2, 1e-7, 2) == pytest.approx(two)
    own = for_one(0.2, 1e-6, 4)
    assert 0.99e-6 < for_rows(0.2, own, 4) <= 1e-6
    assert for_one(5.0, 1e-6, 20) < 1e-12


def test_a_delta_that_rounding_could_reach_is_refused():
    with pytest.raises(ValueError, match="a delta of 1e-09"):
        noise_multiplier(0.1, 10, 0.3, 1e-10)


def test_more_steps_and_less_budget_need_more_noise():
    first = noise_multiplier(0.05, 50, 0.3, 1e-6)
    assert noise_multiplier(0.05, 100, 0.3, 1e-6) > 1.2 * first
    assert noise_multiplier(0.05, 50, 0.15, 1e-6) > 1.6 * first
    assert epsilon_of(0.3**2, 1e-5) > 0
