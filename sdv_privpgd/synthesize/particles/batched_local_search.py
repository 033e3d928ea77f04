"""The local search in torch's own operations, for many particles at once on any device.

A batch goes in rounds, because all particles look at the tables at once and would run to the same
cells. Each particle proposes one improving code, drawn by the gains. A round sums up the proposals
that still pay. A particle whose gain g would fall by c if all the others moved joins a random
subset with chance min(1, f g / c), for f = 2, 1, 1/2 and 1/4; each subset lies within the one
before. The change of the squared lacks (target * particles - counts) is computed exactly for each
subset. The best subset moves, or none if all of them raise the squares.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import torch
from jaxtyping import Int
from torch import Tensor

from sdv_privpgd.synthesize.particles.local_search import (
    FEWEST_BLOCKS,
    LevelTable,
    LocalSearch,
    Start,
    last_axis,
)

Cells = Int[Tensor, " cell"]
Places = Int[Tensor, "table particle"]

_MOST_SCORES = 2**23
"""Scores of a batch, by table, particle and code: 64 MB for each number that is held of them."""

_ROUNDS = 3
"""Rounds of a batch. One round leaves four times the squares after two sweeps; eight rounds leave
hardly less than three."""

_UNIT = 256
"""Units of a particle in the lacks, and of 1 in a table's weight. All sums are of integers."""


@dataclass(frozen=True, kw_only=True)
class BatchedSearch(LocalSearch):
    """Does the work of ``ExchangeFinish`` on devices of many cores, or without numba.

    ``ExchangeFinish`` tries the proposals of a block one by one. This class tries random subsets
    of them as a whole. A subset moves only if it lowers the squared residuals, which are integers:
    up to the rounding of targets and weights to 1/256, no batch raises the objective. One device
    and seed always give the same codes; another device draws others.

    Attributes:
        device: The device that holds tables and codes.
    """

    device: str = "cpu"

    def search(self, start: Start, rng: np.random.Generator) -> "_Search":
        device = torch.device(self.device)
        generator = torch.Generator(device).manual_seed(int(rng.integers(2**63)))
        return _Search.of(start, generator)


class _View(NamedTuple):
    """The tables that contain one attribute, each with that attribute as its last axis.

    A particle's codes of the attribute, at the table's level, lie side by side in table t from
    starts[t] + the sum of strides[t] * codes[rows[t]] on. ``maps`` has the code at the table's
    level for each code of the attribute; ``places`` says where each cell comes from. ``weights``
    are the tables' in units of 1 / 256, ``cell_weights`` the same for each cell.
    """

    maps: Int[Tensor, "table code"]
    places: Cells
    starts: Int[Tensor, " table"]
    rows: Int[Tensor, "table term"]
    strides: Int[Tensor, "table term"]
    weights: Int[Tensor, " table"]
    cell_weights: Cells

    @classmethod
    def of(cls, axis: int, start: Start, device: torch.device) -> "_View":
        tables, size = start.tables, int(start.widths[0, axis])
        terms = max(len(table.axes) for table in tables) - 1
        own = [number for number, table in enumerate(tables) if axis in table.axes]
        offsets = np.cumsum([0, *(table.values.size for table in tables)])
        places, rows, strides = [], [], []
        for table, offset in ((tables[number], offsets[number]) for number in own):
            *others, last = last_axis(table.axes, axis)
            cells = np.arange(table.values.size).reshape(table.values.shape)
            cells = cells.transpose([*others, last])
            missing = [0] * (terms - len(others))
            places.append(offset + cells.ravel())
            rows.append([*(table.rows[place] for place in others), *missing])
            strides.append(
                [*(math.prod(cells.shape[i + 1 :]) for i in range(len(others))), *missing]
            )
        weights = [max(round(_UNIT * tables[number].weight), 1) for number in own]
        sizes = [len(cells) for cells in places]

        def integers(values) -> Int[Tensor, "..."]:
            return torch.as_tensor(np.array(values, dtype=np.int64), device=device)

        return cls(
            maps=integers([start.maps[tables[number].level, axis, :size] for number in own]),
            places=integers(np.concatenate(places)),
            starts=integers(np.cumsum([0, *sizes[:-1]])),
            rows=integers(rows).reshape(len(own), terms),
            strides=integers(strides).reshape(len(own), terms),
            weights=integers(weights),
            cell_weights=integers(np.repeat(weights, sizes)),
        )


