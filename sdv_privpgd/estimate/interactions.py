"""What tables over groups of three and more attributes say beyond the pairs.

Pairs leave open how three attributes go together. A table over a few groups of each asks for it
with little noise. Its target is the table of largest entropy with the marginals that are known
from the pairs (by iterative proportional fitting, Deming & Stephan 1940), which has no interaction
of all three, plus what was measured beyond it, shrunken to the share that is signal. How large that
share is all tables over the same groups say together: most triples interact little, and one table
alone would be believed for its noise.

Everything here is post-processing of noisy answers: public and free.
"""

import math
from collections.abc import Mapping
from itertools import combinations
from typing import NamedTuple

import numpy as np

from sdv_privpgd.domain import Clique, Grouping
from sdv_privpgd.estimate.consistency import ConsistentTables
from sdv_privpgd.estimate.noisy_tables import NoisyTable
from sdv_privpgd.estimate.signal_shares import signal_shares

_SWEEPS = 20
"""Of the proportional fitting; tables of 4 x 4 x 4 groups of Adult are within a record by then."""


class GroupedTarget(NamedTuple):
    """A table over groups that particles are to have, and its weight beside a table over codes."""

    values: np.ndarray
    weight: float = 1.0


GroupedTargets = Mapping[Grouping, Mapping[Clique, GroupedTarget]]
"""For each grouping the targets over its groups."""


def grouped_targets(tables: ConsistentTables, pairs: Mapping[Clique, np.ndarray]) -> GroupedTargets:
    """For each table of at least three attributes a signed measure of total 1 on its cells.

    ``pairs`` has the probabilities of all cliques that particles are to have besides. What noise
    is left of makes some cells negative. Cut at 0 the table would no longer have the pairs'
    marginals, which are known better.

    A square error counts in inverse proportion to the variance of the noise, as in a likelihood:
    particles that kept to the noise of a few large cells would lose what the pairs say of many
    small ones.
    """
    return {
        grouping: _targets(tables, pairs, grouping, measured)
        for grouping, measured in tables.grouped.items()
    }


class _Beyond(NamedTuple):
    """What was measured of a table, and what of it the pairs do not say.

    ``expected`` are the counts of largest entropy, ``values`` what was measured beyond them, and
    ``freedom`` in how many directions that can vary.
    """

    measured: NoisyTable
    expected: np.ndarray
    values: np.ndarray
    freedom: int


def _targets(
    tables: ConsistentTables,
    pairs: Mapping[Clique, np.ndarray],
    grouping: Grouping,
    measured: Mapping[Clique, NoisyTable],
) -> dict[Clique, GroupedTarget]:
    """The signed measures on the groups of all cliques of at least three attributes."""
    found = {
        clique: _beyond(tables, _known_margins(tables, pairs, grouping, clique), table)
        for clique, table in measured.items()
        if len(clique) > 2
    }
    kept = signal_shares(
        np.array([_square(each) for each in found.values()]),
        np.array([max(each.freedom, 1) for each in found.values()]),
    )
    return {
        clique: GroupedTarget(
            (each.expected + share * each.values) / tables.total,
            _weight(tables, clique, each.measured.variance),
        )
        for (clique, each), share in zip(found.items(), kept.tolist(), strict=True)
    }


def _beyond(
    tables: ConsistentTables, margins: Mapping[tuple[int, ...], np.ndarray], measured: NoisyTable
) -> _Beyond:
    """A table beside its margins, which are given by their axes."""
    shape = measured.counts.shape
    expected = _of_largest_entropy(margins, shape, tables.total)
    values = measured.counts - expected
    for axes in _subsets(margins, len(shape)):
        others = tuple(axis for axis in range(len(shape)) if axis not in axes)
        values = values - values.mean(axis=others, keepdims=True)
    return _Beyond(measured, expected, values, _freedom(margins, shape))


def _square(beyond: _Beyond) -> float:
    """The square norm in units of the noise."""
    square = float((beyond.values**2).sum())
    return square / beyond.measured.variance if beyond.measured.variance else math.inf


def _weight(tables: ConsistentTables, clique: Clique, variance: float) -> float:
    """What a square error counts beside one of a table over codes."""
    parts = (part for size in range(len(clique) + 1) for part in combinations(clique, size))
    variances = [tables.variances[part] for part in parts if part in tables.variances]
    return min(float(np.mean(variances)) / variance, 1.0) if variances and variance else 1.0


def _known_margins(
    tables: ConsistentTables,
    pairs: Mapping[Clique, np.ndarray],
    grouping: Grouping,
    clique: Clique,
) -> dict[tuple[int, ...], np.ndarray]:
    """By their axes, the counts of groups that the pairs and the attributes alone give."""
    margins: dict[tuple[int, ...], np.ndarray] = {
        (axis,): grouping.sums(tables.one_way[name], (name,)) for axis, name in enumerate(clique)
    }
    for axes in combinations(range(len(clique)), 2):
        pair = tuple(clique[axis] for axis in axes)
        if pair in pairs:
            margins[axes] = tables.total * grouping.sums(pairs[pair], pair)
    return margins


def _of_largest_entropy(
    margins: Mapping[tuple[int, ...], np.ndarray], shape: tuple[int, ...], total: float
) -> np.ndarray:
    """The counts of largest entropy that have these margins."""
    counts = np.full(shape, total / math.prod(shape))
    for _ in range(_SWEEPS):
        for axes, margin in margins.items():
            others = tuple(axis for axis in range(len(shape)) if axis not in axes)
            sums = counts.sum(axis=others)
            ratio = np.divide(margin, sums, out=np.zeros_like(sums), where=sums > 0)
            counts = counts * np.expand_dims(ratio, others)
    return counts


def _subsets(margins: Mapping[tuple[int, ...], np.ndarray], degree: int) -> list[tuple[int, ...]]:
    """All sets of axes that lie within one of the margins', by size: the empty one first."""
    return [
        subset
        for size in range(degree)
        for subset in combinations(range(degree), size)
        if any(set(subset) <= set(axes) for axes in margins)
    ]


def _freedom(margins: Mapping[tuple[int, ...], np.ndarray], shape: tuple[int, ...]) -> int:
    """In how many dimensions a table can vary that has given margins."""
    given = sum(
        math.prod(shape[axis] - 1 for axis in axes) for axes in _subsets(margins, len(shape))
    )
    return math.prod(shape) - given
