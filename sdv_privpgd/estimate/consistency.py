"""Noisy tables made to agree: one total, one support and one set of shared marginals.

Each 1-way marginal of an all-2-way workload is measured d - 1 times. Averaging those estimates,
forcing every table to the same total and leaving out the values that nothing supports removes most
of the noise in the tables before any model is fitted (Zhang et al. 2021, section 4.3, for the
averaging). Cells that no row can be in are emptied, and the remaining ones shifted evenly to keep
the marginals. Everything here is post-processing of noisy answers: public and free.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations

import numpy as np

from sdv_privpgd.base import cached_property
from sdv_privpgd.base.domain import Clique, Domain, Grouping, axes_without
from sdv_privpgd.estimate.noisy_tables import (
    NoisyTable,
    averaged,
    estimate_total,
    grouped_tables,
    margin_estimates,
    noisy_tables,
)
from sdv_privpgd.estimate.support import simplex_projection, supported_one_way
from sdv_privpgd.privacy.queries import Measurement, QuadrantQuery


@dataclass(frozen=True, kw_only=True)
class ConsistentTables:
    """Tables in counts that agree on their total and on every marginal that they share.

    All arrays are float64, have their axes in domain order, and sum to ``total``.

    Attributes:
        total: The number of records, as estimated.
        one_way: Each attribute's non-negative marginal, 0 for values without support.
        tables: The table of each clique. Cells may be negative; cells with an unsupported value are
            exactly 0.
        variances: The variance of the noise in a cell of each clique, as it was measured.
        grouped: The tables over groups, as measured, and those of quadrants.
        completed: Pairs that were measured over groups alone, as they are believed to be over finer
            groups.
        expected: Pairs as they are expected to be before anything is measured, with the marginals
            of ``one_way``. Others are expected to be independent.
        start: Gives the probabilities of a clique's cells, or of its groups', that a table of
            largest entropy starts from; ``None`` for equal ones.
    """

    total: float
    one_way: Mapping[str, np.ndarray]
    tables: Mapping[Clique, np.ndarray]
    variances: Mapping[Clique, float]
    grouped: Mapping[Grouping, Mapping[Clique, NoisyTable]]
    completed: Mapping[Grouping, Mapping[Clique, np.ndarray]] = field(default_factory=dict)
    expected: Mapping[Clique, np.ndarray] = field(default_factory=dict)
    start: Callable[[Clique, Grouping], np.ndarray] | None = None

    def support(self, clique: Clique) -> tuple[np.ndarray, ...]:
        """The codes with support of each attribute of a clique, ascending."""
        return tuple([self._supports[attribute] for attribute in clique])

    @cached_property
    def _supports(self) -> dict[str, np.ndarray]:
        return {attribute: np.flatnonzero(counts) for attribute, counts in self.one_way.items()}


def consistent_tables(domain: Domain, measurements: Sequence[Measurement]) -> ConsistentTables:
    """Makes the tables of all measured cliques agree."""
    noisy = noisy_tables(domain, measurements)
    total = estimate_total(domain, measurements).value
    grouped = grouped_tables(domain, measurements)
    one_way = one_way_tables(domain, measurements)
    return ConsistentTables(
        total=total,
        one_way=one_way,
        tables=agreeing(noisy, one_way, total),
        variances={clique: table.variance for clique, table in noisy.items()},
        grouped=_with_quadrants(
            grouped, grouped_tables(domain, measurements, QuadrantQuery), one_way, total
        ),
    )


def one_way_tables(domain: Domain, measurements: Sequence[Measurement]) -> dict[str, np.ndarray]:
    """The ``one_way`` of consistent tables: each attribute's marginal."""
    margins = _one_way_estimates(
        noisy_tables(domain, measurements), grouped_tables(domain, measurements)
    )
    total = estimate_total(domain, measurements).value
    return {
        name: supported_one_way(margins.get((name,)), size, total)
        for name, size in domain.size_of.items()
    }


