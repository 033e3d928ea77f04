"""Training by opacus: what it costs, its samples, its noise.

A step sums up gradients over a Poisson sample, each of at most ``clip``, and adds noise of z clips.
T steps are charged as one mu-GDP release but for a delta, with the smallest z for which this holds
(``noise_multiplier``). With H(x) = sup over S of P(S) - e^x Q(S), it holds if H(x) <= delta(x; mu)
+ d for all x >= 0, where one record more or less makes P of Q or Q of P. It composes with other
releases: an event (R, S) beside it makes H an integral over R's outcomes r of
H(x - log R(r) / S(r)), which is larger by d at most. So d's add up, as mu^2's do. H is opacus'
(``PRVAccountant``: Gopi, Lee & Wutschitz 2021), at the pessimistic end of its errors in epsilon and
delta. Opacus has the losses of one order, P of Q, and here are those of the other as well.

Sums are of floating point. A sum is rounded to a grid before the noise, whole numbers of the grid,
is added, so that no low bit of the sum survives (Mironov 2012). Rounding moves what a record adds
by less than one point of the grid in each weight. Opacus clips so much shorter that it still adds
no more than ``clip``, summation in floating point included. But that a record's gradient is the
same whoever else is in the sample is a property of torch and of the processor.
"""

import math
import warnings
from collections.abc import Iterator
from functools import lru_cache
from typing import Any, cast

import numpy as np
import torch
from opacus import GradSampleModule
from opacus.accountants.analysis.prv import (
    Domain,
    PoissonSubsampledGaussianPRV,
    TruncatedPrivacyRandomVariable,
    compose_heterogeneous,
    compute_safe_domain_size,
    discretize,
)
from opacus.optimizers import DPOptimizer
from scipy.special import erfc, log_ndtr, ndtr

from sdv_privpgd.methods.dp_sgd import LEAST_DELTA, TrainingQuery
from sdv_privpgd.methods.dp_sgd.networks import Network
from sdv_privpgd.privacy.ledger import PrivacyBudgetError
from sdv_privpgd.privacy.noise import WordSource, rounded_gaussian

GRID = 1 << 20
"""Points of the grid of sums in a clip."""

_NUMBERS = 1 << 20
"""Numbers of gradients that are held at a time."""
_FINE = 50
"""Opacus' error in epsilon is this part of mu: it costs a hundredth of noise."""
_LEAST_NOISE = 0.3
"""Nobody needs less, and with a row in hardly any sample none at all would do."""


class _TurnedPRV(PoissonSubsampledGaussianPRV):
    """The loss log(Q / P) under Q: of a record less, where opacus has that of one more."""

    def cdf(self, t: np.ndarray) -> np.ndarray:
        inner = (np.exp(-t) + self.sample_rate - 1) / self.sample_rate
        z = np.log(np.where(inner > 0, inner, 1.0)) * self.noise_multiplier
        below = erfc((z + 0.5 / self.noise_multiplier) / math.sqrt(2)) / 2
        return np.where(inner > 0, below, 1.0)


@lru_cache(maxsize=64)
def noise_multiplier(rate: float, steps: int, mu: float, delta: float) -> float:
    """The smallest z, but for a hundredth, whose steps are (mu, delta)-GDP for one record.

    Raises ``PrivacyBudgetError`` for a delta below ``LEAST_DELTA``, and where no z up to 2^20 is
    enough.
    """
    if not delta >= LEAST_DELTA:
        raise PrivacyBudgetError(
            f"A training needs a part of delta of its own, {LEAST_DELTA:g} or more for one row, "
            f"and has {delta:.3g}: allow a larger delta, and let the ledger reserve it."
        )
    # The central limit, of which the bounds are not far.
    low = high = max(1 / math.sqrt(math.log1p(mu**2 / (rate**2 * steps))), _LEAST_NOISE)
    while excess(rate, steps, high, mu, delta) > delta:
        low, high = high, 1.05 * high
        if high > 1 << 20:
            raise PrivacyBudgetError(f"No noise is enough for mu={mu:.3g}: allow a larger epsilon.")
    while low > _LEAST_NOISE and (high == low or excess(rate, steps, low, mu, delta) <= delta):
        low, high = max(0.95 * low, _LEAST_NOISE), low
    while high / low > 1.01:
        middle = math.sqrt(low * high)
        is_enough = excess(rate, steps, middle, mu, delta) <= delta
        low, high = (low, middle) if is_enough else (middle, high)
    return high


