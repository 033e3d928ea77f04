"""What SDV's users rely on: columns, order, dtypes, keys, batches, conditions, files, errors."""

import copy
import datetime
import re
import warnings
from decimal import Decimal

import cloudpickle
import numpy as np
import pandas as pd
import pytest
import sdv_tables
from sdv.errors import (
    InvalidDataError,
    InvalidDataTypeError,
    SamplingError,
    SynthesizerInputError,
    VersionError,
)
from sdv.metadata import Metadata
from sdv.multi_table import HMASynthesizer
from sdv.sampling import Condition, DataFrameCondition
from sdv.utils import load_synthesizer

from sdv_privpgd import (
    Between,
    DifferentiablePenalty,
    PrivacyBudgetError,
    PrivPGDSynthesizer,
    ProtectedThreshold,
    PublicDomainError,
)
from sdv_privpgd.privacy.curator import Curator
from sdv_privpgd.select.fixed import AllKWay

NEW = {"epsilon": 1.0, "public_domain": sdv_tables.PUBLIC_DOMAIN, **sdv_tables.SMALL}


def new(**changes) -> PrivPGDSynthesizer:
    return PrivPGDSynthesizer(**{"metadata": sdv_tables.metadata(), **NEW, **changes})


@pytest.fixture(scope="module")
def fitted_once():
    """One fit for the tests of sampling, with noise that is the same in every run."""
    rng = np.random.default_rng(0)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(
            "sdv_privpgd.privacy.curator._noisy",
            lambda answer, stddev, words: (
                answer + np.rint(rng.normal(0, stddev, answer.shape)).astype(np.int64)
            ),
        )
        synthesizer = new()
        synthesizer.fit(sdv_tables.table(400))
    return synthesizer


@pytest.fixture
def fitted(fitted_once):
    return copy.deepcopy(fitted_once)


def boolean(**changes) -> PrivPGDSynthesizer:
    """The smallest synthesizer: one boolean column."""
    metadata = sdv_tables.metadata_of({"a": {"sdtype": "boolean"}})
    return PrivPGDSynthesizer(
        **{"metadata": metadata, "epsilon": 1.0, **sdv_tables.SMALL, **changes}
    )


class TestSampling:
    def test_columns_are_those_of_the_metadata_in_its_order(self, fitted):
        assert list(fitted.sample(5).columns) == list(sdv_tables.COLUMNS)

    def test_values_lie_in_the_declared_domain_with_its_types(self, fitted):
        rows = fitted.sample(700)
        assert rows["age"].dtype.kind in "if"
        assert rows["age"].dropna().between(0, 110).all()
        assert (rows["age"].dropna() % 1 == 0).all()
        assert rows["income"].dropna().between(0, 500).all()
        assert np.allclose(rows["income"].dropna(), rows["income"].dropna().round(2), atol=1e-9)
        assert set(rows["ward"].dropna()) <= {"A", "B", "C"}
        assert rows["grade"].dtype == np.int64
        assert set(rows["grade"]) <= {1, 2, 3}
        assert rows["smoker"].dtype == bool
        days = pd.to_datetime(rows["seen"].dropna(), format="%Y-%m-%d")
        assert days.between("2020-01-01", "2020-12-31").all()

    def test_keys_are_unique_and_continue_over_calls(self, fitted):
        first, second = fitted.sample(300), fitted.sample(300)
        assert pd.concat([first["id"], second["id"]]).is_unique

    def test_rows_do_not_depend_on_how_they_are_asked_for(self, fitted):
        modelled = list(sdv_tables.PUBLIC_DOMAIN)
        at_once = fitted.sample(500)[modelled]
        fitted.reset_sampling()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            batched = fitted.sample(500, batch_size=77)[modelled]
        fitted.reset_sampling()
        in_parts = pd.concat([fitted.sample(123), fitted.sample(377)], ignore_index=True)[modelled]
        pd.testing.assert_frame_equal(at_once, batched)
        pd.testing.assert_frame_equal(at_once, in_parts)

    def test_reset_sampling_starts_again(self, fitted):
        first = fitted.sample(50)
        second = fitted.sample(50)
        fitted.reset_sampling()
        pd.testing.assert_frame_equal(first, fitted.sample(50))
        assert not first.equals(second)

    def test_each_pass_over_the_particles_is_without_replacement(self, fitted):
        model = fitted._release.model
        codes = model.sample(model.block, 0)
        assert sorted(map(tuple, codes)) == sorted(map(tuple, model.codes.astype(np.int64)))

    def test_no_rows_are_an_empty_table_of_the_same_columns(self, fitted):
        none = fitted.sample(0)
        assert len(none) == 0
        assert list(none.columns) == list(sdv_tables.COLUMNS)

    @pytest.mark.parametrize("wrong", [-1, 2.5, "10", None, True])
    def test_a_wrong_number_of_rows_is_refused(self, fitted, wrong):
        with pytest.raises(ValueError, match="rows"):
            fitted.sample(wrong)

    def test_sampling_does_not_touch_the_global_generators(self, fitted):
        np.random.seed(7)  # noqa: NPY002
        before = np.random.get_state()[1].copy()  # noqa: NPY002
        fitted.sample(20)
        assert (np.random.get_state()[1] == before).all()  # noqa: NPY002

    def test_an_unfitted_synthesizer_says_so(self):
        for sample in (
            lambda: new().sample(3),
            lambda: new().sample_remaining_columns(pd.DataFrame({"age": [1]})),
            lambda: new().sample_from_conditions([Condition({"age": 1})]),
        ):
            with pytest.raises(SamplingError, match="not been fitted"):
                sample()

    def test_rows_are_written_to_a_folder(self, fitted, tmp_path):
        rows = fitted.sample(20, output_folder_path=tmp_path)
        written = pd.read_csv(tmp_path / "table.csv")
        pd.testing.assert_series_equal(written["age"], rows["age"], check_dtype=False)