def _with_quadrants(
    grouped: Mapping[Grouping, Mapping[Clique, NoisyTable]],
    quadrants: Mapping[Grouping, Mapping[Clique, NoisyTable]],
    one_way: Mapping[str, np.ndarray],
    total: float,
) -> dict[Grouping, dict[Clique, NoisyTable]]:
    """The tables over groups, with those of two sides each that quadrants and marginals make."""
    found = {grouping: dict(tables) for grouping, tables in grouped.items()}
    same = np.array([[1.0, -1.0], [-1.0, 1.0]])
    for grouping, answers in quadrants.items():
        sides = {name: grouping.sums(one_way[name], (name,)) for name in grouping.attributes}
        own = found.setdefault(grouping, {})
        for clique, answer in answers.items():
            even = np.outer(*(sides[name] for name in clique)) / total
            apart = answer.counts - (same * even).sum()
            # The noise of such a table's cells makes four times the variance of its quadrants.
            table = NoisyTable(even + apart / 4 * same, answer.variance / 4)
            own[clique] = averaged([own[clique], table]) if clique in own else table
    return found


def agreeing(
    noisy: Mapping[Clique, NoisyTable], one_way: Mapping[str, np.ndarray], total: float
) -> dict[Clique, np.ndarray]:
    """The tables ``reconciled`` on the supported codes, with 0 in all other cells."""
    places = {
        clique: np.ix_(*(np.flatnonzero(one_way[name]) for name in clique)) for clique in noisy
    }
    kept = {
        clique: NoisyTable(table.counts[places[clique]], table.variance)
        for clique, table in noisy.items()
    }
    agreed = reconciled(kept, {name: own[own > 0] for name, own in one_way.items()}, total)
    found = {clique: np.zeros(table.counts.shape) for clique, table in noisy.items()}
    for clique, counts in agreed.items():
        found[clique][places[clique]] = counts
    return found


def _one_way_estimates(
    noisy: Mapping[Clique, NoisyTable], grouped: Mapping[Grouping, Mapping[Clique, NoisyTable]]
) -> dict[Clique, NoisyTable]:
    """The best estimate of each 1-way marginal that tables hold.

    The cells come from the tables over codes. What tables over groups say of a group's sum is
    combined with the sum of its cells by inverse variance, and the difference is spread evenly over
    the cells. The variance of the cells is left as it is: it hardly falls where groups have more
    than a few codes.
    """
    found = margin_estimates(noisy, 1)
    for grouping, tables in grouped.items():
        for clique, sums in margin_estimates(tables, 1).items():
            groups = grouping[clique[0]]
            sizes = np.bincount(groups)
            own = found.get(clique)
            if own is None:
                found[clique] = NoisyTable((sums.counts / sizes)[groups], sums.variance)
            elif own.variance > 0:
                known = grouping.sums(own.counts, clique)
                weights = sizes * own.variance / (sizes * own.variance + sums.variance)
                shift = weights * (sums.counts - known) / sizes
                found[clique] = NoisyTable(own.counts + shift[groups], own.variance)
    return found


def reconciled(
    noisy: Mapping[Clique, NoisyTable], one_way: Mapping[str, np.ndarray], total: float
) -> dict[Clique, np.ndarray]:
    """The tables, shifted evenly along the other axes to agree on all that they share.

    Sets of attributes are handled by size: the empty set fixes the total, single attributes their
    combined marginal, and larger sets that several tables share their inverse-variance average. A
    later shift adds up to zero over every earlier set, on which the tables already agree, so one
    pass is enough.
    """
    counts = {clique: table.counts.copy() for clique, table in noisy.items()}
    shared: dict[Clique, list[Clique]] = {}
    for clique in counts:
        for degree in range(len(clique) + 1):
            for subset in combinations(clique, degree):
                shared.setdefault(subset, []).append(clique)
    for subset in sorted(shared, key=len):
        holders = shared[subset]
        if len(subset) > 1 and len(holders) == 1:
            continue
        margins = {each: counts[each].sum(axis=axes_without(each, subset)) for each in holders}
        if not subset:
            target = np.asarray(total)
        elif len(subset) == 1:
            target = one_way[subset[0]]
        else:
            target = averaged(
                [
                    NoisyTable(margin, noisy[clique].variance * counts[clique].size / margin.size)
                    for clique, margin in margins.items()
                ]
            ).counts
        for clique, margin in margins.items():
            shift = (target - margin) * (margin.size / counts[clique].size)
            counts[clique] += np.expand_dims(shift, axes_without(clique, subset))
    return counts


Possible = Mapping[Clique, np.ndarray]
"""True for the cells of some cliques that can hold rows; axes in the clique's order."""


def possible_cells(clique: Clique, shape: tuple[int, ...], possible: Possible) -> np.ndarray:
    """Marks the cells of a clique's table that can hold rows, by all that ``possible`` says."""
    allowed = np.ones(shape, dtype=bool)
    for known, own in possible.items():
        if set(known) <= set(clique):
            ordered = own.transpose([known.index(name) for name in clique if name in known])
            allowed &= np.expand_dims(ordered, axes_without(clique, known))
    return allowed


