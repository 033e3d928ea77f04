"""Plants faults in the privacy core, one at a time, and says which of them no test notices.

    pip install mutmut==3.8.1
    python tests/audit/mutants.py [MODULE ...]

The faults are mutmut's: another operator, another number, an argument left out, and the like. This
program plants them also where mutmut does not, in properties, constants and defaults. The tests are
collected once. For each fault in a function a fork of that process gets the faulty code, and runs
those tests that call the function, the fastest first, until one fails. Where a fault is not in a
function, the fork reads the faulty file and collects the tests anew.

A fault that no test notices must have a row in ``MUTANTS.md`` beside this file, which says why it
changes nothing. The exit status is 1 if a row is lacking, or if a row is of no such fault.
"""

import ast
import gc
import math
import os
import pickle
import re
import resource
import signal
import subprocess
import sys
import tempfile
import threading
from collections import Counter
from dataclasses import dataclass, replace
from difflib import unified_diff
from importlib import import_module
from importlib.machinery import SourceFileLoader
from inspect import unwrap
from mmap import mmap
from pathlib import Path
from time import process_time

import libcst
import pytest
from hypothesis import Phase, settings
from libcst.metadata import MetadataWrapper
from mutmut.mutation.mutators import mutation_operators

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "sdv_privpgd"
LISTED = ast.get_docstring(ast.parse((PACKAGE / "privacy" / "__init__.py").read_text())) or ""
PATHS = {
    Path(name).stem: PACKAGE / name
    for name in re.findall(r"``(\w+/\w+\.py)``", LISTED.partition("\nThese are")[0])
}
"""All that the core lists as its own."""
ACCOUNTING = (
    "tests/unit/privacy",
    "tests/unit/test_core_details.py",
    "tests/unit/test_thresholding.py",
    "tests/property/test_neighbors.py",
    "tests/statistical",
)
NEIGHBORS = "tests/property/test_neighbors.py"
PEOPLE = "tests/property/test_people_weighed.py"
WEIGHED = "tests/property/test_rows_weighed.py"
ANY_PEOPLE = "tests/property/test_people.py"
DETAILS = "tests/unit/test_core_details.py"
BOUNDARY = "tests/leak/test_boundary.py"


def units(*names: str, folder: str = "privacy") -> tuple[str, ...]:
    return tuple(f"tests/unit/{folder}/test_{name}.py" for name in names)


TALLIES = "tests/unit/privacy/test_tallies.py"
CELLS = (
    TALLIES,
    *units(
        "scalars",
        "encoders",
        "encoded_dates",
        "labels",
        "dtypes",
        "number_formats",
        folder="columns",
    ),
    *units("value_counts"),
    "tests/property/test_transformer_laws.py",
)
TESTS = {
    "accounting": (*units("accounting", "training_door", "selection", "choosing"), DETAILS),
    "noise": ("tests/statistical/test_noise.py", *units("ledger"), DETAILS),
    "selection": (*units("selection", "choosing"), DETAILS),
    "queries": (
        *units("queries", "embedding", "dependence", "half_spaces", "curator"),
        NEIGHBORS,
        DETAILS,
    ),
    "counting": (TALLIES, *units("half_spaces"), PEOPLE, WEIGHED, DETAILS),
    "dataset": (*units("dataset", "half_spaces", "queries"), TALLIES, DETAILS),
    "thresholding": (*units("value_counts"), "tests/unit/test_thresholding.py", DETAILS),
    "value_counts": (*units("value_counts"), TALLIES, NEIGHBORS, DETAILS),
    "ledger": (
        *units("training_door", "ledger", "ledger_words", "ledger_file", "choosing", "curator"),
        DETAILS,
    ),
    "curator": (*units("curator", "choosing", "value_counts", "half_spaces"), DETAILS, PEOPLE),
    "streams": (TALLIES, DETAILS, *units("half_spaces"), BOUNDARY, PEOPLE, WEIGHED, NEIGHBORS),
    "boundary": (BOUNDARY, TALLIES, ANY_PEOPLE, PEOPLE, WEIGHED),
    "encoders": CELLS,
    "encoding": units("encoders", "encoded_dates", "differences", folder="columns"),
    "readings": (TALLIES, *units("scalars", folder="columns")),
    "recoding": units("recoding", folder="columns"),
    "scalars": CELLS,
    "dates": CELLS,
    "number_formats": units("number_formats", folder="columns"),
    "source": (TALLIES, "tests/unit/test_progress.py"),
    "frames": (*units("titles", folder="sources"), "tests/unit/test_progress.py"),
    "people": (ANY_PEOPLE, PEOPLE, "tests/property/test_rows_before.py"),
}
"""Those that can notice a fault in a module: by default those of the accounting."""
NOT_CODE = (
    libcst.Annotation,
    libcst.Decorator,
    libcst.Import,
    libcst.ImportFrom,
    libcst.Raise,  # its words; the question before it is planted in
)
TYPES = ("tuple", "list", "dict", "Callable", "Mapping", "Sequence", "TypeVar")
HEAVY = ("pandas", "scipy.optimize", "scipy.special", "scipy.stats", "mpmath", "numba", "torch")
SECONDS = 120
"""Of processor time, for all tests. A fault that takes longer is taken to never end: noticed."""


