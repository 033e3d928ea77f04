"""What formats, bounds and dtypes say of a column's dates: units, years and time zones. Public."""

import re
from typing import Any

import numpy as np

_WRITTEN = {
    "us": "f",
    "ms": "",
    "s": "STXcs",
    "m": "M",
    "h": "HI",
    "D": "djuwaAxDUWV",
    "M": "mbB",
    "Y": "YyG",
}
"""NumPy's units of time, the finest first, and the directives that write them."""

UNITS = ("ns", *_WRITTEN)
"""All units of time that columns have, the finest first."""

DAYS = ("Y", "M", "D")
"""Units of whole days."""

COARSE = (*DAYS, "h", "m", "s", "ms", "us")
"""Units of which all dates of a column may be found to be whole, the coarsest first."""

IN_A_SECOND = {"ms": 10**3, "us": 10**6, "ns": 10**9}
"""Ticks of a second, of units that are finer."""

_DIGITS = {"Y": 4, "G": 4, "j": 3, "f": 6, "u": 1, "w": 1, **dict.fromkeys("ymdHIMSUWV", 2)}
"""The digits that a directive always writes, of those that write nothing else."""


def digits_of(datetime_format: str) -> int | None:
    """How many digits the format writes; ``None`` if it writes anything else, or nothing."""
    if not re.fullmatch(f"(%[{''.join(_DIGITS)}]|[0-9])+", datetime_format):
        return None
    return sum(_DIGITS.get(each[-1], 1) for each in re.findall("%.|.", datetime_format))


def directives(datetime_format: str) -> set[str]:
    """The letters of a format's directives."""
    return set(re.findall("%[-#]?(.)", datetime_format))


def unit_of_format(datetime_format: str) -> str:
    """The finest unit that a format writes."""
    said = directives(datetime_format)
    return next((unit for unit, letters in _WRITTEN.items() if not said.isdisjoint(letters)), "D")


def has_days(datetime_format: str) -> bool:
    """Whether a format writes days, and no times of the day alone."""
    return not directives(datetime_format).isdisjoint("cs" + _WRITTEN["D"])


def years_of(datetime_format: str | None) -> tuple[bool, str]:
    """Returns if a format says the whole year, and the year that is added to what says none."""
    said = directives(datetime_format or "%Y")
    return not said.isdisjoint("YGcs"), " 2000" if said.isdisjoint("YyGcxsDF") else ""


def has_zone(datetime_format: str) -> bool:
    """Returns if dates that are written in the format carry a time zone."""
    return re.search("%[zZ]", datetime_format) is not None


def is_aware(dtype: Any) -> bool:
    """Returns if all dates of a column of the dtype carry a time zone."""
    return zone_of(dtype) is not None


def zone_of(dtype: Any) -> Any:
    """The time zone of a dtype's dates; ``None`` without one."""
    return getattr(getattr(dtype, "pyarrow_dtype", dtype), "tz", None)


def unit_of_bounds(low: int, high: int) -> str:
    """Days, seconds or parts of them if both bounds are whole ones, else nanoseconds.

    It is microseconds for a range of more nanoseconds than int64 can count. The bounds are in
    nanoseconds since 1970.
    """
    moments = np.array([low, high]).astype("datetime64[ns]")
    for unit in ("D", "s", "ms", "us"):
        if np.array_equal(moments, moments.astype(f"datetime64[{unit}]")):
            return unit
    return "ns" if high - low < np.iinfo(np.int64).max else "us"
