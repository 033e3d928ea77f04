"""The grids on which columns are searched for their rows if nothing is known of them. Public.

A grid is fine where people's numbers and dates usually lie. Its cells form groups, which a small
table can tell apart. Each group has a price: the evidence it takes to believe that rows lie there.
"""

from dataclasses import dataclass
from typing import Generic, NamedTuple, TypeVar

import numpy as np

from sdv_privpgd.columns.bins import SignedPowers, Ticks
from sdv_privpgd.columns.dates import EARLIEST, LATEST
from sdv_privpgd.discovery.density import Density
from sdv_privpgd.estimate.noisy_tables import NoisyTable

DAY = 86_400 * 10**9
"""Nanoseconds of a day."""

_USUAL, _RARE, _STRANGE = 1.0, 5.0, 9.0
"""Nats of evidence: 1 is 1.4 standard deviations of noise, 9 are 4.2."""


Cells = TypeVar("Cells", SignedPowers, Ticks)


class Stretch(NamedTuple):
    """The first and the last cell of a grid that may hold rows, and how many each has.

    Attributes:
        first: The first one.
        last: The last one.
        is_clear: Whether there clearly were any rows.
        density: Of all cells of the grid, in its units.
    """

    first: int
    last: int
    is_clear: bool
    density: Density


@dataclass(frozen=True)
class Grid(Generic[Cells]):
    """Fine cells, the group of each, and the evidence that each group takes.

    A code of the fine grid is a cell, a code of the coarse grid a group; missing is the last code.

    Attributes:
        cells: The fine cells.
        groups: The group of each cell, ascending without gaps.
        dearness: The evidence, in nats, that it takes to believe that a group holds rows.
    """

    cells: Cells
    groups: tuple[int, ...]
    dearness: tuple[float, ...]

    @property
    def edges(self) -> np.ndarray:
        """Where the cells begin, and where the last one ends."""
        cells = self.cells
        return np.append(cells.starts, cells.last + 1) if isinstance(cells, Ticks) else cells.edges

    def held(self, coarse: NoisyTable, fine: NoisyTable, rows: float) -> Stretch:
        """Finds the cells that may hold rows, from counts of each group and of each cell.

        Of all runs of groups it is the one that has the most evidence beyond what it takes; where
        nothing is clear, that of all groups that take little. Its ends are those of the cells.
        """
        begins = np.flatnonzero(np.diff(self.groups, prepend=-1))
        groups = Density.of(self.edges[[*begins, -1]].astype(np.float64), coarse)
        density = Density.of(self.edges.astype(np.float64), fine, groups)
        dearness = np.array(self.dearness)
        if not groups.is_clear:
            cells = np.flatnonzero(np.isin(self.groups, np.flatnonzero(dearness == _USUAL)))
            return Stretch(int(cells[0]), int(cells[-1]), False, density)
        evidence = np.maximum(coarse.counts, 0.0) ** 2 / (2 * coarse.variance)
        before = np.append(0.0, np.cumsum(evidence - dearness))
        gains = np.triu(before - before[:, None], 1)
        start, end = np.unravel_index(gains.argmax(), gains.shape)
        first, stop = int(begins[start]), int(np.searchsorted(self.groups, end))
        inner = density.within(self.edges[first], np.nextafter(float(self.edges[stop]), -np.inf))
        last = first + inner.end(rows) - 1
        first = stop - inner.backwards().end(rows)
        return Stretch(min(first, last), max(first, last), True, density)


def _grouped(cells: Cells, starts: np.ndarray, groups: dict) -> Grid[Cells]:
    """The grid whose groups begin at the cells that start at the keys of ``groups``."""
    begun = np.isin(starts, list(groups))
    begun[0] = True
    return Grid(cells, tuple((np.cumsum(begun) - 1).tolist()), tuple(groups.values()))


def _powers() -> Grid[SignedPowers]:
    cells = SignedPowers()
    groups = {
        -(2.0**62): _STRANGE,
        -(2.0**31): _STRANGE,
        -(2.0**20): _RARE,
        -(2.0**10): _RARE,
        -1.0: _RARE,
        -(2.0**-20): _USUAL,  # zero
        2.0**-20: _USUAL,
        1.0: _USUAL,
        2.0**3: _USUAL,
        2.0**7: _USUAL,
        2.0**10: _USUAL,
        2.0**14: _USUAL,
        2.0**20: _RARE,
        2.0**31: _STRANGE,
    }
    return _grouped(cells, cells.edges[:-1], groups)


def _days(year: int) -> int:
    return int(np.datetime64(f"{year:04d}-01-01", "D").astype(np.int64))


def _years() -> Grid[Ticks]:
    first, last = EARLIEST // DAY + 1, LATEST // DAY - 1  # all of these days can be bounds
    years = [*range(1700, 1900, 25), *range(1900, 2040), *range(2040, 2262, 20)]
    cells = Ticks(first, last, 1, tuple(_days(year) for year in years))
    groups = {
        1678: _STRANGE,
        1900: _RARE,
        1920: _USUAL,
        1940: _USUAL,
        1960: _USUAL,
        1980: _USUAL,
        2000: _USUAL,
        2010: _USUAL,
        2020: _USUAL,
        2030: _RARE,
        2040: _STRANGE,
    }
    return _grouped(cells, cells.starts, {_days(year): each for year, each in groups.items()})


POWERS = _powers()
"""The grid of numbers: powers of two of both signs, a cell about zero, and some for years."""

YEARS = _years()
"""The grid of dates, in days since 1970: years from 1900 to 2039, and longer times before and
after."""
