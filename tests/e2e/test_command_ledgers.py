"""A kept model knows which ledger has what it has spent, and no later command forgets it."""

import json
import shutil

import pandas as pd
import pytest
import sdv  # noqa: F401  (before a module of ours is named: it loads them at its end)
from commands import DOMAIN, declared, fails_at, run

from sdv_privpgd.cli import models

_FIT = "sdv_privpgd.synthesize.pgm.PrivatePGM.fit"


def interrupt(*args, **kwargs):
    raise KeyboardInterrupt


def entered(path):
    return json.loads(path.read_text())["spent_epsilon"]["replace_one"]


@pytest.fixture
def ledger(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path / "ledger.json"


@pytest.fixture
def stopped(csv, tmp_path, ledger, capsys):
    """The file of a fit that stopped at a misspelled codebook, with a ledger."""
    domain = {**DOMAIN, "ward": {"range_values": ["a", "b"], "other_value": "other"}}
    (tmp_path / "domain.json").write_text(json.dumps(domain))
    assert declared(csv, "--ledger", "ledger.json", "--quiet") == 1
    return tmp_path / "out.rescued.pkl"


@pytest.fixture
def fitted(csv, tmp_path, ledger, capsys):
    """A model of epsilon 1 without a ledger, and one of the same kind with one."""
    for name, *more in (("alone",), ("model", "--ledger", "ledger.json")):
        asked = ("--model", tmp_path / f"{name}.pkl", "--quiet", *more)
        assert declared(csv, *asked, out=f"{name}.csv") == 0
    return tmp_path / "model.pkl"


class TestTheRest:
    def test_the_command_that_is_printed_names_the_ledger(self, stopped, capsys):
        said = capsys.readouterr().err
        assert f"finish {stopped} --out FILE --ledger ledger.json makes rows of them" in said

    def test_is_entered_though_nobody_names_the_ledger(self, stopped, csv, ledger, capsys):
        before = entered(ledger)
        assert before < 0.9
        out = ("--out", csv.parent / "out.csv", "--quiet")
        assert run("finish", stopped, "--table", csv, *out) == 0
        assert "What is spent is added to ledger.json, the ledger of" in capsys.readouterr().err
        assert entered(ledger) == pytest.approx(1, abs=0.01)
        books = models.fitted(stopped)
        assert books.ledger_file == ("ledger.json", len(books.ledger.charges))

    def test_is_not_spent_where_the_ledger_has_gone(self, stopped, csv, ledger, capsys):
        ledger.rename(csv.parent / "elsewhere.json")
        out = ("--out", csv.parent / "out.csv", "--quiet")
        before = stopped.read_bytes()
        assert run("finish", stopped, "--table", csv, *out) == 1
        assert "the ledger ledger.json, which is not there: say with --ledger" in (
            capsys.readouterr().err
        )
        assert stopped.read_bytes() == before
        assert run("finish", stopped, *out) == 0  # which spends nothing

    def test_a_ledger_beside_the_model_is_found(self, stopped, csv, ledger, tmp_path, monkeypatch):
        (tmp_path / "here").mkdir()
        monkeypatch.chdir(tmp_path / "here")
        assert run("finish", stopped, "--table", csv, "--out", "out.csv", "--quiet") == 0
        assert entered(ledger) == pytest.approx(1, abs=0.01)

    def test_a_ledger_that_was_not_written_is_caught_up_with(
        self, csv, ledger, tmp_path, monkeypatch, capsys
    ):
        """It is there, with earlier charges, and knows nothing of those of the model."""
        model = tmp_path / "model.pkl"
        assert declared(csv, "--ledger", ledger, "--quiet") == 0
        (tmp_path / "out.csv").unlink()
        before = ledger.read_text()
        with monkeypatch.context() as patched:
            fails_at(patched, "ledger.part.json")
            assert declared(csv, "--model", model, "--ledger", ledger, "--quiet") == 1
        assert "ledger.json does not say so. Count it in." in capsys.readouterr().err
        assert ledger.read_text() == before
        asked = ("--epsilon", 1, "--out", tmp_path / "finer.csv", "--quiet")
        assert run("refine", model, csv, *asked, "--max-epsilon", 2.1) == 1
        assert "lacks epsilon 1 that" in capsys.readouterr().err
        assert run("refine", model, csv, *asked) == 0
        assert entered(ledger) > 2.1  # 1 by itself, and 2 of the model


class TestRefining:
    def test_goes_on_with_the_ledger_of_the_model(self, fitted, csv, ledger, tmp_path, capsys):
        out = ("--epsilon", 1, "--out", tmp_path / "finer.csv", "--quiet")
        assert run("refine", fitted, csv, *out, "--max-epsilon", 1.9) == 1
        assert run("refine", fitted, csv, *out, "--max-epsilon", 2.01) == 0
        assert "What is spent is added to ledger.json" in capsys.readouterr().err
        assert entered(ledger) == pytest.approx(2, abs=0.01)
        moved = tmp_path / "elsewhere"
        moved.mkdir()
        shutil.copy(ledger, moved)
        more = ("--ledger", moved / "ledger.json", "--force")
        assert run("refine", fitted, csv, *out, *more) == 0
        assert entered(moved / "ledger.json") == pytest.approx(3, abs=0.01)
        assert entered(ledger) == pytest.approx(2, abs=0.01)
        assert "lacks" not in capsys.readouterr().err

    def test_counts_in_what_no_ledger_was_told(self, fitted, csv, ledger, tmp_path, capsys):
        """Its charges are those of the other model, and yet they are others."""
        asked = ("--epsilon", 1, "--out", tmp_path / "finer.csv", "--ledger", ledger, "--quiet")
        alone = tmp_path / "alone.pkl"
        assert run("refine", alone, csv, *asked, "--max-epsilon", 2.1) == 1
        said = capsys.readouterr().err
        assert f"--ledger {ledger} lacks epsilon 1 that {alone} had spent before" in said
        assert "more than --max-epsilon 2.1" in said
        assert entered(ledger) == pytest.approx(1)
        assert run("refine", alone, csv, *asked) == 0
        assert 2.1 < entered(ledger) < 2.5  # of two people's releases, 1 and 2
        capsys.readouterr()
        assert run("refine", alone, csv, *asked, "--force") == 0
        assert "lacks" not in capsys.readouterr().err

    def test_a_ledger_of_another_name_is_another(self, fitted, csv, ledger, tmp_path, capsys):
        other = tmp_path / "other.json"
        shutil.copy(ledger, other)
        asked = ("--epsilon", 1, "--out", tmp_path / "finer.csv", "--ledger", other, "--quiet")
        assert run("refine", fitted, csv, *asked) == 0
        assert "lacks epsilon 1" in capsys.readouterr().err

    def test_without_any_ledger_nothing_is_said(self, fitted, csv, tmp_path, ledger, capsys):
        asked = ("--epsilon", 1, "--out", tmp_path / "finer.csv", "--quiet")
        alone = tmp_path / "alone.pkl"
        assert run("refine", alone, csv, *asked, "--max-epsilon", 1.9) == 1
        assert run("refine", alone, csv, *asked) == 0
        assert "is added to" not in capsys.readouterr().err
        assert entered(ledger) == pytest.approx(1)
        assert models.fitted(alone).ledger_file is None


class TestWhatThisRunHasSpent:
    @pytest.mark.parametrize("wrong", ["columns", "rows"])
    def test_is_nothing_on_an_unsuitable_table(self, fitted, csv, tmp_path, capsys, wrong):
        table, other = pd.read_csv(csv, dtype=str), tmp_path / "other.csv"
        (table.rename(columns={"ward": "x"}) if wrong == "columns" else table[:9]).to_csv(
            other, index=False
        )
        asked = ("--epsilon", 1, "--out", tmp_path / "no.csv", "--quiet")
        assert run("refine", fitted, other, *asked) == 1
        said = capsys.readouterr().err
        assert "Nothing was spent by this run; the model stands at epsilon 1 of 1" in said
        assert "was spent." not in said

    def test_is_said_beside_what_the_model_has(self, fitted, csv, tmp_path, monkeypatch, capsys):
        monkeypatch.setattr(_FIT, interrupt)
        asked = ("--epsilon", 1, "--out", tmp_path / "no.csv", "--quiet")
        assert run("refine", fitted, csv, *asked) == 130
        said = capsys.readouterr().err
        assert "This run spent epsilon 1." in said
        assert "; the model stands at epsilon 2 of 2 at delta 1e-05." in said
        assert f"finish {fitted} --out FILE --ledger ledger.json" in said

    def test_is_nothing_where_finish_gets_another_table(self, stopped, csv, capsys):
        before = entered(csv.parent / "ledger.json")
        few = csv.parent / "few.csv"
        pd.read_csv(csv, dtype=str)[:100].to_csv(few, index=False)
        out = ("--out", csv.parent / "out.csv", "--quiet")
        assert run("finish", stopped, "--table", few, *out) == 1
        said = capsys.readouterr().err
        assert "had 2,000 rows, and this one has 100" in said
        assert "Nothing was spent by this run; the model stands at epsilon" in said
        assert entered(csv.parent / "ledger.json") == before