@dataclass(frozen=True)
class Fault:
    """A faulty text of a module of the core, and where it differs."""

    module: str
    within: tuple[str, ...]
    in_function: bool
    was: str
    becomes: str
    text: str

    def row(self) -> str:
        """The row of ``MUTANTS.md``, but for the reason."""
        place = ".".join((self.module, *self.within))
        return f"| {place} | {quoted(self.was)} | {quoted(self.becomes)} |"


def quoted(lines: str) -> str:
    return f"`{lines}`".replace("|", r"\|") if lines else "nothing"


class Planter(libcst.CSTVisitor):
    """Collects what mutmut's operators make of the nodes of a module."""

    def __init__(self) -> None:
        super().__init__()
        self.found = []  # (node, its fault, names of what holds it, whether in a function's body)
        self._names, self._bodies = [], []

    def on_visit(self, node) -> bool:
        if isinstance(node, NOT_CODE) or is_type(node):
            return False
        if self._bodies and node is self._bodies[-1][0]:
            self._bodies[-1][1] = True
        if isinstance(node, libcst.ClassDef | libcst.FunctionDef):
            self._names.append(node.name.value)
        if isinstance(node, libcst.FunctionDef):
            self._bodies.append([node.body, False])
        inside = bool(self._bodies) and self._bodies[0][1]
        for kind, operator in mutation_operators:
            if isinstance(node, kind):
                self.found += [(node, new, tuple(self._names), inside) for new in operator(node)]
        return True

    def on_leave(self, original_node) -> None:
        if isinstance(original_node, libcst.ClassDef | libcst.FunctionDef):
            self._names.pop()
        if isinstance(original_node, libcst.FunctionDef):
            self._bodies.pop()


def is_type(node) -> bool:
    """Whether a name is given to a type, for annotations alone."""
    if isinstance(node, libcst.AnnAssign):
        return getattr(node.annotation.annotation, "value", "") == "TypeAlias"
    if not isinstance(node, libcst.Assign):
        return False
    if isinstance(node.value, libcst.BinaryOperation):  # X | None
        return getattr(node.value.right, "value", "") == "None"
    of = getattr(node.value, "func", getattr(node.value, "value", None))
    return getattr(of, "value", "") in TYPES


class Usual(ast.NodeTransformer):
    """Leaves out arguments that say what is so without them."""

    def visit_Call(self, node):
        self.generic_visit(node)
        node.keywords = [
            each
            for each in node.keywords
            if each.arg not in ("strict", "dtype") or getattr(each.value, "value", True)
        ]
        return node


def meaning(text: str) -> str:
    return ast.dump(Usual().visit(ast.parse(text)))


def planted_in(part) -> list:
    planter = Planter()
    part.visit(planter)
    return planter.found


def path_of(module: str) -> Path:
    return PATHS[module]


def name_of(module: str) -> str:
    return f"sdv_privpgd.{path_of(module).parent.name}.{module}"


def faults_of(module: str) -> list[Fault]:
    """All that can be planted in a module, each once."""
    text = path_of(module).read_text()
    tree = MetadataWrapper(libcst.parse_module(text)).module
    parts = [tree.code_for_node(part) for part in tree.body]
    faults, known = [], {meaning(text)}
    for at, node, new, names, inside in (
        (at, *found) for at, part in enumerate(tree.body) for found in planted_in(part)
    ):
        part = tree.code_for_node(tree.body[at].deep_replace(node, new))
        faulty = "".join((*parts[:at], part, *parts[at + 1 :]))
        try:
            meant = meaning(faulty)
        except SyntaxError:
            continue
        if meant in known:
            continue
        known.add(meant)
        lines = [*unified_diff(text.splitlines(), faulty.splitlines(), n=0, lineterm="")][2:]
        was, becomes = (
            " ".join(line[1:].strip() for line in lines if line.startswith(sign)) for sign in "-+"
        )
        faults.append(Fault(module, names, inside, was, becomes, faulty))
    return faults


