"""Tables that belong together on the command line: a file for each, and a folder of rows."""

import json
import re

import numpy as np
import pandas as pd
import pytest
from commands import SECRET, documents, interrupt, refused, run
from made_up import relationship

from sdv_privpgd import FittedTables
from sdv_privpgd.privacy.ledger_file import read_ledger

LINK = ("--link", "persons.home=homes.id", "--max-children", 3)


@pytest.fixture
def folder(tmp_path):
    rng, number = np.random.default_rng(0), 400
    homes = pd.DataFrame({"id": range(number), "rents": rng.choice(["yes", "no"], number)})
    home = np.repeat(homes["id"].astype(str).to_numpy(), rng.integers(0, 4, number))
    persons = pd.DataFrame({"home": home, "age": rng.integers(0, 99, len(home))})
    persons.loc[0, "home"] = SECRET
    homes.to_csv(tmp_path / "homes.csv", index=False)
    persons.to_csv(tmp_path / "persons.csv", index=False)
    kinds = {"rents": "categorical", "age": "numerical", "id": "id", "home": "id"}
    described = {
        name: {"columns": {each: {"sdtype": kinds[each]} for each in own}}
        for name, own in (("homes", homes), ("persons", persons))
    }
    described["homes"]["primary_key"] = "id"
    links = [relationship("homes", "id", "persons", "home")]
    metadata = {"tables": described, "relationships": links}
    (tmp_path / "metadata.json").write_text(json.dumps(metadata))
    age = {"range_min": 0, "range_max": 110, "decimal_places": 0}
    domain = {"homes": {"rents": {"range_values": ["yes", "no"]}}, "persons": {"age": age}}
    (tmp_path / "domain.json").write_text(json.dumps(domain))
    (tmp_path / "out").mkdir()
    return tmp_path


def constrained(folder, **parameters):
    """The option of a file with a constraint on the ages of persons."""
    of_all = {"column_name": "age", "increment_value": 5, **parameters}
    listed = [{"class_name": "FixedIncrements", "parameters": of_all}]
    (folder / "constraints.json").write_text(json.dumps(listed))
    return "--constraints", folder / "constraints.json"


def fit(folder, *more, link=LINK, files=("homes", "persons")):
    tables = (folder / f"{name}.csv" for name in files)
    return run(
        "synthesize", *tables, "--header", "--epsilon", 6, "--delta", 1e-6, "--method", "mst",
        *documents(folder), *link,
        "--out", folder / "out", *more,
    )  # fmt: skip


def test_a_model_is_kept_though_no_row_is_made_of_it(folder, monkeypatch, capsys):
    monkeypatch.setattr(FittedTables, "sample", interrupt)
    assert fit(folder, "--model", folder / "model.zip", "--quiet") == 130
    assert "model.zip is complete and was kept" in capsys.readouterr().err
    assert FittedTables.load(folder / "model.zip").ledger.spent() > 5
    assert [*(folder / "out").iterdir()] == []


@pytest.mark.parametrize("link", [LINK, ("--max-children", "persons=3")])
def test_a_folder_gets_rows_of_each_table(folder, link, capsys):
    kept = ("--model", folder / "m.pkl", "--report", folder / "p.html")
    kept += ("--ledger", folder / "l.json", *constrained(folder, table_name="persons"))
    assert fit(folder, *kept, link=link) == 0
    told = capsys.readouterr()
    assert "one row of 'homes' with all rows of 'persons'" in told.out
    assert SECRET not in told.out + told.err
    homes, persons = (pd.read_csv(folder / "out" / f"{n}.csv") for n in ("homes", "persons"))
    assert persons["home"].isin(homes["id"]).all()
    assert (persons["age"].dropna() % 5 == 0).all()
    assert len(homes) == pytest.approx(400, abs=60)
    ledger = read_ledger((folder / "l.json").read_text())
    assert ledger == FittedTables.load(folder / "m.pkl").ledger
    assert "persons: " in (folder / "p.html").read_text()
    assert fit(folder, "--ledger", folder / "l.json", "--force", "--quiet", "--rows", 50) == 0
    assert len(pd.read_csv(folder / "out" / "homes.csv")) == 50
    assert len(read_ledger((folder / "l.json").read_text()).charges) > len(ledger.charges)


