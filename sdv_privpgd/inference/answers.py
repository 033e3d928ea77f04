"""An answer with what is known of its error, and the difference and the ratio of two. Public.

Two answers of one fit share noise, because they are functions of the same tables, and rows: groups
may be disjoint, nested or the same. Both covariances are known from the tables. The interval is
made of those of the two answers (MOVER, Zou & Donner 2008): of a difference d = a - b its low end
is

    d - sqrt((a - l_a)^2 - 2 r (a - l_a) (u_b - b) + (u_b - b)^2)

where l and u are the ends of the interval of a and of b, and r is their correlation. A ratio has
the same on the scale of logarithms. So it is lopsided where they are, as those of small shares are.
"""

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import time
from typing import Any

import numpy as np
import pandas as pd

from sdv_privpgd.inference.intervals import (
    KINDS,
    Enclosed,
    Estimated,
    Interval,
    Open,
    Scaled,
    Statistic,
    Sum,
    deviations,
    middle_of,
)
from sdv_privpgd.inference.linear import Product, times, values_in
from sdv_privpgd.methods.pipeline import Release

TABLES, MODEL = "tables", "model"
"""What an answer rests on: the measured tables, which determine it, or the fitted model."""

_MODELS = (
    "the measured tables do not determine this answer, so it comes from the model, and no formula "
    "knows the model's error"
)

_REPEAT = "answer(..., bootstrap=50) gives a number an interval, by repetitions of the fit"


def on_people(release: Release) -> tuple[str, ...]:
    """Sentences if a person has several rows, or only some of them were read. Public.

    Or one if rows have weights; of a table of families none.
    """
    ledger = release.ledger
    if ledger.family:  # its tables know how many of their rows were read
        return ()
    if ledger.weights is not None:
        column, low, high = ledger.weights
        return (
            f"Rows have counted as their weights ({column!r}), clipped to {low:g} to {high:g}: "
            "this is for the population that they stand for. No interval covers what clipping "
            "lost, nor strata and clusters of a sample.",
        )
    rows, notes = ledger.rows_per_person, ()
    if ledger.rows_counted > 1:
        notes = (
            f"Up to {rows} rows of a person may be alike: intervals for the population are as wide "
            "as that takes.",
        )
    if ledger.people is None:
        return notes
    read = "1 row" if rows == 1 else f"{rows} rows"
    counts = " and each person counts as one" if ledger.weighed else ""
    return (
        f"At most {read} of a person were read{counts} ({ledger.people!r}): this is for the "
        "rows that were read, and no interval covers what people with more rows lost.",
        *notes,
    )


