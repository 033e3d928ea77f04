"""The binned displacement's Triton kernels and their launches.

Arrays are row-major without gaps: positions (attribute, particle), axes (table, dim) with -1 for
no dimension, directions (batch * slice, dim), and per row = (table, slice): counts (row, copy,
bin), goals (row, bin). Counts are integers and every sum of floats has a fixed order, so one
device repeats itself bit for bit.
"""

from typing import NamedTuple, no_type_check

import torch
import triton
import triton.language as tl
from jaxtyping import Float, Float64, Int
from torch import Tensor

COPIES = 4
"""Copies of each histogram. Particles of one bin wait for each other at one address; neighboring
blocks add to different copies, which divides the longest wait by the number of copies."""

_PARTICLES = 512  # of one program
_BINS = 256  # of one program
# Products and sums are rounded apart, so that a particle is found in the bin it was counted in.
_OPTIONS = {"enable_fp_fusion": False}


class QuantileStairs(NamedTuple):
    """Quantile functions as stairs: rows are the slices of tables, columns the sorted cells.

    Step j has height h_j and ends at level L_j; I_j is the integral up to there. Rows with fewer
    cells end in cells of no weight.
    """

    heights: Float64[Tensor, "row cell"]
    levels: Float64[Tensor, "row cell"]
    integrals: Float64[Tensor, "row cell"]


def launch_goals(
    positions: Float[Tensor, "attribute particle"],
    axes: Int[Tensor, "table dim"],
    tables: Int[Tensor, " batch"],
    directions: Float[Tensor, "batch slice dim"],
    stairs: QuantileStairs,
    counts: Int[Tensor, "row copy bin"],
    goals: Float[Tensor, "row bin"],
) -> None:
    """Adds the particles to ``counts``, which must hold zeros, and fills in ``goals``."""
    num_rows, num_bins = goals.shape
    num_particles, num_cells = positions.shape[1], stairs.levels.shape[1]
    _count[(triton.cdiv(num_particles, _PARTICLES), num_rows)](
        positions, counts, axes, tables, directions,
        num_particles, num_bins, axes.shape[1],
        SLICES=directions.shape[1], COPIES=COPIES,
        DIM=triton.next_power_of_2(axes.shape[1]), BLOCK=_PARTICLES,
        **_OPTIONS,
    )  # fmt: skip
    _goal[(triton.cdiv(num_bins, _BINS), num_rows)](
        counts, stairs.heights, stairs.levels, stairs.integrals, goals,
        num_particles, num_bins, num_cells,
        COPIES=COPIES, ALL=triton.next_power_of_2(num_bins), BLOCK=_BINS,
        DEPTH=(num_cells - 1).bit_length(),
        **_OPTIONS,
    )  # fmt: skip


def launch_displacement(
    positions: Float[Tensor, "attribute particle"],
    axes: Int[Tensor, "table dim"],
    tables: Int[Tensor, " batch"],
    directions: Float[Tensor, "batch slice dim"],
    goals: Float[Tensor, "row bin"],
) -> tuple[Float[Tensor, "attribute particle"], Float64[Tensor, " batch"]]:
    """The displacement and the mean squared ways, given each bin's goal."""
    num_attributes, num_particles = positions.shape
    batch, num_slices, max_dim = directions.shape
    blocks = triton.cdiv(num_particles, _PARTICLES)
    total = torch.empty_like(positions)
    squares = torch.zeros(batch, blocks, dtype=torch.float64, device=positions.device)
    _displace[(blocks, num_attributes)](
        positions, total, squares, goals, axes, tables, directions,
        num_particles, goals.shape[1], max_dim, BATCH=batch, SLICES=num_slices,
        DIM=triton.next_power_of_2(max_dim), BLOCK=_PARTICLES,
        **_OPTIONS,
    )  # fmt: skip
    return total, squares.sum(dim=1) / (num_slices * num_particles)


def launch_transport(
    positions: Float[Tensor, "attribute particle"],
    axes: Int[Tensor, "table dim"],
    tables: Int[Tensor, "1"],
    directions: Float[Tensor, "1 slice dim"],
    goals: Float[Tensor, "row bin"],
    rates: Float[Tensor, " attribute"],
) -> None:
    """Moves the particles along one table's displacement times the column's rate, in place."""
    num_particles = positions.shape[1]
    _, num_slices, max_dim = directions.shape
    _transport[(triton.cdiv(num_particles, _PARTICLES),)](
        positions, goals, axes, tables, directions, rates,
        num_particles, goals.shape[1], max_dim, SLICES=num_slices,
        DIM=triton.next_power_of_2(max_dim), BLOCK=_PARTICLES,
        **_OPTIONS,
    )  # fmt: skip


