"""What a synthesizer says before, after and instead of a fit, and what it lets its user read."""

import json
import warnings

import cloudpickle
import numpy as np
import pandas as pd
import pytest
import sdv_tables
from made_up import heard
from rdt.transformers import AnonymizedFaker, RegexGenerator
from sdv.cag import FixedIncrements, Inequality
from sdv.errors import InvalidDataError, NotFittedError
from sdv.sampling import Condition

from sdv_privpgd import Between, MSTSynthesizer, People, PublicDomainError
from sdv_privpgd.report.warnings import OPENING


def uuids():
    return {"mail": AnonymizedFaker(provider_name="misc", function_name="uuid4")}


def new(epsilon=1.0, columns=None, *, keys=("id",), **settings):
    columns = sdv_tables.COLUMNS if columns is None else columns
    facts = {"primary_key": keys[0]} if keys else {}
    settings = {"public_domain": sdv_tables.PUBLIC_DOMAIN, **settings}
    return MSTSynthesizer(sdv_tables.metadata_of(columns, **facts), epsilon, **settings)


@pytest.fixture(scope="module")
def fitted():
    narrow = {**sdv_tables.PUBLIC_DOMAIN, "income": {"range_min": 0, "range_max": 500}}
    synthesizer = new(20.0, public_domain=narrow)  # of eight wide cells it would have to speak
    synthesizer.fit(sdv_tables.table(3_000))
    return synthesizer


def test_a_healthy_fit_is_silent(fitted):
    assert fitted.warnings_ == ()
    assert OPENING not in fitted.privacy_report()


@pytest.fixture(scope="module")
def clipped():
    """Incomes of which most are above the declared range, and ids that are no keys."""
    columns = {"income": {"sdtype": "numerical"}, "who": {"sdtype": "id"}}
    table = pd.DataFrame({"income": np.linspace(0, 100, 2_000), "who": ["P-1"] * 2_000})
    domain = {"income": {"range_min": 0, "range_max": 20, "decimal_places": 0}}
    synthesizer = new(5.0, columns, keys=(), public_domain=domain)
    assert synthesizer.warnings_ == ()
    with heard() as caught:
        synthesizer.fit(table)
    return synthesizer, caught


class TestWhatIsWorthALook:
    def test_it_is_told_before_and_after_a_fit_at_the_caller_s_line(self, clipped):
        synthesizer, caught = clipped
        assert {each.filename for each in caught} == {__file__}
        before, after = (str(each.message) for each in caught)
        summary, clipped, *told = synthesizer.warnings_
        assert before == " ".join(told)  # what declarations alone say
        assert after == "\n- ".join((OPENING, summary, clipped))
        ids, _, rows = told
        assert summary == "0 of 1 column usable, 1 doubtful, 0 lost."
        assert "range_max=20" in clipped
        assert "['who'] have the sdtype id" in ids
        assert "max_rows" in rows

    def test_it_stands_on_the_page_in_the_report_and_in_the_file(self, clipped, tmp_path):
        synthesizer, _ = clipped
        page = synthesizer.report().html()
        first = f"</h1><p>{synthesizer.warnings_[0]} There are 4 notes below the pictures.</p>"
        assert page.index(first) < page.index("<figure>") < page.index("range_max=20")
        assert page.index("range_max=20") < page.index("what an attacker can gain")
        said = " ".join(synthesizer.privacy_report().split())
        assert said.endswith(synthesizer.warnings_[-1])
        assert cloudpickle.loads(cloudpickle.dumps(synthesizer)).warnings_ == synthesizer.warnings_

    def test_a_warning_that_is_made_an_error_leaves_the_model_whole(self):
        synthesizer = new(0.5)
        with warnings.catch_warnings():
            warnings.filterwarnings("error", OPENING)
            with pytest.raises(UserWarning, match="rows are few"):
                synthesizer.fit(sdv_tables.table(50))
        assert len(synthesizer.sample(5)) == 5


MISMATCHES = {
    "whole numbers against text": ({"range_values": ["1", "2"]}, "categorical", "int64"),
    "numbers with a missing cell against text": (
        {"range_values": ["1", "2"]}, "categorical", "float64",
    ),
    "floats against dates": (
        {"range_min": "2020-01-01", "range_max": "2020-12-31"}, "datetime", "float64",
    ),
    "text against numbers": ({"range_values": [1, 2]}, "categorical", "string"),
    "dates against numbers": ({"range_min": 0, "range_max": 1}, "numerical", "datetime64[ns]"),
    "dates against categories": ({"range_values": ["a"]}, "categorical", "datetime64[ns]"),
    "numbers against dates": (
        {"range_min": "2020-01-01", "range_max": "2020-12-31"}, "datetime", "int64",
    ),
}  # fmt: skip

