"""Whether rows meet criteria that were fixed before the fit, told from noisy answers alone. Public.

A criterion says which values of the table are near enough to that of the rows: an interval A around
it. The noisy answers have an interval of the table's value, of 95 %. If it lies in A, the criterion
is met; if the two have nothing in common, it is not; else nobody can tell. A criterion is falsely
called met only where the interval does not hold the table's value: in 5 of 100 fits at most,
whatever the rows are, and though they come of the same noise.
"""

import math
import operator
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any, ClassVar

import numpy as np
import pandas as pd

from sdv_privpgd.columns.column import Column
from sdv_privpgd.inference.conditions import cells_of, codes_of, column_named, meeting, numbers_in
from sdv_privpgd.inference.design import design_of
from sdv_privpgd.inference.intervals import Interval, deviations
from sdv_privpgd.inference.question_list import COEFFICIENT, UNIQUE, Question, Where
from sdv_privpgd.inference.questions import Questions
from sdv_privpgd.inference.regression import coefficients_of_rows, regression
from sdv_privpgd.synthesize.engine import Particles

MET, NOT_MET, UNTOLD = "met", "not met", "cannot be told"

_BOUNDS = ("within", "relative", "above", "below")


@dataclass(frozen=True, kw_only=True)
class Criterion(Question):
    """A question about which rows must agree with the table, fixed before the fit. Public.

    It is a ``Question`` with a bound, so a fit may be told of it (``questions=``).

    Attributes:
        what: ``"share"``, ``"mean"`` or ``"coefficient"``. Or ``"unique"``: how many of the rows no
            other is like, in the columns ``of``. That is about the rows alone, so it is always
            told: noisy tables do not count the unique rows of the table.
        term: The coefficient; the only one, if there is one.
        within: How far the rows' value may be from the table's, in its unit: 0.01 is one point.
        relative: How far, as a part of the table's: 0.2 is 20 %, which asks for its sign, too.
        above: Neither the rows' value nor the table's may be below that.
        below: Neither may be above that.

    >>> Criterion(what="share", where={"ward": "B"}, within=0.01).bound
    "the rows' within 0.01 of the table's"
    """

    term: str | None = None
    within: float | None = None
    relative: float | None = None
    above: float | None = None
    below: float | None = None

    KINDS: ClassVar = ("share", "mean", COEFFICIENT, UNIQUE)

    def __post_init__(self) -> None:
        said = {name: getattr(self, name) for name in _BOUNDS if getattr(self, name) is not None}
        if len(said) != 1:
            raise ValueError(f"A criterion takes one of {', '.join(_BOUNDS)}, got {said!r}.")
        ((name, bound),) = said.items()
        if isinstance(bound, bool) or not isinstance(bound, int | float) or math.isnan(bound):
            raise ValueError(f"{name} is a number, got {bound!r}.")
        if name == "relative" and not 0 < bound < 1:
            raise ValueError(f"relative is above 0 and below 1, got {bound!r}.")
        if name == "within" and not bound > 0:
            raise ValueError(f"within is above 0, got {bound!r}.")
        if self.what == UNIQUE and (name != "below" or not self.of or self._said):
            raise ValueError("'unique' has of= and below=, and nothing else.")
        super().__post_init__()

    @property
    def bound(self) -> str:
        """What is asked for, in words."""
        if self.within is not None:
            return f"the rows' within {self.within:g} of the table's"
        if self.relative is not None:
            return f"the rows' within {100 * self.relative:g} % of the table's"
        if self.what == UNIQUE:
            return f"at most {self.below:g}"
        side, bound = ("above", self.above) if self.below is None else ("below", self.below)
        return f"both {side} {bound:g}"

    def allowed(self, value: float) -> Interval | None:
        """The values of the table with which rows of this value meet it; ``None`` if none do."""
        if self.within is not None:
            return Interval(value - self.within, value + self.within)
        if self.relative is not None:
            ends = value / (1 + self.relative), value / (1 - self.relative)
            return Interval(min(ends), max(ends))
        if self.above is not None:
            return Interval(self.above, math.inf) if value >= self.above else None
        assert self.below is not None
        return Interval(-math.inf, self.below) if value <= self.below else None


