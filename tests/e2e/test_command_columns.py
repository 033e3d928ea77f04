"""Which columns a command models, and what they are: --columns, --drop, --make-up and --dtype."""

import json
import re
from argparse import ArgumentTypeError
from datetime import date, time, timedelta
from decimal import Decimal

import numpy as np
import pandas as pd
import pytest
from commands import documents, refused, run
from made_up import made_up
from openpyxl import Workbook

from sdv_privpgd.cli import checkpoint
from sdv_privpgd.cli.input_files import Typed

NUMBER = 800
QUICK = ("--epsilon", 20, "--method", "independent", "--quiet", "--force", "--header")


@pytest.fixture
def table(tmp_path):
    """A table of which SDV takes some columns for personal ones, and reads others as text."""
    frame = made_up(
        NUMBER, city=("Bonn", "Ulm"), country_code=("DE", "AT"), latitude=(46_000, 50_000),
        seen=(0, 900), at=(0, 1_440), rate=(0, 100), member="JJJJN", price=(0, 999),
        code=[f"C{row}" for row in range(NUMBER)],
    )  # fmt: skip
    start = pd.Timestamp("2020-01-01")
    frame["latitude"] /= 1_000
    frame["seen"] = (start + pd.to_timedelta(frame["seen"], "D")).dt.strftime("%d.%m.%Y")
    frame["at"] = (start + pd.to_timedelta(frame["at"], "min")).dt.strftime("%H:%M")
    frame["rate"] = [f"{each} %" for each in frame["rate"]]
    frame["price"] = [f"{each / 100:.2f} EUR".replace(".", ",") for each in frame["price"]]
    frame.to_csv(tmp_path / "table.csv", index=False)
    return tmp_path / "table.csv"


TOLD = {
    "city": "category", "country_code": "str", "latitude": "float", "seen": "date:%d.%m.%Y",
    "at": "time:%H:%M", "rate": "percent", "member": "bool:J/N", "price": "number:1234,50 EUR",
    "code": "id",
}  # fmt: skip
ALL = [part for name, word in TOLD.items() for part in ("--dtype", f"{name}={word}")]


def test_what_is_told_beats_what_is_detected_and_comes_back_as_it_was(table, tmp_path):
    out, model = tmp_path / "out.csv", tmp_path / "model.zip"
    assert run("synthesize", table, *QUICK, *ALL, "--out", out, "--model", model) == 0
    real, rows = pd.read_csv(table), pd.read_csv(out)
    assert list(rows) == list(real)
    kinds = {
        name: facts["sdtype"]
        for name, facts in checkpoint.facts_of(checkpoint.fitted(model)).items()
    }
    assert kinds["city"] == kinds["country_code"] == "categorical"
    assert kinds["latitude"] == kinds["rate"] == kinds["price"] == "numerical"
    assert rows["city"].isin(["Bonn", "Ulm"]).mean() > 0.95  # noise leaves a few others at times
    assert rows["country_code"].isin(["DE", "AT"]).mean() > 0.95
    assert abs(rows["latitude"].mean() - 48) < 0.5
    seen = pd.to_datetime(rows["seen"], format="%d.%m.%Y")
    assert seen.between("2019-12-01", "2022-09-01").mean() > 0.95  # noise moves an end at times
    assert pd.to_datetime(rows["at"], format="%H:%M").notna().mean() > 0.98
    assert rows["rate"].dropna().str.fullmatch(r"[0-9.]+%").all()
    assert abs(rows["rate"].str.rstrip("%").astype(float).mean() - 49.5) < 5
    assert abs((rows["member"] == "J").mean() - 0.8) < 0.1
    assert rows["price"].dropna().str.fullmatch(r"-?[0-9]+,[0-9]{2} EUR").all()
    assert not set(rows["code"].astype(str)) & set(real["code"])


