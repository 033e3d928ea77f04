"""Finds what the cells of a column are, and how text is written: truths, dates, times, numbers.

Privacy: it reads cells. It is for the detection of types alone, which says that these are public.
"""

import re
from collections.abc import Iterator, Sequence
from datetime import time
from decimal import Decimal
from itertools import permutations, product

import pandas as pd

from sdv_privpgd.columns.number_formats import NumberFormat
from sdv_privpgd.columns.readings import MOST_PLACES
from sdv_privpgd.columns.scalars import decimal_places, number_in, real_numbers
from sdv_privpgd.columns.values import LOOKS

_DAYS = (
    "%d.%m.%Y", "%d/%m/%Y", "%m/%d/%Y", "%d-%m-%Y", "%m-%d-%Y", "%Y/%m/%d", "%Y.%m.%d",
    "%d.%m.%y", "%d/%m/%y", "%m/%d/%y", "%d-%m-%y", "%d %B %Y", "%d %b %Y", "%d-%b-%Y", "%d.%m.",
    "%Y-%m-%d", "%Y-%m", "%Y/%m", "%m/%Y", "%m-%Y", "%b-%Y", "%b %Y", "%B %Y",
)  # fmt: skip
_TIMES = "%H:%M", "%H:%M:%S", "%I:%M %p", "%I:%M:%S %p"
_MOMENTS = tuple(" ".join(each) for each in product(_DAYS, _TIMES))

_TRUTHS = frozenset(
    [
        *("true/false", "yes/no", "y/n", "t/f", "on/off", "ja/nein", "j/n", "wahr/falsch"),
        *("oui/non", "o/n", "vrai/faux", "si/no", "sí/no", "s/n", "sim/não", "sim/nao"),
        *("vero/falso", "ja/nee", "ja/nej", "tak/nie", "ano/ne", "igen/nem", "да/нет"),
    ]
)
"""What forms write for true and false."""

_NUMBER = re.compile("([^0-9]*)([0-9](?:[0-9.,'\u2019 \u00a0\u2009\u202f]*[0-9])?)([^0-9]*)")
_PLAIN = re.compile("-?(0|[1-9][0-9]*|[0-9]+[.,][0-9]+)")
_SELDOM = _PLAIN, *LOOKS.values()
_DIGITS = re.compile("(19|20)[0-9]{6}")
_SIGN = re.compile("[-+()\u2212]")
_NEGATIVE = {"(": ("(", ")"), "\u2212": ("\u2212", "")}
"""What stands in front of a negative number and behind it, by the first of both."""
_SCORE = re.compile(":[0-9](?![0-9])")
"""Minutes and seconds have two digits: 2:1 is a score or a ratio."""
_NEVER = re.compile("9999|0001")
"""Years of dates that stand for never, which pandas does not hold."""


def type_of(cells: Sequence[str]) -> str | None:
    """Returns the type of a column with these different cells, as ``COLUMN=TYPE`` says it.

    All cells can be read in it. There is none of cells that can be read in two ways, such as
    05/01/2024, and none of codes.
    """
    are_words = len(cells) == 2 and {*cells} != {"True", "False"}  # these need no declaration
    for both in permutations(cells) if are_words else ():
        if "/".join(both).casefold() in _TRUTHS:
            return f"bool:{'/'.join(both)}"
    if all(map(_DIGITS.fullmatch, cells)):
        return "date:%Y%m%d" if _are_dates(cells, "%Y%m%d") else None
    dates = [] if any(map(_SCORE.search, cells)) else [_NEVER.sub("2000", cell) for cell in cells]
    for word, formats in (("time", _TIMES), ("date", (*_DAYS, *_MOMENTS))):
        if found := [each for each in formats if _are_dates(dates, each)]:
            return f"{word}:{exactly(dates, found[0])}" if len(found) == 1 else None
    read: dict[tuple[str, ...], str] = {}
    for example in _examples(cells):
        numbers = tuple(map(NumberFormat(example).plain, cells))
        if all(number_in(each, None) is not None for each in numbers):
            read.setdefault(numbers, example)
    return f"number:{next(iter(read.values()))}" if len(read) == 1 else None


