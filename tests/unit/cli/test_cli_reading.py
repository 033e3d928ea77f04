"""What people have is read; what is not clearly a table with names stops before anything is spent.

No message quotes a cell, nor a first record that may be one.
"""

import datetime
import gzip
import io
import os
import zipfile
from decimal import Decimal
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from encoding import numerical
from hypothesis import given
from hypothesis import strategies as st

from sdv_privpgd.cli.input_files import open_table, read_table, tables_in, types_in
from sdv_privpgd.cli.messages import CommandError, in_options
from sdv_privpgd.columns.dialect import Dialect
from sdv_privpgd.drafting.template import sdtype_of
from sdv_privpgd.report import measures
from sdv_privpgd.sources.source import SourceError
from sdv_privpgd.sources.texts import UNPARSED

SECRET = "CANARYTEXT"
PEOPLE = {
    "age": {"sdtype": "numerical"},
    "zip": {"sdtype": "categorical", "range_values": ["01234", "98765"]},
    "ill": {"sdtype": "boolean"},
}
ROWS = [("34", "01234", "True"), ("71", "98765", "False"), ("", "01234", "")]


def read(tmp_path, text, facts=PEOPLE, name="table.csv", **how):
    path = tmp_path / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    if facts is None and "names" not in how and not name.endswith("parquet"):
        how = {"header": True, **how}
    return read_table(path, Dialect(**how), facts)


def refused(*args, **kwargs):
    with pytest.raises(CommandError) as caught:
        read(*args, **kwargs)
    assert SECRET not in str(caught.value)
    return str(caught.value)


def text_of(sep=",", header="age,zip,ill"):
    lines = [header.replace(",", sep)] if header else []
    return "\n".join([*lines, *(sep.join(row) for row in ROWS)]) + "\n"


def assert_people(table):
    assert list(table.columns) == list(PEOPLE)
    assert table["age"].tolist()[:2] == [34, 71]
    assert table["age"].isna().tolist() == [False, False, True]
    assert table["zip"].tolist() == ["01234", "98765", "01234"]
    assert table["ill"].tolist()[:2] == [True, False]


@pytest.mark.parametrize(
    ("name", "sep", "how"),
    [
        ("table.csv", ",", {}),
        ("TABLE.CSV", ",", {}),
        ("table.txt", ";", {"sep": ";", "decimal": "."}),
        ("table.tsv", "\t", {}),
        ("table.csv", "|", {"sep": "|"}),
    ],
)
def test_text_with_any_separator(tmp_path, name, sep, how):
    assert_people(read(tmp_path, text_of(sep), name=name, **how))


@pytest.mark.parametrize("ending", ["gz", "zip"])
def test_compressed_text(tmp_path, ending):
    packed = io.BytesIO()
    if ending == "gz":
        packed.write(gzip.compress(text_of("\t").encode()))
    else:
        with zipfile.ZipFile(packed, "w") as archive:
            archive.writestr("inside.tsv", text_of("\t"))
    assert_people(read(tmp_path, packed.getvalue(), name=f"table.tsv.{ending}"))


@pytest.mark.parametrize(
    ("written", "how"),
    [
        ("utf-8", {}),
        ("utf-8-sig", {}),
        ("utf-16", {}),
        ("utf-16-le", {"encoding": "utf-16-le"}),
        ("cp1252", {"encoding": "cp1252"}),
    ],
)
def test_encodings_that_spreadsheets_write(tmp_path, written, how):
    table = read(tmp_path, "größe,ort\n1,Münster\n".encode(written), None, **how)
    assert list(table.columns) == ["größe", "ort"]
    assert table["ort"].tolist() == ["Münster"]


@pytest.mark.parametrize("written", ["cp1252", "utf-16-le"])
def test_an_encoding_that_does_not_fit_names_the_option(tmp_path, written):
    text = f"größe,ort\n1,Münster {SECRET}\n".encode(written)
    assert "--encoding" in refused(tmp_path, text, None)
    assert "--encoding" in refused(tmp_path, text, None, encoding="utf-8")
    assert "or take the byte out" in refused(tmp_path, f"\0größe\n{SECRET}\n", None)


