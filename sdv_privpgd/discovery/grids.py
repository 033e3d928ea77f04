"""The grids on which columns are searched for their rows if nothing is known of them. Public.

Their few cells are narrow where people's numbers and dates usually lie. Each has a price: the
evidence it takes to believe that rows lie there.
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from sdv_privpgd.columns.bins import SignedPowers, Ticks
from sdv_privpgd.columns.dates import EARLIEST, LATEST
from sdv_privpgd.discovery.density import CLEAR, HINT, Density
from sdv_privpgd.estimate.noisy_tables import NoisyTable

DAY = int(np.timedelta64(1, "D") / np.timedelta64(1, "ns"))
"""Nanoseconds of a day."""


class Stretch(NamedTuple):
    """Where rows may lie on a grid.

    Attributes:
        low: Where the first cell that may hold rows begins, of dates in nanoseconds.
        high: Where the last one ends.
        is_clear: Whether there clearly were any rows.
        density: Of all cells of the grid.
    """

    low: float
    high: float
    is_clear: bool
    density: Density


@dataclass(frozen=True)
class Grid:
    """The cells of a grid, and the evidence that each takes.

    Attributes:
        cells: The cells.
        edges: Where they begin and the last one ends, of dates in nanoseconds.
        usual: The ends of where most columns lie: a hint of rows is enough.
        rare: Those of where few do. Beyond them rows must be clear.
    """

    cells: SignedPowers | Ticks
    edges: np.ndarray
    usual: tuple[float, float]
    rare: tuple[float, float]

    def held(self, noisy: NoisyTable) -> Stretch:
        """Finds the run of cells that has the most evidence beyond what it takes.

        Evidence is the square of the standard deviations that a count is. Where nothing is clear it
        is the run of all usual cells.
        """
        density = Density.of(self.edges, noisy)
        if not density.is_clear:
            return Stretch(*self.usual, False, density)
        evidence = np.maximum(noisy.counts, 0.0) ** 2 / noisy.variance
        is_usual, is_rare = (
            (self.edges[:-1] >= low) & (self.edges[1:] <= high)
            for low, high in (self.usual, self.rare)
        )
        price = np.where(is_usual, HINT**2 / 2, np.where(is_rare, HINT * CLEAR, CLEAR**2))
        before = np.append(0.0, np.cumsum(evidence - price))
        gains = np.triu(before - before[:, None], 1)
        first, end = np.unravel_index(gains.argmax(), gains.shape)
        return Stretch(float(self.edges[first]), float(self.edges[end]), True, density)


def _years() -> Grid:
    first, last = EARLIEST // DAY + 1, LATEST // DAY - 1  # all of these days can be bounds
    years = (1900, 1920, 1940, 1960, 1980, 2000, 2010, 2020, 2030, 2040)
    days = {year: int(np.datetime64(f"{year}-01-01", "D").astype(np.int64)) for year in years}
    edges = np.array([first, *days.values(), last + 1], dtype=np.float64) * DAY
    usual, rare = ((float(days[low]) * DAY, float(days[high]) * DAY) for low, high in
                   ((1920, 2030), (1900, 2040)))  # fmt: skip
    return Grid(Ticks(first, last, 1, tuple(days.values())), edges, usual, rare)


POWERS = Grid(SignedPowers(), SignedPowers().edges, (-(2.0**-20), 2.0**20), (-(2.0**31), 2.0**31))
"""The grid of numbers: some powers of two of both signs, a cell about zero, and one of years."""

YEARS = _years()
"""The grid of dates: decades from 1900 to 2039, and longer times before and after."""