@dataclass(frozen=True)
class Verdict:
    """Whether a criterion is met. Public.

    Attributes:
        question: What it is about, in words.
        bound: What it asks for, in words.
        verdict: ``"met"``, ``"not met"`` or ``"cannot be told"``.
        rows: The value of the rows.
        table: The interval of the table's value; infinite where nothing is known of it, and
            ``None`` where it does not matter.
        notes: Why it cannot be told, if the interval does not say so, and what the interval takes
            for granted, a sentence each.
    """

    question: str
    bound: str
    verdict: str
    rows: float
    table: Interval | None
    notes: tuple[str, ...] = ()

    def __str__(self) -> str:
        table = "" if self.table is None else ", table {:.4g} to {:.4g}".format(*self.table)
        said = f"{self.question}, {self.bound}: rows {self.rows:.4g}{table}."
        return " ".join([f"{self.verdict.upper()}: {said}", *self.notes])


@dataclass(frozen=True)
class Acceptance:
    """The verdicts on a list of criteria. Public.

    Attributes:
        verdicts: In the order of the criteria.
        level: Each is right with this confidence. All at once they are not.

    >>> one = Verdict("Share where ill is True", "both above 0.2", "met", 0.31,
    ...               Interval(0.28, 0.33))
    >>> print(Acceptance((one,), 0.95))
    1 of 1 criteria are met, each told at 95 % from noisy answers alone.
    MET: Share where ill is True, both above 0.2: rows 0.31, table 0.28 to 0.33.
    """

    verdicts: tuple[Verdict, ...]
    level: float

    @property
    def is_met(self) -> bool:
        """Whether all criteria are met."""
        return all(each.verdict == MET for each in self.verdicts)

    def to_frame(self) -> pd.DataFrame:
        """One row a criterion."""
        columns = ["question", "criterion", "verdict", "rows", "table_low", "table_high"]
        nothing = (None, None)
        found = [
            (e.question, e.bound, e.verdict, e.rows, *(e.table or nothing)) for e in self.verdicts
        ]
        return pd.DataFrame(found, columns=pd.Index(columns))

    def __str__(self) -> str:
        number = sum(each.verdict == MET for each in self.verdicts)
        head = (
            f"{number} of {len(self.verdicts)} criteria are met, each told at {100 * self.level:g} "
            "% from noisy answers alone."
        )
        return "\n".join([head, *map(str, self.verdicts)])

    __repr__ = __str__


def accepted(
    questions: Questions,
    rows: pd.DataFrame,
    criteria: Sequence[Criterion],
    level: float,
    ask: Callable[..., Any],
) -> Acceptance:
    """The verdicts, as ``FittedTable.accept`` describes them. ``ask`` answers for the table."""
    if isinstance(criteria, Criterion) or not all(isinstance(e, Criterion) for e in criteria):
        raise ValueError("accept takes a list of Criterion, as of sdv_privpgd.inference.")
    both = _Both(questions, rows, level, ask)
    found = []
    for each in criteria:
        how = {COEFFICIENT: both.coefficient, UNIQUE: both.unique}.get(each.what, both.answer)
        question, value, table, notes = how(each)
        verdict = _verdict(value, each.allowed(value), table)
        found.append(Verdict(question, each.bound, verdict, value, table, tuple(notes)))
    return Acceptance(tuple(found), level)


def _verdict(value: float, allowed: Interval | None, table: Interval | None) -> str:
    if math.isnan(value):
        return UNTOLD
    if allowed is None:
        return NOT_MET
    if table is None:
        return MET
    if allowed.low <= table.low and table.high <= allowed.high:
        return MET
    return NOT_MET if table.high < allowed.low or allowed.high < table.low else UNTOLD


