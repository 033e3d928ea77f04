"""Stops a fit whose first noisy counts say that what is declared of a column is not in the table.

A misspelled codebook makes all cells ``other`` or missing, and a wrong unit or year moves them to
an end of the declared range. The first noisy counts of the column, which are paid for either way,
show it. What is left of the budget then stays unspent.

Beyond the ends of a range rows are counted, so nothing has to be guessed. Where that was not done,
or where noise hides it, rows at an end may have come from beyond, or belong there. The fit then
stops only for an end at which so many rows are rare in good tables: one value, which is not 0, 1 or
-1 (many columns are 0 in nearly all rows), of at least five. Where the last cell holds several
values, nobody can tell: the fit ends, and warns.
"""

import math
import warnings
from collections.abc import Callable, Collection, Mapping, Sequence, Set
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import numpy as np

from sdv_privpgd.base.words import share
from sdv_privpgd.columns.bins import Categories, Ticks
from sdv_privpgd.columns.column import Column
from sdv_privpgd.columns.facts import ColumnFacts
from sdv_privpgd.columns.labels import code_labels
from sdv_privpgd.columns.schema import PublicDomainError, Schema
from sdv_privpgd.columns.wording import words_of
from sdv_privpgd.discovery.outside import NEARLY_ALL, Beyond
from sdv_privpgd.estimate.noisy_tables import (
    NoisyTable,
    Total,
    estimate_total,
    margin_estimates,
    noisy_tables,
)
from sdv_privpgd.privacy.curator import Curator
from sdv_privpgd.privacy.ledger import Books, Charge, PrivacyLedger
from sdv_privpgd.report.advice import NATURAL_ENDS, OPENING, to_check
from sdv_privpgd.report.known_facts import SURE

_AT_AN_END, _MOST, _SEVERAL = 0.95, 0.5, 5
"""The share of values, and of all rows, that surely are one end of a declared range, from which on
a fit stops; and how many values the range must have."""

_WORTH_KEEPING = Fraction(1, 10)
"""The part of the budget that must be left. With less of it the fit ends, and then it warns."""


CAN_GO_ON = (
    "What was paid for is kept in this error: its finish(table), with the same table, goes on all "
    "the same and spends what is left of the budget. A corrected table needs a new fit, whose "
    "budget adds to what is spent."
)
"""What is said where ``fit_table`` or ``measure`` stops."""


