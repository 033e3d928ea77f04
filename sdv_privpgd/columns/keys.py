"""Keys of rows: the values of a pattern one after another, and the dtypes that hold them. Public.

They follow from what is declared alone.
"""

import math
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import chain, count
from typing import Any

import pandas as pd

from sdv_privpgd.base.arguments import shown
from sdv_privpgd.columns.dtypes import cast, categories_in, is_decimal, is_whole

if sys.version_info >= (3, 11):
    from re import _parser as parser  # pyright: ignore[reportAttributeAccessIssue]
else:
    import sre_parse as parser


def keys_of(name: str, regex_format: str | None) -> Iterator[Any]:
    """Returns all keys that a pattern can write, each once, in order; whole numbers without one.

    Raises ``ValueError`` for a pattern that cannot be counted up.
    """
    if regex_format is None:
        return count()
    places = _read(name, regex_format)
    texts = _texts(places)
    return texts if all(isinstance(place, str) for place in places) else _distinct(texts)


def too_few(patterns: Mapping[str, str | None], num_rows: int) -> list[str]:
    """Sentences on keys whose patterns write fewer values than a table has rows. Public."""
    return [
        f"The key {name!r} has fewer values in its pattern {pattern!r} than the table has rows, "
        f"which are {num_rows:,} or more, each with a key of its own. Declare a longer pattern."
        for name, pattern in patterns.items()
        if pattern is not None and _number(_read(name, pattern)) < num_rows
    ]


def _read(name: str, regex_format: str) -> list[Any]:
    try:
        parsed = parser.parse(regex_format)
        if parsed.getwidth()[1] > 200:
            raise ValueError("it may have more than 200 characters")
        return _places(parsed)
    except (re.error, TypeError, ValueError) as error:
        raise ValueError(
            f"The key {name!r} has the regex_format {shown(regex_format)}, which cannot be "
            f"counted up: {error}. Use characters, classes, groups, alternatives and repeats as "
            "[0-9]{1,8}."
        ) from None


def _number(places: Sequence[Any]) -> int:
    """Returns how many texts there are, those that can be written in several ways several times."""
    return math.prod(
        len(place) if isinstance(place, str) else sum(map(_number, place)) for place in places
    )


def _places(pattern: Any) -> list[Any]:
    """Returns the places of a parsed pattern: the characters of each, or what may stand there."""
    found: list[Any] = []
    for kind, given in pattern:
        if str(kind) == "LITERAL":
            found.append(chr(given))
        elif str(kind) == "IN":
            found.append("".join(dict.fromkeys(chain.from_iterable(map(_characters, given)))))
        elif str(kind) == "SUBPATTERN":
            found += _places(given[-1])
        elif str(kind) == "BRANCH":
            found.append([_places(each) for each in given[1]])
        elif str(kind) == "MAX_REPEAT" and given[1] <= 200:
            least, most, own = *given[:2], _places(given[2])
            found += own * least
            found += [[own * more for more in range(most - least + 1)]] if most > least else []
        else:
            raise ValueError(f"it has a part of the kind {str(kind).lower()}")
    return found


def _characters(part: tuple[Any, Any]) -> Iterator[str]:
    kind, given = part
    if str(given) == "CATEGORY_DIGIT":
        return iter("0123456789")
    if str(kind) not in ("LITERAL", "RANGE"):
        raise ValueError(f"it has a part of the kind {str(given or kind).lower()}")
    low, high = (given, given) if str(kind) == "LITERAL" else given
    return map(chr, range(low, high + 1))


def _texts(places: Sequence[Any]) -> Iterator[str]:
    if not places:
        yield ""
        return
    first, *rest = places
    for start in first if isinstance(first, str) else chain.from_iterable(map(_texts, first)):
        for end in _texts(rest):
            yield start + end


def _distinct(texts: Iterator[str]) -> Iterator[str]:
    seen = set()
    for text in texts:
        if text not in seen:
            seen.add(text)
            yield text


def on_patterns(patterns: Mapping[str, str | None], dtypes: Mapping[str, Any]) -> list[str]:
    """Sentences on ids of whole numbers whose patterns write a number in several ways. Public."""
    return [
        f"The column {name!r} has whole numbers, and its regex_format {pattern!r} writes some of "
        "them in several ways, such as 7 and 07: ids would come out twice. Give it a pattern "
        "without zeros in front, such as '[1-9][0-9]{0,3}', or of one length, or read the column "
        "as text."
        for name, pattern in patterns.items()
        if pattern and is_whole(dtypes.get(name)) and _writes_twice(_read(name, pattern))
    ]


def _writes_twice(places: Sequence[Any]) -> bool:
    """Whether lengths differ and longer texts than "0" may begin with a zero, as 07 beside 7."""
    return not all(isinstance(place, str) for place in places) and _is_led_by_zero(places)


def _is_led_by_zero(places: Sequence[Any]) -> bool:
    if not places:
        return False
    first, *rest = places
    if isinstance(first, str):
        return "0" in first and any(isinstance(place, str) or any(place) for place in rest)
    return any(_is_led_by_zero([*each, *rest]) for each in first)


def in_dtype(values: pd.Series, dtype: Any) -> pd.Series:
    """Returns generated values in a dtype that no cell chose, if it can hold them."""
    if dtype is None or _would_merge(values, dtype):
        return values
    with suppress(ValueError, TypeError, ArithmeticError, NotImplementedError):
        natural = pd.Series(pd.to_numeric(values)) if is_whole(dtype) else values
        written = cast(natural, categories_in(dtype, natural.dropna().unique().tolist()))
        # More keys than the dtype can count are not clipped: they would be the same.
        return natural if is_whole(dtype) and natural.ne(written).any() else written
    return values


def _would_merge(values: pd.Series, dtype: Any) -> bool:
    """Whether text that is made up may become fewer different numbers, truths or dates."""
    texts = [each for each in values if isinstance(each, str)]
    if not texts or isinstance(dtype, pd.CategoricalDtype | pd.StringDtype):
        return False
    if is_whole(dtype):
        return not all(re.fullmatch("[0-9]+", text) for text in texts)
    return dtype.kind in "fcbmM" or is_decimal(dtype)
