"""Reading the cells of a private column one by one.

Privacy: each cell is read without regard to all others. Nothing is learned from the column, no cell
changes how another is read, and the column's dtype changes nothing. No cell can make the reading
raise, warn or print: what cannot be read is missing. Objects of unknown types are missing too, and
none of their methods is called.

Each function returns one value a cell and a mask of the missing ones, whose values mean nothing.
"""

import contextlib
import datetime
import math
import warnings
from collections.abc import Iterator, Mapping
from decimal import Context, Decimal
from fractions import Fraction
from typing import Any
from uuid import UUID

import numpy as np
import pandas as pd

from sdv_privpgd.base.arguments import SourceError
from sdv_privpgd.columns.number_formats import NumberFormat
from sdv_privpgd.columns.units import zone_of
from sdv_privpgd.columns.values import Value

Number = int | float | Decimal | Fraction
Plain = str | bytes | Number
"""The values of cells that can be compared and hashed without calling unknown code."""

LARGEST_WHOLE = 2**62
"""Whole numbers are read up to this size; larger ones are read as this one."""


_DIGITS = 34
"""Decimals of more digits before or after the point are read as the nearest float."""

_NUMBERS = {id(kind) for kind in (bool, int, float)}
_COMPARABLE = _NUMBERS | {id(kind) for kind in (str, bytes, datetime.date, type(None), type(pd.NA))}
"""Types by identity: comparing types would call the code of a type's own type."""

MOMENTS = datetime.time, datetime.datetime, pd.Timestamp


@contextlib.contextmanager
def quiet(called: str = "A column") -> Iterator[None]:
    """Hides warnings, and turns exceptions into a ``SourceError`` that names their kind alone.

    What pandas, NumPy and readers of files say may depend on private cells, and quote them.
    """
    try:
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            yield
    except (SourceError, MemoryError):
        raise
    except Exception as error:  # noqa: BLE001 - any library's
        raise SourceError(f"{called} cannot be read: {type(error).__name__}.") from None


def plain(cell: Any) -> Plain | None:
    """The cell as a string, bytes or a number; ``None`` for missing and for everything else.

    Subclasses of the built-in types (enumerations, NumPy scalars) become the built-in type.
    """
    kind = type(cell)
    if kind is str or kind is int or kind is bool or kind is bytes:
        return cell
    # Only unbound methods and issubclass are used, so no code of a subclass is called.
    if issubclass(kind, str):
        return str.__str__(cell)
    if issubclass(kind, int):
        return int.__int__(cell)
    if issubclass(kind, float):
        number = float.__float__(cell)
        return None if number != number else number
    if issubclass(kind, (np.bool_, np.integer)) and not issubclass(kind, np.timedelta64):
        return cell.item()
    if issubclass(kind, np.floating):
        return plain(float(cell))
    if kind is Decimal:
        return None if cell.is_nan() else cell
    if kind is UUID and type(getattr(cell, "int", None)) is int:
        return str(cell)
    return cell if kind is Fraction else None


def category(cell: Any) -> Plain | datetime.time | datetime.date | None:
    """Returns the cell as ``plain`` does, or a date, moment or time of day without a zone."""
    value, kind = plain(cell), type(cell)
    if value is not None or kind is datetime.date:
        return cell if value is None else value
    # Comparing times with a zone would call the zone's code, and comparing kinds that of a kind.
    if not any(kind is each for each in MOMENTS) or cell.tzinfo is not None:
        return None
    if kind is not pd.Timestamp:
        return cell
    with contextlib.suppress(ValueError):  # of a year above 9999
        return cell.to_pydatetime(warn=False)
    return None


def canonical(cell: Any) -> Value | None:
    """The cell as ``category`` returns it, in one spelling.

    Whole numbers become ints, other numbers the nearest floats, infinite beyond the largest. Bools
    stay what they are, and so do decimals unless they are very large or very long.
    """
    value = category(cell)
    if value is None or isinstance(value, bool | str | bytes | datetime.time | datetime.date):
        return value
    if isinstance(value, Decimal) and _is_short(value):
        return Decimal(int(value)) if value == int(value) else value.normalize(_EXACTLY)
    nearest = real(value)
    if not math.isfinite(nearest):
        return nearest
    return int(value) if isinstance(value, int) or value == int(nearest) else nearest


_EXACTLY = Context(prec=3 * _DIGITS)


def _is_short(number: Decimal) -> bool:
    """Whether all digits are within ``_DIGITS`` places of the point."""
    exponent = number.as_tuple().exponent  # text, where it is infinite
    return isinstance(exponent, int) and exponent >= -_DIGITS and number.adjusted() < _DIGITS


