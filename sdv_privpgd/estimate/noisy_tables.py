"""Noisy tables made of measurements: averaged, and summed to margins.

Public: post-processing, free.
"""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import combinations
from typing import Any, TypeVar
from weakref import WeakKeyDictionary, ref

import numpy as np
from scipy.special import ndtr  # pyright: ignore[reportMissingTypeStubs]

from sdv_privpgd.base.domain import Clique, Domain, Grouping, axes_without
from sdv_privpgd.privacy.queries import (
    CountQuery,
    CutMarginalQuery,
    GroupedMarginalQuery,
    MarginalQuery,
    Measurement,
    QuadrantQuery,
)

Made = TypeVar("Made")

EXACT = 1e-3
"""Standard deviation, in records, that stands for an answer without noise."""


@dataclass(frozen=True)
class NoisyTable:
    """Counts of a clique with independent noise of one variance per cell, axes in domain order."""

    counts: np.ndarray
    variance: float

    def margin(self, clique: Clique, subset: Collection[str]) -> "NoisyTable":
        """The sums of the clique's table over all attributes but some."""
        counts = np.asarray(self.counts.sum(axis=axes_without(clique, subset)))
        return NoisyTable(counts, self.variance * (self.counts.size // counts.size))

    @property
    def weighed_variance(self) -> float:
        """The variance that its weight has in a fit: no answer weighs infinitely much."""
        return max(self.variance, EXACT**2)


_MADE: WeakKeyDictionary[Measurement, dict[tuple, tuple[Domain, list[ref], Any]]] = (
    WeakKeyDictionary()
)
"""What was made of measurements that are still there, by the last of them."""


def made_once(make: Callable[[Domain, list], Made], domain: Domain, measurements: Iterable) -> Made:
    """What it makes of a domain and measurements: once, however often it is asked for."""
    own = list(measurements)
    known, key = _MADE.setdefault(own[-1], {}) if own else {}, (make, len(own))
    made = known.get(key)
    if made is None or made[0] != domain or [each() for each in made[1]] != own:
        made = known[key] = domain, [ref(each) for each in own], make(domain, own)
    return made[2]


def noisy_tables(domain: Domain, measurements: Iterable[Measurement]) -> dict[Clique, NoisyTable]:
    """Returns a table for each clique, the average by inverse variance of its measurements.

    They are made once for the same measurements: read-only.
    """
    return dict(made_once(fresh_tables, domain, measurements))


def fresh_tables(domain: Domain, measurements: Iterable[Measurement]) -> dict[Clique, NoisyTable]:
    """Makes ``noisy_tables``, of measurements that nobody will ask about again."""
    return _averages(domain, measurements, MarginalQuery).get(None, {})


def grouped_tables(
    domain: Domain, measurements: Iterable[Measurement], kind: type = GroupedMarginalQuery
) -> dict[Grouping, dict[Clique, NoisyTable]]:
    """The ``noisy_tables`` of each grouping, from what was measured over its groups.

    Or the quadrants of pairs, one number each, by their sides.
    """
    made = made_once(_FRESH[kind], domain, measurements)
    return {grouping: dict(tables) for grouping, tables in made.items()}


def _averages(domain: Domain, measurements: Iterable[Measurement], kind: type) -> Any:
    """The read-only tables of one kind of query, by grouping and clique."""
    found: dict[Any, dict[Clique, list[NoisyTable]]] = {}
    for measurement in measurements:
        query: Any = measurement.query
        if isinstance(query, kind):
            clique, table = _in_order(domain, query.clique, measurement)
            of_clique = found.setdefault(getattr(query, "grouping", None), {})
            of_clique.setdefault(clique, []).append(table)
    made = {
        grouping: {clique: averaged(those) for clique, those in tables.items()}
        for grouping, tables in found.items()
    }
    for tables in made.values():
        for table in tables.values():
            table.counts.setflags(write=False)
    return made


_FRESH = {kind: partial(_averages, kind=kind) for kind in (GroupedMarginalQuery, QuadrantQuery)}


def _in_order(
    domain: Domain, clique: Clique, measurement: Measurement
) -> tuple[Clique, NoisyTable]:
    """The answer about a clique, with its attributes in the domain's order."""
    axes = domain.axes(clique)
    order = sorted(range(len(axes)), key=axes.__getitem__)
    counts = measurement.answer.transpose(order).astype(np.float64)
    return tuple([clique[place] for place in order]), NoisyTable(counts, measurement.stddev**2)


def margin_estimates(noisy: Mapping[Clique, NoisyTable], degree: int) -> dict[Clique, NoisyTable]:
    """Each ``degree``-way marginal that tables hold, averaged over them by inverse variance."""
    found: dict[Clique, list[NoisyTable]] = {}
    for clique, table in noisy.items():
        for subset in combinations(clique, degree):
            found.setdefault(subset, []).append(table.margin(clique, subset))
    return {subset: averaged(margins) for subset, margins in found.items()}


def averaged(tables: Sequence[NoisyTable]) -> NoisyTable:
    """The inverse-variance average. If some tables are exact (variance 0), only those count."""
    if len(tables) == 1:
        return tables[0]
    exact = [table for table in tables if table.variance == 0]
    if exact:
        return NoisyTable(np.mean([table.counts for table in exact], axis=0), 0.0)
    precision = sum(1 / table.variance for table in tables)
    counts = sum(table.counts / table.variance for table in tables) / precision
    return NoisyTable(np.asarray(counts), 1 / precision)


@dataclass(frozen=True)
class Total:
    """An estimate of the number of records and its standard deviation, 0 where it is public."""

    value: float
    stddev: float


def estimate_total(domain: Domain, measurements: Sequence[Measurement]) -> Total:
    """Estimates the number of records: exactly where it is public, else by the best combination.

    A count of its own and the sum of each table estimate it independently; they are combined by
    inverse variance. The estimate is never below 1, so that tables can be divided by it.

    Raises:
        ValueError: If neither a count nor a table was measured.
    """
    return made_once(_fresh_total, domain, measurements)


def _fresh_total(domain: Domain, measurements: Sequence[Measurement]) -> Total:
    tables = [  # each record is in one cell of a table
        NoisyTable(measurement.answer.astype(np.float64), measurement.stddev**2)
        for measurement in measurements
        if isinstance(measurement.query, CountQuery | CutMarginalQuery)
    ]
    measured = [noisy_tables(domain, measurements), *grouped_tables(domain, measurements).values()]
    tables += [table for own in measured for table in own.values()]
    estimates = [
        NoisyTable(table.counts.sum(), table.variance * table.counts.size) for table in tables
    ]
    if not estimates:
        raise ValueError("The number of rows cannot be estimated: no count and no table measured.")
    best = averaged(estimates)
    return Total(max(float(best.counts), 1.0), float(np.sqrt(best.variance)))


def own_variance(measurement: Measurement) -> float:
    """The variance of the noise in each number of an answer, its rounding included."""
    return rounded_variance(measurement.stddev * measurement.units) / measurement.units**2


def rounded_variance(stddev: float) -> float:
    """The variance of a Gaussian of this standard deviation, rounded to whole numbers.

    It is s^2 + 1/12 up to 1e-7 from s = 1 on, and goes to 0 much faster than s^2 below.
    """
    most = 50  # magnitudes that noise of a small standard deviation never exceeds
    # Below this standard deviation the law is summed up; above it has hardly more than 1/12 to add.
    small = 1.0
    if stddev == 0:
        return 0.0
    if stddev < small:
        # Sum of k^2 P(k): k counts 2 k - 1 times that the magnitude is at least k.
        magnitudes = np.arange(1, most)
        return float(2 * ((2 * magnitudes - 1) * ndtr((0.5 - magnitudes) / stddev)).sum())
    square = np.square(np.pi)
    ripple = np.exp(-2 * square * stddev**2) * (4 * stddev**2 + 1 / square)
    return float(stddev**2 + 1 / 12 - ripple)
