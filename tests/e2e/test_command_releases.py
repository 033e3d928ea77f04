"""Several sites, published tables and more budget on the command line."""

import json

import pandas as pd
import pytest
from commands import documents, refused, run

from sdv_privpgd.releases.site_release import Measured


def measured(csv, site, *more, out=None):
    path = csv.parent / (out or f"{site}.zip")
    asked = ("--site", site, "--epsilon", 1, "--out", path, *documents(csv.parent), *more)
    return run("measure", csv, *asked), path


def test_two_holders_are_measured_and_combined(csv, tmp_path, capsys):
    status, north = measured(csv, "North", "--ledger", tmp_path / "north.json")
    assert status == 0
    assert "holds the release of North. Epsilon 1 of 1" in capsys.readouterr().out
    status, south = measured(csv, "South", "--quiet")
    assert (status, capsys.readouterr().out) == (0, "")
    out, page = tmp_path / "rows.parquet", tmp_path / "page.html"
    asked = ("--engine", "pgm", "--report", page)
    assert run("combine", north, south, "--out", out, *asked) == 0
    assert len(pd.read_parquet(out)) == 4_000
    assert "what is promised" in page.read_text()
    assert "2 sites" in capsys.readouterr().out
    ledger = json.loads((tmp_path / "north.json").read_text())
    assert ledger["spent_epsilon"]["replace_one"] == pytest.approx(1)
    # A second release of the same people composes, and may be forbidden.
    more = ("--ledger", tmp_path / "north.json", "--max-epsilon", 1.2)
    assert measured(csv, "North", *more, out="again.zip")[0] == 1
    assert "more than --max-epsilon 1.2" in capsys.readouterr().err
    assert measured(csv, "North", *more[:2], "--quiet", out="again.zip")[0] == 0
    ledger = json.loads((tmp_path / "north.json").read_text())
    assert ledger["spent_epsilon"]["replace_one"] == pytest.approx(1.465, abs=0.001)
    assert run("combine", north, tmp_path / "again.zip", "--out", tmp_path / "no.csv") == 1
    assert "'North' is there twice" in capsys.readouterr().err
    assert not (tmp_path / "no.csv").exists()


def test_columns_that_a_release_leaves_out_are_named(csv, capsys):
    path = csv.parent / "metadata.json"
    metadata = json.loads(path.read_text())
    metadata["columns"] |= {"visit": {"sdtype": "id"}, "mail": {"sdtype": "email"}}
    path.write_text(json.dumps(metadata | {"primary_key": "visit"}))
    pd.read_csv(csv, dtype=str).assign(visit=range(2_000), mail="a@b.c").to_csv(csv, index=False)
    assert measured(csv, "North", "--quiet")[0] == 0
    assert "Left out: visit, mail. Keys, ids" in capsys.readouterr().err


def test_what_was_spent_is_written_down_if_a_measurement_fails(csv, tmp_path, monkeypatch, capsys):
    def fails(*args, **kwargs):
        raise MemoryError

    monkeypatch.setattr("sdv_privpgd.privacy.curator._noisy", fails)
    status, path = measured(csv, "North", "--ledger", tmp_path / "north.json")
    assert status == 1
    assert "its text is withheld" in capsys.readouterr().err
    assert not path.exists()
    assert len(json.loads((tmp_path / "north.json").read_text())["charges"]) == 1


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (("--out", "north.pkl"), "must end in .zip"),
        (("--domain", None), "declare the same domain"),
        (("--site", " "), "site must name"),
        (("--epsilon", -1), "--epsilon must be"),
    ],
)
def test_what_cannot_be_measured_is_told(csv, tmp_path, capsys, change, told):
    facts = documents(tmp_path)
    asked = dict(zip(facts[::2], facts[1::2], strict=True))
    asked |= {"--site": "North", "--epsilon": 1, "--out": tmp_path / "north.zip"}
    asked |= dict([change])
    options = [part for name, value in asked.items() if value is not None for part in (name, value)]
    assert told in refused(run("measure", csv, *options), capsys)
    assert not (tmp_path / "north.zip").exists()


@pytest.mark.parametrize("command", ["synthesize", "measure", "check", "plan"])
def test_columns_of_the_table_that_nothing_describes_are_named(csv, tmp_path, capsys, command):
    pd.read_csv(csv, dtype=str).assign(region="north").to_csv(csv, index=False)
    more = {
        "synthesize": ("--out", tmp_path / "out.csv", "--method", "mst"),
        "measure": ("--site", "North", "--out", tmp_path / "out.zip"),
    }
    run(command, csv, "--epsilon", 1, *documents(tmp_path), *more.get(command, ()))
    assert f"Left out of {csv.name}: region. Nothing given" in capsys.readouterr().err


