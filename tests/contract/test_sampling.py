"""What SDV's users rely on when they sample: columns, order, dtypes, keys, batches, files."""

import datetime

import cloudpickle
import numpy as np
import pandas as pd
import pytest
import sdv_tables
from made_up import quiet
from sdv.errors import InvalidDataError, SamplingError, VersionError
from sdv.metadata import Metadata
from sdv.sampling import Condition
from sdv.utils import load_synthesizer
from small_synthesizers import new

from sdv_privpgd import PrivPGDSynthesizer


class TestSampling:
    def test_columns_and_values_are_those_of_metadata_and_domain(self, fitted):
        assert list(fitted.sample(5).columns) == list(sdv_tables.COLUMNS)
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
        none = fitted.sample(0)
        assert len(none) == 0
        assert list(none.columns) == list(sdv_tables.COLUMNS)

    def test_rows_do_not_depend_on_how_they_are_asked_for(self, fitted):
        modelled = list(sdv_tables.PUBLIC_DOMAIN)
        at_once = fitted.sample(500)[modelled]
        fitted.reset_sampling()
        with quiet():
            batched = fitted.sample(500, batch_size=77)[modelled]
        fitted.reset_sampling()
        in_parts = pd.concat([fitted.sample(123), fitted.sample(377)], ignore_index=True)[modelled]
        pd.testing.assert_frame_equal(at_once, batched)
        pd.testing.assert_frame_equal(at_once, in_parts)

    def test_keys_continue_a_reset_starts_again_and_no_global_generator_moves(self, fitted):
        first = fitted.sample(50)
        second = fitted.sample(50)
        fitted.reset_sampling()
        pd.testing.assert_frame_equal(first, fitted.sample(50))
        assert not first.equals(second)
        first, second = fitted.sample(300), fitted.sample(300)
        assert pd.concat([first["id"], second["id"]]).is_unique
        np.random.seed(7)  # noqa: NPY002
        before = np.random.get_state()[1].copy()  # noqa: NPY002
        fitted.sample(20)
        assert (np.random.get_state()[1] == before).all()  # noqa: NPY002

    def test_each_pass_over_the_particles_is_without_replacement(self, fitted):
        model = fitted._release.model
        codes = model.sample(model.block, 0)
        assert sorted(map(tuple, codes)) == sorted(map(tuple, model.codes.astype(np.int64)))

    @pytest.mark.parametrize("wrong", [-1, 2.5, "10", None, True])
    def test_a_wrong_number_of_rows_is_refused(self, fitted, wrong):
        with pytest.raises(ValueError, match="rows"):
            fitted.sample(wrong)

    def test_an_unfitted_synthesizer_says_so(self):
        for sample in (
            lambda: new().sample(3),
            lambda: new().sample_remaining_columns(pd.DataFrame({"age": [1]})),
            lambda: new().sample_from_conditions([Condition({"age": 1})]),
        ):
            with pytest.raises(SamplingError, match="not been fitted"):
                sample()


class TestKindsOfTables:
    def test_a_dict_is_answered_by_a_dict_and_a_frame_by_a_frame(self, fitted, tmp_path):
        synthesizer = new()
        synthesizer.fit({"table": sdv_tables.table(100)})
        assert set(synthesizer.sample(5)) == {"table"}
        assert set(synthesizer.sample_remaining_columns(pd.DataFrame({"age": [30]}))) == {"table"}
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
        assert list(synthesizer.sample_from_conditions([Condition({1: "y"}, 4)])[1]) == ["y"] * 4

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
        synthesizer = PrivPGDSynthesizer(metadata, 20.0, **sdv_tables.SMALL)
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
    @pytest.mark.filterwarnings("ignore:.*have the sdtype id")
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
            synthesizer.fit(given_as_ids, allow_lost=["a"])

    @pytest.mark.parametrize(
        ("num_rows", "adjacency"),
        [
            (0, "add_remove"),  # where the number of rows is public, none are refused
            (1, "add_remove"),
            (1, "replace_one"),
            (2, "add_remove"),
            (2, "replace_one"),
        ],
    )
    def test_empty_and_tiny_tables_are_fitted_like_any_other(self, num_rows, adjacency):
        synthesizer = new(adjacency=adjacency, delta=1e-5)
        synthesizer.fit(sdv_tables.table(num_rows))
        # A threshold of whole rows leaves a little of its delta.
        assert 0.999 < synthesizer.ledger.spent() <= 1.0
        assert len(synthesizer.sample(10)) == 10


class TestFiles:
    def test_a_loaded_synthesizer_goes_on_with_the_same_rows_and_no_torch(self, fitted, tmp_path):
        fitted.save(tmp_path / "model.pkl")
        loaded = load_synthesizer(tmp_path / "model.pkl")
        pd.testing.assert_frame_equal(fitted.sample(60), loaded.sample(60))
        assert loaded.ledger.to_json() == fitted.ledger.to_json()
        assert loaded.privacy_report() == fitted.privacy_report()
        fitted.sample(33)
        loaded = cloudpickle.loads(cloudpickle.dumps(fitted))
        pd.testing.assert_frame_equal(fitted.sample(9), loaded.sample(9))
        assert b"torch" not in cloudpickle.dumps(fitted)

    @pytest.mark.parametrize("found", [0, 8, 999, None])
    def test_an_unknown_state_version_is_refused(self, fitted, found):
        state = {**fitted.__getstate__(), "_state_version": found}
        with pytest.raises(VersionError, match=f"state version {found}"):
            PrivPGDSynthesizer.__new__(PrivPGDSynthesizer).__setstate__(state)
