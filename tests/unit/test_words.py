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
        and path.name != "old_files.py"
        and not (word == "ColumnTransformer" and path.parent.name == "plugin")
    ]
    assert not found, RETIRED[word]


def test_at_most_eight_modules_stand_loose():
    loose = sorted(path.name for path in ROOT.glob("*.py") if path.name != "__main__.py")
    assert len(loose) <= 8, loose


def test_every_package_says_what_it_is_for():
    for path in ROOT.rglob("__init__.py"):
        text = path.read_text()
        assert text.startswith('"""'), path
        assert len(text) > 60, path
