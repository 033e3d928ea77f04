"""Splits the tables of a batch over several devices. Start one process for each by ``torchrun``.

Every process holds all particles and draws the same random choices; only the displacements are
shared out. This pays for batches of several tables, so set ``batch_size`` to a multiple of the
number of processes.

Privacy: measure in one process and give its answers to the others by ``from_first_process``. If
each process measured for itself, each would spend the budget, and every release would hold answers
that its ledger does not cover. So a fit to different answers is refused.
"""

import hashlib
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TypeVar

import torch.distributed
from jaxtyping import Float, Float64, Int
from torch import Tensor

from sdv_privpgd.privacy.measurement import Measurement
from sdv_privpgd.synthesize.particles.kernels import Kernel
from sdv_privpgd.synthesize.particles.kernels.targets import PackedTargets, Visit

_Value = TypeVar("_Value")


def split_over_processes(kernel: Kernel) -> Kernel:
    """The kernel shared out over the processes, if ``torch.distributed`` has been initialized.

    >>> from sdv_privpgd.synthesize.particles.kernels import choose_kernel
    >>> kernel = choose_kernel("reference", enable_gpu=False)
    >>> split_over_processes(kernel) is kernel  # there is one process
    True
    """
    if not _is_distributed():
        return kernel
    shared = SharedDisplacement(kernel.displacement)
    return kernel._replace(displacement=shared, descend=shared.descend)


def require_same_answers(measurements: Sequence[Measurement]) -> None:
    """Raises ``RuntimeError``, in all processes alike, if they do not hold the same answers."""
    if not _is_distributed():
        return
    digest = hashlib.sha256()
    for measurement in measurements:
        digest.update(repr((measurement.query, measurement.stddev)).encode())
        digest.update(measurement.answer.tobytes())
    digests: list[bytes] = [b""] * torch.distributed.get_world_size()
    torch.distributed.all_gather_object(digests, digest.digest())
    if len(set(digests)) > 1:
        raise RuntimeError(
            "The processes hold different answers: each has measured for itself. Measure in "
            "process 0, and give all of them from_first_process(measurements)."
        )


def from_first_process(value: _Value) -> _Value:
    """The value that process 0 holds: there the table is measured, once for all processes."""
    if not _is_distributed():
        return value
    values = [value]
    torch.distributed.broadcast_object_list(values, src=0)
    return values[0]


@dataclass(frozen=True)
class SharedDisplacement:
    """A displacement whose tables are shared out over the default group's processes.

    All processes return the same bits: what the collective summed up.
    """

    displacement: Callable[[Tensor, PackedTargets, Tensor, Tensor], tuple[Tensor, Tensor]]

    def __call__(
        self,
        positions: Float[Tensor, "attribute particle"],
        targets: PackedTargets,
        tables: Int[Tensor, " batch"],
        directions: Float[Tensor, "batch slice dim"],
    ) -> tuple[Float[Tensor, "attribute particle"], Float64[Tensor, " batch"]]:
        """The displacement and the losses of the whole batch."""
        rank = torch.distributed.get_rank()
        mine = slice(rank, None, torch.distributed.get_world_size())
        losses = positions.new_zeros(len(tables), dtype=torch.float64)
        if rank < len(tables):
            total, losses[mine] = self.displacement(
                positions, targets, tables[mine].contiguous(), directions[mine].contiguous()
            )
        else:
            total = torch.zeros_like(positions)
        torch.distributed.all_reduce(total)
        torch.distributed.all_reduce(losses)
        return total, losses

    def descend(
        self,
        positions: Float[Tensor, "attribute particle"],
        targets: PackedTargets,
        visits: Iterable[Visit],
    ) -> Float[Tensor, "attribute particle"]:
        """The positions after all visits: each moves them by rate * displacement, into the cube."""
        positions = positions.clone()
        for tables, directions, rates in visits:
            total, _ = self(positions, targets, tables, directions)
            positions.addcmul_(total, rates.to(positions)[:, None]).clamp_(0, 1)
        return positions


def _is_distributed() -> bool:
    return torch.distributed.is_available() and torch.distributed.is_initialized()
