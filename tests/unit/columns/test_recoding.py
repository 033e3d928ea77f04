"""Cells that stand for missing, codes that stand for groups, and dates that are whole numbers."""

import datetime
import json
import pickle
from dataclasses import replace
from decimal import Decimal

import numpy as np
import pandas as pd
import pytest
import sdv_tables
from encoding import Codec

from sdv_privpgd import (
    Boolean,
    Categorical,
    Datetime,
    Key,
    MSTSynthesizer,
    Numerical,
    Ordinal,
    People,
    check,
    check_domain,
    evaluate,
    fit_table,
    read_domain,
)
from sdv_privpgd.columns.mismatch import mismatches
from sdv_privpgd.columns.parser import describe, read_facts
from sdv_privpgd.columns.recoding import Recoding, code_of
from sdv_privpgd.columns.scalars import LARGEST_WHOLE
from sdv_privpgd.columns.vocabulary import words_of
from sdv_privpgd.sources.csv import CsvFiles
from sdv_privpgd.sources.frames import FrameSource
from sdv_privpgd.sources.locate import as_read, of_people
from sdv_privpgd.sources.source import Cluster

CHAPTERS = {"A": "I", "B": "I", "C": "II"}


def facts_of(declared):
    return read_facts("x", {"sdtype": declared.sdtype, **declared})


def recoded(declared, cells, dtype=object):
    series = pd.Series(cells, dtype=dtype)
    return Recoding(facts_of(declared))(series).tolist()


def missing(declared, cells, dtype=object):
    return pd.isna(pd.Series(recoded(declared, cells, dtype), dtype=object)).tolist()


NUMBERS = Numerical(0, 99, missing_codes=[-9, "NA", "1,000"], number_format="1,234.5")


@pytest.mark.parametrize(
    ("declared", "cells", "gone"),
    [
        (NUMBERS, [-9, -9.0, "-9", "-9.0", Decimal(-9), "NA", "1000", 9, "na", -90, None],
         [1, 1, 1, 1, 1, 1, 1, 0, 0, 0, 1]),
        (Numerical(missing_codes=[-9], number_format="1234,5"), ["-9,0", "-9.0"], [1, 0]),
        (Categorical(["A"], missing_codes=[9, "NA"]), ["NA", 9, 9.0, "9", "09", "A", "na", b"NA"],
         [1, 1, 1, 1, 0, 0, 0, 0]),
        (Categorical([1], missing_codes=["9", "08"]), [9, "9", "08", 8, 1], [1, 1, 1, 0, 0]),
        (Boolean("J", "N", missing_codes=["?"]), ["J", "N", "?"], [0, 0, 1]),
        (Datetime("01.01.2000", "31.12.2024", datetime_format="%d.%m.%Y",
                  missing_codes=["01.01.1900", "00.00.0000"]),
         ["01.01.1900", "00.00.0000", datetime.date(1900, 1, 1), pd.Timestamp("1900-01-01"),
          "01.01.1901", "1.1.1900"], [1, 1, 1, 1, 0, 1]),
        (Datetime(missing_codes=["1900-01-01"]),
         [pd.Timestamp("1900-01-01"), "1900-01-01", "19000101", "1900"], [1, 1, 1, 1]),
    ],
)  # fmt: skip
def test_a_cell_that_is_a_missing_code_is_missing(declared, cells, gone):
    assert missing(declared, cells) == list(map(bool, gone))


@pytest.mark.parametrize(
    ("dtype", "cells"),
    [
        ("int64", [2**62 - 1, 2**62 - 2]),
        ("uint64", [2**63 + 1, 2**63 + 3]),
        ("Int64", [2**62 - 1, 2**62 - 2]),
        ("float64", [0.5, 0.25]),
        ("float32", [0.5, 0.25]),
        ("int8", [9, 8]),
        ("category", [9, 8]),
        (pd.SparseDtype("int64", 0), [9, 8]),
    ],
    ids=str,
)
def test_a_missing_code_is_found_exactly_in_any_dtype(dtype, cells):
    code, other = cells
    found = recoded(Numerical(missing_codes=[code]), [code, other], dtype)
    assert pd.isna(found[0])
    assert found[1] == other


