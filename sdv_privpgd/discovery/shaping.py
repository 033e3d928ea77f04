"""How the differences of columns in order are distributed, found privately.

Their ranges are known as soon as the columns' are; where in them rows lie is asked of the curator,
so the ledger has it. All else is post-processing of his answers.
"""

import math
from collections.abc import Sequence
from fractions import Fraction

import numpy as np
from scipy.stats import norm

from sdv_privpgd.columns.differences import Difference
from sdv_privpgd.columns.schema import Schema
from sdv_privpgd.estimate.noisy_tables import NoisyTable
from sdv_privpgd.estimate.support import pooled
from sdv_privpgd.privacy.boundary import PrivateTable
from sdv_privpgd.privacy.ledger import Books
from sdv_privpgd.privacy.queries import MarginalQuery
from sdv_privpgd.progress import Progress, silent

_PARTS = 2
"""Parts of discovery's budget for a difference, of which a column has one: a tail is thin."""

_FALSE_ALARMS = 1e-3
"""Chance that some run of cells without rows seems to hold some."""

_LIKELY = 2.0
"""So many standard deviations of its sum above 0 the next run of a tail must be."""

_NEXT = (1, 2, 4)
"""How many cells such a run may have: longer ones reach as far as noise likes."""

_HARDLY = 1e-6
"""What a cell between others counts at least, beside the most frequent one."""


def part_for_shapes(number: int, others: int) -> Fraction:
    """The part of discovery's budget for so many differences, beside other columns."""
    return Fraction(_PARTS * number, max(_PARTS * number + others, 1))


def find_shapes(
    table: PrivateTable,
    differences: Sequence[Difference],
    books: Books,
    mu_squared: Fraction,
    *,
    progress: Progress = silent,
) -> dict[str, tuple[float, ...]]:
    """How frequent each cell of differences is, of those that are not lost in noise. Public.

    Privacy: sqrt(mu_squared)-GDP. A difference follows from a row's own cells, so a neighbor
    changes one cell of each table of counts by one, or two, as for any other column.

    Args:
        table: The private columns.
        differences: Those to look into, in fine cells.
        books: Of the fit.
        mu_squared: For all differences together.
        progress: Told of the measurements.
    """
    if not differences or not mu_squared:
        return {}
    curator = table.curator(Schema((), tuple(differences)), books)
    names = [difference.name for difference in differences]
    answers = curator.measure(
        [MarginalQuery((name,)) for name in names],
        mu_squared,
        what=f"sizes of {', '.join(map(repr, names))}",
        progress=progress,
    )
    found = {}
    for difference, answer in zip(differences, answers, strict=True):
        counts = answer.answer[: difference.column.num_values].astype(np.float64)
        held = _held(counts, answer.stddev)
        if held is not None:
            inside = pooled(NoisyTable(counts[held], answer.stddev**2))
            frequent = np.zeros_like(counts)
            frequent[held] = np.maximum(inside, inside.max() * _HARDLY)
            found[difference.name] = tuple(frequent.tolist())
    return found


def _held(counts: np.ndarray, stddev: float) -> slice | None:
    """The cells from the first to the last that surely hold rows; None if noise is all there is.

    Looked for in runs of one cell, two, four and so on: a run holds rows if its sum is more than
    noise, and of the runs that do the shortest say where. Tails go on beyond the first and the last
    of them, which less will do for: they have nowhere else to be.
    """
    least = norm.isf(_FALSE_ALARMS / (2 * counts.size)) * stddev
    found = np.zeros(counts.size, dtype=bool)
    length = 1
    while length <= counts.size:
        for start in range(0, counts.size - length + 1, length):
            run = slice(start, start + length)
            if not found[run].any() and counts[run].sum() > least * math.sqrt(length):
                found[run] = True
        length *= 2
    places = np.flatnonzero(found)
    if not places.size:
        return None
    before = _end_of_tail(counts[::-1], counts.size - int(places[0]), stddev)
    return slice(counts.size - before, _end_of_tail(counts, int(places[-1]) + 1, stddev))


def _end_of_tail(counts: np.ndarray, end: int, stddev: float) -> int:
    """Where cells that likely hold rows end: those right after the ones that surely do."""
    for length in _NEXT:
        tail = counts[end : end + length]
        if tail.size == length and tail.sum() > _LIKELY * stddev * math.sqrt(length):
            return _end_of_tail(counts, end + length, stddev)
    return end
