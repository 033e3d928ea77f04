"""Puts two tables into cells made of both tables' values, so that clipped values count as errors.

Cells of a declared domain cannot show what the domain did to a column, because the real rows are
put into the same cells first. Here numbers and dates are cut at quantiles of the real column.
Values that many rows share, categories, missing and unreadable values have cells of their own.
No result is private.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd

from sdv_privpgd.base.domain import Domain
from sdv_privpgd.columns.scalars import quiet
from sdv_privpgd.metrics.reading import (
    EMPTY,
    READ,
    UNREAD,
    Described,
    read_categories,
    read_numbers,
)
from sdv_privpgd.metrics.rows import ratio

MISSING, UNREADABLE = "(missing)", "(unreadable)"
"""Names of the cells of missing and unreadable values."""

_MOST_CELLS, _ROWS_A_CELL = 20, 10
"""Number of cells between quantiles of the real numbers, and the fewest rows that a cell holds."""

_MOST_CATEGORIES = 200
"""Most categories with a cell of their own. Rarer ones share a cell: those of both tables, those of
the real rows alone, and those of the synthetic rows alone."""


@dataclass(frozen=True, kw_only=True, eq=False)
class CommonCells:
    """A column of both tables in cells that are made of the values of both.

    Attributes:
        column: The description of the column.
        ends: The smallest and the largest value of each of the first cells: numbers, nanoseconds
            of dates, or a category twice.
        others: The names of the cells after those.
        real: The cell of each real row.
        synthetic: The cell of each synthetic row.
        numbers: The finite numbers of both tables; ``None`` for categories.
    """

    column: Described
    ends: Sequence[tuple[Any, Any]]
    others: Sequence[str]
    real: np.ndarray
    synthetic: np.ndarray
    numbers: tuple[np.ndarray, np.ndarray] | None = None

    def __len__(self) -> int:
        return len(self.ends) + len(self.others)

    @cached_property
    def shares(self) -> tuple[np.ndarray, np.ndarray]:
        """The share of the real and of the synthetic rows in each cell."""
        real, synthetic = (
            np.bincount(codes, minlength=len(self)) / len(codes)
            for codes in (self.real, self.synthetic)
        )
        return real, synthetic

    @property
    def distance(self) -> float:
        """The total variation distance of the shares, 0 to 1."""
        real, synthetic = self.shares
        return float(np.abs(real - synthetic).sum() / 2)

    @property
    def w1(self) -> float:
        """W1, divided by the real numbers' mean distance from their median.

        A synthetic column that is the real median in every row has 1. It is NaN for categories and
        if a table has no numbers.
        """
        if self.numbers is None or not all(map(len, self.numbers)):
            return float("nan")
        real, synthetic = self.numbers
        spread = float(np.abs(real - np.median(real)).mean())
        return ratio(_w1(np.sort(real), np.sort(synthetic)), spread)


def common_cells(
    columns: Sequence[Described],
    real: Mapping[str, pd.Series],
    synthetic: Mapping[str, pd.Series],
) -> dict[str, CommonCells]:
    """Puts each column into cells made of both tables' values. Not private.

    Raises:
        ValueError: If a table has no row.
    """
    if not all(len(table[column.name]) for column in columns for table in (real, synthetic)):
        raise ValueError("Both tables need at least one row to be compared.")
    found = {}
    with quiet():
        for column in columns:
            cells_of = _of_numbers if column.is_numeric else _of_categories
            found[column.name] = cells_of(column, real[column.name], synthetic[column.name])
    return found


def as_codes(cells: Mapping[str, CommonCells]) -> tuple[Domain, np.ndarray, np.ndarray]:
    """The domain of all columns' cells, and the codes of the real and of the synthetic rows."""
    domain = Domain(tuple(cells), tuple(len(each) for each in cells.values()))
    real, synthetic = (
        np.stack([getattr(each, table) for each in cells.values()], axis=1)
        for table in ("real", "synthetic")
    )
    return domain, real, synthetic


def _of_numbers(column: Described, real: pd.Series, synthetic: pd.Series) -> CommonCells:
    read = [read_numbers(column, series) for series in (real, synthetic)]
    numbers = [found[state == READ] for found, state in read]
    ends, *inside = _cut(*numbers)
    states = [state for _, state in read]
    names = {UNREAD: UNREADABLE, EMPTY: MISSING}
    held = [kind for kind in names if any(kind in state for state in states)]
    codes = []
    for state, cells in zip(states, inside, strict=True):
        code = np.zeros(len(state), dtype=np.int64)
        code[state == READ] = cells
        for place, kind in enumerate(held, start=len(ends)):
            code[state == kind] = place
        codes.append(code)
    return CommonCells(
        column=column,
        ends=ends,
        others=[names[kind] for kind in held],
        real=codes[0],
        synthetic=codes[1],
        numbers=(_finite(numbers[0]), _finite(numbers[1])),
    )


