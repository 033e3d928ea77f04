"""Where differences lie: the ends of what holds rows, and their tails."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sdv_privpgd.discovery.shaping import _held

NOISE = 10.0


@given(st.lists(st.integers(-30, 60), min_size=64, max_size=64))
def test_what_holds_rows_is_the_same_backwards(counts):
    counts = np.array(counts, dtype=np.float64)
    forwards, backwards = _held(counts, NOISE), _held(counts[::-1], NOISE)
    if forwards is None:
        assert backwards is None
    else:
        assert backwards == slice(64 - forwards.stop, 64 - forwards.start)


@pytest.mark.parametrize("order", [1, -1])
def test_a_tail_goes_on_where_less_than_certainty_hints_at_rows(order):
    counts = np.zeros(64)
    counts[30:34], counts[34:38] = 500.0, 25.0
    counts = counts[::order]
    held = _held(counts, NOISE)
    assert held is not None
    assert counts[held].sum() == counts.sum()
