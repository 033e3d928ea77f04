"""Options that every command understands alike, and says what is wrong with before it spends."""

import json
import shutil

import numpy as np
import pandas as pd
import pytest
from commands import declared, run


@pytest.fixture(scope="module")
def _weights(tmp_path_factory):
    """A model of a file as Excel writes it in half of Europe, with decimal commas."""
    tmp_path = tmp_path_factory.mktemp("weights")
    rng = np.random.default_rng(0)
    table = pd.DataFrame(
        {"weight": rng.integers(0, 100, 2_000) / 10, "dose": rng.choice([0.5, 2.5], 2_000)}
    )
    table.to_csv(tmp_path / "weights.csv", index=False, sep=";", decimal=",")
    types = {"weight": {"sdtype": "numerical"}, "dose": {"sdtype": "categorical"}}
    domain = {
        "weight": {"range_min": 0, "range_max": 9.9, "decimal_places": 1},
        "dose": {"range_values": [0.5, 2.5]},
    }
    (tmp_path / "types.json").write_text(json.dumps({"columns": types}))
    (tmp_path / "facts.json").write_text(json.dumps(domain))
    asked = ("--epsilon", 5, "--method", "mst", "--sep", ";", "--decimal", ",")
    facts = ("--metadata", tmp_path / "types.json", "--domain", tmp_path / "facts.json")
    out, model = tmp_path / "rows.csv", tmp_path / "weights.zip"
    told = (*asked, *facts, "--out", out, "--model", model)
    assert run("synthesize", tmp_path / "weights.csv", *told) == 0
    return tmp_path


@pytest.fixture
def weights(_weights, tmp_path):
    shutil.copytree(_weights, tmp_path, dirs_exist_ok=True)
    return tmp_path / "weights.zip"


class TestConditions:
    def sampled(self, model, condition, *more):
        out = model.parent / "more.csv"
        asked = ("--rows", 20, "--condition", condition, "--out", out, "--force", *more)
        assert run("sample", model, *asked) == 0
        return pd.read_csv(out, sep=";", decimal=",")

    @pytest.mark.parametrize(("condition", "column"), [("weight=3,5", 3.5), ("dose=0,5", 0.5)])
    def test_numbers_are_written_as_in_the_table_of_the_model(self, weights, condition, column):
        name = condition.split("=")[0]
        assert set(self.sampled(weights, condition)[name]) == {column}

    def test_so_are_the_ends_of_a_range_unless_another_sign_is_named(self, weights):
        assert self.sampled(weights, "weight=3,5..4,5")["weight"].between(3.5, 4.5).all()
        out, wanted = weights.parent / "dots.csv", "weight=3.5"
        more = ("--decimal", ".", "--sep", ",")
        asked = ("--rows", 5, "--condition", wanted, "--out", out, *more)
        assert run("sample", weights, *asked) == 0
        assert pd.read_csv(out)["weight"].tolist() == [3.5] * 5

    def test_another_sign_is_told_and_never_read_as_something_else(self, weights, csv, capsys):
        assert declared(csv, "--model", csv.parent / "model.zip", "--quiet") == 0
        for model, wanted, sign in (
            (weights, "weight=3.5", "','"),
            (csv.parent / "model.zip", "age=35,0", "'.'"),
        ):
            capsys.readouterr()
            out = model.parent / "no.csv"
            assert run("sample", model, "--rows", 5, "--condition", wanted, "--out", out) == 1
            said = capsys.readouterr().err
            assert f"--condition {wanted}: the column holds numbers, and {sign} stands" in said
            assert not out.exists()

    def test_a_range_without_ends_is_refused_in_words(self, weights, capsys):
        out = weights.parent / "no.csv"
        asked = ("--rows", 5, "--condition", "weight=..", "--out", out)
        assert run("sample", weights, *asked) == 1
        assert "Between needs at least one end" in capsys.readouterr().err


