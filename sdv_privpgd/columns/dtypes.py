"""The dtypes that a schema chooses and no cell changes, and values written in them. Public.

For some dtypes pandas decides by the cells: one missing cell turns ``int64`` into ``float64``, and
one cell of text turns it into ``object``. Such a dtype may reveal a single cell, so it is private:
the dtype that comes back instead follows from what is declared or privately found. These dtypes are
``bool``, ``int64``, ``uint64``, ``float64``, ``complex128``, ``object``, the ``str`` of pandas 3
(strings whose missing value is NaN), and ``datetime64`` without a time zone. Cells choose the unit
of dates in pandas 3, and in Arrow's reader of text under any pandas, so no unit is kept: dates are
in nanoseconds, those with a time zone, too. Time zones that are mere offsets are private, too,
because pandas makes them of offsets in text; and so are sparse dtypes.

Of pandas no reader and no constructor chooses any other dtype by itself: categories, ``boolean``,
``Int64`` and its kin, ``string``, ``float32``, ``int8`` and Arrow's types are chosen by a schema or
a person. They count as public, like sdtypes, and are kept. (``convert_dtypes``, ``dtype_backend``,
``downcast`` and what other libraries guess of text or ``Decimal`` choose between them by the cells:
whoever lets them takes their choice to be public.)
A named time zone is kept as well: pandas does not read it from text, only from dates that all carry
it. So is the fact that a declared key has whole numbers, of which none is missing. Ids that are no
key are numbers only in a chosen dtype, for one that is missing would change their dtype. The list
of a categorical's categories consists of values, so it is never kept.
"""

import datetime
from collections.abc import Collection, Mapping, Sequence
from decimal import Decimal, localcontext
from typing import Any

import numpy as np
import pandas as pd

from sdv_privpgd.columns.column import Column
from sdv_privpgd.columns.facts import NumberFacts
from sdv_privpgd.columns.scalars import LARGEST_WHOLE
from sdv_privpgd.columns.units import DAYS, zone_of

_INFERRED = tuple(map(np.dtype, ("bool", "int64", "uint64", "float64", "complex128", "object")))

_READ_EXTENSIONS = "arrow.json", "arrow.bool8"
"""Arrow's types of others whose cells are text or numbers."""

_DIGITS = 100
"""Digits of decimals: Arrow's have 76 at most."""


def chosen(dtype: Any) -> Any:
    """The dtype without any values of the column; ``None`` if cells may have chosen it."""
    if isinstance(dtype, pd.CategoricalDtype):
        inner = chosen(dtype.categories.dtype)
        none = pd.Index([], dtype=object if inner is None else inner)
        return pd.CategoricalDtype(none, bool(dtype.ordered))
    if isinstance(dtype, pd.StringDtype):
        return dtype if dtype.na_value is pd.NA else None
    if isinstance(dtype, pd.DatetimeTZDtype):
        is_offset = isinstance(dtype.tz, datetime.timezone) and dtype.tz != datetime.timezone.utc
        if is_offset:
            return None
        return pd.DatetimeTZDtype("ns", dtype.tz)
    if isinstance(dtype, np.dtype):
        return None if dtype.kind not in "biuf" or dtype in _INFERRED else dtype
    is_of_arrow = isinstance(dtype, pd.ArrowDtype)
    if not (is_of_arrow or _is_masked(dtype)) or dtype.kind == "m":
        return None
    # A new one: pandas keeps in a dtype what it was asked for, and pickles that as well.
    return pd.ArrowDtype(dtype.pyarrow_dtype) if is_of_arrow else type(dtype)()


def key_dtype(dtype: Any) -> Any:
    """The part of a declared key's dtype that is kept: whole numbers stay, as keys are made up.

    How large they are is not told. Floats are no keys: pandas has them for a column without cells.
    """
    if isinstance(dtype, np.dtype) and dtype == np.dtype("uint64"):
        return np.dtype("int64")
    return dtype if isinstance(dtype, np.dtype) and dtype.kind in "iu" else chosen(dtype)


def dtypes_kept(
    dtypes: Mapping[str, Any],
    described: Mapping[str, Mapping[str, Any]],
    modelled: Collection[str],
    keys: Collection[str] = (),
) -> dict[str, Any]:
    """The dtypes of a table that no cell chose, without any of the table's values. Public.

    Of ids that are no ``keys`` a cell may be missing, which decides whether they are whole
    numbers. A key has no such cell.
    """
    kept: dict[str, Any] = {}
    for name, facts in described.items():
        is_key = name in keys and name not in modelled and facts["sdtype"] == "id"
        dtype = key_dtype(dtypes[name]) if is_key else chosen(dtypes[name])
        if dtype is not None:
            kept[name] = dtype
    return kept


def facts_of_dtype(dtype: Any) -> NumberFacts:
    """The facts that a chosen dtype implies for a column of numbers."""
    is_integer = is_whole(dtype) or (is_decimal(dtype) and dtype.pyarrow_dtype.scale <= 0)
    return NumberFacts(
        decimal_places=0 if is_integer else None, nullable=None if holds_missing(dtype) else False
    )


