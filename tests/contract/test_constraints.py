"""SDV's constraints: met by every row, beside any domain, and never fitted on the table."""

import numpy as np
import pandas as pd
import pytest
import sdv_tables
from constrained import COLUMNS, CONSTRAINTS, DOMAIN, Sum, broken, new, table, through_the_door
from made_up import quiet
from sdv import cag
from sdv.cag._errors import ConstraintNotMetError
from sdv.errors import RefitWarning, SynthesizerInputError
from sdv.sampling import Condition
from sdv.utils import load_constraints, load_synthesizer

from sdv_privpgd import Between, Datetime, MSTSynthesizer, PrivPGDSynthesizer, fit_table
from sdv_privpgd.constraints import FixedCombinations, Inequality, Range
from sdv_privpgd.constraints.repair import ConstraintError
from sdv_privpgd.methods import Independent, ParticleGradientDescent

ALL = tuple(kind for kind in CONSTRAINTS if not kind.startswith("strict"))


@pytest.mark.parametrize("kind", CONSTRAINTS)
def test_the_door_without_sdv_asks_the_same_and_no_row_breaks_it(kind, monkeypatch):
    monkeypatch.setattr("sdv_privpgd.privacy.curator._noisy", lambda answer, *noise: answer)
    method = Independent(engine=ParticleGradientDescent(num_particles=300))
    synthesizer, door = new([kind], method=method), through_the_door([kind], method=method)
    synthesizer.fit(table())
    assert synthesizer.ledger.charges == door.ledger.charges
    rows = door.sample(1_000)
    assert list(rows.columns) == list(COLUMNS)
    assert broken(kind, rows) == 0
    pd.testing.assert_frame_equal(
        rows.drop(columns="id"), synthesizer.sample(1_000).drop(columns="id")
    )
    assert broken(kind, door.sample(50, where={"low": 40, "city": "p", "green": True})) == 0


@pytest.mark.parametrize("method", ["privpgd", "mst"])
def test_an_order_keeps_caps_floors_and_open_ends(method):
    """Values that many rows share in one column of an order, in two of them, or in the lowest."""
    rng, rows = np.random.default_rng(0), 4_000
    lasts = rng.gamma(2, 40, (2, rows)).astype(int)
    since = np.datetime64("2015-01-01") + rng.integers(0, 3_000, rows).astype("m8[D]")
    until, left = since + lasts[0].astype("m8[D]"), since + lasts.sum(axis=0).astype("m8[D]")
    open_from = rng.random(rows)[:, None] < [0.2, 0.5]
    dates = np.where(open_from, np.datetime64("2099-12-31"), np.array([until, left]).T)
    real = pd.DataFrame({"since": since, "until": dates[:, 0], "left": dates[:, 1]}).astype(str)
    real["paid"] = np.where(rng.random(rows) < 0.3, 0.0, rng.random(rows) * 500)
    real["due"] = np.where(rng.random(rows) < 0.4, 9_999.0, real["paid"] * rng.choice([1, 2], rows))
    columns = {name: {"sdtype": "numerical"} for name in ("paid", "due")}
    columns |= dict.fromkeys(["since", "until", "left"], Datetime(datetime_format="%Y-%m-%d"))
    orders = [Inequality("paid", "due"), Range("since", "until", "left", strict_boundaries=False)]
    fitted = fit_table(real, columns, 5.0, method=method, constraints=orders).sample(rows)
    for name, value in {
        "until": "2099-12-31",
        "left": "2099-12-31",
        "paid": 0,
        "due": 9_999,
    }.items():
        shares = [(table[name] == value).mean() for table in (real, fitted)]
        assert shares[1] == pytest.approx(shares[0], abs=0.04), name


def test_dates_of_different_units_are_in_sdv_s_order():
    columns = {
        "day": {"sdtype": "datetime", "datetime_format": "%Y-%m-%d"},
        "hour": {"sdtype": "datetime", "datetime_format": "%Y-%m-%d %H:%M"},
    }
    domain = {
        "day": {"range_min": "2020-01-01", "range_max": "2020-01-09"},
        "hour": {"range_min": "2020-01-01 00:00", "range_max": "2020-01-09 23:59"},
    }
    described = sdv_tables.metadata_of(columns)
    for strict in (False, True):
        synthesizer = PrivPGDSynthesizer(described, 1.0, public_domain=domain, **sdv_tables.SMALL)
        constraint = cag.Inequality("day", "hour", strict_boundaries=strict)
        synthesizer.add_constraints([constraint])
        days = {"day": ["2020-01-05"] * 300, "hour": ["2020-01-05 10:00"] * 300}
        synthesizer.fit(pd.DataFrame(days))
        assert constraint.is_valid(synthesizer.sample(2_000), described).all()


