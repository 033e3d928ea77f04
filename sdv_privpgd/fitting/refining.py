"""More budget for the table of an earlier fit, and words on people who are in several releases."""

from dataclasses import replace
from typing import Any

from sdv_privpgd.base.progress import Progress, silent
from sdv_privpgd.fitting.fit import Fit, Fitted
from sdv_privpgd.fitting.opening import opened
from sdv_privpgd.fitting.settings import Settings
from sdv_privpgd.privacy.boundary import PrivateTable
from sdv_privpgd.privacy.ledger import PrivacyLedger, raised
from sdv_privpgd.privacy.queries import CountQuery, GroupedMarginalQuery, MarginalQuery


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
