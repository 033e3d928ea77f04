"""Columns read from SDV's words: declared facts are checked and turned into cells. Public."""

import math
import re
from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from fractions import Fraction
from itertools import pairwise
from typing import Any

import numpy as np
import pandas as pd

from sdv_privpgd.columns.bins import Categories, Interval, Ticks
from sdv_privpgd.columns.column import EXACT_IN_FLOAT, Column
from sdv_privpgd.columns.dates import (
    EARLIEST,
    LATEST,
    has_zone,
    instants,
    survive_writing,
    to_ticks,
)
from sdv_privpgd.columns.merging import Merging, merged_neighbors, merged_rare
from sdv_privpgd.columns.scalars import LARGEST_WHOLE, category, plain, quiet

_EXACT_DIGITS = 15
"""Decimal digits that float64 always keeps."""

_MOST_PLACES = 300
"""10**-300 is above the smallest normal float64."""

_FEW = 2
"""Cells of known frequencies are merged if there are more than this many times ``num_bins``."""

MOST_CATEGORIES = 256
"""The largest number of codes of a column of categories; further categories share them."""

_UNITS = {
    "us": "f",
    "s": "STXcs",
    "m": "M",
    "h": "HI",
    "D": "djuwaAxDUWV",
    "M": "mbB",
    "Y": "YyG",
}
"""NumPy's units of time, the finest first, and the directives that write them."""


def describe(name: str, facts: Mapping) -> Column:
    """The column that ``facts``, in SDV's words and with ``num_bins``, describe.

    Raises:
        ValueError: For facts that are not what SDV's words mean or that contradict another.

    >>> facts = {"sdtype": "numerical", "range_min": 0, "range_max": 99, "decimal_places": 0}
    >>> describe("age", {**facts, "num_bins": 10}).cells
    Ticks(first=0, last=99, num_bins=10, cuts=())
    """
    nullable = facts.get("range_is_nullable")
    if not isinstance(nullable, bool | np.bool_ | None):
        raise ValueError(f"range_is_nullable of {name!r} must be True or False, got {nullable!r}.")
    read = {"boolean": _truths, "numerical": _numbers, "datetime": _dates}
    return Column(
        name=name,
        sdtype=facts["sdtype"],
        nullable=nullable is None or bool(nullable),
        **read.get(facts["sdtype"], _categories)(name, facts),
    )


def check_num_bins(what: str, num_bins: Any) -> None:
    """Raises ``ValueError`` unless it is an integer of at least 1.

    >>> check_num_bins("num_bins", 32)
    """
    if not (_is_whole(num_bins) and num_bins >= 1):
        raise ValueError(f"{what} must be an integer of at least 1, got {num_bins!r}.")


def check_bounds(name: str, facts: Mapping) -> None:
    """Raises ``ValueError`` for a range of which one end is unknown and the other is not a value.

    >>> check_bounds("age", {"sdtype": "numerical", "range_min": 0})
    """
    for key in ("range_min", "range_max"):
        if facts.get(key) is not None and facts["sdtype"] == "datetime":
            _moments(name, facts, key, [facts[key]])
        elif facts.get(key) is not None:
            _number(name, facts, key)


def _truths(name: str, facts: Mapping) -> dict:  # noqa: ARG001
    return {"cells": Categories((False, True))}


def _categories(name: str, facts: Mapping) -> dict:
    values = facts.get("range_values")
    values = [] if values is None else values
    if not isinstance(values, list | tuple | range | np.ndarray | pd.Index | pd.Series):
        raise ValueError(f"range_values of {name!r} must be a list, got {values!r}.")
    declared = [category(value) for value in values]
    for value, read in zip(values, declared, strict=True):
        if read is None:
            raise ValueError(
                f"range_values of {name!r} may hold strings, numbers, booleans and times of day "
                f"without a time zone, got {value!r}. "
                "Say with range_is_nullable whether values may be missing."
            )
    if len(set(declared)) < len(declared):
        raise ValueError(
            f"range_values of {name!r} must differ, got {list(values)!r}. Values that Python "
            "finds equal, like 1, 1.0 and True, are the same: keep one of them."
        )
    other = facts.get("other_value")
    merging = _merged_categories(name, facts, len(declared))
    if other is None:
        return {"cells": Categories(tuple(declared)), "merging": merging}
    read = category(other)
    if read is None or read in declared:
        raise ValueError(
            f"other_value of {name!r} stands for values that are not in range_values: it must be "
            f"a string, a number or a boolean that is not one of them, got {other!r}."
        )
    if merging is not None:  # the other value has a code of its own
        codes, frequencies = (*merging.codes, len(merging)), (*merging.frequencies, 1.0)
        merging = Merging(codes, frequencies)
    return {"cells": Categories((*declared, read), has_other=True), "merging": merging}


