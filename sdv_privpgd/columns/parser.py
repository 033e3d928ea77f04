"""Facts read from SDV's words: each word by itself, then what they say together.

What is declared is checked here, once, with messages in the same words. Public: nothing here sees a
private table.
"""

import contextlib
import datetime
import math
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from functools import partial
from itertools import pairwise
from typing import Any, TypeVar

import numpy as np
import pandas as pd

from sdv_privpgd.base.arguments import check_flag, check_integer, shown
from sdv_privpgd.columns.column import EXACT_IN_FLOAT, Column
from sdv_privpgd.columns.cuts import EXACT_DIGITS, can_write, column_of, tick_of
from sdv_privpgd.columns.date_formats import span_of_format, write_dates
from sdv_privpgd.columns.dates import BEYOND, CLOCKS, LATEST, instants, to_ticks
from sdv_privpgd.columns.facts import (
    CategoryFacts,
    ColumnFacts,
    DateFacts,
    NumberFacts,
    Ranged,
    TruthFacts,
    exactly,
)
from sdv_privpgd.columns.number_formats import NumberFormat
from sdv_privpgd.columns.recoding import code_of
from sdv_privpgd.columns.scalars import LARGEST_WHOLE, Number, category, plain, quiet
from sdv_privpgd.columns.units import UNITS, digits_of, has_zone, unit_of_format, years_of
from sdv_privpgd.columns.vocabulary import blank, modelled, needed, problems

Read = TypeVar("Read")
_RANGE = "range_min", "range_max"
_OFFSET = re.compile("(Z|[+-][0-9]{2}:?[0-9]{2})$")
_LISTS = list | tuple | range | np.ndarray | pd.Index | pd.Series


def read_table(
    columns: Mapping[str, Mapping],
    keys: Collection[str] = (),
    public_domain: Mapping[str, Mapping] | None = None,
    more: Callable[[Mapping[str, Mapping], Mapping], Mapping[str, Mapping]] = lambda _, own: own,
) -> dict[str, ColumnFacts]:
    """The facts on each modelled column of a table, which keys are not.

    All of SDV's facts on ``columns`` are taken to be public: the caller has removed ranges that may
    have been detected from the data. Those of the public domain take their place; ``more`` gives
    it with what constraints declare of single columns. Raises as ``read_facts``.
    """
    public_domain = {} if public_domain is None else public_domain
    for problem in problems(columns, keys, public_domain):
        raise ValueError(problem)
    own = {name: columns[name] for name in modelled(columns, keys)}
    domain = more(own, public_domain)
    return {name: read_facts(name, {**own[name], **domain.get(name, {})}) for name in own}


def describe(name: str, words: Mapping) -> Column:
    """The column that SDV's words, which name its domain, describe. Raises as ``read_facts``."""
    return column_of(name, read_facts(name, words))


def read_facts(name: str, words: Mapping) -> ColumnFacts:
    """The facts on one column; what is left out is not known.

    Raises ``ValueError`` for facts that are not what SDV's words mean or contradict each other.
    """
    facts, wrong = read_words(name, words)
    for problem in wrong:
        raise ValueError(problem)
    return facts


def read_words(name: str, words: Mapping) -> tuple[ColumnFacts, list[str]]:
    """The facts on one column that could be read, and a sentence on each that could not."""
    lost = [key for key in ("cut_points", "frequencies") if words.get(key) is not None]
    lost = lost if blank(words) else []
    own = _Words(name, {key: fact for key, fact in words.items() if key not in lost})
    own.wrong += [
        f"{key} of {name!r} are about cells that nobody declared. Declare "
        f"{' and '.join(needed(words['sdtype']))} as well, or leave {key} out."
        for key in lost
    ]
    nullable = own.read("range_is_nullable", check_flag)
    kinds = {"numerical": own.numbers, "datetime": own.dates, "boolean": own.truths}
    facts = kinds.get(words["sdtype"], own.categories)()
    codes = own.read("missing_codes", partial(_missing_codes, facts, nullable))
    return replace(facts, nullable=True if codes else nullable, missing_codes=codes), own.wrong


