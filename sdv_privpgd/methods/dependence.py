"""Which attributes depend on each other: asked of the curator in one act, joined in a graph.

All but the question is public: it is computed from noisy answers.
"""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from fractions import Fraction
from itertools import combinations

import numpy as np

from sdv_privpgd.base.domain import Clique, Domain
from sdv_privpgd.base.progress import Progress
from sdv_privpgd.estimate.noisy_tables import NoisyTable, averaged
from sdv_privpgd.privacy.curator import Curator
from sdv_privpgd.privacy.queries import DependenceQuery, Measurement
from sdv_privpgd.synthesize.graphical import JunctionTree


def measure_dependences(
    curator: Curator, pairs: Sequence[Clique], mu_squared: Fraction, progress: Progress
) -> list[Measurement]:
    """The noisy dependence of each pair; all of them cost ``mu_squared`` together."""
    return curator.measure(
        [DependenceQuery(pair) for pair in pairs],
        mu_squared,
        what="dependence of all pairs",
        progress=progress,
    )


def dependences(measurements: Iterable[Measurement]) -> dict[Clique, float]:
    """The noisy dependence of each pair; of several answers their best average. Public."""
    found: dict[Clique, list[NoisyTable]] = {}
    for measured in measurements:
        if isinstance(measured.query, DependenceQuery):
            one = NoisyTable(measured.answer.astype(np.float64), measured.stddev**2)
            found.setdefault(measured.query.clique, []).append(one)
    return {pair: float(averaged(each).counts[0]) for pair, each in found.items()}


