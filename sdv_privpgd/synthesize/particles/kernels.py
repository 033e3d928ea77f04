"""Kernels compute the way from particles to the targets of their tables, by two back ends.

Each back end has ``displacement``, the sliced W2 gradient of a batch of tables with its losses, and
``descend``, which takes many steps along it. Those here sort: they are exact, and work on any
device in torch's own operations. Those of ``binned_displacement`` are compiled for the CPU, take
ranks from histograms, and agree up to rounding.
"""

from collections.abc import Callable, Iterable, Sequence
from itertools import islice
from typing import NamedTuple

import torch
from jaxtyping import Float, Float64, Int
from torch import Tensor
from torch.nn.functional import pad

from sdv_privpgd.synthesize.particles.compiler import HAS_NUMBA

KERNELS = ("auto", "torch", "numba")

Positions = Float[Tensor, "attribute particle"]
Lines = Float[Tensor, "slice particle"]
"""Where particles are: in the cube, and on the lines of some directions."""


class PackedTargets(NamedTuple):
    """The weighted cells of all tables in contiguous arrays."""

    # The attributes of each table, padded with -1 where tables differ in dimension.
    axes: Int[Tensor, "table dim"]
    dims: Int[Tensor, " table"]  # how many attributes each table has
    # Where the cells of each table begin; the last entry is the number of cells.
    offsets: Int[Tensor, " boundary"]
    centers: Float[Tensor, "cell dim"]  # cell centers in the table's dimensions, padded with 0
    weights: Float[Tensor, " cell"]  # their probabilities, which sum to 1 in each table

    @classmethod
    def of(
        cls,
        axes: Sequence[Sequence[int]],
        centers: Sequence[Float[Tensor, "_ _"]],
        weights: Sequence[Float[Tensor, " _"]],
    ) -> "PackedTargets":
        """The targets of at least one table; weights need no common scale."""
        dims = [len(those) for those in axes]
        padded = lambda part, value: pad(part, (0, max(dims) - part.shape[-1]), value=value)
        return cls(
            axes=torch.stack([padded(torch.tensor(own), -1) for own in axes]),
            dims=torch.tensor(dims),
            offsets=torch.tensor([0, *map(len, weights)]).cumsum(0),
            centers=torch.cat([padded(own, 0) for own in centers]).float(),
            weights=torch.cat([those.double() / those.double().sum() for those in weights]),
        )

    def to(self, device: torch.device | str) -> "PackedTargets":
        """The same targets on a device."""
        return PackedTargets(*(part.to(device) for part in self))


class Visit(NamedTuple):
    """One step of a descent with its random choices made.

    ``rates`` is the share of the summed displacement by which each attribute moves. A batch that
    is not full is padded with table -1, whose directions are 0.
    """

    tables: Int[Tensor, " batch"]
    directions: Float[Tensor, "batch slice dim"]
    rates: Float[Tensor, " attribute"]


class Kernel(NamedTuple):
    """A back end and the device that it works on."""

    device: torch.device
    displacement: Callable[[Tensor, PackedTargets, Tensor, Tensor], tuple[Tensor, Tensor]]
    """Takes positions (attribute, particle), targets, tables (batch,) and directions (batch,
    slice, dim). Returns the sum over tables of the mean over slices of the way, shaped like the
    positions, and the losses (batch,)."""
    descend: Callable[[Tensor, PackedTargets, Iterable[Visit]], Tensor]
    """Takes positions, targets and visits; returns the positions after them."""


def choose_kernel(name: str, *, enable_gpu: bool) -> Kernel:
    """The kernel of this name; for "auto", the fastest one that this machine can run."""
    device = torch.device("cuda" if enable_gpu and torch.cuda.is_available() else "cpu")
    if name == "numba" or (name == "auto" and device.type == "cpu" and HAS_NUMBA):
        from sdv_privpgd.synthesize.particles import (
            binned_displacement,  # it takes the targets from here
        )

        return Kernel(
            torch.device("cpu"), binned_displacement.displacement, binned_displacement.descend
        )
    return Kernel(device, displacement, descend)


