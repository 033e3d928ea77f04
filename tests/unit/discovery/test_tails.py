"""How rows thin out beyond the cells that clearly hold some."""

import numpy as np
import pytest

from sdv_privpgd.discovery.tails import thinned
from sdv_privpgd.estimate.noisy_tables import NoisyTable

STDDEV = 100.0


def noisy(counts, seed=0):
    noise = np.random.default_rng(seed).normal(0.0, STDDEV, len(counts))
    return NoisyTable(np.asarray(counts) + noise, STDDEV**2)


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
