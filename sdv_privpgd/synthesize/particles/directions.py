"""Directions to slice along: unit vectors that cover the sphere evenly."""

import math

import torch
from jaxtyping import Float
from torch import Tensor


def stratified_directions(
    num_slices: int,
    dim: int,
    generator: torch.Generator,
    *,
    dtype: torch.dtype = torch.float32,
) -> Float[Tensor, "slice dim"]:
    """Unit vectors that cover all directions more evenly than independent draws.

    Each is uniform on the sphere, and whole sets satisfy mean(theta theta^T) = I / dim exactly:
    in the plane the angles (j + U) / L * pi share one uniform U; from three dimensions on,
    the vectors come in random orthonormal bases.
    """
    return stratified_sets(1, num_slices, dim, generator, dtype=dtype)[0]


def stratified_sets(
    num_sets: int,
    num_slices: int,
    dim: int,
    generator: torch.Generator,
    *,
    dtype: torch.dtype = torch.float32,
) -> Float[Tensor, "set slice dim"]:
    """Independent sets of stratified directions, drawn at once."""
    if dim == 1:
        return torch.ones(num_sets, num_slices, 1, dtype=dtype)
    if dim == 2:
        offsets = torch.rand(num_sets, 1, generator=generator, dtype=torch.float64)
        angles = (torch.arange(num_slices) + offsets) * (math.pi / num_slices)
        return torch.stack((angles.cos(), angles.sin()), dim=2).to(dtype)
    num_bases = -(-num_slices // dim)
    normal = torch.randn(num_sets, num_bases, dim, dim, generator=generator, dtype=torch.float64)
    bases = torch.linalg.qr(normal).Q
    # An orthonormal basis is its matrix's columns; the sign of a direction has no effect.
    return bases.transpose(2, 3).reshape(num_sets, -1, dim)[:, :num_slices].to(dtype)
