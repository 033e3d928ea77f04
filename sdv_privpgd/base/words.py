"""Writes numbers, shares and dates as people do. The texts are as private as the values."""

import math
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

_UNITS = ((1e12, "T"), (1e9, "bn"), (1e6, "M"), (1e3, "k"))


def number(value: float) -> str:
    """A number with six digits, or all digits of a whole number; short ones have no exponent."""
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
    """A number of three digits for a tick, in thousands from ten thousand on, then millions."""
    for unit, letter in _UNITS:
        if abs(value) >= (1e4 if unit == 1e3 else unit) and abs(value) < 1e15:
            return f"{value / unit:.4g}{letter}"
    return f"{value:.0f}" if value == round(value) and abs(value) < 1e4 else f"{value:.4g}"


def rounded_up(number: float) -> int:
    """The number, rounded up to two significant digits."""
    step = 10 ** max(math.floor(math.log10(max(number, 1))) - 1, 0)
    return math.ceil(number / step) * step


def share(part: float) -> str:
    """A part of a whole in percent, at most 100; "none" for no number."""
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
    """Moments as dates, with the time of day where one of them is not at midnight."""
    moments = np.asarray(nanoseconds, dtype=np.int64).astype("datetime64[ns]")
    unit = "D" if (moments == moments.astype("datetime64[D]")).all() else "m"
    return [text.replace("T", " ") for text in np.datetime_as_string(moments, unit=unit).tolist()]


def in_columns(rows: Sequence[Sequence[str]]) -> list[str]:
    """Lines of a table of text, each column as wide as it needs to be, and each row on one line."""
    rows = [[" ".join(cell.splitlines()) for cell in row] for row in rows]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return ["  ".join(map(str.ljust, row, widths)).rstrip() for row in rows]


def number_of(count: float, word: str = "row") -> str:
    """So many of a thing."""
    return f"{count:,.0f} {word}{'s' * (round(count) != 1)}"


def grouped(pairs: Iterable[tuple[Any, Any]]) -> dict[Any, list]:
    """What belongs to each key, in order."""
    found: dict[Any, list] = {}
    for key, each in pairs:
        found.setdefault(key, []).append(each)
    return found


def listed(names: Sequence[str], most: int = 6) -> str:
    """Names in a row. Of very many it gives the first ones and the number of the others."""
    if len(names) <= most + 1:
        return ", ".join(names)
    return f"{', '.join(names[:most])} and {len(names) - most:,} others"