_NOTHING = Interval(-math.inf, math.inf)

_Found = tuple[str, float, Interval | None, Sequence[str]]
"""The question, the value of the rows, the table's interval, and what is to be said of that."""


@dataclass(frozen=True)
class _Both:
    """What the noisy tables say of the table, and what rows say."""

    questions: Questions
    rows: pd.DataFrame
    level: float
    ask: Callable[..., Any]

    @property
    def columns(self) -> dict[str, Column]:
        return self.questions.schema.named

    def answer(self, criterion: Criterion) -> _Found:
        """A share or a mean, or a difference of two."""
        answers: list[Any] = [
            self.ask(criterion.what, of=criterion.of, **each) for each in criterion.groups
        ]
        value = reduce(
            operator.sub, [self._of_rows(criterion, **each) for each in criterion.groups]
        )
        question = " minus ".join(each.question for each in answers)
        if any(each.statistic is None for each in answers):
            return question, value, _NOTHING, ["The tables do not determine the table's value."]
        try:
            answer = reduce(operator.sub, answers)
        except ValueError as error:
            return question, value, _NOTHING, [str(error)]
        return question, value, answer.interval("table", self.level), answer.notes

    def unique(self, criterion: Criterion) -> _Found:
        """The number of rows whose values of some columns no other row has."""
        cells = pd.DataFrame({name: cells_of(self.rows, name) for name in criterion.columns})
        number = float((~cells.duplicated(keep=False)).sum())
        return f"Rows that are unique in {', '.join(criterion.columns)}", number, None, ()

    def _of_rows(self, criterion: Criterion, where: Where, among: Where) -> float:
        met = self._met(where)
        if criterion.what == "share":
            base = self._met(among)
            return float((met & base).sum() / base.sum()) if base.any() else math.nan
        column = column_named(self.columns, criterion.of)
        numbers = numbers_in(column, cells_of(self.rows, column.name))
        kept = numbers[met & ~np.isnan(numbers)]
        return float(kept.mean()) if len(kept) else math.nan

    def _met(self, conditions: Where) -> np.ndarray:
        found = np.ones(len(self.rows), dtype=bool)
        for name, condition in (conditions or {}).items():
            cells = cells_of(self.rows, str(name))
            found &= meeting(column_named(self.columns, name), cells, condition)
        return found

    def coefficient(self, criterion: Criterion) -> _Found:
        """A coefficient, by the tables and by the rows, of one and the same design."""
        release, outcome = self.questions.release, str(criterion.of)
        how = {"on": criterion.on, "kind": criterion.kind, "event": criterion.event}
        design = design_of(self.columns, outcome, **how, held=release.held)
        terms = [each.name for each in design.terms[1:]]
        term = terms[0] if criterion.term is None and len(terms) == 1 else criterion.term
        if term not in terms:
            raise ValueError(f"term must be one of {terms!r}, got {criterion.term!r}.")
        own = {name: self.columns[name] for name in design.columns}
        rows = Particles(domain=release.domain, codes=codes_of(release.domain, own, self.rows))
        on = ", ".join(design.columns[1:])
        question = f"{term} in the {criterion.kind} regression of {outcome} on {on}"
        try:
            of_table = regression(self.questions, outcome, **how)
            of_rows = coefficients_of_rows(self.questions, rows, outcome, **how)
            middle, variance = of_table.coefficients[term], of_table.noise.loc[term, term]
        except (ValueError, KeyError) as error:
            why = str(error) if isinstance(error, ValueError) else "Noise hides its rows."
            return question, math.nan, _NOTHING, [why]
        half = deviations("table", self.level) * math.sqrt(variance)
        ends = Interval(middle - half, middle + half)
        return question, float(of_rows[term]), ends, of_table.notes
