"""Rules that single rows obey, in codes: which cells can hold rows that do. Public.

A rule is declared, never learned. What it forbids occurs in no table that obeys it, so noisy tables
may be corrected by it (``possible``), and rows of a model can be repaired.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, combinations
from typing import Protocol

import numpy as np

from sdv_privpgd.base.domain import Clique, Domain
from sdv_privpgd.columns.column import Column
from sdv_privpgd.columns.visits import Visits


class Rule(Protocol):
    """A condition on single rows. Arrays have one entry a row, for each column; they broadcast."""

    @property
    def names(self) -> Clique:
        """The columns that the rule is about."""
        ...

    def allows(self, codes: Mapping[str, np.ndarray]) -> np.ndarray:
        """Marks the rows whose cells can hold values that obey, bool."""
        ...

    def holds(
        self, codes: Mapping[str, np.ndarray], places: Mapping[str, np.ndarray]
    ) -> np.ndarray:
        """Marks the rows that obey with their values at these places of their cells, bool."""
        ...

    def possible(self) -> dict[Clique, np.ndarray]:
        """Marks the cells that can hold rows that obey, for some cliques, bool."""
        ...


class _OfCells:
    """A rule that cells decide: the places in them do not matter."""

    def allows(self, codes: Mapping[str, np.ndarray]) -> np.ndarray:
        """Marks the rows whose cells can hold values that obey, bool."""
        raise NotImplementedError

    def holds(
        self, codes: Mapping[str, np.ndarray], places: Mapping[str, np.ndarray]
    ) -> np.ndarray:
        """Marks the rows that ``allows`` marks."""
        del places
        return self.allows(codes)


@dataclass(frozen=True, eq=False)
class Combinations(_OfCells):
    """Some columns together have one of the listed combinations of codes, shape (entry, column)."""

    names: Clique
    sizes: tuple[int, ...]
    codes: np.ndarray

    def allows(self, codes: Mapping[str, np.ndarray]) -> np.ndarray:
        """Marks the rows whose cells can hold values that obey, bool."""
        rows = np.stack([codes[name] for name in self.names], axis=1)
        _, keys = np.unique(np.concatenate([rows, self.codes]), axis=0, return_inverse=True)
        keys = keys.reshape(-1)
        return np.isin(keys[: len(rows)], keys[len(rows) :])

    def possible(self) -> dict[Clique, np.ndarray]:
        """The listed cells of each pair, and of all columns together."""
        # A table of several columns with more cells than this is represented by its pairs.
        largest = 1 << 22
        axes: list[Iterable[int]] = list(combinations(range(len(self.names)), 2))
        if np.prod(self.sizes, dtype=float) <= largest and len(self.names) != 2:
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

    ``zero`` and ``one`` mark the codes of each column that are these values, bool.
    """

    names: Clique
    zero: tuple[np.ndarray, ...]
    one: tuple[np.ndarray, ...]

    def allows(self, codes: Mapping[str, np.ndarray]) -> np.ndarray:
        """Marks the rows whose cells can hold values that obey, bool."""
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
    """Knows of cells that hold no row."""

    def possible(self) -> dict[Clique, np.ndarray]:
        """Marks the cells that can hold rows, for some cliques, bool."""
        ...


def possible_of(rules: Sequence[Knowing], domain: Domain) -> dict[Clique, np.ndarray]:
    """Marks the cells of some cliques, in the domain's order, that can hold rows that obey."""
    found: dict[Clique, np.ndarray] = {}
    for rule in rules:
        for names, allowed in rule.possible().items():
            order = sorted(range(len(names)), key=lambda axis: domain.axes([names[axis]]))
            clique = tuple(names[axis] for axis in order)
            own = allowed.transpose(order)
            found[clique] = own & found[clique] if clique in found else own
    return found


def groups(rules: Sequence[Rule]) -> list[list[Rule]]:
    """Groups of rules that share columns, directly or through other rules."""
    found: list[list[Rule]] = []
    for rule in rules:
        joined = [each for each in found if any(set(rule.names) & set(o.names) for o in each)]
        found = [each for each in found if each not in joined]
        found.append([*chain.from_iterable(joined), rule])
    return found


def visit_rules(visits: Visits, columns: Sequence[Column]) -> tuple[Rule, ...]:
    """The rules that the added columns obey, as far as the columns are there.

    A first row has no row before it, and a person of one row has no other than a first one.
    """
    known = {column.name: column for column in columns}
    if visits.since not in known:
        return ()
    since, number = known[visits.since], known[visits.number]
    rules: list[Rule] = []
    for name in visits.previous:
        if visits.before(name) in known:
            before = known[visits.before(name)]
            allowed = np.ones((since.size, before.size), dtype=bool)
            allowed[-1, :-1] = False
            rules.append(_rule(since, before, allowed))
    allowed = np.ones((since.size, number.size), dtype=bool)
    allowed[:-1, 0] = False
    return (*rules, _rule(since, number, allowed))


def _rule(one: Column, other: Column, allowed: np.ndarray) -> Rule:
    return Combinations((one.name, other.name), allowed.shape, np.argwhere(allowed))
