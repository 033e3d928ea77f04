"""A small diffusion model of rows of codes, trained by private gradients."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from sdv_privpgd.domain import Clique, Domain
from sdv_privpgd.estimate.noisy_tables import estimate_total
from sdv_privpgd.privacy.measurement import Measurement
from sdv_privpgd.progress import Progress, silent
from sdv_privpgd.synthesize.engine import Engine, Model
from sdv_privpgd.synthesize.learning import Codes, Momentum, place_of, trained
from sdv_privpgd.synthesize.particles.particles import Particles, default_number

_LEVELS = 12
"""Degrees of disturbance."""
_DRAWS = 8
"""Disturbed copies of a row that its gradient is the mean of."""
_POOL = 1024
"""Sets of random numbers of a step, one of which a row takes by its codes."""
_LONGEST = 5.0
"""No step moves the weights farther. On Adult at epsilon 0.2, 1 and 5 this and the rate of 64 are
as good as the best rate for each, of 1 to 128."""
_TABLES = 100
"""A row is as slow to draw as so many tables are to fit."""
_AT_ONCE = 1 << 13
"""Rows that are drawn at a time."""


@dataclass(frozen=True, kw_only=True)
class DiffusionNetwork(Engine):
    """Rows of a diffusion model that DP-SGD has trained: DP-Diffusion.

    Kotelnikov et al. 2023 (TabDDPM, section 3) disturb a row step by step, and a network learns to
    undo it; Dockhorn et al. 2023 train such networks with DP-SGD. ``PrivateGradients`` trains it.
    Ours differs in five ways:

    - Numbers are codes as well, so that all columns have the disturbance of categories (there,
      Eq. 3), which replaces a code. It replaces it by one of the column's noisy table, not by any.
    - The network adds to the logits of what the code itself says, known in closed form: before its
      first step, columns are independent and have the right shares.
    - The loss is the cross-entropy of the row given the disturbed one, of all levels alike.
    - It is small, as noise falls on each weight: one hidden layer, ``width`` wide. Steps are long,
      but none is longer than a bound: where noise is most of a gradient, it would add up.
    - A row's gradient is the mean over eight disturbed copies, as Dockhorn et al. have it (section
      3.1). Steps are hundreds, where they are tens of thousands without privacy.

    When to use it: to compare with networks trained by DP-SGD. On the guide's tables it is worse
    than PrivPGD and than DP-MERF in nearly everything.

    Attributes:
        width: Of the hidden layer.
        clip: The largest norm of a row's gradient.
        learning_rate: Of the descent, at the first step, for gradients in units of the clip.
        num_particles: Rows that are drawn of the model once it is trained. A sample is dealt from
            them. ``None`` takes the estimated number of rows, or of many an equal part.
        seed: Of all random choices here. No private noise depends on it.

    >>> from sdv_privpgd.privacy.queries import MarginalQuery
    >>> engine = DiffusionNetwork(num_particles=1_000)
    >>> shares = Measurement(
    ...     query=MarginalQuery(("a",)), answer=np.array([900, 100]), stddev=1.0
    ... )
    >>> model = engine.fit(Domain(("a", "b"), (2, 3)), [shares])  # before it is trained
    >>> model.marginal(("a",)).round(1).tolist()
    [0.9, 0.1]
    """

    width: int = 16
    clip: float = 1.0
    learning_rate: float = 64.0
    num_particles: int | None = None
    seed: int = 0

    network = "diffusion"
    """Its name in the ledger."""

    title = "The network was a diffusion model, which the rows were drawn from"
    citation = (
        "Kotelnikov, A., Baranchuk, D., Rubachev, I. & Babenko, A. (2023). TabDDPM: modelling "
        "tabular data with diffusion models. ICML, PMLR 202, 17564–17579."
    )
    quick = {"num_particles": 300, "width": 8}  # noqa: RUF012
    takes = ("private gradients",)
    takes_groups = False

    def megabytes(self, domain: Domain, cliques: Sequence[Clique]) -> float:
        """The size of the network in MiB of float64."""
        del cliques
        return self.width * (2 * sum(domain.sizes) + _LEVELS) * 8 / 2**20

    def learner(
        self, domain: Domain, measurements: Sequence[Measurement], steps: int, batch: int = 1
    ) -> "DiffusionLearner":
        """The network before its first step, by the noisy tables among the answers."""
        return DiffusionLearner(self, Codes.of(domain, measurements), steps, batch)

    def fit(
        self,
        domain: Domain,
        measurements: Sequence[Measurement],
        *,
        warm_start: Model | None = None,
        progress: Progress = silent,
    ) -> Particles:
        """Rows of the network with the weights among the answers. ``warm_start`` is not used."""
        del warm_start
        learner = self.learner(domain, measurements, 1)
        weights = trained(measurements, self.network)
        if weights is not None:
            learner.load(weights)
        total = estimate_total(domain, measurements).value
        number = self.num_particles or default_number(total, _TABLES)
        rng = np.random.default_rng(self.seed)
        starts = progress(range(0, number, _AT_ONCE), "fit")
        parts = [learner.drawn(min(_AT_ONCE, number - start), rng) for start in starts]
        return Particles(domain=domain, codes=np.concatenate(parts))


class DiffusionLearner:
    """The network's weights, their gradient for a row, and rows by them.

    At level l a code is kept with a chance that falls along a cosine (Nichol & Dhariwal 2021), and
    is drawn by its column's shares otherwise.
    """

    def __init__(self, engine: DiffusionNetwork, codes: Codes, steps: int, batch: int) -> None:
        self._codes, self._batch, width = codes, batch, engine.width
        self._rng = np.random.default_rng(engine.seed)
        part = (np.arange(_LEVELS) + 1) / _LEVELS
        self._kept = np.cos(part * math.pi / 2 * 0.98) ** 2  # (level,)
        odds = self._kept[:, None] / (1 - self._kept[:, None]) / codes.shares
        self._own = np.log1p(odds)  # what a disturbed code says for itself
        self._log_shares = np.log(codes.shares)
        inputs = codes.number + _LEVELS
        first = self._rng.normal(size=(inputs, width)) / math.sqrt(len(codes.sizes))
        self._weights = np.concatenate([first.ravel(), np.zeros(width * codes.number)])
        self._average = self._weights.copy()
        self._rate, self._split = engine.learning_rate, first.size
        self._descent = Momentum(self._rate, steps)
        self._step = 0
        self._deal()

    @property
    def num_weights(self) -> int:
        """Those that gradients of rows move: all."""
        return len(self._weights)

    def weights(self) -> np.ndarray:
        """The mean of the weights over the last steps: noise of single steps is averaged out."""
        return self._average.copy()

    def load(self, weights: np.ndarray) -> None:
        """Takes these weights."""
        self._weights, self._average = weights.copy(), weights.copy()

    def update(self, gradient: np.ndarray) -> None:
        """A step of the descent, and fresh random numbers for the next one."""
        mean = gradient / self._batch
        longest = _LONGEST / self._rate
        shortened = mean * min(1.0, longest / max(math.sqrt(mean @ mean), longest))
        self._weights = self._weights - self._descent.move(shortened)
        self._step += 1
        self._average += (self._weights - self._average) * max(0.05, 1 / self._step)
        self._deal()

    def gradient(self, codes: np.ndarray) -> np.ndarray:
        """Of the cross-entropy of a row's codes given disturbed copies, float64 (weight,)."""
        first, number = self._codes.first, self._codes.number
        dealt = place_of(codes, _POOL)
        levels = self._levels
        disturbed = np.where(self._stays[dealt], codes, self._others[dealt])
        hidden, chances = self._forward(disturbed, levels)
        chances[:, first + codes] -= 1.0
        chances /= _DRAWS
        into = chances @ self._last.T * (hidden > 0)
        inputs = np.zeros((_DRAWS, number + _LEVELS))
        rows = np.arange(_DRAWS)
        inputs[rows[:, None], first + disturbed] = 1.0
        inputs[rows, number + levels] = 1.0
        return np.concatenate([(inputs.T @ into).ravel(), (hidden.T @ chances).ravel()])

    def drawn(self, number: int, rng: np.random.Generator) -> np.ndarray:
        """Codes (row, attribute): disturbed ones by the columns' shares, undone level by level."""
        codes = self._codes
        held = codes.drawn(np.broadcast_to(codes.shares, (number, codes.number)), rng)
        for level in reversed(range(_LEVELS)):
            _, chances = self._forward(held, np.full(number, level))
            if level:
                # The chance of each code a level before, by Bayes' rule for each code at first:
                # exactly summed up (Austin et al. 2021, Eq. 4), as first codes are independent.
                rows, place = np.arange(number)[:, None], codes.first + held
                chances[rows, place] /= np.exp(self._own[level])[place]
                sums = np.add.reduceat(chances, codes.first, axis=1)
                below = self._kept[level - 1]
                chances *= below
                chances += (1 - below) * codes.shares * np.repeat(sums, codes.sizes, axis=1)
                stays = self._kept[level] / below
                chances[rows, place] *= 1 + stays / (1 - stays) / codes.shares[place]
            held = codes.drawn(chances, rng)
        return held

    @property
    def _last(self) -> np.ndarray:
        return self._weights[self._split :].reshape(-1, self._codes.number)

    def _forward(self, disturbed: np.ndarray, levels: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The hidden layer, and the chances (row, code) of the codes that were disturbed."""
        number, place = self._codes.number, self._codes.first + disturbed
        first = self._weights[: self._split].reshape(number + _LEVELS, -1)
        hidden = np.maximum(first[place].sum(axis=1) + first[number + levels], 0.0)
        logits = hidden @ self._last + self._log_shares
        logits[np.arange(len(place))[:, None], place] += self._own[levels[:, None], place]
        return hidden, self._codes.softmax(logits)

    def _deal(self) -> None:
        """Draws what disturbs rows in the next step: public, and the same for any table."""
        rng, shape = self._rng, (_POOL, _DRAWS, len(self._codes.sizes))
        places = (np.arange(_DRAWS) + rng.random(_DRAWS)) / _DRAWS * _LEVELS
        self._levels = places.astype(np.int64)
        self._stays = rng.random(shape) < self._kept[self._levels][:, None]
        shares = np.broadcast_to(self._codes.shares, (_POOL * _DRAWS, self._codes.number))
        self._others = self._codes.drawn(shares, rng).reshape(shape)