@pytest.fixture(scope="module")
def fitted():
    synthesizer = new(ALL, epsilon=20.0)  # or noise may leave a condition without a row
    synthesizer.fit(table())
    return synthesizer


class TestSampling:
    def test_constraints_hold_together_and_those_who_break_one_are_found(self, fitted):
        rows = fitted.sample(5_000)
        assert {kind: broken(kind, rows) for kind in ALL} == dict.fromkeys(ALL, 0)
        rows = fitted.sample(20).assign(low=90, high=10)
        with pytest.raises(ConstraintNotMetError, match="20 rows"):
            fitted.validate_constraints(rows)
        assert fitted.get_metadata("modified").to_dict() == fitted.get_metadata().to_dict()
        assert list(fitted.sample(3).columns) == list(COLUMNS)

    def test_rows_do_not_depend_on_how_they_are_asked_for_or_on_a_file(self, fitted, tmp_path):
        fitted.reset_sampling()
        at_once = fitted.sample(900)
        fitted.reset_sampling()
        in_parts = pd.concat([fitted.sample(500), fitted.sample(400)], ignore_index=True)
        pd.testing.assert_frame_equal(at_once.drop(columns="id"), in_parts.drop(columns="id"))
        fitted.save(tmp_path / "model.pkl")
        loaded = load_synthesizer(tmp_path / "model.pkl")
        fitted.reset_sampling()
        loaded.reset_sampling()
        pd.testing.assert_frame_equal(fitted.sample(50), loaded.sample(50))
        assert len(loaded.get_constraints()) == len(ALL)

    def test_rows_that_meet_conditions_meet_the_constraints_or_are_left_out(self, fitted):
        rows = fitted.sample_from_conditions(
            [
                Condition({"low": 70}, num_rows=40),
                Condition({"middle": "15/06/2020", "city": "p"}, num_rows=40),
                Condition({"green": True}, num_rows=40),
            ]
        )
        assert len(rows) == 120
        assert {kind: broken(kind, rows) for kind in ALL} == dict.fromkeys(ALL, 0)
        assert (rows["low"][:40] == 70).all()
        assert (rows["middle"][40:80] == "15/06/2020").all()
        known = pd.DataFrame({"low": [80, 20], "high": [30, 40]})
        with pytest.warns(UserWarning, match="1 of 2 conditions can be met"):
            rows = fitted.sample_remaining_columns(known)
        assert rows[["low", "high"]].to_numpy().tolist() == [[20, 40]]

    @pytest.mark.long
    def test_ranges_that_overlap_have_all_rows_and_those_that_contradict_have_none(self, fitted):
        june = Between("01/06/2020", "30/06/2020")
        asked = [
            {"low": Between(40, None), "high": Between(None, 75)},
            {"start": june, "end": june},
            {"start": Between("29/06/2020", None), "end": Between(None, "30/06/2020")},
        ]
        rows = fitted.sample_from_conditions([Condition(each, num_rows=60) for each in asked])
        assert len(rows) == 180
        assert {kind: broken(kind, rows) for kind in ALL} == dict.fromkeys(ALL, 0)
        assert ((rows["low"][:60] >= 40) & ~(rows["high"][:60] > 75)).all()
        assert rows[["start", "end"]][60:].map(lambda day: day[3:5] == "06").all(axis=None)
        asked = {"low": Between(50, None), "high": Between(None, 40)}
        with pytest.raises(ValueError, match="60 rows would contradict the constraints"):
            fitted.sample_from_conditions([Condition(asked, num_rows=60)])


def test_constraints_after_a_fit_take_effect_at_the_next_one():
    synthesizer = new([], MSTSynthesizer)
    synthesizer.fit(table())
    with pytest.warns(RefitWarning, match="at delta 1e-05 once more") as caught:
        synthesizer.add_constraints([CONSTRAINTS["inequality"]()])
    assert [warning.filename for warning in caught] == [__file__]
    assert broken("inequality", synthesizer.sample(500)) > 0
    with pytest.warns(UserWarning, match="fitted before"):
        synthesizer.fit(table())
    assert broken("inequality", synthesizer.sample(500)) == 0