def checked(name: str, facts: NumberFacts) -> NumberFacts:
    """The same facts on numbers.

    Raises ``ValueError`` for ends that decimal places, an increment or float64 cannot tell apart.
    """
    ends = [exactly(end) for end in (facts.low, facts.high) if end is not None]
    written = f"range_min={facts.low!r} and range_max={facts.high!r} of {name!r}"
    if facts.decimal_places == 0:
        if not all(-LARGEST_WHOLE < end <= LARGEST_WHOLE for end in ends):
            raise ValueError(
                f"{written} must be within 2**62 of zero if decimal_places is 0. Leave "
                "decimal_places out for numbers of that size, and make whole numbers float64."
            )
    elif facts.increment is not None and max(map(abs, ends), default=0) > EXACT_IN_FLOAT:
        raise ValueError(
            f"{written} must be within 2**53 of zero for floats with an increment. Set "
            "decimal_places to 0."
        )
    if facts.lacks_domain or ends[0] > ends[1]:
        return facts
    (low, high), tick = ends, tick_of(facts)
    if tick is None and not math.isfinite(float(high) - float(low)):
        raise ValueError(
            f"{written} are further apart than float64 can represent. Give a narrower range."
        )
    if tick is not None and math.ceil(low / tick) > math.floor(high / tick):
        raise ValueError(
            f"{written} have no number with decimal_places={facts.decimal_places!r} and "
            f"increment={facts.increment!r} between them. Give more decimal_places, a smaller "
            "increment or a wider range."
        )
    return facts


class _Words:
    """SDV's words on one column, and sentences on those that were read and are wrong."""

    def __init__(self, name: str, words: Mapping) -> None:
        self.name, self.words = name, words
        self.wrong: list[str] = []

    def read(self, key: str, meaning: Callable[[str, Any], Read]) -> Read | None:
        """What a word means; ``None`` if it is not said, or wrong."""
        if self.words.get(key) is None:
            return None
        return self.found(meaning, f"{key} of {self.name!r}", self.words[key])

    def found(self, make: Callable[..., Read], *of: Any) -> Read | None:
        """What it makes of these; ``None`` if that is wrong."""
        try:
            return make(*of)
        except ValueError as error:
            self.wrong.append(str(error))
            return None

    def truths(self) -> TruthFacts:
        pair = [self.words.get(key) for key in ("false_value", "true_value")]
        if pair == [None, None]:
            return TruthFacts()
        return TruthFacts(values=self.found(_truth_values, self.name, *pair))

    def numbers(self) -> NumberFacts:
        places = self.read("decimal_places", partial(check_integer, least=0))
        written = self.read("number_format", partial(_number_format, places))
        facts = NumberFacts(
            low=self.read("range_min", _number),
            high=self.read("range_max", _number),
            decimal_places=written.places if written and places is None else places,
            increment=self.read("increment", _increment),
            rounding=self.read("rounding", _rounding),
            number_format=written,
            num_bins=self.read("num_bins", check_integer),
        )
        self.found(self._check_order, facts)
        self.found(checked, self.name, facts)
        return self._with_cells(
            facts, lambda what, values: [_number(what, value) for value in values]
        )

    def dates(self) -> DateFacts:
        written = self.read("datetime_format", _format)
        clock = None if written else _clock([self.words.get(key) for key in _RANGE])
        written = clock or written
        (low, is_aware), (high, too) = (
            self.read(key, partial(_end, written)) or (None, False) for key in _RANGE
        )
        first, last = self.found(span_of_format, written) or (None, None)
        facts = DateFacts(
            low=first if low is None else low,
            high=last if high is None else high,
            datetime_format=written,
            aware=is_aware or too,
            offset=_offset_of(written, [self.words.get(key) for key in _RANGE]),
            of_days=all(type(self.words.get(key)) is datetime.date for key in _RANGE) or None,
            of_times=clock is not None or None,
            of_numbers=_are_numbers([self.words.get(key) for key in _RANGE], written) or None,
            num_bins=self.read("num_bins", check_integer),
            whole=self.read("whole", _unit) or _whole_of(written, low, high, self.words),
        )
        self.found(self._check_order, facts)
        facts = self._with_cells(facts, partial(_moments, written))
        if not (self.wrong or facts.lacks_domain or can_write(column_of(self.name, facts))):
            self.wrong.append(
                f"datetime_format={written!r} of {self.name!r} cannot write all dates from "
                f"{self._range}: some change when they are read again. Use a format that names "
                "each part of the date."
            )
        return facts

    def categories(self) -> CategoryFacts:
        values, is_ordered = self.read("range_values", _categories), self.words["sdtype"]
        other = self.read("other_value", partial(_other, values or ()))
        groups = self.read("groups", partial(_groups, values if other is None else None))
        if groups is not None and values is None:
            values = tuple(dict.fromkeys(group for _, group in groups if group != other))
        often = partial(_frequencies, "range_values", len(values or ()))
        return CategoryFacts(
            values=values,
            other=other,
            is_ordered=is_ordered == "ordinal",
            frequencies=None if self.wrong else self.read("frequencies", often),
            groups=groups,
            prefix=self.read("prefix", check_integer),
        )

    def _with_cells(self, facts: Ranged, read: Callable[[str, Sequence], Sequence]) -> Ranged:
        """The facts, if they are right, with where cells begin and how frequent they are."""
        if self.wrong or facts.lacks_domain:
            return facts
        cuts = self.read("cut_points", partial(self._cuts, facts, read))
        number = 1 if cuts is None else len(cuts) + 1
        often = partial(_frequencies, "cut_points", number)
        return replace(
            facts, cuts=cuts, frequencies=None if self.wrong else self.read("frequencies", often)
        )

    @property
    def _range(self) -> str:
        return f"range_min={self.words['range_min']!r} to range_max={self.words['range_max']!r}"

    def _check_order(self, facts: NumberFacts | DateFacts) -> None:
        if not facts.lacks_domain and facts.ends[0] > facts.ends[1]:
            raise ValueError(
                f"range_min of {self.name!r} must not exceed its range_max, got "
                f"{self.words['range_min']!r} and {self.words['range_max']!r}."
            )

    def _cuts(
        self, facts: NumberFacts | DateFacts, read: Callable, what: str, values: Any
    ) -> tuple:
        cuts = tuple(read(what, _listed(what, values)))
        exact, (low, high) = [exactly(cut) for cut in cuts], facts.ends
        # The float of a range's end may be a little above what it is written as.
        is_beyond = bool(exact) and exact[-1] > high and float(exact[-1]) > float(high)
        if is_beyond or any(a >= b for a, b in pairwise([low, *exact])):
            raise ValueError(f"{what} must ascend from above {self._range}, got {list(values)!r}.")
        return cuts


