"""The warning after a fit of two dates that seem to be in order, which nobody said. Public."""

import math
from typing import NamedTuple

import numpy as np

from sdv_privpgd.columns.column import Column
from sdv_privpgd.estimate.noisy_tables import NoisyTable
from sdv_privpgd.inference.values import code_values
from sdv_privpgd.report.known_facts import SURE, Facts

_RARELY, _OFTEN = 0.05, 0.2
"""At most this share of the rows seems to have the dates the other way round, by their cells, and
at least that share would, if the columns did not depend on each other."""


def on_order(fitted: Facts) -> list[str]:
    """Sentences on pairs of dates that are in order as far as their noisy table shows. Public.

    Within a cell the rows know of no order: stays would end before they begin.
    """
    ordered = {frozenset((each.low.name, each.high.name)) for each in fitted.schema.differences}
    columns = {each.name: each for each in fitted.columns if each.sdtype == "datetime"}
    said = []
    for (one, other), table in (each for each in fitted.noisy.items() if len(each[0]) == 2):
        if one not in columns or other not in columns or frozenset((one, other)) in ordered:
            continue
        later = _before(columns[one], columns[other])
        earlier = _before(columns[other], columns[one]).T
        both = [_share(table, cells) for cells in (earlier, later)]
        if any(share.is_rare for share in both):
            (rarer, more), names = sorted(both, key=lambda share: share.held), (one, other)
            first, last = names if rarer is both[0] else names[::-1]
            is_told = more.held - rarer.held > more.error + rarer.error
            seems = (
                f"{last!r} seems never to be before {first!r}"
                if is_told
                else f"{one!r} and {other!r} seem to be close to each other in all rows"
            )
            which = "With" if is_told else "If one is never before the other: with"
            low, high = (repr(first), repr(last)) if is_told else ("earlier", "later")
            said.append(
                f"{seems}, but nothing says how, and the rows do not know by less than their "
                f"cells are wide: dates may be in the wrong order there. {which} SDV's constraint "
                f"Inequality({low}, {high}) in PrivPGDSynthesizer they are not, and the time "
                "between them is modelled as well."
            )
    return said


def _before(one: Column, other: Column) -> np.ndarray:
    """For each code of one date and each of another, whether the first surely is earlier."""
    highs = _moments(one, code_values(one).highs)
    lows = _moments(other, code_values(other).lows)
    return highs[:, None] < lows[None, :]


def _moments(column: Column, ticks: np.ndarray) -> np.ndarray:
    return ticks.astype(np.int64).astype(f"datetime64[{column.unit}]")


class _Share(NamedTuple):
    """The share of rows in some cells of a pair, its error, and what it would be by chance."""

    held: float
    error: float
    by_chance: float

    @property
    def is_rare(self) -> bool:
        """Whether the cells surely hold few rows, and far fewer than by chance."""
        is_low = self.held < _RARELY and self.held + self.error < self.by_chance / 2
        return self.by_chance > _OFTEN and is_low


def _share(table: NoisyTable, cells: np.ndarray) -> _Share:
    counts = table.counts[: cells.shape[0], : cells.shape[1]]
    total = max(float(counts.sum()), 1.0)
    margins = (np.maximum(counts.sum(axis=axis), 0.0) / total for axis in (1, 0))
    return _Share(
        held=float((counts * cells).sum()) / total,
        error=SURE * math.sqrt(table.variance * np.count_nonzero(cells)) / total,
        by_chance=float((np.outer(*margins) * cells).sum()),
    )