@pytest.mark.parametrize("sep", [",", ";"])
def test_words_that_mean_missing_leave_numbers_numbers(tmp_path, sep):
    text = "age,ward\n34,-\n-99,A\nn.a.,B\n-99.0,-99\n".replace(",", sep)
    how = {"sep": sep, "decimal": ".", "na": ("-99", "-", "n.a.")}
    detected = read(tmp_path, text, None, **how)
    facts = {
        "age": {"sdtype": "numerical"},
        "ward": {"sdtype": "categorical", "range_values": ["A", "B", "-"]},
    }
    known = read(tmp_path, text, facts, **how)
    assert detected["age"].dtype == known["age"].dtype == np.float64
    assert detected["age"].isna().tolist() == known["age"].isna().tolist() == [False] + [True] * 3
    assert detected["ward"].isna().tolist() == [True, False, False, True]
    assert known["ward"].tolist()[:3] == ["-", "A", "B"]  # it is a declared category


def test_words_that_mean_missing_in_a_workbook_and_in_parquet(tmp_path):
    table = pd.DataFrame({"age": [34, -99, "-"], "ward": ["A", "-", "B"]})
    table.to_excel(tmp_path / "table.xlsx", index=False)
    facts = {"age": {"sdtype": "numerical"}, "ward": {"sdtype": "categorical"}}
    for known in (None, facts):
        found = read_table(tmp_path / "table.xlsx", Dialect(na=("-99", "-"), header=True), known)
        assert found["age"].isna().tolist() == [False, True, True]
        assert found["ward"].isna().tolist() == [False, True, False]
    table[["ward"]].to_parquet(tmp_path / "table.parquet")
    with pytest.raises(CommandError, match="--na is for text, and missing_codes"):
        read_table(tmp_path / "table.parquet", Dialect(na=("-",)), facts)


def test_decimals_with_a_comma_are_read_where_somebody_says_so(tmp_path):
    facts = {"price": {"sdtype": "numerical"}, "n": {"sdtype": "numerical"}}
    text = "price;n\n1,5;3\n-2,25;4\nnone of it;5\n"
    table = read(tmp_path, text, facts, sep=";", decimal=",")
    assert table["price"].tolist() == [1.5, -2.25, UNPARSED]  # it is there
    assert table["n"].tolist() == [3, 4, 5]
    text = f"price;n\n1,5;{SECRET}\n"
    facts = {"price": {"sdtype": "numerical"}, "n": {"sdtype": "categorical"}}
    for known, named in ((None, "'price', 'n'"), (facts, "decimals of 'price':")):
        told = refused(tmp_path, text, known, sep=";")
        assert named in told
        assert "--decimal , or --decimal . says it" in told
    facts["price"]["decimal_places"] = 0
    assert read(tmp_path, "price;n\n15;A\n", facts, sep=";")["price"].tolist() == [15]


@pytest.mark.parametrize("sep", [";", "\t", "|"])
def test_a_header_with_another_separator_names_the_option(tmp_path, sep):
    told = refused(tmp_path, text_of(sep, "age,zip,ill").replace("34", SECRET), None)
    assert "--sep" in told
    assert "age" not in told
    # Decimals with a comma make several columns of it.
    assert "--sep" in refused(tmp_path, f"a,b{sep}c,d{sep}e\n1,2{sep}3,4{sep}5\n", None)


def test_a_single_column_is_read_and_a_separator_in_a_cell_is_no_matter(tmp_path):
    assert read(tmp_path, f"note\na;b;{SECRET}\n", None).shape == (1, 1)
    assert len(read(tmp_path, '"income; net"\n5\n', None, sep=";", decimal=".").columns) == 1


# A header, or a record


