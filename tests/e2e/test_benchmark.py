"""The benchmarks' command line, at toy size."""

import csv
import subprocess
import sys

import numpy as np
import pytest

from sdv_privpgd.benchmark.meters import PeakMemory, Stopwatch
from sdv_privpgd.benchmark.simulated import simulated_table


def command(*arguments: str) -> str:
    done = subprocess.run(
        [sys.executable, "-m", "sdv_privpgd.benchmark", *arguments],
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize("changes", [[], ["--from-frame"]])
def test_scale_writes_one_line_a_run(changes, tmp_path):
    sizes = ["--rows", "300", "--columns", "2", "3", "--num-particles", "100"]
    printed = command("scale", *sizes, "--out", str(tmp_path), *changes)
    assert len(printed.splitlines()) == 3
    with (tmp_path / "scale.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert [(row["rows"], row["columns"]) for row in rows] == [("300", "2"), ("300", "3")]
    for row in rows:
        assert float(row["fit"]) > 0
        assert float(row["sample"]) > 0
        assert float(row["peak_MiB"]) >= 0
    assert (tmp_path / "scale.png").stat().st_size > 0


def test_simulated_tables_repeat_and_have_dependent_columns_in_all_cells():
    domain, codes = simulated_table(20_000, 6)
    again = simulated_table(20_000, 6)[1]
    np.testing.assert_array_equal(codes, again)
    assert codes.dtype == np.uint8
    assert domain.sizes == (32,) * 6
    assert (codes.min(axis=0) == 0).all()
    assert (codes.max(axis=0) == 31).all()
    correlations = np.corrcoef(codes, rowvar=False)[np.triu_indices(6, 1)]
    assert np.abs(correlations).max() > 0.3


def test_the_stopwatch_puts_all_time_down_to_stages(monkeypatch):
    now = [0.0]
    monkeypatch.setattr("time.perf_counter", lambda: now[0])
    watch = Stopwatch()
    now[0] += 5
    watch.lap("encode")
    now[0] += 2  # counting, before the noise
    for _ in watch([1, 2, 3], "measure"):
        now[0] += 1
    now[0] += 7
    watch.lap("finish")
    assert watch.seconds == {"encode": 5, "count": 2, "noise": 3, "finish": 7}


def test_peak_memory_is_what_was_held_at_the_most():
    memory = PeakMemory()
    held = np.ones(50 << 17)  # 50 MiB
    del held
    assert memory.mebibytes() > 40
