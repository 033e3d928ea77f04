"""PrivSyn: the pairs whose dependence is worth the noise of measuring them, in larger tables."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction

import numpy as np

from sdv_privpgd.base.arguments import check_fields, check_integer
from sdv_privpgd.base.domain import Clique, Domain
from sdv_privpgd.base.progress import Progress, silent
from sdv_privpgd.methods.adaptive import expected_noise
from sdv_privpgd.methods.k_way import Independent
from sdv_privpgd.methods.method import EngineMethod, Importance, clique_weights, measure_tables
from sdv_privpgd.methods.privmrf import dependences, measure_dependences
from sdv_privpgd.privacy.curator import Curator
from sdv_privpgd.privacy.queries import Measurement
from sdv_privpgd.synthesize.engine import PRIVSYN, Engine


@dataclass(frozen=True, kw_only=True)
class PrivSyn(EngineMethod):
    """1-way marginals, and the pairs whose dependence is larger than the noise they would add.

    Zhang et al. 2021 (PrivSyn). A tenth of the budget pays for the dependence of all pairs (InDif),
    a tenth for the 1-way marginals, the rest for the tables of chosen pairs. Pairs are chosen
    greedily (DenseMarg), each time the one that lowers most the sum of the dependence of all that
    is left out and the noise of all that is chosen, until none does. Pairs that form a clique are
    measured as one table if it has few cells. A table gets a share of the budget that grows with
    its cells to the power of 2/3, at which the sum of all L1 norms of noise is least. Ours differs
    in five ways:

    - Budgets are in mu^2, and both kinds of neighbors are possible: a pair's dependence changes by
      4 with a record that comes or goes, and by 6 with one that moves.
    - An attribute that is in no chosen pair keeps its 1-way marginal. The authors' code joins it to
      another one against the verdict of the choice.
    - The largest cliques are searched for among at most 20,000.
    - Pairs with which the engine could make no model are left out: Private-PGM cannot hold many.
    - Pairs of important attributes count more where pairs are chosen.

    When to use it: with ``GUM``, its authors' engine, or with particles, where all pairs are too
    many or too noisy, and few of them depend. All is chosen in one step, so that no model is fitted
    on the way.

    Attributes:
        max_cells: The largest table that cliques of pairs are combined to. 5,000 is the paper's; 0
            leaves all pairs as they are.
        importance: How many times as much as others the dependences of an attribute count.
    """

    engine: Engine | str = "gum"
    max_cells: int = 5_000
    importance: Importance = field(default_factory=dict)

    asks_pairs = True
    counts = (
        "how much each pair of columns depends, the frequencies of each column, and the "
        "contingency tables that were chosen because their columns depend much"
    )
    citation = PRIVSYN
    is_quick = True

    def __post_init__(self) -> None:
        super().__post_init__()
        check_fields(self, check_integer, "max_cells", least=0)

    def measure(self, curator: Curator, *, progress: Progress = silent) -> list[Measurement]:
        """The dependences, 1-way marginals and chosen tables; spends all that is left."""
        # Shares of mu^2 for the dependences of all pairs and for the 1-way marginals.
        for_dependences, for_one_way = Fraction(1, 10), Fraction(1, 10)
        domain, budget = curator.domain, curator.ledger.remaining
        if len(domain) < 2:
            return Independent().measure(curator, progress=progress)
        varied = [pair for pair in domain.cliques(2) if min(domain.shape(pair)) > 1]
        measured = measure_dependences(curator, varied, for_dependences * budget, progress)
        dependence = dependences(curator.measurements)
        weights = clique_weights(dependence, self.importance)
        left = (1 - for_dependences - for_one_way) * budget
        pairs = dense_pairs(
            {pair: weights[pair] * known for pair, known in dependence.items()},
            domain,
            expected_noise(curator.ledger, domain, (), left),
        )
        pairs = self.held_together(domain, pairs)
        share = for_one_way * budget if pairs else None
        alone = domain.cliques(1)
        measured += measure_tables(curator, alone, "all 1-way marginals", share, progress)
        return measured + _tables(curator, combined(domain, pairs, self.max_cells), progress)


def dense_pairs(
    dependence: Mapping[Clique, float], domain: Domain, unit_noise: float
) -> list[Clique]:
    """The pairs to measure, in the order in which they are chosen. Public.

    The expected L1 error of an unmeasured pair is its dependence, that of pairs X that are measured
    with optimal shares is ``unit_noise`` * S^(3/2) together, S being the sum over X of their cells
    to the power of 2/3 (Zhang et al. 2021, DenseMarg).

    Args:
        dependence: In counts, by pair; noise may have made it negative.
        domain: Of the codes.
        unit_noise: The mean absolute noise of a table of one cell that gets the whole budget.
    """
    pairs = list(dependence)
    gains = np.array([dependence[pair] for pair in pairs])
    powers = np.array([float(domain.size(pair)) for pair in pairs]) ** (2 / 3)
    chosen, held = [], 0.0
    is_left = np.ones(len(pairs), dtype=bool)
    while is_left.any():
        noise = unit_noise * ((held + powers) ** 1.5 - held**1.5)
        lowered = np.where(is_left, gains - noise, -math.inf)
        best = int(lowered.argmax())
        if lowered[best] <= 0:
            break
        chosen.append(pairs[best])
        held += powers[best]
        is_left[best] = False
    return chosen


def _tables(curator: Curator, cliques: Sequence[Clique], progress: Progress) -> list[Measurement]:
    """The tables of cliques, those of equal size in one act; spends all that is left."""
    domain, budget, measured = curator.domain, curator.ledger.remaining, []
    by_cells: dict[int, list[Clique]] = {}
    for clique in cliques:
        by_cells.setdefault(domain.size(clique), []).append(clique)
    # Whole numbers, so that shares stay short fractions.
    weights = {
        cells: len(own) * max(round(1_000 * cells ** (2 / 3)), 1) for cells, own in by_cells.items()
    }
    for place, cells in enumerate(progress(list(by_cells), "measure"), start=1):
        share = budget * Fraction(weights[cells], sum(weights.values()))
        what = f"marginals of {cells:,} cells"
        part = share if place < len(by_cells) else None
        measured += measure_tables(curator, by_cells[cells], what, part, are_chosen=True)
    return measured


def combined(domain: Domain, pairs: Sequence[Clique], max_cells: int) -> list[Clique]:
    """The cliques to measure in place of pairs, in the domain's order: larger ones come first.

    Zhang et al. 2021 (PrivSyn): in the graph of the pairs, the largest clique of three attributes
    or more is taken that has at most ``max_cells`` cells, and at most two attributes with those
    that were taken before. Pairs that no clique holds stay as they are.
    """
    axes = [tuple(sorted(domain.axes(pair))) for pair in pairs]
    near = [set() for _ in domain.attributes]
    for a, b in axes:
        near[a].add(b)
        near[b].add(a)
    taken: list[tuple[int, ...]] = []
    used: set[int] = set()
    while len(found := _largest(domain, near, used, max_cells)) > 2:
        taken.append(found)
        used |= set(found)
    left = [pair for pair in axes if not any(set(pair) <= set(clique) for clique in taken)]
    return [tuple(domain.attributes[axis] for axis in clique) for clique in [*taken, *left]]


def _largest(
    domain: Domain, near: Sequence[set[int]], used: set[int], max_cells: int
) -> tuple[int, ...]:
    """The first of the largest cliques that may be taken, as axes; () where there is none."""
    # Cliques that are looked at in one search; among more, the largest found by then is taken.
    most_visits = 20_000
    best: tuple[int, ...] = ()
    visits = 0

    def grow(clique: tuple[int, ...], cells: int, candidates: list[int], number_used: int) -> None:
        nonlocal best, visits
        visits += 1
        if len(clique) > len(best):
            best = clique
        for place, axis in enumerate(candidates):
            if visits > most_visits or len(clique) + len(candidates[place:]) <= len(best):
                return
            now_used = number_used + (axis in used)
            if now_used <= 2 and cells * domain.sizes[axis] <= max_cells:
                later = [other for other in candidates[place + 1 :] if other in near[axis]]
                grow((*clique, axis), cells * domain.sizes[axis], later, now_used)

    grow((), 1, [axis for axis in range(len(domain)) if near[axis]], 0)
    return best


METHODS = {"privsyn": PrivSyn}
