"""What is said, or refused, before anything is spent."""

import json

import pandas as pd
import pytest
from commands import SECRET, declared, interrupt, new_files, refused, run


@pytest.fixture
def constraints(tmp_path):
    def write(*listed):
        path = tmp_path / "constraints.json"
        path.write_text(json.dumps(listed))
        return path

    return write


def test_types_and_repeated_ids_are_said_before_anything_is_spent(
    csv, tmp_path, monkeypatch, capsys
):
    table = pd.read_csv(csv, dtype={"ward": str}).assign(patient="p", mail="a@b.c")
    table.to_csv(csv, index=False)
    written = json.loads((tmp_path / "metadata.json").read_text())
    written["columns"] |= {"patient": {"sdtype": "id"}, "mail": {"sdtype": "email"}}
    (tmp_path / "metadata.json").write_text(json.dumps(written))
    monkeypatch.setattr("sdv_privpgd.fitting.fitted_table.RunningFit.run", interrupt)
    assert declared(csv) == 130
    said = capsys.readouterr()
    lines = [line.split() for line in said.out.splitlines()]
    assert ["age", "numerical", "--metadata", "declared"] in lines
    assert ["ill", "boolean", "--metadata", "declared"] in lines
    assert ["patient", "id", "--metadata", "made", "up"] in lines
    assert "The ids ['patient'] are no keys of the table." in said.err
    assert "Left out: mail. What an sdtype says is no number" in said.err
    assert "name the column of people in --person-column and --rows-per-person" in said.err
    assert "Nothing was spent." in said.err
    assert declared(csv, "--quiet") == 130
    assert capsys.readouterr().out == ""
    for sdtype, asks in (("email", 0), ("ssn", 1)):
        written["columns"]["mail"]["sdtype"] = sdtype
        (tmp_path / "metadata.json").write_text(json.dumps(written))
        assert declared(csv, "--drop", "patient") == 130
        assert capsys.readouterr().err.count("Whose rows are these?") == asks


@pytest.mark.parametrize("command", ["plan", "dry run"])
def test_a_plan_needs_no_metadata_where_a_fit_needs_none(csv, tmp_path, capsys, command):
    first = ["plan", csv] if command == "plan" else ["synthesize", csv, "--dry-run"]
    asked = [*first, "--header", "--epsilon", 1, "--method", "mst"]
    assert run(*asked) == 0
    said = capsys.readouterr()
    assert "Plan for 2,000 rows: no table was asked, nothing was spent" in said.out
    lines = [line.split() for line in said.out.splitlines()]
    assert ["age", "numerical", "detected", "found", "privately"] in lines
    assert "were detected from the table" in said.err
    assert SECRET not in said.out + said.err
    assert run(*asked, "--adjacency", "add_remove", "--delta", 1e-5) == 1
    assert "their number is private" in capsys.readouterr().err
    assert run(*asked, "--adjacency", "add_remove", "--delta", 1e-5, "--rows", 100) == 0
    assert new_files(csv) == set()


def test_a_plan_is_written_as_a_page_and_needs_something_to_plan_for(capsys, csv, tmp_path):
    assert run("plan", "--epsilon", 1, "--rows", 5) == 1
    assert "A plan needs --metadata and --rows, or a table." in capsys.readouterr().err
    page = tmp_path / "plan.html"
    asked = ("--epsilon", 1, "--metadata", tmp_path / "metadata.json", "--rows", 500)
    assert run("plan", *asked, "--report", page) == 0
    assert "What to expect at epsilon 1 and 500 rows" in capsys.readouterr().out
    assert "What to expect at epsilon 1 and 500 rows" in page.read_text(encoding="utf-8")
    assert "--force" in refused(run("plan", *asked, "--report", page), capsys)
    assert run("plan", *asked, "--question", "share where age=30..45") == 0
    assert "Share where age is from 30" in capsys.readouterr().out
    wrong = refused(run("plan", *asked, "--question", "share where wards=B"), capsys)
    assert "--question 'share where wards=B': 'wards' is no column" in wrong
    wrong = refused(run("plan", *asked, "--question", "quantile half of age"), capsys)
    assert "--question 'quantile half of age': 'half' is no number" in wrong
    dry = (csv, *asked[:-2], "--out", tmp_path / "out.csv", "--dry-run")
    assert run("synthesize", *dry, "--report", page, "--force") == 0
    assert not (tmp_path / "out.csv").exists()


