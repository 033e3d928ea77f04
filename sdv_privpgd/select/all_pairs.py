"""All 2-way marginals, and the 1-way marginals as far as they would be too noisy without."""

import math
from dataclasses import dataclass
from fractions import Fraction

from sdv_privpgd.measure import Measurement, estimate_total
from sdv_privpgd.privacy.accounting import stddev_for
from sdv_privpgd.privacy.curator import Curator
from sdv_privpgd.progress import Progress, silent
from sdv_privpgd.queries import CountQuery, MarginalQuery
from sdv_privpgd.select.fixed import AllKWay
from sdv_privpgd.synthesize.engine import Engine

_PER_NOISE, _SMALLEST, _LARGEST = 1.5, 0.02, 0.15
"""The share of mu^2 for the 1-way marginals is so many times their relative noise without it; below
the smallest it is nothing. Chosen on Adult and Bank: at epsilon 0.2, where the relative noise is
0.09 and 0.07, shares of 0.1 to 0.2 lower all errors; at 2.5 they raise those of the pairs."""


@dataclass(frozen=True, kw_only=True)
class AllPairs:
    """Every pair of attributes; where the noise is loud, every attribute alone as well.

    A table's sums say less of an attribute than a question about it, but all pairs together are
    asked often. So a share of the budget goes to the attributes alone that grows with the noise
    of their combined marginals beside the counts, from public facts: the domain, the budget and
    the (public or noisy) number of records.
    """

    def run(
        self, curator: Curator, engine: Engine, *, progress: Progress = silent
    ) -> list[Measurement]:
        """One measurement an attribute, if they have a share, and one a pair; takes all."""
        share = _one_way_share(curator)
        one_way = []
        if share:
            one_way = curator.measure(
                [MarginalQuery(clique) for clique in curator.domain.cliques(1)],
                curator.ledger.remaining * share,
                what="all 1-way marginals",
                progress=progress,
            )
        return [*one_way, *AllKWay(degree=2).run(curator, engine, progress=progress)]


def _one_way_share(curator: Curator) -> Fraction:
    """The share of mu^2, in thousandths; 0 where the number of records is not known."""
    domain, ledger = curator.domain, curator.ledger
    counts = [known for known in curator.measurements if isinstance(known.query, CountQuery)]
    if len(domain) < 3 or not counts:
        return Fraction(0)
    total = estimate_total(domain, counts).value
    pairs = [MarginalQuery(clique) for clique in domain.cliques(2)]
    squared = sum(pair.l2_sensitivity_squared(ledger.adjacency) for pair in pairs)
    stddev = stddev_for(ledger.rows_per_person**2 * squared, ledger.remaining)
    inverse_sizes = sum(1 / size for size in domain.sizes)
    # A pair's sums over the other attribute's k values have k times the variance of a cell.
    relative_noise = [
        stddev / math.sqrt(inverse_sizes - 1 / size) * size / total for size in domain.sizes
    ]
    share = min(_PER_NOISE * sum(relative_noise) / len(domain), _LARGEST)
    return Fraction(round(1000 * share), 1000) if share >= _SMALLEST else Fraction(0)
