"""The cells of a column: the cell of a value, and the values of a cell. Public arithmetic.

Every kind of cells answers three questions about arrays: how many cells there are (``len``), in
which cell and at which position in it a value lies (``locate``), and which value lies at a position
of a cell (``at``). A position is in [0, 1). ``locate`` of ``at`` gives the same cell for every
position. A range of values, inside ``ends`` or not, covers a part of each cell (``shares``, in [0,
1]), in which ``between`` has the values at positions.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace

import numpy as np

from sdv_privpgd.base import cached_property
from sdv_privpgd.base.domain import FieldsAlone

BELOW_ONE = np.nextafter(1.0, 0.0)
"""The largest position."""


@dataclass(frozen=True)
class Categories(FieldsAlone):
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
        """The indices, which are the codes: a cell holds a single value."""
        return codes

    @property
    def ends(self) -> tuple[int, int]:
        """The first and the last index of the declared values."""
        return 0, len(self) - 1 - self.has_other

    def shares(self, low: int, high: int) -> np.ndarray:
        """1 for the cells in the range, 0 for the others."""
        codes = np.arange(len(self))
        return ((codes >= low) & (codes <= high)).astype(np.float64)

    def between(self, codes: np.ndarray, *others: object) -> np.ndarray:  # noqa: ARG002
        """The indices: a range covers a whole cell or nothing of it."""
        return codes


@dataclass(frozen=True)
class Ticks(FieldsAlone):
    """Cells of the whole numbers ``first, ..., last``: [first, last + 1) cut equally.

    There are ``num_bins`` cells, or one for each number if there are fewer numbers. A number o
    steps above the first of n is in cell floor(o * cells / n); all arithmetic on numbers is exact.
    With ``cuts``, ascending and above the first number, a new cell begins at each of them instead.
    All numbers of a cell are equally likely, unless some are multiples of steps of ``rounding``:
    each of them is likelier by the step's weight, and all are by 1.
    """

    first: int
    last: int
    num_bins: int
    cuts: tuple[int, ...] = ()
    rounding: tuple[tuple[int, float], ...] = ()

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
        """The number of numbers in each cell, int64, at least 1."""
        return np.diff(np.append(self.starts, np.int64(self.last + 1)))

    def locate(self, ticks: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The codes and positions of int64 numbers; those outside go to the nearest inside."""
        ticks = np.clip(ticks, self.first, self.last)
        codes = np.searchsorted(self.starts, ticks, side="right") - 1
        # This is the middle of the number's share of the cell: rounding cannot reach its neighbors.
        below = self._mass(self.starts[codes], ticks - 1) + 0.5 * self._mass(ticks, ticks)
        return codes, np.minimum(below / self.masses[codes], BELOW_ONE)

    def at(self, codes: np.ndarray, positions: np.ndarray) -> np.ndarray:
        """The int64 numbers: each number of a cell has its share of its positions."""
        return self.between(codes, positions, self.first, self.last)

    @property
    def ends(self) -> tuple[int, int]:
        """The first and the last number."""
        return self.first, self.last

    def cut(self, numbers: Collection[int]) -> "Ticks":
        """The same numbers, in cells that begin at these as well, as far as they lie inside."""
        found = {number for number in numbers if self.first < number <= self.last}
        starts = self.starts.tolist()
        return replace(self, cuts=tuple(sorted({*starts[1:], *found}))) if found else self

    def shares(self, low: int, high: int) -> np.ndarray:
        """The share of each cell's numbers that lies in the range."""
        ends = np.minimum(self.starts + self.widths - 1, high)
        return np.maximum(self._mass(np.maximum(self.starts, low), ends), 0) / self.masses

    def between(self, codes: np.ndarray, positions: np.ndarray, low: int, high: int) -> np.ndarray:
        """The numbers at positions of the part of each cell in a range; each has its share."""
        starts = np.maximum(self.starts[codes], low)
        ends = np.minimum(self.starts[codes] + self.widths[codes] - 1, high)
        return self.inside(starts, ends, positions)

    def inside(self, starts: np.ndarray, ends: np.ndarray, positions: np.ndarray) -> np.ndarray:
        """The numbers at positions from starts to ends, whatever the cells are."""
        if not self.rounding:
            # Below the width for every position up to 1 - 2**-53, which takes at least half a unit
            # in the last place off a width that float64 has rounded up by at most that.
            return starts + np.floor(positions * (ends - starts + 1)).astype(np.int64)
        goals, first = positions * self._mass(starts, ends), starts
        while (starts < ends).any():  # the first number that has the position below or in it
            middle = starts + (ends - starts) // 2
            enough = self._mass(first, middle) > goals
            starts, ends = np.where(enough, starts, middle + 1), np.where(enough, middle, ends)
        return ends

    @cached_property
    def masses(self) -> np.ndarray:
        """How likely the numbers of each cell are together, beside one that is no multiple."""
        return self._mass(self.starts, self.starts + self.widths - 1)

    def _mass(self, low: np.ndarray, high: np.ndarray) -> np.ndarray:
        """The same of the numbers from ``low`` to ``high``."""
        multiples = ((high // step - (low - 1) // step) * by for step, by in self.rounding)
        return sum(multiples, high - low + 1)


@dataclass(frozen=True)
class Reals(FieldsAlone):
    """Cells of equal width of the real numbers from ``low`` to ``high``.

    There are ``num_bins`` cells, or fewer if float64 has no numbers left between two edges. With
    ``cuts``, ascending and inside the range, these are the inner edges instead; at ``high`` a cell
    begins that holds this number alone. The last cell includes its end.
    """

    low: float
    high: float
    num_bins: int
    cuts: tuple[float, ...] = ()

    @property
    def starts(self) -> np.ndarray:
        """The first number of each cell, float64."""
        return self.edges[: len(self)]

    def cut(self, numbers: Collection[float]) -> "Reals":
        """The same numbers, in cells that begin at these as well, as far as they lie inside."""
        found = {number for number in numbers if self.low < number < self.high}
        starts = self.starts.tolist()
        return replace(self, cuts=tuple(sorted({*starts[1:], *found}))) if found else self

    @cached_property
    def edges(self) -> np.ndarray:
        """The strictly increasing edges, float64; a single one if the range is one number."""
        if self.cuts:
            last = max(self.high, float(np.nextafter(self.cuts[-1], np.inf)))
            return np.array((self.low, *self.cuts, last))
        inner = np.arange(1, self.num_bins) / self.num_bins
        edges = np.clip(self.low + (self.high - self.low) * inner, self.low, self.high)
        return np.unique(np.concatenate(([self.low], edges, [self.high])))

    def __len__(self) -> int:
        return max(1, len(self.edges) - 1)

    @cached_property
    def largest(self) -> np.ndarray:
        """The largest float64 number of each cell."""
        before = np.nextafter(self.edges[1:], -np.inf)
        if len(before) and before[-1] == self.edges[-2]:  # the last cell is one number
            return before
        return np.append(before[:-1], self.edges[-1])

    def locate(self, reals: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The codes and positions of float64 numbers; those outside go to the nearest inside."""
        reals = np.clip(reals, self.edges[0], self.edges[-1])
        codes = np.searchsorted(self.edges[1:-1], reals, side="right")
        starts, widths = self.edges[codes], self.widths[codes]
        positions = np.divide(
            reals - starts, widths, out=np.full(reals.shape, 0.5), where=widths > 0
        )
        return codes, np.minimum(positions, BELOW_ONE)

    def at(self, codes: np.ndarray, positions: np.ndarray) -> np.ndarray:
        """The float64 numbers at the positions of the cells."""
        reals = self.edges[codes] + positions * self.widths[codes]
        return np.clip(reals, self.edges[codes], self.largest[codes])

    @property
    def ends(self) -> tuple[float, float]:
        """The lowest and the highest number."""
        return float(self.edges[0]), float(self.largest[-1])

    def shares(self, low: float, high: float) -> np.ndarray:
        """The share of each cell's width that lies in the range; 1 for a single number in it."""
        low, high = max(low, self.ends[0]), min(high, self.ends[1])
        if low > high:
            return np.zeros(len(self))
        if low == high:
            return (np.arange(len(self)) == self.locate(np.array([low]))[0]).astype(np.float64)
        high = self.edges[-1] if high == self.ends[1] else high
        overlaps = np.minimum(self.edges[1:], high) - np.maximum(self.edges[:-1], low)
        return np.maximum(overlaps, 0) / self.widths

    def between(
        self, codes: np.ndarray, positions: np.ndarray, low: float, high: float
    ) -> np.ndarray:
        """The numbers at positions of the part of each cell in a range."""
        lows, highs = np.maximum(self.edges[codes], low), np.minimum(self.largest[codes], high)
        return np.minimum(lows + positions * np.maximum(highs - lows, 0), highs)

    @cached_property
    def widths(self) -> np.ndarray:
        """How wide each cell is, float64; 0 for a single number."""
        return np.append(self.edges[1:], self.edges[-1])[: len(self)] - self.edges[: len(self)]

    @property
    def masses(self) -> np.ndarray:
        """How likely the numbers of each cell are together: as its width says."""
        return self.widths


_POWERS = 2.0 ** np.array([-62, -20, 0, 3, 7, 10, 14, 20, 31, 35, 40, 45, 52, 62])

SIGNED_POWERS = Reals(
    float(-_POWERS[-1]),
    float(_POWERS[-1]),
    1,
    tuple(np.sort([*-_POWERS[:-1], *_POWERS[:-1], 1800.0, 2100.0]).tolist()),
)
"""Cells for numbers about which nothing is known: between powers of two of both signs, and zero.

Everything smaller than 2**-62 shares one cell with zero. A cell is of years: most columns between
1024 and 4096 are.
"""

_LIGHT = 1e-5
"""Codes with less than this part of the mass stay whole: the noise of another code would cost more
than its values tell."""

HARDLY = 1e-9
"""The part of its code, or of all rows, that a cell has in which none seem to lie but some may."""


@dataclass(frozen=True)
class Merging(FieldsAlone):
    """The code that each cell of a column becomes, from 0 on without gaps, and its share of that.

    Shares follow from how often each cell occurs, in any unit. If no cell of a code has a
    frequency, they are taken to be equally frequent.
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

    def cut(self, of_cell: np.ndarray, widths: np.ndarray) -> "Merging":
        """The same codes of finer cells, which share the rows of ``of_cell`` by their widths."""
        sums = np.bincount(of_cell, weights=widths)[of_cell]
        parts = np.divide(widths, sums, out=np.ones(len(widths)), where=sums > 0)
        often = np.array(self.frequencies)[of_cell] * parts
        codes = np.array(self.codes)[of_cell]
        return Merging(tuple(codes.tolist()), tuple(often.tolist()))

    def apart(self, cell: int) -> "Merging":
        """The same codes, with one of its own for a cell that shares one."""
        codes = np.array(self.codes)
        if (codes == codes[cell]).sum() > 1:
            codes[cell] = codes.max() + 1
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
