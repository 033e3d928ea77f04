"""The benchmark paper's query error and fidelity error, on tables of values.

They follow Chen et al. 2025, appendix A.3, and the code of their evaluator where the text is not
clear. The paper compares synthetic rows with the test split, after decoding. Tables are data frames
of the same columns; ``numeric`` names those that hold numbers, the others hold categories. Missing
is a category of its own, and a missing number is in no range. They are read without protection: no
result is private.
"""

from collections.abc import Collection
from typing import Literal

import numpy as np
import pandas as pd

from sdv_privpgd.base.domain import Clique, Domain
from sdv_privpgd.metrics.pairs import l1_by_pair
from sdv_privpgd.metrics.queries import IntervalQuery
from sdv_privpgd.metrics.rows import Columns

Mode = Literal["paper", "tab_bench"]


def range_errors(
    real: pd.DataFrame,
    synthetic: pd.DataFrame,
    *,
    numeric: Collection[str],
    mode: Mode = "paper",
    num_queries: int = 1_000,
    seed: int = 0,
) -> dict[str, float]:
    """The absolute error of each random 3-way range and point query: 0 to 1. Not private.

    A query draws three distinct columns uniformly. On a numeric column it draws two ends of a
    closed range, uniform from the real table's smallest to its largest number. On another column
    it draws one of the real table's categories, all with the same chance. Categories are numbered
    in the order in which the two tables first show them.

    ``mode="paper"`` is the text's definition. ``"tab_bench"`` is that of the paper's code: the mean
    over the prefixes of one, two and three columns of each query. That code draws columns from an
    unseeded generator; here everything follows from the seed.

    >>> real = pd.DataFrame({"age": [20, 30, 40, 50], "ward": ["A", "A", "B", "B"]})
    >>> synthetic = real.assign(ward="A")
    >>> len(range_errors(real, synthetic, numeric=["age"], num_queries=10))
    10
    """
    sparsity = 3  # columns of a query; a table with fewer uses all
    ours, theirs = _comparable(real, synthetic, numeric)
    generator = np.random.default_rng(seed)
    names = list(ours)
    spans = {name: _span(ours[name], name in numeric) for name in names}
    errors = {}
    for number in range(num_queries):
        axes = generator.choice(len(names), size=min(sparsity, len(names)), replace=False)
        attributes = tuple(names[axis] for axis in axes)
        ends = [_ends(spans[name], name in numeric, generator) for name in attributes]
        lows, highs = zip(*ends, strict=True)
        query = IntervalQuery(attributes=attributes, lows=lows, highs=highs)
        lengths = [len(attributes)] if mode == "paper" else range(1, len(attributes) + 1)
        asked = [query.prefix(length) for length in lengths]
        errors[f"{number}: {query}"] = float(
            np.mean([abs(each.share(ours) - each.share(theirs)) for each in asked])
        )
    return errors


def fidelity_by_pair(
    real: pd.DataFrame, synthetic: pd.DataFrame, *, numeric: Collection[str]
) -> dict[Clique, float]:
    """The total variation distance of each pair's tables: 0 to 1. Not private.

    A numeric column is cut into 100 levels, round(99 (x − min) / (max − min)) with the extremes of
    both tables together; a column of one number is one level, where the code divides by zero. The
    paper's formula sums over pairs; its tables show means.

    >>> real = pd.DataFrame({"age": [20, 30, 40, 50], "ward": ["A", "A", "B", "B"]})
    >>> synthetic = real.assign(ward="A")
    >>> fidelity_by_pair(real, synthetic, numeric=["age"])
    {('age', 'ward'): 0.5}
    """
    ours, theirs = _comparable(real, synthetic, numeric)
    both = {name: np.concatenate((ours[name], theirs[name])) for name in ours}
    codes = {
        name: _levels(values) if name in numeric else values.astype(np.int64)
        for name, values in both.items()
    }
    domain = Domain(tuple(codes), tuple(int(column.max()) + 1 for column in codes.values()))
    table = np.stack(list(codes.values()), axis=1)
    distances = l1_by_pair(domain, table[: len(real)], table[len(real) :])
    return {pair: distance / 2 for pair, distance in distances.items()}


def _comparable(
    real: pd.DataFrame, synthetic: pd.DataFrame, numeric: Collection[str]
) -> tuple[Columns, Columns]:
    """Each table's columns as float64: numbers, or the numbers of the categories."""
    if set(real.columns) != set(synthetic.columns):
        raise ValueError(
            f"The tables need the same columns, got {list(real.columns)} and "
            f"{list(synthetic.columns)}."
        )
    if real.empty or synthetic.empty:
        raise ValueError("Tables need at least one row and one column to be compared.")
    ours, theirs = {}, {}
    for name in real.columns:
        first, second = real[name], synthetic[name]
        if name in numeric:
            ours[name], theirs[name] = (
                column.to_numpy(dtype=np.float64, na_value=np.nan) for column in (first, second)
            )
        else:
            both = pd.concat([first.astype(object), second.astype(object)])
            # Missing, -1, becomes 0.
            codes = pd.factorize(both)[0] + 1.0
            ours[name], theirs[name] = codes[: len(first)], codes[len(first) :]
    return ours, theirs


def _span(values: np.ndarray, is_numeric: bool) -> np.ndarray:
    """The smallest and the largest number, or the categories that there are."""
    if not is_numeric:
        return np.unique(values)
    finite = values[np.isfinite(values)]
    return np.array([finite.min(), finite.max()] if len(finite) else [np.nan, np.nan])


def _ends(
    span: np.ndarray, is_numeric: bool, generator: np.random.Generator
) -> tuple[float, float]:
    """Both ends of a random range, or of a random point."""
    if is_numeric:
        ends = np.sort(span[0] + (span[1] - span[0]) * generator.random(2))
        return float(ends[0]), float(ends[1])
    point = float(generator.choice(span))
    return point, point


def _levels(values: np.ndarray) -> np.ndarray:
    """The levels of numbers, int64; what is no number has a level after the others."""
    num_levels = 100  # levels of a numeric column in the fidelity error
    finite = np.isfinite(values)
    levels = np.full(len(values), num_levels, dtype=np.int64)
    if finite.any():
        low, high = values[finite].min(), values[finite].max()
        share = (values[finite] - low) / (high - low) if high > low else np.zeros(finite.sum())
        levels[finite] = np.rint((num_levels - 1) * share).astype(np.int64)
    return levels
