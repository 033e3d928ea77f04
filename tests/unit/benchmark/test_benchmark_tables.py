import json

import numpy as np
import pandas as pd
import pytest

from sdv_privpgd.benchmark.single import clipped, value_scores
from sdv_privpgd.benchmark.tables import TABLES, RealTable, load, load_own, read_rows
from sdv_privpgd.columns.schema import Schema

SMALL = ("acs_income_ne_2018", "adult", "bank", "california_housing", "diamonds", "nist")


@pytest.fixture
def words() -> RealTable:
    """Five categories in three cells, a nullable number, a flag."""
    facts = {
        "letter": {"sdtype": "categorical", "range_values": list("abcde")},
        "size": {"sdtype": "numerical", "range_min": 0, "range_max": 1},
        "flag": {"sdtype": "boolean", "range_is_nullable": False},
    }
    frame = pd.DataFrame(
        {
            "letter": ["a", "b", "c", "d", "e", None, "z"],
            "size": [0.0, 0.34, 0.99, 1.0, None, 7.0, -1.0],
            "flag": [True, False] * 3 + [True],
        }
    )
    schema = Schema.from_sdv(facts, num_bins=3)
    return RealTable(name="words", frame=frame, schema=schema, cells=3, label="flag")


def test_numbers_categories_and_labels_are_what_the_words_say(words):
    facts = {"sdtype": "numerical", "range_min": 0, "range_max": 100}
    schema = Schema.from_sdv({"age": facts, "dose": facts})
    frame = pd.DataFrame({"age": [3.0, np.nan, 70.0] * 20, "dose": [0.5, 1.0, 99.0] * 20})
    table = RealTable(name="t", frame=frame, schema=schema, cells=8, label=None)
    rows = table.decode(table.encode(frame), seed=0)
    assert (rows["age"].dropna() % 1 == 0).all()
    assert (rows["dose"].dropna() % 1 != 0).any()
    assert words.task == "classification"
    numerical = RealTable(**{**vars(words), "label": "size"})
    assert numerical.task == "regression"
    assert words.domain.sizes == (4, 4, 2)
    letters, sizes, flags = words.encode(words.frame).T.tolist()
    # Five categories c in three cells: floor(3 c / 5). Missing and undeclared are the last code.
    assert letters == [0, 0, 1, 1, 2, 3, 3]
    assert sizes == [0, 1, 2, 2, 3, 2, 0]
    assert flags == [1, 0, 1, 0, 1, 0, 1]


def test_the_split_is_the_papers_and_loses_no_row():
    frame = pd.DataFrame({"size": np.arange(1000) / 1000})
    schema = Schema.from_sdv({"size": {"sdtype": "numerical", "range_min": 0, "range_max": 1}})
    train, test = RealTable(name="t", frame=frame, schema=schema, cells=32, label=None).split()
    assert (len(train), len(test)) == (800, 200)
    assert sorted([*train["size"], *test["size"]]) == frame["size"].tolist()
    # What scikit-learn's split draws at seed 42: the first of its permutation of 1,000 are tests.
    order = np.random.RandomState(42).permutation(1000)
    assert test.index.tolist() == order[:200].tolist()
    assert train.index.tolist() == order[200:].tolist()


@pytest.mark.parametrize("name", SMALL)
def test_every_value_of_a_real_table_is_inside_its_domain_and_its_label_is_known(name, shared_data):
    from encoding import Codec

    table = load(name, shared_data, cells=32)
    drawn = table.frame.sample(500, random_state=0)
    for column in table.schema.columns:
        held = Codec(column).holds(drawn[column.name])
        known = held | (drawn[column.name] == "?").to_numpy()  # Adult's word for missing
        if column.name == "PINCP" and name == "nist":
            known |= (drawn["PINCP"] > 400_000).to_numpy()  # the declaration says why it ends there
        assert known.all(), column.name
    codes = table.encode(drawn)
    assert (codes < np.array(table.domain.sizes)).all()
    assert max(table.domain.sizes) <= 33  # 32 cells, and missing
    assert table.label == TABLES[name].label
    assert table.frame[table.label].notna().all()
    assert table.frame[table.label].nunique() > 1


def test_acs_income_is_all_its_files(shared_data):
    table = load("acs_income", shared_data, cells=32)
    assert len(table.frame) == 342_989  # as the folder's README has it
    assert table.domain.sizes == (32,) * 10 + (2,)


