"""The warnings after a fit about the values of single columns, and of two dates.

Cells that are missing, unreadable or others in some of the rows; a number or date that many rows
have, far from all others: a code? Two dates that seem to be in order, which nobody said. Columns of
which a few wide cells, or a few rows, decide the mean. All follow from noisy answers and from what
was declared or found: post-processing, public and free.
"""

import math
from typing import NamedTuple

import numpy as np
import pandas as pd

from sdv_privpgd.base.words import listed, number, share
from sdv_privpgd.columns.bins import Categories
from sdv_privpgd.columns.column import Column
from sdv_privpgd.columns.facts import ColumnFacts
from sdv_privpgd.columns.labels import code_labels
from sdv_privpgd.columns.usual_codes import USUAL_DATES, USUAL_NUMBERS
from sdv_privpgd.columns.wording import words_of
from sdv_privpgd.estimate.noisy_tables import NoisyTable
from sdv_privpgd.inference.values import HEAVIEST, CodeValues, code_values
from sdv_privpgd.report.known_facts import SURE, Facts

_CLEARLY, _SOME_UNREAD = 4.0, 0.01
"""So many standard deviations of the noise, and this share of the rows, are worth a word."""

_OTHER, _OTHER_SURELY = 0.1, 0.05
"""The share of rows whose value was not found that is worth a word, and what it surely must be."""

_UNREAD_NAMED, _OTHERS_NAMED = 5, 10


def on_unread(fitted: Facts, told: set[str]) -> list[str]:
    """One sentence on all columns with some cells that nobody said may be missing. Public.

    A cell that is not as declared, such as a category that the codebook lacks, counts as missing.
    So nobody can tell how many of them are.

    Args:
        fitted: The facts after the fit.
        told: The columns of which something else was said.
    """
    found = []
    for column in fitted.columns:
        if column.name in told or column.name not in fitted.tables or not _may_be_unread(column):
            continue
        if getattr(fitted.declared.get(column.name), "nullable", None) is not None:
            continue
        table = fitted.tables[column.name]
        count, total = float(table.counts[-1]), fitted.total.value
        if count > max(_SOME_UNREAD * total, _CLEARLY * math.sqrt(table.variance)):
            found.append(f"{column.name} ({share(count / total)})")
    if not found:
        return []
    return [
        f"Some cells are missing, or are not as declared: those of {listed(found, _UNREAD_NAMED)}. "
        "A category that was not declared, text among numbers or dates, such as '<0.5', or an "
        "infinite number counts as missing. If they are missing indeed, declare "
        "range_is_nullable=True."
    ]


def on_others(fitted: Facts, told: set[str]) -> list[str]:
    """One sentence on all columns of which a part of the rows has values too rare to be found.

    Nothing is said where somebody named a value for all others, who will have meant it. Public.

    Args:
        fitted: The facts after the fit.
        told: The columns of which something else was said.
    """
    found = []
    for column in fitted.columns:
        cells = column.cells
        if not (isinstance(cells, Categories) and cells.has_other) or column.name in told:
            continue
        declared = getattr(fitted.declared.get(column.name), "other", None)
        if declared is not None or column.name not in fitted.tables:
            continue
        table, total = fitted.tables[column.name], fitted.total.value
        part = float(table.counts[column.num_values - 1]) / total
        if part >= _OTHER and part - SURE * math.sqrt(table.variance) / total >= _OTHER_SURELY:
            found.append((part, f"{column.name} ({share(part)} {cells.values[-1]!r})"))
    if not found:
        return []
    most = [text for _, text in sorted(found, reverse=True)]
    return [
        f"Values that are too rare to be found became one: those of {listed(most, _OTHERS_NAMED)}. "
        "Declare the range_values of these columns, put rare ones together before a fit, or leave "
        "the columns out."
    ]


def _may_be_unread(column: Column) -> bool:
    """Whether a cell that is not missing may count as missing."""
    if not column.nullable:
        return False
    if isinstance(column.cells, Categories):
        return not column.cells.has_other
    return not has_values_alone(column)


def has_values_alone(column: Column) -> bool:
    """Whether its type lets a column hold finite numbers, truths or dates, and no other word."""
    dtype = column.dtype
    return isinstance(dtype, np.dtype | pd.api.extensions.ExtensionDtype) and (
        (pd.api.types.is_numeric_dtype(dtype) and dtype.kind != "f")
        or pd.api.types.is_datetime64_any_dtype(dtype)
    )


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


def far_away(
    column: Column, shares: np.ndarray, error: float, declared: ColumnFacts | None
) -> str | None:
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
    values, shares, words = code_values(column), shares[:size], words_of(declared)
    clear = np.flatnonzero(shares > _OF_MANY * error)
    for place, key in ((0, "range_min"), (-1, "range_max")):
        if len(clear) < _CELLS - 1:
            return None
        code, others = int(clear[place]), clear[1:] if place == 0 else clear[:-1]
        low, high = float(values.lows[others[0]]), float(values.highs[others[-1]])
        if low == high and values.lows[code] != values.highs[code]:
            continue  # the one number is rather a code than all that is in a wide cell
        is_usual = (_is_usual_date if is_date else _is_usual)(column, values, code, place)
        end = words.get(key)
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


_RARELY, _OFTEN = 0.05, 0.2
"""At most this share of the rows seems to have the dates the other way round, by their cells, and
at least that share would, if the columns did not depend on each other."""


