"""The cells of releases follow from what is declared, and suit money and zeros."""

import numpy as np
import pandas as pd
import pytest

from sdv_privpgd import Numerical, combine, measure
from sdv_privpgd.releases.measuring import with_cells

RNG = np.random.default_rng(0)
SIZE = 4_000


def cuts(num_bins=None, **words):
    return with_cells({"x": {"sdtype": "numerical", **words}}, num_bins)["x"].get("cut_points", [])


@pytest.mark.parametrize(
    "words",
    [
        {"range_min": 0, "range_max": 120, "decimal_places": 0},
        {"range_min": 1_000, "range_max": 5_000, "decimal_places": 2},
        {"range_min": 0, "range_max": 10**6, "decimal_places": 2, "cut_points": [10, 100]},
        {"range_min": -3, "range_max": 3, "decimal_places": 0},
    ],
)
def test_equal_cells_stay_where_they_say_enough(words):
    assert cuts(**words) == words.get("cut_points", [])


@pytest.mark.parametrize("places", [{}, {"decimal_places": 2}])
def test_a_wide_range_has_a_cell_for_zero_and_cells_that_grow(places):
    found = np.array(cuts(range_min=0, range_max=10**6, **places))
    assert found[0] <= 0.01
    assert len(found) == 32  # and one for 0
    growth = found[3:] / found[2:-1]
    np.testing.assert_allclose(growth, growth[0])


def test_a_range_of_both_signs_has_a_cell_for_zero():
    assert {0, 0.01} <= set(cuts(range_min=-1_000, range_max=1_000, decimal_places=2))


def test_sums_of_money_of_two_sites_keep_their_zeros_and_their_mean():
    money = np.where(RNG.random(SIZE) < 0.3, 0, (300 * np.exp(RNG.normal(0, 1.2, SIZE))).round(2))
    columns = {"x": Numerical(0, 1_000_000, decimal_places=2)}
    halves = np.split(money, 2)
    sites = [
        measure(pd.DataFrame({"x": half}), columns, epsilon=2.0, holder=name)
        for half, name in zip(halves, "AB", strict=True)
    ]
    rows = combine(sites).sample(SIZE)["x"]
    assert (rows == 0).mean() == pytest.approx((money == 0).mean(), abs=0.02)
    assert rows.median() == pytest.approx(np.median(money), rel=0.1)
    assert rows.mean() == pytest.approx(money.mean(), rel=0.5)


def test_cells_of_money_grow_from_zero_in_both_directions():
    found = np.array(cuts(range_min=-(10**6), range_max=10**6, decimal_places=2))
    assert {0, 0.01} <= set(found)
    assert len(found) == 32
    below, above = -found[found < 0][::-1], found[found > 0.01]
    np.testing.assert_allclose(below, above)
    np.testing.assert_allclose(np.diff(np.log(above)), np.log(above[1] / above[0]))
    assert {0, 0.01} <= set(cuts(range_min=-1, range_max=10**6, decimal_places=2))
