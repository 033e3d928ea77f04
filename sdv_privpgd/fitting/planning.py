"""A plan: the questions of a fit, put to rows of missing values. Public: no table is read."""

import pandas as pd

from sdv_privpgd.columns.ids import on_repeated_ids
from sdv_privpgd.columns.naming import on_names
from sdv_privpgd.fitting.description import Description
from sdv_privpgd.fitting.fit import Fit
from sdv_privpgd.fitting.foreseeing import outlook
from sdv_privpgd.fitting.settings import Settings, check_count
from sdv_privpgd.privacy.boundary import PrivateTable
from sdv_privpgd.report.document import Report
from sdv_privpgd.report.noise_advice import on_delta
from sdv_privpgd.report.plan import plan_report


def planned(settings: Settings, description: Description, num_rows: int) -> Report:
    """What a fit to so many rows would ask, and how large its errors are to be expected.

    >>> from sdv_privpgd import AllPairs, PrivatePGM
    >>> columns = {"ill": {"sdtype": "boolean"}, "old": {"sdtype": "boolean"}}
    >>> settings = Settings(epsilon=1.0, strategy=AllPairs(), engine=PrivatePGM())
    >>> report = planned(settings, Description(columns=columns), num_rows=1_000)
    >>> report.to_dict()["num_rows"]
    1000
    """
    num_rows = check_count("num_rows", num_rows, least=0)
    missing = pd.Series([None] * num_rows, dtype=object)
    table = PrivateTable(dict.fromkeys(description.columns, missing))
    fit = Fit(settings, description)
    fit.discover(table)
    expected = outlook(settings, fit.description, fit.books.ledger, num_rows)
    fit.ask(table)
    notes = [
        *on_repeated_ids(
            [each for each in description.repeated_ids if each != settings.person_column],
            settings.rows_per_person,
        ),
        *on_names(description.facts),
        *on_delta(settings.delta, num_rows),
    ]
    return plan_report(fit.books.ledger, num_rows, expected, notes)
