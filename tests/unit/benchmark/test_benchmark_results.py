""""""

import json
import math
import subprocess
import sys

import pandas as pd
import pytest

from sdv_privpgd.benchmark.compare import Run, append, canonical, held
from sdv_privpgd.benchmark.fits import Stopwatch
from sdv_privpgd.benchmark.methods import METHODS, Compared, published_epsilon
from sdv_privpgd.benchmark.show import labeled, log_ratios, said, summarize
from sdv_privpgd.methods.method import Method
from sdv_privpgd.privacy.accounting import mu_squared_of

DELTA = 1e-5


def a_run(**changes) -> Run:
    settings = canonical({"delta": DELTA, "cells": 32})
    facts = {"method": "MST", "table": "adult", "epsilon": 1.0, "seed": 0, "settings": settings}
    return Run(**{**facts, **changes})


@pytest.mark.parametrize(("epsilon", "ratio"), [(2.5, 1.235), (1.0, 1.314), (0.2, 1.478)])
def test_the_published_noise_is_what_autodp_gave_the_paper(epsilon, ratio):
    # Standard deviations 2.018, 4.901 and 24.10 against the exact 1.634, 3.731 and 16.30.
    spent = published_epsilon(epsilon, DELTA)
    found = math.sqrt(mu_squared_of(epsilon, DELTA) / mu_squared_of(spent, DELTA))
    assert found == pytest.approx(ratio, abs=5e-4)


@pytest.mark.parametrize("name", METHODS)
def test_every_method_has_a_strategy(name):
    assert isinstance(Compared(name=name).made(0), Method)


def test_a_methods_settings_are_those_that_it_reads():
    given = {"num_particles": 5, "published_epochs": 7, "max_megabytes": 8.0}
    read_by = {
        "MST": {},
        "AIM": {"max_megabytes": 8.0},
        "PrivPGD": {"num_particles": 5},
        "PrivPGD-AIM": {"num_particles": 5, "max_megabytes": 8.0},
        "PrivPGD-published": {"num_particles": 5, "published_epochs": 7},
    }
    for name, settings in read_by.items():
        assert Compared(name=name, **given).settings() == settings
    with pytest.raises(ValueError, match=r"no method 'GAN': choose from .*'AIM'"):
        Compared(name="GAN")


def test_runs_are_read_as_written_and_take_the_place_of_themselves_alone(tmp_path):
    path = tmp_path / "new" / "results.parquet"
    append(path, a_run(), {"rows": 80, "fit_seconds": 1.5}, {"l1": 0.25, "sw1": 0.01})
    rows = pd.read_parquet(path)
    assert rows[["metric", "value"]].to_dict("records") == [
        {"metric": "l1", "value": 0.25},
        {"metric": "sw1", "value": 0.01},
    ]
    assert rows["rows"].tolist() == [80, 80]
    assert rows["peak_mebibytes"].isna().all()
    assert json.loads(rows["versions"][0])["numpy"]
    assert held(path) == {a_run()}
    assert [kept.name for kept in path.parent.iterdir()] == ["results.parquet"]
    path = tmp_path / "results.parquet"
    others = [a_run(seed=1), a_run(epsilon=2.5), a_run(settings=canonical({"delta": 1e-6}))]
    append(path, a_run(), {"error": "MemoryError"}, {})
    for other in others:
        append(path, other, {}, {"l1": 1.0})
    assert a_run() in held(path)
    assert a_run() not in held(path, failed=False)
    append(path, a_run(), {}, {"l1": 2.0})
    rows = pd.read_parquet(path)
    assert sorted(rows["value"]) == [1.0, 1.0, 1.0, 2.0]
    assert rows["error"].isna().all()


def results(values: dict[tuple[str, str], list[float]], metric="l1") -> pd.DataFrame:
    """Rows of runs at one epsilon: (table, method) to a value a seed."""
    rows = [
        {"method": method, "table": table, "seed": seed, "value": value}
        for (table, method), each in values.items()
        for seed, value in enumerate(each)
    ]
    return pd.DataFrame(rows).assign(epsilon=1.0, settings="{}", metric=metric)


def test_means_and_errors_are_of_runs_of_one_table_and_one_setting():
    rows = results({("adult", "MST"): [1.0, 2.0, 3.0], ("bank", "MST"): [5.0]})
    summary = summarize(rows)
    three = summary.loc["adult", 1.0, "MST", "l1"]
    assert three["mean"] == 2.0
    assert three["error"] == pytest.approx(1 / math.sqrt(3))
    assert three["runs"] == 3
    one = summary.loc["bank", 1.0, "MST", "l1"]
    assert said(one["mean"], one["error"]) == "5"
    assert said(0.123456, 0.00234) == "0.123 ± 0.002"
    rows = results({("adult", "AIM"): [1.0, 3.0], ("adult", "MST"): [1.0, 1.0]})
    rows.loc[0, "settings"] = canonical({"delta": DELTA, "max_megabytes": 8})
    rows.loc[1, "settings"] = canonical({"delta": DELTA, "max_megabytes": 80})
    assert labeled(rows)["method"].tolist() == [
        "AIM (max_megabytes 8)",
        "AIM (max_megabytes 80)",
        "MST",
        "MST",
    ]
    assert rows["method"].tolist() == ["AIM", "AIM", "MST", "MST"]


def test_ratios_are_over_the_baselines_mean_on_the_same_table():
    rows = results(
        {
            ("adult", "PrivPGD"): [1.0, 3.0],
            ("adult", "MST"): [8.0, 0.0],
            ("bank", "PrivPGD"): [4.0],
            ("bank", "MST"): [1.0],
            ("nist", "MST"): [1.0],
        }
    )
    found = log_ratios(rows, "PrivPGD").set_index(["table", "method", "seed"])["ratio"]
    assert found["adult", "MST", 0] == 2.0
    assert found["bank", "MST", 0] == -2.0
    assert found["adult", "PrivPGD", 0] == -1.0
    assert ("adult", "MST", 1) not in found.index  # no logarithm
    assert "nist" not in found.index.get_level_values("table")  # no baseline


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
from sdv_privpgd.benchmark.fits import PeakMemory
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