def is_unreadable(dtype: Any) -> bool:
    """Whether no type of column reads what a column of the dtype holds, which is public."""
    if isinstance(dtype, pd.CategoricalDtype):
        return dtype.categories is not None and is_unreadable(dtype.categories.dtype)
    if isinstance(dtype, pd.ArrowDtype) and dtype.kind == "O":
        return _unread_of_arrow(dtype.pyarrow_dtype)
    return dtype.kind in "mc" or isinstance(dtype, pd.PeriodDtype | pd.IntervalDtype)


def _unread_of_arrow(kind: Any) -> bool:
    from pyarrow import BaseExtensionType, types

    if types.is_dictionary(kind):
        return _unread_of_arrow(kind.value_type)
    if isinstance(kind, BaseExtensionType):
        return kind.extension_name not in _READ_EXTENSIONS
    return types.is_nested(kind) or types.is_interval(kind)


def on_unreadable(dtypes: Mapping[str, Any]) -> list[str]:
    """A sentence on the columns that no type of column reads, and how to convert them. Public."""
    found = {name: _written(dtype) for name, dtype in dtypes.items() if is_unreadable(dtype)}
    if not found:
        return []
    return [
        f"No type of column reads {found}. Convert them: timedeltas to numbers with "
        ".dt.total_seconds(), periods to dates with .dt.to_timestamp(), intervals (as pandas.cut "
        "makes them) to text with .astype('string'), structs, lists and maps to a column for each "
        "part, others to text or numbers."
    ]


def _written(dtype: Any) -> str:
    if isinstance(dtype, pd.CategoricalDtype):
        return f"category of {_written(dtype.categories.dtype)}"
    return "intervals" if isinstance(dtype, pd.IntervalDtype) else str(dtype)


def holds_missing(dtype: Any) -> bool:
    """Whether a column of a chosen dtype can have missing cells."""
    return not (isinstance(dtype, np.dtype) and dtype.kind in "iu")


def is_of_days(dtype: Any) -> bool:
    """Whether it is Arrow's dtype of days, which have no time: no reader of pandas chooses it."""
    return isinstance(dtype, pd.ArrowDtype) and dtype.type is datetime.date


def is_of_times(dtype: Any) -> bool:
    """Whether it is one of Arrow's dtypes of times of the day."""
    return isinstance(dtype, pd.ArrowDtype) and dtype.type is datetime.time


def is_whole(dtype: Any) -> bool:
    """Whether the cells of a column of the dtype are whole numbers."""
    return getattr(dtype, "kind", "O") in "iu"


def inner_of(dtype: Any) -> Any:
    """The kept part of the dtype of a categorical's categories; any other dtype unchanged."""
    return chosen(dtype.categories.dtype) if isinstance(dtype, pd.CategoricalDtype) else dtype


def zone_in(column: Column) -> Any:
    """The time zone that the dtype of its dates names: a public fact."""
    return zone_of(inner_of(column.dtype)) if column.unit is not None else None


def clock_in(column: Column) -> Any:
    """The zone in whose clock the units of a column's dates begin and end; ``None`` for UTC.

    Hours begin with those of UTC in most zones.
    """
    zone, unit = zone_in(column), column.unit
    if zone is not None and unit == "h":
        hours = pd.Series(pd.to_datetime(["2000-01-01", "2000-07-01"], utc=True))
        return zone if hours.dt.tz_convert(zone).dt.minute.any() else None
    return zone if unit in DAYS else None


def categories_in(dtype: Any, values: Sequence) -> Any:
    """The dtype with these categories, if it is a categorical's; any other dtype unchanged."""
    if not isinstance(dtype, pd.CategoricalDtype):
        return dtype
    inner, natural = inner_of(dtype), pd.Series(values, dtype=object).infer_objects()
    categories = pd.Index(natural if inner is None else cast(natural, inner))
    return pd.CategoricalDtype(categories, dtype.ordered)


def unordered(dtype: Any) -> Any:
    """The same categories without an order, if it is a categorical's; any other dtype unchanged."""
    if not isinstance(dtype, pd.CategoricalDtype):
        return dtype
    return pd.CategoricalDtype(dtype.categories, ordered=False)


def cast(series: pd.Series, dtype: Any, places: int | None = None) -> pd.Series:
    """The values in a chosen dtype, with numbers rounded and clipped to what it holds.

    ``Decimal`` and ``time`` count as dtypes, too: objects, with ``places`` decimal places. Raises
    ``ValueError``, or what pandas does, for values of another kind.
    """
    if dtype is Decimal or is_decimal(dtype):
        return _decimals(series, dtype, places)
    if datetime.time in (dtype, getattr(dtype, "type", None)):
        times = [
            None if pd.isna(cell) else datetime.time.fromisoformat(str(cell)) for cell in series
        ]
        series = pd.Series(times, index=series.index, name=series.name, dtype=object)
        return series if dtype is datetime.time else series.astype(dtype)
    numeric = isinstance(series.dtype, np.dtype | pd.Int64Dtype | pd.UInt64Dtype)
    if dtype.kind in "iuf" and numeric and series.dtype.kind in "iuf":
        series = _fitted(series, _numpy(dtype))
    elif dtype.kind == "M":
        if series.dtype.kind != "M":  # pandas would try to read text as dates, and warn
            raise TypeError("These values are no dates.")
        series = _zoned(series, dtype)
    elif isinstance(dtype, pd.CategoricalDtype):
        return _categorized(series, dtype)
    return series.astype(dtype)