@pytest.mark.parametrize(
    ("declared", "cells", "groups"),
    [
        (Categorical(groups={"A00": "I", 12: "II", "3": "II", "4.5": "IV"}),
         ["A00", 12, "12", 12.0, 3, 4.5, "012", "A0", True, None, "I"],
         ["I", "II", "II", "II", "II", "IV", "012", "A0", True, None, "I"]),
        (Categorical(prefix=3), ["A00.1", "A00", "B", "", None, 12345, b"xyzz"],
         ["A00", "A00", "B", "", None, "123", b"xyzz"]),
        (Categorical(groups=CHAPTERS, prefix=1, other="other"),
         ["A00.1", "C50", "D00", "a00", "other", "II"], ["I", "II", "D00", "a00", "other", "II"]),
        (Categorical(groups={"A": "B1", "B": "C"}, prefix=1), ["B1", "B2"], ["B1", "C"]),
        (Categorical(groups=CHAPTERS, missing_codes=["-"]), ["-", "A", "-A"], [None, "I", "-A"]),
    ],
)  # fmt: skip
def test_a_code_becomes_its_group_and_any_other_cell_stays(declared, cells, groups):
    assert recoded(declared, cells) == groups
    assert recoded(declared, [cells[0]] * 2, "category") == [groups[0]] * 2


@pytest.mark.parametrize(
    ("declared", "cells", "dtype", "found"),
    [
        (Categorical(groups=CHAPTERS), ["-", "C"], object, ["-", "II"]),
        (Categorical(missing_codes=["-"]), ["-", "C"], object, [None, "C"]),
        (Numerical(missing_codes=[-9]), [-9, 1], object, [None, 1]),
        (Numerical(missing_codes=[-9]), [-9, 1], "int8", [pd.NA, 1]),
        (Boolean(missing_codes=["?"]), [True, False], "bool", [True, False]),
        (Datetime(missing_codes=["1900-01-01"]), [], object, []),
        (Datetime(missing_codes=["1900-01-01"]), [pd.Timestamp(1900, 1, 1), pd.Timestamp(0)],
         "Sparse[datetime64[ns]]", [pd.NaT, pd.Timestamp(0)]),
    ],
)  # fmt: skip
def test_a_recoded_column_keeps_its_index_name_and_dtype_and_what_was_given_stays(
    declared, cells, dtype, found
):
    series = pd.Series(cells, index=range(5, 5 + len(cells)), name="given", dtype=dtype)
    given = series.copy()
    again = Recoding(facts_of(declared))(series)
    pd.testing.assert_series_equal(series, given)
    others = {"int8": "Int64", "bool": "boolean", "Sparse[datetime64[ns]]": "datetime64[ns]"}
    expected = pd.Series(found, series.index, name="given", dtype=others.get(dtype, dtype))
    pd.testing.assert_series_equal(again, expected)
    assert [type(cell) for cell in again] == [type(cell) for cell in expected]


def test_only_columns_with_codes_or_groups_have_a_rule_and_largest_whole_numbers_are_codes():
    facts = {"plain": Numerical(0, 9), "sorts": Categorical(["A"]), **COLUMNS}
    assert list(Recoding.of({name: facts_of(each) for name, each in facts.items()})) == [*COLUMNS]
    largest = LARGEST_WHOLE
    cells = [largest, -largest, float(largest), largest + 1, 2.0 * largest, True]
    assert [code_of(cell) for cell in cells] == [
        str(largest), str(-largest), str(largest), None, None, None
    ]  # fmt: skip


def test_no_cell_can_make_the_recoding_raise():
    class Rude:
        def __eq__(self, other):
            raise ValueError("seen")

        def __hash__(self):
            raise ValueError("seen")

    cells = [Rude(), [1], {}, 10**9999, Decimal("sNaN"), float("inf"), pd.NaT, np.datetime64("NaT")]
    cells += [Decimal("1e999999999"), "1" * 9999, datetime.time(1), b"\xff", 1 + 1j]
    columns = [NUMBERS, Datetime(missing_codes=[0]), Boolean(missing_codes=["?"])]
    columns.append(Categorical(groups=CHAPTERS, prefix=1, missing_codes=["-"]))
    for declared in columns:
        # pandas guesses types of what is beside each other.
        found = [recoded(declared, cells), [recoded(declared, [cell])[0] for cell in cells]]
        assert [list(map(type, each)) for each in found] == [list(map(type, cells))] * 2


