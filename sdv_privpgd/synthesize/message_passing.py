"""Message passing along a junction tree gives the marginals of a graphical model, in float64."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from sdv_privpgd.base.domain import Clique, Domain
from sdv_privpgd.synthesize.junction_tree import JunctionTree


@dataclass(frozen=True, kw_only=True)
class MessagePassing:
    """Computes marginals from log-potentials; the plan is worked out once for all potentials.

    Arrays are float64 with axes in the order of the tree's domain.

    Attributes:
        tree: The junction tree; each clique fits into one of its cliques.
        cliques: The cliques that have potentials.
    """

    tree: JunctionTree
    cliques: tuple[Clique, ...]

    def tables(self, potentials: Mapping[Clique, np.ndarray]) -> list[np.ndarray]:
        """The probabilities of the cells of each clique of the tree.

        Messages are passed to the first clique and back (Koller & Friedman 2009, section 10.2).
        On the way to the first clique, each table becomes the distribution of a clique given its
        separator. So nothing overflows, and only single cells underflow, to 0.
        """
        found = [sums.up(potentials) for sums in self._sums]
        for at, (up, out, up_shape, _, _) in reversed(self._messages):
            found[up] += _conditional(found[at], out).reshape(up_shape)
        _conditional(found[0], tuple(range(found[0].ndim)))
        for at, (up, _, _, up_out, shape) in self._messages:
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
    def _messages(self) -> tuple[tuple[int, tuple], ...]:
        """The axes and shapes that the messages of each clique but the first need.

        These are its parent, its axes outside the separator, the separator's shape among the
        parent's axes, the parent's axes outside the separator, and the separator's shape among
        the clique's axes.
        """
        tree, found = self.tree, []
        for at in range(1, len(tree.cliques)):
            up, separator = tree.parents[at], tree.separators[at]
            own, above = tree.cliques[at], tree.cliques[up]
            facts = (
                up,
                without(own, separator),
                _shape_among(tree.domain, separator, above),
                without(above, separator),
                _shape_among(tree.domain, separator, own),
            )
            found.append((at, facts))
        return tuple(found)


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
            steps=tuple((above, below, without(above, below)) for below, above in steps.items()),
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


def without(clique: Clique, out: Clique) -> tuple[int, ...]:
    """The axes of a clique's table that are not another clique's attributes."""
    return tuple(axis for axis, name in enumerate(clique) if name not in out)


def _shape_among(domain: Domain, separator: Clique, clique: Clique) -> tuple[int, ...]:
    """A separator's shape with an axis of length 1 for each other attribute of a clique."""
    return tuple(domain.size((name,)) if name in separator else 1 for name in clique)


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
