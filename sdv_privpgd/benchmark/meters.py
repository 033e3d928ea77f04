"""Meters of a run's seconds per stage and peak memory. Each run has a process of its own."""

import csv
import json
import resource
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from sdv_privpgd.progress import Item

_BEFORE = {"project": "consistency", "descend": "start"}
"""Names of the work between the stage before and this one."""

_PART_OF = {"measure again": "measure", "compare": "consistency", "denoise": "consistency"}

_STATUS = Path("/proc/self/status")


class Stopwatch:
    """Measures seconds per stage. Pass it as the ``progress`` of a pipeline.

    Seconds are those of the wall clock unless another clock is given.

    >>> ticks = iter([0.0, 1.5])
    >>> watch = Stopwatch(lambda: next(ticks))
    >>> watch.lap("read")
    >>> watch.seconds
    {'read': 1.5}
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
    """The largest resident memory of this process above what it held when this was made.

    >>> PeakMemory().mebibytes() >= 0
    True
    """

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


def in_fresh_process(arguments: Sequence[str]) -> dict:
    """The JSON that a subcommand prints as its last line, run by a new interpreter."""
    done = subprocess.run(
        [sys.executable, "-m", "sdv_privpgd.benchmark", *arguments],
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    return json.loads(done.stdout.splitlines()[-1])


def write_csv(rows: Sequence[dict], path: Path) -> None:
    """Writes rows with the same entries to a file, over any old one, and makes its folder.

    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     write_csv([{"rows": 100, "seconds": 0.5}], Path(folder, "scale.csv"))
    ...     Path(folder, "scale.csv").read_text().split()
    ['rows,seconds', '100,0.5']
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)


def print_table(rows: Sequence[dict], *, header: bool) -> None:
    """Prints rows under the names of the first one's entries; numbers to three digits.

    >>> print_table([{"rows": 100, "seconds": 0.5}], header=True)
              rows       seconds
               100           0.5
    """
    if header:
        print("".join(f" {name:>13}" for name in rows[0]))
    for row in rows:
        cells = [f"{cell:.3g}" if isinstance(cell, float) else f"{cell}" for cell in row.values()]
        print("".join(f" {cell:>13}" for cell in cells), flush=True)
