"""The door without SDV: what goes in, what comes out, what is refused, and what is never read."""

from datetime import date, time

import numpy as np
import pandas as pd
import pytest
from made_up import quiet

from sdv_privpgd import (
    Between,
    Boolean,
    Categorical,
    Datetime,
    Key,
    Numerical,
    Ordinal,
    People,
    TimeOfDay,
    fit_table,
)
from sdv_privpgd.constraints import FixedCombinations, Inequality, Range
from sdv_privpgd.methods import MST, PrivatePGM

DECLARED = {
    "ward": Categorical(["A", "B", "C"], nullable=False),
    "age": Numerical(0, 99, decimal_places=0),
    "pain": Ordinal(["none", "some", "much"]),
    "seen": Datetime(date(2020, 1, 1), date(2024, 12, 31)),
    "ill": Boolean(nullable=False),
}


def visits(num_rows=2_000, seed=0):
    rng = np.random.default_rng(seed)
    ill = rng.random(num_rows) < 0.3
    days = rng.integers(0, 1_800, num_rows)
    return pd.DataFrame(
        {
            "ward": np.where(ill, "A", rng.choice(["B", "C"], num_rows)),
            "age": rng.integers(20, 60, num_rows) + 30 * ill,
            "pain": rng.choice(["none", "some", "much"], num_rows),
            "seen": pd.Timestamp("2020-01-01") + pd.to_timedelta(days, unit="D"),
            "ill": ill,
            "name": [f"SECRET {row}" for row in range(num_rows)],
        }
    )


@pytest.fixture(scope="module")
def fitted():
    with quiet():
        return fit_table(visits(), DECLARED, 5.0)


def test_rows_have_the_columns_that_were_described_for_what_was_asked(fitted, tmp_path):
    fitted.reset_sampling()
    rows = fitted.sample(2_000)
    assert list(rows.columns) == list(DECLARED)
    assert rows["age"].between(0, 99).mean() > 0.95
    assert rows.loc[rows["ill"], "age"].mean() - rows.loc[~rows["ill"], "age"].mean() > 15
    assert rows["seen"].min() >= pd.Timestamp("2020-01-01")
    assert rows["ward"].isin(["A", "B", "C"]).all()
    assert 0.99 * 5.0 < fitted.ledger.spent() <= 5.0
    assert fitted.num_rows == 2_000
    assert "replace-one" in fitted.privacy_report()
    page = fitted.report().html()
    assert "SECRET" not in page
    assert "age" in page


def test_ids_that_repeat_begin_again_where_their_pattern_ends():
    columns = {"name": Key("[AB]", repeats=True), "age": Numerical(0, 99)}
    with pytest.warns(UserWarning, match=r"The ids \['name'\] are no keys"):
        fitted = fit_table(visits(), columns, 1.0, method="independent")
    assert fitted.sample(5)["name"].tolist() == ["A", "B", "A", "B", "A"]


def test_what_was_found_privately_can_be_declared(fitted):
    found = fitted.discovered_domain()
    assert {name: own["sdtype"] for name, own in found.items()} == {
        name: own.sdtype for name, own in DECLARED.items()
    }
    again = fit_table(visits(), found, 5.0, discovery_share=0.0, seed=np.int32(3))
    looked = {charge.what for charge in again.ledger.charges}
    assert not any("fine grids" in what for what in looked)
    assert again.discovered_domain() == fitted.discovered_domain()
    columns = {"ward": {"sdtype": "categorical"}, "age": Numerical()}
    found = fit_table(visits(20_000), columns, 2.0)
    assert set(found.discovered_domain()["ward"]["range_values"]) == {"A", "B", "C"}
    assert found.sample(500)["age"].between(10, 100).mean() > 0.95


def test_times_of_the_day_are_answers_as_rows_have_them():
    table = pd.DataFrame({"at": [time(7, 30), time(9), time(9), time(18, 45)] * 250})
    fitted = fit_table(table, {"at": TimeOfDay("00:00", "23:59", num_bins=96)}, 20.0)
    median = fitted.answer("quantile", of="at", q=0.5)
    low, high = median.interval()
    assert time(8) < low <= median.estimate <= high < time(10)
    assert str(low)[:5] in str(median)
    assert "2000" not in str(median)


def test_conditions_on_days_of_a_zone_are_by_its_clock():
    start = pd.Timestamp("2023-06-03", tz="Europe/Berlin")
    eight = start + pd.Timedelta(8, "h")
    table = pd.DataFrame({"at": [eight + pd.Timedelta(day, "D") for day in range(-2, 2)] * 250})
    days = Datetime(date(2023, 6, 1), date(2023, 6, 4))
    fitted = fit_table(table, {"at": days}, 20.0, method="independent+pgm")
    for wish in ("2023-06-03", start, Between(start, start), Between("2023-06-03", eight)):
        assert set(fitted.sample(3, where={"at": wish})["at"]) == {start}
        counted = fitted.answer("count", where={"at": wish})
        assert counted.estimate == pytest.approx(250, abs=20)
    with pytest.raises(ValueError, match=r"lies outside the domain of 'at', .* in whole days"):
        fitted.sample(3, where={"at": eight})
    with pytest.raises(ValueError, match=r"is not in the domain of column 'at', .* in whole days"):
        fitted.answer("count", where={"at": eight})