def test_groups_are_the_categories_in_the_order_of_the_map_or_as_declared():
    assert facts_of(Categorical(groups=CHAPTERS)).values == ("I", "II")
    assert facts_of(Ordinal(["II", "I"], groups=CHAPTERS)).values == ("II", "I")
    rare = Categorical(["I"], groups={**CHAPTERS, "D": "III"}, other="other")
    assert facts_of(rare).values == ("I",)
    assert facts_of(Categorical(prefix=3)).lacks_domain  # they are found privately


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ({"groups": ["A"]}, "must map codes to groups"),
        ({"groups": {}}, "must map codes to groups"),
        ({"groups": {1: "I", "1": "II"}}, "each of them once"),
        ({"groups": {"A": None}}, "each of them once"),
        ({"groups": CHAPTERS, "range_values": ["I"]}, "names 'II', which is not in range_values"),
        ({"prefix": 0}, "prefix of 'x' must be an integer of at least 1"),
        ({"missing_codes": "NA"}, "must be a list"),
        ({"missing_codes": [None]}, "may hold strings, numbers"),
        ({"missing_codes": [9], "range_is_nullable": False}, "Leave one of them out"),
        ({"missing_codes": [1.0], "range_values": [1]}, r"names \[1.0\].*choose one"),
        ({"missing_codes": ["A"], "groups": CHAPTERS}, r"names \['A'\].*choose one"),
    ],
)
def test_what_cannot_be_meant_is_refused(words, said):
    with pytest.raises(ValueError, match=said):
        read_facts("x", {"sdtype": "categorical", **words})
    short = {"range_values": "values", "range_is_nullable": "nullable"}
    with pytest.raises(ValueError, match=said.replace("'x'", "'Categorical'")):
        Categorical(**{short.get(word, word): fact for word, fact in words.items()})


def test_words_of_groups_codes_and_midnights_are_read_again():
    for declared in (
        Categorical(groups={1: "I", "B": 2}, prefix=2, missing_codes=[9, "NA"], other="other"),
        Numerical(0, 9, missing_codes=[-9]),
        Datetime(20200101, 20241231, datetime_format="%Y%m%d", missing_codes=[0]),
        Datetime("20-1-1 00:00:00", "24-1-2 00:00:00", datetime_format="%y-%m-%d %H:%M:%S"),
    ):
        facts = facts_of(declared)
        words = json.loads(json.dumps(words_of(facts)))
        assert read_facts("x", {"sdtype": facts.sdtype, **words}) == facts


DIAGNOSES = ["A00.1", "B20", "C50", "D00", "-"] * 80
TABLE = pd.DataFrame(
    {
        "diagnosis": DIAGNOSES,
        "age": [30, 40, -9, 50, 999] * 80,
        "seen": [20240131, 20240201, 99999999, 20240301, 20240115] * 80,
    }
)
COLUMNS = {
    "diagnosis": Categorical(groups=CHAPTERS, prefix=1, other="other", missing_codes=["-"]),
    "age": Numerical(0, 1000, decimal_places=0, missing_codes=[-9, 999]),
    "seen": Datetime(20240101, 20241231, datetime_format="%Y%m%d", missing_codes=[99999999]),
}


def in_memory(folder):
    return TABLE


def in_other_dtypes(folder):
    return TABLE.astype({"age": "float64", "diagnosis": "category"})


def in_parquet(folder):
    TABLE.to_parquet(folder / "table.parquet", row_group_size=90)
    return folder / "table.parquet"


def in_csv(folder):
    TABLE.to_csv(folder / "table.csv", index=False)
    return CsvFiles(folder / "table.csv", header=True)


def by_fit_table(table):
    fitted = fit_table(table, COLUMNS, 100.0, method="independent")
    assert fitted.discovered_domain()["diagnosis"]["groups"] == CHAPTERS
    return fitted.sample(2_000), fitted.warnings