DIGITS = {"range_min": 20200101, "range_max": 20201231, "datetime_format": "%Y%m%d"}
MATCHES = {
    "objects": ({"range_values": ["1", "2"]}, "categorical", "object"),
    "floats for numbers": ({"range_values": [1, 2]}, "categorical", "float64"),
    "floats for dates of digits": (DIGITS, "datetime", "float64"),
    "truths for numbers": ({"range_values": [0, 1]}, "categorical", "bool"),
    "digits for dates": (DIGITS, "datetime", "int64"),
}


def one_column(facts, sdtype, dtype):
    synthesizer = new(1.0, {"x": {"sdtype": sdtype}}, keys=(), public_domain={"x": facts})
    cells = {"string": ["1", "2"], "datetime64[ns]": ["2020-01-01", "2020-01-02"]}
    column = pd.Series(cells.get(dtype, [1, 0])).astype(dtype)
    return synthesizer, pd.DataFrame({"x": column})


@pytest.mark.parametrize(("facts", "sdtype", "dtype"), MISMATCHES.values(), ids=MISMATCHES)
def test_a_dtype_that_cannot_match_is_refused_before_anything_is_spent(facts, sdtype, dtype):
    synthesizer, table = one_column(facts, sdtype, dtype)
    for rows in (table, table.iloc[:0]):  # no cell decides
        with pytest.raises(InvalidDataError, match=rf"'x' has the dtype {dtype[:4]}"):
            synthesizer.fit(rows)
    assert synthesizer.ledger.charges == ()


@pytest.mark.parametrize(("facts", "sdtype", "dtype"), MATCHES.values(), ids=MATCHES)
def test_a_dtype_that_may_match_is_taken(facts, sdtype, dtype):
    synthesizer, table = one_column(facts, sdtype, dtype)
    synthesizer.validate(table)
    assert synthesizer.ledger.charges == ()
    synthesizer.fit(table)
    assert list(synthesizer.sample(3).columns) == ["x"]


def test_intervals_are_refused_with_what_to_do():
    cut = pd.cut(pd.Series([1.0, 50.0, None] * 40), [0, 30, 60])
    synthesizer = new(1.0, {"x": {"sdtype": "categorical"}}, keys=(), public_domain=None)
    intervals = pd.Series(pd.interval_range(0, 30))
    for column, dtype in ((cut, "category of intervals"), (intervals, "intervals")):
        with pytest.raises(InvalidDataError, match=rf"'x': '{dtype}'.*text with \.astype"):
            synthesizer.fit(pd.DataFrame({"x": column}))
    assert synthesizer.ledger.charges == ()
    synthesizer.validate(pd.DataFrame({"x": cut.astype("string")}))


class TestATableWithoutRows:
    def test_it_is_refused_before_anything_is_spent_where_their_number_is_public(self):
        synthesizer = new()
        with pytest.raises(InvalidDataError, match="no rows"):
            synthesizer.fit(sdv_tables.table(0))
        assert synthesizer.ledger.charges == ()
        with pytest.raises(InvalidDataError, match="no rows"):
            synthesizer.fit_processed_data(synthesizer.preprocess(sdv_tables.table(0)))
        assert synthesizer.ledger.charges == ()

    def test_it_takes_no_good_model_s_place(self):
        synthesizer = new(20.0)
        synthesizer.fit(sdv_tables.table(500))
        before, model = synthesizer.ledger, synthesizer._model_of_table
        with pytest.raises(InvalidDataError, match="no rows"):
            synthesizer.fit(sdv_tables.table(0))
        assert synthesizer.ledger == before
        assert synthesizer._model_of_table is model
        assert len(synthesizer.sample(5)) == 5


def test_a_plan_names_ids_and_dates_that_would_be_modelled_before_anything_is_spent():
    columns = {"smoker": {"sdtype": "boolean"}, "who": {"sdtype": "id"}}
    assert (
        "The ids ['who'] are no keys" in new(1.0, columns, keys=(), public_domain={}).plan(100).text
    )
    kinds = {"admission_type_id": {"sdtype": "id"}, "patient_id": {"sdtype": "id"}}
    plan = new(
        1.0, {**columns, **kinds}, keys=(), public_domain={}, people=People(max_rows=2)
    ).plan(100)
    assert plan.to_dict()["warnings"][0].startswith("['who', 'admission_type_id'] have the sdtype")
    several = new(1.0, columns, keys=(), public_domain={}, people=People(max_rows=2))
    assert "are no keys" not in several.plan(100).text
    columns = {"patient_id": {"sdtype": "categorical"}, "Geburtsdatum": {"sdtype": "categorical"}}
    plan = new(1.0, columns, keys=(), public_domain={}).plan(1_000)
    ids, asked, dates = plan.to_dict()["warnings"][:3]
    assert asked.startswith("Whose rows are these?")
    assert "'patient_id'] are those of ids" in ids
    assert "'Geburtsdatum'] are those of dates" in dates
    declared = {name: {"range_values": ["A"]} for name in columns}
    plan = new(1.0, columns, keys=(), public_domain=declared).plan(1_000)
    assert plan.to_dict()["warnings"] == []