def test_without_detection_types_are_told_too_and_a_draft_has_them(table, tmp_path, capsys):
    out = tmp_path / "out.csv"
    asked = ("--types", "dtypes", "--drop", "code")
    assert run("synthesize", table, *QUICK, *ALL, *asked, "--out", out) == 0
    assert list(pd.read_csv(out)) == [name for name in TOLD if name != "code"]
    domain, metadata = tmp_path / "domain.json", tmp_path / "metadata.json"
    drafted = ("--header", "--out", domain, "--metadata-out", metadata)
    assert run("draft-domain", table, *drafted, *ALL) == 0
    assert "do not say" not in capsys.readouterr().err
    found = json.loads(domain.read_text())
    assert found["seen"]["datetime_format"] == "%d.%m.%Y"
    said = {"sdtype": "boolean", "true_value": "J", "false_value": "N"}
    assert found["member"] == {**said, "range_is_nullable": None}
    assert found["rate"]["number_format"] == "1234.5%"
    assert "code" not in found
    said = json.loads(metadata.read_text())["tables"]["table"]["columns"]
    assert {said[name]["sdtype"] for name in ("city", "country_code")} == {"categorical"}
    assert said["code"]["sdtype"] == "id"


def test_metadata_gives_way_to_words(table, tmp_path, capsys):
    columns = {name: {"sdtype": "unknown"} for name in TOLD}
    columns["seen"] = {"sdtype": "categorical"}
    (tmp_path / "metadata.json").write_text(json.dumps({"columns": columns}))
    told = ("--dtype", "seen=date:%d.%m.%Y", "--dtype", "member=bool:J/N")
    asked = ("--metadata", tmp_path / "metadata.json", "--columns", "seen,member")
    assert run("plan", *asked, *told, "--epsilon", 1, "--rows", 500) == 0
    lines = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert ["seen", "datetime", "--dtype", "found", "privately"] in lines
    assert ["member", "boolean", "--dtype", "declared"] in lines
    assert "city" not in [line[0] for line in lines if line]


def test_columns_are_kept_left_out_or_made_up(table, tmp_path, capsys):
    out = tmp_path / "out.csv"
    kept = ("--columns", "city,member,rate", "--drop", "rate")
    assert run("synthesize", table, *QUICK, *kept[:2], *ALL, "--make-up", "city", "--out", out) == 0
    rows, real = pd.read_csv(out, dtype=str), pd.read_csv(table)
    assert list(rows) == ["city", "rate", "member"]
    assert not set(rows["city"]) & set(real["city"])
    assert rows["city"].nunique() == len(rows)
    capsys.readouterr()
    assert run("synthesize", table, *QUICK, "--drop", "city,seen,x", "--out", out) == 1
    assert "--drop names ['x'], which are no columns" in capsys.readouterr().err
    assert run("synthesize", table, *QUICK, *kept, "--out", out) == 1
    assert "--columns and --drop both name ['rate']" in capsys.readouterr().err
    assert run("synthesize", table, *QUICK, "--drop", ",".join(TOLD), "--out", out) == 1
    assert "--drop leaves no column" in capsys.readouterr().err
    assert run("synthesize", table, *QUICK, "--make-up", "town", "--out", out) == 1
    assert "--make-up names ['town']" in capsys.readouterr().err
    assert run("synthesize", table, *QUICK, "--dtype", "town=id", "--out", out) == 1
    assert "--dtype names ['town']" in capsys.readouterr().err


def test_holders_leave_columns_out_and_codebooks_go_with_metadata(csv, tmp_path, capsys):
    asked = ("--site", "North", "--epsilon", 5, "--out", tmp_path / "north.zip", "--quiet")
    facts = documents(csv.parent)
    assert run("measure", csv, *asked, *facts, "--drop", "ill") == 0
    rows = tmp_path / "rows.csv"
    assert run("combine", tmp_path / "north.zip", "--out", rows, "--quiet") == 0
    assert list(pd.read_csv(rows)) == ["age", "ward"]
    frame = pd.DataFrame({"age": [20, 30] * 50})
    frame.to_parquet(tmp_path / "table.parquet")
    (tmp_path / "book.csv").write_text("column,type,min,max,missing codes\nage,integer,0,99,-1\n")
    (tmp_path / "metadata.json").write_text('{"columns": {"age": {"sdtype": "numerical"}}}')
    facts = ("--metadata", tmp_path / "metadata.json", "--domain", tmp_path / "book.csv")
    assert run("plan", *facts, "--epsilon", 1, "--rows", 100) == 0
    assert run("plan", tmp_path / "table.parquet", *facts, "--epsilon", 1) == 0
    capsys.readouterr()
    assert run("plan", tmp_path / "table.parquet", *facts, "--epsilon", 1, "--na", "x") == 1
    assert "--na is for text" in capsys.readouterr().err


