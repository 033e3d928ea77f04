"""Noisy tables are combined by inverse variance, and 1-way ones cut to what they support."""

import math

import numpy as np
import pytest
from answers import answered as table
from answers import number_of_rows as count
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from sdv_privpgd.estimate.features import SigmoidSumQuery
from sdv_privpgd.estimate.noisy_tables import NoisyTable, averaged, estimate_total, noisy_tables
from sdv_privpgd.estimate.support import simplex_projection, supported_one_way
from sdv_privpgd.privacy.queries import Measurement


def test_axes_come_in_domain_order(domain):
    counts = np.arange(8).reshape(4, 2)
    found = noisy_tables(domain, [table(("c", "a"), counts, 3.0)])
    assert list(found) == [("a", "c")]
    np.testing.assert_allclose(found["a", "c"].counts, counts.T, rtol=1e-12)
    assert found["a", "c"].variance == pytest.approx(9.0, rel=1e-12)
    three = np.arange(24).reshape(4, 2, 3)
    found = noisy_tables(domain, [table(("c", "a", "b"), three)])
    np.testing.assert_allclose(found["a", "b", "c"].counts, three.transpose(1, 2, 0), rtol=1e-12)


def test_a_clique_measured_again_is_averaged_and_exact_tables_are_not_diluted(domain):
    first, second = np.array([[1, 2, 3], [4, 5, 6]]), np.array([[9, 8, 7], [6, 5, 4]])
    found = noisy_tables(domain, [table(("a", "b"), first, 1.0), table(("b", "a"), second.T, 2.0)])
    assert list(found) == [("a", "b")]
    # Weights 1 and 1/4: (4 first + second) / 5, variance 4/5.
    np.testing.assert_allclose(found["a", "b"].counts, (4 * first + second) / 5, rtol=1e-12)
    assert found["a", "b"].variance == pytest.approx(0.8, rel=1e-12)
    exact, noisy = NoisyTable(np.array([1.0, 2.0]), 0.0), NoisyTable(np.array([9.0, 9.0]), 1.0)
    best = averaged([noisy, exact])
    np.testing.assert_array_equal(best.counts, exact.counts)
    assert best.variance == 0


def test_a_public_number_of_rows_is_exact_and_without_any_count_there_is_none(domain):
    total = estimate_total(domain, [count(100, 0.0), table(("a",), [70, 70], 1.0)])
    assert (total.value, total.stddev) == (100.0, 0.0)
    with pytest.raises(ValueError, match="cannot be estimated"):
        estimate_total(domain, [])
    statistic = Measurement(
        query=SigmoidSumQuery.of({"a": 1.0}, 0, 1), answer=np.array([5]), stddev=1.0
    )
    assert noisy_tables(domain, [count(5, 1.0), statistic]) == {}


def test_under_add_remove_the_total_is_the_inverse_variance_average(domain):
    measurements = [
        count(100, 3.0),
        table(("a",), [60, 50], 2.0),
        table(("b", "c"), np.full((3, 4), 9), 2.0),
    ]
    total = estimate_total(domain, measurements)
    # Estimates 100, 110, 108 with variances 9, 2 x 4, 12 x 4.
    weights = [1 / 9, 1 / 8, 1 / 48]
    expected = np.average([100, 110, 108], weights=weights)
    assert total.value == pytest.approx(expected, rel=1e-12)
    assert total.stddev == pytest.approx(1 / math.sqrt(sum(weights)), rel=1e-12)


def test_tables_alone_give_a_total_in_which_each_measurement_counts_once(domain):
    total = estimate_total(domain, [table(("a",), [60, 50], 2.0)])
    assert total.value == 110
    assert total.stddev == pytest.approx(math.sqrt(8), rel=1e-12)
    once = [table(("a",), [60, 50], 2.0), table(("a",), [70, 60], 2.0)]
    total = estimate_total(domain, once)
    assert total.value == pytest.approx(120, rel=1e-12)
    assert total.stddev == pytest.approx(2.0, rel=1e-12)


@pytest.mark.parametrize(("value", "stddev"), [(0, 0.0), (-50, 4.0), (0, 4.0)])
def test_the_total_is_never_below_one(domain, value, stddev):
    assert estimate_total(domain, [count(value, stddev)]).value == 1.0


