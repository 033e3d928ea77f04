"""Conditions as users write them, and what codes stand for: their values and their rows. Public."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import time
from typing import Any

import numpy as np
import pandas as pd

from sdv_privpgd.base.arguments import shown
from sdv_privpgd.base.domain import Domain
from sdv_privpgd.columns.bins import Categories, Reals, Ticks
from sdv_privpgd.columns.column import Column
from sdv_privpgd.columns.decoders import decoder_for
from sdv_privpgd.columns.dtypes import clock_in, zone_in
from sdv_privpgd.columns.encoders import encode, read
from sdv_privpgd.sampling.conditions import Between, as_cells, as_conditions, held, span

_NEARLY = 1e-6
"""Shares of codes this near to 0 or to 1 are that: cells that never occur count a little."""

_SEVERAL = (list, tuple, set, frozenset)


@dataclass(frozen=True)
class ConditionShares:
    """The rows that meet a condition on one column: the share of each code's rows, float64.

    ``weights`` are with rows spread as sampled ones are, ``least`` and ``most`` hold however rows
    are spread in cells.
    """

    weights: np.ndarray
    least: np.ndarray
    most: np.ndarray
    words: str

    @property
    def is_cut(self) -> bool:
        """Whether it may hold for a part of some code's rows."""
        return bool((self.least < self.most).any())


def shares_by_column(
    columns: Mapping[str, Column], conditions: Mapping[str, Any] | None
) -> dict[str, ConditionShares]:
    """The parts of conditions by column."""
    return {
        str(name): condition_shares(column_named(columns, name), condition)
        for name, condition in as_conditions(conditions).items()
    }


def column_named(columns: Mapping[str, Column], name: Any) -> Column:
    """The column of a name. Raises ``ValueError`` where there is none with codes."""
    if str(name) not in columns:
        raise ValueError(
            f"No tables were measured of column {name!r}: choose from {list(columns)!r}."
        )
    return columns[str(name)]


def condition_shares(column: Column, condition: Any) -> ConditionShares:
    """The part of the rows that a condition asks for: a value, several, a range, or missing."""
    if isinstance(condition, Between):
        cells, is_missing = column.cells.shares(*span(column, condition)), False
        words = _between_words(column.name, condition)
    else:
        several = [*dict.fromkeys(condition)] if isinstance(condition, _SEVERAL) else [condition]
        if any(isinstance(each, Between) for each in several) or not several:
            raise ValueError(
                f"A list for {column.name!r} must hold values, at least one and no ranges, got "
                f"{shown(condition)}."
            )
        cells, is_missing = _of_values(column, several)
        words = f"{column.name} is {' or '.join(map(_written, several))}"
    codes = np.arange(len(cells)) if column.merging is None else np.asarray(column.merging.codes)
    least, most = np.ones(column.num_values), np.zeros(column.num_values)
    np.minimum.at(least, codes, 1.0 * (cells > 1 - _NEARLY))
    np.maximum.at(most, codes, 1.0 * (cells > 0))
    whole = cells if column.merging is None else column.merging.covered(cells)
    whole = np.where(whole > 1 - _NEARLY, 1.0, np.where(whole < _NEARLY, 0.0, whole))
    missing = np.full(int(column.nullable), 1.0 * is_missing)
    whole, least, most = (np.append(each, missing) for each in (whole, least, most))
    if not most.any():
        raise ValueError(f"No row of the domain meets {words!r}.")
    return ConditionShares(whole, least, most, words)


def on_cut(names: Sequence[str], hidden: str = "no interval covers what that hides") -> str:
    """A sentence on conditions that hold for a part of some cells' rows."""
    return (
        f"A condition cuts cells of {' and '.join(map(repr, names))}: rows were taken to be spread "
        f"in them as in sampled rows; {hidden}."
    )


