"""An endless, repeatable sequence of rows from a fitted model."""

import os
import threading
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from sdv_privpgd.synthesize.engine import Model

MOVING = threading.RLock()
"""Held while a stream of rows or of generated values moves on: threads get them one after another.

There is one of it, because RDT's generators share NumPy's global state, and so that no pickle and
no copy has one. A fork waits for it: no child finds it held for ever, or a stream between two rows.
"""

if hasattr(os, "register_at_fork"):
    os.register_at_fork(
        before=MOVING.acquire, after_in_parent=MOVING.release, after_in_child=MOVING.release
    )


@dataclass(kw_only=True)
class RowStream:
    """Rows of a model, drawn in blocks: row i is the same however many are asked for at once.

    All state is public: the model, the seed and how many rows were taken. ``repair`` may change the
    codes and positions of a block, using random numbers of the block's own.
    """

    model: Model
    seed: int
    repair: Callable[..., tuple[np.ndarray, np.ndarray, np.ndarray]] | None = None
    taken: int = 0
    _block: tuple[int, np.ndarray, np.ndarray] | None = field(default=None, repr=False)

    def __getstate__(self) -> dict:
        return {**self.__dict__, "_block": None}

    def take(self, num_rows: int) -> tuple[np.ndarray, np.ndarray]:
        """The next rows: codes of shape (row, attribute) and positions in [0, 1) in their cells."""
        size = self.model.block
        codes, positions = [], []
        with MOVING:
            start, stop = self.taken, self.taken + num_rows
            for index in range(start // size, -(-stop // size)):
                block_codes, block_positions = self.block(index)
                part = slice(max(start - index * size, 0), min(stop - index * size, size))
                codes.append(block_codes[part])
                positions.append(block_positions[part])
            self.taken = stop
        if not codes:
            empty = np.empty((0, len(self.model.domain)))
            return empty.astype(np.int64), empty
        return np.concatenate(codes), np.concatenate(positions)

    def block(self, index: int) -> tuple[np.ndarray, np.ndarray]:
        """The block with this index; the last one is cached."""
        if self._block is None or self._block[0] != index:
            rows, inside, repair = np.random.SeedSequence((self.seed, index)).spawn(3)
            codes = self.model.sample(self.model.block, int(rows.generate_state(1)[0]))
            positions = np.random.default_rng(inside).random(codes.shape)
            if self.repair is not None:
                generator = np.random.default_rng(repair)
                codes, positions, _ = self.repair(codes, positions, generator)
            self._block = (index, codes, positions)
        return self._block[1], self._block[2]
