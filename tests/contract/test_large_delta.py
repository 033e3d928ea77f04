"""A delta that promises nothing in a table of any size is said before a row is read."""

import pandas as pd
import pytest
import sdv_tables

from sdv_privpgd import Boolean, MSTSynthesizer, PrivPGDSynthesizer, fit_table, measure
from sdv_privpgd.report.warnings import LARGE_DELTA, on_delta

COLUMNS = {"ill": Boolean()}
SAID = "promises next to nothing in a table of any size"


@pytest.mark.parametrize("delta", [LARGE_DELTA, 0.1, 0.9])
def test_a_synthesizer_says_it_when_it_is_made(delta):
    metadata = sdv_tables.metadata_of({"ill": {"sdtype": "boolean"}})
    for made in (MSTSynthesizer, PrivPGDSynthesizer):
        with pytest.warns(UserWarning, match=SAID) as caught:
            made(metadata, 1.0, delta)
        assert [each.filename for each in caught] == [__file__]


@pytest.mark.parametrize(
    "spend",
    [fit_table, lambda *args: measure(*args, holder="North")],
    ids=["fit_table", "measure"],
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
        spend(table, COLUMNS, 1.0, 0.1)


def test_only_a_large_delta_is_spoken_of_and_by_itself():
    assert on_delta(0.009) == on_delta(1e-9) == []
    fit_table(pd.DataFrame({"ill": [True, False] * 50}), COLUMNS, 1.0, 0.009, method="privpgd+pgm")
    assert on_delta(0.1) == on_delta(0.1)
    assert "--" not in on_delta(0.1)[0]
    assert "1 / (number of rows)" in on_delta(0.1)[0]
