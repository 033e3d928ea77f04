"""What is counted over private codes: tallies, which add up over any division of the records."""

import math
from collections.abc import Sequence
from fractions import Fraction
from typing import NamedTuple, TypeAlias

import numpy as np

from sdv_privpgd.base.domain import Clique, Domain, Grouping

MOST = 100
"""Rows of a person that are weighed, at most. A row has less than 2^18 units then: counts of 2^44
rows, more than any table has, fit 64 bits with their noise."""

_EXACT = 10
"""Up to so many rows each weight is exact; of more they are less by at most 0.04 %."""


def units_of(most: int) -> int:
    """The units of a count of one, if no person has more than so many rows."""
    exact = math.lcm(*range(1, min(most, _EXACT) + 1))
    return exact if most <= _EXACT else exact * most


def weights_of(most: int) -> list[int]:
    """The units of each row of a person of one row, of two rows, and so on.

    All rows of a person have the units of a count of one together, or less.
    """
    return [units_of(most) // number for number in range(1, most + 1)]


class Weights(NamedTuple):
    """How much rows count: each as its weight / the upper end, and so as one at most. Public.

    A weight beyond an end counts as that end. What is no finite number counts as the lower end.
    """

    column: str
    low: float
    high: float

    @classmethod
    def of(cls, column: str, low: float, high: float) -> "Weights":
        """The same as floats. Raises ``ValueError`` for a range that is none, or is too wide."""
        low, high = float(low), float(high)
        if not 0 < low < high <= _MOST_UNEQUAL * low < math.inf:
            raise ValueError(
                "weight_range must be two numbers above 0, the second larger than the first by a "
                f"factor of at most {_MOST_UNEQUAL:,}, got {(low, high)!r}. Rows count as parts of "
                "one of the upper end: an upper end that few weights exceed has the least noise."
            )
        return cls(column, low, high)

    @property
    def units(self) -> int:
        """The units of a count of one.

        The lower end is 100 of them: rounding changes no weight by more than 0.5 %.
        """
        return math.ceil(100 * Fraction(str(self.high)) / Fraction(str(self.low)))


Bound: TypeAlias = tuple[str, int, bool] | Weights | None
"""The column that tells people apart, how many rows of each are read, and whether they are weighed.

``None`` where all rows are read and count alike, and their ``Weights`` where they do not.
"""

_MOST_UNEQUAL = 2_500
"""The upper end of weights is so many times the lower one, at most: less than 2^18 units."""

Tables = list[np.ndarray]
"""Int64 sums over records."""

Parts = list[tuple[int, np.ndarray]]
"""Axes, and what each of their codes adds to a sum."""

CutTable = tuple[tuple[int, ...], tuple[int, ...], list[tuple[Parts, np.ndarray]]]
"""The axes of a table and their sizes, and the parts and the steps of each sum."""


class CliqueCounts:
    """The int64 table of each of some cliques, flat, over codes or over their groups."""

    def __init__(
        self, domain: Domain, cliques: Sequence[Clique], grouping: Grouping | None = None
    ) -> None:
        """Takes the domain of the codes, and a grouping that fits it."""
        self.cliques = tuple(cliques)
        counted = domain if grouping is None else grouping.domain
        self.shapes = [counted.shape(clique) for clique in self.cliques]
        self._axes = [counted.axes(clique) for clique in self.cliques]
        self._groups = None
        if grouping is not None:
            own = zip(grouping.attributes, domain.axes(counted.attributes), strict=True)
            self._groups = [(grouping[name], axis) for name, axis in own]

    @property
    def are_single(self) -> bool:
        """Whether these are the codes of single attributes."""
        return self._groups is None and all(len(clique) == 1 for clique in self.cliques)

    def zero(self) -> Tables:
        return [np.zeros(math.prod(shape), dtype=np.int64) for shape in self.shapes]

    def add(self, total: Tables, item: np.ndarray) -> None:
        """Counts a block of shape (attribute, record), which should fit the cache."""
        if self._groups is not None:
            item = np.stack([groups[item[axis]] for groups, axis in self._groups])
        cells = np.empty(item.shape[1], dtype=np.int64)
        leading, begun = (), np.zeros_like(cells)
        for axes, shape, table in zip(self._axes, self.shapes, total, strict=True):
            if axes[:-1] != leading:
                # Cliques of a workload come sorted: few differ in more than the last.
                leading, begun = axes[:-1], np.zeros_like(cells)
                for axis, size in zip(leading, shape, strict=False):
                    begun *= size
                    begun += item[axis]
            np.multiply(begun, shape[-1] if shape else 1, out=cells)
            if axes:
                cells += item[axes[-1]]
            table += np.bincount(cells, minlength=len(table))

    def merge(self, total: Tables, other: Tables) -> None:
        add_all(total, other)


class RecordNumber:
    """The number of records."""

    def zero(self) -> Tables:
        return [np.zeros(1, dtype=np.int64)]

    def add(self, total: Tables, item: np.ndarray) -> None:
        total[0] += item.shape[1]

    def merge(self, total: Tables, other: Tables) -> None:
        add_all(total, other)


class AllCodes:
    """A copy of all codes, in blocks of shape (record, attribute): for ``Curator.train`` alone."""

    def __init__(self, num_attributes: int) -> None:
        """Takes the number of attributes."""
        self._none = np.empty((0, num_attributes), dtype=np.uint8)

    def zero(self) -> Tables:
        return [self._none]

    def add(self, total: Tables, item: np.ndarray) -> None:
        total.append(item.T.copy())

    def merge(self, total: Tables, other: Tables) -> None:
        total += other


class LookupSum:
    """The sum over records of the value at the sum of their contributions."""

    def __init__(
        self, axes: Sequence[int], contributions: Sequence[np.ndarray], values: np.ndarray
    ) -> None:
        """Takes the axes that contribute, an int64 entry a code of each, and int64 values."""
        self._parts = list(zip(axes, contributions, strict=True))
        self._values = values

    def zero(self) -> Tables:
        return [np.zeros(1, dtype=np.int64)]

    def add(self, total: Tables, item: np.ndarray) -> None:
        sums = np.zeros(item.shape[1], dtype=np.int64)
        for axis, contribution in self._parts:
            sums += contribution[item[axis]]
        total[0] += self._values[sums].sum(dtype=np.int64)

    def merge(self, total: Tables, other: Tables) -> None:
        add_all(total, other)


class FeatureSums:
    """The sums over records of the waves at their phases, by label: (label, 2, feature)."""

    _AT_ONCE = 1 << 11
    """Records whose features are held at a time."""

    def __init__(
        self,
        axes: Sequence[int],
        phases: Sequence[np.ndarray],
        waves: np.ndarray,
        label: int | None,
        num_labels: int,
    ) -> None:
        """Takes uint16 phases (code, feature) of each axis, integers (2, phase), and a label."""
        self._parts = list(zip(axes, phases, strict=True))
        self._waves, self._label, self._num_labels = waves, label, num_labels
        self._num_features = phases[0].shape[1]

    def zero(self) -> Tables:
        return [np.zeros((self._num_labels, 2, self._num_features), dtype=np.int64)]

    def add(self, total: Tables, item: np.ndarray) -> None:
        for start in range(0, item.shape[1], self._AT_ONCE):
            part = item[:, start : start + self._AT_ONCE]
            held = np.zeros((part.shape[1], self._num_features), dtype=np.uint16)
            for axis, phases in self._parts:
                held += phases[part[axis]]  # modulo a turn
            if self._label is None:
                self._count(total[0][0], held)
                continue
            for code in range(self._num_labels):
                self._count(total[0][code], held[part[self._label] == code])

    def _count(self, total: np.ndarray, phases: np.ndarray) -> None:
        for wave, values in enumerate(self._waves):
            total[wave] += values[phases].sum(axis=0, dtype=np.int64)

    def merge(self, total: Tables, other: Tables) -> None:
        add_all(total, other)


class CutCounts:
    """The int64 table of each clique, flat, over codes and then over intervals of sums."""

    def __init__(self, tables: Sequence[CutTable]) -> None:
        """Takes for each table axes and their sizes, and contributions with ascending steps."""
        self._tables = list(tables)

    def zero(self) -> Tables:
        sizes = [
            math.prod(shape) * math.prod(len(steps) + 1 for _, steps in cuts)
            for _, shape, cuts in self._tables
        ]
        return [np.zeros(size, dtype=np.int64) for size in sizes]

    def add(self, total: Tables, item: np.ndarray) -> None:
        for (axes, shape, cuts), table in zip(self._tables, total, strict=True):
            cells = np.zeros(item.shape[1], dtype=np.int64)
            for axis, size in zip(axes, shape, strict=True):
                cells *= size
                cells += item[axis]
            for parts, steps in cuts:
                sums = np.zeros_like(cells)
                for axis, contribution in parts:
                    sums += contribution[item[axis]]
                cells *= len(steps) + 1
                cells += np.searchsorted(steps, sums)  # the number of steps below a sum
            table += np.bincount(cells, minlength=len(table))

    def merge(self, total: Tables, other: Tables) -> None:
        add_all(total, other)


def add_all(total: Tables, other: Tables) -> None:
    """Adds tables to others of the same shapes, in place."""
    for here, there in zip(total, other, strict=True):
        here += there
