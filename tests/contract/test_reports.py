"""A report is a text, a page and a dictionary at once, and is written where somebody says so."""

import json
import os
import re
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
import sdv_tables
from sdv.utils import load_synthesizer

import sdv_privpgd
from sdv_privpgd import Boolean, MSTSynthesizer, Report, fit_table
from sdv_privpgd.report.page import Items, Page, Section, Table, Text
from sdv_privpgd.report.page import Report as ReportItself

TABLE = pd.DataFrame({"ill": [True, False] * 200, "old": [True, True, False, False] * 100})
METADATA = sdv_tables.metadata_of({"ill": {"sdtype": "boolean"}, "old": {"sdtype": "boolean"}})


@pytest.fixture(scope="module")
def synthesizer():
    fitted = MSTSynthesizer(METADATA, 5.0)
    fitted.fit(TABLE)
    return fitted


@pytest.fixture(scope="module")
def table_of_the_door():
    described = {"ill": Boolean(), "old": Boolean()}
    return fit_table(TABLE, described, 5.0, method="mst")


@pytest.fixture(params=["synthesizer", "door", "plan", "evaluation"])
def report(request, synthesizer, table_of_the_door):
    return {
        "synthesizer": synthesizer.report,
        "door": table_of_the_door.report,
        "plan": lambda: synthesizer.plan(400),
        "evaluation": lambda: synthesizer.evaluate(TABLE),
    }[request.param]()


def test_all_reports_say_the_same_in_all_forms(report, tmp_path):
    assert isinstance(report, Report)
    assert str(report) == repr(report) == report.text
    assert max(map(len, report.text.splitlines())) <= 100
    assert report.html().startswith("<!doctype html>")
    assert json.loads(json.dumps(report.to_dict(), allow_nan=False)) == report.to_dict()
    assert report.save(tmp_path / "r.txt").read_text(encoding="utf-8") == report.text + "\n"
    written = report.save(str(tmp_path / "r.json")).read_text(encoding="utf-8")
    assert json.loads(written) == report.to_dict()
    shown = report._repr_html_()
    assert re.fullmatch(r'<iframe srcdoc="[^"]*" [^<]*></iframe>', shown, re.DOTALL)
    assert "&lt;!doctype html&gt;" in shown
    assert "allow-same-origin" not in shown


def test_nothing_is_written_where_no_path_is_given(tmp_path, monkeypatch, synthesizer):
    monkeypatch.chdir(tmp_path)
    synthesizer.report()
    synthesizer.plan(10)
    assert synthesizer.evaluate(TABLE).path is None
    rows = synthesizer.sample(50)
    sdv_privpgd.evaluate(rows, TABLE, METADATA)
    sdv_privpgd.evaluate(synthesizer, TABLE)
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize("name", ["page.html", "page.htm", "report.part.html"])
def test_a_file_is_the_page(report, tmp_path, name):
    path = report.save(tmp_path / name)
    assert path == tmp_path / name
    own = f"<title>{name.split('.')[0]}</title>"  # tabs of several pages are told apart
    written = path.read_text(encoding="utf-8")
    assert re.sub("<title>.*?</title>", own, report.html()) == written != report.html()


def test_markdown_has_the_page_in_its_order(synthesizer, tmp_path):
    report = synthesizer.report()
    text = report.save(tmp_path / "r.md").read_text(encoding="utf-8")
    assert text == report.to_markdown()
    assert text.startswith(f"# {report.page.title}\n\n{report.page.lead[0].text}\n")
    headings = re.findall(r"^(?:## |<details><summary>)(.*?)(?:</summary>)?$", text, re.MULTILINE)
    assert headings == [each.heading for each in report.page.sections]
    assert "- **ill**: " in text
    # Each row of a table has as many cells as its head.
    rows = re.findall(r"(?:^\|.*\n)+", text, re.MULTILINE)
    assert rows
    for table in rows:
        assert len({len(re.findall(r"(?<!\\)\|", row)) for row in table.splitlines()}) == 1


def test_no_name_of_the_owner_is_markup_in_markdown(synthesizer):
    name = "<b>a|b</b>\n# `x` [y](z) $1$ **bold**"
    table = Table("t", (name,), [(name,)])
    page = Page(title=name, lead=[Text(name), Items([name])], sections=[Section(name, [table])])
    text = ReportItself(text="", page=page, facts={}).to_markdown()
    assert len(re.findall("^#", text, re.MULTILINE)) == 2
    assert not re.search(r"(?<!\\)[<>`$\[\]]", text)
    assert "\\<b\\>a\\|b\\</b\\> \\# " in text
    not_private = synthesizer.evaluate(TABLE).to_markdown()
    assert not_private.split("\n\n")[1].startswith("**NOT PRIVATE")


