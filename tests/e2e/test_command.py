"""The command line, as a user types it."""

import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
import sdv  # noqa: F401  (before a module of ours is named: it loads them at its end)

from sdv_privpgd.cli.program import main

SECRET = "CANARYTEXT"


@pytest.fixture
def csv(tmp_path):
    rng = np.random.default_rng(0)
    table = pd.DataFrame(
        {
            "age": rng.integers(20, 60, 2_000),
            "ward": rng.choice(["A", "B"], 2_000),
            "ill": rng.random(2_000) < 0.2,
        }
    )
    table.loc[0, "ward"] = SECRET
    table.to_csv(tmp_path / "table.csv", index=False)
    return tmp_path / "table.csv"


def run(*arguments):
    return main([str(argument) for argument in arguments])


@pytest.mark.parametrize("suffix", [".csv", ".csv.gz", ".parquet"])
def test_a_file_in_a_file_out(csv, suffix, capsys, tmp_path):
    source, out = tmp_path / f"in{suffix}", tmp_path / f"out{suffix}"
    read, write = (
        (pd.read_parquet, pd.DataFrame.to_parquet)
        if suffix == ".parquet"
        else (pd.read_csv, pd.DataFrame.to_csv)
    )
    real = pd.read_csv(csv)
    write(real, source, index=False)
    page, model = tmp_path / "report.html", tmp_path / "model.pkl"
    assert run(
        "synthesize", source, "--epsilon", 2, "--out", out, "--report", page, "--model", model
    ) == 0  # fmt: skip
    said = capsys.readouterr()
    assert "Guarantee   (" in said.out
    assert "are not declared" in said.err
    assert SECRET not in said.out + said.err
    rows = read(out)
    assert len(rows) == len(real)
    assert list(rows.columns) == list(real.columns)
    assert SECRET not in out.read_bytes().decode(errors="ignore")
    assert "<html" in page.read_text()
    assert run("describe", model) == 0
    described = capsys.readouterr().out
    assert "PrivPGDSynthesizer" in described
    assert "age: numerical" in described
    assert SECRET not in described


def test_declared_columns_and_other_methods(csv, tmp_path, capsys):
    (tmp_path / "metadata.json").write_text(
        """{"columns": {"age": {"sdtype": "numerical"}, "ward": {"sdtype": "categorical"},
        "ill": {"sdtype": "boolean"}}}"""
    )
    (tmp_path / "domain.json").write_text(
        """{"age": {"range_min": 0, "range_max": 110, "decimal_places": 0},
        "ward": {"range_values": ["A", "B"]}}"""
    )
    assert run(
        "synthesize", csv, "--epsilon", 1, "--out", tmp_path / "out.csv", "--method", "mst",
        "--metadata", tmp_path / "metadata.json", "--domain", tmp_path / "domain.json",
        "--adjacency", "add_remove", "--rows", 50, "--quiet",
    ) == 0  # fmt: skip
    said = capsys.readouterr()
    assert (said.out, said.err) == ("", "")
    assert len(pd.read_csv(tmp_path / "out.csv")) == 50


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        (["--epsilon", "-1"], "epsilon"),
        (["--epsilon", "inf"], "--epsilon must be positive and finite"),
        (["--rows-per-person", "0"], "--rows-per-person must be a whole number"),
        (["--max-epsilon", "0.5"], "--epsilon 1 would come to epsilon 1 at delta 1e-05, more than"),
        (["--rows", "-3"], "--rows must be 0 or more, got -3"),
        (["--out", "nowhere/out.csv"], "There is no folder nowhere"),
        (["--metadata", "none.json"], "Cannot read none.json"),
        (["--discovery-share", "0"], "need a public domain: 'age'"),
        (["--discovery-share", "2"], "--discovery-share must be a number"),
    ],
)
def test_what_is_wrong_is_said_in_one_line(csv, tmp_path, changes, told, capsys):
    out = tmp_path / "out.csv"
    assert run("synthesize", csv, "--epsilon", 1, "--out", out, "--quiet", *changes) == 1
    *before, line = capsys.readouterr().err.splitlines()
    assert told in line
    assert all("were detected" in each for each in before)
    assert [path.name for path in tmp_path.iterdir()] == ["table.csv"]


def test_what_others_say_of_a_cell_is_withheld(csv, tmp_path, capsys, monkeypatch):
    ragged = tmp_path / "ragged.csv"
    ragged.write_text(f'a,b\n1,2\n1,"{SECRET}')
    assert run("synthesize", ragged, "--epsilon", 1, "--out", tmp_path / "out.csv") == 1
    said = capsys.readouterr().err
    assert "Cannot read" in said

    def fail(*args, **kwargs):
        raise ValueError(f"could not convert {SECRET}")

    monkeypatch.setattr("sdv_privpgd._lifecycle.encode_table", fail)
    assert run("synthesize", csv, "--epsilon", 1, "--out", tmp_path / "out.csv") == 1
    said += capsys.readouterr().err
    assert "failed with ValueError" in said
    assert SECRET not in said


@pytest.mark.parametrize("names", [("table.parquet", "out.csv"), ("table.csv", "out.parquet")])
def test_parquet_without_pyarrow_is_told_before_a_row_is_read(names, tmp_path, capsys, monkeypatch):
    monkeypatch.setattr("sdv_privpgd.cli.files.find_spec", lambda name: None)
    table, out = (tmp_path / name for name in names)
    table.touch()
    assert run("synthesize", table, "--epsilon", 1, "--out", out) == 1
    assert "needs pyarrow: pip install pyarrow." in capsys.readouterr().err


def test_types_that_sdv_cannot_detect_are_asked_for(tmp_path, capsys):
    pd.DataFrame({"time": pd.to_timedelta([1, 2], "h"), "note": [SECRET, ""]}).to_parquet(
        tmp_path / "table.parquet"
    )
    assert run(
        "synthesize", tmp_path / "table.parquet", "--epsilon", 1, "--out", tmp_path / "out.csv"
    ) == 1  # fmt: skip
    said = capsys.readouterr().err
    assert "cannot detect the columns' types (InvalidMetadataError). Give them with" in said
    assert SECRET not in said


def test_a_dry_run_reads_nothing(tmp_path, capsys):
    (tmp_path / "metadata.json").write_text(
        """{"columns": {"age": {"sdtype": "numerical"}, "ill": {"sdtype": "boolean"}}}"""
    )
    asked = ["synthesize", tmp_path / "no.csv", "--epsilon", 1, "--dry-run"]
    assert run(*asked, "--metadata", tmp_path / "metadata.json", "--rows", 5_000) == 0
    said = capsys.readouterr().out
    assert "Plan for 5,000 rows: nothing was read" in said
    assert "ranges of undeclared columns" in said
    assert run(*asked) == 1
    assert "--dry-run needs --metadata and --rows" in capsys.readouterr().err


def test_a_missing_file_and_an_unknown_command(tmp_path, capsys):
    assert run("synthesize", tmp_path / "no.csv", "--epsilon", 1, "--out", tmp_path / "o.csv") == 1
    assert run("describe", tmp_path / "no.pkl") == 1
    assert capsys.readouterr().err.count("There is no file") == 2
    with pytest.raises(SystemExit, match="2"):
        run("synthesise")


def test_the_program_is_installed(csv, tmp_path):
    program = [sys.executable, "-m", "sdv_privpgd.cli"]
    done = subprocess.run(
        [*program, "synthesize", str(csv), "--epsilon", "1", "--out", str(tmp_path / "o.csv")],
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    assert len(pd.read_csv(tmp_path / "o.csv")) == 2_000