@pytest.mark.long
def test_a_kept_model_is_described_and_gives_more_rows(folder, capsys):
    model, out = folder / "m.zip", folder / "out"
    assert fit(folder, "--model", model, "--quiet") == 0
    first = pd.read_csv(out / "homes.csv")
    capsys.readouterr()
    assert run("describe", model, "--report", folder / "d.html") == 0
    told = capsys.readouterr().out
    assert "  persons\n    home: id\n    age: numerical\n" in told
    assert "one row of 'homes' with all rows of 'persons'" in told
    assert "persons: " in (folder / "d.html").read_text()
    assert run("sample", model, "--rows", 60, "--out", out, "--force", "--quiet") == 0
    homes, persons = (pd.read_csv(out / f"{name}.csv") for name in ("homes", "persons"))
    assert len(homes) == 60
    assert set(homes["id"]).isdisjoint(first["id"])  # the model has moved on
    assert persons["home"].isin(homes["id"]).all()
    rents = "--condition", "rents=yes", "--force", "--quiet"
    assert run("sample", model, "--rows", 30, "--out", out, *rents) == 0
    assert pd.read_csv(out / "homes.csv")["rents"].tolist() == ["yes"] * 30
    real = [folder / f"{name}.csv" for name in ("homes", "persons")]
    assert run("evaluate", model, *real, "--out", folder / "not_private.html", "--quiet") == 0
    assert "persons: Columns one by one" in (folder / "not_private.html").read_text()
    assert run("sample", model, "--again", "--rows", 20, "--out", out, "--force", "--quiet") == 0
    assert pd.read_csv(out / "homes.csv")["id"].tolist() == first["id"].tolist()[:20]
    (folder / "public").mkdir()
    files = folder / "public" / "homes.csv", folder / "public" / "persons.csv"
    for path in files:  # a prior may lack columns
        own = pd.read_csv(folder / path.name)
        own.drop(columns="rents", errors="ignore").to_csv(path, index=False)
    more = "--method", "privpgd", "--report", folder / "p.html", "--force"
    for prior, said in (
        ((model,), "public rows of m.zip, of a release with epsilon"),
        (files, f"public rows of {files[0]}, {files[1]}"),
    ):
        fit(folder, *(word for path in prior for word in ("--prior", path)), *more)
        assert said in (folder / "p.html").read_text()
    capsys.readouterr()
    for command, said in (
        (("sample", model, "--out", folder / "rows.csv"), "holds several tables"),
        (("sample", model, "--mark", "column", "--out", out, "--force"), "not taken with"),
        (
            ("sample", model, "--condition", "age=3", "--out", out, "--force"),
            "['age'], which are no columns of the model",
        ),
        (("evaluate", model, real[0], "--out", out / "p.html"), "['homes', 'persons'], got"),
        (("evaluate", model, folder / "domain.json", "--out", out / "p.html"), "no table of the"),
        (("describe", model, "--methods"), "not taken with"),
        (
            ("plan", "--prior", model, "--epsilon", 1, *documents(folder), *LINK),
            "--prior: not taken",
        ),
    ):
        assert said in refused(run(*command), capsys)


@pytest.mark.parametrize(
    ("more", "said"),
    [
        (("--person-column", "home"), "--person-column: not taken"),
        (("--link", "persons.home=homes"), "is not CHILD.KEY=PARENT.KEY"),
        (("--max-epsilon", 1), "epsilon"),
        (("--out", "nowhere"), "There is no folder nowhere"),
        (("--link", "x.home=homes.id"), "the tables"),
        (("--allow-lost", "persons.x"), "no columns"),
        (("--allow-lost", "person.age"), "--allow-lost names ['person'], which are no tables"),
        (("--drop", "rents"), "--drop rents is no TABLE.COLUMN"),
        (("--dtype", "persons.x=str"), "'x'"),
        (("--dtype", "person.age=number"), "--dtype person.age is no TABLE.COLUMN"),
        (("--drop", "persons.home"), "or a key of --link"),
        (("--make-up", "persons.home"), "--make-up persons.home is no TABLE.COLUMN, or a key"),
        (("--prior", "homes.csv"), "--prior takes one kept model"),
        (("--count", "homes=age"), "--count names ['homes'], which lead to no table"),
        (("--count", "persons=rents"), "--count names 'rents', which must be a column of whole"),
        (("--numbered", "persons=rents"), "--numbered names 'rents', which must be a column of"),
        (("--in-order", "persons.age=rents"), "--in-order names 'rents', which must be"),
        (("--question", "mean of age"), "'mean of age' is not TABLE: QUESTION, of one of ['homes'"),
        ({}, "number 1: parameters must have a table_name of homes, persons."),
        ({"table_name": "homes"}, "(column_name='age', increment_value=5) names ['age']"),
        (("--question", "homes: mean of age"), "--question names ['age'], which are no modelled"),
    ],
)
def test_what_cannot_be_is_said_and_nothing_is_spent(folder, more, said, capsys):
    more = constrained(folder, **more) if isinstance(more, dict) else more
    told = refused(fit(folder, *more), capsys)
    assert said in told
    assert "Traceback" not in told
    assert not list((folder / "out").iterdir())


