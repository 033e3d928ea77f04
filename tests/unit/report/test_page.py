"""Pages and their pictures say what a release holds, in markup that no name can break."""

import base64
import math
import re
import sys
from dataclasses import replace
from importlib import resources
from io import BytesIO
from xml.etree import ElementTree

import matplotlib as mpl
import numpy as np
import pandas as pd
import pytest
from answers import answered, number_of_rows
from columns_of_words import ranged
from pages import ABOUT, BREAKOUT, COLUMNS, EVIL, Reader, fitted, page_of, public_schema
from PIL import Image
from processes import python_says
from scipy import stats

from sdv_privpgd.base.domain import Domain
from sdv_privpgd.base.words import number, share, short_number
from sdv_privpgd.columns.labels import Names, code_names
from sdv_privpgd.columns.schema import Schema
from sdv_privpgd.methods.pipeline import Release
from sdv_privpgd.privacy.ledger import PrivacyLedger
from sdv_privpgd.privacy.queries import Adjacency, CountQuery, MarginalQuery
from sdv_privpgd.report.about import facts_in_words
from sdv_privpgd.report.evaluation import evaluate
from sdv_privpgd.report.figures import Bars, Curves, Heat, pair_heat
from sdv_privpgd.report.fit import pair_fits
from sdv_privpgd.report.page import Items, Text
from sdv_privpgd.report.privacy import most_caught
from sdv_privpgd.report.release import release_report
from sdv_privpgd.synthesize.engine import Particles

# The public page


def test_the_page_says_what_was_spent_and_what_an_attacker_gains(release):
    page = page_of(release)
    mu = math.sqrt(release.ledger.mu_squared)
    assert f"{most_caught(0.05, mu):.2%}" in page.text
    assert f"{math.exp(release.ledger.spent()):.4g}" in page.text
    for charge in release.ledger.charges:
        assert charge.what in page.text
    assert "The number of rows is public." in page.text
    assert "NOT PRIVATE" not in page.text


WORTH = "Worth a look before the rows are used"


def test_a_page_leads_with_what_is_usable_for_whom_and_with_pictures(release):
    notes = ["5 of 6 columns usable, 1 doubtful, 0 lost.", "Nearly all rows are 'other'.", EVIL]
    page = release_report(release, release.ledger, public_schema(), ABOUT, notes=notes).page
    assert ABOUT.table in page.title
    assert page.lead[0] == Text(f"{notes[0]} There are 2 notes below the pictures.")
    assert page.lead[1].text.startswith("ONE ROW, NOT ONE PERSON, is protected")
    headings = [each.heading for each in page.sections]
    assert headings[:3] == ["Columns one by one", "The strongest pairs", WORTH]
    assert page.sections[2].parts == [Items(notes[1:])]
    assert [each.folded for each in page.sections] == [False] * 4 + [True] * (len(headings) - 4)
    # Folded is what is folded: a browser shows one line of it.
    html = page.html()
    assert html.count("<section><details><summary><h2>") == len(headings) - 4
    assert Reader(html).text.count(EVIL) > 0
    healthy = release_report(release, release.ledger, public_schema(), ABOUT).page
    assert healthy.lead[0] == Text("All 6 columns usable.")
    assert WORTH not in [each.heading for each in healthy.sections]


def test_the_strongest_pairs_are_those_of_related_columns():
    schema = public_schema()
    release = fitted(schema)
    codes = release.model.codes.copy()
    place = {name: number for number, name in enumerate(release.domain.attributes)}
    codes[:, place["balance"]] = codes[:, place["age"]] % schema.domain().sizes[place["balance"]]
    model = Particles(domain=release.domain, codes=codes)
    page = release_report(replace(release, model=model), release.ledger, schema, ABOUT).page
    (pairs,) = (each for each in page.sections if each.heading == "The strongest pairs")
    titles = [figure.title for figure in pairs.parts[1].figures]
    assert titles[:2] == ["age × balance: synthetic", "age × balance: measured"]


def test_a_private_number_of_rows_is_uncertain_and_many_columns_are_behind_a_line():
    release = fitted(public_schema(), adjacency=Adjacency.ADD_REMOVE)
    text = page_of(release).text
    assert "The number of rows is protected" in text
    assert "give or take" in text
    assert "give or take" not in page_of(fitted(public_schema())).text
    html = page_of_many(50, 4)
    section = html[html.index("Columns one by one") :].split("</section>")[0]
    in_sight, behind = section.split("<details><summary>The other")
    assert in_sight.count("<figure>") == 12
    assert behind.count("<figure>") == 38
    assert behind.startswith(" 38 columns")