@pytest.mark.parametrize("kind", ["text", "excel"])
@pytest.mark.parametrize("reads", [lambda *given: read_table(*given, None), types_in])
@pytest.mark.parametrize(
    ("dtypes", "told"),
    [
        ({}, "Nobody says"),
        ({"ward": object}, r"lacks the columns \['ward'\]"),
        ({"M": object}, "1 f"),
    ],
)
def test_a_first_record_of_words_is_no_header_by_itself(tmp_path, kind, reads, dtypes, told):
    path = tmp_path / ("table.csv" if kind == "text" else "table.xlsx")
    table = pd.DataFrame([["M", SECRET], ["F", "flu"]])
    write = table.to_csv if kind == "text" else table.to_excel
    write(path, index=False, header=False)
    with pytest.raises(CommandError, match=told) as caught:
        reads([path], Dialect(dtypes={name: np.dtype(d) for name, d in dtypes.items()}))
    for option in ("--header", "--names A,B,...", "--no-header"):
        assert option in str(caught.value)
    assert SECRET not in str(caught.value)
    assert len(read_table(path, Dialect(header=False), None)) == 2
    assert list(read_table(path, Dialect(header=True), None)) == ["M", SECRET]


def test_names_of_the_metadata_are_names_and_a_header_unlike_them_is_not_quoted(tmp_path):
    facts = {"2019": {"sdtype": "numerical"}, "2020": {"sdtype": "numerical"}}
    assert list(read(tmp_path, "2020,2019\n1,2\n", facts).columns) == ["2020", "2019"]
    assert list(read(tmp_path, "2020,2019\n1,2\n", None, header=True).columns) == ["2020", "2019"]
    told = refused(tmp_path, f"{SECRET},Lund,x\n1,2,3\n")
    assert "lacks the columns ['age', 'zip', 'ill']" in told
    assert "--no-header" in told


@pytest.mark.parametrize(
    ("how", "facts", "names"),
    [
        ({"header": False}, None, ["column 1", "column 2", "column 3"]),
        ({"header": False}, PEOPLE, list(PEOPLE)),
        ({"names": ("x", "y", "z")}, None, ["x", "y", "z"]),
        ({"names": ("x", "y", "z"), "header": False}, None, ["x", "y", "z"]),
    ],
)
def test_without_a_header_the_first_record_is_a_row(tmp_path, how, facts, names):
    table = read(tmp_path, text_of(header=None), facts, **how)
    assert list(table.columns) == names
    assert len(table) == len(ROWS)


def test_names_can_take_the_place_of_a_header_if_they_fit(tmp_path):
    table = read(tmp_path, text_of(header="1,1,"), None, names=("x", "y", "z"), header=True)
    assert list(table.columns) == ["x", "y", "z"]
    assert len(table) == len(ROWS)
    assert "2 names, and the first record has 3" in refused(
        tmp_path, text_of(header=None), None, names=("x", "y")
    )
    # A row may hold what columns are called: to refuse it would tell of its cells.
    assert len(read(tmp_path, text_of(), None, names=("age", "zip", "ill"))) == len(ROWS) + 1
    assert "--sep" in refused(tmp_path, f"{SECRET};b\n", None, header=False)


@pytest.mark.parametrize(
    "text",
    [
        f"a,b\n{SECRET},2,3\n4,5,6\n",
        f"a,b\n{SECRET},2,3\n4,5\n",
        f"a,b\n1,2\n{SECRET},4,5\n",
        f'a,b\n1,2\n{SECRET},"4\n',
    ],
)
def test_rows_that_do_not_fit_the_header_are_told_alike(tmp_path, text):
    facts = {name: {"sdtype": "categorical"} for name in "ab"}
    told = refused(tmp_path, text, None)
    assert "more fields than there are names" in told
    assert not any(digit in told.replace(str(tmp_path), "") for digit in "123456")
    assert told == refused(tmp_path, text, facts)


# Cells


@pytest.mark.parametrize(
    ("facts", "cell"),
    [
        ({"sdtype": "numerical"}, "word"),
        ({"sdtype": "numerical"}, "True"),
        ({"sdtype": "categorical", "range_values": [1, 2, 3]}, "word"),
        ({"sdtype": "categorical", "range_values": ["1", "2", "3"]}, ""),
        ({"sdtype": "categorical"}, "word"),
        ({"sdtype": "categorical"}, "1.5"),
        ({"sdtype": "boolean"}, "word"),
        ({"sdtype": "datetime", "datetime_format": "%Y"}, "word"),
        ({"sdtype": "id"}, "word"),
    ],
)
def test_one_cell_does_not_change_how_others_are_read(tmp_path, facts, cell):
    ordinary = "x\n1\n2\n03\n1.0\n"
    alone = read(tmp_path, ordinary, {"x": facts})["x"]
    beside = read(tmp_path, f"{ordinary}{cell}\n", {"x": facts})["x"][:4]
    assert alone.tolist() == beside.tolist()