def _categorized(series: pd.Series, dtype: pd.CategoricalDtype) -> pd.Series:
    """The values as categories. Raises ``ValueError`` for one that is none of them."""
    inner: Any = dtype.categories.dtype
    held = series.notna().to_numpy()
    known: pd.Series = series.loc[held]
    if inner.kind != "O":
        known = known.astype(inner)
    if not known.isin(dtype.categories).all():
        raise ValueError("A value is none of the categories.")
    codes = np.full(len(series), -1)
    codes[held] = known.astype(dtype).cat.codes
    made = pd.Categorical.from_codes(codes, dtype=dtype)
    return pd.Series(made, index=series.index, name=series.name)


def _fitted(series: pd.Series, dtype: np.dtype) -> pd.Series:
    """Numbers, rounded and clipped so that a NumPy dtype of numbers can hold them."""
    is_whole, own = dtype.kind != "f", _numpy(series.dtype)
    ends: Any = np.iinfo(dtype) if is_whole else np.finfo(dtype)
    if own.kind != "f":
        held = np.iinfo(own)
        series = series.clip(max(int(ends.min), held.min), min(int(ends.max), held.max))
        return series if is_whole else series.astype(dtype)
    high = float(ends.max)
    if not is_whole:
        return series.clip(-high, high).astype(dtype)
    high = high if int(high) <= ends.max else float(np.nextafter(high, 0))
    rounded = series.round().clip(float(ends.min), high)
    return rounded.astype("UInt64" if ends.min == 0 else "Int64")


def _zoned(series: pd.Series, dtype: Any) -> pd.Series:
    """Moments in the time zone and unit of a dtype of dates; days have no time of day."""
    aware = series.dt.tz_localize("UTC") if series.dt.tz is None else series
    own = getattr(dtype, "pyarrow_dtype", dtype)
    zoned = aware.dt.tz_convert(getattr(own, "tz", None))
    unit = unit_of(own)
    return zoned.dt.normalize().dt.as_unit("s") if unit is None else zoned.dt.as_unit(unit)


def _decimals(series: pd.Series, dtype: Any, places: int | None) -> pd.Series:
    """Numbers as decimals: objects, or Arrow's decimals with the scale of their dtype."""
    arrow = getattr(dtype, "pyarrow_dtype", None)
    places = places if arrow is None else arrow.scale
    with localcontext() as context:
        context.prec = _DIGITS
        step = None if places is None else Decimal(1).scaleb(-places)
        most = None if arrow is None or step is None else step * (10**arrow.precision - 1)
        missing = series.isna().to_numpy()
        cells = [
            None if gone else _decimal(cell, step, most)
            for cell, gone in zip(series.tolist(), missing, strict=True)
        ]
    return pd.Series(
        cells, index=series.index, name=series.name, dtype=object if arrow is None else dtype
    )


def _decimal(cell: Any, step: Decimal | None, most: Decimal | None) -> Decimal:
    number = Decimal(repr(cell)) if isinstance(cell, float) else Decimal(cell)
    if most is not None:
        number = max(min(number, most), -most)
    return number if step is None else number.quantize(step)


def unit_of(dtype: Any) -> str | None:
    """The unit of a dtype of moments; ``None`` for days without a time, and for other dtypes."""
    dtype = getattr(dtype, "pyarrow_dtype", dtype)
    if isinstance(dtype, np.dtype):
        return np.datetime_data(dtype)[0] if dtype.kind == "M" else None
    return getattr(dtype, "unit", None)


def _numpy(dtype: Any) -> np.dtype:
    return getattr(dtype, "numpy_dtype", dtype)


def _is_masked(dtype: Any) -> bool:
    """Whether it is a nullable dtype of pandas, of booleans or numbers."""
    kinds = pd.BooleanDtype, pd.Float32Dtype, pd.Float64Dtype
    sized = [getattr(pd, f"{sign}Int{bits}Dtype") for sign in ("", "U") for bits in (8, 16, 32, 64)]
    return isinstance(dtype, (*kinds, *sized))


def is_decimal(dtype: Any) -> bool:
    """Whether the dtype is one of Arrow's decimal numbers."""
    return isinstance(dtype, pd.ArrowDtype) and dtype.type is Decimal


def is_wide(dtype: Any) -> bool:
    """Whether somebody chose a dtype that holds larger whole numbers than are told apart.

    Decimals with places have 38 digits in sums of databases, and wherever nobody chooses.
    """
    if is_decimal(dtype):
        digits, places = dtype.pyarrow_dtype.precision, dtype.pyarrow_dtype.scale
        return 10 ** (digits - places) > LARGEST_WHOLE and not (digits == 38 and places > 0)
    return is_whole(dtype) and dtype.kind == "u" and dtype.itemsize == 8
