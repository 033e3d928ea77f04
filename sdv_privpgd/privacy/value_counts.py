"""The values of private columns whose categories nobody declared."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from sdv_privpgd.columns.values import Value, kind_of

Kind = tuple[Any, Any]
"""A value after its kind, which sorts before it; two times ``None`` is missing."""

_PENDING = 1 << 20
"""Different numbers that are kept apart, at least, before they are put together."""


class Counted(NamedTuple):
    """Values that records have, sorted, and how many have each. Private."""

    values: Sequence[Value] | np.ndarray
    numbers: np.ndarray
    """One int64 a value, and a last one for missing."""

    def at(self, places: Iterable[int]) -> list[Value]:
        """The values at some places."""
        if isinstance(self.values, np.ndarray):
            return self.values[list(places)].tolist()
        return [self.values[place] for place in places]

    def pairs(self) -> list[tuple[Value | None, int]]:
        """Each value and its number, missing last."""
        values = self.values.tolist() if isinstance(self.values, np.ndarray) else self.values
        return list(zip([*values, None], self.numbers.tolist(), strict=True))


class ValueCounts:
    """The values of some columns, and how many records have them. Private: for the curator alone.

    It has no public view of itself, as ``Dataset`` has none.
    """

    __slots__ = ("_counted", "names")

    def __init__(self, columns: Mapping[str, Iterable[tuple[Value | None, int]]]) -> None:
        """Takes values in their one spelling and how many records have them.

        ``None`` is missing. The same value may come again.
        """
        self._counted = {name: _sorted(by_kind(counts)) for name, counts in columns.items()}
        self.names = tuple(self._counted)

    @classmethod
    def of(
        cls, values: Mapping[str, Mapping[Kind, int]], numbers: "Mapping[str, NumberCounts]"
    ) -> "ValueCounts":
        """Those that were added up."""
        made = cls({})
        made._counted = {name: _sorted(found) for name, found in values.items()}
        made._counted |= {name: found.counted() for name, found in numbers.items()}
        made.names = tuple(made._counted)
        return made

    def __repr__(self) -> str:
        return f"ValueCounts({self.names!r})"

    def __reduce__(self):
        raise TypeError("ValueCounts are private and cannot be pickled or copied.")

    def counts(self, name: str) -> Counted:
        """Each value that a record has and how many have it: truths, numbers, times, text.

        Sorted, so that the order says nothing of the records'. ``True`` and 1 are two values.
        """
        return self._counted[name]


class NumberCounts:
    """Finite numbers, and how many records have each. It adds up. Private."""

    def __init__(self) -> None:
        self._parts = [(np.zeros(0), np.zeros(0, dtype=np.int64))]
        self._missing = 0

    def add(self, numbers: np.ndarray) -> None:
        """Adds a number a record, float64, with NaN for missing."""
        held = numbers[~np.isnan(numbers)] + 0.0  # a zero has no sign
        self._missing += numbers.size - held.size
        self._parts.append(np.unique(held, return_counts=True))
        pending = sum(len(values) for values, _ in self._parts[1:])
        if pending > max(_PENDING, len(self._parts[0][0])):
            self._put_together()

    def merge(self, other: "NumberCounts") -> None:
        """Adds those of other records."""
        values, numbers = other.counted()
        self._parts.append((np.asarray(values), numbers[:-1]))
        self._missing += int(numbers[-1])
        self._put_together()

    def times(self, weight: int) -> "NumberCounts":
        """The same numbers, each counted so many times."""
        found = NumberCounts()
        found._parts = [(values, counts * weight) for values, counts in self._parts]
        found._missing = self._missing * weight
        return found

    def counted(self) -> Counted:
        """The numbers, ascending."""
        self._put_together()
        values, counts = self._parts[0]
        return Counted(values, np.append(counts, self._missing))

    def _put_together(self) -> None:
        """Sums the counts of equal numbers."""
        values, places = np.unique(
            np.concatenate([values for values, _ in self._parts]), return_inverse=True
        )
        counts = np.zeros(len(values), dtype=np.int64)
        np.add.at(counts, places, np.concatenate([numbers for _, numbers in self._parts]))
        self._parts = [(values, counts)]


def by_kind(counts: Iterable[tuple[Value | None, int]]) -> Counter[Kind]:
    """The number of each value with its kind, so that ``True`` and 1 are two.

    ``None`` is missing. The same value may come again.
    """
    found: Counter[Kind] = Counter()
    for key, number in counts:
        found[None if key is None else kind_of(key), key] += number
    return found


def _sorted(found: Mapping[Kind, int]) -> Counted:
    listed = sorted((pair, number) for pair, number in found.items() if pair[0] is not None)
    numbers = [*(number for _, number in listed), found.get((None, None), 0)]
    return Counted([key for (_, key), _ in listed], np.array(numbers, dtype=np.int64))
