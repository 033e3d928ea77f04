"""Both pages in a headless browser: nothing on the console, all drawn, nothing too wide."""

import base64
import re
import shutil
import subprocess

import numpy as np
import pandas as pd
import pytest
from sdv_tables import by_particles, metadata_of

from sdv_privpgd import PrivPGDSynthesizer

BROWSER, DRIVER = (
    next(filter(None, map(shutil.which, names)), None)
    for names in (("chromium", "chromium-browser", "google-chrome"), ("chromedriver",))
)

NUM_COLUMNS = 20
NAMES = [f"column {place}" for place in range(NUM_COLUMNS)]
LONGEST_NAME = "a_column_whose_name_is_longer_than_any_telephone_is_wide_and_has_no_blank"


@pytest.fixture(scope="module")
def pages(tmp_path_factory):
    """The public page and the one that is not, of a table of 20 columns and odd names."""
    folder = tmp_path_factory.mktemp("pages")
    rng = np.random.default_rng(0)
    latent = rng.random(2_000)
    table = pd.DataFrame({name: (latent + rng.random(2_000)) / 2 for name in NAMES})
    table = table.rename(columns={NAMES[0]: LONGEST_NAME, NAMES[1]: '<b>&"quoted"</b>'})
    facts = {"range_min": 0.0, "range_max": 1.0}
    metadata = metadata_of({name: {"sdtype": "numerical"} for name in table.columns})
    settings = {"public_domain": dict.fromkeys(table.columns, facts), **by_particles(500)}
    synthesizer = PrivPGDSynthesizer(metadata, 1.0, **settings)
    synthesizer.fit(table)
    public = synthesizer.report().save(folder / "report.html")
    compared = synthesizer.evaluate(table, path=folder / "report_not_private.html")
    officer = synthesizer.report(audience="officer").save(folder / "officer.html")
    return {"public": public, "not private": compared.path, "officer": officer}


@pytest.fixture(scope="module")
def browser():
    webdriver = pytest.importorskip("selenium.webdriver")
    if BROWSER is None or DRIVER is None:
        pytest.skip("no Chromium with its driver is installed")
    options = webdriver.ChromeOptions()
    options.binary_location = BROWSER
    for argument in ("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"):
        options.add_argument(argument)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    driver = webdriver.Chrome(options=options, service=webdriver.ChromeService(DRIVER))
    driver.set_page_load_timeout(120)
    yield driver
    driver.quit()


@pytest.mark.parametrize("width", [1280, 400])
@pytest.mark.parametrize("kind", ["public", "not private"])
def test_a_page_is_drawn_without_errors_and_fits_the_window(browser, pages, kind, width):
    size = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": False}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    browser.get(pages[kind].as_uri())
    browser.execute_script(
        'document.querySelectorAll("details").forEach((fold) => { fold.open = true; });'
    )
    assert browser.get_log("browser") == []
    found = browser.execute_script(
        """
        const pictures = [...document.querySelectorAll("svg.picture")];
        const cut = (picture) => {
          const frame = picture.getBoundingClientRect();
          return [...picture.querySelectorAll("text")].some((text) => {
            const own = text.getBoundingClientRect();
            return own.right > frame.right + 2 || own.left < frame.left - 2
              || own.bottom > frame.bottom + 2 || own.top < frame.top - 2;
          });
        };
        return {
          page: document.documentElement.scrollWidth,
          window: innerWidth,
          figures: document.querySelectorAll("figure").length,
          drawn: pictures.filter((each) => each.getBoundingClientRect().height > 50).length,
          cut: pictures.filter(cut).map((each) => each.getAttribute("aria-label")),
          asked: performance.getEntriesByType("resource").map((entry) => entry.name),
        };
        """
    )
    assert found["window"] == width
    assert found["page"] <= width
    assert found["figures"] == found["drawn"] > NUM_COLUMNS
    assert found["cut"] == []
    assert [name for name in found["asked"] if not name.startswith("data:")] == []


def printed(browser, page):
    """The pages of a page on paper, as a PDF."""
    browser.get(page.as_uri())
    return base64.b64decode(browser.print_page())


@pytest.mark.parametrize(("kind", "most"), [("public", 4), ("not private", 7), ("officer", 1)])
def test_on_paper_a_page_is_short(browser, pages, kind, most):
    paper = printed(browser, pages[kind])
    assert 0 < len(re.findall(rb"/Type\s*/Page\b", paper)) <= most


def test_the_mark_is_printed_on_every_page(browser, pages, tmp_path):
    if shutil.which("pdftotext") is None:
        pytest.skip("poppler's pdftotext is not installed")
    (tmp_path / "page.pdf").write_bytes(printed(browser, pages["not private"]))
    subprocess.run(["pdftotext", "page.pdf"], cwd=tmp_path, check=True)
    *texts, last = (tmp_path / "page.txt").read_text().split("\f")
    assert last == ""
    assert len(texts) > 1
    assert all("NOT PRIVATE" in text for text in texts)


@pytest.mark.parametrize("kind", ["public", "not private"])
def test_on_paper_nothing_scrolls_and_no_figure_is_wider_than_its_place(browser, pages, kind):
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": ""})
    size = {"width": 720, "height": 900, "deviceScaleFactor": 1, "mobile": False}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    printed(browser, pages[kind])
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "print"})
    try:
        found = browser.execute_script(
            """
            const drawn = [...document.querySelectorAll("svg.picture")];
            const boxes = [...document.querySelectorAll(".scroll")];
            const isSeen = (box) => box.getBoundingClientRect().width > 0;
            return {
              drawn: drawn.filter(isSeen).length,
              cut: drawn.filter(isSeen).filter((svg) => {
                const place = svg.closest("figure").getBoundingClientRect();
                const own = svg.getBoundingClientRect();
                return own.right > place.right + 1 || own.bottom > place.bottom + 1;
              }).length,
              scroll: boxes.filter((box) => getComputedStyle(box).overflowY !== "visible").length,
              page: document.documentElement.scrollWidth,
            };
            """
        )
    finally:
        browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": ""})
    assert found["drawn"] > 0
    assert found["cut"] == 0
    assert found["scroll"] == 0
    assert found["page"] <= 720