def test_files_bear_the_names_of_their_tables_and_a_plan_reads_none(folder, capsys):
    assert "give each file the name of its table" in refused(fit(folder, files=("homes",)), capsys)
    said = refused(fit(folder, link=LINK[:2]), capsys)
    assert "--max-children says nothing of ['persons']" in said
    assert fit(folder, "--dry-run", "--rows", 400) == 0
    assert re.search(r"^persons +[\d.]+%$", capsys.readouterr().out, re.MULTILINE)
    options = documents(folder)
    told = ("--epsilon", 2, "--delta", 1e-6, "--rows", 400, "--report", folder / "plan.html")
    assert run("plan", *options, *told, *LINK) == 0
    assert re.search(r"^siblings of persons +[\d.]+%$", capsys.readouterr().out, re.MULTILINE)
    listed = ("--question", "persons: mean of age where homes.rents=yes", "--force")
    assert run("plan", *options, *told, *LINK, *listed) == 0
    assert "tables of listed questions" in capsys.readouterr().out
    assert (folder / "plan.html").exists()
    assert run("plan", *options, *LINK, "--epsilon", 30, "--delta", 0.1, "--rows", 400) == 0
    said = capsys.readouterr().out
    assert said.count("--delta 0.1 promises next to nothing") == 1
    assert said.count("--epsilon 30 promises next to nothing") == 1


def test_a_check_says_what_becomes_of_each_table_and_reads_no_cell(folder, capsys):
    files = (folder / "homes.csv", folder / "persons.csv")
    asked = (*documents(folder), "--epsilon", 2, "--delta", 1e-6, *LINK)
    assert run("check", *files, *asked, "--report", folder / "check.html") == 0
    said = capsys.readouterr().out
    assert "No column is lost." in said
    assert "number of persons" not in said  # what links add is nobody's column
    assert "persons" in (folder / "check.html").read_text()
    lines = (folder / "persons.csv").read_text().splitlines()
    (folder / "persons.csv").write_text("\n".join([lines[0], *["1,x"] * 9]))
    assert run("check", *files, *asked) == 0
    assert capsys.readouterr().out == said
    pd.read_csv(files[0]).rename(columns={"rents": "x"}).to_csv(files[0], index=False)
    assert "rents" in refused(run("check", *files, *asked), capsys)


def test_a_stop_says_what_was_spent_and_the_ledger_have_it(folder, capsys):
    domain = json.loads((folder / "domain.json").read_text())
    domain["homes"]["rents"] = {"range_values": ["ja", "nein"]}
    (folder / "domain.json").write_text(json.dumps(domain))
    assert "rents" in refused(fit(folder, "--ledger", folder / "l.json"), capsys)
    assert 0 < read_ledger((folder / "l.json").read_text()).spent() < 6
    assert fit(folder, "--allow-lost", "homes.rents", "--quiet") == 0


def test_a_parents_own_count_is_that_of_its_rows(folder):
    homes, persons = (pd.read_csv(folder / f"{name}.csv") for name in ("homes", "persons"))
    held = homes["id"].astype(str).map(persons["home"].value_counts()).fillna(0).astype(int)
    homes.assign(held=held).to_csv(folder / "homes.csv", index=False)
    persons.assign(no=1 + persons.groupby("home").cumcount()).to_csv(
        folder / "persons.csv", index=False
    )
    for name, facts in (
        ("metadata", {"sdtype": "numerical"}),
        ("domain", {"range_min": 0, "range_max": 9, "decimal_places": 0}),
    ):
        told = json.loads((folder / f"{name}.json").read_text())
        own = told if name == "domain" else {n: t["columns"] for n, t in told["tables"].items()}
        own["homes"]["held"], own["persons"]["no"] = facts, facts | {"range_min": 1}
        (folder / f"{name}.json").write_text(json.dumps(told))
    assert fit(folder, "--count", "persons=held", "--numbered", "persons=no", "--quiet") == 0
    homes, persons = (pd.read_csv(folder / "out" / f"{name}.csv") for name in ("homes", "persons"))
    number = homes["id"].map(persons["home"].value_counts()).fillna(0)
    assert (number == homes["held"].clip(upper=3)).all()  # more are not used
    assert (persons["no"] == 1 + persons.groupby("home").cumcount()).all()


def test_columns_of_a_table_that_nothing_describes_are_named(folder, capsys):
    persons = pd.read_csv(folder / "persons.csv", dtype=str)
    persons.assign(city="Berlin").to_csv(folder / "persons.csv", index=False)
    assert fit(folder, "--quiet", "--rows", 50) == 0
    assert "Left out of persons.csv: city. Nothing given" in capsys.readouterr().err


