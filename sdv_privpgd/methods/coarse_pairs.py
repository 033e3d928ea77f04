"""Answers over groups of codes: quadrants of pairs beside their tables, and coarse tables.

A sum over a large region has little noise, also where a cell of a pair's codes would drown in it.
So a part of the pairs' budget buys one number of each, which tells of its correlation, and the rest
the detail. The estimates join both by their exact variances. Where pairs are too many to be asked
for over codes, what coarse tables say of the strength of dependence decides which are.
Triples over groups tell what pairs leave open about three attributes, and locate the mass of each
pair far more sharply than a pair's many cells do for the same budget.
"""

import math
from collections.abc import Callable, Collection, Mapping, Sequence
from fractions import Fraction
from itertools import combinations
from statistics import fmean
from typing import Any

import numpy as np

from sdv_privpgd.base.domain import Clique, Domain, Grouping, in_words
from sdv_privpgd.base.progress import Progress
from sdv_privpgd.estimate.consistency import ConsistentTables, consistent_tables, one_way_tables
from sdv_privpgd.estimate.denoising import equal_groups, over_groups, strengths
from sdv_privpgd.estimate.effects import independent
from sdv_privpgd.estimate.noisy_tables import estimate_total, grouped_tables
from sdv_privpgd.methods.method import Importance, clique_weights, is_for_important, measure_tables
from sdv_privpgd.methods.pipeline import noise_of
from sdv_privpgd.privacy.curator import Curator
from sdv_privpgd.privacy.queries import (
    CountQuery,
    GroupedMarginalQuery,
    MarginalQuery,
    Measurement,
    QuadrantQuery,
    Query,
)

_OF_MANY = Fraction(3, 10)
"""The part of the pairs' mu^2 for tables over groups where pairs are too many. On 100,000 simulated
rows of 100 columns at epsilon 1 the mean L1 error of the estimated pairs (without particles) is
0.147, 0.138 and 0.137 with shares of 0.15, 0.3 and 0.5; on 1,000,000 it is 0.055 and 0.057 with 0.3
and 0.5."""

_CORRELATION = 4.0
"""What the noise of a correlation counts beside that of a pair, for each unit of it. With 8 the
errors of estimated correlations of seven public tables at epsilon 1 are 4 % lower, and those of
pairs at 0.2 3 % higher; with 2 they are 2 % and 5 % higher, and pairs the same."""

EACH = 2
"""The most pairs over codes for each attribute. On 1,000,000 rows as above the error is 0.047 with
245 and 0.043 with 1,125 pairs; but fewer tables leave time for more particles."""

_CLEAR = 8.0
"""There are eight groups of each attribute if a cell's mean count is so many times the noise, else
four. On 1,000,000 rows as above, where it is over 20 times the noise, the error is 0.057, 0.047 and
0.044 with four, six and eight groups (at a share of 0.5); on 100,000, where it is twice the noise
(3.7 times with six), it is 0.138 with four groups and 0.151 with six."""


def counted_total(curator: Curator) -> float | None:
    """The number of records by its own count; ``None`` where there is none."""
    counts = [known for known in curator.measurements if isinstance(known.query, CountQuery)]
    return estimate_total(curator.domain, counts).value if counts else None


def measure_by_weight(
    curator: Curator,
    parts: Mapping[Clique, Any],
    mu_squared: Fraction,
    what: str,
    progress: Progress,
    *,
    are_chosen: bool = False,
    grouping: Grouping | None = None,
    kind: Callable[[Clique, Grouping], Query] = GroupedMarginalQuery,
) -> list[Measurement]:
    """The cliques' marginals, each for its part of the budget, equal parts in one release.

    The ledger names the cliques that were chosen, and others if they have different parts. Over
    groups, if there are any, the questions are of this ``kind``.
    """
    cliques_of: dict[Fraction, list[Clique]] = {}
    for clique, part in parts.items():
        cliques_of.setdefault(Fraction(part), []).append(clique)
    whole = sum(part * len(cliques) for part, cliques in cliques_of.items())
    is_named, found = len(cliques_of) > 1 and not are_chosen, []
    for part, cliques in sorted(cliques_of.items()):
        said = f"{what}: {in_words(cliques)}" if is_named else what
        share = mu_squared * part * len(cliques) / whole
        found += measure_tables(
            curator, cliques, said, share, progress, grouping, kind, are_chosen=are_chosen
        )
    return found