def test_constraints_are_written_to_a_file_as_sdv_does(tmp_path):
    kinds = ["inequality", "range", "increments", "one hot"]
    new(kinds).get_constraints(tmp_path / "constraints.json")
    loaded = load_constraints(tmp_path / "constraints.json")
    assert list(map(repr, loaded)) == [repr(CONSTRAINTS[kind]()) for kind in kinds]
    new(["combinations"]).get_constraints(tmp_path / "ours.json")
    assert "FixedCombinations" in (tmp_path / "ours.json").read_text()


def test_combinations_of_values_that_share_a_code_are_told_apart():
    """300 towns have 256 codes, neighbors one: with them go two districts of one code, too."""
    towns = [f"town {number:03}" for number in range(300)]
    listed = [(town, number % 3) for number, town in enumerate(towns)]
    columns = {"town": {"sdtype": "categorical"}, "district": {"sdtype": "categorical"}}
    domain = {
        "town": {"range_values": towns, "frequencies": [1.0] * 300, "range_is_nullable": False},
        "district": {"range_values": [0, 1, 2], "range_is_nullable": False},
    }
    described = sdv_tables.metadata_of(columns)
    synthesizer = PrivPGDSynthesizer(described, 5.0, public_domain=domain, **sdv_tables.SMALL)
    synthesizer.add_constraints([FixedCombinations(list(columns), listed)])
    rng = np.random.default_rng(0)
    synthesizer.fit(pd.DataFrame({"town": rng.choice(towns, 500), "district": 0}))
    rows = synthesizer.sample(3_000)
    assert set(rows.itertuples(index=False, name=None)) <= set(listed)
    merged = set(towns[255:])
    assert rows["town"].isin(merged).sum() > 50
    known = pd.DataFrame({"town": towns[250:], "district": 1})
    with pytest.warns(UserWarning, match="conditions can be met"):
        met = synthesizer.sample_remaining_columns(known)
    assert set(met["town"]) == {town for town, district in listed[250:] if district == 1}


def test_nothing_declared_is_enough():
    kinds = ["inequality", "increments", "one hot", "combinations"]
    synthesizer, data = new(kinds, public_domain=None, epsilon=5.0), table(2_000)
    data["price"] = data["price"] // 25 * 25
    with quiet():
        synthesizer.fit(data)
    rows = synthesizer.sample(3_000)
    assert [broken(kind, rows) for kind in kinds] == [0] * 4


BEHIND = {
    "whole": (np.arange(50, 90), np.arange(40)),
    "whole against real": (np.repeat(np.arange(50, 90), 10), np.linspace(-3, 2.5, 400)),
    "real against decimals": (np.linspace(50, 90, 400), np.arange(400) / 100),
    "days against months": (
        pd.date_range("2020-03-01", periods=40).strftime("%Y-%m-%d"),
        pd.date_range("2016-01-01", periods=40, freq="MS").strftime("%Y-%m"),
    ),
}
"""Values of which each of the first is above each of the second. Few rows share one: values that
many share may be found one by one, and such a column has no ends that could be widened."""


@pytest.mark.parametrize(
    ("discovered", "strict"), [(("low", "high"), False), (("low",), True), (("high",), True)]
)
@pytest.mark.parametrize("kind", BEHIND)
def test_discovered_ranges_in_the_wrong_order_are_widened(kind, discovered, strict):
    low, high = BEHIND[kind]
    facts = {"sdtype": "numerical"}, {"sdtype": "numerical"}
    if kind == "days against months":
        facts = (
            {"sdtype": "datetime", "datetime_format": "%Y-%m-%d"},
            {"sdtype": "datetime", "datetime_format": "%Y-%m"},
        )
    data = pd.DataFrame({"low": low, "high": high}).sample(4_000, replace=True, random_state=0)
    plain = {name: data[name].to_numpy().tolist() for name in data}
    domain = {
        name: {"range_is_nullable": False}
        if name in discovered
        else {"range_min": min(values), "range_max": max(values), "range_is_nullable": False}
        for name, values in plain.items()
    }
    described = sdv_tables.metadata_of(dict(zip(("low", "high"), facts, strict=True)))
    synthesizer = PrivPGDSynthesizer(described, 5.0, public_domain=domain, **sdv_tables.SMALL)
    constraint = cag.Inequality("low", "high", strict_boundaries=strict)
    synthesizer.add_constraints([constraint])
    with quiet():
        synthesizer.fit(data)
    rows = synthesizer.sample(500)
    assert constraint.is_valid(rows, described).all()
    assert rows.notna().to_numpy().all()
    for name in domain.keys() - set(discovered):
        assert rows[name].between(min(plain[name]), max(plain[name])).all()


