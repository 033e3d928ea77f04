"""What all tests share: their noise, Hypothesis profiles, a domain, the shared tables."""

import os
import secrets
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")  # read by torch: one worker of pytest, one core

import numpy as np
import pytest

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


class Noise:
    """The same noise and keys each time for a test of a name; ``FRESH_NOISE=1`` draws anew.

    A bound that real noise breaks once in a thousand runs breaks in the run that changes the code,
    or never: no test needs a second run. Processes and forks that a test starts draw as users' do.
    """

    def __init__(self) -> None:
        self._streams: list[np.random.Generator] = []
        self._process, self._words = os.getpid(), os.urandom

    def __call__(self, number: int | None = None) -> bytes:
        number = 32 if number is None else number
        is_own = self._streams and os.getpid() == self._process
        return self._streams[-1].bytes(number) if is_own else self._words(number)

    @contextmanager
    def of(self, name: str) -> Iterator[None]:
        """What is drawn meanwhile depends on the name."""
        self._streams.append(np.random.default_rng(list(name.encode())))
        try:
            yield
        finally:
            self._streams.pop()


NOISE = Noise()
if "FRESH_NOISE" not in os.environ and find_spec("scipy"):
    from sdv_privpgd.privacy.ledger import FitLedger

    FitLedger.__init__.__kwdefaults__["words"] = secrets.token_bytes = NOISE


@pytest.hookimpl(wrapper=True)
def pytest_fixture_setup(fixturedef, request):
    param = getattr(request, "param_index", 0)
    with NOISE.of(f"{fixturedef.baseid}::{fixturedef.argname}[{param}]"):
        return (yield)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item):
    with NOISE.of(item.nodeid), pytest.MonkeyPatch.context() as patch:
        if item.get_closest_marker("fresh_noise"):
            from sdv_privpgd.privacy.ledger import FitLedger

            patch.setitem(FitLedger.__init__.__kwdefaults__, "words", os.urandom)
        return (yield)


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