def part_for(worth: float, gain: float) -> Fraction:
    """The part of mu^2 for questions of their own, in thousandths; 0 if it would be under 1/50.

    The rest keeps 1/50 at least, however few the rows seem to be.

    It makes ``worth / sqrt(1 + w gain) + 1 / sqrt(1 - w)`` least over parts w: the forecast of the
    noise in what these questions are about, and of that in the rest. ``worth`` is what the first
    counts beside the second if nothing is asked, and 1 + ``gain`` how many times more the same
    budget tells of it if it is spent on these questions.
    """
    least = Fraction(2, 100)  # of a smaller part answers would say nothing new
    steep = (worth * max(gain, 0.0)) ** (2 / 3)
    if steep <= 1:
        return Fraction(0)
    part = Fraction(round(1000 * (steep - 1) / (steep + gain)), 1000)
    return min(part, 1 - least) if part >= least else Fraction(0)


def measure_quadrants(
    curator: Curator,
    pairs: Sequence[Clique],
    mu_squared: Fraction,
    importance: Importance,
    progress: Progress,
    *,
    is_public: bool = False,
) -> list[Measurement]:
    """Returns the quadrants of all pairs, for the part of ``mu_squared`` that is best for both.

    A correlation moves few rows from each of many cells, and many from side to side: of k times k
    cells its noise is k times that of a cell, and of quadrants pi / 2 times theirs. Noisy answers
    alone decide on the sides; they can be ``is_public``, the same in other tables.
    """
    domain, total = curator.domain, counted_total(curator)
    asked = [pair for pair in pairs if _cells(domain, pair, 2) == 4]
    if total is None or not asked:
        return []
    counts = _shares(curator, is_public=is_public)
    sides = Grouping.of({name: equal_groups(own, 2) for name, own in counts.items()})
    noise, own = (
        noise_of(curator.ledger, queries, mu_squared) / total
        for queries in (map(MarginalQuery, pairs), [QuadrantQuery(each, sides) for each in asked])
    )
    noise *= fmean(math.sqrt(domain.size(pair)) for pair in pairs)
    part = part_for(_CORRELATION * noise, (noise / (math.pi / 2 * own)) ** 2 - 1)
    if not part:
        return []
    weights = clique_weights(asked, importance)
    return measure_by_weight(
        curator,
        weights,
        mu_squared * part,
        "quadrants of pairs",
        progress,
        grouping=sides,
        kind=QuadrantQuery,
    )


def _shares(curator: Curator, *, is_public: bool) -> Mapping[str, np.ndarray]:
    """Of what groups of each attribute have equal parts: its noisy counts, or its codes.

    The latter where there are no answers, and for groups that are ``is_public``.
    """
    if is_public or not curator.measurements:
        return {name: np.ones(size) for name, size in curator.domain.size_of.items()}
    return one_way_tables(curator.domain, curator.measurements)


def measure_coarsely(
    curator: Curator,
    pairs: Sequence[Clique],
    mu_squared: Fraction,
    importance: Importance,
    progress: Progress,
    *,
    is_public: bool = False,
) -> list[Measurement]:
    """Returns the measurements of pairs over groups that hold about equal shares of the records.

    They take a part of ``mu_squared``. There are four groups of each attribute, or eight where the
    noise is low beside the counts. Noisy answers alone decide on them; they can be ``is_public``,
    the same in other tables. Pairs of equal importance are measured in one release; others have
    budgets in the ratio of their importance.
    """
    total, number, share = counted_total(curator), GROUPS, mu_squared * _OF_MANY
    if total is not None and _stand_out(curator, pairs, share, total, _CLEAR):
        number = FINE_GROUPS
    counts = _shares(curator, is_public=is_public)
    weights = clique_weights(pairs, importance)
    return measure_by_weight(
        curator,
        weights,
        share,
        "2-way marginals in groups",
        progress,
        grouping=_groups(curator, pairs, counts, number),
    )