def test_a_plan_needs_no_range_for_an_order():
    """The ranges that noise alone makes up are in any order."""
    names = ("low", "high", "real", "start", "middle", "end")
    domain = {name: {"range_is_nullable": False} for name in names}
    synthesizer = new(["strict", "mixed", "range"], public_domain={**DOMAIN, **domain})
    for _ in range(2):
        assert "2-way marginals" in synthesizer.plan(100).text


class TestRefusals:
    def test_what_would_be_learned_or_is_generated_or_undeclared_is_refused(self):
        with pytest.raises(SynthesizerInputError, match=r"sdv_privpgd\.FixedCombinations"):
            new([]).add_constraints([cag.FixedCombinations(["country", "city"])])
        with pytest.raises(ConstraintNotMetError, match="primary key"):
            new([]).add_constraints([cag.OneHotEncoding(["id", "red"])])
        columns = {"a": {"sdtype": "boolean"}, "mail": {"sdtype": "email", "pii": True}}
        synthesizer = PrivPGDSynthesizer(sdv_tables.metadata_of(columns), 1.0)
        with pytest.raises(
            SynthesizerInputError, match=r"\['mail'\]: it takes .* that are modelled"
        ):
            synthesizer.add_constraints([cag.OneHotEncoding(["a", "mail"])])
        with pytest.raises(ValueError, match="list"):
            new([]).add_constraints(cag.Inequality("low", "high"))
        with pytest.raises(ConstraintNotMetError, match="sdtype"):
            new([]).add_constraints([cag.Inequality("low", "city")])
        with pytest.raises(ConstraintNotMetError, match="nothing"):
            new([]).add_constraints([cag.Inequality("low", "nothing")])
        with pytest.raises(SynthesizerInputError, match=r"\['w'\] of 'country'"):
            new([]).add_constraints([FixedCombinations(["country", "city"], [("w", "p")])])
        with pytest.raises(ValueError, match="lacks"):
            FixedCombinations(["country", "city"], pd.DataFrame({"country": ["x"]}))

    @pytest.mark.parametrize("others", [DOMAIN, {}], ids=["all declared", "others not declared"])
    def test_what_no_declared_value_can_meet_is_refused(self, others):
        domain = {
            **others,
            "low": {"range_min": 10, "range_max": 20, "range_is_nullable": False},
            "high": {"range_min": 0, "range_max": 5, "range_is_nullable": False},
        }
        synthesizer = new([], public_domain=domain)
        with pytest.raises(SynthesizerInputError, match="cannot be met"):
            synthesizer.add_constraints([cag.Inequality("low", "high")])
        assert synthesizer.get_constraints() == []
        synthesizer.add_constraints([cag.Inequality("high", "low")])

    def test_an_order_with_a_column_that_is_not_declared_waits_for_its_range(self):
        domain = {"low": {"range_min": 10, "range_max": 20, "range_is_nullable": False}}
        synthesizer = new([], public_domain=domain)
        order = cag.Inequality("low", "real")
        synthesizer.add_constraints([order])
        assert list(map(repr, synthesizer.get_constraints())) == [repr(order)]
        assert synthesizer.ledger.charges == ()

    def test_a_predicate_that_needs_its_fit_or_that_no_row_meets_ends_in_an_error(self):
        class Learned(cag.SingleTableProgrammableConstraint):
            def fit(self, data, metadata):
                self.limit = data["low"].max()

            def is_valid(self, synthetic_data):
                return synthetic_data["low"] <= self.limit

        with pytest.raises(SynthesizerInputError, match=r"Learned.is_valid .* never called"):
            new([]).add_constraints([Learned()])

        class Never(Sum):
            def is_valid(self, synthetic_data):
                return pd.Series(False, index=synthetic_data.index)

        hopeless = new([])
        hopeless.add_constraints([Never()])
        with pytest.warns(UserWarning, match="None of a thousand rows .* meets .'Never.is_valid'."):
            hopeless.fit(table())
        with pytest.raises(ConstraintError) as raised:
            hopeless.sample(10)
        assert "0 of 300 rows of the model meet" in str(raised.value)
