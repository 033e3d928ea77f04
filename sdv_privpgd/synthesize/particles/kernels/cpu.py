"""The binned displacement on the CPU, compiled by numba and spread over the cores.

A histogram of the projected particles stands in for a sort. Projections of the unit cube on a
direction theta lie between the sums of its negative and of its positive parts; that interval is
cut into bins of width h. The particles of a bin hold the ranks [C, C'), whatever their order, and
each gets the mean of the target's quantile function over [C / m, C' / m]. Before it is binned,
particle i is shifted by u_i * h, 0 <= u_i < 1. Without the shift, particles on one point would
share a bin for ever; a sort would split them by their index.

The bins cost some accuracy. A particle's bin contains positions less than h away, so

1. its target lies in the range of the exact targets of the particles less than 2 h away from it,
   which has the target of its exact rank in it, too;
2. the sum of the ways over a bin, and over all particles, is exact;
3. the root of the mean squared way exceeds the exact one by at most 2 h, since the ranks are
   exact for particles moved by less than h.

Counts are integers, and every other sum belongs to one particle or to one chunk of fixed size:
the bits do not depend on the number of threads.
"""

from collections.abc import Iterable, Sequence
from itertools import count, islice
from time import perf_counter
from typing import NamedTuple

import numpy as np
import torch
from jaxtyping import Float32, Float64, Int64
from torch import Tensor

from sdv_privpgd.synthesize.particles.compiler import Threads, num_threads
from sdv_privpgd.synthesize.particles.kernels.numba_kernels import (
    CHUNK,
    DIGITS,
    pass_part,
    set_goals,
    sort_cells,
)
from sdv_privpgd.synthesize.particles.kernels.targets import PackedTargets, Visit

NUM_BINS = 4096
_THREAD_WORK = 25_000  # projections of a step that pay for waking one more thread
_TRY_EVERY = 16  # segments from one trial of many threads and of one to the next
_TRIAL_STEPS = 4
_SEGMENT_STEPS = 64  # steps prepared at a time
_SEGMENT_CELLS = 2**20  # sorted cells held at a time: 16 MB
# The shifts u_i, the same in every chunk: multiples of the golden ratio, modulo 1, are even on
# every scale. 24 bits, so that a float holds them.
_SHIFTS = ((np.arange(CHUNK) * 2654435769 % 2**32 >> 8) / 2**24).astype(np.float32)


def displacement(
    positions: Float32[Tensor, "attribute particle"],
    targets: PackedTargets,
    tables: Int64[Tensor, " batch"],
    directions: Float32[Tensor, "batch slice dim"],
    *,
    num_bins: int = NUM_BINS,
) -> tuple[Float32[Tensor, "attribute particle"], Float64[Tensor, " batch"]]:
    """The sum over tables of the mean over slices of the way to the targets, and the losses.

    A table's loss is the mean over slices and particles of the squared way. That is its SW2^2
    without the variance of the target within the ranks of each bin.
    """
    visit = Visit(tables, directions, torch.empty(0))
    work = _Work.of(positions, targets, visit, num_bins)
    with Threads() as threads:
        work.follow(_Segment.of([visit], targets, threads), work.max_parts, threads)
    losses = work.squares.sum(axis=0) / (positions.shape[1] * directions.shape[1])
    return torch.from_numpy(work.total), torch.from_numpy(losses)