def test_a_page_goes_to_a_path_or_browser(tmp_path, synthesizer, table_of_the_door, monkeypatch):
    for number, fitted in enumerate((synthesizer, table_of_the_door)):
        report = fitted.report(tmp_path / f"{number}.html")
        written = (tmp_path / f"{number}.html").read_text(encoding="utf-8")
        assert written == report.page.html(str(number))
    compared = synthesizer.evaluate(TABLE, path=tmp_path / "not_private.html")
    assert compared.path.read_text(encoding="utf-8") == compared.page.html("not_private")
    shown = []
    monkeypatch.setattr("webbrowser.open", shown.append)
    report = synthesizer.report()
    path = report.open()
    assert shown == [path.as_uri()]
    assert path.read_text(encoding="utf-8") == report.page.html("report")
    assert os.name == "nt" or path.parent.stat().st_mode & 0o077 == 0


def test_the_dictionary_of_a_fit_says_what_was_spent_and_there_is_none_before(synthesizer):
    facts = synthesizer.report().to_dict()
    assert facts["public"] is True
    assert facts["ledger"] == synthesizer.ledger.to_dict()
    assert facts["epsilon_spent"] == synthesizer.ledger.spent()
    assert facts["num_rows"] == 400
    assert facts["warnings"] == list(synthesizer.warnings_)
    assert facts["columns"]["ill"]["sdtype"] == "boolean"
    assert "MST" in facts["method"]
    assert "PrivatePGM" in facts["method"]
    assert synthesizer.privacy_report() == synthesizer.report().text
    with pytest.raises(Exception, match="fit your synthesizer first"):
        MSTSynthesizer(METADATA, 1.0).report()


def test_a_plan_in_numbers_is_the_plan_in_words(synthesizer):
    plan = synthesizer.plan(400)
    facts = plan.to_dict()
    assert facts["num_rows"] == 400
    columns = facts["expected"]["columns"]
    assert set(columns) == {"ill", "old"}
    for name, each in columns.items():
        line = next(line for line in plan.text.splitlines() if line.startswith(f"{name} "))
        assert line.split()[1] == str(each["values"])
        assert float(line.split()[2]) == pytest.approx(100 * each["share_within"], rel=0.06)
    for charge in facts["ledger"]["charges"]:
        assert charge["what"].split(": ")[0] in " ".join(plan.html().split())


def test_an_evaluation_says_in_every_form_that_it_is_not_private(synthesizer):
    compared = synthesizer.evaluate(TABLE)
    assert "NOT PRIVATE" in compared.text.splitlines()[0]
    assert "NOT PRIVATE" in compared.html()
    facts = compared.to_dict()
    assert facts["public"] is False
    assert facts["columns"] == pytest.approx(dict(compared.columns))
    assert facts["pairs"] == [{"columns": ["ill", "old"], "distance": compared.pairs["ill", "old"]}]


def test_a_page_without_a_folder_is_refused_before_anything_is_compared(synthesizer, tmp_path):
    with pytest.raises(ValueError, match="There is no folder"):
        synthesizer.evaluate(TABLE, path=tmp_path / "none" / "page.html")


def test_what_json_cannot_hold_is_written_as_what_it_means():
    facts = {
        "numbers": (np.int64(3), np.float32(0.5), float("nan"), float("inf")),
        "dates": [pd.Timestamp("2020-01-02"), pd.NaT, pd.NA],
        "bytes": b"x",
        "nested": {1: {"a": np.array([1, 2])}},
        "truth": np.bool_(True),
        "own": SimpleNamespace(a=1),
    }
    report = ReportItself(text="", page=Page(title="", lead=[], sections=[]), facts=facts)
    assert report.to_dict() == {
        "numbers": [3, 0.5, None, None],
        "dates": ["2020-01-02 00:00:00", None, None],
        "bytes": "b'x'",
        "nested": {"1": {"a": [1, 2]}},
        "truth": True,
        "own": "namespace(a=1)",
    }
    assert json.loads(json.dumps(report.to_dict(), allow_nan=False)) == report.to_dict()


def test_a_report_says_what_the_fit_was_told_and_not_what_was_set_later(tmp_path):
    fitted = MSTSynthesizer(METADATA, 5.0)
    fitted.fit(TABLE)
    before, page = fitted.report().to_dict(), fitted.report().html()
    assert "MST" in before["method"]
    fitted.method, fitted.seed, fitted.num_bins = "independent", 7, 5
    assert fitted.report().to_dict() == before
    fitted.save(tmp_path / "model.pkl")
    loaded = load_synthesizer(tmp_path / "model.pkl")
    assert loaded.report().html() == page
    with pytest.warns(UserWarning, match="fitted before"):
        fitted.fit(TABLE)
    assert "Independent" in fitted.report().to_dict()["method"]
    assert fitted.report().to_dict()["settings"]["seed"] == 7
