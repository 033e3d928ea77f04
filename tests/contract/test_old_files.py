"""Files of versions before this one are refused by a message that names the version to install."""

import pickle
import sys
from types import ModuleType

import pytest
from sdv.errors import VersionError
from sdv.utils import load_synthesizer

import sdv_privpgd.synthesizer  # noqa: F401  (as every file of a synthesizer has it imported)


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
