"""The search for a column's rows, by noisy counts on a coarse and a fine grid. Public.

The coarse grid shows which groups of cells hold rows, the fine one where the rows end. If the noise
does not tell two ranges apart, the wider one is taken.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from sdv_privpgd.estimate.noisy_tables import NoisyTable, Total

_CREDIBLE = 0.9
"""The probability that each end of a range must have, among the sets of groups that may hold all
rows."""

_ALONE = 2.0
"""A group takes this many times the evidence if no group beside it holds rows: tails are
continuous."""

_CLEAR = 4.0
"""A column is found, rather than guessed, if its rows are this many standard deviations."""

_CODE = 9.0
"""Nats of evidence that it takes to believe that a code holds rows. Noise alone has them in one
column of thousands. With 3 it had them in one of 25, whose whole numbers became fractions."""

_HINTED = 1.5
"""Blocks after the last one that clearly holds rows are added, in runs of one, two or four, if
their sum is this many standard deviations: a tail continues where rows are, not far away."""

REST = 2.5
"""The next block is added as well if all that follow have together this many standard deviations
of rows: of one heavy value and a broad tail, each block of the tail is little beside its noise."""

_NEGLIGIBLE, _SURE, _SEEN = 0.01, 2.0, 3.0
"""Cells of the last block are left out if, by 2 standard deviations, they surely hold less than
a hundredth of all rows. Cells whose sum is 3 standard deviations are kept."""


@dataclass(frozen=True)
class Stretch:
    """The first and the last cell that may hold rows, and whether there clearly were any."""

    first: int
    last: int
    is_clear: bool


@dataclass(frozen=True)
class Blocks:
    """Counts of neighboring cells whose sums over blocks are known better than the cells.

    Attributes:
        counts: The counts of the cells.
        of_cell: The block of each cell, ascending without gaps.
        cell: The variance of a cell's noise.
        sums: The variance of each block's sum.
        whole: The variance of what the sum of all blocks missed the number of rows by, if it was
            made up for; infinite otherwise.
    """

    counts: np.ndarray
    of_cell: np.ndarray
    cell: float
    sums: np.ndarray
    whole: float = math.inf

    @classmethod
    def alone(cls, fine: NoisyTable) -> "Blocks":
        """Cells without blocks that are known better: all cells are in one block."""
        size = fine.counts.size
        sums = np.array([fine.variance * size])
        return cls(fine.counts, np.zeros(size, dtype=np.int64), fine.variance, sums)

    @classmethod
    def combined(
        cls, fine: NoisyTable, coarse: np.ndarray, noise: np.ndarray | float, of_cell: np.ndarray
    ) -> "Blocks":
        """Cells and blocks that were counted separately, with independent noise.

        ``coarse`` are the blocks' counts, and ``noise`` is their variance.
        """
        sizes = np.bincount(of_cell)
        variances = fine.variance * sizes
        missed = coarse - np.bincount(of_cell, weights=fine.counts)
        # By inverse variance; a block's gain or loss is spread evenly over its cells.
        weights = variances / (variances + noise)
        counts = fine.counts + (weights * missed / sizes)[of_cell]
        return cls(counts, of_cell, fine.variance, weights * noise)

    def summing_up_to(self, total: Total) -> "Blocks":
        """The same cells, which together hold about all rows; what they miss, all make up for.

        So the sum of many is known as well as that of the few others.
        """
        whole = float(self.sums.sum()) + total.stddev**2
        gains = self.sums / whole * (total.value - self.counts.sum())
        counts = self.counts + (gains / np.bincount(self.of_cell))[self.of_cell]
        return replace(self, counts=counts, whole=whole)

    def variance_of(self, variances: np.ndarray) -> np.ndarray:
        """The variance of the sum of blocks whose own variances add up to ``variances``."""
        return variances * (1 - variances / self.whole)

    def stand_out(self, first: int, end: int, deviations: float) -> bool:
        """Whether the blocks from ``first`` to before ``end`` have so many rows together."""
        cells = (self.of_cell >= first) & (self.of_cell < end)
        variance = self.variance_of(self.sums[first:end].sum())
        return bool(self.counts[cells].sum() > deviations * math.sqrt(max(variance, 0.0)))

    def backwards(self) -> "Blocks":
        """The same cells from the last to the first."""
        of_cell = self.of_cell[-1] - self.of_cell[::-1]
        return replace(self, counts=self.counts[::-1], of_cell=of_cell, sums=self.sums[::-1])


def searched(
    coarse: NoisyTable,
    fine: NoisyTable,
    total: float,
    *,
    groups: Sequence[int],
    dearness: Sequence[float],
) -> Stretch:
    """Finds the cells of the fine grid that may hold rows.

    Args:
        coarse: A count of each group.
        fine: A count of each cell, of the same rows.
        total: The approximate number of these rows.
        groups: The group of each cell, ascending without gaps.
        dearness: The evidence that it takes to believe that a group holds rows, in nats.
    """
    of_cell = np.asarray(groups)
    ends = _credible(coarse, total, np.asarray(dearness))
    inside = np.flatnonzero((of_cell >= ends[0]) & (of_cell <= ends[1]))
    counts = Blocks.combined(fine, coarse.counts, coarse.variance, of_cell).counts[inside]
    first, last = trimmed(Blocks.alone(NoisyTable(counts, fine.variance)), total)
    held = coarse.counts[ends[0] : ends[1] + 1]
    is_clear = held.sum() > _CLEAR * math.sqrt(coarse.variance * held.size)
    return Stretch(int(inside[first]), int(inside[last]), bool(is_clear))


def likeliest_end(noisy: NoisyTable, total: float) -> tuple[int, bool]:
    """The last code that most likely holds rows, and whether there clearly were any rows."""
    sets = _sets(noisy.counts.size)
    best = sets[_evidence(noisy, total, sets, np.full(noisy.counts.size, _CODE)).argmax()]
    return int(np.flatnonzero(best)[-1]), total > _CLEAR * math.sqrt(noisy.variance)


def trimmed(blocks: Blocks, total: float) -> tuple[int, int]:
    """The first and the last cell that matter, for ``total`` rows."""
    ends = blocks.counts.size - 1 - _end(blocks.backwards(), total), _end(blocks, total)
    return min(ends), max(ends)  # if all is noise, each end may lie beyond the other


def _end(blocks: Blocks, total: float) -> int:
    """The last cell that matters, at least 0: a block's last, less cells that surely do not."""
    cells = np.flatnonzero(blocks.of_cell == _last_block(blocks))
    counts = blocks.counts[: cells[-1] + 1]
    noise = np.sqrt(blocks.cell * np.arange(counts.size - 1, 0, -1))
    needed = np.flatnonzero(_after(counts) + _SURE * noise > _NEGLIGIBLE * total)
    last = max(int(needed[-1]) + 1 if needed.size else 0, int(cells[0]) - 1)
    surplus = np.cumsum(blocks.counts[last + 1 :])
    surplus -= _SEEN * np.sqrt(blocks.cell * np.arange(1, surplus.size + 1))
    return last + 1 + int(surplus.argmax()) if (surplus > 0).any() else last


