"""Looks again where many rows share a cell, until the rows are spread over cells. Public.

A range says where values may lie: coordinates of one city are a thousandth of all degrees. Each
look counts one partition of the range, and cuts cells with many rows for the next one. It costs
little, because many rows stand far out of the noise. What is counted next follows from noisy
answers alone.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from sdv_privpgd.estimate.noisy_tables import NoisyTable

ABOUT_ZERO = 2.0**-20
"""Smaller numbers are as good as zero beside others: a cell of them stays whole."""

_CELLS = 64
"""All rows together are cut into so many cells in one look."""

_MANY = 1 / 8
"""A cell with more than this share of the rows is cut: a column is spread over eight cells, then,
and where noise allows over 64."""

_ROWS = 2.0
"""A part of a cell that is cut has at least so many standard deviations of rows, on average."""

_LEAST = 4
"""A cell is cut into at least so many parts, or not at all."""


@dataclass(frozen=True)
class Picture:
    """Neighboring cells of a column's range and their noisy counts.

    Attributes:
        edges: Where each cell begins, and where the last one ends; of dates in nanoseconds.
        counts: The rows of each.
        variances: The noise of each.
    """

    edges: np.ndarray
    counts: np.ndarray
    variances: np.ndarray

    @classmethod
    def of(cls, edges: np.ndarray, noisy: NoisyTable) -> "Picture":
        """The cells of one answer, whose noise is the same."""
        return cls(edges, noisy.counts, np.full(noisy.counts.size, noisy.variance))

    def averaged(self, other: "Picture") -> "Picture":
        """The other picture, with cells that are in both averaged by inverse variance."""
        ends = [list(zip(each.edges, each.edges[1:], strict=False)) for each in (self, other)]
        place = {cell: index for index, cell in enumerate(ends[0])}
        counts, variances = other.counts.copy(), other.variances.copy()
        for index, cell in enumerate(ends[1]):
            if cell in place:
                own, weight = place[cell], 1 / variances[index]
                precision = 1 / self.variances[place[cell]] + weight
                counts[index] = (
                    self.counts[own] / self.variances[own] + counts[index] * weight
                ) / precision
                variances[index] = 1 / precision
        return Picture(other.edges, counts, variances)

    def closer(self, rows: float, alone: Mapping[float, float]) -> np.ndarray | None:
        """The edges of the next look; ``None`` if no cell surely has many of the ``rows``.

        Args:
            rows: The number of rows with a value.
            alone: Numbers that many rows share, and about how many. They are not to be spread.
        """
        counts = self.counts.copy()
        for number, held in alone.items():
            cell = int(np.searchsorted(self.edges, number, side="right")) - 1
            counts[min(max(cell, 0), counts.size - 1)] -= held
        rows = max(rows - sum(alone.values()), 1.0)
        noise = np.sqrt(self.variances)
        parts = np.minimum(np.ceil(_CELLS * counts / rows), np.floor(counts / (_ROWS * noise)))
        is_cut = (counts > _MANY * rows) & (parts >= _LEAST)
        is_cut &= (self.edges[:-1] < -ABOUT_ZERO) | (self.edges[1:] > ABOUT_ZERO)
        parts = np.where(is_cut, parts, 1).astype(int)
        if (parts == 1).all():
            return None
        cells = zip(self.edges, self.edges[1:], parts, strict=False)
        inner = [np.linspace(low, high, number, endpoint=False) for low, high, number in cells]
        return np.append(np.concatenate(inner), self.edges[-1])