@dataclass(frozen=True, kw_only=True, repr=False)
class Answer:
    """A number, or a date or a category, and how sure it is.

    Attributes:
        question: What it answers, in words.
        estimate: The answer. From the tables it is not shrunken: counts and sums are without bias,
            and shares, means and quantiles are functions of such. What noise moves out of what is
            possible, as a count below 0 or a share above 1, is moved to its end. It is not a number
            where noise hides all rows that a share or a mean is of.
        stddev: The standard deviation of the noise; ``None`` for quantiles, and where the model
            answers.
        basis: ``"tables"`` or ``"model"``.
        statistic: What knows the intervals; ``None`` if nothing does.
        notes: What to keep in mind, a sentence each.
        unit: ``"rows"``, ``"people"``, ``"units"`` of a population that rows have weights for,
            ``"share"``, ``"points"`` or nothing, for the sentence.
        datetime_format: How the sentence writes dates; ``None`` for ISO 8601.
        origin: What combines it with another answer of the same fit; it is not pickled.

    >>> answer = Answer(question="Count where ward is 'B'", estimate=412.3, stddev=11.2,
    ...                 statistic=Sum(412.3, 11.2**2, num_rows=1000.0), unit="rows")
    >>> print(answer)
    Count where ward is 'B': 412 rows (standard deviation of the noise: 11.2). With 95 % confidence
    390 to 434 rows in this table, and 375 to 450 rows in the population that it was drawn from.
    """

    question: str
    estimate: Any
    stddev: float | None = None
    basis: str = TABLES
    statistic: Statistic | None = None
    notes: tuple[str, ...] = ()
    unit: str = ""
    datetime_format: str | None = None
    origin: Any = field(default=None, compare=False)

    def __sub__(self, other: "Answer") -> "Answer":
        """The difference, with an interval that knows what both answers have in common.

        Raises:
            ValueError: For answers of different fits, or to be read in different units, quantiles,
                and what has no interval.
        """
        return combined(self, other, DIFFERENCE)

    def __truediv__(self, other: "Answer") -> "Answer":
        """The ratio, with an interval that knows what both answers have in common.

        Raises:
            ValueError: For answers of different fits, quantiles, what has no interval, and what may
                be negative.
        """
        return combined(self, other, RATIO)

    def __getstate__(self) -> dict[str, Any]:
        return {**vars(self), "origin": None}  # of which each answer would write a copy

    def interval(self, kind: str = "table", level: float = 0.95) -> Interval:
        """The ends of an interval. What is not known is infinite, or an end of the calendar.

        Args:
            kind: ``"table"`` for what the real table says: the noise alone. ``"population"`` for
                what is true where its rows were drawn from, independently: sampling as well.
            level: The part of all fits whose intervals hold the truth.

        Raises:
            ValueError: If no interval is known, and for a kind or a level that does not exist.
        """
        deviations(kind, level)
        if self.statistic is None:
            raise ValueError(f"No interval is known: {_MODELS}. {_REPEAT}.")
        return self.statistic.interval(kind, level)

    def __repr__(self) -> str:
        """The answer in a line: the number, and its interval for this table if one is known."""
        how = self.unit, self.datetime_format
        known = f"no interval: from the {self.basis}"
        if self.statistic is not None:
            known = f"95 %: {_range(self.interval(), *how)}"
        return f"Answer({self.question!r}: {written(self.estimate, *how)}, {known})"

    def __str__(self) -> str:
        how = self.unit, self.datetime_format
        text = f"{self.question}: {written(self.estimate, *how)}"
        if self.stddev and pd.notna(self.estimate):
            noise = 100 * self.stddev if self.unit in ("share", "points") else self.stddev
            text += f" (standard deviation of the noise: {noise:,.3g})"
        if self.statistic is None:
            sentences = [text, f"No interval is known: {_MODELS}", _REPEAT]
        else:
            table, population = (
                _range(self.interval(kind), *how) for kind in ("table", "population")
            )
            sentences = [
                text,
                f"With 95 % confidence {table} in this table, and {population} in the population "
                "that it was drawn from",
            ]
        return " ".join([". ".join(sentences) + ".", *self.notes])