def test_types_are_detected_where_nobody_says_them_and_what_would_be_lost_stops(folder, capsys):
    persons = pd.read_csv(folder / "persons.csv")
    persons = persons.assign(city="Berlin", email=[f"{row}@x.org" for row in range(len(persons))])
    persons.to_csv(folder / "persons.csv", index=False)
    asked = (
        "synthesize", folder / "homes.csv", folder / "persons.csv", "--header", "--epsilon", 9,
        "--delta", 1e-6, "--method", "mst", *LINK, "--out", folder / "out", "--quiet",
    )  # fmt: skip
    said = refused(run(*asked), capsys)
    assert "Nothing was spent. 'persons.city' would not be in the rows" in said
    for key, wrong in (("persons.hom", "persons.hom"), ("people.home", "'people'")):
        other = ("--link", f"{key}=homes.id", "--max-children", 3)
        assert f"--link names {wrong}" in refused(run(*asked, *other), capsys)
    dropped = ("--drop", "persons.city,persons.age", "--dry-run", "--rows", 400)
    assert run(*asked, *dropped) == 0
    assert "Left out: persons.email, persons.age, persons.city" in capsys.readouterr().err
    assert run(*asked, "--allow-lost", "persons.city", "--dry-run", "--rows", 400) == 0
    assert "Left out: persons.city, persons.email" in capsys.readouterr().err
    typed = ("--drop", "persons.email", "--dtype", "persons.city=category", "--dry-run")
    assert run(*asked, *typed, "--rows", 400) == 0
    assert "Left out: persons.email. Ids" in capsys.readouterr().err
    two = ("--link", "persons.email=schools.id", "--drop", "persons.city")
    schools = pd.DataFrame({"id": ["a", "b"], "size": [1, 2]})
    schools.to_csv(folder / "schools.csv", index=False)
    said = refused(run(*asked[:3], folder / "schools.csv", *asked[3:], *two), capsys)
    assert "['persons'] have more than one parent" in said
    for own in (persons, persons.iloc[1:]):  # keys are text, and then they are numbers
        own.to_csv(folder / "persons.csv", index=False)
        assert run(*asked, "--make-up", "persons.city", "--force") == 0
        said = capsys.readouterr().err
        assert said.count("were detected from the table") == 1
        assert "Left out: persons.email." in said
        assert SECRET not in said
        rows = {name: pd.read_csv(folder / "out" / f"{name}.csv") for name in ("homes", "persons")}
        assert sorted(rows["persons"].columns) == ["age", "city", "home"]
        assert rows["persons"]["city"].is_unique
        assert rows["persons"]["home"].isin(rows["homes"]["id"]).all()


@pytest.mark.long
def test_an_audit_of_families_takes_the_same_words(folder, capsys):
    told = (*documents(folder), "--epsilon", 2, "--delta", 1e-6, "--method", "independent", *LINK)
    assert run("audit", *told, "--runs", 50, "--report", folder / "audit.html") == 0
    assert "Passed: none of" in capsys.readouterr().out
    assert "Passed: none of" in (folder / "audit.html").read_text()
    assert "--max-children says nothing of" in refused(run("audit", *told[:-2]), capsys)
    assert "needs --metadata" in refused(run("audit", *told[4:]), capsys)


def test_metadata_need_not_name_the_keys_of_a_link(folder):
    metadata = json.loads((folder / "metadata.json").read_text())
    del metadata["relationships"], metadata["tables"]["persons"]["columns"]["home"]
    (folder / "metadata.json").write_text(json.dumps(metadata))
    assert fit(folder, "--quiet", "--rows", 30) == 0
    rows = {name: pd.read_csv(folder / "out" / f"{name}.csv") for name in ("homes", "persons")}
    assert rows["persons"]["home"].isin(rows["homes"]["id"]).all()


def test_a_domain_of_no_column_is_refused(folder, capsys):
    domain = json.loads((folder / "domain.json").read_text())
    for table, name in (("persons", "agge"), ("person", "age"), ("homes", "id")):
        said = {**domain, table: {**domain.get(table, {}), name: {"range_min": 0}}}
        (folder / "said.json").write_text(json.dumps(said))
        told = refused(fit(folder, "--domain", folder / "said.json"), capsys)
        assert f"--domain names the columns ['{name}'] of '{table}'" in told


def test_rows_are_in_order_if_that_is_asked(folder, capsys):
    in_order = ("--in-order", "persons.age", "--model", folder / "m.zip", "--quiet")
    assert fit(folder, *in_order, link=LINK) == 0
    persons = pd.read_csv(folder / "out" / "persons.csv")
    assert (persons.groupby("home")["age"].diff().dropna() >= 0).all()
    (link,) = FittedTables.load(folder / "m.zip").tree.links
    assert (link.order, link.start) == ("age", None)
    for wrong in ("homes.rents", "persons"):
        said = refused(fit(folder, "--in-order", wrong, "--force"), capsys)
        assert "names no column of a table that leads to one" in said