def _cells(domain: Domain, clique: Clique, number: int) -> int:
    """The cells of a table over so many groups of each attribute."""
    return math.prod(min(size, number) for size in domain.shape(clique))


def _stand_out(
    curator: Curator, cliques: Sequence[Clique], mu_squared: Fraction, total: float, times: float
) -> bool:
    """Whether the mean count of cells of eight groups is so many times their noise."""
    cells = fmean(_cells(curator.domain, clique, FINE_GROUPS) for clique in cliques)
    noise = noise_of(curator.ledger, map(MarginalQuery, cliques), mu_squared)
    return total >= times * noise * cells


def pairs_paid_for(curator: Curator, mu_squared: Fraction, most: int) -> int:
    """How many pairs to measure over codes for ``mu_squared``. Public: a rule of public facts.

    So many that a cell's noise is as large as the mean count of a cell; at least as many as there
    are attributes, at most twice as many, and at most ``most``. On 100,000 rows as above the error
    is 0.138, 0.137, 0.138 and 0.152 where noise is 0.7, 1, 1.5 and 2.5 times as large (105 to 1,225
    pairs), and few of them cost least time.
    """
    domain, total = curator.domain, counted_total(curator)
    if total is None:
        return min(len(domain), most)
    pairs = domain.cliques(2)
    mean_count = total / fmean(map(domain.size, pairs))
    noise = noise_of(curator.ledger, [MarginalQuery(pairs[0])], mu_squared)
    paid = int((mean_count / noise) ** 2)
    return min(max(paid, len(domain)), EACH * len(domain), most)


def promising_pairs(
    curator: Curator,
    pairs: Sequence[Clique],
    number: int,
    wanted: Collection[Clique],
    importance: Importance,
) -> list[Clique]:
    """The wanted pairs and those that depend most by the coarse answers, ``number`` or more in all.

    How much a pair depends is the distance of its table over groups, without what of it is likely
    to be noise, from that of independent attributes; an important pair's counts as many times as
    its importance. They come in the domain's order.
    """
    tables = consistent_tables(curator.domain, curator.measurements)
    wanted = set(wanted)
    weights = clique_weights(pairs, importance)
    apart = {
        pair: weights[pair] * math.sqrt(square)
        for grouping in grouped_tables(curator.domain, curator.measurements)
        for pair, square in strengths(over_groups(tables, grouping)).items()
    }
    left = [pair for pair in pairs if pair not in wanted]
    order = np.argsort([-apart.get(pair, 0.0) for pair in left], kind="stable")
    chosen = {left[place] for place in order[: max(number - len(wanted), 0)].tolist()} | wanted
    return [pair for pair in pairs if pair in chosen]


def dependence(tables: ConsistentTables) -> dict[Clique, float]:
    """Returns how far each pair is from independent attributes, in counts."""
    return {
        pair: float(np.abs(counts - independent(tables, pair)).sum())
        for pair, counts in tables.tables.items()
        if len(pair) == 2 and all(len(held) > 1 for held in tables.support(pair))
    }


GROUPS = 4
"""Groups of each attribute. On Adult and ACS Income four are better than six or eight, whose tables
are noisier."""

FINE_GROUPS = 8
"""Groups of each attribute where triples with an important attribute alone are asked for, if the
noise can pay for them: a model that learns from the rows gains by finer conditions."""

