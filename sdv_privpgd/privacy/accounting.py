"""Exact conversion between Gaussian differential privacy and (epsilon, delta).

A Gaussian release of L2 sensitivity D and standard deviation sigma is mu-GDP with mu = D / sigma,
the squares of mu add up under (adaptive) composition, and

    delta(epsilon; mu) = Phi(-epsilon/mu + mu/2) - exp(epsilon) Phi(-epsilon/mu - mu/2)

is attained (Balle & Wang 2018, Theorem 8; Dong, Roth & Su 2022, Corollary 1 and section 3.2).
A choice by the exponential mechanism is counted as the Gaussian release that is no more private:
``privacy/selection.py`` has the proof.
Everything here is public arithmetic.
"""

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

from scipy.optimize import brentq  # pyright: ignore[reportMissingTypeStubs, reportUnknownVariableType]
from scipy.special import erfcx, log_ndtr, ndtr, ndtri, ndtri_exp  # pyright: ignore[reportMissingTypeStubs]

from sdv_privpgd.base.arguments import check_delta, check_epsilon

_solve: Any = brentq  # pyright: ignore[reportUnknownVariableType]
"""It has no types."""

_SQRT2 = math.sqrt(2.0)
_RELATIVE_MARGIN = 1e-13
_ABSOLUTE_MARGIN = 2.0**-50
"""By how much a solved mu is lowered, so that rounding never spends more than was asked for.

The absolute part is for small mu, where ``log_delta`` takes the difference of two numbers that
agree in all but the last log2(1 / mu) bits.
"""


def log_delta(epsilon: float, mu: float) -> float:
    """The logarithm of the smallest delta of a mu-GDP release at this epsilon.

    Both terms share the factor exp(-a^2 / 2), a = -epsilon/mu + mu/2, because
    epsilon - b^2 / 2 = -a^2 / 2 for b = a - mu. Taking it out leaves a difference of scaled
    complementary error functions: nothing underflows, and no exponent has to cancel (which is
    where the difference of ``log_ndtr`` gives NaN at small mu).
    """
    a = -epsilon / mu + mu / 2
    b = a - mu
    if a > 0:  # where the scaled form can overflow, and the plain one cannot underflow
        difference = ndtr(a) - math.exp(epsilon + log_ndtr(b))
        return math.log(difference) if difference > 0 else -math.inf
    difference = erfcx(-a / _SQRT2) - erfcx(-b / _SQRT2)
    if difference <= 0:  # mu so small that both agree to the last bit
        return -math.inf
    return -a * a / 2 + math.log(difference / 2)


def epsilon_of(mu_squared: Fraction, delta: float) -> float:
    """The smallest epsilon at which a release that spends ``mu_squared`` is (epsilon, delta)-DP."""
    delta = check_delta(delta)
    mu = math.sqrt(mu_squared)
    target = math.log(delta)
    if mu == 0 or log_delta(0.0, mu) <= target:
        return 0.0
    high = 1.0
    while log_delta(high, mu) > target:
        high *= 2
    return _root(lambda e: log_delta(e, mu) - target, 0.0, high)


def mu_squared_of(epsilon: float, delta: float) -> Fraction:
    """The largest budget that (epsilon, delta)-DP allows, exact and rounded down."""
    epsilon, delta = check_epsilon(epsilon), check_delta(delta)
    target = math.log(delta)
    low = high = 1.0
    while log_delta(epsilon, low) > target:
        low /= 2
    while log_delta(epsilon, high) <= target:
        high *= 2
    log_mu = _root(
        lambda t: log_delta(epsilon, math.exp(t)) - target, math.log(low), math.log(high)
    )
    mu = math.exp(log_mu) * (1 - _RELATIVE_MARGIN) - _ABSOLUTE_MARGIN
    if mu <= 0:
        raise ValueError(
            f"epsilon={epsilon!r} with delta={delta!r} allows no useful answer: raise epsilon."
        )
    while log_delta(epsilon, mu) > target:
        mu *= 1 - _RELATIVE_MARGIN
    return Fraction(mu) ** 2


def stddev_for(sensitivity_squared: int, mu_squared: Fraction) -> float:
    """A float sigma with sensitivity^2 / sigma^2 <= mu^2, compared exactly; tight to the ulp."""
    if mu_squared <= 0:
        raise ValueError(f"mu_squared must be positive, got {mu_squared}.")
    stddev = math.sqrt(Fraction(sensitivity_squared) / mu_squared)
    while Fraction(stddev) ** 2 * mu_squared < sensitivity_squared:
        stddev = math.nextafter(stddev, math.inf)
    return stddev


def range_epsilon_of(mu_squared: Fraction) -> float:
    """The largest range epsilon that a choice may have for a mu^2, rounded down.

    epsilon = 2 log(p / (1 - p)) with p = Phi(mu / 2). Raises ``ValueError`` where none is left.
    """
    half = math.sqrt(mu_squared) / 2 if mu_squared > 0 else 0.0
    epsilon = 2 * (log_ndtr(half) - log_ndtr(-half)) * (1 - _RELATIVE_MARGIN) - _ABSOLUTE_MARGIN
    if epsilon <= 0:
        raise ValueError(f"mu_squared={float(mu_squared):.3g} allows no choice: raise epsilon.")
    return float(epsilon)


def mu_squared_of_range(epsilon: Fraction) -> Fraction:
    """The mu^2 that a choice of this range epsilon costs, rounded up.

    mu = -2 Phi^-1(q) with q = 1 / (1 + exp(epsilon / 2)): the inverse of ``range_epsilon_of``.
    """
    half = float(epsilon) / 2
    mu = -2 * ndtri_exp(-half - math.log1p(math.exp(-half)))
    return Fraction(float(mu) * (1 + _RELATIVE_MARGIN) + _ABSOLUTE_MARGIN) ** 2


def delta_of_rows(mu: float, delta: float, rows: int) -> float:
    """The delta of so many rows together, where one of them is mu-GDP but for ``delta``.

    For one row, P(S) <= g(Q(S)) + delta with g(a) = Phi(Phi^-1(a) + mu). As g is concave and
    g(0) = 0, m rows are m mu-GDP but for d_m = g(d_(m-1)) + delta.
    """
    total = delta
    for _ in range(rows - 1):
        total = float(ndtr(ndtri(total) + mu)) + delta if total < 0.5 else 1.0
    return total


def delta_of_one(mu: float, delta: float, rows: int) -> float:
    """The largest delta of one row, rounded down, such that so many have ``delta`` together."""
    low, high = 0.0, delta
    while high - low > max(low, delta * 1e-12) / 1000:
        middle = (low + high) / 2
        is_kept = delta_of_rows(mu, middle, rows) <= delta
        low, high = (middle, high) if is_kept else (low, middle)
    return high if delta_of_rows(mu, high, rows) <= delta else low


def _root(function: Callable[[float], float], low: float, high: float) -> float:
    """Where a monotone function crosses 0, to the last digits of a float."""
    return float(_solve(function, low, high, xtol=1e-15, rtol=1e-14))