def test_selected_tables_are_enough():
    one_way = [(name,) for name in COLUMNS]
    release = fitted(public_schema(), cliques=[*one_way, ("age", "seen"), (EVIL, "smoker")])
    fits = pair_fits(release)
    assert {fit.clique for fit in fits} == {("age", "seen"), (EVIL, "smoker")}
    drawn = pair_heat(release.domain, {fit.clique: fit.distance for fit in fits}, 1.0)
    assert np.isfinite(drawn.values).sum() == 4
    assert page_of(release).tags.count("figure") == len(COLUMNS) + 2 + 2 * 2
    alone = fitted(public_schema(), cliques=one_way)
    assert page_of(alone).tags.count("figure") == len(COLUMNS)


def test_a_page_without_tables_or_pictures_has_what_is_left(release, monkeypatch):
    count = tuple(m for m in release.measurements if isinstance(m.query, CountQuery))
    page = page_of(replace(release, measurements=count))
    assert "were not kept" in page.text
    assert page.tags.count("figure") == len(COLUMNS)
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    page = page_of(release)
    assert "svg" not in page.tags
    assert "pip install 'sdv-privpgd[report]'" in page.text
    assert "age: in % of the rows" in page.text


def test_distances_of_pairs_are_those_of_tables_counted_anew():
    schema = public_schema()
    release = fitted(schema)
    truth = {m.query.clique: m for m in release.measurements if isinstance(m.query, MarginalQuery)}
    for fit in pair_fits(release):
        codes = release.model.codes[:, release.domain.axes(fit.clique)]
        counted = np.zeros(release.domain.shape(fit.clique))
        np.add.at(counted, tuple(codes.T), 1 / len(codes))
        noisy = truth[fit.clique].answer / 4_000
        assert fit.distance == pytest.approx(np.abs(counted - noisy).sum() / 2, rel=1e-9)


def test_the_distance_that_noise_explains_is_what_noise_does_on_average():
    domain, stddev, rows = Domain(("a", "b"), (9, 11)), 7.0, 1_000
    rng = np.random.default_rng(1)
    true = rng.multinomial(rows, np.full(99, 1 / 99)).reshape(9, 11)
    model = Particles(domain=domain, codes=np.zeros((1, 2), dtype=int))
    found, expected = [], 0.0
    for _ in range(400):
        noisy = answered("ab", true + rng.normal(scale=stddev, size=true.shape), stddev)
        measurements = (number_of_rows(rows), noisy)
        ledger = PrivacyLedger.open(1.0, 1e-5, Adjacency.REPLACE_ONE)
        release = Release(domain=domain, ledger=ledger, measurements=measurements, model=model)
        (fit,) = pair_fits(release)
        found.append(np.abs(fit.noisy - true / rows).sum() / 2)
        expected = fit.expected
    # One distance varies by 0.76 / sqrt(99) of its mean, 400 of them by 0.4 %; 4 such errors.
    assert np.mean(found) == pytest.approx(expected, rel=0.016)


def page_of_many(number, num_bins):
    facts = {"sdtype": "numerical", "range_min": 0, "range_max": 1, "num_bins": num_bins}
    columns = {f"column {place}": facts for place in range(number)}
    schema = Schema.from_sdv(columns)
    release = fitted(schema)
    return release_report(release, release.ledger, schema, replace(ABOUT, columns=columns)).html()


@pytest.mark.parametrize("num_bins", [32, 8, 6])  # 6: all tables of pairs are in it to download
def test_a_page_of_thirty_columns_has_a_megabyte_at_most(num_bins):
    assert len(page_of_many(30, num_bins).encode()) < 1e6


def test_the_page_begins_with_what_it_is_of_and_nothing_breaks_or_leaves_it(release):
    text = page_of(release).text
    head = text[: text.index("epsilon spent")]
    for fact in ("people", "2026-01-31", "4,000", "MST", "sdv-privpgd"):
        assert fact in head
    page = page_of(release)
    # One figure a column, two matrices, and two maps for each of the three strongest pairs.
    assert page.tags.count("figure") == page.tags.count("svg") == len(COLUMNS) + 2 + 2 * 3
    assert not {"script", "img", "b", "iframe"} & set(page.tags)
    assert page.handlers == []
    assert EVIL in page.text
    pages = [
        release_report(release, release.ledger, public_schema(), ABOUT).html() for _ in range(2)
    ]
    assert pages[0] == pages[1]
    links = re.findall(r"https?://[^\s\"<]+", pages[0])
    assert set(links) == {"http://www.w3.org/2000/svg", "http://www.w3.org/1999/xlink"}  # names
    ids = re.findall(r'\bid="([^"]+)"', pages[0])
    assert len(set(ids)) == len(ids)


