"""Stops a fit whose first noisy counts say that what is declared of a column is not in the table.

The first question of a fit is how many cells of each column are there and no declared values: a
misspelled codebook, dates in another format, numbers with words. It takes a hundredth of mu^2, so
that a corrected fit can still be paid. A wrong unit or year moves cells to an end of the declared
range, and a value for all others takes in what is misspelled. The first noisy counts of the column,
which are paid for either way, show that. What is left of the budget then stays unspent.

The rules of ``report/warnings.py`` that stop say so. Where the last cell of a range holds several
values, nobody can tell whether rows there belong there: the fit ends, and warns.
"""

import math
import warnings
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import numpy as np

from sdv_privpgd.base.words import listed, share
from sdv_privpgd.columns.facts import ColumnFacts
from sdv_privpgd.columns.readings import Readable, attribute_of
from sdv_privpgd.columns.schema import PublicDomainError, Schema
from sdv_privpgd.discovery.categories import Values
from sdv_privpgd.discovery.outside import Beyond
from sdv_privpgd.discovery.transcript import Transcript
from sdv_privpgd.privacy.boundary import PrivateTable
from sdv_privpgd.privacy.curator import Curator
from sdv_privpgd.privacy.ledger import Books, Charge, PrivacyLedger
from sdv_privpgd.privacy.queries import MarginalQuery
from sdv_privpgd.report.warnings import (
    COLUMN_RULES,
    MANY,
    MOST,
    SURE,
    Answers,
    ColumnShares,
    PublicFacts,
    findings,
    in_one,
    on_reading,
    sentences,
)

UNREAD = "cells that are no declared values"
"""What the ledger says of the first question."""

_FIRST_PART = Fraction(1, 100)
"""The part of the budget that the first question takes. At epsilon 1 a stop costs about 0.07."""

_WORTH_KEEPING = Fraction(1, 10)
"""The part of the budget that must be left. With less of it the fit ends, and then it warns."""


CAN_GO_ON = (
    "What was paid for is kept in this error: its finish(table), with the same table, goes on all "
    "the same and spends what is left of the budget. A corrected table needs a new fit, whose "
    "budget adds to what is spent."
)
"""What is said where ``fit_table`` or ``measure`` stops."""


class DomainMismatchError(PublicDomainError):
    """Raised in the middle of a fit if nearly no row has a declared value of a column.

    Public, as what it holds: noisy answers and books.

    Attributes:
        ledger: What was spent so far, for a later ``fit_table(after=...)``; ``None`` for
            synthesizers, which have books of their own.
        goes_on: Checks a table to go on with, and gives what then does; ``None`` for synthesizers,
            and once it did.

    >>> isinstance(DomainMismatchError("Column 'ward' is 'other'."), ValueError)
    True
    """

    ledger: PrivacyLedger | None = None
    goes_on: Callable[[Any], Callable[[], Any]] | None = None

    def finish(self, table: Any) -> Any:
        """Returns what ``fit_table`` or ``measure`` would have, if that is how the column is.

        Spends what is left of the budget. What had been answered is not paid for again.

        Args:
            table: The table of that fit.

        Raises:
            ValueError: If another table is given, as far as that is public; if it went on before;
                and for a synthesizer, whose own ``finish`` goes on.

        >>> import pandas as pd
        >>> from sdv_privpgd import Categorical, fit_table
        >>> table = pd.DataFrame({"ward": ["a", "b"] * 1_000})
        >>> wards = Categorical(["A", "B"], other="other")
        >>> try:
        ...     fitted = fit_table(table, {"ward": wards}, 1.0, method="mst")
        ... except DomainMismatchError as error:
        ...     fitted = error.finish(table)
        >>> fitted.num_rows
        2000
        """
        if self.goes_on is None:
            raise ValueError(
                "There is nothing to finish here: a stopped fit_table goes on once, and of a "
                "synthesizer call finish(data)."
            )
        spend = self.goes_on(table)
        self.goes_on = None  # from here on the rest of the budget is spent
        fitted = spend()
        if fitted.warnings:
            warnings.warn(in_one(fitted.warnings), stacklevel=2)
        return fitted


class WatchedBooks(Books):
    """Books with a look at what was answered before each new charge.

    Attributes:
        check: What looks. What it raises leaves the books as they are.
    """

    __slots__ = ("check",)

    def __init__(self, ledger: PrivacyLedger) -> None:
        super().__init__(ledger)
        self.check: DomainCheck | None = None

    def charge(self, charge: Charge) -> None:
        if self.check is not None:
            self.check()
        super().charge(charge)


