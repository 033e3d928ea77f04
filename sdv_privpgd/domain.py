"""The public shape of an encoded table: its attributes and how many values each can take."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import combinations

Clique = tuple[str, ...]
"""Attributes that a marginal is over."""


@dataclass(frozen=True)
class Domain:
    """Ordered attributes and their numbers of values. Public.

    Values of an attribute of size k are the codes 0, ..., k - 1.
    """

    attributes: tuple[str, ...]
    sizes: tuple[int, ...]

    def __post_init__(self) -> None:
        if len(self.attributes) != len(self.sizes):
            raise ValueError(
                f"Domain needs one size per attribute, got {len(self.attributes)} attributes "
                f"and {len(self.sizes)} sizes."
            )
        if len(set(self.attributes)) != len(self.attributes):
            raise ValueError(f"Domain needs distinct attributes, got {self.attributes!r}.")
        if any(size < 1 for size in self.sizes):
            raise ValueError(f"Domain needs sizes of at least 1, got {self.sizes!r}.")

    def __len__(self) -> int:
        return len(self.attributes)

    def axes(self, clique: Iterable[str]) -> tuple[int, ...]:
        """The positions of a clique's attributes. Raises ``ValueError`` for an unknown one."""
        clique = tuple(clique)
        positions = {attribute: axis for axis, attribute in enumerate(self.attributes)}
        unknown = [attribute for attribute in clique if attribute not in positions]
        if unknown:
            raise ValueError(f"Attributes {unknown!r} are not in the domain {self.attributes!r}.")
        return tuple(positions[attribute] for attribute in clique)

    def shape(self, clique: Iterable[str]) -> tuple[int, ...]:
        """The shape of a clique's table: one axis an attribute, in the clique's order."""
        return tuple(self.sizes[axis] for axis in self.axes(clique))

    def size(self, clique: Iterable[str]) -> int:
        """The number of cells of a clique's table."""
        return math.prod(self.shape(clique))

    def project(self, clique: Iterable[str]) -> "Domain":
        """The domain of a clique alone."""
        clique = tuple(clique)
        return Domain(clique, self.shape(clique))

    def cliques(self, degree: int) -> tuple[Clique, ...]:
        """All cliques of ``degree`` attributes, in the order of the attributes."""
        return tuple(combinations(self.attributes, degree))


def in_words(cliques: Sequence[Clique], most: int = 4) -> str:
    """Cliques by the names of their attributes; of very many the first, and how many others."""
    named = [" x ".join(clique) for clique in cliques]
    if len(named) <= most + 1:
        return ", ".join(named)
    return f"{', '.join(named[:most])} and {len(named) - most:,} others"
