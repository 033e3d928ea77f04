"""The command line, as a user types it: from a file to a file."""

import errno
import json
import os
import signal
import subprocess
import sys
import time

import pandas as pd
import pytest
from commands import SECRET, declared, new_files, refused, run

from sdv_privpgd import FittedTable


@pytest.mark.parametrize("suffix", [".csv", ".csv.gz", ".parquet"])
def test_a_file_in_a_file_out(csv, suffix, capsys, tmp_path):
    source, out = tmp_path / f"in{suffix}", tmp_path / f"out{suffix}"
    real = pd.read_csv(csv, dtype={"ward": str})
    if suffix == ".parquet":
        real.to_parquet(source)
    else:
        real.to_csv(source, index=False)
    page, model = tmp_path / "report.html", tmp_path / "model.zip"
    method = ["--method", "mst"] if suffix != ".csv" else []
    method += ["--header"] if suffix != ".parquet" else []
    assert run(
        "synthesize", source, "--epsilon", 2, "--out", out, "--report", page, "--model", model,
        *method,
    ) == 0  # fmt: skip
    said = capsys.readouterr()
    assert "Guarantee   (" in said.out
    assert "were detected from the table and are taken as public; --metadata" in said.err
    assert "are not declared" in said.err
    assert "public_domain" not in said.err
    assert SECRET not in said.out + said.err
    rows = pd.read_parquet(out) if suffix == ".parquet" else pd.read_csv(out, dtype={"ward": str})
    assert len(rows) == len(real)
    assert list(rows.columns) == list(real.columns)
    assert {"01", "02"} <= set(rows["ward"])
    assert SECRET not in out.read_bytes().decode(errors="ignore")
    assert "<html" in page.read_text()
    assert run("describe", model) == 0
    described = capsys.readouterr().out
    assert "FittedTable" in described
    assert "age: numerical" in described
    assert SECRET not in described
    assert not list(tmp_path.glob("*.part*"))


def test_declared_columns_and_silence(csv, tmp_path, capsys):
    asked = ("--rows", 50, "--rows-are-people", "--quiet")
    assert declared(csv, "--adjacency", "add_remove", "--delta", 1e-5, *asked) == 0
    said = capsys.readouterr()
    assert (said.out, said.err) == ("", "")
    rows = pd.read_csv(tmp_path / "out.csv", dtype={"ward": str})
    assert len(rows) == 50
    assert set(rows["ward"].dropna()) == {"01", "02"}


def test_the_number_of_rows_is_the_noisy_one_where_it_is_private(csv, tmp_path):
    model = tmp_path / "model.zip"
    assert (
        declared(csv, "--adjacency", "add_remove", "--delta", 1e-5, "--model", model, "--quiet")
        == 0
    )
    rows = pd.read_csv(tmp_path / "out.csv")
    assert len(rows) == FittedTable.load(model).num_rows
    assert abs(len(rows) - 2_000) < 500
    assert run("sample", model, "--again", "--out", tmp_path / "more.csv") == 0
    pd.testing.assert_frame_equal(pd.read_csv(tmp_path / "more.csv"), rows)


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        (["--epsilon", "-1"], "--epsilon must be positive and finite, got -1.0"),
        (["--delta", "2"], "--delta must lie strictly between 0 and 1"),
        (["--rows-per-person", "0"], "--rows-per-person must be an integer of at least 1"),
        (["--max-epsilon", "0.5"], "--epsilon 1 would come to epsilon 1 at delta 1e-05, more than"),
        (["--max-epsilon", "-1"], "--max-epsilon must be a positive number"),
        (["--rows", "-3"], "--rows must be an integer of at least 0, got -3"),
        (["--out", "nowhere/out.csv"], "There is no folder nowhere"),
        (["--out", "out.xlsx"], "Cannot write rows to out.xlsx: give a name that ends in .csv"),
        (["--metadata", "none.json"], "none.json cannot be read: No such file"),
        (["--domain", "none.json"], "none.json"),
        (["--ledger", "{table}"], "which is read: it is never overwritten"),
        (["--discovery-share", "0"], "need a public domain: 'age'"),
        (["--discovery-share", "2"], "--discovery-share must be a number"),
        (["--sep", ";"], "name what separates them with --sep"),
    ],
)
def test_what_is_wrong_is_said_in_one_line(csv, tmp_path, changes, told, capsys):
    out = tmp_path / "out.csv"
    changes = [csv if change == "{table}" else change for change in changes]
    asked = ("--header", "--epsilon", 1, "--out", out, "--quiet")
    assert run("synthesize", csv, *asked, *changes) == 1
    *before, line = capsys.readouterr().err.splitlines()
    assert told in line
    assert all("were detected" in each for each in before)
    assert new_files(csv) == set()


