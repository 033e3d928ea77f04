"""Values that nobody declared and those of codebooks, and how no category is written. Public."""

import datetime
import re
from collections.abc import Iterable
from decimal import Decimal

import numpy as np

Value = bool | int | float | Decimal | datetime.time | datetime.date | str | bytes
"""A value in its one spelling (``scalars.canonical``)."""

# A ``datetime`` is a ``date`` to Python, which cannot compare the two.
_KINDS = bool, int | float, Decimal, datetime.time, datetime.datetime, datetime.date, str, bytes


def in_order(values: Iterable[Value]) -> list[Value]:
    """Sorts values: booleans, numbers, decimals, times, moments, days, text and bytes, in order."""
    return sorted(values, key=lambda value: (kind_of(value), value))


def kind_of(value: Value) -> int:
    """The rank of a value's kind in that order: ``True`` and 1 are of two kinds."""
    return next(index for index, kind in enumerate(_KINDS) if isinstance(value, kind))


USUAL_NUMBERS = frozenset(
    {-1.0}
    | {
        sign * number
        for sign in (-1, 1)
        for nines in (10.0**digits - 1 for digits in range(1, 6))
        for number in (nines, nines - 1, nines / 9 * 8, nines / 9 * 7, nines + 0.9)
    }
)
"""Numbers that codebooks use: 9, 99, 998, 88, 77, 999.9 and the like."""

USUAL_DATES = tuple(
    np.datetime64(date, "D")
    for date in (
        *("1678-01-02", "1753-01-01", "1800-01-01", "1899-12-30", "1899-12-31", "1900-01-01"),
        *("1901-01-01", "1970-01-01", "2099-12-31", "2100-01-01", "2199-12-31", "2200-01-01"),
        *("2222-02-22", "2262-04-10"),
    )
)
"""Dates that systems and forms write. The first and the last stand for all that are beyond them."""

_NUMBER = "[-+(]?[0-9][0-9.,'’ ]*[)]?"
_AMOUNT = "-?[0-9][0-9.,'’ ]*[.,][0-9]{2}"

LOOKS = {
    "dates or times": re.compile(
        "([0-9]{4}[-./][0-9]{1,2}[-./][0-9]{1,2}|[0-9]{1,2}[-./][0-9]{1,2}[-./]([0-9]{4}|[0-9]{2})"
        "|[0-9]{1,2}[- ][A-Za-z]{3,9}[- ][0-9]{4})([T ][0-9]{1,2}:[0-9]{2}.*)?"
        "|[0-9]{1,2}:[0-9]{2}(:[0-9]{2})?"
    ),
    "numbers with signs, decimal commas or many decimals": re.compile(
        f"[€$£] ?{_NUMBER}|{_NUMBER} ?[%€$£]|[A-Z]{{3}} {_AMOUNT}|{_AMOUNT} [A-Z]{{3}}"
        "|-?[0-9]{1,3}([.,'’ ][0-9]{3})+[.,][0-9]+|-?[0-9]+([.,][0-9]{4,}|,[0-9]{2})"
        "|-?[0-9][.,][0-9]+[eE][-+]?[0-9]+"
    ),
    "addresses or hashes": re.compile(
        r"[^\s@]+@[^\s@]+|https?://\S+|(?=.{32})[0-9a-fA-F]{8,}(-[0-9a-fA-F]{4,}){0,4}"
    ),
}
"""How cells are written that are seldom categories, of which many rows have the same.

Fewer decimals may be codes, as those of diseases are. No pattern can match a text in many ways, so
each cell takes time in proportion to its length.
"""
