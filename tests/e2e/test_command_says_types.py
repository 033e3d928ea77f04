"""What is declared says the types of columns, and all that is said is in the words of options."""

import json

import numpy as np
import pandas as pd
import pytest
from commands import declared, documents, interrupt, refused, run
from made_up import made_up

from sdv_privpgd.cli import checkpoint


@pytest.fixture
def table(tmp_path):
    """A table of which no metadata says the types; SDV finds some of them to be others."""
    frame = made_up(2_000, Kinder=(0, 5), stufe=(1, 4), code=(1, 90), came=(0, 900))
    days = np.datetime64("1990-01-01") + frame["came"].to_numpy()
    frame["came"] = np.datetime_as_string(days)
    frame["Patient"] = [f"P{row:05d}" for row in range(2_000)]
    frame.to_csv(tmp_path / "table.csv", index=False)
    return tmp_path / "table.csv"


def planned(table, domain, *more):
    (table.parent / "domain.json").write_text(json.dumps(domain))
    asked = ("--header", "--epsilon", 1, "--method", "mst")
    return run("plan", table, *asked, "--domain", table.parent / "domain.json", *more)


def types(out):
    lines = [line.split() for line in out.splitlines()]
    return {line[0]: line[1:] for line in lines[1 : lines.index([])]}


class TestDeclaredTypes:
    @pytest.mark.parametrize("more", [(), ("--dtype", "Kinder=Int64")])
    def test_a_range_of_numbers_makes_numbers_of_few_different_ones(self, table, capsys, more):
        domain = {"Kinder": {"range_min": 0, "range_max": 9, "decimal_places": 0}}
        assert planned(table, {}, *more) == 0
        assert types(capsys.readouterr().out)["Kinder"][:2] == ["numerical", "detected"]
        assert planned(table, domain, *more) == 0
        assert types(capsys.readouterr().out)["Kinder"] == ["numerical", "--domain", "declared"]
        out = table.parent / "out.csv"
        asked = ("--header", "--epsilon", 20, "--method", "mst", "--quiet")
        facts = ("--domain", table.parent / "domain.json")
        assert run("synthesize", table, *asked, *facts, *more, "--out", out) == 0
        rows = pd.read_csv(out)["Kinder"]
        assert abs(rows.mean() - 2) < 0.2
        assert rows.notna().mean() > 0.98  # noise may make a few missing
        assert rows.dropna().between(0, 9).all()

    def test_values_make_categories_even_of_keys_and_ends_that_are_dates_dates(self, table, capsys):
        domain = {
            "code": {"range_values": list(range(1, 90))},
            "stufe": {"range_values": [1, 2, 3]},
            "came": {"range_min": "1990-01-01", "range_max": "1993-01-01"},
        }
        assert planned(table, domain) == 0
        said = types(capsys.readouterr().out)
        assert said["code"] == ["categorical", "--domain", "declared"]
        assert said["stufe"][0] == "ordinal"  # an order is no contradiction
        assert said["came"] == ["datetime", "--domain", "declared"]
        values = [f"P{row:05d}" for row in range(50)]
        assert planned(table, {"Patient": {"range_values": values}}) == 0
        assert types(capsys.readouterr().out)["Patient"][:2] == ["categorical", "--domain"]

    def test_metadata_is_not_overruled_and_contradictions_are_lines_in_order(self, table, capsys):
        columns = {name: {"sdtype": "categorical"} for name in pd.read_csv(table)}
        metadata = table.parent / "metadata.json"
        metadata.write_text(json.dumps({"columns": columns}))
        said = refused(planned(table, {"code": {"range_min": 0}}, "--metadata", metadata), capsys)
        assert "which says nothing about a categorical column" in said
        assert "or declare another sdtype" in said
        domain = {
            "stufe": {"range_max": 3, "range_min": 0, "range_values": [1, 2], "other_value": 3},
            "code": {"decimal_places": -1, "range_max": "x"},
        }
        assert planned(table, domain) == 1
        first, second, third = capsys.readouterr().err.splitlines()[1:]
        assert "'stufe' in --domain has the keys 'range_values', 'other_value', which say" in first
        assert "about a numerical column." in first
        assert first.endswith("or declare another sdtype.")
        assert "decimal_places of 'code' must be" in second
        assert "range_max of 'code' must be" in third

    def test_a_draft_that_was_not_filled_in_says_nothing(self, table, capsys):
        draft, out = table.parent / "draft.json", table.parent / "out.csv"
        assert run("draft-domain", table, "--header", "--out", draft) == 0
        asked = ("--epsilon", 5, "--method", "mst", "--quiet", "--domain", draft)
        assert run("synthesize", table, *asked, "--out", out) == 0
        domain = json.loads(draft.read_text())
        domain["Patient"]["range_min"] = 0
        domain["Patient"]["range_values"] = [1]
        assert planned(table, domain) == 1
        assert "--domain names 'Patient', which is not modelled" in capsys.readouterr().err


