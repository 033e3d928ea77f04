"""The page gives intervals, names what noise hides, offers the tables and a text to paste."""

import base64
import gzip
import io
import re
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from answers import answered, number_of_rows
from pages import ABOUT, EVIL, Reader, fitted, page_of, public_schema

from sdv_privpgd.columns.schema import Schema
from sdv_privpgd.inference.questions import Questions
from sdv_privpgd.inference.tables import noisy_tables
from sdv_privpgd.methods import (
    AIM,
    GUM,
    MST,
    Adaptive,
    AllKWay,
    GenerativeNetwork,
    ParticleGradientDescent,
    PrivateGSD,
    PrivatePGM,
    PrivMRF,
    PrivPGD,
    PrivSyn,
    RelaxedProjection,
)
from sdv_privpgd.methods.method import EngineMethod
from sdv_privpgd.methods.pipeline import Release
from sdv_privpgd.privacy.ledger import PrivacyLedger
from sdv_privpgd.privacy.queries import Adjacency, CountQuery, MarginalQuery
from sdv_privpgd.report import fit as fit_module
from sdv_privpgd.report.fit import column_estimates, fit_sections, hidden_values
from sdv_privpgd.report.release import release_report
from sdv_privpgd.synthesize.engine import Particles


def files_of(html):
    """The files that lie in a page, by name."""
    found = re.findall(r'download="([^"]+)" href="data:[^;]+;base64,([^"]+)"', html)
    return {name: base64.b64decode(text) for name, text in found}


def html_of(release, schema=None):
    return release_report(release, release.ledger, schema or public_schema(), ABOUT).html()


def test_error_bars_are_the_intervals_that_answers_have(release):
    schema = public_schema()
    shown, _ = fit_sections(release, schema, column_estimates(release, schema))
    drawn = shown[0].parts[1].figures
    (figure,) = [each for each in drawn if each.title == "age"]
    picture = figure.picture
    table = Questions(release, schema).answer("table", of="age")
    assert picture.other == pytest.approx(np.asarray(table.estimate / 4_000), rel=1e-3)
    assert picture.margins == pytest.approx(np.asarray(1.96 * table.stddev / 4_000), rel=1e-3)


NAMED = {"range_values": ["many", "few", "lost", "none"], "range_is_nullable": False}
WARDS = Schema.from_sdv({"ward": {"sdtype": "categorical", **NAMED}})


def wards(counts, codes, stddev=10.0):
    domain = WARDS.domain()
    return Release(
        domain=domain,
        ledger=PrivacyLedger.open(1.0, 1e-5, Adjacency.REPLACE_ONE),
        measurements=(number_of_rows(1_000), answered(["ward"], counts, stddev)),
        model=Particles(domain=domain, codes=np.array(codes)[:, None]),
    )


def test_values_that_noise_hides_are_named_and_no_others():
    release = wards([880, 15, 110, -5], [0] * 99 + [1])
    values = hidden_values(release, WARDS, column_estimates(release, WARDS))
    assert [value.label for value in values] == ["lost", "few", "none"]
    lost, few, none = values
    assert lost.is_lost
    assert not few.is_lost
    assert lost.low == pytest.approx(lost.estimate - 1.96 * 10 * np.sqrt(3 / 4), abs=0.1)
    assert few.low == none.low == 0
    assert few.synthetic == pytest.approx(10)
    text = page_of(release, WARDS).text
    assert "3 values of 1 column cannot be told" in text
    assert "1 value, listed first, surely has rows" in text
    release = wards([400, 300, 200, 100], [0, 0, 0, 0, 1, 1, 1, 2, 2, 3])
    assert hidden_values(release, WARDS, column_estimates(release, WARDS)) == []
    assert "There are none" in page_of(release, WARDS).text


def test_of_a_hundred_fits_the_intervals_of_hidden_values_hold_the_truth():
    rng, truth, held, listed = np.random.default_rng(0), np.array([960, 15, 10, 15]), 0, 0
    for _ in range(400):
        noisy = truth + np.rint(rng.normal(scale=10, size=4)).astype(np.int64)
        release = wards(noisy, [0])
        own = column_estimates(release, WARDS)["ward"]
        half = 1.96 * np.sqrt(own.variances)
        held += (np.abs(own.counts - truth) <= half).sum()
        listed += len(hidden_values(release, WARDS, {"ward": own}))
    # 1,600 intervals at 0.95; their noise is correlated, at most fourfold. 5 standard errors.
    assert held / 1600 == pytest.approx(0.95, abs=5 * 2 * np.sqrt(0.05 * 0.95 / 1600))
    assert listed > 400