@pytest.mark.parametrize(
    "text", ["x", "x=", "x=colour", "x=bool:J", "x=bool:/N", "x=timedelta64[ns]"]
)
def test_words_that_are_no_types_are_refused(text, capsys):
    with pytest.raises(ArgumentTypeError, match=r"is not|neither a type|no type"):
        Typed.of(text)
    with pytest.raises(SystemExit):
        run("plan", "t.csv", "--epsilon", 1, "--dtype", text)
    assert "argument --dtype" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("text", "facts"),
    [
        ("x=percent", {"sdtype": "numerical", "number_format": "1234,5%"}),
        ("x=percent:12 %", {"sdtype": "numerical", "number_format": "12 %"}),
        ("x=time", {"sdtype": "datetime", "range_min": "00:00:00", "range_max": "23:59:59"}),
        ("x=date", {"sdtype": "datetime"}),
        ("x=Int64", {}),
    ],
)
def test_words_are_facts(text, facts):
    assert Typed.of("a=b=category").name == "a=b"
    assert Typed.of(text).facts(",") == facts


@pytest.mark.parametrize(("places", "form"), [(0, "1234%"), (1, "1234.5%"), (2, "1234.50%")])
def test_percentages_have_the_decimal_places_that_are_declared(places, form):
    assert Typed.of("x=percent").facts(".", places)["number_format"] == form


