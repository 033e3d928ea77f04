"""A mean embedding and its generator behind the door: files, refits, audits and refusals."""

import pickle

import pandas as pd
import pytest

from sdv_privpgd import Boolean, Categorical, Numerical, fit_table, measure
from sdv_privpgd.audit import audit_fit
from sdv_privpgd.methods import DPMERF, MST, GeneratorNetwork, PrivatePGM
from sdv_privpgd.privacy.ledger_file import read_ledger

COLUMNS = {
    "age": Numerical(0, 110, decimal_places=0, num_bins=6),
    "ward": Categorical(["A", "B"]),
    "ill": Boolean(),
}
TABLE = pd.DataFrame(
    {"age": [3, 40, 90, 71] * 50, "ward": ["A", "B"] * 100, "ill": [True, False] * 100}
)
SMALL = {
    "method": DPMERF(num_features=30, engine=GeneratorNetwork(steps=5)),
    "discovery_share": 0,
}


@pytest.fixture(scope="module")
def fitted():
    return fit_table(TABLE, COLUMNS, 2.0, target="ill", **SMALL)


def test_a_file_holds_the_model_and_its_books(fitted):
    loaded = pickle.loads(pickle.dumps(fitted))
    fitted.reset_sampling()
    pd.testing.assert_frame_equal(loaded.sample(30), fitted.sample(30))
    assert loaded.ledger == fitted.ledger
    assert read_ledger(fitted.ledger.to_json()) == fitted.ledger
    assert fitted.ledger.remaining == 0
    (query,) = (
        each.query
        for each in loaded.fitted.release.measurements
        if isinstance(each.query, type(fitted.fitted.release.measurements[-1].query))
    )
    assert (query.seed, query.label) == (0, "ill")


def test_the_page_names_the_method(fitted):
    said = str(fitted.report().to_dict())
    assert "30 random features by ill" in said
    page = fitted.report().html()
    assert "random Fourier features of the rows, each by ill" in page
    assert "DP-MERF" in page


def test_a_refit_simulates_the_embedding_too(fitted):
    refits = fitted.fitted.refits
    assert refits.refit(1).model.sample(4, 0).shape == (4, 3)
    again = pickle.loads(pickle.dumps(refits)).refit(1).model
    assert (again.sample(50, 0) == refits.refit(1).model.sample(50, 0)).all()


def test_an_audit_finds_nothing():
    report = audit_fit(COLUMNS, epsilon=6.0, runs=200, false_alarms=1e-7, **SMALL)
    assert report.to_dict()["failed"] == []


@pytest.mark.parametrize(
    "settings",
    [
        {"method": "dp-merf+particles"},
        {"method": DPMERF(engine=PrivatePGM())},
        {"method": "privpgd+generator"},
        {"method": MST(engine=GeneratorNetwork())},
    ],
    ids=str,
)
def test_what_does_not_go_together_is_refused_before_a_row_is_read(settings):
    with pytest.raises(ValueError, match="Choose another engine"):
        fit_table("no such file.csv", COLUMNS, 1.0, **settings)


def test_holders_do_not_measure_an_embedding():
    with pytest.raises(ValueError, match="a release holds tables"):
        measure("no such file.csv", COLUMNS, 1.0, holder="here", method="dp-merf")


def test_a_second_target_is_refused():
    with pytest.raises(ValueError, match="takes one target"):
        fit_table(TABLE, COLUMNS, 1.0, target=["ill", "ward"], **SMALL)
