"""Workloads: the cliques on which accuracy is wanted, and which attributes matter more. Public."""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import is_dataclass, replace
from itertools import combinations
from numbers import Real
from typing import Any

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


Importance = Mapping[str, float]
"""By attribute, how many times the budget of another pair a pair with it gets."""

Target = str | Sequence[str] | Importance | None
"""A column that is to be predicted, several, or importances by name."""

TARGET = 6.0
"""The importance of a column that is to be predicted."""


def importance_of(target: Target) -> dict[str, float]:
    """The importances that are meant by a column to predict, by several, or by factors.

    Raises ``ValueError`` for anything else.
    """
    if target is None or isinstance(target, Mapping):
        return checked_importance(target)
    names = [target] if isinstance(target, str) else target
    if isinstance(names, list | tuple) and all(isinstance(name, str) for name in names):
        return dict.fromkeys(names, TARGET)
    raise ValueError(
        "target must be the name of a column, a list of names, or a dictionary from names to "
        f"factors, got {target!r}."
    )


def weighed(method: Any, importance: Importance) -> Any:
    """Returns the method with these importances; ``ValueError`` if it cannot weigh."""
    if not importance:
        return method
    held = getattr(method, "importance", None)
    if held is None or not is_dataclass(method):
        raise ValueError(
            f"{type(method).__name__} asks the same of all columns: it takes no target."
        )
    if held:
        raise ValueError("Give target to the fit, or importance to the method, and not both.")
    return replace(method, importance=importance)  # pyright: ignore[reportArgumentType]


def whole_weight(clique: Clique, importance: Importance) -> int:
    """What a score of a clique counts beside others: its importance, as a whole number."""
    return round(clique_weights([clique], importance)[clique])


def checked_importance(importance: Importance | None) -> dict[str, float]:
    """The importances as floats. Raises ``ValueError`` unless each is a number of at least 1."""
    if not isinstance(importance, Mapping | None):
        raise ValueError(
            f"target and importance map columns to numbers of at least 1, got {importance!r}."
        )
    found = {}
    for name, factor in (importance or {}).items():
        if isinstance(factor, bool) or not isinstance(factor, Real) or not 1 <= factor < math.inf:
            raise ValueError(
                f"The importance of {name!r} must be a number of at least 1, got {factor!r}."
            )
        found[str(name)] = float(factor)
    return found


def clique_weights(cliques: Iterable[Clique], importance: Importance) -> dict[Clique, float]:
    """For each clique the largest importance of its attributes; those without one have 1."""
    return {clique: max(importance.get(name, 1.0) for name in clique) for clique in cliques}


def is_for_important(importance: Importance) -> bool:
    """Whether some attribute is more important than others."""
    return any(factor > 1 for factor in importance.values())


def important_cliques(domain: Domain, degree: int, importance: Importance) -> list[Clique]:
    """The cliques of so many attributes that can vary, one of them important.

    All cliques of attributes that can vary where no attribute is more important than another.
    """
    varied = [name for name, size in zip(domain.attributes, domain.sizes, strict=True) if size > 1]
    cliques = domain.project(varied).cliques(degree)
    weights = clique_weights(cliques, importance)
    important = [clique for clique, weight in weights.items() if weight > 1]
    return important or list(cliques)
