"""Going on with an earlier fit: one that failed, or one that gets more budget. Public."""

import math
import sys
import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

from sdv_privpgd.columns.schema import Schema
from sdv_privpgd.discovery.transcript import Answered
from sdv_privpgd.fitting.description import Description
from sdv_privpgd.fitting.fit import Fit, Fitted, tables_of
from sdv_privpgd.fitting.options import opened
from sdv_privpgd.fitting.settings import Settings
from sdv_privpgd.privacy.accounting import epsilon_of
from sdv_privpgd.privacy.boundary import EncodedTable, PrivateTable
from sdv_privpgd.privacy.ledger import PrivacyLedger, raised
from sdv_privpgd.privacy.queries import CountQuery, Measurement


@dataclass(frozen=True, kw_only=True)
class Unfinished:
    """Noisy answers that no model was made of.

    Attributes:
        description: What was public of the table, with what was discovered.
        diagnostics: What discovery has to say of columns' ranges; ``None`` if it had not ended.
        looked: What discovery had been answered until then; of one that had ended the number of
            rows, which says whether a table can be the same.
        ledger: The ledger of the fit. What it has left can still be spent.
        schema: What the codes mean that the answers are about; ``None`` before any was asked for.
        answers: In the order in which they were asked for.
        names: Whether a frame was fitted, and the names of its columns, where SDV's class asks.
    """

    description: Description
    diagnostics: Mapping[str, str] | None
    ledger: PrivacyLedger
    schema: Schema | None
    answers: tuple[Measurement, ...]
    looked: tuple[Answered, ...] = ()
    names: tuple[bool, Any] = (True, None)

    @classmethod
    def of(cls, fit: Fit) -> "Unfinished":
        """What is left of a fit that failed."""
        found, curator = fit.transcript.answered, fit.curator
        return cls(
            description=fit.description,
            diagnostics=fit.diagnostics if fit.has_discovered else None,
            ledger=fit.shared.ledger,
            schema=None if curator is None else fit.description.attributes,
            answers=() if curator is None else curator.measurements,
            looked=tuple(e for e in found if not fit.has_discovered or _counts(e.found)),
        )

    @property
    def has_tables(self) -> bool:
        """Whether a model can be made of the answers."""
        return bool(tables_of(self.answers))

    @property
    def known_rows(self) -> int | None:
        """The number of rows, where the fit had released it as it is."""
        return _known_rows([*self.answers, *(each for look in self.looked for each in look.found)])

    def remedy(self) -> str:
        """What can be done with it."""
        if not self.has_tables:
            return (
                "What was paid for is kept: resume(data) with the same table spends what is left "
                "of the budget, and asks for nothing twice."
            )
        more = " With the same table, resume(data), what is left of the budget is spent as well."
        return (
            "What was paid for is kept: resume() makes a model of it, at no cost."
            f"{more if self.ledger.remaining else ''}"
        )

    def opened(self, table: Any, settings: Settings) -> PrivateTable:
        """The same table once more.

        Raises ``ValueError`` for another one, as far as that is public.
        """
        settings.require(self.ledger)
        private = opened(table, self.description, self.ledger.bound, settings.objections)
        self.require_same_rows(private)
        return private

    def fit(self, settings: Settings, description: Description) -> Fit:
        """The fit that goes on with it."""
        known = {"diagnostics": self.diagnostics, "begun": self.ledger, "answered": self.looked}
        return Fit(settings, description, **known)

    def require_same_rows(self, table: PrivateTable | EncodedTable) -> None:
        """Raises ``ValueError`` for another number of rows, where that is public."""
        rows = table.known_rows(self.ledger.adjacency)
        if rows is not None and self.known_rows not in (None, rows):
            raise ValueError(
                f"The table of the fit that stopped had {self.known_rows:,} rows, and this one has "
                f"{rows:,}: hand over the same one."
            )

    def require(self, settings: Settings, description: Description, *, with_data: bool) -> None:
        """Raises ``ValueError`` unless it can be finished under these settings."""
        settings.require(self.ledger)
        if description.visits != self.description.visits or (
            self.schema is not None and description.attributes != self.schema
        ):
            raise ValueError(
                "The settings that give the noisy answers their meaning have changed since the fit "
                "that is to be finished: public_domain, method, enforce_rounding, constraints or "
                "people. Set them back, or fit anew."
            )
        if not (self.has_tables or with_data):
            raise ValueError(
                "No table was asked for before the fit failed. Call resume(data) with the table of "
                "that fit: what was answered is not paid for again."
            )


def _counts(found: Iterable[Any]) -> list[Measurement]:
    """The numbers of rows among what was answered."""
    measured = (each for each in found if isinstance(each, Measurement))
    return [each for each in measured if isinstance(each.query, CountQuery)]


def _known_rows(found: Iterable[Any]) -> int | None:
    return next((int(each.answer[0]) for each in _counts(found) if not each.stddev), None)


