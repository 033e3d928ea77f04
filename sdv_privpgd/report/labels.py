"""What the codes of a column are called on a page. Public: it follows from the schema."""

from itertools import pairwise

from sdv_privpgd.cells import Categories, Interval, Ticks
from sdv_privpgd.columns import Column
from sdv_privpgd.dates import write_dates

MISSING = "(missing)"


def code_labels(column: Column) -> list[str]:
    """One text a code, distinct or not: a category, a number, a date or the range of a cell."""
    cells = column.cells
    if isinstance(cells, Categories):
        labels = [str(value) for value in cells.values]
    elif isinstance(cells, Interval):
        labels = _ranges([f"{edge:.6g}" for edge in cells.edges])
    else:
        labels = _of_ticks(column, cells)
    return labels + [MISSING] * column.nullable


def _ranges(edges: list[str]) -> list[str]:
    """From each edge to the next one."""
    if len(edges) == 1:
        return edges
    return [f"{low} – {high}" for low, high in pairwise(edges)]


def _of_ticks(column: Column, cells: Ticks) -> list[str]:
    """The first and the last number or date of each cell, once where they are the same."""
    ends = (cells.starts, cells.starts + cells.widths - 1)
    if column.unit is not None:
        written = [
            write_dates(end, column.unit, column.datetime_format, column.utc) for end in ends
        ]
        lows, highs = ([str(date) for date in dates] for dates in written)
    else:
        places = column.decimal_places or 0
        lows, highs = ([_decimal(int(tick), places) for tick in end] for end in ends)
    return [
        low if low == high else f"{low} – {high}" for low, high in zip(lows, highs, strict=True)
    ]


def _decimal(tick: int, places: int) -> str:
    """So many units of the last decimal place, written out exactly."""
    if places == 0:
        return str(tick)
    digits = str(abs(tick)).zfill(places + 1)
    return f"{'-' * (tick < 0)}{digits[:-places]}.{digits[-places:]}"
