"""Sliced Wasserstein distances between particles and weighted cells, and their gradients.

Every function is exact for the directions that it is given.
"""

import torch
from jaxtyping import Float
from torch import Tensor


def sliced_w1(
    centers: Float[Tensor, "cell dim"],
    first: Float[Tensor, " cell"],
    second: Float[Tensor, " cell"],
    directions: Float[Tensor, "slice dim"],
) -> Float[Tensor, ""]:
    """Mean over slices of the 1-Wasserstein distance between two measures on the same cells.

    The distance is the L1 norm of the difference of the cumulative distributions, which also
    defines it for signed measures (Donhauser et al. 2024, Eq. 3). The two must have equal mass.
    Otherwise the distance on the line is infinite, and the result ignores the difference of
    masses.

    >>> centers, theta = torch.tensor([[0.25], [0.75]]), torch.ones(1, 1)
    >>> sliced_w1(centers, torch.tensor([1.0, 0.0]), torch.tensor([0.0, 1.0]), theta)
    tensor(0.5000)
    """
    positions, order = (directions @ centers.T).sort(dim=1)  # (slice, cell)
    cumulative = (first - second)[order].cumsum(dim=1)
    return (cumulative[:, :-1].abs() * positions.diff(dim=1)).sum(dim=1).mean()


def quantile_targets(
    projected_cells: Float[Tensor, "slice cell"],
    weights: Float[Tensor, " cell"],
    num_particles: int,
) -> Float[Tensor, "slice particle"]:
    """The place where the i-th smallest of m particles belongs in each slice.

    It is the mean of the quantile function of the weighted cells over [i / m, (i + 1) / m].
    The quantile function is a sum of steps, one between each two neighbors; a step inside a
    particle's interval is shared between this particle and the next.

    >>> quantile_targets(torch.tensor([[0.25, 0.75]]), torch.tensor([3.0, 1.0]), num_particles=4)
    tensor([[0.2500, 0.2500, 0.2500, 0.7500]], dtype=torch.float64)
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


def displacement_to_targets(
    projected: Float[Tensor, "slice particle"],
    targets: Float[Tensor, "slice particle"],
) -> Float[Tensor, "slice particle"]:
    """The way of each particle to the target of its rank, slice by slice.

    >>> displacement_to_targets(torch.tensor([[0.5, 0.0]]), torch.tensor([[0.25, 0.75]]))
    tensor([[0.2500, 0.2500]])
    """
    order = projected.argsort(dim=1, stable=True)
    return torch.empty_like(projected).scatter_(1, order, targets.to(projected)) - projected


def sliced_w2_squared(
    particles: Float[Tensor, "particle dim"],
    centers: Float[Tensor, "cell dim"],
    weights: Float[Tensor, " cell"],
    directions: Float[Tensor, "slice dim"],
) -> Float[Tensor, ""]:
    """Mean over slices of the squared 2-Wasserstein distance from particles to weighted cells.

    In one dimension the optimal plan is monotone: the i-th smallest of m particles receives the
    quantiles in [i / m, (i + 1) / m] (Donhauser et al. 2024, Eq. 8, without the quantization of
    Eq. 6). The distance is the squared residual to their mean plus their variance, which does
    not depend on the particles. The gradient flows through the sort exactly, ties aside.

    >>> centers, theta = torch.tensor([[0.25], [0.75]]), torch.ones(1, 1)
    >>> sliced_w2_squared(torch.tensor([[0.25]]), centers, torch.tensor([0.0, 1.0]), theta)
    tensor(0.2500)
    """
    projected = directions @ particles.T  # (slice, particle)
    cells = directions @ centers.T
    targets = quantile_targets(cells, weights, len(particles))
    second_moment = (cells.double().square() @ (weights.double() / weights.double().sum())).mean()
    variance = second_moment - targets.square().mean()
    residual = projected.sort(dim=1, stable=True).values - targets
    return (residual.square().mean() + variance).to(particles.dtype)


def sliced_w2_displacement(
    particles: Float[Tensor, "particle dim"],
    centers: Float[Tensor, "cell dim"],
    weights: Float[Tensor, " cell"],
    directions: Float[Tensor, "slice dim"],
) -> Float[Tensor, "particle dim"]:
    """Mean over slices of each particle's way to its target, which is -m / 2 times the gradient.

    >>> centers, theta = torch.tensor([[0.25], [0.75]]), torch.ones(1, 1)
    >>> sliced_w2_displacement(torch.tensor([[0.25]]), centers, torch.tensor([0.0, 1.0]), theta)
    tensor([[0.5000]])
    """
    targets = quantile_targets(directions @ centers.T, weights, len(particles))
    moves = displacement_to_targets(directions @ particles.T, targets)
    return moves.T @ directions / len(directions)
