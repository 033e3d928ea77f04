"""The warning after a fit of a number or date that many rows have, far from all others: a code?"""

import math
from collections.abc import Mapping

import numpy as np

from sdv_privpgd.columns.bins import Categories
from sdv_privpgd.columns.column import Column
from sdv_privpgd.columns.labels import code_labels
from sdv_privpgd.columns.usual_codes import USUAL_DATES, USUAL_NUMBERS
from sdv_privpgd.inference.values import CodeValues, code_values
from sdv_privpgd.words import number, share

_MANY, _SURELY = 0.08, 0.05
"""The share of rows at an end that is worth a word, and what it surely must be."""

_SOME, _SOME_SURELY = 0.02, 0.01
"""The same of numbers that are usual codes."""

_OF_A_DATE, _OF_A_DATE_SURELY = 0.04, 0.02
"""The shares of other dates: so early or so late a date is rarer than so large a number."""

_NEAR_IT = 31
"""A code that begins or ends with a usual date, and has no more days, is that date."""

_FEW_MORE = 16
"""The same of a usual number, and the cell is no wider than this part of it."""

_OF_MANY = 1.5
"""Of many empty cells some exceed the error of one, and few so many times that."""

_TO = " – "
"""Stands between the ends of a cell in its label."""

_LATER = " (as which all later dates count, such as 9999-12-31)"

_CELLS = 3
"""A column of fewer cells has nothing that is far from others."""

_FAR = 0.8
"""It is so many times the width of the others away from them."""

_CLEAR = 0.5
"""The part of the other rows whose cells must be told from empty ones."""


def far_away(column: Column, shares: np.ndarray, error: float, declared: Mapping) -> str | None:
    """A sentence if many rows have a number or date at one end, and none has one near it.

    Args:
        column: The column.
        shares: The noisy share of the rows of each code.
        error: What they are off by at most.
        declared: What is declared of it. An end that is declared was meant, unless what lies there
            is a usual code.
    """
    size, is_date = column.num_values, column.sdtype == "datetime"
    is_ranged = is_date or column.sdtype == "numerical"
    if not is_ranged or isinstance(column.cells, Categories) or size < _CELLS:
        return None
    values, shares = code_values(column), shares[:size]
    clear = np.flatnonzero(shares > _OF_MANY * error)
    for place, key in ((0, "range_min"), (-1, "range_max")):
        if len(clear) < _CELLS - 1:
            return None
        code, others = int(clear[place]), clear[1:] if place == 0 else clear[:-1]
        low, high = float(values.lows[others[0]]), float(values.highs[others[-1]])
        if low == high and values.lows[code] != values.highs[code]:
            continue  # the one number is rather a code than all that is in a wide cell
        is_usual = (_is_usual_date if is_date else _is_usual)(column, values, code, place)
        end = declared.get(key)
        if end is not None and not (is_usual and (is_date or values.lows[code] == end)):
            continue
        many, surely = (
            (_SOME, _SOME_SURELY)
            if is_usual
            else ((_OF_A_DATE, _OF_A_DATE_SURELY) if is_date else (_MANY, _SURELY))
        )
        if shares[code] < many or shares[code] - error < surely:
            continue
        if shares[others].sum() < _CLEAR * (shares.sum() - shares[code]):
            continue
        away = low - values.highs[code] if place == 0 else values.lows[code] - high
        step = 0 if column.decimal_places is None else float(column.tick)
        if away <= (1 if is_date else step) or away < _FAR * (high - low):  # it has a neighbor
            continue
        between = slice(code + 1, others[0]) if place == 0 else slice(others[-1] + 1, code)
        rest = shares[between].sum() - error * math.sqrt(shares[between].size)
        if rest > shares[code] / 2:  # a tail, whose end holds what is beyond
            continue
        labels = code_labels(column)
        if is_date:
            span = labels[others[0]].split(_TO)[0], labels[others[-1]].split(_TO)[-1]
        else:
            span = number(low), number(high)
        also = "" if end is None else f", and leave it out of the declared {key}"
        what = "are" if _TO not in labels[code] else "lie in" if is_date else "are"
        later = is_date and _is_last(column, values, code)
        return (
            f"About {share(float(shares[code]))} of the rows of {column.name!r} {what} "
            f"{labels[code]}{_LATER * later}, far from all others, which are {span[0]} to "
            f"{span[1]}. If that is a code, such as for missing, make it missing before a "
            f"fit, with CsvFiles(na=...) where the table is text{also}: now it counts as a "
            f"{'date' if is_date else 'number'}."
        )
    return None


def _is_usual(column: Column, values: CodeValues, code: int, place: int) -> bool:  # noqa: ARG001
    """Whether a code is a number that codebooks use, or has few more, farther from all others."""
    low, high = float(values.lows[code]), float(values.highs[code])
    value = high if place == 0 else low
    return value in USUAL_NUMBERS and high - low <= abs(value) / _FEW_MORE


def _is_last(column: Column, values: CodeValues, code: int) -> bool:
    """Whether a code of dates ends on one of the last days that can be told."""
    end = np.int64(values.highs[code]).astype(f"datetime64[{column.unit}]").astype("datetime64[D]")
    return bool(end > np.datetime64("2262-04-01", "D"))


def _is_usual_date(column: Column, values: CodeValues, code: int, place: int) -> bool:
    """Whether a code of few days begins, or at the other end ends, with a usual date."""
    ends = np.array([values.lows[code], values.highs[code]]).astype(np.int64)
    days = ends.astype(f"datetime64[{column.unit}]").astype("datetime64[D]")
    is_short = days[1] - days[0] < np.timedelta64(_NEAR_IT, "D")
    return bool(is_short) and days[place] in USUAL_DATES