@given(st.lists(st.text("0123456789.-+eE ,TrueNA", max_size=5), min_size=1, max_size=6))
def test_numbers_are_read_one_by_one(tmp_path_factory, cells):
    facts, folder = {"x": {"sdtype": "numerical"}}, tmp_path_factory.mktemp("numbers")

    def column(those):
        lines = "".join(f'"{cell}"\n' for cell in those)
        found = read(folder, f"x\n{lines}", facts, header=True)["x"]
        cells = ["nothing" if pd.isna(each) else each for each in found]
        return [each if isinstance(each, str) else float(each) for each in cells]

    together = column(cells)
    assert together == [column([cell])[0] for cell in cells]


@pytest.mark.parametrize("cell", ["2.0", "1.10", "01", "1e5", "1e+16", "-0", "inf", "1" * 400])
def test_text_is_a_number_only_where_rows_would_have_the_same_text(tmp_path, cell):
    facts = {"x": {"sdtype": "categorical"}}
    assert read(tmp_path, f"x\n{cell}\n7\n1.5\n", facts)["x"].tolist() == [cell, 7, 1.5]


def test_types_that_are_declared_or_fit_are_those_of_text(tmp_path):
    def cells(*declared):
        facts = {"x": {"sdtype": "categorical", "range_values": list(declared)}}
        return read(tmp_path, "x\n01\n1\n 2\nTrue\n", facts)["x"].tolist()

    assert cells(1, 2) == [1, 1, 2, "True"]
    assert cells("01", "1", "2") == ["01", "1", "2", "True"]
    assert cells(True, False)[3] is True
    dtypes = {"age": np.dtype(object), "zip": pd.CategoricalDtype(), "ill": pd.BooleanDtype()}
    table = read(tmp_path, text_of(), dtypes=dtypes)
    assert table["age"].tolist()[0] == "34"
    assert table["zip"].cat.categories.tolist() == ["01234", "98765"]
    assert table["ill"].tolist()[:2] == [True, False]
    assert str(table["ill"].dtype) == "boolean"
    # No cell decides whether a dtype is refused: what is no number is counted as such.
    text, dtypes = f"age,zip,ill\n{SECRET},01234,True\n7,01234,True\n", {"age": np.dtype("int64")}
    assert read(tmp_path, text, dtypes=dtypes)["age"].tolist() == [UNPARSED, 7]
    assert "'wage'" in refused(tmp_path, text_of(), dtypes={"wage": np.dtype("int64")})


@pytest.mark.parametrize("dtype", ["Int64", "float32", "string"])
def test_types_that_the_user_names(tmp_path, dtype):
    how = {"dtypes": {"age": pd.api.types.pandas_dtype(dtype)}}
    assert str(read(tmp_path, text_of(), **how)["age"].dtype) == dtype


# Numbers in groups of three digits, and zeros in front


@pytest.mark.parametrize(
    ("cell", "decimal", "thousands", "number"),
    [
        ("1.234,56", ",", ".", 1234.56), ("1.234", ",", ".", 1234), ("83,4", ",", ".", 83.4),
        ("-12.345.678", ",", ".", -12345678), ("1,234.5", ".", ",", 1234.5),
        ("1\u00a0234,5", ",", " ", 1234.5), ("15.04.1972", ",", ".", None),
        ("1.23", ",", ".", None), ("12,34", ".", ",", None), ("1_000", ".", ",", None),
    ],
)  # fmt: skip
def test_groups_of_thousands_are_read_where_they_are_named(
    tmp_path, cell, decimal, thousands, number
):
    facts = {"n": {"sdtype": "numerical"}}
    how = {"sep": ";", "decimal": decimal, "thousands": thousands}
    cells = read(tmp_path, f"n\n{cell}\n7\n", facts, **how)["n"]
    assert cells[1] == 7
    assert cells[0] == (UNPARSED if number is None else number)