@dataclass(frozen=True)
class _Search:
    """The codes of all levels, row by row as in ``Start``, and the lacks of all tables.

    The lacks are integers in units of 1 / 256 of a particle. Both change in place.
    """

    held: Int[Tensor, "row particle"]
    lacks: Cells
    maps: Int[Tensor, "level attribute code"]
    views: dict[int, _View]
    factors: Tensor
    generator: torch.Generator

    @classmethod
    def of(cls, start: Start, generator: torch.Generator) -> "_Search":
        device = generator.device
        codes = torch.from_numpy(start.codes.astype(np.int64)).to(device)
        return cls(
            held=codes,
            lacks=torch.cat([_lacks(table, codes) for table in start.tables]),
            maps=torch.from_numpy(start.maps.astype(np.int64)).to(device),
            views={axis: _View.of(axis, start, device) for axis in start.movable},
            factors=torch.tensor([2.0, 1.0, 0.5, 0.25], device=device),
            generator=generator,
        )

    @property
    def codes(self) -> np.ndarray:
        return self.held.cpu().numpy()

    def sweep(
        self, order: np.ndarray, rng: np.random.Generator
    ) -> Iterator[tuple[float, Int[Tensor, ""]]]:
        """Moves the codes in batches of particles, attribute by attribute in this order."""
        del rng
        number = self.held.shape[1]
        most = max(view.maps.numel() for view in self.views.values())
        block = max(1, min(-(-number // FEWEST_BLOCKS), _MOST_SCORES // most))
        for first in range(0, number, block):
            last = min(first + block, number)
            moved = [self.move(axis, slice(first, last)) for axis in order.tolist()]
            yield last / number, torch.stack(moved).sum()

    def move(self, axis: int, block: slice) -> Int[Tensor, ""]:
        """Moves particles of a block in one attribute, in place. Returns how many have moved."""
        view = self.views[axis]
        lacks, weights = self.lacks[view.places], view.weights[:, None]
        others = self.held[view.rows.flatten(), block].unflatten(0, view.rows.shape)
        row = view.starts[:, None] + (others * view.strides[..., None]).sum(dim=1)
        old = self.held[axis, block]
        here = row + view.maps[:, old]  # (table, particle)
        new, active = self._proposals(lacks, view, row, here, old)
        there = row + view.maps[:, new]
        leaves = there != here
        for _ in range(_ROUNDS):
            gains = (weights * (lacks[there] - lacks[here] - _UNIT * leaves)).sum(dim=0)
            active = active & (gains > 0)
            flow = _moved(leaves & active, there, here, torch.zeros_like(lacks))
            flows = flow[there] - flow[here] - 2  # without its own part of them
            crowd = (weights * leaves * flows).sum(dim=0)
            loss = (crowd.clamp(min=0) * _UNIT).double()
            drawn = torch.rand(len(old), generator=self.generator, device=lacks.device)
            share = drawn * loss / gains.clamp(min=1)
            depth = (share[:, None] <= self.factors).sum(dim=1) * active
            # First those in exactly so many subsets: the first subset holds them all.
            arrived = torch.stack(
                [
                    _moved(leaves & (depth == each + 1), there, here, torch.zeros_like(lacks))
                    for each in range(len(self.factors))
                ]
            )
            arrived = arrived.flip(0).cumsum(dim=0).flip(0)
            changes = view.cell_weights * arrived * (arrived * _UNIT - 2 * lacks)
            least, best = changes.sum(dim=1).min(dim=0)
            goes = (depth > best) & (least < 0)
            lacks -= _UNIT * _moved(leaves & goes, there, here, torch.zeros_like(lacks))
            old = torch.where(goes, new, old)
            here, leaves = torch.where(goes, there, here), leaves & ~goes
            active = active & ~goes
        self.lacks[view.places] = lacks
        num_moved = (old != self.held[axis, block]).sum()
        for level, own in enumerate(self.maps):
            self.held[level * self.maps.shape[1] + axis, block] = own[axis, old]
        return num_moved

    def _proposals(
        self, lacks: Cells, view: _View, row: Places, here: Places, old: Int[Tensor, " particle"]
    ) -> tuple[Int[Tensor, " particle"], Tensor]:
        """An improving code for each particle, drawn by its gain, and which particles have one."""
        cells = row[..., None] + view.maps[:, None]  # (table, particle, code)
        scores = lacks[cells] - _UNIT * (cells != here[..., None])
        scores = (view.weights[:, None, None] * scores).sum(dim=0)
        excess = (scores - scores.gather(1, old[:, None])).clamp(min=0)
        reached = excess.cumsum(dim=1)
        total = reached[:, -1]
        drawn = torch.rand(
            len(old), generator=self.generator, dtype=torch.float64, device=lacks.device
        )
        new = (reached <= (drawn * total).long()[:, None]).sum(dim=1)
        return new.clamp(max=view.maps.shape[1] - 1), total > 0


def _moved(moves: Tensor, there: Places, here: Places, cells: Cells) -> Cells:
    """How many particles each cell gains by these moves, added to ``cells`` in place."""
    steps = moves.long().flatten()
    return cells.index_add_(0, there.flatten(), steps).index_add_(0, here.flatten(), -steps)


def _lacks(table: LevelTable, codes: Int[Tensor, "row particle"]) -> Cells:
    """What a table lacks: target * particles - counts, in units."""
    cells = torch.zeros_like(codes[0])
    for row, size in zip(table.rows, table.values.shape, strict=True):
        cells = cells * size + codes[row]
    goals = np.rint(table.values.ravel() * (codes.shape[1] * _UNIT)).astype(np.int64)
    counts = torch.bincount(cells, minlength=table.values.size)
    return torch.from_numpy(goals).to(codes.device) - _UNIT * counts
