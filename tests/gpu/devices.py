"""What the tests of a device share, without the packages that a bare machine lacks."""

import importlib.util

import pytest
import torch

DEVICES = ["cpu", pytest.param("cuda", marks=pytest.mark.gpu)]

needs_numba = pytest.mark.skipif(importlib.util.find_spec("numba") is None, reason="needs numba")


def skip_without(device):
    if device == "cuda" and not torch.cuda.is_available():
        pytest.skip("needs CUDA")
    return torch.device(device)


def seeded(seed=0):
    return torch.Generator().manual_seed(seed)
