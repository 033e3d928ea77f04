"""Where rows lie is found from coarse to fine, and stays wide where the noise hides it."""

import numpy as np
import pytest

from sdv_privpgd.discovery.grids import POWERS, YEARS
from sdv_privpgd.discovery.searching import Blocks, likeliest_end, searched, trimmed
from sdv_privpgd.estimate.noisy_tables import NoisyTable, Total

GRIDS = [POWERS, YEARS]


def noisy(counts, stddev, rng):
    return NoisyTable(counts + np.rint(rng.normal(0, stddev, counts.size)), stddev**2)


def search(grid, counts, stddev, seed=0):
    """The stretch that is found of rows with these counts of the fine cells."""
    rng = np.random.default_rng(seed)
    coarse = np.bincount(grid.groups, weights=counts)
    return searched(
        noisy(coarse, stddev, rng),
        noisy(counts, stddev, rng),
        float(counts.sum()),
        groups=grid.groups,
        dearness=grid.dearness,
    )


def spread(grid, first, last, rows):
    counts = np.zeros(len(grid.cells))
    counts[first : last + 1] = rows / (last - first + 1)
    return counts


@pytest.mark.parametrize("grid", GRIDS)
def test_every_cell_has_a_group_and_every_group_a_price(grid):
    assert len(grid.groups) == len(grid.cells)
    assert set(grid.groups) == set(range(len(grid.dearness)))
    assert list(grid.groups) == sorted(grid.groups)


@pytest.mark.parametrize("grid", GRIDS)
@pytest.mark.parametrize("seed", range(20))
def test_what_stands_out_is_found_to_the_cell_but_for_the_noise_at_its_ends(grid, seed):
    first, last = len(grid.cells) // 2 + 5, len(grid.cells) // 2 + 20
    stretch = search(grid, spread(grid, first, last, 100_000), 10.0, seed)
    assert stretch.is_clear
    assert first - 3 <= stretch.first <= first
    assert last <= stretch.last <= last + 3


@pytest.mark.parametrize("seed", range(20))
def test_rows_of_many_years_are_found_though_none_of_the_years_stands_out(seed):
    """2,000 rows over 85 years: 24 a year beside noise of 120."""
    starts = YEARS.cells.starts.astype("M8[D]").astype("M8[Y]").astype(int) + 1970
    first, last = np.flatnonzero((starts >= 1920) & (starts <= 2004))[[0, -1]]
    stretch = search(YEARS, spread(YEARS, first, last, 2_000), 120.0, seed)
    assert starts[stretch.first] <= 1925
    assert starts[stretch.last] >= 1999
    assert starts[stretch.first] >= 1900
    assert starts[stretch.last] < 2040


