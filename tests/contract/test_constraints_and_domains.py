"""Constraints beside ranges and categories that were declared or discovered, and those refused."""

import warnings

import numpy as np
import pandas as pd
import pytest
import sdv_tables
from constrained import DOMAIN, Sum, broken, new, table
from sdv import cag
from sdv.cag._errors import ConstraintNotMetError
from sdv.errors import SynthesizerInputError

from sdv_privpgd import PrivPGDSynthesizer
from sdv_privpgd.constraints import FixedCombinations
from sdv_privpgd.constraints.repair import ConstraintError


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
        hopeless.fit(table())
        with pytest.raises(ConstraintError) as raised:
            hopeless.sample(10)
        assert "0 of 300 rows of the model meet" in str(raised.value)