def test_one_cell_decides_nothing_and_dates_are_read_one_by_one(tmp_path):
    facts = {"n": {"sdtype": "numerical"}}
    how = {"sep": ";", "decimal": ",", "thousands": "."}
    alone = read(tmp_path, "n\n1.234,5\n2\n", facts, **how)["n"]
    beside = read(tmp_path, f"n\n1.234,5\n{SECRET}\n", facts, **how)["n"]
    assert alone[0] == beside[0] == 1234.5
    dtypes = {"day": np.dtype("datetime64[ns]")}
    for facts in (None, {"day": {"sdtype": "datetime"}}):
        table = read(tmp_path, "day\n2020-01-05\nword\n", facts, dtypes=dtypes)
        assert table["day"].tolist() == ["2020-01-05", "word"]
    facts = {"alley": {"sdtype": "categorical", "range_values": ["NA", "Grvl"]}}
    assert read(tmp_path, "alley\nNA\nGrvl\n", facts)["alley"].tolist() == ["NA", "Grvl"]


def test_signs_of_numbers_are_seen_named_and_not_both(tmp_path):
    text = "cost;born;weight\n1.234,5;15.04.1972;83,4\n7;01.02.1980;60\n"
    table = read(tmp_path, text, None, sep=";", decimal=",", thousands=".")
    assert table["cost"].tolist() == [1234.5, 7]
    assert table["born"].tolist() == ["15.04.1972", "01.02.1980"]
    assert table["weight"].tolist() == [83.4, 60]
    with pytest.raises(SourceError, match="both marked") as caught:
        read(tmp_path, "n\n1\n", None, thousands=".")
    assert "Name the sign with --decimal" in in_options(caught.value)
    seen = SimpleNamespace(column=numerical(0, 9).column, declared=None, other=None)
    told = in_options(measures._on_parsing(seen))  # pyright: ignore[reportArgumentType]
    assert "--decimal" in told
    assert "--thousands" in told


@pytest.mark.parametrize("sdtype", ["id", "categorical", "detected"])
def test_zeros_in_front_stay(tmp_path, sdtype):
    facts = {"code": {"sdtype": sdtype}, "n": {"sdtype": "numerical"}}
    table = read(tmp_path, "code,n\n0000621,1\n12,0\n", None if sdtype == "detected" else facts)
    assert table["code"].tolist() == (
        ["0000621", 12] if sdtype == "categorical" else ["0000621", "12"]
    )
    assert table["n"].tolist() == [1, 0]


# Workbooks and Parquet


@pytest.fixture
def workbook(tmp_path):
    def write(*sheets):
        with pd.ExcelWriter(tmp_path / "table.xlsx") as writer:
            for number, cells in enumerate(sheets):
                pd.DataFrame(cells).to_excel(
                    writer, sheet_name=f"s{number}", index=False, header=False
                )
        return tmp_path / "table.xlsx"

    return write


def test_workbooks(workbook):
    cells = [list(PEOPLE), [34, "01234", True], [71, 98765, False], [None, "01234", None]]
    assert_people(read_table(workbook(cells), Dialect(), PEOPLE))
    day = pd.Timestamp("2020-01-05")
    odd = read_table(workbook([["age", "zip", "ill"], ["<18", None, None]]), Dialect(), PEOPLE)
    assert odd["age"].tolist() == [UNPARSED]
    facts = {"rate": {"sdtype": "numerical", "number_format": "12 %"}}
    shares = read_table(workbook([["rate"], [0.12], ["13 %"]]), Dialect(), facts)
    assert shares["rate"].tolist() == [UNPARSED, "13 %"]  # or is it 0.12 %?
    table = read_table(workbook([["n", "day"], [1, day], [2.5, day]]), Dialect(header=True), None)
    assert table["n"].tolist() == [1, 2.5]
    assert table["day"].tolist() == [day, day]
    path = workbook([["n", "code", "temp", "x"], [1, "07", 36.5, day], ["2", 8, "low", "-"]])
    table = read_table(path, Dialect(header=True), None)  # for detection no cells are of two kinds
    assert table["n"].tolist() == [1, 2]
    texts = [["07", "8"], ["36.5", "low"], [str(day), "-"]]
    assert [table[name].tolist() for name in ("code", "temp", "x")] == texts
    path, alley = workbook([["alley"], ["NA"], ["Grvl"]]), {"sdtype": "categorical"}
    for known, first in (({}, "NA"), ({"range_values": ["Grvl"]}, None)):
        cells = read_table(path, Dialect(header=True), {"alley": {**alley, **known}})["alley"]
        assert cells.fillna("").tolist() == [first or "", "Grvl"]
    path = workbook([["a", "b"], [1, 2]], [["c"], [SECRET]])
    with pytest.raises(CommandError, match="--sheet"):
        read_table(path, Dialect(header=True), None)
    assert read_table(path, Dialect(sheet="s1", header=True), None)["c"].tolist() == [SECRET]
    with pytest.raises(CommandError, match="no sheet 's2'"):
        read_table(path, Dialect(sheet="s2", header=True), None)
    path = workbook([[34, SECRET], [71, "x"]])
    assert len(read_table(path, Dialect(names=("age", "note")), None)) == 2


