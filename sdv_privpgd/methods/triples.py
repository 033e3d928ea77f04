"""All 3-way marginals, coarsely: over a few groups of each attribute's codes.

A coarse table has few cells, so its sums over large regions have little noise. It tells what pairs
leave open about three attributes. It also locates the mass of each pair far more sharply than a
pair's many cells do for the same budget.
"""

import math
from collections.abc import Sequence
from fractions import Fraction
from statistics import fmean

import numpy as np

from sdv_privpgd.base.domain import Clique, Domain, Grouping
from sdv_privpgd.base.progress import Progress
from sdv_privpgd.estimate.consistency import ConsistentTables, consistent_tables
from sdv_privpgd.estimate.denoising import signal_variances
from sdv_privpgd.estimate.groups import equal_groups
from sdv_privpgd.methods.importance import Importance, clique_weights, is_for_important
from sdv_privpgd.privacy.accounting import stddev_for
from sdv_privpgd.privacy.curator import Curator
from sdv_privpgd.privacy.measurement import Measurement
from sdv_privpgd.privacy.queries import GroupedMarginalQuery, MarginalQuery

GROUPS = 4
"""Groups of each attribute. On Adult and ACS Income four are better than six or eight, whose tables
are noisier."""

FINE_GROUPS = 8
"""Groups of each attribute where triples with an important attribute alone are asked for, if the
noise can pay for them: a model that learns from the rows gains by finer conditions."""

MOST = 400
"""The largest number of triples that are measured: about as many as 14 attributes have. The time
of the finish grows with them, and so does the noise of each."""


def measure_triples(
    curator: Curator,
    triples: Sequence[Clique],
    mu_squared: Fraction,
    importance: Importance,
    *,
    progress: Progress,
) -> list[Measurement]:
    """Returns one measurement a triple, of which there must be some.

    The groups hold about equal shares of the records. There are eight of each attribute if some
    attribute is important and a cell then still holds, on average, as many records as the noise's
    standard deviation; else four. If there are more than 400 triples, those whose pairs depend most
    on each other are measured. Noisy answers alone decide all of this.
    """
    tables = consistent_tables(curator.domain, curator.measurements)
    triples = _strongest(curator.domain, triples, tables, progress)
    number = GROUPS
    if is_for_important(importance) and _can_pay(curator, triples, tables, mu_squared):
        number = FINE_GROUPS
    # Groups that were asked about before are asked about again: their answers can be averaged.
    grouping = _asked_before(curator, triples) or Grouping.of(
        {name: equal_groups(counts, number) for name, counts in tables.one_way.items()}
    )
    for known in tables.grouped:  # sums over the same groups say more together
        if max(known.domain.sizes) == number:
            grouping = known
    return curator.measure(
        [GroupedMarginalQuery(triple, grouping) for triple in triples],
        mu_squared,
        what="3-way marginals in groups",
        progress=progress,
    )


def _asked_before(curator: Curator, triples: list[Clique]) -> Grouping | None:
    """The last grouping of which such triples were measured."""
    queries = [known.query for known in curator.measurements]
    found = [
        query.grouping
        for query in queries
        if isinstance(query, GroupedMarginalQuery) and query.clique in triples
    ]
    return found[-1] if found else None


def _can_pay(
    curator: Curator, triples: list[Clique], tables: ConsistentTables, mu_squared: Fraction
) -> bool:
    """Whether a cell of fine groups holds as many records as its noise on average."""
    ledger, domain = curator.ledger, curator.domain
    squared = sum(
        MarginalQuery(triple).l2_sensitivity_squared(ledger.adjacency) for triple in triples
    )
    stddev = stddev_for(ledger.rows_counted**2 * squared, mu_squared)
    cells = [
        math.prod(min(size, FINE_GROUPS) for size in domain.shape(triple)) for triple in triples
    ]
    return tables.total >= stddev * fmean(cells)


def has_triples(domain: Domain) -> bool:
    """Whether at least three attributes have more than one code."""
    return sum(size > 1 for size in domain.sizes) > 2


def triples_among(domain: Domain, pairs: Sequence[Clique], importance: Importance) -> list[Clique]:
    """The triples of attributes that can vary, each two of which are among the pairs.

    If some of them have an important attribute, those alone. Pairs are in the domain's order.
    """
    sizes = dict(zip(domain.attributes, domain.sizes, strict=True))
    partners: dict[str, dict[str, None]] = {name: {} for name in domain.attributes}
    for first, second in pairs:
        if sizes[first] > 1 and sizes[second] > 1:
            partners[first][second] = None
    found = [
        (first, second, third)
        for first, others in partners.items()
        for second in others
        for third in partners[second]
        if third in others
    ]
    return [
        triple for triple, weight in clique_weights(found, importance).items() if weight > 1
    ] or found


def _strongest(
    domain: Domain, triples: Sequence[Clique], tables: ConsistentTables, progress: Progress
) -> list[Clique]:
    """The triples; of too many, those with the strongest pairs."""
    if len(triples) <= MOST:
        return list(triples)
    strengths = {pair: float(own.sum()) for pair, own in signal_variances(tables, progress).items()}
    of_pairs = [
        sum(strengths.get(pair, 0.0) for pair in domain.project(triple).cliques(2))
        for triple in triples
    ]
    kept = np.argsort(-np.array(of_pairs), kind="stable")[:MOST]
    return [triples[place] for place in sorted(kept.tolist())]
