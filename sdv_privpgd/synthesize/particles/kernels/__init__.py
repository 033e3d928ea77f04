"""Kernels compute the way from particles to the targets of their tables, by three back ends.

Each back end has ``displacement``, the sliced W2 gradient of a batch of tables with its losses, and
``descend``, which takes many steps along it. ``reference`` sorts in torch and is exact. ``numba``
on the CPU and ``triton`` on CUDA take ranks from histograms and agree up to rounding.
"""

from collections.abc import Callable, Iterable
from importlib.util import find_spec
from typing import NamedTuple

import torch
from torch import Tensor

from sdv_privpgd.synthesize.particles.kernels.targets import PackedTargets, Visit

KERNELS = ("auto", "reference", "numba", "triton")


class Kernel(NamedTuple):
    """A back end and the device that it works on.

    >>> choose_kernel("reference", enable_gpu=False).device
    device(type='cpu')
    """

    device: torch.device
    displacement: Callable[
        [Tensor, PackedTargets, Tensor, Tensor],
        tuple[Tensor, Tensor],
    ]
    """Takes positions (attribute, particle), targets, tables (batch,) and directions (batch,
    slice, dim). Returns the sum over tables of the mean over slices of the way, shaped like the
    positions, and the losses (batch,)."""
    descend: Callable[[Tensor, PackedTargets, Iterable[Visit]], Tensor]
    """Takes positions, targets and visits; returns the positions after them."""
    is_triton: bool = False
    """Whether these are Triton's kernels, which are checked before a fit uses them."""


def choose_kernel(name: str, *, enable_gpu: bool) -> Kernel:
    """The kernel of this name; for "auto", the fastest one that this machine can run.

    >>> choose_kernel("reference", enable_gpu=False).is_triton
    False
    """
    device = torch.device("cuda" if enable_gpu and torch.cuda.is_available() else "cpu")
    if name == "auto":
        package = "triton" if device.type == "cuda" else "numba"
        name = package if find_spec(package) else "reference"
    if name == "triton":
        from sdv_privpgd.synthesize.particles.cuda import displacement as cuda

        return Kernel(torch.device("cuda"), cuda.displacement, cuda.descend, is_triton=True)
    if name == "numba":
        from sdv_privpgd.synthesize.particles.kernels import cpu

        return Kernel(torch.device("cpu"), cpu.displacement, cpu.descend)
    from sdv_privpgd.synthesize.particles.references import displacement as reference

    return Kernel(device, reference.displacement, reference.descend)
