"""What was paid for is kept: full disks, interrupts, fits that are finished later."""

import json

import pandas as pd
import pytest
from commands import SECRET, declared, fails_at, interrupt, refused, run

from sdv_privpgd import FittedTable

_FIT = "sdv_privpgd.synthesize.pgm.PrivatePGM.fit"


@pytest.fixture
def interrupted(csv, tmp_path, monkeypatch, capsys):
    """The model's file of a fit that was interrupted after it had paid, with its ledger."""
    files = ("--model", tmp_path / "model.zip", "--ledger", tmp_path / "ledger.json")
    with monkeypatch.context() as patched:
        patched.setattr(_FIT, interrupt)
        assert declared(csv, *files, "--quiet") == 130
    return tmp_path / "model.zip"


def test_an_interrupted_fit_is_finished_for_nothing(
    interrupted, tmp_path, monkeypatch, capsys, csv
):
    before = interrupted.read_bytes()
    with monkeypatch.context() as patched:
        patched.setattr(_FIT, interrupt)
        assert run("resume", interrupted, "--out", tmp_path / "out.csv", "--quiet") == 130
    assert interrupted.read_bytes() == before
    assert not (tmp_path / "out.csv").exists()
    assert run("sample", interrupted, "--rows", 5, "--out", tmp_path / "no.csv") == 1
    assert "sdv-privpgd resume" in capsys.readouterr().err
    ledger, page = tmp_path / "ledger.json", tmp_path / "page.html"
    before = json.loads(ledger.read_text())
    assert before["spent_epsilon"]["replace_one"] == pytest.approx(1)
    out = tmp_path / "out.csv"
    assert run("resume", interrupted, "--out", out, "--ledger", ledger, "--report", page) == 0
    assert "Guarantee   (" in capsys.readouterr().out
    assert json.loads(ledger.read_text())["charges"] == before["charges"]
    assert len(pd.read_csv(out)) == 2_000
    assert SECRET not in out.read_text() + page.read_text()
    assert run("sample", interrupted, "--rows", 5, "--out", tmp_path / "more.csv") == 0
    assert run("resume", interrupted, "--out", out, "--force") == 1
    assert "is finished: sdv-privpgd sample" in capsys.readouterr().err


def test_without_a_model_the_answers_are_kept_beside_the_rows(csv, tmp_path, monkeypatch, capsys):
    (tmp_path / "out.rescued.zip").write_text("another")
    with monkeypatch.context() as patched:
        patched.setattr(_FIT, interrupt)
        assert declared(csv, "--quiet") == 130
    rescued = tmp_path / "out.rescued-2.zip"
    assert f"sdv-privpgd resume {rescued} --out FILE" in capsys.readouterr().err
    assert (tmp_path / "out.rescued.zip").read_text() == "another"
    assert run("resume", rescued, "--rows", 7, "--out", tmp_path / "out.csv") == 0
    assert len(pd.read_csv(tmp_path / "out.csv")) == 7


def test_what_is_left_is_spent_with_the_table(csv, tmp_path, monkeypatch, capsys):
    model, ledger, out = (tmp_path / name for name in ("m.zip", "l.json", "out.csv"))
    with monkeypatch.context() as patched:
        patched.setattr("sdv_privpgd.methods.pipeline.ask", interrupt)
        assert run(
            "synthesize", csv, "--epsilon", 1, "--method", "mst", "--out", out, "--model", model,
            "--metadata", tmp_path / "metadata.json", "--ledger", ledger, "--quiet",
        ) == 130  # fmt: skip
    assert f"resume {model} --table TABLE" in capsys.readouterr().err
    first = json.loads(ledger.read_text())
    assert 0 < first["spent_epsilon"]["replace_one"] < 1
    assert "give the same table with --table" in refused(run("resume", model, "--out", out), capsys)
    goes_on = ("resume", model, "--table", csv, "--out", out, "--quiet")
    for shared in [("--ledger", ledger), ()]:
        said = refused(run(*goes_on, *shared, "--max-epsilon", 0.9), capsys)
        assert "The rest of epsilon" in said
        assert "would come to epsilon 1 at delta 1e-05, more than --max-epsilon 0.9" in said
    assert json.loads(ledger.read_text()) == first
    assert run(*goes_on, "--ledger", ledger, "--max-epsilon", 1) == 0
    second = json.loads(ledger.read_text())
    assert second["spent_epsilon"]["replace_one"] == pytest.approx(1, abs=0.01)
    shared = FittedTable.load(model).ledger
    assert len(second["charges"]) == len(shared.charges)
    assert len(pd.read_csv(out)) == 2_000


# More rows are new rows


def test_rows_and_keys_never_come_twice_unless_asked_for(csv, tmp_path):
    table = pd.read_csv(csv, dtype={"ward": str})
    table["number"], table["code"] = range(len(table)), [f"{n:05d}" for n in range(len(table))]
    table.to_csv(csv, index=False)
    written = json.loads((tmp_path / "metadata.json").read_text())
    written["columns"] |= {
        "number": {"sdtype": "id"},
        "code": {"sdtype": "id", "regex_format": "[0-9]{5}"},
    }
    written["primary_key"] = "code"
    written["alternate_keys"] = ["number"]
    (tmp_path / "metadata.json").write_text(json.dumps(written))
    model, out = tmp_path / "m.zip", tmp_path / "out.csv"
    assert declared(csv, "--model", model, "--rows", 400, "--quiet") == 0
    parts = [out]
    for number, more in enumerate([[], ["--condition", "ward=01"], []]):
        parts.append(tmp_path / f"more{number}.csv")
        assert run("sample", model, "--rows", 300, "--out", parts[-1], *more) == 0
    rows = pd.concat([pd.read_csv(part, dtype=str) for part in parts])
    for name in ("number", "code"):
        assert rows[name].is_unique
    modelled = [pd.read_csv(part)[["age", "ward", "ill"]] for part in parts[:2]]
    assert not modelled[1].equals(modelled[0].head(300))
    before = model.read_bytes()
    for name in ("again.csv", "once_more.csv"):
        assert run("sample", model, "--again", "--rows", 400, "--out", tmp_path / name) == 0
        assert (tmp_path / name).read_bytes() == out.read_bytes()
    assert model.read_bytes() == before


def test_a_model_moves_on_only_with_its_rows(csv, tmp_path, monkeypatch, capsys):
    model = tmp_path / "m.zip"
    assert declared(csv, "--model", model, "--quiet") == 0
    before = model.read_bytes()
    with monkeypatch.context() as patched:
        fails_at(patched, "more.part.csv")
        assert run("sample", model, "--rows", 5, "--out", tmp_path / "more.csv") == 1
    assert model.read_bytes() == before
    (tmp_path / "m.part.zip").touch()
    assert run("sample", model, "--rows", 5, "--out", tmp_path / "more.csv") == 1
    assert "--again leaves it as it is" in capsys.readouterr().err
    assert run("sample", model, "--again", "--rows", 5, "--out", tmp_path / "more.csv") == 0
