"""What is counted over private codes: tallies, which add up over any division of the records."""

import abc
import math
from collections import Counter
from collections.abc import Sequence
from fractions import Fraction
from itertools import chain
from typing import NamedTuple, TypeAlias

import numpy as np

from sdv_privpgd.base.domain import Clique, Domain, Grouping
from sdv_privpgd.base.linear_thresholds import Cut

MOST = 100
"""Rows of a person that are weighed, at most. A row has less than 2^18 units then: counts of 2^44
rows, more than any table has, fit 64 bits with their noise."""

_EXACT = 10
"""Up to so many rows each weight is exact; of more they are less by at most 0.04 %."""


def units_of(most: int) -> int:
    """The units of a count of one, if no person has more than so many rows."""
    return math.lcm(*range(1, min(most, _EXACT) + 1)) * (most if most > _EXACT else 1)


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
        if not low < high <= _MOST_UNEQUAL * low < math.inf:  # low is above 0 then
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


class CodeTally(abc.ABC):
    """A tally over blocks of codes, of shape (attribute, record). Its tables add up."""

    @abc.abstractmethod
    def zero(self) -> Tables:
        """The tables of no records."""

    @abc.abstractmethod
    def add(self, total: Tables, item: np.ndarray, units: np.ndarray | None = None) -> None:
        """Adds a block, which should fit the cache: each record one time, or so many ``units``."""

    def merge(self, total: Tables, other: Tables) -> None:
        for here, there in zip(total, other, strict=True):
            here += there


class TableCounts(CodeTally):
    """The int64 table of each clique, flat: over codes or their groups, then intervals of cuts.

    Whatever its parts say, a record adds one to a single cell of a table.
    """

    def __init__(
        self,
        domain: Domain,
        cliques: Sequence[Clique],
        grouping: Grouping | None = None,
        cuts: Sequence[Sequence[Cut]] = (),
    ) -> None:
        """Takes the domain of the codes, a grouping that fits it, and the cuts of each clique."""
        self.cliques = tuple(cliques)
        counted = domain if grouping is None else grouping.domain
        cuts = cuts or [()] * len(self.cliques)
        self._cuts = cuts
        every = Counter(cut for own in cuts for cut in own)
        self._of_cuts = {cut: (cut.contributions(domain), cut.steps()) for cut in every}
        self._again = {cut for cut, times in every.items() if times > 1}
        self.shapes = [
            (*counted.shape(clique), *(cut.size for cut in own))
            for clique, own in zip(self.cliques, cuts, strict=True)
        ]
        self._axes = [counted.axes(clique) for clique in self.cliques]
        self._groups = None
        if grouping is not None:
            own = zip(grouping.attributes, domain.axes(counted.attributes), strict=True)
            self._groups = [(grouping[name], axis) for name, axis in own]

    @property
    def are_single(self) -> bool:
        """Whether these are the codes of single attributes, or numbers of records."""
        is_plain = self._groups is None and not any(self._cuts)
        return is_plain and all(len(clique) <= 1 for clique in self.cliques)

    def zero(self) -> Tables:
        return [np.zeros(math.prod(shape), dtype=np.int64) for shape in self.shapes]

    def add(self, total: Tables, item: np.ndarray, units: np.ndarray | None = None) -> None:
        if self._groups is not None:
            item = np.stack([groups[item[axis]] for groups, axis in self._groups])
        known = {cut: self._places(cut, item) for cut in self._again}
        each = zip(self._axes, self.shapes, self._cuts, total, strict=True)
        for axes, shape, cuts, table in each:
            intervals = (known[c] if c in known else self._places(c, item) for c in cuts)
            cells = np.zeros(item.shape[1], dtype=np.int64)
            for size, own in zip(shape, chain(map(item.__getitem__, axes), intervals), strict=True):
                cells *= size
                cells += own
            # Floats hold the units of a block exactly: they are fewer than 2^53.
            table += np.bincount(cells, units, len(table)).astype(np.int64)

    def _places(self, cut: Cut, item: np.ndarray) -> np.ndarray:
        """The interval of each record: the number of steps below its sum."""
        parts, steps = self._of_cuts[cut]
        return np.searchsorted(steps, _summed(parts, item)).astype(np.min_scalar_type(len(steps)))


class LookupSums(CodeTally):
    """Sums over records of values at sums of contributions, by label: (label, wave, feature)."""

    _AT_ONCE = 1 << 11
    """Records whose features are held at a time."""

    def __init__(
        self,
        axes: Sequence[int],
        contributions: Sequence[np.ndarray],
        values: np.ndarray,
        label: int | None = None,
        num_labels: int = 1,
    ) -> None:
        """Takes the axes that contribute, what each of their codes adds, values, and a label.

        Contributions are integers (code, feature), whose sums wrap around as their type does, and
        values integers (wave, sum). The label is an axis by whose codes sums are taken apart.
        """
        self._parts = list(zip(axes, contributions, strict=True))
        self._values, self._label, self._num_labels = values, label, num_labels

    def zero(self) -> Tables:
        features = self._parts[0][1].shape[1] if self._parts else 1
        return [np.zeros((self._num_labels, len(self._values), features), dtype=np.int64)]

    def add(self, total: Tables, item: np.ndarray, units: np.ndarray | None = None) -> None:
        for start in range(0, item.shape[1], self._AT_ONCE):
            part = slice(start, start + self._AT_ONCE)
            codes = item[:, part]
            held = _summed(self._parts, codes)
            for code, own in enumerate(total[0]):
                rows = slice(None) if self._label is None else codes[self._label] == code
                for wave, values in zip(own, self._values, strict=True):
                    found = values.take(held[rows], mode="clip")
                    if units is not None:
                        found = found * units[part, None][rows]
                    wave += found.sum(axis=0, dtype=np.int64)


def _summed(parts: Sequence[tuple[int, np.ndarray]], item: np.ndarray) -> np.ndarray:
    """The sum for each record of what its codes of some axes contribute."""
    if not parts:
        return np.zeros((item.shape[1], 1), dtype=np.int64)
    (first, contribution), *others = parts
    sums = contribution[item[first]]
    for axis, contribution in others:
        sums += contribution[item[axis]]
    return sums
