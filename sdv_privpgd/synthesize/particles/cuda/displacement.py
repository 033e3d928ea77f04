"""The binned displacement of ``cpu.py`` on CUDA. Import it only where there is a device.

A visit takes three launches for any number of tables and slices: the first counts the projected
particles in bins, the second turns the counts into each bin's goal, the third projects again and
moves. A descent sorts the cells of many visits at once and replays the launches as a CUDA graph.
"""

import itertools
import warnings
from collections.abc import Callable, Iterable

import torch
from jaxtyping import Float, Float32, Float64, Int
from torch import Tensor

from sdv_privpgd.synthesize.particles.cuda.triton_kernels import (
    COPIES,
    QuantileStairs,
    launch_displacement,
    launch_goals,
    launch_transport,
)
from sdv_privpgd.synthesize.particles.kernels.targets import PackedTargets, Visit

NUM_BINS = 4096
SEGMENT_STEPS = 64  # of one graph
_SEGMENT_CELLS = 2**22  # sorted cells held at a time: 100 MB
_SEGMENT_COUNTS = 2**24  # bins held at a time: 64 MB


def displacement(
    positions: Float32[Tensor, "attribute particle"],
    targets: PackedTargets,
    tables: Int[Tensor, " batch"],
    directions: Float[Tensor, "batch slice dim"],
    *,
    num_bins: int = NUM_BINS,
) -> tuple[Float32[Tensor, "attribute particle"], Float64[Tensor, " batch"]]:
    """The sum over tables of the mean over slices of the way to the targets, and the losses.

    Positions and targets lie on the device. A table's loss is the mean over slices and particles
    of the squared way.
    """
    positions = positions.contiguous()
    tables = tables.to(positions.device)
    directions = directions.to(positions).contiguous()
    stairs = _quantile_stairs(targets, tables, directions, _max_cells(targets))
    shape = (len(stairs.levels), COPIES, num_bins)
    counts = torch.zeros(shape, dtype=torch.int32, device=positions.device)
    goals = positions.new_empty(len(counts), num_bins)
    launch_goals(positions, targets.axes, tables, directions, stairs, counts, goals)
    return launch_displacement(positions, targets.axes, tables, directions, goals)


def descend(
    positions: Float32[Tensor, "attribute particle"],
    targets: PackedTargets,
    visits: Iterable[Visit],
    *,
    num_bins: int = NUM_BINS,
) -> Float32[Tensor, "attribute particle"]:
    """The positions after all visits: each moves them by rate * displacement, into the cube.

    The visits lie on the CPU and must agree in their shapes. Nothing waits for the device in
    between, so the CPU draws the next visits while the device follows these.
    """
    visits = iter(visits)
    first = next(visits, None)
    if first is None:
        return positions.clone()
    segment = _Segment(positions, targets, first, num_bins)
    visits = itertools.chain([first], visits)
    while steps := list(itertools.islice(visits, segment.num_steps)):
        segment.follow(steps)
    return segment.positions


