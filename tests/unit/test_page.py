"""The pages say what a release holds, in markup that nobody's column names can break."""

import math
from dataclasses import replace
from html.parser import HTMLParser

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from sdv_privpgd.columns.encoders import encoder_for
from sdv_privpgd.columns.schema import Schema
from sdv_privpgd.domain import Domain
from sdv_privpgd.pipeline import Release
from sdv_privpgd.privacy.accounting import log_delta
from sdv_privpgd.privacy.curator import Curator
from sdv_privpgd.privacy.dataset import Dataset
from sdv_privpgd.privacy.ledger import PrivacyLedger
from sdv_privpgd.privacy.measurement import Measurement
from sdv_privpgd.privacy.queries import Adjacency, CountQuery, MarginalQuery
from sdv_privpgd.report.assumed import About, facts_in_words
from sdv_privpgd.report.evaluation import evaluate
from sdv_privpgd.report.figures import heat_figure, pair_matrix, shares_figure
from sdv_privpgd.report.fit import pair_fits
from sdv_privpgd.report.guarantee import most_caught
from sdv_privpgd.report.labels import Names, code_labels, code_names
from sdv_privpgd.report.release import release_page, release_report
from sdv_privpgd.report.words import number, share, short_number
from sdv_privpgd.select.all_pairs import AllPairs
from sdv_privpgd.select.mst import MST
from sdv_privpgd.synthesize.particles.particles import Particles

EVIL = "<script>alert(1)</script>"
BREAKOUT = "</script><img src=x onerror=alert(2)>"
COLUMNS = {
    EVIL: {"sdtype": "categorical", "range_values": ["a&b", BREAKOUT, "<b>c</b>", 4]},
    "age": {"sdtype": "numerical", "range_min": 18, "range_max": 67, "decimal_places": 0},
    "balance": {"sdtype": "numerical", "range_min": -1, "range_max": 1, "decimal_places": 2},
    "weight": {"sdtype": "numerical", "range_min": 0.5, "range_max": 8.5, "num_bins": 4},
    "seen": {
        "sdtype": "datetime",
        "range_min": "2020-01-01",
        "range_max": "2020-12-31",
        "datetime_format": "%Y-%m-%d",
    },
    "smoker": {"sdtype": "boolean", "range_is_nullable": False},
}


