"""SDV's constraints on a private synthesizer: met by every row, and never fitted on the table."""

import warnings

import numpy as np
import pandas as pd
import pytest
import sdv_tables
from sdv import cag
from sdv.cag._errors import ConstraintNotMetError
from sdv.errors import RefitWarning, SynthesizerInputError
from sdv.metadata import Metadata
from sdv.sampling import Condition
from sdv.utils import load_constraints, load_synthesizer

from sdv_privpgd import FixedCombinations, MSTSynthesizer, PrivPGDSynthesizer
from sdv_privpgd.constraints.repair import ConstraintError

DATE = {"sdtype": "datetime", "datetime_format": "%d/%m/%Y"}
COLUMNS = {
    "id": {"sdtype": "id"},
    "low": {"sdtype": "numerical"},
    "high": {"sdtype": "numerical"},
    "real": {"sdtype": "numerical"},
    "price": {"sdtype": "numerical"},
    "start": DATE,
    "middle": DATE,
    "end": DATE,
    "red": {"sdtype": "numerical"},
    "green": {"sdtype": "boolean"},
    "blue": {"sdtype": "categorical"},
    "country": {"sdtype": "categorical"},
    "city": {"sdtype": "categorical"},
}
YEAR = {"range_min": "01/01/2020", "range_max": "31/12/2020"}
DOMAIN = {
    "low": {"range_min": 0, "range_max": 99, "decimal_places": 0, "num_bins": 8},
    "high": {"range_min": 0, "range_max": 120, "decimal_places": 0, "num_bins": 8},
    "real": {"range_min": -5.5, "range_max": 130.25, "num_bins": 8},
    "price": {"range_min": 3, "range_max": 1_000, "decimal_places": 0, "num_bins": 8},
    "start": {**YEAR, "num_bins": 6},
    "middle": {**YEAR, "num_bins": 5},
    "end": {**YEAR, "num_bins": 6, "range_is_nullable": False},
    "red": {"range_min": 0, "range_max": 1},
    "blue": {"range_values": [0, 1]},
    "country": {"range_values": ["x", "y", "z"]},
    "city": {"range_values": ["p", "q", "r", "s"]},
}
CITIES = [("x", "p"), ("x", "q"), ("y", "r"), (None, "s"), ("z", None)]


class Sum(cag.SingleTableProgrammableConstraint):
    """Reads values, not cells, and must never be fitted."""

    def __init__(self, most=150):
        self.most = most

    def fit(self, data, metadata):
        raise AssertionError("fitted")

    validate_input_data = fit

    def is_valid(self, synthetic_data):
        total = synthetic_data["low"] + synthetic_data["high"]
        return total.isna() | (total <= self.most)


CONSTRAINTS = {
    "inequality": lambda: cag.Inequality("low", "high"),
    "strict": lambda: cag.Inequality("low", "high", strict_boundaries=True),
    "mixed": lambda: cag.Inequality("low", "real", strict_boundaries=True),
    "range": lambda: cag.Range("start", "middle", "end", strict_boundaries=False),
    "strict range": lambda: cag.Range("start", "middle", "end"),
    "increments": lambda: cag.FixedIncrements("price", 25),
    "one hot": lambda: cag.OneHotEncoding(["red", "green", "blue"]),
    "combinations": lambda: FixedCombinations(["country", "city"], CITIES),
    "programmable": Sum,
}


def metadata() -> Metadata:
    return sdv_tables.metadata_of(COLUMNS, primary_key="id")


def table(num_rows: int = 300, seed: int = 0) -> pd.DataFrame:
    """Rows of which most break most of the constraints."""
    rng = np.random.default_rng(seed)
    days = np.datetime64("2020-01-01") + rng.integers(0, 366, (3, num_rows)).astype("m8[D]")
    cities = pd.Series(["p", "q", "r", "s", None], dtype=object)
    return pd.DataFrame(
        {
            "id": np.arange(num_rows),
            "low": rng.integers(0, 100, num_rows),
            "high": np.where(rng.random(num_rows) < 0.1, np.nan, rng.integers(0, 121, num_rows)),
            "real": rng.uniform(-5, 130, num_rows),
            "price": rng.integers(3, 1_000, num_rows),
            **{
                name: pd.Series(own).dt.strftime("%d/%m/%Y")
                for name, own in zip(("start", "middle", "end"), days, strict=True)
            },
            "red": rng.integers(0, 2, num_rows),
            "green": rng.random(num_rows) < 0.3,
            "blue": rng.integers(0, 2, num_rows),
            "country": rng.choice(["x", "y", "z"], num_rows),
            "city": cities.sample(num_rows, replace=True, random_state=seed).to_numpy(),
        }
    )


def new(kinds=tuple(CONSTRAINTS), method=PrivPGDSynthesizer, **changes):
    settings = {"epsilon": 1.0, "public_domain": DOMAIN, **changes}
    if method is PrivPGDSynthesizer:
        settings = {**sdv_tables.SMALL, **settings}
    synthesizer = method(metadata(), **settings)
    synthesizer.add_constraints([CONSTRAINTS[kind]() for kind in kinds])
    return synthesizer