class TestKindsOfTables:
    def test_a_dict_is_answered_by_a_dict(self):
        synthesizer = new()
        synthesizer.fit({"table": sdv_tables.table(100)})
        assert set(synthesizer.sample(5)) == {"table"}
        assert set(synthesizer.sample_remaining_columns(pd.DataFrame({"age": [30]}))) == {"table"}

    def test_the_kind_survives_a_file(self, fitted, tmp_path):
        fitted.save(tmp_path / "frame.pkl")
        assert isinstance(load_synthesizer(tmp_path / "frame.pkl").sample(3), pd.DataFrame)

    def test_integer_column_names_come_back(self):
        metadata = sdv_tables.metadata_of(
            {"0": {"sdtype": "boolean"}, "1": {"sdtype": "categorical"}}
        )
        table = pd.DataFrame({1: ["x", "y"] * 30, 0: [True, False] * 30})
        synthesizer = PrivPGDSynthesizer(
            metadata, 1.0, public_domain={1: {"range_values": ["x", "y"]}}, **sdv_tables.SMALL
        )
        before = table.copy()
        synthesizer.fit(table)
        pd.testing.assert_frame_equal(table, before)
        rows = synthesizer.sample(10)
        assert list(rows.columns) == [0, 1]
        assert set(rows[1].dropna()) <= {"x", "y"}
        known = synthesizer.sample_remaining_columns(pd.DataFrame({1: ["y", "x"]}))
        assert list(known.columns) == [0, 1]
        assert list(known[1]) == ["y", "x"]

    @pytest.mark.parametrize(
        "names",
        [[0.5, 1.5], [None, "b"], [0.5, None], [True, False], [("a", 1), "b"],
         [np.int64(0), "b"], [b"a", "b"], pd.date_range("2020-01-01", periods=2)],
        ids=str,
    )  # fmt: skip
    def test_names_of_any_kind_are_text_in_the_metadata_and_come_back(self, names):
        table = pd.DataFrame({"x": [True, False] * 30, "y": [False, True] * 30})
        table.columns = pd.Index(names, dtype=getattr(names, "dtype", object), tupleize_cols=False)
        metadata = Metadata.detect_from_dataframes({"table": table})
        synthesizer = PrivPGDSynthesizer(metadata, 1.0, **sdv_tables.SMALL)
        with pytest.warns(UserWarning, match="are not declared"):
            synthesizer.fit(table)
        assert list(synthesizer.sample(10).columns) == list(table.columns)

    @pytest.mark.parametrize(
        ("dtype", "cells"),
        [
            ("m8[ns]", [datetime.timedelta(1)] * 9),
            ("duration[s][pyarrow]", [datetime.timedelta(1)] * 9),
            ("complex128", [1j] * 9),
            ("period[M]", [pd.Period("2020-01")] * 9),
            ("interval[int64, right]", [pd.Interval(0, 1)] * 9),
        ],
    )
    def test_dtypes_that_sdv_has_no_word_for_are_refused_with_a_way_out(self, dtype, cells):
        metadata = sdv_tables.metadata_of({"a": {"sdtype": "numerical"}, "b": {"sdtype": "id"}})
        column = pd.Series(cells, dtype=object).astype(dtype)
        synthesizer = PrivPGDSynthesizer(metadata, 1.0, **sdv_tables.SMALL)
        with pytest.raises(InvalidDataError, match=r"{'a': .*total_seconds") as raised:
            synthesizer.fit(pd.DataFrame({"a": column, "b": column}))
        assert dtype.split("[")[0] in str(raised.value) or "timedelta" in str(raised.value)
        assert synthesizer.ledger.charges == ()
        given_as_ids = pd.DataFrame({"a": [1.0] * 9, "b": column})
        with pytest.warns(UserWarning, match="are not declared"):
            synthesizer.fit(given_as_ids)

    @pytest.mark.parametrize("num_rows", [0, 1, 2])
    @pytest.mark.parametrize("adjacency", ["replace_one", "add_remove"])
    def test_empty_and_tiny_tables_are_fitted_like_any_other(self, num_rows, adjacency):
        synthesizer = new(adjacency=adjacency)
        synthesizer.fit(sdv_tables.table(num_rows))
        # A threshold of whole rows leaves a little of its delta.
        assert 0.999 < synthesizer.ledger.spent() <= 1.0
        assert len(synthesizer.sample(10)) == 10

    def test_nullable_and_other_dtypes_are_fitted(self):
        table = sdv_tables.table(100).convert_dtypes()
        table["ward"] = table["ward"].astype("category")
        synthesizer = new()
        synthesizer.fit(table)
        assert len(synthesizer.sample(4)) == 4

    def test_the_caller_s_table_is_not_changed(self):
        table = sdv_tables.table(60)
        before = table.copy(deep=True)
        new().fit(table)
        pd.testing.assert_frame_equal(table, before)

    def test_a_table_of_keys_only_is_generated_and_costs_nothing(self):
        metadata = sdv_tables.metadata_of({"id": {"sdtype": "id"}}, primary_key="id")
        synthesizer = PrivPGDSynthesizer(metadata, 1.0)
        synthesizer.fit(pd.DataFrame({"id": ["a", "b"]}))
        assert synthesizer.sample(20)["id"].is_unique
        assert synthesizer.ledger.spent() == 0

    def test_one_modelled_column_is_enough(self):
        synthesizer = boolean(epsilon=5.0)
        synthesizer.fit(pd.DataFrame({"a": [True] * 900 + [False] * 100}))
        assert synthesizer.sample(1000)["a"].mean() == pytest.approx(0.9, abs=0.03)


