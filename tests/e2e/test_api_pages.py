"""The one command that writes README, the guide and the API pages, as a contributor runs it."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

import sdv_privpgd

COMMAND = Path(__file__).parents[2] / ".ci" / "pages"


@pytest.fixture(scope="module")
def pages(tmp_path_factory):
    """The folder of the pages, and what the command said."""
    pytest.importorskip("pdoc")
    folder = tmp_path_factory.mktemp("api")
    command = [sys.executable, "-W", "ignore", COMMAND, folder]
    return folder, subprocess.run(command, capture_output=True, text=True, check=False)


pytestmark = pytest.mark.slow


def test_the_pages_are_written_without_a_warning_with_every_public_name(pages):
    folder, said = pages
    assert (said.returncode, said.stderr) == (0, "")
    assert said.stdout.strip() == str(folder / "index.html")
    text = (pages[0] / "sdv_privpgd.html").read_text()
    for name in sdv_privpgd.__all__:
        assert f'<section id="{name}">' in text
    assert "A column of true and false." in text


def test_every_wing_has_a_page_and_no_private_name_has(pages):
    folder, _ = pages
    written = [path.relative_to(folder) for path in folder.rglob("*.html")]
    source = Path(sdv_privpgd.__file__).parent
    for wing in source.glob("*/__init__.py"):
        name = wing.parent.name
        if name not in ("benchmark", "cli"):
            assert Path("sdv_privpgd", f"{name}.html") in written, name
    assert not [path for path in written if any(part.startswith("_") for part in path.parts)]
    assert 'id="_second_round"' not in (folder / "sdv_privpgd/methods/privpgd.html").read_text()


def test_readme_and_the_guide_are_pages_whose_links_lead_somewhere(pages):
    folder, _ = pages
    texts = sorted((COMMAND.parents[1] / "tutorials/guide").glob("*.md"))
    written = [
        folder / "index.html",
        *(folder / "tutorials/guide" / f"{t.stem}.html" for t in texts),
    ]
    assert len(written) > 10
    for page in written:
        text = page.read_text()
        assert "<h1" in text
        for link in re.findall(r'(?:href|src)="(?!\w+:)([^"]*)"', text):
            place, _, section = link.partition("#")
            target = (page.parent / place) if place else page
            assert target.exists(), (page.name, link)
            assert not section or f'id="{section}"' in target.read_text(), (page.name, link)
