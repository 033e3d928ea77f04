"""Interactions: the information of tables over groups of three and more attributes beyond pairs.

Pairs leave open how three attributes go together. A table over a few groups of each measures that
with little noise. Its target is the table of largest entropy with the marginals that are known from
the pairs (by iterative proportional fitting, Deming & Stephan 1940), which has no interaction of
all three, plus what was measured beyond it, shrunk to the share that is signal. All tables over the
same groups together say how large that share is: most triples interact little, and a single table
would be believed for its noise.

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
"""Sweeps of the proportional fitting. After 20, tables of 4 x 4 x 4 groups of Adult are exact to
within a record."""


class GroupedTarget(NamedTuple):
    """A table over groups that particles should have; its weight relative to a table over codes.

    >>> GroupedTarget(np.array([[[1.0]]])).weight
    1.0
    """

    values: np.ndarray
    weight: float = 1.0


GroupedTargets = Mapping[Grouping, Mapping[Clique, GroupedTarget]]
"""The targets over the groups of each grouping."""


def grouped_targets(tables: ConsistentTables, pairs: Mapping[Clique, np.ndarray]) -> GroupedTargets:
    """A signed measure of total 1 on the cells of each table of at least three attributes.

    ``pairs`` has the probabilities of all other cliques that particles should have. The remaining
    noise makes some cells negative; clipping them would break the pair marginals, which are known
    more precisely.

    A square error is weighted in inverse proportion to the variance of the noise, as in a
    likelihood: particles that followed the noise of a few large cells would lose what the pairs say
    of many small ones.

    >>> grouping = Grouping.of({name: np.array([0, 1]) for name in "abc"})
    >>> cells = np.arange(8.0).reshape(2, 2, 2)
    >>> tables = ConsistentTables(
    ...     total=28.0, one_way={"a": np.array([6.0, 22.0]), "b": np.array([10.0, 18.0]),
    ...     "c": np.array([12.0, 16.0])}, tables={}, variances={},
    ...     grouped={grouping: {("a", "b", "c"): NoisyTable(cells, 1.0)}},
    ... )
    >>> target = grouped_targets(tables, pairs={})[grouping]["a", "b", "c"]
    >>> target.values.shape, round(float(target.values.sum()), 9)
    ((2, 2, 2), 1.0)
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
    """The counts of groups that pairs and single attributes give, by the axes they are over."""
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
    """All sets of axes that lie within the axes of some margin, by size: the empty one first."""
    return [
        subset
        for size in range(degree)
        for subset in combinations(range(degree), size)
        if any(set(subset) <= set(axes) for axes in margins)
    ]


def _freedom(margins: Mapping[tuple[int, ...], np.ndarray], shape: tuple[int, ...]) -> int:
    """The number of dimensions in which a table with given margins can vary."""
    given = sum(
        math.prod(shape[axis] - 1 for axis in axes) for axes in _subsets(margins, len(shape))
    )
    return math.prod(shape) - given
