"""Stops a fit whose first question says that what is declared of a column is not in the table.

It finds a misspelled codebook, dates in another format, numbers with words, a wrong unit or year,
and text that is of no category, for a hundredth of mu^2 (of few rows a twentieth), so that a
corrected fit can still be paid. The rest stays unspent.
"""

import math
from collections.abc import Callable, Collection, Mapping, Sequence
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np

from sdv_privpgd.base.words import grouped, listed, share
from sdv_privpgd.columns.facts import ColumnFacts, DateFacts, WeightFacts
from sdv_privpgd.columns.readings import Readable, attribute_of
from sdv_privpgd.columns.schema import PublicDomainError
from sdv_privpgd.columns.values import LOOKS
from sdv_privpgd.columns.vocabulary import words_of
from sdv_privpgd.discovery.first_queries import Values
from sdv_privpgd.discovery.transcript import Inquiry
from sdv_privpgd.methods.pipeline import noise_of
from sdv_privpgd.privacy.ledger import PrivacyLedger
from sdv_privpgd.privacy.queries import CountQuery, MarginalQuery, Measurement
from sdv_privpgd.report.measures import MANY, MOST, NEARLY_ALL, SOME, SURE, of_many, rows_in
from sdv_privpgd.report.warnings import warn_after

UNPARSED = "cells that are no declared values"
"""What the ledger says of the first question."""

_DEVIATIONS = 5.0
"""A fit stops if a share is so many standard deviations of its noise above what is let pass. Noise
alone does that in one of three million columns."""

CAN_GO_ON = (
    "What was paid for is kept in this error: its resume(table), with the same table, goes on all "
    "the same and spends what is left of the budget. A corrected table needs a new fit, whose "
    "budget adds to what is spent."
)
"""What is said where ``fit_table`` or ``measure`` stops."""


class DomainMismatchError(PublicDomainError):
    """Raised in the middle of a fit if nearly no row has a declared value of a column.

    Public, as what it holds: noisy answers and a ledger.

    Attributes:
        ledger: What was spent so far, for a later ``fit_table(after=...)``; ``None`` for
            synthesizers, which have ledgers of their own.
        goes_on: Checks a table to go on with, and gives what then does; ``None`` for synthesizers,
            and once it did.

    >>> isinstance(DomainMismatchError("Column 'ward' is 'other'."), ValueError)
    True
    """

    ledger: PrivacyLedger | None = None
    goes_on: Callable[[Any], Callable[[], Any]] | None = None
    _spent: str = ""

    def __str__(self) -> str:
        return super().__str__() + self._spent

    def after(self, ledger: PrivacyLedger) -> "DomainMismatchError":
        """Returns the error, which says what was spent by the ledger."""
        spent = f"{ledger.spent():.3g} of {ledger.epsilon:g}"
        self._spent = f" Epsilon {spent} is spent; no more was."
        return self

    def resume(self, table: Any) -> Any:
        """Returns what ``fit_table`` or ``measure`` would have, if that is how the column is.

        Spends what is left of the budget. What had been answered is not paid for again.

        Args:
            table: The table of that fit.

        Raises:
            ValueError: If another table is given, as far as that is public; if it went on before;
                and for a synthesizer, whose own ``resume`` goes on.

        >>> import pandas as pd
        >>> from sdv_privpgd import Categorical, fit_table
        >>> table = pd.DataFrame({"ward": ["a", "b"] * 1_000})
        >>> wards = Categorical(["A", "B"], other="other")
        >>> try:
        ...     fitted = fit_table(table, {"ward": wards}, 1.0, method="mst")
        ... except DomainMismatchError as error:
        ...     fitted = error.resume(table)
        >>> fitted.num_rows
        2000
        """
        if self.goes_on is None:
            raise ValueError(
                "There is nothing to resume here: a stopped fit_table goes on once, and of a "
                "synthesizer call resume(data)."
            )
        spend = self.goes_on(table)
        self.goes_on = None  # from here on the rest of the budget is spent
        fitted = spend()
        warn_after(fitted.warnings, kept=fitted)
        return fitted