def test_facts_are_listed_by_column_in_a_few_words(release):
    html = release_report(release, release.ledger, public_schema(), ABOUT).html()
    section = html[html.index("What was taken to be public") :].split("</section>")[0]
    rows = Reader(section).text
    assert "may have been detected" in rows
    for words in ("18 to 70; whole numbers", "-1 to 1; 2 decimal places", "2020-01-01 to"):
        assert words in rows
    assert "the number of rows;" in rows
    private = fitted(public_schema(), adjacency=Adjacency.ADD_REMOVE)
    assert "the number of rows;" not in page_of(private).text
    many = {"range_values": list(range(100)), "other_value": "rest", "range_is_nullable": False}
    said = facts_in_words(many)
    assert (
        said == "100 values: 0, 1, 2, 3, 4, 5 and 94 others; all others are 'rest'; never missing"
    )
    assert facts_in_words({"range_min": 1e6}) == "1,000,000 to anything"
    assert facts_in_words({}) == "nothing"


@pytest.mark.parametrize("mu", [0.0, 0.05, 0.3, 1.0, 4.0])
def test_the_best_attacker_reaches_what_the_likelihood_ratio_test_of_two_normals_reaches(mu):
    for alpha in (0.001, 0.01, 0.05, 0.5):
        cut = stats.norm.isf(alpha)
        assert most_caught(alpha, mu) == pytest.approx(stats.norm.sf(cut - mu), rel=1e-9)


NASTY = ["<b>x</b>", "$\\frac{1}{$", "日本\n語", "\x00\ud800", "", " ", "a" * 99, "#p&quot;"]


def drawn(picture):
    """The texts of a picture, and its element."""
    root = ElementTree.fromstring(picture.svg("a label"))
    return [each.text for each in root.iter("{http://www.w3.org/2000/svg}text")], root


def bars(names, synthetic, other=None, margins=None, title="x"):
    told = {"title": title, "names": names, "synthetic": np.asarray(synthetic)}
    return Bars(**told, other=other, other_name="measured", margins=margins)


def heat(values, rows, columns, largest=1.0, titles=("v", "h")):
    values = np.asarray(values)
    return Heat(titles=titles, rows=rows, columns=columns, values=values, largest=largest)


def test_no_share_above_all_rows_is_drawn_and_axes_have_titles():
    names = Names.plain(["a", "b"])
    picture = bars(names, [1.0, 0.0], np.array([1.3, -0.3]), np.array([0.1, 0.1]))
    texts, root = drawn(picture)
    assert {"a", "b", "x", "share of rows", "0 %", "100 %"} <= set(texts)
    _, _, width, height = map(float, root.attrib["viewBox"].split())
    for path in root.iter("{http://www.w3.org/2000/svg}path"):
        places = np.array(re.findall(r"-?[\d.]+", path.attrib["d"]), dtype=float).reshape(-1, 2)
        assert (places >= 0).all()
        assert (places <= (width, height)).all()
    assert picture.numbers == (
        ("value", "synthetic", "measured", "±"),
        [("a", "100", "130", "10"), ("b", "0", "-30", "10")],
    )
    texts, _ = drawn(heat(np.eye(2), names, Names.plain(["c", "d"]), titles=("<v>", "h")))
    marks = {"0 %", "25 %", "50 %", "75 %", "100 %"}
    assert {"<v>", "h", "share of rows", "a", "b", "c", "d", *marks} <= set(texts)


@pytest.mark.parametrize("name", NASTY)
def test_any_text_can_be_drawn(name):
    names, plain = Names.plain([name, name]), Names.plain(["a", "b", "c"])
    pictures = [
        bars(names, [0.5, 0.5], title=name),
        heat(np.ones((2, 3)), names, plain, titles=(name, name)),
        Curves(title=name, at=[1, 2], lines={name: [0.1, 0.2]}),
    ]
    kinds = {"svg", "g", "path", "text", "image", "defs", "use", "clipPath", "rect"}
    for picture in pictures:
        html = re.sub(r'aria-label="[^"]*"', "", picture.svg(name))  # may hold what XML may not
        found = {each.tag.rpartition("}")[2] for each in ElementTree.fromstring(html).iter()}
        assert found <= kinds


