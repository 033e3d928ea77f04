"""What a library says when it cannot read rows may quote a cell: of it the kind alone is told."""

import ast
import traceback
from pathlib import Path

import pandas as pd
import pyarrow as pa
import pytest
from canaries import TEXT, traces

import sdv_privpgd
from sdv_privpgd.sources import arrow, spark, texts
from sdv_privpgd.sources.arrow import ArrowSource
from sdv_privpgd.sources.csv import CsvSource, parsing
from sdv_privpgd.sources.source import SourceError
from sdv_privpgd.sources.withheld import withheld

PACKAGE = Path(sdv_privpgd.__file__).parent
FILES = [*(PACKAGE / "sources").glob("*.py"), *(PACKAGE / "privacy").glob("*.py")]
PUBLIC = {"type", "isinstance", "ended_with"}
"""What may be called on an error that was caught. The last one looks for a kind, a single word."""
GUARDS = [lambda: withheld("x"), lambda: parsing(Path("x")), spark._silenced]
ERRORS = [
    ValueError(TEXT),
    KeyError(TEXT),
    OSError(f"cannot read {TEXT}"),
    OSError(5, "Input/output error", TEXT),
    UnicodeDecodeError("utf-8", TEXT.encode(), 0, 1, TEXT),
    pd.errors.ParserError(TEXT),
    pd.errors.ParserWarning(TEXT),
    pd.errors.EmptyDataError(TEXT),
    pa.ArrowInvalid(TEXT),
    type("OfALibrary", (Exception,), {})(TEXT),
]


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
            in_order=fails,
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
    assert traces(told_of(lambda: texts.convert(column, dtype))) == []


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


def test_of_an_error_that_was_caught_its_kind_alone_is_used():
    """``sealed`` clears an error's frames and raises it again, and looks at no word of it."""
    found = {
        path.name
        for path, each in handlers()
        for line in quotes(each)
        if "_clear(error, before)" not in path.read_text().splitlines()[line - 1]
    }
    assert found == set()


def test_an_error_that_follows_another_one_hides_it():
    """Else a log has both. The one that does not is about no row: workers that cannot begin."""
    shown = [
        path.name
        for path, handler in handlers()
        for node in ast.walk(handler)
        if isinstance(node, ast.Raise)
        and node.exc is not None
        and not (isinstance(node.cause, ast.Constant) and node.cause.value is None)
    ]
    assert shown == ["spark.py"]
