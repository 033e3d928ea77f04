"""All 2-way marginals, some of them twice; 1-way and coarse 3-way ones where they help."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction

import numpy as np

from sdv_privpgd.domain import Clique, in_words
from sdv_privpgd.estimate.consistency import consistent_tables
from sdv_privpgd.estimate.denoising import signal_variances
from sdv_privpgd.estimate.noisy_tables import estimate_total
from sdv_privpgd.privacy.accounting import stddev_for
from sdv_privpgd.privacy.curator import Curator
from sdv_privpgd.privacy.measurement import Measurement
from sdv_privpgd.privacy.queries import CountQuery, MarginalQuery
from sdv_privpgd.progress import Progress, silent
from sdv_privpgd.select.allocation import most_helpful
from sdv_privpgd.select.importance import Importance, checked_importance, clique_weights
from sdv_privpgd.select.triples import has_triples, measure_triples
from sdv_privpgd.synthesize.engine import Engine

_PER_NOISE, _SMALLEST, _LARGEST = 1.5, 0.02, 0.15
"""The share of mu^2 for the 1-way marginals is so many times their relative noise without it; below
the smallest it is nothing. Chosen on Adult and Bank: at epsilon 0.2, where the relative noise is
0.09 and 0.07, shares of 0.1 to 0.2 lower all errors; at 2.5 they raise those of the pairs."""


_LEVELS = (0.0, *(2.0**power for power in range(12)))
"""How much of its first budget a pair may get again. None but 0 is below 1, so that no answer of
the second round is noisier than those of the first."""


@dataclass(frozen=True, kw_only=True)
class AllPairs:
    """Every pair of attributes, triples coarsely, and where the noise is loud each one alone.

    A table's sums say less of an attribute than a question about it, but all pairs together are
    asked often. So a share of the budget goes to the attributes alone that grows with the noise
    of their combined marginals beside the counts, from public facts: the domain, the budget and
    the (public or noisy) number of records.

    Pairs are measured in two rounds: first all of them evenly, then those again for which the
    noisy answers promise most. What little two attributes have to do with each other stays
    hidden in the noise of twice the budget, too; where they have much to do, it pays.

    Triples are measured last, over a few groups of codes each (``triples``).

    Attributes:
        columns: Whether attributes are asked about alone.
        first_share: The part of the pairs' mu^2 for the first round; 1 for no second one. On Adult
            and Bank 0.5 to 0.7 are as good. Where one pair could not be measured again with at
            least its first budget, there is one round.
        triples: The part of mu^2 for triples; 0 for none. A tenth was chosen on Adult and Bank: at
            epsilon 0.2 it lowers all errors by up to a fifth, at 2.5 all but L1, which is 1 to 2 %
            larger. There a twentieth is as good, and a fifth worse.
        importance: How many times the budget of another pair a pair with an attribute gets. Where
            an attribute has one above 1, only triples with such an attribute are measured.
    """

    columns: bool = True
    first_share: Fraction = Fraction(2, 3)
    triples: Fraction = Fraction(1, 10)
    importance: Importance = field(default_factory=dict)

    def __post_init__(self) -> None:
        object.__setattr__(self, "importance", checked_importance(self.importance))
        if not 0 < self.first_share <= 1:
            raise ValueError(
                f"first_share must be above 0 and at most 1, got {self.first_share!r}."
            )
        if not 0 <= self.triples < 1:
            raise ValueError(f"triples must be at least 0 and below 1, got {self.triples!r}.")

    def run(
        self, curator: Curator, engine: Engine, *, progress: Progress = silent
    ) -> list[Measurement]:
        """One measurement an attribute, if they have a share, one or two a pair, one a triple."""
        del engine
        kept = curator.ledger.remaining * Fraction(self.triples)
        if not has_triples(curator.domain):
            kept = Fraction(0)
        share = _one_way_share(curator) if self.columns else Fraction(0)
        one_way = []
        if share:
            one_way = curator.measure(
                [MarginalQuery(clique) for clique in curator.domain.cliques(1)],
                (curator.ledger.remaining - kept) * share,
                what="all 1-way marginals",
            )
        pairs = self._pairs(curator, curator.ledger.remaining - kept, progress)
        triples = []
        if kept:
            triples = measure_triples(curator, kept, self.importance, progress=progress)
        return [*one_way, *pairs, *triples]

    def _pairs(
        self, curator: Curator, mu_squared: Fraction, progress: Progress
    ) -> list[Measurement]:
        """The pairs in one round or two, for so much in all."""
        degree = min(2, len(curator.domain))
        weights = clique_weights(curator.domain.cliques(degree), self.importance)
        units = sum(map(Fraction, weights.values())) * (1 / Fraction(self.first_share) - 1)
        what = f"all {degree}-way marginals"
        has_second = units >= max(weights.values())
        first_part = mu_squared * Fraction(self.first_share) if has_second else mu_squared
        first = _measured_by_weight(curator, weights, first_part, what, progress)
        if not has_second:
            return first
        left = mu_squared - first_part
        return [*first, *_second_round(curator, first, weights, float(units), left, progress)]


def _measured_by_weight(
    curator: Curator,
    parts: Mapping[Clique, float],
    mu_squared: Fraction,
    what: str,
    progress: Progress,
) -> list[Measurement]:
    """The cliques' marginals, each for its part of the budget, equal parts in one release."""
    cliques_of: dict[Fraction, list[Clique]] = {}
    for clique, part in parts.items():
        cliques_of.setdefault(Fraction(part), []).append(clique)
    whole = sum(part * len(cliques) for part, cliques in cliques_of.items())
    return [
        measurement
        for part, cliques in sorted(cliques_of.items())
        for measurement in curator.measure(
            [MarginalQuery(clique) for clique in cliques],
            mu_squared * part * len(cliques) / whole,
            what=what if len(cliques_of) == 1 else f"{what}: {in_words(cliques)}",
            progress=progress,
        )
    ]


def _second_round(
    curator: Curator,
    first: list[Measurement],
    weights: Mapping[Clique, float],
    units: float,
    left: Fraction,
    progress: Progress,
) -> list[Measurement]:
    """The pairs that are measured again, with all that is left.

    ``first`` are the answers of the first round, and ``units`` is what is left of the budget, in
    parts of what a pair of weight 1 had of it.
    """
    domain = curator.domain
    signals = signal_variances(consistent_tables(domain, curator.measurements), progress)
    # A pair without a residual promises nothing.
    signals = dict.fromkeys(domain.cliques(2), np.zeros(0)) | signals
    variances = {each.query.clique: each.stddev**2 for each in first}
    chosen = most_helpful(signals, variances, _LEVELS, units, weights)
    parts = {clique: level * weights[clique] for clique, level in chosen.items()}
    what = "2-way marginals that promise most"
    return _measured_by_weight(curator, parts, left, what, progress)


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