def meeting(column: Column, cells: pd.Series, condition: Any) -> np.ndarray:
    """Which synthetic cells of a column meet a condition, bool."""
    values, missing = read(column, cells)
    if isinstance(condition, Between):
        low, high = span(column, condition)
        return (values >= low) & (values <= high) & ~missing
    several = condition if isinstance(condition, _SEVERAL) else [condition]
    is_one = np.isin(values, ticks_of(column, condition)) & ~missing
    return is_one | (missing & any(map(_is_missing, several)))


def numbers_in(column: Column, cells: pd.Series) -> np.ndarray:
    """The numbers of synthetic cells, float64; missing ones are no numbers."""
    values, missing = read(column, cells)
    return np.where(missing, np.nan, np.asarray(column.numbers(values), np.float64))


def codes_of(domain: Domain, columns: Mapping[str, Column], rows: pd.DataFrame) -> np.ndarray:
    """The codes of synthetic rows, shape (row, attribute); 0 for all but some columns."""
    found = np.zeros((len(rows), len(domain)), dtype=np.int64)
    for name, column in columns.items():
        found[:, domain.axes((name,))[0]], _ = encode(column, cells_of(rows, name))
    return found


def cells_of(rows: pd.DataFrame, name: str) -> pd.Series:
    """A column of synthetic rows. Raises ``ValueError`` where they have none of that name."""
    if name not in rows:
        raise ValueError(f"The rows have no column {name!r}: they have {list(rows)!r}.")
    return pd.Series(rows[name])


def not_missing(column: Column) -> np.ndarray:
    """1 for the codes of values, 0 for missing."""
    return np.append(np.ones(column.num_values), np.zeros(int(column.nullable)))


def _of_values(column: Column, values: Sequence[Any]) -> tuple[np.ndarray, bool]:
    """The share of each cell that has one of some values, and whether missing is one of them."""
    cells, is_missing = np.zeros(len(column.cells)), any(map(_is_missing, values))
    if is_missing and not column.nullable:
        raise ValueError(f"Column {column.name!r} has no missing values, by its declaration.")
    for tick in ticks_of(column, values):
        cells = np.minimum(cells + column.cells.shares(tick, tick), 1.0)
    return cells, is_missing


def ticks_of(column: Column, condition: Any) -> list:
    """The values that a condition names, as the column's cells hold them, without missing ones."""
    values = condition if isinstance(condition, _SEVERAL) else [condition]
    return [_tick_of(column, value) for value in values if not _is_missing(value)]


def _tick_of(column: Column, value: Any) -> Any:
    """A value as the column's cells hold it."""
    series = as_cells(column, pd.Series([value], dtype=object))
    if not decoder_for(column).holds(series)[0]:
        cells, hint = column.cells, ""
        if isinstance(cells, Categories) and cells.has_other:
            hint = (
                " Rows with it, if there are any, are in its group, where groups are declared, or "
                f"else count as {cells.values[-1]!r}: ask for that."
            )
        raise ValueError(
            f"{shown(value)} is not in the domain of column {column.name!r}, which holds "
            f"{held(column)}.{hint}"
        )
    if isinstance(column.cells, Reals):
        raise ValueError(
            f"Column {column.name!r} has real numbers, of which tables know ranges only: ask for "
            f"Between(low, high) in place of {value!r}."
        )
    (found,), _ = read(column, series)
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


HEAVY, HEAVIEST = 0.02, 0.1
"""Parts of the mean distance from the median that lie inside one code: from the first on an
interval of a mean has to allow for it, from the second on it is worth a word."""

FAR = 10.0
"""So many mean distances from the median no rows are expected: of a normal column one row in 10^15
lies there, of an exponential one three in 10^4."""

CALENDAR = (
    pd.Timestamp(np.datetime64("0001-01-01", "s")),
    pd.Timestamp(np.datetime64("9999-12-31", "s")),
)
"""The first and the last day of the calendar, which stand for dates without a known end."""


