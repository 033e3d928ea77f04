"""Junction trees: the cliques that hold a graphical model, and the tree that they form."""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from math import prod

from sdv_privpgd.base.domain import Clique, Domain


@dataclass(frozen=True, kw_only=True)
class JunctionTree:
    """Cliques that hold every potential of a model and form a tree. Public.

    Each clique but the first has an earlier one as its parent. It shares its separator, which may
    be empty, with the parent, and no other attribute with any earlier clique. So a distribution
    that is a product of functions of the cliques equals the product of the cliques' marginals
    divided by the product of the separators' marginals (Koller & Friedman 2009, section 10.4).

    Attributes:
        domain: All attributes. Each one is in some clique.
        cliques: Parents first, with attributes in the domain's order.
        parents: For each clique the index of its parent, -1 for the first.
    """

    domain: Domain
    cliques: tuple[Clique, ...]
    parents: tuple[int, ...]

    @classmethod
    def of(cls, domain: Domain, cliques: Iterable[Clique]) -> "JunctionTree":
        """A tree in which each of the cliques fits into one clique.

        Attributes are eliminated greedily: first those that fill in no edge, then the one with
        the smallest table. The tree is that of the filled-in graph (Koller & Friedman 2009,
        section 9.4.3).
        """
        order, below = _eliminated(domain, cliques)
        own: list[set[int]] = [] if order else [set()]
        parents: list[int] = [] if order else [-1]
        holder: dict[int, int] = {}
        for axis in reversed(order):
            later = set(_members(below[axis]))
            # All that an attribute met when it was eliminated is in the clique of the next of it.
            parent = holder[min(later, key=order.index)] if later else 0
            if own and later == own[parent]:
                own[parent].add(axis)
                holder[axis] = parent
            else:
                holder[axis] = len(own)
                parents.append(parent if own else -1)
                own.append({axis, *later})
        names = domain.attributes
        return cls(
            domain=domain,
            cliques=tuple(tuple(names[axis] for axis in sorted(axes)) for axes in own),
            parents=tuple(parents),
        )

    @property
    def num_cells(self) -> int:
        """The number of cells of all cliques' tables together."""
        return sum(self.domain.size(clique) for clique in self.cliques)

    @cached_property
    def separators(self) -> tuple[Clique, ...]:
        """The attributes that each clique shares with its parent, in the domain's order.

        The first clique shares none.
        """
        return tuple(
            tuple(name for name in clique if up >= 0 and name in self.cliques[up])
            for clique, up in zip(self.cliques, self.parents, strict=True)
        )

    def home(self, clique: Clique) -> int:
        """The index of the smallest clique of the tree that holds a clique."""
        holders = [at for at, own in enumerate(self.cliques) if set(clique) <= set(own)]
        return min(holders, key=lambda at: self.domain.size(self.cliques[at]))


def _eliminated(domain: Domain, cliques: Iterable[Clique]) -> tuple[list[int], dict[int, int]]:
    """Axes in the order of elimination, each with the axes that shared a table with it, as bits."""
    near = [0] * len(domain)
    for clique in cliques:
        for a, b in combinations(domain.axes(clique), 2):
            near[a] |= 1 << b
            near[b] |= 1 << a

    def cost(axis: int) -> tuple[bool, int]:
        met = near[axis]
        fills_in = any(met & ~near[other] != 1 << other for other in _members(met))
        return fills_in, domain.sizes[axis] * prod(domain.sizes[a] for a in _members(met))

    costs = {axis: cost(axis) for axis in range(len(domain))}
    order, below = [], {}
    while costs:
        axis = min(costs, key=lambda axis: costs[axis])
        del costs[axis]
        order.append(axis)
        met = below[axis] = near[axis]
        changed = met
        for other in _members(met):
            near[other] = (near[other] | met) & ~(1 << other) & ~(1 << axis)
            changed |= near[other]  # an edge between its neighbors may be what it lacked
        for other in _members(changed):
            costs[other] = cost(other)
    return order, below


def _members(bits: int) -> Iterable[int]:
    """The positions of the bits that are set, smallest first."""
    while bits:
        lowest = bits & -bits
        yield lowest.bit_length() - 1
        bits ^= lowest
