"""Relaxed rows of numbers and categories: each has a place for a number, and shares of codes."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from sdv_privpgd.base.domain import Clique, Domain
from sdv_privpgd.synthesize.graphical import allotted


@dataclass(frozen=True, kw_only=True, eq=False)
class MixedRows:
    """Equally likely relaxed rows, in each of which the attributes are independent. Public.

    Attributes:
        domain: The attributes of its rows and their numbers of codes.
        numbers: The attributes of which a relaxed row has one place, in the domain's order.
        missing: For each of them the share of missing in each relaxed row, (row, number), float32;
            the last code is missing's, where there is one.
        nullable: For each of them whether there is one.
        values: Where a number lies among its codes, 0 where the first one begins and 1 where the
            last one ends, (row, number), float32.
        shares: The shares of all codes of the other attributes, in order, (row, code), float32.
    """

    domain: Domain
    numbers: tuple[str, ...]
    nullable: tuple[bool, ...]
    missing: np.ndarray
    values: np.ndarray
    shares: np.ndarray

    def __post_init__(self) -> None:
        rows, others = len(self.values), sum(self.domain.shape(self.categories))
        expected = {
            "values": (rows, len(self.numbers)),
            "missing": (rows, len(self.numbers)),
            "shares": (rows, others),
        }
        for name, shape in expected.items():
            if getattr(self, name).shape != shape or not rows:
                raise ValueError(f"{name} needs shape {shape}, got {getattr(self, name).shape}.")
            getattr(self, name).setflags(write=False)

    @property
    def categories(self) -> tuple[str, ...]:
        """The other attributes, in order."""
        return tuple(name for name in self.domain.attributes if name not in self.numbers)

    @property
    def block(self) -> int:
        """The number of relaxed rows; a sample of so many rows uses each of them once."""
        return len(self.values)

    def marginal(self, clique: Clique) -> np.ndarray:
        """The probabilities of a clique's cells, axes in the clique's order."""
        *others, last = (self._of(name) for name in clique)
        cells = np.ones((self.block, 1))
        for own in others:
            cells = (cells[:, :, None] * own[:, None, :]).reshape(len(cells), -1)
        return (cells.T @ last).reshape(self.domain.shape(clique)) / self.block

    def sample(self, num_rows: int, seed: int) -> np.ndarray:
        """Codes of shape (row, attribute), int64. The same seed gives the same rows.

        Relaxed rows are dealt like decks of cards. Among the rows of one of them each category gets
        its share, rounded up or down, and all numbers are its own.
        """
        if num_rows < 0:
            raise ValueError(f"num_rows must be at least 0, got {num_rows!r}.")
        rng = np.random.default_rng(seed)
        decks = [rng.permutation(self.block) for _ in range(-(-num_rows // self.block))]
        given = np.concatenate([np.empty(0, dtype=np.int64), *decks])[:num_rows]
        codes = np.zeros((num_rows, len(self.domain)), dtype=np.int64)
        for axis, name in enumerate(self.domain.attributes):
            if name not in self.numbers:
                codes[:, axis] = allotted(self._of(name), given, rng)
                continue
            place = self.numbers.index(name)
            codes[:, axis] = self._codes(place)[given]
            if self.nullable[place]:
                share = self.missing[:, place].astype(np.float64)
                is_missing = allotted(np.stack([1 - share, share], axis=1), given, rng) == 1
                codes[is_missing, axis] = self.domain.sizes[axis] - 1
        return codes

    def _codes(self, place: int) -> np.ndarray:
        """The code of each relaxed row's number where it is not missing."""
        size = self.domain.size((self.numbers[place],)) - self.nullable[place]
        codes = np.floor(self.values[:, place].astype(np.float64) * size)
        return np.clip(codes, 0, size - 1).astype(np.int64)

    def _of(self, name: str) -> np.ndarray:
        """An attribute's probabilities in each relaxed row, float64, which sum to 1."""
        size = self.domain.size((name,))
        if name in self.numbers:
            place = self.numbers.index(name)
            found = np.zeros((self.block, size))
            share = self.missing[:, place] if self.nullable[place] else np.zeros(self.block)
            found[np.arange(self.block), self._codes(place)] = 1 - share
            found[:, -1] += share
            return found
        first = sum(self.domain.shape(_before(name, self.categories)))
        own = self.shares[:, first : first + size].astype(np.float64)
        return own / own.sum(axis=1, keepdims=True)


def _before(name: str, names: Sequence[str]) -> Sequence[str]:
    return names[: names.index(name)]
