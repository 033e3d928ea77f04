"""How rows thin out beyond the cells that clearly hold some."""

import numpy as np
import pytest

from sdv_privpgd.discovery import tails
from sdv_privpgd.discovery.searching import Blocks
from sdv_privpgd.estimate.noisy_tables import NoisyTable

STDDEV = 100.0


def noisy(counts, seed=0):
    noise = np.random.default_rng(seed).normal(0.0, STDDEV, len(counts))
    return NoisyTable(np.asarray(counts) + noise, STDDEV**2)


def thinned(noisy, starts=None):
    """As the module has it, with cells of equal width where no others are meant."""
    return tails.thinned(noisy, np.arange(noisy.counts.size) if starts is None else starts)


def mean_distance(found, last):
    """How many cells beyond the last one that holds rows they lie on average, of all rows."""
    beyond = found[last + 1 :]
    return float((beyond * np.arange(1, beyond.size + 1)).sum() / found.sum())


@pytest.mark.parametrize("seed", range(20))
def test_an_empty_half_of_a_range_keeps_few_rows_and_keeps_them_near(seed):
    counts = [1_000] * 20 + [0] * 80
    found = thinned(noisy(counts, seed))
    assert mean_distance(found, 19) < 2.0  # cells of 100; noise spread evenly would give 3 or more


def test_both_ends_are_treated_alike():
    table = noisy([0] * 40 + [1_000] * 20 + [0] * 40)
    found = thinned(table)
    turned = thinned(NoisyTable(table.counts[::-1], table.variance))
    np.testing.assert_allclose(turned, found[::-1])


def test_a_long_tail_below_the_noise_keeps_its_rows():
    tail = 60 * 0.97 ** np.arange(100)  # each cell below the noise, 1,900 rows together
    counts = np.concatenate([np.full(20, 1_000.0), tail])
    kept = [thinned(noisy(counts, seed))[20:].sum() for seed in range(40)]
    assert 0.5 < np.mean(kept) / tail.sum() < 2


def test_no_cell_is_left_without_any_row_beyond_the_clear_ones():
    found = thinned(noisy([5_000] * 3 + [0] * 200))
    assert (found[3:] > 0).all()
    assert (np.diff(found[4:]) <= 0).all()


def test_a_far_value_of_many_rows_stays_where_it_is():
    found = thinned(noisy([1_000] * 20 + [0] * 79 + [900]))
    assert found[-1] == pytest.approx(900, abs=4.5 * STDDEV)


def test_where_all_is_noise_nothing_is_moved():
    found = thinned(noisy([0] * 50))
    assert found.shape == (50,)
    assert (found >= 0).all()


def test_a_single_cell_has_its_count():
    assert thinned(NoisyTable(np.array([1_000.0]), 1.0)).tolist() == [1_000.0]


@pytest.mark.parametrize("seed", range(20))
def test_a_range_that_is_too_wide_by_far_moves_no_mean(seed):
    """Sums of money to 10 million where 100,000 is the most: cells double their width."""
    starts = 100.0 * 2.0 ** np.arange(17)
    money = np.random.default_rng(seed).lognormal(7.5, 1.2, 5_000)
    counts = np.histogram(money, [*starts, 2 * starts[-1]])[0]
    table = NoisyTable(counts + np.random.default_rng(seed + 99).normal(0, 25, 17), 25.0**2)
    found = thinned(table, starts)
    mean = (found * 1.5 * starts).sum() / found.sum()
    assert mean == pytest.approx(money.mean(), rel=0.6)
    assert (found[starts > 500_000] * starts[starts > 500_000]).sum() < 0.2 * money.sum()


def test_where_cells_begin_from_makes_no_difference():
    """Neither an offset nor a unit does: dates have no zero."""
    table = noisy([0] * 30 + [1_000] * 20 + [0] * 50)
    starts = np.cumsum(np.arange(1, 101))
    np.testing.assert_allclose(thinned(table, starts), thinned(table, 7.0 * starts + 1e6))


def test_a_light_end_keeps_its_proportions():
    table = noisy([0] * 30 + [1_000] * 20 + [0] * 50)
    starts = np.arange(100)
    light, full = tails.with_light_ends(Blocks.alone(table), starts), thinned(table)
    end = np.flatnonzero(light[50:] < full[50:]) + 50
    assert light[end].sum() < 1e-5 * light.sum()
    assert 0 < full[end].sum() <= 2 * STDDEV
    np.testing.assert_allclose(light[end] / light[end].sum(), full[end] / full[end].sum())
    np.testing.assert_array_equal(light[40 : end[0]], full[40 : end[0]])


@pytest.mark.parametrize("size", [20, 200, 2_000])
def test_noise_seldom_looks_like_rows(size):
    seen = [tails.has_clear(noisy(np.zeros(size), seed)) for seed in range(400)]
    assert sum(seen) <= 4


@pytest.mark.parametrize("seed", range(10))
def test_blocks_say_where_rows_lie_that_no_cell_shows(seed):
    """40 % of the rows in 64 cells, each below the noise, far from one cell with all others."""
    counts = np.array([4_800] + [0] * 127 + [50] * 64 + [0] * 64) + 0.0
    rng, of_cell = np.random.default_rng(seed), np.repeat(np.arange(16), 16)
    fine = NoisyTable(counts + rng.normal(0, 150, 256), 150.0**2)
    sums = np.bincount(of_cell, weights=counts)
    coarse = sums + rng.normal(0, 80, 16)
    starts = 2.0 ** (np.arange(256) / 16)
    found = tails.with_light_ends(Blocks.combined(fine, coarse, 80.0**2, of_cell), starts)
    assert found[128:192].sum() == pytest.approx(3_200, rel=0.2)
    assert found[1:128].sum() < 700
    assert found[0] == pytest.approx(4_800, rel=0.15)
