"""The other commands: rows of a model, comparisons, plans, drafts and types."""

import datetime
import json

import pandas as pd
import pytest
from commands import DOMAIN, SECRET, declared, refused, run

import sdv_privpgd
from sdv_privpgd.base.files import write_archive


@pytest.fixture
def model(kept):
    return kept / "alone.zip"


def test_the_name_of_a_column_may_have_an_equals_sign(tmp_path):
    table = pd.DataFrame({"a": [0, 1] * 100, "a=b": [0, 1] * 100})
    declared = dict.fromkeys(table, sdv_privpgd.Categorical([0, 1]))
    fitted = sdv_privpgd.fit_table(table, declared, 5.0, method="independent")
    model, out = tmp_path / "model.zip", tmp_path / "out.csv"
    fitted.save(model)
    assert run("sample", model, "--rows", 9, "--condition", "a=b=1", "--out", out) == 0
    assert pd.read_csv(out)["a=b"].tolist() == [1] * 9


def test_rows_under_conditions(model, tmp_path, capsys):
    def sampled(*conditions):
        options = [part for each in conditions for part in ("--condition", each)]
        out = tmp_path / "more.csv"
        assert run("sample", model, "--rows", 20, "--out", out, "--force", *options) == 0
        return pd.read_csv(out, dtype={"ward": str})

    assert len(sampled()) == 20
    rows = sampled("ward=01", "age=30..40", "ill=true")
    assert set(rows["ward"]) == {"01"}
    assert rows["age"].between(30, 40).all()
    assert rows["ill"].all()
    assert sampled("age=35")["age"].tolist() == [35] * 20
    assert sampled("ward=")["ward"].isna().all()
    capsys.readouterr()
    for condition, told in [
        ("wage=3", "--condition names ['wage']"),
        ("age=old", "--condition age=old: the column holds numbers"),
    ]:
        out = tmp_path / "no.csv"
        assert run("sample", model, "--rows", 5, "--out", out, "--condition", condition) == 1
        assert told in capsys.readouterr().err
        assert not out.exists()
    for more in ([], ["--again"]):
        assert run("sample", model, "--rows", 5, "--out", model, "--force", *more) == 1
    with pytest.raises(SystemExit, match="2"):
        run("sample", model, "--out", "a.csv", "--condition", "age")


@pytest.mark.long
def test_the_comparison_says_that_it_is_not_private(csv, model, tmp_path, capsys):
    page = tmp_path / "page_not_private.html"
    assert run("evaluate", model, csv, "--out", page) == 0
    assert f"NOT PRIVATE: {page} compares with the real table" in capsys.readouterr().err
    assert "NOT PRIVATE" in page.read_text()
    assert "--force" in refused(run("evaluate", model, csv, "--out", page), capsys)
    judged = ["--label", "ill", "--held-out", csv, "--force"]
    assert run("evaluate", model, csv, "--out", page, *judged) == 0
    assert "area under the ROC curve of gradient boosting" in page.read_text()
    assert run("evaluate", model, csv, "--out", page, "--label", "wage", "--force") == 1
    assert "label must be one of the columns" in capsys.readouterr().err
    assert run("evaluate", model, csv, "--out", csv, "--held-out", csv, "--force") == 1


@pytest.mark.parametrize("command", ["plan", "dry run"])
def test_a_plan_reads_nothing(csv, tmp_path, capsys, command):
    csv.unlink()
    first = ["plan"] if command == "plan" else ["synthesize", csv, "--dry-run"]
    asked = [*first, "--epsilon", 1, "--method", "mst", "--metadata", tmp_path / "metadata.json"]
    assert run(*asked, "--rows", 5_000) == 0
    said = capsys.readouterr().out
    assert "Plan for 5,000 rows: no table was asked" in said
    assert "ward    categorical  --metadata  found privately" in said
    assert run(*asked) == 1
    told = "There is no file" if command == "dry run" else "A plan needs --rows, or a table"
    assert told in capsys.readouterr().err


def test_a_plan_says_all_that_does_not_fit_and_a_fit_all_mistakes(csv, tmp_path, capsys):
    (tmp_path / "domain.json").write_text(json.dumps(DOMAIN | {"ill": {}, "ward": {}}))
    plan = ["plan", "--epsilon", 1, "--rows", 100, "--metadata", tmp_path / "metadata.json"]
    assert run(*plan, "--domain", tmp_path / "domain.json") == 0
    assert "range_values of 'ward' is not declared" in capsys.readouterr().err
    wrong = {
        "age": {"range_min": 99, "range_max": 0},
        "ward": {"range_values": "01"},
        "ill": {"decimal_places": 0},
        "agee": {},
    }
    (tmp_path / "domain.json").write_text(json.dumps(wrong))
    said = refused(declared(csv, "--quiet"), capsys)
    for name in ("range_min of 'age'", "range_values of 'ward'", "'ill' in --domain", "'agee'"):
        assert said.count(name) == 1, said
    assert not (tmp_path / "out.csv").exists()