def descend(
    positions: Float32[Tensor, "attribute particle"],
    targets: PackedTargets,
    visits: Iterable[Visit],
    *,
    num_bins: int = NUM_BINS,
) -> Float32[Tensor, "attribute particle"]:
    """The positions after all visits: each moves them by rate * displacement, into the cube.

    The visits must agree in their shapes. It measures on the way whether several threads pay:
    beside other busy programs they wait for each other more than they work.
    """
    visits = iter(visits)
    positions = positions.clone(memory_format=torch.contiguous_format)
    first = next(visits, None)
    if first is None:
        return positions
    work = _Work.of(positions, targets, first, num_bins)
    with Threads() as threads:
        segment = _Segment.of([first], targets, threads)
        work.follow(segment, 1, threads)  # compiles what all parts use; not timed
        most_steps = min(_SEGMENT_CELLS // segment.heights.size + 1, _SEGMENT_STEPS)
        seconds: dict[int, float] = {}  # of a step, by the number of parts
        for index in count():
            trial = index % _TRY_EVERY
            steps = list(islice(visits, min(_TRIAL_STEPS, most_steps) if trial < 2 else most_steps))
            if not steps:
                break
            fastest = min(seconds, key=seconds.__getitem__, default=1)
            num_parts = {0: work.max_parts, 1: 1}.get(trial, fastest)
            segment = _Segment.of(steps, targets, threads)
            started = perf_counter()
            work.follow(segment, num_parts, threads)
            seconds[num_parts] = (perf_counter() - started) / len(steps)
    return positions


class _Segment(NamedTuple):
    """Visits of one shape, with the quantile functions of their slices as stairs.

    Stair j of a slice lies at ``heights[..., j]`` and ends at the level ``levels[..., j]``.
    """

    tables: np.ndarray
    directions: np.ndarray
    rates: np.ndarray
    heights: np.ndarray
    levels: np.ndarray

    @classmethod
    def of(cls, visits: Sequence[Visit], targets: PackedTargets, threads: Threads) -> "_Segment":
        tables, directions, rates = (
            torch.stack(part).numpy() for part in zip(*visits, strict=True)
        )
        most_cells = int(targets.offsets.diff().max())
        stairs = np.empty((2, *directions.shape[:3], most_cells))
        work = np.empty((num_threads(), 4, max(most_cells, DIGITS + 1)), np.uint32)
        threads.run(
            sort_cells,
            num_threads(),
            targets.dims.numpy(),
            targets.offsets.numpy(),
            targets.centers.contiguous().numpy(),
            targets.weights.double().numpy(),
            tables,
            directions,
            *stairs,
            work,
        )
        return cls(tables, directions, rates, *stairs)


class _Work(NamedTuple):
    """Positions, targets and the memory of a step. A step allocates nothing."""

    positions: np.ndarray
    axes: np.ndarray
    dims: np.ndarray
    offsets: np.ndarray
    counts: np.ndarray
    goals: np.ndarray
    lines: np.ndarray
    bins: np.ndarray
    total: np.ndarray
    squares: np.ndarray

    @classmethod
    def of(cls, positions: Tensor, targets: PackedTargets, visit: Visit, num_bins: int) -> "_Work":
        """The memory for visits of the same shape as this one."""
        num_particles = positions.shape[1]
        batch, num_slices = visit.directions.shape[:2]
        num_rows = batch * num_slices
        num_chunks = -(-num_particles // CHUNK)
        paying = num_particles * num_rows // _THREAD_WORK
        num_parts = min(max(paying, 1), num_chunks, num_threads())
        return cls(
            positions.contiguous().numpy(),
            targets.axes.contiguous().numpy(),
            targets.dims.contiguous().numpy(),
            targets.offsets.contiguous().numpy(),
            np.empty((num_rows, num_parts, num_bins), dtype=np.int32),
            np.zeros((num_rows, num_bins), dtype=np.float32),
            np.empty((num_parts, CHUNK), dtype=np.float32),
            np.empty((num_rows, num_particles), dtype=np.uint16),
            np.zeros(positions.shape, dtype=np.float32),
            np.zeros((num_chunks, batch)),
        )

    @property
    def max_parts(self) -> int:
        """The number of threads that there is memory for."""
        return len(self.lines)

    def follow(self, segment: _Segment, num_parts: int, threads: Threads) -> None:
        """Takes all steps of a segment, the particles shared out in so many parts.

        Each pass moves particles for the last visit and counts them for the next.
        """
        for step in range(len(segment.tables) + 1):
            threads.run(pass_part, num_parts, step, self, _SHIFTS, segment)
            set_goals(num_parts, step, self, segment)
