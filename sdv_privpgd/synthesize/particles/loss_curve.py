"""The curve of the distance between particles and targets during a descent. Public."""

from collections.abc import Iterator, Sequence

import torch
from jaxtyping import Float
from torch import Tensor

from sdv_privpgd.synthesize.particles.kernels import Kernel
from sdv_privpgd.synthesize.particles.kernels.targets import PackedTargets
from sdv_privpgd.synthesize.particles.mini_batches import Draw, draw_steps

_BATCH = 64  # tables looked at together
_SHARES = (8, 4, 2, 1)


def stretches(num_epochs: int) -> Iterator[tuple[int, int]]:
    """The epochs after which to look, and how many epochs each one is after the look before.

    There are four looks at most, from an eighth of the epochs on: a look takes as long as an epoch.
    """
    before = 0
    for epoch in sorted({num_epochs // share for share in _SHARES} - {0}) or [0]:
        yield epoch, epoch - before
        before = epoch


def looks(targets: PackedTargets, num_attributes: int, seed: int) -> list[Draw]:
    """One visit of each table along one direction, to be taken again at each look."""
    generator = torch.Generator().manual_seed(seed)
    draws = draw_steps(
        targets, num_attributes, [0], 1, generator, batch_size=_BATCH, num_slices=1, stratified=True
    )
    return list(draws)


def mean_loss(
    positions: Float[Tensor, "attribute particle"],
    targets: PackedTargets,
    kernel: Kernel,
    draws: Sequence[Draw],
) -> float:
    """The mean over tables of SW2^2 to the target along the draws' directions."""
    total = 0.0
    for draw in draws:
        _, losses = kernel.displacement(positions, targets, draw.tables, draw.directions)
        total += float(losses.cpu()[draw.tables >= 0].sum())
    return total / len(targets.dims)
