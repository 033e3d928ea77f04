"""Relaxed tables: rows of shares instead of codes, and their answers, which can be differentiated.

A relaxed row holds for each attribute a distribution over its codes, and stands for all rows that
can be drawn of it. The share of a cell is the mean over relaxed rows of the product of the shares
of its codes (Aydore et al. 2021, section 3.1), so it has a gradient.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from sdv_privpgd.base.arguments import check_fields, check_integer, check_positive, check_share
from sdv_privpgd.base.domain import Clique, Domain
from sdv_privpgd.base.progress import Shares
from sdv_privpgd.estimate.consistency import Possible
from sdv_privpgd.synthesize.engine import Engine
from sdv_privpgd.synthesize.goals import Goals, too_many_components
from sdv_privpgd.synthesize.graphical import allotted


@dataclass(frozen=True, kw_only=True, eq=False)
class Mixture:
    """Equally likely components, in each of which the attributes are independent. Public.

    Attributes:
        domain: The attributes of its rows and their numbers of codes.
        shares: For each component the probabilities of all codes of the first attribute, then of
            the second, and so on: (component, code), float32. It is kept read-only.
        weights: The parameters of a network that made it. A later fit starts from them.
    """

    domain: Domain
    shares: np.ndarray
    weights: Mapping[str, np.ndarray] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.shares.ndim != 2 or self.shares.shape[1] != sum(self.domain.sizes):
            raise ValueError(
                f"shares needs shape (component, {sum(self.domain.sizes)}), got "
                f"{self.shares.shape}."
            )
        self.shares.setflags(write=False)

    @property
    def block(self) -> int:
        """The number of components; a sample of so many rows uses each of them once."""
        return len(self.shares)

    def marginal(self, clique: Clique) -> np.ndarray:
        """The probabilities of a clique's cells, axes in the clique's order."""
        shape = self.domain.shape(clique)
        *others, last = (self._of(axis) for axis in self.domain.axes(clique))
        cells = np.ones((len(self.shares), 1))
        for own in others:
            cells = (cells[:, :, None] * own[:, None, :]).reshape(len(cells), -1)
        return (cells.T @ last).reshape(shape) / len(self.shares)

    def sample(self, num_rows: int, seed: int) -> np.ndarray:
        """Codes of shape (row, attribute), int64. The same seed gives the same rows.

        Components are dealt like decks of cards. Among the rows of one component each code gets
        its share of them, rounded up or down, so the rows' tables are nearer to the model's than
        those of independent draws.
        """
        if num_rows < 0:
            raise ValueError(f"num_rows must be at least 0, got {num_rows!r}.")
        rng = np.random.default_rng(seed)
        decks = [rng.permutation(self.block) for _ in range(-(-num_rows // self.block))]
        given = np.concatenate([np.empty(0, dtype=np.int64), *decks])[:num_rows]
        codes = np.zeros((num_rows, len(self.domain)), dtype=np.int64)
        for axis in range(len(self.domain)):
            codes[:, axis] = allotted(self._of(axis), given, rng)
        return codes

    def _of(self, axis: int) -> np.ndarray:
        """An attribute's probabilities in each component, float64, which sum to 1."""
        first = sum(self.domain.sizes[:axis])
        own = self.shares[:, first : first + self.domain.sizes[axis]].astype(np.float64)
        return own / own.sum(axis=1, keepdims=True)


@dataclass(frozen=True, kw_only=True)
class MixtureEngine(Engine):
    """The settings of engines that move a mixture of products by Adam: RAP's and GEM's.

    Attributes:
        num_components: Products of one distribution for each attribute.
        steps: The largest number of steps.
        learning_rate: Adam's.
        tolerance: The learning rate is halved when 25 steps lower the loss by less than this share
            of itself; after the third time the fit ends.
        possible: For some cliques, the cells that can hold rows at all; the others are wanted
            empty.
        seed: The seed of the start. No private noise depends on it.
        enable_gpu: Whether to use CUDA where there is a device.
    """

    num_components: int = 1_000
    steps: int = 1_000
    learning_rate: float = 0.1
    tolerance: float = 1e-2
    possible: Possible = field(default_factory=dict, compare=False)
    seed: int = 0
    enable_gpu: bool = False

    def __post_init__(self) -> None:
        check_fields(self, check_integer, "num_components", "steps")
        check_fields(self, check_positive, "learning_rate")
        check_fields(self, check_share, "tolerance")

    def refusal(self, domain: Domain, cliques: Sequence[Clique]) -> str | None:
        """Why the mixture cannot be held, ``None`` where it can. Any cliques can be fitted."""
        del cliques
        return too_many_components(domain, self.num_components)


