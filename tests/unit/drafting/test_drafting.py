"""Drafts of public domains: made without a value, kept in files, checked as a whole."""

import datetime
import enum
from decimal import Decimal

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import sdv_tables
from sdv.metadata import Metadata

from sdv_privpgd import (
    Boolean,
    Numerical,
    Ordinal,
    TimeOfDay,
    check_domain,
    draft_domain,
    draft_metadata,
    plan_table,
    read_domain,
    write_domain,
)
from sdv_privpgd.columns.schema import Schema
from sdv_privpgd.drafting.codebook import codebook_of

SDTYPES = {
    "int64": "numerical", "float32": "numerical", "int32[pyarrow]": "numerical",
    "Sparse[int64]": "numerical", "boolean": "boolean", "datetime64[ns, UTC]": "datetime",
    "date32[pyarrow]": "datetime", "object": "categorical", "category": "categorical",
}  # fmt: skip


def columns_of(metadata: Metadata) -> dict:
    (table,) = metadata.to_dict()["tables"].values()
    return table["columns"]


@pytest.mark.parametrize(("dtype", "sdtype"), SDTYPES.items())
def test_an_sdtype_follows_from_the_dtype(dtype, sdtype):
    assert columns_of(draft_metadata({"x": dtype})) == {"x": {"sdtype": sdtype}}


class Unreadable(pd.CategoricalDtype):
    """Categories of a table are values: whoever reads them fails."""

    @property
    def categories(self):
        raise AssertionError("categories were read")


def test_of_dtypes_neither_categories_nor_dictionaries_nor_missing_cells_are_told():
    dtypes = {"ward": Unreadable()}
    assert draft_domain(dtypes)["ward"]["range_values"] is None
    assert columns_of(draft_metadata(dtypes)) == {"ward": {"sdtype": "categorical"}}
    for values in (["CANARY"], [1]):
        held = pa.array(values).dictionary_encode().type
        assert draft_domain({"x": pd.ArrowDtype(held)}) == draft_domain({"x": "string"})
    dtypes = {"x": pd.ArrowDtype(pa.decimal128(9, 2))}
    assert columns_of(draft_metadata(dtypes)) == {"x": {"sdtype": "numerical"}}
    whole, real = (draft_domain({"x": dtype}) for dtype in ("int64", "float64"))
    assert whole == real
    assert draft_domain({"x": "Int64"})["x"]["decimal_places"] == 0


def test_schemas_of_polars_and_arrow_are_drafted_by_their_types():
    schema = pl.Schema({"day": pl.Date(), "at": pl.Time(), "cost": pl.Decimal(9, 2), "n": pl.Int8})
    for each in (schema, schema.to_frame().to_arrow().schema):
        drafted = draft_domain(each)
        assert [own["sdtype"] for own in drafted.values()] == ["datetime"] * 2 + ["numerical"] * 2
        assert (drafted["at"]["range_max"], drafted["n"]["decimal_places"]) == ("23:59:59", 0)
        assert columns_of(draft_metadata(each)).keys() == drafted.keys()


@pytest.mark.parametrize("draft", [draft_domain, draft_metadata])
def test_a_table_its_cells_and_what_sdv_has_no_word_for_are_refused(draft):
    table = pd.DataFrame({"name": ["CANARY"], "type": ["CANARY"], "min": ["CANARY"]})
    with pytest.raises(ValueError, match="dtypes") as raised:
        draft(table)
    assert "CANARY" not in str(raised.value)
    with pytest.raises(ValueError, match="a str in place of a dtype") as raised:
        draft(pd.Series({"ward": "CANARY"}))
    assert "CANARY" not in str(raised.value)
    with pytest.raises(ValueError, match="dtypes") as raised:
        draft(pl.from_pandas(table))
    assert "CANARY" not in str(raised.value)
    with pytest.raises(ValueError, match=r"'stay'.*total_seconds"):
        draft({"stay": "timedelta64[ns]"})


