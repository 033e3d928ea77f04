"""Noisy sums over random samples of rows, counted as one Gaussian release: what steps of SGD cost.

Each of T steps draws a Poisson sample, in which each row is with probability p, and releases a sum
over it to which no row adds more than D in L2 norm, with Gaussian noise of deviation z D. No mu
below sqrt(T) / z makes that mu-GDP: with a tiny chance the row is in all samples. But it is so *but
for a delta*, with a mu about sqrt(p^2 T (exp(1 / z^2) - 1)), and so much is charged. Four steps.

1. *One step.* For one row more or less, a step is no easier to tell apart than the pair
   P = (1 - p) N(0, z^2) + p N(1, z^2) and Q = N(0, z^2), in one order or the other (Abadi et al.
   2016; Zhu, Dong & Wang 2022, Theorem 11), and T steps than T such pairs, also where later ones
   depend on earlier answers (there, Theorem 10). Its losses log(P / Q) are put on a grid: the mass
   of P and Q between two points goes to both such that both masses are kept. That spreads the ratio
   Q / P, and makes them no harder to tell apart. What is beyond the grid counts as infinite.
2. *T steps* are the T-fold convolution, by FFT, of P's masses for one order and of Q's for the
   other, so that nowhere a small mass is multiplied by a large ratio, and its rounding with it.
   Losses that leave the range would wrap around: Chernoff's bound on their mass is added, and
   ``_ERROR`` for rounding.
3. *The Gaussian above it.* With H(x) = sup over S of P(S) - e^x Q(S), the release is (mu, d)-GDP
   if H(x) <= delta(x; mu) + d for all x >= 0 and in both orders; then it is so for all x. It
   composes: an event (R, S) beside it makes H an integral over R's outcomes r of
   H(x - log R(r) / S(r)), which is larger by d at most. So d's add up, as mu^2's do.
4. *Several rows.* Let g(a) = Phi(Phi^-1(a) + mu). By 3, P(S) <= g(Q(S)) + d for one row more or
   less. As g is concave and g(0) = 0, m rows cost m mu, and d_m = g(d_(m-1)) + d. A row that is
   replaced is one less and one more: two rows, 2 mu. The sampling rate is the same throughout.

opacus' and Google's accountants say the same within a thousandth (tests), and know neither 3 nor 4.
"""

import math
from collections.abc import Callable
from functools import lru_cache

import numpy as np
from scipy.special import log_ndtr, ndtr, ndtri  # pyright: ignore[reportMissingTypeStubs]

Reals = np.ndarray
"""Float64, one axis."""

_POINTS = 1 << 15
"""Points of the grid on either side of 0."""
_ERROR, _STEP_ERROR = 1e-11, 1e-15
"""Generous bounds on what rounding in all sums and transforms moves a delta by, as a whole and for
each step: tests compare with transforms of 64 bits, where these have 53."""
_FARTHEST = 350.0
"""Losses up to 1.4 times as large have exponentials that are numbers."""
_LEAST_NOISE = 0.1
"""Nobody needs less, and with a row in hardly any sample none at all would do."""
LEAST_DELTA = 1e-9
"""Below it the rounding would be no small part of what a training needs."""


@lru_cache(maxsize=64)
def noise_multiplier(rate: float, steps: int, mu: float, delta: float) -> float:
    """The smallest z, but for a thousandth, whose steps are (mu, delta)-GDP for one row.

    Raises ``ValueError`` for a delta below ``LEAST_DELTA``, and where no z up to 2^20 is enough.
    """
    if not delta >= LEAST_DELTA:
        raise ValueError(f"A training needs a delta of {LEAST_DELTA:g} or more, got {delta:.3g}.")
    # The central limit, of which the bounds are not far.
    low = high = 1 / math.sqrt(math.log1p(mu**2 / (rate**2 * steps)))
    while excess(rate, steps, high, mu) > delta:
        low, high = high, 1.1 * high
        if high > 1 << 20:
            raise ValueError(f"No noise is enough for mu={mu:.3g}: allow a larger epsilon.")
    while low > _LEAST_NOISE and (high == low or excess(rate, steps, low, mu) <= delta):
        low, high = 0.9 * low, low
    while high - low > low / 1000:
        middle = (low + high) / 2
        low, high = (low, middle) if excess(rate, steps, middle, mu) <= delta else (middle, high)
    return high


def excess(rate: float, steps: int, noise: float, mu: float) -> float:
    """The smallest delta, rounded up, but for which the steps are mu-GDP for one row."""
    losses, of_p, of_q, lost = _composed(rate, steps, noise)
    # Losses l > x have (1 - e^(x - l)) of their mass above e^x times the other order's.
    far, near = losses >= 0, losses <= 0
    above = _above(losses[far], of_p[far], lost) - _gaussian(losses[far], mu)
    turned = -losses[near][::-1]  # the other order: log(Q / P)
    below = _above(turned, of_q[near][::-1], lost) - _gaussian(turned, mu)
    # Between two points of the grid the first curve is a chord and the second is convex: by its
    # second derivative it is no more than this below its own chord. Beyond the grid all is lost.
    chord = float(losses[1] - losses[0]) ** 2 / (8 * mu)
    return max(float(above.max()), float(below.max()), lost) + chord + _ERROR + _STEP_ERROR * steps


