"""The examples in docstrings run, and print what they say."""

import ast
import doctest
import warnings
from importlib import import_module
from pathlib import Path

import pytest
import sdmetrics  # noqa: F401 - it has to load our classes itself, before an example does

import sdv_privpgd

ROOT = Path(sdv_privpgd.__file__).parent
MODULES = sorted(
    ".".join(("sdv_privpgd", *path.relative_to(ROOT).with_suffix("").parts))
    for path in ROOT.rglob("*.py")
    if ">>> " in path.read_text()
)
FOLDERS = ("columns", "constraints", "discovery", "drafting", "estimate", "sampling", "select")
WITHOUT = (
    "first_look.py",
    "plan.py",
    "readings.py",
    "shaping.py",
)  # parts of a fit: `fit_table` has an example
DOCUMENTED = [
    *(path for path in sorted(ROOT.glob("*.py"))),
    *(path for each in FOLDERS for path in sorted((ROOT / each).glob("*.py"))),
]
PUBLIC_HOMES = {
    "sdv_privpgd.metrics._sdmetrics": "sdv_privpgd.metrics",
    "sdv_privpgd.plugin.synthesizers": "sdv_privpgd.synthesizer",
}
"""Modules whose classes say that they come from another one, which pickles name."""


class Finder(doctest.DocTestFinder):
    """Finds the examples of such classes, too."""

    def _from_module(self, module, object):
        home = PUBLIC_HOMES.get(module.__name__)
        own = isinstance(object, type) and object.__module__ == home
        return own or super()._from_module(module, object)


@pytest.mark.parametrize("name", MODULES)
def test_the_examples_of_a_module_run(name):
    runner = doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # small tables are few rows
        for each in Finder().find(import_module(name), name):
            runner.run(each)
    assert runner.tries
    assert not runner.failures


@pytest.mark.parametrize("path", DOCUMENTED, ids=lambda path: str(path.relative_to(ROOT)))
def test_each_public_class_and_function_has_an_example(path):
    defined = ast.parse(path.read_text()).body
    public = [
        each
        for each in defined
        if isinstance(each, ast.ClassDef | ast.FunctionDef) and not each.name.startswith("_")
    ]
    lacking = [each.name for each in public if ">>> " not in (ast.get_docstring(each) or "")]
    assert not lacking or path.name in WITHOUT
