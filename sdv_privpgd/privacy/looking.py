"""What a first look adds up over private rows: codes of first grids, and values."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from sdv_privpgd.columns.readings import Readable, Reading, attribute_of
from sdv_privpgd.columns.scalars import key_counts, quiet
from sdv_privpgd.privacy.value_counts import KindCounts, NumberCounts
from sdv_privpgd.privacy.weighing import Weighing
from sdv_privpgd.sources.source import Columns


@dataclass
class Seen:
    """What was counted so far, in units of what rows count as. Private.

    Attributes:
        num_rows: The number of rows.
        tables: The int64 counts of the codes of each attribute.
        values: The values of the columns of which all were asked for.
        numbers: Those of the columns of which numbers were asked for.
    """

    num_rows: int
    tables: dict[str, np.ndarray]
    values: dict[str, KindCounts]
    numbers: dict[str, NumberCounts]


class Looking:
    """The tally of a first look: what its readings ask for. It holds public facts alone."""

    def __init__(
        self, readings: Sequence[Reading | Readable], weighing: Weighing | None = None
    ) -> None:
        """Takes what is to be read and, where rows are weighed, how."""
        self.readings, self._weighing = tuple(readings), weighing
        self.names = list(dict.fromkeys(each.name for each in readings))
        if weighing is not None:
            self.names = list(dict.fromkeys([*self.names, weighing.name]))
        self.sizes = {
            attribute_of(kind, each.name): size
            for each in self.readings
            for kind, size in each.sizes.items()
        }

    def zero(self) -> Seen:
        return Seen(
            num_rows=0,
            tables={name: np.zeros(size, dtype=np.int64) for name, size in self.sizes.items()},
            values={each.name: KindCounts() for each in self._asking("categories")},
            numbers={each.name: NumberCounts() for each in self._asking("numbers")},
        )

    def add(self, total: Seen, item: Columns) -> None:
        parts = [(item, 1)] if self._weighing is None else self._weighing.parts_of(item)
        for columns, worth in parts:
            self._add(total, columns, worth)

    def _add(self, total: Seen, item: Columns, worth: int) -> None:
        total.num_rows += worth * len(next(iter(item.values()), ()))
        with quiet():
            for name, found in total.values.items():
                found.add(key_counts(item[name]), worth)
            for each in self._asking("numbers"):
                total.numbers[each.name].add(each.finite_numbers(item[each.name]), worth)
            for each in self.readings:
                for kind, codes in zip(each.sizes, each.codes(item[each.name]), strict=True):
                    table = total.tables[attribute_of(kind, each.name)]
                    table += worth * np.bincount(codes, minlength=len(table))

    def merge(self, total: Seen, other: Seen) -> None:
        total.num_rows += other.num_rows
        for name, table in other.tables.items():
            total.tables[name] += table
        for here, there in ((total.values, other.values), (total.numbers, other.numbers)):
            for name, found in there.items():
                here[name].merge(found)

    def _asking(self, kind: str) -> list[Reading]:
        return [each for each in self.readings if isinstance(each, Reading) and kind in each.asks]
