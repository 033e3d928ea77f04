"""RAP and GEM: a mixture of relaxed rows is moved until its answers are the noisy ones.

A relaxed row holds for each attribute a distribution over its codes, and stands for all rows that
can be drawn of it. The share of a cell is the mean over relaxed rows of the product of the shares
of its codes (Aydore et al. 2021, section 3.1), so it has a gradient.
"""

import math
from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from typing import Any, ClassVar

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from sdv_privpgd.base.arguments import check_fields, check_integer, check_positive, check_share
from sdv_privpgd.base.domain import Clique, Domain
from sdv_privpgd.base.progress import Progress, Shares, silent
from sdv_privpgd.estimate.consistency import Possible
from sdv_privpgd.privacy.queries import Measurement
from sdv_privpgd.synthesize.engine import RAP, Engine, Goals, Model, dealt
from sdv_privpgd.synthesize.graphical import allotted


@dataclass(frozen=True, kw_only=True, eq=False)
class Mixture:
    """Equally likely components, in each of which the attributes are independent. Public."""

    domain: Domain  # the attributes of its rows and their numbers of codes
    # For each component the probabilities of all codes of the first attribute, then of the second,
    # and so on: (component, code), float32. It is kept read-only.
    shares: np.ndarray
    # What made it, such as the parameters of a network. A later fit starts from them.
    weights: Mapping[str, np.ndarray] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.shares.setflags(write=False)

    @property
    def block(self) -> int:
        """The number of components; a sample of so many rows uses each of them once."""
        return len(self.shares)

    def marginal(self, clique: Clique) -> np.ndarray:
        parts = [shares_of(self.shares, self.domain, axis) for axis in self.domain.axes(clique)]
        cells = products([np.ones((self.block, 1)), *parts[:-1]]).T @ parts[-1]
        return (cells / self.block).reshape(self.domain.shape(clique))

    def sample(self, num_rows: int, seed: int) -> np.ndarray:
        """Codes of shape (row, attribute), int64. The same seed gives the same rows.

        Components are dealt like decks of cards. Among the rows of one component each code gets
        its share of them, rounded up or down, so the rows' tables are nearer to the model's than
        those of independent draws.
        """
        rng = np.random.default_rng(seed)
        given = dealt(self.block, num_rows, rng)
        codes = np.zeros((num_rows, len(self.domain)), dtype=np.int64)
        for axis in range(len(self.domain)):
            own = shares_of(self.shares, self.domain, axis)
            is_sure = (own.max(axis=1) == 1).all()  # each component has one code: nothing is drawn
            codes[:, axis] = own.argmax(axis=1)[given] if is_sure else allotted(own, given, rng)
        return codes


def shares_of(shares: np.ndarray, domain: Domain, axis: int) -> np.ndarray:
    """An attribute's probabilities in each component, float64, which sum to 1."""
    first = sum(domain.sizes[:axis])
    own = shares[:, first : first + domain.sizes[axis]].astype(np.float64)
    return own / own.sum(axis=1, keepdims=True)


def products(parts: Sequence[Any]) -> Any:
    """The products of one entry of each part (row, _), in order: (row, cell)."""
    found = parts[0]
    for part in parts[1:]:
        found = (found[:, :, None] * part[:, None, :]).reshape(len(found), -1)
    return found


Weights = Mapping[str, Tensor]
Components = Float[Tensor, "component code"]


@dataclass(frozen=True, kw_only=True)
class MixtureEngine(Engine):
    """Moves what a mixture is made of by Adam. The settings are described where they are used."""

    num_components: int = 1_000
    steps: int = 1_000
    learning_rate: float = 0.1
    tolerance: float = 1e-2
    seed: int = 0
    enable_gpu: bool = False

    nanoseconds: ClassVar[float]
    """For each step that it may take, component and code, as fits of 5 to 15 columns took them."""

    def __post_init__(self) -> None:
        check_fields(self, check_integer, "num_components", "steps")
        check_fields(self, check_positive, "learning_rate")
        check_fields(self, check_share, "tolerance")

    def seconds(self, domain: Domain) -> float:
        return self.nanoseconds / 1e9 * self.steps * self.num_components * sum(domain.sizes)

    def refusal(self, domain: Domain, cliques: Sequence[Clique]) -> str | None:
        """Why the mixture cannot be held, ``None`` where it can. Any cliques can be fitted."""
        del cliques
        largest = 2048.0  # MiB of float64, of a number for each component and code
        codes = sum(domain.sizes)
        size = self.num_components * codes * 8 / 2**20
        if size <= largest:
            return None
        return (
            f"{self.num_components:,} rows of shares over all {codes:,} codes take {size:.3g} MiB, "
            f"above {largest:g}. Ask for fewer components, or for fewer codes of the columns with "
            "most of them."
        )