def test_the_input_is_never_overwritten(csv, tmp_path, capsys):
    before = csv.read_bytes()
    for option in ("--out", "--model", "--report", "--ledger"):
        more = [option, csv] if option != "--out" else []
        out = "table.csv" if option == "--out" else "out.csv"
        assert declared(csv, "--force", *more, out=out) == 1
    assert run("evaluate", csv, csv, "--out", csv, "--force") == 1
    assert csv.read_bytes() == before
    assert new_files(csv) == set()
    said = capsys.readouterr().err
    assert said.count("which is read: it is never overwritten") == 3
    assert said.count("A report is a page (.html)") == 2  # whatever is there
    assert SECRET not in said


# What ends a command


_PLACES = {
    "reading": "sdv_privpgd.sources.csv.TextFile.parts",
    "before a row is asked about": "sdv_privpgd.fitting.fit.ask_first",
    "in the engine": "sdv_privpgd.synthesize.pgm.PrivatePGM.fit",
    "writing the model": "sdv_privpgd.fitting.model_rows.SavedModel.save",
    "writing rows": "sdv_privpgd.cli.output_files.write_rows",
    "writing the page": "sdv_privpgd.fitting.fitted_table.FittedTable.report",
}

_FREE = list(_PLACES)[:2]
_KEPT = {  # by the place, and whether the disk was full
    ("in the engine", False): {"l.json", "model.zip"},
    ("writing the model", False): {"l.json"},
    ("writing the model", True): {"l.json", "out.csv", "page.html"},
    ("writing rows", False): {"l.json", "model.zip"},
    ("writing rows", True): {"l.json", "model.zip", "page.html"},
    ("writing the page", False): {"l.json", "model.zip", "out.csv"},
    ("writing the page", True): {"l.json", "model.zip", "out.csv"},
}
_INTERRUPT = KeyboardInterrupt()
_FULL = OSError(errno.ENOSPC, "No space left on device")


@pytest.mark.parametrize(
    ("place", "error", "status", "told"),
    [
        *((place, _INTERRUPT, 130, "interrupted") for place in _PLACES),
        *((place, _FULL, 1, "") for place in _PLACES if place.startswith("writing")),
        ("in the engine", KeyboardInterrupt(signal.SIGTERM), 143, "interrupted"),
        ("in the engine", ValueError(SECRET), 1, "failed with ValueError; its text is withheld"),
    ],
)
def test_whatever_ends_it_the_ledger_are_kept_and_no_half_file_is_left(
    csv, tmp_path, monkeypatch, capsys, place, error, status, told
):
    def fail(*args, **kwargs):
        for part in tmp_path.glob("*.part*"):
            if not part.stat().st_size:
                part.write_bytes(b"half")
        raise error

    monkeypatch.setattr(_PLACES[place], fail)
    ledger, model, page = (tmp_path / name for name in ("l.json", "model.zip", "page.html"))
    assert declared(csv, "--ledger", ledger, "--model", model, "--report", page) == status
    said = capsys.readouterr().err
    assert SECRET not in said
    assert told in said.splitlines()[-1]
    is_full = isinstance(error, OSError)
    if is_full:
        assert "Cannot write --" in said
        assert ": No space left on device." in said
    kept = set()
    if place not in _FREE:
        assert "Epsilon 1 of 1 at delta 1e-05 was spent." in said
        assert json.loads(ledger.read_text())["spent_epsilon"]["replace_one"] == pytest.approx(1)
        kept = _KEPT[place, is_full]
    elif isinstance(error, KeyboardInterrupt):
        assert "Nothing was spent." in said
    assert new_files(csv) == kept
    monkeypatch.undo()
    if "model.zip" in kept:
        command = "resume" if place == "in the engine" else "sample"
        assert f"sdv-privpgd {command} {model}" in said
        assert run(command, model, "--rows", 5, "--out", tmp_path / "rows.csv") == 0
        assert len(pd.read_csv(tmp_path / "rows.csv")) == 5


