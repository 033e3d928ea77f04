"""Kernels compute the way from particles to the targets of their tables, by two back ends.

Each back end has ``displacement``, the sliced W2 gradient of a batch of tables with its losses, and
``descend``, which takes many steps along it. ``torch`` sorts, is exact, and works on any device.
``numba`` on the CPU takes ranks from histograms and agrees up to rounding.
"""

from collections.abc import Callable, Iterable
from importlib.util import find_spec
from typing import NamedTuple

import torch
from torch import Tensor

from sdv_privpgd.synthesize.particles.kernels.targets import PackedTargets, Visit

KERNELS = ("auto", "torch", "numba")


class Kernel(NamedTuple):
    """A back end and the device that it works on."""

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


def choose_kernel(name: str, *, enable_gpu: bool) -> Kernel:
    """The kernel of this name; for "auto", the fastest one that this machine can run."""
    device = torch.device("cuda" if enable_gpu and torch.cuda.is_available() else "cpu")
    if name == "auto":
        name = "numba" if device.type == "cpu" and find_spec("numba") else "torch"
    if name == "numba":
        from sdv_privpgd.synthesize.particles.kernels import cpu

        return Kernel(torch.device("cpu"), cpu.displacement, cpu.descend)
    from sdv_privpgd.synthesize.particles.kernels import exact

    return Kernel(device, exact.displacement, exact.descend)