CONSTRAINTS = {
    "none": [],
    "an increment": [FixedIncrements("age", 5)],
    "an order": [Inequality("age", "income")],
}


class TestWhatWasFound:
    @pytest.mark.parametrize("constraints", CONSTRAINTS.values(), ids=CONSTRAINTS)
    def test_it_declares_the_same_columns_to_another_synthesizer(self, constraints):
        domain = {"ward": sdv_tables.PUBLIC_DOMAIN["ward"], "age": {"range_min": 0}}
        synthesizer = new(5.0, public_domain=domain)
        synthesizer.add_constraints(constraints)
        with pytest.warns(UserWarning, match="not declared"):
            synthesizer.fit(sdv_tables.table(1_000))
        found = json.loads(json.dumps(synthesizer.discovered_domain()))
        assert set(found) == {"age", "income", "ward", "grade", "seen"}
        assert found["ward"]["range_values"] == ["A", "B", "C"]
        other = new(1.0, public_domain=found, discovery_share=0)
        other.add_constraints(constraints)
        assert other._schema() == synthesizer._schema()

    def test_there_is_nothing_to_read_before_a_fit(self):
        with pytest.raises(NotFittedError):
            new().discovered_domain()


class TestGenerators:
    def test_they_are_replaced_after_a_fit_at_no_cost(self):
        synthesizer = new(20.0)
        synthesizer.fit(sdv_tables.table(500))
        before, spent = synthesizer.sample(20), synthesizer.ledger
        synthesizer.update_transformers(
            {**uuids(), "id": RegexGenerator(regex_format="P[0-9]{6}", cardinality_rule="unique")}
        )
        after = synthesizer.sample(20)
        assert after["mail"].str.len().eq(36).all()
        assert after["id"].str.fullmatch("P[0-9]{6}").all()
        assert after["id"].is_unique
        modelled = [name for name in before if name not in ("id", "mail")]
        pd.testing.assert_frame_equal(before[modelled], after[modelled])
        assert synthesizer.ledger == spent
        kept = cloudpickle.loads(cloudpickle.dumps(synthesizer))
        assert kept.sample(3)["mail"].str.len().eq(36).all()

    def test_they_are_replaced_before_a_fit_that_has_nothing_declared(self):
        synthesizer, table = new(20.0, public_domain=None), sdv_tables.table(500)
        synthesizer.auto_assign_transformers(table)
        assert set(synthesizer.get_transformers()) == set(sdv_tables.COLUMNS)
        synthesizer.update_transformers(uuids())
        with pytest.warns(UserWarning, match="not declared"):
            synthesizer.fit(table)
        rows = synthesizer.sample(50)
        assert rows["mail"].str.len().eq(36).all()
        assert set(rows["ward"].dropna()) <= {"A", "B", "C", "other"}
        synthesizer = new(public_domain=None, discovery_share=0)
        with pytest.raises(PublicDomainError):
            synthesizer.auto_assign_transformers(sdv_tables.table(10))


IMPOSSIBLE = {
    "a category": ({"ward": "Z"}, r"'Z' lies outside the domain of 'ward', .* 'A', 'B', 'C'"),
    "a number": ({"age": 500}, "500 lies outside the domain of 'age', which holds 0 to 110"),
    "a range": ({"age": Between(200, 300)}, r"Between\(low=200, high=300\) lies outside"),
    "a date": ({"seen": "2031-01-01"}, "holds 2020-01-01 to 2020-12-31"),
    "missing": ({"grade": None}, "a missing value lies .* is never missing"),
    "two": ({"ward": "Z", "age": 500}, "'age', .*'ward'"),
    "no whole number": ({"age": 3.5}, "3.5 lies outside .* 0 to 110 in steps of 1, and"),
}


class TestConditionsThatCannotBeMet:
    @pytest.mark.parametrize(("condition", "why"), IMPOSSIBLE.values(), ids=IMPOSSIBLE)
    def test_the_column_and_its_domain_are_named(self, fitted, condition, why):
        with pytest.raises(ValueError, match=why) as raised:
            fitted.sample_from_conditions([Condition(condition, num_rows=2)])
        assert "In 2 rows" in str(raised.value)
        assert "max_tries" not in str(raised.value)

    def test_what_contradicts_the_constraints_is_told_so(self):
        synthesizer = new(20.0)
        synthesizer.add_constraints([Inequality("age", "income")])
        synthesizer.fit(sdv_tables.table(500))
        with pytest.raises(ValueError, match="1 row would contradict the constraints"):
            synthesizer.sample_from_conditions([Condition({"age": 100, "income": 3.0})])