@dataclass(frozen=True)
class CodeValues:
    """The lowest and the highest value of each code of an ordered column, and the mean in it.

    ``means`` are those of rows as they are sampled: spread evenly in a cell, and over cells that
    share a code as often as they are known to occur; ``deviations`` are the standard deviations of
    these rows. Missing has no entry. ``cells`` says into how many cells of a code it was looked for
    where in it rows lie; 0 if nobody did, and all may have one value.
    """

    lows: np.ndarray
    highs: np.ndarray
    means: np.ndarray
    deviations: np.ndarray
    cells: np.ndarray | int = 0

    @property
    def is_shaped(self) -> bool:
        """Whether it was looked into where in a code rows lie."""
        return bool(np.any(self.cells))

    def heavy(self, counts: np.ndarray, least: float = HEAVY, noise: float = 0.0) -> np.ndarray:
        """Which codes carry so much that a mean depends on how their rows are spread. Public.

        What is unknown inside these codes is more than a part ``least`` of how far values lie from
        their median. They are wide codes of rows far from the others, as at the end of a long tail;
        or any that many rows are in, where nobody has looked into where. Those of which ``noise``
        in each of their cells hid it count from ``HEAVIEST`` on, as if rows were spread evenly.
        """
        shares, middle, around, _ = self._spread(counts)
        is_far = (np.abs(self.means - middle) > around) | (not self.is_shaped)
        is_hidden = counts < noise * np.sqrt(self.cells)
        even = shares * np.asarray(self.highs - self.lows, np.float64) / math.sqrt(12)
        found = is_far & (shares * self.deviations > least * around)
        return found | (is_hidden & (even > HEAVIEST * around))

    def moved_by_noise(
        self, counts: np.ndarray, noise: np.ndarray | float, least: float
    ) -> np.ndarray:
        """Which codes that reach ``FAR`` have so few rows that noise in them moves a mean. Public.

        They seem to have more rows than one standard deviation of the ``noise``, and as many as
        that, spread as those of their code are, move the mean by more than a part ``least`` of the
        mean distance.
        """
        _, middle, around, distances = self._spread(counts)
        moved = noise / _number(counts) * np.abs(self.means - middle)
        return (distances > FAR * around) & (counts > noise) & (moved > least * around)

    def far_reaching(self, counts: np.ndarray, errors: np.ndarray | float = 0.0) -> np.ndarray:
        """Which codes reach so far that few of their rows could make a mean. Public.

        Where a range ends far beyond the rows, its last code holds both the end of the rows and all
        values beyond it, where noise may hide some. These codes reach farther than ``FAR`` mean
        distances from the median, and their rows, with ``errors`` more, would move the mean by more
        than a part ``HEAVY`` of the mean distance if they lay at its end.
        """
        shares, _, around, distances = self._spread(counts)
        more = shares + errors / _number(counts)
        reach = np.maximum(self.highs - self.means, self.means - self.lows).astype(np.float64)
        return (distances > FAR * around) & (more * reach > HEAVY * around)

    def outermost(self, counts: np.ndarray) -> np.ndarray:
        """Which codes reach ``FAR`` from the median, and at least half as far as any, bool.

        Nearer ones have less to say of a mean, and would hide these in their sum.
        """
        _, _, around, distances = self._spread(counts)
        return (distances > FAR * around) & (2 * distances > distances.max())

    def tail(self, counts: np.ndarray) -> list[float]:
        """Numbers ``FAR`` from the median and more, each four times as far as the next."""
        _, middle, around, _ = self._spread(counts)
        found = []
        for end in (self.lows.min(), self.highs.max()):
            distance = (float(end) - middle) / 4
            while abs(distance) > FAR * around > 0:
                found.append(middle + distance)
                distance /= 4
        return found

    def crowded(self, counts: np.ndarray, errors: float, least: float) -> np.ndarray:
        """Which codes of several values have at least a part of all rows. Public.

        They do without ``errors``, too. Of few codes they have four times as many as each code on
        average.
        """
        shares = (counts - errors) / _number(counts)
        return (self.highs > self.lows) & (shares > max(least, 4 / len(shares)))

    def _spread(self, counts: np.ndarray) -> tuple[np.ndarray, float, float, np.ndarray]:
        """The share of each code, the median, and how far from it rows are on average, and codes.

        A code is as far as it reaches.
        """
        shares = np.maximum(counts, 0.0) / _number(counts)
        middle = float(self.means[min(int((np.cumsum(shares) < 0.5).sum()), len(shares) - 1)])
        distances = np.maximum(self.highs - middle, middle - self.lows).astype(np.float64)
        return shares, middle, float((shares * np.abs(self.means - middle)).sum()), distances

    @property
    def are_single(self) -> bool:
        """Whether each code is a single value."""
        return bool(np.array_equal(self.lows, self.highs))