def key_counts(
    series: pd.Series, units: np.ndarray | None = None
) -> Iterator[tuple[Value | None, int]]:
    """The canonical value of each cell and how many cells have it, perhaps in several parts.

    With ``units`` a cell counts as so many.
    """
    listed, places = distinct(series)
    counts = np.bincount(np.arange(len(listed))[places], units, len(listed))
    for at in np.flatnonzero(counts):
        yield canonical(listed[at]), int(counts[at])


def indices(
    series: pd.Series, index_of: Mapping[Any, int], other: int = -1
) -> tuple[np.ndarray, np.ndarray]:
    """The int64 index of each cell. A value without an index gets ``other``; -1 is missing.

    Values are the same if Python says that they are equal: 1, 1.0, ``True`` and ``Decimal(1)``.
    """
    # A decimal that is written like a declared float counts as that float.
    alike = {Decimal(repr(key)): at for key, at in index_of.items() if type(key) is float}
    index_of = {**alike, **index_of, None: -1}
    listed, places = distinct(series)
    found = [index_of.get(cell, other) for cell in map(category, listed)]
    codes = np.array(found, dtype=np.int64)[places]
    return codes, codes < 0


def rounding_of(numbers: np.ndarray) -> np.ndarray:
    """How far numbers may be off what they were written as, as parts of them.

    Numbers of 32 bits are known by their values, not by the dtype, which other cells of a batch may
    decide.
    """
    with np.errstate(over="ignore"):
        is_short = numbers == numbers.astype(np.float32)
    return np.where(is_short, 5.96e-8, 1e-14)  # below 2^-24


def decimal_places(numbers: np.ndarray, missing: np.ndarray | bool, most: int) -> np.ndarray:
    """The fewest decimal places that write each number, int64.

    It is ``most`` + 1 for numbers that need more, and ``most`` + 2 for missing ones. A number of 32
    bits is a tenth if it is as near to that as they go.
    """
    missing, rounded = np.broadcast_to(missing, numbers.shape), rounding_of(numbers)
    left = ~missing
    places = np.where(missing, most + 2, most + 1)
    for tried in range(most + 1):
        scaled = numbers[left] * 10.0**tried
        fits = np.isclose(scaled, np.rint(scaled), rtol=rounded[left], atol=0)
        places[np.flatnonzero(left)[fits]] = tried
        left[np.flatnonzero(left)[fits]] = False
    return places


def truths(series: pd.Series) -> tuple[np.ndarray, np.ndarray]:
    """1 for true and 0 for false, int64, and which cells are missing.

    True and false are whatever equals 1 and 0, and the words in upper or lower case.
    """
    index_of = {0: 0, 1: 1, "false": 0, "true": 1}
    listed, places = distinct(series)
    lower = (cell.lower() if type(cell) is str else cell for cell in map(plain, listed))
    codes = np.array([index_of.get(cell, -1) for cell in lower], dtype=np.int64)[places]
    return codes, codes < 0


