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
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from itertools import combinations
from typing import NamedTuple

import numpy as np

from sdv_privpgd.base.domain import Clique, Grouping
from sdv_privpgd.estimate.consistency import ConsistentTables
from sdv_privpgd.estimate.effects import ClearContrasts, Residual, along, contrasts
from sdv_privpgd.estimate.noisy_tables import NoisyTable
from sdv_privpgd.estimate.signals import signal_shares

_SWEEPS = 20
"""Sweeps of the proportional fitting. After 20, tables of 4 x 4 x 4 groups of Adult are exact to
within a record."""


class GroupedTarget(NamedTuple):
    """A table over groups that particles should have; its weight relative to a table over codes."""

    values: np.ndarray
    weight: float = 1.0


GroupedTargets = Mapping[Grouping, Mapping[Clique, GroupedTarget]]
"""The targets over the groups of each grouping."""


def grouped_targets(tables: ConsistentTables, pairs: Mapping[Clique, np.ndarray]) -> GroupedTargets:
    """A signed measure of total 1 on the cells of each table of at least three attributes.

    Pairs that were measured over groups alone have one as well, over finer groups if they are
    ``completed``.

    ``pairs`` has the probabilities of all other cliques that particles should have. The remaining
    noise makes some cells negative; clipping them would break the pair marginals, which are known
    more precisely.

    A square error is weighted in inverse proportion to the variance of the noise, as in a
    likelihood: particles that followed the noise of a few large cells would lose what the pairs say
    of many small ones.
    """
    found = {
        grouping: _targets(tables, pairs, grouping, measured)
        for grouping, measured in tables.grouped.items()
    }
    for grouping, completed in tables.completed.items():
        found[grouping] = {
            clique: GroupedTarget(counts / tables.total) for clique, counts in completed.items()
        }
    return found


_Margins = dict[tuple[int, ...], np.ndarray]
"""The marginals of one table, or of several stacked ones, by the axes of a table they are over."""


def _targets(
    tables: ConsistentTables,
    pairs: Mapping[Clique, np.ndarray],
    grouping: Grouping,
    measured: Mapping[Clique, NoisyTable],
) -> dict[Clique, GroupedTarget]:
    """The signed measures on the groups of all cliques that nothing else has."""
    else_known = {clique for own in tables.completed.values() for clique in own} | pairs.keys()
    wanted: dict[Clique, NoisyTable] = {
        clique: table
        for clique, table in measured.items()
        if len(clique) > 1 and clique not in else_known
    }
    stacks = _stacked(tables, pairs, grouping, wanted)
    expected: dict[Clique, np.ndarray] = {}
    excess: dict[Clique, np.ndarray] = {}
    freedoms: dict[Clique, int] = {}
    for cliques, margins, entropic in stacks:
        values = np.stack([wanted[each].counts for each in cliques]) - entropic
        for axes in _subsets(margins, entropic.ndim - 1):
            others = _others(axes, entropic.ndim - 1)
            values = values - values.mean(axis=others, keepdims=True)
        expected.update(zip(cliques, entropic, strict=True))
        excess.update(zip(cliques, values, strict=True))
        freedom = max(_freedom(margins, entropic.shape[1:]), 1)
        freedoms.update(dict.fromkeys(cliques, freedom))
    clear = _clear(grouping, excess, {clique: table.variance for clique, table in wanted.items()})
    squares = [
        float(((excess[clique] - clear[clique]) ** 2).sum()) / table.variance
        if table.variance
        else math.inf
        for clique, table in wanted.items()
    ]
    kept = signal_shares(np.array(squares), np.array([freedoms[clique] for clique in wanted]))
    return {
        clique: GroupedTarget(
            (expected[clique] + clear[clique] + share * (excess[clique] - clear[clique]))
            / tables.total,
            _weight(tables, clique, table.variance),
        )
        for (clique, table), share in zip(wanted.items(), kept.tolist(), strict=True)
    }


def _clear(
    grouping: Grouping, excess: Mapping[Clique, np.ndarray], variances: Mapping[Clique, float]
) -> dict[Clique, np.ndarray]:
    """What clearly stands out of what tables have beyond the expected."""
    # Of the few tables that were chosen, half of what they show of a subgroup of 2 % would be lost
    # with 0.01, as for pairs. With 0.5, hundreds of tables of four public ones would be 1 % worse.
    false_alarms = 1 / max(len(excess), 2)
    found = {clique: np.zeros_like(values) for clique, values in excess.items()}
    bases = {name: contrasts(size) for name, size in grouping.domain.size_of.items()}
    residuals = [
        Residual(clique, along(values, [bases[name].T for name in clique]), variances[clique])
        for clique, values in excess.items()
        if variances[clique] > 0 and min(values.shape) > 1
    ]
    clear = ClearContrasts(bases, residuals, false_alarms)
    for each in residuals:
        own, _ = clear.within(each, np.zeros_like(each.values))
        found[each.clique] = along(own, [bases[name] for name in each.clique])
    return found


