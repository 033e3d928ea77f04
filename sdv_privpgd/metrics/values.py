"""Compares two tables by the values of their cells, without a domain. No result is private.

Cells of a declared domain cannot show what the domain did to a column, because the real rows are
put into the same cells first. Here numbers and dates are cut at quantiles of the real column.
Values that many rows share, categories, missing and unreadable values have cells of their own.
Values are read as the synthesizer reads them, but unreadable ones are told apart from missing ones.

A fit clips or replaces values that a domain does not hold, silently, because a message would tell
about the table. Here they are counted, for people who may see the table.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from scipy.stats import wasserstein_distance

from sdv_privpgd.base import cached_property
from sdv_privpgd.base.domain import Domain
from sdv_privpgd.columns.bins import Categories, Ticks
from sdv_privpgd.columns.column import Column
from sdv_privpgd.columns.dates import instants, to_ticks
from sdv_privpgd.columns.decoders import decoder_for
from sdv_privpgd.columns.number_formats import NumberFormat
from sdv_privpgd.columns.scalars import plain, quiet, real_numbers, truths
from sdv_privpgd.columns.schema import Schema
from sdv_privpgd.metrics.pairs import ratio

READ, UNPARSED, EMPTY = 0, 1, 2
"""Results for a cell that should hold a number or a date."""


@dataclass(frozen=True, kw_only=True)
class Described:
    """The facts by which a column is read: its name, its sdtype and, if known, format and order."""

    name: str
    sdtype: str
    datetime_format: str | None = None
    number_format: NumberFormat | None = None
    order: tuple = ()

    @classmethod
    def of(cls, column: Column) -> "Described":
        """The description of a column that has a domain."""
        values = column.cells.values if isinstance(column.cells, Categories) else ()
        return cls(
            name=column.name,
            sdtype=column.sdtype,
            datetime_format=column.datetime_format,
            number_format=column.number_format,
            order=values if column.sdtype == "ordinal" else (),
        )

    @property
    def is_numeric(self) -> bool:
        """Whether its values are numbers, or dates in nanoseconds since 1970."""
        return self.sdtype in ("numerical", "datetime")

    @property
    def is_ordered(self) -> bool:
        """Whether the order of its values means something."""
        return self.is_numeric or bool(self.order)


def read_numbers(column: Described, series: pd.Series) -> tuple[np.ndarray, np.ndarray]:
    """The numbers of a column, or the nanoseconds of its dates, and the result for each cell.

    A result is ``READ``, ``UNPARSED`` or ``EMPTY``. The numbers of cells that were not read mean
    nothing.
    """
    empty = series.isna().to_numpy(dtype=bool)
    distinct, places = _distinct(series)
    if column.sdtype == "datetime":
        numbers, unparsed = instants(distinct, column.datetime_format)
    else:
        numbers, unparsed = real_numbers(distinct, column.number_format)
    state = np.where(unparsed, UNPARSED, READ)[places]
    state[empty] = EMPTY
    return numbers[places], state


def _distinct(series: pd.Series) -> tuple[pd.Series, np.ndarray | slice]:
    """The different values of a column that is slow to read, and each cell's index among them."""
    if isinstance(series.dtype, np.dtype) and series.dtype.kind in "biufM":
        return series, slice(None)
    listed = series.astype(object)
    try:
        places, distinct = pd.factorize(listed, use_na_sentinel=False)
    except TypeError:  # lists and the like have no hash
        return listed, slice(None)
    return pd.Series(distinct, dtype=object), places


def read_categories(column: Described, both: pd.Series) -> tuple[list, np.ndarray]:
    """The different categories, and each cell's index among them, with -1 for missing.

    Categories that are equal in Python are the same, as for the synthesizer: 1, 1.0 and ``True``.
    In a boolean column the words for true and false are the same as these values, too.
    """
    try:
        places, distinct = pd.factorize(both)
    except TypeError:  # lists and the like have no hash
        both = both.map(repr, na_action="ignore")
        places, distinct = pd.factorize(both)
    # The value itself or, for an object, its text.
    listed = [repr(cell) if (value := plain(cell)) is None else value for cell in distinct]
    if column.sdtype == "boolean":
        values, unparsed = truths(pd.Series(distinct, dtype=object))
        known = zip(values, unparsed, listed, strict=True)
        listed = [key if no else bool(value) for value, no, key in known]
    place_of: dict = {}
    index = np.array([place_of.setdefault(key, len(place_of)) for key in listed] + [-1])
    return list(place_of), index[places]


MISSING, UNREADABLE = "(missing)", "(unreadable)"
"""Names of the cells of missing and unreadable values."""