@dataclass(frozen=True, kw_only=True, repr=False)
class TableAnswer:
    """A table of counts, and how sure each is.

    Attributes:
        question: What it answers, in words.
        estimate: The count of each cell, a Series by the labels of the columns. ``unstack()``
            makes a cross table of it. Noise makes some negative: they stay, so sums of cells are
            without bias.
        stddev: The standard deviation of the noise in each; ``None`` where the model answers.
        basis: ``"tables"`` or ``"model"``.
        num_rows: The number of rows, as far as it is known.
        notes: What to keep in mind, a sentence each.
        units: What a row that counts as one stands for, where rows have weights.
        alike: How many rows of one person there are at most.
        extremes: The table with rows spread in cut cells so that it has fewest, and most.

    >>> counts = pd.Series({"A": 60.0, "B": 40.0})
    >>> answer = TableAnswer(question="Counts of ward", estimate=counts, stddev=counts * 0 + 2.0,
    ...                      num_rows=100.0)
    >>> answer.interval("table").round(1).to_dict("list")
    {'low': [56.1, 36.1], 'high': [63.9, 43.9]}
    """

    question: str
    estimate: pd.Series
    stddev: pd.Series | None
    num_rows: float
    basis: str = TABLES
    notes: tuple[str, ...] = ()
    units: float | None = None
    alike: int = 1
    extremes: tuple["TableAnswer", ...] = ()

    def interval(self, kind: str = "table", level: float = 0.95) -> pd.DataFrame:
        """The ends of an interval for each cell, as ``low`` and ``high``. See ``Answer``.

        Each holds its count with the level's confidence; all at once they do not.
        """
        deviations(kind, level)
        if self.stddev is None:
            raise ValueError(f"No interval is known: {_MODELS}.")
        units, num_rows = self.units or 1.0, self.num_rows if self.units is None else math.inf
        cells = zip(self.estimate / units, self.stddev / units, strict=True)
        counts = (
            Sum(value, stddev**2, num_rows=num_rows, low=0.0, alike=self.alike)
            for value, stddev in cells
        )
        ends = [Scaled(count, units).interval(kind, level) for count in counts]
        own = pd.DataFrame(ends, index=self.estimate.index, columns=pd.Index(Interval._fields))
        every = [own, *(each.interval(kind, level) for each in self.extremes)]
        lows, highs = (np.stack([each[end] for each in every]) for end in Interval._fields)
        return own.assign(low=lows.min(axis=0), high=highs.max(axis=0))

    def to_frame(self, kind: str = "table", level: float = 0.95) -> pd.DataFrame:
        """One row a cell: ``estimate``, and ``stddev``, ``low`` and ``high`` as far as known."""
        frame = self.estimate.to_frame("estimate")
        if self.stddev is None:
            return frame
        return frame.assign(stddev=self.stddev).join(self.interval(kind, level))

    def __repr__(self) -> str:
        """The table in a line: how many counts it has, and how sure they are."""
        sure = f"no interval: from the {self.basis}"
        if self.stddev is not None:
            sure = f"standard deviation of the noise {self.stddev.max():,.3g} at most"
        return f"TableAnswer({self.question!r}: {len(self.estimate):,} counts, {sure})"

    def __str__(self) -> str:
        title = self.question
        if self.stddev is None:
            title += f". No interval is known: {_MODELS}"
        else:
            title += ", with 95 % intervals for this table"
        return "\n".join([f"{title}:", self.to_frame().round(1).to_string(), *self.notes])


def _range(ends: Interval, unit: str, datetime_format: str | None) -> str:
    """An interval in a sentence, with its unit."""
    low, high = (written(end, unit, datetime_format) for end in ends)
    if unit:
        low = low.rsplit(" ", 1)[0]
    return f"{low} to {high}"


def written(value: Any, unit: str, datetime_format: str | None) -> str:
    """A value in a sentence, with its unit. Public."""
    if datetime_format is not None and isinstance(value, pd.Timestamp | time):
        return value.strftime(datetime_format)
    if not isinstance(value, int | float):
        return str(value).removesuffix(" 00:00:00")
    if math.isnan(value):
        return "not known, as noise hides the rows"
    if unit in ("share", "points"):
        text = f"{100 * value:.3g} {'%' if unit == 'share' else unit}"
    else:
        text = f"{value:,.0f} {unit}" if unit else f"{value:,.5g}"
    return re.sub("^-(?=0( |$))", "", text).replace("inf", "infinity")


DIFFERENCE, RATIO = "minus", "divided by"

_MOST = 3
"""Columns up to which tables may be asked: linear estimates take as long as there are cells."""


@dataclass(frozen=True)
class Origin:
    """What an answer was computed from."""

    source: Any
    """The ``Questions``, which know sums over the rows of a fit."""
    ends: tuple[bool, ...]
    """Whether rows beyond a range that was found may move it, below and above."""
    form: Sequence[tuple[float, Product]] | None = None
    """The error of the answer, as a weighted sum of errors of sums over rows, if it is one."""
    reach: tuple[float, float] | None = None
    """The least and the most that it may be by how rows are spread in cells, if that is known."""
    limits: tuple[float, float] = (-math.inf, math.inf)
    """The least and the most that is possible."""