def are_seldom_categories(cells: Sequence[str]) -> bool:
    """Whether nine of ten of many different cells are numbers or dates, as beside a sum."""
    found = [cell for cell in cells if any(look.fullmatch(cell) for look in _SELDOM)]
    return len(found) > 0.9 * max(len(cells), 20)


def _are_dates(cells: Sequence[str], written: str) -> bool:
    """Whether all cells are, if there are any. Most formats fail on the first one."""
    return len(cells) > 0 and all(
        pd.to_datetime(list(some), format=written, errors="coerce").notna().all()
        for some in (cells[:1], cells)
    )


def may_swap(cells: Sequence[str], written: str) -> bool:
    """Whether days may be months: the format begins with one, and reads all cells either way."""
    swapped = written.translate({ord("d"): "m", ord("m"): "d"})
    return not written.startswith("%Y") and swapped != written and _are_dates(cells, swapped)


def exactly(cells: Sequence[str], written: str) -> str:
    """The same, without zeros in front or with seconds of 00, where that writes all cells."""
    if written.endswith("%z"):
        return written
    read = pd.to_datetime(list(cells), format=written, errors="coerce")
    formats = [
        re.sub(f"%([{parts}])", r"%-\1", form)
        for form in (written.replace("%S", "00"), written)
        for parts in ("-", "dm", "HI", "dmHI")
    ]
    return next((each for each in formats if [*read.strftime(each)] == [*cells]), written)


def are_all(kind: type, column: pd.Series) -> bool:
    """Whether all cells, of which none is missing, are of a kind that pandas has no type for."""
    return column.dtype.kind == "O" and len(column) > 0 and all(isinstance(c, kind) for c in column)


def detectable(table: pd.DataFrame) -> pd.DataFrame:
    """The same table without decimals, times, bytes and Arrow's long text, which SDV fails on."""
    found = {}
    for name, column in table.items():
        known = column.dropna()
        if are_all(Decimal, known):
            found[name] = known.astype(float).reindex(table.index)
        elif are_all(time, known):
            found[name] = pd.to_datetime(known.astype(str), format="mixed").reindex(table.index)
        elif column.dtype.kind == "U":
            found[name] = column.astype(object)
        elif are_all(bytes, known):
            found[name] = known.map(repr).reindex(table.index)
    return table.assign(**found)


def places_of(column: pd.Series, many: float) -> int | None:
    """The decimal places of numbers, if a part of those that are not whole have as many."""
    places = decimal_places(*real_numbers(column), MOST_PLACES)
    most, has_some = int(places.max()), int((places > 0).sum())
    is_usual = (places == most).sum() >= many * has_some
    return most if most <= MOST_PLACES and is_usual else None


def _examples(cells: Sequence[str]) -> Iterator[str]:
    """The formats in which the numbers may be written, if the same stands around all of them."""
    around, numbers, signs = set(), [], ("", "")
    for cell in cells:
        if (found := _NUMBER.fullmatch(cell)) is None:
            return
        around.add((_SIGN.sub("", found[1]), _SIGN.sub("", found[3])))
        numbers.append(found[2])
        signs = ("", "-") if found[3] == "-" else signs
        signs = next((_NEGATIVE[each] for each in found[1] if each in _NEGATIVE), signs)
    if len(around) > 1:  # spaces may line the numbers up
        around = {(before.strip(), after.strip()) for before, after in around}
    if len(around) > 1:
        return
    before, after = around.pop()
    # A letter beside the digits makes a code of them, and so does a zero before others.
    is_code = before[-1:].isalpha() or (len(after) == 1 and after.isalpha())
    if is_code or any(re.match("0[0-9]", each) for each in numbers):
        return
    if not (before or after) and "".join(numbers).isdigit() and "\u2212" not in "".join(cells):
        return
    for group, point in product(("", ",", ".", " ", "'"), ".,"):
        if group != point:
            places = max(len(each.partition(point)[2]) for each in numbers)
            ends = point + "5".ljust(places, "0") if places else ""
            yield f"{signs[0]}{before}1{group}234{ends}{after}{signs[1]}"
