"""The support of a noisy 1-way marginal: the values that occur, and the mass of rare ones.

Each value below a few standard deviations of the noise may be anything: the tail of a smooth
column, or the empty part of a sparse one. Keeping their noise spreads mass where there is none;
leaving all of them out cuts tails off. Neighboring values together say more. Everything here is
post-processing of noisy answers: public and free.
"""

from collections.abc import Iterable, Iterator

import numpy as np
from scipy.special import ndtri  # pyright: ignore[reportMissingTypeStubs]

from sdv_privpgd.base.domain import Domain
from sdv_privpgd.estimate.noisy_tables import NoisyTable, margin_estimates, noisy_tables
from sdv_privpgd.privacy.ledger import PrivacyLedger
from sdv_privpgd.privacy.queries import CutMarginalQuery, Measurement

_STRONG = 3.0
"""A value this many standard deviations above 0 is kept as it was measured; others are weak."""

_DIFFERENT = 2.0
"""Two neighboring groups are kept apart if their means differ by this many standard deviations."""

FINE_GRIDS = "values of columns on fine grids"
"""What the ledger says of the last look at where in codes rows lie."""


def grid_noise(ledger: PrivacyLedger) -> float:
    """The noise in each fine cell, by which it was found where in codes rows lie; 0 if not so."""
    asked = (each.stddev for each in ledger.charges if each.what == FINE_GRIDS)
    return max(asked, default=0.0) / ledger.units


def supported_one_way(best: NoisyTable | None, size: int, total: float) -> np.ndarray:
    """An attribute's combined 1-way marginal in counts: non-negative, summing to the total.

    The average of the marginals of all tables with the attribute is shifted to the total; without
    any table it is uniform. Runs of weak values are cut into groups by their means. A significant
    group keeps its mass, spread evenly, because its mean has less noise than each value. What
    remains of all runs is judged once more together, so that many rare values of a column without
    an order do not all vanish. If that is not significant either, it is shrunk by as much as noise
    alone would explain: a value of one and a half standard deviations keeps half of its rows, and
    where there is no more than noise everything is exactly 0.
    """
    if best is None:
        return np.full(size, total / size)
    stddev = float(np.sqrt(best.variance))
    values = best.counts + (total - best.counts.sum()) / size
    weak = values < _STRONG * stddev
    if weak.all():
        return simplex_projection(values, total)
    left = np.zeros(size, dtype=bool)
    for group in _groups(values, weak, stddev):
        if _is_significant(values[group], stddev):
            values[group] = values[group].mean()
        else:
            left[group] = True
    if left.any():
        rest = values[left]
        kept = _is_significant(rest, stddev)
        values[left] = simplex_projection(rest, rest.sum()) if kept else _shrunken(rest, stddev)
    return values * (total / values.sum())


def pooled(
    counts: np.ndarray,
    variances: np.ndarray,
    seen: np.ndarray | None = None,
    expected: np.ndarray | None = None,
) -> np.ndarray:
    """A 1-way marginal with less noise: what does not stand out shares its group's. None negative.

    Groups are those of ``supported_one_way``, but each keeps its mass, significant or not, and they
    differ in how their counts compare with those that are expected. The more values there are, the
    more it takes to stand out, for few together as for one: the largest noise of hundreds would
    make a peak, which is drawn as such.

    Args:
        counts: The noisy counts.
        variances: Of the noise of each.
        seen: Which values stand out, a bool for each; by default those of ``outstanding``.
        expected: How a group's rows are spread over its values, all above 0; evenly by default.
    """
    values = counts.copy()
    seen = outstanding(counts, variances) if seen is None else seen
    shares = np.ones(values.size) if expected is None else expected / expected.max()
    apart = counts / shares, ~seen, np.sqrt(variances) / shares
    for group in _groups(*apart, _deviations(values.size), _STRONG):
        known = 1 / variances[group]
        values[group] = shares[group] * (known @ values[group]) / (known @ shares[group])
    return np.maximum(values, 0.0)


