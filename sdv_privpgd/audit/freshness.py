"""Layer 2, too: noise that is new each time, whatever is seeded, forked or started twice."""

import os
import random
import select
import signal
import subprocess
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np

from sdv_privpgd.audit.checks import Check, first_of
from sdv_privpgd.audit.noise import made_up_curator, noise_check
from sdv_privpgd.columns.schema import Schema
from sdv_privpgd.privacy.ledger import PrivacyLedger
from sdv_privpgd.privacy.queries import MarginalQuery

_DRAWS = 64
_SECONDS = 30.0
"""After which a forked process is given up."""

_PROCESS = (
    "from sdv_privpgd.privacy.noise import rounded_gaussian;"
    f"print(*rounded_gaussian(50.0, {_DRAWS}))"
)


class FreshProcesses:
    """Two new processes that draw noise while other things are looked at."""

    def __enter__(self) -> "FreshProcesses":
        self._running = [
            subprocess.Popen(
                [sys.executable, "-c", _PROCESS],
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                text=True,
            )
            for _ in range(2)
        ]
        return self

    def __exit__(self, *_: object) -> None:
        for process in self._running:
            if process.poll() is None:
                process.kill()
                process.wait()
            if process.stdout is not None:
                process.stdout.close()

    def draws(self) -> list[tuple[str, ...]]:
        """What each has drawn; empty where a process could not run."""
        return [tuple(process.communicate()[0].split()) for process in self._running]


def fresh_check(ledger: PrivacyLedger, processes: FreshProcesses) -> Check:
    """Whether noise is new each time: after seeds, in a fork, and in two processes."""
    faults = []
    with _seeded():
        first = _drawn(ledger)
    with _seeded():
        second = _drawn(ledger)
    if first == second:
        faults.append("After the same seeds for random, NumPy and torch, the same noise came.")
    if second == _drawn(ledger):
        faults.append("The same noise came twice in a row.")
    child = _forked(ledger)
    if child is not None and child == _drawn(ledger):
        faults.append("A forked process has drawn the noise of its parent.")
    one, other = processes.draws()
    if one and one == other:
        faults.append("Two processes have drawn the same noise.")
    where = (
        "after seeds" + ", in two processes" * bool(one) + " and in a fork" * (child is not None)
    )
    return noise_check(
        "noise fresh", where, not faults, first_of(faults, "It was another each time."), 0.0, {}
    )


def _drawn(ledger: PrivacyLedger) -> tuple[str, ...]:
    """The noise of a table of made-up rows."""
    facts = {"code": {"range_values": [f"{place}" for place in range(_DRAWS)]}}
    schema = Schema.from_sdv({"code": {"sdtype": "categorical"}}, public_domain=facts)
    (answer,) = made_up_curator(schema, ledger).measure(
        [MarginalQuery(("code",))], ledger.budget, what="an audit"
    )
    return tuple(map(str, answer.answer.tolist()))


@contextmanager
def _seeded() -> Iterator[None]:
    """All generators that libraries share are seeded, and are as they were afterwards."""
    torch = sys.modules.get("torch")
    states = random.getstate(), np.random.get_state()  # noqa: NPY002 - of libraries that use it
    state = None if torch is None else torch.get_rng_state()
    random.seed(0)
    np.random.seed(0)  # noqa: NPY002
    if torch is not None:
        torch.manual_seed(0)
    try:
        yield
    finally:
        random.setstate(states[0])
        np.random.set_state(states[1])  # noqa: NPY002
        if torch is not None:
            torch.set_rng_state(state)


def _forked(ledger: PrivacyLedger) -> tuple[str, ...] | None:
    """The noise that a fork of this process draws; ``None`` where that cannot be seen."""
    if not hasattr(os, "fork"):
        return None
    reading, writing = os.pipe()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of threads: the child draws noise and ends
        child = os.fork()
    if not child:
        try:
            os.write(writing, " ".join(_drawn(ledger)).encode())
        finally:
            os._exit(0)
    os.close(writing)
    ready, _, _ = select.select([reading], [], [], _SECONDS)
    with os.fdopen(reading, "rb") as pipe:
        if not ready:
            os.kill(child, signal.SIGKILL)
        text = pipe.read().decode()
    os.waitpid(child, 0)
    return tuple(text.split()) or None
