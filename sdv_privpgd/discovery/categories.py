"""The categories of a column, and the rare ones that share a code, as noisy counts show them."""

import math
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np

from sdv_privpgd.columns.cutting import MOST_CATEGORIES
from sdv_privpgd.columns.facts import CategoryFacts
from sdv_privpgd.columns.values import Value, in_order
from sdv_privpgd.discovery.looks import LOOK_SHARE
from sdv_privpgd.discovery.transcript import Asker
from sdv_privpgd.estimate.support import pooled
from sdv_privpgd.privacy.queries import Measurement

Values = dict[str, list[tuple[Value | None, int]]]
"""Of some columns: values and their noisy counts."""


def found_categories(
    asker: Asker,
    names: Sequence[str],
    mu_squared: Fraction,
    delta: Fraction,
    rows: Measurement | None,
) -> tuple[Values, Fraction]:
    """Returns values of columns that many rows have, with noisy counts, and what it cost. Public.

    A first question finds the most frequent ones. The others are asked for with less noise where
    rows are left that have none of the values found, which is where budget is worth most: it is the
    second question that finds the rarest ones, and it is for fewer columns.
    """
    if not names:
        return {}, Fraction(0)
    first = mu_squared * LOOK_SHARE
    found = asker.discover(first, delta, what="categories of undeclared columns", names=names)
    others = [name for name in names if has_others(found[name], asker.stddev, rows)]
    if not others:
        return found, first
    what = "rarer categories of undeclared columns"
    more = asker.discover(rarest_part(mu_squared), delta, what=what, names=others)
    return found | {name: [*found[name], *more[name]] for name in others}, mu_squared


def rarest_part(mu_squared: Fraction) -> Fraction:
    """Returns what the second question has of the budget for categories."""
    return mu_squared * (1 - LOOK_SHARE)


def has_others(
    found: list[tuple[Value | None, int]], stddev: float, rows: Measurement | None
) -> bool:
    """Returns whether more rows than some noise have none of the values that were found. Public.

    ``stddev`` is that of their counts.
    """
    assert rows is not None  # asked for wherever categories are
    rest = int(rows.answer[0]) - sum(number for _, number in found)
    return rest > math.hypot(rows.stddev, stddev * math.sqrt(len(found))) / 2


def categories(known: CategoryFacts, found: list[tuple[Value | None, int]]) -> CategoryFacts:
    """Returns the distinct categories among the values found; other values are "other" or missing.

    They are missing unless some category is a word: a number for them would be computed with. Of
    two values that Python finds equal the more frequent one is kept.
    """
    most: dict[Any, tuple[int, Value]] = {}
    for key, number in found:
        if key is not None and (key not in most or number > most[key][0]):
            most[key] = number, key
    values = in_order(key for _, key in most.values())
    frequencies = None
    if len(values) > MOST_CATEGORIES:
        number = {key: number for number, key in most.values()}
        frequencies = tuple(float(max(number[key], 0)) for key in values)
    other = None
    if not values or any(isinstance(value, str) for value in values):
        other = "other"
        while other in values:
            other = f"any {other}"
    return CategoryFacts(
        values=tuple(values),
        other=other,
        nullable=True if other is None else None,
        is_ordered=known.is_ordered,
        frequencies=frequencies,
    )


def frequencies(known: CategoryFacts, answer: Measurement) -> CategoryFacts:
    """The frequency of each declared category, with little noise."""
    counts = answer.answer[: len(known.values or ())].astype(np.float64)
    held = pooled(counts, np.full(counts.size, answer.stddev**2)).tolist()
    return CategoryFacts(is_ordered=known.is_ordered, frequencies=tuple(held))
