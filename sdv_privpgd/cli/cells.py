"""Cells of workbooks and of options, which have types or texts of their own."""

import math
import re
from collections.abc import Mapping
from typing import Any

import pandas as pd

from sdv_privpgd.sources.texts import Signs, meaning, number_in

_WITH_ZEROS = re.compile(r"0\d+\s*$")


def numbers(column: pd.Series, signs: Signs) -> pd.Series:
    """A column of numbers, whatever dtype the parser gave it.

    The parser gives a dtype of numbers only if all cells are numbers. So each cell is decided here
    by itself.
    """
    if column.dtype.kind in "iuf":
        return column
    read = [number_in(cell, signs) for cell in column]
    return pd.Series(read, index=column.index, name=column.name, dtype=object)


def meanings(column: pd.Series, facts: Mapping, signs: Signs) -> pd.Series:
    """A column of text with the meanings of its texts, as objects. Other objects stay."""
    means = meaning(facts, signs)
    # Each text is read once: long columns have few different ones.
    texts = {cell for cell in column if isinstance(cell, str)}
    found = {text: means(text) for text in texts}
    read = [found[cell] if isinstance(cell, str) else cell for cell in column]
    return pd.Series(read, index=column.index, name=column.name, dtype=object)


def written_with_zeros(column: pd.Series) -> bool:
    """Whether some text of a column begins with a zero that a number would lose."""
    return any(_WITH_ZEROS.match(cell) is not None for cell in column if isinstance(cell, str))


def are_numbers(column: pd.Series, signs: Signs) -> bool:
    """Whether all texts of a column, which may lack some, are numbers."""
    cells = column.dropna()
    return len(cells) > 0 and all(number_in(cell, signs) is not None for cell in cells)


def as_texts(column: pd.Series) -> pd.Series:
    """A column of a workbook, whose cells have types of their own, with numbers as text."""
    return column.map(lambda cell: str(cell) if _is_plain(cell) else cell).astype(object)


def _is_plain(cell: Any) -> bool:
    return isinstance(cell, bool | int) or (isinstance(cell, float) and not math.isnan(cell))
