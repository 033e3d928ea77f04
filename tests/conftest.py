"""What all tests share: Hypothesis profiles, a domain of distinct sizes, the shared tables."""

import os
import signal
from importlib.util import find_spec
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")  # read by torch: one worker of pytest, one core

import numpy as np
import pytest
from second_runs import SECOND_RUN

from sdv_privpgd.base.domain import Domain
from sdv_privpgd.privacy.dataset import Dataset

if find_spec("hypothesis"):  # a machine with a GPU may have torch and triton alone
    from hypothesis import HealthCheck, settings

    # First calls compile checkers, and a busy machine is slow.
    patient = {"deadline": None, "suppress_health_check": [HealthCheck.too_slow]}
    settings.register_profile("dev", max_examples=50, **patient)
    settings.register_profile("few", max_examples=10, **patient)
    settings.register_profile("ci", max_examples=500, print_blob=True, **patient)
    settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "dev"))

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # as in the background of a shell
    signal.signal(signal.SIGINT, signal.default_int_handler)

TESTS = Path(__file__).parent


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Gives a second run to the tests of ``SECOND_RUN``. The summary counts it as ``rerun``."""
    if not find_spec("pytest_rerunfailures"):
        return
    for item in items:
        path = item.path.relative_to(TESTS).as_posix() if item.path.is_relative_to(TESTS) else ""
        if getattr(item, "originalname", item.name) in SECOND_RUN.get(path, {}):
            item.add_marker(pytest.mark.flaky(reruns=1))


@pytest.fixture
def domain() -> Domain:
    """Distinct sizes, so that a transposed axis cannot pass."""
    return Domain(("a", "b", "c"), (2, 3, 4))


@pytest.fixture
def codes(domain) -> np.ndarray:
    """One hundred records, all cells of every pair of attributes hit or missed at random."""
    return np.random.default_rng(0).integers(0, domain.sizes, size=(100, len(domain)))


@pytest.fixture
def dataset(domain, codes) -> Dataset:
    return Dataset(domain, codes)


@pytest.fixture
def few_epochs(monkeypatch):
    """A short descent, where it matters little how near the particles come.

    A penalty is differentiated at every step: 100 epochs of it take most of a minute.
    """
    from sdv_privpgd.methods import ParticleGradientDescent

    monkeypatch.setattr(ParticleGradientDescent, "num_epochs", 5)


@pytest.fixture
def plant(monkeypatch):
    """Sets what an audit is to find; it has no processes of its own, in which that would lack."""
    from no_processes import NoProcesses

    monkeypatch.setattr("sdv_privpgd.audit.door.FreshProcesses", NoProcesses)
    return monkeypatch.setattr


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """The folder of the shared tables; the test is skipped where there is none."""
    folder = Path(__file__).parents[2] / "shared" / "data"
    if not folder.is_dir():
        pytest.skip(f"no shared data at {folder}")
    return folder