MOST = 400
"""The largest number of triples that are measured: about as many as 14 attributes have. The time
of the local search grows with them, and so does the noise of each."""


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
    if len(triples) > MOST:
        triples = strongest(triples, strengths(tables), MOST)
    number = GROUPS
    if is_for_important(importance) and _stand_out(curator, triples, mu_squared, tables.total, 1.0):
        number = FINE_GROUPS
    grouping = _groups(curator, triples, tables.one_way, number)
    for known in tables.grouped:  # sums over the same groups say more together
        if max(known.domain.sizes) == number and len(known.domain) == len(curator.domain):
            grouping = known
    what = "3-way marginals in groups"
    return measure_tables(curator, triples, what, mu_squared, progress, grouping)


def _groups(
    curator: Curator, cliques: Sequence[Clique], counts: Mapping[str, np.ndarray], number: int
) -> Grouping:
    """So many groups of about equal counts, or those that such cliques were last asked for over.

    Answers about the same groups can be averaged.
    """
    names = {name for clique in cliques for name in clique}
    for query in (known.query for known in reversed(curator.measurements)):
        if not isinstance(query, GroupedMarginalQuery) or query.clique not in cliques:
            continue
        # Those of a listed question, or of what stands out, are of a few, or some of them are fine.
        is_coarse = max(query.grouping.domain.sizes) <= FINE_GROUPS
        if is_coarse and names <= set(query.grouping.attributes):
            return query.grouping
    return Grouping.of({name: equal_groups(own, number) for name, own in counts.items()})


def has_triples(domain: Domain) -> bool:
    """Whether at least three attributes have more than one code."""
    return sum(size > 1 for size in domain.sizes) > 2


def triples_among(domain: Domain, pairs: Sequence[Clique], importance: Importance) -> list[Clique]:
    """The triples of attributes that can vary, each two of which are among the pairs.

    If some of them have an important attribute, those alone. Pairs are in the domain's order.
    """
    sizes = domain.size_of
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


def strongest(
    triples: Sequence[Clique], strengths: Mapping[Clique, float], most: int
) -> list[Clique]:
    """Returns so many triples, in order: those whose pairs have the largest sums of strengths."""
    of_pairs = [sum(strengths.get(pair, 0.0) for pair in combinations(q, 2)) for q in triples]
    kept = np.argsort(-np.array(of_pairs), kind="stable")[:most]
    return [triples[place] for place in sorted(kept.tolist())]


def most_helpful(
    signals: Mapping[Clique, np.ndarray],
    variances: Mapping[Clique, float],
    levels: Sequence[float],
    budget: float,
    weights: Mapping[Clique, float] | None = None,
) -> dict[Clique, float]:
    """Chooses how much more to measure of each clique to lower the expected square error most.

    Args:
        signals: The variances of each clique's signal along orthogonal directions.
        variances: The variance of the noise that each clique was measured with.
        levels: The amounts to choose from, ascending from 0, in units of what the clique's first
            measurement cost: level 1 halves the variance of its noise.
        budget: The most that all cliques together may cost, in units of a clique of weight 1.
        weights: What the first measurement of a clique cost, in the same units; 1 where none is
            given. Budgets in this ratio are best if square errors count weight^2 times.

    Returns:
        The cliques above level 0, each with its level. A unit spent on a higher step saves less
        than one spent on the step before, so it is best to take steps in the order of what they
        save.
    """
    cliques, weights = list(signals), weights or {}
    own = np.array([weights.get(clique, 1.0) for clique in cliques])[:, None]
    costs = own * np.diff(levels)
    errors = np.array(
        [
            [
                (signal * variances[clique] / (signal * (1 + level) + variances[clique])).sum()
                for level in levels
            ]
            for clique, signal in signals.items()
        ]
    )
    saved = -np.diff(own**2 * errors, axis=1) / costs
    order = np.argsort(-saved, axis=None, kind="stable")
    paid = np.cumsum(costs.ravel()[order])
    steps = order[: np.searchsorted(paid, budget, side="right")] // (len(levels) - 1)
    reached = np.bincount(steps, minlength=len(cliques))
    return {
        clique: levels[step] for clique, step in zip(cliques, reached.tolist(), strict=True) if step
    }