@pytest.mark.parametrize("ending", ["json", "yaml"])
def test_a_domain_is_drafted_filled_in_and_used(csv, tmp_path, ending, capsys):
    pytest.importorskip("yaml" if ending == "yaml" else "json")
    source, draft = tmp_path / "table.parquet", tmp_path / f"draft.{ending}"
    metadata = tmp_path / "drafted.json"
    real = pd.read_csv(csv, dtype={"ward": str}).astype({"age": "Int64"}).set_index("ward")
    real.to_parquet(source)
    assert run("draft-domain", source, "--out", draft, "--metadata-out", metadata) == 0
    assert "Fill in what is null" in capsys.readouterr().err
    assert SECRET not in draft.read_text() + metadata.read_text()
    domain = sdv_privpgd.read_domain(draft)
    blank = dict.fromkeys(("range_min", "range_max", "range_is_nullable"))
    assert domain["age"] == {"sdtype": "numerical", "decimal_places": 0, **blank}
    domain["age"] |= DOMAIN["age"]
    domain["ward"] |= DOMAIN["ward"]
    sdv_privpgd.write_domain(domain, draft)
    assert run(
        "synthesize", source, "--epsilon", 1, "--method", "mst", "--out", tmp_path / "out.csv",
        "--metadata", metadata, "--domain", draft, "--quiet",
    ) == 0  # fmt: skip
    assert "not declared" not in capsys.readouterr().err
    assert set(pd.read_csv(tmp_path / "out.csv", dtype=str)["ward"].dropna()) == {"01", "02"}
    assert run("draft-domain", source, "--out", draft) == 1
    again = ["draft-domain", "--metadata", metadata, "--out", draft, "--force"]
    assert run(*again) == 0
    assert set(sdv_privpgd.read_domain(draft)) == {"age", "ward", "ill"}


def test_a_header_alone_is_drafted_with_blanks_for_types(csv, tmp_path, capsys):
    header = tmp_path / "header.csv"
    header.write_text("age,ward,ill\n")
    draft, metadata = tmp_path / "draft.json", tmp_path / "drafted.json"
    asked = ["--dtype", "ill=boolean", "--metadata-out", metadata]
    assert run("draft-domain", header, "--header", "--out", draft, *asked) == 0
    assert "Their names do not say what 'age', 'ward' hold" in capsys.readouterr().err
    domain, known = sdv_privpgd.read_domain(draft), json.loads(metadata.read_text())
    assert domain["ill"] == {"sdtype": "boolean", "range_is_nullable": None}
    assert set(domain["age"]) == {
        "range_min", "range_max", "decimal_places", "datetime_format", "range_values",
        "other_value", "range_is_nullable",
    }  # fmt: skip
    assert set(domain["age"].values()) == {None}
    columns = known["tables"]["table"]["columns"]
    assert list(columns) == ["age", "ward", "ill"]
    fit = [
        "synthesize", csv, "--epsilon", 1, "--method", "mst", "--out", tmp_path / "out.csv",
        "--metadata", metadata, "--domain", draft, "--quiet",
    ]  # fmt: skip
    assert "fill in the sdtype of ['age', 'ward']" in refused(run(*fit), capsys)
    columns |= {"age": {"sdtype": "numerical"}, "ward": {"sdtype": "categorical"}}
    metadata.write_text(json.dumps(known))
    for name, facts in DOMAIN.items():
        domain[name] |= facts
    sdv_privpgd.write_domain(domain, draft)  # what does not apply stays blank
    assert run(*fit) == 0
    assert "not declared" not in capsys.readouterr().err
    assert set(pd.read_csv(tmp_path / "out.csv", dtype=str)["ward"].dropna()) == {"01", "02"}


def test_types_come_from_dtypes_alone_if_somebody_says_them(csv, tmp_path, capsys, monkeypatch):
    told = refused(run("plan", csv, "--header", "--epsilon", 1, "--types", "dtypes"), capsys)
    assert "Say the types of ['age', 'ward', 'ill'] with --dtype" in told
    monkeypatch.setattr("sdv_privpgd.cli.fit_options.detected", lambda *args: 1 / 0)
    fit = ["synthesize", csv, "--epsilon", 1, "--method", "mst", "--types", "dtypes", "--quiet"]
    types = ["--dtype", "age=Int64", "--dtype", "ward=str", "--dtype", "ill=boolean"]
    assert run(*fit, "--out", tmp_path / "a.csv", *types) == 0
    assert SECRET not in capsys.readouterr().err
    pd.read_csv(csv).to_parquet(tmp_path / "table.parquet")
    fit[1] = tmp_path / "table.parquet"
    assert run(*fit, "--out", tmp_path / "b.csv") == 0
    assert run(*fit[:1], csv, *fit[2:], "--header", "--out", tmp_path / "c.csv") == 1
    assert "--dtype COLUMN=TYPE" in capsys.readouterr().err


