"""What an auditor is told to read is all of the core, and as long as it is said to be."""

import re
from pathlib import Path

from house import lines_of_code

import sdv_privpgd
from sdv_privpgd import privacy

PACKAGE = Path(sdv_privpgd.__file__).parent
LISTED = re.findall(r"^ *``([\w/.]+)`` +([\d,]+) +\S", privacy.__doc__ or "", re.MULTILINE)
FIRST_OTHER = next(each for each in LISTED if each[0] == "sources/locate.py")
NOTHING_PRIVATE = {"__init__.py", "ledger_file.py"}


def number(text):
    return int(text.replace(",", ""))


def test_each_file_has_as_many_lines_as_is_said():
    said = {name: number(lines) for name, lines in LISTED}
    assert said == {name: lines_of_code((PACKAGE / name).read_text()) for name in said}


def test_all_of_the_core_and_its_sources_is_listed():
    inside = {name.removeprefix("privacy/") for name, _ in LISTED if name.startswith("privacy/")}
    files = {path.name for path in (PACKAGE / "privacy").glob("*.py")}
    assert inside == files - NOTHING_PRIVATE
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
    assert core <= 2_400