def _w1(real: np.ndarray, synthetic: np.ndarray) -> float:
    """The area between the distribution functions of sorted numbers."""
    values = np.sort(np.concatenate((real, synthetic)))
    ours, theirs = (
        np.searchsorted(numbers, values[:-1], side="right") / len(numbers)
        for numbers in (real, synthetic)
    )
    return float((np.abs(ours - theirs) * np.diff(values)).sum())


def _finite(numbers: np.ndarray) -> np.ndarray:
    return numbers[np.isfinite(numbers)]


def _cut(
    real: np.ndarray, synthetic: np.ndarray
) -> tuple[list[tuple[float, float]], np.ndarray, np.ndarray]:
    """The ends of cells of numbers, and the cell of each real and each synthetic number.

    A number that many rows of either table share has a cell of its own. The others are cut at the
    real numbers' quantiles. Synthetic numbers beyond all real ones have cells of their own.
    """
    values, places = np.unique(np.concatenate((real, synthetic)), return_inverse=True)
    if not len(values):
        return [], real.astype(np.int64), synthetic.astype(np.int64)
    counts = [
        np.bincount(part, minlength=len(values))
        for part in (places[: len(real)], places[len(real) :])
    ]
    shares = [count / max(count.sum(), 1) for count in counts]
    most = min(max(len(real) // _ROWS_A_CELL, 2), _MOST_CELLS)
    heavy = (np.maximum(*shares) >= 1 / most) & (np.maximum(*counts) > 1)
    light = np.where(heavy, 0.0, shares[0])
    quantile = np.floor((np.cumsum(light) - light) * most + 1e-9).astype(np.int64)
    held = np.flatnonzero(counts[0])
    order = np.arange(len(values))
    region = np.where(order < held[0], -1, order > held[-1]) if len(held) else 0 * order
    starts = np.ones(len(values), dtype=bool)
    starts[1:] = heavy[1:] | heavy[:-1] | (np.diff(quantile) != 0) | (np.diff(region) != 0)
    cell_of = np.cumsum(starts) - 1
    firsts = np.flatnonzero(starts)
    lasts = np.append(firsts[1:], len(values)) - 1
    ends = list(zip(values[firsts].tolist(), values[lasts].tolist(), strict=True))
    cells = cell_of[places]
    return ends, cells[: len(real)], cells[len(real) :]


def _of_categories(column: Described, real: pd.Series, synthetic: pd.Series) -> CommonCells:
    keys, codes = read_categories(
        column, pd.concat([real.astype(object), synthetic.astype(object)])
    )
    ours, theirs = codes[: len(real)], codes[len(real) :]
    num_keys = len(keys)
    counts = [np.bincount(each[each >= 0], minlength=num_keys) for each in (ours, theirs)]
    rank = {value: place for place, value in enumerate(column.order)}
    pooled = counts[0] / len(ours) + counts[1] / len(theirs)
    frequent = np.argsort(-pooled, kind="stable")
    kept = sorted(frequent[:_MOST_CATEGORIES], key=lambda key: rank.get(keys[key], len(rank)))
    cell_of = np.full(num_keys + 1, -1)
    cell_of[kept] = np.arange(len(kept))
    others = []
    rare = np.ones(num_keys, dtype=bool)
    rare[kept] = False
    for held, words in (
        (rare & (counts[0] > 0) & (counts[1] > 0), "{} rare values of both"),
        (rare & (counts[1] == 0), "{} rare values of the real rows alone"),
        (rare & (counts[0] == 0), "{} rare values of the synthetic rows alone"),
    ):
        if held.any():
            cell_of[:-1][held] = len(kept) + len(others)
            others.append(words.format(f"{held.sum():,}"))
    if (codes < 0).any():
        cell_of[-1] = len(kept) + len(others)
        others.append(MISSING)
    return CommonCells(
        column=column,
        ends=[(keys[key], keys[key]) for key in kept],
        others=others,
        real=cell_of[ours],
        synthetic=cell_of[theirs],
    )
