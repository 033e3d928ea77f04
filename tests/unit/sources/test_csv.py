"""Text is read cell by cell, in parts of any size, and what is no table of one form is refused."""

import gzip

import numpy as np
import pandas as pd
import pytest
from canaries import TEXT, traces
from hypothesis import given
from hypothesis import strategies as st

from sdv_privpgd import Categorical, Numerical, check, fit_table
from sdv_privpgd.cli.input_files import read_table
from sdv_privpgd.cli.messages import CommandError
from sdv_privpgd.columns import scalars
from sdv_privpgd.columns.dialect import Dialect
from sdv_privpgd.sources import csv
from sdv_privpgd.sources.csv import CsvFiles, CsvSource
from sdv_privpgd.sources.locate import open_source, retyped
from sdv_privpgd.sources.source import SourceError
from sdv_privpgd.sources.texts import UNPARSED

FACTS = {
    "number": {"sdtype": "numerical"},
    "kind": {"sdtype": "categorical", "range_values": [1, "NA", "a\nb", True]},
    "free": {"sdtype": "categorical"},
    "ill": {"sdtype": "boolean"},
    "day": {"sdtype": "datetime"},
}
NAMES = Dialect(header=True)
CELLS = st.sampled_from(
    ["", "NA", "1", "01", "1.0", " 2", "-3.5", "1e3", "inf", "nan", "1152921504606846977"]
    + ["9" * 400, "word", "True", "false", "a\nb", "a\r\nb", 'say "a"', ", ;", "2020-01-31", "١"]
    + ["1_0"]
)
RECORDS = st.lists(st.tuples(*[CELLS] * len(FACTS)), min_size=1, max_size=9)


@pytest.fixture
def in_parts_of(monkeypatch):
    """Sets the number of rows of a batch. It has no factor in common with those counted at once."""
    return lambda size: monkeypatch.setattr(csv, "_BLOCK", size)


def quoted(record):
    return ",".join('"{}"'.format(cell.replace('"', '""')) for cell in record)


def file_of(path, records):
    path.write_bytes("\n".join([",".join(FACTS), *map(quoted, records)]).encode())
    return path


def cells(paths, facts=FACTS, how=None):
    """All cells of all rows with their types, as words: NaN is no equal of itself."""
    source = CsvSource(paths, facts, how)
    batches = [batch.columns for batch in source.batches(source.names)]
    return {name: [word(cell) for b in batches for cell in b[name]] for name in source.names}


