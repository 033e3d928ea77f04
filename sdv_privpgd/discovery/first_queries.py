"""The first look of discovery: what is asked of columns of which little is known. Public."""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np

from sdv_privpgd.base import cached_property
from sdv_privpgd.columns.bins import Ticks
from sdv_privpgd.columns.cuts import MOST_CATEGORIES, column_of
from sdv_privpgd.columns.facts import CategoryFacts, ColumnFacts, DateFacts, NumberFacts
from sdv_privpgd.columns.readings import Rarer, Reading, attribute_of
from sdv_privpgd.columns.units import is_aware
from sdv_privpgd.columns.values import Value, in_order
from sdv_privpgd.discovery.density import CLEAR
from sdv_privpgd.discovery.ranges import SINGLE, Rough, grid_of, roughly
from sdv_privpgd.discovery.transcript import Asker, Inquiry
from sdv_privpgd.estimate.support import pooled
from sdv_privpgd.privacy.accounting import stddev_for
from sdv_privpgd.privacy.ledger import PrivacyLedger
from sdv_privpgd.privacy.queries import CountQuery, MarginalQuery, Measurement
from sdv_privpgd.privacy.thresholding import threshold_for

SIZES = "sizes of numbers and dates"
"""What the ledger says of the counts of the first grids."""

LOOK_SHARE = Fraction(1, 4)
"""Part of what is left for some columns that a look takes before the last one."""

_FIRST_SHARE = Fraction(1, 2)
"""Part of discovery's budget that the first look takes. A fifth to three fifths gave errors, over
3 seeds, within 4 % of each other on Adult and within 10 % on Bank."""

_DELTA_SHARE = Fraction(1, 30)
"""Part of delta that is kept for each question with a threshold; three cost less than 1 % of
noise."""

_PARTS = {"categories": 4, "grid": 4, "numbers": 4, "precision": 3}
"""The questions, and how a column's budget is divided; the number of rows has one part of all
columns. With one part for the precision the share of whole numbers of floats of 200 public tables
is 0.038 off and not 0.031; with six it is 0.027, and columns are 3 % further from the real ones
(``tests/benchmarks many_tables``)."""

Values = dict[str, list[tuple[Value | None, int]]]
"""Of some columns: values and their noisy counts."""


class FirstFindings(NamedTuple):
    """What the first look found, and what of the budget is ``left`` for others. Public."""

    rough: dict[str, Rough]
    categories: Values
    left: Fraction


def questions_of(known: ColumnFacts) -> set[str]:
    """What the first look has to ask to find what is not known of a column.

    Which values many rows have (``categories``, ``numbers``), in which cells of the first grid rows
    lie (``grid``), and how precise they are (``precision``). Of a declared range closer looks find
    where in it rows lie, and single values of a narrow one: whether it is narrow is not known if
    its precision is not. Moments may all be whole days or minutes.
    """
    lacks = known.lacks_domain
    if isinstance(known, CategoryFacts):
        return {"categories"} if lacks else set()
    if isinstance(known, DateFacts):
        return {kind for kind, asks in (("grid", lacks), ("precision", known.coarser)) if asks}
    if not isinstance(known, NumberFacts):
        return set()
    asks = {"grid", "numbers"} if lacks else {"numbers"}
    if None in (known.decimal_places, known.rounding):
        asks.add("precision")
    cells = None if lacks or known.decimal_places is None else column_of("", known).cells
    return set() if isinstance(cells, Ticks) and cells.last - cells.first < SINGLE else asks


def thresholds_of(known: Mapping[str, ColumnFacts]) -> int:
    """How many questions have a threshold, at most: categories are looked at twice."""
    asked = {question for facts in known.values() for question in questions_of(facts)}
    return ("numbers" in asked) + 2 * ("categories" in asked)


def reserved_delta(known: Mapping[str, ColumnFacts], delta: float) -> Fraction:
    """The part of delta that discovery needs for the thresholds."""
    return Fraction(delta) * _DELTA_SHARE * thresholds_of(known)


def square_of(ledger: PrivacyLedger) -> int:
    """The square of what a row, or a person, changes the counts of a column's cells by."""
    return ledger.rows_counted**2 * MarginalQuery(("",)).l2_sensitivity_squared(ledger.adjacency)


