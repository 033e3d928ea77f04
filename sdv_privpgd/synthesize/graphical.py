"""A graphical model as a junction tree of marginals gives exact marginals and rows, in numpy."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from sdv_privpgd.base.domain import Clique, Domain
from sdv_privpgd.synthesize.junction_tree import JunctionTree
from sdv_privpgd.synthesize.message_passing import MessagePassing, without

_BLOCK = 1 << 16
"""Rows of one pass. Tables of a pass are exact to one row; so many rows fit conditions well."""


@dataclass(frozen=True, kw_only=True, eq=False)
class GraphicalModel:
    """A distribution that is a product of potentials, held as marginals of a junction tree. Public.

    Attributes:
        domain: The attributes of its rows and their numbers of codes.
        tree: Its cliques and their parents. The tree's domain has the same attributes, in any
            order.
        tables: For each clique the probabilities of its cells, all positive, float64.
        potentials: Log-potentials of the cliques that were measured, in the order of the tree's
            domain. A later fit starts from them.
    """

    domain: Domain
    tree: JunctionTree
    tables: tuple[np.ndarray, ...]
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
        return _BLOCK

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
            given = table / table.sum(axis=without(cliques[at], separator), keepdims=True)
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
        if num_rows < 0:
            raise ValueError(f"num_rows must be at least 0, got {num_rows!r}.")
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
