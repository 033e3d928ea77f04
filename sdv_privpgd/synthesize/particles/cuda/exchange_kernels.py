"""The kernels of ``triton_exchange``, which says what they do together."""

from typing import no_type_check

import triton
import triton.language as tl

# Triton compiles the source of what follows (see ``triton_kernels``).
# One program serves all batches: nothing is compiled for a number that happens to be even.
_jit = triton.jit(
    do_not_specialize=[
        "attribute", "first", "count", "num_particles", "num_views", "unit", "seed", "size",
        "num_cells", "num_attributes", "num_levels",
    ]
)  # fmt: skip


@triton.jit
@no_type_check
def _row(codes, starts, rows, strides, view, particle, inside, num_particles, TERMS: tl.constexpr):
    """Where the lacks of each particle begin in a view."""
    row = tl.zeros_like(particle) + tl.load(starts + view)
    for term in tl.static_range(TERMS):
        other = tl.load(rows + view * TERMS + term).to(tl.int64)
        code = tl.load(codes + other * num_particles + particle, mask=inside, other=0)
        row += code * tl.load(strides + view * TERMS + term)
    return row


@triton.jit
@no_type_check
def _cells(
    new, old, codes, starts, rows, strides, maps, levels,
    view, particle, active, num_particles, size, TERMS: tl.constexpr,
):  # fmt: skip
    """Where a move leads to in a view, whence it comes, and whether these are two cells."""
    row = _row(codes, starts, rows, strides, view, particle, active, num_particles, TERMS)
    own = maps + tl.load(levels + view) * size
    there = row + tl.load(own + new, mask=active, other=0)
    here = row + tl.load(own + old, mask=active, other=0)
    return there, here, active & (there != here)


@triton.jit
@no_type_check
def _gain(
    lacks, new, old, codes, starts, rows, strides, maps, levels, weights,
    particle, active, num_particles, num_views, unit, size, TERMS: tl.constexpr,
):  # fmt: skip
    """Half of what a move takes off the weighted squares, in units of both; exact."""
    gain = tl.zeros_like(particle).to(tl.int64)
    for view in range(num_views):
        there, here, moves = _cells(
            new, old, codes, starts, rows, strides, maps, levels,
            view, particle, active, num_particles, size, TERMS,
        )  # fmt: skip
        own = tl.load(lacks + there, mask=moves, other=0).to(tl.int64)
        own -= tl.load(lacks + here, mask=moves, other=0).to(tl.int64)
        gain += tl.load(weights + view) * (own - tl.where(moves, unit, 0))
    return gain