@dataclass(frozen=True, kw_only=True)
class _OfTables(MixtureEngine):
    """Moves a mixture whose answers are tables."""

    possible: Possible = field(default_factory=dict, compare=False)

    keeps_weights: ClassVar[bool] = True
    """Whether a later fit needs what is moved besides the shares."""

    @abstractmethod
    def begun(
        self, domain: Domain, warm_start: Model | None, device: torch.device
    ) -> tuple[Weights, Callable[[Weights], Tensor]]:
        """What is moved, where it starts, and the log-shares that it stands for."""

    def fit(
        self,
        domain: Domain,
        measurements: Sequence[Measurement],
        *,
        warm_start: Model | None = None,
        progress: Progress = silent,
    ) -> Mixture:
        """The mixture that is nearest to the measured tables.

        ``warm_start`` is where the descent starts if an engine of these settings made it.
        """
        device = device_of(enable_gpu=self.enable_gpu)
        start, logits = self.begun(domain, warm_start, device)
        weights = {name: own.to(device).requires_grad_() for name, own in start.items()}
        goals = Goals.of(domain, measurements, self.possible)
        shares = Shares(progress, "fit")
        if goals.tables:
            loss = RelaxedLoss(goals, device)
            loss_of = lambda: loss(softmaxes(logits(weights), domain))
            self._descend(loss_of, list(weights.values()), shares)
        shares.reach(1.0)
        with torch.no_grad():
            found = softmaxes(logits(weights), domain).cpu().numpy()
        held = {name: own.detach().cpu().numpy() for name, own in weights.items()}
        return Mixture(domain=domain, shares=found, weights=held if self.keeps_weights else {})

    def _descend(
        self, loss_of: Callable[[], Tensor], parameters: Sequence[Tensor], shares: Shares
    ) -> None:
        """Lowers a loss by Adam, in place.

        When a lot of 25 steps lowers the loss by less than ``tolerance`` of itself, the learning
        rate is halved; after the third time the descent ends.
        """
        adam, before, halved = Adam(parameters), math.inf, 0
        for step in range(1, self.steps + 1):
            loss = loss_of()
            adam.step(loss, self.learning_rate / 2**halved)
            if step % 25 and step != self.steps:
                continue
            now = float(loss.detach())
            halved += now > (1 - self.tolerance) * before
            if halved == 3:
                break
            before = now
            shares.reach(step / self.steps)


@dataclass(frozen=True, kw_only=True)
class RelaxedProjection(_OfTables):
    """Moves a table of relaxed rows until its answers match the measured tables.

    Aydore et al. 2021 (RAP), Algorithm 1: a relaxed row has a distribution for each attribute
    instead of a code, so that the answers have a gradient, which Adam follows. Rows are drawn of
    the relaxed rows at the end. It sees noisy answers only, so all it does is post-processing.
    With ``Adaptive`` it is the published method, and with another strategy its projection alone.
    Ours differs in four ways:

    - Shares are softmaxes of free numbers, as in later codes, instead of being clipped.
    - An error counts by the noise of its table: tables need not be equally noisy.
    - The descent ends when steps bring little, by ``tolerance``.
    - Among the rows of a relaxed row each code gets its share rounded up or down, instead of
      independent draws.

    Attributes:
        num_components: Relaxed rows. Time and memory grow in proportion.
        steps: The largest number of steps.
        learning_rate: Adam's, of numbers whose softmax is a share.
        tolerance: The learning rate is halved when 25 steps lower the loss by less than this share
            of itself; after the third time the fit ends.
        possible: For some cliques, the cells that can hold rows at all; the others are wanted
            empty.
        seed: The seed of the start. No private noise depends on it.
        enable_gpu: Whether to use CUDA where there is a device.
    """

    title = "A relaxed table was fitted to the noisy counts by Adam"
    citation = RAP
    quick = {"num_components": 50, "steps": 10}  # noqa: RUF012
    keeps_weights = False
    nanoseconds = 10

    def begun(
        self, domain: Domain, warm_start: Model | None, device: torch.device
    ) -> tuple[Weights, Callable[[Weights], Tensor]]:
        del device
        shape = (self.num_components, sum(domain.sizes))
        if isinstance(warm_start, Mixture) and warm_start.shares.shape == shape:
            start = torch.tensor(warm_start.shares).clamp_min(1e-6).log()
        else:
            start = torch.randn(shape, generator=torch.Generator().manual_seed(self.seed))
        return {"logits": start}, lambda weights: weights["logits"]


