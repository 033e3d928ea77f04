"""Sliced Wasserstein distances between particles and weighted cells, and their gradients.

Every function is exact for the directions that it is given.
"""

from collections.abc import Sequence

import torch
from jaxtyping import Float
from torch import Tensor

from sdv_privpgd.synthesize.particles.batched_projection import simplex_projection
from sdv_privpgd.synthesize.particles.descent import embed
from sdv_privpgd.synthesize.particles.kernels import displacement_to_targets, quantile_targets
from sdv_privpgd.synthesize.particles.projection import Projection, SignedTable


def cell_centers(shape: Sequence[int]) -> Float[Tensor, "cell dim"]:
    """Centers of all cells of a table, float64, in the order of ``numpy.ravel``."""
    return embed(torch.cartesian_prod(*map(torch.arange, shape)).view(-1, len(shape)), shape)


def on_simplex(values: Float[Tensor, " cell"]) -> Float[Tensor, " cell"]:
    return simplex_projection(values, torch.ones_like(values, dtype=torch.bool))


def project(
    projection: Projection,
    centers: Float[Tensor, "cell dim"],
    values: Float[Tensor, " cell"],
    generator: torch.Generator,
) -> Float[Tensor, " cell"]:
    """The projection of one table."""
    return projection.project_all([SignedTable(centers, values)], generator)[0]


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
    """
    positions, order = (directions @ centers.T).sort(dim=1)  # (slice, cell)
    cumulative = (first - second)[order].cumsum(dim=1)
    return (cumulative[:, :-1].abs() * positions.diff(dim=1)).sum(dim=1).mean()


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
    """Mean over slices of each particle's way to its target, which is -m / 2 times the gradient."""
    targets = quantile_targets(directions @ centers.T, weights, len(particles))
    moves = displacement_to_targets(directions @ particles.T, targets)
    return moves.T @ directions / len(directions)