def one_way(counts, stddev, total):
    counts = np.asarray(counts, dtype=np.float64)
    return supported_one_way(NoisyTable(counts, stddev**2), counts.size, total)


@given(
    arrays(np.float64, st.integers(1, 40), elements=st.floats(-1e6, 1e6)),
    st.floats(0, 1e6),
    st.floats(1, 1e7),
)
def test_any_answer_becomes_a_distribution(counts, stddev, total):
    found = one_way(counts, stddev, total)
    assert (found >= 0).all()
    lost = 1e-15 * float(np.abs(counts).sum())  # of counts that are far larger than the total
    assert found.sum() == pytest.approx(total, rel=1e-9, abs=lost)


@given(
    arrays(np.float64, st.integers(1, 40), elements=st.floats(-1e3, 1e3)),
    st.floats(0, 1e3),
    st.integers(-6, 6),
)
def test_units_do_not_matter(counts, stddev, power):
    scale = 2.0**power  # exact
    np.testing.assert_allclose(
        one_way(counts * scale, stddev * scale, 500 * scale),
        one_way(counts, stddev, 500) * scale,
        atol=1e-9 * scale,
    )


def test_exact_counts_come_back_and_noise_is_exactly_zero():
    counts = [70, 0, 0, 25, 0, 5]
    np.testing.assert_array_equal(one_way(counts, 0.0, 100), counts)
    np.testing.assert_array_equal(one_way([500, -5, 500, 10], 10.0, 1005)[[1, 3]], 0)
    values = one_way([5, -4, 2], 100.0, 3)
    np.testing.assert_allclose(values, simplex_projection(np.array([5, -4, 2.0]), 3))


def test_values_are_judged_in_runs_and_groups_and_weak_ones_shrink():
    # The weak ones are in runs of one value: 21 > 2 x 10 keeps its mass, 19 some of it.
    kept = one_way([500, 21, 460, 19], 10.0, 1000)
    of_noise = 1 / 2 + 0.5 * np.sqrt(1.25)  # squares of deviations that it explains in one value
    expected = np.array([500, 21, 460, 19 * (1 - of_noise / 1.9**2)])
    np.testing.assert_allclose(kept, expected * (1000 / expected.sum()))
    # 25 and 15 a value: the means are sqrt(8) = 2.8 standard deviations apart.
    tail = [25.0] * 16 + [15.0] * 16
    np.testing.assert_allclose(one_way([360, *tail], 10.0, 1000), [360, *tail])
    # 8 and 12 do not differ, and their sum, 160, is above 2 x 10 x sqrt(16).
    found = one_way([840, *[8, 12] * 8], 10.0, 1000)
    np.testing.assert_allclose(found, [840, *[10] * 16])
    found = one_way([880, *[15.0] * 8, *[0.0] * 8], 10.0, 1000)
    np.testing.assert_allclose(found, [880, *[15.0] * 8, *[0.0] * 8], atol=1e-9)
    # Each in a run of its own, below 2 x 10; together 150 is above 2 x 10 x sqrt(10).
    counts = np.tile([85.0, 15.0], 10)
    np.testing.assert_allclose(one_way(counts, 10.0, 1000), counts)
    few = np.array([485.0, 9.0, 506.0])
    np.testing.assert_allclose(one_way(few, 10.0, 1000), [485000 / 991, 0, 506000 / 991])


def test_a_rare_value_vanishes_in_less_than_half_of_the_fits_and_an_empty_one_hardly_appears():
    """41 of 6,366 rows beside a noise of 32; the empty value gets a seventh of that."""
    rng = np.random.default_rng(0)
    rare, empty = (
        np.array([one_way([3_000, 3_366 - rows, rows], 32.0, 6_366)[2] for rows in noisy])
        for noisy in rng.normal([[41], [0]], 32.0, (2, 2_000))
    )
    assert (rare == 0).mean() < 0.5
    assert 20 < rare.mean() < 41
    assert empty.mean() < 4.8


def test_the_simplex_projection_keeps_distributions_and_shapes():
    values = np.array([[1.0, 2.0], [0.0, 4.0]])
    np.testing.assert_allclose(simplex_projection(values, 7.0), values, atol=1e-15)
    np.testing.assert_array_equal(simplex_projection(np.array([-3.0]), 2.0), [2.0])
    np.testing.assert_array_equal(simplex_projection(np.array([5.0, 5.0]), 2.0), [1.0, 1.0])
