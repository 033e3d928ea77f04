"""Groups of codes: what they refuse, what they sum, and how equal they are."""

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sdv_privpgd.base.domain import Domain, Grouping
from sdv_privpgd.estimate.denoising import equal_groups
from sdv_privpgd.privacy.queries import GroupedMarginalQuery, MarginalQuery, answers

GROUPING = Grouping(("a", "b", "c"), ((0, 0), (1, 0, 1), (0, 1, 2, 1)))


def test_groups_are_a_domain_and_those_of_another_are_refused_uncounted(domain):
    assert GROUPING.domain == Domain(("a", "b", "c"), (1, 2, 3))
    assert GROUPING["b"].tolist() == [1, 0, 1]
    assert Grouping.of({name: GROUPING[name] for name in "abc"}) == GROUPING
    query = GroupedMarginalQuery(("a", "b"), Grouping(("a", "b"), ((0, 1), (0, 1))))
    with pytest.raises(ValueError, match="'b' has 3 codes and groups for 2 of them"):
        query.shape(domain)


@pytest.mark.parametrize(
    ("attributes", "groups", "message"),
    [
        (("a", "b"), ((0, 1),), "needs groups for each of its 2 attributes, got 1"),
        (("a",), ((0, 2),), r"The groups of 'a' must be 0, 1, ..., without a gap, got \(0, 2\)"),
        (("a",), ((1, 2),), "without a gap"),
        (("a",), ((),), "without a gap"),
    ],
)
def test_groups_that_are_none_are_refused(attributes, groups, message):
    with pytest.raises(ValueError, match=message):
        Grouping(attributes, groups)


def test_a_query_over_groups_sums_the_query_over_codes(dataset, domain):
    for degree in range(4):
        for clique in domain.cliques(degree):
            for ordered in (clique, clique[::-1]):
                found = GroupedMarginalQuery(ordered, GROUPING).answer(dataset)
                assert found.dtype == np.int64
                expected = GROUPING.sums(MarginalQuery(ordered).answer(dataset), ordered)
                np.testing.assert_array_equal(found, expected)


def test_queries_of_several_groupings_are_answered_in_their_order(dataset):
    other = Grouping(("c", "a"), ((0, 0, 1, 1), (0, 1)))
    queries = [
        GroupedMarginalQuery(("a", "c"), GROUPING),
        MarginalQuery(("b",)),
        GroupedMarginalQuery(("c", "a"), other),
        GroupedMarginalQuery(("c",), GROUPING),
    ]
    for query, answer in zip(queries, answers(queries, dataset), strict=True):
        np.testing.assert_array_equal(answer, query.answer(dataset))


@given(st.lists(st.integers(0, 20), min_size=1, max_size=9), st.integers(1, 4))
def test_equal_groups_have_the_smallest_sum_of_squares(counts, most):
    groups = equal_groups(np.array(counts, dtype=float), most)
    number = min(most, len(counts))
    assert (np.diff(groups) >= 0).all()
    assert set(groups.tolist()) == set(range(number))

    def squares(edges):
        parts = np.split(np.array(counts), list(edges))
        return sum(int(part.sum()) ** 2 for part in parts)

    best = min(squares(edges) for edges in combinations(range(1, len(counts)), number - 1))
    assert squares(np.flatnonzero(np.diff(groups)) + 1) == best