class TestConditions:
    def test_the_user_s_exact_values_survive(self, fitted):
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

    def test_types_are_those_of_an_ordinary_sample(self, fitted):
        rows = fitted.sample_from_conditions([Condition({"age": 33, "grade": 2}, num_rows=4)])
        ordinary = fitted.sample(4)
        assert rows.dtypes.to_dict() == ordinary.dtypes.to_dict()

    def test_rows_with_a_condition_follow_the_model(self):
        """P(b | a) of the conditioned rows is that of the particles: 0.9 within 5 points."""
        rng = np.random.default_rng(0)
        a = rng.random(4000) < 0.5
        b = np.where(rng.random(4000) < 0.9, a, ~a)
        metadata = sdv_tables.metadata_of({"a": {"sdtype": "boolean"}, "b": {"sdtype": "boolean"}})
        synthesizer = PrivPGDSynthesizer(metadata, 10.0, num_particles=2000)
        synthesizer.fit(pd.DataFrame({"a": a, "b": b}))
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

    def test_dates_without_a_format_are_timestamps_as_exact_as_asked_for(self):
        metadata = sdv_tables.metadata_of({"at": {"sdtype": "datetime"}})
        days = {"at": {"range_min": "2020-01-01", "range_max": "2020-12-31"}}
        synthesizer = PrivPGDSynthesizer(metadata, 1.0, public_domain=days, **sdv_tables.SMALL)
        synthesizer.fit(pd.DataFrame({"at": pd.date_range("2020-01-01", periods=90)}))
        known = pd.DataFrame({"at": ["2020-03-04", "2020-03-04 05:06:07", None]})
        rows = synthesizer.sample_remaining_columns(known)
        assert rows["at"].dtype == "datetime64[ns]"
        assert rows["at"].tolist()[:2] == [pd.Timestamp(known["at"][row]) for row in range(2)]
        assert rows["at"].isna().tolist() == [False, False, True]
        ranged = [Condition({"at": Between("2020-03-04 05:00", None)}, num_rows=50)]
        assert synthesizer.sample_from_conditions(ranged)["at"].min() >= pd.Timestamp("2020-03-05")

    def test_remaining_columns_may_have_missing_cells(self, fitted):
        known = pd.DataFrame({"ward": ["A", None, "B", None], "age": [30, np.nan, np.nan, 41]})
        rows = fitted.sample_remaining_columns(known)
        pd.testing.assert_frame_equal(rows[["ward", "age"]], known, check_dtype=False)

    @pytest.mark.parametrize("dtypes", ["nullable", "category", "object"])
    def test_known_columns_of_other_dtypes(self, fitted, dtypes):
        known = sdv_tables.table(30, seed=9).drop(columns="id")
        other = known.convert_dtypes() if dtypes == "nullable" else known.astype(dtypes)
        rows = fitted.sample_remaining_columns(other)
        modelled = list(sdv_tables.PUBLIC_DOMAIN)
        pd.testing.assert_frame_equal(rows[modelled], known[modelled], check_dtype=False)
        assert rows[modelled].dtypes.to_dict() == fitted.sample(3)[modelled].dtypes.to_dict()

    def test_duplicated_conditions_are_met_each(self, fitted):
        conditions = [
            Condition({"age": 30, "ward": "A"}, num_rows=3),
            Condition({"ward": "A"}, num_rows=2),
            Condition({"age": 30, "ward": "A"}, num_rows=3),
            DataFrameCondition(pd.DataFrame({"age": [30, 30], "ward": ["A", "A"]})),
        ]
        rows = fitted.sample_from_conditions(conditions)
        assert (rows["ward"] == "A").tolist() == [True] * 10
        assert (rows["age"][:8] == 30).all()  # one set of columns comes after the other

    def test_conditions_on_all_columns_come_back(self, fitted):
        known = sdv_tables.table(30, seed=9).drop(columns="id")
        rows = fitted.sample_remaining_columns(known)
        pd.testing.assert_frame_equal(rows.drop(columns="id"), known, check_dtype=False)
        assert rows["id"].is_unique

    def test_conditions_on_nothing_are_ordinary_rows(self, fitted):
        ordinary = fitted.sample(20)
        fitted.reset_sampling()
        rows = fitted.sample_from_conditions([Condition({}, num_rows=20)])
        pd.testing.assert_frame_equal(rows, ordinary)
        fitted.reset_sampling()
        rows = fitted.sample_remaining_columns(pd.DataFrame(index=range(20)))
        pd.testing.assert_frame_equal(rows, ordinary)

    def test_no_conditions_give_no_rows(self, fitted):
        assert len(fitted.sample_from_conditions([])) == 0

    def test_integer_column_names(self):
        metadata = sdv_tables.metadata_of(
            {"0": {"sdtype": "boolean"}, "1": {"sdtype": "categorical"}}
        )
        domain = {1: {"range_values": ["x", "y"]}}
        synthesizer = PrivPGDSynthesizer(metadata, 1.0, public_domain=domain, **sdv_tables.SMALL)
        synthesizer.fit(pd.DataFrame({0: [True, False] * 30, 1: ["x", "y"] * 30}))
        conditions = [
            Condition({1: "y"}, num_rows=4),
            DataFrameCondition(pd.DataFrame({0: [True], 1: ["x"]})),
        ]
        rows = synthesizer.sample_from_conditions(conditions)
        assert list(rows.columns) == [0, 1]
        assert list(rows[1]) == ["y"] * 4 + ["x"]

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

    def test_rows_are_written_to_a_folder(self, fitted, tmp_path):
        conditions = [Condition({"ward": "A"}, num_rows=4), Condition({"age": 3}, num_rows=2)]
        rows = fitted.sample_from_conditions(conditions, output_folder_path=tmp_path)
        written = pd.read_csv(tmp_path / "table.csv")
        pd.testing.assert_series_equal(written["age"], rows["age"], check_dtype=False)

    def test_each_fitting_particle_is_used_once_before_any_is_twice(self):
        """With more than 1,000 particles that fit, twice as many rows are each of them twice."""
        metadata = sdv_tables.metadata_of({name: {"sdtype": "boolean"} for name in "abc"})
        domain = {name: {"range_is_nullable": False} for name in "abc"}
        synthesizer = PrivPGDSynthesizer(metadata, 10.0, num_particles=4_000, public_domain=domain)
        table = pd.DataFrame(np.indices((2, 2, 2)).reshape(3, 8).T > 0, columns=list("abc"))
        synthesizer.fit(pd.concat([table] * 500))
        fitting = synthesizer.sample(4_000)
        fitting = fitting[fitting["a"].eq(True)].drop(columns="a")
        assert len(fitting) > 1_000
        rows = synthesizer.sample_from_conditions([Condition({"a": True}, 2 * len(fitting))])
        counts = rows.drop(columns="a").value_counts(dropna=False)
        assert counts.to_dict() == (2 * fitting.value_counts(dropna=False)).to_dict()

    def test_a_condition_without_a_matching_particle_takes_the_nearest(self, fitted):
        condition = {"age": 1, "income": 499.0, "ward": "C", "grade": 1, "smoker": True}
        rows = fitted.sample_from_conditions([Condition(condition, num_rows=3)])
        for name, value in condition.items():
            assert (rows[name] == value).all()

    def test_generated_columns_are_written_as_given(self, fitted):
        rows = fitted.sample_from_conditions([Condition({"mail": "me@x.example"}, num_rows=3)])
        assert (rows["mail"] == "me@x.example").all()

    @pytest.mark.parametrize(
        "impossible",
        [
            {"ward": "Z"}, {"age": 500}, {"age": 3.5}, {"age": "old"}, {"grade": None},
            {"seen": "2031-01-01"}, {"smoker": "perhaps"}, {"income": -1.0},
        ],
    )  # fmt: skip
    def test_what_the_domain_does_not_hold_cannot_be_met(self, fitted, impossible):
        with pytest.raises(ValueError, match="Unable to sample any rows for the given conditions"):
            fitted.sample_from_conditions([Condition(impossible, num_rows=2)])

    def test_impossible_conditions_are_left_out_and_the_reason_told(self, fitted):
        known = pd.DataFrame({"ward": ["A", "Z", "B"]}, index=[10, 20, 30])
        with pytest.warns(
            UserWarning, match="2 of 3 conditions can be met. In 1 row 'Z' lies outside"
        ):
            rows = fitted.sample_remaining_columns(known)
        assert list(rows["ward"]) == ["A", "B"]
        assert list(rows.index) == [10, 30]

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
        metadata = sdv_tables.metadata_of(
            {"x": {"sdtype": "numerical"}, "b": {"sdtype": "boolean"}}
        )
        synthesizer = PrivPGDSynthesizer(
            metadata, 1.0, public_domain={"x": {"range_min": 0, "range_max": 1}}, **sdv_tables.SMALL
        )
        rng = np.random.default_rng(0)
        synthesizer.fit(pd.DataFrame({"x": rng.random(300), "b": rng.random(300) < 0.5}))
        for low, high in (
            (0.1, 0.1),
            (0.3, np.nextafter(0.3, 1)),
            (1, 1),
            (0.25, 0.25),
            (0.2, 0.9),
        ):
            rows = synthesizer.sample_from_conditions([Condition({"x": Between(low, high)}, 200)])
            assert rows["x"].between(low, high).all()

    def test_wide_ranges_follow_the_column(self):
        """P(x <= 4 | x <= 9) is 0.8, within 5 points; a cell holds 5 numbers."""
        rng = np.random.default_rng(0)
        x = np.where(rng.random(4_000) < 0.8, rng.integers(0, 5, 4_000), rng.integers(5, 10, 4_000))
        x = np.where(rng.random(4_000) < 0.5, x, rng.integers(10, 80, 4_000))
        metadata = sdv_tables.metadata_of(
            {"x": {"sdtype": "numerical"}, "b": {"sdtype": "boolean"}}
        )
        domain = {"x": {"range_min": 0, "range_max": 79, "decimal_places": 0, "num_bins": 16}}
        synthesizer = PrivPGDSynthesizer(
            metadata, 10.0, public_domain=domain, num_particles=4_000, discovery_share=0
        )
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
            ("age", Between("old", None), "'old' is no end of a range in column 'age'"),
            ("age", Between(np.nan, 4), "nan is no end"),
            ("income", Between(0, True), "True is no end"),
            ("seen", Between("March", None), "'March' is no end"),
            ("grade", Between(1, 7), "7 is no end"),
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

    def test_a_range_needs_an_end_and_single_values(self):
        with pytest.raises(ValueError, match="at least one end"):
            Between()
        with pytest.raises(ValueError, match=r"\[1, 2\]"):
            Between([1, 2], 3)

    def test_keys_and_unknown_columns_are_refused(self, fitted):
        with pytest.raises(ValueError, match="primary key"):
            fitted.sample_from_conditions([Condition({"id": "x"})])
        with pytest.raises(ValueError, match="nonsense"):
            fitted.sample_from_conditions([Condition({"nonsense": 1})])

    def test_remaining_columns_complete_each_row_under_its_index(self, fitted):
        known = sdv_tables.table(60, seed=4)[["age", "ward", "seen"]].set_index(
            pd.Index(range(100, 160))
        )
        rows = fitted.sample_remaining_columns(known)
        assert list(rows.index) == list(known.index)
        pd.testing.assert_frame_equal(
            rows[["age", "ward", "seen"]], known, check_dtype=False, check_names=False
        )
        assert rows["id"].is_unique

    def test_conditions_repeat_after_a_reset(self, fitted):
        conditions = [Condition({"ward": "A"}, num_rows=40)]
        first = fitted.sample_from_conditions(conditions)
        second = fitted.sample_from_conditions(conditions)
        fitted.reset_sampling()
        pd.testing.assert_frame_equal(first, fitted.sample_from_conditions(conditions))
        assert not first.drop(columns="id").equals(second.drop(columns="id"))


