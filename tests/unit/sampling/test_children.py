"""Which rows of a model become whose children."""

import numpy as np
import pytest

from sdv_privpgd.sampling.families import _as_many


def test_rows_agree_in_as_many_items_as_can_be_had_and_come_as_often_as_they_count():
    rng = np.random.default_rng(0)
    wanted, said = rng.integers(0, [2, 4, 60], (2_000, 3)), rng.integers(0, [2, 4, 20], (8_000, 3))
    counts = 1.0 + 2 * (said[:, 2] % 2)
    found = said[_as_many([*wanted.T], [*said.T], counts, rng)]
    assert (found[:, :2] == wanted[:, :2]).all()
    is_there = wanted[:, 2] < 20
    assert (found[is_there] == wanted[is_there]).all()
    assert (found[~is_there, 2] % 2).mean() == pytest.approx(0.75, abs=0.04)
    assert _as_many([*wanted[:0].T], [*said.T], counts, rng).tolist() == []
