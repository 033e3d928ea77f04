"""Lines above the names of columns, and what is withheld of rows that cannot be read."""

import ast
import bz2
import gzip
import io
import traceback
import zipfile
from dataclasses import replace
from itertools import product
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from canaries import TEXT, traces
from commands import run

import sdv_privpgd
from sdv_privpgd import Categorical, Datetime, FittedTable, Numerical, fit_table
from sdv_privpgd.cli.input_files import convert, open_table, read_table
from sdv_privpgd.cli.messages import CommandError
from sdv_privpgd.columns.dialect import Dialect
from sdv_privpgd.columns.scalars import quiet
from sdv_privpgd.sources import arrow, csv, spark
from sdv_privpgd.sources.arrow import ArrowSource
from sdv_privpgd.sources.csv import CsvFiles, CsvSource, parsing
from sdv_privpgd.sources.locate import open_source
from sdv_privpgd.sources.source import SourceError

FACTS = {"age": {"sdtype": "numerical"}, "ward": {"sdtype": "categorical"}}
TITLE, HEADER, ROWS = "Report of March\n", "age,ward\n", [f"{n},w{n % 3}\n" for n in range(25)]
AGES = list(range(25))


def zipped(content):
    into = io.BytesIO()
    with zipfile.ZipFile(into, "w") as archive:
        archive.writestr("table.csv", content)
    return into.getvalue()


PACKED = {"": bytes, ".gz": gzip.compress, ".bz2": bz2.compress, ".zip": zipped}


def ages(source):
    return [age for batch in source.batches(["age"]) for age in batch.columns["age"]]


def written(folder, text, name="table.csv"):
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return path


ABOVE = "Report\n", "Report;;;\n\n", '"Report,\nof March"\n', "\n\n\n"
BELOW = "", "Sum,25\n", "Sum;;\nMade in March", "Sum,,,,\n\n\n", "\n\nSum\n"


@pytest.mark.parametrize("packed", PACKED)
@pytest.mark.parametrize("block", [1, 2, 7, 25, 1_000])
@pytest.mark.parametrize(
    ("above", "below"), [*product(ABOVE, BELOW[:1]), *product([TITLE], BELOW[1:])]
)
def test_rows_are_the_same_whatever_the_batches_and_lines_above_and_below(
    tmp_path, monkeypatch, packed, block, above, below
):
    monkeypatch.setattr(csv, "_BLOCK", block)
    monkeypatch.setattr(csv, "_COUNTED", block)
    path = tmp_path / f"table.csv{packed}"
    path.write_bytes(PACKED[packed]((above + HEADER + "".join(ROWS) + below).encode()))
    lines = above.count("\n") - above.count(",\n")  # a line break in quotes ends no line
    how = Dialect(skip_rows=lines, skip_footer=len(list(filter(None, below.split("\n")))))
    source = CsvSource(path, FACTS, how)
    assert source.names == ["age", "ward"]
    assert source.num_rows() == 25
    assert ages(source) == AGES
    if block == 1:
        for facts in (FACTS, None):
            read = read_table(path, replace(how, header=True), facts)
            assert read["age"].astype(int).tolist() == AGES


def test_parts_and_rows_without_a_header_have_lines_above(tmp_path):
    for name, rows in (("a.csv", ROWS[:9]), ("b.csv", ROWS[9:])):
        written(tmp_path, f"Part {name}\n{HEADER}{''.join(rows)}", name)
    source = open_source(CsvFiles(tmp_path, skip_rows=1), FACTS)
    assert source.num_rows() == 25
    assert ages(source) == AGES
    path = written(tmp_path, TITLE + "".join(ROWS))
    how = Dialect(skip_rows=1, names=("age", "ward"))
    assert ages(CsvSource(path, FACTS, how)) == AGES
    none = written(tmp_path, TITLE, "none.csv")  # a table without rows
    assert CsvSource(none, FACTS, how).num_rows() == 0


@pytest.mark.parametrize("facts", [FACTS, None])
def test_a_sheet_has_lines_above_its_header(tmp_path, facts):
    path = tmp_path / "table.xlsx"
    table = pd.DataFrame({"age": AGES, "ward": ["A"] * 25})
    with pd.ExcelWriter(path) as book:
        table.to_excel(book, index=False, startrow=2)
        next(iter(book.sheets.values())).cell(1, 1, "Report of March")
    read = read_table(path, Dialect(skip_rows=2, header=True), facts)
    assert list(read) == ["age", "ward"]
    assert read["age"].tolist() == AGES
    with pytest.raises(CommandError, match="--skip-rows 1, or with as many"):
        read_table(path, Dialect(header=True), facts)
    with pytest.raises(CommandError, match="no lines below"):
        read_table(path, Dialect(skip_rows=28, header=True), facts)