# Triton compiles the source of what follows. Nothing in it can be type-checked: neither by
# pyright, as Triton has no types, nor by the tests' import hook, whose wrappers have no source.

# The visits of a segment begin at any multiple of 4 bytes: one program serves them all.
_jit_unaligned = triton.jit(do_not_specialize_on_alignment=["tables", "directions", "rates"])


@triton.jit
@no_type_check
def _axes_of(axes, tables, b, max_dim, DIM: tl.constexpr):
    """The columns of the batch's table b, -1 where it has no more dimensions."""
    dim = tl.arange(0, DIM)
    table = tl.load(tables + b)
    first = axes + tl.maximum(table, 0) * max_dim
    return tl.where(table >= 0, tl.load(first + dim, mask=dim < max_dim, other=-1), -1)


@triton.jit
@no_type_check
def _direction(directions, row, axis, max_dim, DIM: tl.constexpr):
    """The direction of a row, 0 in dimensions that its table lacks."""
    return tl.load(directions + row * max_dim + tl.arange(0, DIM), mask=axis >= 0, other=0.0)


@triton.jit
@no_type_check
def _bin(projected, theta, particle, num_bins):
    """Cells of equal width over the projections of the unit cube, after each particle's shift.

    The shifts are those of ``cpu.py``, of period 2048: they part particles that sit on one point.
    """
    low = tl.sum(tl.minimum(theta, 0.0), axis=0)
    high = tl.sum(tl.maximum(theta, 0.0), axis=0)
    scale = tl.div_rn((num_bins - 1) * 1.0, tl.where(high > low, high - low, 1.0))
    multiple = (particle % 2048).to(tl.int64) * 2654435769 % 4294967296
    shift = (multiple // 256).to(tl.float32) / 16777216
    found = ((projected - low) * scale + shift).to(tl.int32)
    return tl.minimum(tl.maximum(found, 0), num_bins - 1)


@triton.jit
@no_type_check
def _way(x, theta, goals, num_bins, particle, inside):
    """How far particles are from the goals of their bins along one direction."""
    projected = tl.sum(theta[:, None] * x, axis=0)
    bins = _bin(projected, theta, particle, num_bins)
    return tl.load(goals + bins, mask=inside, other=0.0) - projected


@_jit_unaligned
@no_type_check
def _count(
    positions, counts, axes, tables, directions,
    num_particles, num_bins, max_dim,
    SLICES: tl.constexpr, COPIES: tl.constexpr, DIM: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    row = tl.program_id(1)
    axis = _axes_of(axes, tables, row // SLICES, max_dim, DIM)
    theta = _direction(directions, row, axis, max_dim, DIM)
    particle = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = particle < num_particles
    where = positions + axis[:, None] * num_particles + particle[None, :]
    x = tl.load(where, mask=(axis >= 0)[:, None] & inside[None, :], other=0.0)
    bins = _bin(tl.sum(theta[:, None] * x, axis=0), theta, particle, num_bins)
    copy = row * COPIES + tl.program_id(0) % COPIES
    tl.atomic_add(counts + copy * num_bins + bins, 1, mask=inside, sem="relaxed")


@triton.jit
@no_type_check
def _integral(u, heights, levels, integrals, num_cells, DEPTH: tl.constexpr):
    """The integral of a quantile function over [0, u]: I_j - (L_j - u) h_j on u's step j."""
    low = (u * 0).to(tl.int32)
    high = low + (num_cells - 1)
    for _ in tl.static_range(DEPTH):
        middle = (low + high) // 2
        below = tl.load(levels + middle) < u
        low = tl.where(below, tl.minimum(middle + 1, high), low)
        high = tl.where(below, high, middle)
    height = tl.load(heights + low)
    return tl.load(integrals + low) - (tl.load(levels + low) - u) * height, height


@triton.jit
@no_type_check
def _goal(
    counts, heights, levels, integrals, goals,
    num_particles, num_bins, num_cells,
    COPIES: tl.constexpr, ALL: tl.constexpr, BLOCK: tl.constexpr, DEPTH: tl.constexpr,
):  # fmt: skip
    row, start = tl.program_id(1), tl.program_id(0) * BLOCK
    every = tl.arange(0, ALL)
    bins = start + tl.arange(0, BLOCK)
    earlier = tl.zeros([ALL], dtype=tl.int32)
    count = tl.zeros([BLOCK], dtype=tl.int32)
    for copy in tl.static_range(COPIES):
        mine = counts + (row * COPIES + copy) * num_bins
        earlier += tl.load(mine + every, mask=every < start, other=0)
        count += tl.load(mine + bins, mask=bins < num_bins, other=0)
    after = tl.sum(earlier, axis=0) + tl.cumsum(count, axis=0)
    first = (after - count).to(tl.float64) / num_particles
    last = after.to(tl.float64) / num_particles
    offset = row * num_cells
    heights, levels, integrals = heights + offset, levels + offset, integrals + offset
    until_first, _ = _integral(first, heights, levels, integrals, num_cells, DEPTH)
    until_last, height = _integral(last, heights, levels, integrals, num_cells, DEPTH)
    mean = (until_last - until_first) / tl.where(count > 0, last - first, 1.0)
    goal = tl.where(count > 0, mean, height).to(tl.float32)
    tl.store(goals + row * num_bins + bins, goal, mask=bins < num_bins)


@_jit_unaligned
@no_type_check
def _displace(
    positions, total, squares, goals, axes, tables, directions,
    num_particles, num_bins, max_dim,
    BATCH: tl.constexpr, SLICES: tl.constexpr, DIM: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """One block of particles in one column: the tables' slices add up in a fixed order."""
    block, column = tl.program_id(0), tl.program_id(1).to(tl.int64)
    particle = block * BLOCK + tl.arange(0, BLOCK)
    inside = particle < num_particles
    pull = tl.zeros([BLOCK], dtype=tl.float32)
    for b in range(BATCH):
        axis = _axes_of(axes, tables, b, max_dim, DIM)
        if tl.sum((axis == column).to(tl.int32), axis=0) > 0:
            where = positions + axis[:, None] * num_particles + particle[None, :]
            x = tl.load(where, mask=(axis >= 0)[:, None] & inside[None, :], other=0.0)
            square = tl.zeros([BLOCK], dtype=tl.float32)
            for s in range(SLICES):
                row = b * SLICES + s
                theta = _direction(directions, row, axis, max_dim, DIM)
                way = _way(x, theta, goals + row * num_bins, num_bins, particle, inside)
                component = tl.sum(tl.where(axis == column, theta, 0.0), axis=0)
                pull += tl.div_rn(component, SLICES * 1.0) * way
                square += way * way
            # The program of a table's first column reports its loss.
            if tl.sum(tl.where(tl.arange(0, DIM) == 0, axis, 0), axis=0) == column:
                loss = tl.sum(tl.where(inside, square, 0.0).to(tl.float64), axis=0)
                tl.store(squares + b * tl.num_programs(0) + block, loss)
    tl.store(total + column * num_particles + particle, pull, mask=inside)


@_jit_unaligned
@no_type_check
def _transport(
    positions, goals, axes, tables, directions, rates,
    num_particles, num_bins, max_dim,
    SLICES: tl.constexpr, DIM: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """One block of particles in all columns of one table, which no other program touches."""
    particle = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = particle < num_particles
    axis = _axes_of(axes, tables, 0, max_dim, DIM)
    where = positions + axis[:, None] * num_particles + particle[None, :]
    mask = (axis >= 0)[:, None] & inside[None, :]
    x = tl.load(where, mask=mask, other=0.0)
    pull = tl.zeros([DIM, BLOCK], dtype=tl.float32)
    for row in range(SLICES):
        theta = _direction(directions, row, axis, max_dim, DIM)
        way = _way(x, theta, goals + row * num_bins, num_bins, particle, inside)
        pull += tl.div_rn(theta, SLICES * 1.0)[:, None] * way[None, :]
    rate = tl.load(rates + axis, mask=axis >= 0, other=0.0)
    moved = tl.minimum(tl.maximum(x + rate[:, None] * pull, 0.0), 1.0)
    tl.store(where, moved, mask=mask)
