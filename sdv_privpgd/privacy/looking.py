"""What a first look adds up over private rows: codes of first grids, and values."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from sdv_privpgd.columns.readings import Readable, Reading, attribute_of
from sdv_privpgd.columns.scalars import key_counts, quiet
from sdv_privpgd.privacy.value_counts import Kind, NumberCounts, by_kind
from sdv_privpgd.sources.source import Columns


@dataclass
class Seen:
    """What was counted so far. Private.

    Attributes:
        num_rows: The number of rows.
        tables: The int64 counts of the codes of each attribute.
        values: The values of the columns of which all were asked for.
        numbers: Those of the columns of which numbers were asked for.
    """

    num_rows: int
    tables: dict[str, np.ndarray]
    values: dict[str, Counter[Kind]]
    numbers: dict[str, NumberCounts]

    def times(self, weight: int) -> "Seen":
        """The same, each row counted so many times."""
        return Seen(
            num_rows=self.num_rows * weight,
            tables={name: table * weight for name, table in self.tables.items()},
            values={
                name: Counter({value: number * weight for value, number in found.items()})
                for name, found in self.values.items()
            },
            numbers={name: found.times(weight) for name, found in self.numbers.items()},
        )


class Looking:
    """The tally of a first look: what its readings ask for. It holds public facts alone."""

    def __init__(self, readings: Sequence[Reading | Readable]) -> None:
        self.readings = tuple(readings)
        self.sizes = {
            attribute_of(kind, each.name): size
            for each in self.readings
            for kind, size in each.sizes.items()
        }

    def zero(self) -> Seen:
        return Seen(
            num_rows=0,
            tables={name: np.zeros(size, dtype=np.int64) for name, size in self.sizes.items()},
            values={each.name: Counter() for each in self._asking("categories")},
            numbers={each.name: NumberCounts() for each in self._asking("numbers")},
        )

    def add(self, total: Seen, item: Columns) -> None:
        total.num_rows += len(next(iter(item.values()), ()))
        with quiet():
            for name, found in total.values.items():
                found.update(by_kind(key_counts(item[name])))
            for each in self._asking("numbers"):
                total.numbers[each.name].add(each.finite_numbers(item[each.name]))
            for each in self.readings:
                for kind, codes in zip(each.sizes, each.codes(item[each.name]), strict=True):
                    table = total.tables[attribute_of(kind, each.name)]
                    table += np.bincount(codes, minlength=len(table))

    def merge(self, total: Seen, other: Seen) -> None:
        total.num_rows += other.num_rows
        for name, table in other.tables.items():
            total.tables[name] += table
        for name, found in other.values.items():
            total.values[name].update(found)
        for name, found in other.numbers.items():
            total.numbers[name].merge(found)

    def _asking(self, kind: str) -> list[Reading]:
        return [each for each in self.readings if isinstance(each, Reading) and kind in each.asks]