def on_order(fitted: Facts) -> list[str]:
    """Sentences on pairs of dates that are in order as far as their noisy table shows. Public.

    Within a cell the rows know of no order: stays would end before they begin.
    """
    ordered = {frozenset((each.low.name, each.high.name)) for each in fitted.schema.differences}
    columns = {each.name: each for each in fitted.columns if each.sdtype == "datetime"}
    said = []
    for (one, other), table in (each for each in fitted.noisy.items() if len(each[0]) == 2):
        if one not in columns or other not in columns or frozenset((one, other)) in ordered:
            continue
        later = _before(columns[one], columns[other])
        earlier = _before(columns[other], columns[one]).T
        both = [_share(table, cells) for cells in (earlier, later)]
        if any(share.is_rare for share in both):
            (rarer, more), names = sorted(both, key=lambda share: share.held), (one, other)
            first, last = names if rarer is both[0] else names[::-1]
            is_told = more.held - rarer.held > more.error + rarer.error
            seems = (
                f"{last!r} seems never to be before {first!r}"
                if is_told
                else f"{one!r} and {other!r} seem to be close to each other in all rows"
            )
            which = "With" if is_told else "If one is never before the other: with"
            low, high = (repr(first), repr(last)) if is_told else ("earlier", "later")
            said.append(
                f"{seems}, but nothing says how, and the rows do not know by less than their "
                f"cells are wide: dates may be in the wrong order there. {which} SDV's constraint "
                f"Inequality({low}, {high}) in PrivPGDSynthesizer they are not, and the time "
                "between them is modelled as well."
            )
    return said


def _before(one: Column, other: Column) -> np.ndarray:
    """For each code of one date and each of another, whether the first surely is earlier."""
    highs = _moments(one, code_values(one).highs)
    lows = _moments(other, code_values(other).lows)
    return highs[:, None] < lows[None, :]


def _moments(column: Column, ticks: np.ndarray) -> np.ndarray:
    return ticks.astype(np.int64).astype(f"datetime64[{column.unit}]")


class _Share(NamedTuple):
    """The share of rows in some cells of a pair, its error, and what it would be by chance."""

    held: float
    error: float
    by_chance: float

    @property
    def is_rare(self) -> bool:
        """Whether the cells surely hold few rows, and far fewer than by chance."""
        is_low = self.held < _RARELY and self.held + self.error < self.by_chance / 2
        return self.by_chance > _OFTEN and is_low


def _share(table: NoisyTable, cells: np.ndarray) -> _Share:
    counts = table.counts[: cells.shape[0], : cells.shape[1]]
    total = max(float(counts.sum()), 1.0)
    margins = (np.maximum(counts.sum(axis=axis), 0.0) / total for axis in (1, 0))
    return _Share(
        held=float((counts * cells).sum()) / total,
        error=SURE * math.sqrt(table.variance * np.count_nonzero(cells)) / total,
        by_chance=float((np.outer(*margins) * cells).sum()),
    )


_MUCH = 1.0
"""Rows in a code that reaches far out are worth a word if they could move the mean by this many
mean distances from the median."""

_FEW_VALUES = 0.05
"""Nothing is said of the mean of values that fewer of the rows have: noise is all there is."""

_CROWDED = 0.25
"""The share of rows in one cell of several values from which on it is worth a word."""

_MANY_FAR = 0.1
"""The share of rows in codes that reach far out from which on they are not few."""

_NAMED = 3


def on_wide_cells(fitted: Facts) -> list[str]:
    """Returns sentences on columns whose mean a few wide cells, or a few rows, decide. Public."""
    even, heavy, far, unknown, crowded = [], [], [], [], []
    for column in fitted.columns:
        table = fitted.tables.get(column.name)
        if column.sdtype != "numerical" or table is None:
            continue
        counts = table.counts[: column.num_values]
        if counts.sum() <= _FEW_VALUES * fitted.total.value:
            continue
        values, errors = code_values(column), SURE * math.sqrt(table.variance)
        far_out = values.far_reaching(counts, errors, _MUCH)
        if values.is_shaped and counts[far_out].sum() > _MANY_FAR * counts.sum():
            unknown.append(column.name)
        elif values.heavy(counts, HEAVIEST).any():
            (heavy if values.is_shaped else even).append(column.name)
        elif not values.is_shaped and values.crowded(counts, errors, _CROWDED).any():
            crowded.append(column.name)
        elif far_out.any():
            far.append(column.name)
    said = []
    if even:
        said.append(
            f"Much of the sum of {listed(even, _NAMED)} lies in a few wide cells, of which nothing "
            "says where in them the rows are: they are drawn evenly, values that many rows share, "
            "such as 0, are lost, and means may be far off. Declare cut_points for it, narrow "
            "where rows are many, or a smaller range."
        )
    if crowded:
        said.append(
            f"More than {share(_CROWDED)} of the rows of {listed(crowded, _NAMED)} lie in one "
            "cell, in which they are drawn evenly: values that many rows share, such as 0, are "
            "lost. Declare cut_points for it, narrow where rows are many: 0.01 after 0 keeps the "
            "zeros of money."
        )
    if heavy:
        said.append(
            f"Much of the sum of {listed(heavy, _NAMED)} lies in a few wide cells at the end of a "
            "long tail, and noise hides how rows are spread there: means, sums and the highest "
            "quantiles may be far off. answer() gives intervals that hold for any spread."
        )
    if unknown:
        said.append(
            f"More than {share(_MANY_FAR)} of the rows of {listed(unknown, _NAMED)} lie in a cell "
            "that reaches to an end of its range, far beyond the other values, and noise hides "
            "where in it: all of them may be drawn far too near to the others. Declare "
            "cut_points in it, or spend more. answer() gives intervals that hold wherever they lie."
        )
    if far:
        said.append(
            f"The range of {listed(far, _NAMED)} reaches far beyond nearly all rows, and the few "
            "that noise may hide there could make much of the mean: the rows would not have them. "
            "Declare a smaller range if you can, or cut_points beyond which they would be counted. "
            "answer() gives intervals that hold wherever they lie."
        )
    return said