def test_a_schema_says_what_is_not_read_what_are_times_and_the_names_of_ids(tmp_path, capsys):
    table, draft = tmp_path / "table.parquet", tmp_path / "draft.json"
    rows = {"mrn": range(600), "at": [datetime.time(8, 30)] * 600, "kind": [b"a", b"b"] * 300}
    stays = pd.to_timedelta([1] * 600, unit="h")
    pd.DataFrame({**rows, "stay": stays}).to_parquet(table)
    asked = [table, "--types", "dtypes", "--epsilon", 1]
    assert "--drop stay" in refused(run("check", *asked), capsys)
    assert "'mrn' are ids by their names" in refused(run("plan", *asked, "--drop", "stay"), capsys)
    asked += ["--drop", "stay,mrn", "--quiet", "--rows-are-people"]
    model, out = tmp_path / "model.zip", tmp_path / "out.csv"
    assert run("synthesize", *asked, "--method", "mst", "--model", model, "--out", out) == 0
    assert run("sample", model, "--rows", 100, "--out", tmp_path / "more.csv") == 0
    times = pd.read_csv(tmp_path / "more.csv")["at"]
    assert (times == "08:30:00").mean() > 0.9
    assert run("draft-domain", table, "--out", draft) == 0
    assert "Left out. No type of column reads {'stay'" in capsys.readouterr().err
    assert json.loads(draft.read_text())["at"]["range_max"] == "23:59:59"


def test_files_that_hold_no_model(csv, tmp_path, capsys):
    assert run("synthesize", tmp_path / "no.csv", "--epsilon", 1, "--out", tmp_path / "o.csv") == 1
    assert run("describe", tmp_path / "no.zip") == 1
    assert capsys.readouterr().err.count("There is no file") == 2
    assert run("sample", csv, "--rows", 5, "--out", tmp_path / "o.csv") == 1
    assert "is no SavedModel that can be read" in capsys.readouterr().err
    pd.Series([1]).to_pickle(tmp_path / "other.pkl")
    assert run("describe", tmp_path / "other.pkl") == 1
    assert "it is a pickle, as SDV writes its synthesizers" in capsys.readouterr().err
    write_archive(tmp_path / "north.zip", {"release.json": b"{}"})
    assert run("describe", tmp_path / "north.zip") == 1
    assert "it is the release of one site, which combine" in capsys.readouterr().err


@pytest.mark.parametrize(
    "wrong",
    [
        ["synthesise"],
        ["plan", "--metadata", "m"],
        ["describe", "m", "--sep", ";"],
        ["evaluate", "m", "t", "--out", "p", "--sep", ";;"],
        ["evaluate", "m", "t", "--out", "p", "--encoding", "latin-17"],
        ["evaluate", "m", "t", "--out", "p", "--names", "a,a"],
        ["evaluate", "m", "t", "--out", "p", "--dtype", "a"],
        ["evaluate", "m", "t", "--out", "p", "--header", "--no-header"],
    ],
)
def test_a_wrong_command_line_has_a_status_of_its_own(wrong):
    with pytest.raises(SystemExit, match="2"):
        run(*wrong)


def test_a_model_remembers_how_its_table_was_written(tmp_path, capsys):
    table = pd.DataFrame({"weight": [70.5, 80.25] * 500, "ort": ["Køln", "Bonn"] * 500})
    table.to_csv(tmp_path / "table.csv", sep=";", decimal=",", encoding="cp1252", index=False)
    model, out = tmp_path / "model.zip", tmp_path / "more.csv"
    written = ("--sep", ";", "--decimal", ",", "--encoding", "cp1252")
    assert run(
        "synthesize", tmp_path / "table.csv", "--header", "--epsilon", 20, "--method", "mst",
        "--quiet", "--out", tmp_path / "out.csv", "--model", model, *written,
    ) == 0  # fmt: skip

    def first_lines(*more, out=out):
        asked = ("sample", model, "--rows", 50, "--condition", "ort=Køln", "--force")
        assert run(*asked, "--out", out, *more) == 0
        return out.read_bytes().splitlines()[:2]

    header, row = first_lines()
    assert header == b"weight;ort"
    assert row.endswith(";Køln".encode("cp1252"))
    assert b"," in row
    header, row = first_lines("--sep", ",", "--decimal", ".", "--encoding", "utf-8")
    assert header == b"weight,ort"
    assert row.endswith(",Køln".encode())
    assert b"." in row
    header, row = first_lines(out=tmp_path / "more.tsv")
    assert header == b"weight\tort"
    assert b"," in row  # an ending says nothing of decimals
    page = tmp_path / "not_private.html"
    assert run("evaluate", model, tmp_path / "table.csv", "--out", page) == 0
    with pytest.raises(SystemExit, match="0"):
        run("sample", "--help")
    assert "what synthesize was told" in " ".join(capsys.readouterr().out.split())