ALL = tuple(kind for kind in CONSTRAINTS if not kind.startswith("strict"))


def broken(kind: str, rows: pd.DataFrame) -> int:
    """How many rows break a constraint, decided here and, where it can, by SDV."""
    dates = {
        name: pd.to_datetime(rows[name], format="%d/%m/%Y") for name in ("start", "middle", "end")
    }
    valid = {
        "inequality": lambda: ~(rows["low"] > rows["high"]),
        "strict": lambda: ~(rows["low"] >= rows["high"]),
        "mixed": lambda: ~(rows["low"] >= rows["real"]),
        "range": lambda: (
            ~(
                (dates["start"] > dates["middle"])
                | (dates["middle"] > dates["end"])
                | (dates["start"] > dates["end"])
            )
        ),
        "strict range": lambda: (
            ~(
                (dates["start"] >= dates["middle"])
                | (dates["middle"] >= dates["end"])
                | (dates["start"] >= dates["end"])
            )
        ),
        "increments": lambda: rows["price"].isna() | (rows["price"] % 25 == 0),
        "one hot": lambda: (
            rows[["red", "green", "blue"]].astype(float).sum(axis=1).eq(1)
            & rows[["red", "green", "blue"]].isin([0, 1]).all(axis=1)
        ),
        "combinations": lambda: pd.Series(
            [
                tuple(None if pd.isna(cell) else cell for cell in row) in CITIES
                for row in rows[["country", "city"]].itertuples(index=False)
            ]
        ),
        "programmable": lambda: ~(rows["low"] + rows["high"] > 150),
    }[kind]()
    if "range" not in kind and kind != "programmable":  # unfitted, SDV's compares texts
        theirs = CONSTRAINTS[kind]().is_valid(rows, metadata())
        assert np.array_equal(np.asarray(theirs), valid)
    return int((~valid).sum())


@pytest.mark.parametrize("method", [PrivPGDSynthesizer, MSTSynthesizer])
@pytest.mark.parametrize("kind", CONSTRAINTS)
def test_no_row_breaks_a_constraint(kind, method):
    synthesizer = new([kind], method)
    synthesizer.fit(table())
    rows = synthesizer.sample(5_000)
    assert broken(kind, rows) == 0
    synthesizer.validate_constraints(rows)


def test_constraints_hold_together():
    synthesizer = new(ALL)
    synthesizer.fit(table())
    rows = synthesizer.sample(5_000)
    assert {kind: broken(kind, rows) for kind in ALL} == dict.fromkeys(ALL, 0)


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
        synthesizer.fit(pd.DataFrame({"day": ["2020-01-05"], "hour": ["2020-01-05 10:00"]}))
        assert constraint.is_valid(synthesizer.sample(2_000), described).all()


@pytest.fixture(scope="module")
def fitted():
    synthesizer = new(ALL)
    synthesizer.fit(table())
    return synthesizer


class TestSampling:
    def test_rows_do_not_depend_on_how_they_are_asked_for(self, fitted):
        fitted.reset_sampling()
        at_once = fitted.sample(900)
        fitted.reset_sampling()
        in_parts = pd.concat([fitted.sample(500), fitted.sample(400)], ignore_index=True)
        pd.testing.assert_frame_equal(at_once.drop(columns="id"), in_parts.drop(columns="id"))

    def test_a_saved_synthesizer_keeps_them(self, fitted, tmp_path):
        fitted.save(tmp_path / "model.pkl")
        loaded = load_synthesizer(tmp_path / "model.pkl")
        fitted.reset_sampling()
        loaded.reset_sampling()
        pd.testing.assert_frame_equal(fitted.sample(50), loaded.sample(50))
        assert len(loaded.get_constraints()) == len(ALL)

    def test_rows_that_meet_conditions_meet_the_constraints(self, fitted):
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

    def test_a_condition_against_a_constraint_is_left_out(self, fitted):
        known = pd.DataFrame({"low": [80, 20], "high": [30, 40]})
        with pytest.warns(UserWarning, match="1 of 2 conditions can be met"):
            rows = fitted.sample_remaining_columns(known)
        assert rows[["low", "high"]].to_numpy().tolist() == [[20, 40]]

    def test_no_bar_is_shown_unless_it_was_asked_for(self, fitted, capsys):
        fitted.sample(10, batch_size=5)
        assert capsys.readouterr().err == ""
        fitted.verbose = True
        try:
            fitted.sample(10)
        finally:
            fitted.verbose = False
        assert "Sampling rows" in capsys.readouterr().err

    def test_the_metadata_stays_the_user_s(self, fitted):
        assert fitted.get_metadata("modified").to_dict() == fitted.get_metadata().to_dict()
        assert list(fitted.sample(3).columns) == list(COLUMNS)

    def test_validate_constraints_finds_rows_that_break_one(self, fitted):
        rows = fitted.sample(20).assign(low=90, high=10)
        with pytest.raises(ConstraintNotMetError, match="20 rows"):
            fitted.validate_constraints(rows)


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
    synthesizer = new(
        ["inequality", "increments", "one hot", "combinations"], public_domain=None, epsilon=5.0
    )
    data = table(2_000)
    data["price"] = data["price"] // 25 * 25
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="The ranges or categories")
        synthesizer.fit(data)
    rows = synthesizer.sample(3_000)
    for kind in ("inequality", "increments", "one hot", "combinations"):
        assert broken(kind, rows) == 0


