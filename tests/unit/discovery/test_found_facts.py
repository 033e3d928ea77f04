"""What is found of a column makes the column, at once and by way of SDV's words."""

import datetime
from decimal import Decimal

import numpy as np
import pandas as pd
import pytest

from sdv_privpgd.columns.facts import CategoryFacts, NumberFacts
from sdv_privpgd.columns.parser import read_facts
from sdv_privpgd.columns.schema import Schema
from sdv_privpgd.discovery.first_queries import categories
from sdv_privpgd.drafting.files import plain_domain
from sdv_privpgd.fitting.description import Description
from sdv_privpgd.fitting.fit import Fit
from sdv_privpgd.fitting.settings import Settings
from sdv_privpgd.privacy.boundary import PrivateTable
from sdv_privpgd.privacy.ledger import FitLedger

ROWS = 2_000


def described(column, sdtype="numerical", domain=None, *, epsilon=5.0, rounding=True, **facts):
    """The description of a column after discovery, under noise that is always the same."""
    settings = Settings(epsilon=epsilon, method="independent+pgm")
    known = {"x": {"sdtype": sdtype, **facts}}, {"x": domain or {}}
    fit = Fit(settings, Description.of(*known, enforce_rounding=rounding))
    fit.shared = FitLedger(fit.shared.ledger, words=np.random.default_rng(0).bytes)
    fit.discover(PrivateTable({"x": pd.Series(column)}))
    return fit.description


def made_up(kind):
    rng = np.random.default_rng(0)
    days = pd.Timestamp("2015-01-01") + pd.to_timedelta(rng.integers(0, 2_500, ROWS), unit="D")
    return {
        "whole": rng.integers(-3, 90, ROWS),
        "money": np.round(rng.lognormal(8, 1.5, ROWS), 2),
        "real": rng.normal(size=ROWS),
        "steps": 5 * rng.integers(0, 300, ROWS),
        "days": pd.Series(days),
        "moments": pd.Series(days + pd.to_timedelta(rng.integers(0, 10**14, ROWS))),
        "aware": pd.Series(days).dt.tz_localize("Asia/Tokyo"),
        "text": pd.Series(days).dt.strftime("%m.%Y"),
        "short": pd.Series(days - pd.Timedelta(days=20_000)).dt.strftime("%m.%Y"),
        "midnight": pd.Series(days).dt.strftime("%d.%m.%Y %H:%M:%S"),
        "minutes": pd.Series(days + pd.to_timedelta(rng.integers(0, 1_440, ROWS), unit="min")),
        "words": rng.choice(["a", "b"], ROWS),
        "codes": rng.choice([1, 2, 30], ROWS),
        "many": np.array([f"v{code}" for code in range(300)])[rng.integers(0, 300, ROWS)],
    }[kind]


KINDS = {
    "whole": [{}, {"range_min": 0}, {"range_max": 50, "num_bins": 7}, {"decimal_places": 2}],
    "money": [{}, {"range_min": 0, "range_max": 1e7}, {"decimal_places": 2, "range_min": 0.0}],
    "real": [{}, {"range_min": -9, "range_max": 9}, {"range_min": 1000.5}],
    "steps": [{"increment": 5}, {"increment": 5, "decimal_places": 0, "range_min": 3}],
    "days": [{}, {"range_min": "1900-01-01", "range_max": datetime.date(2030, 1, 1)}],
    "moments": [{}, {"range_max": "2018-01-01T10:00+01:00"}],
    "aware": [{}, {"range_min": "2010-01-01"}],
    "text": [{}, {"range_min": "01.2010"}, {"range_min": "01.1900", "range_max": "01.2030"}],
    "short": [{}, {"range_max": "01/01/30"}],
    "midnight": [{}, {"range_min": "01.01.2000 00:00:00", "range_max": "31.12.2030 23:59:59"}],
    "minutes": [{}, {"range_min": "2000-01-01", "range_max": "2030-12-31 23:59:59"}],
    "words": [{}, {"range_is_nullable": False}],
    "codes": [{}],
    "many": [{}, {"range_values": [f"v{code}" for code in range(300)]}],
}  # fmt: skip
FORMATS = {"text": "%m.%Y", "short": "%d/%m/%y", "midnight": "%d.%m.%Y %H:%M:%S"}
CASES = [(kind, domain) for kind, domains in KINDS.items() for domain in domains]