@dataclass(frozen=True)
class Combined:
    """A difference or a ratio of a ``Total`` or a ``Ratio``, ``Enclosed`` or ``Open`` or not."""

    first: Any
    second: Any
    correlations: Mapping[str, float]  # that of their errors, for each of ``KINDS``
    how: str

    @property
    def value(self) -> float:
        """The estimate."""
        one, other = (middle_of(each) for each in (self.first, self.second))
        if self.how == DIFFERENCE:
            least, most = one.low - other.high, one.high - other.low
            return min(max(one.value - other.value, least), most)
        return max(one.value, 0.0) / other.value if other.value > 0 else math.nan

    def interval(self, kind: str, level: float) -> Interval:
        (least, most), (low, high) = extremes_of(self.first), extremes_of(self.second)
        ends = _difference if self.how == DIFFERENCE else _ratio
        correlation = self.correlations[kind]
        first, _ = ends(least, high, correlation, kind, level)
        _, last = ends(most, low, correlation, kind, level)
        if _is_open(self.first, 0) or _is_open(self.second, int(self.how == DIFFERENCE)):
            first = -math.inf
        elif self.how == RATIO and _is_open(self.second, 1):
            first = min(first, 0.0)
        if _is_open(self.first, 1) or _is_open(self.second, 0):
            last = math.inf
        return Interval(first, last)


def combined(one: Any, other: Any, how: str) -> Any:
    """The difference or the ratio of two answers, as an ``Answer``.

    Raises:
        ValueError: For answers that have nothing to be combined by; the message says why.
    """
    for answer in (one, other):
        _require(answer, how)
    if one.origin.source.release is not other.origin.source.release:
        raise ValueError(
            "These answers are of different fits, and nobody knows what rows these share: ask one "
            "fit for both."
        )
    if how == DIFFERENCE and one.unit != other.unit:
        raise ValueError(
            f"A difference is of answers in the same unit, got {one.unit or 'values'!r} and "
            f"{other.unit or 'values'!r}."
        )
    noise, rows, is_exact = _covariances(one.origin, other.origin)
    both = zip(KINDS, (noise, noise + rows), strict=True)
    correlations = {kind: _correlation(each) for kind, each in both}
    statistic = Combined(one.statistic, other.statistic, correlations, how)
    weights = np.array([1.0, -1.0])
    if how == RATIO:
        below = other.estimate if other.estimate > 0 else math.nan
        weights = np.array([1.0, -statistic.value]) / below
    note = (
        "How many rows the two groups share was taken from the model, for the interval of the "
        "population."
    )
    question = other.question[:1].lower() + other.question[1:]
    notes = dict.fromkeys((*one.notes, *other.notes, *([] if is_exact else [note])))
    unit = "" if how == RATIO else "points" if one.unit == "share" else one.unit
    return replace(
        one,
        question=f"{one.question} {how} {question}",
        estimate=float(statistic.value),
        stddev=float(np.sqrt(np.maximum(weights @ noise @ weights, 0.0))),
        statistic=statistic,
        notes=tuple(notes),
        unit=unit,
        origin=None,
    )


def _require(answer: Any, how: str) -> None:
    """Raises ``ValueError`` for an answer that cannot be a part of another."""
    origin = getattr(answer, "origin", None)
    if origin is None or origin.form is None:
        raise ValueError(
            "Two counts, shares, means or sums are combined, as they came from answer(): "
            f"no quantiles, tables, combinations or answers that were pickled, got {answer!r}."
        )
    if origin.source.release.ledger.weights is not None:
        raise ValueError(
            "Rows have counted as their weights, which were drawn with them: how far two answers "
            "vary together is not known. Compare their intervals."
        )
    if answer.statistic is None or answer.stddev is None:
        raise ValueError(
            f"{answer.question!r} is the model's answer: the tables do not say what its error has "
            "in common with that of another. fitted.bootstrap() takes any function of the rows."
        )
    if how == RATIO and min(each.low for each in extremes_of(answer.statistic)) < 0:
        raise ValueError(
            f"A ratio is of what is never negative, and {answer.question!r} may be: ask for the "
            "difference."
        )


def _covariances(one: Origin, other: Origin) -> tuple[np.ndarray, np.ndarray, bool]:
    """Those of noise and of sampling of two answers, and whether the tables know the second."""
    forms, source = (one.form or (), other.form or ()), one.source
    products = [product for form in forms for _, product in form]
    if not products:
        return np.zeros((2, 2)), np.zeros((2, 2)), True
    weights, first = np.zeros((2, len(products))), len(forms[0])
    weights[0, :first], weights[1, first:] = ([weight for weight, _ in form] for form in forms)
    found = source.linear.answers([{}, *products])
    rows, sums = max(float(found.values[0]), 1.0), found.values[1:]
    noise = found.covariance[1:, 1:]
    i, j = np.tril_indices(len(products))
    pairs = zip(i, j, strict=True)
    both, is_exact = _sums(source, [times(products[one], products[two]) for one, two in pairs])
    second = np.zeros((len(products), len(products)))
    second[i, j] = second[j, i] = both
    sampling = source.release.ledger.rows_counted * (second - np.outer(sums, sums) / rows)
    return weights @ noise @ weights.T, weights @ sampling @ weights.T, is_exact


