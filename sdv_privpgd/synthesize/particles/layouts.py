"""One form for the tables of a finish, over codes and over groups of codes."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from sdv_privpgd.base.domain import Clique, Domain
from sdv_privpgd.estimate.interactions import GroupedTargets


class Levels(NamedTuple):
    """Supported codes at several levels: level 0 has the codes, each further one a grouping.

    ``maps`` of shape (level, attribute, code) translates a code of level 0 to each level, and
    ``widths`` of shape (level, attribute) has the numbers of codes.
    """

    maps: np.ndarray
    widths: np.ndarray

    @classmethod
    def of(
        cls, domain: Domain, supports: Sequence[np.ndarray], grouped: GroupedTargets
    ) -> "Levels":
        """The levels of the supported codes of each attribute."""
        sizes = np.array([len(support) for support in supports], dtype=np.int64)
        shape = (1 + len(grouped), len(domain))
        maps = np.zeros((*shape, int(sizes.max(initial=1))), dtype=np.int32)
        widths = np.ones(shape, dtype=np.int64)
        maps[0] = np.arange(maps.shape[2])
        widths[0] = sizes
        for level, grouping in enumerate(grouped, start=1):
            for name, width in zip(grouping.attributes, grouping.domain.sizes, strict=True):
                (axis,) = domain.axes((name,))
                maps[level, axis, : sizes[axis]] = grouping[name][supports[axis]]
                widths[level, axis] = width
        return cls(maps, widths)

    def codes(self, codes: np.ndarray) -> np.ndarray:
        """The codes of all levels, int32 of shape (level * attribute, particle).

        The argument has the codes of level 0, shape (attribute, particle).
        """
        rows = [own[codes[axis]] for level in self.maps for axis, own in enumerate(level)]
        return np.stack(rows).astype(np.int32)


class Table(NamedTuple):
    """A target over the codes of one level, on axes of the domain."""

    level: int
    axes: tuple[int, ...]
    weight: float
    values: np.ndarray

    def rows(self, num_attributes: int) -> list[int]:
        """The rows of ``Levels.codes`` that hold the codes of the table's axes."""
        return [self.level * num_attributes + axis for axis in self.axes]


def tables_of(
    domain: Domain,
    targets: Mapping[Clique, np.ndarray],
    supports: Sequence[np.ndarray],
    grouped: GroupedTargets,
) -> list[Table]:
    """The tables of all levels, by level. Tables over codes keep the supported codes only."""
    tables = []
    for clique, table in targets.items():
        axes = domain.axes(clique)
        values = np.asarray(table, dtype=np.float64)[np.ix_(*(supports[axis] for axis in axes))]
        tables.append(Table(0, axes, 1.0, values))
    for level, own in enumerate(grouped.values(), start=1):
        tables += [
            Table(level, domain.axes(clique), target.weight, target.values)
            for clique, target in own.items()
        ]
    return tables
