"""All noisy tables as tidy rows: nothing left out, with labels that users know, and as files."""

import numpy as np
import pandas as pd
import pytest
from fast_fits import asked, drawn

from sdv_privpgd.columns.schema import Schema
from sdv_privpgd.inference.tables import group_labels, noisy_tables
from sdv_privpgd.methods.privpgd import PrivPGD
from sdv_privpgd.privacy.queries import CountQuery


@pytest.fixture(scope="module")
def questions():
    _, codes = drawn(np.random.default_rng(0))
    return asked(codes, epsilon=3.0, method=PrivPGD())


@pytest.fixture(scope="module")
def frame(questions):
    return noisy_tables(questions.release, questions.schema)


def test_each_measured_cell_is_a_row_with_its_columns_labels_and_round(questions, frame):
    measured = frame[frame["kind"] == "measured"]
    answers = [each.answer.ravel() for each in questions.release.measurements]
    np.testing.assert_array_equal(measured["estimate"], np.concatenate(answers))
    stddevs = [
        np.full(each.answer.size, np.sqrt(each.stddev**2 + (each.stddev > 0) / 12))
        for each in questions.release.measurements
    ]
    np.testing.assert_allclose(measured["stddev"], np.concatenate(stddevs))
    (rows,) = frame[frame["column_1"].isna()].to_dict("records")
    assert (rows["estimate"], rows["stddev"], rows["round"]) == (2_000, 0, 1)
    assert questions.release.measurements[0].query == CountQuery()
    pair = frame[(frame["column_1"] == "ward") & (frame["column_2"] == "age")]
    pair = pair[pair["column_3"].isna()]
    first = pair[(pair["kind"] == "measured") & (pair["round"] == 1)]
    assert len(first) == 4 * 12
    assert set(first["label_1"]) == {"A", "B", "C", "D"}
    assert set(first["label_2"]) == {str(age) for age in range(12)}
    again = frame.loc[frame["round"] == 2, ["column_1", "column_2"]].drop_duplicates()
    assert 0 < len(again) < 6
    triples = frame[frame["column_3"].notna() & (frame["kind"] == "measured")]
    assert triples.loc[triples["column_2"] == "age", "label_2"].nunique() == 4
    assert any(" – " in label for label in triples["label_2"].unique())


def test_consistent_tables_agree_and_are_less_noisy(frame):
    own = frame[frame["kind"] == "consistent"]
    assert own["round"].isna().all()
    of_ward = own[own["column_1"] == "ward"]
    sums = of_ward.groupby(["column_2", "label_1"], observed=True)["estimate"].sum().unstack()
    np.testing.assert_allclose(sums, sums.iloc[[0]].to_numpy().repeat(len(sums), axis=0))
    keys = ["column_1", "label_1", "column_2", "label_2"]
    both = own.merge(frame[frame["round"] == 1], on=keys, suffixes=("", " measured"))
    both = both[both["column_3 measured"].isna()]
    assert len(both) == len(own)
    assert (both["stddev"] < both["stddev measured"]).all()


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_the_file_holds_the_same_rows(questions, frame, ending, tmp_path):
    path = tmp_path / f"tables.{ending}"
    again = noisy_tables(questions.release, questions.schema, path)
    pd.testing.assert_frame_equal(again, frame)
    read = pd.read_csv(path) if ending == "csv" else pd.read_parquet(path)
    assert list(read) == list(frame)
    np.testing.assert_allclose(read["estimate"], frame["estimate"])
    assert read["label_1"].astype("string").fillna("").tolist() == [
        "" if pd.isna(label) else label for label in frame["label_1"]
    ]


def test_another_ending_is_refused_before_anything_is_written(questions, tmp_path):
    with pytest.raises(ValueError, match=r"must end in \.parquet or \.csv"):
        noisy_tables(questions.release, questions.schema, tmp_path / "tables.xlsx")
    assert not list(tmp_path.iterdir())


def test_groups_are_named_by_their_values():
    facts = {
        "age": {"sdtype": "numerical", "range_min": 0, "range_max": 99, "decimal_places": 0},
        "ward": {"sdtype": "categorical", "range_values": list("ABCDE"),
                 "range_is_nullable": False},
    }  # fmt: skip
    age, ward = Schema.from_sdv(facts, num_bins=5).columns
    labels = group_labels(age, np.array([0, 0, 1, 1, 1, 2]))
    assert labels == ["0 – 39", "40 – 99", "(missing)"]
    assert group_labels(ward, np.array([0, 1, 1, 1, 2])) == ["A", "B and 2 others", "E"]
