"""Which attributes matter more than others to those who will use the rows. Public."""

import math
from collections.abc import Iterable, Mapping
from numbers import Real

from sdv_privpgd.domain import Clique, Domain

Importance = Mapping[str, float]
"""By attribute, how many times the budget of another pair a pair with it gets."""


def checked_importance(importance: Importance | None) -> dict[str, float]:
    """The importances as floats. Raises ``ValueError`` unless each is a number of at least 1."""
    if not isinstance(importance, Mapping | None):
        raise ValueError(
            f"importance must map columns to numbers of at least 1, got {importance!r}."
        )
    found = {}
    for name, factor in (importance or {}).items():
        if isinstance(factor, bool) or not isinstance(factor, Real) or not 1 <= factor < math.inf:
            raise ValueError(
                f"importance of {name!r} must be a number of at least 1, got {factor!r}."
            )
        found[str(name)] = float(factor)
    return found


def clique_weights(cliques: Iterable[Clique], importance: Importance) -> dict[Clique, float]:
    """For each clique the largest importance of its attributes; those without one have 1."""
    return {clique: max(importance.get(name, 1.0) for name in clique) for clique in cliques}


def important_cliques(domain: Domain, degree: int, importance: Importance) -> list[Clique]:
    """The cliques of so many attributes that can vary, one of them important.

    All cliques of attributes that can vary where no attribute is more important than another.
    """
    varied = [name for name, size in zip(domain.attributes, domain.sizes, strict=True) if size > 1]
    cliques = domain.project(varied).cliques(degree)
    weights = clique_weights(cliques, importance)
    important = [clique for clique, weight in weights.items() if weight > 1]
    return important or list(cliques)
