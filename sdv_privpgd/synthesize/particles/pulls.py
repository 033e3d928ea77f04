"""Steps that a kernel does not take by itself: under penalties, masks, or another optimizer.

The default descent needs none of this; ``optimizers`` says what a pull is.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice

import torch
from jaxtyping import Float
from torch import Tensor

from sdv_privpgd.synthesize.particles.kernels import Kernel
from sdv_privpgd.synthesize.particles.kernels.targets import PackedTargets
from sdv_privpgd.synthesize.particles.mini_batches import Draw
from sdv_privpgd.synthesize.particles.optimizers import Pull, StepRule
from sdv_privpgd.synthesize.particles.penalties import Loss, penalty_gradient

Advance = Callable[[Tensor, int | None], Tensor]
"""Takes positions and a number of steps (``None``: all that are left); returns the positions."""


def advance_by_pulls(
    positions: Float[Tensor, "attribute particle"],
    targets: PackedTargets,
    draws: Iterable[Draw],
    kernel: Kernel,
    step: StepRule,
    losses: Sequence[tuple[float, Loss]],
    held: Float[Tensor, "table attribute"],
    curvatures: Float[Tensor, " attribute"],
    mask_probability: float,
    generator: torch.Generator,
) -> Advance:
    """A function that moves these positions in place, one step for each draw."""
    pulls = _pulls(
        positions, targets, draws, kernel, losses, held, curvatures, mask_probability, generator
    )
    move = step.begin(positions)

    def advance(positions: Tensor, num_steps: int | None) -> Tensor:
        for elapsed, pull in islice(pulls, num_steps):
            columns = torch.tensor(pull.columns, device=positions.device)
            positions.index_add_(0, columns, move(pull, elapsed)).clamp_(0, 1)
        return positions

    return advance


def _pulls(
    positions: Float[Tensor, "attribute particle"],
    targets: PackedTargets,
    draws: Iterable[Draw],
    kernel: Kernel,
    losses: Sequence[tuple[float, Loss]],
    held: Float[Tensor, "table attribute"],
    curvatures: Float[Tensor, " attribute"],
    mask_probability: float,
    generator: torch.Generator,
) -> Iterator[tuple[float, Pull]]:
    """The pull of each step, computed at the positions that the step before it has reached."""
    num_tables = held.sum(dim=0)
    for elapsed, tables, directions, counts in draws:
        columns = counts.nonzero().flatten()
        total, _ = kernel.displacement(positions, targets, tables, directions)
        gradient = -total[columns.to(total.device)]
        if losses:
            # A column that n tables share meets the whole penalty in n visits.
            shares = (counts / num_tables)[columns].to(gradient)
            rows = columns.to(gradient.device)
            gradient += penalty_gradient(positions, losses)[rows] * shares[:, None]
        curvature = (counts * curvatures)[columns].to(gradient)
        moving = _moving(gradient, mask_probability, generator)
        yield elapsed, Pull(columns.tolist(), gradient, curvature, moving)


def _moving(gradient: Tensor, mask_probability: float, generator: torch.Generator) -> Tensor | None:
    if mask_probability == 0:
        return None
    drawn = torch.rand(gradient.shape, generator=generator) >= mask_probability
    return drawn.to(gradient.device)