@pytest.mark.parametrize(
    "picture",
    [
        bars(Names.plain([]), []),
        bars(Names.plain(["a"]), [0.0], np.zeros(1), np.zeros(1)),
        bars(Names.plain(list(map(str, range(2_000)))), np.full(2_000, 0.0005)),
        heat([[np.nan]], Names.plain(["a"]), Names.plain(["b"]), largest=0.0),
        Curves(title="x", at=[1], lines={"all nothing": [0.0]}),
        Curves(title="x", at=[1, 1_000_000], lines={"much": [7.0, 1e-12], "none": [0.0, 0.0]}),
    ],
)
def test_what_is_at_an_edge_is_drawn(picture):
    assert picture.svg("a label").startswith("<svg")


def test_each_color_is_one_of_the_pages_style_in_light_in_the_dark_and_on_paper():
    picture = bars(Names.plain(["a"]), [1.0], np.ones(1), np.ones(1)).svg("a label")
    named = set(re.findall(r"var\(--(\w+), #[0-9a-f]{6}\)", picture))
    assert named == {"synthetic", "other", "quiet", "line"}
    assert not set(re.findall("#[0-9a-f]{6}", re.sub(r"var\([^)]*\)", "", picture)))
    style = (resources.files("sdv_privpgd.report") / "page.css").read_text()
    light, dark, *_, paper = style.split(":root {")[1:]
    assert "prefers-color-scheme: dark" in light
    assert all(f"--{name}: #" in part for name in named for part in (light, dark, paper))


def test_a_picture_leaves_what_others_draw_as_it_was():
    before = dict(mpl.rcParams)
    with mpl.rc_context({"font.size": 40, "axes.facecolor": "black", "svg.fonttype": "path"}):
        styled = bars(Names.plain(["a"]), [1.0]).svg("a label")
    assert styled == bars(Names.plain(["a"]), [1.0]).svg("a label")
    assert dict(mpl.rcParams) == before
    assert "matplotlib.pyplot" not in python_says("-c", _ALONE)


_ALONE = """
import sys
import numpy as np
from sdv_privpgd.columns.labels import Names
from sdv_privpgd.report.figures import Heat
names = Names.plain(["a"])
Heat(titles=("a", "b"), rows=names, columns=names, values=np.eye(1), largest=1.0).svg("it")
print(*sys.modules)
"""


@pytest.mark.parametrize(
    ("part", "words"),
    [
        (0.0, "0 %"),
        (1e-9, "below 0.01 %"),
        (0.0123, "1.2 %"),
        (0.999, "nearly 100 %"),
        (math.nan, "none"),
    ],
)
def test_shares_are_said_in_plain_words(part, words):
    assert share(part) == words


@pytest.mark.parametrize(
    ("value", "words", "short"),
    [
        (157_899.0, "157,899", "157.9k"),
        (1_234_567.891, "1,234,568", "1.235M"),
        (0.000123456, "0.000123456", "0.0001235"),
        (-15.889533, "-15.8895", "-15.89"),
    ],
)
def test_numbers_are_written_without_exponents(value, words, short):
    assert number(value) == words
    assert short_number(value) == short


def test_ticks_are_where_cells_begin_and_dates_no_finer_than_they_need():
    columns = {
        "income": {"sdtype": "numerical", "range_min": 0, "range_max": 10**7, "num_bins": 4},
        "born": {"sdtype": "datetime", "range_min": "1920-01-01", "range_max": "2004-12-31"},
        "seen": ranged("datetime", "01/02/2020", "29/02/2020", datetime_format="%d/%m/%Y"),
    }
    income, born, seen = map(code_names, Schema.from_sdv(columns, num_bins=4).columns)
    assert income.ticks[:4] == ["0", "2.5M", "5M", "7.5M"]
    assert income.labels[0] == "0 – 2,500,000"
    assert born.ticks[:2] == ["1920", "1941"]
    assert seen.labels[0] == "01/02/2020 – 08/02/2020"
    assert seen.ticks[0] == "2020-02-01"


def test_colors_keep_the_order_of_the_values_and_blanks_stay_blank():
    values = [[0.0, 0.04, np.nan], [0.25, 0.09, 1.0]]
    picture = heat(values, Names.plain(["a", "b"]), Names.plain(["x", "y", "z"]))
    assert picture.numbers == (
        ("v \\ h", "x", "y", "z"),
        [("a", "0", "4", "–"), ("b", "25", "9", "100")],
    )
    (found, *_) = re.findall(r"data:image/png;base64,\s*([^\"]+)", picture.svg("a label"))
    pixels = np.asarray(Image.open(BytesIO(base64.b64decode(found))).convert("RGBA"), dtype=int)
    assert pixels.shape == (2, 3, 4)
    assert np.argwhere(pixels[..., 3] == 0).tolist() == [[0, 2]]
    light = pixels[..., :3].sum(axis=-1)
    assert light[0, 0] < light[0, 1] < light[1, 1] < light[1, 0] < light[1, 2]


