"""A small conditional generator and its critic, which private gradients of real rows train."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch

from sdv_privpgd.domain import Clique, Domain
from sdv_privpgd.estimate.noisy_tables import estimate_total
from sdv_privpgd.privacy.measurement import Measurement
from sdv_privpgd.progress import Progress, silent
from sdv_privpgd.synthesize.engine import Engine, Model
from sdv_privpgd.synthesize.learning import Adam, Codes, place_of, trained
from sdv_privpgd.synthesize.particles.particles import Particles, default_number

_LATENT = 16
"""Normal numbers of an input."""
_DRAWS = 4
"""Conditions of a row that its gradient is the mean of."""
_POOL = 64
"""Sets of conditions of a step, one of which a row takes by its codes."""
_FAKES = 200
"""Rows that the critic compares with in a step, and that the generator learns from."""
_COOL = 0.5
"""Temperature of the softened codes (Jang, Gu & Poole 2017)."""
_FORGET = 0.01
"""Part of the critic's weights that a step takes off: what noise adds to them fades."""
_TABLES = 100
"""A row is as slow to draw as so many tables are to fit."""
_AT_ONCE = 1 << 13


@dataclass(frozen=True, kw_only=True)
class AdversarialNetwork(Engine):
    """Rows of a conditional generator whose critic was trained by DP-SGD: DP-CTGAN.

    Xu et al. 2019 (CTGAN) condition each row on one column's value, and train a generator against a
    critic; Fang, Dhami & Kersting 2022 (DP-CTGAN) train the critic with DP-SGD. The generator sees
    real rows through the critic alone, so all it does is post-processing. ``PrivateGradients``
    trains it. Ours differs in five ways:

    - Numbers are codes, where CTGAN has modes of a mixture that it fits to the table.
    - A real row is conditioned on its own value of a column that is drawn; theirs draws the value
      and looks for a row that has it, which is no Poisson sample.
    - Values are drawn by the noisy tables, and the generator starts with their shares.
    - The critic has a logistic loss without a gradient penalty and without packs of rows, and
      takes several steps for one of the generator's (Bie, Kamath & Zhang 2023).
    - Both networks have one hidden layer.

    When to use it: to compare with networks trained by DP-SGD. On the guide's tables its pairs
    are worse than those of independent columns.

    Attributes:
        width: Of the critic's hidden layer; the generator's is twice as wide.
        clip: The largest norm of a row's gradient.
        learning_rate: Of Adam, of both networks, at the first step.
        critic_steps: Of the critic, for one of the generator.
        num_particles: Rows that are drawn of the generator once it is trained. A sample is dealt
            from them. ``None`` takes the estimated number of rows, or of many an equal part.
        seed: Of all random choices here. No private noise depends on it.

    >>> engine = AdversarialNetwork(num_particles=1_000)
    >>> from sdv_privpgd.privacy.queries import MarginalQuery
    >>> shares = Measurement(
    ...     query=MarginalQuery(("a",)), answer=np.array([900, 100]), stddev=1.0
    ... )
    >>> model = engine.fit(Domain(("a", "b"), (2, 3)), [shares])  # before it is trained
    >>> model.marginal(("a",)).round(1).tolist()
    [0.9, 0.1]
    """

    width: int = 32
    clip: float = 1.0
    learning_rate: float = 5e-4
    critic_steps: int = 2
    num_particles: int | None = None
    seed: int = 0

    network = "conditional critic"
    """Its name in the ledger."""

    title = "The network was the critic of a conditional generator, which the rows were drawn from"
    citation = (
        "Xu, L., Skoularidou, M., Cuesta-Infante, A. & Veeramachaneni, K. (2019). Modeling tabular "
        "data using conditional GAN. NeurIPS 32."
    )
    quick = {"num_particles": 300, "width": 8}  # noqa: RUF012
    takes = ("private gradients",)
    takes_groups = False

    def megabytes(self, domain: Domain, cliques: Sequence[Clique]) -> float:
        """The size of both networks in MiB of float64."""
        del cliques
        return self.width * (6 * sum(domain.sizes) + 2 * _LATENT) * 8 / 2**20

    def learner(
        self, domain: Domain, measurements: Sequence[Measurement], steps: int, batch: int = 1
    ) -> "AdversarialLearner":
        """Both networks before their first step, by the noisy tables among the answers."""
        return AdversarialLearner(self, Codes.of(domain, measurements), steps, batch)

    def fit(
        self,
        domain: Domain,
        measurements: Sequence[Measurement],
        *,
        warm_start: Model | None = None,
        progress: Progress = silent,
    ) -> Particles:
        """Rows of the generator with the weights among the answers. ``warm_start`` is not used."""
        del warm_start
        learner = self.learner(domain, measurements, 1)
        weights = trained(measurements, self.network)
        if weights is not None:
            learner.load(weights)
        total = estimate_total(domain, measurements).value
        number = self.num_particles or default_number(total, _TABLES)
        starts = progress(range(0, number, _AT_ONCE), "fit")
        parts = [learner.drawn(min(_AT_ONCE, number - start)) for start in starts]
        return Particles(domain=domain, codes=np.concatenate(parts))


