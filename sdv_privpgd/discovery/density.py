"""Where a column's rows lie, as noisy counts of neighboring cells show it. Public.

One rule says what stands out of the noise. A run of neighboring cells is *clear* if its sum is so
many standard deviations of its noise that noise alone hardly ever has such a run anywhere. Clear
runs say where rows end, which single cells many rows share, and which cells to cut for the next
look. What lies between them is averaged over neighbors that noise does not tell apart, and beyond
them rows thin out: rows drawn from the noise of an empty half would lie far from all others.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.special import ndtr, ndtri  # pyright: ignore[reportMissingTypeStubs]

from sdv_privpgd.base import cached_property
from sdv_privpgd.columns.bins import SIGNED_POWERS, Reals, Ticks
from sdv_privpgd.columns.cuts import USUAL_BINS
from sdv_privpgd.columns.dates import EARLIEST, LATEST
from sdv_privpgd.estimate.noisy_tables import NoisyTable, Total
from sdv_privpgd.estimate.support import outstanding, pooled, simplex_projection

_FALSE_ALARMS = 1e-3
"""A run is clear if noise has one as large in so few tables, at most."""

HINT = 2.0
"""Standard deviations of what is likely no noise, where it is expected: beside clear runs."""

CLEAR = 2 * HINT
"""Those of one count that is no noise."""

_HIDDEN = 0.01
"""A range goes on where noise may hide this part of all rows."""

_FALL = 3.0
"""The power of the distance with which the rows beyond it fall in a tail. Above 1 the tail's mean
is finite: a range that was declared a thousand times too wide hardly moves it."""

LIGHT = 1e-6
"""The part of all rows that the end of a tail has, so that it shares a code, and each cell beside
the largest one at least."""

MANY = 8
"""Two of so many parts of all rows in one cell are worth a closer look, in which each part is cut
into as many; so are fewer that clearly show. A cell is made for one number, such as 999, if another
is so many times as wide."""

_TINIEST = 1e-300
"""Stands for a variance or a sum of zero where it divides."""

_ABOUT_ZERO = float(np.abs(SIGNED_POWERS.edges).min())
"""Smaller numbers are as good as zero beside others: a cell of them stays whole."""

DAY = int(np.timedelta64(1, "D") / np.timedelta64(1, "ns"))
"""Nanoseconds of a day."""


@dataclass(frozen=True, kw_only=True)
class Density:
    """Neighboring cells of a column and their noisy counts, in blocks: cells of earlier looks."""

    # Where each cell begins, and where the last one ends; of dates in nanoseconds.
    edges: np.ndarray
    counts: np.ndarray  # the rows of each cell
    variances: np.ndarray  # those of the cells' noise
    of_cell: np.ndarray  # the block of each cell, ascending without gaps
    sums: np.ndarray  # the variance of each block's sum
    expected: np.ndarray  # how the rows were taken to be spread before, in any unit
    # The variance of what the sum of all blocks missed the number of rows by, if it was made up
    # for; infinite otherwise.
    whole: float = math.inf

    @classmethod
    def of(cls, edges: np.ndarray, noisy: NoisyTable, before: "Density | None" = None) -> "Density":
        """The cells of one answer, made more precise by what was known ``before``.

        Cells and blocks were counted with independent noise. What the sum of a block's cells misses
        is spread evenly over them, by inverse variance.
        """
        size = noisy.counts.size
        variances = np.full(size, noisy.variance)
        if before is None:
            own = {"of_cell": np.arange(size), "sums": variances, "expected": np.ones(size)}
            return cls(edges=edges, counts=noisy.counts, variances=variances, **own)
        block = np.searchsorted(before.edges, edges[:-1], side="right") - 1
        held, of_cell = np.unique(np.clip(block, 0, len(before.counts) - 1), return_inverse=True)
        sizes, noise = np.bincount(of_cell), before.variances[held]
        weights = noisy.variance * sizes / (noisy.variance * sizes + noise)
        missed = before.counts[held] - np.bincount(of_cell, weights=noisy.counts)
        return cls(
            edges=edges,
            counts=noisy.counts + (weights * missed / sizes)[of_cell],
            variances=variances * (1 - weights / sizes)[of_cell],
            of_cell=of_cell,
            sums=weights * noise,
            expected=before.shares(edges),
        )

    def summing_up_to(self, total: Total) -> "Density":
        """The same cells, which together hold about all rows; what they miss, all make up for."""
        whole = float(self.sums.sum()) + total.stddev**2
        gains = self.sums / whole * (total.value - self.counts.sum())
        counts = self.counts + (gains / np.bincount(self.of_cell))[self.of_cell]
        return replace(self, counts=counts, whole=whole)

    def within(self, low: float, high: float) -> "Density":
        """The cells that lie in a range, which they fill."""
        end = max(high, math.nextafter(low, math.inf))
        held = np.flatnonzero((self.edges[1:] > low) & (self.edges[:-1] < end))
        edges = np.clip(self.edges[[*held, held[-1] + 1]].astype(np.float64), low, high)
        edges[[0, -1]] = low, high
        blocks, of_cell = np.unique(self.of_cell[held], return_inverse=True)
        return Density(
            edges=edges,
            counts=self.counts[held],
            variances=self.variances[held],
            of_cell=of_cell,
            sums=self.sums[blocks],
            expected=self.expected[held],
        )

    @cached_property
    def backwards(self) -> "Density":
        """The same cells from the last to the first."""
        kept = ("counts", "variances", "sums", "expected")
        turned: dict[str, Any] = {name: getattr(self, name)[::-1] for name in kept}
        of_cell = self.of_cell[-1] - self.of_cell[::-1]
        return replace(self, edges=-self.edges[::-1], of_cell=of_cell, **turned)

    @cached_property
    def clear(self) -> int:
        """The number of cells up to the last clear run of cells, or of blocks; 0 without any."""
        cells = last_clear(self.counts, self.variances)[1]
        blocks = last_clear(self._block_sums, self.sums, self.whole)[1]
        beyond = blocks and (not cells or self.of_cell[cells - 1] < blocks - 1)
        return self._block_end(blocks) if beyond else cells

    @property
    def begin(self) -> int:
        """The cell where the first clear run begins."""
        return self.counts.size - self.backwards.clear

    @cached_property
    def reach(self) -> int:
        """The number of cells up to the last one that seems to hold rows: all, if none clearly do.

        A tail continues where rows are: from the last clear run on runs are added that are likely
        no noise, or all the rest, if it is. That ends where its sum is largest. Rows are taken to
        be as much less likely as they would make the clear range wider.
        """
        sums, reach = self._block_sums, self.clear
        if not reach:
            return self.counts.size
        first = int(self.of_cell[reach - 1]) + 1
        ends = self.edges[np.searchsorted(self.of_cell, np.arange(sums.size), side="right")]
        wider = np.log(np.maximum(ends / 2 - self.edges[self.begin] / 2, _TINIEST))
        # One cell, such as that of zeros, says nothing of how widely others are spread.
        wider = (wider - wider[first - 1]) * (self.begin + 1 < reach)
        while first < sums.size:
            # The standard deviations of the next one, two, four, ... blocks, and of all the rest.
            rows, variances = (np.cumsum(each[first:]) for each in (sums, self.sums))
            runs = np.append(_lengths(rows.size), rows.size) - 1
            scores = rows[runs] / _deviations(variances[runs], self.whole)
            least = ndtri(ndtr(-HINT) / scores.size) ** 2 + 2 * wider[first + runs]
            hinted = np.flatnonzero(scores > np.sqrt(least))
            if not hinted.size:
                break
            if hinted[0] == scores.size - 1:
                return self._block_end(first + int(rows.argmax()) + 1)
            first += 2 ** int(hinted[0])
            reach = self._block_end(min(first, sums.size))
        return reach

    @property
    def is_capped(self) -> bool:
        """Whether rows end with a number that many share: no tail begins at a cap, or a code.

        It has a code's rows in a narrow cell, more than noise may hide beyond it, and is much
        denser than what is before it.
        """
        rows, noise = (each[self.reach :] for each in self.tail_counts)
        held, edges = self._held(slice(self.reach)), self.edges[: self.reach + 1] / MANY
        shares, widths = held / max(held.sum(), _TINIEST), np.diff(edges)
        return bool(
            (not rows.size or rows[0] + HINT * noise[0] < held[-1])
            and widths[-1] < (edges[-1] - edges[min(self.begin, self.reach)]) / MANY
            and shares[-1] > 1 / USUAL_BINS
            and shares[-1] * widths[-2] > MANY * shares[-2] * widths[-1]
        )

    def end(self, rows: float) -> int:
        """The number of cells up to where a range of so many rows ends.

        It goes on where noise may hide a part of the rows, to the end of a block, but not beyond a
        cap.
        """
        if self.is_capped:
            return self.reach
        counts, noise = self.tail_counts
        needed = np.flatnonzero((counts + HINT * noise)[self.reach :] > _HIDDEN * rows)
        if not needed.size:
            return self.reach
        return self._block_end(int(self.of_cell[self.reach + needed[-1]]) + 1)

    @property
    def finer(self) -> np.ndarray:
        """The edges of the same cells, and of more where rows fall in one."""
        return _cut(self, np.where(self.falls, 2.0, 1.0))

    @property
    def idle(self) -> np.ndarray:
        """The edges of cells for one number that hardly has rows to their wider neighbors.

        Noise in such a cell, and in a code of it, would be many rows of one number. Zero is usual
        enough to keep its own.
        """
        widths = np.append(np.diff(self.edges), 0.0)
        own = np.flatnonzero(self._is_narrow & ~self._is_hinted & ~self._has_zero)
        return self.edges[own + (widths[own + 1] > widths[own - 1])]

    def light_shares(self, edges: np.ndarray) -> np.ndarray:
        """The ``shares`` with light ends."""
        cells = np.clip(np.searchsorted(self.edges, edges[:-1], side="right"), 1, self.counts.size)
        lighter = self.rows(light=True) / np.maximum(self.rows(), _TINIEST)
        return self.shares(edges) * lighter[cells - 1]

    @cached_property
    def tail_counts(self) -> tuple[np.ndarray, np.ndarray]:
        """The rows of each cell and all after it, and the standard deviations of their noise."""
        places, blocks = np.arange(self.counts.size), np.arange(self.sums.size)
        left = np.searchsorted(self.of_cell, blocks, side="right")[self.of_cell] - places
        later = np.cumsum(self.sums[::-1])[::-1] - self.sums
        variances = self._variances_of(places, left) + later[self.of_cell]
        return np.cumsum(self.counts[::-1])[::-1], _deviations(variances, self.whole)

    def _room(self, place: int) -> float:
        """The rows from a cell on, and one standard deviation of their noise."""
        if place == self.counts.size:
            return 0.0
        counts, noise = self.tail_counts
        return max(float(counts[place]), 0.0) + float(noise[place])

    def _variances_of(self, first: np.ndarray, number: np.ndarray) -> np.ndarray:
        """The variances of sums of so many cells of a block, from the first on.

        The better the sum of a block is known, the more the noise of its cells evens out.
        """
        blocks, own = self.of_cell[first], self.variances[first]
        sizes = np.bincount(self.of_cell)[blocks]
        shared = (sizes * own - self.sums[blocks]) / (sizes * np.maximum(sizes - 1, 1))
        return number * own - number * (number - 1) * shared

    def thinned(self) -> "Density":
        """The same cells, but beyond those with rows each is twice as wide as the one before.

        So rows there are hidden by the noise of few counts, and not by that of many.
        """
        far = np.maximum(self._far, self.backwards._far[::-1])  # noqa: SLF001
        is_new = np.append(True, np.diff(self.of_cell) != 0)
        is_block = np.append(True, np.diff(far) != 0) | (is_new & (far < 0))
        cells, blocks = np.flatnonzero(is_block | (far < 0)), np.flatnonzero(is_block)

        def variances(first: np.ndarray) -> np.ndarray:
            parts = np.union1d(first, np.flatnonzero(is_new))
            own = self._variances_of(parts, np.diff(parts, append=far.size))
            return np.add.reduceat(own, np.searchsorted(parts, first))

        return Density(
            edges=self.edges[np.append(cells, far.size)],
            counts=np.add.reduceat(self.counts, cells),
            variances=variances(cells),
            of_cell=np.cumsum(is_block[cells]) - 1,
            sums=variances(blocks),
            expected=np.add.reduceat(self.expected, cells),
        )

    @property
    def _far(self) -> np.ndarray:
        """How often the width of the last cell with rows doubles up to each after it; else -1."""
        edges, reach = self.edges, self.reach
        width = max(edges[reach] - edges[reach - 1], _TINIEST)
        far = np.floor(np.log2(1 + np.maximum(edges[:-1] - edges[reach], 0) / width))
        return np.where(np.arange(far.size) < reach, -1.0, far)

    def shares(self, edges: np.ndarray) -> np.ndarray:
        """The rows between neighboring edges, as they are spread in each cell."""
        held = self.rows()
        before = np.append(0.0, np.cumsum(held))
        knots = [self.knots(cell) for cell in range(held.size)]
        sums = [before[cell] + held[cell] * part for cell, (_, part) in enumerate(knots)]
        places = np.concatenate([place for place, _ in knots])
        return np.diff(np.interp(edges, places, np.concatenate(sums)))

    def knots(self, cell: int) -> tuple[np.ndarray, np.ndarray]:
        """Places in a cell, from its begin to its end, and the parts of its rows before them."""
        low, high = self.edges[cell : cell + 2]
        fall = self.falls[cell]
        if not fall:
            return np.array([low, high]), np.array([0.0, 1.0])
        # The distances double every so many knots.
        doubled = np.arange(0, math.log2(1 + 1 / abs(fall)), 1 / MANY)
        far = np.append(abs(fall) * (2**doubled - 1), 1.0)
        parts = 1 - (1 + far / abs(fall)) ** -_FALL
        parts /= parts[-1]
        if fall < 0:
            far, parts = 1 - far[::-1], 1 - parts[::-1]
        return low + (high - low) * far, parts

    @cached_property
    def falls(self) -> np.ndarray:
        """How fast rows fall in each cell, in its widths, below 0 backwards; 0 if they are even.

        A cell of few rows, many times as wide as a denser neighbor, has them beside it, as a tail.
        """
        widths, held, found = np.diff(self.edges), self.rows(), np.zeros(self.counts.size)
        dense, sums = held / np.maximum(widths, _TINIEST), np.cumsum(held)
        is_zero = (self.edges[:-1] >= -_ABOUT_ZERO) & (self.edges[1:] <= _ABOUT_ZERO)
        reach, begin = self.reach, held.size - self.backwards.reach
        is_beyond = (np.arange(held.size) >= reach) | (np.arange(held.size) < begin)
        least = np.where(is_beyond, 1, MANY)
        sides = ((1, slice(1, None), slice(-1)), (-1, slice(-1), slice(1, None)))
        for (sign, own, beside), outwards in zip(
            sides, (sums[-1] - sums + held, sums), strict=True
        ):
            falls = (widths[own] > least[own] * widths[beside]) & (widths[beside] > 0)
            falls &= ~is_zero[beside]
            falls &= (dense[own] < dense[beside]) & (outwards[own] < sums[-1] / MANY)
            # Where they meet it is less dense than the neighbor is on the whole: means of money of
            # 20,000 rows are .98 of the true ones with this power, and .79 without it.
            part = np.divide(dense[own], dense[beside], out=np.zeros(falls.size), where=falls)
            part **= 2 / 3
            widely = np.clip(_FALL * part / np.maximum(1 - part, _TINIEST), LIGHT, MANY)
            found[own] = np.where(falls, sign * widely, found[own])
        return found

    def rows(self, *, light: bool = False) -> np.ndarray:
        """About how many rows each cell has, float64: as counted, or as a tail has them.

        If it is ``light``, the far ends of tails, with about as many rows as the noise of a cell,
        have hardly any, in the same proportions, and beyond a cap all of them. They share one code
        (``merged_neighbors``), whose rows are measured again: the noise of more codes far out would
        be seen in every mean.
        """
        first, last = self.counts.size - self.backwards.reach, self.reach
        first, last = min(first, last - 1), max(first + 1, last)
        held = self._held(slice(first, last))
        before = self.backwards._room(self.counts.size - first)  # noqa: SLF001
        before = _tail(before, held[::-1], -self.edges[last::-1])
        after = _tail(self._room(last), held, self.edges[first:])
        if light:
            most = max(HINT * float(np.sqrt(self.variances).mean()), held.sum() / USUAL_BINS)
            before = _light(before, held, math.inf if self.backwards.is_capped else most)
            after = _light(after, held, math.inf if self.is_capped else most)
        return np.concatenate([before[::-1], held, after])

    def closer(self, rows: float, alone: Mapping[float, float], stddev: float) -> np.ndarray | None:
        """The edges of the next look; ``None`` if no cell surely has many of the ``rows``.

        Numbers that many rows share ``alone``, with about how many, are not to be spread. A cell is
        cut into at most as many parts as its rows will be standard deviations.
        """
        cells = np.searchsorted(self.edges[1:-1], [*alone], side="right")
        counts = self.counts - np.bincount(cells, [*alone.values()], self.counts.size)
        rows = max(rows - sum(alone.values()), 1.0)
        part = rows / MANY**2
        few = min(2 * rows / MANY, part + CLEAR * stddev)
        is_cut = counts > np.maximum(CLEAR * np.sqrt(self.variances), few)
        is_cut &= (self.edges[:-1] < -_ABOUT_ZERO) | (self.edges[1:] > _ABOUT_ZERO)
        if not is_cut.any():
            return None
        parts = np.where(is_cut, counts / part, 0.0)
        return _cut(self, np.minimum(parts, counts / stddev))

    def fine_edges(self, most: int, stddev: float, *, whole: bool) -> np.ndarray:
        """The edges of about ``most`` cells of equally many rows, and as many as noise can pay for.

        Each part has ``HINT`` standard deviations of rows at least: sums over more parts are
        noisier. Columns of 40 public tables of fewer than 2,000 rows were off by 0.097 where the
        parts were the squares of a cell's deviations, and by 0.087 since (``tests/benchmarks
        many_tables``). Where rows begin and end cells are cut into up to ``MANY``, as long as a
        number that all rows of a cell share would stand out. Cells of ``whole`` numbers are as wide
        as one at least.
        """
        edges, held = self.edges.astype(np.float64), self.rows()
        edges = np.ceil(edges) if whole else edges
        widths = np.diff(edges)
        deviations = held / stddev
        parts = np.minimum(held * most / max(held.sum(), _TINIEST), deviations / HINT)
        for end in (held.size - self.backwards.reach, self.reach):
            beside = slice(max(end - 1, 0), end + 1)
            parts[beside] = np.maximum(parts[beside], np.minimum(MANY, deviations[beside] ** 2))
        parts = np.minimum(parts, widths) if whole else parts
        # The cell about zero stays whole: beside others, numbers so small are as good as zero.
        parts[(edges[:-1] <= 0) & (edges[1:] >= 0) & (widths <= 2 * _ABOUT_ZERO)] = 1
        return _cut(replace(self, edges=edges), parts)

    @property
    def _is_narrow(self) -> np.ndarray:
        """Whether each cell is for one number: one beside it is many times as wide."""
        widths = np.append(np.diff(self.edges), 0.0)
        return np.maximum(widths[1:], np.roll(widths, 1)[:-1]) > MANY * widths[:-1]

    @property
    def _is_hinted(self) -> np.ndarray:
        """Whether each cell is likely to have rows."""
        return self.counts >= HINT * np.sqrt(self.variances)

    @property
    def _has_zero(self) -> np.ndarray:
        return (self.edges[:-1] <= 0) & (self.edges[1:] > 0)

    @property
    def _block_sums(self) -> np.ndarray:
        return np.bincount(self.of_cell, weights=self.counts)

    def _block_end(self, blocks: int) -> int:
        """The number of cells in so many first blocks."""
        return int(np.searchsorted(self.of_cell, blocks))

    def _held(self, inside: slice) -> np.ndarray:
        """The rows of cells: of those that stand out as counted, and others share their block's.

        They do in groups of neighbors that differ by no more than noise, as expected before. A cell
        of zero stands out from a hint on.
        """
        counts, expected = self.counts[inside], self.expected[inside]
        expected = expected + LIGHT * max(float(expected.max()), _TINIEST)
        seen = outstanding(counts, self.variances[inside])
        seen |= (self._is_narrow & self._is_hinted & self._has_zero)[inside]
        found = pooled(counts, self.variances[inside], seen, expected)
        start = self.of_cell[inside][0]
        of_cell, weak = self.of_cell[inside] - start, ~seen
        known = np.unique(of_cell[weak])
        if not of_cell[-1] or not known.size:
            return found
        sums = np.bincount(of_cell, weights=np.where(weak, counts, 0.0))
        shares = np.bincount(of_cell, weights=np.where(weak, expected, 0.0))[known]
        sums[known] = pooled(sums[known], self.sums[start + known], None, shares)
        if self.whole < math.inf and sums[known].sum() > 0:
            missed = max(float(self.counts.sum() - found[seen].sum()), 1.0)
            sums[known] = simplex_projection(sums[known], missed)
        share = found + LIGHT * max(found.max(), _TINIEST) * expected / expected.max()
        of_blocks = np.bincount(of_cell, weights=np.where(weak, share, 0.0))
        return np.where(
            weak, share / np.maximum(of_blocks, _TINIEST)[of_cell] * sums[of_cell], found
        )


@dataclass(frozen=True)
class Grid:
    """Few cells on which a column is searched for its rows if nothing is known of it.

    They are narrow where people's numbers and dates usually lie.
    """

    cells: Reals | Ticks
    edges: np.ndarray  # where they begin and the last one ends, of dates in nanoseconds
    usual: tuple[float, float]  # the ends of where most columns lie: a hint of rows is enough
    rare: tuple[float, float]  # those of where few do. Beyond them rows must be clear

    def held(self, noisy: NoisyTable, total: Total) -> tuple[Density, float, float]:
        """Where rows lie, and the ends of the run of cells with most evidence beyond its price.

        It goes on to all that clearly hold rows, over what is empty. Evidence is the square of the
        standard deviations that a count is; a price is what it takes to believe that rows lie
        there. It falls to nothing in usual cells as long as the run misses two standard deviations
        of the ``total``. Of 300 amounts beside 2,700 zeros, with noise of 83, 152 of 200 ranges
        hold the others, and 116 did while a tenth could be missed. In other cells it falls to a
        quarter where a usual cell, or one nearer to zero, reaches as far and has a hint of rows:
        where it fell in all of them, three times as many ranges reached a thousand times too far
        (``tests/unit/discovery/test_density.py``). Where nothing is clear it is all usual cells.
        """
        density = Density.of(self.edges, noisy)
        if not density.clear:
            return density, *self.usual
        evidence = np.maximum(noisy.counts, 0.0) ** 2 / noisy.variance
        is_usual, is_rare = (
            (self.edges[:-1] >= low) & (self.edges[1:] <= high)
            for low, high in (self.usual, self.rare)
        )
        price = np.where(is_usual, 0.75 * HINT**2, np.where(is_rare, HINT * CLEAR, CLEAR**2))
        near, far = np.sort(np.abs([self.edges[:-1], self.edges[1:]]), axis=0)
        reaches = (far >= near[:, None]) & (is_usual | (near < near[:, None]))
        is_next = (reaches & (evidence >= HINT**2)).any(axis=1)
        least = np.where(is_usual, 0.0, np.where(is_next, 0.25, 1.0))
        first = last = 0
        for part in (1.0, 0.5, 0.25, 0.0):
            paid = np.maximum(part, least) * price
            before = np.append(0.0, np.cumsum(evidence - paid))
            gains = np.triu(before - before[:, None], 1)
            ends = np.unravel_index(gains.argmax(), gains.shape)
            first, last = min(int(ends[0]), density.begin), max(int(ends[1]), density.clear)
            missed = total.value - float(noisy.counts[first:last].sum())
            noise = math.hypot(total.stddev, math.sqrt((last - first) * noisy.variance))
            if missed < HINT * noise:
                break
        return density, float(self.edges[first]), float(self.edges[last])


def _years(*years: int) -> Grid:
    first, last = EARLIEST // DAY + 1, LATEST // DAY - 1  # all of these days can be bounds
    days = np.array([f"{year}-01-01" for year in years], "M8[D]").astype(np.int64).tolist()
    edges = np.array([first, *days, last + 1], dtype=np.float64) * DAY
    usual, rare = ((float(edges[end]), float(edges[-1 - end])) for end in (2, 1))
    return Grid(Ticks(first, last, 1, tuple(days)), edges, usual, rare)


POWERS = Grid(SIGNED_POWERS, SIGNED_POWERS.edges, (-(2.0**-20), 2.0**20), (-(2.0**31), 2.0**31))
"""The grid of numbers: some powers of two of both signs, a cell about zero, and one of years."""

YEARS = _years(1900, 1920, 1940, 1960, 1980, 2000, 2010, 2020, 2030, 2040)
"""The grid of dates: decades from 1900 to 2039, and longer times before and after."""


def last_clear(
    counts: np.ndarray, variances: np.ndarray, whole: float = math.inf
) -> tuple[int, int]:
    """Where the clear run of cells that begins last begins and ends, the shortest; else 0 and 0."""
    sums, noise = (np.append(0.0, np.cumsum(each)) for each in (counts, variances))
    least = clear_from(counts.size)
    found = []
    for length in _lengths(counts.size):
        deviations = _deviations(noise[length:] - noise[:-length], whole)
        clear = np.flatnonzero((sums[length:] - sums[:-length]) > least * deviations)
        if clear.size:
            found.append((int(clear[-1]), -int(length)))
    if not found:
        return 0, 0
    start, length = max(found)
    runs = slice(start + 1, start - length + 1)  # it ends as soon as it is clear
    deviations = _deviations(noise[runs] - noise[start], whole)
    return start, start + 1 + int((sums[runs] - sums[start] > least * deviations).argmax())


def clear_from(size: int) -> float:
    """How many standard deviations a sum among so many cells is clear from."""
    return float(-ndtri(_FALSE_ALARMS / (2 * size)))


def _lengths(size: int) -> np.ndarray:
    """1, 2, 4, ... up to ``size``."""
    return 2 ** np.arange(int(math.log2(max(size, 1))) + 1)


def _deviations(variances: np.ndarray, whole: float) -> np.ndarray:
    """The standard deviations of sums of which the own variances are so large."""
    return np.sqrt(np.maximum(variances * (1 - variances / whole), _TINIEST))


def _cut(density: Density, parts: np.ndarray) -> np.ndarray:
    """The edges of cells of which each is cut into about so many parts of equally many rows.

    Where rows fall in a cell, it is cut at distances that double as well.
    """
    found = [density.edges]
    for cell, number in enumerate(np.maximum(np.ceil(parts), 1).astype(int).tolist()):
        places, before = density.knots(cell)
        if places.size == 2:
            found.append(np.linspace(places[0], places[1], number, endpoint=False))
        elif number > 1:
            found.append(np.interp(np.arange(1, number) / number, before, places))
            found.append((places if density.falls[cell] > 0 else places[::-1])[MANY:-1:MANY])
    return np.unique(np.concatenate(found))


def _tail(room: float, held: np.ndarray, edges: np.ndarray) -> np.ndarray:
    """The rows of cells beyond those that are ``held``, the nearest cell first: ``room`` together.

    They begin as dense as the outermost part of the held rows, and fall as those do: with a power
    of the distance (generalized Pareto), of which half, a quarter and an eighth of them tell
    (Pickands 1975). ``edges`` ascend from the first held cell to the last cell of the tail.
    """
    end, sums = edges[held.size], np.cumsum(held[::-1])
    places = np.interp(sums[-1] / np.array([2, 4, MANY]), sums, edges[: held.size][::-1])
    near, far = np.log2(np.maximum(np.diff(places), _TINIEST))
    power = min(max(float(far - near), LIGHT), 1 / _FALL)
    scale = max(room * (end - places[-1]) * MANY / max(sums[-1], _TINIEST), _TINIEST)
    left = room * (1 + power * (edges[held.size :] - end) / scale) ** (-1 / power)
    return np.maximum(-np.diff(left), LIGHT**2 * held.max())


def _light(tail: np.ndarray, held: np.ndarray, most: float) -> np.ndarray:
    """A tail whose end, of so many rows at ``most``, hardly has any."""
    is_end = np.cumsum(tail[::-1])[::-1] <= most
    light = LIGHT * held.sum()
    return np.where(is_end, tail * min(1.0, light / max(tail[is_end].sum(), _TINIEST)), tail)
