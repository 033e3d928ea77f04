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

In the compiled loops arrays are arguments, never captured: the code that is kept holds no data.
Without fast math there is no contraction either, so that a particle falls into the bin in which it
was counted. Arguments keep to one type each, or numba would compile a function again.
"""

from collections.abc import Iterable, Sequence
from itertools import count, islice
from time import perf_counter
from typing import NamedTuple, no_type_check

import numpy as np
import torch
from jaxtyping import Float32, Float64, Int64
from torch import Tensor

from sdv_privpgd.synthesize.particles.compiler import Threads, inner, njit, num_threads
from sdv_privpgd.synthesize.particles.kernels import SEGMENT_STEPS, PackedTargets, Positions, Visit

CHUNK = 2048
"""Particles that are moved together: a line of them stays in the first cache."""

_DIGIT_BITS = 8
"""Of a key of three digits, by which cells are sorted. With two digits of 11 bits, clearing the
counts of their values takes longer than all else for tables of a hundred cells."""

DIGITS = 2**_DIGIT_BITS
"""The values of a digit."""

NUM_BINS = 4096
_THREAD_WORK = 25_000  # projections of a step that pay for waking one more thread
_TRY_EVERY = 16  # segments from one trial of many threads and of one to the next
_TRIAL_STEPS = 4
_SEGMENT_CELLS = 2**20  # sorted cells held at a time: 16 MB
# The shifts u_i, the same in every chunk: multiples of the golden ratio, modulo 1, are even on
# every scale. 24 bits, so that a float holds them.
_SHIFTS = ((np.arange(CHUNK) * 2654435769 % 2**32 >> 8) / 2**24).astype(np.float32)


def displacement(
    positions: Positions,
    targets: PackedTargets,
    tables: Int64[Tensor, " batch"],
    directions: Float32[Tensor, "batch slice dim"],
    *,
    num_bins: int = NUM_BINS,
) -> tuple[Positions, Float64[Tensor, " batch"]]:
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


def descend(positions: Positions, targets: PackedTargets, visits: Iterable[Visit]) -> Positions:
    """The positions after all visits: each moves them by rate * displacement, into the cube.

    The visits must agree in their shapes. It measures on the way whether several threads pay:
    beside other busy programs they wait for each other more than they work.
    """
    visits = iter(visits)
    positions = positions.clone(memory_format=torch.contiguous_format)
    first = next(visits, None)
    if first is None:
        return positions
    work = _Work.of(positions, targets, first, NUM_BINS)
    with Threads() as threads:
        segment = _Segment.of([first], targets, threads)
        work.follow(segment, 1, threads)  # compiles what all parts use; not timed
        most_steps = min(_SEGMENT_CELLS // segment.heights.size + 1, SEGMENT_STEPS)
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


@njit()
@no_type_check
def sort_cells(
    part, num_parts, dims, offsets, centers, weights, tables, directions, heights, levels, work
):
    """The quantile function of each slice of a part of the visits' tables.

    ``work`` has, for each part, the keys, two orders of the cells, and room to count ``DIGITS``.
    """
    num_steps, batch = tables.shape
    for item in range(part, num_steps * batch, num_parts):
        step, place = item // batch, item % batch
        table = tables[step, place]
        if table < 0:  # pads a batch that is not full
            continue
        first, size = offsets[table], offsets[table + 1] - offsets[table]
        keys, spare, order = work[part, 0, :size], work[part, 1, :size], work[part, 2, :size]
        starts = work[part, 3, : DIGITS + 1]
        for line in range(directions.shape[2]):
            stairs = heights[step, place, line, :size]
            projected = levels[step, place, line, :size]  # until the levels are known
            for cell in range(size):
                projected[cell] = 0
            for dim in range(dims[table]):
                theta = np.float64(directions[step, place, line, dim])
                for cell in range(size):
                    projected[cell] += theta * centers[first + cell, dim]
            sort_places(projected, keys, spare, order, starts)
            for j in range(size):
                stairs[j] = projected[order[j]]
            level = 0.0
            for j in range(size):
                level += weights[first + order[j]]
                projected[j] = level
            for j in range(size):
                projected[j] /= level


@inner(inline="always")
@no_type_check
def sort_places(places, keys, spare, order, starts):
    """Sorts cells by their places into an order, in linear time: a radix sort.

    Cells whose places differ by less than 2^-24 of their range, which is what a float32 position
    tells apart, may change places.
    """
    low, high = places[0], places[0]
    for cell in range(len(places)):
        low, high = min(low, places[cell]), max(high, places[cell])
    scale = (DIGITS**3 - 1) / (high - low) if high > low else 0.0
    for cell in range(len(places)):
        keys[cell] = np.uint32((places[cell] - low) * scale)
        spare[cell] = cell
    _sort_digit(keys, np.uint32(0), spare, order, starts)
    _sort_digit(keys, np.uint32(_DIGIT_BITS), order, spare, starts)
    _sort_digit(keys, np.uint32(2 * _DIGIT_BITS), spare, order, starts)


@inner()
@no_type_check
def _sort_digit(keys, shift, order, into, starts):
    """The order, sorted by one digit of the keys."""
    mask = np.uint32(DIGITS - 1)
    for digit in range(len(starts)):
        starts[digit] = 0
    for cell in range(len(keys)):
        starts[((keys[cell] >> shift) & mask) + np.uint32(1)] += np.uint32(1)
    for digit in range(1, len(starts)):
        starts[digit] += starts[digit - 1]
    for j in range(len(order)):
        digit = (keys[order[j]] >> shift) & mask
        into[starts[digit]] = order[j]
        starts[digit] += np.uint32(1)


@njit()
@no_type_check
def pass_part(part, num_parts, step, work, shifts, segment):
    """Moves a part of the particles for the last visit, and counts them for the one of this step.

    The mean over slices of (goal - <theta, z>) theta is the mean of goal * theta less M z, where
    M is the mean of theta theta^T: the projections are needed for the bins alone.
    ``total`` comes with zeros. Where there are no rates it keeps its sums, and ``squares`` are
    added up.
    """
    positions, axes, dims, _, counts, goals, lines, bins, total, squares = work
    num_steps, batch = segment.tables.shape
    last, here = max(step - 1, 0), min(step, num_steps - 1)
    tables = segment.tables[last, : batch * (step > 0)]
    directions, rates = segment.directions[last], segment.rates[last]
    next_tables = segment.tables[here, : batch * (step < num_steps)]
    next_directions = segment.directions[here]
    num_particles = positions.shape[1]
    num_chunks, num_bins = len(squares), goals.shape[1]
    for row in range(len(counts)):
        for b in range(num_bins):
            counts[row, part, b] = 0
    for chunk in range(part * num_chunks // num_parts, (part + 1) * num_chunks // num_parts):
        first = chunk * CHUNK
        end = min(num_particles, first + CHUNK)
        line = lines[part, : end - first]
        num_slices = directions.shape[1]
        for place in range(len(tables)):
            table = tables[place]
            for slice_ in range(num_slices if table >= 0 else 0):
                row = place * num_slices + slice_
                theta = directions[place, slice_, : dims[table]]
                _look_up(bins[row, first:end], goals[row], line)
                for dim in range(len(theta)):
                    share = theta[dim] / np.float32(num_slices)
                    _spread(share, line, total, axes[table, dim], first)
                if len(rates) == 0:
                    for dim in range(len(theta)):
                        _add(-theta[dim], positions, axes[table, dim], first, line)
                    squares[chunk, place] += _sum_of_squares(line)
            for dim in range(dims[table] if table >= 0 else 0):
                for other in range(dims[table]):
                    product = _mean_product(directions[place], dim, other)
                    column = positions[axes[table, other], first:end]
                    _spread(-product, column, total, axes[table, dim], first)
        for place in range(len(tables) if len(rates) else 0):
            for dim in range(dims[tables[place]] if tables[place] >= 0 else 0):
                axis = axes[tables[place], dim]
                _move(rates[axis], total[axis, first:end], positions[axis, first:end])
        num_slices = next_directions.shape[1]
        for place in range(len(next_tables)):
            table = next_tables[place]
            for slice_ in range(num_slices if table >= 0 else 0):
                row = place * num_slices + slice_
                theta = next_directions[place, slice_, : dims[table]]
                _project(positions, axes[table], theta, first, line)
                _set_bins(line, theta, shifts, num_bins, bins[row, first:end], counts[row, part])


@njit()
@no_type_check
def set_goals(num_parts, step, work, segment):
    """The goals of each bin for a step's visit, from the counts of all parts."""
    counts, offsets = work.counts, work.offsets
    heights, levels = segment.heights, segment.levels
    num_steps, batch = segment.tables.shape
    for place in range(batch if step < num_steps else 0):
        table = segment.tables[step, place]
        num_slices = heights.shape[2]
        for slice_ in range(num_slices if table >= 0 else 0):
            row = place * num_slices + slice_
            for part in range(1, num_parts):
                for b in range(counts.shape[2]):
                    counts[row, 0, b] += counts[row, part, b]
            num_cells = offsets[table + 1] - offsets[table]
            _set_means(
                counts[row, 0],
                heights[step, place, slice_, :num_cells],
                levels[step, place, slice_, :num_cells],
                work.positions.shape[1],
                work.goals[row],
            )


