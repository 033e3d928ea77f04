"""The displacement in plain torch: exact ranks by sorting, on any device, in any precision."""

from collections.abc import Iterable

import torch
from jaxtyping import Float, Float64, Int
from torch import Tensor

from sdv_privpgd.synthesize.particles.kernels.targets import PackedTargets, Visit
from sdv_privpgd.synthesize.particles.references.wasserstein import (
    displacement_to_targets,
    quantile_targets,
)


def displacement(
    positions: Float[Tensor, "attribute particle"],
    targets: PackedTargets,
    tables: Int[Tensor, " batch"],
    directions: Float[Tensor, "batch slice dim"],
) -> tuple[Float[Tensor, "attribute particle"], Float64[Tensor, " batch"]]:
    """The sum over tables of the mean over slices of the way to the targets, and the losses.

    A table's loss is the mean over slices and particles of the squared way. It is SW2^2 without
    the variance of the target within each particle's share, which no move changes.

    >>> centers = torch.tensor([[0.25], [0.75]])
    >>> targets = PackedTargets.of([[0]], [centers], [torch.tensor([1.0, 1.0])])
    >>> positions = torch.tensor([[0.2, 0.3]])  # one of the particles has to move
    >>> displacement(positions, targets, torch.tensor([0]), torch.ones(1, 1, 1))[0]
    tensor([[0.0500, 0.4500]])
    """
    total = torch.zeros_like(positions)
    losses = torch.zeros(len(tables), dtype=torch.float64, device=positions.device)
    goals, projected, found = [], [], []
    for place, table in enumerate(tables.tolist()):
        if table < 0:
            continue
        axes = targets.axes[table, : int(targets.dims[table])].tolist()
        theta = directions[place, :, : len(axes)].to(positions)
        cells = slice(int(targets.offsets[table]), int(targets.offsets[table + 1]))
        lines = theta.double() @ targets.centers[cells, : len(axes)].double().T
        goals.append(quantile_targets(lines, targets.weights[cells], positions.shape[1]))
        projected.append(theta @ positions[axes])
        found.append((place, axes, theta))
    if found:
        # One sort for all slices of the batch: torch spreads its rows over the cores.
        ways = displacement_to_targets(torch.cat(projected), torch.cat(goals))
        for (place, axes, theta), way in zip(found, ways.split(directions.shape[1]), strict=True):
            total[axes] += theta.T @ way / len(theta)
            losses[place] = way.double().square().mean()
    return total, losses


def descend(
    positions: Float[Tensor, "attribute particle"],
    targets: PackedTargets,
    visits: Iterable[Visit],
) -> Float[Tensor, "attribute particle"]:
    """The positions after all visits: each moves them by rate * displacement, into the cube.

    >>> centers = torch.tensor([[0.25], [0.75]])
    >>> targets = PackedTargets.of([[0]], [centers], [torch.tensor([1.0, 1.0])])
    >>> visit = Visit(torch.tensor([0]), torch.ones(1, 1, 1), rates=torch.tensor([1.0]))
    >>> descend(torch.tensor([[0.2, 0.3]]), targets, [visit])
    tensor([[0.2500, 0.7500]])
    """
    positions = positions.clone()
    for tables, directions, rates in visits:
        total, _ = displacement(positions, targets, tables, directions)
        positions.add_(total * rates.to(positions)[:, None]).clamp_(0, 1)
    return positions
