"""What is compiled is kept where there is a folder for it, and works where there is none."""

import json

import numpy as np
import pytest
from processes import python, python_says

WITHOUT_A_FOLDER = """
import numba.core.caching as caching

def refused(self):
    raise OSError("read-only")

caching._CacheLocator.ensure_cache_path = refused
import sdv_privpgd.synthesize.particles.projection
import sdv_privpgd.synthesize.particles.paper
from sdv_privpgd.synthesize.particles.compiler import is_compiled, njit

@njit()
def twice(x):
    return x + x

assert not is_compiled(twice)
assert twice(3) == 6
assert is_compiled(twice)
"""


def test_a_read_only_install_without_a_home_warns_once_and_works():
    done = python("-W", "always", "-c", WITHOUT_A_FOLDER)
    assert done.returncode == 0, done.stderr
    assert done.stderr.count("NUMBA_CACHE_DIR") == 1


TWICE = """
def twice(x):
    return x + x
"""

AT_ONCE = """
import sys
sys.path.insert(0, sys.argv[1])
from doubled import twice
from sdv_privpgd.synthesize.particles.compiler import is_compiled, njit

first, second = njit()(twice), njit()(twice)  # as two processes have them
assert not is_compiled(first)
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
from sdv_privpgd.synthesize.particles.compiler import is_compiled, njit

kept = njit()(twice)
print(is_compiled(kept), kept(0.75), njit()(twice)(3))
"""


def test_two_processes_that_compile_at_once_keep_their_code_apart_for_a_third(tmp_path):
    (tmp_path / "doubled.py").write_text(TWICE)
    environment = {"NUMBA_CACHE_DIR": str(tmp_path / "kept")}
    python_says("-c", AT_ONCE, tmp_path, **environment)
    assert python_says("-c", AFTERWARDS, tmp_path, **environment).split() == ["True", "1.5", "6"]


FITS = """
import json, sys
import numpy as np, torch
from sdv_privpgd.methods import ParticleGradientDescent
from sdv_privpgd.benchmark.fits import fit_dataset
from sdv_privpgd.privacy.dataset import Dataset
from sdv_privpgd.base.domain import Domain
from sdv_privpgd.methods.k_way import AllKWay
from sdv_privpgd.synthesize.particles import binned_displacement
from sdv_privpgd.synthesize.particles.kernels import PackedTargets, Visit
from sdv_privpgd.synthesize.particles.projection import SignedTable
from sdv_privpgd.synthesize.particles.paper import SoftmaxProjection

def fit(sizes, degree):
    domain = Domain(tuple(f"c{axis}" for axis in range(len(sizes))), sizes)
    codes = np.random.default_rng(0).integers(0, sizes, size=(200, len(sizes)))
    engine = ParticleGradientDescent(
        num_particles=300, epochs=1, kernel="torch", targets="raw"  # negative: to be projected
    )
    fit_dataset(Dataset(domain, codes), 0.1, AllKWay(degree=degree, engine=engine))
    for shape in (sizes[:1], sizes[:2], sizes[:3]):
        cells = torch.cartesian_prod(*map(torch.arange, shape)).view(-1, len(shape))
        centers = cells / torch.tensor(shape)
        table = SignedTable(centers, torch.full((len(centers),), 1.0 / len(centers)))
        published = SoftmaxProjection(num_slices=3, max_steps=2)
        published.project_all([table], torch.Generator().manual_seed(0))

def compiled():
    found = {}
    for name, module in list(sys.modules.items()):
        if name.startswith("sdv_privpgd.synthesize"):
            for function in vars(module).values():
                if hasattr(function, "signatures") and function.py_func.__module__ == name:
                    stats = function.stats
                    found[f"{name.rpartition('.')[2]}.{function.py_func.__name__}"] = [
                        len(function.signatures),
                        sum(stats.cache_hits.values()),
                        sum(stats.cache_misses.values()),
                    ]
    return found

SENTINEL = 0.123456789
places, shares = torch.tensor([[SENTINEL], [0.75]]), torch.tensor([SENTINEL, 1 - SENTINEL])
visit = Visit(torch.tensor([0]), torch.ones(1, 1, 1), torch.ones(1))
moved = torch.full((1, 60_000), SENTINEL)
binned_displacement.descend(moved, PackedTargets.of([[0]], [places], [shares]), [visit] * 3)
fit((5, 4, 3), 2)
few = compiled()
fit(tuple(2 + axis % 7 for axis in range(20)), 2)
fit((2, 6, 3, 5), 3)
fit((9, 1, 4), 1)
print(json.dumps([few, compiled()]))
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("caches")


@pytest.fixture(scope="module")
def runs(folder):
    """Compiled functions after a small fit and after many shapes, in each of two processes."""
    environment = {"NUMBA_CACHE_DIR": str(folder), "NUMBA_NUM_THREADS": "2"}
    said = [python_says("-c", FITS, **environment) for _ in range(2)]
    return [json.loads(each.splitlines()[-1]) for each in said]


@pytest.mark.long
def test_what_is_kept_is_compiled_once_for_all_shapes_and_holds_no_data(runs, folder):
    (few, many), _ = runs
    assert {"projection.improve", "local_search.propose", "paper._descend"} < set(many)
    assert many == few
    modules = ("projection.", "local_search.", "paper.")
    for name, (num_signatures, _, _) in many.items():
        # None is compiled by itself where it is inlined.
        assert num_signatures <= 1 or not name.startswith(modules), name
    (first, _), (second, _) = runs
    assert first["projection.improve"] == [1, 0, 1]
    assert sum(misses for _, _, misses in second.values()) == 0
    # What Python calls is loaded; what that calls is linked into it already.
    for name in (
        "projection.improve",
        "local_search.propose",
        "paper._descend",
        "binned_displacement.sort_cells",
        "binned_displacement.pass_part",
        "binned_displacement.set_goals",
    ):
        assert second[name] == [1, 1, 0], name
    sentinel = 0.123456789
    secrets = [np.array(sentinel, dtype=kind).tobytes() for kind in (np.float32, np.float64)]
    files = [path for path in folder.rglob("*") if path.is_file()]
    assert files
    for path in files:
        content = path.read_bytes()
        assert not any(secret in content for secret in [*secrets, str(sentinel).encode()])
