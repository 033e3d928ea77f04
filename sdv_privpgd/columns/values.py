"""Values of columns whose categories nobody declared, each in one spelling."""

import datetime
from collections.abc import Iterable
from decimal import Decimal

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
