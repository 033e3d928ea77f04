"""Rows in order on the command line."""

import json

import pandas as pd
import pytest
from commands import documents, refused, run
from visiting import COLUMNS, visits

from sdv_privpgd import write_domain

ORDER = (
    "--adjacency", "add_remove", "--delta", 1e-5, "--person-column", "patient",
    "--rows-per-person", 3,
    "--sequence-index", "admitted", "--previous", "ward", "--context-column", "sex",
)  # fmt: skip


@pytest.fixture
def folder(tmp_path):
    visits(600).to_csv(tmp_path / "visits.csv", index=False)
    kinds = {name: {"sdtype": each.sdtype} for name, each in COLUMNS.items()}
    kinds["admitted"]["datetime_format"] = "%Y-%m-%d"
    columns = {"patient": {"sdtype": "id"}, **kinds}
    (tmp_path / "metadata.json").write_text(
        json.dumps({"tables": {"visits": {"columns": columns}}, "METADATA_SPEC_VERSION": "V1"})
    )
    write_domain(COLUMNS, tmp_path / "domain.json")
    return tmp_path


def asked(folder, command, *more):
    declared = documents(folder)
    return run(command, folder / "visits.csv", *declared, "--epsilon", 5, *more)


def is_in_order(path):
    rows = pd.read_csv(path, parse_dates=["admitted"])
    grouped = rows.groupby("patient", sort=False)
    assert grouped.size().max() <= 3
    return bool(grouped["admitted"].is_monotonic_increasing.all()) and grouped.ngroups < len(rows)


def test_patients_are_synthesized_with_visits_in_order(folder, capsys):
    out, model = folder / "out.csv", folder / "model.zip"
    kept = ("--out", out, "--model", model, "--method", "mst", "--quiet")
    assert asked(folder, "synthesize", *ORDER, *kept) == 0
    assert is_in_order(out)
    assert run("sample", model, "--rows", 200, "--out", folder / "more.csv") == 0
    assert is_in_order(folder / "more.csv")
    capsys.readouterr()


def test_a_holder_measures_visits_in_order(folder, capsys):
    release = folder / "north.zip"
    assert asked(folder, "measure", *ORDER, "--site", "North", "--out", release, "--quiet") == 0
    assert run("combine", release, "--engine", "pgm", "--out", folder / "rows.csv", "--quiet") == 0
    assert is_in_order(folder / "rows.csv")
    capsys.readouterr()


@pytest.mark.parametrize(
    ("more", "said"),
    [
        (ORDER[:4], "--previous need --sequence-index"),
        (("--adjacency", "add_remove", "--delta", 1e-5), "--sequence-index needs --person-column"),
        (ORDER[:6], "--sequence-index needs --rows-per-person of at least 2"),
        ((*ORDER[:8], "--context-column", "wrd"), "--context-column names ['wrd']"),
    ],
)
def test_what_cannot_be_meant_is_said_in_options(folder, more, said, capsys):
    order = ("--previous", "ward") if said.startswith("--previous") else ORDER[8:10]
    out = ("--out", folder / "out.csv", "--method", "mst")
    assert said in refused(asked(folder, "synthesize", *more, *order, *out), capsys)
