"""What the codes of a column are called on a page. Public: it follows from the schema."""

from sdv_privpgd.cells import Categories, Interval, Ticks
from sdv_privpgd.columns import Column
from sdv_privpgd.dates import write_dates

MISSING = "(missing)"


def code_labels(column: Column) -> list[str]:
    """One text a code, distinct or not: a category, a number, a date or the range of a cell.

    A code of several categories is named by the first of them and their number.
    """
    cells = column.cells
    if isinstance(cells, Categories):
        lows = highs = [str(value) for value in cells.values]
    elif isinstance(cells, Interval):
        edges = [f"{edge:.6g}" for edge in cells.edges]
        lows, highs = edges[: len(cells)], edges[-len(cells) :]
    else:
        lows, highs = _of_ticks(column, cells)
    codes = range(len(cells)) if column.merging is None else column.merging.codes
    members: dict[int, list[int]] = {}
    for cell, code in enumerate(codes):
        members.setdefault(code, []).append(cell)
    labels = []
    for _, found in sorted(members.items()):
        low, high = lows[found[0]], highs[found[-1]]
        if low == high:
            labels.append(low)
        elif isinstance(cells, Categories):
            labels.append(f"{low} and {len(found) - 1} others")
        else:
            labels.append(f"{low} – {high}")
    return labels + [MISSING] * column.nullable


def _of_ticks(column: Column, cells: Ticks) -> tuple[list[str], list[str]]:
    """The first and the last number or date of each cell."""
    ends = (cells.starts, cells.starts + cells.widths - 1)
    if column.unit is not None:
        written = [
            write_dates(end, column.unit, column.datetime_format, column.utc) for end in ends
        ]
        lows, highs = ([str(date) for date in dates] for dates in written)
    else:
        places, step = column.decimal_places or 0, 1
        if column.increment is not None:
            places, step = 0, column.increment
        lows, highs = ([_decimal(int(tick) * step, places) for tick in end] for end in ends)
    return lows, highs


def _decimal(tick: int, places: int) -> str:
    """So many units of the last decimal place, written out exactly."""
    if places == 0:
        return str(tick)
    digits = str(abs(tick)).zfill(places + 1)
    return f"{'-' * (tick < 0)}{digits[:-places]}.{digits[-places:]}"
