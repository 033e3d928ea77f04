"""The warning after a fit of two dates that seem to be in order, which nobody said. Public."""

import math

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

    >>> import datetime
    >>> import pandas as pd
    >>> from sdv_privpgd import Datetime, fit_table
    >>> came = pd.Timestamp("2024-01-01") + pd.to_timedelta(np.arange(3_000) % 360, "D")
    >>> stays = pd.DataFrame({"came": came, "left": came + pd.Timedelta(days=5)})
    >>> year = Datetime(datetime.date(2024, 1, 1), datetime.date(2024, 12, 31))
    >>> fitted = fit_table(stays, {"came": year, "left": year}, epsilon=5.0, engine="pgm")
    >>> [each[:38] for each in fitted.warnings if "constraint" in each]
    ["'left' seems never to be before 'came'"]
    """
    ordered = {frozenset((each.low.name, each.high.name)) for each in fitted.schema.differences}
    columns = {each.name: each for each in fitted.columns if each.sdtype == "datetime"}
    said = []
    for (one, other), table in (each for each in fitted.noisy.items() if len(each[0]) == 2):
        if one not in columns or other not in columns or frozenset((one, other)) in ordered:
            continue
        later = _before(columns[one], columns[other])
        earlier = _before(columns[other], columns[one]).T
        rare = [_is_rare(table, cells) for cells in (earlier, later)]
        if any(rare):
            first, last = (one, other) if rare[0] else (other, one)
            seems = (
                f"{one!r} and {other!r} seem to be close to each other in all rows"
                if all(rare)
                else f"{last!r} seems never to be before {first!r}"
            )
            which = "If one is never before the other: with" if all(rare) else "With"
            low, high = ("earlier", "later") if all(rare) else (repr(first), repr(last))
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


def _is_rare(table: NoisyTable, cells: np.ndarray) -> bool:
    """Whether cells of a pair surely hold few rows, and far fewer than by chance."""
    counts = table.counts[: cells.shape[0], : cells.shape[1]]
    total = max(float(counts.sum()), 1.0)
    margins = (np.maximum(counts.sum(axis=axis), 0.0) / total for axis in (1, 0))
    by_chance = float((np.outer(*margins) * cells).sum())
    held = float((counts * cells).sum()) / total
    error = SURE * math.sqrt(table.variance * np.count_nonzero(cells)) / total
    return by_chance > _OFTEN and held < _RARELY and held + error < by_chance / 2
