"""One word for one idea: names that were given up do not come back."""

import ast
import functools
import re
from collections import Counter
from pathlib import Path

import pytest

import sdv_privpgd

ROOT = Path(sdv_privpgd.__file__).parent
RETIRED = {
    "Zeros": "Possible: True where a cell may hold rows",
    "zeros_of": "possible_of",
    "KeyColumns": "ValueCounts",
    "recode": "a curator of its own for each table of codes",
    "ColumnTransformer": "encode and decoder_for",
    "_lifecycle": "plugin/base.py and fitting/",
}


@pytest.mark.parametrize("word", RETIRED)
def test_a_retired_word_stays_away(word):
    found = [
        str(path.relative_to(ROOT))
        for path in ROOT.rglob("*.py")
        if re.search(rf"\b{word}\b", path.read_text())
    ]
    assert not found, RETIRED[word]


RENAMED = {
    "Books Account WatchedBooks Purchase saying keeping documents": "ledger, session, messages",
    "told asked asking opening": "options, parse_options, a question",
    "Wanted Part wish Wish": "condition",
    "Fenced fenced outside unseen unread unmet": "out_of_range, undetected, unparsed",
    "Look FirstLook first_look surely_held doubts": "queries, support, diagnostics",
    "refine finish half_spaces holder holders": "add_budget, resume, local_search, site",
}
"""Names of modules, classes, functions and fields that were given up for the field's."""
KEPT = {("report/page.py", "Part"), ("report/evaluation.py", "outside")}
FIELDS = {"accounting", "counting", "denoising", "encoding", "learning", "recoding"}
FIELDS |= {"thresholding", "training"}
"""Modules that are called as the field calls what they do."""


@functools.cache
def names():
    """The names of modules, classes, functions and fields, each with its module's path."""
    return [
        (path.relative_to(ROOT).as_posix(), name)
        for path in ROOT.rglob("*.py")
        for name in names_of(path)
    ]


def names_of(path):
    yield path.stem
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ClassDef | ast.FunctionDef):
            yield node.name.removeprefix("_")
        if isinstance(node, ast.ClassDef):
            own = (each for each in node.body if isinstance(each, ast.AnnAssign))
            yield from (each.target.id for each in own if isinstance(each.target, ast.Name))


@pytest.mark.parametrize("words", RENAMED)
def test_a_name_that_was_given_up_stays_away(words):
    found = {(path, name) for path, name in names() if name in words.split()}
    assert not found - KEPT, RENAMED[words]


def test_no_class_has_the_name_of_another_and_no_module_that_of_an_act():
    classes = Counter(
        node.name
        for path in ROOT.rglob("*.py")
        for node in ast.parse(path.read_text()).body
        if isinstance(node, ast.ClassDef)
    )
    assert [name for name, number in classes.items() if number > 1] == []
    acts = {path.stem for path in ROOT.rglob("*.py") if path.stem.endswith(("ing", "ed"))}
    assert acts <= FIELDS


PROSE = {
    r"a (row|column|cell) each|one a row|a cell a row": "for each row",
    r"fore(tell|told|see|seen|cast)\w*": "predict, plan, expected",
    r"loud\w*": "large noise",
    r"holders?": "site",
    r"outlook|books": "plan, ledger",
}
"""What README and the guide, outside of their code, say in other words."""


@pytest.mark.parametrize("words", PROSE)
def test_readme_and_the_guide_use_the_words_of_the_field(words):
    pages = [ROOT.parent / "README.md", *(ROOT.parent / "tutorials" / "guide").glob("*.md")]
    assert len(pages) > 10
    found = [
        (path.name, match[0])
        for path in pages
        for match in re.finditer(
            rf"\b({words})\b", re.sub(r"```.*?```|`[^`]*`", "", path.read_text(), flags=re.DOTALL)
        )
    ]
    assert not found, PROSE[words]


def test_few_modules_stand_loose_and_every_package_says_what_it_is_for():
    loose = sorted(path.name for path in ROOT.glob("*.py") if path.name != "__main__.py")
    assert len(loose) <= 10, loose
    for path in ROOT.rglob("__init__.py"):
        text = path.read_text()
        assert text.startswith('"""'), path
        assert len(text) > 60, path


def test_what_the_docstring_of_a_package_names_is_there():
    files = {path: path.read_text() for path in ROOT.rglob("*.py")}
    there = {path.stem for path in files} | {path.parent.name for path in files}
    there |= {name for path in files for name in names_of(path)}
    for path in (path for path in files if path.name == "__init__.py"):
        named = set(
            re.findall(r"``([a-z]\w+)(?:\.\w+)?``", ast.get_docstring(ast.parse(files[path])))
        )
        assert named <= there | {"sdmetrics"}, path