# FitLedger over several runs


def test_a_ledger_goes_on_from_run_to_run(csv, tmp_path, capsys):
    ledger = tmp_path / "ledger.json"
    assert declared(csv, "--ledger", ledger, "--quiet") == 0
    assert "ONE ROW, NOT ONE PERSON, is protected: epsilon is 1" in capsys.readouterr().err
    first = json.loads(ledger.read_text())
    assert first["spent_epsilon"]["replace_one"] == pytest.approx(1)
    assert declared(csv, "--ledger", ledger, out="b.csv") == 0
    assert "Together with all before: Epsilon 1.4" in capsys.readouterr().out
    second = json.loads(ledger.read_text())
    charges = [[each["mu_squared"] for each in book["charges"]] for book in (first, second)]
    assert charges[1][: len(charges[0])] == charges[0]
    assert 1.3 < second["spent_epsilon"]["replace_one"] < 2
    before = ledger.read_text()
    for more, told in [
        (["--max-epsilon", 1.6], "after 1.4"),
        (["--adjacency", "add_remove", "--delta", 1e-5], "one adjacency"),
        (["--rows-per-person", 2], "rows-per-person"),
    ]:
        assert told in refused(declared(csv, "--ledger", ledger, *more, out="c.csv"), capsys)
    assert ledger.read_text() == before
    assert declared(csv, "--ledger", ledger, "--max-epsilon", 1.9, "--quiet", out="c.csv") == 0


# Other commands


def test_the_version_is_said(capsys):
    with pytest.raises(SystemExit, match="0"):
        run("--version")
    assert capsys.readouterr().out.startswith("sdv-privpgd ")


def test_what_no_type_reads_is_refused_unspent(tmp_path, capsys):
    pd.DataFrame({"time": pd.to_timedelta([1, 2], "h"), "note": [SECRET, ""]}).to_parquet(
        tmp_path / "table.parquet"
    )
    assert run(
        "synthesize", tmp_path / "table.parquet", "--epsilon", 1, "--out", tmp_path / "out.csv"
    ) == 1  # fmt: skip
    said = capsys.readouterr().err
    assert "No type of column reads {'time': 'duration[ns][pyarrow]'}. Convert them" in said
    assert SECRET not in said


def test_the_program_puts_things_in_order_when_it_is_ended(csv, tmp_path):
    fifo = tmp_path / "metadata.json"
    fifo.unlink()
    os.mkfifo(fifo)  # it waits here
    asked = ("plan", "--epsilon", "1", "--rows", "9", "--metadata", str(fifo))
    program = [sys.executable, "-m", "sdv_privpgd", *asked]
    waiting = subprocess.Popen(program, stderr=subprocess.PIPE, text=True)
    with fifo.open("w"):  # returns when the program opens the file
        time.sleep(1)  # Python forgets an interrupt that comes while it is being opened
        waiting.send_signal(signal.SIGINT)
        _, said = waiting.communicate(timeout=60)
    assert waiting.returncode == 130, said
    assert said.splitlines() == ["sdv-privpgd: Nothing was spent.", "sdv-privpgd: interrupted"]
