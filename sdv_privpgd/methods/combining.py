"""Pairs that were chosen together are measured as larger tables, where these are small. Public."""

from collections.abc import Sequence

from sdv_privpgd.base.domain import Clique, Domain

_VISITS = 20_000
"""Cliques that are looked at in one search; among more, the largest found by then is taken."""


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
    best: tuple[int, ...] = ()
    visits = 0

    def most(cells: int, candidates: Sequence[int], number_used: int) -> int:
        """How many of the candidates could be added at most, if all were neighbors."""
        number = 0
        for axis in sorted(candidates, key=lambda axis: domain.sizes[axis]):
            number_used += axis in used
            if axis in used and number_used > 2:
                continue
            cells *= domain.sizes[axis]
            if cells > max_cells:
                break
            number += 1
        return number

    def grow(clique: tuple[int, ...], cells: int, candidates: list[int], number_used: int) -> None:
        nonlocal best, visits
        visits += 1
        if len(clique) > len(best):
            best = clique
        for place, axis in enumerate(candidates):
            if visits > _VISITS:
                return
            if len(clique) + most(cells, candidates[place:], number_used) <= len(best):
                return
            now_used = number_used + (axis in used)
            if now_used <= 2 and cells * domain.sizes[axis] <= max_cells:
                later = [other for other in candidates[place + 1 :] if other in near[axis]]
                grow((*clique, axis), cells * domain.sizes[axis], later, now_used)

    grow((), 1, [axis for axis in range(len(domain)) if near[axis]], 0)
    return best
