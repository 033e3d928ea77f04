"""The exchange finish in Triton: a batch of particles changes its codes of one attribute.

The lacks of the tables (target * particles - counts) are integers, in units of a fraction of a
particle. Atomic sums of them are exact in any order, so one device repeats itself bit for bit.

A batch goes in rounds, because all particles look at the tables at once and would run to the same
cells. Each particle proposes one improving code, drawn by the gains. A round sums up the proposals
that still pay. A particle whose gain g would fall by c if all the others moved joins a random
subset with chance min(1, f g / c), for f = 2, 1, 1/2 and 1/4; each subset lies within the one
before. The change of the squared lacks is computed exactly for each subset. The best subset moves,
or none if all of them raise the squares.
"""

from typing import NamedTuple

import torch
import triton
from jaxtyping import Int
from torch import Tensor

from sdv_privpgd.synthesize.particles.cuda.exchange_kernels import (
    crowd,
    join,
    move,
    propose,
    weigh,
)

ROUNDS = 3
"""Rounds of a batch. One round leaves four times the squares after two sweeps; eight rounds leave
hardly less than three."""

SUBSETS = 4

WEIGHT = 256
"""Units of a table's weight."""

_TILE = 4096  # particles times codes that one program scores
_PARTICLES = 256  # of one program elsewhere
_CELLS = 1024  # of one program
# Scores are rounded at each addition, as in the interpreter.
_OPTIONS = {"enable_fp_fusion": False}


class View(NamedTuple):
    """The tables that contain one attribute, each with that attribute as its last axis.

    A particle's codes of the attribute, at the table's level, lie side by side in table t from
    starts[t] + the sum of strides[t] * codes[rows[t]] on. ``maps`` has the attribute's code of each
    level for each of its codes; ``places`` says where each cell comes from. ``weights`` are the
    tables' in units of 1 / ``WEIGHT``, ``cell_weights`` the same for each cell.
    """

    axis: int
    maps: Int[Tensor, "level code"]
    places: Int[Tensor, " cell"]
    starts: Int[Tensor, " view"]
    levels: Int[Tensor, " view"]
    rows: Int[Tensor, "view term"]
    strides: Int[Tensor, "view term"]
    weights: Int[Tensor, " view"]
    cell_weights: Int[Tensor, " cell"]


class Buffers(NamedTuple):
    """The memory of a batch; ``flow`` and ``nested`` hold zeros before and after."""

    proposals: Int[Tensor, " particle"]
    subsets: Int[Tensor, " particle"]
    flow: Int[Tensor, " cell"]
    nested: Int[Tensor, " places"]
    changes: Int[Tensor, "round subset"]
    moved: Int[Tensor, "1"]

    @classmethod
    def of(cls, num_particles: int, num_cells: int, device: torch.device) -> "Buffers":
        """The memory for batches of so many particles and views of at most so many cells."""

        def zeros(*shape: int, dtype: torch.dtype = torch.int32) -> Tensor:
            return torch.zeros(shape, dtype=dtype, device=device)

        return cls(
            proposals=zeros(num_particles),
            subsets=zeros(num_particles),
            flow=zeros(num_cells),
            nested=zeros(SUBSETS * num_cells),
            changes=zeros(ROUNDS, SUBSETS, dtype=torch.int64),
            moved=zeros(1),
        )


def launch_batch(
    codes: Int[Tensor, "row particle"],
    lacks: Int[Tensor, " cell"],
    view: View,
    buffers: Buffers,
    *,
    first: int,
    count: int,
    unit: int,
    seed: int,
) -> None:
    """Moves particles first, ..., first + count - 1 in one attribute, in place.

    ``codes`` are those of all levels (``Levels``), row-major without gaps; ``lacks`` are those of
    all tables, in units of 1 / unit of a particle. Adds the number of particles that moved to
    ``buffers.moved``.
    """
    own = lacks[view.places]
    num_views, terms = view.rows.shape
    num_levels, size = view.maps.shape
    width = triton.next_power_of_2(size)
    particles = max(_TILE // width, 1)
    where = (codes, view.starts, view.rows, view.strides, view.maps, view.levels)
    weighted = (*where, view.weights)
    numbers = (view.axis, first, count, codes.shape[1], num_views, unit, size)
    propose[(triton.cdiv(count, particles),)](
        own, buffers.proposals, *weighted, *numbers, seed,
        TERMS=terms, CODES=width, BLOCK=particles, **_OPTIONS,
    )  # fmt: skip
    buffers.changes.zero_()
    grid = (triton.cdiv(count, _PARTICLES),)
    options = {"TERMS": terms, "BLOCK": _PARTICLES, **_OPTIONS}
    for turn in range(ROUNDS):
        crowd[grid](own, buffers.proposals, buffers.flow, *weighted, *numbers, **options)
        join[grid](
            own, buffers.proposals, buffers.subsets, buffers.flow, buffers.nested,
            *weighted, *numbers, seed + 1 + turn, len(own), **options,
        )  # fmt: skip
        weigh[(triton.cdiv(len(own), _CELLS),)](
            own, view.cell_weights, buffers.flow, buffers.nested, buffers.changes[turn], unit,
            len(own), SUBSETS=SUBSETS, BLOCK=_CELLS, **_OPTIONS,
        )  # fmt: skip
        move[grid](
            own, buffers.proposals, buffers.subsets, buffers.changes[turn], buffers.moved,
            *where, *numbers, len(codes) // num_levels, num_levels, SUBSETS=SUBSETS, **options,
        )  # fmt: skip
    lacks[view.places] = own