@inner(inline="always")
@no_type_check
def _project(positions, axes, theta, first, line):
    """The particles from the first on, on the direction, as many as the line is long."""
    for i in range(len(line)):
        line[i] = 0
    for dim in range(len(theta)):
        _add(theta[dim], positions, axes[dim], first, line)


@inner()
@no_type_check
def _add(factor, rows, row, first, line):
    """Adds the multiple of a part of a row, which begins at ``first``, to the line."""
    column = rows[row, first : first + len(line)]
    for i in range(len(line)):
        line[i] += factor * column[i]


@inner()
@no_type_check
def _spread(factor, line, rows, row, first):
    """Adds the multiple of the line to a part of a row, which begins at ``first``."""
    column = rows[row, first : first + len(line)]
    for i in range(len(line)):
        column[i] += factor * line[i]


@inner(inline="always")
@no_type_check
def _set_bins(line, theta, shifts, num_bins, bins, counts):
    """Sets the bin of each projection, and counts it there.

    The bins are even between the least and the largest projection of a point of the cube.
    """
    low, high = np.float32(0), np.float32(0)
    for dim in range(len(theta)):
        low += min(theta[dim], np.float32(0))
        high += max(theta[dim], np.float32(0))
    scale = np.float32(num_bins - 1) / (high - low if high > low else np.float32(1))
    last = np.int32(num_bins - 1)
    for i in range(len(line)):
        found = np.int32((line[i] - low) * scale + shifts[i])
        bins[i] = np.uint16(min(max(found, np.int32(0)), last))
    for i in range(len(bins)):
        counts[np.uint32(bins[i])] += 1


