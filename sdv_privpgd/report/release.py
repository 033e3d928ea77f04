"""The public page of a fit: what was spent, what noise hides, the rows' fit, and the tables.

Nothing here is private: all of it follows from a release and the public description of the columns.
"""

from collections.abc import Sequence

from sdv_privpgd.columns.schema import Schema
from sdv_privpgd.pipeline import Release
from sdv_privpgd.privacy.ledger import PrivacyLedger
from sdv_privpgd.report.assumed import About, assumed_section, facts_about, subject
from sdv_privpgd.report.download import download_section
from sdv_privpgd.report.fit import column_estimates, fit_sections
from sdv_privpgd.report.guarantee import guarantee_parts, ledger_section, meaning_section
from sdv_privpgd.report.hidden import hidden_section
from sdv_privpgd.report.methods import methods_section
from sdv_privpgd.report.page import Items, Page, Report, Section
from sdv_privpgd.report.privacy import privacy_report
from sdv_privpgd.report.visits import visits_sections


def release_page(
    release: Release | None,
    ledger: PrivacyLedger,
    schema: Schema,
    about: About,
    *,
    notes: Sequence[str] = (),
) -> Page:
    """The page of a fit; ``release`` is None where no column was modelled.

    ``notes`` are public sentences that stand first. Users call ``FittedTable.report`` or a
    synthesizer's ``report``, which write the page.
    """
    first = [Section("Read this first", [Items(notes)])] if notes else []
    shown, last = [], []
    if release is not None:
        estimates = column_estimates(release, schema)
        shown = fit_sections(release, schema, estimates)
        if estimates:
            shown = [hidden_section(release, schema, estimates), *shown]
            last = [download_section(release, schema, estimates)]
        last.append(methods_section(about, release, ledger))
    return Page(
        title=f"Synthetic rows of {about.table!r}: privacy and fit",
        lead=[subject(about, release, ledger.adjacency), *guarantee_parts(ledger)],
        sections=[
            *first,
            assumed_section(about, ledger.adjacency),
            *visits_sections(about.visits),
            meaning_section(ledger),
            *shown,
            ledger_section(ledger),
            *last,
        ],
    )


def release_report(
    release: Release | None,
    ledger: PrivacyLedger,
    schema: Schema,
    about: About,
    *,
    notes: Sequence[str] = (),
) -> Report:
    """What a fit is of, what was spent and how well its rows fit the noisy answers. Public."""
    return Report(
        text=privacy_report(ledger, notes=notes),
        page=release_page(release, ledger, schema, about, notes=notes),
        facts={
            "report": "privacy",
            "public": True,
            **facts_about(about, release),
            "epsilon_spent": ledger.spent(),
            "ledger": ledger.to_dict(),
            "warnings": list(notes),
        },
    )