@pytest.mark.parametrize("grid", GRIDS)
def test_noise_alone_is_not_clear_and_hardly_ever_a_single_cell(grid):
    """A few rows in one cell beside ten times as much noise."""
    counts = spread(grid, len(grid.cells) // 2 + 8, len(grid.cells) // 2 + 8, 20)
    found = [search(grid, counts, 200.0, seed) for seed in range(50)]
    assert sum(stretch.is_clear for stretch in found) <= 1
    assert sum(stretch.last - stretch.first < 5 for stretch in found) <= 5


def one_block_a_cell(counts, stddev):
    size = counts.size
    return Blocks(counts, np.arange(size), stddev**2, np.full(size, stddev**2))


def test_a_tail_is_kept_where_there_are_rows_in_it_and_cut_where_there_are_none():
    counts = np.concatenate([np.full(10, 5_000.0), np.full(10, 60.0), np.zeros(40)])
    assert trimmed(one_block_a_cell(counts, 1.0), counts.sum()) == (0, 19)
    assert trimmed(one_block_a_cell(counts[::-1], 1.0), counts.sum()) == (40, 59)


def test_a_tail_at_which_the_counts_hint_is_kept():
    """Four cells of 25 rows are 1.7 standard deviations, or half of one."""
    counts = np.concatenate([np.full(10, 1_000.0), np.full(20, 25.0)])
    assert trimmed(one_block_a_cell(counts, 30.0), counts.sum())[1] > 15
    assert trimmed(one_block_a_cell(counts, 90.0), counts.sum())[1] < 15


def test_rows_far_from_all_others_are_found_across_what_is_empty():
    """9 of 10 rows are zero, the others a few thousand."""
    counts = np.zeros(len(POWERS.cells))
    zero = int(POWERS.cells.locate(np.zeros(1))[0][0])
    counts[zero], counts[zero + 31] = 18_000, 2_000
    for seed in range(20):
        stretch = search(POWERS, counts, 300.0, seed)
        assert stretch.first <= zero
        assert stretch.last >= zero + 31


def test_blocks_that_were_counted_twice_have_the_noise_of_the_best_estimate():
    rng = np.random.default_rng(0)
    truth, of_cell = np.array([5.0, 7, 1, 0, 3, 9]), np.array([0, 0, 0, 1, 1, 2])
    sums = np.bincount(of_cell, weights=truth)
    found = [
        Blocks.combined(
            NoisyTable(truth + rng.normal(0, 3, 6), 9.0),
            sums + rng.normal(0, 2, 3),
            4.0,
            of_cell,
        )
        for _ in range(20_000)
    ]
    totals = np.array([np.bincount(of_cell, weights=each.counts) for each in found])
    np.testing.assert_allclose(totals.mean(axis=0), sums, atol=0.1)
    # Of a variance the relative standard error is sqrt(2 / 20,000), 1 %.
    np.testing.assert_allclose(totals.var(axis=0), found[0].sums, rtol=0.05)


@pytest.mark.parametrize("code", range(5))
def test_the_finest_precision_that_rows_have_is_the_end(code):
    counts = np.zeros(5)
    counts[: code + 1] = 500.0
    rng = np.random.default_rng(0)
    found = [likeliest_end(noisy(counts, 50.0, rng), counts.sum()) for _ in range(50)]
    assert np.mean([end == code for end, _ in found]) > 0.8
    assert all(is_clear for _, is_clear in found)


def test_rows_in_the_last_code_alone_are_found_there_and_few_rows_are_not_clear():
    counts = np.array([0.0] * 7 + [300.0])
    rng = np.random.default_rng(0)
    found = [likeliest_end(noisy(counts, 57.0, rng), 300.0) for _ in range(50)]
    assert np.mean([end == 7 for end, _ in found]) > 0.9
    assert not likeliest_end(noisy(counts / 3, 57.0, rng), 100.0)[1]


@pytest.mark.parametrize("rows", [3_000, 300_000])
def test_noise_hardly_ever_makes_fractions_of_whole_numbers(rows):
    """Codes of decimal places: all rows have none. A table has many such columns."""
    rng = np.random.default_rng(rows)
    wrong = 0
    for _ in range(3_000):
        counts = np.append(float(rows), np.zeros(8)) + rng.normal(0, 60.0, 9)
        wrong += likeliest_end(NoisyTable(counts, 60.0**2), rows)[0] != 0
    assert wrong <= 3


def test_a_broad_tail_beside_one_heavy_value_is_kept_though_no_block_of_it_stands_out():
    """Seven empty blocks, then ten of 30 rows, all beside noise of 29: together they are clear."""
    truth = np.concatenate([[2_000.0], np.zeros(7), np.full(10, 30.0), np.zeros(4)])
    alone, together = [], []
    for seed in range(50):
        counts = noisy(truth, 29.0, np.random.default_rng(seed)).counts
        blocks = one_block_a_cell(counts, 29.0)
        alone.append(trimmed(blocks, 2_300.0)[1])
        together.append(trimmed(blocks.summing_up_to(Total(2_300.0, 40.0)), 2_300.0)[1])
    assert np.median(alone) < 8
    assert np.median(together) >= 12
    assert np.mean(np.array(together) < 8) <= 0.04


def test_blocks_that_sum_up_to_the_number_of_rows_have_the_noise_that_is_said():
    rng = np.random.default_rng(0)
    truth, of_cell = np.array([50.0, 7, 1, 0, 3, 9]), np.array([0, 0, 0, 1, 1, 2])
    sums = np.array([9.0, 4.0, 1.0])
    found = []
    for _ in range(20_000):
        noise = rng.normal(0, np.sqrt(sums))
        counts = truth + (noise / np.bincount(of_cell))[of_cell]
        blocks = Blocks(counts, of_cell, 9.0, sums)
        found.append(blocks.summing_up_to(Total(70.0 + rng.normal(0, 2), 2.0)))
    totals = np.array([np.bincount(of_cell, weights=each.counts) for each in found])
    np.testing.assert_allclose(totals.mean(axis=0), [58, 3, 9], atol=0.1)
    for held in ([0], [1], [0, 1], [1, 2], [0, 1, 2]):
        said = found[0].variance_of(sums[held].sum())
        np.testing.assert_allclose(totals[:, held].sum(axis=1).var(), said, rtol=0.05)
