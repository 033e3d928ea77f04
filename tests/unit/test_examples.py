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
DOCUMENTED = sorted(path for path in ROOT.rglob("*.py") if path.parent.name != "benchmark")
WITHOUT = {
    # Commands, and what they are made of: ``cli.program.main`` has an example.
    "cli/auditing.py": ("audit",),
    "cli/commands.py": ("describe", "draft_domain", "evaluate", "sample"),
    "cli/finishing.py": ("finish",),
    "cli/keeping.py": ("Purchase",),
    "cli/synthesizing.py": (
        "plan", "print_report", "sampled", "synthesize", "synthesizer_of", "typed",
        "write_results",
    ),
    "cli/refining.py": ("refine",),
    "cli/release_arguments.py": ("add_commands",),
    "cli/releasing.py": ("combine", "from_tables", "measure"),
    # It needs a package that the tests do without: SDGym.
    "plugin/sdgym.py": ("variant",),
    # Parts of a fit, on what SDV or a curator hands them: ``fit_table`` has an example.
    "discovery/first_look.py": ("FirstLook", "has_others"),
    "plugin/generators.py": ("assign", "fit", "generate", "restart"),
    "synthesize/particles/pulls.py": ("advance_by_pulls",),
    # What numba compiles, and what says so.
    "synthesize/particles/compiled_exchange.py": ("propose", "sweep_blocks", "take_proposals"),
    "synthesize/particles/compiler.py": ("Threads", "is_compiled", "njit", "num_threads"),
    "synthesize/particles/kernels/numba_kernels.py": (
        "follow", "pass_part", "set_goals", "sort_cells",
    ),
    "synthesize/particles/primal_dual.py": ("improve",),
    "synthesize/particles/published/adam_kernel.py": ("adam_step",),
    "synthesize/particles/published/softmax_descent.py": ("descend",),
    "synthesize/generations.py": ("change", "evolve", "replace"),
    "synthesize/particles/warmup.py": ("compile_all",),
    # These need a device, or several processes.
    "synthesize/particles/batched_finish.py": ("BatchedFinish",),
    "synthesize/particles/kernels/exact.py": (
        "descend", "displacement", "displacement_to_targets", "quantile_targets",
    ),
}  # fmt: skip
"""All public classes and functions without an example, by file."""
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
    lacking = {each.name for each in public if ">>> " not in (ast.get_docstring(each) or "")}
    name = str(path.relative_to(ROOT))
    assert lacking == {*WITHOUT.get(name, ())}
