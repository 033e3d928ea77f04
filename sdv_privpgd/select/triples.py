"""All 3-way marginals, coarsely: over a few groups of each attribute's codes.

A coarse table has few cells, so its sums over large regions have little noise. It tells what pairs
leave open about three attributes. It also locates the mass of each pair far more sharply than a
pair's many cells do for the same budget.
"""

import math
from fractions import Fraction
from statistics import fmean

import numpy as np

from sdv_privpgd.domain import Clique, Domain, Grouping
from sdv_privpgd.estimate.consistency import ConsistentTables, consistent_tables
from sdv_privpgd.estimate.denoising import signal_variances
from sdv_privpgd.privacy.accounting import stddev_for
from sdv_privpgd.privacy.curator import Curator
from sdv_privpgd.privacy.measurement import Measurement
from sdv_privpgd.privacy.queries import GroupedMarginalQuery, MarginalQuery
from sdv_privpgd.progress import Progress
from sdv_privpgd.select.equal_groups import equal_groups
from sdv_privpgd.select.importance import Importance, important_cliques, is_for_important

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
    curator: Curator, mu_squared: Fraction, importance: Importance, *, progress: Progress
) -> list[Measurement]:
    """Returns one measurement a triple. The domain must have triples (``has_triples``).

    The groups hold about equal shares of the records. There are eight of each attribute if some
    attribute is important and a cell then still holds, on average, as many records as the noise's
    standard deviation; else four. If there are more than 400 triples, those whose pairs depend most
    on each other are measured. Noisy answers alone decide all of this.

    >>> from sdv_privpgd.privacy.dataset import Dataset
    >>> from sdv_privpgd.privacy.ledger import Books, PrivacyLedger
    >>> from sdv_privpgd.privacy.queries import Adjacency, CountQuery
    >>> table = Dataset(Domain(("a", "b", "c"), (9, 9, 2)), np.array([[3, 0, 1], [8, 5, 0]] * 100))
    >>> books = Books(PrivacyLedger.open(1.0, 1e-5, Adjacency.REPLACE_ONE))
    >>> curator = Curator(table, books)
    >>> _ = curator.measure([CountQuery()], Fraction(0), what="number of rows")
    >>> from sdv_privpgd.progress import silent
    >>> (triple,) = measure_triples(curator, curator.ledger.remaining, {}, progress=silent)
    >>> triple.answer.shape
    (4, 4, 2)
    """
    tables = consistent_tables(curator.domain, curator.measurements)
    candidates = important_cliques(curator.domain, 3, importance)
    triples = _strongest(curator.domain, candidates, tables, progress)
    number = GROUPS
    if is_for_important(importance) and _can_pay(curator, triples, tables, mu_squared):
        number = FINE_GROUPS
    # Groups that were asked about before are asked about again: their answers can be averaged.
    grouping = _asked_before(curator, triples) or Grouping.of(
        {name: equal_groups(counts, number) for name, counts in tables.one_way.items()}
    )
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
    stddev = stddev_for(ledger.rows_per_person**2 * squared, mu_squared)
    cells = [
        math.prod(min(size, FINE_GROUPS) for size in domain.shape(triple)) for triple in triples
    ]
    return tables.total >= stddev * fmean(cells)


def has_triples(domain: Domain) -> bool:
    """Whether at least three attributes have more than one code.

    >>> has_triples(Domain(("a", "b", "c"), (2, 5, 1)))
    False
    """
    return sum(size > 1 for size in domain.sizes) > 2


def _strongest(
    domain: Domain, triples: list[Clique], tables: ConsistentTables, progress: Progress
) -> list[Clique]:
    """The triples; of too many, those with the strongest pairs."""
    if len(triples) <= MOST:
        return triples
    strengths = {pair: float(own.sum()) for pair, own in signal_variances(tables, progress).items()}
    of_pairs = [
        sum(strengths.get(pair, 0.0) for pair in domain.project(triple).cliques(2))
        for triple in triples
    ]
    kept = np.argsort(-np.array(of_pairs), kind="stable")[:MOST]
    return [triples[place] for place in sorted(kept.tolist())]
