"""What an auditor is told to read is all of the core, and as long as it is said to be."""

import ast
import io
import re
import tokenize
from pathlib import Path

import sdv_privpgd
from sdv_privpgd import privacy

PACKAGE = Path(sdv_privpgd.__file__).parent
LISTED = re.findall(r"^ *``([\w/.]+)`` +([\d,]+) +\S", privacy.__doc__ or "", re.MULTILINE)
FIRST_OTHER = next(each for each in LISTED if each[0] == "sources/opening.py")
NOTHING_PRIVATE = {"__init__.py", "ledger_file.py", "opacus.py"}
SILENT = {tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT}


def lines_of_code(path):
    """The lines of a file that are neither empty nor a comment or a docstring."""
    text = path.read_text()
    docs = set()
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            docs.update(range(node.lineno, (node.end_lineno or node.lineno) + 1))
    held = set()
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type not in SILENT and token.type != tokenize.ENDMARKER:
            held.update(range(token.start[0], token.end[0] + 1))
    return len(held - docs)


def number(text):
    return int(text.replace(",", ""))


def test_each_file_has_as_many_lines_as_is_said():
    said = {name: number(lines) for name, lines in LISTED}
    assert said == {name: lines_of_code(PACKAGE / name) for name in said}


def test_all_of_the_core_is_listed():
    inside = {name.removeprefix("privacy/") for name, _ in LISTED if name.startswith("privacy/")}
    files = {path.name for path in (PACKAGE / "privacy").glob("*.py")}
    assert inside == files - NOTHING_PRIVATE


def test_all_sources_are_listed():
    listed = {name.removeprefix("sources/") for name, _ in LISTED if name.startswith("sources/")}
    assert listed == {path.name for path in (PACKAGE / "sources").glob("*.py")} - {"__init__.py"}


def test_the_whole_is_an_evening():
    doc = privacy.__doc__ or ""
    (said,), (others,) = (
        re.findall(pattern, doc) for pattern in (r"These are ([\d,]+) lines", r"of these ([\d,]+)")
    )
    lines = [number(each) for _, each in LISTED]
    core = sum(number(each) for name, each in LISTED[: LISTED.index(FIRST_OTHER)])
    assert (number(said), number(others)) == (core, sum(lines) - core)
    assert core <= 2_908


def test_lines_of_code_are_what_is_run(tmp_path):
    path = tmp_path / "made_up.py"
    path.write_text('"""Two\nlines."""\n\n# a comment\nx = (\n    1,\n)\n"""Of x."""\n')
    assert lines_of_code(path) == 3
