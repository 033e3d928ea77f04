"""What experiments need of the core alone: a fit, and meters of seconds and memory."""

import resource
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from sdv_privpgd.base.progress import Item, Progress, silent
from sdv_privpgd.methods.method import Method
from sdv_privpgd.methods.pipeline import Release, run
from sdv_privpgd.privacy.curator import Curator
from sdv_privpgd.privacy.dataset import Dataset
from sdv_privpgd.privacy.ledger import FitLedger, PrivacyLedger
from sdv_privpgd.privacy.queries import Adjacency

FOLDER = Path(__file__).parents[3] / "shared" / "data"
"""The default folder of the real tables, beside a checkout."""

_BEFORE = {"project": "consistency", "descend": "start"}
"""Names of the work between the stage before and this one."""

_PART_OF = {"measure again": "measure", "compare": "consistency", "denoise": "consistency"}

_STATUS = Path("/proc/self/status")


class Stopwatch:
    """Measures seconds per stage. Pass it as the ``progress`` of a pipeline.

    Seconds are those of the wall clock unless another clock is given.
    """

    def __init__(self, clock: Callable[[], float] = time.perf_counter) -> None:
        self.seconds: dict[str, float] = {}
        self._clock = clock
        self._last = clock()

    def lap(self, stage: str) -> None:
        """Adds the time since the last lap to a stage."""
        now = self._clock()
        self.seconds[stage] = self.seconds.get(stage, 0.0) + now - self._last
        self._last = now

    def __call__(self, items: Sequence[Item], stage: str) -> Iterable[Item]:
        whole = _PART_OF.get(stage, stage)
        self.lap(_BEFORE.get(stage, whole))
        yield from items
        self.lap(whole)


class PeakMemory:
    """The largest resident memory of this process above what it held when this was made."""

    def __init__(self) -> None:
        try:
            Path("/proc/self/clear_refs").write_text("5")  # Linux: forgets the peak so far
        except OSError:  # elsewhere an earlier peak hides smaller ones after the start
            self._start = _largest()
        else:
            self._start = _status("VmRSS")

    def mebibytes(self) -> float:
        """The peak since the start, above the start."""
        return (_largest() - self._start) / 2**10


def _largest() -> int:
    """The largest resident memory, KiB."""
    if _STATUS.exists():
        return _status("VmHWM")
    largest = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return largest // 2**10 if sys.platform == "darwin" else largest


def _status(key: str) -> int:
    (line,) = [line for line in _STATUS.read_text().splitlines() if line.startswith(key)]
    return int(line.split()[1])


def print_table(rows: Sequence[dict], *, header: bool) -> None:
    """Prints rows under the names of the first one's entries; numbers to three digits."""
    if header:
        print("".join(f" {name:>13}" for name in rows[0]))
    for row in rows:
        cells = [f"{cell:.3g}" if isinstance(cell, float) else f"{cell}" for cell in row.values()]
        print("".join(f" {cell:>13}" for cell in cells), flush=True)


def fit_dataset(
    dataset: Dataset, epsilon: float, method: Method, *, progress: Progress = silent
) -> Release:
    """Returns a release at delta 1e-5, without SDV around it."""
    ledger = PrivacyLedger.open(epsilon, 1e-5, Adjacency.REPLACE_ONE)
    return run(Curator(dataset, FitLedger(ledger)), method, progress=progress)
