"""What the tests of a device share, without the packages that a bare machine lacks."""

import pytest
import torch

from sdv_privpgd.synthesize.particles.compiler import HAS_NUMBA

DEVICES = ["cpu", pytest.param("cuda", marks=pytest.mark.gpu)]

needs_numba = pytest.mark.skipif(not HAS_NUMBA, reason="needs numba")


def skip_without(device):
    if device == "cuda" and not torch.cuda.is_available():
        pytest.skip("needs CUDA")
    return torch.device(device)


def seeded(seed=0):
    return torch.Generator().manual_seed(seed)
