"""Directions as in the paper's experiments: independent draws."""

import torch
from jaxtyping import Float
from torch import Tensor


def independent_directions(
    num_slices: int,
    dim: int,
    generator: torch.Generator,
    *,
    dtype: torch.dtype = torch.float32,
) -> Float[Tensor, "slice dim"]:
    """Independent uniform unit vectors, as in the paper's experiments (section 4.1)."""
    normal = torch.randn(num_slices, dim, generator=generator, dtype=torch.float64)
    return torch.nn.functional.normalize(normal, dim=1).to(dtype)