def test_types_that_the_domain_says_need_no_metadata_and_beat_it(csv, tmp_path, capsys):
    known = {"ward": {"sdtype": "ordinal", "range_values": ["01", "02", "03"]}}
    domain, metadata = tmp_path / "of_ward.json", tmp_path / "of_all.json"
    table = pd.read_csv(csv, dtype=str)[["ward"]]
    table.to_csv(tmp_path / "wards.csv", index=False)
    domain.write_text(json.dumps(known))
    metadata.write_text(json.dumps({"columns": {"ward": {"sdtype": "categorical"}}}))
    asked = ("--site", "North", "--epsilon", 1, "--domain", domain, "--quiet")
    for name, more in ("plain", ()), ("both", ("--metadata", metadata)):
        out = tmp_path / f"{name}.zip"
        assert run("measure", tmp_path / "wards.csv", *asked, *more, "--out", out) == 0
        assert Measured.load(out).columns["ward"]["sdtype"] == "ordinal"
    domain.write_text(json.dumps(known | {"age": {}}))
    status = run("measure", tmp_path / "wards.csv", *asked, "--out", tmp_path / "no.zip")
    assert "or all types in --domain" in refused(status, capsys)


def test_rows_of_published_tables(csv, tmp_path, capsys):
    rows = pd.DataFrame(
        {
            "column_1": "ward",
            "label_1": ["01", "02"] * 2,
            "column_2": "ill",
            "label_2": [False, False, True, True],
            "estimate": [60.0, 25, 5, 10],
            "stddev": 1.0,
        }
    )
    tables, out, page = (tmp_path / name for name in ("tables.csv", "rows.csv", "page.html"))
    rows.to_csv(tables, index=False)
    (tmp_path / "metadata.json").write_text(
        json.dumps({"columns": {"ward": {"sdtype": "categorical"}, "ill": {"sdtype": "boolean"}}})
    )
    (tmp_path / "domain.json").write_text(json.dumps({"ward": {"range_values": ["01", "02"]}}))
    asked = ("--publisher", "the census", "--engine", "pgm", "--out", out, *documents(tmp_path))
    assert run("from-tables", tables, *asked, "--report", page) == 0
    assert "is for the census to say" in " ".join(capsys.readouterr().out.split())
    assert "Whose guarantee it is" in page.read_text()
    assert len(pd.read_csv(out)) == 100
    rows.iloc[:3].to_csv(tables, index=False)
    assert "lacks 1 of 4 cells" in refused(run("from-tables", tables, *asked, "--force"), capsys)
    assert run("from-tables", tmp_path / "none.csv", *asked, "--force") == 1
    assert "none.csv" in capsys.readouterr().err
    printed = rows.drop(columns="stddev").assign(estimate=["60 %", "25 %", "*", "10 %"])
    printed.to_csv(tables, index=False)
    for more, lacking in ((), "--suppressed-below"), (("--suppressed-below", 10), "--total"):
        assert lacking in refused(run("from-tables", tables, *asked, *more, "--force"), capsys)
    more = ("--suppressed-below", 10, "--total", 1_000, "--report", page, "--force")
    assert run("from-tables", tables, *asked, *more) == 0
    assert len(pd.read_csv(out)) == 1_000


def test_a_measurement_stops_where_declared_values_are_not_there(csv, tmp_path, capsys):
    private = pd.read_csv(csv, dtype=str)
    private.assign(ward="elsewhere").to_csv(csv, index=False)
    ledger = tmp_path / "north.json"
    status, path = measured(csv, "North", "--epsilon", 3, "--ledger", ledger)
    assert status == 1
    said = capsys.readouterr().err
    assert "no declared values: 'ward'" in said
    assert "--no-stop" in said
    assert "elsewhere" not in said
    assert not path.exists()
    spent = json.loads(ledger.read_text())["spent_epsilon"]["replace_one"]
    assert 0 < spent < 0.3
    status, path = measured(csv, "North", "--epsilon", 3, "--no-stop")
    assert (status, path.exists()) == (0, True)
    assert "Nearly all values are missing: 'ward'" in capsys.readouterr().err
