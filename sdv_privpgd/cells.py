"""The cells of a column: where a value lies, and which value lies where. Public arithmetic.

Every kind of cells answers three questions about arrays: how many cells there are (``len``), in
which cell and where inside it a value lies (``locate``), and which value lies at a position of a
cell (``at``). A position is in [0, 1). ``locate`` of ``at`` gives the same cell for every position.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

BELOW_ONE = np.nextafter(1.0, 0.0)
"""The largest position."""


@dataclass(frozen=True)
class Categories:
    """One cell for each declared value. The arrays hold indices into ``values``.

    With ``has_other`` the last value stands for all that were not declared.
    """

    values: tuple
    has_other: bool = False

    def __len__(self) -> int:
        return len(self.values)

    def locate(self, indices: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The codes, which are the indices, and the middles of the cells."""
        return indices, np.full(indices.shape, 0.5)

    def at(self, codes: np.ndarray, positions: np.ndarray) -> np.ndarray:  # noqa: ARG002
        """The indices, which are the codes: all of a cell is one value."""
        return codes


@dataclass(frozen=True)
class Ticks:
    """Cells of the whole numbers ``first, ..., last``: [first, last + 1) cut equally.

    There are ``num_bins`` cells, or one a number where the numbers are fewer. A number o steps
    above the first of n is in cell floor(o * cells / n); all arithmetic on numbers is exact.
    With ``cuts``, ascending above the first, there is a cell from each of them on instead.
    """

    first: int
    last: int
    num_bins: int
    cuts: tuple[int, ...] = ()

    def __len__(self) -> int:
        if self.cuts:
            return len(self.cuts) + 1
        return min(self.num_bins, self.last - self.first + 1)

    @cached_property
    def starts(self) -> np.ndarray:
        """The first number of each cell, int64."""
        if self.cuts:
            return np.array((self.first, *self.cuts), dtype=np.int64)
        count, cells = self.last - self.first + 1, len(self)
        # Python integers: the products exceed int64. -(-a // b) rounds up.
        return np.array([self.first - (-i * count // cells) for i in range(cells)], dtype=np.int64)

    @cached_property
    def widths(self) -> np.ndarray:
        """How many numbers each cell holds, int64, at least 1."""
        ends = np.append(self.starts[1:] - 1, np.int64(self.last))
        return ends - self.starts + 1

    def locate(self, ticks: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The codes and positions of int64 numbers; those outside go to the nearest inside."""
        ticks = np.clip(ticks, self.first, self.last)
        codes = np.searchsorted(self.starts, ticks, side="right") - 1
        # The middle of the number's share of the cell: rounding cannot reach its neighbors.
        positions = (ticks - self.starts[codes] + 0.5) / self.widths[codes]
        return codes, np.minimum(positions, BELOW_ONE)

    def at(self, codes: np.ndarray, positions: np.ndarray) -> np.ndarray:
        """The int64 numbers: each number of a cell has an equal share of its positions."""
        # Less than the width for every position up to 1 - 2**-53, which takes at least half a unit
        # in the last place off a width that float64 has rounded up by at most that.
        steps = np.floor(positions * self.widths[codes]).astype(np.int64)
        return self.starts[codes] + steps


class _Reals:
    """Cells of real numbers between strictly increasing edges; the last one has its end."""

    @cached_property
    def edges(self) -> np.ndarray:
        """The edges, float64; a single one where all is one number."""
        raise NotImplementedError

    def __len__(self) -> int:
        return max(1, len(self.edges) - 1)

    @cached_property
    def largest(self) -> np.ndarray:
        """The largest float64 number of each cell."""
        return np.append(np.nextafter(self.edges[1:-1], -np.inf), self.edges[-1])

    def locate(self, reals: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The codes and positions of float64 numbers; those outside go to the nearest inside."""
        reals = np.clip(reals, self.edges[0], self.edges[-1])
        codes = np.searchsorted(self.edges[1:-1], reals, side="right")
        starts, widths = self.edges[codes], self._widths[codes]
        positions = np.divide(
            reals - starts, widths, out=np.full(reals.shape, 0.5), where=widths > 0
        )
        return codes, np.minimum(positions, BELOW_ONE)

    def at(self, codes: np.ndarray, positions: np.ndarray) -> np.ndarray:
        """The float64 numbers at the positions of the cells."""
        reals = self.edges[codes] + positions * self._widths[codes]
        return np.clip(reals, self.edges[codes], self.largest[codes])

    @cached_property
    def _widths(self) -> np.ndarray:
        return np.append(self.edges[1:], self.edges[-1])[: len(self)] - self.edges[: len(self)]


@dataclass(frozen=True)
class Interval(_Reals):
    """Cells of equal width of the real numbers from ``low`` to ``high``.

    There are ``num_bins`` cells, or fewer where float64 has no numbers left between two edges.
    With ``cuts``, ascending and inside the range, these are the inner edges instead.
    """

    low: float
    high: float
    num_bins: int
    cuts: tuple[float, ...] = ()

    @cached_property
    def edges(self) -> np.ndarray:
        """The strictly increasing edges, float64; a single one where the range is one number."""
        if self.cuts:
            return np.array((self.low, *self.cuts, self.high))
        inner = np.arange(1, self.num_bins) / self.num_bins
        edges = np.clip(self.low + (self.high - self.low) * inner, self.low, self.high)
        return np.unique(np.concatenate(([self.low], edges, [self.high])))


@dataclass(frozen=True)
class SignedPowers(_Reals):
    """A grid for numbers of which nothing is known: powers of two of both signs, and about zero.

    From 2**-20, below which all is one cell with zero, to 2**62.
    """

    @cached_property
    def edges(self) -> np.ndarray:
        """The strictly increasing edges, float64."""
        powers = 2.0 ** np.arange(-20, 63)
        return np.concatenate((-powers[::-1], powers))