def test_a_draft_of_metadata_leaves_out_keys_and_what_detection_may_have_read():
    facts = {
        "id": {"sdtype": "id"},
        "code": {"sdtype": "categorical"},
        "age": {"sdtype": "numerical", "range_min": 19, "range_max": 77},
        "seen": {"sdtype": "datetime", "datetime_format": "%d.%m.%Y"},
        "mail": {"sdtype": "email"},
    }
    metadata = sdv_tables.metadata_of(facts, primary_key="id", alternate_keys=["code"])
    drafted = draft_domain(metadata)
    assert list(drafted) == ["age", "seen"]
    assert drafted["age"]["range_min"] is None
    assert drafted["seen"]["datetime_format"] == "%d.%m.%Y"
    assert draft_domain(metadata.to_dict()) == drafted


CODEBOOK = pd.DataFrame(
    {
        "Variable": ["age", "ward", "sex", "born", "patient", "smoker", "pain"],
        "Data type": ["Integer", "varchar(8)", "code", "date", "key", "Boolean", "ordinal"],
        "Min.": [0, None, None, "1900-01-01", None, None, None],
        "max": ["110", None, None, "2020-12-31", None, None, None],
        "Values": [None, "01; 02; B,C", "1 = male, 2 = female", None, None, None, [1, 2, 3]],
        "missing": ["no", None, "yes", False, None, "n", None],
        "Date format": [None, None, None, "%Y-%m-%d", None, None, None],
        "comment": "years",
    }
)


def test_a_codebook_is_read_as_people_write_it_in_any_order():
    drafted = draft_domain(CODEBOOK)
    kinds = [each.pop("sdtype") for each in drafted.values()]
    assert kinds == ["numerical", *["categorical"] * 2, "datetime", "boolean", "ordinal"]
    assert drafted == {
        "age": {"range_min": 0, "range_max": 110, "decimal_places": 0, "range_is_nullable": False},
        "ward": {
            "range_values": ["01", "02", "B,C"],
            "other_value": None,
            "range_is_nullable": None,
        },
        "sex": {"range_values": [1, 2], "other_value": None, "range_is_nullable": True},
        "born": {
            "range_min": "1900-01-01",
            "range_max": "2020-12-31",
            "datetime_format": "%Y-%m-%d",
            "range_is_nullable": False,
        },
        "smoker": {"range_is_nullable": False},
        "pain": {"range_values": [1, 2, 3], "other_value": None, "range_is_nullable": None},
    }
    turned = CODEBOOK.iloc[::-1, ::-1]
    assert draft_domain(turned) == draft_domain(CODEBOOK)
    with pytest.raises(ValueError, match="got int"):
        draft_domain(7)


@pytest.mark.parametrize(
    ("codebook", "told"),
    [
        ({"name": ["a", "a"], "type": ["int", "int"]}, r"Rows \[2, 3\].*name"),
        ({"name": ["a", "b"], "type": ["int", "wavelet"]}, r"Rows \[3\].*types number, integer, p"),
        ({"name": ["a"], "type": ["int"], "min": [0], "lowest": [1]}, "about range_min"),
        ({"name": ["a"], "min": [0]}, "needs the columns 'column' and 'type'"),
        (
            {"name": list("ab"), "type": ["int"] * 2, "missing": ["ja", "?"]},
            r"Rows \[3\].*yes nor no",
        ),
        ({"name": ["a"], "type": ["bool"], "values": ["J=smoker; N=not"]}, "format, such as J/N"),
        ({"name": ["a"], "type": ["category"], "max": [9]}, "have a range or decimals, and a type"),
    ],
)
def test_a_codebook_that_cannot_be_read_is_refused_by_row(codebook, told):
    with pytest.raises(ValueError, match=told):
        draft_domain(pd.DataFrame(codebook))


class Color(str, enum.Enum):
    RED = "red"