class TestFiles:
    def test_a_loaded_synthesizer_samples_the_same_rows(self, fitted, tmp_path):
        fitted.save(tmp_path / "model.pkl")
        loaded = load_synthesizer(tmp_path / "model.pkl")
        pd.testing.assert_frame_equal(fitted.sample(60), loaded.sample(60))
        assert loaded.ledger.to_json() == fitted.ledger.to_json()
        assert loaded.privacy_report() == fitted.privacy_report()

    def test_sampling_continues_after_a_file(self, fitted):
        fitted.sample(33)
        loaded = cloudpickle.loads(cloudpickle.dumps(fitted))
        pd.testing.assert_frame_equal(fitted.sample(9), loaded.sample(9))

    @pytest.mark.parametrize("found", [0, 999, None])
    def test_an_unknown_state_version_is_refused(self, fitted, found):
        state = {**fitted.__getstate__(), "_state_version": found}
        with pytest.raises(VersionError, match=f"state version {found}"):
            PrivPGDSynthesizer.__new__(PrivPGDSynthesizer).__setstate__(state)

    def test_files_hold_cpu_arrays(self, fitted):
        assert b"torch" not in cloudpickle.dumps(fitted)


class TestArguments:
    def test_parameters_are_stored_under_their_names(self):
        settings = {
            "epsilon": 0.7, "delta": 1e-6, "adjacency": "add_remove", "rows_per_person": 2,
            "public_domain": sdv_tables.PUBLIC_DOMAIN, "public_metadata": True, "num_bins": 9,
            "discovery_share": 0.1,
            "strategy": "mst", "engine": "particles", "max_megabytes": None,
            "num_particles": 44, "penalties": (), "enable_gpu": False,
            "seed": 3, "verbose": True,
            "enforce_min_max_values": True, "enforce_rounding": False, "locales": ["de_DE"],
        }  # fmt: skip
        synthesizer = PrivPGDSynthesizer(sdv_tables.metadata(), **settings)
        assert synthesizer.get_parameters() == settings

    def test_epsilon_is_the_second_positional_argument(self):
        assert PrivPGDSynthesizer(sdv_tables.metadata(), 0.3, 1e-7).epsilon == 0.3

    @pytest.mark.parametrize(
        ("argument", "wrong"),
        [
            *[("epsilon", wrong) for wrong in (0, -1, float("nan"), float("inf"), "1", None, True)],
            *[("delta", wrong) for wrong in (0, 1, -1e-5, float("nan"), "small")],
            ("adjacency", "add"),
            ("adjacency", None),
            *[("rows_per_person", wrong) for wrong in (0, -1, 1.5, True)],
            *[("num_bins", wrong) for wrong in (0, 2.5, "many")],
            *[("num_particles", wrong) for wrong in (0, -5, "many")],
            ("verbose", "yes"),
            ("enable_gpu", 1),
            ("public_metadata", "no"),
        ],
    )
    def test_a_wrong_argument_is_named_with_its_value(self, argument, wrong):
        with pytest.raises(ValueError, match=argument) as raised:
            new(**{argument: wrong})
        assert repr(wrong) in str(raised.value) or str(wrong) in str(raised.value)

    @pytest.mark.parametrize(
        ("domain", "named"),
        [
            ({"nonsense": {"range_min": 0}}, "nonsense"),
            ({"age": {"minimum": 0}}, "minimum"),
            ({"age": {"range_min": 9, "range_max": 1}}, "range_m"),
            ({"age": {"range_values": [1]}}, "range_values"),
            ({"id": {"range_values": ["x"]}}, "id"),
            ("age", "public_domain"),
        ],
    )
    def test_a_wrong_public_domain_is_refused_at_construction(self, domain, named):
        with pytest.raises(ValueError, match=named):
            new(public_domain=domain)

    def test_a_huge_epsilon_warns(self):
        with pytest.warns(UserWarning, match="epsilon=25"):
            boolean(epsilon=25)

    def test_an_undeclared_domain_stops_fit_before_a_row_is_read(self, monkeypatch):
        def read(*args, **kwargs):
            raise AssertionError("a row was read")

        monkeypatch.setattr("sdv_privpgd.fitting.fit.encode_table", read)
        with pytest.raises(PublicDomainError, match=r"public_domain.*public_metadata") as raised:
            new(public_domain={"grade": {"range_values": [1, 2, 3]}}, discovery_share=0.0).fit(
                sdv_tables.table(10)
            )
        for name in ("age", "income", "ward", "seen"):
            assert name in str(raised.value)
        assert "smoker" not in str(raised.value)

    def test_ranges_in_public_metadata_are_used(self):
        columns = {
            "age": {"sdtype": "numerical", "range_min": 5, "range_max": 9, "decimal_places": 0},
            "ward": {"sdtype": "categorical", "range_values": ["A", "B"]},
        }
        table = pd.DataFrame({"age": [5, 9, 7] * 50, "ward": ["A", "B", "A"] * 50})
        metadata = sdv_tables.metadata_of(columns)
        synthesizer = PrivPGDSynthesizer(metadata, 5.0, public_metadata=True, **sdv_tables.SMALL)
        synthesizer.fit(table)
        assert synthesizer.sample(300)["age"].dropna().between(5, 9).all()
        assert synthesizer.get_metadata().to_dict()["tables"]["table"]["columns"] == columns

    def test_the_public_domain_goes_before_public_metadata(self):
        columns = {"age": {"sdtype": "numerical", "range_min": 5, "range_max": 9}}
        synthesizer = PrivPGDSynthesizer(
            sdv_tables.metadata_of(columns),
            1.0,
            public_metadata=True,
            public_domain={"age": {"range_min": 100, "range_max": 200, "decimal_places": 0}},
            **sdv_tables.SMALL,
        )
        synthesizer.fit(pd.DataFrame({"age": [150] * 30}))
        assert synthesizer.sample(30)["age"].dropna().between(100, 200).all()

    def test_rounding_can_be_switched_off(self):
        synthesizer = new(enforce_rounding=False)
        synthesizer.fit(sdv_tables.table(50))
        incomes = synthesizer.sample(200)["income"].dropna()
        assert not np.allclose(incomes, incomes.round(2), atol=1e-9)


