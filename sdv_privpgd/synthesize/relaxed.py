"""Relaxed tables: rows of shares instead of codes, and their answers, which can be differentiated.

A relaxed row holds for each attribute a distribution over its codes, and stands for all rows that
can be drawn of it. The share of a cell is the mean over relaxed rows of the product of the shares
of its codes (Aydore et al. 2021, section 3.1), so it has a gradient.
"""

import math
from collections.abc import Callable, Sequence
from itertools import groupby

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from sdv_privpgd.base.domain import Domain
from sdv_privpgd.base.progress import Shares
from sdv_privpgd.synthesize.goals import Goals

_STEPS_AT_ONCE = 25
"""Steps of one lot. The descent looks at the loss after each lot."""

_MEANS, _SQUARES = 0.9, 0.999
"""How much of Adam's moments each step keeps."""

_SLOWER = 0.5
"""Factor of the learning rate when a lot brings too little."""


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
    adam = Adam(parameters)
    losses: list[float] = []
    halved = 0
    for step in range(1, steps + 1):
        loss = loss_of()
        adam.step(torch.autograd.grad(loss, parameters), learning_rate)
        if step % _STEPS_AT_ONCE and step != steps:
            continue
        losses.append(float(loss.detach()))
        if len(losses) > 1 and losses[-1] > (1 - tolerance) * losses[-2]:
            halved += 1
            if halved == 3:
                break
            learning_rate *= _SLOWER
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
        self._steps += 1
        root = math.sqrt(1 - _SQUARES**self._steps)
        length = learning_rate * root / (1 - _MEANS**self._steps)
        for own, gradient, mean, square in zip(
            self._parameters, gradients, self._means, self._squares, strict=True
        ):
            mean.mul_(_MEANS).add_(gradient, alpha=1 - _MEANS)
            square.mul_(_SQUARES).addcmul_(gradient, gradient, value=1 - _SQUARES)
            own.addcdiv_(mean, square.sqrt().add_(1e-8 * root), value=-length)


def device_of(*, enable_gpu: bool) -> torch.device:
    """CUDA's device if it is wanted and there is one, else the processor."""
    return torch.device("cuda" if enable_gpu and torch.cuda.is_available() else "cpu")
