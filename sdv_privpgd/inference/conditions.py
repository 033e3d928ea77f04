"""Conditions as users write them, and what they mean for a column's codes. Public."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import pandas as pd

from sdv_privpgd.base.domain import Domain
from sdv_privpgd.columns.bins import Interval
from sdv_privpgd.columns.column import Column
from sdv_privpgd.columns.encoders import encoder_for
from sdv_privpgd.sampling.conditions import Between, shares, span

_NEARLY = 1e-6
"""Shares of codes this near to 0 or to 1 are that: cells that never occur count a little."""

_Ends: TypeAlias = tuple[np.ndarray, np.ndarray]
"""The least and the largest shares of codes."""


@dataclass(frozen=True)
class Part:
    """The rows that meet a condition on one column.

    Attributes:
        column: The column.
        weights: The share of each code's rows that meets it, float64, as sampled rows are spread.
        least: The least share of them that may meet it, however rows are spread in cells.
        most: The largest.
        words: The condition in words.
    """

    column: Column
    weights: np.ndarray
    least: np.ndarray
    most: np.ndarray
    words: str

    @property
    def is_cut(self) -> bool:
        """Whether it may hold for a part of some code's rows."""
        return bool((self.least < self.most).any())


def parts_of(
    columns: Mapping[str, Column], conditions: Mapping[str, Any] | None
) -> dict[str, Part]:
    """The parts of conditions by column.

    Raises:
        ValueError: For a column that has no codes, and for what no row of the domain can meet.
    """
    if conditions is None:
        return {}
    if not isinstance(conditions, Mapping):
        raise ValueError(
            "Conditions are a dictionary of columns, as in {'ward': 'B', 'age': Between(30, 40)}, "
            f"got {conditions!r}."
        )
    return {
        str(name): part_of(column_named(columns, name), wish) for name, wish in conditions.items()
    }


def column_named(columns: Mapping[str, Column], name: Any) -> Column:
    """The column of a name. Raises ``ValueError`` where there is none with codes."""
    if str(name) not in columns:
        raise ValueError(
            f"No tables were measured of column {name!r}: choose from {list(columns)!r}."
        )
    return columns[str(name)]


def part_of(column: Column, wish: Any) -> Part:
    """The part of the rows that a condition asks for: a value, several, a range, or missing.

    Raises:
        ValueError: For a value or a range outside the domain, and for missing where nothing may be
            missing.
    """
    if isinstance(wish, Between):
        asked = span(column, wish)
        weights, ends = shares(column, asked), _ends(column, column.cells.shares(*asked))
        words = _between_words(column.name, wish)
    elif isinstance(wish, list | tuple | set | frozenset):
        wishes = list(dict.fromkeys(wish))
        if any(isinstance(each, Between) for each in wishes) or not wishes:
            raise ValueError(
                f"A list for {column.name!r} must hold values, at least one and no ranges, got "
                f"{wish!r}."
            )
        weights, ends = _of_values(column, wishes)
        named = [_written(each) for each in wishes]
        words = f"{column.name} is {' or '.join(named)}"
    else:
        weights, ends = _of_values(column, [wish])
        words = f"{column.name} is {_written(wish)}"
    weights = np.where(weights > 1 - _NEARLY, 1.0, np.where(weights < _NEARLY, 0.0, weights))
    least, most = ends
    if not most.any():
        raise ValueError(f"No row of the domain meets {words!r}.")
    return Part(column, weights, least, most, words)


def meeting(column: Column, cells: pd.Series, wish: Any) -> np.ndarray:
    """Which synthetic cells of a column meet a condition, bool."""
    values, missing = encoder_for(column).read(cells)
    if isinstance(wish, Between):
        low, high = span(column, wish)
        return (values >= low) & (values <= high) & ~missing
    found = np.zeros(len(cells), dtype=bool)
    for value in wish if isinstance(wish, list | tuple | set | frozenset) else [wish]:
        is_it = missing if _is_missing(value) else (values == _tick_of_value(column, value))
        found |= is_it & (missing == _is_missing(value))
    return found