class TestRefusals:
    def test_several_tables_are_refused_with_the_reason(self):
        one = {"columns": {"a": {"sdtype": "boolean"}}}
        metadata = Metadata.load_from_dict({"tables": {"first": one, "second": one}})
        with pytest.raises(SynthesizerInputError, match="2 tables"):
            PrivPGDSynthesizer(metadata, 1.0)

    def test_a_place_in_a_synthesizer_of_several_tables_is_refused(self):
        key = {"id": {"sdtype": "id"}, "a": {"sdtype": "boolean"}}
        metadata = Metadata.load_from_dict(
            {
                "tables": {
                    "parent": {"columns": key, "primary_key": "id"},
                    "child": {"columns": key},
                },
                "relationships": [
                    {
                        "parent_table_name": "parent",
                        "child_table_name": "child",
                        "parent_primary_key": "id",
                        "child_foreign_key": "id",
                    }
                ],
            }
        )
        parent = pd.DataFrame({"id": [1, 2], "a": [True, False]})
        child = pd.DataFrame({"id": [1, 2, 2, 1], "a": [True, False, True, False]})
        synthesizer = HMASynthesizer(metadata)
        own = boolean(metadata=Metadata.load_from_dict({"tables": {"child": {"columns": key}}}))
        synthesizer._table_synthesizers["child"] = own
        with pytest.raises(SynthesizerInputError, match="inside a synthesizer of several tables"):
            synthesizer.fit({"parent": parent, "child": child})
        assert not own.ledger.charges

    def test_sequences_are_refused_with_the_reason(self):
        columns = {"who": {"sdtype": "id"}, "a": {"sdtype": "boolean"}}
        metadata = sdv_tables.metadata_of(columns, sequence_key="who")
        with pytest.raises(SynthesizerInputError, match=r"sequence_key.*rows_per_person"):
            PrivPGDSynthesizer(metadata, 1.0)

    def test_metadata_of_another_kind_is_refused(self):
        with pytest.raises(SynthesizerInputError, match="dict"):
            PrivPGDSynthesizer({"tables": {}}, 1.0)

    def test_row_weights_are_refused_with_the_reason(self):
        with pytest.raises(SynthesizerInputError, match="no bound"):
            new().fit(sdv_tables.table(10), weights=[1.0] * 10)

    @pytest.mark.parametrize("data", [[1, 2], None, "table", np.zeros((3, 2))])
    def test_what_is_not_a_table_is_refused(self, data):
        with pytest.raises(InvalidDataTypeError, match=type(data).__name__):
            new().fit(data)

    def test_missing_extra_and_doubled_columns_are_named(self):
        table = sdv_tables.table(5)
        with pytest.raises(InvalidDataError, match=r"\['age'\] are missing"):
            new().fit(table.drop(columns="age"))
        with pytest.raises(InvalidDataError, match=r"\['extra'\] are not present"):
            new().fit(table.assign(extra=1))
        with pytest.raises(InvalidDataError, match=r"\['age'\] are there more than once"):
            new().fit(pd.concat([table, table[["age"]]], axis=1))
        with pytest.raises(InvalidDataError, match="other"):
            new().fit({"other": table})

    def test_a_failed_fit_leaves_the_earlier_one_and_its_books(self, fitted):
        before = fitted.ledger
        with pytest.raises(InvalidDataError):
            fitted.fit(sdv_tables.table(5).drop(columns="age"))
        assert fitted.ledger == before
        assert len(fitted.sample(3)) == 3


