"""The published optimizer and projection step, for ``ParticleGradientDescent.as_published``."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import no_type_check

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from sdv_privpgd.base.progress import Progress, silent
from sdv_privpgd.synthesize.particles.binned_displacement import DIGITS, sort_places
from sdv_privpgd.synthesize.particles.compiler import njit
from sdv_privpgd.synthesize.particles.kernels import SEGMENT_STEPS, Positions
from sdv_privpgd.synthesize.particles.projection import SignedTable, balanced, solved_in_threads
from sdv_privpgd.synthesize.particles.steps import Move, Pull, independent_directions

_ADAM = (0.9, 0.999, 1e-8)
"""Adam's own constants: what is kept of both moments, and a step's smallest scale (Kingma & Ba
2015)."""


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

    def begin(self, positions: Positions) -> Move:
        mean, square = torch.zeros_like(positions), torch.zeros_like(positions)
        num_steps = 0

        def move(pull: Pull, elapsed: float) -> Tensor:
            nonlocal num_steps
            num_steps += 1
            phase = min(int(elapsed * self.num_phases), self.num_phases - 1)
            rate = self.learning_rate * self.decay**phase
            unbias, unbias_square = (1 / (1 - beta**num_steps) for beta in _ADAM[:2])
            columns, gradient = pull.columns, pull.gradient
            moving = pull.moving
            if moving is None:
                moving = torch.ones(gradient.shape, dtype=torch.bool, device=gradient.device)
            mean[columns] += (1 - _ADAM[0]) * moving * (gradient - mean[columns])
            square[columns] += (1 - _ADAM[1]) * moving * (gradient.square() - square[columns])
            scale = (square[columns] * unbias_square).sqrt() + _ADAM[2]
            return -rate * moving * (mean[columns] * unbias) / scale

        return move


@dataclass(frozen=True, kw_only=True)
class SoftmaxProjection:
    """Solves the projection as published, by Adam on the logits with new directions at each step.

    Donhauser et al. 2024, section 4.1, with the published constants. Two defects of the authors'
    code are mended. Cells that start at zero had no gradient and stayed there, so a hundredth of
    the uniform distribution is mixed into the start. A difference of total mass entered all partial
    sums but the last, so the mass is balanced first.

    Tables are solved in parallel, each by one thread with a generator of its own, so the bits do
    not depend on the number of threads.
    """

    num_slices: int = 200
    max_steps: int = 1750
    learning_rate: float = 0.1
    decay: float = 0.8
    decay_every: int = 100

    def project_all(
        self, tables: Sequence[SignedTable], generator: torch.Generator, progress: Progress = silent
    ) -> list[Float[Tensor, " cell"]]:
        """Probabilities of the cells of each table (see ``Projection``)."""
        seeds = [int(torch.randint(2**63 - 1, (), generator=generator)) for _ in tables]
        return solved_in_threads(self._solve, tables, seeds, progress)

    def _solve(self, table: SignedTable, seed: int) -> Float[Tensor, " cell"]:
        generator = torch.Generator().manual_seed(seed)
        signed = balanced(table.values.double().cpu())
        positive = signed.clamp(min=0) / signed.clamp(min=0).sum()
        logits = (0.99 * positive + 0.01 / len(signed)).log().numpy()
        moments = np.zeros((2, len(logits)))
        centers = np.ascontiguousarray(table.centers.double().cpu().numpy().T)
        for first in range(0, self.max_steps, SEGMENT_STEPS):
            steps = np.arange(first, min(first + SEGMENT_STEPS, self.max_steps))
            drawn = independent_directions(
                len(steps) * self.num_slices, len(centers), generator, dtype=torch.float64
            )
            _descend(
                centers,
                signed.numpy(),
                drawn.reshape(len(steps), self.num_slices, len(centers)).numpy(),
                first,
                self.learning_rate * np.float64(self.decay) ** (steps // self.decay_every),
                logits,
                moments,
            )
        return torch.from_numpy(logits).softmax(0)


@njit()
@no_type_check
def _descend(centers, signed, directions, num_before, rates, logits, moments):
    """Takes one step for each set of directions, the first of them number ``num_before``."""
    num_cells, num_slices = len(signed), directions.shape[1]
    weights, gradient, places = np.empty(num_cells), np.empty(num_cells), np.empty(num_cells)
    keys, order = np.empty(num_cells, np.uint32), np.empty(num_cells, np.uint32)
    spare = np.empty(num_cells, np.uint32)
    starts = np.empty(DIGITS + 1, np.uint32)
    mean_kept, square_kept, eps = _ADAM
    for step in range(len(directions)):
        largest, total = logits[0], 0.0
        for i in range(num_cells):
            largest = max(largest, logits[i])
        for i in range(num_cells):
            weights[i] = math.exp(logits[i] - largest)
            total += weights[i]
        for i in range(num_cells):
            weights[i] /= total
            gradient[i] = 0
        for s in range(num_slices):
            for i in range(num_cells):
                places[i] = 0
            for dim in range(len(centers)):
                for i in range(num_cells):
                    places[i] += directions[step, s, dim] * centers[dim, i]
            sort_places(places, keys, spare, order, starts)
            # The gradient of the sum of |partial sums of weights - signed| * gaps: a cell enters
            # the partial sums from its own place on, so its entry is the sum of sign * gap from
            # there on. This adds minus the sum up to there instead. The two differ by the total,
            # which is the same for all cells, and the softmax takes it out.
            partial, before = 0.0, 0.0
            cell = order[0]
            for j in range(1, num_cells):
                following = order[j]
                partial += weights[cell] - signed[cell]
                gap = places[following] - places[cell]
                before += gap if partial > 0 else -gap
                gradient[following] -= before
                cell = following
        mean = 0.0
        for i in range(num_cells):
            mean += weights[i] * gradient[i]
        num_steps = num_before + step + 1
        for i in range(num_cells):
            slope = weights[i] * (gradient[i] - mean) / num_slices  # by the softmax's Jacobian
            moments[0, i] += (1 - mean_kept) * (slope - moments[0, i])
            moments[1, i] += (1 - square_kept) * (slope * slope - moments[1, i])
            scale = math.sqrt(moments[1, i] / (1 - square_kept**num_steps)) + eps
            logits[i] -= rates[step] * moments[0, i] / (1 - mean_kept**num_steps) / scale