def ask_first(
    inquiry: Inquiry,
    declared: Mapping[str, ColumnFacts],
    *,
    stops_at: Collection[str] = (),
    of_prior: Collection[str] = (),
) -> tuple[dict[str, str], set[str]]:
    """Asks how many cells of each column are no declared values, or outside a declared range.

    Returns what is to be said of columns whose rows have values in the place of such cells, as they
    are declared never to be missing; and columns of which many rows surely lie outside the range,
    for which it does not stop. The transcript gets the answers, or has them. Ranges and
    categories that are ``of_prior`` are called so. Privacy: ``part_for_first`` of the budget.

    Raises:
        DomainMismatchError: If a tenth of the rows or more of a column that it ``stops_at`` surely
            have no declared value, or nearly all lie outside the range. Where a value stands for
            all others, nearly all must be such. And if nearly all values are written as one of
            ``LOOKS``, where no categories are declared, or lie beyond all that is told apart, where
            no range is.
    """
    readings = [Readable(name=name, facts=facts) for name, facts in declared.items()]
    if not readings:
        return {}, set()
    asker, rows, ledger = inquiry.at_first(readings), inquiry.rows, inquiry.shared.ledger
    part = part_for_first(ledger, declared, rows)
    if not CountQuery().l2_sensitivity_squared(ledger.adjacency):
        # It is public, and tells another table apart for whoever goes on.
        asker.measure([CountQuery()], part, what="number of rows")
    names = [attribute_of("read", name) for name in declared]
    answers = list(asker.tables(names, part, UNPARSED).values())
    counted = np.array([float(each.answer.sum()) for each in answers])
    of_weights = np.array([isinstance(each, WeightFacts) for each in declared.values()])
    seen: dict[str, _Seen] = {}
    for (name, facts), answer, weighs in zip(declared.items(), answers, of_weights, strict=True):
        # Weights are counted by rows, and all else by what rows count as.
        total = max(counted[of_weights == weighs].mean() if rows is None else rows, 1)
        error = _DEVIATIONS * answer.stddev / total
        seen[name] = _Seen(facts, answer.answer[1:] / total, error, name in of_prior)
    wrong = {name: why for name in seen if name in stops_at and (why := seen[name].misfit())}
    if wrong:
        kinds = grouped((text, f"{name!r} ({share(p)})") for name, (text, p) in wrong.items())
        said = [text.replace("{}", listed(names), 1) for text, names in kinds.items()]
        said += [_ON_LOOKS] if kinds.keys() & _OF_LOOKS.values() else []
        raise stopped("its first question", said, inquiry.shared.ledger)
    diagnostics = {
        name: f"About {share(part)} of the cells of {name!r} are missing or no declared values, "
        f"and rows have declared ones instead. They may be {each.facts.unparsed}"
        for name, each in seen.items()
        if (part := each.replaced) > 0
    }
    diagnostics |= {
        name: f"About {share(part)} of the weights in {name!r} lie outside weight_range and count "
        "as its nearest end, so shares are not the population's: declare a wider one."
        for name, each in seen.items()
        if isinstance(each.facts, WeightFacts) and (part := each.out_of_range(SOME))
    }
    return diagnostics, {name for name, each in seen.items() if each.out_of_range(MANY)}


def part_for_first(
    ledger: PrivacyLedger, declared: Mapping[str, ColumnFacts], num_rows: int | None
) -> Fraction:
    """Returns the mu^2 of the first question about so many rows, if their number is public.

    It is a hundredth of the budget, with which a stop costs 0.08 at epsilon 1. Where a column of
    which no cell is as declared would stand out with up to a twentieth alone, it is as much as that
    needs: a stop costs 0.19 at most then, and all else has 2 % more noise.
    """
    least, most = ledger.budget / 100, ledger.budget / 20
    hidden = _hides_all(ledger, declared, num_rows, most)
    is_private = CountQuery().l2_sensitivity_squared(ledger.adjacency) > 0  # though a plan has it
    if num_rows is None or is_private or hidden > 1:
        return least
    # Two more deviations: it stops 98 of 100 such fits.
    enough = most * Fraction((hidden * (1 + 2 / _DEVIATIONS)) ** 2)
    return min(max(least, enough), most)


