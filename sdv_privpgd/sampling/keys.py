"""Keys of sampled rows: an endless or finite sequence of different values. Public."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

import pandas as pd

from sdv_privpgd.columns.dtypes import is_whole
from sdv_privpgd.columns.keys import in_dtype, keys_of
from sdv_privpgd.sampling.stream import MOVING


@dataclass(kw_only=True)
class KeyStream:
    """Keys in order: the same ones however many are asked for at once.

    Attributes:
        patterns: What each column of keys is written in; ``None`` for whole numbers.
        dtypes: Those of the table that no cell chose.
        taken: How many keys of each column were taken.
    """

    patterns: Mapping[str, str | None] = field(default_factory=dict)
    dtypes: Mapping[str, Any] = field(default_factory=dict)
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
                name: islice(keys_of(name, pattern), self.taken, None)
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
        if self.patterns[name] is not None or dtype is None or is_whole(dtype):
            return in_dtype(pd.Series(keys, dtype=None if keys else object), dtype)
        return in_dtype(pd.Series(map(str, keys), dtype=object), dtype)