EVERYTHING = {
    "age": {"range_min": np.int64(0), "range_max": Decimal("110"), "decimal_places": np.int8(0)},
    "income": {"range_min": 0.1, "range_max": np.float32(8), "cut_points": (1.5, 2.5)},
    "ward": {"range_values": np.array(["01", "no"]), "other_value": Color.RED},
    "grade": {"range_values": range(3), "range_is_nullable": np.True_},
    "born": {
        "range_min": datetime.date(1990, 1, 1),
        "range_max": pd.Timestamp("2020-12-31"),
        "datetime_format": "%d.%m.%Y",
    },
    "seen": {
        "range_min": np.datetime64("2020-01-01T10:00:00"),
        "range_max": pd.Timestamp("2020-12-31 12:00:01", tz="UTC"),
    },
    "blank": {"range_values": None},
}

KINDS = {
    "age": "numerical",
    "income": "numerical",
    "ward": "categorical",
    "grade": "ordinal",
    "born": "datetime",
    "seen": "datetime",
}


@pytest.mark.parametrize("ending", ["json", "yaml", "YML"])
def test_a_domain_that_was_written_describes_the_same_schema(ending, tmp_path):
    path = write_domain(EVERYTHING, tmp_path / f"domain.{ending}")
    read = read_domain(path)
    columns = {name: {"sdtype": kind} for name, kind in KINDS.items()}
    schemas = [
        Schema.from_sdv(columns, public_domain={name: domain[name] for name in KINDS})
        for domain in (EVERYTHING, read)
    ]
    assert schemas[0] == schemas[1]
    assert read["blank"] == {"range_values": None}
    assert read["ward"]["other_value"] == "red"


@pytest.mark.parametrize(
    ("name", "text", "told"),
    [
        ("d.json", "{", "is no JSON that can be read"),
        ("d.yaml", "a: [", "is no YAML that can be read"),
        ("d.json", "[1]", "must map columns"),
        ("d.yaml", "a: 3", "must map columns"),
        ("d.toml", "", "ends in .json"),
    ],
)
def test_a_file_that_holds_no_domain_is_refused(name, text, told, tmp_path):
    path = tmp_path / name
    path.write_text(text)
    with pytest.raises(ValueError, match=told):
        read_domain(path)


def test_files_name_what_they_cannot_hold_and_what_to_install(tmp_path, monkeypatch):
    with pytest.raises(ValueError, match="range_values of 'x'"):
        write_domain({"x": {"range_values": [b"\xff"]}}, tmp_path / "d.json")
    monkeypatch.setitem(__import__("sys").modules, "yaml", None)
    with pytest.raises(ImportError, match="pip install pyyaml"):
        write_domain({}, tmp_path / "d.yaml")


def test_what_does_not_fit_is_told_and_what_fits_is_not():
    assert check_domain(sdv_tables.metadata(), sdv_tables.PUBLIC_DOMAIN) == []
    sentences = check_domain(sdv_tables.metadata(), WRONG)
    for told in SAID:
        assert sum(told in sentence for sentence in sentences) == 1, told
    assert len(sentences) == len(SAID)
    columns = {"seen": {"sdtype": "datetime", "datetime_format": "%Y-%m-%d"}}
    known = {"range_min": "2020-01-01", "range_max": "2020-12-31", "datetime_format": None}
    told, of_days = check_domain(sdv_tables.metadata_of(columns), {"seen": known})
    assert "blank" in told
    assert "counted in days" in of_days
    assert "must map columns" in check_domain(sdv_tables.metadata(), (0, 10))[0]