def _merged_categories(name: str, facts: Mapping, number: int) -> Merging | None:
    """The codes that categories share, if there are too many categories.

    Rare categories share one code; neighbors share codes if the order has a meaning or no
    frequencies are known.
    """
    frequencies = _frequencies(name, facts, "range_values", number)
    if number <= MOST_CATEGORIES:
        return None
    if frequencies is None:
        return merged_neighbors([1.0] * number, MOST_CATEGORIES)
    merged = merged_neighbors if facts["sdtype"] == "ordinal" else merged_rare
    return merged(frequencies, MOST_CATEGORIES)


def _numbers(name: str, facts: Mapping) -> dict:
    check_num_bins(f"num_bins of {name!r}", facts["num_bins"])
    low, high = (_number(name, facts, key) for key in ("range_min", "range_max"))
    _check_order(name, facts, low, high)
    places = facts.get("decimal_places")
    if places is not None and not (_is_whole(places) and places >= 0):
        raise ValueError(
            f"decimal_places of {name!r} must be an integer of at least 0, got {places!r}."
        )
    if places == 0 and not -LARGEST_WHOLE < low <= high <= LARGEST_WHOLE:
        raise ValueError(
            f"range_min={facts['range_min']!r} and range_max={facts['range_max']!r} of {name!r} "
            "must be within 2**62 of zero if decimal_places is 0. Leave decimal_places out for "
            "numbers of that size."
        )
    written = {"dtype": Decimal} if _are_decimals(facts) else {}
    if facts.get("increment") is not None:
        increment = _increment(name, facts, low, high)
        cells = _ticks_of(name, facts, low, high, Fraction(increment))
        return {**cells, **written, "decimal_places": places, "increment": increment}
    if places:
        places = _kept_places(int(places), max(abs(low), abs(high)))
    if places is None:
        if not math.isfinite(float(high) - float(low)):
            raise ValueError(
                f"range_min={facts['range_min']!r} and range_max={facts['range_max']!r} of "
                f"{name!r} are further apart than float64 can represent. Give a narrower range."
            )
        cuts = [float(cut) for cut in _cuts(name, facts, low, high, _numbers_cut)]
        inner = tuple(cut for cut in cuts if cut < float(high))
        cells = Interval(float(low), float(high), int(facts["num_bins"]), inner)
        return {**written, "cells": cells, "merging": _merging(name, facts, cells, cuts)}
    cells = _ticks_of(name, facts, low, high, Fraction(1, 10**places))
    return {**cells, **written, "decimal_places": int(places)}


def _are_decimals(facts: Mapping) -> bool:
    """Whether the numbers are Python's ``Decimal``, as both declared bounds then are."""
    return all(isinstance(facts[key], Decimal) for key in ("range_min", "range_max"))


def _ticks_of(name: str, facts: Mapping, low: Fraction, high: Fraction, tick: Fraction) -> dict:
    """The cells of the multiples of ``tick`` in a range, and which of them share a code."""
    first, last = math.ceil(low / tick), math.floor(high / tick)
    if first > last:
        raise ValueError(
            f"range_min={facts['range_min']!r} and range_max={facts['range_max']!r} of {name!r} "
            f"have no number with decimal_places={facts.get('decimal_places')!r} and "
            f"increment={facts.get('increment')!r} between them. Give more decimal_places, a "
            "smaller increment or a wider range."
        )
    # A cell holds the numbers from its cut on, so cuts are rounded up to ticks.
    cuts = [math.ceil(cut / tick) for cut in _cuts(name, facts, low, high, _numbers_cut)]
    return _ticks(name, facts, first, last, cuts)