def booked(
    total: PrivacyLedger | None, begun: PrivacyLedger, now: PrivacyLedger
) -> PrivacyLedger | None:
    """The ledger of all fits with what was charged since one of them began, or went on."""
    charged = now.charges[len(begun.charges) :]
    if not charged:
        return total
    if total is None or total == begun:
        return now
    if not begun.charges:
        return total.followed_by(now)
    grown = replace(
        total, charges=total.charges + charged, budget=total.budget + now.budget - begun.budget
    )
    if grown.budget == total.budget:
        return grown
    left = float(Fraction(total.delta) - total.reserved)
    return replace(grown, epsilon=epsilon_of(grown.budget, left) if left > 0 else math.inf)


def note_on(error: BaseException, note: str) -> None:
    """Adds a sentence to an error; where Python cannot, it is a warning."""
    if sys.version_info >= (3, 11):
        error.add_note(note)
    else:
        warnings.warn(note, stacklevel=2)


def begun_again(fitted: Fitted, epsilon: float) -> Fit:
    """A fit that goes on with the answers of an earlier one, and may spend so much more epsilon.

    Nothing is discovered anew: all codes mean what they meant.

    Raises:
        ValueError: Where nothing was measured, or the tables were not kept; for one of several
            tables; and for an epsilon that is not positive.
        PrivacyBudgetError: For a method that has nothing more to ask.
    """
    release, settings = fitted.release, fitted.settings
    if release is None or settings is None:
        raise ValueError("Nothing that could be gone on with is known of this fit: fit anew.")
    if settings.family:
        raise ValueError(
            "add_budget takes one table, and this is one of several that belong together. Fit them "
            "once more: what both have spent adds up."
        )
    if not tables_of(release.measurements):
        raise ValueError(
            "The noisy tables of this fit were not kept, because its engine protects a statistic "
            "that they would show. More budget would not help: fit anew."
        )
    ledger = raised(release.ledger, epsilon)
    settings.method.require_budget(ledger)
    settings = replace(settings, epsilon=ledger.epsilon)
    return Fit(settings, fitted.description, diagnostics=fitted.diagnostics, begun=ledger)


def warn_of_more(fitted: Fitted) -> None:
    """Warns if more budget was added to a fit before, at whatever door."""
    if fitted.has_more:
        warnings.warn(
            "This fit got more budget before. Now two fits ask its table, and their ledgers know "
            "nothing of each other: what both cost adds up. Add to the last one instead.",
            stacklevel=3,
        )


def require_same_rows(fitted: Fitted, table: PrivateTable) -> None:
    """Raises ``ValueError`` if a table has another number of rows, where that is public."""
    assert fitted.release is not None
    assert fitted.settings is not None
    rows = table.known_rows(fitted.settings.adjacency)
    before = _known_rows(fitted.release.measurements)
    if rows is not None and before is not None and rows != before:
        raise ValueError(
            f"add_budget asks about the same rows again. The table had {before:,} rows, and this "
            f"one has {rows:,}. For a table that has grown, make a second release that follows the "
            "first on one ledger: fit_table(table, ..., after=earlier.ledger), a second fit of the "
            "same synthesizer, or --ledger on the command line."
        )


def opened_again(fitted: Fitted, table: Any) -> PrivateTable:
    """The columns of a table that were fitted before.

    Raises ``ValueError`` if they are not there, are of other dtypes, or have other rows.
    """
    bound = None if fitted.release is None else fitted.release.ledger.bound
    private = opened(table, fitted.description, bound)
    require_same_rows(fitted, private)
    return private


def own_ledger(fitted: Fitted, otherwise: PrivacyLedger) -> PrivacyLedger:
    """What this fit has spent, without earlier releases."""
    return otherwise if fitted.release is None else fitted.release.ledger


def on_several_releases(total: PrivacyLedger, own: PrivacyLedger) -> tuple[str, ...]:
    """A sentence on people who are in the tables of earlier releases, too, if there were any.

    What the last release has spent is its ``own``: the last charges of the ledger.
    """
    begun = len(total.charges) - len(own.charges)
    earlier = replace(total, charges=total.charges[: max(begun, 0)])
    if not earlier.charges or total.charges[begun:] != own.charges:
        return ()
    return (
        "The ledger holds earlier releases. Whoever is in the tables of all of them is protected "
        f"by epsilon {total.spent():.4g} at delta {total.delta:g} in all. Whoever came after them, "
        f"and is in this table alone, is protected by epsilon {own.spent():.4g}; whoever had left "
        f"before, by epsilon {earlier.spent():.4g}.",
    )


def composed(fitted: Fitted, ledger: PrivacyLedger) -> tuple[str, ...]:
    """What is worth a look after a fit, and what is said of earlier releases on its ledger."""
    own = own_ledger(fitted, ledger)
    return (*fitted.warnings(own), *on_several_releases(ledger, own))


def by_table(said: Mapping[str, Sequence[str]]) -> tuple[str, ...]:
    """Sentences on tables, behind the name of each; those on all of several come first, once."""
    first, *others = said.values() or ((),)
    shared = [each for each in first if others and all(each in other for other in others)]
    own = (f"{name}: {s}" for name, each in said.items() for s in each if s not in shared)
    return (*shared, *own)


def gone(ledger: PrivacyLedger, epsilon: float) -> str:
    """What is said where a fit fails of which nothing is kept."""
    return f"The fit had spent epsilon {ledger.spent():.4g} of {epsilon:g}, which is gone."