def test_an_empty_table_is_refused_where_its_number_of_rows_is_public(csv, tmp_path, capsys):
    csv.write_text("age,ward,ill\n")
    ledger = tmp_path / "l.json"
    assert declared(csv, "--ledger", ledger) == 1
    assert "The table has no rows. A fit would spend" in capsys.readouterr().err
    assert not ledger.exists()
    private = ("--adjacency", "add_remove", "--delta", 1e-5, "--rows", 10, "--quiet")
    assert declared(csv, "--ledger", ledger, *private) == 0
    assert len(pd.read_csv(tmp_path / "out.csv")) == 10


# Constraints


def test_constraints_of_a_file_are_met(tmp_path, constraints, capsys):
    table = pd.DataFrame({"low": range(500), "high": range(100, 600), "price": 5}).astype(float)
    table.to_csv(tmp_path / "t.csv", index=False)
    path = constraints(
        {
            "class_name": "Inequality",
            "parameters": {"low_column_name": "low", "high_column_name": "high"},
        },
        {
            "class_name": "FixedIncrements",
            "parameters": {"column_name": "price", "increment_value": 5},
        },
    )
    columns = {name: {"sdtype": "numerical"} for name in table.columns}
    (tmp_path / "m.json").write_text(json.dumps({"columns": columns}))
    (tmp_path / "d.json").write_text(
        json.dumps({name: {"range_min": 0, "range_max": 1000} for name in columns})
    )
    fit = [
        "synthesize", tmp_path / "t.csv", "--epsilon", 5, "--method", "mst", "--metadata",
        tmp_path / "m.json", "--domain", tmp_path / "d.json", "--quiet",
    ]  # fmt: skip
    assert run(*fit, "--constraints", path, "--out", tmp_path / "o.csv") == 0
    rows = pd.read_csv(tmp_path / "o.csv")
    assert len(rows) == 500
    assert (rows["low"].isna() | rows["high"].isna() | (rows["low"] <= rows["high"])).all()
    assert (rows["price"].dropna() % 5 == 0).all()
    before = path.read_bytes()
    assert run(*fit, "--constraints", path, "--report", path, "--out", path.parent / "p.csv") == 1
    assert path.read_bytes() == before


_PAIR = {"low_column_name": "age", "high_column_name": "wage"}


@pytest.mark.parametrize(
    ("listed", "told"),
    [
        ([{"class_name": "Unlearned", "parameters": {}}], "number 1: class_name must be one of"),
        ([{"constraint_class": "Range"}], 'must be {"class_name": ..., "parameters"'),
        ([{"class_name": "Inequality", "parameters": []}], "parameters must be a mapping"),
        ([{"class_name": "Inequality", "parameters": {"low": "age"}}], "Inequality: "),
        ([{"class_name": "Inequality", "parameters": _PAIR}], "wage"),
        (
            [{"class_name": "FixedCombinations", "parameters": {"column_names": ["ward", "ill"]}}],
            "combinations",
        ),
    ],
)
def test_constraints_that_no_fit_can_take_in_are_refused_first(
    csv, constraints, monkeypatch, capsys, listed, told
):
    monkeypatch.setattr("sdv_privpgd.cli.fits.open_table", lambda *args: 1 / 0)
    path = constraints(*listed)
    assert told in refused(declared(csv, "--constraints", path, "--quiet"), capsys)
    path.write_text("{}")
    assert declared(csv, "--constraints", path, "--quiet") == 1
    assert "must hold a list of constraints" in capsys.readouterr().err


@pytest.mark.parametrize("target", ["nope", "Ward"])
def test_a_target_that_is_no_column_is_refused_first(csv, capsys, target):
    said = refused(declared(csv, "--target", target), capsys)
    assert f"--target names [{target!r}], which are no modelled columns: choose from [" in said
    assert "'ward'" in said
    assert not new_files(csv)
