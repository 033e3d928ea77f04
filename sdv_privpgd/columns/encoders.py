"""Encoders between the values of a column and its codes, built wholly from public facts.

A value becomes a code, the number of its cell, and a position in [0, 1) inside the cell. Missing is
the last code. Nothing is learned from a table: two tables that differ in one cell differ in at most
one code of that column.

Values that do not fit are placed silently, because a message would reveal something about the data.
A number or a date outside its range goes to the first or the last cell. An unreadable value or an
undeclared category is missing. Where nothing may be missing it is the value for all others, if one
is declared, and else it goes to the first cell.
"""

import abc
from contextlib import suppress
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd

from sdv_privpgd.columns.bins import BELOW_ONE, Categories, Interval, Ticks
from sdv_privpgd.columns.column import EXACT_IN_FLOAT, Column
from sdv_privpgd.columns.dates import (
    BEYOND,
    are_aware,
    in_zone,
    instants,
    on_the_clock,
    to_ticks,
    write_dates,
    zone_of,
)
from sdv_privpgd.columns.dtypes import (
    cast,
    categories_in,
    holds_missing,
    inner_of,
    is_decimal,
    is_moment,
    unit_of,
)
from sdv_privpgd.columns.scalars import indices, quiet, real_numbers, truths, whole_numbers
from sdv_privpgd.columns.units import digits_of

_MOST_DIGITS = 18
"""Decimal digits that int64 always holds."""


class ColumnEncoder(abc.ABC):
    """Translates one column, cell by cell. It learns nothing, so there is nothing to fit."""

    def __init__(self, column: Column) -> None:
        self.column = column

    def encode(self, series: pd.Series) -> tuple[np.ndarray, np.ndarray]:
        """The int64 codes and float64 positions of a private column's cells."""
        with quiet():
            values, missing = self.read(series)
            return located(self.column, values, missing)

    def read(self, series: pd.Series) -> tuple[np.ndarray, np.ndarray]:
        """The values of a private column's cells, for ``column.locate``, and which are missing."""
        with quiet():
            if isinstance(series.dtype, pd.CategoricalDtype):
                # Code -1 is missing, and -1 indexes the last entry, which is ``None``.
                kept = pd.Series(series.cat.categories).astype(object)
                values, missing = self._read(pd.concat([kept, pd.Series([None], dtype=object)]))
                entries = series.cat.codes.to_numpy()
                return values[entries], missing[entries]
            if isinstance(series.dtype, pd.SparseDtype):
                series = series.sparse.to_dense()
            return self._read(series)

    def decode(
        self, codes: np.ndarray, positions: np.ndarray, *, holds_missing: bool = False
    ) -> pd.Series:
        """The values at positions in [0, 1) of cells, as a column of the user's table.

        Args:
            codes: Integers; those outside go to the nearest code inside.
            positions: The position of each value in its cell, for cells of more than one value.
            holds_missing: Whether to use the dtype of a column with missing values even if these
                codes have none. ``column.nullable`` gives all samples of a model one dtype. It has
                no effect if the column's own dtype is known.
        """
        codes = np.clip(codes, 0, self.column.size - 1).astype(np.int64)
        missing = codes == self.column.num_values
        inside = np.clip(positions, 0.0, BELOW_ONE)
        values = self.column.at(np.where(missing, 0, codes), inside)
        return self._finished(self._write(values, holds_missing or bool(missing.any())), missing)

    def within(
        self, codes: np.ndarray, positions: np.ndarray, span: tuple, *, holds_missing: bool = False
    ) -> pd.Series:
        """Decodes values of a range only, which covers a part of each of the codes."""
        values = self.column.within(codes, positions, *span)
        return self._finished(self._write(values, holds_missing), np.zeros(len(codes), dtype=bool))

    def rewrite(self, series: pd.Series, *, holds_missing: bool = False) -> pd.Series:
        """The same values as ``decode`` writes them, for values that a user asks for."""
        with quiet():
            values, missing = self._read(series.astype(object))
            values = self.column.cells.at(*self.column.cells.locate(values))
        return self._finished(self._write(values, holds_missing or bool(missing.any())), missing)

    def holds(self, series: pd.Series) -> np.ndarray:
        """Marks the cells that ``encode`` places without clipping, guessing or rounding, bool.

        It is meant for the conditions that a user writes, never for a private column.
        """
        with quiet():
            empty = series.isna().to_numpy()
            return np.where(empty, self.column.nullable, self._is_declared(series.astype(object)))

    def _finished(self, series: pd.Series, missing: np.ndarray) -> pd.Series:
        """The values under the column's name, and in its dtype if that is known."""
        series[missing] = None
        dtype = self._dtype
        if dtype is not None and (holds_missing(dtype) or not missing.any()):
            series = cast(series, dtype, self.column.decimal_places)
        return series.rename(self.column.name)

    @cached_property
    def _dtype(self) -> Any:
        """The dtype that the column's values are written in; ``None`` if it cannot hold them."""
        wanted = self._wanted_dtype()
        with suppress(ValueError, TypeError, ArithmeticError, NotImplementedError):
            return wanted if wanted is not None and self._is_held(wanted) else None
        return None

    def _is_held(self, dtype: Any) -> bool:
        """Whether a dtype holds the column's values, if no cast raises."""
        cast(self._write(np.array(self.column.cells.ends), False), dtype)
        return True

    def _wanted_dtype(self) -> Any:
        """The column's dtype; for a categorical, the dtype of its categories."""
        return inner_of(self.column.dtype)

    @abc.abstractmethod
    def _is_declared(self, series: pd.Series) -> np.ndarray:
        """Marks the cells that are values of the declared domain."""

    @abc.abstractmethod
    def _read(self, series: pd.Series) -> tuple[np.ndarray, np.ndarray]:
        """The values of the cells, as the column's cells locate them, and which are missing."""

    @abc.abstractmethod
    def _write(self, values: np.ndarray, holds_missing: bool) -> pd.Series:
        """The user's values, in a dtype that holds missing ones if ``holds_missing`` is set."""


