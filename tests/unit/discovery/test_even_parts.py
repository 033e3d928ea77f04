"""Rows far from all others, within a declared range of some hundred values."""

import numpy as np
import pandas as pd
import pytest

from sdv_privpgd import Categorical, Datetime, Numerical, fit_table
from sdv_privpgd.base.domain import Domain
from sdv_privpgd.columns.cutting import column_of
from sdv_privpgd.columns.facts import NumberFacts
from sdv_privpgd.discovery.even_parts import EvenParts, has_even_parts
from sdv_privpgd.discovery.outside import fenced
from sdv_privpgd.discovery.searching import Blocks
from sdv_privpgd.discovery.tails import with_light_ends
from sdv_privpgd.estimate.noisy_tables import NoisyTable
from sdv_privpgd.privacy.measurement import Measurement

ROWS, FAR = 20_000, 1_000
NOISE = 28.0
CELLS, PARTS = 220, np.arange(220) * 8 // 220


def far_rows(low, high):
    """Most rows between 40 and 100, some between 200 and 260."""
    rng = np.random.default_rng(0)
    near = rng.integers(40, 100, ROWS - FAR)
    return np.concatenate([near, rng.integers(200, 261, FAR)]) - 40 + low, high


def even(counts, parts, seed=0):
    """Cells and their even parts as noisy answers have them."""
    rng = np.random.default_rng(seed)
    sums = np.bincount(PARTS, weights=parts) + rng.normal(0, NOISE, 8)
    fine = NoisyTable(counts + rng.normal(0, NOISE, CELLS), NOISE**2)
    return Blocks.combined(fine, NoisyTable(sums, NOISE**2), PARTS, is_even=True)


def test_whole_numbers_far_from_the_others_stay_there():
    values, _ = far_rows(40, 260)
    table = pd.DataFrame({"weight": values, "ward": np.where(values > 150, "A", "B")})
    declared = {"weight": Numerical(40, 260, decimal_places=0), "ward": Categorical(["A", "B"])}
    fitted = fit_table(
        table,
        declared,
        epsilon=1.0,
        method="independent+pgm",
    )
    rows = fitted.sample(ROWS)["weight"]
    # Without even parts about nine in ten fits have none.
    assert ((rows >= 190) & (rows <= 260)).mean() == pytest.approx(FAR / ROWS, rel=0.3)
    assert ((rows > 125) & (rows < 190)).mean() < 0.3 * FAR / ROWS


def test_days_far_from_the_others_stay_there():
    days, _ = far_rows(0, 220)
    table = pd.DataFrame({"seen": pd.Timestamp("2024-01-01") + pd.to_timedelta(days, unit="D")})
    declared = {"seen": Datetime("2024-01-01", "2024-08-08", datetime_format="%Y-%m-%d")}
    fitted = fit_table(
        table,
        declared,
        epsilon=1.0,
        method="independent+pgm",
    )
    rows = pd.to_datetime(fitted.sample(ROWS)["seen"])
    assert (rows >= pd.Timestamp("2024-05-29")).mean() == pytest.approx(FAR / ROWS, rel=0.3)


def test_each_column_pays_the_same_whether_it_has_even_parts_or_not():
    rng = np.random.default_rng(0)
    codes = [f"c{each}" for each in range(300)]
    table = pd.DataFrame({"age": rng.integers(0, 100, 500), "code": rng.choice(codes, 500)})
    declared = {"age": Numerical(0, 99, decimal_places=0), "code": Categorical(codes)}
    charges = fit_table(table, declared, epsilon=1.0).ledger.charges
    (parts,) = (each for each in charges if each.what == "even parts of declared ranges")
    codes, ages = (each for each in charges if each.what == "values of columns on fine grids")
    assert float(parts.mu_squared) == pytest.approx(float(ages.mu_squared), rel=0.01)
    both = float(parts.mu_squared + ages.mu_squared)
    assert both == pytest.approx(float(codes.mu_squared), rel=0.01)


def test_far_parts_whose_sum_is_seen_hold_rows_though_no_cell_is():
    counts = np.where(np.arange(CELLS) < 60, 40.0, np.where(np.arange(CELLS) < 160, 0.0, 4.0))
    for seed in range(10):
        found = with_light_ends(even(counts, counts, seed), np.arange(CELLS))
        assert found[160:].sum() == pytest.approx(240, abs=200)
        assert found[160:].sum() > 40


def test_rows_that_end_within_a_part_end_where_its_cells_say():
    counts = np.where(np.arange(CELLS) < 15, 400.0, 0.0)
    found = with_light_ends(even(counts, counts), np.arange(CELLS))
    assert found[20:].sum() < 0.02 * counts.sum()


def test_what_lies_beyond_the_range_and_missing_have_parts_of_their_own():
    known = NumberFacts(low=0, high=99, decimal_places=0)
    column = fenced(column_of("age", known, num_bins=100), known, known)
    assert has_even_parts(column)
    parts = EvenParts.of(column)
    domain = Domain(("age",), (column.column.size,))
    assert parts.query.shape(domain) == (8 + 2 + int(column.column.nullable),)
    assert parts.of_code[0] == 0
    assert parts.of_code.size == column.column.size
    answer = Measurement(query=parts.query, answer=np.arange(parts.of_code.max() + 1), stddev=1.0)
    counted = parts.within(answer, {})
    assert counted.counts.counts.tolist() == list(range(1, 9))
    both = parts.within(answer, {"range_min": 50.2, "range_max": 60.0})
    assert both.counts.counts.tolist() == [51, *range(2, 8), 68]
    assert np.bincount(counted.of_cell).tolist() in ([12, 13] * 4, [13, 12] * 4)


def test_a_range_with_one_declared_end_has_none():
    found = NumberFacts(low=0, high=127, decimal_places=0)
    column = fenced(column_of("age", found), NumberFacts(low=0), found)
    assert not has_even_parts(column)
