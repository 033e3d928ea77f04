"""The examples in docstrings run, and print what they say."""

import doctest
import warnings
from importlib import import_module
from pathlib import Path

import pytest

import sdv_privpgd

ROOT = Path(sdv_privpgd.__file__).parent
MODULES = sorted(
    ".".join(("sdv_privpgd", *path.relative_to(ROOT).with_suffix("").parts))
    for path in ROOT.rglob("*.py")
    if ">>> " in path.read_text()
)


@pytest.mark.parametrize("name", MODULES)
def test_the_examples_of_a_module_run(name):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # small tables are few rows
        found = doctest.testmod(import_module(name), optionflags=doctest.NORMALIZE_WHITESPACE)
    assert found.attempted
    assert not found.failed