class TestBooks:
    @pytest.mark.parametrize("adjacency", ["replace_one", "add_remove"])
    @pytest.mark.parametrize("epsilon", [0.05, 1.0, 20.0])
    def test_a_fit_spends_exactly_what_was_asked_for(self, adjacency, epsilon):
        synthesizer = boolean(epsilon=epsilon, adjacency=adjacency)
        synthesizer.fit(pd.DataFrame({"a": [True, False] * 20}))
        assert synthesizer.ledger.spent(delta=1e-5) == pytest.approx(epsilon, abs=1e-9)
        info = synthesizer.get_info()
        assert info["epsilon_spent"] == pytest.approx(epsilon, abs=1e-9)
        assert info["delta_spent"] == 1e-5

    def test_nothing_is_spent_before_a_fit(self):
        assert new().ledger.spent() == 0
        assert new().get_info()["delta_spent"] == 0

    def test_a_second_fit_warns_with_the_composed_total(self):
        synthesizer = boolean(epsilon=1.0)
        table = pd.DataFrame({"a": [True, False] * 20})
        synthesizer.fit(table)
        with pytest.warns(UserWarning, match=r"Together the fits spend epsilon (\S+)") as caught:
            synthesizer.fit(table)
        (said,) = [w for w in caught if "Together" in str(w.message)]
        total = float(re.search(r"spend epsilon (\S+)", str(said.message)).group(1))
        # mu² adds up: two fits at (1, 1e-5) are sqrt(2) mu, which is epsilon 1.465 (exact GDP).
        assert total == pytest.approx(1.465, abs=2e-3)
        assert synthesizer.ledger.spent() == pytest.approx(total, rel=1e-3)

    def test_what_was_charged_stays_charged_when_the_engine_fails(self, monkeypatch):
        def broken(self, *args, **kwargs):
            raise RuntimeError("out of memory")

        monkeypatch.setattr(
            "sdv_privpgd.synthesize.particles.descent.ParticleGradientDescent.fit", broken
        )
        synthesizer = boolean()
        with pytest.raises(RuntimeError, match="out of memory"):
            synthesizer.fit(pd.DataFrame({"a": [True, False] * 20}))
        assert synthesizer.ledger.spent() == pytest.approx(1.0, abs=1e-9)

    def test_a_plan_over_the_limit_is_refused_before_the_table_is_counted(self, monkeypatch):
        def counted(*args):
            raise AssertionError("the table was read")

        monkeypatch.setattr("sdv_privpgd.privacy.dataset.Dataset.counts", counted)
        with pytest.raises(PrivacyBudgetError, match="allow a larger epsilon"):
            boolean(rows_per_person=10**13).fit(pd.DataFrame({"a": [True, False]}))

    def test_the_report_names_adjacency_unit_and_condition(self, fitted):
        report = " ".join(fitted.privacy_report().split())
        assert "replace-one" in report
        assert "for one row" in report
        assert "Under add-remove" in report
        assert "given the exact answers" in report
        several = boolean(adjacency="add_remove", rows_per_person=3)
        several.fit(pd.DataFrame({"a": [True, False] * 20}))
        assert "up to 3 rows of one person" in several.privacy_report()
        assert "given the exact answers" not in several.privacy_report()

    def test_the_report_fits_a_hundred_columns_and_says_what_its_words_mean(self, fitted):
        for text in map(str, (fitted.privacy_report(), fitted.plan(1_000_000), fitted.plan(10))):
            assert max(map(len, text.splitlines())) <= 100
            header = next(line for line in text.splitlines() if line.startswith("question"))
            for word in ("values", "replaced", "noise sd", "share"):
                assert word in header
                assert any(line.startswith((f"{word}:", f"{word},")) for line in text.splitlines())
            assert "e+" not in text

    def test_rows_per_person_scales_the_noise(self):
        def stddev(rows):
            synthesizer = boolean(rows_per_person=rows)
            synthesizer.fit(pd.DataFrame({"a": [True, False] * 20}))
            return synthesizer.ledger.charges[-1].stddev

        assert stddev(4) == pytest.approx(4 * stddev(1), rel=1e-12)

    def test_the_user_s_seeds_have_no_effect_on_the_noise(self):
        import random

        import torch

        def noisy():
            random.seed(0)
            np.random.seed(0)  # noqa: NPY002
            torch.manual_seed(0)
            synthesizer = new(num_particles=50)
            synthesizer.fit(sdv_tables.table(20))
            return synthesizer._release.measurements[-1].answer.tobytes()

        assert noisy() != noisy()

    def test_the_curator_is_the_only_way_to_the_table(self, monkeypatch):
        """With a curator that answers nothing, the pipeline gets nothing."""
        monkeypatch.setattr(Curator, "measure", lambda self, *args, **kwargs: [])
        with pytest.raises(ValueError, match="number of rows cannot be estimated"):
            boolean().fit(pd.DataFrame({"a": [True, False] * 20}))


