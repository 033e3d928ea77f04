"""Which rows of a model become whose children."""

import numpy as np
import pytest

from sdv_privpgd.sampling.families import _agreed, _as_many, _as_spread


def test_rows_agree_in_as_many_items_as_can_be_had_and_come_as_often_as_they_count():
    rng = np.random.default_rng(0)
    wanted, said = rng.integers(0, [2, 4, 60], (2_000, 3)), rng.integers(0, [2, 4, 20], (8_000, 3))
    counts = 1.0 + 2 * (said[:, 2] % 2)
    found = said[_as_many(wanted, said, counts, rng)]
    assert (found[:, :2] == wanted[:, :2]).all()
    is_there = wanted[:, 2] < 20
    assert (found[is_there] == wanted[is_there]).all()
    assert (found[~is_there, 2] % 2).mean() == pytest.approx(0.75, abs=0.04)
    assert _as_many(wanted[:0], said, counts, rng).tolist() == []


def test_children_are_when_they_and_the_times_between_them_say_by_least_squares():
    times, gaps = np.array([0.2, 0.3, 0.7, 0.9]), np.array([0.1, 0.3, 0.2, 0.05])
    blur, unsure = np.array([0.1, 0.2, np.inf, 0.3]), np.array([0.02, 0.1, 0.05, 0.01])
    no_start, whose = np.full(4, np.nan), np.zeros(4, dtype=int)
    found = _agreed(times, blur, gaps, unsure, no_start, whose)
    steps = ((np.eye(4) - np.eye(4, k=-1)) / unsure[:, None])[1:]
    rows, right = np.vstack([np.diag(1 / blur), steps]), np.r_[times / blur, (gaps / unsure)[1:]]
    assert found == pytest.approx(np.linalg.lstsq(rows, right, rcond=None)[0], abs=1e-6)
    # They disagree by more than they blur.
    closer = _agreed(times, blur / 100, gaps, unsure, no_start, whose)
    assert np.diff(closer)[0] > np.diff(times)[0] + 0.05
    from_start = _agreed(times, blur, gaps, unsure, np.full(4, 0.1), whose)
    assert from_start == pytest.approx(0.1 + np.cumsum(gaps))


def test_a_time_between_that_leads_beyond_the_end_says_nothing():
    two, apart = np.array([0.6, 0.8]), np.array([0.0, 0.7])
    told = np.full(2, 0.1), apart, np.full(2, 0.1), np.full(2, np.nan), np.zeros(2, dtype=int)
    assert _agreed(two, *told) == pytest.approx(two)


def test_a_time_since_a_start_counts_unless_the_time_itself_is_known_better():
    times, gaps = np.array([0.8, 0.82, 0.9, 0.91]), np.array([0.7, 0.01, 0.6, 0.02])
    blur, unsure = np.full(4, 0.02), np.array([0.2, 0.001, 0.2, 0.001])
    whose, starts = np.array([0, 0, 1, 1]), np.array([0.05, 0.05, 0.3, 0.3])
    found = _agreed(times, blur, gaps, unsure, starts, whose)
    assert found == pytest.approx([0.8, 0.81, 0.9, 0.92], abs=1e-4)
    assert _agreed(times, blur, gaps, unsure / 20, starts, whose)[[0, 2]] == pytest.approx(
        [0.75, 0.9]
    )


def test_children_move_with_the_first_one_to_where_first_ones_say_that_they_are():
    agreed, times = np.array([0.6, 0.7, 0.4, 0.5, 0.3]), np.array([0.1, 0.2, 0.9, 0.3, 0.8])
    found = _as_spread(agreed, times, np.array([0, 2]), np.array([0, 0, 1, 1, 2]))
    assert found == pytest.approx([0.9, 1.0, 0.1, 0.2, 0.3])