def by_sdv(table):
    kinds = {name: {"sdtype": declared.sdtype} for name, declared in COLUMNS.items()}
    domain = {name: dict(declared) for name, declared in COLUMNS.items()}
    metadata = sdv_tables.metadata_of(kinds)
    assert check_domain(metadata, domain) == []
    synthesizer = MSTSynthesizer(metadata, epsilon=100.0, delta=1e-5, public_domain=domain)
    synthesizer.fit(table)
    return synthesizer.sample(2_000), synthesizer.warnings_


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize(
    ("kind", "door"),
    [
        *((kind, by_fit_table) for kind in (in_other_dtypes, in_parquet, in_csv)),
        *((kind, by_sdv) for kind in (in_memory, in_csv)),
    ],
)
def test_rows_have_groups_missing_values_and_dates_as_numbers(kind, door, tmp_path):
    rows, said = door(kind(tmp_path))
    assert not any("no declared value" in sentence for sentence in said)
    # Six times the deviation of 2,000 draws, and noise of a few of 400 rows.
    parts = rows["diagnosis"].value_counts(normalize=True, dropna=False)
    for group, part in (("I", 0.4), ("II", 0.2), ("other", 0.2)):
        assert abs(parts[group] - part) < 0.08
    assert abs(rows["diagnosis"].isna().mean() - 0.2) < 0.08
    assert abs(rows["age"].isna().mean() - 0.4) < 0.08
    assert rows["age"].max() < 100
    assert rows["seen"].dtype == np.float64
    assert abs(rows["seen"].isna().mean() - 0.2) < 0.08
    assert rows["seen"].dropna().between(20240101, 20241231).all()


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_groups_are_found_by_a_prefix_and_compared_as_groups():
    table = pd.DataFrame({"zip": ["01234", "01239", "99999"] * 500, "who": range(1_500)})
    columns = {"zip": Categorical(prefix=2, nullable=False), "who": Key()}
    fitted = fit_table(
        table, columns, 50.0, people=People(rows_are_people=True), method="independent"
    )
    assert fitted.discovered_domain()["zip"]["range_values"] == ["01", "99"]
    assert set(fitted.sample(50)["zip"]) == {"01", "99"}
    metadata = {"columns": {name: {"sdtype": each.sdtype} for name, each in COLUMNS.items()}}
    groups = as_read(FrameSource.of(TABLE), {n: facts_of(e) for n, e in COLUMNS.items()}).columns
    found = evaluate(pd.DataFrame(groups), TABLE, metadata, public_domain=COLUMNS)
    assert found.outside == {"diagnosis": 0.2, "age": 0.0, "seen": 0.0}  # D00 is in no group
    assert set(found.columns.values()) == {0.0}


def test_a_frame_is_recoded_when_it_is_read_and_shows_its_own_dtypes():
    source = as_read(FrameSource.of(TABLE), {"age": facts_of(COLUMNS["age"])})
    assert "columns" not in vars(source)
    assert source.dtypes == TABLE.dtypes.to_dict()
    assert source.num_rows() == 400
    assert "columns" not in vars(source)
    assert source.columns["age"].isna().sum() == 160


class Workers:
    """Rows that stay where they are: a tally goes to them, pickled."""

    def __init__(self, frame):
        self.frame, self.names, self.dtypes, self.people = frame, frame.names, frame.dtypes, None

    def total(self, names, tally):
        tally = pickle.loads(pickle.dumps(tally))
        total = tally.zero()
        for batch in self.frame.batches(names):
            tally.add(total, batch.columns)
        return total

    num_rows = batches = None

    def of_people(self, person, most, *, numbered=False):
        self.people = person, most, numbered
        return self


class Kept:
    """A tally of all cells."""

    def zero(self):
        return []

    def add(self, total, item):
        total.append({name: series.tolist() for name, series in item.items()})


def test_rows_of_a_cluster_and_of_people_are_recoded():
    facts = {name: facts_of(each) for name, each in COLUMNS.items()}
    wanted = [{"diagnosis": ["I", "I", "II", "D00", None]}]
    inner = FrameSource.of(TABLE[:5])
    source = as_read(Workers(inner), facts)
    assert isinstance(source, Cluster)
    assert source.total(["diagnosis"], Kept()) == wanted
    bounded = source.of_people("age", 2)
    assert bounded.people == ("age", 2, False)
    assert bounded.total(["diagnosis"], Kept()) == wanted
    people = of_people(as_read(inner, facts), "age", 2)
    (batch,) = people.batches(["diagnosis"])
    assert batch.columns["diagnosis"].tolist() == wanted[0]["diagnosis"]