class _NumberEncoder(ColumnEncoder):
    """Translates a numerical column."""

    def _real(self, series: pd.Series) -> tuple[np.ndarray, np.ndarray]:
        return real_numbers(series, self.column.number_format)

    def _as_text(self, numbers: pd.Series) -> pd.Series:
        """The numbers in the declared format, unless the column's dtype says that they are none."""
        written, dtype = self.column.number_format, self._wanted_dtype()
        if written is None or getattr(dtype, "kind", "O") in "biuf" or is_decimal(dtype):
            return numbers
        return pd.Series([written.write(each) for each in numbers.tolist()], dtype=object)


class RealEncoder(_NumberEncoder):
    """Translates a numerical column whose numbers have no declared precision."""

    def _read(self, series: pd.Series) -> tuple[np.ndarray, np.ndarray]:
        return self._real(series)

    def _is_declared(self, series: pd.Series) -> np.ndarray:
        cells = self.column.cells
        assert isinstance(cells, Interval)
        numbers, missing = self._real(series)
        return ~missing & (numbers >= cells.low) & (numbers <= cells.high)

    def rewrite(self, series: pd.Series, *, holds_missing: bool = False) -> pd.Series:
        """The numbers themselves, because a position in a cell would round them."""
        numbers, missing = self._read(series)
        return self._finished(self._write(numbers, holds_missing), missing)

    def _write(self, values: np.ndarray, holds_missing: bool) -> pd.Series:  # noqa: ARG002
        return self._as_text(pd.Series(values))