@pytest.mark.parametrize("zone", ["Europe/Berlin", "Asia/Kolkata"])
def test_hours_of_a_zone_are_asked_for_and_answered_by_its_clock(zone):
    noon = pd.Timestamp("2023-06-03 12:00", tz=zone)
    table = pd.DataFrame({"at": [noon + pd.Timedelta(hour, "h") for hour in range(-2, 2)] * 250})
    hours = Datetime("2023-06-01 00:00", "2023-06-05 23:00")
    fitted = fit_table(table, {"at": hours}, 20.0, method="independent+pgm")
    rows = fitted.sample(500)["at"]
    assert set(rows.dt.minute) == {0}
    for wish in ("2023-06-03 12:00", noon, str(noon), Between(noon, "2023-06-03 12:30")):
        assert set(fitted.sample(3, where={"at": wish})["at"]) == {noon}
        assert fitted.answer("count", where={"at": wish}).estimate == pytest.approx(250, abs=20)
    median = fitted.answer("quantile", of="at", q=0.5).estimate
    assert median.tz_localize(None).hour in (11, 12)


def test_days_of_a_zone_that_nobody_declared_are_by_its_clock():
    start = pd.Timestamp("2023-06-01", tz="Asia/Tokyo")
    table = pd.DataFrame({"at": [start + pd.Timedelta(day, "D") for day in range(4)] * 250})
    rows = fit_table(table, {"at": Datetime()}, 10.0, method="independent+pgm").sample(1000)
    counts = rows["at"].value_counts().reindex(table["at"].unique())
    assert counts.to_numpy() == pytest.approx([250] * 4, abs=50)


def test_a_truth_is_asked_for_in_the_words_of_the_table():
    table = pd.DataFrame({"ill": ["ja", "nein"] * 250})
    fitted = fit_table(table, {"ill": Boolean("ja", "nein")}, 20.0, method="independent+pgm")
    assert set(fitted.sample(3, where={"ill": True})["ill"]) == {"ja"}
    assert fitted.answer("count", where={"ill": [False]}).estimate == pytest.approx(250, abs=20)


def test_conditions_and_rows_that_are_none_are_told(fitted):
    with pytest.raises(ValueError, match=r"Conditions are a dictionary of columns, .*got \['ward'"):
        fitted.sample(3, where=["ward"])
    with pytest.raises(ValueError, match="must be a pandas DataFrame, got dict"):
        fitted.complete({"ward": ["A"]})
    with pytest.raises(ValueError, match=r"each column once, got \['ward'\] twice"):
        fitted.complete(pd.DataFrame([["A", "B"]], columns=["ward", "ward"]))


@pytest.mark.parametrize(
    ("columns", "settings", "words"),
    [
        ({}, {}, "columns names no column: declare those"),
        ({"ward": 3}, {}, "must be a declaration"),
        ({"name": {"sdtype": "email"}}, {}, "personal data"),
        ({"name": {"range_values": None}}, {}, r"such as Categorical\(\) has one"),
        ({"name": {"sdtype": "id", "regex_format": "[0-9]+"}}, {}, "cannot be counted up"),
        ({"name": {"sdtype": "id", "regex_format": ""}}, {}, "has fewer values in its pattern ''"),
        ({"age": Key("[0-9]{1,3}")}, {}, "several ways"),
        ({"name": {**Key(), "sdtype": "id", "range_min": 0}}, {}, "regex_format alone"),
        (DECLARED, {"constraints": [Inequality("age", "seen")]}, "takes columns of the sdtypes"),
        (DECLARED, {"constraints": [Inequality("age", "name")]}, "names .'name'."),
        (DECLARED, {"constraints": ["age"]}, "such as Inequality"),
        (DECLARED, {"seed": 2**63}, "seed must be an integer below"),
        (DECLARED, {"progress": None}, "progress must be a function"),
        (
            {"age": Numerical(50, 99, nullable=False), "old": Numerical(0, 9, nullable=False)},
            {"constraints": [Inequality("age", "old")]},
            "cannot be met by the declared values",
        ),
        (
            {"age": Numerical(50, 99), "old": Numerical(), "young": Numerical(0, 9)},
            {"constraints": [Inequality("age", "old"), Inequality("old", "young")]},
            "order of .'age', 'young'. cannot be met",
        ),
        (
            {"age": Numerical(), "old": Numerical(0, 99), "young": Numerical()},
            {
                "constraints": [
                    Range("young", "age", "old", strict_boundaries=False),
                    Inequality("old", "age", strict_boundaries=True),
                ]
            },
            "is below itself",
        ),
        (
            {"ward": Categorical(["A", "B"]), "ill": Boolean()},
            {"constraints": [FixedCombinations(["ward", "ill"], [(w, True)]) for w in "AB"]},
            "contradict each other: no row",
        ),
        ({"age": Key("[0-8]")}, {}, "fewer values in its pattern .* which are 10"),
        ({"weight": Numerical(0, 9)}, {}, "missing in the data"),
        ({"age": Numerical()}, {"discovery_share": 0.0}, "need a public domain"),
        ({"age": {**Numerical(), "sdtype": "numerical", "lowest": 0}}, {}, r"^columns.'age'. has"),
    ],
)
def test_what_cannot_be_meant_is_refused_before_a_row_is_read(columns, settings, words):
    with pytest.raises(ValueError, match=words):
        fit_table(visits(10), columns, 1.0, **settings)