def word(cell):
    if pd.isna(cell):
        return "missing"
    is_number = isinstance(cell, int | float | np.number) and not isinstance(cell, bool | np.bool_)
    # 34 and 34.0 are one number, and to an encoder one cell; no digit of a large one may be lost.
    return ("number", int(cell) if cell == cell // 1 else float(cell)) if is_number else repr(cell)


@given(records=RECORDS, size=st.integers(1, 4))
def test_where_parts_end_changes_no_cell(tmp_path_factory, records, size):
    path = file_of(tmp_path_factory.mktemp("parts") / "table.csv", records)
    whole = cells(path)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(csv, "_BLOCK", size)
        patch.setattr(csv, "_COUNTED", size)
        assert cells(path) == whole
        assert CsvSource(path, FACTS).num_rows() == len(whole["number"]) == len(records)


@given(records=RECORDS)
def test_a_cell_is_what_it_is_alone(tmp_path_factory, records):
    folder = tmp_path_factory.mktemp("cells")
    together = cells(file_of(folder / "table.csv", records))
    alone = [cells(file_of(folder / "one.csv", [record])) for record in records]
    assert together == {name: [each[name][0] for each in alone] for name in FACTS}


def test_whole_numbers_stay_beside_missing_ones_and_files_say_what_means_missing(tmp_path):
    path = tmp_path / "table.csv"
    path.write_text("n\n1152921504606846977\nNA\n?\n0.5\n")
    assert cells(path, {"n": {"sdtype": "numerical"}})["n"] == [
        ("number", 1152921504606846977), "missing", repr(UNPARSED), ("number", 0.5),
    ]  # fmt: skip
    (tmp_path / "table.csv").write_text("age\n34\n-99\nn/a\n-\n")
    facts = {"age": {"sdtype": "numerical"}}
    for words, missing in ((["-99", -1, "-"], [1, 2, 3]), ("-99", [1, 2]), ([], [2])):
        source = open_source(CsvFiles(f"{tmp_path}/*.csv", na=words), facts)
        (batch,) = source.batches(["age"])
        assert np.flatnonzero(batch.columns["age"].isna()).tolist() == missing


TEXT_OF_WORDS = {"sdtype": "categorical"}


@pytest.mark.parametrize(
    ("facts", "na", "missing"),
    [
        (TEXT_OF_WORDS, (), [3, 4]),
        ({"sdtype": "id"}, (), [3, 4]),
        (TEXT_OF_WORDS, "null", [1, 3, 4]),
        (TEXT_OF_WORDS | {"range_values": ["A"]}, (), [0, 1, 3, 4]),
        (TEXT_OF_WORDS | {"range_values": ["A", "NA"]}, (), [1, 3, 4]),
        (TEXT_OF_WORDS | {"groups": {"NA": "Africa"}}, "NA", [1, 3, 4]),
        ({"sdtype": "datetime"}, (), [0, 1, 3, 4]),
        ({"sdtype": "boolean"}, (), [0, 1, 3, 4]),
    ],
)
def test_words_for_missing_are_values_of_text_that_nobody_declared(tmp_path, facts, na, missing):
    (tmp_path / "table.csv").write_text('x\nNA\nnull\nA\n""\n" "\n')
    source = open_source(CsvFiles(tmp_path / "table.csv", na=na), {"x": facts})
    (batch,) = source.batches(["x"])
    assert np.flatnonzero(batch.columns["x"].isna()).tolist() == missing


def test_a_check_says_which_words_are_categories_where_a_table_is_text(tmp_path):
    frame = pd.DataFrame({"x": ["NA", "A"] * 99, "y": ["A", "B"] * 99})
    columns, path = {"x": Categorical(), "y": Categorical(["A", "B"])}, tmp_path / "table.csv"
    frame.to_csv(path, index=False)
    for table, told in ((path, True), ([str(path)], True), (CsvFiles(path), True), (frame, False)):
        notes = check(table, columns, 9.0).to_dict()["warnings"]
        assert any("In 'x' only a blank is missing" in each for each in notes) == told


@pytest.mark.parametrize("ending", ["csv", "csv.gz"])
def test_files_follow_each_other_in_the_order_of_their_names(tmp_path, ending):
    for name in ("b", "a"):
        text = f"number\n{ord(name)}\n".encode()
        written = gzip.compress(text) if ending.endswith("gz") else text
        (tmp_path / f"{name}.{ending}").write_bytes(written)
    facts = {"number": {"sdtype": "numerical"}}
    source = CsvSource(f"{tmp_path}/*.{ending}", facts)
    assert [batch.done for batch in source.batches(["number"])] == [0.5, 1.0]
    assert cells(tmp_path, facts)["number"] == [("number", 97), ("number", 98)]


def test_records_are_counted_as_they_are_read(tmp_path):
    path = tmp_path / "table.csv"
    path.write_text('number,free\n1,"a\nb\n\nc"\n\n2,"x ""\n"" y"\r\n3,z')
    source = CsvSource(path, {}, NAMES)
    assert source.num_rows() == 3
    assert sum(len(b.columns["free"]) for b in source.batches(["free"])) == 3


def test_no_cell_decides_a_dtype(tmp_path):
    path = tmp_path / "table.csv"
    path.write_text("age,ward,came,code\n34,A,2020-01-05,7\n")
    dtypes = {"age": np.dtype("int8"), "ward": pd.CategoricalDtype(), "came": np.dtype("M8[ns]")}
    how = Dialect(header=True, dtypes=dtypes)
    source = CsvSource(path, {}, how)
    (batch,) = source.batches(source.names)
    assert source.dtypes["age"] == batch.columns["age"].dtype == np.dtype("int8")
    assert source.dtypes["ward"].categories.tolist() == []
    assert source.dtypes["came"] == source.dtypes["code"] == np.dtype(object)


def test_files_say_how_they_are_written_and_what_stands_before_decimals(tmp_path):
    (tmp_path / "table.csv").write_text("age;cost\n34;1,5\n", encoding="utf-16")
    files = CsvFiles(f"{tmp_path}/*.csv", sep=";", decimal=",", dtypes={"age": "Int8"})
    facts = {"age": {"sdtype": "numerical"}, "cost": {"sdtype": "numerical"}}
    source = open_source(files, facts)
    (batch,) = source.batches(["age", "cost"])
    assert [cell.tolist() for cell in batch.columns.values()] == [[34], [1.5]]
    assert str(source.dtypes["age"]) == str(batch.columns["age"].dtype) == "Int8"
    (tmp_path / "table.csv").write_text("age;cost\n34;1,5\n")
    facts = {"cost": {"sdtype": "numerical"}}
    with pytest.raises(SourceError, match=r"of 'cost': CsvFiles\(decimal=','\)"):
        open_source(CsvFiles(f"{tmp_path}/*.csv", sep=";"), facts)
    assert open_source(CsvFiles(f"{tmp_path}/*.csv", sep=";", header=True)).num_rows() == 1


# What is refused


def refused(path, facts=FACTS, how=None, count=False):
    def read():
        source = CsvSource(path, facts, how)
        return source.num_rows() if count else [*source.batches(source.names)]

    with pytest.raises(SourceError) as caught:
        read()
    assert traces(caught.value) == []
    assert caught.value.__context__ is None or caught.value.__suppress_context__
    return str(caught.value)


@pytest.mark.parametrize("more", [f",{TEXT}", f",{TEXT},{TEXT}", ",,"])
@pytest.mark.parametrize("place", range(6))
def test_a_record_with_too_many_fields_is_found_wherever_parts_begin(
    tmp_path, in_parts_of, place, more
):
    lines = ["1,x"] * 6
    lines[place] += more
    path = tmp_path / "table.csv"
    path.write_text("\n".join(["number,free", *lines]))
    for size in (1, 2, 3, 5):
        in_parts_of(size)
        for count in (True, False):
            assert "more fields than there are names" in refused(path, {}, NAMES, count=count)


def test_a_separator_at_the_end_of_each_record_is_no_field(tmp_path, in_parts_of):
    path = tmp_path / "table.csv"
    path.write_text("number,free\n" + "1,x,\n" * 5)
    in_parts_of(2)
    assert cells(path, {}, NAMES)["free"] == ["'x'"] * 5


def test_headers_and_first_records_are_not_quoted(tmp_path):
    (tmp_path / "a.csv").write_text("age,ward\n1,x\n")
    for header in (f"age,{TEXT}", f"{TEXT},1,2", "ward,name", "age,age"):
        (tmp_path / "b.csv").write_text(f"{header}\n1,x\n")
        told = refused(f"{tmp_path}/*.csv", {}, NAMES)
        assert f"The header of {tmp_path}/b.csv is not that of {tmp_path}/a.csv" in told
    (tmp_path / "b.csv").write_text(f"1,{TEXT},2\n")
    how = Dialect(header=False)
    assert "number of fields" in refused(f"{tmp_path}/*.csv", {}, how)
    path = tmp_path / "table.csv"
    path.write_text(f"{TEXT},x,y,z,w\n1,2,3,4,5\n")
    assert "lacks the columns ['number', 'kind', 'free', 'ill', 'day']" in refused(path)
    path.write_text(f"M,{TEXT}\n1,2\n")
    assert "Nobody says whether the first record holds names" in refused(path, {})
    path.write_text(f",{TEXT}\n1,2\n")
    assert "its fields 1 are empty" in refused(path, {}, NAMES)


def test_names_that_are_empty_or_repeated_are_asked_for(tmp_path):
    path = tmp_path / "table.csv"
    path.write_text("a,b,a,\n1,2,3,4\n")
    said = refused(path, {}, NAMES)
    assert "its fields 3, 4 are empty or repeated" in said
    assert "Give a name for each column with CsvFiles(names=...)" in said
    assert "CsvFiles(skip_rows=1)" in said
    assert CsvSource(path, {}, Dialect(header=True, names=tuple("abcd"))).names == [*"abcd"]


def test_other_kinds_of_files_may_not_be_there_and_other_columns_may(tmp_path):
    (tmp_path / "table.sav").touch()
    assert "tables end in .csv" in refused(tmp_path)
    path = tmp_path / "table.csv"
    path.write_text("other,number\nx,1\n")
    assert CsvSource(path, {"number": FACTS["number"]}).names == ["other", "number"]


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (f'number,free\n1,"{TEXT}\n'.encode(), "a quote is open"),
        (b"", "is empty"),
        (f"number;free\n1;{TEXT}\n".encode(), "CsvFiles(sep=...)"),
    ],
)
def test_what_cannot_be_read_is_told_without_a_cell(tmp_path, text, told):
    (tmp_path / "table.csv").write_bytes(text)
    assert told in refused(tmp_path / "table.csv", {}, NAMES)