def _number(counts: np.ndarray) -> float:
    """The number of rows; no count of which is taken to be below 0."""
    return max(float(np.maximum(counts, 0.0).sum()), 1e-9)


def code_values(column: Column) -> CodeValues:
    """The values of a column's codes; ticks for dates, indices for ordered categories."""
    cells = column.cells
    if isinstance(cells, Categories):
        lows = highs = means = np.arange(len(cells))
        spreads = np.zeros(len(cells))
    elif isinstance(cells, Ticks):
        lows, highs = cells.starts, cells.starts + cells.widths - 1
        means = cells.starts + (cells.widths - 1) / 2
        spreads = np.sqrt((np.square(np.asarray(cells.widths, dtype=np.float64)) - 1) / 12)
    else:
        lows, highs = cells.edges[: len(cells)], cells.edges[-len(cells) :]
        means, spreads = (lows + highs) / 2, (highs - lows) / math.sqrt(12)
    looked: np.ndarray | int = 0
    if column.merging is not None:
        # A cell's own share of a code is what a range that covers this cell alone covers of it.
        whole = column.merging.covered(np.ones(len(means)))
        squares = column.merging.covered(np.square(means) + np.square(spreads)) / whole
        means = column.merging.covered(means) / whole
        spreads = np.sqrt(np.maximum(squares - np.square(means), 0.0))
        codes = np.asarray(column.merging.codes)
        looked = np.bincount(codes)
        order = np.argsort(codes, kind="stable")
        starts = np.searchsorted(codes[order], np.arange(column.num_values))
        lows = np.minimum.reduceat(lows[order], starts)
        highs = np.maximum.reduceat(highs[order], starts)
    if column.sdtype == "numerical":
        lows, highs, means, spreads = (
            column.numbers(each) for each in (lows, highs, means, spreads)
        )
    means, spreads = (np.asarray(each, np.float64) for each in (means, spreads))
    return CodeValues(lows, highs, means, spreads, looked)


def as_users(column: Column, value: Any) -> Any:
    """A value of ``code_values`` as users know it: a number, a date, a time or a category."""
    if isinstance(column.cells, Categories):
        return column.cells.values[int(value)]
    if column.unit is not None:
        # Months and years have no length, so whole ticks alone are moments.
        ticks = np.array([value], dtype=np.int64).astype(f"M8[{column.unit}]")
        if column.dtype is time:
            return ticks.astype("M8[s]").tolist()[0].time()
        zone = zone_in(column) if clock_in(column) is None else None
        moment = pd.Timestamp(ticks[0])
        return moment if zone is None else moment.tz_localize("UTC").tz_convert(zone)
    return value.item() if isinstance(value, np.generic) else value


def value_at(column: Column, code: int, position: float) -> Any:
    """The value at a position in [0, 1) of a code, as users know it."""
    value = column.at(np.array([code]), np.array([position]))
    if column.sdtype == "numerical":
        value = column.numbers(value)
    return as_users(column, value[0])
