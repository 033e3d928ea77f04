"""Tables of several files, which the command line streams, and what ends that."""

import json

import numpy as np
import pandas as pd
import pytest
from commands import documents, interrupt, refused, run


@pytest.fixture
def folder(csv, tmp_path):
    """The table in three files of each kind."""
    table = pd.read_csv(csv, dtype={"ward": str})
    for kind in ("parquet", "csv"):
        (tmp_path / kind).mkdir()
    for number, rows in enumerate(np.array_split(np.arange(len(table)), 3)):
        part = table.iloc[rows]
        part.to_parquet(tmp_path / "parquet" / f"{number}.parquet", index=False)
        part.to_csv(tmp_path / "csv" / f"{number}.csv", index=False, sep=";")
    return tmp_path


@pytest.fixture
def no_frame(monkeypatch):
    """Reading the private table into a frame fails."""
    monkeypatch.setattr("sdv_privpgd.cli.fit_options.read_table", lambda *args: 1 / 0)
    monkeypatch.setattr("pandas.read_parquet", lambda *args: 1 / 0)


def fit(folder, *tables, out="out.csv", command="synthesize"):
    more = ["--out", folder / out] if command == "synthesize" else []
    return run(
        command, *tables, "--epsilon", 1, "--method", "mst", *more,
        *documents(folder),
    )  # fmt: skip


@pytest.mark.parametrize(
    "named",
    [
        lambda folder: [f"{folder}/parquet/*.parquet"],
        lambda folder: sorted((folder / "parquet").iterdir()),  # as a shell expands it
        lambda folder: [folder / "parquet"],
        lambda folder: [f"{folder}/csv/*.csv", "--sep", ";"],
        lambda folder: [folder / "parquet", "--dtype", "age=Int16"],
    ],
)
def test_files_are_fitted_in_batches(folder, no_frame, capsys, named):
    assert fit(folder, *named(folder), "--quiet") == 0, capsys.readouterr().err
    rows = pd.read_csv(folder / "out.csv", sep=None, engine="python", dtype={"ward": str})
    assert len(rows) == 2_000
    assert set(rows["ward"].dropna()) == {"01", "02"}
    assert rows["age"].between(15, 65).mean() > 0.9


def test_a_plan_counts_the_rows_of_all_files(folder, no_frame, capsys):
    assert fit(folder, f"{folder}/parquet/*", command="plan") == 0
    assert "2,000 rows" in capsys.readouterr().out


def test_types_are_those_of_the_schema_or_detected_in_all_files(folder, capsys):
    asked = ["--epsilon", 1, "--rows", 9]
    assert run("plan", f"{folder}/parquet/*", "--types", "dtypes", *asked) == 0
    assert "age     numerical" in capsys.readouterr().out
    asked.append("--header")
    assert run("plan", f"{folder}/csv/*", "--sep", ";", "--decimal", ".", *asked) == 0
    types_of_files = capsys.readouterr().out.split("\n\n")[0]
    assert run("plan", folder / "table.csv", *asked) == 0
    assert capsys.readouterr().out.split("\n\n")[0] == types_of_files
    # A file without rows says no type.
    header, *_ = (folder / "csv" / "0.csv").read_text().splitlines()
    (folder / "csv" / "3.csv").write_text(f"{header}\n")
    assert run("plan", f"{folder}/csv/*", "--sep", ";", "--decimal", ".", *asked) == 0
    assert capsys.readouterr().out.split("\n\n")[0] == types_of_files


def test_what_was_interrupted_is_finished_with_the_same_files(folder, monkeypatch, capsys):
    model = folder / "model.zip"
    with monkeypatch.context() as patch:
        patch.setattr("sdv_privpgd.synthesize.pgm.PrivatePGM.fit", interrupt)
        assert fit(folder, f"{folder}/parquet/*", "--model", model) == 130
    more = ["--table", f"{folder}/parquet/[01]*", "--table", f"{folder}/parquet/2.parquet"]
    assert run("resume", model, *more, "--out", folder / "rows.csv") == 0
    assert len(pd.read_csv(folder / "rows.csv")) == 2_000
    held_out = ["--held-out", f"{folder}/parquet/0.parquet"]
    page = folder / "page.html"
    assert run("evaluate", model, f"{folder}/parquet/*", *held_out, "--out", page) == 0
    assert "NOT PRIVATE" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("named", "out", "told"),
    [
        ("parquet", "parquet/new.parquet", "would be one of the files of"),
        ("parquet/*.parquet", "parquet/new.parquet", "would be one of the files of"),
        ("csv/*.csv", "csv/1.csv", "which is read: it is never overwritten"),
    ],
)
def test_no_result_is_written_among_the_rows(folder, capsys, named, out, told):
    """The next fit would take synthetic rows for real ones."""
    assert told in refused(fit(folder, f"{folder}/{named}", "--force", out=out), capsys)
    assert len(list((folder / "parquet").iterdir())) == 3


def test_whose_rows_are_is_an_id_whatever_the_metadata_says(folder, capsys):
    people = ["--person-column", "age", "--rows-per-person", 2, "--quiet"]
    assert fit(folder, folder / "parquet", *people) == 1
    assert "needs --adjacency add_remove" in capsys.readouterr().err
    domain = json.loads((folder / "domain.json").read_text())
    domain.pop("age", None)
    (folder / "domain.json").write_text(json.dumps(domain))
    private = ["--adjacency", "add_remove", "--delta", 1e-5]
    assert fit(folder, folder / "parquet", *people, *private) == 0
    # As many ids as there are ages would have come back; of each two rows were read at most.
    assert len(pd.read_csv(folder / "out.csv")) < 300
    assert fit(folder, folder / "parquet", "--person-column", "who", *private) == 1
    assert "--person-column names ['who'], which are no columns" in capsys.readouterr().err
