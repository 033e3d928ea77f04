"""The values of private columns whose categories nobody declared."""

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from sdv_privpgd.columns.values import Value, kind_of

_Kind = tuple[Any, Any]
"""A value after its kind, which sorts before it; two times ``None`` is missing."""


class ValueCounts:
    """One value or ``None`` a record, for each of some columns. Private: for the curator alone.

    It has no public view of itself, as ``Dataset`` has none.

    >>> values = ValueCounts({"job": [("nurse", 12), ("clerk", 3), (None, 1)]})
    >>> values.counts("job")
    [('clerk', 3), ('nurse', 12), (None, 1)]
    """

    __slots__ = ("_listed", "names")

    def __init__(
        self,
        columns: Mapping[str, Iterable[tuple[Value | None, int]]],
        numbers: Mapping[str, np.ndarray] | None = None,
    ) -> None:
        """Takes values in their one spelling and how many records have them.

        ``None`` is missing. The same value may come again. Of ``numbers`` it takes one a record,
        float64, with NaN for missing.
        """
        self._listed = {name: _sorted(_added(counts)) for name, counts in columns.items()}
        for name, column in (numbers or {}).items():
            self._listed[name] = _counted(column)
        self.names = tuple(self._listed)

    def __repr__(self) -> str:
        return f"ValueCounts({self.names!r})"

    def __reduce__(self):
        raise TypeError("ValueCounts are private and cannot be pickled or copied.")

    def counts(self, name: str) -> list[tuple[Value | None, int]]:
        """Each value that a record has and how many have it: truths, numbers, times, text.

        Sorted, so that the order says nothing of the records'. ``True`` and 1 are two values. The
        last is ``None``, also where no record has it.
        """
        return self._listed[name]


def _sorted(found: Mapping[_Kind, int]) -> list[tuple[Value | None, int]]:
    missing = found.get((None, None), 0)
    listed = sorted((pair, number) for pair, number in found.items() if pair[0] is not None)
    return [*((key, number) for (_, key), number in listed), (None, missing)]


def _counted(numbers: np.ndarray) -> list[tuple[Value | None, int]]:
    """Each number, ascending, and how many records have it: faster than one by one."""
    values, counts = np.unique(numbers[~np.isnan(numbers)], return_counts=True)
    missing = numbers.size - int(counts.sum())
    return [*zip(values.tolist(), counts.tolist(), strict=True), (None, missing)]


def _added(counts: Iterable[tuple[Value | None, int]]) -> dict[_Kind, int]:
    """The number of each key with its kind, so that ``True`` and 1 are two."""
    found: Counter[_Kind] = Counter()
    for key, number in counts:
        found[None if key is None else kind_of(key), key] += number
    return dict(found)