@dataclass(frozen=True, eq=False)
class CommonCells:
    """A column of both tables in cells that are made of the values of both.

    ``ends`` are the smallest and the largest value of each of the first cells: numbers, nanoseconds
    of dates, or a category twice. ``others`` are the names of the cells after those.
    """

    column: Described
    ends: Sequence[tuple[Any, Any]]
    others: Sequence[str]
    real: np.ndarray  # the cell of each real row
    synthetic: np.ndarray
    numbers: tuple[np.ndarray, np.ndarray] | None = None  # finite ones of both tables

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
        return ratio(float(wasserstein_distance(real, synthetic)), spread)


def common_cells(
    columns: Sequence[Described], real: Mapping[str, pd.Series], synthetic: Mapping[str, pd.Series]
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
    names = {UNPARSED: UNREADABLE, EMPTY: MISSING}
    held = [kind for kind in names if any(kind in state for state in states)]
    codes = []
    for state, cells in zip(states, inside, strict=True):
        code = np.zeros(len(state), dtype=np.int64)
        code[state == READ] = cells
        for place, kind in enumerate(held, start=len(ends)):
            code[state == kind] = place
        codes.append(code)
    others = [names[kind] for kind in held]
    finite = (numbers[0][np.isfinite(numbers[0])], numbers[1][np.isfinite(numbers[1])])
    return CommonCells(column, ends, others, *codes, numbers=finite)


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
    most = min(max(len(real) // 10, 2), 20)  # of ten rows at least, as far as there are
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
    # Rare categories share a cell: those of both tables, and those of either alone.
    keys, codes = read_categories(
        column, pd.concat([real.astype(object), synthetic.astype(object)])
    )
    ours, theirs = codes[: len(real)], codes[len(real) :]
    num_keys = len(keys)
    counts = [np.bincount(each[each >= 0], minlength=num_keys) for each in (ours, theirs)]
    rank = {value: place for place, value in enumerate(column.order)}
    pooled = counts[0] / len(ours) + counts[1] / len(theirs)
    frequent = np.argsort(-pooled, kind="stable")
    kept = sorted(frequent[:200], key=lambda key: rank.get(keys[key], len(rank)))
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
    ends = [(keys[key], keys[key]) for key in kept]
    return CommonCells(column, ends, others, cell_of[ours], cell_of[theirs])


@dataclass(frozen=True, kw_only=True)
class OutOfDomain:
    """The shares of a column's real rows whose values its domain does not hold.

    ``finer`` numbers and dates are in the range but rounded, because they have more decimal places
    or a finer unit. They are inside the domain, so ``share`` does not count them.
    """

    below: float = 0.0  # the range: they become its first value
    above: float = 0.0
    undeclared: float = 0.0
    unreadable: float = 0.0  # no number, or no date in the column's format
    missing: float = 0.0  # where nothing may be missing
    finer: float = 0.0
    fate: str = "missing"  # what undeclared, unreadable and missing values become

    @property
    def share(self) -> float:
        """The share of the column's rows outside the domain, 0 to 1."""
        return self.below + self.above + self.undeclared + self.unreadable + self.missing


def out_of_domain(schema: Schema, real: Mapping[str, pd.Series]) -> dict[str, OutOfDomain]:
    """The values of the real rows that each column's domain does not hold. Not private."""
    with quiet():
        return {column.name: _out_of_domain(column, real[column.name]) for column in schema.columns}


def _out_of_domain(column: Column, series: pd.Series) -> OutOfDomain:
    missing = 0.0 if column.nullable else float(series.isna().mean())
    if isinstance(column.cells, Categories):
        distinct, places = _distinct(series.astype(object))
        known = decoder_for(column).holds(distinct)[places]
        fate = "missing" if column.nullable else f"the first value, {column.cells.values[0]}"
        if column.cells.has_other:
            fate = str(column.cells.values[-1])
        undeclared = float((~known & series.notna().to_numpy()).mean())
        return OutOfDomain(undeclared=undeclared, missing=missing, fate=fate)
    numbers, state = read_numbers(Described.of(column), series)
    low, high = column.cells.ends
    ticks, rounded = _ticks(column, numbers)
    read, below, above = state == READ, ticks < low, ticks > high
    return OutOfDomain(
        below=float((read & below).mean()),
        above=float((read & above).mean()),
        unreadable=float((state == UNPARSED).mean()),
        missing=missing,
        finer=float((read & rounded & ~below & ~above).mean()),
        fate="missing" if column.nullable else "the lowest value",
    )


def _ticks(column: Column, numbers: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Numbers or nanoseconds in the unit of the cells, and True for those that it rounds."""
    if column.unit is not None:
        ticks = to_ticks(numbers, column.unit)
        again = ticks.astype(f"datetime64[{column.unit}]").astype("datetime64[ns]")
        return ticks, again != numbers.astype("datetime64[ns]")
    if not isinstance(column.cells, Ticks):
        return numbers, np.zeros(len(numbers), dtype=bool)
    steps = numbers / float(column.tick)
    ticks = np.rint(steps)
    # The nearest float64 of a decimal is a few units of the last place off a whole tick.
    return ticks, ~np.isclose(steps, ticks, rtol=1e-14, atol=1e-9)
