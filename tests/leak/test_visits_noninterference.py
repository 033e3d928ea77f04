"""Rows in order: with the same noisy answers and other visits, not one byte differs."""

import copy
import pickle

import cloudpickle
import pyarrow.parquet  # noqa: F401  (while the clock still goes)
import pytest
import sdv_tables
from canaries import TEXT, traces
from interference import in_files, in_memory, let_out, nasty
from made_up import heard
from visiting import COLUMNS, ORDER, visits

from sdv_privpgd import MSTSynthesizer, combine, fit_table, measure
from sdv_privpgd.columns.visits import Visits

UNDECLARED = {**COLUMNS, "ward": {"sdtype": "categorical"}}


def observed(private, columns):
    with heard() as said:
        fitted = fit_table(private, columns, 1.0, method="privpgd+pgm", **ORDER)
    return let_out(fitted, said)


@pytest.mark.long
@pytest.mark.parametrize(
    ("given", "columns", "num_people"),
    [(in_memory, UNDECLARED, 150), (in_memory, COLUMNS, 0), (in_files, COLUMNS, 60)],
)
def test_nothing_depends_on_the_visits(
    given, columns, num_people, fixed_answers, tmp_path, monkeypatch
):
    monkeypatch.setattr("sdv_privpgd.sources.arrow.BLOCK", 100)
    one = observed(given(visits(100, 0), tmp_path), columns)
    assert one == observed(given(visits(num_people, 2), tmp_path), columns)


@pytest.mark.long
def test_nothing_depends_on_the_visits_in_sdv_s_words(fixed_answers, caplog):
    facts = {
        "patient": {"sdtype": "id"},
        **{name: {"sdtype": each.sdtype} for name, each in COLUMNS.items()},
    }
    new = MSTSynthesizer(sdv_tables.metadata_of(facts), 1.0, public_domain=COLUMNS, **ORDER)
    seen = []
    for table in (visits(200, 0), visits(90, 2), nasty(visits(60, 3))):
        fitted = copy.deepcopy(new)
        caplog.clear()
        with heard() as said:
            fitted.fit(table)
        rows = fitted.sample(200)
        fitted.reset_sampling()
        seen.append(
            {
                "rows": rows.to_csv(),
                "dtypes": rows.drop(columns="patient").dtypes.astype(str).to_dict(),
                "pickle": cloudpickle.dumps(fitted),
                "warnings": [str(each.message) for each in said],
                "log": [record.levelname for record in caplog.records],
                "report": fitted.privacy_report(),
            }
        )
    assert seen[0] == seen[1]
    assert seen[0]["warnings"] == seen[2]["warnings"]
    assert seen[0]["report"] == seen[2]["report"]


def test_nothing_of_a_release_depends_on_the_visits(fixed_answers, tmp_path):
    files = []
    for table in (visits(200, 0), visits(90, 2)):
        path = measure(table, COLUMNS, 1.0, site="North", **ORDER).save(tmp_path / "north.zip")
        files.append((path.read_bytes(), combine([path], engine="pgm").sample(100).to_csv()))
    assert files[0] == files[1]


def test_no_canary_is_in_a_file():
    private = visits(300)
    private.loc[0, "ward"] = TEXT
    private["patient"] = private["patient"].astype(object).where(private["patient"] > 3, TEXT)
    fitted = fit_table(private, COLUMNS, 5.0, method="privpgd+pgm", **ORDER)
    assert traces(pickle.dumps(private)) == [TEXT]
    assert traces(pickle.dumps(fitted)) == []


def test_the_comparison_notices_a_leak(fixed_answers, monkeypatch):
    """As if the number of rows of a person were learned and not declared."""
    columns_of = Visits.columns_of

    def learned(self, own, *rest):
        from dataclasses import replace

        return columns_of(replace(self, most=len(visits_now) % 7 + 2), own, *rest)

    monkeypatch.setattr(Visits, "columns_of", learned)
    found = []
    for num_people in (200, 90):
        visits_now = visits(num_people)
        found.append(observed(visits_now, COLUMNS))
    assert found[0] != found[1]
