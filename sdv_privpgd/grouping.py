"""Codes of attributes taken together in groups: coarse views of a domain."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from sdv_privpgd.domain import Domain


@dataclass(frozen=True)
class Grouping:
    """For each of some attributes the group of each of its codes. Public.

    The groups of an attribute are 0, 1, ..., and each has a code.
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
        """The grouping with each attribute's integer array of groups."""
        return cls(tuple(groups), tuple(tuple(own.tolist()) for own in groups.values()))

    @cached_property
    def domain(self) -> Domain:
        """The groups as codes of attributes with the same names."""
        return Domain(self.attributes, tuple(max(groups) + 1 for groups in self.groups))

    @cached_property
    def _arrays(self) -> dict[str, np.ndarray]:
        return {
            attribute: np.asarray(groups)
            for attribute, groups in zip(self.attributes, self.groups, strict=True)
        }

    def __getitem__(self, attribute: str) -> np.ndarray:
        """The group of each code of an attribute, int64."""
        return self._arrays[attribute]

    def sums(self, counts: np.ndarray, clique: tuple[str, ...]) -> np.ndarray:
        """A clique's table, with axes in its order, summed over the codes of each group."""
        for axis, attribute in enumerate(clique):
            groups = self[attribute]
            order = np.argsort(groups, kind="stable")
            starts = np.searchsorted(groups[order], np.arange(groups.max() + 1))
            counts = np.add.reduceat(counts.take(order, axis=axis), starts, axis=axis)
        return counts

    def require(self, domain: Domain) -> None:
        """Raises ``ValueError`` unless each attribute has a group for each code of the domain."""
        sizes = domain.shape(self.attributes)
        for attribute, size, groups in zip(self.attributes, sizes, self.groups, strict=True):
            if len(groups) != size:
                raise ValueError(
                    f"{attribute!r} has {size} codes and groups for {len(groups)} of them."
                )


def equal_groups(counts: np.ndarray, most: int) -> np.ndarray:
    """At most ``most`` runs of neighboring codes that hold about equal counts: each code's run.

    The sum of the runs' squared counts is the smallest there is. ``counts`` are not negative.
    """
    size = len(counts)
    if size <= most:
        return np.arange(size)
    before = np.concatenate([[0.0], np.cumsum(counts)])
    squares = np.square(before[None, :] - before[:, None])  # of the codes from row to column
    squares[np.tril_indices(size + 1)] = np.inf  # no run is empty
    best, starts = squares[0], []
    for _ in range(most - 1):
        longer = best[:, None] + squares
        starts.append(longer.argmin(axis=0))
        best = longer.min(axis=0)
    edges = [size]
    for start in reversed(starts):
        edges.append(int(start[edges[-1]]))
    return np.searchsorted(np.sort(edges[1:]), np.arange(size), side="right")