def test_the_noisy_tables_lie_in_the_page(release):
    html, schema = html_of(release), public_schema()
    files = files_of(html)
    assert list(files) == ["columns.csv", "noisy_tables.csv.gz"]
    columns = pd.read_csv(io.BytesIO(files["columns.csv"]))
    assert set(columns["column"]) == set(release.domain.attributes)
    table = Questions(release, schema).answer("table", of="age")
    own = columns[columns["column"] == "age"]
    assert list(own["label"]) == list(table.estimate.index)
    ends = table.interval("table")
    assert own["estimate"].to_numpy() == pytest.approx(table.estimate.to_numpy(), abs=0.01)
    for end in ("low", "high"):
        assert own[end].to_numpy() == pytest.approx(ends[end].to_numpy(), abs=0.02)
    packed = pd.read_csv(io.BytesIO(gzip.decompress(files["noisy_tables.csv.gz"])))
    whole = noisy_tables(release, schema)
    assert len(packed) == len(whole)
    assert packed["estimate"].to_numpy() == pytest.approx(whole["estimate"].to_numpy(), abs=0.01)
    assert EVIL in set(packed["column_1"])
    reader = Reader(html)
    assert reader.handlers == []
    assert reader.tags.count("a") == 2
    assert "script" not in reader.tags


def test_files_are_the_same_each_time_and_large_ones_are_left_out(release, monkeypatch):
    assert files_of(html_of(release)) == files_of(html_of(release))
    cells = sum(
        each.answer.size for each in release.measurements if isinstance(each.query, MarginalQuery)
    )
    monkeypatch.setattr(fit_module, "_MOST_CELLS", cells)
    html = html_of(release)
    packed = gzip.decompress(files_of(html)["noisy_tables.csv.gz"]).decode()
    assert "measured" in packed
    assert "consistent" not in packed
    assert "Left out are the consistent tables of pairs, which are too large" in html
    monkeypatch.setattr(fit_module, "_MOST_CELLS", cells - 1)
    html = html_of(release)
    assert list(files_of(html)) == ["columns.csv"]
    assert "the measured and consistent tables of pairs" in html


def test_where_the_tables_were_not_kept_there_is_nothing_to_download(release):
    count = tuple(each for each in release.measurements if isinstance(each.query, CountQuery))
    html = html_of(replace(release, measurements=count))
    assert files_of(html) == {}
    assert "Where counts, shares and means have intervals" not in html
    assert "For a methods section" in html


class Chosen(EngineMethod):
    """A method of one's own that says nothing of itself."""

    measure = None


METHODS = {
    "all_pairs": (
        PrivPGD(importance={"age": 6.0}),
        PrivatePGM(),
        "(those with age more precisely)",
    ),
    "k_way": (AllKWay(degree=3), ParticleGradientDescent(), "all sets of 3 columns"),
    "mst": (MST(), PrivatePGM(), "a tree of pairs that was chosen privately [1]"),
    "aim": (AIM(), PrivatePGM(), "chosen privately, one after another [1]"),
    "rap": (Adaptive(), RelaxedProjection(), "chosen privately, 3 a round [1]"),
    "gem": (Adaptive(), GenerativeNetwork(), "A generative network was trained"),
    "gsd": (AllKWay(degree=2), PrivateGSD(), "by a genetic algorithm [2]"),
    "privsyn": (PrivSyn(), GUM(), "because their columns depend much [1]"),
    "privmrf": (PrivMRF(), PrivatePGM(), "by that and privately, one after another [1]"),
    "own": (Chosen(), PrivatePGM(), "what the method Chosen chose"),
}


@pytest.mark.parametrize("method", METHODS)
def test_the_text_for_a_methods_section_says_what_was_done(release, method):
    strategy, engine, words = METHODS[method]
    about = replace(ABOUT, method=replace(strategy, engine=engine))
    page = release_report(release, release.ledger, public_schema(), about).page
    assert page.sections[-1].heading == "For a methods section"
    text = Reader(page.sections[-1].html()).text
    assert words in text
    for fact in ("4,000 rows", "6 columns", "2026-01-31", "δ = 1e-05", "one row replaced"):
        assert fact in text
    assert f"ε = {release.ledger.spent():.4g}" in text
    numbers = {int(number) for number in re.findall(r"\[(\d)\]", text)}
    assert numbers == set(range(1, len(numbers) + 1))
    last = text[text.index("sampling as well.") :]
    assert all(f"[{number}] " in last for number in numbers)
    is_ours = isinstance(engine, ParticleGradientDescent)
    assert ("particle gradient descent on the sliced" in text) is is_ours
    assert ("Donhauser" in text) is is_ours


def test_the_text_keeps_a_private_number_of_rows_noisy():
    release = fitted(public_schema(), adjacency=Adjacency.ADD_REMOVE)
    ledger = replace(release.ledger, rows_per_person=3)
    page = release_report(release, ledger, public_schema(), ABOUT).page
    text = Reader(page.sections[-1].html()).text
    assert "a noisy count; ±" in text
    assert "up to 3 rows of one person added or removed; the number of rows is private" in text
