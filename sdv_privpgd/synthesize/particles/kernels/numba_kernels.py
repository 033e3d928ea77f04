"""The binned displacement's loops, which numba compiles and caches on disk.

Arrays are arguments, never captured: the compiled code holds no data. Without fast math there is
no contraction either, so that a particle falls into the bin in which it was counted. Nothing here
can be type-checked: numba's functions have no types before they are called. Arguments keep to one
type each, or numba would compile a function again.
"""

from typing import no_type_check

import numpy as np

from sdv_privpgd.synthesize.particles.compiler import inner, njit

CHUNK = 2048
"""Particles that are moved together: a line of them stays in the first cache."""

_KEY_BITS = 22

DIGITS = 2 ** (_KEY_BITS // 2)
"""The values of one half of a key."""


@njit()
@no_type_check
def sort_cells(
    part, num_parts, dims, offsets, centers, weights, tables, directions, heights, levels, work
):
    """The quantile function of each slice of a part of the visits' tables.

    Cells whose projections differ by less than 2^-22 of their range, which is what a float32
    position tells apart, may change places: keys of 22 bits are sorted in linear time. ``work``
    has, for each part, the keys, two orders of the cells, and room to count ``DIGITS``.
    """
    num_steps, batch = tables.shape
    zero, half = np.uint32(0), np.uint32(_KEY_BITS // 2)
    for item in range(part, num_steps * batch, num_parts):
        step, place = item // batch, item % batch
        table = tables[step, place]
        if table < 0:  # pads a batch that is not full
            continue
        first, size = offsets[table], offsets[table + 1] - offsets[table]
        keys, order, spare = work[part, 0, :size], work[part, 1, :size], work[part, 2, :size]
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
            low, high = projected[0], projected[0]
            for cell in range(size):
                low, high = min(low, projected[cell]), max(high, projected[cell])
            scale = (2**_KEY_BITS - 1) / (high - low) if high > low else 0.0
            for cell in range(size):
                keys[cell] = np.uint32((projected[cell] - low) * scale)
                spare[cell] = cell
            _sort_digit(keys, zero, spare, order, starts)
            _sort_digit(keys, half, order, spare, starts)
            for j in range(size):
                stairs[j] = projected[spare[j]]
            level = 0.0
            for j in range(size):
                level += weights[first + spare[j]]
                projected[j] = level
            for j in range(size):
                projected[j] /= level


@inner()
@no_type_check
def _sort_digit(keys, shift, order, into, starts):
    """The order, sorted by one half of the keys' bits: a pass of a radix sort."""
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