@dataclass(frozen=True, kw_only=True)
class GenerativeNetwork(_OfTables):
    """Trains a small network that turns noise into product distributions to match the tables.

    Liu, Vietri & Wu 2021 (GEM), section 4: a fixed sample of Gaussian noise goes through a residual
    network; its output, a softmax for each attribute, is a mixture of product distributions, whose
    answers have a gradient. It sees noisy answers only, so all it does is post-processing. With
    ``Adaptive`` it is the published method, and with another strategy its training alone. Ours
    differs in four ways:

    - All measured cells count in each step, by the noise of their table, where the published code
      trains on cells whose error is above a threshold.
    - The weights of the last step are taken, and no average over rounds.
    - Rows are drawn as for ``RelaxedProjection``.
    - There are 500 products and a learning rate of 0.005, where the paper has 1,000 and the
      published code 0.0001 to 0.001: with all pairs of Adult at epsilon 1, 14 seconds of one core
      instead of 31, and errors no larger.

    The settings are those of ``RelaxedProjection``, but for these.

    Attributes:
        num_components: The size of the sample of noise, which is the number of products.
        latent: The number of noise values of each.
        widths: The layers' numbers of units.
        learning_rate: Adam's, of the network's weights.
        seed: The seed of the sample and the first weights. No private noise depends on it.
    """

    num_components: int = 500
    latent: int = 128
    widths: tuple[int, ...] = (256, 256)
    learning_rate: float = 5e-3

    title = "A generative network was trained on the noisy counts"
    citation = (
        "Liu, T., Vietri, G. & Wu, Z. S. (2021). Iterative methods for private synthetic data: "
        "unifying framework and new methods. NeurIPS 34."
    )
    quick = {"num_components": 50, "widths": (8,), "latent": 8, "steps": 10}  # noqa: RUF012
    nanoseconds = 60

    def __post_init__(self) -> None:
        super().__post_init__()
        check_fields(self, check_integer, "latent")
        for width in self.widths:
            check_integer("widths", width)

    def begun(
        self, domain: Domain, warm_start: Model | None, device: torch.device
    ) -> tuple[Weights, Callable[[Weights], Tensor]]:
        generator = torch.Generator().manual_seed(self.seed)
        noise = torch.randn((self.num_components, self.latent), generator=generator).to(device)
        start = first_weights(self.latent, self.widths, sum(domain.sizes), generator)
        known = warm_start.weights if isinstance(warm_start, Mixture) else {}
        shapes = {name: tuple(own.shape) for name, own in start.items()}
        if {name: own.shape for name, own in known.items()} == shapes:
            start = {name: torch.tensor(own) for name, own in known.items()}
        return start, lambda weights: logits_of(noise, weights)


def first_weights(
    latent: int, widths: Sequence[int], codes: int, generator: torch.Generator
) -> dict[str, Tensor]:
    """Random weights: uniform within 1 / sqrt(inputs) of 0, scales of 1 and shifts of 0."""

    def uniform(*shape: int) -> Tensor:
        return (2 * torch.rand(shape, generator=generator) - 1) / shape[0] ** 0.5

    found: dict[str, Tensor] = {}
    inputs = latent
    for at, width in enumerate(widths):
        found[f"map {at}"] = uniform(inputs, width)
        found[f"scale {at}"] = torch.ones(width)
        found[f"shift {at}"] = torch.zeros(width)
        inputs += width
    found["map"] = uniform(inputs, codes)
    found["shift"] = torch.zeros(codes)
    return found