class TestEvaluate:
    def test_it_reads_what_synthesize_reads_and_can_be_quiet(self, weights, tmp_path, capsys):
        page, real = tmp_path / "page.html", pd.read_csv(tmp_path / "weights.csv", sep=";")
        other = tmp_path / "other.csv"
        written = real["weight"].str.replace(",", ".").mask(real.index < 500, "n/k")
        real.assign(weight=written).to_csv(other, index=False, sep="|", encoding="utf-16")
        kept = ("evaluate", weights, tmp_path / "weights.csv", "--out", page)
        assert run(*kept) == 0
        more = ("--sep", "|", "--encoding", "utf-16", "--decimal", ".", "--na", "n/k")
        assert run("evaluate", weights, other, "--out", page, "--force", *more) == 0
        assert run("evaluate", weights, other, "--out", page, "--force") == 1  # it has others
        capsys.readouterr()
        assert run(*kept, "--force", "--quiet") == 0
        assert capsys.readouterr() == ("", "")
        assert "NOT PRIVATE" in page.read_text()


def test_quiet_sampling_is_of_one_command(weights, capsys):
    capsys.readouterr()
    for more, shows in ((["--quiet"], False), ([], True)):
        assert run("sample", weights, "--out", weights.parent / "m.csv", "--force", *more) == 0
        assert ("Sampling rows" in capsys.readouterr().err) is shows


class TestDatesByDtype:
    @pytest.fixture
    def table(self, tmp_path):
        days = pd.date_range("1950-01-01", periods=400).repeat(5)
        frame = pd.DataFrame(
            {"born": days.strftime("%d.%m.%Y"), "came": days.strftime("%Y-%m-%d"), "ill": True}
        )
        frame.to_csv(tmp_path / "dates.csv", index=False)
        return tmp_path / "dates.csv"

    def synthesized(self, table, *more):
        asked = ("--header", "--epsilon", 5, "--method", "mst", "--quiet")
        status = run("synthesize", table, *asked, "--out", table.parent / "rows.csv", *more)
        rows = pd.read_csv(table.parent / "rows.csv", dtype=str) if not status else None
        return status, rows

    def test_text_that_is_not_detected_as_dates_is_refused_before_anything_is_spent(
        self, table, capsys
    ):
        ledger = table.parent / "ledger.json"
        more = ("--dtype", "born=datetime64[ns]", "--ledger", ledger)
        assert self.synthesized(table, *more)[0] == 1
        said = capsys.readouterr().err
        assert "--dtype born=datetime64[ns] says that 'born' holds dates, and otherwise" in said
        assert "with a datetime_format such as '%d.%m.%Y' in --domain" in said
        assert "1950" not in said
        assert not ledger.exists()

    @pytest.mark.parametrize("types", ["detect", "dtypes"])
    def test_what_the_refusal_says_makes_dates_of_them(self, table, types, capsys):
        domain = table.parent / "domain.json"
        domain.write_text(json.dumps({"born": {"datetime_format": "%d.%m.%Y"}}))
        types = ("--types", types, *(("--dtype", "ill=bool") if types == "dtypes" else ()))
        dates = ("--dtype", "born=datetime64[ns]", "--dtype", "came=datetime64[ns]")
        status, rows = self.synthesized(table, *types, *dates, "--domain", domain)
        assert status == 0
        years = pd.to_datetime(rows["born"].dropna(), format="%d.%m.%Y").dt.year
        assert years.between(1949, 1952).mean() > 0.9
        assert rows["came"].notna().mean() > 0.9
        said = capsys.readouterr().err
        assert ("The dates of ['came'] are read in ISO 8601" in said) is ("dtypes" in types)

    def test_metadata_that_says_otherwise_is_named(self, table, capsys):
        metadata = table.parent / "types.json"
        types = {name: {"sdtype": "categorical"} for name in ("born", "came", "ill")}
        metadata.write_text(json.dumps({"columns": types}))
        more = ("--dtype", "came=datetime64[ns]", "--metadata", metadata)
        assert self.synthesized(table, *more)[0] == 1
        assert "otherwise it is known as categorical" in capsys.readouterr().err


def test_a_delta_is_told_or_asked_for(csv, tmp_path, capsys):
    ledger = tmp_path / "ledger.json"
    large = pd.concat([pd.read_csv(csv, dtype={"ward": str})] * 60)
    large.to_csv(csv, index=False)
    assert declared(csv, "--ledger", ledger) == 0
    said = f"--delta is {1 / (10 * len(large)):g}, as nobody has said another one."
    assert said in capsys.readouterr().err
    assert json.loads(ledger.read_text())["delta"] == 1 / (10 * len(large))
    assert declared(csv, "--adjacency", "add_remove", "--force") == 1
    assert "--delta must be given under --adjacency add_remove" in capsys.readouterr().err
