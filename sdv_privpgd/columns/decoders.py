"""From the codes of a column to values again, as the user writes them. No table is seen here.

What is decoded is a model's, and what is checked or rewritten is what a user asks for.
"""

import abc
from contextlib import suppress
from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd

from sdv_privpgd.base import cached_property
from sdv_privpgd.columns.bins import BELOW_ONE, Categories, Ticks
from sdv_privpgd.columns.column import EXACT_IN_FLOAT, Column
from sdv_privpgd.columns.date_formats import write_dates
from sdv_privpgd.columns.dates import BEYOND, are_whole, in_zone, to_ticks
from sdv_privpgd.columns.dtypes import (
    cast,
    categories_in,
    clock_in,
    holds_missing,
    inner_of,
    is_decimal,
    unit_of,
)
from sdv_privpgd.columns.encoders import indices_in, moments_of, read
from sdv_privpgd.columns.number_formats import NumberFormat
from sdv_privpgd.columns.scalars import quiet, real_numbers, rounding_of
from sdv_privpgd.columns.units import digits_of, zone_of

_MOST_DIGITS = 18
"""Decimal digits that int64 always holds."""


class ColumnDecoder(abc.ABC):
    """Writes the values of one column."""

    def __init__(self, column: Column) -> None:
        self.column = column

    @property
    def _cells(self) -> Any:
        return self.column.cells

    def decode(
        self, codes: np.ndarray, positions: np.ndarray, *, holds_missing: bool = False
    ) -> pd.Series:
        """The values at positions in [0, 1) of codes, as a column of the user's table.

        Codes outside go to the nearest one inside. If it ``holds_missing``, the dtype is that of a
        column with missing values even if these codes have none, unless the column has its own.
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
            values, missing = read(self.column, series.astype(object))
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
        cast(self._write(np.array(self._cells.ends), False), dtype)
        return True

    def _wanted_dtype(self) -> Any:
        """The column's dtype; for a categorical, the dtype of its categories."""
        return inner_of(self.column.dtype)

    def _is_declared(self, series: pd.Series) -> np.ndarray:
        """Marks the cells that are values of the declared domain."""
        values, missing = read(self.column, series)
        first, last = self._cells.ends
        return ~missing & (values >= first) & (values <= last)

    @abc.abstractmethod
    def _write(self, values: np.ndarray, holds_missing: bool) -> pd.Series:
        """The user's values, in a dtype that holds missing ones if ``holds_missing`` is set."""


class _NumberDecoder(ColumnDecoder):
    """Writes a numerical column."""

    def _as_text(self, numbers: pd.Series) -> pd.Series:
        """The numbers in the declared format, unless the column's dtype says that they are none."""
        written, dtype = self.column.number_format, self._wanted_dtype()
        if written is None or getattr(dtype, "kind", "O") in "biuf" or is_decimal(dtype):
            return numbers
        return pd.Series([written_as(written, each) for each in numbers.tolist()], dtype=object)


class RealDecoder(_NumberDecoder):
    """Writes a numerical column whose numbers have no declared precision."""

    def _write(self, values: np.ndarray, holds_missing: bool) -> pd.Series:  # noqa: ARG002
        return self._as_text(pd.Series(values))


class DecimalDecoder(_NumberDecoder):
    """Writes a numerical column of integers, of declared decimal places or of an increment."""

    def _is_declared(self, series: pd.Series) -> np.ndarray:
        first, last = self._cells.ends
        numbers, missing = real_numbers(series, self.column.number_format)
        ticks = numbers * float(1 / self.column.tick)
        inside = (np.rint(ticks) >= first) & (np.rint(ticks) <= last)
        off = np.abs(ticks - np.rint(ticks))
        return ~missing & inside & (off <= rounding_of(numbers) * np.abs(ticks) + 1e-9)

    def _write(self, values: np.ndarray, holds_missing: bool) -> pd.Series:
        numbers = self._as_text(pd.Series(self.column.numbers(values)))
        if numbers.dtype.kind == "i" and holds_missing:
            ends = self.column.numbers(np.array(self._cells.ends))
            return numbers.astype(_with_missing(max(-ends[0], ends[1])))
        return numbers


class DatetimeDecoder(ColumnDecoder):
    """Writes a datetime column of strings or of timestamps."""

    def _is_declared(self, series: pd.Series) -> np.ndarray:
        moments, _ = moments_of(self.column, series)
        return super()._is_declared(series) & are_whole(moments, str(self.column.unit))

    def _write(self, values: np.ndarray, holds_missing: bool) -> pd.Series:
        written, zone = self._written(values, holds_missing), clock_in(self.column)
        return written if zone is None else pd.Series(in_zone(written, zone))

    def _wanted_dtype(self) -> Any:
        return None if self.column.dtype is int else super()._wanted_dtype()

    def _written(self, ticks: np.ndarray, holds_missing: bool) -> pd.Series:
        dtype, cells, unit = self._wanted_dtype(), self._cells, str(self.column.unit)
        first, last = to_ticks(np.array(BEYOND), unit)
        # Arrow's nanoseconds hold no dates beyond, those of pandas that nobody chose are given up
        # for them, and pandas fails to write them in most zones.
        is_open = isinstance(dtype, pd.DatetimeTZDtype) or unit_of(dtype) != "ns"
        has_room = is_open and str(zone_of(dtype)) in ("None", "UTC")
        far = has_room and (cells.first <= first or cells.last >= last)
        kind = getattr(dtype, "kind", "O")
        written = None if kind == "M" else self.column.datetime_format
        dates = write_dates(ticks, unit, written, self.column.utc, far, self.column.offset)
        digits = digits_of(written or "") or _MOST_DIGITS + 1
        if (self.column.dtype is not int and kind not in "iuf") or digits > _MOST_DIGITS:
            return pd.Series(dates)
        numbers = pd.Series([*map(int, dates)], dtype=np.int64)
        return numbers.astype(_with_missing(10**digits)) if holds_missing else numbers


class CategoryDecoder(ColumnDecoder):
    """Writes a categorical, ordinal or boolean column."""

    def _is_declared(self, series: pd.Series) -> np.ndarray:
        return ~indices_in(self.column, series, -1)[1]

    def _write(self, values: np.ndarray, holds_missing: bool) -> pd.Series:
        declared = pd.Series(self._cells.values, dtype=object)
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
        return categories_in(self.column.dtype, self._cells.values)

    def _is_held(self, dtype: Any) -> bool:
        """Whether each category is still the same value in a dtype."""
        every = np.arange(len(self._cells))
        return np.array_equal(read(self.column, cast(self._write(every, False), dtype))[0], every)


def decoder_for(column: Column) -> ColumnDecoder:
    """The decoder of a column."""
    if column.sdtype == "datetime":
        return DatetimeDecoder(column)
    if isinstance(column.cells, Categories):
        return CategoryDecoder(column)
    return DecimalDecoder(column) if isinstance(column.cells, Ticks) else RealDecoder(column)


def written_as(form: NumberFormat, number: float) -> str:
    """A number in a format, rounded to its decimal places."""
    digits = f"{Decimal(str(number)).copy_abs():,.{form.places}f}"
    marks = str.maketrans({",": form.parts["group"], ".": form.parts["point"]})
    before, after = form.around
    if number < 0 and digits.strip("0,."):
        shown = form.parts["before"], form.parts["after"]
        before, after = (f"-{before}", after) if shown == form.around else shown
    return before + digits.translate(marks) + after


def _with_missing(largest: int) -> str:
    """The dtype of integers up to a size, and missing."""
    return "float64" if largest <= EXACT_IN_FLOAT else "Int64"
