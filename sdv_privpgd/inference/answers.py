"""An answer with what is known of its error, in numbers and in a sentence. Public."""

import math
from dataclasses import dataclass, field
from typing import Any

import pandas as pd

from sdv_privpgd.inference.comparing import DIFFERENCE, RATIO, combined
from sdv_privpgd.inference.intervals import Interval, Scaled, Statistic, Total, deviations
from sdv_privpgd.methods.pipeline import Release

TABLES, MODEL = "tables", "model"
"""What an answer rests on: the measured tables, which determine it, or the fitted model."""

_MODELS = (
    "the measured tables do not determine this answer, so it comes from the model, and no formula "
    "knows the model's error"
)

_REPEAT = "answer(..., bootstrap=50) gives a number an interval, by repetitions of the fit"


def on_people(release: Release) -> tuple[str, ...]:
    """A sentence if only some rows of a person were read: intervals are for those. Public.

    Or one if rows have weights.
    """
    ledger = release.ledger
    if ledger.weights is not None:
        column, low, high = ledger.weights
        return (
            f"Rows have counted as their weights ({column!r}), clipped to {low:g} to {high:g}: "
            "this is for the population that they stand for. No interval covers what clipping "
            "lost, nor strata and clusters of a sample.",
        )
    if ledger.people is None:
        return ()
    rows = ledger.rows_per_person
    read = "1 row" if rows == 1 else f"{rows} rows"
    counts = " and each person counts as one" if ledger.weighed else ""
    return (
        f"At most {read} of a person were read{counts} ({ledger.people!r}): this is for the "
        "rows that were read, and no interval covers what people with more rows lost.",
    )


@dataclass(frozen=True, kw_only=True, repr=False)
class Answer:
    """A number, or a date or a category, and how sure it is.

    Attributes:
        question: What it answers, in words.
        estimate: The answer. From the tables it is unbiased and neither shrunken nor clipped, but
            for shares, means and quantiles, which are functions of such.
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
    ...                 statistic=Total(412.3, 11.2**2, num_rows=1000.0), unit="rows")
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
        return f"Answer({self.question!r}: {_written(self.estimate, *how)}, {known})"

    def __str__(self) -> str:
        how = self.unit, self.datetime_format
        text = f"{self.question}: {_written(self.estimate, *how)}"
        if self.stddev:
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
            makes a cross table of it.
        stddev: The standard deviation of the noise in each; ``None`` where the model answers.
        basis: ``"tables"`` or ``"model"``.
        num_rows: The number of rows, as far as it is known.
        notes: What to keep in mind, a sentence each.
        units: What a row that counts as one stands for, where rows have weights.

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

    def interval(self, kind: str = "table", level: float = 0.95) -> pd.DataFrame:
        """The ends of an interval for each cell, as ``low`` and ``high``. See ``Answer``.

        Each holds its count with the level's confidence; all at once they do not.
        """
        deviations(kind, level)
        if self.stddev is None:
            raise ValueError(f"No interval is known: {_MODELS}.")
        units, num_rows = self.units or 1.0, self.num_rows if self.units is None else math.inf
        cells = zip(self.estimate / units, self.stddev / units, strict=True)
        ends = [
            Scaled(Total(value, stddev**2, num_rows=num_rows, low=0.0), units).interval(kind, level)
            for value, stddev in cells
        ]
        return pd.DataFrame(ends, index=self.estimate.index, columns=pd.Index(Interval._fields))

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
    low, high = (_written(end, unit, datetime_format) for end in ends)
    if unit:
        low = low.rsplit(" ", 1)[0]
    return f"{low} to {high}"


def _written(value: Any, unit: str, datetime_format: str | None) -> str:
    """A value in a sentence, with its unit."""
    if datetime_format is not None and isinstance(value, pd.Timestamp):
        return value.strftime(datetime_format)
    if not isinstance(value, int | float):
        return str(value)
    if unit in ("share", "points"):
        text = f"{100 * value:.3g} {'%' if unit == 'share' else unit}"
    else:
        text = f"{value:,.0f} {unit}" if unit else f"{value:,.5g}"
    return text.replace("inf", "infinity")
