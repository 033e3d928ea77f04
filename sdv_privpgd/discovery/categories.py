"""The categories of a column, and the rare ones that share a code, as noisy counts show them."""

import math
from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any

import numpy as np

from sdv_privpgd.base.progress import Progress, silent
from sdv_privpgd.columns.cutting import MOST_CATEGORIES
from sdv_privpgd.columns.facts import CategoryFacts
from sdv_privpgd.columns.merging import Merging
from sdv_privpgd.columns.values import Value, in_order
from sdv_privpgd.discovery.transcript import Asker
from sdv_privpgd.estimate.support import pooled
from sdv_privpgd.privacy.curator import Curator
from sdv_privpgd.privacy.measurement import Measurement
from sdv_privpgd.privacy.queries import MarginalQuery

MANY = 100
"""Attributes with fewer categories keep them all (benchmark paper, appendix A.4.1)."""

RARE = Fraction(2, 1000)
"""The part of all rows below which a category is rare, there called theta."""

_DEVIATIONS = 3
"""A category is rare as well if its noisy count is below so many standard deviations."""

_FIRST_SHARE = Fraction(1, 4)
"""Part of the budget for categories that the first question takes: it is the second that finds the
rarest ones, and it is for fewer columns."""

Values = dict[str, list[tuple[Value | None, int]]]
"""Of some columns: values and their noisy counts."""


def merge_rare(
    curator: Curator,
    num_categories: Mapping[str, int],
    mu_squared: Fraction,
    *,
    progress: Progress = silent,
) -> dict[str, Merging]:
    """For each attribute with many categories those that share a code, and have the last one.

    Chen et al. 2025 (the benchmark paper), Algorithm 1: the categories of which fewer rows are
    counted than 0.2 % of all, or than three standard deviations of the noise. The attributes are
    counted together, which is an equal share of the budget for each. All declared categories are
    counted, where that paper's code counts those that occur, which tells which ones do not.
    Values are drawn evenly from the merged code.

    Privacy: ``mu_squared`` in all, charged by the curator; nothing if no attribute has many.

    Args:
        curator: Of a table whose attributes have a code for each category.
        num_categories: For each attribute to look at how many of its first codes are categories.
        mu_squared: For all attributes together.
        progress: Told of the measurements.
    """
    names = [name for name, number in num_categories.items() if number >= MANY]
    answers = curator.measure(
        [MarginalQuery((name,)) for name in names],
        mu_squared,
        what="categories of columns that have many",
        progress=progress,
    )
    found = {}
    for name, answer in zip(names, answers, strict=True):
        counts = answer.answer[: num_categories[name]]
        least = max(float(RARE) * float(counts.sum()), _DEVIATIONS * answer.stddev)
        is_kept = counts >= least
        codes = np.where(is_kept, np.cumsum(is_kept) - 1, is_kept.sum())
        found[name] = Merging(tuple(codes.tolist()), (1.0,) * len(codes))
    return found


def found_categories(
    asker: Asker,
    names: Sequence[str],
    mu_squared: Fraction,
    delta: Fraction,
    rows: Measurement | None,
) -> tuple[Values, Fraction]:
    """Returns values of columns that many rows have, with noisy counts, and what it cost. Public.

    A first question finds the most frequent ones. The others are asked for with less noise where
    rows are left that have none of the values found, which is where budget is worth most.
    """
    if not names:
        return {}, Fraction(0)
    first = mu_squared * _FIRST_SHARE
    found = asker.discover(first, delta, what="categories of undeclared columns", names=names)
    others = [name for name in names if has_others(found[name], asker.stddev, rows)]
    if not others:
        return found, first
    what = "rarer categories of undeclared columns"
    more = asker.discover(mu_squared - first, delta, what=what, names=others)
    return found | {name: [*found[name], *more[name]] for name in others}, mu_squared


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