class DecimalEncoder(_NumberEncoder):
    """Translates a numerical column of integers, of declared decimal places or of an increment."""

    @property
    def _cells(self) -> Ticks:
        cells = self.column.cells
        assert isinstance(cells, Ticks)
        return cells

    @property
    def _scale(self) -> float:
        """The number of ticks in one unit; below 1 if a tick is several units."""
        if self.column.increment is not None:
            return 1 / self.column.increment
        return 10.0 ** (self.column.decimal_places or 0)

    def _read(self, series: pd.Series) -> tuple[np.ndarray, np.ndarray]:
        cells, increment = self._cells, self.column.increment or 1
        if self.column.decimal_places == 0:
            numbers, missing = whole_numbers(series, self.column.number_format)
            return (numbers + increment // 2) // increment, missing
        numbers, missing = self._real(series)
        scale = self._scale
        inside = np.clip(numbers, cells.first / scale, cells.last / scale)
        return np.rint(inside * scale).astype(np.int64), missing

    def _is_declared(self, series: pd.Series) -> np.ndarray:
        cells = self._cells
        numbers, missing = self._real(series)
        ticks = numbers * self._scale
        inside = (np.rint(ticks) >= cells.first) & (np.rint(ticks) <= cells.last)
        # The nearest float64 of a decimal is a few units of the last place off a whole tick.
        return ~missing & inside & np.isclose(ticks, np.rint(ticks), rtol=1e-14, atol=1e-9)

    def _write(self, values: np.ndarray, holds_missing: bool) -> pd.Series:
        numbers = self._as_text(pd.Series(self.column.numbers(values)))
        if numbers.dtype.kind == "i" and holds_missing:
            ends = self.column.numbers(np.array([self._cells.first, self._cells.last]))
            return numbers.astype(_with_missing(max(-ends[0], ends[1])))
        return numbers


class DatetimeEncoder(ColumnEncoder):
    """Translates a datetime column of strings or of timestamps."""

    @property
    def _ticks(self) -> tuple[Ticks, str]:
        """The cells and the unit of a tick."""
        cells, unit = self.column.cells, self.column.unit
        assert isinstance(cells, Ticks)
        assert unit is not None
        return cells, unit

    @property
    def _zone(self) -> Any:
        """The time zone in which days begin and end, if the dtype names one: a public fact."""
        return zone_of(self._wanted_dtype()) if self._ticks[1] in ("D", "M", "Y") else None

    def _read(self, series: pd.Series) -> tuple[np.ndarray, np.ndarray]:
        moments, missing = instants(series, self.column.datetime_format)
        moments = np.clip(moments, *BEYOND)
        if self._zone is not None:
            moments = np.where(are_aware(series), on_the_clock(moments, self._zone), moments)
        return to_ticks(moments, self._ticks[1]), missing

    def _is_declared(self, series: pd.Series) -> np.ndarray:
        cells, _ = self._ticks
        ticks, missing = self._read(series)
        return ~missing & (ticks >= cells.first) & (ticks <= cells.last)

    def rewrite(self, series: pd.Series, *, holds_missing: bool = False) -> pd.Series:
        """The moments themselves, which may lie inside a tick."""
        moments, missing = instants(series, self.column.datetime_format)
        holds_missing = holds_missing or bool(missing.any())
        return self._finished(self._written(moments, "ns", holds_missing), missing)

    def _write(self, values: np.ndarray, holds_missing: bool) -> pd.Series:
        written = self._written(values, self._ticks[1], holds_missing)
        return written if self._zone is None else in_zone(written, self._zone)

    def _wanted_dtype(self) -> Any:
        return None if self.column.dtype is int else super()._wanted_dtype()

    def _written(self, ticks: np.ndarray, unit: str, holds_missing: bool) -> pd.Series:
        dtype, (cells, own) = self._wanted_dtype(), self._ticks
        first, last = to_ticks(np.array(BEYOND), own)
        # Arrow's nanoseconds hold no dates beyond, those of pandas that nobody chose are given up
        # for them, and pandas fails to write them in most zones.
        is_open = isinstance(dtype, pd.DatetimeTZDtype) or unit_of(dtype) != "ns"
        has_room = is_open and str(zone_of(dtype)) in ("None", "UTC")
        far = has_room and (cells.first <= first or cells.last >= last)
        written = None if is_moment(dtype) else self.column.datetime_format
        dates = write_dates(ticks, unit, written, self.column.utc, far)
        digits = digits_of(written or "") or _MOST_DIGITS + 1
        are_numbers = self.column.dtype is int or getattr(dtype, "kind", "O") in "iuf"
        if not are_numbers or digits > _MOST_DIGITS:
            return pd.Series(dates)
        numbers = pd.Series([*map(int, dates)], dtype=np.int64)
        return numbers.astype(_with_missing(10**digits)) if holds_missing else numbers


class CategoryEncoder(ColumnEncoder):
    """Translates a categorical, ordinal or boolean column.

    A category is found by Python's equality: a declared 1 is found as 1, 1.0 and ``True``.
    """

    @property
    def _values(self) -> tuple:
        cells = self.column.cells
        assert isinstance(cells, Categories)
        return cells.values

    def _read(self, series: pd.Series) -> tuple[np.ndarray, np.ndarray]:
        cells = self.column.cells
        assert isinstance(cells, Categories)
        return self._found(series, len(cells) - 1 if cells.has_other else -1)

    def _is_declared(self, series: pd.Series) -> np.ndarray:
        return ~self._found(series, -1)[1]

    def _found(self, series: pd.Series, other: int) -> tuple[np.ndarray, np.ndarray]:
        """The index of each cell's value, ``other`` for values that were not declared."""
        if self.column.sdtype == "boolean" and self._values == (False, True):
            return truths(series)
        known = {value: index for index, value in enumerate(self._values)}
        return indices(series, known, other)

    def _write(self, values: np.ndarray, holds_missing: bool) -> pd.Series:
        declared = pd.Series(self._values, dtype=object)
        natural = declared.infer_objects().dtype
        series = declared.take(values).reset_index(drop=True)
        if natural.kind in "fM" or isinstance(natural, pd.StringDtype) or not holds_missing:
            return series.astype(natural)
        if natural.kind == "u":  # numbers beyond those of int64
            return series.astype("UInt64")
        if natural.kind == "i":
            return series.astype(_with_missing(declared.abs().max()))
        return series

    def _wanted_dtype(self) -> Any:
        return categories_in(self.column.dtype, self._values)

    def _is_held(self, dtype: Any) -> bool:
        """Whether each category is still the same value in a dtype."""
        every = np.arange(len(self._values))
        return np.array_equal(self._read(cast(self._write(every, False), dtype))[0], every)


def encoder_for(column: Column) -> ColumnEncoder:
    """The encoder of a column."""
    if column.sdtype == "datetime":
        return DatetimeEncoder(column)
    if isinstance(column.cells, Categories):
        return CategoryEncoder(column)
    return DecimalEncoder(column) if isinstance(column.cells, Ticks) else RealEncoder(column)


def located(
    column: Column, values: np.ndarray, missing: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """The codes and positions of values, and of missing ones."""
    codes, positions = column.locate(values)
    codes[missing] = _code_of_missing(column)
    positions[missing] = 0.5
    return codes, positions


def _code_of_missing(column: Column) -> int:
    if column.nullable:
        return column.num_values
    has_other = isinstance(column.cells, Categories) and column.cells.has_other
    return column.num_values - 1 if has_other else 0


def _with_missing(largest: int) -> str:
    """The dtype of integers up to a size, and missing."""
    return "float64" if largest <= EXACT_IN_FLOAT else "Int64"