BEHIND = {
    "whole": (np.arange(50, 90), np.arange(40)),
    "whole against real": (np.arange(50, 90), np.linspace(-3, 2.5, 40)),
    "real against decimals": (np.linspace(50, 90, 40), np.arange(40) / 10),
    "days against months": (
        pd.date_range("2020-03-01", periods=40).strftime("%Y-%m-%d"),
        pd.date_range("2016-01-01", periods=40, freq="MS").strftime("%Y-%m"),
    ),
}
"""Values of which each of the first is above each of the second."""


@pytest.mark.parametrize("strict", [False, True])
@pytest.mark.parametrize("discovered", [("low", "high"), ("low",), ("high",)])
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
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="The ranges or categories")
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
    for _ in range(5):
        assert "2-way marginals" in synthesizer.plan(100).text


def test_constraints_after_a_fit_take_effect_at_the_next_one():
    synthesizer = new([])
    synthesizer.fit(table())
    with pytest.warns(RefitWarning):
        synthesizer.add_constraints([CONSTRAINTS["inequality"]()])
    assert broken("inequality", synthesizer.sample(500)) > 0
    with pytest.warns(UserWarning, match="fitted before"):
        synthesizer.fit(table())
    assert broken("inequality", synthesizer.sample(500)) == 0


def test_constraints_are_written_to_a_file_as_sdv_does(tmp_path):
    kinds = ["inequality", "range", "increments", "one hot"]
    new(kinds).get_constraints(tmp_path / "constraints.json")
    loaded = load_constraints(tmp_path / "constraints.json")
    assert list(map(repr, loaded)) == [repr(CONSTRAINTS[kind]()) for kind in kinds]


class TestRefusals:
    def test_what_would_be_learned_is_refused_with_the_way_out(self):
        with pytest.raises(SynthesizerInputError, match=r"sdv_privpgd\.FixedCombinations"):
            new([]).add_constraints([cag.FixedCombinations(["country", "city"])])

    def test_generated_columns_are_refused(self):
        with pytest.raises(ConstraintNotMetError, match="primary key"):
            new([]).add_constraints([cag.OneHotEncoding(["id", "red"])])
        columns = {"a": {"sdtype": "boolean"}, "mail": {"sdtype": "email", "pii": True}}
        synthesizer = PrivPGDSynthesizer(sdv_tables.metadata_of(columns), 1.0)
        with pytest.raises(SynthesizerInputError, match=r"\['mail'\], which are not modelled"):
            synthesizer.add_constraints([cag.OneHotEncoding(["a", "mail"])])

    def test_what_sdv_refuses_is_refused(self):
        with pytest.raises(ValueError, match="list"):
            new([]).add_constraints(cag.Inequality("low", "high"))
        with pytest.raises(ConstraintNotMetError, match="sdtype"):
            new([]).add_constraints([cag.Inequality("low", "city")])
        with pytest.raises(ConstraintNotMetError, match="nothing"):
            new([]).add_constraints([cag.Inequality("low", "nothing")])

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
        new([], public_domain=domain).add_constraints([cag.Inequality("low", "real")])

    def test_combinations_of_undeclared_values_are_refused(self):
        with pytest.raises(SynthesizerInputError, match=r"\['w'\] of 'country'"):
            new([]).add_constraints([FixedCombinations(["country", "city"], [("w", "p")])])
        with pytest.raises(ValueError, match="lacks"):
            FixedCombinations(["country", "city"], pd.DataFrame({"country": ["x"]}))

    def test_a_predicate_that_needs_its_fit_is_refused(self):
        class Learned(cag.SingleTableProgrammableConstraint):
            def fit(self, data, metadata):
                self.limit = data["low"].max()

            def is_valid(self, synthetic_data):
                return synthetic_data["low"] <= self.limit

        with pytest.raises(SynthesizerInputError, match=r"Learned.is_valid .* never called"):
            new([]).add_constraints([Learned()])

    def test_a_predicate_that_no_row_meets_ends_in_an_error(self):
        class Never(Sum):
            def is_valid(self, synthetic_data):
                return pd.Series(False, index=synthetic_data.index)

        hopeless = new([])
        hopeless.add_constraints([Never()])
        hopeless.fit(table())
        with pytest.raises(ConstraintError) as raised:
            hopeless.sample(10)
        assert "0 of 300 rows of the model meet" in str(raised.value)