SEGMENT_STEPS = 64
"""Steps whose random choices are prepared, or go to the device, together."""


def displacement(
    positions: Positions,
    targets: PackedTargets,
    tables: Int[Tensor, " batch"],
    directions: Float[Tensor, "batch slice dim"],
) -> tuple[Positions, Float64[Tensor, " batch"]]:
    """The sum over tables of the mean over slices of the way to the targets, and the losses.

    A table's loss is the mean over slices and particles of the squared way. It is SW2^2 without
    the variance of the target within each particle's share, which no move changes.
    """
    return _displacement(positions, targets, _spans(targets), tables, directions.to(positions))


def descend(positions: Positions, targets: PackedTargets, visits: Iterable[Visit]) -> Positions:
    """The positions after all visits: each moves them by rate * displacement, into the cube."""
    positions, spans, visits = positions.clone(), _spans(targets), iter(visits)
    while steps := list(islice(visits, SEGMENT_STEPS)):
        directions = torch.stack([step.directions for step in steps]).to(positions)
        rates = torch.stack([step.rates for step in steps]).to(positions)
        for step, theta, rate in zip(steps, directions, rates, strict=True):
            total, _ = _displacement(positions, targets, spans, step.tables, theta)
            positions.add_(total * rate[:, None]).clamp_(0, 1)
    return positions


def _spans(targets: PackedTargets) -> list[tuple[list[int], slice]]:
    """The attributes and the cells of each table, read from the device once."""
    axes, dims = targets.axes.tolist(), targets.dims.tolist()
    offsets = targets.offsets.tolist()
    return [
        (own[:dim], slice(first, last))
        for own, dim, first, last in zip(axes, dims, offsets[:-1], offsets[1:], strict=True)
    ]


def _displacement(
    positions: Positions,
    targets: PackedTargets,
    spans: Sequence[tuple[list[int], slice]],
    tables: Int[Tensor, " batch"],
    directions: Float[Tensor, "batch slice dim"],
) -> tuple[Positions, Float64[Tensor, " batch"]]:
    total = torch.zeros_like(positions)
    losses = torch.zeros(len(tables), dtype=torch.float64, device=positions.device)
    goals, projected, found = [], [], []
    for place, table in enumerate(tables.tolist()):
        if table < 0:
            continue
        axes, cells = spans[table]
        theta = directions[place, :, : len(axes)]
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


def quantile_targets(
    projected_cells: Float[Tensor, "slice cell"],
    weights: Float[Tensor, " cell"],
    num_particles: int,
) -> Lines:
    """The place where the i-th smallest of m particles belongs in each slice.

    It is the mean of the quantile function of the weighted cells over [i / m, (i + 1) / m].
    The quantile function is a sum of steps, one between each two neighbors; a step inside a
    particle's interval is shared between this particle and the next.
    """
    positions, order = projected_cells.double().sort(dim=1)
    levels = weights.double()[order].cumsum(dim=1)
    breaks = (levels[:, :-1] / levels[:, -1:]) * num_particles  # (slice, step), in particles
    heights = positions.diff(dim=1)
    particle = breaks.floor().clamp(0, num_particles)
    share_below = (particle + 1 - breaks).clamp(0, 1)
    # Two columns more than particles: steps at or past the last interval fall there.
    steps = positions.new_zeros(len(positions), num_particles + 2)
    index = particle.long()
    steps.scatter_add_(1, index, heights * share_below)
    steps.scatter_add_(1, index + 1, heights * (1 - share_below))
    steps[:, 0] += positions[:, 0]
    return steps[:, :num_particles].cumsum(dim=1)


def displacement_to_targets(projected: Lines, targets: Lines) -> Lines:
    """The way of each particle to the target of its rank, slice by slice."""
    order = projected.argsort(dim=1, stable=True)
    return torch.empty_like(projected).scatter_(1, order, targets.to(projected)) - projected