def _number(what: str, value: Any) -> Number:
    """A number as it is written, with NumPy's scalars as Python's own."""
    number = plain(value)
    if isinstance(number, bool | str | bytes | None):
        raise ValueError(f"{what} must be a number, got {shown(value)}.")
    with contextlib.suppress(OverflowError):
        if math.isfinite(number):
            return number
    raise ValueError(f"{what} must be finite and fit a float, got {shown(value)}.")


def _increment(what: str, value: Any) -> int:
    increment = exactly(_number(what, value))
    if increment.denominator > 1 or increment < 1:
        raise ValueError(f"{what} must be a whole number of at least 1, got {shown(value)}.")
    return int(increment)


def _rounding(what: str, value: Any) -> tuple[tuple[Number, float], ...]:
    """Steps, and shares of the numbers that are rounded to them."""
    listed = _listed(what, value)
    pairs = [each for each in listed if isinstance(each, _LISTS) and len(each) == 2]
    read = [(_number(what, step), float(_number(what, share))) for step, share in pairs]
    is_right = all(step > 0 and share >= 0 for step, share in read) and len(read) == len(listed)
    if not is_right or sum(share for _, share in read) > 1:
        raise ValueError(
            f"{what} must be pairs of a step above 0 and of the share of the numbers that are "
            f"rounded to it, as in [[1000, 0.4], [100, 0.2]], got {shown(value)}."
        )
    return tuple(read)