def logits_of(noise: Float[Tensor, "component latent"], weights: Weights) -> Components:
    """The network's output: log-shares of all codes.

    A layer's values are normalized over the sample, scaled, shifted and cut at 0; what went into
    the layer goes on beside them.
    """
    values = noise
    for at in range((len(weights) - 2) // 3):
        mapped = values @ weights[f"map {at}"]
        variance, mean = torch.var_mean(mapped, dim=0, correction=0)
        normal = (mapped - mean) * torch.rsqrt(variance + 1e-5)
        active = torch.relu(normal * weights[f"scale {at}"] + weights[f"shift {at}"])
        values = torch.cat([active, values], dim=1)
    return values @ weights["map"] + weights["shift"]


class RelaxedLoss:
    """The loss of relaxed tables: how far their answers are from the goals.

    Tables with all views but the last in common are answered by one product of matrices.
    """

    def __init__(self, goals: Goals, device: torch.device) -> None:
        self._sizes, views = goals.domain.sizes, goals.views
        self._axes = [view.axis for view in views]
        # A view through groups sums the shares of the codes of each group.
        self._sums = [
            None
            if view.groups == tuple(range(view.size))
            else torch.eye(view.size, device=device)[list(view.groups)]
            for view in views
        ]
        tensor = lambda values: torch.tensor(values, dtype=torch.float32, device=device)
        by_prefix = sorted(range(len(goals.tables)), key=lambda at: goals.tables[at])
        self._blocks: list[tuple[tuple[int, ...], list[int], Tensor, Tensor]] = []
        for prefix, held in groupby(by_prefix, key=lambda at: goals.tables[at][:-1]):
            tables = list(held)
            size = math.prod(views[view].size for view in prefix)
            lasts = [goals.tables[at][-1] for at in tables]
            wanted = np.concatenate([goals.shares[at].reshape(size, -1) for at in tables], axis=1)
            weights = np.repeat(
                [goals.weights[at] for at in tables], [views[last].size for last in lasts]
            )
            self._blocks.append((prefix, lasts, tensor(wanted), tensor(weights)))

    def __call__(self, shares: Components) -> Float[Tensor, ""]:
        """The mean squared error in standard deviations of the noise."""
        own = torch.split(shares, list(self._sizes), dim=1)
        seen = [
            own[axis] if sums is None else own[axis] @ sums
            for axis, sums in zip(self._axes, self._sums, strict=True)
        ]
        terms = []
        for prefix, lasts, wanted, weights in self._blocks:
            cells = products([torch.ones_like(shares[:, :1]), *(seen[view] for view in prefix)])
            answers = cells.T @ torch.cat([seen[view] for view in lasts], dim=1) / len(shares)
            terms.append(((answers - wanted).square().sum(dim=0) * weights).sum())
        return torch.stack(terms).sum()


def softmaxes(logits: Components, domain: Domain) -> Components:
    """The shares of these log-shares: a softmax for each attribute."""
    parts = torch.split(logits, list(domain.sizes), dim=1)
    return torch.cat([torch.softmax(part, dim=1) for part in parts], dim=1)


class Adam:
    """Adam's moments of some parameters (Kingma & Ba 2015, Algorithm 1).

    The one of ``torch.optim`` needs seconds to be imported.
    """

    def __init__(self, parameters: Sequence[Tensor]) -> None:
        self._held = [(own, torch.zeros_like(own), torch.zeros_like(own)) for own in parameters]
        self._steps = 0

    def step(self, loss: Float[Tensor, ""], learning_rate: float) -> None:
        """Moves the parameters against the gradient of a loss, in place."""
        means, squares = 0.9, 0.999  # how much of Adam's moments each step keeps
        self._steps += 1
        root = math.sqrt(1 - squares**self._steps)
        length = learning_rate * root / (1 - means**self._steps)
        gradients = torch.autograd.grad(loss, [own for own, _, _ in self._held])
        with torch.no_grad():
            for (own, mean, square), gradient in zip(self._held, gradients, strict=True):
                mean.mul_(means).add_(gradient, alpha=1 - means)
                square.mul_(squares).addcmul_(gradient, gradient, value=1 - squares)
                own.addcdiv_(mean, square.sqrt().add_(1e-8 * root), value=-length)


def device_of(*, enable_gpu: bool) -> torch.device:
    """CUDA's device if it is wanted and there is one, else the processor."""
    return torch.device("cuda" if enable_gpu and torch.cuda.is_available() else "cpu")