@pytest.mark.parametrize("ending", [".csv", ".xlsx"])
def test_a_codebook_is_drafted_filled_in_and_read(ending, tmp_path, capsys):
    rng = np.random.default_rng(0)
    ages = rng.integers(20, 60, NUMBER)
    ages[: NUMBER // 4], table = 999, tmp_path / "table.csv"
    frame = pd.DataFrame({"age": ages, "sex": rng.integers(1, 3, NUMBER), "who": range(NUMBER)})
    frame.to_csv(table, index=False)
    codebook, out = tmp_path / f"codebook{ending}", tmp_path / "out.csv"
    assert run("draft-domain", table, "--header", "--out", codebook) == 0
    assert "Fill in what is blank in" in capsys.readouterr().err
    read, written = {".csv": ("read_csv", "to_csv"), ".xlsx": ("read_excel", "to_excel")}[ending]
    sheet = getattr(pd, read)(codebook, dtype=object).set_index("column")
    sheet.loc["age", ["type", "min", "max", "missing codes"]] = "integer", 0, 110, 999
    sheet.loc["sex", ["type", "values"]] = "category", "1 = m; 2 = f"
    sheet.loc["who", "type"] = "id"
    getattr(sheet, written)(codebook)
    assert run("synthesize", table, *QUICK[:-1], "--domain", codebook, "--out", out) == 0
    assert "were detected" not in capsys.readouterr().err
    rows = pd.read_csv(out)
    assert list(rows) == ["age", "sex", "who"]
    assert abs(rows["age"].isna().mean() - 0.25) < 0.1
    assert rows["age"].quantile(0.98) < 75
    assert set(rows["sex"].dropna()) == {1, 2}
    assert run("draft-domain", table, "--header", "--out", tmp_path / "domain.ods") == 1
    assert "must end in one of .json, .yaml, .yml, .csv, .xlsx" in capsys.readouterr().err


def test_a_check_says_what_becomes_of_each_column_and_that_a_fit_would_stop(
    table, tmp_path, capsys
):
    told = [part for part in ALL if not part.startswith(("city=", "--dtype"))]
    told = [part for name in told for part in ("--dtype", name)]
    page = tmp_path / "check.html"
    common = (table, "--header", "--epsilon", 20)
    assert run("check", *common, *told, "--report", page) == 1
    said = capsys.readouterr()
    shown = " ".join(said.out.split())
    assert "latitude numerical found privately modelled" in shown
    assert "code id made up numbered anew" in shown
    assert "'city' would not be in the rows" in shown
    assert "--make-up city" in shown
    assert "A fit would stop before it spends anything." in said.err
    assert "latitude" in page.read_text()
    assert run("synthesize", *common, *told, "--quiet", "--out", tmp_path / "o.csv") == 1
    assert "Nothing was spent. 'city' would not be" in capsys.readouterr().err
    for mended in (["--dtype", "city=category"], ["--drop", "city"], ["--allow-lost", "city"]):
        assert run("check", *common, *told, *mended) == 0
        assert "No column is lost." in capsys.readouterr().out


def test_what_is_an_id_by_detection_and_not_by_its_name_stops_a_command(tmp_path, capsys):
    sales = np.arange(600) * 7 + 10**9
    rows = pd.DataFrame({"n": sales % 3, "sales": sales})
    rows["paid"] = [f"${each / 100:,.2f}" for each in sales]  # an amount is no id
    rows.to_csv(tmp_path / "t.csv", index=False)
    asked = ("check", tmp_path / "t.csv", "--header", "--epsilon", 20)
    assert run(*asked) == 1
    said = capsys.readouterr()
    assert "'sales' would get new numbers, whatever the table says" in said.out
    for mended in ("--dtype", "sales=number"), ("--drop", "sales"), ("--make-up", "sales"):
        assert run(*asked, *mended) == 0
        shown = capsys.readouterr().out
        assert re.search(r"sales +numerical", shown) or mended[0] != "--dtype"
        assert re.search(r"paid +numerical", shown)


def test_rows_that_are_too_few_stop_a_command_before_it_spends(table, tmp_path, capsys):
    few, out = tmp_path / "few.csv", tmp_path / "out.csv"
    few.write_text("".join(table.read_text().splitlines(keepends=True)[:120]))
    asked = (few, "--header", "--epsilon", 0.5, "--columns", "country_code,rate", *ALL)
    said = refused(run("synthesize", *asked, "--out", out, "--quiet"), capsys)
    assert "'rate' would be hidden" in said
    assert "--allow-lost" in said
    assert "was spent" not in said.replace("Nothing was spent", "")
    assert not out.exists()
    said = refused(run("synthesize", *asked, "--out", out, "--allow-lost", "rats"), capsys)
    assert "--allow-lost names ['rats'], which are no columns" in said
    asked = (*asked, "--method", "independent", "--allow-lost", "country_code,rate")
    assert run("synthesize", *asked, "--out", out, "--quiet") == 0


def test_dates_times_and_numbers_of_text_are_detected_and_come_back_as_they_were(table, tmp_path):
    hours = pd.date_range("2024-01-01", periods=NUMBER, freq="h")
    bare = [f"{each.day}.{each.month}.{each.year} {each.hour}:00" for each in hours]
    texts = {
        "sent": hours.strftime("%Y-%m-%dT%H:%M:%SZ"), "bare": bare,
        "zoned": hours.strftime("%Y-%m-%dT%H:%M:%S+02:00"),
        "rain": np.where(np.arange(NUMBER) % 9, 0, np.arange(NUMBER) % 7 / 10 + 1),
        "wet": np.where(np.arange(NUMBER) % 50, "False", "True"),
        "ok": np.where(np.arange(NUMBER) % 2, "oui", "non"),
    }  # fmt: skip
    out, kept = tmp_path / "out.csv", ["seen", "at", "rate", "price", *texts]
    pd.read_csv(table).assign(**texts).to_csv(table, index=False)
    asked = ("--columns", ",".join(kept), "--rows-are-people", "--out", out)
    assert run("synthesize", table, *QUICK, *asked) == 0
    rows, real = pd.read_csv(out, dtype=str), pd.read_csv(table, dtype=str)[kept]
    assert list(rows) == kept
    assert not rows["bare"].str.contains(r"\b0\d?[.]|[.]0").any()
    assert rows[["sent", "zoned"]].apply(lambda each: each.str.contains(":00[Z+]")).all(axis=None)
    for name in kept:
        shapes = {re.sub(r"\d+", "1", cell) for cell in rows[name].dropna()}
        assert shapes <= {re.sub(r"\d+", "1", cell) for cell in real[name]}
        assert rows[name].notna().mean() > 0.95
    assert abs(rows["rate"].str.rstrip(" %").astype(float).mean() - 49.5) < 5


def test_codes_that_are_written_like_numbers_come_back_as_they_were(tmp_path):
    rng, out = np.random.default_rng(0), tmp_path / "out.csv"
    codes = {"nace": ["01.11", "10.20", "47.11"], "version": ["1", "1.0", "1.1", "1.10", "2b"]}
    real = pd.DataFrame({name: rng.choice(each, NUMBER) for name, each in codes.items()})
    real.to_csv(tmp_path / "t.csv", index=False)
    assert run("synthesize", tmp_path / "t.csv", *QUICK, "--rows-are-people", "--out", out) == 0
    rows = pd.read_csv(out, dtype=str)
    for name, each in codes.items():
        assert {*rows[name]} - {"other"} == {*each}


def test_what_is_personal_by_its_name_alone_stops_a_command(tmp_path, capsys):
    rows = made_up(NUMBER, n_emails=(0, 9), ssn_valid=("yes", "no"), ssn=(10**8, 10**9), age=(0, 9))
    rows.to_csv(tmp_path / "t.csv", index=False)
    asked = ("check", tmp_path / "t.csv", "--header", "--epsilon", 20)
    assert run(*asked) == 1
    assert "'n_emails', 'ssn_valid' would not be in the rows: by their names" in (
        capsys.readouterr().out.replace("\n", " ")
    )
    assert run(*asked, "--dtype", "n_emails=number", "--drop", "ssn_valid") == 0
    assert re.search(r"n_emails +numerical", capsys.readouterr().out)


def test_decimals_times_and_truths_of_a_schema_or_a_workbook_are_what_they_are(tmp_path, capsys):
    frame = pd.DataFrame(
        {
            "cost": [Decimal(each % 150).scaleb(-1) for each in range(300)],
            "at": [time(each % 24, each % 60) for each in range(300)],
            "ill": [each % 9 == 0 for each in range(300)],
            "raw": [b"\xff" * (1 + each % 2) for each in range(300)],
        }
    )
    frame.to_parquet(tmp_path / "table.parquet")
    frame[["at", "ill"]].to_excel(tmp_path / "table.xlsx", index=False)
    assert run("check", tmp_path / "table.parquet", "--epsilon", 5) == 0
    assert run("check", tmp_path / "table.xlsx", "--header", "--epsilon", 5) == 0
    lines = [line.split()[:3] for line in capsys.readouterr().out.splitlines()]
    assert ["cost", "numerical", "found"] in lines
    assert ["raw", "categorical", "found"] in lines
    assert lines.count(["at", "datetime", "declared"]) == 2
    assert lines.count(["ill", "boolean", "declared"]) == 2


def test_columns_of_a_workbook_that_say_no_type_are_told_before_anything_is_spent(tmp_path, capsys):
    days = [date(2024, 1, 1) + timedelta(each) for each in range(NUMBER)]
    frame = pd.DataFrame({"age": made_up(NUMBER, age=(0, 90))["age"], "empty": None})
    frame["day"] = [days[row] if row % 20 else 45_000 for row in range(NUMBER)]  # or its number
    frame.to_excel(tmp_path / "t.xlsx", index=False)
    asked = (*QUICK, "--out", tmp_path / "out.csv")
    said = refused(run("synthesize", tmp_path / "t.xlsx", *asked), capsys)
    assert "'empty' would not be in the rows: nothing is in their cells" in said
    assert "'day' would not be in the rows: no number, date or time" in said
    assert run("synthesize", tmp_path / "t.xlsx", *asked, "--drop", "empty,day") == 0
    frame.to_csv(tmp_path / "t.csv", index=False)  # where pandas takes it for numbers
    said = refused(run("synthesize", tmp_path / "t.csv", *asked), capsys)
    assert "'empty' would not be in the rows: nothing is in their cells" in said
    book = Workbook()
    for row in (("age", "took"), *((each, timedelta(hours=each)) for each in range(99))):
        book.active.append(row)
    book.save(tmp_path / "t.xlsx")
    said = refused(run("synthesize", tmp_path / "t.xlsx", *asked), capsys)
    assert "No type of column reads {'took': 'timedelta64[ns]'}" in said
    assert "--drop took." in said


def test_whole_numbers_are_numbers_and_whole(tmp_path, capsys):
    frame = made_up(1_500, **{f"item {number}": (1, 6) for number in range(20)})
    frame["day"] = pd.Timestamp("2024-01-01") + pd.to_timedelta(frame["item 1"], "D")
    frame.loc[::3, ["item 0", "day"]] = None
    frame.to_parquet(tmp_path / "t.parquet")
    out = tmp_path / "out.csv"
    asked = ("--epsilon", 2, "--method", "independent", "--rows-are-people")
    assert run("synthesize", tmp_path / "t.parquet", *asked, "--out", out) == 0
    said = capsys.readouterr()
    assert re.search(r"item 0 +numerical +detected", said.out)
    # All others are numbers, or dates.
    assert "values are missing" not in said.err + said.out
    rows = pd.read_csv(out).drop(columns="day")
    assert (rows.dropna() % 1 == 0).all(axis=None)
    assert (rows.mean() - 3).abs().median() < 0.5


def test_days_of_a_file_that_has_types_do_not_come_back_as_text(tmp_path):
    days = [date(2024, 1, 1 + number % 28) for number in range(NUMBER)]
    pd.DataFrame({"day": days}).to_parquet(tmp_path / "t.parquet")
    out = tmp_path / "out.parquet"
    assert run("synthesize", tmp_path / "t.parquet", *QUICK[:-1], "--out", out) == 0
    assert pd.read_parquet(out)["day"].dtype.kind == "M"


def test_a_line_of_sums_and_lists_are_told_before_anything_is_spent(tmp_path, capsys):
    frame = pd.DataFrame({"age": np.random.default_rng(0).integers(0, 90, NUMBER), "sex": "f"})
    (tmp_path / "t.csv").write_text(frame.to_csv(index=False) + "Sum: 99,\n")
    asked = (*QUICK, "--out", tmp_path / "out.csv")
    said = refused(run("synthesize", tmp_path / "t.csv", *asked), capsys)
    assert "'age' would not be in the rows" in said
    assert "--skip-footer 1 leaves out a line of sums" in said
    assert run("synthesize", tmp_path / "t.csv", *asked, "--skip-footer", 1) == 0
    frame.assign(**{"two parts": [[1, 2]] * NUMBER}).to_parquet(tmp_path / "t.parquet")
    asked = ("check", tmp_path / "t.parquet", "--epsilon", 5)
    said = refused(run(*asked), capsys)
    assert "No type of column reads {'two parts': 'list" in said
    assert "--drop 'two parts'." in said
    assert run(*asked, "--drop", "two parts") == 0


def test_text_and_ids_that_are_no_keys_stop_a_command_before_it_spends(tmp_path, capsys):
    words, out = ["pain", "knee", "left"], tmp_path / "out.csv"
    frame = made_up(
        NUMBER, age=(0, 90), patient_id=(0, 300), source_id=(0, 9), matricule=(0, 300),
        note=[" ".join(np.random.default_rng(row).choice(words, 8)) for row in range(NUMBER)],
    )  # fmt: skip
    frame["paid"] = [f"01/{1 + row % 12:02d}/2024" for row in range(NUMBER)]  # months, or days
    frame.to_csv(tmp_path / "t.csv", index=False)
    asked = ("synthesize", tmp_path / "t.csv", *QUICK, "--out", out)
    said = refused(run(*asked), capsys)
    assert "was spent" not in said.replace("Nothing was spent", "")
    assert "'note', 'paid' would not be in the rows: no number, date or time is read in" in said
    assert "'patient_id', 'source_id', 'matricule' are ids by their names and no keys" in said
    assert said.count("Whose rows are these?") == 1
    asked += ("--dtype", "paid=date:%d/%m/%Y")
    mended = ("--drop", "note", "--dtype", "source_id=category")
    people = ("--person-column", "patient_id", "--rows-per-person", 2, "--delta", 1e-6)
    people += ("--adjacency", "add_remove", "--make-up", "matricule")
    assert run(*asked, *mended, *people) == 0
    rows = pd.read_csv(out)
    assert set(rows) == {"age", "patient_id", "source_id", "matricule", "paid"}
    assert pd.to_datetime(rows["paid"], format="%d/%m/%Y").dt.month.nunique() > 6
    mended = ("--drop", "note", "--dtype", "source_id=category", "--dtype", "patient_id=id")
    assert run(*asked, *mended, "--rows-are-people") == 0
