"""Tails: rows thin out beyond the cells that clearly hold some. Public.

Half of a range that ends at a power of two may be empty. Its cells hold only noise, one by one and
in groups, and rows drawn from that noise would lie far from all others: one in a hundred is enough
to ruin a correlation. So beyond the last cells that clearly hold rows, all cells are taken to have
fewer and fewer rows, so many that the tail has room for all rows that noise may hide. Cells that
share a code keep these proportions; how many rows a code has is measured again.
"""

import math

import numpy as np
from scipy.special import ndtri  # pyright: ignore[reportMissingTypeStubs]

from sdv_privpgd.discovery.searching import REST, Blocks
from sdv_privpgd.estimate.noisy_tables import NoisyTable
from sdv_privpgd.estimate.support import outstanding, pooled

_FALSE_ALARMS = 1e-3
"""Neighboring cells, one or many, hold rows if sums as large are so rare where all is noise."""

_LOOKS = 4
"""So many independent sums a cell has, nearly: those of many lengths that end with it overlap."""

_FALL = 1.5
"""The power of the distance with which the rows beyond it fall at least. Above 1 the tail's mean is
finite: a range that was declared a thousand times too wide hardly moves it."""

_NEAR, _SEEN = 2.0, 8.0
"""So they do from this many times the distance of the cells that clearly hold rows; from the second
number on where the tail's own count says that it is not empty, and its cells do not widen."""

_FARTHEST = 1e100
"""No end of a tail counts as farther away than so many times the distance where the tail begins:
powers of it would be lost in float64."""

_LIKELY = 2.0
"""So many standard deviations a tail's count must be for that."""

_LEAST = 1e-9
"""Each cell of a tail has at least this part of the rows of the cell before the tail."""

_NARROW = 8
"""A cell is made for one number, such as 999, if a cell beside it or next to that is so many times
as wide."""

_EVEN = 0.1
"""So many standard deviations each unseen cell of a block has at least: no group is left out."""

_LIGHT = 1e-6
"""The part of all rows that the end of a tail has where it is to share a code."""

_NOISE = 2.0
"""The end of a tail holds at most so many standard deviations of rows."""


def thinned(noisy: NoisyTable, starts: np.ndarray) -> np.ndarray:
    """The number of rows of each cell in order, float64: as counted, or as a tail has them.

    ``starts`` are the smallest numbers of the cells, ascending. Where cells widen, as those of sums
    of money do, each cell far out stands for more than the one before.
    """
    return np.concatenate(_parts(Blocks.alone(noisy), starts))


def with_light_ends(blocks: Blocks, starts: np.ndarray) -> np.ndarray:
    """The same, but that the far ends of tails have hardly any rows, in the same proportions.

    An end holds about as many rows as the noise of a cell. It shares one code
    (``merged_neighbors``), whose rows are measured again: the noise of more codes far out would be
    seen in every mean. Blocks of cells that are known better than the cells say where rows lie
    that are too few in each cell to be seen.
    """
    before, held, after = _parts(blocks, starts)
    rows, most = _LIGHT * held.sum(), _NOISE * float(np.sqrt(blocks.cell))
    return np.concatenate([_light(before[::-1], rows, most)[::-1], held, _light(after, rows, most)])


def _light(tail: np.ndarray, rows: float, most: float) -> np.ndarray:
    """A tail of which all cells that together hold at most ``most`` rows hold ``rows``."""
    is_end = np.cumsum(tail[::-1])[::-1] <= most
    return np.where(is_end, tail * min(1.0, rows / max(tail[is_end].sum(), 1e-300)), tail)


