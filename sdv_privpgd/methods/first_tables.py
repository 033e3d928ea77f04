"""The tables that say most of each attribute's dependence on others. Public: of noisy answers."""

import math
from collections.abc import Callable, Iterable, Mapping
from itertools import combinations

from sdv_privpgd.base.domain import Clique, Domain


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
