"""Values of columns whose categories nobody declared, each in one spelling."""

import datetime
from collections.abc import Iterable
from decimal import Decimal

Value = bool | int | float | Decimal | datetime.time | str | bytes
"""A value in its one spelling (``scalars.canonical``)."""

_KINDS = bool, int | float, Decimal, datetime.time, str, bytes


def in_order(values: Iterable[Value]) -> list[Value]:
    """Truths, numbers, decimals, times of day, then text, each sorted."""
    return sorted(values, key=lambda value: (kind_of(value), value))


def kind_of(value: Value) -> int:
    """The place of a value's kind in that order: ``True`` and 1 are of two kinds."""
    return next(index for index, kind in enumerate(_KINDS) if isinstance(value, kind))
