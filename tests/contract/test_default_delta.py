"""A delta follows from the number of rows unless it is chosen; a large one is spoken of."""

import pandas as pd
import pytest
import sdv_tables

from sdv_privpgd import Boolean, MSTSynthesizer, PrivPGDSynthesizer, fit_table, measure, plan_table
from sdv_privpgd.audit import audit_fit, audit_measure
from sdv_privpgd.fitting.fitted_table import FittedTable
from sdv_privpgd.report.warnings import LARGE_DELTA, on_delta

ILL = {"ill": Boolean()}
BOOLEANS = sdv_tables.metadata_of({"ill": {"sdtype": "boolean"}})


def table(rows):
    return pd.DataFrame({"ill": [True, False] * (rows // 2)})


def deltas(rows):
    """The delta of each door, for a table of so many rows."""
    synthesizer = PrivPGDSynthesizer(BOOLEANS, 1.0, method="mst")
    synthesizer.fit(table(rows))
    return {
        fit_table(table(rows), ILL, 1.0, method="mst").ledger.delta,
        measure(table(rows), ILL, 1.0, site="North").ledger.delta,
        plan_table(ILL, 1.0, num_rows=rows).to_dict()["ledger"]["delta"],
        synthesizer.ledger.delta,
    }


def test_it_is_a_tenth_of_one_over_the_rows_unless_somebody_chooses_or_refines(tmp_path):
    assert deltas(20_000) == {1 / 200_000}
    assert deltas(1_000) == {1e-5}
    synthesizer = PrivPGDSynthesizer(BOOLEANS, 1.0, method="mst")
    synthesizer.fit(table(1_000))
    assert synthesizer.delta is None
    with pytest.warns(UserWarning, match="at delta 1e-05 on the people"):
        synthesizer.fit(table(40_000))
    assert synthesizer.fitted_table.settings.delta == 1 / 400_000
    assert fit_table(table(20_000), ILL, 1.0, 1e-6, method="mst").ledger.delta == 1e-6
    with pytest.warns(UserWarning, match="promises next to nothing in a table of 20,000 rows"):
        fit_table(table(20_000), ILL, 1.0, 1e-4, method="mst")
    fitted = fit_table(table(20_000), ILL, 1.0, method="mst")
    fitted.save(tmp_path / "model.zip")
    finer = FittedTable.load(tmp_path / "model.zip").add_budget(table(20_000), 1.0)
    assert finer.ledger.delta == fitted.ledger.delta == 1 / 200_000


@pytest.mark.parametrize(
    "door",
    [
        lambda **told: fit_table(object(), ILL, 1.0, **told),
        lambda **told: measure(object(), ILL, 1.0, site="North", **told),
        lambda **told: plan_table(ILL, 1.0, num_rows=10, **told),
        lambda **told: PrivPGDSynthesizer(BOOLEANS, 1.0, **told),
        lambda **told: audit_fit(ILL, 1.0, **told),
        lambda **told: audit_measure(ILL, 1.0, **told),
    ],
)
def test_it_is_asked_for_where_the_number_of_rows_is_private(door):
    with pytest.raises(ValueError, match="delta must be given under adjacency='add_remove'"):
        door(adjacency="add_remove")


SAID = "promises next to nothing in a table of any size"


@pytest.mark.parametrize("delta", [LARGE_DELTA, 0.1, 0.9])
def test_a_synthesizer_says_it_when_it_is_made(delta):
    for made in (MSTSynthesizer, PrivPGDSynthesizer):
        with pytest.warns(UserWarning, match=SAID) as caught:
            made(BOOLEANS, 1.0, delta)
        assert [each.filename for each in caught] == [__file__]


@pytest.mark.parametrize(
    "spend", [fit_table, lambda *args: measure(*args, site="North")], ids=["fit_table", "measure"]
)
def test_a_function_says_it_before_a_row_is_read(spend, monkeypatch):
    def never(*args, **settings):
        raise AssertionError("the table was looked at")

    monkeypatch.setattr("sdv_privpgd.privacy.boundary.PrivateTable.codes", never)
    monkeypatch.setattr("sdv_privpgd.fitting.fit.Fit.ask", never)
    table = pd.DataFrame({"ill": [True, False]})
    with (
        pytest.warns(UserWarning, match=SAID),
        pytest.raises(AssertionError, match="the table was looked at"),
    ):
        spend(table, ILL, 1.0, 0.1)


def test_only_a_large_delta_is_spoken_of_and_by_itself():
    assert on_delta(0.009) == on_delta(1e-9) == []
    fit_table(pd.DataFrame({"ill": [True, False] * 50}), ILL, 1.0, 0.009, method="privpgd+pgm")
    assert on_delta(0.1) == on_delta(0.1)
    assert "--" not in on_delta(0.1)[0]
    assert "1 / (number of rows)" in on_delta(0.1)[0]
