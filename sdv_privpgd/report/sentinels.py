"""The warning after a fit of a number that many rows have, far from all others: a code, perhaps."""

import math
from collections.abc import Mapping

import numpy as np

from sdv_privpgd.columns.bins import Categories
from sdv_privpgd.columns.column import Column
from sdv_privpgd.columns.labels import code_labels
from sdv_privpgd.inference.values import code_values
from sdv_privpgd.words import number, share

_MANY, _SURELY = 0.08, 0.05
"""The share of rows at an end that is worth a word, and what it surely must be."""

_SOME, _SOME_SURELY = 0.02, 0.01
"""The same of numbers that are usual codes."""

_USUAL = {-1.0} | {
    sign * number
    for sign in (-1, 1)
    for nines in (10.0**digits - 1 for digits in range(1, 6))
    for number in (nines, nines - 1, nines / 9 * 8, nines / 9 * 7)
}
"""Numbers that codebooks use for missing, unknown and refused: 9, 99, 998, 88, 77 and the like."""

_OF_MANY = 1.5
"""Of many empty cells some exceed the error of one, and few so many times that."""

_CELLS = 3
"""A column of fewer cells has nothing that is far from others."""

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
        declared: What is declared of it. An end that is declared was meant, unless it is a usual
            code itself.

    >>> from sdv_privpgd.columns.parsing import describe
    >>> facts = {"sdtype": "numerical", "range_min": -99, "range_max": 90, "decimal_places": 0}
    >>> age = describe("age", {**facts, "cut_points": [-98, 18, 50]})
    >>> far_away(age, np.array([0.2, 0.0, 0.5, 0.3, 0.0]), 0.01, {})[:61]
    "About 20 % of the rows of 'age' are -99, far from all others,"
    """
    size = column.num_values
    size = column.num_values
    if column.sdtype != "numerical" or isinstance(column.cells, Categories) or size < _CELLS:
        return None
    values, shares = code_values(column), shares[:size]
    clear = np.flatnonzero(shares > _OF_MANY * error)
    for place, key in ((0, "range_min"), (-1, "range_max")):
        if len(clear) < _CELLS - 1:
            return None
        code, others = int(clear[place]), clear[1:] if place == 0 else clear[:-1]
        low, high = float(values.lows[others[0]]), float(values.highs[others[-1]])
        value, end = float(values.lows[code]), declared.get(key)
        is_usual = value == values.highs[code] and value in _USUAL
        if end is not None and not (is_usual and value == end):
            continue
        many, surely = (_SOME, _SOME_SURELY) if is_usual else (_MANY, _SURELY)
        if shares[code] < many or shares[code] - error < surely:
            continue
        if shares[others].sum() < _CLEAR * (shares.sum() - shares[code]):
            continue
        away = low - values.highs[code] if place == 0 else values.lows[code] - high
        step = 0 if column.decimal_places is None else float(column.tick)
        if away <= step or away < _FAR * (high - low):  # a number has a neighbor
            continue
        between = slice(code + 1, others[0]) if place == 0 else slice(others[-1] + 1, code)
        rest = shares[between].sum() - error * math.sqrt(shares[between].size)
        if rest > shares[code] / 2:  # a tail, whose end holds what is beyond
            continue
        also = "" if end is None else f", and leave it out of the declared {key}"
        return (
            f"About {share(float(shares[code]))} of the rows of {column.name!r} are "
            f"{code_labels(column)[code]}, far from all others, which are {number(low)} to "
            f"{number(high)}. If that is a code, such as for missing, make it missing before a "
            f"fit, with CsvFiles(na=...) where the table is text{also}: now it counts as a number."
        )
    return None