def outstanding(counts: np.ndarray, variances: np.ndarray) -> np.ndarray:
    """The values that noise does not explain beside their neighbors, as a bool for each.

    Where the neighbors themselves are so large, noise is little beside them: all are kept.
    """
    beside = 32  # A value's neighbors: this part of all values on either side, but two at least
    least = np.sqrt(variances) * _deviations(counts.size)
    reach = max(counts.size // beside, 2)
    places = np.arange(counts.size)
    first, last = np.maximum(places - reach, 0), np.minimum(places + reach + 1, counts.size)
    sums = np.concatenate([[0.0], np.cumsum(counts)])
    beside = (sums[last] - sums[first] - counts) / np.maximum(last - first - 1, 1)
    return (counts > least + np.maximum(beside, 0.0)) | ((beside > least) & (counts > least))


def _deviations(size: int) -> float:
    """So many standard deviations one of ``size`` values takes to stand out."""
    # In so many tables noise makes one value stand out of its neighbors, whatever their number.
    false_alarms = 0.01
    return max(_STRONG, float(-ndtri(false_alarms / max(size, 1))))


def simplex_projection(values: np.ndarray, total: float) -> np.ndarray:
    """The nearest array in L2 norm that is non-negative and sums to ``total`` > 0.

    It subtracts one threshold from all values and clips at 0 (Held, Wolfe & Crowder 1974).
    """
    descending = np.sort(values, axis=None)[::-1]
    excess = (np.cumsum(descending) - total) / np.arange(1, descending.size + 1)
    threshold = excess[np.flatnonzero(descending > excess)[-1]]
    return np.maximum(values - threshold, 0.0)


def _shrunken(values: np.ndarray, stddev: float) -> np.ndarray:
    """The positive part of insignificant values, shrunk together.

    The factor is that of James & Stein (1961), computed from the squares of the positive values
    alone: for noise these sum to half the number of values on average, with a variance of 5/4 a
    value.
    """
    # Noise alone is taken to explain this many standard deviations more than its average.
    more = 0.5
    above = np.maximum(values, 0.0)
    energy = float(np.square(above).sum())
    of_noise = stddev**2 * (values.size / 2 + more * np.sqrt(5 / 4 * values.size))
    return above * max(0.0, 1 - of_noise / energy) if energy > 0 else above


def _is_significant(values: np.ndarray, stddev: float) -> bool:
    # A group of weak values keeps its mass if its sum is this many of the sum's standard
    # deviations.
    significant = 2.0
    return bool(values.sum() > significant * stddev * np.sqrt(values.size))


def _groups(
    values: np.ndarray,
    weak: np.ndarray,
    stddev: float | np.ndarray,
    few: float = _DIFFERENT,
    many: float = _DIFFERENT,
) -> Iterator[slice]:
    """The runs of weak values, each cut where its halves differ most, as long as they differ.

    They do by ``many`` standard deviations, and where one has hardly any values, by ``few``.
    This is binary segmentation (Scott & Knott 1974), with means by inverse variance.
    """
    fewest = 4  # so many values are a group that noise does not make a peak of
    edges = np.flatnonzero(np.diff(weak.astype(np.int64), prepend=0, append=0))
    waiting = [(int(start), int(end)) for start, end in edges.reshape(-1, 2)]
    precisions = np.broadcast_to(np.maximum(stddev, 1e-100) ** -2.0, values.shape)
    while waiting:
        start, end = waiting.pop()
        before = np.arange(1, end - start)
        weights = np.cumsum(precisions[start:end])
        sums = np.cumsum(precisions[start:end] * values[start:end])
        left, right = weights[:-1], weights[-1] - weights[:-1]
        apart = np.abs(sums[:-1] / left - (sums[-1] - sums[:-1]) / right)
        apart /= np.sqrt(1 / left + 1 / right)
        apart /= np.where(np.minimum(before, before[::-1]) < fewest, few, many)
        if before.size and apart.max() > 1:
            cut = start + 1 + int(apart.argmax())
            waiting += [(start, cut), (cut, end)]
        else:
            yield slice(start, end)


_SURE = 4.0
"""A code surely holds rows if its count is this many standard deviations above 0. Noise reaches
that 1 time in 30,000."""


def last_held(margin: NoisyTable) -> int:
    """The last code of ever wider cells that surely has rows, not that for missing; -1 if none has.

    Or that ends a run of codes which has: as many standard deviations of its noise above 0. What is
    a little in each wide cell may be a lot together.
    """
    counts, sure, last = margin.counts[:-1], _SURE * np.sqrt(margin.variance), -1
    for code in range(len(counts)):
        runs = np.cumsum(counts[code:])
        held = np.flatnonzero(runs > sure * np.sqrt(np.arange(1, len(runs) + 1)))
        last = max(last, code + held[0]) if held.size else last
    return int(last)


def clear_support(
    domain: Domain, measurements: Iterable[Measurement], deviations: float = _SURE
) -> dict[str, np.ndarray]:
    """Marks each attribute's codes that surely hold rows, bool; none where nothing was measured.

    So sure that their counts are so many standard ``deviations`` of the noise above 0.

    Of a number that a table only cuts, it can be the code for missing alone.

    A decision that rests on this is the same from fit to fit, unless a code holds about as many
    rows as the noise can hide.
    """
    margins = margin_estimates(noisy_tables(domain, measurements), 1)
    held = {name: np.zeros(size, dtype=bool) for name, size in domain.size_of.items()}
    for (name,), margin in margins.items():
        held[name] = margin.counts > deviations * np.sqrt(margin.variance)
    for measured in measurements:
        query = measured.query
        if not isinstance(query, CutMarginalQuery):
            continue
        for axis, cut in enumerate(query.cuts, start=len(query.clique)):
            if cut.nullable and len(cut.lines) == 1:
                missing = np.take(measured.answer, -1, axis=axis)
                stddev = measured.stddev * np.sqrt(missing.size)
                held[cut.lines[0].name][-1] |= bool(missing.sum() > deviations * stddev)
    return held