@dataclass(frozen=True)
class FirstQueries:
    """What a first look asks of all columns, of which something is ``known``. Public.

    Discovery has this ``share`` of the budget of the ledger before it, and beside that a part
    ``for_categories`` that are not declared.
    """

    known: Mapping[str, ColumnFacts]
    ledger: PrivacyLedger
    share: Fraction
    for_categories: Fraction

    @property
    def budget(self) -> Fraction:
        """What all of discovery has, but for what is spare."""
        return self.ledger.budget * self.share

    @property
    def spare(self) -> Fraction:
        """What is beside that for categories."""
        return self.ledger.budget * self.for_categories

    @cached_property
    def asks(self) -> dict[str, list[str]]:
        """The columns of each question; none where a threshold has no delta."""
        denied = set() if self.ledger.reserved else {"numbers"}
        own = {name: questions_of(facts) - denied for name, facts in self.known.items()}
        return {kind: [name for name in own if kind in own[name]] for kind in _PARTS}

    @property
    def asks_rows(self) -> bool:
        """Whether some question needs the number of rows."""
        return any(self.asks[kind] for kind in ("categories", "grid", "precision"))

    def cost_of(self, kind: str) -> Fraction:
        """What a question costs; that about categories costs so much at most."""
        rows_cost = CountQuery().l2_sensitivity_squared(self.ledger.adjacency) * self.asks_rows
        named, number = len(self.asks["categories"]), len(self.known)
        of_numbers = sum(_PARTS.values()) - _PARTS["categories"]
        parts = rows_cost + _PARTS["categories"] * named + of_numbers * (number - named)
        part = self.budget * _FIRST_SHARE / max(parts, 1)
        if kind == "rows":
            return part * rows_cost
        own = part * _PARTS[kind] * len(self.asks[kind])
        if kind != "categories":
            return own
        return own + self.budget * (1 - _FIRST_SHARE) * Fraction(named, max(number, 1)) + self.spare

    @property
    def delta(self) -> Fraction:
        """What each question with a threshold has of delta; the rest may be a strategy's."""
        each = self.ledger.reserved / max(thresholds_of(self.known), 1)
        return min(each, Fraction(self.ledger.delta) * _DELTA_SHARE)

    def ask(
        self, inquiry: Inquiry, require: Callable[[Values, Measurement], None] | None
    ) -> FirstFindings:
        """What little is known of columns after a first look at all of them.

        Privacy: ``cost_of`` all questions at most; what a column does not ask for is left for
        closer looks. Whoever may ``require`` something of the categories is told of them.
        """
        if not any(self.asks.values()):
            return FirstFindings({}, {}, self.budget)
        readings = [self._reading(name) for name in self.known]
        asker, rows = inquiry.at_first(readings), None
        if self.asks_rows:
            (rows,) = asker.measure([CountQuery()], self.cost_of("rows"), what="number of rows")
        rarer = lambda some: inquiry.at_first([r for r in readings if r.name in some.found], some)
        found, for_categories = self._categories(asker, rows, rarer)
        if require is not None and found and rows is not None:
            require(found, rows)
        numbers: Values = {}
        if names := self.asks["numbers"]:
            what, own = "numbers that many rows share", self.cost_of("numbers")
            numbers = asker.discover(own, self.delta, what=what, names=names)
        answers: dict[str, Measurement] = {}
        for kind, what in (("grid", SIZES), ("precision", "precisions of numbers and dates")):
            names = [attribute_of(kind, name) for name in self.asks[kind]]
            answers |= asker.tables(names, self.cost_of(kind), what)
        rough = {
            name: roughly(
                facts,
                answers.get(attribute_of("grid", name)),
                answers.get(attribute_of("precision", name)),
                rows,
                _most_frequent(numbers.get(name, [])),
                utc=is_aware(inquiry.table.dtypes[name]),
            )
            for name, facts in self.known.items()
            if isinstance(facts, NumberFacts | DateFacts)
        }
        cost = sum(map(self.cost_of, ("rows", "grid", "numbers", "precision")), Fraction(0))
        # Others have what categories leave of the spare part.
        return FirstFindings(rough, found, self.budget - cost - max(for_categories - self.spare, 0))

    def rows_needed(self, num_rows: float | None = None) -> dict[str, int]:
        """Returns how many rows must share an undeclared category, or lie in a range, to be found.

        It follows from noise and thresholds of a first look. Of so many rows at most twice as many
        as its first threshold have rarer categories of a column, if each category has at most half
        as many rows as the one before: so the second question counts each row as in few columns.
        """
        found = {}
        if names := self.asks["categories"]:
            first, most = self._threshold(len(names), len(names), LOOK_SHARE), len(names)
            if num_rows is not None:
                most = math.ceil(most * min(2 * first / max(num_rows, 1), 1))
            last = self._threshold(len(names), most, 1 - LOOK_SHARE)
            found = dict.fromkeys(names, math.ceil(last))
        found |= self._rows_clear_of("grid")
        return {name: rows for name, rows in found.items() if self.known[name].lacks_domain}

    def _threshold(self, columns: int, most: int, part: Fraction) -> float:
        """That of so many columns for a part of their budget, if a row counts as in ``most``."""
        ledger, own = self.ledger, self.cost_of("categories") * part
        stddev = stddev_for(square_of(ledger) * ledger.units**2 * most, own)
        return threshold_for(stddev, self.delta, columns, ledger) / ledger.units

    @property
    def rows_precise(self) -> dict[str, int]:
        """How many rows show what decimal places numbers in a declared range have. Public."""
        found = self._rows_clear_of("precision")
        vague = (name for name in found if getattr(self.known[name], "decimal_places", 0) is None)
        return {name: found[name] for name in vague if not self.known[name].lacks_domain}

    def _rows_clear_of(self, kind: str) -> dict[str, int]:
        """The rows that no noise in a question's counts looks like, for each of its columns."""
        names = self.asks[kind]
        if not names:
            return {}
        stddev = stddev_for(square_of(self.ledger), self.cost_of(kind) / len(names))
        return dict.fromkeys(names, math.ceil(CLEAR * stddev))

    def _reading(self, name: str) -> Reading:
        facts = self.known[name]
        return Reading(
            name=name,
            asks=frozenset(questions_of(facts)),
            cells=grid_of(facts).cells,
            datetime_format=getattr(facts, "datetime_format", None),
            number_format=getattr(facts, "number_format", None),
        )

    def _categories(
        self, asker: Asker, rows: Measurement | None, rarer: Callable[[Rarer], Asker]
    ) -> tuple[Values, Fraction]:
        """Returns values of columns that many rows have, with noisy counts, and what it cost.

        A first question finds the most frequent ones. A second one, with less noise, is for columns
        where rows are left that have none of these: there budget is worth most. Few rows have
        none of these in many columns, so each counts as in few.
        """
        names = self.asks["categories"]
        if not names:
            return {}, Fraction(0)
        whole = self.cost_of("categories")
        first, what = whole * LOOK_SHARE, "categories of undeclared columns"
        found = asker.discover(first, self.delta, what=what, names=names)
        noise = asker.stddev / self.ledger.units  # found numbers are in ones
        left = {name: others(found[name], noise, rows) for name in names}
        left = {name: rest for name, rest in left.items() if rest}
        if not left:
            return found, first
        assert rows is not None  # asked for wherever categories are
        most = math.ceil(sum(left.values()) / max(int(rows.answer[0]), 1))
        if most < len(left):
            known = {name: [key for key, _ in found[name] if key is not None] for name in left}
            asker = rarer(Rarer(known, most))
        more = asker.discover(whole - first, self.delta, what=f"rarer {what}", names=list(left))
        of_values = {name: [each for each in more[name] if each[0] is not None] for name in left}
        return found | {name: [*own, *found[name]] for name, own in of_values.items()}, whole


