"""More budget for the table of an earlier fit, and words on people who are in several releases."""

import warnings
from dataclasses import dataclass, replace
from datetime import date
from typing import Any, TypeVar

from sdv_privpgd.base.progress import Progress, silent
from sdv_privpgd.fitting.fit import Fit, Fitted
from sdv_privpgd.fitting.opening import opened
from sdv_privpgd.fitting.settings import Settings
from sdv_privpgd.fitting.unfinished import booked, note_on
from sdv_privpgd.privacy.boundary import PrivateTable
from sdv_privpgd.privacy.composition import raised
from sdv_privpgd.privacy.ledger import PrivacyLedger
from sdv_privpgd.privacy.queries import CountQuery, GroupedMarginalQuery, MarginalQuery

Again = TypeVar("Again", bound="Refinable")


@dataclass(frozen=True, kw_only=True)
class Refinable:
    """A fitted table that more can be spent on. Public.

    Attributes:
        fitted: The model, and what is known of the columns.
        settings: What the fit might spend, and by which method.
        ledger: What it spent, and what earlier releases did.
        warnings: What is worth a look before the rows are used, a sentence each.
        date: When it was fitted.
    """

    fitted: Fitted
    settings: Settings
    ledger: PrivacyLedger
    warnings: tuple[str, ...]
    date: str

    def refine(self: Again, table: Any, epsilon: float, *, progress: Progress = silent) -> Again:
        """The same fit with more budget: the table is asked again, and all answers are fitted.

        Privacy: one ledger. Its epsilon grows by ``epsilon`` at the same delta, and all that was
        ever released of the table is within it: 0.5 and 0.5 more spend exactly what 1 does.
        Answers to the same question are averaged by inverse variance, so that errors fall as if
        all had been asked at once (``tests/benchmarks holders --refine``). Nothing is discovered
        anew, and the new model starts from this one.

        Args:
            table: The table that was fitted, with the same rows, as ``fit`` takes it. For a table
                that has grown, make a second release: ``fit_table(..., after=earlier.ledger)``.
            epsilon: What is added.
            progress: Told of the steps.

        Warns if this fit was refined before: each of the results has a ledger that knows nothing of
        the other. Refine the last one.

        Raises:
            ValueError: For a table of other columns or, where it is public, another number of rows;
                for fits whose tables were not kept; and for an epsilon that is not positive.
        """
        fit, before = begun_again(self.fitted, epsilon), own_ledger(self.fitted, self.ledger)
        private = opened_again(self.fitted, table)
        if vars(self).get("_is_refined"):
            warnings.warn(
                "This fit was refined before. Now two fits ask its table, and their ledgers know "
                "nothing of each other: what both cost adds up. Refine the last one instead.",
                stacklevel=2,
            )
        vars(self)["_is_refined"] = True
        try:
            fitted = asked_again(fit, self.fitted, private, progress)
        except BaseException as error:
            note_on(error, gone(fit.books.ledger, fit.settings))
            raise
        ledger = booked(self.ledger, before, fit.books.ledger)
        assert ledger is not None
        return replace(
            self,
            fitted=fitted,
            settings=fit.settings,
            ledger=ledger,
            warnings=composed(fitted, ledger),
            date=date.today().isoformat(),
        )


def begun_again(fitted: Fitted, epsilon: float) -> Fit:
    """A fit that goes on with the answers of an earlier one, and may spend so much more epsilon.

    Nothing is discovered anew: all codes mean what they meant.

    Raises:
        ValueError: Where nothing was measured, or the tables were not kept; and for an epsilon that
            is not positive.
    """
    release, settings = fitted.release, fitted.settings
    if release is None or settings is None:
        raise ValueError("Nothing that could be gone on with is known of this fit: fit anew.")
    tables = MarginalQuery | GroupedMarginalQuery
    if not any(isinstance(each.query, tables) for each in release.measurements):
        raise ValueError(
            "The noisy tables of this fit were not kept, because its engine protects a statistic "
            "that they would show. So there is nothing to refine: fit anew."
        )
    ledger = raised(release.ledger, epsilon)
    return Fit(
        replace(settings, epsilon=ledger.epsilon),
        fitted.description,
        doubts=fitted.doubts,
        begun=ledger,
    )


def require_same_rows(fitted: Fitted, table: PrivateTable) -> None:
    """Raises ``ValueError`` if a table has another number of rows, where that is public."""
    assert fitted.release is not None
    assert fitted.settings is not None
    rows = table.known_rows(fitted.settings.adjacency)
    known = [each for each in fitted.release.measurements if isinstance(each.query, CountQuery)]
    before = next((int(each.answer[0]) for each in known if not each.stddev), None)
    if rows is not None and before is not None and rows != before:
        raise ValueError(
            f"refine asks about the same rows again. The table had {before:,} rows, and this one "
            f"has {rows:,}. For a table that has grown, make a second release that follows the "
            "first on one ledger: fit_table(table, ..., after=earlier.ledger), a second fit of the "
            "same synthesizer, or --ledger on the command line."
        )


def opened_again(fitted: Fitted, table: Any) -> PrivateTable:
    """The columns of a table that were fitted before.

    Raises:
        ValueError: If they are not there, or are of other dtypes, and as ``require_same_rows``.
    """
    bound = None if fitted.release is None else fitted.release.ledger.bound
    private = opened(table, fitted.description, bound)
    require_same_rows(fitted, private)
    return private


def own_ledger(fitted: Fitted, otherwise: PrivacyLedger) -> PrivacyLedger:
    """What this fit has spent, without earlier releases."""
    return otherwise if fitted.release is None else fitted.release.ledger


def asked_again(
    fit: Fit, fitted: Fitted, table: PrivateTable, progress: Progress = silent
) -> Fitted:
    """Asks about the same table again for all that is left, and fits all answers from the model.

    Answers to the same question are averaged by inverse variance, so the noise is what it would
    have been if all had been asked at once; what earlier answers chose stays chosen by them.
    """
    assert fitted.release is not None
    fit.settings.method.prepare(progress)
    known = fitted.release.measurements
    fit.ask(table, progress, known=known, again=True)
    starts = (*fitted.starts, len(known))
    return fit.model(progress, warm_start=fitted.release.model, starts=starts)


def on_several_releases(books: PrivacyLedger, own: PrivacyLedger) -> tuple[str, ...]:
    """A sentence on people who are in the tables of earlier releases, too, if there were any.

    Args:
        books: All that was spent, in order.
        own: What the last release has spent: the last charges of the books.
    """
    begun = len(books.charges) - len(own.charges)
    earlier = replace(books, charges=books.charges[: max(begun, 0)])
    if not earlier.charges or books.charges[begun:] != own.charges:
        return ()
    return (
        "The ledger holds earlier releases. Whoever is in the tables of all of them is protected "
        f"by epsilon {books.spent():.4g} at delta {books.delta:g} in all. Whoever came after them, "
        f"and is in this table alone, is protected by epsilon {own.spent():.4g}; whoever had left "
        f"before, by epsilon {earlier.spent():.4g}.",
    )


def composed(fitted: Fitted, ledger: PrivacyLedger) -> tuple[str, ...]:
    """What is worth a look after a fit, and what is said of earlier releases on its ledger."""
    own = own_ledger(fitted, ledger)
    return (*fitted.warnings(own), *on_several_releases(ledger, own))


def gone(ledger: PrivacyLedger, settings: Settings) -> str:
    """What is said where a fit fails of which nothing is kept."""
    spent = ledger.spent() if ledger.charges else 0.0
    return f"The fit had spent epsilon {spent:.4g} of {settings.epsilon:g}, which is gone."
