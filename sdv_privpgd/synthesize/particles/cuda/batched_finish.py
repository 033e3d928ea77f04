"""The exchange finish on CUDA, where Triton's kernels move batches of particles together."""

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import torch
from jaxtyping import Int
from torch import Tensor

from sdv_privpgd.domain import Clique, Domain
from sdv_privpgd.estimate.interactions import GroupedTargets
from sdv_privpgd.progress import Progress, Shares, silent
from sdv_privpgd.synthesize.particles.finish import (
    codes_in_groups,
    nearest,
    require_tables,
    supported_codes,
)
from sdv_privpgd.synthesize.particles.layouts import Levels, Table, tables_of

if TYPE_CHECKING:
    from sdv_privpgd.synthesize.particles.cuda.triton_exchange import View


@dataclass(frozen=True, kw_only=True)
class BatchedFinish:
    """Does the work of ``ExchangeFinish`` with thousands of threads.

    ``ExchangeFinish`` tries the proposals of a block one by one. This class tries random subsets
    of them as a whole (see ``triton_exchange``). A subset moves only if it lowers the squared
    residuals, which are integers: up to the rounding of targets and weights to 1/256, no batch
    raises the objective. One device and seed always give the same codes. Another device may draw
    others, because it adds up the scores of the proposals in another order.

    Attributes:
        sweeps: The largest number of sweeps. It ends earlier when a sweep moves nothing.
        device: The device that holds tables and codes: CUDA, or "cpu" for Triton's interpreter.
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
        grouped: GroupedTargets | None = None,
        fixed: Collection[str] = (),
        progress: Progress = silent,
    ) -> np.ndarray:
        """Codes of shape (particle, attribute) that fit the targets better (``ExchangeFinish``)."""
        # Here, because Triton need not be installed where there is no device.
        from sdv_privpgd.synthesize.particles.cuda.triton_exchange import Buffers, launch_batch

        grouped = grouped or {}
        require_tables(domain, targets, grouped)
        supports = supported_codes(domain, targets, fixed, codes_in_groups(codes, domain, grouped))
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
        levels = Levels.of(domain, values, grouped)
        tables = tables_of(domain, targets, values, grouped)
        moving = torch.from_numpy(levels.codes(compact)).to(device)
        lacks, unit = _lacks(moving, len(domain), tables)
        views = {axis: _view(axis, levels, tables, device) for axis in movable}
        block = -(-len(codes) // min(_BLOCKS, len(codes)))
        most_cells = max(len(view.places) for view in views.values())
        buffers = Buffers.of(block, most_cells, device)
        rng = np.random.default_rng(seed)
        shares = Shares(progress, "finish")
        for sweep in range(self.sweeps):
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
                done = min(first + block, len(codes)) / len(codes)
                shares.reach((sweep + done) / self.sweeps)
            if not int(buffers.moved):
                break
        shares.reach(1.0)
        compact = moving[: len(domain)].cpu().numpy()
        return np.stack(
            [support[row] for support, row in zip(values, compact, strict=True)], axis=1
        )


_BLOCKS = 24
"""Batches of a sweep for each attribute. The particles of a batch move together."""

_FINEST = 8
"""Largest number of fractional bits of the residuals; very many particles leave room for fewer."""


def _lacks(
    codes: Int[Tensor, "row particle"], num_attributes: int, tables: Sequence[Table]
) -> tuple[Int[Tensor, " cell"], int]:
    """The residuals of all tables, target * particles - counts, and their units per particle."""
    num_particles = codes.shape[1]
    largest = max(1.0, *(float(np.abs(table.values).max()) for table in tables))
    most = math.ceil((largest + 1) * num_particles)
    unit = 1 << min(_FINEST, max(31 - most.bit_length(), 0))
    lacks = []
    for table in tables:
        shape = table.values.shape
        cells = torch.zeros(num_particles, dtype=torch.int64, device=codes.device)
        for row, size in zip(table.rows(num_attributes), shape, strict=True):
            cells = cells * size + codes[row]
        ones = torch.ones_like(cells, dtype=torch.int32)
        counts = ones.new_zeros(math.prod(shape)).index_add_(0, cells, ones)
        goals = np.rint(table.values.ravel() * (num_particles * unit)).astype(np.int32)
        lacks.append(torch.from_numpy(goals).to(codes.device) - unit * counts)
    return torch.cat(lacks), unit


def _view(axis: int, levels: Levels, tables: Sequence[Table], device: torch.device) -> "View":
    """The tables that contain an attribute, as the kernels read them."""
    from sdv_privpgd.synthesize.particles.cuda.triton_exchange import WEIGHT, View

    num_attributes = levels.widths.shape[1]
    terms = max(len(table.axes) for table in tables) - 1
    places, starts, level_of, rows, strides, weights = [], [], [], [], [], []
    start = offset = 0
    for table in tables:
        shape, size = table.values.shape, table.values.size
        if axis in table.axes:
            last = table.axes.index(axis)
            others = [place for place in range(len(shape)) if place != last]
            cells = np.arange(offset, offset + size).reshape(shape).transpose([*others, last])
            places.append(cells.ravel())
            starts.append(start)
            level_of.append(table.level)
            weights.append(max(round(WEIGHT * table.weight), 1))
            missing = [0] * (terms - len(others))
            rows.append([*(table.rows(num_attributes)[place] for place in others), *missing])
            strides.append(
                [*(math.prod(cells.shape[i + 1 :]) for i in range(len(others))), *missing]
            )
            start += size
        offset += size

    def integers(found: list) -> Int[Tensor, "..."]:
        return torch.tensor(found, dtype=torch.int32, device=device)

    size = int(levels.widths[0, axis])
    return View(
        axis=axis,
        maps=integers(levels.maps[:, axis, :size].tolist()),
        places=torch.from_numpy(np.concatenate(places)).to(device),
        starts=integers(starts),
        levels=integers(level_of),
        rows=integers(rows),
        strides=integers(strides),
        weights=integers(weights),
        cell_weights=integers(np.repeat(weights, [len(cells) for cells in places]).tolist()),
    )
