"""Whether the tables of one release are about the same rows: each beside all the others.

What a set of attributes is counted as follows from every table that holds the set. Of one table it
has noise of a known variance, independent from cell to cell, and so has the average of what the
others say. So the squared differences over their variances sum up to a chi-square. Counts that were
altered after they were measured are far out, whatever digest was written. Who alters all tables
alike is not found.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import combinations
from typing import NamedTuple

import numpy as np
from scipy.special import chdtrc  # pyright: ignore[reportMissingTypeStubs]

from sdv_privpgd.base.domain import Clique, Domain, Grouping
from sdv_privpgd.estimate.noisy_tables import (
    EXACT,
    NoisyTable,
    fresh_tables,
    grouped_tables,
    margin_estimates,
)
from sdv_privpgd.privacy.queries import CountQuery, Measurement


class Apart(NamedTuple):
    """How far a table is from what others say of some of its attributes."""

    clique: Clique
    chi_square: float
    freedom: int

    @property
    def score(self) -> float:
        """It in standard deviations, about."""
        return (self.chi_square - self.freedom) / math.sqrt(2 * self.freedom)


def require_agreement(domain: Domain, answers: Sequence[Measurement]) -> None:
    """Raises ``ValueError`` for a table that cannot be about the rows of the others.

    Noise alone makes a release with a thousand pairs look so once in 300 million.
    """
    chance = 1e-12  # of noise alone, for one table and one set of its attributes
    lowest = 12.0  # standard deviations below 0 that noise does not reach: 2e-33
    answers = [replace(each, stddev=_stddev(each)) for each in answers]
    for each in answers:
        if each.answer.min(initial=0) < -lowest * each.stddev:
            raise ValueError(f"the {each.query.describe()} is far below 0: it was altered.")
    codes, grouped = fresh_tables(domain, answers), grouped_tables(domain, answers)
    for each in answers:
        if isinstance(each.query, CountQuery):
            codes[()] = NoisyTable(each.answer.astype(np.float64).reshape(()), each.stddev**2)
    found = [*_beside_each_other(codes)]
    for grouping, tables in grouped.items():
        found += [*_beside_each_other(tables), *_beside_codes(grouping, tables, codes)]
    worst = max(found, key=lambda each: each.score, default=None)
    if worst is not None and chdtrc(worst.freedom, worst.chi_square) < chance:
        name = f"table of {' x '.join(worst.clique)}" if worst.clique else "number of rows"
        raise ValueError(
            f"its {name} is not of the rows that its other tables count: one of them was altered "
            "after it was measured."
        )


def _stddev(answer: Measurement) -> float:
    """At least that of the noise, rounded: where it is nearly always 0, one is no surprise."""
    return math.hypot(answer.stddev, 1 / math.sqrt(12) / answer.units) if answer.stddev else EXACT


def _beside_each_other(tables: Mapping[Clique, NoisyTable]) -> Iterator[Apart]:
    """Each table beside all others over codes of the same kind."""
    held: dict[Clique, list[tuple[Clique, NoisyTable]]] = {}
    for clique, table in tables.items():
        for degree in range(len(clique) + 1):
            for subset in combinations(clique, degree):
                held.setdefault(subset, []).append((clique, _margin(table, clique, subset)))
    for margins in held.values():
        precision = sum(1 / margin.variance for _, margin in margins)
        whole = sum(margin.counts / margin.variance for _, margin in margins)
        for clique, margin in margins if len(margins) > 1 else ():
            left = precision - 1 / margin.variance
            others = (whole - margin.counts / margin.variance) / left
            yield _apart(clique, margin, others, 1 / left)


def _beside_codes(
    grouping: Grouping, tables: Mapping[Clique, NoisyTable], codes: Mapping[Clique, NoisyTable]
) -> Iterator[Apart]:
    """Each table over groups beside the sums of what tables over codes say."""
    for degree in (1, 2):
        known = margin_estimates(codes, degree)
        for clique, table in tables.items():
            for subset in known.keys() & set(combinations(clique, degree)):
                counts, variance = known[subset].counts, known[subset].variance
                sizes = grouping.sums(np.ones_like(counts), subset)
                margin = _margin(table, clique, subset)
                yield _apart(clique, margin, grouping.sums(counts, subset), variance * sizes)


def _margin(table: NoisyTable, clique: Clique, subset: Clique) -> NoisyTable:
    others = tuple(axis for axis, name in enumerate(clique) if name not in subset)
    margin = np.asarray(table.counts.sum(axis=others))
    return NoisyTable(margin, table.variance * (table.counts.size // margin.size))


def _apart(
    clique: Clique, margin: NoisyTable, others: np.ndarray, variance: float | np.ndarray
) -> Apart:
    squares = np.square(margin.counts - others) / (margin.variance + variance)
    return Apart(clique, float(squares.sum()), squares.size)
