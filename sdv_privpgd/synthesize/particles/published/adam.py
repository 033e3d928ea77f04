"""The published optimizer: Adam whose moments change only where the gradient is not masked."""

from dataclasses import dataclass
from importlib.util import find_spec

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from sdv_privpgd.synthesize.particles.optimizers import Move, Pull

_BETAS, _EPS = (0.9, 0.999), 1e-8
"""Adam's own constants (Kingma & Ba 2015)."""


@dataclass(frozen=True, kw_only=True)
class AdamStep:
    """The published optimizer: Adam whose moments change only where the gradient is not masked.

    Like torch.optim.SparseAdam, it corrects the bias by the number of all steps. The learning
    rate is multiplied by ``decay`` at the start of each of ``num_phases`` - 1 later phases of
    equal length (Donhauser et al. 2024, section 4.1: 0.75 every 50 of 1,000 epochs).
    """

    learning_rate: float = 0.1
    decay: float = 0.75
    num_phases: int = 20

    def begin(self, positions: Float[Tensor, "attribute particle"]) -> Move:
        mean = torch.zeros_like(positions)
        square = torch.zeros_like(positions)
        num_steps = 0
        beta, beta_square = _BETAS
        is_compiled = (
            positions.device.type == "cpu"
            and positions.dtype == torch.float32
            and find_spec("numba") is not None
        )

        def move(pull: Pull, elapsed: float) -> Tensor:
            nonlocal num_steps
            num_steps += 1
            phase = min(int(elapsed * self.num_phases), self.num_phases - 1)
            rate = self.learning_rate * self.decay**phase
            unbias = 1 / (1 - beta**num_steps)
            unbias_square = 1 / (1 - beta_square**num_steps)
            if is_compiled:
                scales = (rate, unbias, unbias_square)
                return _compiled_step(pull, mean, square, scales)
            moving = 1.0 if pull.moving is None else pull.moving.to(positions)
            mean[pull.columns] += (1 - beta) * moving * (pull.gradient - mean[pull.columns])
            square[pull.columns] += (
                (1 - beta_square) * moving * (pull.gradient.square() - square[pull.columns])
            )
            scale = (square[pull.columns] * unbias_square).sqrt() + _EPS
            return -rate * moving * (mean[pull.columns] * unbias) / scale

        return move


def _compiled_step(
    pull: Pull,
    mean: Float[Tensor, "attribute particle"],
    square: Float[Tensor, "attribute particle"],
    scales: tuple[float, float, float],
) -> Float[Tensor, "column particle"]:
    """The same in one pass, where torch makes a dozen over arrays that fit no cache."""
    from sdv_privpgd.synthesize.particles.published.adam_kernel import adam_step

    change = torch.empty_like(pull.gradient)
    moving = pull.moving
    if moving is None:
        moving = torch.ones(pull.gradient.shape, dtype=torch.bool)
    adam_step(
        np.array(pull.columns),
        pull.gradient.contiguous().numpy(),
        moving.contiguous().numpy(),
        mean.numpy(),
        square.numpy(),
        change.numpy(),
        np.float32(_BETAS[0]),
        np.float32(_BETAS[1]),
        tuple(map(np.float32, scales)),
        np.float32(_EPS),
    )
    return change
