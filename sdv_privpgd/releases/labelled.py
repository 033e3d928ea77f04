"""The codes that labels of published tables name: values, cells, and groups of cells. Public."""

import re
from collections.abc import Mapping
from functools import cached_property
from typing import Any

import pandas as pd

from sdv_privpgd.columns.bins import Categories
from sdv_privpgd.columns.column import Column
from sdv_privpgd.columns.labels import MISSING, code_labels

_OR_MISSING = f" or {MISSING}"
_RANGE = re.compile(r"(.+?)\s*(?:–|—|\sto\s)\s*(.+)", re.DOTALL)
_NUMBERS = re.compile(r"(-?[\d.,]+)\s*-\s*(-?[\d.,]+)")
"""A hyphen stands between two numbers alone: dates have hyphens of their own."""

Codes = tuple[int, ...]


class ColumnLabels:
    """The labels of a column, as ``noisy_tables`` and people write them.

    A category is named by its value, a cell of numbers or dates by both of its ends ("25 – 49",
    "25-49" or "25 to 49"), and missing by "(missing)" or nothing. A group of neighboring cells is
    named by its first and last end.
    """

    def __init__(self, column: Column) -> None:
        self.column = column
        self.texts = code_labels(column)

    def codes(self, label: Any) -> Codes:
        """The codes that a label names, in order. Raises ``ValueError`` if it names none."""
        if is_missing(label) and self.column.nullable:
            return (self.column.size - 1,)
        found, key = self._of_value(label), _plain(label, splits=not self._is_category)
        for known in (self._singles, self._runs):
            found = known.get(key) if found is None else found
        if found is None:
            raise ValueError(
                f"{self.column.name!r} has no cell {label!r}. Its cells are "
                f"{', '.join(self.texts[:20])}{', ...' if len(self.texts) > 20 else ''}: write "
                "labels as these, or declare the column with the cells of the tables "
                "(cut_points for numbers and dates)."
            )
        return found

    def _of_value(self, label: Any) -> Codes | None:
        """The code of a category by its value, or by another way to write a number."""
        if isinstance(label, str):
            if label.strip() in self.texts:
                return None
            try:
                label = float(label)
            except ValueError:
                return None
        return self._by_value.get(label)

    @property
    def _is_category(self) -> bool:
        return isinstance(self.column.cells, Categories)

    @cached_property
    def _by_value(self) -> Mapping[Any, Codes]:
        """The code of each category by its value, so that 22.0 in a table is 22."""
        cells = self.column.cells
        if not isinstance(cells, Categories) or self.column.merging is not None:
            return {}
        return {value: (code,) for code, value in enumerate(cells.values)}

    @cached_property
    def _singles(self) -> Mapping[Any, Codes]:
        splits = not self._is_category
        return {_plain(text, splits=splits): (code,) for code, text in enumerate(self.texts)}

    @cached_property
    def _runs(self) -> Mapping[Any, Codes]:
        """Groups of neighboring codes, and of these with missing."""
        values, found = self.texts[: self.column.num_values], {}
        for first in range(len(values)):
            for last in range(first, len(values)):
                codes = tuple(range(first, last + 1))
                for key in self._names_of_run(values, first, last):
                    found.setdefault(key, codes)
                    if self.column.nullable:
                        with_missing = (*codes, self.column.size - 1)
                        found.setdefault(_with_missing(key), with_missing)
        return found

    def _names_of_run(self, values: list[str], first: int, last: int) -> list[Any]:
        if self._is_category:
            if first == last:
                return [_plain(values[first], splits=False)]
            return [_plain(f"{values[first]} and {last - first} others", splits=False)]
        low, high = (_ends(_plain(values[at], splits=True)) for at in (first, last))
        return [(low[0], high[1])]


def is_missing(label: Any) -> bool:
    """Whether a label says that there is no value."""
    return (isinstance(label, str) and label.strip() == MISSING) or (
        not isinstance(label, str) and bool(pd.isna(label))
    )


def names_missing(label: Any) -> bool:
    """Whether a label names missing, alone or in a group."""
    return is_missing(label) or (isinstance(label, str) and label.strip().endswith(_OR_MISSING))


def _plain(label: Any, *, splits: bool) -> Any:
    """A label as it is compared: text without spaces around it, or the two ends of a range."""
    text = str(label).strip()
    if not splits or text == MISSING:
        return text
    has_missing, text = text.endswith(_OR_MISSING), text.removesuffix(_OR_MISSING)
    matched = _RANGE.fullmatch(text) or _NUMBERS.fullmatch(text)
    low, high = (text, text) if matched is None else (matched[1], matched[2])
    ends = (_number(low), _number(high))
    return _with_missing(ends) if has_missing else ends


def _ends(plain: Any) -> tuple[str, str]:
    return plain[:2]


def _with_missing(key: Any) -> Any:
    return (*key, MISSING) if isinstance(key, tuple) else f"{key}{_OR_MISSING}"


def _number(text: str) -> str:
    """One way of writing a number, without separators of thousands; other text stays."""
    try:
        return repr(float(text.strip().replace(",", "")))
    except ValueError:
        return text.strip()
