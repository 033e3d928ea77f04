"""What is published with rows: what they are, which release they are of, and its entry."""

import json

import pandas as pd
import pytest
from commands import declared, refused, run

from sdv_privpgd import FittedTable


@pytest.fixture
def made(kept):
    """The rows, the model and the card of a fit."""
    return kept / "out.csv", kept / "model.zip", kept / "out.csv.about.json"


def test_a_card_says_what_rows_are_and_tells_a_change(made, tmp_path, capsys):
    out, model, card = made
    facts, ledger = json.loads(card.read_text()), FittedTable.load(model).ledger
    assert (facts["synthetic"], facts["epsilon"]) == (True, ledger.spent())
    assert {"sha256", "delta", "unit", "generator", "date", "version"} <= facts.keys()
    assert run("identify", out, model) == 0
    said = capsys.readouterr().out
    assert "as it was written" in said
    assert f"that of {model}" in said
    assert f"release {facts['release']}" in said
    out.write_text(out.read_text() + "1,01,True\n")
    assert "was changed since" in refused(run("identify", out), capsys)
    assert "exists: --force" in refused(run("sample", model, "--rows", 3, "--out", out), capsys)
    renamed = out.rename(tmp_path / "renamed.csv")
    assert "may be synthetic, and it may be not" in refused(run("identify", renamed, card), capsys)
    assert run("sample", model, "--rows", 3, "--out", out) == 0  # the card alone is left
    assert run("identify", out) == 0


def test_parquet_says_in_its_metadata_what_it_is(made, csv, tmp_path, capsys):
    _, model, card = made
    more, other = tmp_path / "more.parquet", tmp_path / "other.zip"
    assert run("sample", model, "--rows", 30, "--out", more) == 0
    assert not (tmp_path / "more.parquet.about.json").exists()
    assert declared(csv, "--model", other, "--quiet", out="o.csv") == 0
    capsys.readouterr()
    assert run("identify", more, model, other) == 0
    said = capsys.readouterr().out
    assert json.loads(card.read_text())["release"] in said
    assert "cells may have been changed since" in said
    assert f"The release is that of {model}.\n" in said
    assert "the release of none of" in refused(run("identify", more, other), capsys)
    assert run("identify", csv) == 1


@pytest.mark.parametrize("mark", ["column", "comment"])
def test_rows_are_marked_if_that_is_asked_for(made, tmp_path, capsys, mark):
    _, model, card = made
    marked = tmp_path / "marked.csv"
    assert run("sample", model, "--mark", mark, "--rows", 20, "--out", marked) == 0
    rows = pd.read_csv(marked, comment="#")
    assert len(rows) == 20
    assert ("synthetic" in rows and rows["synthetic"].all()) == (mark == "column")
    (tmp_path / "marked.csv.about.json").unlink()
    assert run("identify", marked, model) == (mark == "column")
    if mark == "comment":
        release = json.loads(card.read_text())["release"]
        assert f"Synthetic rows of release {release}, " in capsys.readouterr().out
        no = tmp_path / "no.parquet"
        assert run("sample", model, "--mark", mark, "--out", no) == 1
        assert "--mark comment needs a file of text" in capsys.readouterr().err


def test_the_entry_counts_in_what_a_ledger_has(made, csv, tmp_path, capsys):
    _, model, _ = made
    ledger, entry = tmp_path / "ledger.json", tmp_path / "entry.json"
    assert declared(csv, "--ledger", ledger, "--quiet", out="second.csv") == 0
    assert run("registry", model, "--out", entry, "--name", "Wards", "--curator", "North") == 0
    said = capsys.readouterr()
    assert "--ledger counts it in" in said.err
    assert "- deployment.basic.description\n" in said.out
    whole = ["--ledger", ledger, "--out", entry, "--force"]
    alone = json.loads(entry.read_text())["deployment"]
    assert run("registry", model, *whole) == 0
    both = json.loads(entry.read_text())["deployment"]
    own, together = (
        each["privacy_loss"]["privacy_parameters"]["epsilon"] for each in (alone, both)
    )
    assert own == FittedTable.load(model).ledger.spent()
    assert together == json.loads(ledger.read_text())["spent_epsilon"]["replace_one"] > own
    assert both["deployment_model"]["release_type"] == "Many releases"
    ledger.write_text("{}")
    assert run("registry", model, *whole) == 1
    assert "must end in" in refused(run("registry", model, "--out", tmp_path / "entry.txt"), capsys)


def test_a_page_for_the_officer_counts_all_runs(made, capsys, csv, tmp_path):
    assert run("describe", made[1], "--methods") == 0
    assert "We used synthetic rows that were generated with" in capsys.readouterr().out
    _, model, _ = made
    ledger, page = tmp_path / "ledger.json", tmp_path / "officer.json"
    assert run("describe", model, "--officer", page) == 0
    assert "--ledger counts it in" in capsys.readouterr().err
    alone = json.loads(page.read_text())
    assert alone["epsilon_spent"] == FittedTable.load(model).ledger.spent()
    assert declared(csv, "--ledger", ledger, "--quiet", out="more.csv") == 0
    assert run("describe", model, "--officer", page, "--ledger", ledger, "--force") == 0
    together = json.loads(page.read_text())
    assert together["epsilon_spent"] > alone["epsilon_spent"]
    assert together["release"] == alone["release"]
    assert run("describe", model, "--ledger", ledger) == 1
    assert "--ledger is for --officer" in capsys.readouterr().err
