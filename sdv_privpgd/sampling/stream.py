"""Endless, repeatable sequences of rows from a fitted model, and of their keys."""

import os
import threading
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import cycle, islice
from typing import Any

import numpy as np
import pandas as pd

from sdv_privpgd.columns.dtypes import is_whole
from sdv_privpgd.columns.keys import in_dtype, keys_of
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


@dataclass(kw_only=True)
class KeyStream:
    """Keys in order: the same ones however many are asked for at once.

    Attributes:
        patterns: What each column of keys is written in; ``None`` for whole numbers.
        dtypes: Those of the table that no cell chose.
        repeated: Columns whose patterns begin again where they end.
        taken: How many keys of each column were taken.
    """

    patterns: Mapping[str, str | None] = field(default_factory=dict)
    dtypes: Mapping[str, Any] = field(default_factory=dict)
    repeated: Collection[str] = ()
    taken: int = 0
    _left: Mapping[str, Iterator[Any]] | None = field(default=None, repr=False, compare=False)

    def __getstate__(self) -> dict:
        return {**self.__dict__, "_left": None}

    def restart(self) -> None:
        """Starts the sequence again."""
        with MOVING:
            self.taken, self._left = 0, None

    def take(self, num_rows: int) -> dict[str, pd.Series]:
        """Returns the next keys of each column.

        Raises ``ValueError``, and takes none, where a pattern cannot write as many.
        """
        with MOVING:
            left = self._left or {
                name: islice(
                    (cycle if name in self.repeated else iter)(keys_of(name, pattern)),
                    self.taken,
                    None,
                )
                for name, pattern in self.patterns.items()
            }
            self._left = None  # until as many are there
            found = {name: list(islice(keys, num_rows)) for name, keys in left.items()}
            for name, keys in found.items():
                if len(keys) < num_rows:
                    raise ValueError(
                        f"The key {name!r} has {self.taken + len(keys):,} values in its pattern "
                        f"{self.patterns[name]!r}, and {self.taken:,} of them were taken: it has "
                        f"none for {num_rows:,} more rows. Declare a longer pattern, or call "
                        "reset_sampling."
                    )
            self.taken, self._left = self.taken + num_rows, left
        return {name: self._written(name, keys) for name, keys in found.items()}

    def _written(self, name: str, keys: list[Any]) -> pd.Series:
        dtype = self.dtypes.get(name)
        if self.patterns[name] is None and not (dtype is None or is_whole(dtype)):
            keys = list(map(str, keys))
        return in_dtype(pd.Series(keys, dtype=None if keys else object), dtype)
