"""The grids on which columns are searched for their rows if nothing is known of them. Public.

A grid is fine where people's numbers and dates usually lie. Its cells form groups, which a small
table can tell apart. Each group has a price: the evidence it takes to believe that rows lie there.
"""

from dataclasses import dataclass
from typing import Generic, TypeVar

import numpy as np

from sdv_privpgd.columns.bins import SignedPowers, Ticks
from sdv_privpgd.columns.dates import EARLIEST, LATEST

DAY = 86_400 * 10**9
"""Nanoseconds of a day."""

_USUAL, _RARE, _STRANGE = 3.0, 7.0, 11.0
"""Nats of evidence: 3 are 2.4 standard deviations of noise, 11 are 4.7."""


Cells = TypeVar("Cells", SignedPowers, Ticks)


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