def test_groups_in_a_codebook_are_pairs(tmp_path):
    path = tmp_path / "book.csv"
    path.write_text("column;type;groups;prefix;decimals\nx;text;A = I | B = II;1;\ny;percent;;;2\n")
    words = read_domain(path)
    assert words["x"] == {"sdtype": "categorical", "groups": {"A": "I", "B": "II"}, "prefix": 1}
    assert words["y"]["number_format"] == "1234.50%"


@pytest.mark.parametrize(
    ("declared", "dtype", "said"),
    [
        (Categorical(groups={"A": "I"}), "int64", "codes of its groups are text"),
        (Categorical(groups={"A": "I"}), "bool", "codes of its groups are text"),
        (Categorical(groups={"1": "I"}), "int64", None),
        (Categorical(groups={"1": "I"}), "string", None),
        (Categorical(prefix=2), "int64", "numbers have lost zeros in front"),
        (Categorical(prefix=2), "string", None),
        (Datetime(datetime_format="%Y%m%d"), "int64", None),
        (Datetime(datetime_format="%d%m%Y"), "float64", None),
        (Datetime(datetime_format="%d.%m.%Y"), "Int64", "no format of digits alone"),
        (Datetime(), "int64", "no format of digits alone"),
        (Numerical(number_format="12.5 %"), "float64", "as which Excel keeps 12 %"),
        (Numerical(number_format="12.5 %"), "object", None),
        (Numerical(number_format="1234,5"), "float64", None),
    ],
)
def test_what_no_cell_of_a_dtype_can_be_is_said_before_anything_is_spent(declared, dtype, said):
    found = mismatches({"x": pd.api.types.pandas_dtype(dtype)}, {"x": facts_of(declared)})
    assert (found == []) == (said is None)
    assert said is None or said in found[0]
    table = pd.DataFrame({"x": pd.Series([], dtype=dtype)})
    stops = check(table, {"x": declared}, 1.0, adjacency="add_remove", delta=1e-6)
    assert any(said in each for each in stops.to_dict()["stops"]) if said else True


def test_a_check_says_that_a_column_is_modelled_as_groups():
    told = check(TABLE, COLUMNS, 1.0).to_dict()["columns"]
    assert told["diagnosis"]["becomes"] == "modelled as groups"
    assert told["age"]["becomes"] == "modelled"


@pytest.mark.parametrize("dtype", ["int64", "Int64", "float64", "Float64", "object", "int32"])
@pytest.mark.parametrize(
    ("form", "ends", "cells"),
    [
        ("%Y%m%d", (20200101, 20241231), [20240229, 20200131]),
        ("%d%m%Y", (1012020, 31122024), [1022024, 31122020]),
        ("%y%m%d", (101, 241231), [101, 240229]),
        ("%H%M", (0, 2359), [0, 930]),
        ("%Y%m", (202001, 202412), [202003, 202412]),
    ],
)
def test_dates_of_digits_are_read_and_written_as_numbers(form, ends, cells, dtype):
    is_usual = dtype in ("int64", "float64", "object")
    chosen = {} if is_usual else {"dtype": pd.api.types.pandas_dtype(dtype)}
    words = {"sdtype": "datetime", "range_min": ends[0], "range_max": ends[1]}
    column = describe("x", {**words, "datetime_format": form, "range_is_nullable": False})
    encoder = Codec(replace(column, **chosen))
    series = pd.Series(cells, dtype=dtype)
    assert encoder.holds(series).all()
    again = encoder.rewrite(series)
    assert again.tolist() == cells
    assert again.dtype == chosen.get("dtype", "int64")
    codes, positions = encoder.encode(series)
    assert encoder.decode(codes, positions).dtype == again.dtype
    assert pd.api.types.is_numeric_dtype(encoder.decode(codes, positions, holds_missing=True))


def test_dates_of_digits_are_text_where_their_ends_were_and_truths_are_no_dates():
    words = {"sdtype": "datetime", "range_min": "2020", "range_max": "2024"}
    encoder = Codec(describe("x", {**words, "datetime_format": "%Y"}))
    assert encoder.rewrite(pd.Series([2021])).tolist() == ["2021"]
    encoder = Codec(describe("x", {"sdtype": "datetime", "datetime_format": "%H%M"}))
    assert encoder.holds(pd.Series([True, 1, -1, 1.5, 12345], dtype=object)).tolist() == [
        False, True, False, False, False
    ]  # fmt: skip