class _Segment:
    """A fixed number of steps in buffers of fixed places, as a graph needs them."""

    def __init__(
        self,
        positions: Float32[Tensor, "attribute particle"],
        targets: PackedTargets,
        visit: Visit,
        num_bins: int,
    ) -> None:
        device = positions.device
        self._targets = targets
        self._num_cells = _max_cells(targets)
        num_rows = visit.directions.shape[0] * visit.directions.shape[1]
        row_counts = COPIES * num_bins
        fitting = min(_SEGMENT_CELLS // self._num_cells, _SEGMENT_COUNTS // row_counts) // num_rows
        self.num_steps = max(min(fitting, SEGMENT_STEPS), 1)
        self.positions = positions.clone(memory_format=torch.contiguous_format)
        self._visits = Visit(*(self._repeat(part, device) for part in visit))
        self._stairs = QuantileStairs(
            *positions.new_empty(
                3, self.num_steps, num_rows, self._num_cells, dtype=torch.float64
            ).unbind()
        )
        self._counts = torch.empty(
            self.num_steps, num_rows, COPIES, num_bins, dtype=torch.int32, device=device
        )
        self._goals = positions.new_empty(num_rows, num_bins)
        self._replay: Callable[[], None] | None = None

    def _repeat(self, part: Tensor, device: torch.device) -> Tensor:
        return part.to(device).expand(self.num_steps, *part.shape).contiguous()

    def follow(self, visits: list[Visit]) -> None:
        """Takes the steps; fewer than a segment has are followed by steps that move nothing."""
        tables, directions, rates = (torch.stack(part) for part in zip(*visits, strict=True))
        _refill(self._visits.tables, tables, -1)
        _refill(self._visits.directions, directions, 0)
        _refill(self._visits.rates, rates, 0)
        stairs = _quantile_stairs(
            self._targets,
            self._visits.tables.flatten(),
            self._visits.directions.flatten(0, 1),
            self._num_cells,
        )
        for buffer, values in zip(self._stairs, stairs, strict=True):
            buffer.copy_(values.view_as(buffer))
        if self._replay is None:
            # The first segment compiles the kernels, which a capture could not.
            self._run()
            self._replay = self._captured()
        else:
            self._replay()

    def _run(self) -> None:
        self._counts.zero_()
        for step in range(self.num_steps):
            tables, directions, rates = (part[step] for part in self._visits)
            stairs = QuantileStairs(*(part[step] for part in self._stairs))
            axes, counts = self._targets.axes, self._counts[step]
            launch_goals(self.positions, axes, tables, directions, stairs, counts, self._goals)
            if len(tables) == 1:
                launch_transport(self.positions, axes, tables, directions, self._goals, rates)
            else:
                total, _ = launch_displacement(
                    self.positions, axes, tables, directions, self._goals
                )
                self.positions.addcmul_(total, rates[:, None]).clamp_(0, 1)

    def _captured(self) -> Callable[[], None]:
        """The same launches as one graph; plain launches where the device has no graphs."""
        if self.positions.device.type != "cuda":
            return self._run
        torch.cuda.synchronize(self.positions.device)
        graph = torch.cuda.CUDAGraph()
        try:
            with torch.cuda.graph(graph):
                self._run()
        except RuntimeError as error:
            warnings.warn(f"No CUDA graph of the descent, which is slower: {error}", stacklevel=2)
            return self._run
        return graph.replay


def _refill(buffer: Tensor, values: Tensor, rest: int) -> None:
    """Copies rows into a buffer and fills up those that are left."""
    if buffer.is_cuda:
        values = values.pin_memory()  # the copy does not wait for the steps before it
    buffer[: len(values)].copy_(values, non_blocking=True)
    buffer[len(values) :].fill_(rest)


def _max_cells(targets: PackedTargets) -> int:
    """The cells of the largest table. Waits for the device."""
    return int(targets.offsets.diff().max())


def _quantile_stairs(
    targets: PackedTargets,
    tables: Int[Tensor, " batch"],
    directions: Float[Tensor, "batch slice dim"],
    num_cells: int,
) -> QuantileStairs:
    """The quantile functions of tables along their directions. Table -1 stands for none."""
    tables = tables.clamp(min=0)
    first, end = targets.offsets[tables], targets.offsets[tables + 1]
    cells = first[:, None] + torch.arange(num_cells, device=first.device)
    real = cells < end[:, None]  # (batch, cell)
    cells = cells.minimum(end[:, None] - 1)
    centers = targets.centers[cells].double()  # 0 in dimensions that a table lacks
    projected = directions.double() @ centers.transpose(1, 2)  # (batch, slice, cell)
    projected = projected.masked_fill(~real[:, None], torch.inf)
    weights = (targets.weights[cells] * real).double()[:, None].expand_as(projected)
    heights, order = projected.flatten(0, 1).sort(dim=1)
    heights = heights.masked_fill(heights == torch.inf, 0.0)
    weights = weights.flatten(0, 1).gather(1, order)
    levels = weights.cumsum(dim=1)
    total = levels[:, -1:]
    return QuantileStairs(heights, levels / total, (weights * heights).cumsum(dim=1) / total)
