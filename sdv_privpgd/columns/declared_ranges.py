"""Facts on numbers and dates read from SDV's words: ranges, precisions and where cells begin.

Public: nothing here sees a private table.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from itertools import pairwise
from typing import Any

import numpy as np
import pandas as pd

from sdv_privpgd.columns.column import EXACT_IN_FLOAT
from sdv_privpgd.columns.cutting import can_write, column_of, tick_of
from sdv_privpgd.columns.dates import EARLIEST, LATEST, instants
from sdv_privpgd.columns.facts import DateFacts, NumberFacts, exactly
from sdv_privpgd.columns.scalars import LARGEST_WHOLE, Number, plain, quiet


def read_numbers(name: str, words: Mapping, nullable: bool | None) -> NumberFacts:
    """The facts on a column of numbers.

    Raises:
        ValueError: For facts that are not what SDV's words mean or that contradict another.
    """
    num_bins = _num_bins(name, words)
    low, high = (_bound(name, words, key) for key in ("range_min", "range_max"))
    places = words.get("decimal_places")
    bounds = [exactly(bound) for bound in (low, high) if bound is not None]
    _check_order(name, words, bounds)
    if places is not None and not (_is_whole(places) and places >= 0):
        raise ValueError(
            f"decimal_places of {name!r} must be an integer of at least 0, got {places!r}."
        )
    if places == 0 and not all(-LARGEST_WHOLE < bound <= LARGEST_WHOLE for bound in bounds):
        raise ValueError(
            f"{_range_in(words)} of {name!r} "
            "must be within 2**62 of zero if decimal_places is 0. Leave decimal_places out for "
            "numbers of that size."
        )
    facts = NumberFacts(
        low=low,
        high=high,
        decimal_places=None if places is None else int(places),
        increment=_increment(name, words, bounds),
        num_bins=num_bins,
        nullable=nullable,
    )
    if facts.lacks_domain:
        return facts
    _check_ticks(name, words, facts)
    cuts = _cuts(name, words, bounds, lambda values: [_cut(name, value) for value in values])
    number = 1 if cuts is None else len(cuts) + 1
    return replace(
        facts, cuts=cuts, frequencies=read_frequencies(name, words, "cut_points", number)
    )


def read_dates(name: str, words: Mapping, nullable: bool | None) -> DateFacts:
    """The facts on a column of dates.

    Raises:
        ValueError: For facts that are not what SDV's words mean or that contradict another.
    """
    num_bins = _num_bins(name, words)
    datetime_format = words.get("datetime_format")
    # Without directives pandas would know words of its own, such as "mixed".
    if not (
        datetime_format is None or (isinstance(datetime_format, str) and "%" in datetime_format)
    ):
        raise ValueError(
            f"datetime_format of {name!r} must be a string of directives like '%Y-%m-%d', "
            f"got {datetime_format!r}."
        )
    given = [words.get(key) for key in ("range_min", "range_max")]
    low, high = (
        None if bound is None else _moments(name, datetime_format, key, [bound])[0]
        for key, bound in zip(("range_min", "range_max"), given, strict=True)
    )
    bounds = [bound for bound in (low, high) if bound is not None]
    _check_order(name, words, bounds)
    facts = DateFacts(
        low=low,
        high=high,
        datetime_format=datetime_format,
        aware=datetime_format is None
        and any(_is_aware(bound) for bound in given if bound is not None),
        num_bins=num_bins,
        nullable=nullable,
    )
    if facts.lacks_domain:
        return facts
    read = lambda values: _moments(name, datetime_format, "cut_points", values)
    cuts = _cuts(name, words, bounds, read)
    number = 1 if cuts is None else len(cuts) + 1
    facts = replace(
        facts, cuts=cuts, frequencies=read_frequencies(name, words, "cut_points", number)
    )
    if not can_write(column_of(name, facts)):
        raise ValueError(
            f"datetime_format={datetime_format!r} of {name!r} cannot write all dates from "
            f"range_min={words['range_min']!r} to range_max={words['range_max']!r}: "
            "some change when they are read again. Use a format that names each part of "
            "the date."
        )
    return facts


def read_frequencies(name: str, words: Mapping, key: str, number: int) -> tuple[float, ...] | None:
    """The frequency of each of ``number`` cells of a key; ``None`` if that is not known."""
    frequencies = words.get("frequencies")
    if frequencies is None:
        return None
    listed = list(frequencies) if np.iterable(frequencies) else []
    read = [value for value in map(plain, listed) if isinstance(value, int | float | Fraction)]
    if not len(read) == len(listed) == number or not all(0 <= value < math.inf for value in read):
        raise ValueError(
            f"frequencies of {name!r} must be {number} numbers of at least 0, one for each cell "
            f"of {key}, got {frequencies!r}."
        )
    return tuple(float(value) for value in read)


def check_num_bins(what: str, num_bins: Any) -> None:
    """Raises ``ValueError`` unless it is an integer of at least 1."""
    if not (_is_whole(num_bins) and num_bins >= 1):
        raise ValueError(f"{what} must be an integer of at least 1, got {num_bins!r}.")


def _num_bins(name: str, words: Mapping) -> int | None:
    if "num_bins" not in words:
        return None
    check_num_bins(f"num_bins of {name!r}", words["num_bins"])
    return int(words["num_bins"])


def _check_ticks(name: str, words: Mapping, facts: NumberFacts) -> None:
    """Raises for a range that holds no number, or that float64 cannot tell the width of."""
    (low, high), tick = facts.ends, tick_of(facts)
    if tick is None and not math.isfinite(float(high) - float(low)):
        raise ValueError(
            f"{_range_in(words)} of "
            f"{name!r} are further apart than float64 can represent. Give a narrower range."
        )
    if tick is not None and math.ceil(low / tick) > math.floor(high / tick):
        raise ValueError(
            f"{_range_in(words)} of {name!r} "
            f"have no number with decimal_places={words.get('decimal_places')!r} and "
            f"increment={words.get('increment')!r} between them. Give more decimal_places, a "
            "smaller increment or a wider range."
        )


def _increment(name: str, words: Mapping, bounds: Sequence[Fraction]) -> int | None:
    if words.get("increment") is None:
        return None
    increment = exactly(_number(name, "increment", words["increment"]))
    if increment.denominator > 1 or increment < 1:
        raise ValueError(
            f"increment of {name!r} must be a whole number of at least 1, got "
            f"{words['increment']!r}."
        )
    if words.get("decimal_places") != 0 and max(map(abs, bounds), default=0) > EXACT_IN_FLOAT:
        raise ValueError(
            f"{_range_in(words)} of {name!r} "
            "must be within 2**53 of zero for floats with an increment. Set decimal_places to 0."
        )
    return int(increment)


def _range_in(words: Mapping) -> str:
    return f"range_min={words.get('range_min')!r} and range_max={words.get('range_max')!r}"


def _cuts(name: str, words: Mapping, bounds: Sequence, read: Callable) -> tuple | None:
    """The numbers or dates at which a new cell begins; ``None`` for cells of equal width."""
    values = words.get("cut_points")
    if values is None:
        return None
    if not isinstance(values, list | tuple | np.ndarray | pd.Index):
        raise ValueError(f"cut_points of {name!r} must be a list, got {values!r}.")
    cuts = read(values)
    exact = [exactly(cut) for cut in cuts]
    low, high = bounds
    # The float of a range's end may be a little above what it is written as.
    is_beyond = bool(exact) and exact[-1] > high and float(exact[-1]) > float(high)
    if is_beyond or any(a >= b for a, b in pairwise([low, *exact])):
        raise ValueError(
            f"cut_points of {name!r} must ascend from above range_min={words['range_min']!r} to "
            f"range_max={words['range_max']!r}, got {list(values)!r}."
        )
    return tuple(cuts)


def _cut(name: str, value: Any) -> Number:
    return _number(name, "cut_points", value)


def _bound(name: str, words: Mapping, key: str) -> Number | None:
    return None if words.get(key) is None else _number(name, key, words[key])


def _number(name: str, key: str, value: Any) -> Number:
    """A number as it is written, with NumPy's scalars as Python's own."""
    number = plain(value)
    if isinstance(number, bool | str | bytes | None):
        raise ValueError(f"{key} of {name!r} must be a number, got {value!r}.")
    try:
        if math.isfinite(number):
            return number
    except OverflowError:
        pass
    raise ValueError(f"{key} of {name!r} must be finite and fit a float, got {value!r}.")


def _moments(name: str, datetime_format: str | None, key: str, dates: Sequence) -> list[int]:
    """Bounds or cuts of a datetime column in nanoseconds since 1970."""
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


def _check_order(name: str, words: Mapping, bounds: Sequence) -> None:
    if len(bounds) > 1 and bounds[0] > bounds[1]:
        raise ValueError(
            f"range_min of {name!r} must not exceed its range_max, got {words['range_min']!r} and "
            f"{words['range_max']!r}."
        )


def _is_whole(value: object) -> bool:
    return isinstance(value, int | np.integer) and not isinstance(value, bool)
