"""The warning after a fit of a number that many rows have, far from all others: a code, perhaps."""

from collections.abc import Mapping

import numpy as np

from sdv_privpgd.columns.bins import Categories
from sdv_privpgd.columns.column import Column
from sdv_privpgd.columns.labels import code_labels
from sdv_privpgd.inference.values import code_values
from sdv_privpgd.words import number, share

_MANY, _SURELY = 0.08, 0.05
"""The share of rows at an end that is worth a word, and what it surely must be."""

_FAR = 0.8
"""It is so many times the width of the others away from them."""

_CLEAR = 0.5
"""The part of the other rows whose cells must be told from empty ones."""


def far_away(column: Column, shares: np.ndarray, error: float, declared: Mapping) -> str | None:
    """A sentence if many rows have a number at one end, and none has one near it.

    Args:
        column: The column.
        shares: The noisy share of the rows of each code.
        error: What they are off by at most.
        declared: What is declared of it. An end that is declared was meant.

    >>> from sdv_privpgd.columns.parsing import describe
    >>> facts = {"sdtype": "numerical", "range_min": -99, "range_max": 90, "decimal_places": 0}
    >>> age = describe("age", {**facts, "cut_points": [-98, 18, 50]})
    >>> far_away(age, np.array([0.2, 0.0, 0.5, 0.3, 0.0]), 0.01, {})[:61]
    "About 20 % of the rows of 'age' are -99, far from all others,"
    """
    size = column.num_values
    if column.sdtype != "numerical" or isinstance(column.cells, Categories) or size < 3:
        return None
    values, shares = code_values(column), shares[:size]
    clear, many = np.flatnonzero(shares > error), np.flatnonzero(shares - error > _SURELY)
    for place, key in ((0, "range_min"), (-1, "range_max")):
        if not len(many) or shares[many[place]] < _MANY or declared.get(key) is not None:
            continue
        code = int(many[place])
        others = clear[clear != code]
        if not len(others) or clear[place] != code:
            continue
        if shares[others].sum() < _CLEAR * (shares.sum() - shares[code]):
            continue
        low, high = float(values.lows[others[0]]), float(values.highs[others[-1]])
        away = low - values.highs[code] if place == 0 else values.lows[code] - high
        if away > 0 and away >= _FAR * (high - low):
            return (
                f"About {share(float(shares[code]))} of the rows of {column.name!r} are "
                f"{code_labels(column)[code]}, far from all others, which are {number(low)} to "
                f"{number(high)}. If that is a code, such as for missing, make it missing before a "
                "fit, with CsvFiles(na=...) where the table is text: now it counts as a number."
            )
    return None