def _parts(blocks: Blocks, starts: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The rows of the cells before those that clearly hold some, of these, and of those after."""
    counts, stddev = blocks.counts, float(np.sqrt(blocks.cell))
    last, high = _with_rest(blocks, *_last_held(blocks))
    first, low = _with_rest(blocks.backwards(), *_last_held(blocks.backwards()))
    first, last = sorted((counts.size - 1 - first, last))  # equal sums may be far apart
    edges = np.append(starts, 2 * starts[-1] - starts[-2:][0]).astype(np.float64)
    inside = slice(first, last + 1)
    seen = outstanding(NoisyTable(counts[inside], blocks.cell))
    held, widths = _held(blocks, inside, seen), np.diff(edges)
    held = _unless_made_for_one(held, seen, widths[inside])
    sums = np.append(0.0, np.cumsum(held))
    median = np.interp(sums[-1] / 2, sums, edges[first : last + 2])
    away = np.abs(edges - median)
    before = _tail(counts[:first][::-1], stddev, low, away[: first + 1][::-1])[::-1]
    after = _tail(counts[last + 1 :], stddev, high, away[last + 1 :])
    unseen = np.zeros(counts.size, dtype=bool)
    before = _unless_made_for_one(before, unseen[:first], widths[:first])
    return before, held, _unless_made_for_one(after, unseen[last + 1 :], widths[last + 1 :])


def _unless_made_for_one(held: np.ndarray, seen: np.ndarray, widths: np.ndarray) -> np.ndarray:
    """The same rows, but those of cells for one number that were not seen are spread evenly.

    Such cells are there in case that many rows share the number. Where none is seen to, a cell has
    as many rows for its width as the widest of those about it.
    """
    found = held.copy()
    for cell in np.flatnonzero(~seen):
        about = np.arange(max(cell - 2, 0), min(cell + 3, held.size))
        widest = about[widths[about].argmax()]
        if widths[cell] * _NARROW <= widths[widest]:
            rows = (found[cell] + found[widest]) * widths[cell] / (widths[cell] + widths[widest])
            found[widest] += found[cell] - rows
            found[cell] = rows
    return found


def _held(blocks: Blocks, cells: slice, seen: np.ndarray) -> np.ndarray:
    """The rows of cells: of those ``seen`` as counted; others share what their block has of them.

    They do in groups of neighbors, as far as these differ by more than noise.
    """
    counts, of_cell = blocks.counts[cells], blocks.of_cell[cells]
    of_cell = of_cell - of_cell[0]
    found = pooled(NoisyTable(counts, blocks.cell), seen)
    if not of_cell[-1]:
        return found
    weak = ~seen
    sums = np.bincount(of_cell, weights=np.where(weak, counts, 0.0))
    known = np.unique(of_cell[weak])
    if known.size:
        sums[known] = pooled(NoisyTable(sums[known], float(blocks.sums.mean())))
    for block in known:
        inside = np.flatnonzero(weak & (of_cell == block))
        share = found[inside] + _EVEN * math.sqrt(blocks.cell)
        found[inside] = sums[block] * share / share.sum()
    return found


def without_tails_of_caps(
    blocks: Blocks, starts: np.ndarray, ends: tuple[int, int]
) -> tuple[int, int]:
    """The ends of a range, less what lies beyond an outermost number that many rows share.

    Such a number is a cap, or a code: no tail begins there, unless more rows are seen beyond it.
    """
    widths = np.append(np.diff(starts), 0.0)
    first = widths.size - 1 - _cap(blocks.backwards(), widths[::-1], widths.size - 1 - ends[0])
    return min(first, ends[1]), max(_cap(blocks, widths, ends[1]), ends[0])


def _cap(blocks: Blocks, widths: np.ndarray, end: int) -> int:
    last, rows = _last_clear(blocks.counts, float(np.sqrt(blocks.cell)))
    after = int(blocks.of_cell[last]) + 1
    is_cap = rows > 0 and last < end and widths[last] * _NARROW <= widths[last + 1 : end + 1].max()
    return last if is_cap and not blocks.stand_out(after, blocks.sums.size, REST) else end


def has_clear(noisy: NoisyTable) -> bool:
    """Whether some neighboring cells clearly hold rows."""
    return _last_clear(noisy.counts, float(np.sqrt(noisy.variance)))[1] > 0


def _last_held(blocks: Blocks) -> tuple[int, float]:
    """The last cell of the last cells or blocks whose sum is clear, and the mean of their cells.

    Rows lie somewhere: where no sum is clear, the blocks count whose sum is clearest.
    """
    last, beside = _last_clear(blocks.counts, float(np.sqrt(blocks.cell)))
    sizes = np.bincount(blocks.of_cell)
    if sizes.size == 1:
        return last, beside
    before = [
        np.append(0.0, np.cumsum(each))
        for each in (np.bincount(blocks.of_cell, weights=blocks.counts), blocks.sums, sizes)
    ]
    starts, ends = np.triu_indices(sizes.size + 1, k=1)
    sums, variances, numbers = (each[ends] - each[starts] for each in before)
    scores = sums / np.sqrt(np.maximum(blocks.variance_of(variances), 1e-300))
    clear = np.flatnonzero(scores > -ndtri(_FALSE_ALARMS / (_LOOKS * sizes.size)))
    if clear.size:
        chosen = clear[np.lexsort((ends[clear], -starts[clear]))[0]]
    elif beside:
        return last, beside
    else:
        chosen = scores.argmax()
    end = int(before[2][ends[chosen]]) - 1
    if beside and end <= last:
        return last, beside
    return end, max(float(sums[chosen] / numbers[chosen]), 0.0)


def _with_rest(blocks: Blocks, last: int, beside: float) -> tuple[int, float]:
    """The last cell that holds rows; of the rest, if all of it together stands out.

    Of one heavy value and a broad tail, no part of the tail may be clear, though the number of all
    rows says that most of them lie in it. It ends where the sum of its blocks is largest.
    """
    first = int(blocks.of_cell[last]) + 1
    sums = np.bincount(blocks.of_cell, weights=blocks.counts)[first:]
    if math.isinf(blocks.whole) or not blocks.stand_out(first, first + sums.size, REST):
        return last, beside
    end = first + int(np.cumsum(sums).argmax())
    cells = np.flatnonzero((blocks.of_cell >= first) & (blocks.of_cell <= end))
    return int(cells[-1]), float(blocks.counts[cells].mean())


def _last_clear(counts: np.ndarray, stddev: float) -> tuple[int, float]:
    """The last of the cells whose sum is clear, and their mean; else the last of all, and 0."""
    sums = np.concatenate([[0.0], np.cumsum(counts)])
    least = stddev * -ndtri(_FALSE_ALARMS / (_LOOKS * counts.size))
    lengths = np.unique(np.rint(2 ** np.arange(0, np.log2(counts.size) + 0.5, 0.5)).astype(int))
    found = []
    for length in lengths[lengths <= counts.size]:
        clear = sums[length:] - sums[:-length] > least * np.sqrt(length)
        if clear.any():
            found.append((int(np.flatnonzero(clear)[-1]), -int(length)))
    if not found:
        return counts.size - 1, 0.0
    start, length = max(found)
    end = start - length
    return end - 1, float((sums[end] - sums[start]) / (end - start))


def _tail(counts: np.ndarray, stddev: float, beside: float, away: np.ndarray) -> np.ndarray:
    """A geometric series that continues from the mean beside it, the nearest cell first.

    Its sum would be what was counted, plus one standard deviation of that. But far out the rows
    beyond a point fall with a power of its distance, which is ``away`` for each edge of the cells.
    """
    if not counts.size:
        return counts
    counted, noise = float(counts.sum()), stddev * float(np.sqrt(counts.size))
    room = max(counted, 0.0) + noise
    falling = (room / (room + beside)) ** np.arange(1, counts.size + 1)
    widths = np.diff(away)
    is_seen = counted > _LIKELY * noise and widths[-1] < 2 * widths[0]
    near = max(float(away[0]), float(away[-1]) / _FARTHEST)
    begin = int(np.searchsorted(away, (_SEEN if is_seen else _NEAR) * near))
    if away[0] > 0 and begin < counts.size:
        held = -np.diff((away[begin:] / near) ** -_FALL)
        falling[begin:] *= held / held[0]
    return beside * np.maximum(falling, _LEAST)