def _sums(source: Any, products: Sequence[Product]) -> tuple[np.ndarray, bool]:
    """Sums of products over the rows; of what no table knows the model's, and whether none is."""
    sums = np.zeros(len(products))
    some = [at for at, own in enumerate(products) if all(each.any() for each in own.values())]
    asked = [at for at in some if len(products[at]) <= _MOST]
    found = source.linear.answers([{}, *(products[at] for at in asked)])
    known = np.array(asked, dtype=int)[found.known[1:]]
    sums[known] = found.values[1:][found.known[1:]]
    left = sorted({*some} - {*known.tolist()})
    if left:
        model = source.release.model
        codes = model.sample(max(model.block, 20_000), seed=0)
        own = values_in(codes, source.release.domain, [products[at] for at in left])
        sums[left] = found.values[0] * own.mean(axis=0)
    return sums, not left


def _correlation(covariance: np.ndarray) -> float:
    one, other = (max(float(each), 0.0) for each in np.diagonal(covariance))
    if not one * other:
        return 0.0
    return float(np.clip(covariance[0, 1] / math.sqrt(one * other), -1.0, 1.0))


def extremes_of(statistic: Any) -> tuple[Estimated, Estimated]:
    """The statistic with rows spread in cells so that it is lowest, and highest."""
    if isinstance(statistic, Open):
        return extremes_of(statistic.inner)
    if isinstance(statistic, Enclosed):
        return statistic.lowest, statistic.highest
    return statistic, statistic


def _is_open(statistic: Any, side: int) -> bool:
    """Whether no end is known: of side 0, below, or of side 1, above."""
    return isinstance(statistic, Open) and (statistic.below, statistic.above)[side]


def _difference(
    one: Estimated, other: Estimated, correlation: float, kind: str, level: float
) -> tuple[float, float]:
    """The ends of an interval for one less the other."""
    low, high = _apart(_uncut(one, kind, level), _uncut(other, kind, level), correlation)
    least, most = one.low - other.high, one.high - other.low
    if math.isnan(low):
        return least, most
    return min(max(low, least), most), min(max(high, least), most)


def _ratio(
    one: Estimated, other: Estimated, correlation: float, kind: str, level: float
) -> tuple[float, float]:
    """The ends of an interval for one over the other, both of which are never negative."""
    if not (one.value > 0 and other.value > 0):  # both at their ends: nobody knows better
        first, second = one.interval(kind, level), other.interval(kind, level)
        low = max(first.low, 0.0) / second.high if second.high > 0 else 0.0
        return low, max(first.high, 0.0) / second.low if second.low > 0 else math.inf
    ends = (_uncut(each, kind, level) for each in (one, other))
    first, second = ([math.log(e) if e > 0 else -math.inf for e in each] for each in ends)
    low, high = _apart(first, second, correlation)
    return math.exp(low), math.exp(high) if math.isfinite(high) else math.inf


def _uncut(statistic: Estimated, kind: str, level: float) -> Sequence[float]:
    """The estimate, and the ends of an interval that is not cut at what is possible."""
    value = statistic.value
    whole = replace(statistic, low=-math.inf, high=math.inf)
    return value, *whole.interval(kind, level)


def _apart(one: Sequence[float], other: Sequence[float], correlation: float) -> tuple[float, float]:
    """The ends for one less the other, each an estimate and its ends."""

    def joined(error: float, another: float) -> float:
        error, another = max(error, 0.0), max(another, 0.0)
        if math.isinf(error + another):
            return math.inf
        return math.sqrt(max(error**2 + another**2 - 2 * correlation * error * another, 0.0))

    value = one[0] - other[0]
    low = value - joined(one[0] - one[1], other[2] - other[0])
    return low, value + joined(one[2] - one[0], other[0] - other[1])
