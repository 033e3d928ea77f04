"""Names the codes of a column on a page."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from sdv_privpgd.base.words import dates, grouped, number, short_number
from sdv_privpgd.columns.bins import Categories, Reals, Ticks
from sdv_privpgd.columns.column import Column
from sdv_privpgd.columns.date_formats import write_dates
from sdv_privpgd.columns.units import DAYS

MISSING = "(missing)"


@dataclass(frozen=True)
class Names:
    """One text for each code, and a shorter one for the ticks of a figure."""

    labels: Sequence[str]
    ticks: Sequence[str]

    @classmethod
    def plain(cls, texts: Sequence[str]) -> "Names":
        """Names that are short enough."""
        return cls(texts, texts)


def code_names(column: Column) -> Names:
    """The names of a column's codes. Public: they follow from the schema.

    A code is named by its category, its number, its date or both ends of its cell. A code of
    several categories is named by the first of them and their number. Its tick is where it begins.
    """
    cells = column.cells
    if isinstance(cells, Categories):
        lows = highs = ticks = [str(value) for value in cells.values]
    elif isinstance(cells, Reals):
        edges = [number(edge) for edge in cells.edges]
        lows, highs = edges[: len(cells)], edges[-len(cells) :]
        ticks = [short_number(edge) for edge in cells.edges]
    else:
        lows, highs, ticks = _of_ticks(column, cells)
    codes = range(len(cells)) if column.merging is None else column.merging.codes
    members = grouped((code, cell) for cell, code in enumerate(codes))
    found = [held for _, held in sorted(members.items())]
    missing = [MISSING] * column.nullable
    labels = [_label(lows[held[0]], highs[held[-1]], held, cells) for held in found]
    return Names(labels + missing, [ticks[held[0]] for held in found] + missing)


def code_labels(column: Column) -> list[str]:
    """One text for each code."""
    return list(code_names(column).labels)


def _label(low: str, high: str, held: Sequence[int], cells: Categories | Ticks | Reals) -> str:
    if low == high:
        return low
    if isinstance(cells, Categories):
        return f"{low} and {len(held) - 1} others"
    return f"{low} – {high}"


def _of_ticks(column: Column, cells: Ticks) -> tuple[list[str], list[str], list[str]]:
    """The first and the last number or date of each cell, and a short text of the first."""
    ends = (cells.starts, cells.starts + cells.widths - 1)
    if column.unit is not None:
        lows, highs = (_dates(column, column.unit, end) for end in ends)
        return lows, highs, _short_dates(column.unit, cells.starts)
    places, step = column.decimal_places or 0, 1
    if column.increment is not None:
        places, step = 0, column.increment
    lows, highs = ([_decimal(int(tick) * step, places) for tick in end] for end in ends)
    return lows, highs, [short_number(int(tick) * step / 10**places) for tick in cells.starts]


def _dates(column: Column, unit: str, ticks: np.ndarray) -> list[str]:
    """Dates in the column's format; timestamps that are days are written without midnight."""
    if column.datetime_format is None and unit == "D":
        return dates(ticks.astype("datetime64[D]").astype("datetime64[ns]").astype(np.int64))
    is_far = column.datetime_format is not None  # of text the day that stands for never is written
    how = column.datetime_format, column.utc, is_far, column.offset
    return list(map(str, write_dates(ticks, unit, *how)))


def _short_dates(unit: str, ticks: np.ndarray) -> list[str]:
    """Years, months, days or minutes: no finer than all of them need."""
    moments = ticks.astype(f"datetime64[{unit}]")
    for coarse in DAYS:
        if len(np.unique(moments.astype(f"datetime64[{coarse}]"))) == len(moments):
            return [str(date) for date in moments.astype(f"datetime64[{coarse}]")]
    return [str(date).replace("T", " ") for date in moments.astype("datetime64[m]")]


def _decimal(tick: int, places: int) -> str:
    """A number of units of the last decimal place, written out exactly."""
    if places == 0:
        return f"{tick:,}"
    digits = str(abs(tick)).zfill(places + 1)
    return f"{'-' * (tick < 0)}{int(digits[:-places]):,}.{digits[-places:]}"
