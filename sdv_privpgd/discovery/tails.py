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

_LEAST = 1e-9
"""Each cell of a tail has at least this part of the rows of the cell before the tail."""


def thinned(noisy: NoisyTable) -> np.ndarray:
    """The number of rows of each cell in order, float64: as counted, or as a tail has them.

    >>> counts = np.array([50.0, 30.0, 20.0, 1.0, -1.0, 0.0])
    >>> found = thinned(NoisyTable(counts, variance=1.0))
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
    before = _tail(counts[:first], stddev, low)[::-1]
    return np.concatenate([before, held, _tail(counts[last + 1 :], stddev, high)])


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


def _tail(counts: np.ndarray, stddev: float, beside: float) -> np.ndarray:
    """A geometric series that continues from the mean beside it, the nearest cell first.

    Its sum would be what was counted, plus one standard deviation of that.
    """
    room = max(float(counts.sum()), 0.0) + stddev * np.sqrt(counts.size)
    ratio = room / (room + beside) if counts.size else 0.0
    return beside * np.maximum(ratio ** np.arange(1, counts.size + 1), _LEAST)