class MisfitError(PublicDomainError):
    """Raised in the middle of a fit if nearly no row has a declared value of a column.

    Public, as what it holds: noisy answers and books.

    Attributes:
        ledger: What was spent, and before that, where ``fit_table`` or ``measure`` stopped. It can
            be handed to a later ``fit_table(after=...)`` with other declarations. Else ``None``:
            synthesizers have books of their own.
        goes_on: Checks a table for a stopped ``fit_table`` or ``measure`` to go on with, and gives
            what then does; ``None`` for synthesizers, and once it did.

    >>> isinstance(MisfitError("Column 'ward' is 'other'."), ValueError)
    True
    """

    ledger: PrivacyLedger | None = None
    goes_on: Callable[[Any], Callable[[], Any]] | None = None

    def finish(self, table: Any) -> Any:
        """The ``FittedTable`` of a ``fit_table`` that stopped, if that is how the column is.

        Of a ``measure`` that stopped it is the ``Measured``.

        Spends what is left of the budget, on the questions that come next. What had been answered
        is not paid for again.

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
        ... except MisfitError as error:
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
            warnings.warn("\n- ".join((OPENING, *fitted.warnings)), stacklevel=2)
        return fitted


def stopped(said: Sequence[str], ledger: PrivacyLedger) -> str:
    """What is raised where a fit stops: why, and what was spent."""
    spent = ledger.spent() if ledger.charges else 0.0
    paid = f"Epsilon {spent:.3g} of {ledger.epsilon:g} is spent; no more was."
    return " ".join(["The fit stopped after its first noisy counts.", *said, paid])


class WatchedBooks(Books):
    """Books with a look at what was answered before each new charge.

    Attributes:
        lookout: What looks. What it raises leaves the books as they are.
    """

    __slots__ = ("lookout",)

    def __init__(self, ledger: PrivacyLedger) -> None:
        super().__init__(ledger)
        self.lookout: Lookout | None = None

    def charge(self, charge: Charge) -> None:
        if self.lookout is not None:
            self.lookout()
        super().charge(charge)


@dataclass
class Lookout:
    """Looks at the first noisy counts of each column of which values are declared. Public.

    Called before each question, it raises ``MisfitError`` if none of the declared values seems to
    be there: post-processing of noisy answers.

    Attributes:
        curator: Whose answers it looks at.
        schema: The columns.
        declared: What is declared of them.
        beyond: What was counted beyond the ranges of columns.
        counted_beyond: The columns of which it was counted clearly how many rows lie beyond their
            range.
        left: The columns of which it is not yet sure that declared values are there.
    """

    curator: Curator
    schema: Schema
    declared: Mapping[str, ColumnFacts]
    beyond: Sequence[Beyond] = ()
    counted_beyond: Set[str] = frozenset()
    left: set[str] = field(init=False)

    def __post_init__(self) -> None:
        self.left = {
            column.name
            for column in self.schema.columns
            if _says_values(column, self.declared.get(column.name))
        }

    def __call__(self) -> None:
        """Looks at what was answered since the last time."""
        domain, ledger = self.curator.domain, self.curator.ledger
        is_dear = ledger.remaining < ledger.budget * _WORTH_KEEPING
        if is_dear or not (self.left or self.beyond) or not self.curator.measurements:
            return
        total = estimate_total(domain, self.curator.measurements)
        told = {each.name: each.misfit(total) for each in self.beyond}
        outside = {name: sentence for name, sentence in told.items() if sentence is not None}
        said, self.beyond = list(outside.values()), ()
        new = [
            answer
            for answer in self.curator.measurements
            if self.left & set(getattr(answer.query, "clique", ()))
        ]
        known = margin_estimates(noisy_tables(domain, new), 1)
        for column in self.schema.columns:
            table = known.get((column.name,))
            if column.name in self.left - outside.keys() and table is not None:
                declared = self.declared.get(column.name)
                ends = {} if column.name in self.counted_beyond else _telling(column, declared)
                found = (
                    _at_an_end(column, table, total, ends)
                    if _are_there(column, table)
                    else _misfit(column, table, total.value, declared)
                )
                said += found
                if not found and _are_there(column, table, ends.values()):
                    self.left.discard(column.name)
        if said:
            raise MisfitError(stopped(said, ledger))


def _says_values(column: Column, declared: ColumnFacts | None) -> bool:
    """Whether it is declared which values a column has."""
    if declared is None:
        return column.sdtype == "boolean"
    return not declared.lacks_domain and getattr(declared, "values", True) not in (None, ())


def _has_other(column: Column) -> bool:
    return isinstance(column.cells, Categories) and column.cells.has_other


def _are_there(column: Column, table: NoisyTable, but: Collection[int] = ()) -> bool:
    """Whether some rows surely have a declared value, but for those of some codes."""
    counts = np.delete(table.counts[: column.num_values - _has_other(column)], list(but))
    return bool(counts.sum() > SURE * math.sqrt(counts.size * table.variance))


def _telling(column: Column, declared: ColumnFacts | None) -> dict[str, int]:
    """The codes of the declared ends at which nearly all rows are a sign of a wrong range."""
    cells, size = column.cells, column.num_values
    if not isinstance(cells, Ticks) or size < _SEVERAL:
        return {}
    whole = np.arange(size) if column.merging is None else np.asarray(column.merging.codes)
    widths = np.bincount(whole, weights=cells.widths)  # the number of values of each code
    ends = {"range_min": 0, "range_max": size - 1}
    words = words_of(declared)
    return {
        key: code
        for key, code in ends.items()
        if words.get(key) is not None and words[key] not in NATURAL_ENDS and widths[code] == 1
    }


def _at_an_end(
    column: Column, table: NoisyTable, total: Total, ends: Mapping[str, int]
) -> list[str]:
    """A sentence if nearly all rows surely are at one of the ends."""
    counts, error = table.counts, SURE * math.sqrt(table.variance)
    rows = total.value + SURE * total.stddev
    missing = max(float(counts[-1]) - error, 0.0) if column.nullable else 0.0
    for key, code in ends.items():
        there = float(counts[code]) - error
        others = float(counts[: column.num_values].sum() - counts[code])
        others -= error * math.sqrt(column.num_values - 1)
        if there < max(_MOST * rows, _AT_AN_END * (rows - missing)):
            continue
        if others > (1 - _AT_AN_END) * rows:
            continue
        where, end = ("below", "lower") if key == "range_min" else ("above", "upper")
        wrong = "the year" if column.sdtype == "datetime" else "the unit"
        part = share(min(counts[code] / total.value, 1.0))
        return [
            f"Nearly all rows of {column.name!r} ({part}, by "
            f"noisy counts) lie at the {end} end of its declared range, "
            f"{code_labels(column)[code]}: those {where} it are moved there. Check {wrong}, or "
            "declare a wider range."
        ]
    return []


def _misfit(
    column: Column, table: NoisyTable, total: float, declared: ColumnFacts | None
) -> list[str]:
    """A sentence if the rows surely have other values, or none, in place of the declared ones."""
    cells, error = column.cells, SURE * math.sqrt(table.variance)
    beside = {"other": table.counts[column.num_values - 1] if _has_other(column) else 0.0}
    if column.nullable and not getattr(declared, "nullable", None):
        beside["missing"] = table.counts[-1]
    whose = max(beside, key=lambda name: beside[name])
    part = beside[whose] / max(total, 1.0)
    if part - error / max(total, 1.0) < NEARLY_ALL:
        return []
    if whose == "other" and isinstance(cells, Categories):
        where = f"are {cells.values[-1]!r}"
        remedy = (
            "Check the codebook against how its cells are written (capitals, spaces, numbers or "
            "text)."
        )
    else:
        where = "are missing, or cannot be read as what is declared"
        remedy = f"{to_check(column)} If they are missing indeed, declare range_is_nullable=True."
    return [
        f"It found none of the values that are declared of {column.name!r}: "
        f"{share(min(part, 1.0))} of its cells, by noisy counts, {where}. "
        f"{remedy}"
    ]
