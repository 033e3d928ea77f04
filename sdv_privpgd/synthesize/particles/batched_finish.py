"""The exchange finish on CUDA: batches of particles move together, by Triton's kernels."""

import math
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import torch
from jaxtyping import Int
from torch import Tensor

from sdv_privpgd.domain import Clique, Domain
from sdv_privpgd.synthesize.particles.finish import nearest, require_tables, supported_codes

if TYPE_CHECKING:
    from sdv_privpgd.synthesize.particles.kernels.triton_exchange import View


@dataclass(frozen=True, kw_only=True)
class BatchedFinish:
    """The objective and the moves of ``ExchangeFinish``, for thousands of threads.

    There the proposals of a block are tried one by one. Here random subsets of them are tried as
    a whole (see ``kernels.triton_exchange``), and one moves only if it lowers the squared lacks,
    which are integers: up to the rounding of the targets to 1/256 of a particle, no batch raises
    the objective. One device and seed always give the same codes; another device may draw others,
    because it adds up the scores that proposals are drawn by in another order.

    Attributes:
        sweeps: At most so many; it ends when a sweep moves nothing.
        device: Where the tables and codes lie meanwhile: CUDA, or Triton's interpreter on "cpu".
    """

    sweeps: int = 2
    device: str = "cuda"

    def __call__(
        self,
        codes: np.ndarray,
        domain: Domain,
        targets: Mapping[Clique, np.ndarray],
        seed: int,
        *,
        fixed: Collection[str] = (),
    ) -> np.ndarray:
        """Codes of shape (particle, attribute) that fit the targets better (``ExchangeFinish``)."""
        # Here, because Triton need not be installed where there is no device.
        from sdv_privpgd.synthesize.particles.kernels.triton_exchange import Buffers, launch_batch

        require_tables(domain, targets)
        supports = supported_codes(domain, targets, fixed)
        values = [
            np.arange(size) if support is None else support
            for support, size in zip(supports, domain.sizes, strict=True)
        ]
        movable = [axis for axis, support in enumerate(supports) if support is not None]
        if not movable or not len(codes):
            return codes.copy()
        compact = np.stack(
            [nearest(codes[:, axis], support) for axis, support in enumerate(values)]
        ).astype(np.int32)
        device = torch.device(self.device)
        moving = torch.from_numpy(compact).to(device)
        lacks, unit = _lacks(moving, domain, targets, values)
        views = {axis: _view(axis, domain, targets, values, device) for axis in movable}
        block = -(-len(codes) // min(_BLOCKS, len(codes)))
        most_cells = max(len(view.places) for view in views.values())
        buffers = Buffers.of(block, most_cells, device)
        rng = np.random.default_rng(seed)
        for _ in range(self.sweeps):
            order = rng.permutation(movable)
            key = int(rng.integers(2**31)) << 31
            buffers.moved.zero_()
            for number, first in enumerate(range(0, len(codes), block)):
                for axis in order.tolist():
                    launch_batch(
                        moving,
                        lacks,
                        views[axis],
                        buffers,
                        first=first,
                        count=min(block, len(codes) - first),
                        unit=unit,
                        seed=key + 16 * (number * len(domain) + axis),
                    )
            if not int(buffers.moved):
                break
        compact = moving.cpu().numpy()
        return np.stack(
            [support[row] for support, row in zip(values, compact, strict=True)], axis=1
        )


_BLOCKS = 24
"""Batches of a sweep for each attribute: the particles of one look at the tables together."""

_FINEST = 8
"""Bits after the point of the lacks, where so many particles leave room for them."""


def _lacks(
    codes: Int[Tensor, "attribute particle"],
    domain: Domain,
    targets: Mapping[Clique, np.ndarray],
    values: list[np.ndarray],
) -> tuple[Int[Tensor, " cell"], int]:
    """What all tables lack, target * particles - counts, end to end, and its units a particle."""
    num_particles = codes.shape[1]
    largest = max(1.0, *(float(np.abs(table).max()) for table in targets.values()))
    most = math.ceil((largest + 1) * num_particles)
    unit = 1 << min(_FINEST, max(31 - most.bit_length(), 0))
    lacks = []
    for clique, table in targets.items():
        axes = domain.axes(clique)
        shape = [len(values[axis]) for axis in axes]
        cells = torch.zeros(num_particles, dtype=torch.int64, device=codes.device)
        for axis, size in zip(axes, shape, strict=True):
            cells = cells * size + codes[axis]
        ones = torch.ones_like(cells, dtype=torch.int32)
        counts = ones.new_zeros(math.prod(shape)).index_add_(0, cells, ones)
        goals = np.asarray(table, dtype=np.float64)[np.ix_(*(values[axis] for axis in axes))]
        goals = np.rint(goals.ravel() * (num_particles * unit)).astype(np.int32)
        lacks.append(torch.from_numpy(goals).to(codes.device) - unit * counts)
    return torch.cat(lacks), unit


def _view(
    axis: int,
    domain: Domain,
    targets: Mapping[Clique, np.ndarray],
    values: list[np.ndarray],
    device: torch.device,
) -> "View":
    """The tables that contain an attribute, as the kernels read them."""
    from sdv_privpgd.synthesize.particles.kernels.triton_exchange import View

    terms = max(len(clique) for clique in targets) - 1
    places, starts, axes, strides = [], [], [], []
    start = offset = 0
    for clique, table in targets.items():
        members = domain.axes(clique)
        shape = [len(values[member]) for member in members]
        size = math.prod(shape)
        if axis in members:
            others = [place for place, member in enumerate(members) if member != axis]
            order = [*others, members.index(axis)]
            table = np.arange(offset, offset + size).reshape(shape).transpose(order)
            places.append(table.ravel())
            starts.append(start)
            missing = [0] * (terms - len(others))
            axes.append([*(members[place] for place in others), *missing])
            strides.append(
                [*(math.prod(table.shape[i + 1 :]) for i in range(len(others))), *missing]
            )
            start += size
        offset += size

    def integers(found: list) -> Int[Tensor, "..."]:
        return torch.tensor(found, dtype=torch.int32, device=device)

    return View(
        axis=axis,
        size=len(values[axis]),
        places=torch.from_numpy(np.concatenate(places)).to(device),
        starts=integers(starts),
        axes=integers(axes),
        strides=integers(strides),
    )