@_jit
@no_type_check
def propose(
    lacks, proposals, codes, starts, rows, strides, maps, levels, weights,
    attribute, first, count, num_particles, num_views, unit, size, seed,
    TERMS: tl.constexpr, CODES: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """An improving code for each particle, drawn in proportion to its gain; -1 for none."""
    index = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = index < count
    particle = first + index
    code = tl.arange(0, CODES)
    real = code < size
    mine = codes + attribute.to(tl.int64) * num_particles + particle
    old = tl.load(mine, mask=inside, other=0)
    score = tl.zeros([BLOCK, CODES], dtype=tl.float32)
    for view in range(num_views):
        row = _row(codes, starts, rows, strides, view, particle, inside, num_particles, TERMS)
        own = maps + tl.load(levels + view) * size
        there = tl.load(own + code, mask=real, other=0)
        here = tl.load(own + old, mask=inside, other=0)
        where = lacks + row[:, None] + there[None, :]
        own_score = tl.load(where, mask=inside[:, None] & real[None, :], other=0).to(tl.float32)
        own_score -= tl.where(there[None, :] != here[:, None], unit, 0).to(tl.float32)
        score += tl.load(weights + view).to(tl.float32) * own_score
    level = tl.sum(tl.where(code[None, :] == old[:, None], score, 0.0), axis=1)
    excess = tl.where(real[None, :], tl.maximum(score - level[:, None], 0.0), 0.0)
    reached = tl.cumsum(excess, axis=1)
    total = tl.max(reached, axis=1)
    drawn = tl.rand(seed, particle) * total
    chosen = tl.minimum(tl.sum((reached <= drawn[:, None]).to(tl.int32), axis=1), size - 1)
    tl.store(proposals + index, tl.where(total > 0, chosen, -1), mask=inside)


@_jit
@no_type_check
def crowd(
    lacks, proposals, flow, codes, starts, rows, strides, maps, levels, weights,
    attribute, first, count, num_particles, num_views, unit, size,
    TERMS: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """Adds up the proposals that still pay and drops the others."""
    index = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = index < count
    particle = first + index
    new = tl.load(proposals + index, mask=inside, other=-1)
    active = new >= 0
    mine = codes + attribute.to(tl.int64) * num_particles + particle
    old = tl.load(mine, mask=active, other=0)
    gain = _gain(
        lacks, new, old, codes, starts, rows, strides, maps, levels, weights,
        particle, active, num_particles, num_views, unit, size, TERMS,
    )  # fmt: skip
    active = active & (gain > 0)
    tl.store(proposals + index, tl.where(active, new, -1), mask=inside)
    for view in range(num_views):
        there, here, leaves = _cells(
            new, old, codes, starts, rows, strides, maps, levels,
            view, particle, active, num_particles, size, TERMS,
        )  # fmt: skip
        tl.atomic_add(flow + there, 1, mask=leaves, sem="relaxed")
        tl.atomic_add(flow + here, -1, mask=leaves, sem="relaxed")


@_jit
@no_type_check
def join(
    lacks, proposals, subsets, flow, nested, codes, starts, rows, strides, maps, levels, weights,
    attribute, first, count, num_particles, num_views, unit, size, seed, num_cells,
    TERMS: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """Says in how many of the nested subsets each particle is; adds up those in exactly so many."""
    index = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = index < count
    particle = first + index
    new = tl.load(proposals + index, mask=inside, other=-1)
    active = new >= 0
    mine = codes + attribute.to(tl.int64) * num_particles + particle
    old = tl.load(mine, mask=active, other=0)
    gain = _gain(
        lacks, new, old, codes, starts, rows, strides, maps, levels, weights,
        particle, active, num_particles, num_views, unit, size, TERMS,
    )  # fmt: skip
    crowding = tl.zeros_like(particle).to(tl.int64)
    for view in range(num_views):
        there, here, leaves = _cells(
            new, old, codes, starts, rows, strides, maps, levels,
            view, particle, active, num_particles, size, TERMS,
        )  # fmt: skip
        flows = tl.load(flow + there, mask=leaves, other=0)
        flows -= tl.load(flow + here, mask=leaves, other=0)
        flows -= tl.where(leaves, 2, 0)  # its own part of them
        crowding += tl.load(weights + view) * flows.to(tl.int64)
    loss = tl.maximum(crowding, 0).to(tl.float32) * unit.to(tl.float32)
    share = tl.rand(seed, particle) * loss / tl.maximum(gain, 1).to(tl.float32)
    depth = (share <= 2.0).to(tl.int32) + (share <= 1.0).to(tl.int32)
    depth += (share <= 0.5).to(tl.int32) + (share <= 0.25).to(tl.int32)
    depth = tl.where(active, depth, 0)
    tl.store(subsets + index, depth, mask=inside)
    joins = depth > 0
    own = nested + (depth - 1) * num_cells
    for view in range(num_views):
        there, here, leaves = _cells(
            new, old, codes, starts, rows, strides, maps, levels,
            view, particle, joins, num_particles, size, TERMS,
        )  # fmt: skip
        tl.atomic_add(own + there, 1, mask=leaves, sem="relaxed")
        tl.atomic_add(own + here, -1, mask=leaves, sem="relaxed")


@_jit
@no_type_check
def weigh(
    lacks, cell_weights, flow, nested, changes, unit, num_cells,
    SUBSETS: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """What each subset would change the weighted squares by, in units; clears the flows."""
    cell = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = cell < num_cells
    lack = tl.load(lacks + cell, mask=inside, other=0).to(tl.int64)
    weight = tl.load(cell_weights + cell, mask=inside, other=0).to(tl.int64)
    nothing = tl.zeros([BLOCK], dtype=tl.int32)
    tl.store(flow + cell, nothing, mask=inside)
    came = tl.zeros([BLOCK], dtype=tl.int64)
    for turn in tl.static_range(SUBSETS):
        subset = SUBSETS - 1 - turn
        mine = nested + subset * num_cells + cell
        came += tl.load(mine, mask=inside, other=0).to(tl.int64)
        tl.store(mine, nothing, mask=inside)
        change = tl.sum(weight * came * (came * unit - 2 * lack), axis=0)
        tl.atomic_add(changes + subset, change, sem="relaxed")


@_jit
@no_type_check
def move(
    lacks, proposals, subsets, changes, moved, codes, starts, rows, strides, maps, levels,
    attribute, first, count, num_particles, num_views, unit, size, num_attributes, num_levels,
    SUBSETS: tl.constexpr, TERMS: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """Moves the subset that lowers the squares most, if any does."""
    each = tl.arange(0, SUBSETS)
    change = tl.load(changes + each)
    least = tl.min(change, axis=0)
    depth = tl.min(tl.where(change == least, each, SUBSETS), axis=0) + 1
    depth = tl.where(least < 0, depth, SUBSETS + 1)
    index = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = index < count
    particle = first + index
    new = tl.load(proposals + index, mask=inside, other=-1)
    moves = tl.load(subsets + index, mask=inside, other=0) >= depth
    mine = codes + attribute.to(tl.int64) * num_particles + particle
    old = tl.load(mine, mask=moves, other=0)
    for view in range(num_views):
        there, here, leaves = _cells(
            new, old, codes, starts, rows, strides, maps, levels,
            view, particle, moves, num_particles, size, TERMS,
        )  # fmt: skip
        tl.atomic_add(lacks + there, -unit, mask=leaves, sem="relaxed")
        tl.atomic_add(lacks + here, unit, mask=leaves, sem="relaxed")
    for level in range(num_levels):
        code = tl.load(maps + level * size + new, mask=moves, other=0)
        tl.store(mine + (level * num_attributes).to(tl.int64) * num_particles, code, mask=moves)
    tl.store(proposals + index, -1, mask=moves)
    tl.atomic_add(moved, tl.sum(moves.to(tl.int32), axis=0), sem="relaxed")