def _weight(tables: ConsistentTables, clique: Clique, variance: float) -> float:
    """What a square error counts beside one of a table over codes."""
    parts = (part for size in range(len(clique) + 1) for part in combinations(clique, size))
    variances = [tables.variances[part] for part in parts if part in tables.variances]
    return min(float(np.mean(variances)) / variance, 1.0) if variances and variance else 1.0


def entropic_tables(
    tables: ConsistentTables, cliques: Iterable[Clique], grouping: Grouping
) -> dict[Clique, np.ndarray]:
    """The counts over groups of each clique that are of largest entropy given the pairs."""
    pairs = {
        pair: counts / tables.total for pair, counts in tables.tables.items() if len(pair) == 2
    }
    return {
        clique: counts
        for own, _, entropic in _stacked(tables, pairs, grouping, cliques)
        for clique, counts in zip(own, entropic, strict=True)
    }


def _stacked(
    tables: ConsistentTables,
    pairs: Mapping[Clique, np.ndarray],
    grouping: Grouping,
    cliques: Iterable[Clique],
) -> Iterator[tuple[list[Clique], _Margins, np.ndarray]]:
    """Cliques of one shape, what is known of their groups, and their tables of largest entropy."""
    margins = _known_margins(tables, pairs, grouping, cliques)
    alike: dict[tuple, list[Clique]] = {}
    for clique, known in margins.items():
        alike.setdefault((grouping.domain.shape(clique), tuple(known)), []).append(clique)
    for (shape, known), own in alike.items():
        stacked = {axes: np.stack([margins[each][axes] for each in own]) for axes in known}
        start = np.ones((len(own), *shape))
        if tables.start is not None:
            start = np.stack([tables.start(clique, grouping) for clique in own])
        yield own, stacked, of_largest_entropy(stacked, start, tables.total)


def _known_margins(
    tables: ConsistentTables,
    pairs: Mapping[Clique, np.ndarray],
    grouping: Grouping,
    cliques: Iterable[Clique],
) -> dict[Clique, _Margins]:
    """The counts of groups that pairs and single attributes give, by the axes they are over."""

    @cache
    def known(part: Clique) -> np.ndarray:
        counts = tables.one_way[part[0]] if len(part) == 1 else tables.total * pairs[part]
        return np.maximum(grouping.sums(counts, part), 0.0)

    found: dict[Clique, _Margins] = {}
    for clique in cliques:
        found[clique] = {(axis,): known((name,)) for axis, name in enumerate(clique)}
        for first, second in combinations(range(len(clique)), 2):
            if (pair := (clique[first], clique[second])) in pairs:
                found[clique][first, second] = known(pair)
    return found


def of_largest_entropy(margins: _Margins, start: np.ndarray, total: float) -> np.ndarray:
    """The stacked counts nearest to the start that have these marginals."""
    degree = start.ndim - 1
    counts = start * (total / start.sum(axis=tuple(range(1, start.ndim)), keepdims=True))
    for _ in range(_SWEEPS):
        for axes, margin in margins.items():
            others = _others(axes, degree)
            sums = counts.sum(axis=others)
            ratio = np.divide(margin, sums, out=np.zeros_like(sums), where=sums > 0)
            counts *= np.expand_dims(ratio, others)
    return counts


def _others(axes: tuple[int, ...], degree: int) -> tuple[int, ...]:
    """The axes of stacked tables that are not among these axes of each table."""
    return tuple(axis + 1 for axis in range(degree) if axis not in axes)


def _subsets(margins: _Margins, degree: int) -> list[tuple[int, ...]]:
    """All sets of axes that lie within the axes of some margin, by size: the empty one first."""
    return [
        subset
        for size in range(degree)
        for subset in combinations(range(degree), size)
        if any(set(subset) <= set(axes) for axes in margins)
    ]


def _freedom(margins: _Margins, shape: tuple[int, ...]) -> int:
    """The number of dimensions in which a table with given margins can vary."""
    given = sum(
        math.prod(shape[axis] - 1 for axis in axes) for axes in _subsets(margins, len(shape))
    )
    return math.prod(shape) - given