class AdversarialLearner:
    """The weights of critic and generator, the critic's gradient for a row, and generated rows."""

    def __init__(self, engine: AdversarialNetwork, codes: Codes, steps: int, batch: int) -> None:
        self._codes, self._engine, self._batch = codes, engine, batch
        self._rng = np.random.default_rng(engine.seed)
        number, width = codes.number, engine.width
        first = self._rng.normal(size=(2 * number, width)) / math.sqrt(len(codes.sizes) + 1)
        last = self._rng.normal(size=width) / math.sqrt(width)
        self._critic = np.concatenate([first.ravel(), np.zeros(width), last])
        wide = 2 * width
        before = self._rng.normal(size=(_LATENT + number, wide)) / math.sqrt(_LATENT + 1)
        # A generator of zeros would have no gradient but in its last layer.
        after = self._rng.normal(size=(wide, number)) * 0.1 / math.sqrt(wide)
        self._shapes = (before.shape, after.shape)
        self._generator = np.concatenate([before.ravel(), after.ravel()])
        self._average, self._step = self._generator.copy(), 0
        self._adams = Adam(engine.learning_rate, steps), Adam(engine.learning_rate, steps)
        self._deal()

    @property
    def num_weights(self) -> int:
        """Those that gradients of rows move: the critic's."""
        return len(self._critic)

    def weights(self) -> np.ndarray:
        """The critic's, and the mean of the generator's over the last steps."""
        return np.concatenate([self._critic, self._average])

    def load(self, weights: np.ndarray) -> None:
        """Takes these weights."""
        self._critic = weights[: self.num_weights].copy()
        self._generator = weights[self.num_weights :].copy()
        self._average = self._generator.copy()

    def gradient(self, codes: np.ndarray) -> np.ndarray:
        """Of the critic's loss for a real row, float64 (weight,)."""
        axes = self._axes[place_of(codes, _POOL)]
        return self._of_row(codes, self._codes.first[axes] + codes[axes], -1.0)

    def update(self, gradient: np.ndarray) -> None:
        """A step of the critic, and at times one of the generator."""
        engine = self._engine
        places = self._conditions(_FAKES)
        fakes = self._codes.drawn(self._chances(places), self._rng)
        found = np.zeros(self.num_weights)
        for row, place in zip(fakes, places, strict=True):
            own = self._of_row(row, place[None], 1.0)
            found += own * min(1.0, engine.clip / max(math.sqrt(own @ own), 1e-12))
        moved = self._adams[0].move(gradient * engine.clip / self._batch + found / _FAKES)
        self._critic = (self._critic - moved) * (1 - _FORGET)
        self._step += 1
        if self._step % engine.critic_steps == 0:
            self._generate()
        self._deal()

    def drawn(self, number: int) -> np.ndarray:
        """Codes (row, attribute) of the generator, under conditions that are drawn."""
        return self._codes.drawn(self._chances(self._conditions(number)), self._rng)

    def _of_row(self, codes: np.ndarray, conditions: np.ndarray, sign: float) -> np.ndarray:
        """The gradient of the mean of log(1 + exp(sign critic(row, condition)))."""
        number, width = self._codes.number, self._engine.width
        first = self._critic[: -2 * width].reshape(2 * number, width)
        bias, last = self._critic[-2 * width : -width], self._critic[-width:]
        places = self._codes.first + codes
        hidden = first[places].sum(axis=0) + first[number + conditions] + bias
        hidden = np.maximum(hidden, 0.0)
        pull = sign / (1 + np.exp(-sign * (hidden @ last))) / len(conditions)  # (condition,)
        into = pull[:, None] * last * (hidden > 0)
        found = np.zeros_like(self._critic)
        held = found[: -2 * width].reshape(2 * number, width)
        held[places] = into.sum(axis=0)
        np.add.at(held, number + conditions, into)
        found[-2 * width : -width] = into.sum(axis=0)
        found[-width:] = pull @ hidden
        return found

    def _deal(self) -> None:
        """Draws the columns on which real rows are conditioned in the next step."""
        self._axes = self._rng.integers(0, len(self._codes.sizes), (_POOL, _DRAWS))

    def _conditions(self, number: int) -> np.ndarray:
        """Places of codes: of a column each, by its shares."""
        chances = np.broadcast_to(self._codes.shares, (number, self._codes.number))
        all_codes = self._codes.first + self._codes.drawn(chances, self._rng)
        axes = self._rng.integers(0, len(self._codes.sizes), number)
        return all_codes[np.arange(number), axes]

    def _chances(self, places: np.ndarray) -> np.ndarray:
        """The generator's chances (row, code), under conditions."""
        with torch.no_grad():
            weights = torch.from_numpy(self._average)
            return self._codes.softmax(self._logits(weights, places).numpy())

    def _logits(self, weights: torch.Tensor, places: np.ndarray) -> torch.Tensor:
        before, after = self._shapes
        size = math.prod(before)
        first, last = weights[:size].reshape(before), weights[size:].reshape(after)
        latent = torch.from_numpy(self._rng.normal(size=(len(places), _LATENT)))
        hidden = latent @ first[:_LATENT] + first[_LATENT + torch.from_numpy(places)]
        return torch.relu(hidden) @ last + torch.from_numpy(np.log(self._codes.shares))

    def _generate(self) -> None:
        """A step of the generator: to be taken for real, and to have what it was told to have."""
        codes, number, width = self._codes, self._codes.number, self._engine.width
        places = self._conditions(_FAKES)
        weights = torch.from_numpy(self._generator).requires_grad_()
        logits = self._logits(weights, places)
        uniform = self._rng.random((_FAKES, number))
        noise = torch.from_numpy(-np.log(-np.log(uniform + 1e-300) + 1e-300))
        split = list(codes.sizes)
        soft = torch.cat(
            [
                torch.softmax(part / _COOL, dim=1)
                for part in torch.split(logits + noise, split, dim=1)
            ],
            dim=1,
        )
        critic = torch.from_numpy(self._critic)
        first = critic[: -2 * width].reshape(2 * number, width)
        hidden = soft @ first[:number] + first[number + torch.from_numpy(places)]
        hidden = torch.relu(hidden + critic[-2 * width : -width])
        taken = torch.nn.functional.softplus(-(hidden @ critic[-width:])).mean()
        logs = torch.cat(
            [torch.log_softmax(part, dim=1) for part in torch.split(logits, split, dim=1)], dim=1
        )
        told = -logs[torch.arange(_FAKES), torch.from_numpy(places)].mean()
        (pulled,) = torch.autograd.grad(taken + told, [weights])
        self._generator = self._generator - self._adams[1].move(pulled.numpy())
        self._average += (self._generator - self._average) * max(
            0.05, self._engine.critic_steps / self._step
        )