def test_no_column_of_parquet_is_lost(tmp_path, capsys):
    frame = pd.DataFrame({"age": [1, 2]}, index=pd.Index(["x", "y"], name="person"))
    frame.to_parquet(tmp_path / "table.parquet")
    table = read_table(tmp_path / "table.parquet", Dialect(), None)
    assert table.to_dict("list") == {"person": ["x", "y"], "age": [1, 2]}
    assert capsys.readouterr().err == ""
    frame.rename_axis(None).to_parquet(tmp_path / "table.parquet")
    assert list(read_table(tmp_path / "table.parquet", Dialect(), None)) == ["age"]
    assert "index without a name" in capsys.readouterr().err
    with pytest.raises(CommandError, match="leave out --names"):
        read_table(tmp_path / "table.parquet", Dialect(names=("a",)), None)


def test_a_schema_says_what_is_a_date_or_a_decimal_where_pandas_has_objects(tmp_path):
    cells = {"day": [datetime.date(2020, 1, 1)], "pay": [Decimal("1.50")], "raw": [b"\xff"]}
    pd.DataFrame(cells).to_parquet(tmp_path / "table.parquet")
    types = types_in([tmp_path / "table.parquet"], Dialect())
    kinds = ["datetime", "numerical", "categorical"]
    assert [sdtype_of(name, dtype) for name, dtype in types.items()] == kinds


@pytest.mark.parametrize("name", ["table", "table.sav", "table.xls", "table.csv.7z", "gz"])
def test_unknown_endings_are_refused_with_the_list(tmp_path, name):
    (tmp_path / name).touch()
    with pytest.raises(CommandError, match=r"tables end in \.csv, .*\.parquet"):
        tables_in([tmp_path / name])


def test_pipes_and_missing_readers_are_refused(tmp_path, monkeypatch):
    os.mkfifo(tmp_path / "pipe.csv")
    with pytest.raises(CommandError, match="no regular file"):
        tables_in([tmp_path / "pipe.csv"])
    with pytest.raises(CommandError, match="must be a file"):
        tables_in([type(tmp_path)("-")])
    for names, told in (("a.csv b.parquet", "several kinds"), ("a.xlsx b.xlsx", "no workbook")):
        for path in (paths := [tmp_path / name for name in names.split()]):
            path.touch()
        with pytest.raises(CommandError, match=told):
            tables_in(paths)
    monkeypatch.setattr("sdv_privpgd.cli.input_files.find_spec", lambda name: None)
    with pytest.raises(CommandError, match="pip install openpyxl"):
        tables_in([tmp_path / "table.xlsx"])


def test_what_cannot_be_read_is_withheld(tmp_path):
    assert "empty" in refused(tmp_path, "", None)
    assert "cannot be read" in refused(tmp_path, SECRET, None, name="table.parquet")
    assert "cannot be read" in refused(tmp_path, SECRET, None, name="table.csv.gz")


@pytest.mark.parametrize("cell", [2, 2.5, "x"])
def test_no_cell_of_a_workbook_decides_a_dtype(tmp_path, cell):
    pd.DataFrame({"n": [1, cell]}).to_excel(tmp_path / "table.xlsx", index=False)
    how = Dialect(dtypes={"n": pd.Int64Dtype()})
    source = open_table([tmp_path / "table.xlsx"], how, {"n": {"sdtype": "numerical"}})
    assert str(source.dtypes["n"]) == "Int64"