def function_of(fault: Fault):
    """The live function that holds a fault, and its names within the module."""
    found, names = import_module(name_of(fault.module)), []
    for name in fault.within:
        found = vars(found)[name]
        names.append(name)
        if not isinstance(found, type):
            break
    for held in ("fget", "func", "__func__"):  # a property's, a cached one's, a class method's
        found = getattr(found, held, None) or found
    return unwrap(found), names


def key_of(fault: Fault) -> tuple[str, int]:
    """Where the function stands that holds a fault."""
    code = function_of(fault)[0].__code__
    return code.co_filename, code.co_firstlineno


def plant(fault: Fault) -> None:
    """Gives the live function the faulty code; all that hold the function have it then."""
    function, names = function_of(fault)
    code = compile(fault.text, path_of(fault.module), "exec")
    for name in names:
        (code,) = (
            part for part in code.co_consts if hasattr(part, "co_name") and part.co_name == name
        )
    function.__code__ = code


def in_fork(act, seconds=SECONDS) -> int:
    """The exit status of an act in a fork of this process, which is silent and cannot hang."""
    child = os.fork()
    if child:
        return os.waitpid(child, 0)[1]
    status = 1
    try:
        silent = os.open(os.devnull, os.O_WRONLY)
        os.dup2(silent, 1)
        os.dup2(silent, 2)
        resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds))
        signal.alarm(20 * seconds)
        status = int(act())
    finally:
        os._exit(status)


def fails(session, items, first=None) -> bool:
    """Whether one of the tests fails; those after it are not run."""
    for at, (item, following) in enumerate(zip(items, [*items[1:], None], strict=True), 1):
        session.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
        if session.testsfailed:
            if first is not None:
                first[:] = at.to_bytes(8, "little")
            return True
    return False


class FastestFirst:
    """Measures how long the tests of a run take, and puts those of the next runs in order."""

    def __init__(self) -> None:
        self._took = {}

    def pytest_runtest_logreport(self, report) -> None:
        self._took[report.nodeid] = self._took.get(report.nodeid, 0.0) + report.duration

    def pytest_collection_modifyitems(self, items) -> None:
        items.sort(key=lambda item: self._took.get(item.nodeid, 0.0))

    def save(self, path) -> None:
        Path(path).write_bytes(pickle.dumps(self._took))

    def load(self, path) -> None:
        self._took = pickle.loads(Path(path).read_bytes())


class InFunctions:
    """Plants faults in functions, in forks of a process that has collected the tests."""

    def __init__(self, faults, say) -> None:
        self._faults, self._say = faults, say
        self.broken = None  # the test that fails without a fault

    def pytest_runtestloop(self, session) -> bool:
        with tempfile.NamedTemporaryFile() as file:
            if in_fork(lambda: self._watch(session, file.name), 3600):
                self.broken = Path(file.name).read_text()
                return True
            calls = sorted(pickle.loads(Path(file.name).read_bytes()), key=lambda call: call[:2])
        gc.freeze()  # a collection in a fork would copy all that was there before
        noticing = Counter()  # of each function, how many faults a test has noticed
        first = mmap(-1, 8)  # which of the tests fails; a fork writes it
        for fault in self._faults:
            key = key_of(fault)
            chosen = [(took, at) for took, at, called in calls if key in called]
            seconds = 5 + 2 * math.ceil(sum(took for took, _ in chosen))
            order = sorted(chosen, key=lambda each: (-noticing[key, each[1]], *each))
            items = [session.items[at] for _, at in order]
            first[:] = bytes(8)

            def act(fault=fault, items=items) -> bool:
                plant(fault)
                return fails(session, items, first)

            noticed = in_fork(act, seconds) != 0
            if at := int.from_bytes(first, "little"):
                noticing[key, session.items.index(items[at - 1])] += 1
            self._say(fault, noticed)
        return True

    def _watch(self, session, name) -> bool:
        """Writes for each test how long it takes and which of the functions it calls."""
        functions = {key_of(fault) for fault in self._faults}
        called, calls = set(), []

        def watch(frame, event, arg):
            key = frame.f_code.co_filename, frame.f_code.co_firstlineno
            if key in functions:
                called.add(key)

        threading.settrace(watch)
        for at, item in enumerate(session.items):
            called.clear()
            begun = process_time()
            sys.settrace(watch)
            failed = fails(session, [item])
            sys.settrace(None)
            if failed:
                Path(name).write_text(item.nodeid)
                return True
            calls.append((process_time() - begun, at, frozenset(called)))
        Path(name).write_bytes(pickle.dumps(calls))
        return False


