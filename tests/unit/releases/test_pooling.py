"""Sums over holders: their noise, and what becomes of tables that only some have measured."""

import numpy as np
import pytest

from sdv_privpgd.base.domain import Domain, Grouping
from sdv_privpgd.inference.linear import LinearEstimate
from sdv_privpgd.privacy.queries import CountQuery, GroupedMarginalQuery, MarginalQuery, Measurement
from sdv_privpgd.releases.combining import pooled

DOMAIN = Domain(("a", "b", "c"), (2, 3, 4))


def answer(clique, stddev, seed=0):
    rng = np.random.default_rng(seed)
    counts = rng.integers(0, 100, DOMAIN.shape(clique))
    return Measurement(query=MarginalQuery(clique), answer=counts, stddev=stddev)


def test_repeated_answers_of_a_holder_are_averaged_before_they_are_added():
    first, second = answer(("a",), 2.0, seed=1), answer(("a",), 2.0, seed=2)
    other = answer(("a",), 3.0, seed=3)
    (found,) = pooled(DOMAIN, [[first, second], [other]]).measurements
    np.testing.assert_allclose(found.answer, (first.answer + second.answer) / 2 + other.answer)
    assert found.stddev == pytest.approx(np.sqrt(2.0 + 9.0))


def test_tables_in_another_order_of_columns_are_the_same_table():
    straight, turned = answer(("a", "b"), 1.0), answer(("b", "a"), 1.0, seed=4)
    (found,) = pooled(DOMAIN, [[straight], [turned]]).measurements
    assert found.query == MarginalQuery(("a", "b"))
    np.testing.assert_array_equal(found.answer, straight.answer + turned.answer.T)


def test_what_one_has_measured_within_a_common_table_helps_its_own_part():
    pair, single, other = answer(("a", "b"), 5.0), answer(("a",), 0.5), answer(("a", "b"), 5.0, 7)
    found = pooled(DOMAIN, [[pair, single], [other]])
    assert found.within == (("a",),)
    assert found.left_out == ()
    (summed,) = found.measurements
    best = LinearEstimate(DOMAIN, [pair, single]).table(("a", "b"))[0]
    np.testing.assert_allclose(summed.answer, best + other.answer)
    # The precise counts of a decide its margin.
    np.testing.assert_allclose(
        summed.answer.sum(axis=1), single.answer + other.answer.sum(axis=1), atol=2
    )
    assert summed.stddev == pytest.approx(5.0 * np.sqrt(2))


def test_the_said_noise_is_never_too_small_where_a_holder_s_tables_help_each_other():
    """The estimate's exact variance of any cell is at most that of the table itself."""
    measured = [answer(("a", "b"), 5.0), answer(("b", "c"), 4.0), answer(("b",), 1.0)]
    linear = LinearEstimate(DOMAIN, measured)
    for clique, stddev in ((("a", "b"), 5.0), (("b", "c"), 4.0)):
        variances = linear.table(clique)[1]
        assert (variances <= stddev**2 + 1 / 12).all()  # rounding included


def test_what_only_some_have_measured_is_left_out_and_said():
    found = pooled(DOMAIN, [[answer(("a",), 1.0), answer(("b", "c"), 1.0)], [answer(("a",), 1.0)]])
    assert found.left_out == (("b", "c"),)
    assert [each.query for each in found.measurements] == [MarginalQuery(("a",))]


def test_groups_add_up_only_if_they_are_the_same():
    grouping = Grouping.of({"c": np.array([0, 0, 1, 1])})
    other = Grouping.of({"c": np.array([0, 1, 1, 1])})
    counts = np.array([10, 20])

    def over(groups):
        query = GroupedMarginalQuery(("c",), groups)
        return [answer(("a",), 1.0), Measurement(query=query, answer=counts, stddev=1.0)]

    found = pooled(DOMAIN, [over(grouping), over(grouping)])
    assert found.measurements[-1].answer.tolist() == [20, 40]
    assert pooled(DOMAIN, [over(grouping), over(other)]).left_out == (("c",), ("c",))


def test_the_numbers_of_rows_add_up_where_all_are_known():
    count = Measurement(query=CountQuery(), answer=np.array([100]), stddev=3.0)
    one = answer(("a",), 1.0)
    both = pooled(DOMAIN, [[count, one], [count, one]]).measurements[0]
    assert (both.answer.tolist(), both.stddev) == ([200], pytest.approx(np.sqrt(18)))
    assert len(pooled(DOMAIN, [[count, one], [one]]).measurements) == 1


def test_nothing_in_common_is_refused():
    with pytest.raises(ValueError, match="No table was measured by all holders"):
        pooled(DOMAIN, [[answer(("a",), 1.0)], [answer(("b",), 1.0)]])