def _above(losses: Reals, mass: Reals, lost: float) -> Reals:
    """H(x) at each loss x of a growing grid."""
    weighted = mass * np.exp(-losses)
    here, there = (np.cumsum(each[::-1])[::-1] for each in (mass, weighted))
    return here - np.exp(losses) * there + lost


def _gaussian(x: Reals, mu: float) -> Reals:
    """delta(x; mu), as in ``privacy/accounting.py``."""
    return ndtr(mu / 2 - x / mu) - np.exp(x + log_ndtr(-mu / 2 - x / mu))


def _composed(rate: float, steps: int, noise: float) -> tuple[Reals, Reals, Reals, float]:
    """The grid of losses, P's and Q's mass on it after all steps, and a bound on what is beyond."""
    # Four deviations of the central limit: a range that is too small is found to be.
    reach = min(max(0.5, 4 * rate * math.sqrt(steps * math.expm1(noise**-2))), _FARTHEST)
    while True:
        losses = reach / _POINTS * np.arange(-_POINTS, _POINTS + 1)
        mass, beyond = _step(losses, rate, noise)
        lost = steps * beyond + _tail(losses, mass, steps, reach)
        if lost < LEAST_DELTA / 100 or reach > _FARTHEST:
            break
        reach *= 1.4
    of_p, of_q = (_summed(each[:-1], steps) for each in (mass, mass * np.exp(-losses)))
    return losses[:-1], of_p, of_q, lost


def _summed(mass: Reals, steps: int) -> Reals:
    """The mass of the sum of so many losses of a grid around 0, which wraps around at its ends."""
    total = np.fft.irfft(np.fft.rfft(np.roll(mass, -_POINTS)) ** steps, 2 * _POINTS)
    return np.maximum(np.roll(total, _POINTS), 0.0)


def _step(losses: Reals, rate: float, noise: float) -> tuple[Reals, float]:
    """P's mass at each loss after one step, and what of P or Q lies beyond the grid."""
    inner = np.expm1(losses) / rate
    with np.errstate(divide="ignore"):
        # Where x, in deviations, has this loss; no x has one below log(1 - rate).
        x = np.log1p(np.maximum(inner, -1.0)) * noise + 0.5 / noise
    here, there = _between(x), _between(x - 1 / noise)
    of_p = (1 - rate) * here + rate * there
    upper = (of_p - here * np.exp(losses[:-1])) / -np.expm1(losses[0] - losses[1])
    upper = np.clip(upper, 0.0, of_p)
    mass = np.zeros_like(losses)
    mass[1:] += upper
    mass[:-1] += of_p - upper
    # The last point would wrap around to the first one.
    beyond = (1 - rate) * ndtr(-x[-1]) + rate * ndtr(1 / noise - x[-1]) + mass[-1]
    mass[-1] = 0.0
    return mass, float(beyond + ndtr(x[0]))


def _between(x: Reals) -> Reals:
    """A normal number's chance between neighbors of a growing row."""
    low, high = x[:-1], x[1:]
    # Of both tails the nearer one: of the other the difference would be lost in rounding.
    side = np.where(low > 0, -1.0, 1.0)
    return np.abs(ndtr(side * high) - ndtr(side * low))


def _tail(losses: Reals, mass: Reals, steps: int, reach: float) -> float:
    """Chernoff's bounds on the mass of sums above the reach under P, and below it under Q."""

    def log_mean(power: float) -> float:
        return steps * math.log(float(mass @ np.exp(power * losses)))

    powers = [2.0**k for k in range(-3, 12) if (2.0**k + 1) * reach < 600]
    above = min(log_mean(each) - each * reach for each in powers)
    # Q's mass at a loss is exp(-loss) times P's.
    below = min(log_mean(-each - 1) - each * reach for each in powers)
    return math.exp(min(above, 0.0)) + math.exp(min(below, 0.0))


def for_rows(mu: float, delta: float, rows: int) -> float:
    """The delta of so many rows together, where that of one of them is ``delta``."""
    total = delta
    for _ in range(rows - 1):
        total = float(ndtr(ndtri(min(total, 0.5)) + mu)) + delta if total < 0.5 else 1.0
    return total


def for_one(mu: float, delta: float, rows: int) -> float:
    """The largest delta of one row, rounded down, such that so many have ``delta`` together."""
    return _largest(lambda own: for_rows(mu, own, rows) <= delta, delta)


def _largest(holds: Callable[[float], bool], most: float) -> float:
    """The largest number up to ``most`` for which it holds, to a thousandth; it holds for 0."""
    if holds(most):
        return most
    low, high = 0.0, most
    while high - low > max(low, most * 1e-12) / 1000:
        middle = (low + high) / 2
        low, high = (middle, high) if holds(middle) else (low, middle)
    return low
