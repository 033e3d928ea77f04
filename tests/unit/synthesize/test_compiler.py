"""What is compiled is kept where there is a folder for it, and works where there is none."""

import os
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
from sdv_privpgd.synthesize.particles.compiler import is_compiled
from sdv_privpgd.synthesize.particles.compiled_exchange import _mixed

assert not is_compiled(_mixed)
_mixed(1, 2, 3)
assert is_compiled(_mixed)
"""


def test_a_read_only_install_without_a_home_warns_once_and_works():
    done = subprocess.run(
        [sys.executable, "-W", "always", "-c", WITHOUT_A_FOLDER],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert done.stderr.count("NUMBA_CACHE_DIR") == 1


KEPT = """
from sdv_privpgd.synthesize.particles.compiler import is_compiled
from sdv_privpgd.synthesize.particles.compiled_exchange import _mixed

print(is_compiled(_mixed), end=" ")
_mixed(1, 2, 3)
print(is_compiled(_mixed))
"""


def test_what_an_earlier_process_has_compiled_is_known(tmp_path):
    said = [
        subprocess.run(
            [sys.executable, "-c", KEPT],
            env={**os.environ, "NUMBA_CACHE_DIR": str(tmp_path)},
            capture_output=True, text=True, check=True,
        ).stdout.split()
        for _ in range(2)
    ]  # fmt: skip
    assert said == [["False", "True"], ["True", "True"]]


TWICE = """
def twice(x):
    return x + x
"""

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
