"""Turns codes of attributes into points of the unit cube, and back."""

import math
from collections.abc import Sequence

import torch
from jaxtyping import Float, Int
from torch import Tensor


def embed(
    codes: Int[Tensor, "particle dim"],
    sizes: Sequence[int],
    dtype: torch.dtype = torch.float32,
) -> Float[Tensor, "particle dim"]:
    """Cell centers (2 c + 1) / (2 k) of codes c = 0, ..., k - 1 (Donhauser et al. 2024, Eq. 4)."""
    shape = torch.tensor(sizes, dtype=dtype, device=codes.device)
    return (2 * codes + 1).to(dtype) / (2 * shape)


def nearest_codes(
    positions: Float[Tensor, "particle dim"], sizes: Sequence[int]
) -> Int[Tensor, "particle dim"]:
    """Codes of the nearest cell centers.

    The cell of z is floor(z k). A position on the border of two cells goes to the upper one, and
    z = 1 belongs to the last cell.
    """
    shape = torch.tensor(sizes, device=positions.device)
    return (positions * shape).floor().long().clamp(min=0).minimum(shape - 1)


def cell_centers(shape: Sequence[int]) -> Float[Tensor, "cell dim"]:
    """Centers of all cells of a table, float64, in the order of ``numpy.ravel``."""
    index = torch.arange(math.prod(shape))
    codes = torch.stack(torch.unravel_index(index, tuple(shape)), dim=1)
    return embed(codes, shape, torch.float64)


def draw_codes(
    weights: Float[Tensor, " value"], num_particles: int, generator: torch.Generator
) -> Int[Tensor, " particle"]:
    """Codes in random order; the number of each is in proportion to its weight, within one.

    Numbers are rounded down, and the particles that are left go to the largest remainders.
    """
    exact = weights.double() / weights.double().sum() * num_particles
    counts = exact.floor().long()
    left = num_particles - int(counts.sum())
    counts[(exact - counts).argsort(descending=True, stable=True)[:left]] += 1
    codes = torch.repeat_interleave(torch.arange(len(weights)), counts)
    return codes[torch.randperm(num_particles, generator=generator)]