@pytest.mark.parametrize(
    ("title", "sep"),
    [("Report of March", ","), ("Report of March;", ";"), ('"Report of March"', ",")],
)
@pytest.mark.parametrize("facts", [FACTS, None])
def test_a_title_is_refused_with_the_way_out(tmp_path, title, sep, facts):
    text = f"{title}\n{HEADER}{''.join(ROWS)}".replace(",", sep)
    path = written(tmp_path, text)
    for read in (open_table, read_table) if facts else (read_table,):
        with pytest.raises(CommandError, match="--skip-rows") as caught:
            read([path], Dialect(sep=sep, decimal=".", header=True), facts)
        assert "March" not in str(caught.value)


def test_a_padded_title_is_told_by_its_record_and_parquet_has_none(tmp_path):
    messages = set()
    for rows in (ROWS, ROWS[:1], []):
        path = written(tmp_path, f"Report of March,\n{HEADER}{''.join(rows)}")
        with pytest.raises(SourceError) as caught:
            CsvSource(path, FACTS)
        messages.add(str(caught.value))
    assert len(messages) == 1
    path = tmp_path / "table.parquet"
    pd.DataFrame({"age": AGES}).to_parquet(path)
    with pytest.raises(CommandError, match="leave out --skip-rows"):
        read_table(path, Dialect(skip_rows=1), None)


@pytest.mark.parametrize("lines", [-1, 1.5, "1", True, None])
@pytest.mark.parametrize(
    ("name", "what"), [("skip_rows", "title"), ("skip_footer", "line of sums")]
)
def test_lines_are_a_number(lines, name, what):
    with pytest.raises(SourceError, match=f"{name}.*must be a number of lines.* 1 for a {what}"):
        Dialect(**{name: lines})