def others(found: list[tuple[Value | None, int]], stddev: float, rows: Measurement | None) -> int:
    """Returns how many rows have none of the values found; 0 if noise may be all. Public.

    ``stddev`` is the noise of each number.
    """
    assert rows is not None  # asked for wherever categories are
    rest = int(rows.answer[0]) - sum(number for _, number in found)
    return rest if rest > math.hypot(rows.stddev, stddev * math.sqrt(len(found))) / 2 else 0


def categories(known: ColumnFacts, found: list[tuple[Value | None, int]]) -> CategoryFacts:
    """Returns the distinct categories among the values found; other values are "other" or missing.

    They are missing unless some category is a word: a number for them would be computed with. Of
    two values that Python finds equal the more frequent one is kept.
    """
    assert isinstance(known, CategoryFacts)
    most: dict[Any, tuple[int, Value]] = {}
    for key, number in found:
        if key is not None and (key not in most or number > most[key][0]):
            most[key] = number, key
    values, often, other = in_order(key for _, key in most.values()), None, None
    if values and all(isinstance(value, bool) for value in values):
        values = [False, True]  # there is no other
    if len(values) > MOST_CATEGORIES:
        often = tuple(float(max(most[key][0], 0)) for key in values)
    if not values or any(isinstance(value, str) for value in values):
        other = "other"
        while other in values:
            other = f"any {other}"
    return CategoryFacts(
        values=tuple(values),
        other=other,
        nullable=True if other is None else None,
        is_ordered=known.is_ordered,
        frequencies=often,
    )


def frequencies(known: CategoryFacts, answer: Measurement) -> CategoryFacts:
    """The frequency of each declared category, with little noise."""
    counts = answer.answer[: len(known.values or ())].astype(np.float64)
    held = pooled(counts, np.full(counts.size, answer.stddev**2)).tolist()
    return CategoryFacts(is_ordered=known.is_ordered, frequencies=tuple(held))


def _most_frequent(found: list[tuple[Value | None, int]]) -> dict[float, float]:
    """The numbers and their noisy counts, the largest first."""
    numbers = [(number, float(key)) for key, number in found if isinstance(key, int | float)]
    return {key: float(number) for number, key in sorted(numbers, reverse=True)}
