"""The public facts on an encoded table: its attributes, their codes, and codes put into groups."""

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from itertools import combinations

import numpy as np

from sdv_privpgd.base import cached_property
from sdv_privpgd.base.words import listed

Clique = tuple[str, ...]
"""The attributes that a marginal is over."""


class FieldsAlone:
    """A frozen dataclass whose pickle holds its fields, and nothing that was computed from them.

    What was computed, and in which order, may depend on the private table: for an empty table
    nobody computes what the inside of a column's codes looks like.
    """

    def __getstate__(self) -> dict:
        return {own.name: getattr(self, own.name) for own in fields(self)}  # pyright: ignore


@dataclass(frozen=True)
class Domain(FieldsAlone):
    """Ordered attributes and their numbers of values. Public.

    Values of an attribute of size k are the codes 0, ..., k - 1.

    Raises:
        ValueError: For attributes that repeat, and unless each has a size of at least 1.
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
        clique, positions = tuple(clique), self._positions
        try:
            return tuple([positions[attribute] for attribute in clique])
        except KeyError:
            unknown = [attribute for attribute in clique if attribute not in positions]
        raise ValueError(f"Attributes {unknown!r} are not in the domain {self.attributes!r}.")

    @cached_property
    def _positions(self) -> dict[str, int]:
        return {attribute: axis for axis, attribute in enumerate(self.attributes)}

    @cached_property
    def size_of(self) -> dict[str, int]:
        """The number of values of each attribute, by name."""
        return dict(zip(self.attributes, self.sizes, strict=True))

    def shape(self, clique: Iterable[str]) -> tuple[int, ...]:
        """The shape of a clique's table: one axis an attribute, in the clique's order."""
        return tuple([self.sizes[axis] for axis in self.axes(clique)])

    def size(self, clique: Iterable[str]) -> int:
        """The number of cells of a clique's table."""
        return math.prod(self.shape(clique))

    def project(self, clique: Iterable[str]) -> "Domain":
        """The domain of a clique's attributes alone."""
        clique = tuple(clique)
        return Domain(clique, self.shape(clique))

    def cliques(self, degree: int) -> tuple[Clique, ...]:
        """All cliques of ``degree`` attributes, in the order of the attributes."""
        return tuple(combinations(self.attributes, degree))


def axes_without(clique: Clique, kept: Collection[str]) -> tuple[int, ...]:
    """The axes of a clique's table that are not of the attributes which are kept."""
    return tuple(axis for axis, name in enumerate(clique) if name not in kept)


def table_of(
    columns: Iterable[np.ndarray], shape: tuple[int, ...], weights: np.ndarray | None = None
) -> np.ndarray:
    """The number of rows in each cell, or the sum of their weights, by their codes on each axis."""
    cells = np.ravel_multi_index(tuple(columns), shape)
    return np.bincount(cells, weights, math.prod(shape)).reshape(shape)


def in_words(cliques: Sequence[Clique], most: int = 4) -> str:
    """Names cliques by their attributes: up to ``most`` of them, and the number of the others."""
    return listed([" x ".join(clique) for clique in cliques], most)


def code_type(domain: Domain) -> np.dtype:
    """The smallest unsigned type that holds all codes of a domain."""
    return np.min_scalar_type(max(domain.sizes, default=1) - 1)


@dataclass(frozen=True)
class Grouping(FieldsAlone):
    """The group of each code of some attributes. Public.

    The groups of an attribute are 0, 1, ..., and none is empty.

    Raises:
        ValueError: Unless each attribute has groups, which are 0, 1, ..., without a gap.
    """

    attributes: tuple[str, ...]
    groups: tuple[tuple[int, ...], ...]

    def __post_init__(self) -> None:
        if len(self.attributes) != len(self.groups):
            raise ValueError(
                f"A grouping needs groups for each of its {len(self.attributes)} attributes, got "
                f"{len(self.groups)}."
            )
        for attribute, groups in zip(self.attributes, self.groups, strict=True):
            if not groups or set(groups) != set(range(max(groups) + 1)):
                raise ValueError(
                    f"The groups of {attribute!r} must be 0, 1, ..., without a gap, got {groups!r}."
                )

    @classmethod
    def of(cls, groups: Mapping[str, np.ndarray]) -> "Grouping":
        """Makes a grouping of each attribute's integer array of groups."""
        return cls(tuple(groups), tuple(tuple(own.tolist()) for own in groups.values()))

    def __hash__(self) -> int:
        return self._hash

    @cached_property
    def _hash(self) -> int:
        return hash((self.attributes, self.groups))  # of hundreds of attributes: as long as asking

    @cached_property
    def domain(self) -> Domain:
        """The groups as codes of attributes with the same names."""
        return Domain(self.attributes, tuple(max(groups) + 1 for groups in self.groups))

    @cached_property
    def _arrays(self) -> dict[str, np.ndarray]:
        return dict(zip(self.attributes, map(np.asarray, self.groups), strict=True))

    @cached_property
    def _lengths(self) -> tuple[int, ...]:
        return tuple(map(len, self.groups))

    def __getitem__(self, attribute: str) -> np.ndarray:
        """The group of each code of an attribute, int64."""
        return self._arrays[attribute]

    def sums(self, counts: np.ndarray, clique: tuple[str, ...]) -> np.ndarray:
        """A clique's table summed over the codes of each group, axes in the clique's order."""
        for axis, attribute in enumerate(clique):
            groups = self[attribute]
            order = np.argsort(groups, kind="stable")
            starts = np.searchsorted(groups[order], np.arange(groups.max() + 1))
            counts = np.add.reduceat(counts.take(order, axis=axis), starts, axis=axis)
        return counts

    def require(self, domain: Domain) -> None:
        """Raises ``ValueError`` unless each attribute has a group for each code of the domain."""
        if (domain.attributes, domain.sizes) == (self.attributes, self._lengths):
            return
        sizes = domain.shape(self.attributes)
        for attribute, size, groups in zip(self.attributes, sizes, self.groups, strict=True):
            if len(groups) != size:
                raise ValueError(
                    f"{attribute!r} has {size} codes and groups for {len(groups)} of them."
                )
