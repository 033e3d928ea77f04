"""Which rows of a model become whose children."""

import numpy as np

from sdv_privpgd.sampling.families import _matched


def test_rows_are_matched_in_as_many_items_as_can_be_each_once():
    rng = np.random.default_rng(0)
    wanted = rng.integers(0, [2, 4, 5], (400, 3))
    said = rng.permutation(wanted)
    assert (said[_matched(wanted, said)] == wanted).all()
    said[:, 1:] = rng.integers(0, [4, 5], (400, 2))
    said[:, 0] = rng.permutation(wanted[:, 0])
    found = _matched(wanted, said)
    assert sorted(found) == list(range(400))
    assert (said[found, 0] == wanted[:, 0]).all()  # of the first item there is one for each
    both = (said[found] == wanted)[:, 1]
    assert both.mean() > 0.85  # a quarter by chance
    assert _matched(wanted[:0], said[:0]).tolist() == []