@pytest.mark.parametrize("cell", ["x", "300", "1.5", ""])
@pytest.mark.parametrize("dtype", ["int8", "Int8", "float32", "bool"])
def test_no_cell_decides_whether_a_dtype_is_refused_and_none_is_changed(tmp_path, cell, dtype):
    path = tmp_path / "table.csv"
    path.write_text(f"number,free\n1,\n{cell},\n")
    dtypes = {"number": pd.api.types.pandas_dtype(dtype)}
    of_csv = CsvSource(path, {"number": FACTS["number"]}, Dialect(header=True, dtypes=dtypes))
    frame = pd.DataFrame({"number": pd.array(["1", cell or None], "string[pyarrow]")})
    for source in (of_csv, retyped(open_source(frame, {}), dtypes)):
        (batch,) = source.batches(["number"])
        assert str(source.dtypes["number"]) == dtype
        one, other = batch.columns["number"].tolist()
        assert one == 1
        assert cell in ("x", "") or float(other) == float(cell)


@pytest.mark.parametrize(
    "dtype", ["bool", "float64", "int64", "time64[us][pyarrow]", "binary[pyarrow]", "period[D]"]
)
@pytest.mark.parametrize("sdtype", ["numerical", "categorical", "boolean"])
def test_a_cell_of_a_named_dtype_is_what_it_is_alone(tmp_path, sdtype, dtype):
    dtypes = {"number": pd.api.types.pandas_dtype(dtype)}
    how, path = Dialect(header=True, dtypes=dtypes), tmp_path / "table.csv"

    def meant(*texts):
        path.write_text("number,free\n" + "".join(f"{text},\n" for text in texts))
        (batch,) = CsvSource(path, {"number": {"sdtype": sdtype}}, how).batches(["number"])
        found = map(scalars.canonical, scalars.cells(batch.columns["number"]))
        return [(type(value), value) for value in found]

    for other in ("1", "word", ""):
        for text in ("", "inf", "1e400", "300", "0", "A", "2020-01-31"):
            assert meant(text, other)[:1] == meant(text)


