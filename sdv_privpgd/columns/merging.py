"""Cells that share a code, and how often each of them occurs in it: both are public.

A column of many values, or of values on a fine grid, would make tables too large. Its cells are
merged, and values are drawn from a merged cell with the frequencies that are publicly known:
declared, or found by discovery.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from sdv_privpgd.base.domain import FieldsAlone
from sdv_privpgd.columns.bins import BELOW_ONE

_LIGHT = 1e-5
"""Codes with less than this part of the mass stay whole: the noise of another code would cost more
than its values tell."""

HARDLY = 1e-9
"""The part of its code, or of all rows, that a cell has in which none seem to lie but some may."""


@dataclass(frozen=True)
class Merging(FieldsAlone):
    """The code that each cell of a column becomes, and the cell's share of that code.

    Attributes:
        codes: The code of each cell, from 0 on without gaps.
        frequencies: How often each cell occurs, in any unit. If no cell of a code has a frequency,
            they are taken to be equally frequent.
    """

    codes: tuple[int, ...]
    frequencies: tuple[float, ...]

    def __len__(self) -> int:
        return max(self.codes) + 1

    def locate(self, cells: np.ndarray, positions: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The codes of cells, and positions in the codes for positions in the cells."""
        places = self._rank[cells]
        inside = self._starts[places] + positions * self._shares[places]
        return np.asarray(self.codes)[cells], np.clip(inside, 0.0, BELOW_ONE)

    def at(self, codes: np.ndarray, positions: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The cells at positions in codes, and the positions in the cells."""
        held = np.flatnonzero(self._shares)
        edges = self._sorted_codes[held] + self._starts[held]
        # The sum of a large code and a position near 1 could round up to the next code.
        reached = np.minimum(codes + positions, np.nextafter(codes + 1.0, 0.0))
        found = np.searchsorted(edges, reached, side="right") - 1
        shares = self._shares[held[found]]
        # A cell that is alone in its code keeps the code's positions, to the last bit.
        inside = np.where(shares == 1, positions, (reached - edges[found]) / shares)
        return self._order[held[found]], np.clip(inside, 0.0, BELOW_ONE)

    def split(self, cell: int) -> "Merging":
        """The codes of merged neighbors, with a cut: no code reaches over the start of ``cell``."""
        codes = np.array(self.codes)
        codes[cell:] += codes[cell] == codes[cell - 1]
        return replace(self, codes=tuple(codes.tolist()))

    def covered(self, shares: np.ndarray) -> np.ndarray:
        """The share of each code that is covered, given the covered share of each cell."""
        return np.bincount(self.codes, weights=self.narrowed(shares).frequencies)

    def narrowed(self, shares: np.ndarray) -> "Merging":
        """The same codes with these shares of the cells. Cells that never occur count a little."""
        frequencies = (self._shares[self._rank] + HARDLY) * shares
        return replace(self, frequencies=tuple(frequencies.tolist()))

    # In the properties below the cells are in the order of their codes.

    @cached_property
    def _order(self) -> np.ndarray:
        return np.argsort(self.codes, kind="stable")

    @cached_property
    def _rank(self) -> np.ndarray:
        return np.argsort(self._order)

    @cached_property
    def _sorted_codes(self) -> np.ndarray:
        return np.asarray(self.codes)[self._order]

    @cached_property
    def _shares(self) -> np.ndarray:
        """The share of its code that each cell has."""
        codes = self._sorted_codes
        frequencies = np.asarray(self.frequencies, dtype=np.float64)[self._order]
        held = np.bincount(codes, weights=frequencies)[codes] > 0
        frequencies = np.where(held, frequencies, 1.0)
        return frequencies / np.bincount(codes, weights=frequencies)[codes]

    @cached_property
    def _starts(self) -> np.ndarray:
        """The position at which each cell begins in its code; 0 for the first with a share."""
        before = np.concatenate(([0.0], np.cumsum(self._shares)[:-1]))
        firsts = np.searchsorted(self._sorted_codes, self._sorted_codes)
        return np.clip(before - before[firsts], 0.0, 1.0)


def merged_neighbors(frequencies: Sequence[float], most: int) -> Merging:
    """Merges neighboring cells into at most ``most`` codes.

    A code forgets where in it a row lies, except for the frequencies. So the code that forgets
    most, by its mass times its number of cells minus one, is cut in two where the cut saves most,
    again and again. Both ends that have hardly any mass are apart from the first: what is near them
    says nothing of how many rows they have.
    """
    sums = np.concatenate(([0.0], np.cumsum(frequencies)))
    edges = np.array([0, len(frequencies)])
    if most > 2:
        light = _LIGHT * sums[-1]
        ends = np.searchsorted(sums, light, "right") - 1, np.searchsorted(sums, sums[-1] - light)
        edges = np.union1d(edges, ends)
    while edges.size <= min(most, len(frequencies)):
        lengths, masses = np.diff(edges), np.diff(sums[edges])
        # Among codes without any mass the longest is cut.
        longest = np.lexsort((lengths, masses * (lengths - 1)))[-1]
        if masses[longest] < _LIGHT * sums[-1]:
            break
        start, end = edges[longest : longest + 2].tolist()
        cuts = np.arange(start + 1, end)
        left = (sums[cuts] - sums[start]) * (cuts - start - 1)
        right = (sums[end] - sums[cuts]) * (end - cuts - 1)
        edges = np.insert(edges, longest + 1, cuts[(left + right).argmin()])
    codes = np.repeat(np.arange(edges.size - 1), np.diff(edges))
    return Merging(tuple(codes.tolist()), tuple(frequencies))


def merged_rare(frequencies: Sequence[float], most: int) -> Merging:
    """Gives the ``most`` - 1 most frequent cells a code each, in order; the others share the last.

    Among equally frequent cells the first are kept.
    """
    kept = np.sort(np.argsort(-np.asarray(frequencies), kind="stable")[: most - 1])
    codes = np.full(len(frequencies), kept.size)
    codes[kept] = np.arange(kept.size)
    return Merging(tuple(codes.tolist()), tuple(frequencies))