class TestPenalties:
    def test_a_protected_statistic_is_charged_and_dropped_with_the_tables(self):
        penalty = ProtectedThreshold({"age": 1.0, "income": 1.0}, b=0.5, weight=0.5)
        synthesizer = new(penalties=[penalty])
        synthesizer.fit(sdv_tables.table(300))
        named = [charge.what for charge in synthesizer.ledger.charges]
        assert sum(what.startswith("smoothed") for what in named) == 1
        assert 0.999 < synthesizer.ledger.spent() <= 1.0
        kept = [m.query.describe() for m in synthesizer._release.measurements]
        assert kept == ["number of rows"]

    def test_a_penalty_without_a_statistic_costs_nothing(self):
        # A strategy whose questions do not depend on answers.
        penalties = [DifferentiablePenalty(mean_age, weight=1.0)]
        synthesizer = new(penalties=penalties, strategy=AllKWay(degree=2), discovery_share=0)
        synthesizer.fit(sdv_tables.table(100))
        plain = new(strategy=AllKWay(degree=2), discovery_share=0)
        plain.fit(sdv_tables.table(100))
        assert synthesizer.ledger == plain.ledger

    def test_a_penalty_over_an_unknown_column_is_refused_before_anything_is_spent(self):
        synthesizer = new(
            penalties=[ProtectedThreshold({"height": 1.0}, b=0.5)], adjacency="add_remove"
        )
        with pytest.raises(ValueError, match="height"):
            synthesizer.fit(sdv_tables.table(10))
        assert synthesizer.ledger.charges == ()

    def test_a_synthesizer_with_penalties_is_saved(self, tmp_path):
        synthesizer = new(penalties=[DifferentiablePenalty(mean_age)])
        synthesizer.fit(sdv_tables.table(30))
        cloudpickle.loads(cloudpickle.dumps(synthesizer)).sample(3)


def mean_age(positions):
    return positions["age"].mean()


class TestTransformers:
    def test_every_column_has_one_and_none_was_fitted_on_the_table(self):
        synthesizer = new()
        synthesizer.auto_assign_transformers(sdv_tables.table(10))
        assert set(synthesizer.get_transformers()) == set(sdv_tables.COLUMNS)

    def test_generators_can_be_replaced(self):
        from rdt.transformers import AnonymizedFaker, RegexGenerator

        synthesizer = new()
        table = sdv_tables.table(40)
        synthesizer.auto_assign_transformers(table)
        synthesizer.update_transformers(
            {
                "mail": AnonymizedFaker(provider_name="misc", function_name="uuid4"),
                "id": RegexGenerator(regex_format="P[0-9]{6}", cardinality_rule="unique"),
            }
        )
        synthesizer.fit(table)
        rows = synthesizer.sample(20)
        assert rows["id"].str.fullmatch("P[0-9]{6}").all()
        assert rows["mail"].str.len().eq(36).all()

    def test_transformers_that_learn_are_refused(self):
        from rdt.transformers import FloatFormatter, PseudoAnonymizedFaker, UniformEncoder

        synthesizer = new()
        synthesizer.auto_assign_transformers(sdv_tables.table(10))
        for name, transformer in (
            ("age", FloatFormatter()),
            ("mail", UniformEncoder()),
            ("mail", PseudoAnonymizedFaker()),
            ("mail", None),
        ):
            with pytest.raises(SynthesizerInputError, match=name):
                synthesizer.update_transformers({name: transformer})

    def test_ids_without_a_pattern_are_generated_never_learned(self):
        metadata = sdv_tables.metadata_of({"a": {"sdtype": "boolean"}, "who": {"sdtype": "id"}})
        synthesizer = PrivPGDSynthesizer(metadata, 1.0, **sdv_tables.SMALL)
        synthesizer.fit(pd.DataFrame({"a": [True, False] * 20, "who": ["G-111"] * 40}))
        assert b"G-111" not in cloudpickle.dumps(synthesizer)
        assert not synthesizer.sample(50)["who"].eq("G-111").any()

    def test_preprocessed_data_can_be_fitted(self):
        synthesizer = new()
        table = sdv_tables.table(50)
        codes = synthesizer.preprocess({"table": table})
        assert list(codes["table"].columns) == list(sdv_tables.PUBLIC_DOMAIN)
        synthesizer.fit_processed_data(codes)
        assert len(synthesizer.sample(4)["table"]) == 4