def test_dtypes_of_no_column_and_files_that_change_are_told_without_a_cell(tmp_path):
    path = tmp_path / "table.csv"
    path.write_text(f"number\n1\n{TEXT}\n")
    assert "does not have" in refused(
        path, {}, Dialect(header=True, dtypes={"age": np.dtype("int8")})
    )
    path = file_of(tmp_path / "table.csv", [["1"] * 5] * 3)
    source = CsvSource(path, FACTS)
    assert source.num_rows() == 3
    file_of(path, [["1"] * 5] * 4)
    with pytest.raises(SourceError, match="changed while it was read"):
        list(source.batches(["number"]))


TWO_COLUMNS = {"age": {"sdtype": "numerical"}, "ward": {"sdtype": "categorical"}}
NAMED = Dialect(names=("age", "ward"))
NOTHING = {"no byte": b"", "a line": b"\n", "a mark": b"\xef\xbb\xbf", "spaces": b"  \n"}


def folder_of(tmp_path, empty, *, is_first, header="age,ward\n", ending=""):
    """A folder of two files, of which one is as given."""
    names = ("a", "b") if is_first else ("b", "a")
    for name, content in zip(names, (empty, f"{header}34,A\n71,B\n".encode()), strict=True):
        written = gzip.compress(content) if ending else content
        (tmp_path / f"{name}.csv{ending}").write_bytes(written)
    return sorted(tmp_path.glob("*.csv*")), tmp_path / f"{names[0]}.csv{ending}"


