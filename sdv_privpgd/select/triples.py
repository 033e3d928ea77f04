"""All 3-way marginals, coarsely: over a few groups of each attribute's codes.

A coarse table has few cells, so its sums over large regions have little noise: it says what pairs
leave open of three attributes, and where the mass of each pair lies, far more sharply than a pair's
many cells do for the same budget.
"""

from fractions import Fraction

import numpy as np

from sdv_privpgd.domain import Clique, Domain, Grouping
from sdv_privpgd.estimate.consistency import ConsistentTables, consistent_tables
from sdv_privpgd.estimate.denoising import signal_variances
from sdv_privpgd.privacy.curator import Curator
from sdv_privpgd.privacy.measurement import Measurement
from sdv_privpgd.privacy.queries import GroupedMarginalQuery
from sdv_privpgd.progress import Progress
from sdv_privpgd.select.equal_groups import equal_groups
from sdv_privpgd.select.importance import Importance, important_cliques

GROUPS = 4
"""Of each attribute. On Adult four are better than six and eight, whose tables are noisier."""

MOST = 400
"""Triples that are measured: about as many as 14 attributes have. The finish's time grows with
them, and so does the noise of each."""


def measure_triples(
    curator: Curator, mu_squared: Fraction, importance: Importance, *, progress: Progress
) -> list[Measurement]:
    """One measurement a triple, of a domain that has some (``has_triples``).

    Groups hold about equal shares of the records. Where triples are more than 400, they are those
    whose pairs depend most on each other. Both are decided by noisy answers only.
    """
    tables = consistent_tables(curator.domain, curator.measurements)
    candidates = important_cliques(curator.domain, 3, importance)
    triples = _strongest(curator.domain, candidates, tables, progress)
    grouping = Grouping.of(
        {name: equal_groups(counts, GROUPS) for name, counts in tables.one_way.items()}
    )
    return curator.measure(
        [GroupedMarginalQuery(triple, grouping) for triple in triples],
        mu_squared,
        what="3-way marginals in groups",
        progress=progress,
    )


def has_triples(domain: Domain) -> bool:
    """Whether there are three attributes that can vary."""
    return sum(size > 1 for size in domain.sizes) > 2


def _strongest(
    domain: Domain, triples: list[Clique], tables: ConsistentTables, progress: Progress
) -> list[Clique]:
    """The triples, or those of them with the strongest pairs."""
    if len(triples) <= MOST:
        return triples
    strengths = {pair: float(own.sum()) for pair, own in signal_variances(tables, progress).items()}
    of_pairs = [
        sum(strengths.get(pair, 0.0) for pair in domain.project(triple).cliques(2))
        for triple in triples
    ]
    kept = np.argsort(-np.array(of_pairs), kind="stable")[:MOST]
    return [triples[place] for place in sorted(kept.tolist())]