def whole_numbers(
    series: pd.Series, written: NumberFormat | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """The nearest whole numbers, int64, ties to even, clipped to ``LARGEST_WHOLE``."""
    kind = series.dtype.kind
    if kind in "biu":
        dtype = np.uint64 if kind == "u" else np.int64
        numbers = series.to_numpy(dtype=dtype, na_value=False if kind == "b" else 0)
        numbers = np.minimum(numbers, LARGEST_WHOLE).astype(np.int64)
        return np.maximum(numbers, -LARGEST_WHOLE), series.isna().to_numpy()
    if kind == "f":
        numbers, missing = real_numbers(series)
        return np.clip(np.rint(numbers), -LARGEST_WHOLE, LARGEST_WHOLE).astype(np.int64), missing
    listed, places = distinct(series)
    found, missing = filled([whole(number_in(cell, written)) for cell in listed], np.int64)
    return found[places], missing[places]


def real_numbers(
    series: pd.Series, written: NumberFormat | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """The numbers, float64, clipped to what that holds. Infinite ones count as missing.

    Text is read in the format that they are ``written`` in, or as Python writes numbers.
    """
    if series.dtype.kind in "biuf":
        numbers = series.to_numpy(dtype=np.float64, na_value=np.nan)
        return numbers, ~np.isfinite(numbers)
    listed, places = distinct(series)
    numbers = [number_in(cell, written) for cell in listed]
    found, missing = filled([None if each is None else real(each) for each in numbers], np.float64)
    return np.nan_to_num(found)[places], missing[places]


def dense(series: pd.Series) -> pd.Series:
    """The same cells; a sparse column with all of them."""
    return series.sparse.to_dense() if isinstance(series.dtype, pd.SparseDtype) else series


def cells(series: pd.Series) -> list:
    """The cells as Python objects, none of them changed by the types of the others."""
    if isinstance(series.dtype, pd.CategoricalDtype):  # which makes floats of whole numbers
        listed, places = distinct(series)
        return [listed[place] for place in np.arange(len(listed))[places]]
    if (zone := zone_of(series.dtype)) is not None:
        # All at once, pandas 2.3 ends the process at a date of the year 1066 in Tokyo, and a clock
        # shows none of the first and last hours that nanoseconds hold: they are read as others.
        utc = series.dt.tz_convert("UTC").astype(pd.DatetimeTZDtype(series.dt.unit, "UTC"))
        return [each.tz_convert(zone) for each in utc.clip("1678-01-01", "2262-04-11")]
    if series.dtype.type is datetime.date:  # Arrow has years that Python has not
        moments = series.astype("timestamp[ms][pyarrow]").astype("M8[ms]")
        series = moments.clip("0001-01-01", "9999-12-31").dt.date
    return list(series.to_numpy(dtype=object))


def are_there(series: pd.Series) -> np.ndarray:
    """Which cells hold something, bool: not None, NaN, NaT, NA, nor text of spaces alone."""
    if series.dtype.kind in "biufM":
        return series.notna().to_numpy(dtype=bool)
    return np.array([_is_there(cell) for cell in cells(series)], dtype=bool)


def _is_there(cell: Any) -> bool:
    value, kind = plain(cell), type(cell)
    if value is not None:
        return not isinstance(value, str) or bool(value.strip())
    if issubclass(kind, np.datetime64):
        return not np.isnat(cell)
    is_nan = issubclass(kind, float | np.floating) or kind is Decimal  # the others are plain
    return not (is_nan or cell is None or cell is pd.NA or cell is pd.NaT)


def distinct(series: pd.Series) -> tuple[list, np.ndarray | slice]:
    """Cells that are to be read, and the place of each cell among them.

    What is there often is read once: Python's objects take long. Objects are put together only if
    all are of kinds whose values differ from those of any other, and whose code is known.
    """
    if isinstance(series.dtype, pd.CategoricalDtype):
        used = series.cat.remove_unused_categories().cat
        # Without a dtype pandas looks at all of them, and makes dates where no word is among them.
        held = pd.Series(used.categories, dtype=used.categories.dtype)
        return [*cells(held), None], used.codes.to_numpy()
    if series.dtype.kind in "biuf":
        places, found = pd.factorize(series)
        return [*cells(pd.Series(found)), None], places  # -1, the last one, is missing
    listed = cells(series)
    kinds = set(map(id, map(type, listed)))
    if not kinds <= _COMPARABLE or len(kinds & _NUMBERS) > 1:  # 1, 1.0 and True are equal
        return listed, slice(None)
    place_of: dict = {}  # pandas' own would end text at its first NUL
    places = np.array([place_of.setdefault(cell, len(place_of)) for cell in listed], dtype=np.int64)
    return [*place_of, None], places


def filled(values: list, dtype: type) -> tuple[np.ndarray, np.ndarray]:
    """The values with zeros in place of ``None``, and where those are."""
    missing = np.array([value is None for value in values], dtype=bool)
    return np.array([0 if value is None else value for value in values], dtype=dtype), missing


def whole(number: Number | None) -> int | None:
    """The nearest whole number, ties to even, clipped to ``LARGEST_WHOLE``."""
    # Clip before rounding, because the digits of Decimal("1e999999999") do not fit in memory.
    return None if number is None else round(max(min(number, LARGEST_WHOLE), -LARGEST_WHOLE))


def number_in(cell: Any, written: NumberFormat | None) -> Number | None:
    """The finite number of a cell, also of one of text."""
    value = plain(cell)
    if isinstance(value, str):
        text = value if written is None else written.plain(value)
        for read in (int, float):
            with contextlib.suppress(ValueError):
                value = read(text)
                break
    is_endless = isinstance(value, Decimal) and not value.is_finite()
    if is_endless or (isinstance(value, float) and not math.isfinite(value)):
        return None
    return None if isinstance(value, str | bytes) else value


def real(number: Number) -> float:
    """The nearest float, infinite beyond the largest."""
    with contextlib.suppress(OverflowError):
        return float(number)
    return np.inf if number > 0 else -np.inf