def _ticks(name: str, facts: Mapping, first: int, last: int, cuts: list[int]) -> dict:
    """The cells of whole numbers that begin with the cuts, and which of them share a code."""
    inner = tuple(sorted({cut for cut in cuts if first < cut <= last}))
    cells = Ticks(first, last, int(facts["num_bins"]), inner)
    return {"cells": cells, "merging": _merging(name, facts, cells, cuts)}


def _increment(name: str, facts: Mapping, low: Fraction, high: Fraction) -> int:
    increment = _number(name, facts, "increment")
    if increment.denominator > 1 or increment < 1:
        raise ValueError(
            f"increment of {name!r} must be a whole number of at least 1, got "
            f"{facts['increment']!r}."
        )
    if facts.get("decimal_places") != 0 and max(abs(low), abs(high)) > EXACT_IN_FLOAT:
        raise ValueError(
            f"range_min={facts['range_min']!r} and range_max={facts['range_max']!r} of {name!r} "
            "must be within 2**53 of zero for floats with an increment. Set decimal_places to 0."
        )
    return int(increment)


def _merging(
    name: str, facts: Mapping, cells: Ticks | Interval, cuts: Sequence[float]
) -> Merging | None:
    """The codes that neighbors share, if it is known how frequent the cells of the cuts are."""
    frequencies = _frequencies(name, facts, "cut_points", len(cuts) + 1)
    if frequencies is None:
        return None
    # Cuts that are equal after rounding begin one cell.
    places = np.searchsorted(np.asarray(cells.cuts), cuts, side="right")
    merged = np.bincount([0, *places], weights=frequencies, minlength=len(cells))
    most, size = int(facts["num_bins"]), len(cells)
    # A few more cells keep their codes, but for those that hardly ever occur.
    merging = merged_neighbors(merged.tolist(), most if size > _FEW * most else size)
    return merging if len(merging) < size else None


def _frequencies(name: str, facts: Mapping, key: str, number: int) -> list[float] | None:
    """The frequency of each of ``number`` cells; ``None`` if that is not known."""
    frequencies = facts.get("frequencies")
    if frequencies is None:
        return None
    listed = list(frequencies) if np.iterable(frequencies) else []
    read = [value for value in map(plain, listed) if isinstance(value, int | float | Fraction)]
    if not len(read) == len(listed) == number or not all(0 <= value < math.inf for value in read):
        raise ValueError(
            f"frequencies of {name!r} must be {number} numbers of at least 0, one for each cell "
            f"of {key}, got {frequencies!r}."
        )
    return [float(value) for value in read]


def _cuts(name: str, facts: Mapping, low: Any, high: Any, read: Callable) -> list:
    """The numbers or dates at which a new cell begins; none for cells of equal width."""
    values = facts.get("cut_points")
    if values is None:
        return []
    if not isinstance(values, list | tuple | np.ndarray | pd.Index):
        raise ValueError(f"cut_points of {name!r} must be a list, got {values!r}.")
    cuts = read(name, facts, "cut_points", values)
    if any(a >= b for a, b in pairwise([low, *cuts])) or (cuts and cuts[-1] > high):
        raise ValueError(
            f"cut_points of {name!r} must ascend from above range_min={facts['range_min']!r} to "
            f"range_max={facts['range_max']!r}, got {list(values)!r}."
        )
    return cuts


def _numbers_cut(name: str, facts: Mapping, key: str, values: Sequence) -> list[Fraction]:  # noqa: ARG001
    return [_number(name, {key: value}, key) for value in values]


def _number(name: str, facts: Mapping, key: str) -> Fraction:
    """A bound exactly as it is written: 0.1 is a tenth. Whole floats become integers."""
    number = plain(facts[key])
    if isinstance(number, bool | str | bytes | None):
        raise ValueError(f"{key} of {name!r} must be a number, got {facts[key]!r}.")
    try:
        if math.isfinite(number):
            is_written = isinstance(number, float) and not number.is_integer()
            return Fraction(Decimal(repr(number)) if is_written else number)
    except OverflowError:
        pass
    raise ValueError(f"{key} of {name!r} must be finite and fit a float, got {facts[key]!r}.")