@pytest.mark.parametrize(
    "name",
    ["epsilon", "delta", "people", "discovery_share"]
    + ["target", "method", "constraints", "questions"],
)
def test_a_table_in_the_place_of_a_setting_is_not_shown(name):
    for table in (visits(10).assign(ward="CANARY"), pd.Series(["CANARY"] * 10)):
        said = rf"^{name} (must|takes) .*, got {type(table).__name__}\.$"
        with pytest.raises(ValueError, match=said):
            fit_table(visits(10), DECLARED, **{"epsilon": 1.0, name: table})


@pytest.mark.parametrize(
    "asked",
    [
        lambda cells: fit_table(visits(10), {**DECLARED, "age": cells}, 1.0),
        lambda cells: Numerical(cells, cells),
        lambda cells: Datetime(cells, cells),
        Key,
        People,
        lambda cells: Between(cells, cells),
        lambda cells: fit_table(visits(9), DECLARED, 1.0, constraints=[Inequality("age", cells)]),
    ],
)
def test_a_column_in_the_place_of_a_declaration_is_not_shown(asked):
    with pytest.raises(ValueError, match="Series") as raised:
        asked(pd.Series(["CANARY"] * 10))
    assert "CANARY" not in str(raised.value)


def test_a_table_without_rows_is_refused_where_their_number_is_public(monkeypatch):
    def fails(*args, **settings):
        raise AssertionError

    with monkeypatch.context() as patched:
        patched.setattr("sdv_privpgd.privacy.ledger.PrivacyLedger.record", fails)
        with pytest.raises(ValueError, match="no rows"):
            fit_table(visits(10).iloc[:0], DECLARED, 1.0)
    with pytest.warns(UserWarning, match="rows are few"):
        found = fit_table(visits(10).iloc[:0], DECLARED, 1.0, adjacency="add_remove", delta=1e-5)
    assert found.ledger.spent() == pytest.approx(1.0, abs=1e-3)


def test_an_error_says_what_was_spent(monkeypatch):
    def fails(*args, **settings):
        raise MemoryError

    monkeypatch.setattr(PrivatePGM, "fit", fails)
    said = []
    monkeypatch.setattr("sdv_privpgd.fitting.resume.note_on", lambda error, note: said.append(note))
    with pytest.raises(MemoryError):
        fit_table(visits(200), DECLARED, 2.0, method=MST(engine=PrivatePGM()))
    assert said == ["The fit had spent epsilon 2 of 2, which is gone."]


def test_columns_that_are_not_described_are_not_read(monkeypatch):
    rng = np.random.default_rng
    monkeypatch.setattr(
        "sdv_privpgd.privacy.curator.rounded_gaussian",
        lambda stddev, size, words: rng(size).integers(-9, 9, size),
    )
    choice = "sdv_privpgd.privacy.curator.exponential_choice"
    monkeypatch.setattr(choice, lambda scores, temperature, words: len(scores) // 2)
    told = visits(300)
    other = told.assign(name=[object() for _ in range(300)])
    method = MST(engine=PrivatePGM())
    one, two = (fit_table(t, DECLARED, 3.0, method=method).sample(200) for t in (told, other))
    pd.testing.assert_frame_equal(one, two)


def test_as_many_rows_as_were_fitted_are_sampled_where_nobody_says_how_many():
    table = pd.DataFrame({"ill": [True, False] * 150})
    columns, told = {"ill": Boolean(nullable=False)}, {"method": "privpgd+pgm"}
    done = fit_table(table, columns, 1.0, **told)
    assert len(done.sample()) == 300
    with pytest.warns(UserWarning, match=r"are text in the rows: \['7'\]"):
        named = fit_table(table.set_axis([7], axis=1), {7: columns["ill"]}, 1.0, **told)
    assert list(named.sample(2)) == ["7"]
    private = fit_table(table, columns, 9.0, 1e-5, adjacency="add_remove", **told)
    assert len(private.sample()) == private.num_rows
    with pytest.raises(ValueError, match=r"as in after=earlier\.ledger, got FittedTable"):
        fit_table(table, columns, 1.0, after=done, **told)  # pyright: ignore
