"""Writes numbers, shares and dates as people do. The texts are as private as the values."""

import math
from collections.abc import Sequence

import numpy as np

_UNITS = ((1e12, "T"), (1e9, "bn"), (1e6, "M"), (1e3, "k"))


def number(value: float) -> str:
    """A number with six digits, or all digits of a whole number; short ones have no exponent.

    >>> number(1234567.0), number(0.000123456789), number(1e20)
    ('1,234,567', '0.000123457', '1e+20')
    """
    if not math.isfinite(value):
        return str(value)
    if value == round(value) and abs(value) < 1e15:
        return f"{value:,.0f}"
    if not 1e-5 <= abs(value) < 1e15:
        return f"{value:.6g}"
    places = max(0, 5 - math.floor(math.log10(abs(value))))
    text = f"{value:,.{places}f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def short_number(value: float) -> str:
    """A number of three digits for a tick, in thousands from ten thousand on, then millions.

    >>> short_number(950), short_number(12_500), short_number(3_200_000)
    ('950', '12.5k', '3.2M')
    """
    for unit, letter in _UNITS:
        if abs(value) >= (1e4 if unit == 1e3 else unit) and abs(value) < 1e15:
            return f"{value / unit:.4g}{letter}"
    return f"{value:.0f}" if value == round(value) and abs(value) < 1e4 else f"{value:.4g}"


def share(part: float) -> str:
    """A part of a whole in percent, at most 100; "none" for no number.

    >>> share(0.123), share(0.00001), share(float("nan"))
    ('12 %', 'below 0.01 %', 'none')
    """
    if math.isnan(part):
        return "none"
    percent = 100 * min(part, 1.0)
    if percent == 0:
        return "0 %"
    if percent < 0.01:
        return "below 0.01 %"
    rounded = f"{percent:.2g}" if percent < 9.95 else f"{percent:.0f}"
    return "nearly 100 %" if rounded == "100" and percent < 100 else f"{rounded} %"


def dates(nanoseconds: Sequence[float] | np.ndarray) -> list[str]:
    """Moments as dates, with the time of day where one of them is not at midnight.

    >>> dates([0, 86_400_000_000_000]), dates([0, 3_600_000_000_000])
    (['1970-01-01', '1970-01-02'], ['1970-01-01 00:00', '1970-01-01 01:00'])
    """
    moments = np.asarray(nanoseconds, dtype=np.int64).astype("datetime64[ns]")
    unit = "D" if (moments == moments.astype("datetime64[D]")).all() else "m"
    return [text.replace("T", " ") for text in np.datetime_as_string(moments, unit=unit).tolist()]


def in_rows(number: float) -> str:
    """A number of rows.

    >>> in_rows(1), in_rows(1200.4)
    ('1 row', '1,200 rows')
    """
    return "1 row" if round(number) == 1 else f"{number:,.0f} rows"


def listed(names: Sequence[str], most: int = 6) -> str:
    """Names in a row. Of very many it gives the first ones and the number of the others.

    >>> listed(["age", "ward"]), listed(list("abcdefghij"), most=3)
    ('age, ward', 'a, b, c and 7 others')
    """
    if len(names) <= most + 1:
        return ", ".join(names)
    return f"{', '.join(names[:most])} and {len(names) - most:,} others"
