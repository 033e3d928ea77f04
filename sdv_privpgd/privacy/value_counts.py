"""The values of private columns whose categories nobody declared, and how many rows have each."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from sdv_privpgd.columns.values import Value, kind_of
from sdv_privpgd.sources.source import Opaque

Kind = tuple[Any, Any]
"""A value after its kind, which sorts before it; two times ``None`` is missing."""


class Counted(NamedTuple):
    """Values that records have, sorted, and how many have each. Private."""

    values: np.ndarray
    numbers: np.ndarray
    """One int64 a value, and a last one for missing."""

    def pairs(self) -> list[tuple[Value | None, int]]:
        """Each value and its number, missing last."""
        return list(zip([*self.values.tolist(), None], self.numbers.tolist(), strict=True))


class ValueCounts(Opaque):
    """The values of some columns, and how many records have them: for the curator alone.

    A record counts as much as in ``most`` of the columns at most, or as in all of them where that
    is None. A count of one unit is so many ``parts``.
    """

    __slots__ = ("_counted", "most", "names", "parts")

    def __init__(
        self, columns: Mapping[str, Counted], most: int | None = None, parts: int = 1
    ) -> None:
        self._counted, self.names = dict(columns), tuple(columns)
        self.most, self.parts = most, parts

    def counts(self, name: str) -> Counted:
        """Each value that a record has and how many have it: truths, numbers, times, text.

        Sorted, so that the order says nothing of the records'. ``True`` and 1 are two values.
        """
        return self._counted[name]


class KindCounts:
    """Values of all kinds, and how many records have each. It adds up. Private."""

    def __init__(self) -> None:
        self._found: Counter[Kind] = Counter()

    def add(self, counts: Iterable[tuple[Value | None, int]]) -> None:
        """Adds values in their one spelling, and their numbers; ``None`` is missing."""
        for key, number in counts:
            self._found[None if key is None else kind_of(key), key] += number

    def merge(self, other: "KindCounts") -> None:
        """Adds those of other records."""
        self.add(other.counted().pairs())

    def counted(self) -> Counted:
        """The values, sorted by kind."""
        listed = sorted((pair, n) for pair, n in self._found.items() if pair[0] is not None)
        numbers = [*(number for _, number in listed), self._found.get((None, None), 0)]
        values = np.array([key for (_, key), _ in listed], dtype=object)
        return Counted(values, np.array(numbers, dtype=np.int64))


class NumberCounts:
    """Finite numbers, and how many records have each. It adds up. Private."""

    def __init__(self) -> None:
        self._parts = [(np.zeros(0), np.zeros(0, dtype=np.int64))]
        self._missing = 0

    def add(self, numbers: np.ndarray, units: np.ndarray) -> None:
        """Adds a number a record, float64, with NaN for missing, each so many times."""
        there = ~np.isnan(numbers)
        self._missing += int(units[~there].sum())
        self._append(numbers[there] + 0.0, units[there])  # a zero has no sign

    def merge(self, other: "NumberCounts") -> None:
        """Adds those of other records."""
        values, numbers = other.counted()
        self._missing += int(numbers[-1])
        self._append(values, numbers[:-1])

    def counted(self) -> Counted:
        """The numbers, ascending."""
        values, counts = _together(self._parts)
        return Counted(values, np.append(counts, self._missing))

    def _append(self, values: np.ndarray, numbers: np.ndarray) -> None:
        self._parts.append(_together([(values, numbers)]))
        if sum(len(own) for own, _ in self._parts[1:]) > len(self._parts[0][0]):
            self._parts = [_together(self._parts)]


def _together(parts: Sequence[tuple[np.ndarray, np.ndarray]]) -> tuple[np.ndarray, np.ndarray]:
    """Numbers, ascending, and the sums of the counts of equal ones."""
    every, numbers = map(np.concatenate, zip(*parts, strict=True))
    values, places = np.unique(every, return_inverse=True)
    counts = np.zeros(len(values), dtype=np.int64)
    np.add.at(counts, places, numbers)
    return values, counts