def dependence_graph(
    domain: Domain, dependence: Mapping[Clique, float], max_cells: float
) -> JunctionTree:
    """The junction tree of a chordal graph of much dependence.

    Cai et al. 2021 (PrivMRF): from no edge on, the pair is added that raises most the sum of the
    dependence of all joined pairs, those included that make the graph chordal again, less 1e-8 for
    each cell of the model. It ends where no pair raises it, or the model would be too large. Ours
    tries the pairs with most dependence in each step, twelve of 14 attributes and fewer of more, in
    place of all, and none again that made the model too large.

    Args:
        domain: Of the codes.
        dependence: By pair, as total variation distances; noise may have made it negative.
        max_cells: The most cells of the model.
    """
    # Pairs that are tried in one step, times attributes: a trial takes longer the more there are.
    most_trials = 168
    tree, best = JunctionTree.of(domain, []), 0.0
    waiting = sorted(dependence, key=lambda pair: -dependence[pair])
    values = {frozenset(pair): value for pair, value in dependence.items()}
    number = max(most_trials // len(domain), 1)
    while True:
        tried: list[tuple[float, JunctionTree]] = []
        near = _neighbors(tree)
        kept = []
        for place, pair in enumerate(waiting):
            if len(tried) == number:
                kept += waiting[place:]
                break
            if pair[1] in near[pair[0]] or tree.num_cells + _growth(domain, pair, near) > max_cells:
                continue
            wider = JunctionTree.of(domain, [*tree.cliques, pair])
            if wider.num_cells <= max_cells:
                tried.append((_score(wider, values), wider))
                kept.append(pair)
        waiting = kept
        score, wider = max(tried, key=lambda each: each[0], default=(best, tree))
        if score <= best:
            return tree
        tree, best = wider, score


def edges_of(tree: JunctionTree) -> set[frozenset[str]]:
    """The pairs of attributes that share a clique."""
    return {frozenset(pair) for clique in tree.cliques for pair in combinations(clique, 2)}


def _neighbors(tree: JunctionTree) -> dict[str, set[str]]:
    near: dict[str, set[str]] = {name: set() for name in tree.domain.attributes}
    for clique in tree.cliques:
        for name in clique:
            near[name] |= set(clique) - {name}
    return near


def _growth(domain: Domain, pair: Clique, near: Mapping[str, set[str]]) -> int:
    """The cells that a model gains at least by a pair.

    All that both are joined to is a clique, because the graph is chordal. It becomes one with both
    of them, in place of two with one of them each.
    """
    one, other = domain.shape(pair)
    both = domain.size(tuple(near[pair[0]] & near[pair[1]]))
    return both * (one * other - one - other)


def _score(tree: JunctionTree, values: Mapping[frozenset[str], float]) -> float:
    penalty = 1e-8  # what a cell of the model costs, in units of total variation distance
    return sum(values.get(edge, 0.0) for edge in edges_of(tree)) - penalty * tree.num_cells


def first_tables(
    domain: Domain,
    cliques: Iterable[Clique],
    dependence: Mapping[Clique, float],
    is_useful: Callable[[Clique], bool],
) -> list[Clique]:
    """As many tables as there are attributes at most; each attribute is in one of them.

    Cai et al. 2021 (PrivMRF): in every clique attributes are put in order, each with parents among
    those before it. The next one is that whose best parents score highest. Every attribute's best
    table over all cliques is taken, then the best of the others; an attribute without any has its
    1-way marginal. The score of parents is the sum of the attribute's dependences on them, divided
    by the square root of their number and of their dependences on each other.

    Args:
        domain: Of the codes.
        cliques: In which attributes of a table must lie.
        dependence: By pair, as total variation distances.
        is_useful: Whether a table is more than noise.
    """
    known = {frozenset(pair): max(value, 0.0) for pair, value in dependence.items()}
    scored: dict[str, dict[Clique, float]] = {name: {} for name in domain.attributes}
    for clique in cliques:
        for child, table, score in _network(domain, clique, known, is_useful):
            scored[child][table] = max(score, scored[child].get(table, 0.0))
    best = {max(own, key=lambda table: own[table]): None for own in scored.values() if own}
    others = {table: score for own in scored.values() for table, score in own.items()}
    taken = _with_columns(domain, best)
    for table in sorted(others, key=lambda table: -others[table]):
        if len(taken) < len(domain):
            taken = _with_columns(domain, [*taken, table])
    return taken


def _with_columns(domain: Domain, tables: Iterable[Clique]) -> list[Clique]:
    """The tables that lie in no other one, and the columns that are in none."""
    distinct = dict.fromkeys(tables)
    held = [own for own in distinct if not any(set(own) < set(other) for other in distinct)]
    covered = {name for table in held for name in table}
    return held + [(name,) for name in domain.attributes if name not in covered]


def _network(
    domain: Domain,
    clique: Clique,
    known: Mapping[frozenset[str], float],
    is_useful: Callable[[Clique], bool],
) -> list[tuple[str, Clique, float]]:
    """Attributes of a clique after the first, each with its table and the table's score."""

    def score(child: str, parents: Clique) -> float:
        toward = sum(known.get(frozenset((child, parent)), 0.0) for parent in parents)
        within = sum(known.get(frozenset(pair), 0.0) for pair in combinations(parents, 2))
        return toward / math.sqrt(len(parents) + within)

    def table(child: str, parents: Clique) -> Clique:
        return tuple(name for name in domain.attributes if name == child or name in parents)

    def grown(child: str) -> tuple[float, Clique]:
        """The best parents that are found one by one, and their score."""
        parents, best = (), 0.0
        while True:
            wider = [
                (score(child, (*parents, name)), (*parents, name))
                for name in placed
                if name not in parents and is_useful(table(child, (*parents, name)))
            ]
            found, more = max(wider, default=(0.0, ()))
            if found <= best:
                return best, parents
            best, parents = found, more

    def total(name: str) -> float:
        return sum(known.get(frozenset((name, other)), 0.0) for other in clique if other != name)

    placed = [max(clique, key=total)] if clique else []
    left = [name for name in clique if name not in placed]
    found = []
    while left:
        best, child, parents = max(
            (score, name, parents) for name in left for score, parents in [grown(name)]
        )
        if parents:
            found.append((child, table(child, parents), best))
        placed.append(child)
        left.remove(child)
    return found
