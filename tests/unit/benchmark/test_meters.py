"""Seconds by stage, and peak memory."""

import subprocess
import sys

from sdv_privpgd.benchmark.single import Stopwatch


def test_the_stopwatch_puts_all_time_down_to_stages():
    now = [0.0]
    watch = Stopwatch(lambda: now[0])
    now[0] += 5
    watch.lap("encode")
    for stage in ("measure", "compare", "measure again"):
        for _ in watch([1, 2, 3], stage):
            now[0] += 1
    now[0] += 2  # before the descent
    for _ in watch([1], "descend"):
        now[0] += 4
    now[0] += 7
    watch.lap("finish")
    assert watch.seconds == {
        "encode": 5, "measure": 6, "consistency": 3, "start": 2, "descend": 4, "finish": 7
    }  # fmt: skip


_HOLDS_50_MEBIBYTES = """
import numpy as np
from sdv_privpgd.benchmark.single import PeakMemory
memory = PeakMemory()
held = np.ones(50 << 17)
del held
print(memory.mebibytes())
"""


def test_peak_memory_is_what_was_held_at_the_most():
    # In a process of its own, as the benchmarks use it: where the kernel does not let a process
    # forget its peak, what the tests before this one held would hide it.
    done = subprocess.run(
        [sys.executable, "-c", _HOLDS_50_MEBIBYTES], stdout=subprocess.PIPE, text=True, check=True
    )
    assert 40 < float(done.stdout) < 100
