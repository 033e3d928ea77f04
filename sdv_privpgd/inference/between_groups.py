"""What tables over codes and tables over groups of codes tell together of sums over groups.

A table over groups has noise of one variance in each cell. In the sums of a table over codes it
grows with the numbers of codes in the groups. Where these differ, the effects of such tables are
not orthogonal, so their weighted least squares are solved as one sparse system. Its unknowns are
the effects (analysis of variance) of sets of attributes on groups. The noise in the effect of a set
meets that of another only in a table that holds both, so the system is nearly block-diagonal.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations

import numpy as np
from scipy.sparse import coo_matrix
from scipy.sparse.linalg import SuperLU, splu

from sdv_privpgd.base.domain import Clique
from sdv_privpgd.estimate.noisy_tables import NoisyTable

_FIXED, _UNKNOWN = -2, -1
"""Places of the number of rows where it is public, and of effects that no table holds."""

ROUNDING = 1e-9
"""The part of a functional's square that rounding may leave where nothing is."""


@dataclass(frozen=True)
class Groups:
    """The groups of an attribute's codes: the group of each code, int64, from 0 on without gaps."""

    of_codes: np.ndarray

    @cached_property
    def sizes(self) -> np.ndarray:
        """The number of codes in each group."""
        return np.bincount(self.of_codes)

    @cached_property
    def holds(self) -> np.ndarray:
        """1 for the codes of each group, float64, shape (group, code)."""
        return (np.arange(len(self.sizes))[:, None] == self.of_codes).astype(np.float64)

    @cached_property
    def effects(self) -> np.ndarray:
        """Columns that span the functions of groups: an even share, then orthonormal contrasts."""
        number = len(self.sizes)
        basis, _ = np.linalg.qr(np.column_stack([np.ones(number), np.eye(number)[:, 1:]]))
        basis[:, 0] = 1 / number
        return basis

    def means(self, functions: np.ndarray) -> np.ndarray:
        """The means of functions of the codes over each group, shape (..., group)."""
        return functions @ (self.holds / self.sizes[:, None]).T

    def spread(self, functions: np.ndarray, axis: int = -1) -> np.ndarray:
        """Functions of the codes, on one axis, with their mean over its group in place of each."""
        means = self.means(np.moveaxis(functions, axis, -1))
        return np.moveaxis(means[..., self.of_codes], -1, axis)


