"""The projection step as published: gradient descent on the logits of the cells."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from sdv_privpgd.base.progress import Progress, silent
from sdv_privpgd.synthesize.particles.projection import SignedTable, balanced, solved_in_threads
from sdv_privpgd.synthesize.particles.published.directions import independent_directions


@dataclass(frozen=True, kw_only=True)
class SoftmaxProjection:
    """Solves the projection as published, by Adam on the logits with new directions at each step.

    Donhauser et al. 2024, section 4.1, with the published constants; Adam's own are those of
    Kingma & Ba 2015. Two defects of the authors' code are mended. Cells that start at zero had no
    gradient and stayed there, so a hundredth of the uniform distribution is mixed into the start.
    A difference of total mass entered all partial sums but the last, so the mass is balanced first.

    Tables are solved in parallel, each by one thread with a generator of its own, so the bits do
    not depend on the number of threads.
    """

    num_slices: int = 200
    max_steps: int = 1750
    learning_rate: float = 0.1
    decay: float = 0.8
    decay_every: int = 100

    def __call__(
        self,
        centers: Float[Tensor, "cell dim"],
        values: Float[Tensor, " cell"],
        generator: torch.Generator,
    ) -> Float[Tensor, " cell"]:
        """Probabilities of one table's cells (see ``Projection``)."""
        return self.project_all([SignedTable(centers, values)], generator)[0]

    def project_all(
        self,
        tables: Sequence[SignedTable],
        generator: torch.Generator,
        progress: Progress = silent,
    ) -> list[Float[Tensor, " cell"]]:
        """Probabilities of the cells of each table (see ``Projection``)."""
        seeds = [int(torch.randint(2**63 - 1, (), generator=generator)) for _ in tables]
        return solved_in_threads(self._solve, tables, seeds, progress)

    def _solve(self, table: SignedTable, seed: int) -> Float[Tensor, " cell"]:
        # Here, because its compiler need not be installed where CUDA does other projections.
        from sdv_privpgd.synthesize.particles.published.softmax_descent import descend

        generator = torch.Generator().manual_seed(seed)
        signed = balanced(table.values.double().cpu())
        positive = signed.clamp(min=0) / signed.clamp(min=0).sum()
        start = (1 - _FLOOR) * positive + _FLOOR / len(signed)
        logits = start.log().numpy()
        moments = np.zeros((2, len(logits)))
        centers = np.ascontiguousarray(table.centers.double().cpu().numpy().T)
        for first in range(0, self.max_steps, _STEPS_AT_ONCE):
            steps = np.arange(first, min(first + _STEPS_AT_ONCE, self.max_steps))
            drawn = independent_directions(
                len(steps) * self.num_slices, len(centers), generator, dtype=torch.float64
            )
            descend(
                centers,
                signed.numpy(),
                drawn.reshape(len(steps), self.num_slices, len(centers)).numpy(),
                first,
                self.learning_rate * np.float64(self.decay) ** (steps // self.decay_every),
                logits,
                moments,
            )
        return torch.from_numpy(logits).softmax(0)


_STEPS_AT_ONCE = 50
"""Steps whose directions are drawn together."""

_FLOOR = 0.01
"""Share of the uniform distribution in the start."""