def excess(rate: float, steps: int, noise: float, mu: float, delta: float) -> float:
    """The smallest delta, rounded up, but for which the steps are mu-GDP for one record.

    It is precise enough to be compared with ``delta``.
    """
    # Generous bounds on what rounding in sums and transforms moves a delta by, as a whole and for
    # each step. Noise that is sampled by 2^-128 otherwise than said is far below.
    rounding, step_rounding = 1e-11, 1e-15
    error, lost, found = mu / _FINE, delta / _FINE, 0.0
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        first = PoissonSubsampledGaussianPRV(rate, noise)
        # The bound on what lies beyond is for both orders: the other one's moments are smaller.
        reach = compute_safe_domain_size([first], [steps], error, lost)
        width = error / math.sqrt(steps * math.log(12 / lost) / 2)
        domain = Domain.create_aligned(-reach, reach, width)
        for each in (first, _TurnedPRV(rate, noise)):
            cut = TruncatedPrivacyRandomVariable(each, domain.t_min, domain.t_max)
            whole = compose_heterogeneous([discretize(cut, domain)], [steps])
            losses = whole.domain.ts
            mass = np.where(np.isfinite(whole.pmf), whole.pmf, 1.0)
            # Losses l > x have (1 - e^(x - l)) of their mass above e^x times the other's.
            kept = losses > -error - width
            losses, mass = losses[kept], mass[kept]
            here, there = (np.cumsum(m[::-1])[::-1] for m in (mass, mass * np.exp(-losses)))
            above = here - np.exp(losses) * there
            # Both fall: up to the next loss the one is no larger, and the other is no smaller than
            # there.
            x = losses + width + error
            allowed = ndtr(mu / 2 - x / mu) - np.exp(x + log_ndtr(-mu / 2 - x / mu))
            found = max(found, float(np.max(above - allowed)))
    return found + lost + rounding + step_rounding * steps


def samples(number: int, query: TrainingQuery, words: WordSource) -> Iterator[np.ndarray]:
    """Poisson samples of so many records: its own 32 bits of the system's say who is in one.

    Opacus' own refuse a table without rows, whose number may be private.
    """
    below = np.uint64(query.rate * (1 << 32))
    for _ in range(query.steps):
        drawn = np.frombuffer(words(4 * number), dtype="<u4")
        yield np.flatnonzero(drawn < below)


class Optimizer(DPOptimizer):
    """Opacus' optimizer, with noise of the operating system, and on a grid."""

    def __init__(
        self, inner: torch.optim.Optimizer, query: TrainingQuery, noise: float, words: WordSource,
        batch: int,
    ) -> None:  # fmt: skip
        room = 1 - 2 * math.sqrt(query.num_weights) / GRID
        super().__init__(
            inner,
            noise_multiplier=noise,
            max_grad_norm=query.clip * room,
            expected_batch_size=batch,
        )
        self._unit, self._words = query.clip / GRID, words

    def clip_and_accumulate(self) -> None:
        """As opacus does, but a gradient that is no number is 0: it would be all of the sum."""
        for each in cast(list[Any], self.params):  # opacus gives them attributes
            each.grad_sample.nan_to_num_(0.0, 0.0, 0.0)
        super().clip_and_accumulate()

    def add_noise(self) -> None:
        """Rounds each sum to the grid, and adds whole numbers of it."""
        for each in cast(list[Any], self.params):  # opacus gives them attributes
            sums = np.rint(each.summed_grad.numpy() / self._unit).astype(np.int64)
            noisy = _noisy(sums, self.noise_multiplier * GRID, self._words)
            each.grad = torch.from_numpy(noisy * self._unit)


def _noisy(sums: np.ndarray, stddev: float, words: WordSource) -> np.ndarray:
    """Sums plus rounded Gaussian noise: the one place where noise meets gradients."""
    return sums + rounded_gaussian(stddev, sums.size, words).reshape(sums.shape)


class OpacusTrainer:
    """Trains a network: what the curator charges, it keeps to.

    ``noise`` is that of each step, in clips, once it is prepared.

    Args:
        network: It is moved by gradients of records.
        query: How.
        batch: The expected number of rows of a sample, by the noisy number of all.
    """

    def __init__(self, network: Network, query: TrainingQuery, batch: int) -> None:
        self.query, self.steps = query, query.steps
        self.weights = network.weights
        self._network, self._batch, self.noise = network, batch, math.inf

    def prepare(self, mu: float, delta: float) -> None:
        """Finds the noise with which it is mu-GDP but for ``delta``, for one record more or less.

        Raises ``PrivacyBudgetError`` where no noise is enough.
        """
        self.noise = noise_multiplier(float(self.query.rate), self.query.steps, mu, delta)

    def train(self, codes: np.ndarray, words: WordSource) -> Iterator[None]:
        """Takes a step each time that it is asked for one.

        Args:
            codes: Of all records (record, attribute).
            words: The randomness of samples and noise.
        """
        network, query = self._network, self.query
        hooked = GradSampleModule(network.private, loss_reduction="sum")
        inner = network.begin(query.steps)
        optimizer = Optimizer(inner, query, self.noise, words, self._batch)
        optimizer.attach_step_hook(lambda _: network.meet())
        for rows in samples(len(codes), query, words):
            with warnings.catch_warnings():  # a warning could tell of the sample
                warnings.simplefilter("ignore")
                self._step(optimizer, codes[rows].astype(np.int64))
                network.moved()
            yield
        hooked.remove_hooks()

    def _step(self, optimizer: Optimizer, codes: np.ndarray) -> None:
        """Sums up the sample part by part, adds noise and moves the weights."""
        most = max(1, _NUMBERS // self.query.num_weights)
        for start in range(0, max(len(codes), 1), most):
            optimizer.signal_skip_step(start + most < len(codes))
            self._network.losses(torch.from_numpy(codes[start : start + most])).sum().backward()
            optimizer.step()
            optimizer.zero_grad()  # nothing of the sample stays
