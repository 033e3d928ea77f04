"""The closed form of Gaussian DP, against frozen values and three other accountants."""

import itertools
import math
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from answers import open_curator
from scipy.special import log_ndtr

from sdv_privpgd.base.arguments import check_delta, check_epsilon
from sdv_privpgd.base.domain import Domain
from sdv_privpgd.privacy import accounting
from sdv_privpgd.privacy.accounting import (
    delta_of_one,
    delta_of_rows,
    epsilon_of,
    log_delta,
    mu_squared_of,
    stddev_for,
)
from sdv_privpgd.privacy.dataset import Dataset
from sdv_privpgd.privacy.queries import Adjacency, MarginalQuery

EPSILONS = (0.05, 0.2, 1.0, 2.5, 8.0, 20.0)


def delta_by_definition(epsilon, mu):
    """delta(epsilon; mu) from its definition, in 60 digits: an independent reference."""
    with mpmath.workdps(60):
        epsilon, mu = mpmath.mpf(epsilon), mpmath.mpf(mu)
        return mpmath.ncdf(-epsilon / mu + mu / 2) - mpmath.exp(epsilon) * mpmath.ncdf(
            -epsilon / mu - mu / 2
        )


@pytest.mark.parametrize(
    ("epsilon", "multiplier"), [(0.2, 16.3041), (1.0, 3.73063), (2.5, 1.63400)]
)
def test_the_noise_multipliers_are_those_of_the_notes(epsilon, multiplier):
    stddev = stddev_for(1, mu_squared_of(epsilon, 1e-5))
    assert stddev == pytest.approx(multiplier, rel=4e-6)  # the digits that were frozen
    # 5 % less noise would be told apart.
    assert stddev * 0.95 != pytest.approx(multiplier, rel=4e-6)


@pytest.mark.parametrize("num_queries", [1, 3, 36, 1225])
@pytest.mark.parametrize("epsilon", EPSILONS)
def test_a_fit_that_uses_its_budget_spends_the_epsilon_that_was_asked_for(epsilon, num_queries):
    table = Dataset(Domain(("a",), (2,)), np.zeros((1, 1), dtype=np.int64))
    curator = open_curator(table, epsilon=epsilon)
    budget = curator.ledger.budget
    curator.measure([MarginalQuery(("a",))] * num_queries, budget, what="tables")
    charge = curator.ledger.charges[-1]
    assert charge.mu_squared == budget
    assert curator.ledger.spent() == pytest.approx(epsilon, rel=1e-9)
    assert curator.ledger.spent() <= epsilon
    # The noise that was added is what the charge claims: never less, and not a millionth more.
    cost = charge.mu_squared_under(Adjacency.REPLACE_ONE)
    assert cost <= charge.mu_squared
    assert float(cost / charge.mu_squared) == pytest.approx(1, abs=1e-12)
    assert charge.stddev == pytest.approx(math.sqrt(2 * num_queries / budget), rel=1e-12)


@pytest.mark.parametrize(
    ("epsilon", "delta"),
    [
        *itertools.product((1e-6, 1e-3, 0.05, 1.0, 20.0, 500.0), (1e-300, 1e-20, 1e-5, 0.1, 0.5)),
        (1.0, 0.999999),
        (0.01, 0.3),  # far above delta(0) of a small mu
        (1e-9, 1e-12),
    ],
)
def test_a_budget_never_allows_more_than_delta(epsilon, delta):
    mu = math.sqrt(mu_squared_of(epsilon, delta))
    assert log_delta(epsilon, mu) <= math.log(delta)
    exact = delta_by_definition(epsilon, mu)
    assert exact <= delta
    # And it wastes nothing: a mu larger by 1e-6 (at small mu, by 1e-14 of rounding) is too much.
    assert delta_by_definition(epsilon, mu * (1 + 1e-6) + 1e-14) > delta


@pytest.mark.parametrize("mu", [1e-6, 1e-3, 0.06, 0.27, 1.0, 5.0, 40.0])
@pytest.mark.parametrize("epsilon", [0.0, 1e-6, 0.2, 1.0, 8.0, 500.0])
def test_log_delta_is_the_logarithm_of_the_definition(epsilon, mu):
    value = log_delta(epsilon, mu)
    with mpmath.workdps(60):
        a = -mpmath.mpf(epsilon) / mu + mpmath.mpf(mu) / 2
    if a < -1e3:  # 60 digits no longer hold the definition's difference
        assert value < -4e5
        return
    exact = float(mpmath.log(delta_by_definition(epsilon, mu)))
    # Doubles: relative error of a few 2^-53 / mu in delta, and of a^2 2^-52 in its exponent.
    assert value == pytest.approx(exact, rel=1e-12, abs=1e-12 + 1e-15 / mu)