class BetweenGroups:
    """The least squares estimate of all sums over groups.

    Args:
        groups: Of each attribute; one group of all codes where no table is over groups of it.
        tables: Over codes. The empty clique has the number of rows.
        grouped: Over the same groups.
    """

    def __init__(
        self,
        groups: Mapping[str, Groups],
        tables: Mapping[Clique, NoisyTable],
        grouped: Mapping[Clique, NoisyTable],
    ) -> None:
        self._groups, self._tables, self._grouped = groups, tables, grouped
        total = tables.get(())
        self._total = float(total.counts) if total is not None and total.variance == 0 else None
        self._positions: dict[Clique, np.ndarray] = {}
        self._size = 0
        for clique in [*tables, *grouped]:
            for degree in range(len(clique) + 1):
                for subset in combinations(clique, degree):
                    self._place(subset)

    def _place(self, subset: Clique) -> None:
        """Gives the effect of a set of attributes its places among the unknowns."""
        shape = tuple(len(self._groups[name].sizes) - 1 for name in subset)
        number = math.prod(shape)
        if subset in self._positions or not number:
            return
        if not subset and self._total is not None:
            self._positions[subset] = np.asarray(_FIXED)
            return
        self._positions[subset] = np.arange(self._size, self._size + number).reshape(shape)
        self._size += number

    def _places(self, clique: Clique) -> np.ndarray:
        """The places of all effects in a clique: one axis an attribute, the even share first."""
        shape = tuple(len(self._groups[name].sizes) for name in clique)
        places = np.full(shape, _UNKNOWN)
        for degree in range(len(clique) + 1):
            for subset in combinations(clique, degree):
                if subset in self._positions:
                    inner = tuple(slice(1, None) if name in subset else 0 for name in clique)
                    places[inner] = self._positions[subset]
        return places.ravel()

    @cached_property
    def _solved(self) -> tuple[SuperLU, np.ndarray] | None:
        """The factors of the normal equations, and the effects; ``None`` if none is unknown."""
        if not self._size:
            return None
        right = np.zeros(self._size)
        rows, columns, entries = [], [], []
        for clique, table in self._tables.items():
            if table.variance == 0:
                continue
            own = [self._groups[name] for name in clique]
            counts, spread = table.counts, np.ones(())
            for axis, each in enumerate(own):
                counts = np.moveaxis(np.tensordot(each.holds, counts, (1, axis)), 0, axis)
                spread = np.multiply.outer(spread, each.sizes)
            design = np.ones((1, 1))
            for each in own:
                design = np.kron(design, each.effects)
            weighted = design.T / (table.variance * spread.ravel())
            places, normal = self._places(clique), weighted @ design
            is_free = places != _FIXED
            free = places[is_free]
            known = np.zeros(len(places)) if self._total is None else (~is_free) * self._total
            right[free] += (weighted @ counts.ravel() - normal @ known)[is_free]
            rows.append(np.repeat(free, len(free)))
            columns.append(np.tile(free, len(free)))
            entries.append(normal[np.ix_(is_free, is_free)].ravel())
        for clique, table in self._grouped.items():
            # The noise of one variance: effects are orthogonal, the contrasts of length 1.
            squares, sums = np.ones(()), table.counts
            for axis, name in enumerate(clique):
                effects = self._groups[name].effects
                sums = np.moveaxis(np.tensordot(effects.T, sums, (1, axis)), 0, axis)
                squares = np.multiply.outer(squares, np.square(effects).sum(axis=0))
            places = self._places(clique)
            free = places[places != _FIXED]
            right[free] += sums.ravel()[places != _FIXED] / table.variance
            rows.append(free)
            columns.append(free)
            entries.append(squares.ravel()[places != _FIXED] / table.variance)
        where = np.concatenate(rows), np.concatenate(columns)
        normal = coo_matrix((np.concatenate(entries), where), shape=(self._size, self._size))
        factors = splu(
            normal.tocsc(),
            permc_spec="MMD_AT_PLUS_A",
            diag_pivot_thresh=0.0,
            options={"SymmetricMode": True},
        )
        return factors, factors.solve(right)

    def answers(
        self, products: Sequence[Mapping[str, np.ndarray]]
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Products of functions of groups, summed over rows: values, covariance, which are known.

        Each is a function of the groups of some attributes; of the others it is 1 everywhere.
        """
        at_once = 64  # right-hand sides that are solved together
        parts = [self._coordinates(product) for product in products]
        known = np.array([_is_known(places, values) for places, values in parts], dtype=bool)
        fixed = 0.0 if self._total is None else self._total
        found = np.array([fixed * values[places == _FIXED].sum() for places, values in parts])
        covariance = np.zeros((len(products), len(products)))
        if self._solved is None:
            return found, covariance, known
        factors, effects = self._solved
        loads = np.zeros((self._size, len(products)))
        for load, (places, values) in zip(loads.T, parts, strict=True):
            load[places[places >= 0]] = values[places >= 0]
        read = np.flatnonzero(loads.any(axis=1))  # few of all effects
        for start in range(0, len(products), at_once):
            block = slice(start, start + at_once)
            covariance[:, block] = loads[read].T @ factors.solve(loads[:, block])[read]
        found += loads[read].T @ effects[read]
        return found, (covariance + covariance.T) / 2, known

    def _coordinates(self, product: Mapping[str, np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
        """The places of the effects that a product of functions reads, and how much of each."""
        clique = tuple(name for name in self._groups if name in product)
        values = np.ones(())
        for name in clique:
            values = np.multiply.outer(values, product[name] @ self._groups[name].effects)
        return self._places(clique), values.ravel()


def _is_known(places: np.ndarray, values: np.ndarray) -> bool:
    """Whether a functional reads nothing of the effects that no table holds."""
    squares = np.square(values)
    return bool(squares[places == _UNKNOWN].sum() <= ROUNDING * squares.sum())