class TestDiscovery:
    """Columns whose domain nobody declared (``tests/unit/test_discovery.py`` has the mechanism)."""

    @staticmethod
    def table(num_rows=4_000):
        rng = np.random.default_rng(0)
        return pd.DataFrame(
            {
                "age": rng.integers(20, 60, num_rows),
                "ward": rng.choice(["A", "B"], num_rows),
                "ill": rng.random(num_rows) < 0.2,
            }
        )

    METADATA = sdv_tables.metadata_of(
        {
            "age": {"sdtype": "numerical"},
            "ward": {"sdtype": "categorical"},
            "ill": {"sdtype": "boolean"},
        }
    )

    def fitted(self, **changes):
        synthesizer = PrivPGDSynthesizer(self.METADATA, 5.0, **sdv_tables.SMALL, **changes)
        with pytest.warns(UserWarning, match=r"\['age', 'ward'\] are not declared: 0.2"):
            synthesizer.fit(self.table())
        return synthesizer

    @pytest.mark.parametrize("adjacency", ["replace_one", "add_remove"])
    def test_nothing_declared_is_enough(self, adjacency):
        synthesizer = self.fitted(adjacency=adjacency)
        rows = synthesizer.sample(500)
        assert rows["age"].between(18, 64).all()
        assert set(rows["ward"].dropna()) <= {"A", "B", "other"}
        assert 0.99 * 5.0 < synthesizer.ledger.spent() <= 5.0
        named = [charge.what for charge in synthesizer.ledger.charges]
        discovered = [
            "number of rows",
            "categories of undeclared columns",
            "numbers that many rows share",
            "sizes of numbers and dates",
            "precisions of numbers and dates",
            "values of columns on fine grids",
        ]
        looked_again = "rarer categories of undeclared columns"  # where the noise says so
        assert [each for each in named if each != looked_again][: len(discovered)] == discovered
        spent = synthesizer.ledger.charges[: len(discovered) + named.count(looked_again)]
        share = sum(charge.mu_squared for charge in spent)
        assert float(share / synthesizer.ledger.budget) == pytest.approx(0.2)
        assert " open " in synthesizer.privacy_report()

    def test_what_is_declared_is_not_looked_for(self):
        synthesizer = PrivPGDSynthesizer(
            self.METADATA, 5.0, public_domain={"ward": {"range_values": ["A"]}}, **sdv_tables.SMALL
        )
        with pytest.warns(UserWarning, match=r"\['age'\] are not declared"):
            synthesizer.fit(self.table())
        assert set(synthesizer.sample(300)["ward"].dropna()) == {"A"}
        assert not any("categories" in charge.what for charge in synthesizer.ledger.charges)

    def test_a_declared_range_gets_a_shape_for_its_part_of_the_share(self):
        domain = {"age": {"range_min": 0, "range_max": 10_000_000, "decimal_places": 0}}
        domain["ward"] = {"range_values": ["A", "B"]}
        synthesizer = PrivPGDSynthesizer(
            self.METADATA, 5.0, public_domain=domain, **sdv_tables.SMALL
        )
        synthesizer.fit(self.table())
        ages = synthesizer.sample(500)["age"]
        assert 35 < ages.median() < 45
        assert (ages <= 64).mean() > 0.99
        looked = [charge for charge in synthesizer.ledger.charges if "ward" not in charge.what][:3]
        share = float(sum(charge.mu_squared for charge in looked) / synthesizer.ledger.budget)
        assert share == pytest.approx(0.1)

    def test_without_a_share_a_declared_range_has_cells_of_equal_width(self):
        domain = {"age": {"range_min": 0, "range_max": 3_199, "decimal_places": 0}}
        domain["ward"] = {"range_values": ["A", "B"]}
        synthesizer = PrivPGDSynthesizer(
            self.METADATA, 5.0, public_domain=domain, discovery_share=0, **sdv_tables.SMALL
        )
        synthesizer.fit(self.table())
        assert synthesizer.sample(500)["age"].max() > 90  # of a cell of 0 to 99

    def test_a_saved_synthesizer_knows_what_was_discovered(self):
        synthesizer = self.fitted()
        loaded = cloudpickle.loads(cloudpickle.dumps(synthesizer))
        pd.testing.assert_frame_equal(loaded.sample(40), synthesizer.sample(40))

    def test_conditions_on_discovered_values(self):
        rows = self.fitted().sample_from_conditions([Condition({"ward": "B"}, num_rows=9)])
        assert (rows["ward"] == "B").all()

    def test_a_failing_second_fit_leaves_the_first_model_whole(self, monkeypatch):
        synthesizer = self.fitted()
        before = synthesizer.sample(50)
        synthesizer.reset_sampling()

        def fail(*args, **kwargs):
            raise RuntimeError("out of memory")

        monkeypatch.setattr("sdv_privpgd.fitting.fit.pipeline.fit", fail)
        other = self.table().assign(ward="C", age=99)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of the second fit, and of what is not declared
            with pytest.raises(RuntimeError, match="out of memory"):
                synthesizer.fit(other)
        pd.testing.assert_frame_equal(synthesizer.sample(50), before)
        assert synthesizer.ledger.spent() > 5.0, "what was charged stays on the books"

    @pytest.mark.parametrize("share", [-0.1, 1.0, "much", True])
    def test_a_wrong_share_is_refused(self, share):
        with pytest.raises(ValueError, match="discovery_share"):
            PrivPGDSynthesizer(self.METADATA, 1.0, discovery_share=share)


class TestPlan:
    @pytest.mark.parametrize("strategy", ["all_pairs", "independent", "mst"])
    def test_a_plan_has_the_noise_of_the_fit_and_spends_nothing(self, strategy):
        synthesizer = new(strategy=strategy)
        plan = synthesizer.plan(200).text
        assert synthesizer.ledger.charges == ()
        synthesizer.fit(sdv_tables.table(200))
        questions = " ".join(line[:34].strip() for line in plan.splitlines())
        for charge in synthesizer.ledger.charges:
            what = charge.what.split(": ")[0]  # which of them depends on answers
            assert what in questions
            if what != "2-way marginals that promise most":  # so does how often
                assert f"{charge.stddev:,.4g}" in plan

    def test_more_rows_are_displaced_less(self):
        def worst(num_rows):
            line = new().plan(num_rows).text.splitlines()[-1]
            return float(line.split(", ")[1].removesuffix(" % at most"))

        assert worst(100_000) < worst(10_000) < 100

    def test_keys_alone_are_never_measured(self):
        metadata = sdv_tables.metadata_of({"id": {"sdtype": "id"}}, primary_key="id")
        assert "marginals" not in PrivPGDSynthesizer(metadata, 1.0).plan(50).text

    def test_a_fitted_synthesizer_is_not_changed(self, fitted):
        before = cloudpickle.dumps(fitted)
        fitted.plan(50)
        assert cloudpickle.dumps(fitted) == before