def test_the_difference_of_normal_logarithms_fails_at_small_mu_and_ours_does_not():
    def naive(epsilon, mu):
        first = log_ndtr(-epsilon / mu + mu / 2)
        second = epsilon + log_ndtr(-epsilon / mu - mu / 2)
        return first + np.log1p(-np.exp(second - first))

    epsilon = 20.0
    with np.errstate(invalid="ignore", divide="ignore"):
        failures = [mu for mu in np.geomspace(1e-9, 1e-3, 200) if np.isnan(naive(epsilon, mu))]
    assert failures
    for mu in failures:
        assert log_delta(epsilon, mu) < -1e8  # about -(epsilon / mu)^2 / 2, or no delta at all


def test_budgets_deltas_and_epsilons_are_monotone_and_never_nan():
    values = [
        log_delta(epsilon, mu)
        for epsilon in (0.0, 1e-12, 1e-3, 1.0, 20.0, 700.0, 1e5)
        for mu in np.geomspace(1e-300, 1e4, 200)
    ]
    assert not np.isnan(values).any()
    assert max(values) <= 0
    budgets = [Fraction(k * k, 400) for k in range(1, 60)]
    by_budget = [epsilon_of(budget, 1e-5) for budget in budgets]
    assert all(x < y for x, y in itertools.pairwise(by_budget))
    by_delta = [epsilon_of(Fraction(1, 4), delta) for delta in np.geomspace(1e-30, 0.1, 50)]
    assert all(x > y for x, y in itertools.pairwise(by_delta))
    allowed = [mu_squared_of(epsilon, 1e-5) for epsilon in np.geomspace(1e-3, 100, 50)]
    assert all(x < y for x, y in itertools.pairwise(allowed))
    assert epsilon_of(Fraction(0), 1e-5) == 0
    assert epsilon_of(Fraction(1, 10**40), 1e-5) == 0
    # delta(0; mu) = 2 Phi(mu/2) - 1 = 0.0245 for the mu of epsilon 0.2
    assert epsilon_of(mu_squared_of(0.2, 1e-5), 0.05) == 0
    assert epsilon_of(mu_squared_of(0.2, 1e-5), 0.02) > 0


@pytest.mark.filterwarnings("ignore")  # opacus: torch's deprecations and log(1 - 1)
@pytest.mark.parametrize("steps", [1, 36])
@pytest.mark.parametrize("epsilon", [0.2, 1.0, 2.5])
def test_opacus_prv_accountant_agrees_from_above(epsilon, steps):
    accountants = pytest.importorskip("opacus.accountants")
    accountant = accountants.PRVAccountant()
    multiplier = math.sqrt(steps) * stddev_for(1, mu_squared_of(epsilon, 1e-5))
    accountant.history = [(multiplier, 1.0, steps)]
    bound = accountant.get_epsilon(1e-5, eps_error=1e-3)
    # PRV gives an upper bound; its discretization costs at most 2 eps_error.
    assert epsilon - 1e-9 <= bound <= epsilon + 2e-3
    accountant.history = [(0.95 * multiplier, 1.0, steps)]
    assert accountant.get_epsilon(1e-5, eps_error=1e-3) > epsilon + 2e-3


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(("mu", "delta"), [(0.061334, 1e-5), (0.6, 1e-5), (5, 1e-12), (0.3, 1e-15)])
def test_opacus_gdp_converter_agrees(mu, delta):
    gdp = pytest.importorskip("opacus.accountants.analysis.gdp")
    ours = epsilon_of(Fraction(mu) ** 2, delta)
    assert ours == pytest.approx(gdp.eps_from_mu(mu=mu, delta=delta), rel=1e-9)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("steps", [1, 36])
@pytest.mark.parametrize("epsilon", [0.2, 1.0, 2.5])
def test_googles_privacy_loss_distribution_agrees_from_above(epsilon, steps):
    pld = pytest.importorskip("dp_accounting.pld.privacy_loss_distribution")
    multiplier = math.sqrt(steps) * stddev_for(1, mu_squared_of(epsilon, 1e-5))
    one = pld.from_gaussian_mechanism(multiplier, value_discretization_interval=1e-4)
    bound = one.self_compose(steps).get_epsilon_for_delta(1e-5)
    # Pessimistic rounding; measured excess below 1e-6 for one step and 36.
    assert epsilon - 1e-9 <= bound <= epsilon + 1e-5