class RelaxedLoss:
    """The loss of relaxed tables: how far their answers are from the goals.

    Tables with all views but the last in common are answered by one product of matrices.
    """

    def __init__(self, goals: Goals, device: torch.device) -> None:
        self._sizes = goals.domain.sizes
        self._axes = [view.axis for view in goals.views]
        # A view through groups sums the shares of the codes of each group.
        self._sums = [
            None
            if view.groups == tuple(range(view.size))
            else torch.eye(view.size, device=device)[list(view.groups)]
            for view in goals.views
        ]
        by_prefix = sorted(range(len(goals.tables)), key=lambda at: goals.tables[at])
        self._blocks: list[tuple[tuple[int, ...], list[int], Tensor, Tensor]] = []
        for prefix, held in groupby(by_prefix, key=lambda at: goals.tables[at][:-1]):
            tables = list(held)
            size = math.prod(goals.views[view].size for view in prefix)
            lasts = [goals.tables[at][-1] for at in tables]
            wanted = np.concatenate([goals.shares[at].reshape(size, -1) for at in tables], axis=1)
            weights = np.repeat(
                [goals.weights[at] for at in tables], [goals.views[last].size for last in lasts]
            )
            self._blocks.append(
                (
                    prefix,
                    lasts,
                    torch.tensor(wanted, dtype=torch.float32, device=device),
                    torch.tensor(weights, dtype=torch.float32, device=device),
                )
            )

    def answers(self, shares: Float[Tensor, "component code"]) -> list[Tensor]:
        """The shares of all cells, block by block."""
        own = torch.split(shares, list(self._sizes), dim=1)
        seen = [
            own[axis] if sums is None else own[axis] @ sums
            for axis, sums in zip(self._axes, self._sums, strict=True)
        ]
        found = []
        for prefix, lasts, _, _ in self._blocks:
            cells = torch.ones_like(shares[:, :1])
            for view in prefix:
                cells = (cells[:, :, None] * seen[view][:, None, :]).flatten(1)
            last = torch.cat([seen[view] for view in lasts], dim=1)
            found.append(cells.T @ last / len(shares))
        return found

    def __call__(self, shares: Float[Tensor, "component code"]) -> Float[Tensor, ""]:
        """The mean squared error in standard deviations of the noise."""
        terms = [
            ((answer - wanted).square().sum(dim=0) * weights).sum()
            for answer, (_, _, wanted, weights) in zip(
                self.answers(shares), self._blocks, strict=True
            )
        ]
        return torch.stack(terms).sum()


def softmaxes(
    logits: Float[Tensor, "component code"], domain: Domain
) -> Float[Tensor, "component code"]:
    """The shares of these log-shares: a softmax for each attribute."""
    parts = torch.split(logits, list(domain.sizes), dim=1)
    return torch.cat([torch.softmax(part, dim=1) for part in parts], dim=1)


def descend(
    loss_of: Callable[[], Tensor],
    parameters: Sequence[Tensor],
    *,
    steps: int,
    learning_rate: float,
    tolerance: float,
    shares: Shares,
) -> list[float]:
    """Lowers a loss by Adam, in place, and returns the losses after each lot of 25 steps.

    When a lot lowers the loss by less than ``tolerance`` of itself, the learning rate is halved;
    after the third time the descent ends.
    """
    slower = 0.5  # factor of the learning rate when a lot brings too little
    steps_at_once = 25  # Steps of one lot. The descent looks at the loss after each lot.
    adam = Adam(parameters)
    losses: list[float] = []
    halved = 0
    for step in range(1, steps + 1):
        loss = loss_of()
        adam.step(torch.autograd.grad(loss, parameters), learning_rate)
        if step % steps_at_once and step != steps:
            continue
        losses.append(float(loss.detach()))
        if len(losses) > 1 and losses[-1] > (1 - tolerance) * losses[-2]:
            halved += 1
            if halved == 3:
                break
            learning_rate *= slower
        shares.reach(step / steps)
    shares.reach(1.0)
    return losses


class Adam:
    """Adam's moments of some parameters (Kingma & Ba 2015, Algorithm 1).

    The one of ``torch.optim`` needs seconds to be imported.
    """

    def __init__(self, parameters: Sequence[Tensor]) -> None:
        self._parameters = parameters
        self._means = [torch.zeros_like(own) for own in parameters]
        self._squares = [torch.zeros_like(own) for own in parameters]
        self._steps = 0

    @torch.no_grad()
    def step(self, gradients: Sequence[Tensor], learning_rate: float) -> None:
        """Moves the parameters, in place."""
        means, squares = 0.9, 0.999  # how much of Adam's moments each step keeps
        self._steps += 1
        root = math.sqrt(1 - squares**self._steps)
        length = learning_rate * root / (1 - means**self._steps)
        for own, gradient, mean, square in zip(
            self._parameters, gradients, self._means, self._squares, strict=True
        ):
            mean.mul_(means).add_(gradient, alpha=1 - means)
            square.mul_(squares).addcmul_(gradient, gradient, value=1 - squares)
            own.addcdiv_(mean, square.sqrt().add_(1e-8 * root), value=-length)


def device_of(*, enable_gpu: bool) -> torch.device:
    """CUDA's device if it is wanted and there is one, else the processor."""
    return torch.device("cuda" if enable_gpu and torch.cuda.is_available() else "cpu")
