"""A plan: the questions of a fit, put to rows of missing values. Public: no table is read."""

import math
import re
from dataclasses import replace

import pandas as pd

from sdv_privpgd.base.arguments import check_integer
from sdv_privpgd.columns.ids import on_repeated_ids
from sdv_privpgd.columns.naming import on_names
from sdv_privpgd.fitting.description import Description
from sdv_privpgd.fitting.fit import Fit
from sdv_privpgd.fitting.foreseeing import outlook
from sdv_privpgd.fitting.settings import Settings
from sdv_privpgd.privacy.boundary import PrivateTable
from sdv_privpgd.privacy.ledger import PrivacyLedger
from sdv_privpgd.report.noise_advice import on_delta
from sdv_privpgd.report.outlook import plan_report
from sdv_privpgd.report.page import Report

_OF_CHOICES = re.compile("(.* (?:promise most|depend most|spanning tree)): .*")
"""What is asked of cliques that answers have chosen, in the words of the strategies."""

_CHOICE = "worst fitted clique"
"""What is asked before each question of the adaptive strategies."""

_OF_PEOPLE = (
    "Rows here are people: with weighed=True all rows of a person count as one, so give the number "
    "of people, not of rows."
)


def planned(settings: Settings, description: Description, num_rows: int) -> Report:
    """What a fit to so many rows would ask, and how large its errors are to be expected."""
    num_rows = check_integer("num_rows", num_rows, least=0)
    missing = pd.Series([None] * num_rows, dtype=object)
    columns = dict.fromkeys([*description.columns, *description.measured], missing)
    # Rare categories, so that both questions about those that nobody declared are planned.
    columns |= dict.fromkeys(description.uncategorized, pd.Series(range(num_rows)) // 10)
    table = PrivateTable(columns, bound=settings.people.limit)
    fit = Fit(settings, description)
    fit.discover(table)
    expected = outlook(settings, fit.description, fit.books.ledger, num_rows)
    fit.ask(table)
    notes = [
        *on_repeated_ids(
            [each for each in description.repeated_ids if each != settings.people.column],
            settings.people.max_rows,
        ),
        *([_OF_PEOPLE] if settings.people.weighed else []),
        *on_names(description.facts),
        *description.on_days,
        *on_delta(settings.delta, num_rows),
        *_on_categories(description.uncategorized, fit.books.ledger),
    ]
    return plan_report(without_choices(fit.books.ledger), num_rows, expected, notes)


def _on_categories(names: list[str], ledger: PrivacyLedger) -> list[str]:
    """Returns a sentence on how many rows a category must have to be found, if some are sought."""
    sought = [each.threshold or 0 for each in ledger.charges if "categories of un" in each.what]
    if not sought:
        return []
    rows = math.ceil(min(sought) / ledger.units)
    return [
        f"The categories of {names!r} are not declared: one is found if its noisy count is at "
        f"least {rows:,} rows. Rows of others become 'other', or missing among numbers. Declare "
        "categories that may be rarer."
    ]


def without_choices(ledger: PrivacyLedger) -> PrivacyLedger:
    """Returns the books without the cliques that answers on missing values happened to choose."""
    charges, is_chosen = [], False
    for charge in ledger.charges:
        what = _OF_CHOICES.sub(r"\1, which noisy answers will choose", charge.what)
        charges.append(replace(charge, what="the chosen clique" if is_chosen else what))
        is_chosen = charge.what == _CHOICE
    return replace(ledger, charges=tuple(charges))
