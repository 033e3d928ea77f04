"""Ranks of a number's codes: each code is as wide as the share of rows that have it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from sdv_privpgd.privacy.half_spaces import Line
from sdv_privpgd.synthesize.wanted import Wanted

_EVEN = 0.1
"""Part of the ranks that goes to all codes alike: what looks empty by chance can be reached."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Ranks:
    """Where the codes of a number lie in [0, 1], by its noisy table. Public.

    A relaxed row's number is moved along its rank, not along its value. Half of all rows may have
    one value, and a tenth of them the upper 99 % of a range: a sigmoid that is as wide as their
    distance in values says nothing, and pushes rows away from where they are right. Along ranks all
    rows are equally far apart, so that a sigmoid of any slope leaves a column alone that is right.

    Attributes:
        line: The places of the codes.
        edges: The rank at which each code begins, and 1.
        missing: The share of missing.
    """

    line: Line
    edges: np.ndarray
    missing: float

    @classmethod
    def of(cls, line: Line, wanted: Sequence[Wanted]) -> "Ranks":
        """By the first table that cuts this number alone; codes are alike where there is none."""
        size = len(line.places)
        shares, missing = np.full(size, 1 / size), 0.0
        for table in wanted:
            alone = [
                axis
                for axis, cut in enumerate(table.cuts)
                if cut.lines == (line,) and cut.weights[0] > 0
            ]
            if alone:
                shares, missing = _shares(line, table, alone[0])
                break
        shares = (1 - _EVEN) * shares + _EVEN / size
        edges = np.concatenate([[0.0], np.cumsum(shares)])
        return cls(line=line, edges=edges / edges[-1], missing=missing)

    @property
    def middles(self) -> np.ndarray:
        """The rank in the middle of each code."""
        return (self.edges[1:] + self.edges[:-1]) / 2

    def threshold(self, place: float) -> float:
        """The rank that is exceeded by just the codes whose places exceed this one."""
        return float(self.edges[np.searchsorted(self.line.places, place, side="right")])

    def of_values(self, values: np.ndarray) -> np.ndarray:
        """The ranks of values that are 0 where the first code begins, and 1 where the last ends."""
        return np.interp(values, np.linspace(0, 1, len(self.edges)), self.edges)

    def to_values(self, ranks: np.ndarray) -> np.ndarray:
        """The values of ranks."""
        return np.interp(ranks, self.edges, np.linspace(0, 1, len(self.edges)))


def _shares(line: Line, table: Wanted, number: int) -> tuple[np.ndarray, float]:
    """The share of each code, the same for all of an interval, and that of missing."""
    cut, axis = table.cuts[number], len(table.clique) + number
    size = len(line.places)
    others = tuple(each for each in range(table.counts.ndim) if each != axis)
    counts = np.maximum(table.counts.sum(axis=others), 0.0)
    all_rows = max(float(counts.sum()), 1e-9)
    missing = float(counts[-1]) / all_rows if line.nullable else 0.0
    held = counts[: len(cut.thresholds) + 1]
    # A code is in the interval of as many thresholds as its weighted place exceeds.
    own = np.searchsorted(np.array(cut.thresholds), np.array(line.places) * cut.weights[0])
    codes = np.bincount(own, minlength=len(held))
    each = np.where(codes > 0, held / np.maximum(codes, 1), 0.0)[own]
    return (each / each.sum() if each.sum() > 0 else np.full(size, 1 / size)), missing


def ranks_of(lines: Mapping[str, Line], wanted: Sequence[Wanted]) -> dict[str, Ranks]:
    """The ranks of each number."""
    return {name: Ranks.of(line, wanted) for name, line in lines.items()}