def test_the_model_keeps_the_lines_for_its_table(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    path = written(tmp_path, TITLE + HEADER + "".join(ROWS * 20))
    told = ("--types", "dtypes", "--dtype", "age=int64", "--dtype", "ward=str", "--epsilon", "5")
    more = ("--method", "independent", "--model", "model.zip", "--out", "out.csv")
    assert run("synthesize", path, "--skip-rows", "1", *told, *more) == 0, capsys.readouterr().err
    assert FittedTable.load("model.zip").notes["dialect"] == {"skip_rows": 1}
    assert list(pd.read_csv("out.csv")) == ["age", "ward"]  # rows have no title
    assert run("evaluate", "model.zip", path, "--out", "page.html") == 0, capsys.readouterr().err
    clean = written(tmp_path, HEADER + "".join(ROWS), "clean.csv")
    assert run("evaluate", "model.zip", clean, "--out", "b.html") == 1
    assert run("evaluate", "model.zip", clean, "--skip-rows", "0", "--out", "b.html") == 0
    whole = tmp_path / "table.parquet"
    pd.read_csv(clean).to_parquet(whole)
    assert run("evaluate", "model.zip", whole, "--out", "c.html") == 0, capsys.readouterr().err
    with pytest.raises(SystemExit):
        run("plan", path, "--skip-rows", "x", "--epsilon", "1")


@pytest.mark.parametrize("rows", [0, 1, 2, 3])
def test_a_header_stays_however_few_rows_there_are(tmp_path, rows):
    path = written(tmp_path, HEADER + "".join(ROWS[:rows]))
    source = CsvSource(path, FACTS, Dialect(skip_footer=2))
    assert source.names == ["age", "ward"]
    assert ages(source) == AGES[: max(rows - 2, 0)]
    bare = CsvSource(
        written(tmp_path, "".join(ROWS[:rows]), "bare.csv"),
        FACTS,
        Dialect(skip_footer=2, header=False),
    )
    assert bare.num_rows() == max(rows - 2, 0)


def test_the_command_leaves_lines_out_below_rows_of_text_and_of_sheets(tmp_path, capsys):
    path, sheet = written(tmp_path, HEADER + "".join(ROWS) + "Sum,1,2\n"), tmp_path / "table.xlsx"
    frame = pd.DataFrame({"age": [*AGES, "Sum"], "ward": ["w"] * 25 + [None]})
    frame.to_excel(sheet, index=False)
    how = Dialect(header=True, skip_footer=1)
    for place in (path, sheet):
        assert read_table(place, how, FACTS)["age"].tolist() == AGES
        assert len(read_table(place, how, None)) == 25
    asked = ("--header", "--epsilon", 1, "--skip-footer", 1, "--dtype", "age=number")
    assert run("plan", path, *asked) == 0
    assert "Plan for 25 rows" in capsys.readouterr().out
    frame.astype(str).to_parquet(tmp_path / "table.parquet")
    assert run("plan", tmp_path / "table.parquet", *asked[1:]) == 1
    assert "leave out --skip-rows and --skip-footer" in capsys.readouterr().err


PACKAGE = Path(sdv_privpgd.__file__).parent
FILES = [*(PACKAGE / "sources").glob("*.py"), *(PACKAGE / "privacy").glob("*.py"),
         PACKAGE / "columns" / "scalars.py"]  # fmt: skip
PUBLIC = {"type", "isinstance", "ended_with"}
"""What may be called on an error that was caught. The last one looks for a kind, a single word."""
GUARDS = [lambda: quiet("x"), lambda: parsing(Path("x")), spark._silenced]
ERRORS = [
    ValueError(TEXT), KeyError(TEXT), OSError(f"cannot read {TEXT}"),
    OSError(5, "Input/output error", TEXT), UnicodeDecodeError("utf-8", TEXT.encode(), 0, 1, TEXT),
    pd.errors.ParserError(TEXT), pd.errors.ParserWarning(TEXT), pd.errors.EmptyDataError(TEXT),
    pa.ArrowInvalid(TEXT), type("OfALibrary", (Exception,), {})(TEXT),
]  # fmt: skip


def raising(error):
    def raises(*_, **__):
        raise error

    return raises


def told_of(read):
    """What is shown of the error that a reading ends with, where the library's own is hidden."""
    with pytest.raises(SourceError) as caught:
        read()
    assert caught.value.__suppress_context__
    assert caught.value.__cause__ is None
    return "".join(traceback.format_exception(caught.value))


@pytest.mark.parametrize("error", ERRORS, ids=lambda error: type(error).__name__)
@pytest.mark.parametrize("guard", GUARDS)
def test_no_guard_lets_a_message_pass(guard, error):
    def read():
        with guard():
            raise error

    assert traces(told_of(read)) == []


@pytest.mark.parametrize("declared", [Categorical(["a"]), Numerical(0, 5), Datetime()])
def test_text_in_a_frame_that_is_no_text_is_not_quoted(declared):
    text = TEXT.encode() + b"\xff"
    ends = np.array([0, len(text)], dtype=np.int32)
    broken = pa.Array.from_buffers(pa.string(), 1, [None, pa.py_buffer(ends), pa.py_buffer(text)])
    frame = pd.DataFrame({"x": pd.arrays.ArrowExtensionArray(broken)})
    assert traces(told_of(lambda: fit_table(frame, {"x": declared}, 1.0, allow_lost=["x"]))) == []


@pytest.mark.parametrize("error", [ERRORS[0], ERRORS[2]], ids=["ValueError", "OSError"])
class TestReaders:
    """Each of a reader's steps is behind a guard."""

    @pytest.mark.parametrize("step", ["scan", "batch", "cells", "number", "order"])
    def test_of_arrow_s_batches(self, step, error, monkeypatch):
        table = pa.table({"age": [34, 71]})
        fails = raising(error)

        def scanned(names):
            yield table.select(names).to_batches()[0]
            fails()

        source = ArrowSource(
            table.schema,
            {"scan": fails, "batch": scanned}.get(step, lambda names: table.to_batches()),
            fails if step == "number" else lambda: 2,
            "The table",
            sorts=fails,
        )
        if step == "cells":
            monkeypatch.setattr(arrow, "series_of", fails)
        if step == "order":
            told = told_of(lambda: source.ordered(["age"]))
        else:
            told = told_of(lambda: list(source.batches(["age"])))
        assert traces(told) == []

    def test_of_text(self, error, tmp_path, monkeypatch):
        (tmp_path / "table.csv").write_text("age\n34\n")
        source = CsvSource(tmp_path / "table.csv", {"age": {"sdtype": "numerical"}})
        _ = source.num_rows()
        monkeypatch.setattr(pd, "read_csv", raising(error))
        assert traces(told_of(lambda: list(source.batches(["age"])))) == []


@pytest.mark.parametrize("error", [ValueError(TEXT), TypeError(TEXT)])
def test_a_dtype_that_does_not_fit_is_told_without_a_cell(error, monkeypatch):
    monkeypatch.setattr(pd.Series, "astype", raising(error))
    column, dtype = pd.Series([TEXT], dtype=object), pd.api.types.pandas_dtype("int8")
    assert traces(told_of(lambda: convert(column, dtype))) == []


def handlers():
    for path in FILES:
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ExceptHandler):
                yield path, node


def quotes(handler):
    """The lines in which more is made of a caught error than its kind and its system's reason."""
    allowed = set()
    for node in ast.walk(handler):
        if isinstance(node, ast.Attribute) and node.attr == "strerror":
            allowed.add(node.value)
        elif isinstance(node, ast.Call) and getattr(node.func, "id", "") in PUBLIC:
            allowed.update(node.args)
        elif isinstance(node, ast.Raise) and node.cause is not None:
            allowed.add(node.cause)
    names = [n for n in ast.walk(handler) if isinstance(n, ast.Name) and n.id == handler.name]
    return [each.lineno for each in names if each not in allowed]


def test_of_errors_their_kind_alone_is_used_and_one_that_follows_hides_it():
    found = {
        path.name
        for path, each in handlers()
        for line in quotes(each)
        if "_clear(error, before)" not in path.read_text().splitlines()[line - 1]
    }
    assert found == set()
    shown = [
        path.name
        for path, handler in handlers()
        for node in ast.walk(handler)
        if isinstance(node, ast.Raise)
        and node.exc is not None
        and not (isinstance(node.cause, ast.Constant) and node.cause.value is None)
    ]
    assert shown == ["spark.py"]