def _kept_places(places: int, largest: Fraction) -> int | None:
    """The decimal places that float64 keeps in numbers up to ``largest``, at most ``places``.

    ``None`` if it cannot keep even one: then the numbers have no precision.
    """
    places = min(places, _MOST_PLACES)
    while places and largest * 10**places > 10**_EXACT_DIGITS:
        places -= 1
    return places or None


def _dates(name: str, facts: Mapping) -> dict:
    check_num_bins(f"num_bins of {name!r}", facts["num_bins"])
    datetime_format = facts.get("datetime_format")
    # Without directives pandas would know words of its own, such as "mixed".
    if not (
        datetime_format is None or (isinstance(datetime_format, str) and "%" in datetime_format)
    ):
        raise ValueError(
            f"datetime_format of {name!r} must be a string of directives like '%Y-%m-%d', "
            f"got {datetime_format!r}."
        )
    low, high = (_moments(name, facts, key, [facts[key]])[0] for key in ("range_min", "range_max"))
    _check_order(name, facts, low, high)
    bounds = np.array([low, high])
    if datetime_format is None:
        unit = _unit_of_bounds(bounds)
        utc = any(_is_aware(facts[key]) for key in ("range_min", "range_max"))
    else:
        unit = unit_of_format(datetime_format)
        utc = has_zone(datetime_format)
    first, last = to_ticks(bounds, unit).tolist()
    moments = np.array(_cuts(name, facts, low, high, _moments), dtype=np.int64)
    cuts = (to_ticks(moments - 1, unit) + 1).tolist()  # rounded up, as those of numbers
    found = _ticks(name, facts, first, last, cuts)
    cells = found["cells"]
    if datetime_format is not None:
        ends = np.concatenate((cells.starts, cells.starts + cells.widths - 1))
        if not survive_writing(ends, unit, datetime_format):
            raise ValueError(
                f"datetime_format={datetime_format!r} of {name!r} cannot write all dates from "
                f"range_min={facts['range_min']!r} to range_max={facts['range_max']!r}: "
                "some change when they are read again. Use a format that names each part of "
                "the date."
            )
    return {**found, "unit": unit, "datetime_format": datetime_format, "utc": utc}


def _moments(name: str, facts: Mapping, key: str, dates: Sequence) -> list[int]:
    """Bounds or cuts of a datetime column in nanoseconds since 1970."""
    datetime_format = facts.get("datetime_format")
    with quiet():
        moments, missing = instants(pd.Series(dates, dtype=object), datetime_format)
    unread = missing | np.isin(moments, (EARLIEST, LATEST))
    if unread.any():
        written = (
            ", written as in '2024-01-31' or in a declared datetime_format"
            if datetime_format is None
            else f" written as {datetime_format!r}"
        )
        raise ValueError(
            f"{key} of {name!r} must be a date after 1678-01-01 and before 2262-04-12{written}, "
            f"got {dates[int(unread.argmax())]!r}."
        )
    return moments.tolist()


def _is_aware(bound: Any) -> bool:
    return pd.Timestamp(bound).tzinfo is not None


def _unit_of_bounds(bounds: np.ndarray) -> str:
    """Days or seconds if both bounds are whole ones, else nanoseconds.

    It is microseconds for a range of more nanoseconds than int64 can count.
    """
    moments = bounds.astype("datetime64[ns]")
    for unit in ("D", "s"):
        if np.array_equal(moments, moments.astype(f"datetime64[{unit}]")):
            return unit
    first, last = bounds.tolist()
    return "ns" if last - first < np.iinfo(np.int64).max else "us"


def unit_of_format(datetime_format: str) -> str:
    """The finest unit that a format writes.

    >>> unit_of_format("%d.%m.%Y %H:%M")
    'm'
    """
    directives = re.findall("%[-#]?(.)", datetime_format)
    for unit, letters in _UNITS.items():
        if any(letter in letters for letter in directives):
            return unit
    return "D"


def _check_order(name: str, facts: Mapping, low: Any, high: Any) -> None:
    if low > high:
        raise ValueError(
            f"range_min of {name!r} must not exceed its range_max, got {facts['range_min']!r} and "
            f"{facts['range_max']!r}."
        )


def _is_whole(value: object) -> bool:
    return isinstance(value, int | np.integer) and not isinstance(value, bool)