def numbers_in(column: Column, cells: pd.Series) -> np.ndarray:
    """The numbers of synthetic cells, float64; missing ones are no numbers."""
    values, missing = encoder_for(column).read(cells)
    return np.where(missing, np.nan, np.asarray(column.numbers(values), np.float64))


def codes_of(domain: Domain, columns: Mapping[str, Column], rows: pd.DataFrame) -> np.ndarray:
    """The codes of synthetic rows, shape (row, attribute); 0 for all but some columns."""
    found = np.zeros((len(rows), len(domain)), dtype=np.int64)
    for name, column in columns.items():
        found[:, domain.axes((name,))[0]], _ = encoder_for(column).encode(cells_of(rows, name))
    return found


def cells_of(rows: pd.DataFrame, name: str) -> pd.Series:
    """A column of synthetic rows. Raises ``ValueError`` where they have none of that name."""
    if name not in rows:
        raise ValueError(f"The rows have no column {name!r}: they have {list(rows)!r}.")
    return pd.Series(rows[name])


def not_missing(column: Column) -> np.ndarray:
    """1 for the codes of values, 0 for missing."""
    return np.append(np.ones(column.num_values), np.zeros(int(column.nullable)))


def _of_values(column: Column, values: Sequence[Any]) -> tuple[np.ndarray, _Ends]:
    """The share of each code that has one of some values, and the least and the most of it."""
    cells, is_missing = np.zeros(len(column.cells)), False
    for value in values:
        if _is_missing(value):
            if not column.nullable:
                raise ValueError(
                    f"Column {column.name!r} has no missing values, by its declaration."
                )
            is_missing = True
        else:
            found = _tick_of_value(column, value)
            cells = np.minimum(cells + column.cells.shares(found, found), 1.0)
    whole = cells if column.merging is None else column.merging.covered(cells)
    missing = np.full(int(column.nullable), 1.0 * is_missing)
    least, most = _ends(column, cells)
    known = slice(0, column.num_values)
    return np.append(whole, missing), (
        np.append(least[known], missing),
        np.append(most[known], missing),
    )


def _ends(column: Column, cells: np.ndarray) -> _Ends:
    """The least and the most that rows of each code can have of shares of the cells."""
    codes = np.arange(len(cells)) if column.merging is None else np.asarray(column.merging.codes)
    least, most = np.ones(column.num_values), np.zeros(column.num_values)
    np.minimum.at(least, codes, 1.0 * (cells > 1 - _NEARLY))
    np.maximum.at(most, codes, 1.0 * (cells > 0))
    missing = np.zeros(int(column.nullable))
    return np.append(least, missing), np.append(most, missing)


def _tick_of_value(column: Column, value: Any) -> Any:
    """A value as the column's cells hold it."""
    series = pd.Series([value], dtype=object)
    encoder = encoder_for(column)
    if not encoder.holds(series)[0]:
        raise ValueError(f"{value!r} is not in the domain of column {column.name!r}.")
    if isinstance(column.cells, Interval):
        raise ValueError(
            f"Column {column.name!r} has real numbers, of which tables know ranges only: ask for "
            f"Between(low, high) in place of {value!r}."
        )
    (found,), _ = encoder.read(series)
    return found


def _is_missing(value: Any) -> bool:
    return bool(pd.Series([value], dtype=object).isna().to_numpy()[0])


def _written(value: Any) -> str:
    """A value in a sentence."""
    if _is_missing(value):
        return "missing"
    return repr(value) if isinstance(value, str) else str(value)


def _between_words(name: str, between: Between) -> str:
    """A range in a sentence."""
    if between.low is None:
        return f"{name} is at most {_written(between.high)}"
    if between.high is None:
        return f"{name} is at least {_written(between.low)}"
    return f"{name} is from {_written(between.low)} to {_written(between.high)}"
