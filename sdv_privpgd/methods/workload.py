"""Workloads: the cliques on which accuracy is wanted, and all those whose marginals help it."""

from collections.abc import Iterable
from itertools import combinations

from sdv_privpgd.base.domain import Clique, Domain


def checked_workload(domain: Domain, workload: Iterable[Clique] | None) -> tuple[Clique, ...]:
    """The cliques of a workload, each once and in the domain's order; ``None`` means all pairs.

    Raises:
        ValueError: For a clique that is empty, repeats an attribute or has an unknown one, and for
            a workload without cliques.
    """
    if workload is None:
        return domain.cliques(2)
    found: dict[Clique, None] = {}
    for clique in workload:
        axes = sorted(set(domain.axes(clique)))
        if not axes or len(axes) != len(clique):
            raise ValueError(f"workload needs cliques of distinct attributes, got {clique!r}.")
        found[tuple(domain.attributes[axis] for axis in axes)] = None
    if not found:
        raise ValueError("workload is empty: name a clique, or leave it out for all pairs.")
    return tuple(found)


def downward_closure(workload: Iterable[Clique]) -> dict[Clique, int]:
    """Every non-empty subset of a workload's cliques, by size, with its weight.

    The weight of r is the sum over the cliques s of the workload of |r & s|: how much of the
    workload a marginal informs (McKenna et al. 2022, AIM).
    """
    workload = tuple(workload)
    largest = max(len(clique) for clique in workload)
    subsets = dict.fromkeys(
        subset
        for degree in range(1, largest + 1)
        for clique in workload
        for subset in combinations(clique, degree)
    )
    return {
        subset: sum(len(set(subset) & set(clique)) for clique in workload) for subset in subsets
    }