def test_ids_and_names_are_told_where_nothing_is_declared():
    columns = {"patient": {"sdtype": "id"}, "visit": {"sdtype": "id"}, "ill": {"sdtype": "boolean"}}
    metadata = {"columns": columns, "primary_key": "visit"}
    told, asked = check_domain(metadata, {})
    assert told.startswith("The ids ['patient'] are no keys")
    assert asked.startswith("Whose rows are these?")
    assert check_domain(metadata, {}, says_whose=True) == []
    columns = {"patient_id": {"sdtype": "categorical"}, "datum": {"sdtype": "categorical"}}
    told = " ".join(check_domain({"columns": columns}, {}))
    assert "names of ['patient_id'] are those of ids" in told
    assert "names of ['datum'] are those of dates" in told
    declared = {name: {"range_values": ["A"]} for name in columns}
    assert check_domain({"columns": columns}, declared) == []


WRONG = {
    "nobody": {"range_min": 0},
    "id": {},
    "age": {"range_min": "a", "range_max": np.array(1), "decimal_places": -1, "num_bins": 0},
    "income": {"range_min": 5, "range_max": 1, "decimal_places": 0},
    "ward": {"range_min": 0, "range_values": ["A", "a ", 3], "range_is_nullable": "no"},
    "grade": 7,
    "seen": {"range_min": "01.02.2020", "range_max": "x", "datetime_format": "%Y-%m-%d"},
}

SAID = [
    "'nobody', which is not a column",
    "'id', which is not modelled",
    "range_min of 'age' must be a number",
    "range_max of 'age' must be a number",
    "decimal_places of 'age'",
    "num_bins of 'age'",
    "range_min of 'income' must not exceed",
    "'ward'] has the key 'range_min'",
    "range_values of 'ward' has 3 beside text",
    "'A', 'a ', which differ in spaces or capitals",
    "range_is_nullable of 'ward'",
    "public_domain['grade'] must map",
    "range_min of 'seen' must be a date",
    "range_max of 'seen' must be a date",
]


def test_facts_are_checked_where_others_are_wrong_or_left_out():
    columns = {"steps": {"sdtype": "numerical"}, "code": {"sdtype": "categorical"}}
    wrong = {
        "steps": {"range_min": 0, "increment": 0.5, "cut_points": [1]},
        "code": {"range_values": ["a", "a"], "other_value": ["b"]},
    }
    told = check_domain(sdv_tables.metadata_of(columns), wrong)
    for start in (
        "range_max of 'steps' is not declared", "increment of 'steps'", "cut_points of 'steps'",
        "range_values of 'code' must differ", "other_value of 'code'",
    ):  # fmt: skip
        assert sum(each.startswith(start) for each in told) == 1, start
    assert len(told) == 5


def test_what_is_left_to_be_found_is_told_for_each_column():
    metadata = sdv_tables.metadata()
    sentences = check_domain(metadata, {**draft_domain(metadata), "age": {"range_min": 0}})
    found = [sentence for sentence in sentences if "finds" in sentence]
    assert len(found) == len(sentences) == 5
    assert any(sentence.startswith("range_max of 'age' is not") for sentence in found)
    assert any(sentence.startswith("range_min and range_max of 'income'") for sentence in found)


IN_A_SHEET = {
    "age": {
        "sdtype": "numerical", "range_min": 0, "range_max": 110, "decimal_places": 0,
        "range_is_nullable": True, "missing_codes": [-99, 999],
    },
    "pay": {"sdtype": "numerical", "range_max": 1e6, "number_format": "1.234,50 EUR"},
    "ward": {"sdtype": "categorical", "range_values": ["01", "B,C", "x=y"], "other_value": "else"},
    "sex": {"sdtype": "categorical", "range_values": [1, 2], "range_is_nullable": True},
    "grade": {"sdtype": "ordinal", "range_values": ["low", "mid", "high"]},
    "ill with": {"sdtype": "categorical", "groups": {"A": "I", "C": "II"}, "prefix": 1,
                 "other_value": "other", "missing_codes": ["-"]},
    "born": {
        "sdtype": "datetime", "range_min": "19000101", "range_max": "20201231",
        "datetime_format": "%Y%m%d",
    },
    "ill": {"sdtype": "boolean", "true_value": "J", "false_value": "N"},
    "well": {"sdtype": "boolean", "true_value": 1, "false_value": 2},
    "patient": {"sdtype": "id"},
}  # fmt: skip