def _hides_all(
    ledger: PrivacyLedger,
    declared: Mapping[str, ColumnFacts],
    num_rows: int | None,
    mu_squared: Fraction,
) -> float:
    """Returns more than 1 if noise hides even a column of which no cell is as declared. Public."""
    queries = [MarginalQuery((name,)) for name in declared]
    noise = noise_of(ledger, queries, mu_squared) if queries else 0.0
    takes_all = any(getattr(facts, "other", None) is not None for facts in declared.values())
    let_pass = MOST if takes_all else MANY
    return _DEVIATIONS * noise / ((1 - let_pass) * max(num_rows or 0, 1))


def on_few(ledger: PrivacyLedger, declared: Mapping[str, ColumnFacts], num_rows: int) -> list[str]:
    """Returns what noise hides in so few rows, whatever they hold: mistakes, and counts. Public."""
    if not declared:
        return []
    part, said = part_for_first(ledger, declared, num_rows), []
    are_all_open = all(facts.lacks_domain for facts in declared.values())
    if not are_all_open and _hides_all(ledger, declared, num_rows, part) > 1:
        said.append(
            "In so few rows noise hides from the first question even a column of which no cell is "
            "as declared, and nothing stops a fit: look yourself at how cells are written."
        )
    alone = noise_of(ledger, [MarginalQuery((name,)) for name in declared], ledger.budget)
    moved = 4 * alone / num_rows / math.sqrt(2 * math.pi)
    if moved > MANY:
        said.append(
            f"In so few rows noise would move about {share(min(moved, 1))} of them in one of four "
            "values, even if each column were counted alone: choose fewer columns or a larger "
            "epsilon."
        )
    return said


_OF_LOOKS = {look: f"Nearly all values of {{}} are {look}." for look in LOOKS}
_ON_LOOKS = (
    "Categories are found only where many rows share them. Give dates and times the sdtype "
    "datetime and a datetime_format, or Datetime() or TimeOfDay() if they are no text; numbers the "
    "sdtype numerical and a number_format; leave out what differs in each row. If they are few "
    "categories, declare their range_values, or say allow_lost=[...]."
)


_BEYOND_ALL = {
    "dates": "Most dates of {} lie before 1678 or after 2262, where none are told apart: give "
    "their years as numbers.",
    "numbers": "Most numbers of {} lie beyond 2**62, where none are told apart. If they are hashes "
    "or ids, give them the sdtype id; if they are amounts, divide them.",
}