def found_of(kind, domain, **settings):
    if kind in ("words", "codes", "many"):
        return described(made_up(kind), "categorical", domain, **settings)
    if kind in ("whole", "money", "real", "steps"):
        return described(made_up(kind), "numerical", domain, **settings)
    own = {"datetime_format": FORMATS[kind]} if kind in FORMATS else {}
    return described(made_up(kind), "datetime", domain, **own, **settings)


@pytest.mark.parametrize(("epsilon", "rounding"), [(5.0, True), (0.02, False)])
@pytest.mark.parametrize(("kind", "domain"), CASES)
def test_the_words_of_what_was_found_make_the_same_columns(kind, domain, epsilon, rounding):
    description = found_of(kind, domain, epsilon=epsilon, rounding=rounding)
    assert description.discovered.keys() == {"x"}
    words = plain_domain(description.in_words)
    read = Schema.from_sdv(description.columns, public_domain=words)
    assert read == description.schema
    assert repr(read) == repr(description.schema)
    again = Description.of(description.columns, words, enforce_rounding=rounding)
    assert again.schema == description.schema
    assert not again.undeclared, "it would be looked into once more"
    # What was declared stays.
    stated, words = description.facts["x"], description.in_words["x"]
    moved = {"steps": {"low"}, "short": {"high"}}.get(kind, set())  # to multiples; no format
    again = read_facts("x", {"sdtype": stated.sdtype, **words})
    kept = {"low", "high", "num_bins", "decimal_places", "increment", "nullable", "values"} - moved
    known = {key: getattr(stated, key) for key in kept if getattr(stated, key, None) is not None}
    assert {key: getattr(again, key) for key in known} == known


class TestNothingFailsAfterItWasPaid:
    def test_for_multiples_near_the_largest_whole_number(self):
        for rounding, most in ((True, 2**62), (False, 2**53)):
            rows, domain = np.full(ROWS, 1e300), {"increment": 5, "decimal_places": 0}
            description = described(rows, domain=domain, rounding=rounding)
            (column,) = description.schema.columns
            low, high = (int(end) * 5 for end in column.cells.ends)
            assert -most < low <= high <= most
            words = plain_domain(description.in_words)
            assert Schema.from_sdv(description.columns, public_domain=words).columns == (column,)

    @pytest.mark.parametrize("domain", [{"range_max": 50.5}, {"range_min": 0, "range_max": 10**7}])
    def test_for_numbers_next_to_nothing(self, domain):
        for epsilon in (5.0, 0.4):
            description = described(np.full(6_000, 1e-300), domain=domain, epsilon=epsilon)
            found = description.discovered["x"]
            assert isinstance(found, NumberFacts)
            assert np.isfinite(found.frequencies or ()).all()
            assert description.schema.columns[0].num_values > 1

    @pytest.mark.parametrize(
        ("key", "bound", "kept"), [("range_min", 0.5, 1), ("range_max", -0.5, -1)]
    )
    def test_for_a_bound_between_two_numbers_that_all_rows_are_beyond(self, key, bound, kept):
        rows = np.random.default_rng(0).integers(50, 90, ROWS) * (-1 if key == "range_min" else 1)
        description = described(rows, domain={key: bound, "decimal_places": 0})
        assert description.schema.columns[0].cells.ends == (kept, kept)

    @pytest.mark.parametrize("domain", [{}, {"range_max": Decimal("900.25")}])
    def test_for_decimals_without_decimal_places(self, domain):
        rows = np.random.default_rng(0).random(ROWS) * 800
        description = described(rows, domain={"range_min": Decimal("0.5"), **domain})
        (column,) = description.schema.columns
        assert column.cells.ends[0] == 0.5
        assert column.dtype is (Decimal if domain else None)


def test_of_two_truths_one_says_the_other():
    known = CategoryFacts()
    assert categories(known, [(False, 900), (None, 9)]).values == (False, True)
    assert categories(known, [(0, 900), (None, 9)]).values == (0,)
    assert categories(known, [(False, 900), ("x", 90)]).values == (False, "x")
