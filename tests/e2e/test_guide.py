"""README and the guide: their snippets run, their commands and arguments exist, links lead on."""

import ast
import inspect
import json
import re
import shlex
from pathlib import Path

import pytest

import sdv_privpgd
from sdv_privpgd.cli.arguments import parser
from sdv_privpgd.cli.start import main

ROOT = Path(__file__).parents[2]
README, *GUIDE = PAGES = [ROOT / "README.md", *sorted((ROOT / "tutorials/guide").glob("*.md"))]
TEXTS = [*PAGES, ROOT / ".github/CONTRIBUTING.md"]
FIRST = GUIDE[0]


def blocks(path: Path, language: str) -> list[str]:
    """The code of one language on a page: ``python`` runs, ``py`` and ``sh`` are only checked."""
    return re.findall(rf"^```{language}\n(.*?)^```", path.read_text(), re.DOTALL | re.MULTILINE)


def lines_of_the_table() -> list[str]:
    """What README's last table has in its second column."""
    return re.findall(r"^\| [^|]* \| `([^|]*)` \| \[", README.read_text(), re.MULTILINE)


def run(path: Path, names: dict) -> dict:
    """Runs the snippets of a page one after another, under its own line numbers."""
    text = path.read_text()
    for code in blocks(path, "python"):
        above = text[: text.index(code)].count("\n")
        exec(compile("\n" * above + code, str(path), "exec"), names)
    return names


@pytest.fixture(scope="module")
def first(tmp_path_factory):
    """The names of the guide's first page, with which the others go on."""
    folder = tmp_path_factory.mktemp("first")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        return run(FIRST, {"__name__": "guide"}) | {"folder": folder}


@pytest.mark.parametrize("path", [path for path in PAGES if path != FIRST], ids=lambda p: p.stem)
def test_the_snippets_of_a_page_run(path, first, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    run(path, {} if path == README else dict(first))
    if path == README:
        assert "Privacy report" in capsys.readouterr().out
        assert (tmp_path / "model.pkl").exists()


def test_the_release_of_a_hospital_goes_from_a_file_to_the_registry(tmp_path, monkeypatch, capsys):
    yaml, page = pytest.importorskip("yaml"), ROOT / "tutorials/guide/16_a_release.md"
    monkeypatch.chdir(tmp_path)
    run(page, {})
    lines = [line for code in blocks(page, "sh") for line in commands(code)]
    assert len(lines) == 7
    for line in lines:
        assert main(shlex.split(line)[1:]) == 0, line
    assert "The release is that of model.zip." in capsys.readouterr().out
    whose = "ONE PERSON WITH AT MOST 3 ROWS is protected"
    report, officer = (Path(f"{name}.html").read_text() for name in ("report", "officer"))
    assert report.split("</h1>")[1].startswith("<p>All 3 columns usable.</p>")
    assert "<title>report</title>" in report
    assert report.index(whose) < report.index("<figure")
    assert officer.split("</h1>")[1].startswith(f"<p>{whose}")
    card, ledger = (
        json.loads(Path(n).read_text()) for n in ("rows.csv.about.json", "northland.json")
    )
    assert card["release"] in officer
    page = Path("ledger.html").read_text()
    assert card["release"] in page
    assert "<dt>left for another release</dt>" in page
    assert card["epsilon"] == pytest.approx(1.0)
    assert ledger["spent_epsilon"]["add_remove"] == pytest.approx(1.5)
    entry = yaml.safe_load(Path("entry.yaml").read_text())["deployment"]
    assert entry["basic"]["data_curators"] == ["Northland Hospital"]
    assert "one person" in entry["privacy_loss"]["privacy_unit_details"]
    assert all(
        "synthetic" in Path(name).read_text().partition("\n")[0]
        for name in ("rows.csv", "finer.csv")
    )


def test_the_first_page_leaves_what_the_others_need_and_what_it_says(first):
    assert {"df", "columns", "fitted", "synthesizer"} <= first.keys()
    written = {path.name for path in first["folder"].iterdir()}
    assert written == {"report.html", "model.pkl", "report_not_private.html"}


def commands(text: str) -> list[str]:
    """The command lines of the program among lines of a shell."""
    return re.findall(r"^sdv-privpgd .*", text.replace("\\\n", " "), re.MULTILINE)


def test_every_command_line_is_understood():
    lines = [line for path in PAGES for code in blocks(path, "sh") for line in commands(code)]
    lines += commands("\n".join(lines_of_the_table()))
    assert len(lines) > 10
    for line in lines:
        parser().parse_args(shlex.split(line)[1:])


def wrong_arguments(code: str, known: dict) -> list[str]:
    """Names that a call of ours has and its function has not."""
    found = []
    for call in (node for node in ast.walk(ast.parse(code)) if isinstance(node, ast.Call)):
        if isinstance(call.func, ast.Name):
            function = getattr(sdv_privpgd, call.func.id, None)
            if function is None:
                continue
        else:
            owner = known.get(ast.unparse(call.func.value))
            if owner is None:
                continue
            function = getattr(owner, call.func.attr, None)
            if function is None:
                found.append(ast.unparse(call.func))
                continue
        given = {keyword.arg for keyword in call.keywords}
        parameters = inspect.signature(function).parameters
        if not any(each.kind is each.VAR_KEYWORD for each in parameters.values()):
            found += [f"{ast.unparse(call.func)}({name}=)" for name in given - parameters.keys()]
    return found


def test_what_is_shown_and_not_run_has_arguments_that_exist():
    known = {"fitted": sdv_privpgd.FittedTable, "synthesizer": sdv_privpgd.PrivPGDSynthesizer}
    assert wrong_arguments("synthesizer.plan(rows=3)", known) == ["synthesizer.plan(rows=)"]
    assert wrong_arguments("fitted.plan(3)", known) == ["fitted.plan"]
    assert wrong_arguments("fit_table(df, eps=1.0)", known) == ["fit_table(eps=)"]
    shown = [line for line in lines_of_the_table() if not line.startswith("sdv-privpgd")]
    assert len(shown) > 15
    for code in (*shown, *(code for path in PAGES for code in blocks(path, "py"))):
        assert not wrong_arguments(code, known), code


def anchors(path: Path) -> set[str]:
    """What a link to a section of a page may say."""
    titles = re.findall(r"^#+ (.*)", path.read_text(), re.MULTILINE)
    return {re.sub(r"[^\w -]", "", title.lower()).replace(" ", "-") for title in titles}


def dead_links(path: Path) -> list[str]:
    found = []
    for link in re.findall(r"\]\(([^)]*)\)", path.read_text()):
        if re.match(r"\w+:", link):
            continue
        place, _, section = link.partition("#")
        target = (path.parent / place) if place else path
        if not target.exists() or (section and section not in anchors(target)):
            found.append(link)
    return found


@pytest.mark.parametrize("path", TEXTS, ids=lambda path: path.stem)
def test_every_link_leads_somewhere(path):
    assert not dead_links(path)


def test_every_link_of_readme_leads_to_a_page_and_a_dead_one_is_found(tmp_path):
    page = tmp_path / "page.md"
    page.write_text(
        "# One thing\n[a](page.md#one-thing) [b](page.md#two) [c](d.md) [e](https://f.g)"
    )
    assert dead_links(page) == ["page.md#two", "d.md"]
    text = README.read_text()
    assert text.count("\n") <= 200
    for path in GUIDE:
        assert f"tutorials/guide/{path.name}" in text
    assert (ROOT / "tutorials/guide/quickstart.png").stat().st_size <= 60_000