def possible_noisy(
    domain: Domain, measurements: Sequence[Measurement], possible: Possible
) -> dict[Clique, NoisyTable]:
    """The ``noisy_tables``, with nothing in the cells that no row can be in."""
    noisy = noisy_tables(domain, measurements)
    cells = {q: possible_cells(q, own.counts.shape, possible) for q, own in noisy.items()}
    return {q: NoisyTable(own.counts * cells[q], own.variance) for q, own in noisy.items()}


def few_choices(allowed: np.ndarray) -> bool:
    """Whether each code of a pair's attributes goes with at most two codes of the other.

    That is so where one of several columns is 1, or where two columns say the same.
    """
    return allowed.ndim == 2 and max(allowed.sum(axis=0).max(), allowed.sum(axis=1).max()) <= 2


def emptied(tables: ConsistentTables, possible: Possible) -> ConsistentTables:
    """The same tables, with 0 in the cells that no row can be in."""
    one_way = dict(tables.one_way)
    for clique, own in possible.items():
        for name in clique:
            kept = one_way[name] * own.any(axis=axes_without(clique, (name,)))
            if kept.any():
                one_way[name] = kept * (tables.total / kept.sum())
    found = {}
    for clique, counts in tables.tables.items():
        allowed = possible_cells(clique, counts.shape, possible)
        for name in clique:
            allowed &= np.expand_dims(one_way[name] > 0, axes_without(clique, (name,)))
        margins = [one_way[name] for name in clique]
        found[clique] = counts if allowed.all() else _shifted(counts * allowed, allowed, margins)
    return replace(tables, one_way=one_way, tables=found)


def _shifted(counts: np.ndarray, allowed: np.ndarray, margins: list[np.ndarray]) -> np.ndarray:
    """The counts with these marginals, as far as the possible cells allow it."""
    # Alternating shifts of a table's axes; after 50, pairs of 32 codes are exact to 1e-3 of a
    # record.
    sweeps = 50
    for _ in range(sweeps):
        for axis, margin in enumerate(margins):
            others = tuple(other for other in range(counts.ndim) if other != axis)
            cells = allowed.sum(axis=others, keepdims=True)
            missing = np.expand_dims(margin, others) - counts.sum(axis=others, keepdims=True)
            counts = counts + allowed * (missing / np.maximum(cells, 1))
    return counts


_ROUNDS = 100
"""The most rounds; pairs of Adult at epsilon 1 end after some twenty."""


def possible_tables(tables: ConsistentTables, possible: Possible) -> Mapping[Clique, np.ndarray]:
    """The tables without negative cells, which nearly agree and sum to the total.

    Norm-sub, which takes as much from each positive cell, and consistency take turns until tables
    agree to within a thousandth of the records (Zhang et al. 2021, who take 400 turns, and then
    some that empty the smallest cells). Cells that no row can be in stay empty.
    """
    close = 1e-3  # share of the records by which tables may still disagree at the end
    total = tables.total
    one_way = {name: counts[counts > 0] for name, counts in tables.one_way.items()}
    places = {clique: np.ix_(*tables.support(clique)) for clique in tables.tables}
    allowed = {
        clique: possible_cells(clique, counts.shape, possible)[places[clique]]
        for clique, counts in tables.tables.items()
    }
    now = {clique: counts[places[clique]] for clique, counts in tables.tables.items()}
    for _ in range(_ROUNDS):
        positive = {clique: _positive(now[clique], allowed[clique], total) for clique in now}
        now = reconciled(
            {clique: NoisyTable(own, tables.variances[clique]) for clique, own in positive.items()},
            one_way,
            total,
        )
        apart = [np.abs(now[clique] - own).sum() for clique, own in positive.items()]
        if max(apart, default=0.0) <= close * total:
            break
    found = {}
    for clique, counts in tables.tables.items():
        found[clique] = np.zeros(counts.shape)
        found[clique][places[clique]] = _positive(now[clique], allowed[clique], total)
    return found


def _positive(counts: np.ndarray, allowed: np.ndarray, total: float) -> np.ndarray:
    """The nearest counts without negative cells that sum to the total."""
    found = np.zeros(counts.shape)
    if allowed.any():
        found[allowed] = simplex_projection(counts[allowed], total)
    return found