def rows_of(files, how):
    source = CsvSource(files, TWO_COLUMNS, how)
    batches = [batch.columns for batch in source.batches(source.names)]
    assert source.num_rows() == sum(len(each["age"]) for each in batches)
    return [age for each in batches for age in each["age"]]


@pytest.mark.parametrize("ending", ["", ".gz"])
@pytest.mark.parametrize("header", [b"age,ward\n", b"age,ward"])
@pytest.mark.parametrize("is_first", [True, False])
def test_a_header_alone_says_that_there_are_no_rows(tmp_path, header, is_first, ending):
    files, _ = folder_of(tmp_path, header, is_first=is_first, ending=ending)
    assert rows_of(files, Dialect()) == [34, 71]
    for facts in (TWO_COLUMNS, None):
        assert read_table(files, Dialect(header=True), facts)["ward"].tolist() == ["A", "B"]


@pytest.mark.parametrize("empty", NOTHING)
@pytest.mark.parametrize("is_first", [True, False])
def test_a_file_that_has_lost_its_header_is_refused_by_name(tmp_path, empty, is_first):
    files, path = folder_of(tmp_path, NOTHING[empty], is_first=is_first)
    told = f"{path} is empty, without even a header: write it again, or leave it out"
    with pytest.raises(SourceError) as caught:
        CsvSource(files, TWO_COLUMNS)
    assert told in str(caught.value)
    for facts in (TWO_COLUMNS, None):
        with pytest.raises(CommandError) as said:
            read_table(files, Dialect(header=True), facts)
        assert told in str(said.value)


@pytest.mark.parametrize("empty", NOTHING)
@pytest.mark.parametrize("is_first", [True, False])
@pytest.mark.parametrize("how", [NAMED, Dialect(header=False)], ids=["named", "by the facts"])
def test_where_files_have_no_header_an_empty_one_has_no_rows(tmp_path, empty, is_first, how):
    """It is what is left of a file with one row, once that row is gone."""
    files, _ = folder_of(tmp_path, NOTHING[empty], is_first=is_first, header="")
    assert rows_of(files, how) == [34, 71]
    for facts in (TWO_COLUMNS, None):
        assert read_table(files, how, facts).iloc[:, 1].tolist() == ["A", "B"]


def test_files_without_header_may_all_be_empty_if_somebody_says_the_names(tmp_path):
    (tmp_path / "a.csv").write_bytes(b"")
    for how in (NAMED, Dialect(header=False)):
        assert rows_of([tmp_path / "a.csv"], how) == []
    with pytest.raises(SourceError, match="is empty"):
        CsvSource([tmp_path / "a.csv"], {}, Dialect(header=False))


def test_a_fit_of_a_folder_reads_past_an_empty_file_or_refuses_it(tmp_path):
    pd.DataFrame({"age": range(500)}).to_csv(tmp_path / "a.csv", index=False)
    columns = {"age": Numerical(0, 499, decimal_places=0)}
    (tmp_path / "b.csv").write_text("age\n")
    assert fit_table(CsvFiles(tmp_path), columns, 1.0, method="privpgd+pgm").num_rows == 500
    (tmp_path / "b.csv").write_bytes(b"")
    with pytest.raises(SourceError, match=r"b\.csv is empty"):
        fit_table(CsvFiles(tmp_path), columns, 1.0, method="privpgd+pgm")
