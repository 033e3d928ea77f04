"""Where nobody has said whose the rows are, each report says first that a row is protected."""

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest

from sdv_privpgd import Boolean, People, fit_table, plan_table
from sdv_privpgd.audit import audit_fit
from sdv_privpgd.fitting.fitted_table import FittedTable
from sdv_privpgd.privacy.accounting import epsilon_of, log_delta
from sdv_privpgd.privacy.ledger import TRAINED, Charge, PrivacyLedger
from sdv_privpgd.privacy.ledger_file import read_ledger
from sdv_privpgd.privacy.queries import Adjacency
from sdv_privpgd.privacy.thresholding import thresholded_delta
from sdv_privpgd.report.privacy import of_rows, whose_row

FIRST = "ONE ROW, NOT ONE PERSON"
TABLE = pd.DataFrame({"ill": [True, False] * 200})
ILL = {"ill": Boolean()}
SAID = [
    {"rows_per_person": 3},
    {"rows_are_people": True},
    {"people": "patient", "adjacency": Adjacency.ADD_REMOVE},
]


def shared(epsilon=1.0, **told):
    adjacency = told.pop("adjacency", Adjacency.REPLACE_ONE)
    return PrivacyLedger.open(epsilon, 1e-5, adjacency, **told)


def charge(ledger, **told):
    facts = {"mechanism": "Gaussian", "what": "a table", "num_queries": 3, "num_values": 4}
    squares = tuple((each, 1) for each in Adjacency)
    usual = {"stddev": 9.0, "mu_squared": ledger.budget, "delta": Fraction(0)}
    return Charge(**{**facts, "sensitivity_squared": squares, **usual, **told})


def test_several_rows_have_so_many_times_mu_and_all_deltas():
    ledger = shared()
    ledger = ledger.record(charge(ledger))
    mu = float(ledger.budget) ** 0.5
    for rows in (1, 2, 4, 12):
        epsilon, delta = of_rows(ledger, rows)
        assert delta == ledger.delta
        assert log_delta(epsilon, rows * mu) == pytest.approx(np.log(delta), rel=1e-9)
    assert of_rows(ledger, 1)[0] == pytest.approx(ledger.spent())
    said = whose_row(ledger)
    assert said.startswith(FIRST)
    assert "epsilon is 1 for a row" in said
    assert "with 2, 4 and 12 rows it is 2.15, 4.75 and 18.3" in said
    assert said == whose_row(shared())  # before anything is spent, of all that may be
    ledger = shared(reserved=Fraction(1, 10**6))
    own = thresholded_delta(9.0, 60, 3, ledger)
    asked = charge(ledger, threshold=60, delta=own, mu_squared=ledger.budget / 2)
    left = float(Fraction(1e-5) - own)
    epsilon, delta = of_rows(ledger.record(asked), 4)
    assert epsilon == pytest.approx(epsilon_of(ledger.budget / 2 * 16, left))
    of_four = thresholded_delta(9.0, 60, 3, replace(ledger, rows_per_person=4))
    assert of_four > 4 * own
    assert delta == pytest.approx(left + float(of_four))
    assert "at delta" in whose_row(ledger.record(replace(asked, threshold=55, delta=own)))
    trained = charge(ledger, mechanism=TRAINED, delta=Fraction(1, 10**6), num_queries=1)
    assert of_rows(ledger.record(trained), 2)[1] > 1e-5 + 1e-6


@pytest.mark.parametrize("told", SAID)
def test_whoever_has_said_it_is_not_asked(told):
    ledger = shared(**told)
    assert ledger.says_whose
    assert whose_row(ledger) == ""
    assert read_ledger(ledger.to_json()) == ledger


def test_two_ledgers_are_of_people_if_both_are():
    of_people, of_rows_alone = shared(rows_are_people=True), shared()
    assert of_people.followed_by(of_people).rows_are_people
    assert not of_people.followed_by(of_rows_alone).says_whose


@pytest.mark.long
def test_reports_pages_plans_and_audits_say_it_first(tmp_path):
    fitted = fit_table(TABLE, ILL, epsilon=1.0, method="mst")
    audit = audit_fit(ILL, epsilon=1.0, method="mst", runs=100)
    for report in (fitted.report(), plan_table(ILL, 1.0, num_rows=400), audit):
        assert str(report).startswith(FIRST)
        report.save(tmp_path / "page.html")
        page = (tmp_path / "page.html").read_text()
        body = page[page.index("</h1>") :]
        assert body.index(FIRST) < body.index("<dl")
    assert FIRST in fitted.privacy_report().splitlines()[0]


def test_a_saved_model_says_that_rows_are_people(tmp_path):
    people = People(rows_are_people=True)
    fit_table(TABLE, ILL, epsilon=1.0, method="mst", people=people).save(tmp_path / "model.zip")
    report = FittedTable.load(tmp_path / "model.zip").report()
    assert FIRST not in str(report)
    assert "for the row of one person" in str(report)
    assert report.to_dict()["ledger"]["rows_are_people"] is True
    audit = audit_fit(ILL, epsilon=1.0, method="mst", runs=100, people=people)
    assert audit.to_dict()["passed"]
    assert FIRST not in str(audit)


@pytest.mark.parametrize("told", [{"max_rows": 2}, {"column": "patient"}])
def test_rows_that_are_people_have_no_column_of_people(told):
    with pytest.raises(ValueError, match="rows_are_people=True says that nobody has two rows"):
        People(rows_are_people=True, **told)


def test_ids_that_would_be_numbers_lead_to_the_question_before_anything_is_spent():
    table = TABLE.assign(CustomerID=range(len(TABLE)))
    columns = {**ILL, "CustomerID": {"sdtype": "numerical"}}
    with pytest.warns(UserWarning, match="CustomerID") as told:
        fit_table(table, columns, epsilon=1.0, method="mst")
    first = str(told[0].message)
    assert "CustomerID" in first
    assert "People(rows_are_people=True)" in first
    assert "People(column, max_rows=...)" in first