def _number_format(places: int | None, what: str, value: Any) -> NumberFormat:
    try:
        written = NumberFormat(value)
    except (TypeError, ValueError):
        raise ValueError(
            f"{what} must be how the table writes 1234.5 or -1234.5, such as '$1,234.50', "
            f"'1.234,5 %', '(1,234.50)' or '1234 kg', got {shown(value)}."
        ) from None
    if places is not None and places > written.places:
        raise ValueError(
            f"{what} writes {written.places} decimal places, which are fewer than "
            f"decimal_places={places}: got {shown(value)}. Write 1234.5 with more zeros, or leave "
            "decimal_places out."
        )
    return written


def _truth_values(name: str, false: Any, true: Any) -> tuple:
    values = category(false), category(true)
    if None in values or values[0] == values[1]:
        raise ValueError(
            f"true_value and false_value of {name!r} must be two different texts or numbers, got "
            f"{true!r} and {false!r}. Declare both, or neither where true and false stand for "
            "themselves."
        )
    return values


def _format(what: str, value: Any) -> str:
    # Without directives pandas would know words of its own, such as "mixed".
    if not (isinstance(value, str) and "%" in value):
        raise ValueError(
            f"{what} must be a string of directives like '%Y-%m-%d', got {shown(value)}."
        )
    return value


def _offset_of(written: str | None, ends: Sequence) -> str | None:
    """The offset from UTC with which both ends are written in a format that ends in it."""
    if written is None or not written.endswith("%z"):
        return None
    found = {said and said[0] for said in (_OFFSET.search(str(end)) for end in ends)}
    return found.pop() if len(found) == 1 and found != {"+0000"} else None  # as it is written


def _whole_of(written: str | None, low: int | None, high: int | None, words: Mapping) -> str | None:
    """Milliseconds if both ends are written in them, though the format could write finer ones."""
    if written is None or low is None or high is None or "%f" not in written:
        return None
    ends = to_ticks(np.array([low, high]), "ms")
    texts = write_dates(ends, "ms", written, has_zone(written))
    return "ms" if [*texts] == [words[key] for key in _RANGE] else None


def _moments(datetime_format: str | None, what: str, dates: Sequence) -> list[int]:
    """Bounds or cuts of a datetime column in nanoseconds since 1970.

    Where a format is of days, those that are not written in it are read in ISO 8601.
    """
    form = datetime_format or "%Y-%m-%d"
    are_days = unit_of_format(form) == "D" and not years_of(form)[1]
    ends, as_shown = pd.Series(dates, dtype=object), are_days and datetime_format is not None
    with quiet():
        moments, missing = instants(ends, datetime_format, as_shown=as_shown)
        if are_days:
            others, unparsed = instants(ends, None, as_shown=as_shown)
            moments, missing = np.where(missing, others, moments), missing & unparsed
        inside = np.where(moments == LATEST, BEYOND[1], np.maximum(moments, BEYOND[0]))
        far = [write_dates(inside, "ns", each, utc=False, far=True) for each in (form, "%Y-%m-%d")]
    said = [str(date).startswith(tuple(texts)) for date, *texts in zip(dates, *far, strict=True)]
    unparsed = missing | ((inside != moments) & ~np.array(said, dtype=bool))
    if unparsed.any():
        written = ", written as in '2024-01-31' or in a declared datetime_format"
        if datetime_format is not None:
            also = " or as in '2024-01-31'" if are_days else ""
            written = f" written as {datetime_format!r}{also}"
        raise ValueError(
            f"{what} must be a date after 1678-01-01 and before 2262-04-11{written}, or one that "
            "stands for never, which is 0001-01-01 or 9999-12-31 there, got "
            f"{shown(dates[int(unparsed.argmax())])}."
        )
    return inside.tolist()


def _end(datetime_format: str | None, what: str, end: Any) -> tuple[int, bool]:
    """An end of a range of dates, and whether it says so without a format that it has a zone."""
    (moment,) = _moments(datetime_format, what, [end])
    return moment, datetime_format is None and pd.Timestamp(end).tzinfo is not None


def _unit(what: str, value: Any) -> str:
    if value not in UNITS:
        raise ValueError(f"{what} must be one of NumPy's units, such as 'D', got {shown(value)}.")
    return value


