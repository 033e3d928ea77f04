"""The benchmarks' command line, at toy size."""

import csv
import json
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
from processes import benchmark

from sdv_privpgd.benchmark.fits import columns_of
from sdv_privpgd.benchmark.meters import Stopwatch
from sdv_privpgd.benchmark.simulated import (
    MIXED_COLUMNS,
    MIXED_DOMAIN,
    mixed_table,
    simulated_table,
)
from sdv_privpgd.benchmark.stages import STAGES
from sdv_privpgd.columns.encoders import encoder_for
from sdv_privpgd.columns.schema import Schema


@pytest.mark.parametrize("changes", [[], pytest.param(["--from-frame"], marks=pytest.mark.slow)])
def test_scale_writes_one_line_a_run(changes, tmp_path):
    sizes = ["--rows", "300", "--columns", "2", "3", "--num-particles", "100"]
    printed = benchmark("scale", *sizes, "--out", str(tmp_path), *changes)
    assert len(printed.splitlines()) == 3
    with (tmp_path / "scale.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert [(row["rows"], row["columns"]) for row in rows] == [("300", "2"), ("300", "3")]
    for row in rows:
        assert float(row["fit"]) > 0
        assert float(row["sample"]) > 0
        assert float(row["peak_MiB"]) >= 0
    assert (tmp_path / "scale.png").stat().st_size > 0


@pytest.mark.slow
def test_stages_prints_a_line_a_stage():
    lines = benchmark("stages", "--share", "0.0001", "--repetitions", "1").splitlines()
    names = [line[:14].strip() for line in lines]
    assert names == ["stage", *STAGES]


@pytest.mark.slow
def test_undeclared_prints_a_line_a_table(tmp_path):
    table = mixed_table(400).assign(key=[f"key-{row}" for row in range(400)])
    table.to_parquet(tmp_path / "mixed.parquet")
    where = ["--data", str(tmp_path), "--tables", "mixed"]
    header, line = benchmark("undeclared", *where, "--rows", "300", "--num-particles", "100").split(
        "\n"
    )[:2]
    found = dict(zip(header.split(), line.split(), strict=False))
    assert found["size"] == f"300x{len(MIXED_COLUMNS)}"
    assert 0 < float(line.split()[-1]) < 1


@pytest.mark.slow
def test_conditions_prints_an_error_of_each_frequency_and_the_seconds():
    sizes = ["--rows", "2000", "--columns", "4", "--cells", "8", "--population", "30000"]
    printed = benchmark("conditions", *sizes, "--seeds", "1", "--conditions", "2", "--timed", "5")
    errors, seconds = printed.split("\n\n")
    frequencies = [line[:14].strip() for line in errors.splitlines()]
    assert frequencies[:3] == ["frequency", "10 %", "1 %"]
    assert len(seconds.splitlines()) == 5
    assert seconds.count(": 500 rows in ") == 5


@pytest.mark.slow
def test_constraints_prints_the_errors_and_no_broken_row():
    sizes = ["--rows", "500", "--checked", "2000", "--seeds", "1"]
    printed = benchmark("constraints", "--cases", "Range: three dates", *sizes)
    header, row = (line for line in printed.splitlines() if line)
    assert header.split()[-2:] == ["ratio", "broken"]
    assert row.split()[-1] == "0"


def write_table(folder, name: str, bounds: dict, **columns) -> None:
    """A real table in miniature, with the facts that lie beside it."""
    table = pd.DataFrame(columns)
    numbers = dict.fromkeys(bounds, "numerical")
    facts = {
        "sdtypes": dict.fromkeys(table.columns, "categorical") | numbers,
        "dtypes": {column: str(kind) for column, kind in table.dtypes.items()},
        "public_bounds": bounds,
        "missing": {},
    }
    (folder / f"{name}.json").write_text(json.dumps(facts))
    table.to_parquet(folder / f"{name}.parquet")


def write_patients(folder):
    """Three columns of Diabetes and its keys."""
    rng = np.random.default_rng(0)
    write_table(
        folder,
        "diabetes_130us",
        {"time_in_hospital": [1, 14]},
        encounter_id=np.arange(200),
        patient_nbr=np.arange(200),
        race=rng.choice(["?", "A", "B"], 200),
        time_in_hospital=rng.integers(1, 15, 200),
        readmitted=rng.choice(["NO", "<30", ">30"], 200),
    )


@pytest.mark.slow
def test_diabetes_prints_its_stages_and_its_error(tmp_path):
    write_patients(tmp_path)
    printed = benchmark("diabetes", "--data", str(tmp_path), "--num-particles", "100")
    names, values = (line.split() for line in printed.splitlines()[-2:])
    assert "200 rows, 3 columns" in printed
    assert names[-2:] == ["half", "L1"]
    assert 0 < float(values[-1]) < 1


@pytest.mark.slow
def test_discovery_prints_what_it_costs_to_declare_nothing(tmp_path):
    write_patients(tmp_path)
    chosen = ["--tables", "diabetes", "--epsilons", "9", "--seeds", "1", "--by-column"]
    lines = benchmark("discovery", "--data", str(tmp_path), *chosen).splitlines()
    row = dict(zip(lines[0].split(), lines[1].split(), strict=False))
    assert row["table"] == "diabetes"
    assert 0 < float(row["declared"]) < 1
    assert 0 < float(row["discovered"]) < 1
    assert row["more"].endswith("%")
    assert [line.split()[0] for line in lines[3:]] == ["race", "time_in_hospital", "readmitted"]


def test_intervals_prints_how_often_they_hold_the_truth(tmp_path):
    write_patients(tmp_path)
    sizes = ["--tables", "diabetes", "--epsilons", "9", "--fits", "3", "--questions", "12"]
    header, line = benchmark("intervals", "--data", str(tmp_path), *sizes).splitlines()
    row = dict(zip(header.split(), line.split(), strict=True))
    assert row["table"] == "diabetes"
    assert 0.6 < float(row["of_table"]) <= 1
    assert 0.6 < float(row["of_people"]) <= 1
    assert float(row["alone"]) >= 1
    assert 0.8 < float(row["width"]) < 1.3


@pytest.mark.slow
def test_learning_prints_the_scores_of_each_arm(tmp_path):
    write_patients(tmp_path)
    chosen = ["--tables", "diabetes", "--epsilons", "9", "--times", "2"]
    chosen += ["--arms", "target", "Real", "DP-EBM"]
    lines = benchmark("learning", "--data", str(tmp_path), *chosen).splitlines()
    names = lines[0].split()
    rows = [dict(zip(names, line.split(), strict=False)) for line in lines[1:3]]
    assert [row["arm"] for row in rows] == ["Real", "target"]
    assert all(0 <= float(row[name]) <= 1 for row in rows for name in ("auroc", "f1", "tv2"))
    model = dict(zip(lines[3].split(), lines[4].split(), strict=True))
    assert model["arm"] == "DP-EBM"
    assert 0.4 < float(model["auroc"]) <= 1


@pytest.mark.slow
def test_curves_writes_every_family_and_marks_the_default(tmp_path):
    rng = np.random.default_rng(0)
    income = rng.random(300) < 0.4
    write_table(
        tmp_path,
        "acs_income_xx",
        {},
        AGEP=rng.integers(17, 99, 300) // (1 + income),
        SEX=rng.integers(1, 3, 300),
        PINCP=income,
    )
    sizes = ["--num-particles", "100", "--epochs", "0", "1", "100", "--sweeps", "2"]
    benchmark("curves", "--data", str(tmp_path), *sizes, "--out", str(tmp_path))
    with (tmp_path / "curves.csv").open() as file:
        rows = list(csv.DictReader(file))
    families = {row["family"] for row in rows}
    assert {"0 epochs", "100 epochs", "4 tables a step", "5 copies, 1 epochs"} <= families
    assert {row["targets"] for row in rows} == {"noisy", "true"}
    assert {row["sweeps"] for row in rows} == {"0", "2"}
    assert all(float(row["L1"]) < 2 and float(row["seconds"]) > 0 for row in rows)
    assert (tmp_path / "curves.png").stat().st_size > 0


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


def test_mixed_tables_lie_in_their_declared_domain_and_have_missing_values():
    table = mixed_table(1_000)
    columns = columns_of(table)
    schema = Schema.from_sdv(MIXED_COLUMNS, public_domain=MIXED_DOMAIN, keys={"key"})
    assert list(table.columns) == list(MIXED_COLUMNS)
    assert len(schema.columns) == 12
    for column in schema.columns:
        series = columns[column.name]
        assert encoder_for(column).holds(series).all()
        # 5 % of 1,000 cells: 50, give or take 4.4 standard deviations of 6.9.
        assert abs(int(series.isna().sum()) - 50 * column.nullable) <= 30


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
from sdv_privpgd.benchmark.meters import PeakMemory
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


def test_reading_is_timed_by_source(tmp_path):
    asked = ["--from-files", str(tmp_path), "--rows", "2000", "--sources", "parquet"]
    lines = benchmark("scale", *asked).splitlines()
    assert [line.split()[:2] for line in lines[1:]] == [["parquet", "2000"]]
    found = dict(zip(lines[0].split(), lines[1].split(), strict=True))
    assert float(found["Mpairs_per_core_s"]) > 0


@pytest.mark.slow
def test_holders_prints_a_line_a_split():
    few = ["--rows", "600", "--num-particles", "200", "--seeds", "1"]
    lines = benchmark("holders", "--holders", "2", "--alone", "1", *few).splitlines()
    assert [line.split()[0] for line in lines] == ["split", "even", "education"]
    found = dict(zip(lines[0].split(), lines[1].split(), strict=True))
    assert float(found["noise"]) == pytest.approx(float(found["foretold"]), rel=0.1)
    lines = benchmark("holders", "--refine", *few).splitlines()
    assert lines[-1].split()[0] == "mean"
