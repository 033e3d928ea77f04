"""What a strategy is likely to ask of a domain, from public facts alone."""

from collections.abc import Sequence
from itertools import pairwise
from typing import TYPE_CHECKING

from sdv_privpgd.domain import Clique, Domain
from sdv_privpgd.select.adaptive import Adaptive
from sdv_privpgd.select.aim import AIM
from sdv_privpgd.select.all_pairs import AllPairs
from sdv_privpgd.select.coarse_pairs import EACH
from sdv_privpgd.select.fixed import AllKWay
from sdv_privpgd.select.mean_embedding import MeanEmbedding
from sdv_privpgd.select.mst import MST
from sdv_privpgd.select.mwem import MWEM
from sdv_privpgd.select.privmrf import PrivMRF
from sdv_privpgd.select.privsyn import PrivSyn
from sdv_privpgd.select.strategy import Strategy

if TYPE_CHECKING:
    from sdv_privpgd.columns.facts import ColumnFacts

_CATEGORIES = 12


def usual_size(facts: "ColumnFacts", num_bins: int) -> int:
    """The number of codes that is assumed of a column whose domain is not declared."""
    # Imported here: facts need pandas, and codes alone are fitted without it.
    from sdv_privpgd.columns.facts import DateFacts, NumberFacts

    if isinstance(facts, NumberFacts | DateFacts):
        return num_bins if facts.num_bins is None else facts.num_bins
    return _CATEGORIES


def cliques_of(domain: Domain, strategy: Strategy) -> Sequence[Clique]:
    """Returns the cliques that a strategy is likely to measure, but for tables over groups."""
    ones, pairs = domain.cliques(1), domain.cliques(min(2, len(domain)))
    if isinstance(strategy, AllPairs):
        number = len(pairs)
        if coarse_cliques_of(domain, strategy):
            number = min(EACH * len(domain), strategy.most_pairs)
        return [pairs[place * len(pairs) // number] for place in range(number)]
    if isinstance(strategy, AllKWay):
        return domain.cliques(min(strategy.degree, len(domain)))
    if isinstance(strategy, Adaptive):
        rounds = strategy.rounds or len(domain)
        return pairs[: rounds * strategy.marginals]
    axes = domain.attributes
    if isinstance(strategy, MST | AIM | MWEM | PrivSyn | PrivMRF):
        return [*ones, *pairwise(axes)]
    if isinstance(strategy, MeanEmbedding) and strategy.label in axes and len(axes) > 1:
        return [(name, strategy.label) for name in axes if name != strategy.label]
    return ones


def coarse_cliques_of(domain: Domain, strategy: Strategy) -> Sequence[Clique]:
    """The pairs that a strategy measures over groups of codes."""
    pairs = domain.cliques(2)
    is_many = isinstance(strategy, AllPairs) and len(pairs) > strategy.most_pairs
    return pairs if is_many else ()