def _last_block(blocks: Blocks) -> int:
    """The last block that seems to hold rows; the last of all if none clearly does."""
    sums = np.bincount(blocks.of_cell, weights=blocks.counts)
    clear = np.flatnonzero(sums > _SEEN * np.sqrt(blocks.variance_of(blocks.sums)))
    if not clear.size:
        return sums.size - 1

    last = int(clear[-1])
    while last < sums.size - 1:
        following, left = last + 1, sums.size - 1 - last
        runs = [run for run in (1, 2, 4) if run <= left]
        hinted = [run for run in runs if blocks.stand_out(following, following + run, _HINTED)]
        if not hinted and not blocks.stand_out(following, sums.size, REST):
            break
        last += hinted[0] if hinted else 1
    return last


def _after(numbers: np.ndarray) -> np.ndarray:
    """The sum of everything after each number but the last."""
    return np.cumsum(numbers[:0:-1])[::-1]


def _credible(coarse: NoisyTable, total: float, dearness: np.ndarray) -> tuple[int, int]:
    """The groups between which all rows lie, each end with the probability that is required.

    Sets of groups are weighted by how well the counts fit rows that lie in these groups alone.
    """
    size = coarse.counts.size
    sets = _sets(size)
    beside = np.zeros_like(sets)
    beside[:, 1:] |= sets[:, :-1]
    beside[:, :-1] |= sets[:, 1:]
    scores = _evidence(coarse, total, sets, dearness * np.where(beside, 1.0, _ALONE))
    weights = np.exp(scores - scores.max())
    firsts = np.bincount(sets.argmax(axis=1), weights=weights, minlength=size)
    lasts = np.bincount(size - 1 - sets[:, ::-1].argmax(axis=1), weights=weights, minlength=size)
    first = np.flatnonzero(np.cumsum(firsts) > (1 - _CREDIBLE) * firsts.sum())[0]
    last = np.flatnonzero(np.cumsum(lasts) >= _CREDIBLE * lasts.sum())[0]
    return int(first), int(last)


def _sets(size: int) -> np.ndarray:
    """All sets of codes but the empty one, bool, one a row."""
    return (np.arange(1, 2**size)[:, None] >> np.arange(size)) % 2 == 1


def _evidence(
    noisy: NoisyTable, total: float, sets: np.ndarray, dearness: np.ndarray
) -> np.ndarray:
    """The fit of counts to rows that all lie in a set of codes, in nats, for each set.

    The best fit is the nearest counts that are not negative and sum to ``total``: the set's codes
    minus one threshold, or 0 (Held, Wolfe & Crowder 1974).
    """
    counts = np.where(sets, noisy.counts, -np.inf)
    descending = -np.sort(-counts, axis=1)
    held = np.isfinite(descending)
    sums = np.cumsum(np.where(held, descending, 0.0), axis=1)
    thresholds = (sums - total) / np.arange(1, counts.shape[1] + 1)
    places = counts.shape[1] - 1 - (held & (descending > thresholds))[:, ::-1].argmax(axis=1)
    threshold = np.take_along_axis(thresholds, places[:, None], axis=1)
    apart = noisy.counts - np.maximum(counts - threshold, 0.0)
    nats = np.square(apart).sum(axis=1) / (2 * noisy.variance)
    return -nats - np.where(sets, dearness, 0.0).sum(axis=1)