@pytest.mark.parametrize("sensitivity_squared", [1, 2, 72, 2450, 2**40])
@pytest.mark.parametrize("epsilon", [1e-3, 0.3, 1.0, 7.7])
def test_sigma_is_rounded_up_exactly_and_no_further(sensitivity_squared, epsilon):
    mu_squared = mu_squared_of(epsilon, 1e-5)
    stddev = stddev_for(sensitivity_squared, mu_squared)
    assert Fraction(stddev) ** 2 * mu_squared >= sensitivity_squared
    below = stddev
    for _ in range(3):  # conversion and square root round by one ulp each
        below = math.nextafter(below, 0)
    assert Fraction(below) ** 2 * mu_squared < sensitivity_squared


@pytest.mark.parametrize("mu_squared", [Fraction(0), Fraction(-1)])
def test_no_sigma_pays_for_an_empty_budget(mu_squared):
    with pytest.raises(ValueError, match="mu_squared"):
        stddev_for(1, mu_squared)


@pytest.mark.parametrize(
    "epsilon",
    [0, -1, -0.0, math.nan, math.inf, -math.inf, True, False, "1", None, [1], 1j, 10**400,
     Fraction(1, 10**400)],
)  # fmt: skip
def test_an_epsilon_that_is_no_positive_number_is_refused(epsilon):
    with pytest.raises(ValueError, match="epsilon"):
        check_epsilon(epsilon)
    with pytest.raises(ValueError, match="epsilon"):
        mu_squared_of(epsilon, 1e-5)


@pytest.mark.parametrize(
    "delta",
    [0, 1, -1e-5, 2, math.nan, math.inf, True, "1e-5", None, Fraction(1, 10**400),
     1 - Fraction(1, 10**40)],
)  # fmt: skip
def test_a_delta_outside_the_unit_interval_is_refused(delta):
    with pytest.raises(ValueError, match="delta"):
        check_delta(delta)
    with pytest.raises(ValueError, match="delta"):
        mu_squared_of(1.0, delta)


def test_numbers_are_taken_as_they_are_and_advice_ends_what_is_refused():
    assert check_epsilon(np.float64(0.5)) == check_epsilon(Fraction(1, 2)) == 0.5
    assert check_epsilon(2) == 2.0
    assert isinstance(check_epsilon(2), float)
    assert check_delta(np.float64(1e-5)) == 1e-5
    with pytest.raises(ValueError, match="raise epsilon"):
        mu_squared_of(1e-15, 1e-300)
    with pytest.raises(ValueError, match=r"; choose it well below 1 / \(.*\), for example 1e-5\.$"):
        check_delta(0)
    assert stddev_for(4, Fraction(1)) == 2.0
    assert stddev_for(1, Fraction(1, 16)) == 4.0
    found = accounting._root(lambda x: math.copysign(1.0, x - 1e-9), 0.0, 1.0)
    assert abs(found - 1e-9) < 1e-14


@pytest.mark.parametrize("epsilon", [0.2, 1.0, 8.0])
def test_a_root_that_overshoots_is_lowered_until_it_fits(epsilon, monkeypatch):
    solve = accounting._root
    monkeypatch.setattr(accounting, "_root", lambda *ends: solve(*ends) + 1e-11)
    mu_squared = mu_squared_of(epsilon, 1e-5)
    assert log_delta(epsilon, math.sqrt(mu_squared)) <= math.log(1e-5)
    monkeypatch.undo()
    assert float(mu_squared) == pytest.approx(float(mu_squared_of(epsilon, 1e-5)), rel=1e-10)


class TestRowsOfOnePerson:
    """What one row may have of delta, where a person has several."""

    @pytest.mark.parametrize(("mu", "delta", "rows"), [(2.0, 0.4, 3), (1.0, 0.5, 2)])
    def test_a_delta_of_a_half_is_no_promise_any_more(self, mu, delta, rows):
        assert delta_of_rows(mu, delta, rows) == 1.0

    @pytest.mark.parametrize("rows", [1, 2, 4])
    def test_the_largest_is_found_to_a_percent(self, rows):
        own = delta_of_one(0.3, 1e-5, rows)
        assert delta_of_rows(0.3, own, rows) <= 1e-5 < delta_of_rows(0.3, own * 1.01, rows)