def rows_of(num_rows=300, seed=0):
    rng = np.random.default_rng(seed)
    categories = np.array(["a&b", BREAKOUT, "<b>c</b>", None], dtype=object)
    days = pd.Timestamp("2020-01-01") + pd.to_timedelta(rng.integers(0, 366, num_rows), unit="D")
    return pd.DataFrame(
        {
            EVIL: rng.choice(categories, num_rows),
            "age": rng.integers(18, 68, num_rows),
            "balance": rng.uniform(-1, 1, num_rows).round(2),
            "weight": rng.uniform(0.5, 8.5, num_rows),
            "seen": pd.Series(days).dt.strftime("%Y-%m-%d"),
            "smoker": rng.random(num_rows) < 0.3,
        }
    )


METADATA = {"tables": {"people": {"columns": COLUMNS}}}


def test_a_table_compared_with_itself_is_perfect_and_others_differ_by_half_of_l1(tmp_path):
    table = rows_of()
    found = evaluate(table, {"people": table}, METADATA, path=tmp_path / "page.html")
    assert set(found.columns.values()) == {0.0}
    assert set(found.pairs.values()) == {0.0}
    assert set(found.scores.values()) == {0.0}
    assert found.quality == 1.0
    synthetic = rows_of()
    synthetic["smoker"] = True
    found = evaluate(synthetic, rows_of(), METADATA, path=tmp_path / "page.html")
    assert found.columns["smoker"] == pytest.approx((~rows_of()["smoker"]).mean(), rel=1e-12)
    assert {name for name, value in found.columns.items() if value} == {"smoker"}
    assert found.pairs["age", "smoker"] == pytest.approx(found.columns["smoker"], rel=1e-12)


def test_the_page_that_is_not_private_says_so_wherever_it_is_scrolled_to(tmp_path):
    found = evaluate(rows_of(seed=1), rows_of(), METADATA, path=tmp_path / "page.html")
    html = found.path.read_text(encoding="utf-8")
    page = Reader(html)
    assert "NOT PRIVATE" in page.text
    assert "position: sticky" in html[html.index(".banner {") :].split("}")[0]
    assert page.tags.count("svg") == page.tags.count("figure") > 0
    assert "script" not in page.tags
    assert "img" not in page.tags
    assert page.handlers == []


def test_errors_say_what_is_missing(tmp_path):
    path = tmp_path / "page.html"
    with pytest.raises(ValueError, match="metadata is needed"):
        evaluate(rows_of(), rows_of(), path=path)
    with pytest.raises(ValueError, match=r"columns \['age'\] of the metadata are missing"):
        evaluate(rows_of().drop(columns="age"), rows_of(), METADATA, path=path)
    with pytest.raises(ValueError, match="at least one row"):
        evaluate(rows_of().head(0), rows_of(), METADATA, path=path)
    assert not path.exists()


def test_rows_are_judged_beside_fresh_real_ones(tmp_path):
    rng = np.random.default_rng(0)
    age = rng.integers(18, 68, 3_000)
    real = rows_of(3_000).assign(age=age, smoker=rng.random(3_000) < (age - 18) / 50)
    useless = real.assign(smoker=~real["smoker"])
    found = evaluate(useless, real, METADATA, label="smoker", path=tmp_path / "page.html")
    ours, fresh = found.usefulness["synthetic"], found.usefulness["real"]
    assert fresh["auroc"] > 0.7 > 0.6 > ours["auroc"]
    assert 0 < fresh["tv2"] < ours["tv2"]
    assert ours["pmse"] > fresh["pmse"]
    assert ours["tail"] == pytest.approx(fresh["tail"], abs=0.1)
    assert found.to_dict()["usefulness"]["real"]["auroc"] == fresh["auroc"]
    assert "fresh real" in found.text
    assert "What the rows are good for" in Reader(found.path.read_text(encoding="utf-8")).text


def test_held_out_rows_judge_and_few_rows_do_not():
    rng = np.random.default_rng(0)
    real = rows_of(400).assign(smoker=rng.random(400) < 0.5)
    other = rows_of(2_000).assign(age=lambda rows: np.where(rows["smoker"], 60, 20))
    found = evaluate(other.head(400), real, METADATA, label="smoker", held_out=other)
    assert found.usefulness["synthetic"]["auroc"] == 1.0
    assert found.usefulness["real"]["auroc"] < 0.9
    assert evaluate(rows_of(40), rows_of(40), METADATA).usefulness == {}
    with pytest.raises(ValueError, match=r"label must be one of the columns .*, got 'income'"):
        evaluate(rows_of(), rows_of(), METADATA, label="income")
