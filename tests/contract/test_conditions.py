"""Rows under conditions: exact values, ranges, and reasons where none can be met."""

import datetime
from decimal import Decimal

import numpy as np
import pandas as pd
import pytest
import sdv_tables
from made_up import kinds, made_up
from sdv.sampling import Condition, DataFrameCondition

from sdv_privpgd import Between, PrivPGDSynthesizer


class TestConditions:
    def test_exact_values_survive_in_the_types_of_an_ordinary_sample(self, fitted):
        conditions = [
            Condition({"income": 123.45, "ward": "B"}, num_rows=7),
            Condition({"age": 33, "smoker": True, "seen": "2020-03-04"}, num_rows=5),
            DataFrameCondition(pd.DataFrame({"grade": [1, 3]})),
        ]
        rows = fitted.sample_from_conditions(conditions)
        assert len(rows) == 14
        assert list(rows.columns) == list(sdv_tables.COLUMNS)
        assert (rows["income"][:7] == 123.45).all()
        assert (rows["ward"][:7] == "B").all()
        assert (rows[["age", "smoker", "seen"]][7:12] == [33, True, "2020-03-04"]).all(axis=None)
        assert list(rows["grade"][12:]) == [1, 3]
        rows = fitted.sample_from_conditions([Condition({"age": 33, "grade": 2}, num_rows=4)])
        ordinary = fitted.sample(4)
        assert rows.dtypes.to_dict() == ordinary.dtypes.to_dict()
        conditions = [
            Condition({"age": 30, "ward": "A"}, num_rows=3),
            Condition({"ward": "A"}, num_rows=2),
            Condition({"age": 30, "ward": "A"}, num_rows=3),
            DataFrameCondition(pd.DataFrame({"age": [30, 30], "ward": ["A", "A"]})),
        ]
        rows = fitted.sample_from_conditions(conditions)
        assert (rows["ward"] == "A").tolist() == [True] * 10
        assert (rows["age"][:8] == 30).all()  # one set of columns comes after the other

    def test_rows_with_a_condition_follow_the_model(self):
        """P(b | a) of the conditioned rows is that of the particles: 0.9 within 5 points."""
        table = made_up(4_000, a=0.5, b=0.9)
        table["b"] = table["a"] == table["b"]
        metadata = sdv_tables.metadata_of(kinds(a="boolean", b="boolean"))
        synthesizer = PrivPGDSynthesizer(metadata, 10.0, **sdv_tables.by_particles(2000))
        synthesizer.fit(table)
        rows = synthesizer.sample_from_conditions([Condition({"a": True}, num_rows=2000)])
        assert rows["b"].mean() == pytest.approx(0.9, abs=0.05)

    @pytest.mark.parametrize("missing", [None, np.nan, pd.NA, pd.NaT])
    @pytest.mark.parametrize("name", ["ward", "age", "income", "seen"])
    def test_missing_values_can_be_asked_for(self, fitted, name, missing):
        rows = fitted.sample_from_conditions([Condition({name: missing}, num_rows=5)])
        assert rows[name].isna().all()
        ordinary = fitted.sample(5).dtypes.to_dict()
        assert rows.dtypes.drop(name).to_dict() == pd.Series(ordinary).drop(name).to_dict()

    @pytest.mark.parametrize(
        ("name", "given", "written"),
        [
            ("age", 33.0, 33), ("age", "33", 33), ("age", np.int8(33), 33), ("age", True, 1),
            ("income", 7, 7.0), ("income", np.float32(0.5), 0.5), ("income", "123.45", 123.45),
            ("grade", 1.0, 1), ("grade", True, 1), ("smoker", 1, True), ("smoker", "FALSE", False),
            ("seen", pd.Timestamp("2020-03-04"), "2020-03-04"),
            ("seen", datetime.date(2020, 3, 4), "2020-03-04"),
            ("ward", "A", "A"),
        ],
    )  # fmt: skip
    def test_a_value_of_another_type_is_written_in_the_column_s(self, fitted, name, given, written):
        rows = fitted.sample_from_conditions([Condition({name: given}, num_rows=3)])
        assert rows[name].tolist() == [written] * 3
        assert rows.dtypes.to_dict() == fitted.sample(3).dtypes.to_dict()

    def test_dates_without_a_format_are_timestamps_and_none_is_finer_than_the_column(self):
        metadata = sdv_tables.metadata_of(kinds(at="datetime"))
        ends = {"range_min": datetime.date(2020, 1, 1), "range_max": datetime.date(2020, 12, 31)}
        synthesizer = PrivPGDSynthesizer(
            metadata, 1.0, public_domain={"at": ends}, **sdv_tables.SMALL
        )
        synthesizer.fit(pd.DataFrame({"at": pd.date_range("2020-01-01", periods=90)}))
        known = pd.DataFrame({"at": ["2020-03-04", "2020-03-04 05:06:07", None]})
        with pytest.warns(UserWarning, match="In 1 row '2020-03-04 05:06:07' lies outside"):
            rows = synthesizer.sample_remaining_columns(known)
        assert rows["at"].dtype == "datetime64[ns]"
        assert rows["at"].tolist() == [pd.Timestamp("2020-03-04"), pd.NaT]
        ranged = [Condition({"at": Between("2020-03-04 05:00", None)}, num_rows=50)]
        assert synthesizer.sample_from_conditions(ranged)["at"].min() >= pd.Timestamp("2020-03-05")

    @pytest.mark.parametrize("dtypes", ["nullable", "category", "object"])
    def test_known_columns_of_other_dtypes(self, fitted, dtypes):
        known = sdv_tables.table(30, seed=9).drop(columns="id")
        other = known.convert_dtypes() if dtypes == "nullable" else known.astype(dtypes)
        rows = fitted.sample_remaining_columns(other)
        modelled = list(sdv_tables.PUBLIC_DOMAIN)
        pd.testing.assert_frame_equal(rows[modelled], known[modelled], check_dtype=False)
        assert rows[modelled].dtypes.to_dict() == fitted.sample(3)[modelled].dtypes.to_dict()

    def test_conditions_on_nothing_are_ordinary_rows_and_repeat_after_a_reset(self, fitted):
        ordinary = fitted.sample(20)
        for rows in (
            lambda: fitted.sample_from_conditions([Condition({}, num_rows=20)]),
            lambda: fitted.sample_remaining_columns(pd.DataFrame(index=range(20))),
        ):
            fitted.reset_sampling()
            pd.testing.assert_frame_equal(rows(), ordinary)
        wards = lambda: fitted.sample_from_conditions([Condition({"ward": "A"}, num_rows=40)])
        fitted.reset_sampling()
        first, second = wards(), wards()
        fitted.reset_sampling()
        pd.testing.assert_frame_equal(first, wards())
        assert not first.drop(columns="id").equals(second.drop(columns="id"))

    def test_generated_columns_may_be_given_to_some_rows_only(self, fitted):
        conditions = [
            Condition({"mail": "me@x.example", "ward": "A"}, num_rows=2),
            Condition({"ward": "B"}, num_rows=3),
            Condition({"mail": None}, num_rows=1),
        ]
        rows = fitted.sample_from_conditions(conditions)
        assert rows["mail"][:2].eq("me@x.example").all()
        assert rows["mail"][2:5].str.contains("@").all()
        assert rows["mail"][5:].isna().all()
        assert rows["ward"][:5].tolist() == ["A", "A", "B", "B", "B"]

    def test_each_fitting_particle_is_used_once_before_any_is_twice(self):
        """With more than 1,000 particles that fit, twice as many rows are each of them twice."""
        metadata = sdv_tables.metadata_of(kinds(a="boolean", b="boolean", c="boolean"))
        domain = {name: {"range_is_nullable": False} for name in "abc"}
        settings = {"public_domain": domain, **sdv_tables.by_particles(4_000)}
        synthesizer = PrivPGDSynthesizer(metadata, 10.0, **settings)
        table = pd.DataFrame(np.indices((2, 2, 2)).reshape(3, 8).T > 0, columns=list("abc"))
        synthesizer.fit(pd.concat([table] * 500))
        fitting = synthesizer.sample(4_000)
        fitting = fitting[fitting["a"].eq(True)].drop(columns="a")
        assert len(fitting) > 1_000
        rows = synthesizer.sample_from_conditions([Condition({"a": True}, 2 * len(fitting))])
        counts = rows.drop(columns="a").value_counts(dropna=False)
        assert counts.to_dict() == (2 * fitting.value_counts(dropna=False)).to_dict()

    def test_impossible_conditions_are_left_out_and_near_ones_take_the_nearest(self, fitted):
        known = pd.DataFrame({"ward": ["A", "Z", "B"]}, index=[10, 20, 30])
        with pytest.warns(
            UserWarning, match="2 of 3 conditions can be met. In 1 row 'Z' lies outside"
        ):
            rows = fitted.sample_remaining_columns(known)
        assert list(rows["ward"]) == ["A", "B"]
        assert list(rows.index) == [10, 30]
        condition = {"age": 1, "income": 499.0, "ward": "C", "grade": 1, "smoker": True}
        rows = fitted.sample_from_conditions([Condition(condition, num_rows=3)])
        for name, value in condition.items():
            assert (rows[name] == value).all()

    @pytest.mark.parametrize(
        ("name", "between"),
        [
            ("age", Between(30, 40)), ("age", Between(30, 30)), ("age", Between(None, 3.5)),
            ("age", Between(107.5, None)), ("age", Between(-5, 10**30)),
            ("income", Between(100.005, 100.025)), ("income", Between(499.99, np.inf)),
            ("income", Between(Decimal("0.1"), 0.3)),
            ("seen", Between("2020-03-04", "2020-03-09")),
            ("seen", Between(pd.Timestamp("2020-12-30 10:00"), None)),
            ("seen", Between(None, datetime.date(2020, 1, 3))),
            ("grade", Between(2, None)), ("grade", Between(1, 1)),
        ],
        ids=repr,
    )  # fmt: skip
    def test_values_of_a_range(self, fitted, name, between):
        conditions = [
            Condition({name: between, "ward": "B"}, num_rows=60),
            DataFrameCondition(
                pd.DataFrame({name: [between, fitted.sample(9)[name].dropna()[:1].item()]})
            ),
        ]
        rows = fitted.sample_from_conditions(conditions)
        assert (rows["ward"][:60] == "B").all()
        assert rows.dtypes.to_dict() == fitted.sample(4).dtypes.to_dict()
        kind = pd.to_datetime if name == "seen" else float
        low, high = (None if end is None else kind(end) for end in (between.low, between.high))
        values = rows[name][:61]
        values = pd.to_datetime(values) if name == "seen" else values
        assert low is None or (values >= low).all()
        assert high is None or (values <= high).all()

    def test_a_range_of_numbers_without_precision_holds_its_ends(self):
        metadata = sdv_tables.metadata_of(kinds(x="numerical", b="boolean"))
        domain = {"x": {"range_min": 0, "range_max": 1}}
        made = PrivPGDSynthesizer(metadata, 1.0, public_domain=domain, **sdv_tables.SMALL)
        made.fit(made_up(300, x=np.random.default_rng(0).random(300), b=0.5))
        for low, high in ((0.1, 0.1), (0.3, np.nextafter(0.3, 1)), (1, 1), (0.2, 0.9)):
            rows = made.sample_from_conditions([Condition({"x": Between(low, high)}, 200)])
            assert rows["x"].between(low, high).all()

    def test_wide_ranges_follow_the_column(self):
        """P(x <= 4 | x <= 9) is 0.8, within 5 points; a cell holds 5 numbers."""
        rng = np.random.default_rng(0)
        x = np.where(rng.random(4_000) < 0.8, rng.integers(0, 5, 4_000), rng.integers(5, 10, 4_000))
        x = np.where(rng.random(4_000) < 0.5, x, rng.integers(10, 80, 4_000))
        metadata = sdv_tables.metadata_of(kinds(x="numerical", b="boolean"))
        domain = {"x": {"range_min": 0, "range_max": 79, "decimal_places": 0, "num_bins": 16}}
        settings = {"public_domain": domain, **sdv_tables.by_particles(4_000)}
        synthesizer = PrivPGDSynthesizer(metadata, 10.0, discovery_share=0, **settings)
        synthesizer.fit(pd.DataFrame({"x": x, "b": x < 5}))
        rows = synthesizer.sample_from_conditions([Condition({"x": Between(0, 9)}, 1_000)])
        assert (rows["x"] < 5).mean() == pytest.approx(0.8, abs=0.05)
        assert ((rows["x"] < 5) == rows["b"]).mean() > 0.95
        rows = synthesizer.sample_from_conditions([Condition({"x": Between(13, 16)}, 1_000)])
        # Two fifths of the first cell's numbers and two fifths of the next cell's, by turns.
        assert rows["x"].value_counts().reindex([13, 14, 15, 16]).between(150, 350).all()

    @pytest.mark.parametrize(
        "between", [Between(200, 300), Between(None, -1), Between(40, 30), Between(30.2, 30.8)]
    )
    def test_a_range_without_a_value_of_the_domain_cannot_be_met(self, fitted, between):
        with pytest.raises(ValueError, match="Unable to sample any rows for the given conditions"):
            fitted.sample_from_conditions([Condition({"age": between})])
        known = pd.DataFrame({"age": [between, Between(20, 30)]})
        with pytest.warns(UserWarning, match="1 of 2 conditions can be met"):
            assert len(fitted.sample_remaining_columns(known)) == 1

    @pytest.mark.parametrize(
        ("name", "between", "message"),
        [
            ("ward", Between("A", "B"), "no order"),
            ("smoker", Between(False, True), "no order"),
            ("mail", Between("a", "b"), "generated"),
            ("age", Between("old", None), "'old' cannot be an end of a range in column 'age'"),
            ("age", Between(np.nan, 4), "nan cannot be an end"),
            ("income", Between(0, True), "True cannot be an end"),
            ("seen", Between("March", None), "'March' cannot be an end"),
            ("grade", Between(1, 7), "7 cannot be an end"),
        ],
        ids=repr,
    )
    def test_a_range_that_says_nothing_about_its_column_is_refused(
        self, fitted, name, between, message
    ):
        with pytest.raises(ValueError, match=message):
            fitted.sample_from_conditions([Condition({"age": 3}), Condition({name: between})])
        with pytest.raises(ValueError, match=message):
            fitted.sample_remaining_columns(pd.DataFrame({name: [between]}))

    def test_keys_unknown_columns_and_ranges_without_single_ends_are_refused(self, fitted):
        with pytest.raises(ValueError, match="primary key"):
            fitted.sample_from_conditions([Condition({"id": "x"})])
        with pytest.raises(ValueError, match="nonsense"):
            fitted.sample_from_conditions([Condition({"nonsense": 1})])
        with pytest.raises(ValueError, match="at least one end"):
            Between()
        with pytest.raises(ValueError, match=r"\[1, 2\]"):
            Between([1, 2], 3)

    def test_remaining_columns_complete_each_row_whatever_is_known_of_it(self, fitted):
        known = sdv_tables.table(60, seed=4)[["age", "ward", "seen"]].set_index(
            pd.Index(range(100, 160))
        )
        rows = fitted.sample_remaining_columns(known)
        assert list(rows.index) == list(known.index)
        pd.testing.assert_frame_equal(
            rows[["age", "ward", "seen"]], known, check_dtype=False, check_names=False
        )
        assert rows["id"].is_unique
        known = pd.DataFrame({"ward": ["A", None, "B", None], "age": [30, np.nan, np.nan, 41]})
        rows = fitted.sample_remaining_columns(known)
        pd.testing.assert_frame_equal(rows[["ward", "age"]], known, check_dtype=False)
        known = sdv_tables.table(30, seed=9).drop(columns="id")
        rows = fitted.sample_remaining_columns(known)
        pd.testing.assert_frame_equal(rows.drop(columns="id"), known, check_dtype=False)
        assert rows["id"].is_unique
