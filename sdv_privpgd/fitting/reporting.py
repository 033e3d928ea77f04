"""The report of a fit, the same through every door. Public."""

from collections.abc import Mapping, Sequence
from typing import Any

from sdv_privpgd.fitting.fit import Fitted
from sdv_privpgd.fitting.settings import Settings
from sdv_privpgd.privacy.ledger import PrivacyLedger
from sdv_privpgd.report.assumed import About
from sdv_privpgd.report.page import Report
from sdv_privpgd.report.release import release_report


def report_of(
    fitted: Fitted,
    ledger: PrivacyLedger,
    settings: Settings,
    *,
    table: str,
    date: str,
    told: Mapping[str, Any],
    notes: Sequence[str],
) -> Report:
    """What was spent, how loud the noise is and how well the rows fit the noisy answers.

    Args:
        fitted: What the fit left.
        ledger: Of all fits of the object.
        settings: The method, and what it might spend.
        table: The table's name.
        date: When it was fitted.
        told: What else the fit was told, by name.
        notes: What is worth a look, a sentence each.
    """
    description = fitted.description
    about = About(
        table=table,
        date=date,
        method=settings.method,
        columns=description.columns,
        keys=tuple(description.keys),
        declared=description.facts,
        discovered=description.discovered,
        settings=told,
        visits=description.visits,
        prior=() if description.public is None else description.public.said,
    )
    return release_report(fitted.release, ledger, fitted.schema, about, notes=notes)
