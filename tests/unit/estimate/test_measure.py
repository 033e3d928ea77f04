"""Noisy tables are combined by inverse variance, and the total as a hand computation has it."""

import math

import numpy as np
import pytest

from sdv_privpgd.estimate.noisy_tables import NoisyTable, averaged, estimate_total, noisy_tables
from sdv_privpgd.privacy.queries import CountQuery, MarginalQuery, Measurement, SigmoidSumQuery


def table(clique, counts, stddev=1.0):
    return Measurement(
        query=MarginalQuery(clique), answer=np.asarray(counts, dtype=np.int64), stddev=stddev
    )


def count(value, stddev):
    return Measurement(query=CountQuery(), answer=np.array([value]), stddev=stddev)


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


def test_an_answer_cannot_be_changed_afterwards():
    measurement = table(("a",), [1, 2])
    with pytest.raises(ValueError, match="read-only"):
        measurement.answer[0] = 5