@pytest.mark.parametrize("ending", [".csv", ".xlsx", ".json"])
def test_a_codebook_in_a_file_comes_back_as_it_was(ending, tmp_path):
    path = write_domain(IN_A_SHEET, tmp_path / f"codebook{ending}")
    assert read_domain(path) == IN_A_SHEET
    plan_table(IN_A_SHEET, 1.0, num_rows=10)  # as fit_table takes them
    told = {"x": Numerical(0, 4), "y": Ordinal(["low", "high"]), "z": Boolean()}
    typed = {name: {"sdtype": own.sdtype, **own} for name, own in told.items()}
    assert read_domain(write_domain(told, path)) == typed


def test_a_codebook_of_a_spreadsheet_with_decimal_commas_is_read(tmp_path):
    path = tmp_path / "codebook.csv"
    lines = ["Column;Type;Min;Max;Values;Unit;Format", "age;integer;0;110;;years;"]
    lines += ["rate;percent;0;100;;;", "at;time;;;;;%H:%M", "sex;text;;;1 | 2;;", "empty;;;;;kg;"]
    lines += [
        "ill;boolean;;;N=nein|J=ja;;",
        "in;boolean;;;2=no, 1=yes;;",
        "on;bool;;;0=no, 1=yes;;",
    ]
    path.write_text("\n".join(lines), encoding="utf-8-sig")
    assert read_domain(path, decimal=",") == {
        "age": {"sdtype": "numerical", "range_min": 0, "range_max": 110, "decimal_places": 0},
        "rate": {
            "sdtype": "numerical", "number_format": "1234,5%", "range_min": 0, "range_max": 100
        },
        "at": {"sdtype": "datetime", **TimeOfDay(datetime_format="%H:%M")},
        "sex": {"sdtype": "categorical", "range_values": ["1", "2"]},
        "ill": {"sdtype": "boolean", "true_value": "J", "false_value": "N"},
        "in": {"sdtype": "boolean", "true_value": 1, "false_value": 2},
        "on": {"sdtype": "boolean"},
    }  # fmt: skip


def test_a_column_of_a_codebook_that_is_nearly_one_that_is_read_is_named():
    sheet = {"column": ["age"], "type": ["integer"], "min": [0], "unit": ["years"]}
    with pytest.warns(UserWarning, match="'Dezimals' is not read. If it says 'decimals'"):
        _ = draft_domain(pd.DataFrame({**sheet, "Dezimals": [0]}))


def test_a_draft_in_a_codebook_has_types_and_blanks_and_says_what_it_cannot_hold(tmp_path):
    dtypes = {"a": "float64", "b": "Int64", "c": "object", "d": "datetime64[ns]", "e": "bool"}
    sheet = codebook_of(draft_domain({**dtypes, "f": None}))
    assert list(sheet)[:8] == [
        "column", "type", "format", "min", "max", "values", "missing codes", "unit"
    ]  # fmt: skip
    assert sheet["type"].tolist() == ["number", "integer", "category", "date", "boolean", ""]
    assert set(sheet.drop(columns=["column", "type"]).to_numpy().ravel()) == {""}
    path = write_domain(draft_domain({**dtypes, "f": None}), tmp_path / "draft.csv")
    assert list(read_domain(path)) == list(dtypes)
    with pytest.raises(ValueError, match=r"no column for \['cut_points'\] of 'age'"):
        write_domain({"age": {"cut_points": [1, 2]}}, tmp_path / "codebook.csv")
    (tmp_path / "data.csv").write_text("age,ward\n1,2\n")
    with pytest.raises(ValueError, match="needs the columns 'column' and 'type'"):
        read_domain(tmp_path / "data.csv")
