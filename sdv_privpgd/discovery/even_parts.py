"""Even parts of a declared range, counted besides its fine cells. Public.

Where a declared range gets fine cells at once, some hundred rows far from all others drown in their
noise, one by one and in sums of many cells. All cells beyond the bulk would share a code whose rows
are drawn next to the bulk. A few large parts of the range hold such rows together.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from sdv_privpgd.base.domain import Grouping
from sdv_privpgd.discovery.outside import Fenced
from sdv_privpgd.estimate.noisy_tables import NoisyTable
from sdv_privpgd.privacy.measurement import Measurement
from sdv_privpgd.privacy.queries import GroupedMarginalQuery

_PARTS = 8
"""A range has so many parts: ``tests/benchmarks shapes``. With 16, small clusters are missed."""

PARTS_SHARE = Fraction(1, 2)
"""Of the budget of a column's fine grid, for its even parts."""


@dataclass(frozen=True)
class EvenParts:
    """The even parts of a column on its fine grid.

    What lies beyond the range's ends, and missing, are parts of their own.

    Attributes:
        name: The column's name.
        of_code: The part of each code.
        first: The code of the first cell of the range, and the first part in it.
        num_cells: The number of cells in the range.
    """

    name: str
    of_code: np.ndarray
    first: int
    num_cells: int

    @classmethod
    def of(cls, fenced: Fenced) -> "EvenParts":
        """The parts of a column that has at least as many cells as parts."""
        number, first = fenced.inner.num_values, int("range_min" in fenced.declared)
        inside = first + np.arange(number) * _PARTS // number
        after = first + _PARTS + np.arange(fenced.column.size - first - number)
        of_code = np.concatenate([np.arange(first), inside, after])
        return cls(fenced.inner.name, of_code, first, number)

    @property
    def query(self) -> GroupedMarginalQuery:
        """The question how many rows each part has."""
        return GroupedMarginalQuery((self.name,), Grouping.of({self.name: self.of_code}))

    def within(self, answer: Measurement, beyond: Mapping[str, float]) -> "Counted":
        """The answer's counts of the parts in the range.

        The rows that clearly lie ``beyond`` an end are in its part, as they are in its cell.
        """
        counts = answer.answer[self.first : self.first + _PARTS].astype(np.float64)
        for key, rows in beyond.items():
            counts[0 if key == "range_min" else -1] += round(rows)
        of_cell = self.of_code[self.first : self.first + self.num_cells] - self.first
        return Counted(NoisyTable(counts, answer.stddev**2), of_cell)


@dataclass(frozen=True)
class Counted:
    """The noisy counts of parts, and the part of each cell."""

    counts: NoisyTable
    of_cell: np.ndarray


def has_even_parts(fenced: Fenced) -> bool:
    """Whether a column has enough cells between declared ends for even parts to be worth a look."""
    return len(fenced.declared) == 2 and fenced.inner.num_values >= 2 * _PARTS
