"""Decides what the text of a cell means, by the cell alone and by public facts on its column.

pandas infers types from a whole column. Then one word among numbers would turn all of them into
text, and every other row would be read as something else.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pandas as pd

from sdv_privpgd.cli.saying import CommandError

_TRUTHS = {"true": True, "false": False}


def is_number(facts: Mapping) -> bool:
    """Whether a column holds numbers, so that a parser may read it at once."""
    return facts.get("sdtype") == "numerical"


def numbers(column: pd.Series, decimal: str) -> pd.Series:
    """A column of numbers, whatever dtype the parser gave it.

    The parser gives a dtype of numbers only if all cells are numbers. So each cell is decided here
    by itself.
    """
    if column.dtype.kind in "iuf":
        return column
    read = [_number(cell, decimal) for cell in column]
    return pd.Series(read, index=column.index, name=column.name, dtype=object)


def meanings(column: pd.Series, facts: Mapping, decimal: str) -> pd.Series:
    """A column of text with the meanings of its texts, as objects. Other objects stay."""
    means = _meaning(facts, decimal)
    # Each text is read once: long columns have few different ones.
    texts = {cell for cell in column if isinstance(cell, str)}
    found = {text: means(text) for text in texts}
    read = [found[cell] if isinstance(cell, str) else cell for cell in column]
    return pd.Series(read, index=column.index, name=column.name, dtype=object)


def texts(column: pd.Series) -> pd.Series:
    """A column of a workbook, whose cells have types of their own, with numbers as text."""
    return column.map(lambda cell: str(cell) if _is_plain(cell) else cell).astype(object)


def declared_values(facts: Mapping) -> list:
    """The declared categories of a column, with the one for all others if there is one."""
    values = facts.get("range_values")
    listed = list(values) if isinstance(values, list | tuple | range) else []
    return listed + [value for value in (facts.get("other_value"),) if value is not None]


def convert(column: pd.Series, dtype: Any) -> pd.Series:
    """The column in the dtype that the user names. Raises ``CommandError``, without a cell."""
    try:
        if dtype.kind == "M" and column.dtype == object:
            return column  # dates are read one by one, as the metadata says
        if pd.api.types.is_bool_dtype(dtype):
            column = column.map(lambda cell: _truth(cell), na_action="ignore")
        return column.astype(dtype)
    except (TypeError, ValueError):
        raise CommandError(
            f"Column {column.name!r} cannot be read with --dtype {column.name}={dtype}: not all "
            "of its cells can be such. Correct the file, or choose another dtype."
        ) from None


def _meaning(facts: Mapping, decimal: str) -> Callable[[str], Any]:
    """The function that reads one text of a column."""
    sdtype, declared = facts.get("sdtype"), declared_values(facts)
    if sdtype == "boolean":
        return _truth
    if sdtype not in ("categorical", "ordinal"):
        return lambda text: text
    if declared:
        return lambda text: _declared(text, declared, decimal)
    return _as_written


def _declared(text: str, declared: Sequence, decimal: str) -> Any:
    """The declared value that a text stands for, or the text itself."""
    for written in (text, text.strip()):
        for value in declared:
            if isinstance(value, str) and value == written:
                return value
    if _TRUTHS.get(text.strip().lower()) in [each for each in declared if isinstance(each, bool)]:
        return _truth(text)
    number = _number(text, decimal)
    if number is not None:
        for value in declared:
            if isinstance(value, int | float) and value == number:
                return value
    return text


def _as_written(text: str) -> Any:
    """A number if the text is its usual spelling, so that nothing is lost; 01234 stays text."""
    number = _number(text, ".")
    if number is None or not math.isfinite(number):
        return text
    return number if repr(number) == text else text


def _is_plain(cell: Any) -> bool:
    return isinstance(cell, bool | int) or (isinstance(cell, float) and not math.isnan(cell))


def _truth(cell: Any) -> Any:
    """True or False for their words and for 1 and 0; anything else stays as it is."""
    text = str(cell).strip().lower()
    if text in _TRUTHS:
        return _TRUTHS[text]
    return {"0": False, "1": True, "0.0": False, "1.0": True}.get(text, cell)


def _number(cell: Any, decimal: str) -> int | float | None:
    if not isinstance(cell, str):
        return cell if isinstance(cell, int | float) and not isinstance(cell, bool) else None
    text = cell if decimal == "." else cell.replace(".", "_").replace(decimal, ".")
    if "_" in text:  # Python reads 1_000
        return None
    for read in (int, float):
        try:
            number = read(text)
        except ValueError:
            continue
        return None if isinstance(number, float) and math.isnan(number) else number
    return None