@inner(inline="always")
@no_type_check
def _look_up(bins, goals, line):
    for i in range(len(line)):
        line[i] = goals[np.uint32(bins[i])]


@inner(inline="always")
@no_type_check
def _mean_product(directions, dim, other):
    """One entry of the mean over slices of theta theta^T."""
    total = np.float32(0)
    for slice_ in range(len(directions)):
        total += directions[slice_, dim] * directions[slice_, other]
    return total / np.float32(len(directions))


@inner(inline="always")
@no_type_check
def _set_means(counts, heights, levels, num_particles, goals):
    """The mean of the quantile function over the ranks of each bin. Empty bins have none."""
    last = len(heights) - 1
    j, begin, end = 0, 0.0, 0.0
    for b in range(len(goals)):
        if counts[b] > 0:
            end += counts[b]
            area = 0.0
            while j < last and levels[j] * num_particles < end:
                area += (levels[j] * num_particles - begin) * heights[j]
                begin = levels[j] * num_particles
                j += 1
            area += (end - begin) * heights[j]
            begin = end
            goals[b] = area / counts[b]


@inner(inline="always")
@no_type_check
def _move(rate, way, column):
    """Moves a column by a share of its way, which is then gone."""
    for i in range(len(column)):
        column[i] = min(max(column[i] + rate * way[i], np.float32(0)), np.float32(1))
        way[i] = 0


@inner(fastmath={"reassoc"})
@no_type_check
def _sum_of_squares(line):
    total = np.float32(0)
    for i in range(len(line)):
        total += line[i] * line[i]
    return total
