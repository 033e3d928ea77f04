"""Half-spaces of numbers and their engine behind the door: files, refits, audits and refusals."""

import pickle

import numpy as np
import pandas as pd
import pytest

from sdv_privpgd import Boolean, Categorical, Numerical, Ordinal, fit_table, measure
from sdv_privpgd.audit import audit_fit
from sdv_privpgd.methods import AnnealedProjection, PrivatePGM, RAPPlusPlus
from sdv_privpgd.privacy.ledger_file import read_ledger
from sdv_privpgd.privacy.queries import CutMarginalQuery

COLUMNS = {
    "age": Numerical(0, 110, decimal_places=0),
    "pay": Numerical(0, 5_000, decimal_places=0),
    "ward": Categorical(["A", "B"]),
    "ill": Boolean(),
}
TABLE = pd.DataFrame(
    {
        "age": [3, 40, 90, None] * 50,
        "pay": [10, 900, 4_000, 3_000] * 50,
        "ward": ["A", "B"] * 100,
        "ill": [True, False] * 100,
    }
)
SMALL = {
    "method": RAPPlusPlus(
        rounds=2,
        queries=3,
        directions=6,
        engine=AnnealedProjection(num_components=60, steps=20, slopes=3),
    ),
    "discovery_share": 0,
}


@pytest.fixture(scope="module")
def fitted():
    return fit_table(TABLE, COLUMNS, 2.0, target="ill", **SMALL)


def test_each_answer_is_bought_once_and_kept_as_it_is(fitted):
    """The published code adds new noise to all earlier answers in each round, uncharged."""
    kept = fitted.fitted.release.measurements
    assert len({each.query for each in kept}) == len(kept)
    charged = [charge.num_queries for charge in fitted.ledger.charges if charge.stddev]
    assert sum(charged) == sum(bool(each.stddev) for each in kept)
    assert fitted.ledger.remaining == 0


def test_numbers_are_cut_by_no_bins(fitted):
    assert fitted.fitted.schema.domain().sizes[:2] == (112, 1_025)
    cuts = [
        cut
        for each in fitted.fitted.release.measurements
        if isinstance(each.query, CutMarginalQuery)
        for cut in each.query.cuts
    ]
    assert any(len(cut.lines) > 1 for cut in cuts)
    assert {len(line.places) for cut in cuts for line in cut.lines} == {111, 1_024}


def test_a_number_of_few_codes_has_an_interval_for_each_in_its_own_table(fitted):
    """A value that most rows have, as 0, is not taken for its neighbor."""
    own = [
        each.query
        for each in fitted.fitted.release.measurements
        if isinstance(each.query, CutMarginalQuery)
        and each.query.clique == ("ill",)
        and [len(cut.lines) for cut in each.query.cuts] == [1]
    ]
    sizes = {query.cuts[0].lines[0].name: query.cuts[0].size for query in own[:2]}
    assert sizes == {"age": 111 + 1, "pay": 100 + 1}  # and one for missing


def test_categories_in_order_are_no_numbers():
    words = [f"grade {number}" for number in range(12)]
    table = TABLE.assign(grade=[words[number % 12] for number in range(len(TABLE))])
    columns = {**COLUMNS, "grade": Ordinal(words)}
    measured = fit_table(table, columns, 2.0, target="ill", **SMALL).fitted.release.measurements
    cuts = [cut for each in measured for cut in getattr(each.query, "cuts", ())]
    assert {line.name for cut in cuts for line in cut.lines} == {"age", "pay"}


def test_a_file_holds_the_model_and_its_books(fitted):
    loaded = pickle.loads(pickle.dumps(fitted))
    fitted.reset_sampling()
    pd.testing.assert_frame_equal(loaded.sample(30), fitted.sample(30))
    assert read_ledger(fitted.ledger.to_json()) == fitted.ledger


def test_the_page_names_the_method(fitted):
    page = fitted.report().html()
    assert "random hyperplanes of numbers by ill" in page
    assert "multitask learning" in page


def test_a_refit_simulates_half_spaces_too(fitted):
    refits = fitted.fitted.refits
    assert (refits.refit(1).model.sample(50, 0) == refits.refit(1).model.sample(50, 0)).all()


def test_without_a_target_and_where_numbers_are_found():
    found = fit_table(
        TABLE.drop(columns="ward"),
        {"age": Numerical(), "pay": Numerical(0, 5_000), "ill": Boolean()},
        5.0,
        **{**SMALL, "discovery_share": 0.2},
    )
    rows = found.sample(100)
    assert rows["pay"].dropna().between(0, 5_000).all()


def test_what_rows_are_about_comes_out_where_noise_is_small():
    rng = np.random.default_rng(0)
    age = rng.integers(0, 100, 4_000)
    table = pd.DataFrame({"age": age, "pay": 40 * age + rng.integers(0, 900, 4_000)})
    table["ill"] = age + table["pay"] / 50 > 90
    columns = {name: COLUMNS[name] for name in table}
    fitted = fit_table(
        table,
        columns,
        20.0,
        target="ill",
        method=RAPPlusPlus(rounds=3, directions=40),
        discovery_share=0,
    )
    rows = fitted.sample(4_000).dropna()
    assert len(rows) > 3_900
    right = (rows["age"] + rows["pay"] / 50 > 90) == rows["ill"].astype(bool)
    assert right.mean() > 0.95  # of independent columns it is about a half
    assert np.corrcoef(rows["age"], rows["pay"])[0, 1] > 0.9


def test_an_audit_finds_nothing():
    report = audit_fit(COLUMNS, epsilon=6.0, runs=200, false_alarms=1e-7, **SMALL)
    assert report.to_dict()["failed"] == []


@pytest.mark.parametrize(
    "settings",
    [
        {"method": "rap+++particles"},
        {"method": RAPPlusPlus(engine=PrivatePGM())},
    ],
)
def test_what_does_not_go_together_is_refused_before_a_row_is_read(settings):
    with pytest.raises(ValueError, match=r"such as 'rap\+\+'"):
        fit_table("no such file.csv", COLUMNS, 1.0, **settings)


def test_holders_do_not_measure_half_spaces():
    with pytest.raises(ValueError, match="a release holds tables"):
        measure("no such file.csv", COLUMNS, 1.0, holder="here", method="rap++")


@pytest.mark.parametrize(
    "wrong", [{"rounds": 0}, {"num_bins": 1}, {"directions": -1}, {"seed": 0.5}]
)
def test_settings_that_mean_nothing_are_refused(wrong):
    with pytest.raises(ValueError, match="must be an integer of at least"):
        RAPPlusPlus(**wrong)


@pytest.mark.parametrize(
    "wrong",
    [{"num_components": 0}, {"learning_rate": 0.0}, {"first_slope": -1.0}, {"tolerance": 1.0}],
)
def test_settings_of_the_engine_that_mean_nothing_are_refused(wrong):
    with pytest.raises(ValueError, match=next(iter(wrong))):
        AnnealedProjection(**wrong)