def test_an_unknown_table_and_a_folder_without_tables_are_named(tmp_path):
    with pytest.raises(ValueError, match=r"no tables \['census'\]: choose from .*'adult'"):
        load("census", tmp_path, cells=32)
    with pytest.raises(FileNotFoundError, match=r"No adult\.parquet in .*--data"):
        load("adult", tmp_path, cells=32)


def own_files(folder):
    metadata = {
        "tables": {
            "people": {
                "primary_key": "name",
                "columns": {
                    "name": {"sdtype": "id"},
                    "code": {"sdtype": "categorical"},
                    "age": {"sdtype": "numerical", "range_min": 0, "range_max": 99},
                },
            }
        }
    }
    (folder / "metadata.json").write_text(json.dumps(metadata))
    (folder / "domain.json").write_text(json.dumps({"code": {"range_values": ["007", "None"]}}))
    (folder / "people.csv").write_text("name,code,age\nA,007,7\nB,None,\nC,,50\n")
    return folder / "people.csv", folder / "metadata.json", folder / "domain.json"


def test_own_tables_and_rows_of_other_programs_are_read_as_declared(tmp_path):
    table = load_own(*own_files(tmp_path), label="age", cells=10)
    assert table.domain.attributes == ("code", "age")
    assert table.task == "regression"
    # Text as it is written; only an empty field is missing.
    assert table.encode(table.frame).tolist() == [[0, 0], [1, 10], [2, 5]]
    with pytest.raises(ValueError, match=r"--label 'name' is not .*choose from \['code', 'age'\]"):
        load_own(*own_files(tmp_path), label="name", cells=10)


def test_codes_of_another_program_need_all_columns_and_may_be_floats(words, tmp_path):
    (tmp_path / "rows.csv").write_text("letter,size\na,0.5\n")
    with pytest.raises(ValueError, match=r"lacks the columns \['flag'\]"):
        read_rows(tmp_path / "rows.csv", words.schema)
    schema = Schema.from_sdv({"code": {"sdtype": "categorical", "range_values": ["1", "2", "-3"]}})
    (tmp_path / "rows.csv").write_text("code\n1.0\n2\n-3.0\n")
    assert read_rows(tmp_path / "rows.csv", schema)["code"].tolist() == ["1", "2", "-3"]


def test_decoded_rows_have_the_codes_that_they_are_of():
    values = [f"v{number}" for number in range(70)]
    columns = {
        "many": {"sdtype": "categorical", "range_values": values},
        "age": {"sdtype": "numerical", "range_min": 0, "range_max": 99, "decimal_places": 0},
        "share": {"sdtype": "numerical", "range_min": 0.0, "range_max": 1.0},
    }
    schema = Schema.from_sdv(columns, num_bins=32)
    table = RealTable(name="t", frame=pd.DataFrame(), schema=schema, cells=32, label=None)
    generator = np.random.default_rng(0)
    codes = generator.integers(0, table.domain.sizes, (3_000, 3))
    rows = table.decode(codes, seed=1)
    assert (table.encode(rows) == codes).all()
    assert set(rows["many"].dropna()) == set(values)
    assert rows["age"].nunique() == 100


def test_values_beyond_the_declared_range_are_errors_that_codes_do_not_show():
    columns = {
        name: {"sdtype": "numerical", "range_min": 0, "range_max": 9, "decimal_places": 0}
        for name in ("far", "near")
    }
    frame = pd.DataFrame({"far": [0, 5, 50, 100] * 25, "near": [0, 3, 6, 9] * 25})
    schema = Schema.from_sdv(columns, num_bins=32)
    table = RealTable(name="t", frame=frame, schema=schema, cells=32, label=None)
    clipped_rows = table.decode(table.encode(frame), seed=0)
    found = value_scores(table, frame, clipped_rows)
    assert found["decoded_column_l1"] == pytest.approx(0.5)  # half of one column of two
    assert found["outside"] == pytest.approx(0.25)
    # (41 + 91) / 4 over the mean distance of 0, 5, 50 and 100 from their median, 35.
    assert found["decoded_w1"] == pytest.approx((33 + 0) / 36.25 / 2, rel=0.2)
    assert clipped(table) == [
        "far: 50 % of the real values are above its range and became its highest value."
    ]
    assert set(value_scores(table, frame, frame).values()) == {0.0, 0.25}
