"""People on the command line: a bound on their rows, and rows that count as one together."""

import json

import numpy as np
import pandas as pd
import pytest
from commands import documents, run

PEOPLE = (
    "--adjacency", "add_remove", "--delta", 1e-5, "--person-column", "who", "--rows-per-person", 3,
)  # fmt: skip


@pytest.fixture
def visits(csv):
    """The table with whose each row is: 500 people, most of whom have several."""
    table = pd.read_csv(csv, dtype={"ward": str})
    table["who"] = np.random.default_rng(1).integers(0, 500, len(table))
    table.to_csv(csv, index=False)
    metadata = csv.parent / "metadata.json"
    facts = json.loads(metadata.read_text())
    facts["columns"]["who"] = {"sdtype": "id"}
    metadata.write_text(json.dumps(facts))
    return csv


def test_rows_of_a_person_count_as_one(visits, tmp_path, capsys):
    out, model, ledger = (tmp_path / name for name in ("out.csv", "model.zip", "ledger.json"))
    asked = ("--epsilon", 5, "--method", "mst", "--out", out, "--model", model, "--ledger", ledger)
    assert run("synthesize", visits, *asked, *documents(tmp_path), *PEOPLE, "--weigh-people") == 0
    said = " ".join(capsys.readouterr().out.split())
    assert "of which 3 at most are used, together as one row (told apart by 'who')" in said
    assert abs(len(pd.read_csv(out)) - 490) < 40  # as many as there are people
    assert json.loads(ledger.read_text())["weighed"] is True
    # The same people on one ledger, not weighed: no one number says what both promise.
    again = ("--epsilon", 5, "--method", "mst", "--out", tmp_path / "more.csv", "--ledger", ledger)
    assert run("synthesize", visits, *again, *documents(tmp_path), *PEOPLE) == 1
    assert "add_remove/3/weighed and add_remove/3" in capsys.readouterr().err
    assert run("synthesize", visits, *again, *documents(tmp_path), "--weigh-people") == 1
    assert "--weigh-people needs --person-column" in capsys.readouterr().err


def test_whose_the_rows_are_is_asked_unless_it_is_said(csv, tmp_path, capsys):
    asked = ("--force", "--epsilon", 1, "--method", "mst", "--out", tmp_path / "out.csv")
    first = "ONE ROW, NOT ONE PERSON, is protected: epsilon is 1 for a row"
    assert run("synthesize", csv, *asked, *documents(tmp_path)) == 0
    said = capsys.readouterr().out
    assert first in said
    assert "say --rows-are-people; else name the column of people in --person-column" in " ".join(
        said.split()
    )
    assert run("plan", csv, *documents(tmp_path), "--epsilon", 1) == 0
    assert first in capsys.readouterr().out
    assert run("synthesize", csv, *asked, *documents(tmp_path), "--rows-are-people") == 0
    said = capsys.readouterr().out
    assert "ONE ROW" not in said
    assert "for the row of one person" in said