def _are_numbers(ends: Sequence, datetime_format: str | None) -> bool:
    """Whether both ends are whole numbers, and the format writes such that float64 keeps."""
    is_whole = all(isinstance(plain(end), int) for end in ends)
    return is_whole and 0 < (digits_of(datetime_format or "") or 0) <= EXACT_DIGITS


def _clock(ends: Sequence) -> str | None:
    """The format of times of the day, if both ends are such: whole minutes, or seconds."""
    texts = [str(end) for end in ends]
    with contextlib.suppress(ValueError):
        if all(text[2:3] == ":" for text in texts):
            return CLOCKS[not any(datetime.time.fromisoformat(text).second for text in texts)]
    return None


def _frequencies(key: str, number: int, what: str, value: Any) -> tuple[float, ...]:
    """The frequency of each of ``number`` cells of a key."""
    listed = list(value) if np.iterable(value) else []
    read = [each for each in map(plain, listed) if isinstance(each, int | float | Fraction)]
    if not len(read) == len(listed) == number or not all(0 <= each < math.inf for each in read):
        raise ValueError(
            f"{what} must be {number} numbers of at least 0, one for each cell of {key}, got "
            f"{value!r}."
        )
    return tuple(float(each) for each in read)


def _listed(what: str, values: Any) -> list:
    if not isinstance(values, _LISTS):
        raise ValueError(f"{what} must be a list, got {shown(values)}.")
    return list(values)


def _categories(what: str, values: Any) -> tuple:
    listed = _listed(what, values)
    declared = tuple(category(value) for value in listed)
    for value, read in zip(listed, declared, strict=True):
        if read is None:
            raise ValueError(
                f"{what} may hold strings, numbers, booleans, dates and times without a time zone, "
                f"got {shown(value)}. Say with range_is_nullable whether values may be missing."
            )
    if len(set(declared)) < len(declared):
        raise ValueError(
            f"{what} must differ, got {listed!r}. Values that Python finds equal, like 1, 1.0 and "
            "True, are the same: keep one of them."
        )
    return declared


def _other(declared: Collection, what: str, value: Any) -> Any:
    read = category(value)
    if read is None or read in declared:
        raise ValueError(
            f"{what} stands for values that are not in range_values: it must be a string, a number "
            f"or a boolean that is not one of them, got {shown(value)}."
        )
    return read


def _groups(among: Collection | None, what: str, value: Any) -> tuple[tuple[str, Any], ...]:
    """Codes and their groups, which are ``among`` the declared categories, if these are all."""
    if not isinstance(value, Mapping) or not value:
        raise ValueError(
            f"{what} must map codes to groups, as in {{'A00': 'I'}}, got {shown(value)}."
        )
    found = {}
    for code, group in value.items():
        key, known = code_of(code), category(group)
        if key is None or key in found or known is None:
            raise ValueError(
                f"{what} must map texts or whole numbers, each of them once, to categories, got "
                f"{code!r}: {group!r}."
            )
        if among is not None and known not in among:
            raise ValueError(
                f"{what} names {group!r}, which is not in range_values: all cells of this group "
                "would count as missing. Add it, or declare an other_value."
            )
        found[key] = known
    return tuple(found.items())


def _missing_codes(facts: ColumnFacts, nullable: bool | None, what: str, value: Any) -> tuple:
    codes = tuple(dict.fromkeys(map(category, _listed(what, value))))
    if None in codes:
        raise ValueError(
            f"{what} may hold strings, numbers, dates and times without a time zone, got "
            f"{shown(value)}."
        )
    groups = dict(getattr(facts, "groups", None) or ())
    declared = groups or getattr(facts, "values", None) or ()
    if taken := [code for code in codes if (code_of(code) if groups else code) in declared]:
        raise ValueError(f"{what} names {taken!r}, which are declared values as well: choose one.")
    if codes and nullable is False:
        raise ValueError(
            f"{what} say that values may be missing, and range_is_nullable=False that none is. "
            "Leave one of them out."
        )
    return tuple(
        int(code) if isinstance(code, float) and code.is_integer() else code for code in codes
    )
