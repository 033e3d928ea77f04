"""What is compiled is kept where there is a folder for it, and works where there is none."""

import subprocess
import sys

from processes import python_says

WITHOUT_A_FOLDER = """
import numba.core.caching as caching

def refused(self):
    raise OSError("read-only")

caching._CacheLocator.ensure_cache_path = refused
import sdv_privpgd.synthesize.particles.primal_dual
import sdv_privpgd.synthesize.particles.published.softmax_descent
from sdv_privpgd.synthesize.particles.compiler import is_compiled, njit

@njit()
def twice(x):
    return x + x

assert not is_compiled(twice)
assert twice(3) == 6
assert is_compiled(twice)
"""


def test_a_read_only_install_without_a_home_warns_once_and_works():
    done = subprocess.run(
        [sys.executable, "-W", "always", "-c", WITHOUT_A_FOLDER],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert done.stderr.count("NUMBA_CACHE_DIR") == 1


TWICE = """
def twice(x):
    return x + x
"""

KEPT = """
import sys
sys.path.insert(0, sys.argv[1])
from doubled import twice
from sdv_privpgd.synthesize.particles.compiler import is_compiled, njit

kept = njit()(twice)
print(is_compiled(kept), end=" ")
kept(1)
print(is_compiled(kept))
"""


def test_what_an_earlier_process_has_compiled_is_known(tmp_path):
    (tmp_path / "doubled.py").write_text(TWICE)
    environment = {"NUMBA_CACHE_DIR": str(tmp_path / "kept")}
    said = [python_says("-c", KEPT, tmp_path, **environment).split() for _ in range(2)]
    assert said == [["False", "True"], ["True", "True"]]


AT_ONCE = """
import sys
sys.path.insert(0, sys.argv[1])
from doubled import twice
from sdv_privpgd.synthesize.particles.compiler import njit

first, second = njit()(twice), njit()(twice)  # as two processes have them
ours, theirs = (each._cache._cache_file for each in (first, second))
save = {each: (each._save_index, each._save_data) for each in (ours, theirs)}

def theirs_before_our_code(overloads):
    def after_ours(own):
        save[ours][0](overloads)
        save[theirs][0](own)

    theirs._save_index = after_ours
    second(0.75)

ours._save_index = theirs_before_our_code
first(3)
"""

AFTERWARDS = """
import sys
sys.path.insert(0, sys.argv[1])
from doubled import twice
from sdv_privpgd.synthesize.particles.compiler import njit

print(njit()(twice)(0.75), njit()(twice)(3))
"""


def test_two_processes_that_compile_at_once_keep_their_code_apart(tmp_path):
    (tmp_path / "doubled.py").write_text(TWICE)
    environment = {"NUMBA_CACHE_DIR": str(tmp_path / "kept")}
    python_says("-c", AT_ONCE, tmp_path, **environment)
    assert python_says("-c", AFTERWARDS, tmp_path, **environment).split() == ["1.5", "6"]