class TestWords:
    def test_reports_speak_of_options(self, tmp_path, capsys):
        rng = np.random.default_rng(0)
        table = pd.DataFrame({"wage": np.exp(rng.normal(0, 3, 3_000)), "patient": "p"})
        table.to_csv(tmp_path / "table.csv", index=False)
        kinds = {"wage": {"sdtype": "numerical"}, "patient": {"sdtype": "id"}}
        (tmp_path / "metadata.json").write_text(json.dumps({"columns": kinds}))
        wide = {"range_min": 0, "range_max": 10**6, "cut_points": [10]}
        (tmp_path / "domain.json").write_text(json.dumps({"wage": wide}))
        asked = ("--epsilon", 1, "--metadata", tmp_path / "metadata.json", "--method", "mst")
        asked += ("--domain", tmp_path / "domain.json")
        model = tmp_path / "model.zip"
        assert run("plan", tmp_path / "table.csv", *asked) == 0
        kept = ("--model", model, "--out", tmp_path / "out.csv")
        assert run("synthesize", tmp_path / "table.csv", *asked, *kept) == 0
        said = capsys.readouterr().out
        told = " ".join(said.split())
        assert told.count("Whose rows are these?") == told.count("no keys of the table.") == 2
        assert "In Python, answer() of the model gives intervals" in told
        assert max(map(len, said.splitlines())) <= 100
        assert run("describe", model) == 0
        assert "column of people in --person-column and" in " ".join(
            capsys.readouterr().out.split()
        )

    def test_num_bins_is_an_option(self, csv, tmp_path, capsys):
        model = tmp_path / "model.zip"
        for number, bins in ((None, ()), (3, ("--num-bins", 3, "--force"))):
            seeded = (*bins, "--method", "mst+particles", "--seed", 5, "--model", model, "--quiet")
            assert declared(csv, *seeded) == 0
            method = checkpoint.fitted(model).settings.method
            assert (method.num_bins, method.engine.seed) == (number, 5)
        ages = documents(tmp_path)
        asked = ("--epsilon", 1, "--rows", 99, *ages, "--method", "independent")
        plans = set()
        for number in (3, 9):
            assert run("plan", *asked, "--num-bins", number) == 0
            plans.add(capsys.readouterr().out)
        assert len(plans) == 2
        assert run("plan", *asked, "--num-bins", 0) == 1
        assert "--num-bins must be an integer of at least 1" in capsys.readouterr().err


class TestInterrupts:
    def test_one_in_a_measurement_says_what_was_spent(self, csv, tmp_path, monkeypatch, capsys):
        monkeypatch.setattr("sdv_privpgd.privacy.curator._noisy", interrupt)
        asked = ("--site", "North", "--epsilon", 1, "--out", tmp_path / "north.zip")
        assert run("measure", csv, *asked, *documents(tmp_path)) == 130
        said = capsys.readouterr().err
        assert "of 1 at delta 1e-05 was spent." in said
        assert "Nothing was spent" not in said

    def test_one_after_all_was_written_says_what_was_spent(self, csv, monkeypatch, capsys):
        monkeypatch.setattr("sdv_privpgd.cli.fits.report_in_options", interrupt)
        assert declared(csv) == 130
        assert "Epsilon 1 of 1 at delta 1e-05 was spent." in capsys.readouterr().err

    def test_what_is_kept_is_described(self, csv, tmp_path, monkeypatch, capsys):
        model = tmp_path / "model.zip"
        with monkeypatch.context() as patched:
            patched.setattr("sdv_privpgd.synthesize.pgm.PrivatePGM.fit", interrupt)
            assert declared(csv, "--model", model, "--quiet") == 130
        capsys.readouterr()
        assert run("describe", model) == 0
        said = capsys.readouterr().out
        assert "Guarantee   (1, 1e-05)-differential privacy" in said
        assert f"A fit has stopped. The noisy answers are in {model}: sdv-privpgd resume" in said
        assert run("describe", model, "--report", tmp_path / "page.html") == 1
