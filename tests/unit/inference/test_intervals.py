"""Intervals are where their tests say, and known ones where there is no noise or no sampling."""

import math

import numpy as np
import pytest
from statsmodels.stats.proportion import proportion_confint

from sdv_privpgd.inference.answers import MODEL, Answer
from sdv_privpgd.inference.intervals import (
    KINDS,
    Enclosed,
    Interval,
    Quantile,
    Ratio,
    Statistic,
    Total,
    deviations,
)

NONE = np.zeros((2, 2))
NOISE = np.array([[30.0, 12.0], [12.0, 50.0]])


def test_without_noise_a_share_has_wilson_s_interval_and_the_table_is_known():
    expected = proportion_confint(30, 200, method="wilson")
    np.testing.assert_allclose(Ratio(30, 200, NONE).interval("population", 0.95), expected)
    count = Total(30, 0.0, num_rows=200).interval("population", 0.95)
    np.testing.assert_allclose(count, 200 * np.array(expected))
    assert Total(30, 0.0, num_rows=200).interval("table", 0.95) == (30, 30)
    np.testing.assert_allclose(Ratio(30, 200, NONE).interval("table", 0.95), (0.15, 0.15))
    assert Total(-9.0, 4.0, num_rows=100, low=0.0).interval("table", 0.95) == (0, 0)
    assert Total(98.0, 4.0, num_rows=100, high=100.0).interval("table", 0.95).high == 100
    assert Ratio(5.0, 5.0, NOISE, high=1.0).interval("table", 0.95) == (0, 1)  # noise hides all
    hidden = Ratio(5.0, -2.0, NOISE)
    assert hidden.interval("population", 0.95) == (0, 1)
    assert math.isnan(hidden.value)
    assert math.isnan(hidden.stddev)
    low, middle, high = (Total(value, 9.0, num_rows=1e4) for value in (50.0, 60.0, 400.0))
    enclosed = Enclosed(middle, low, high)
    for kind in KINDS:
        ends = enclosed.interval(kind, 0.9)
        assert ends.low == low.interval(kind, 0.9).low
        assert ends.high == high.interval(kind, 0.9).high


@pytest.mark.parametrize("level", [0.5, 0.95, 0.999])
@pytest.mark.parametrize("squares", [None, 4_000.0])
@pytest.mark.parametrize("kind", ["table", "population"])
def test_the_ends_of_a_ratio_are_as_far_off_as_the_level_says(kind, squares, level):
    above, below = 60.0, 150.0
    ratio = Ratio(above, below, NOISE, squares, low=-math.inf, high=math.inf)
    for end in ratio.interval(kind, level):
        weights = np.array([1, -end])
        variance = weights @ NOISE @ weights
        if kind == "population":
            own = above if squares is None else squares
            # Of a share the values are 0 and 1, and their mean under test is the end.
            variance += (
                below * end * (1 - end)
                if squares is None
                else own - 2 * end * above + end**2 * below
            )
        assert abs(above - end * below) == pytest.approx(deviations(kind, level) * variance**0.5)


def test_more_confidence_and_sampling_make_intervals_wider():
    for each in (
        Total(60, 30.0, num_rows=1_000),
        Total(60, 30.0, num_rows=1_000, squares=900.0),
        Ratio(60, 150, NOISE),
        Ratio(60, 150, NOISE, squares=400.0, high=9.0),
    ):
        found = [each.interval(*of) for of in (("table", 0.8), ("table", 0.95))]
        found.append(each.interval("population", 0.95))
        widths = [high - low for low, high in found]
        assert widths == sorted(widths)
        assert all(low < each.value < high for low, high in found)


def test_a_quantile_is_between_the_first_open_ends_of_cells():
    ends = np.arange(5)
    excess = np.array([-50.0, -20.0, 10.0, 40.0, 50.0])
    known = Quantile(0.5, excess, np.zeros(5), 100.0, ends, ends)
    assert known.interval("table", 0.95) == (2, 2)
    noisy = Quantile(0.5, excess, np.full(5, 100.0), 100.0, ends, ends)
    assert noisy.interval("table", 0.95) == (2, 3)
    sampled = Quantile(0.5, excess, np.full(5, 1.0), 400.0, ends, ends)
    assert sampled.interval("population", 0.9) == (2, 3)
    assert sampled.interval("population", 0.99) == (1, 3)
    # An end that only noise put below the quantile closes nothing beyond it.
    odd = Quantile(0.5, np.array([-50.0, 5.0, -50.0, 60.0, 70.0]), np.ones(5), 9.0, ends, ends)
    assert odd.interval("table", 0.95) == (1, 3)


def test_what_knows_an_interval_can_be_put_in_place_of_the_tables():
    """As a bootstrap of a model's answer will be."""

    class Known:
        def interval(self, kind, level):
            return Interval(1.0, 2.0 if kind == "table" else 3.0)

    assert isinstance(Known(), Statistic)
    answer = Answer(question="A thing", estimate=1.5, basis=MODEL, statistic=Known())
    assert answer.interval("population") == (1, 3)
    assert str(answer).startswith("A thing: 1.5. With 95 % confidence 1 to 2 in this table, and 1")
