"""Rows that fit conditions: exact ones at random, else the nearest."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sdv_privpgd.synthesize.conditioning import choose_rows

SIZES = (2, 3, 300)
SCALES = np.array([0.0, 1 / 3, 1 / 300])


def cost(row, wanted):
    return sum(
        (a != b) + scale * abs(int(a) - int(b))
        for a, b, scale in zip(row, wanted, SCALES, strict=True)
    )


records = st.lists(st.tuples(*(st.integers(0, size - 1) for size in SIZES)), min_size=1, max_size=9)


@given(records, records, st.integers(0, 99))
def test_every_chosen_row_is_among_the_cheapest_of_a_brute_force_search(pool, wanted, seed):
    pool, wanted = np.array(pool), np.array(wanted)
    chosen = choose_rows(pool, wanted, SCALES, np.random.default_rng(seed))
    for index, condition in zip(chosen, wanted, strict=True):
        best = min(cost(row, condition) for row in pool)
        assert cost(pool[index], condition) == pytest.approx(best, abs=1e-12)


@pytest.mark.parametrize("wanted", [[0, 1], [1, 1]])
def test_rows_of_equal_cost_are_equally_likely(wanted):
    """Exact matches and nearest ones: 3 of 4 rows, each within 5 standard errors of a third."""
    pool = np.array([[0, 1], [0, 1], [0, 1], [0, 2]])
    conditions = np.tile(wanted, (3000, 1))
    chosen = choose_rows(pool, conditions, np.array([0.0, 0.5]), np.random.default_rng(0))
    counts = np.bincount(chosen, minlength=4)
    assert counts[3] == 0
    assert np.abs(counts[:3] - 1000).max() < 5 * np.sqrt(3000 * 2 / 9)


def test_two_wrong_codes_may_cost_less_than_one_far_away():
    """Two misses at costs of 1 + 0.2 and 1, against one at 1 + 2."""
    pool = np.array([[10, 0], [1, 1]])
    chosen = choose_rows(pool, np.array([[0, 0]]), np.array([0.2, 0.0]), np.random.default_rng(0))
    assert chosen.tolist() == [1]  # 2.2 against 3


def test_no_conditions_choose_no_rows():
    chosen = choose_rows(
        np.array([[0]]), np.empty((0, 1), dtype=np.int64), np.ones(1), np.random.default_rng(0)
    )
    assert len(chosen) == 0