class Reader(HTMLParser):
    """The elements of a page, the text of its scripts and all other text."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.scripts: list[str] = []
        self.text = ""
        self.handlers: list[str] = []
        self.feed(html)
        self.close()

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.handlers += [name for name, _ in attrs if name.startswith("on")]
        if tag == "script":
            self.scripts.append("")

    def handle_data(self, data):
        if self.tags and self.tags[-1] == "script" and self.scripts[-1] == "":
            self.scripts[-1] = data
        else:
            self.text += data


def public_schema(columns=COLUMNS):
    return Schema.from_sdv(columns, num_bins=8)


def fitted(schema, cliques=None, adjacency=Adjacency.REPLACE_ONE, num_rows=4_000):
    """A release of measurements bought from a curator, and a model of other rows."""
    domain = schema.domain()
    rng = np.random.default_rng(0)
    records, particles = (
        rng.integers(0, domain.sizes, (rows, len(domain))) for rows in (num_rows, 500)
    )
    curator = Curator(Dataset(domain, records), PrivacyLedger.open(1.0, 1e-5, adjacency))
    count = curator.measure([CountQuery()], curator.ledger.remaining / 100, what="number of rows")
    queries = [MarginalQuery(clique) for clique in cliques or domain.cliques(2)]
    tables = curator.measure(queries, curator.ledger.remaining, what="tables")
    return Release(
        domain=domain,
        ledger=curator.ledger,
        measurements=(*count, *tables),
        model=Particles(domain=domain, codes=particles),
    )


@pytest.fixture(scope="module")
def release():
    return fitted(public_schema())


ABOUT = About(
    table="people",
    date="2026-01-31",
    strategy=MST(),
    engine=None,
    columns=COLUMNS,
    keys=[],
    declared={"age": {"range_max": 70}},
    discovered={"balance": {"range_min": -1.0, "range_max": 1.0, "decimal_places": 2}},
    settings={"num_bins": 8},
)


def page_of(release, schema=None):
    return Reader(release_page(release, release.ledger, schema or public_schema(), ABOUT).html())


# What an attacker gains


@pytest.mark.parametrize("mu", [0.05, 0.3, 1.0, 4.0])
def test_the_best_attacker_reaches_what_the_likelihood_ratio_test_of_two_normals_reaches(mu):
    for alpha in (0.001, 0.01, 0.05, 0.5):
        cut = stats.norm.isf(alpha)
        assert most_caught(alpha, mu) == pytest.approx(stats.norm.sf(cut - mu), rel=1e-9)


@pytest.mark.parametrize("mu", [0.3, 1.0])
def test_no_attacker_beats_epsilon_and_delta_and_some_attacker_attains_them(mu):
    epsilon = 1.2
    delta = math.exp(log_delta(epsilon, mu))
    alphas = np.linspace(1e-6, 1 - 1e-6, 20_001)
    slack = math.exp(epsilon) * alphas + delta - [most_caught(alpha, mu) for alpha in alphas]
    assert slack.min() >= -1e-12
    # On a grid of step 5e-5 the touching point is missed by a second-order term only.
    assert slack.min() < 1e-5


def test_nothing_is_gained_from_nothing():
    assert most_caught(0.05, 0.0) == pytest.approx(0.05, rel=1e-12)


# What codes are called


@pytest.mark.parametrize("name", ["age", "balance", "weight", "seen", "smoker"])
def test_each_label_begins_with_a_value_of_its_cell(name):
    (column,) = (column for column in public_schema().columns if column.name == name)
    labels = code_labels(column)
    assert len(labels) == column.size
    first = [label.split(" – ")[0] for label in labels[: column.num_values]]
    values = {"seen": list, "smoker": lambda texts: [text == "True" for text in texts]}
    read = values.get(name, lambda texts: [float(text) for text in texts])(first)
    codes, _ = encoder_for(column).encode(pd.Series(read))
    assert codes.tolist() == list(range(column.num_values))


def test_labels_name_both_ends_and_the_missing_code():
    columns = {column.name: code_labels(column) for column in public_schema().columns}
    assert columns["age"][0] == "18 – 24"
    assert columns["age"][-1] == "(missing)"
    assert columns["balance"][0] == "-1.00 – -0.75"
    assert columns["weight"][:4] == ["0.5 – 2.5", "2.5 – 4.5", "4.5 – 6.5", "6.5 – 8.5"]
    assert columns["seen"][0].startswith("2020-01-01 – 2020-02")
    assert columns["smoker"] == ["False", "True"]


# The public page


def test_names_cannot_add_markup(release):
    page = page_of(release)
    figures = page.tags.count("figure")
    assert figures > len(COLUMNS)
    assert page.tags.count("script") == figures + 2  # their descriptions, plotly's and our own
    assert "img" not in page.tags
    assert page.handlers == []
    assert EVIL in page.text
    for description in page.scripts[:figures]:
        assert "<" not in description


def test_the_page_asks_for_nothing_over_a_network(release):
    html = release_page(release, release.ledger, public_schema(), ABOUT).html()
    own = html[: html.index("<script>/**")]  # what comes before plotly's own script
    assert "http" not in own
    assert html.count("plotly.js v") == 1


def test_the_page_says_what_was_spent_and_what_an_attacker_gains(release):
    page = page_of(release)
    mu = math.sqrt(release.ledger.mu_squared)
    assert f"{most_caught(0.05, mu):.2%}" in page.text
    assert f"{math.exp(release.ledger.spent()):.4g}" in page.text
    for charge in release.ledger.charges:
        assert charge.what in page.text
    assert "The number of rows is public." in page.text
    assert "NOT PRIVATE" not in page.text


def test_notes_are_read_before_anything_else(release):
    notes = ["Nearly all rows of 'ward' are 'other'.", EVIL]
    page = release_page(release, release.ledger, public_schema(), ABOUT, notes=notes)
    assert page.sections[0].heading == "Read this first"
    text = Reader(page.html()).text
    assert all(note in text for note in notes)
    assert "Read this first" not in page_of(release).text


def test_a_private_number_of_rows_is_given_with_its_uncertainty():
    release = fitted(public_schema(), adjacency=Adjacency.ADD_REMOVE)
    text = page_of(release).text
    assert "The number of rows is protected" in text
    assert "give or take" in text
    assert "give or take" not in page_of(fitted(public_schema())).text


def test_every_column_and_the_worst_pairs_are_drawn(release):
    page = page_of(release)
    # One figure a column, two matrices, and two maps for each of the six worst pairs.
    assert page.tags.count("figure") == len(COLUMNS) + 2 + 2 * 6


def test_selected_tables_are_enough():
    one_way = [(name,) for name in COLUMNS]
    release = fitted(public_schema(), cliques=[*one_way, ("age", "seen"), (EVIL, "smoker")])
    fits = pair_fits(release)
    assert {fit.clique for fit in fits} == {("age", "seen"), (EVIL, "smoker")}
    matrix = pair_matrix(release.domain, {fit.clique: fit.distance for fit in fits})
    assert np.isfinite(matrix).sum() == 4
    assert page_of(release).tags.count("figure") == len(COLUMNS) + 2 + 2 * 2
    alone = fitted(public_schema(), cliques=one_way)
    assert page_of(alone).tags.count("figure") == len(COLUMNS)


def test_a_release_without_tables_shows_the_synthetic_rows_alone(release):
    count = tuple(m for m in release.measurements if isinstance(m.query, CountQuery))
    page = page_of(replace(release, measurements=count))
    assert "were not kept" in page.text
    assert page.tags.count("figure") == len(COLUMNS)


def test_a_fit_without_modelled_columns_has_a_page_all_the_same(tmp_path):
    ledger = PrivacyLedger.open(1.0, 1e-5, Adjacency.REPLACE_ONE)
    path = release_report(None, ledger, Schema(()), ABOUT).save(tmp_path / "page.html")
    assert "epsilon spent" in Reader(path.read_text(encoding="utf-8")).text


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
        noise = np.rint(rng.normal(scale=stddev, size=true.shape)).astype(np.int64)
        measurements = (
            Measurement(query=CountQuery(), answer=np.array([rows]), stddev=0.0),
            Measurement(query=MarginalQuery(("a", "b")), answer=true + noise, stddev=stddev),
        )
        ledger = PrivacyLedger.open(1.0, 1e-5, Adjacency.REPLACE_ONE)
        release = Release(domain=domain, ledger=ledger, measurements=measurements, model=model)
        (fit,) = pair_fits(release)
        found.append(np.abs(fit.noisy - true / rows).sum() / 2)
        expected = fit.expected
    # One distance varies by 0.76 / sqrt(99) of its mean, 400 of them by 0.4 %; 4 such errors.
    assert np.mean(found) == pytest.approx(expected, rel=0.016)


def test_a_page_of_twenty_columns_stays_below_eight_megabytes():
    columns = {
        f"column {place}": {"sdtype": "numerical", "range_min": 0, "range_max": 1, "num_bins": 32}
        for place in range(20)
    }
    schema = Schema.from_sdv(columns)
    html = release_page(fitted(schema), fitted(schema).ledger, schema, ABOUT).html()
    assert len(html.encode()) < 8e6


def test_the_page_begins_with_what_it_is_of(release):
    text = page_of(release).text
    head = text[: text.index("epsilon spent")]
    for fact in ("people", "2026-01-31", "4,000", "MST", "sdv-privpgd"):
        assert fact in head


def test_the_facts_that_were_taken_as_public_are_listed_by_column(release):
    html = release_page(release, release.ledger, public_schema(), ABOUT).html()
    section = html[html.index("What was taken to be public") :].split("</section>")[0]
    rows = Reader(section).text
    assert "may have been detected" in rows
    for words in ("18 to 70; whole numbers", "-1 to 1; 2 decimal places", "2020-01-01 to"):
        assert words in rows
    assert "the number of rows;" in rows
    private = fitted(public_schema(), adjacency=Adjacency.ADD_REMOVE)
    assert "the number of rows;" not in page_of(private).text


def test_facts_are_said_in_a_few_words():
    many = {"range_values": list(range(100)), "other_value": "rest", "range_is_nullable": False}
    said = facts_in_words(many)
    assert (
        said == "100 values: 0, 1, 2, 3, 4, 5 and 94 others; all others are 'rest'; never missing"
    )
    assert facts_in_words({"range_min": 1e6}) == "1,000,000 to anything"
    assert facts_in_words({}) == "nothing"


def test_the_noise_of_triples_is_listed():
    schema = public_schema()
    domain = schema.domain()
    codes = np.random.default_rng(0).integers(0, domain.sizes, (500, len(domain)))
    ledger = PrivacyLedger.open(1.0, 1e-5, Adjacency.REPLACE_ONE)
    curator = Curator(Dataset(domain, codes), ledger)
    curator.measure([CountQuery()], ledger.budget / 100, what="number of rows")
    AllPairs().run(curator, MST())
    model = Particles(domain=domain, codes=codes)
    release = Release(
        domain=domain, ledger=curator.ledger, measurements=curator.measurements, model=model
    )
    assert "age × balance × weight, in groups" in page_of(release).text


def test_many_columns_are_behind_a_line():
    columns = {
        f"column {place}": {"sdtype": "numerical", "range_min": 0, "range_max": 1, "num_bins": 4}
        for place in range(50)
    }
    schema = Schema.from_sdv(columns)
    release = fitted(schema)
    html = release_page(release, release.ledger, schema, replace(ABOUT, columns=columns)).html()
    section = html[html.index("Columns one by one") :].split("</section>")[0]
    in_sight, behind = section.split("<details>")
    assert in_sight.count("<figure>") == 12
    assert behind.count("<figure>") == 38
    assert "The other 38 columns" in behind
    assert len(html.encode()) < 8e6


# Figures


def test_no_share_above_all_rows_is_drawn_and_axes_have_titles():
    names = Names.plain(["a", "b"])
    noisy = np.array([1.3, -0.3])
    figure = shares_figure("x", names, np.array([1.0, 0.0]), noisy, "measured", margin=0.1)
    assert figure["data"][1]["y"] == [1.0, -0.3]
    layout = figure["layout"]
    assert layout["yaxis"]["range"] == [-0.4, 1.0]
    assert layout["yaxis"]["title"]["text"] == "share of rows"
    assert layout["xaxis"]["title"]["text"] == "x"
    heat = heat_figure(("<v>", "h"), names, names, np.eye(2), largest=1.0)
    assert heat["layout"]["yaxis"]["title"]["text"] == "&lt;v&gt;"
    assert heat["layout"]["xaxis"]["title"]["text"] == "h"
    bar = heat["data"][0]["colorbar"]
    assert bar["title"]["text"] == "share of rows"
    assert bar["ticktext"] == ["0 %", "25 %", "50 %", "75 %", "100 %"]


@pytest.mark.parametrize(
    ("part", "words"),
    [
        (0.0, "0 %"),
        (1e-9, "below 0.01 %"),
        (0.0123, "1.2 %"),
        (0.0999, "10 %"),
        (0.999, "nearly 100 %"),
        (1.7, "100 %"),
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
        (2_000, "2,000", "2000"),
        (-15.889533, "-15.8895", "-15.89"),
        (1.5e17, "1.5e+17", "1.5e+17"),
    ],
)
def test_numbers_are_written_without_exponents(value, words, short):
    assert number(value) == words
    assert short_number(value) == short


def test_ticks_are_where_cells_begin_and_dates_no_finer_than_they_need():
    columns = {
        "income": {"sdtype": "numerical", "range_min": 0, "range_max": 10**7, "num_bins": 4},
        "born": {"sdtype": "datetime", "range_min": "1920-01-01", "range_max": "2004-12-31"},
        "seen": {
            "sdtype": "datetime",
            "range_min": "01/02/2020",
            "range_max": "29/02/2020",
            "datetime_format": "%d/%m/%Y",
        },
    }
    income, born, seen = map(code_names, Schema.from_sdv(columns, num_bins=4).columns)
    assert income.ticks[:4] == ["0", "2.5M", "5M", "7.5M"]
    assert income.labels[0] == "0 – 2,500,000"
    assert born.ticks[:2] == ["1920", "1941"]
    assert seen.labels[0] == "01/02/2020 – 08/02/2020"
    assert seen.ticks[0] == "2020-02-01"


def test_colors_keep_the_order_of_the_values_and_blanks_stay_blank():
    values = np.array([[0.0, 0.04, np.nan], [0.25, -0.09, 1.0]])
    rows, columns = Names.plain(["a", "b"]), Names.plain(["x", "y", "z"])
    trace = heat_figure(("v", "h"), rows, columns, values, largest=1.0)["data"][0]
    assert trace["z"] == [[0.0, 0.2, None], [0.5, -0.3, 1.0]]
    assert trace["colorbar"]["tickvals"][-1] <= trace["zmax"]


# The page that is not private


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


def test_a_table_compared_with_itself_is_perfect(tmp_path):
    table = rows_of()
    found = evaluate(table, {"people": table}, METADATA, path=tmp_path / "page.html")
    assert set(found.columns.values()) == {0.0}
    assert set(found.pairs.values()) == {0.0}
    assert set(found.scores.values()) == {0.0}
    assert found.quality == 1.0


def test_distances_are_halves_of_l1_distances(tmp_path):
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
    assert page.tags.count("script") == page.tags.count("figure") + 2
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
