"""Rules that single rows obey, in codes: which cells can hold rows that do. Public.

A rule is declared, never learned. What it forbids is true of every table that obeys it, so that
noisy tables may be told (``possible``), and rows of a model can be repaired.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, combinations
from typing import Protocol

import numpy as np

from sdv_privpgd.domain import Clique, Domain

_LARGEST = 1 << 22
"""Cells of a table of several columns above which only its pairs are known."""


class Rule(Protocol):
    """What rows may be. Arrays are of one row an entry, for each column; they broadcast."""

    @property
    def names(self) -> Clique:
        """The columns that it is about."""
        ...

    def allows(self, codes: Mapping[str, np.ndarray]) -> np.ndarray:
        """Which rows' cells hold values that obey, bool."""
        ...

    def holds(
        self, codes: Mapping[str, np.ndarray], places: Mapping[str, np.ndarray]
    ) -> np.ndarray:
        """Which rows obey with their values at these places of their cells, bool."""
        ...

    def possible(self) -> dict[Clique, np.ndarray]:
        """For some cliques which cells can hold rows that obey, bool."""
        ...


class _OfCells:
    """A rule that cells decide: places in them say nothing."""

    def allows(self, codes: Mapping[str, np.ndarray]) -> np.ndarray:
        """Which rows' cells hold values that obey, bool."""
        raise NotImplementedError

    def holds(
        self, codes: Mapping[str, np.ndarray], places: Mapping[str, np.ndarray]
    ) -> np.ndarray:
        """Which rows obey: what ``allows`` says."""
        del places
        return self.allows(codes)


@dataclass(frozen=True, eq=False)
class Combinations(_OfCells):
    """Some columns together have one of the listed combinations of codes, shape (entry, column)."""

    names: Clique
    sizes: tuple[int, ...]
    codes: np.ndarray

    def allows(self, codes: Mapping[str, np.ndarray]) -> np.ndarray:
        """Which rows' cells hold values that obey, bool."""
        rows = np.stack([codes[name] for name in self.names], axis=1)
        _, keys = np.unique(np.concatenate([rows, self.codes]), axis=0, return_inverse=True)
        keys = keys.reshape(-1)
        return np.isin(keys[: len(rows)], keys[len(rows) :])

    def possible(self) -> dict[Clique, np.ndarray]:
        """The listed cells of each pair, and of all columns together."""
        axes: list[Iterable[int]] = list(combinations(range(len(self.names)), 2))
        if np.prod(self.sizes, dtype=float) <= _LARGEST and len(self.names) != 2:
            axes.append(range(len(self.names)))
        found = {}
        for clique in map(list, axes):
            allowed = np.zeros([self.sizes[axis] for axis in clique], dtype=bool)
            allowed[tuple(self.codes[:, clique].T)] = True
            found[tuple(self.names[axis] for axis in clique)] = allowed
        return found


@dataclass(frozen=True, eq=False)
class OneHot(_OfCells):
    """Exactly one of the columns is 1, and the others are 0.

    ``zero`` and ``one`` say which codes of each column are these values, bool.
    """

    names: Clique
    zero: tuple[np.ndarray, ...]
    one: tuple[np.ndarray, ...]

    def allows(self, codes: Mapping[str, np.ndarray]) -> np.ndarray:
        """Which rows' cells hold values that obey, bool."""
        ones = np.stack([one[codes[name]] for name, one in zip(self.names, self.one, strict=True)])
        zeros = np.stack(
            [zero[codes[name]] for name, zero in zip(self.names, self.zero, strict=True)]
        )
        return (ones | zeros).all(axis=0) & (ones.sum(axis=0) == 1)

    def possible(self) -> dict[Clique, np.ndarray]:
        """The cells of each pair that can hold rows."""
        found = {}
        for i, j in combinations(range(len(self.names)), 2):
            one, zero = self.one, self.zero
            allowed = np.logical_or(
                np.logical_and.outer(one[i], zero[j]), np.logical_and.outer(zero[i], one[j])
            )
            if len(self.names) > 2:
                allowed |= np.logical_and.outer(zero[i], zero[j])
            found[self.names[i], self.names[j]] = allowed
        return found


class Knowing(Protocol):
    """What knows of cells that hold no row."""

    def possible(self) -> dict[Clique, np.ndarray]:
        """For some cliques which cells can hold rows, bool."""
        ...


def possible_of(rules: Sequence[Knowing], domain: Domain) -> dict[Clique, np.ndarray]:
    """For some cliques, in the domain's order, which cells can hold rows that obey, bool."""
    found: dict[Clique, np.ndarray] = {}
    for rule in rules:
        for names, allowed in rule.possible().items():
            order = sorted(range(len(names)), key=lambda axis: domain.axes([names[axis]]))
            clique = tuple(names[axis] for axis in order)
            own = allowed.transpose(order)
            found[clique] = own & found[clique] if clique in found else own
    return found


def groups(rules: Sequence[Rule]) -> list[list[Rule]]:
    """The rules, those together that share columns, directly or through others."""
    found: list[list[Rule]] = []
    for rule in rules:
        joined = [each for each in found if any(set(rule.names) & set(o.names) for o in each)]
        found = [each for each in found if each not in joined]
        found.append([*chain.from_iterable(joined), rule])
    return found
