"""Tails: rows thin out beyond the cells that clearly hold some. Public.

Half of a range that ends at a power of two may be empty. Its cells hold only noise, one by one and
in groups, and rows drawn from that noise would lie far from all others: one in a hundred is enough
to ruin a correlation. So beyond the last cells that clearly hold rows, all cells are taken to have
fewer and fewer rows, so many that the tail has room for all rows that noise may hide. Cells that
share a code keep these proportions; how many rows a code has is measured again.
"""

import numpy as np

from sdv_privpgd.estimate.noisy_tables import NoisyTable
from sdv_privpgd.estimate.support import pooled

_CLEAR = 4.2
"""Neighboring cells, one or many, hold rows if their sum is this many standard deviations."""

_FALL = 1.5
"""A tail falls at least with this power of the distance: its mean is finite, and no cell of a range
that was declared a thousand times too wide counts as much in it as the one before."""

_LEAST = 1e-9
"""Each cell of a tail has at least this part of the rows of the cell before the tail."""


def thinned(noisy: NoisyTable, starts: np.ndarray) -> np.ndarray:
    """The number of rows of each cell in order, float64: as counted, or as a tail has them.

    ``starts`` are the smallest numbers of the cells, ascending. Where cells widen, as those of sums
    of money do, each cell far out stands for more than the one before.

    >>> counts = np.array([50.0, 30.0, 20.0, 1.0, -1.0, 0.0])
    >>> found = thinned(NoisyTable(counts, variance=1.0), np.arange(6))
    >>> found[:3]
    array([50., 30., 20.])
    >>> bool((np.diff(found[3:]) < 0).all())
    True
    """
    counts, stddev = noisy.counts, float(np.sqrt(noisy.variance))
    last, high = _last_clear(counts, stddev)
    first, low = _last_clear(counts[::-1], stddev)
    first = counts.size - 1 - first
    held = pooled(NoisyTable(counts[first : last + 1], noisy.variance))
    edges = np.append(starts, 2 * starts[-1] - starts[-2:][0]).astype(np.float64)
    sums = np.append(0.0, np.cumsum(held))
    median = np.interp(sums[-1] / 2, sums, edges[first : last + 2])
    # How far from there each cell of a tail begins.
    away = np.abs(edges - median)
    before = _tail(counts[:first][::-1], stddev, low, away[1 : first + 1][::-1])[::-1]
    after = _tail(counts[last + 1 :], stddev, high, away[last + 1 : -1])
    return np.concatenate([before, held, after])


def has_clear(noisy: NoisyTable) -> bool:
    """Whether some neighboring cells clearly hold rows.

    >>> has_clear(NoisyTable(np.array([3.0, 2.0, -3.0]), 1.0))
    False
    """
    return _last_clear(noisy.counts, float(np.sqrt(noisy.variance)))[1] > 0


def _last_clear(counts: np.ndarray, stddev: float) -> tuple[int, float]:
    """The last of the cells whose sum is clear, and their mean; else the last of all, and 0."""
    sums = np.concatenate([[0.0], np.cumsum(counts)])
    lengths = np.unique(np.rint(2 ** np.arange(0, np.log2(counts.size) + 0.5, 0.5)).astype(int))
    found = []
    for length in lengths[lengths <= counts.size]:
        clear = sums[length:] - sums[:-length] > _CLEAR * stddev * np.sqrt(length)
        if clear.any():
            found.append((int(np.flatnonzero(clear)[-1]), -int(length)))
    if not found:
        return counts.size - 1, 0.0
    start, length = max(found)
    end = start - length
    return end - 1, float((sums[end] - sums[start]) / (end - start))


def _tail(counts: np.ndarray, stddev: float, beside: float, away: np.ndarray) -> np.ndarray:
    """A geometric series that continues from the mean beside it, the nearest cell first.

    Its sum would be what was counted, plus one standard deviation of that, if all cells were as
    wide. ``away`` says how far out each begins: rows thin out with the distance, too.
    """
    if not counts.size:
        return counts
    room = max(float(counts.sum()), 0.0) + stddev * np.sqrt(counts.size)
    ratio = room / (room + beside)
    nearer = away[0] / np.maximum(away, away[0]) if away[0] > 0 else np.ones_like(away)
    falling = ratio ** np.arange(1, counts.size + 1) * nearer**_FALL
    return beside * np.maximum(falling, _LEAST)
