"""Files of versions before this one are refused by a message that names the version to install."""

import pickle
import sys
from types import ModuleType

import pytest
from sdv.errors import VersionError
from sdv.utils import load_synthesizer

import sdv_privpgd.synthesizer  # noqa: F401  (as every file of a synthesizer has it imported)
from sdv_privpgd.columns.facts import CategoryFacts, DateFacts, NumberFacts
from sdv_privpgd.fitting.description import Description

DAY = 86_400 * 10**9


class Schema:
    """Stands for a class whose module is gone."""


def test_a_file_whose_parts_had_other_names_is_refused(tmp_path, monkeypatch):
    gone = ModuleType("sdv_privpgd.schema")
    monkeypatch.setattr(Schema, "__module__", "sdv_privpgd.schema")
    gone.Schema = Schema
    monkeypatch.setitem(sys.modules, "sdv_privpgd.schema", gone)
    (tmp_path / "old.pkl").write_bytes(pickle.dumps(Schema()))
    monkeypatch.delitem(sys.modules, "sdv_privpgd.schema")
    with pytest.raises(VersionError, match=r"install sdv-privpgd<0\.2"):
        load_synthesizer(tmp_path / "old.pkl")


def test_a_module_that_never_was_is_not_found():
    with pytest.raises(ModuleNotFoundError, match="never_was"):
        __import__("sdv_privpgd.never_was")


FOUND = {
    "age": (
        {
            "decimal_places": 0, "range_min": 3, "range_max": 64, "range_is_nullable": False,
            "cut_points": [10.0, 40.0], "frequencies": [1.5, 2.0, 0.0],
        },
        NumberFacts(
            low=3, high=64, decimal_places=0, nullable=False, cuts=(10.0, 40.0),
            frequencies=(1.5, 2.0, 0.0),
        ),
    ),
    "born": (
        {
            "datetime_format": "%d.%m.%Y", "range_min": "02.01.1970", "range_max": "05.01.1970",
            "cut_points": ["03.01.1970"],
        },
        DateFacts(
            low=DAY, high=4 * DAY, datetime_format="%d.%m.%Y", cuts=(2 * DAY,)
        ),
    ),
    "seen": (
        {
            "datetime_format": None, "range_min": "1970-01-02 00:00:00+00:00",
            "range_max": "1970-01-03 00:00:01+00:00", "cut_points": [],
        },
        DateFacts(low=DAY, high=2 * DAY + 10**9, aware=True, cuts=()),
    ),
    "ward": (
        {"range_values": ["A", "B"], "other_value": "other"},
        CategoryFacts(values=("A", "B"), other="other"),
    ),
    "grade": (
        {"frequencies": [float(code) for code in range(300)]},
        CategoryFacts(is_ordered=True, frequencies=tuple(map(float, range(300)))),
    ),
}  # fmt: skip
"""What files of the first state versions hold of discovered columns, and what it means."""


def test_what_was_found_is_read_from_the_words_of_older_files():
    description = Description(
        columns={
            "age": {"sdtype": "numerical"},
            "born": {"sdtype": "datetime", "datetime_format": "%d.%m.%Y"},
            "seen": {"sdtype": "datetime", "datetime_format": "%H:%M"},
            "ward": {"sdtype": "categorical"},
            "grade": {"sdtype": "ordinal"},
        },
        public_domain={"grade": {"range_values": list(range(300))}},
        discovered={name: facts for name, (_, facts) in FOUND.items()},
    )
    words = {name: words for name, (words, _) in FOUND.items()}
    old = Description.__new__(Description)
    old.__setstate__({**description.__getstate__(), "discovered": words})
    assert old.discovered == description.discovered
    assert old.schema == description.schema
    assert old.in_words == {**words, "grade": {**description.domain["grade"], **words["grade"]}}
    assert pickle.loads(pickle.dumps(old)) == description