def run_tests(module, *more, plugins=()) -> int:
    options = ["-q", "-x", "--tb=native", "-o", "addopts=", "-o", "timeout=0"]
    # Faker's fixture imports all its words anew in each fork.
    options += [f"-pno:{plugin}" for plugin in ("cacheprovider", "randomly", "faker")]
    options += ["-W", "ignore::pytest.PytestAssertRewriteWarning"]  # Hypothesis is imported above
    slow = "not opacus and not google and not forked and not TestFits and not whatever_the_noise"
    options += ["-k", slow]  # others tell the same
    tests = (str(ROOT / each) for each in TESTS.get(module, ACCOUNTING))
    return pytest.main([*options, *more, *tests], list(plugins))


def run_with_file(fault: Fault, order: FastestFirst, path=None) -> int:
    """The exit status of the tests where the file of a module is faulty."""
    honest = SourceFileLoader.get_code

    def get_code(loader, fullname):
        if fullname != name_of(fault.module):
            return honest(loader, fullname)
        return compile(fault.text, path_of(fault.module), "exec", dont_inherit=True)

    SourceFileLoader.get_code = get_code
    own = ROOT / "tests" / "unit" / path_of(fault.module).parent.name / f"test_{fault.module}.py"
    status = run_tests(fault.module, *([str(own)] if own.exists() else []), plugins=[order])
    if path:
        order.save(path)
    return status


def run(faults: list[Fault], say) -> None:
    """Plants each fault of a module, and says of each whether it was noticed."""
    order, outside = FastestFirst(), [fault for fault in faults if not fault.in_function]
    if outside:
        honest = replace(outside[0], text=path_of(outside[0].module).read_text())
        with tempfile.NamedTemporaryFile() as file:
            if in_fork(lambda: run_with_file(honest, order, file.name), 3600):
                sys.exit("Without any fault a test fails, or the tests cannot be collected.")
            order.load(file.name)
    for fault in outside:  # these first: nothing of the package is imported yet
        say(fault, in_fork(lambda fault=fault: run_with_file(fault, order)) != 0)
    inside = InFunctions([fault for fault in faults if fault.in_function], say)
    run_tests(faults[0].module, plugins=[inside])
    if inside.broken is not None:
        sys.exit(f"Without any fault this fails: {inside.broken}")


def main(module: str) -> int:
    """Plants all faults of a module, and compares what is left with the rows."""
    settings.register_profile(
        "mutants",
        max_examples=10,  # a fifth of the default run's: what few notice, many do
        deadline=None,
        derandomize=True,
        database=None,
        phases=(Phase.explicit, Phase.generate),
    )
    os.environ["HYPOTHESIS_PROFILE"] = "mutants"
    os.chdir(ROOT)
    out = os.fdopen(os.dup(1), "w")
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # what pytest prints
    for name in HEAVY:
        import_module(name)  # once, and not in each fork
    table = (Path(__file__).parent / "MUTANTS.md").read_text().splitlines()
    starts = tuple(f"| {module}{end}" for end in (".", " | `"))
    rows = [row for row in table if row.startswith(starts)]
    used, lacking, planted, left = set(), 0, 0, 0

    def say(fault, noticed) -> None:
        nonlocal lacking, planted, left
        planted += 1
        if noticed:
            return
        left += 1
        known = {row for row in rows if row.startswith(fault.row())}
        used.update(known)
        if not known:
            lacking += 1
            print(fault.row(), "? |", file=out, flush=True)

    run(faults_of(module), say)
    idle = [row for row in rows if row not in used]
    for row in idle:
        print("No such fault, or it is noticed:", row, file=out)
    print(f"{module}: {planted} planted, {left} not noticed,", file=out)
    print(f"of which {lacking} have no row.", file=out, flush=True)
    return int(lacking + len(idle) > 0)


if __name__ == "__main__":
    if len(sys.argv) == 2:
        sys.exit(main(sys.argv[1]))
    # A process each: whatever a module's tests import, the next one's do not have yet.
    each = [[sys.executable, __file__, module] for module in sys.argv[1:] or PATHS]
    sys.exit(max(subprocess.run(command, check=False).returncode for command in each))