class _Seen(NamedTuple):
    """What parts of the rows have codes of ``Readable`` from 1 on, and their error."""

    facts: ColumnFacts
    parts: np.ndarray
    error: float
    is_of_prior: bool = False

    def misfit(self) -> tuple[str, float] | None:
        """A text with ``{}`` for names and the part of the rows that it is about, if it stops."""
        missing, unparsed, *outside = map(float, self.parts[:4])
        present = min(max(1 - missing, 0.0), 1.0)
        for look, part in zip(LOOKS, map(float, self.parts[4:]), strict=False):
            if part + self.error > NEARLY_ALL * present and part - self.error > MOST * present:
                return _OF_LOOKS[look], part
        if getattr(self.facts, "other", None) is not None:
            if not self._are_nearly_all(unparsed):
                return None
            own = "in the prior" if self.is_of_prior else "declared"
            text = f"Nearly all values are none that is {own}, and count as other_value: {{}}. "
            return f"{text}They may be {self.facts.unparsed}", unparsed
        if self.facts.nullable is False and missing - self.error > MANY:
            return (
                "Cells are missing, and range_is_nullable=False says that none is: {}. Rows would "
                "have values instead: leave it out.",
                missing,
            )
        if unparsed - self.error > MANY:
            text = "Cells are there and are no declared values: {}. They may be "
            return f"{text}{self.facts.unparsed}", unparsed
        ends = getattr(self.facts, "low", 0), getattr(self.facts, "high", 0)
        open_ends = [part for part, end in zip(outside, ends, strict=True) if end is None]
        beyond = sum(open_ends)  # unless they are most, they may mean an open end, or a code
        if beyond - math.sqrt(len(open_ends)) * self.error > MOST:
            return _BEYOND_ALL["dates" if isinstance(self.facts, DateFacts) else "numbers"], beyond
        if not self._are_nearly_all(sum(outside), math.sqrt(2)):
            return None
        words, keys = words_of(self.facts), ("range_min", "range_max")
        ends = [
            f"{key}={words[key]!r}"
            for key, part in zip(keys, outside, strict=True)
            if words.get(key) is not None and part > MANY * sum(outside)
        ]
        own = "prior's" if self.is_of_prior else "declared"
        wrong = "the year" if isinstance(self.facts, DateFacts) else "the unit"
        return (
            f"Nearly all rows lie outside the {own} {' and '.join(ends)}: {{}}. Check {wrong}, or "
            "declare a wider range; if these are codes for missing, declare them as missing_codes.",
            sum(outside),
        )

    @property
    def replaced(self) -> float:
        """The part of the rows that surely has no declared value and cannot be missing."""
        unparsed, kept = float(self.parts[:2].sum()), getattr(self.facts, "other", None) is not None
        is_sure = unparsed > max(math.sqrt(2) * self.error * SURE / _DEVIATIONS, SOME)
        return unparsed if is_sure and self.facts.nullable is False and not kept else 0.0

    def out_of_range(self, least: float) -> float:
        """The part of the rows outside the range, if it surely is more than the least; else 0."""
        part, error = float(self.parts[2:4].sum()), math.sqrt(2) * self.error * SURE / _DEVIATIONS
        return part if part - error > least else 0.0

    def _are_nearly_all(self, part: float, times: float = 1.0) -> bool:
        """Whether they may be nearly all rows, and surely are most of them."""
        error = times * self.error
        return part + error > NEARLY_ALL and part - error > MOST


def require_categories(
    found: Values, rows: Measurement, stops_at: Collection[str], ledger: PrivacyLedger
) -> None:
    """Raises ``DomainMismatchError`` for columns of which nearly all values are shared by few rows.

    What was ``found`` are noisy counts of values, and at last of missing ones. The charges of the
    ledger that have a threshold paid for them.
    """
    asked = [each for each in ledger.charges if each.threshold is not None]
    noise = max((each.stddev for each in asked), default=0.0)
    most = min((each.threshold or 0 for each in asked), default=0)
    number, names = float(rows.answer[0]), []
    for name, values in found.items():
        counts = dict(values)  # some were counted twice
        error = SURE * math.hypot(math.sqrt(len(counts)) * noise / ledger.units, rows.stddev)
        rest, present = number - sum(counts.values()), number - counts[None]
        if (
            name in stops_at
            and rest - error > MOST * number
            and rest + error > NEARLY_ALL * present
        ):
            names.append(repr(name))
    if names:
        said = (
            f"Nearly all values are none that {rows_in(ledger, math.ceil(most / ledger.units))} "
            f"share: {listed(names)}. {of_many(ledger)}"
        )
        raise stopped("its look for categories", [said], ledger)


def stopped(after: str, said: Sequence[str], ledger: PrivacyLedger) -> DomainMismatchError:
    """Returns the error of a fit that stops after a question. Public, as the ledger is."""
    text = f"The fit stopped after {after}. {' '.join(said)}"
    return DomainMismatchError(text).after(ledger)