def ask_first(
    table: PrivateTable,
    declared: Mapping[str, ColumnFacts],
    books: Books,
    transcript: Transcript,
    *,
    stops_at: Collection[str] = (),
) -> None:
    """Asks how many cells of each column are there and no declared values.

    Privacy: a hundredth of the ledger's budget.

    Args:
        table: The private columns.
        declared: What is declared of each modelled column.
        books: Of the fit.
        transcript: Gets the answers, or has them.
        stops_at: The columns that stop a fit.

    Raises:
        DomainMismatchError: If these are surely more than a tenth of all rows in one of them.
    """
    readings = [Readable(name=name, facts=facts) for name, facts in declared.items()]
    if not readings:
        return
    asker = transcript.asking(lambda: table.first_look(readings, books), books)
    queries = [MarginalQuery((attribute_of("read", name),)) for name in declared]
    answers = asker.measure(queries, books.ledger.budget * _FIRST_PART, what=UNREAD)
    rows = table.known_rows(books.ledger.adjacency)
    total = np.mean([answer.answer.sum() for answer in answers]) if rows is None else rows
    remedies: dict[str, list[str]] = {}
    for (name, facts), answer in zip(declared.items(), answers, strict=True):
        part = answer.answer[2] / max(total, 1.0)
        if name in stops_at and part - SURE * answer.stddev / max(total, 1.0) > MANY:
            why = on_reading(facts.sdtype, getattr(facts, "datetime_format", None), facts)
            remedies.setdefault(why, []).append(f"{name!r} ({share(float(part))})")
    if remedies:
        said = [
            f"Cells are there and are no declared values: {listed(names)}. They may be {why}"
            for why, names in remedies.items()
        ]
        raise stopped("its first question", said, books.ledger)


def require_categories(
    found: Values, rows: float | None, stops_at: Collection[str], ledger: PrivacyLedger
) -> None:
    """Raises ``DomainMismatchError`` for columns with values, of which none is shared by many rows.

    Args:
        found: The noisy counts of values, and at last of missing ones.
        rows: The number of rows, if it is public.
        stops_at: The columns that stop a fit.
        ledger: The books, whose last charge paid for these counts.
    """
    last = ledger.charges[-1]
    error, most = SURE * last.stddev / ledger.units, last.threshold or 0
    names = [
        name
        for name, values in found.items()
        if name in stops_at
        and rows is not None
        and all(value is None for value, _ in values)
        and rows - values[-1][1] - error > MOST * rows
    ]
    if names:
        said = (
            f"No value was found that {math.ceil(most / ledger.units):,} rows share: "
            f"{listed([*map(repr, names)])}. If each row has another value, it is an id: give it "
            "the sdtype id; if it says whose a row is, name it: people=People(column, "
            "max_rows=...). Dates need the sdtype datetime, and numbers the sdtype numerical. "
            "Otherwise declare their range_values."
        )
        raise stopped("its look for categories", [said], ledger)


def stopped(after: str, said: Sequence[str], ledger: PrivacyLedger) -> DomainMismatchError:
    """Returns the error of a fit that stops after a question. Public, as the books are."""
    spent = ledger.spent() if ledger.charges else 0.0
    return DomainMismatchError(
        f"The fit stopped after {after}. {' '.join(said)} Epsilon {spent:.3g} of "
        f"{ledger.epsilon:g} is spent; no more was."
    )


@dataclass
class DomainCheck:
    """Looks at the first noisy counts of each column of which values are declared. Public.

    Called before each question, it raises ``DomainMismatchError`` if none of the declared values
    seems to be there: post-processing of noisy answers.

    Attributes:
        curator: Whose answers it looks at.
        schema: The columns.
        declared: What is declared of them.
        stops_at: The columns that stop a fit.
        beyond: What was counted beyond the ranges of columns.
        counted: The columns of which it was counted clearly how many rows lie beyond their range.
        left: The columns of which it is not yet sure that declared values are there.
    """

    curator: Curator
    schema: Schema
    declared: Mapping[str, ColumnFacts]
    stops_at: Collection[str]
    beyond: Sequence[Beyond] = ()
    counted: Collection[str] = ()
    left: set[str] = field(init=False)

    def __post_init__(self) -> None:
        self.left = {
            column.name
            for column in self.schema.columns
            if column.name in self.stops_at
            and _says_values(column.sdtype, self.declared.get(column.name))
        }

    def __call__(self) -> None:
        """Looks at what was answered so far."""
        ledger, answers = self.curator.ledger, self.curator.measurements
        is_dear = ledger.remaining < ledger.budget * _WORTH_KEEPING
        if is_dear or not (self.left or self.beyond) or not answers:
            return
        facts = PublicFacts(
            schema=self.schema,
            release=Answers(self.curator.domain, answers),
            ledger=ledger,
            declared=self.declared,
            counted=self.counted,
        )
        told = {each.name: each.misfit(facts.total) for each in self.beyond}
        outside = {name: sentence for name, sentence in told.items() if sentence is not None}
        self.beyond = ()
        new = {name: facts.columns[name] for name in sorted(self.left & facts.columns.keys())}
        self.left -= {name for name, seen in new.items() if _has_values(seen)}
        doubtful = {name: new[name] for name in new if name in self.left and name not in outside}
        found = findings(doubtful, [rule for rule in COLUMN_RULES if rule.stops])
        said = [*outside.values(), *sentences(found)]
        if said:
            raise stopped("its first noisy counts", said, ledger)


def _says_values(sdtype: str, declared: ColumnFacts | None) -> bool:
    """Whether it is declared which values a column has."""
    if declared is None or sdtype == "boolean":
        return sdtype == "boolean"
    return not declared.lacks_domain and getattr(declared, "values", True) not in (None, ())


def _has_values(seen: ColumnShares) -> bool:
    """Whether some rows surely have a declared value that is no end of its range."""
    ends = [end.code for end in seen.ends() if end.is_single]
    shares = np.delete(seen.shares[: seen.size - seen.has_other], ends)
    return bool(shares.sum() > seen.error * math.sqrt(shares.size))
