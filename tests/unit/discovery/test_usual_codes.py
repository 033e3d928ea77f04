"""Numbers and days that stand for missing or never have cells of their own."""

import numpy as np
import pandas as pd
import pytest
from discovering import drawn, found

from sdv_privpgd.columns.facts import NumberFacts
from sdv_privpgd.discovery.density import POWERS, Density
from sdv_privpgd.discovery.ranges import Rough
from sdv_privpgd.estimate.noisy_tables import NoisyTable

ROWS = 5_000
RNG = np.random.default_rng(0)


def cut(facts):
    noisy = NoisyTable(np.full(len(POWERS.cells), 9.0), 1.0)
    density = Density.of(POWERS.edges, noisy).within(*map(float, facts.ends))
    return Rough(facts, density=density).cut(1.0, facts).cuts


def test_usual_codes_within_a_range_of_whole_numbers_are_cut_out():
    cuts = cut(NumberFacts(low=-200, high=20_000, decimal_places=0))
    assert {-99, -98, 999, 1_000, 9_999, 10_000, 8_888, 8_889} <= set(cuts)
    assert max(cuts) <= 20_000
    assert 9_999 not in cut(NumberFacts(low=-200, high=20_000))
    assert {-999.9, 99.9} <= set(cut(NumberFacts(low=-2_000, high=200, decimal_places=1)))


@pytest.mark.parametrize("declared", [{}, {"decimal_places": 2}])
def test_rows_at_the_ends_of_a_declared_range_keep_their_value(declared):
    """A fifth of the rows is 1, the largest score; without cells for ends none was."""
    rng = np.random.default_rng(0)
    inner = rng.beta(2, 3, ROWS)
    scores = rng.permuted([*np.zeros(500), *np.ones(1_000), *inner[1_500:]])
    for seed in range(3):
        rows = drawn(scores, "numerical", {"range_min": 0, "range_max": 1, **declared}, seed=seed)
        assert (rows == 1).mean() == pytest.approx(0.2, abs=0.03)
        assert (rows == 0).mean() == pytest.approx(0.1, abs=0.03)


@pytest.mark.parametrize("seed", range(3))
def test_codes_and_placeholders_come_back_as_they_are(seed):
    years = RNG.integers(1940, 2006, ROWS)
    years[:235] = 9_999
    rows = drawn(years, "numerical", {}, epsilon=5.0, seed=seed)
    assert (rows == 9_999).mean() == pytest.approx(0.047, abs=0.002)
    assert (rows > 2_100).mean() == pytest.approx(0.047, abs=0.005)
    days = pd.Timestamp("2021-01-01") + pd.to_timedelta(RNG.integers(0, 700, ROWS), "D")
    seen = pd.Series(days).where(RNG.random(ROWS) > 0.07, pd.Timestamp("1900-01-01"))
    rows = drawn(seen, "datetime", {}, epsilon=5.0, seed=seed)
    assert (rows == pd.Timestamp("1900-01-01")).mean() == pytest.approx(0.07, abs=0.015)


@pytest.mark.parametrize("declared", [{}, {"range_min": 0, "range_max": 1_000}])
def test_a_code_that_no_row_has_is_no_peak(declared):
    """The cell of 777 is a hundredth wide, those about it some units."""
    for seed in range(5):
        money = np.round(np.random.default_rng(100 + seed).random(ROWS) * 1_000, 2)
        rows = pd.Series(drawn(money, "numerical", {**declared, "decimal_places": 2}, seed=seed))
        assert rows.value_counts().iloc[0] <= 6


def test_codes_that_no_row_has_are_no_values_of_their_own():
    """Money has cents, so that noise in a cell of 9.00 alone would be many rows of it."""
    money = np.random.default_rng(0).lognormal(np.log(20), 1.5, 600).round(2)
    facts = [found(money, {"sdtype": "numerical"}, seed=seed)[0] for seed in range(8)]
    assert np.mean([(np.diff(each["cut_points"]) < 0.015).sum() for each in facts]) < 1  # of 14


def test_zeros_are_zeros_under_loud_noise():
    """They were numbers of 1e-20, or had the cell beside theirs, in three of four of these fits."""
    kept = []
    for seed in range(8):
        rng = np.random.default_rng(seed)
        logs = np.where(rng.random(ROWS) < 0.09, 0.0, np.log1p(rng.gamma(2, 3, ROWS)))
        rows = np.asarray(drawn(logs, "numerical", {}, epsilon=0.3, seed=seed))
        assert ((rows > 0) & (rows < 1e-9)).mean() < 0.01
        kept.append((rows == 0).mean())
    assert np.mean(np.array(kept) > 0.04) > 0.8
