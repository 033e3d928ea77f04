"""Noisy tables of different people, added up: the counts add, and so do the variances.

A holder's own answers to one question are averaged by inverse variance first, as in any fit. Then
the tables that every holder has measured are added. The noise of different holders is independent,
so K holders with noise of standard deviation s give their sum one of s sqrt(K): as if one table of
them all had been asked with a K-th of the mu^2.

What only some have measured cannot be added up, because the others' people would be missing. Where
such a table lies within one that all have measured (the counts of one column within those of a
pair), it is not lost: the holder's tables are replaced by their best linear estimates from all that
it has measured. These are less noisy than the tables (Gauss-Markov), so the variances that are said
here, which are those of the tables themselves, are never too small.

Post-processing of noisy answers: public and free.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from sdv_privpgd.base.domain import Clique, Domain, Grouping
from sdv_privpgd.estimate.noisy_tables import NoisyTable, grouped_tables, noisy_tables
from sdv_privpgd.inference.linear import LinearEstimate
from sdv_privpgd.privacy.measurement import Measurement
from sdv_privpgd.privacy.queries import CountQuery, GroupedMarginalQuery, MarginalQuery

Key = tuple[Clique, Grouping | None]
"""A table over codes, or over groups of them."""


@dataclass(frozen=True, kw_only=True)
class Pooled:
    """Sums over holders. Public.

    Attributes:
        measurements: The number of rows, and the tables that all holders have measured. Answers are
            float64.
        within: Tables that only some have measured and that lie within others: they were used.
        left_out: Tables that only some have measured and that could not be used.
    """

    measurements: tuple[Measurement, ...]
    within: tuple[Clique, ...]
    left_out: tuple[Clique, ...]


def pooled(domain: Domain, of_holders: Sequence[Sequence[Measurement]]) -> Pooled:
    """The sums of the noisy answers of several holders, who have no rows in common.

    Raises:
        ValueError: If no table was measured by all holders.
    """
    tables = [_tables(domain, answers) for answers in of_holders]
    common = [key for key in tables[0] if all(key in own for own in tables)]
    if not common:
        raise ValueError(
            "No table was measured by all holders, so there is nothing to add up. Let all of them "
            "measure with the same method, such as 'privpgd'."
        )
    others = dict.fromkeys(key for own in tables for key in own if key not in common)
    within = [key for key in others if _is_within(key, common)]
    best = [
        _estimates(domain, answers, own, common, within)
        for answers, own in zip(of_holders, tables, strict=True)
    ]
    sums = [
        Measurement(
            query=MarginalQuery(key[0]) if key[1] is None else GroupedMarginalQuery(key[0], key[1]),
            answer=np.asarray(sum(own[key].counts for own in best)),
            stddev=float(np.sqrt(sum(own[key].variance for own in best))),
            units=_units(of_holders),
        )
        for key in common
    ]
    return Pooled(
        measurements=(*_rows(of_holders), *sums),
        within=tuple(clique for clique, _ in within),
        left_out=tuple(clique for clique, grouping in others if (clique, grouping) not in within),
    )


def _tables(domain: Domain, answers: Sequence[Measurement]) -> dict[Key, NoisyTable]:
    """A holder's tables, what was asked several times averaged."""
    found: dict[Key, NoisyTable] = {
        (clique, None): table for clique, table in noisy_tables(domain, answers).items()
    }
    for grouping, tables in grouped_tables(domain, answers).items():
        found |= {(clique, grouping): table for clique, table in tables.items()}
    return found


def _is_within(key: Key, common: Sequence[Key]) -> bool:
    """Whether a table over codes follows from a larger one that all have."""
    clique, grouping = key
    return grouping is None and any(
        other is None and set(clique) < set(larger) for larger, other in common
    )


def _estimates(
    domain: Domain,
    answers: Sequence[Measurement],
    own: Mapping[Key, NoisyTable],
    common: Sequence[Key],
    within: Sequence[Key],
) -> Mapping[Key, NoisyTable]:
    """A holder's common tables, with what its tables within them say if it has any."""
    if not any(key in own for key in within):
        return own
    codes = [each for each in answers if not isinstance(each.query, GroupedMarginalQuery)]
    linear, found = LinearEstimate(domain, codes), dict(own)
    for key in common:
        clique, grouping = key
        table = linear.table(clique) if grouping is None else None
        if table is not None:
            found[key] = NoisyTable(table[0], own[key].variance)
    return found


def _rows(of_holders: Sequence[Sequence[Measurement]]) -> list[Measurement]:
    """The sum of the numbers of rows, if every holder was asked for its own."""
    counts = [
        next((each for each in answers if isinstance(each.query, CountQuery)), None)
        for answers in of_holders
    ]
    known = [count for count in counts if count is not None]
    if len(known) < len(counts):
        return []
    total = np.asarray(sum(count.answer for count in known))
    stddev = float(np.sqrt(sum(count.stddev**2 for count in known)))
    units = _units(of_holders)
    return [Measurement(query=CountQuery(), answer=total, stddev=stddev, units=units)]


def _units(of_holders: Sequence[Sequence[Measurement]]) -> int:
    """The finest units of all answers: sums are about as finely rounded."""
    return max((each.units for answers in of_holders for each in answers), default=1)
