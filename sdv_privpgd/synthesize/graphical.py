"""A graphical model as a junction tree of marginals gives exact marginals and rows, in numpy."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from math import prod

import numpy as np

from sdv_privpgd.base import cached_property
from sdv_privpgd.base.domain import Clique, Domain, axes_without
from sdv_privpgd.synthesize.engine import require_number


@dataclass(frozen=True, kw_only=True)
class JunctionTree:
    """Cliques that hold every potential of a model and form a tree. Public.

    Each clique but the first has an earlier one as its parent. It shares its separator, which may
    be empty, with the parent, and no other attribute with any earlier clique. So a distribution
    that is a product of functions of the cliques equals the product of the cliques' marginals
    divided by the product of the separators' marginals (Koller & Friedman 2009, section 10.4).
    """

    domain: Domain  # all attributes. Each one is in some clique
    cliques: tuple[Clique, ...]  # parents first, with attributes in the domain's order
    parents: tuple[int, ...]  # for each clique the index of its parent, -1 for the first

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


@dataclass(frozen=True, kw_only=True)
class MessagePassing:
    """Computes marginals from log-potentials; the plan is worked out once for all potentials.

    Arrays are float64 with axes in the order of the tree's domain.
    """

    tree: JunctionTree  # each clique fits into one of its cliques
    cliques: tuple[Clique, ...]  # the cliques that have potentials

    def tables(self, potentials: Mapping[Clique, np.ndarray]) -> list[np.ndarray]:
        """The probabilities of the cells of each clique of the tree.

        Messages are passed to the first clique and back (Koller & Friedman 2009, section 10.2).
        On the way to the first clique, each table becomes the distribution of a clique given its
        separator. So nothing overflows, and only single cells underflow, to 0.
        """
        found = [sums.up(potentials) for sums in self._sums]
        for at, up, out, up_shape, _, _ in reversed(self._messages):
            found[up] += _conditional(found[at], out).reshape(up_shape)
        _conditional(found[0], tuple(range(found[0].ndim)))
        for at, up, _, _, up_out, shape in self._messages:
            found[at] *= found[up].sum(axis=up_out).reshape(shape)
        return found

    def margins(self, potentials: Mapping[Clique, np.ndarray]) -> dict[Clique, np.ndarray]:
        """The probabilities of the cells of each clique with potentials."""
        found: dict[Clique, np.ndarray] = {}
        for sums, table in zip(self._sums, self.tables(potentials), strict=True):
            found.update(sums.down(table))
        return {clique: found[clique] for clique in self.cliques}

    @cached_property
    def _sums(self) -> tuple["_SharedSums", ...]:
        tree = self.tree
        held: list[list[Clique]] = [[] for _ in tree.cliques]
        for clique in self.cliques:
            held[tree.home(clique)].append(clique)
        return tuple(
            _SharedSums.of(tree.domain, clique, inside)
            for clique, inside in zip(tree.cliques, held, strict=True)
        )

    @cached_property
    def _messages(self) -> list[tuple]:
        """What the message of each clique but the first needs, besides the clique's index.

        These are its parent, its axes outside the separator, the separator's shape among the
        parent's axes, the parent's axes outside the separator, and the separator's shape among
        the clique's axes.
        """
        tree, found = self.tree, []
        for at in range(1, len(tree.cliques)):
            up, separator = tree.parents[at], tree.separators[at]
            own, above = tree.cliques[at], tree.cliques[up]
            among_above, among_own = (
                tuple(tree.domain.size((name,)) if name in separator else 1 for name in clique)
                for clique in (above, own)
            )
            found.append(
                (
                    at,
                    up,
                    axes_without(own, separator),
                    among_above,
                    axes_without(above, separator),
                    among_own,
                )
            )
        return found


@dataclass(frozen=True, kw_only=True)
class _SharedSums:
    """A plan from a table to its margins over cliques that takes large sums only once.

    For example, ten pairs of five attributes need three sums over the whole table, not ten.

    Attributes:
        shapes: The shapes of the table and of all margins on the way.
        steps: For each margin, the clique that it is summed from, its own clique, and the axes
            that are summed over; larger tables come first.
    """

    top: Clique
    shapes: Mapping[Clique, tuple[int, ...]]
    steps: tuple[tuple[Clique, Clique, tuple[int, ...]], ...]

    @classmethod
    def of(cls, domain: Domain, top: Clique, cliques: Iterable[Clique]) -> "_SharedSums":
        steps: dict[Clique, Clique] = {}

        def reach(above: Clique, wanted: set[Clique]) -> None:
            wanted = wanted - {above} - steps.keys()
            while len(wanted) > 1:
                # Leave out the attribute that most of them lack; of several, the largest.
                lacking = {name: {each for each in wanted if name not in each} for name in above}
                out = max(above, key=lambda name: (len(lacking[name]), domain.size((name,))))
                below = tuple(name for name in above if name != out)
                steps.setdefault(below, above)
                reach(below, lacking[out])
                wanted -= lacking[out]
            for each in wanted:
                steps.setdefault(each, above)

        reach(top, set(cliques))
        return cls(
            top=top,
            shapes={clique: domain.shape(clique) for clique in (top, *steps)},
            steps=tuple(
                (above, below, axes_without(above, below)) for below, above in steps.items()
            ),
        )

    def down(self, table: np.ndarray) -> dict[Clique, np.ndarray]:
        """The table and all margins on the way."""
        found = {self.top: table}
        for above, below, out in self.steps:
            found[below] = np.asarray(found[above].sum(axis=out))
        return found

    def up(self, parts: Mapping[Clique, np.ndarray]) -> np.ndarray:
        """A new table: the sum of the parts of the cliques on the way, each spread over it."""
        found = {
            clique: parts[clique].copy() if clique in parts else np.zeros(shape)
            for clique, shape in self.shapes.items()
        }
        for above, below, out in reversed(self.steps):
            found[above] += np.expand_dims(found[below], out)
        return found[self.top]


def _conditional(logs: np.ndarray, axes: tuple[int, ...]) -> np.ndarray:
    """Turns a table into its softmax over some axes, in place.

    Returns the logarithm of the sum of exponentials over these axes, which keep length 1.
    """
    top = logs.max(axis=axes, keepdims=True)
    logs -= top
    np.exp(logs, out=logs)
    sums = logs.sum(axis=axes, keepdims=True)
    logs /= sums
    return np.asarray(np.log(sums) + top)


@dataclass(frozen=True, kw_only=True, eq=False)
class GraphicalModel:
    """A distribution: a product of potentials, held as marginals of a junction tree. Public."""

    domain: Domain  # the attributes of its rows and their numbers of codes
    # Its cliques and their parents. The tree's domain has the same attributes, in any order.
    tree: JunctionTree
    # For each clique the probabilities of its cells, all positive, float64.
    tables: tuple[np.ndarray, ...]
    # Log-potentials of the cliques that were measured, in the order of the tree's domain. A later
    # fit starts from them.
    potentials: Mapping[Clique, np.ndarray]

    @classmethod
    def of_potentials(
        cls, domain: Domain, tree: JunctionTree, potentials: Mapping[Clique, np.ndarray]
    ) -> "GraphicalModel":
        """The model of the potentials, each of which fits into a clique of the tree."""
        tables = MessagePassing(tree=tree, cliques=tuple(potentials)).tables(potentials)
        return cls(
            domain=domain,
            tree=tree,
            tables=tuple(_divisible(table) for table in tables),
            potentials=dict(potentials),
        )

    @property
    def block(self) -> int:
        """The number of rows of one pass; draw rows in such blocks."""
        return 1 << 16  # tables of a pass are exact to one row; so many rows fit conditions well

    def marginal(self, clique: Clique) -> np.ndarray:
        """The probabilities of a clique's cells, axes in the clique's order.

        They are found by variable elimination on the part of the tree between the attributes.
        """
        self.domain.axes(clique)  # names an unknown attribute
        cliques, separators = self.tree.cliques, self.tree.separators
        kept, root = self._between(clique)
        messages: dict[int, list[tuple[Clique, np.ndarray]]] = {at: [] for at in kept}
        for at in reversed(kept[1:]):
            separator = separators[at]
            table = self.tables[at]
            given = table / table.sum(axis=axes_without(cliques[at], separator), keepdims=True)
            factors = [(cliques[at], given), *messages[at]]
            held = {name for own, _ in factors for name in own}
            out = tuple(
                name for name in self.domain.attributes
                if name in held and (name in separator or name in clique)
            )  # fmt: skip
            messages[self.tree.parents[at]].append((out, _product(factors, out)))
        return _product([(cliques[root], self.tables[root]), *messages[root]], clique)

    def sample(self, num_rows: int, seed: int) -> np.ndarray:
        """Codes of shape (row, attribute), int64. The same seed gives the same rows.

        Among rows with the same codes of a separator, each cell gets its share of rows, rounded
        up or down. So the rows' tables are nearer to the model's than those of independent draws.
        """
        require_number(num_rows)
        rng = np.random.default_rng(seed)
        codes = np.zeros((num_rows, len(self.domain)), dtype=np.int64)
        tree = self.tree
        for clique, separator, table in zip(
            tree.cliques, tree.separators, self.tables, strict=True
        ):
            fresh = tuple(name for name in clique if name not in separator)
            shape = self.domain.shape(separator)
            axes = [clique.index(name) for name in (*separator, *fresh)]
            shares = table.transpose(axes).reshape(self.domain.size(separator), -1)
            given = np.zeros(num_rows, dtype=np.int64)
            if separator:
                known = codes[:, self.domain.axes(separator)].T
                given = np.asarray(np.ravel_multi_index(tuple(known), shape))
            cells = allotted(shares, given, rng)
            drawn = np.unravel_index(cells, self.domain.shape(fresh))
            codes[:, self.domain.axes(fresh)] = np.stack(drawn, axis=1)
        return codes

    def _between(self, clique: Clique) -> tuple[list[int], int]:
        """The indices of a part of the tree that holds the clique, parents first, and its root.

        A clique at the edge is left out if its separator holds all attributes of the query that
        it has itself: its other attributes sum to 1.
        """
        parents, separators = self.tree.parents, self.tree.separators
        kept = set(range(len(parents)))
        children = {at: {a for a, up in enumerate(parents) if up == at} for at in kept}
        wanted = [set(clique) & set(own) for own in self.tree.cliques]
        for at in reversed(range(1, len(parents))):
            if not children[at] and wanted[at] <= set(separators[at]):
                kept.discard(at)
                children[parents[at]].discard(at)
        root = 0
        while len(children[root]) == 1:
            (below,) = children[root]
            if not wanted[root] <= set(separators[below]):
                break
            kept.discard(root)
            root = below
        return sorted(kept), root


def _divisible(table: np.ndarray) -> np.ndarray:
    """Read-only probabilities. Cells that underflowed are made positive, for divisions by them."""
    values = np.asarray(np.maximum(table, 1e-200))
    values /= values.sum()
    values.setflags(write=False)
    return values


def _product(factors: Sequence[tuple[Clique, np.ndarray]], out: Clique) -> np.ndarray:
    """The product of factors, summed over all attributes that are not asked for."""
    names = dict.fromkeys(name for own, _ in factors for name in own)
    labels = {name: label for label, name in enumerate(names)}
    operands = []
    for own, values in factors:
        operands += [values, [labels[name] for name in own]]
    return np.asarray(np.einsum(*operands, [labels[name] for name in out], optimize=True))


def allotted(shares: np.ndarray, given: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """A cell for each row, by systematic sampling among the rows with the same ``given``.

    ``shares`` has shape (given, cell). Rows of a group take turns in random order along the
    cumulated shares, so each cell gets its share of them rounded up or down.
    """
    order = rng.permutation(len(given))
    order = order[np.argsort(given[order], kind="stable")]
    groups, which, counts = np.unique(given[order], return_inverse=True, return_counts=True)
    ends = np.cumsum(shares[groups], axis=1)
    ends /= ends[:, -1:]
    turns = np.arange(len(given)) - np.repeat(np.cumsum(counts) - counts, counts)
    at = (turns + rng.random(len(groups))[which]) / counts[which]
    # One search for all groups: group g occupies [g, g + 1).
    ends += np.arange(len(groups))[:, None]
    found = np.searchsorted(ends.ravel(), which + at, side="right") - which * shares.shape[1]
    cells = np.empty(len(given), dtype=np.int64)
    cells[order] = np.clip(found, 0, shares.shape[1] - 1)  # a sum may be rounded to g + 1
    return cells
