"""One word for one idea: names that were given up do not come back."""

import re
from pathlib import Path

import pytest

import sdv_privpgd

ROOT = Path(sdv_privpgd.__file__).parent
RETIRED = {
    "Zeros": "Possible: True where a cell may hold rows",
    "zeros_of": "possible_of",
    "KeyColumns": "ValueCounts",
    "recode": "a curator of its own for each table of codes",
    "ColumnTransformer": "ColumnEncoder, but for RDT's own in plugin/",
    "_lifecycle": "plugin/base.py and fitting/",
}


@pytest.mark.parametrize("word", RETIRED)
def test_a_retired_word_stays_away(word):
    found = [
        str(path.relative_to(ROOT))
        for path in ROOT.rglob("*.py")
        if re.search(rf"\b{word}\b", path.read_text())
        and not (word == "ColumnTransformer" and path.parent.name == "plugin")
    ]
    assert not found, RETIRED[word]


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
