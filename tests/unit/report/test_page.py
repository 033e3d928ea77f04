"""The public page says what a release holds, in markup that nobody's column names can break."""

import math
import re
import sys
from dataclasses import replace

import numpy as np
import pytest
from pages import ABOUT, COLUMNS, EVIL, Reader, fitted, page_of, public_schema
from scipy import stats
from small_engine import MaximumEntropy

from sdv_privpgd.base.domain import Domain
from sdv_privpgd.columns.schema import Schema
from sdv_privpgd.methods.pipeline import Release
from sdv_privpgd.methods.privpgd import PrivPGD
from sdv_privpgd.privacy.accounting import log_delta
from sdv_privpgd.privacy.curator import Curator
from sdv_privpgd.privacy.dataset import Dataset
from sdv_privpgd.privacy.ledger import Books, PrivacyLedger
from sdv_privpgd.privacy.queries import Adjacency, CountQuery, MarginalQuery, Measurement
from sdv_privpgd.report.about import facts_in_words
from sdv_privpgd.report.figures import pair_matrix
from sdv_privpgd.report.fit import pair_fits
from sdv_privpgd.report.page import Items, Text
from sdv_privpgd.report.privacy import most_caught
from sdv_privpgd.report.release import release_page, release_report
from sdv_privpgd.synthesize.particles.particles import Particles

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
    page = release_page(release, release.ledger, public_schema(), ABOUT, notes=notes)
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
    healthy = release_page(release, release.ledger, public_schema(), ABOUT)
    assert healthy.lead[0] == Text("All 6 columns usable.")
    assert WORTH not in [each.heading for each in healthy.sections]


def test_the_strongest_pairs_are_those_of_related_columns():
    schema = public_schema()
    release = fitted(schema)
    codes = release.model.codes.copy()
    place = {name: number for number, name in enumerate(release.domain.attributes)}
    codes[:, place["balance"]] = codes[:, place["age"]] % schema.domain().sizes[place["balance"]]
    model = Particles(domain=release.domain, codes=codes)
    page = release_page(replace(release, model=model), release.ledger, schema, ABOUT)
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
    matrix = pair_matrix(release.domain, {fit.clique: fit.distance for fit in fits})
    assert np.isfinite(matrix).sum() == 4
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


def page_of_many(number, num_bins):
    facts = {"sdtype": "numerical", "range_min": 0, "range_max": 1, "num_bins": num_bins}
    columns = {f"column {place}": facts for place in range(number)}
    schema = Schema.from_sdv(columns)
    release = fitted(schema)
    return release_page(release, release.ledger, schema, replace(ABOUT, columns=columns)).html()


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
    pages = [release_page(release, release.ledger, public_schema(), ABOUT).html() for _ in range(2)]
    assert pages[0] == pages[1]
    links = re.findall(r"https?://[^\s\"<]+", pages[0])
    assert set(links) == {"http://www.w3.org/2000/svg", "http://www.w3.org/1999/xlink"}  # names
    ids = re.findall(r'\bid="([^"]+)"', pages[0])
    assert len(set(ids)) == len(ids)


def test_facts_are_listed_by_column_in_a_few_words(release):
    html = release_page(release, release.ledger, public_schema(), ABOUT).html()
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


def test_the_noise_of_triples_is_listed():
    schema = public_schema()
    domain = schema.domain()
    codes = np.random.default_rng(0).integers(0, domain.sizes, (500, len(domain)))
    ledger = PrivacyLedger.open(1.0, 1e-5, Adjacency.REPLACE_ONE)
    curator = Curator(Dataset(domain, codes), Books(ledger))
    curator.measure([CountQuery()], ledger.budget / 100, what="number of rows")
    PrivPGD().run(curator, MaximumEntropy())
    model = Particles(domain=domain, codes=codes)
    release = Release(
        domain=domain, ledger=curator.ledger, measurements=curator.measurements, model=model
    )
    assert "age × balance × weight, in groups" in page_of(release).text


@pytest.mark.parametrize("mu", [0.0, 0.05, 0.3, 1.0, 4.0])
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
