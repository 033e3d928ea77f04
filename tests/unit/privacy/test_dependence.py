"""The dependence of two attributes: exact, from any number of records, and as sensitive as said."""

from fractions import Fraction
from itertools import product

import numpy as np
import pytest

from sdv_privpgd.base.domain import Domain
from sdv_privpgd.privacy.dataset import Dataset
from sdv_privpgd.privacy.queries import Adjacency, DependenceQuery, MarginalQuery, answers

QUERY = DependenceQuery(("a", "b"))


def defined(counts):
    """|| n_ab - n_a n_b / n ||_1 in fractions."""
    total, rows, columns = counts.sum(), counts.sum(axis=1), counts.sum(axis=0)
    if not total:
        return Fraction(0)
    cells = product(range(len(rows)), range(len(columns)))
    return sum(
        abs(int(counts[i, j]) - Fraction(int(rows[i]) * int(columns[j]), int(total)))
        for i, j in cells
    )


def test_it_is_what_its_definition_says_rounded_down():
    rng = np.random.default_rng(0)
    for _ in range(200):
        counts = rng.integers(0, rng.integers(1, 30), rng.integers(1, 5, 2))
        assert QUERY.of_counts(counts).item() == int(defined(counts))


@pytest.mark.parametrize("each", [2**20, 2**29, 2**33, 2**45, 2**58])
def test_the_products_of_many_records_do_not_wrap_around(each):
    dependent = np.array([[each, 0], [0, each]])
    assert QUERY.of_counts(dependent).item() == 2 * each
    assert QUERY.of_counts(np.full((2, 2), each)).item() == 0
    uneven = np.array([[each + 1, each // 5], [each // 3, each // 7]])
    assert QUERY.of_counts(uneven).item() == int(defined(uneven))


def test_it_is_answered_beside_marginals_in_the_order_of_the_questions():
    domain = Domain(("a", "b"), (2, 3))
    dataset = Dataset(domain, np.array([[0, 2], [1, 0], [1, 0], [0, 2]]))
    asked = [MarginalQuery(("a",)), QUERY, MarginalQuery(("b",)), DependenceQuery(("b", "a"))]
    found = answers(asked, dataset)
    for query, answer in zip(asked, found, strict=True):
        np.testing.assert_array_equal(answer, query.answer(dataset))
        assert answer.shape == query.shape(domain)
    assert found[1].tolist() == found[3].tolist() == [4]


@pytest.mark.parametrize("clique", [("a",), ("a", "b", "c"), ("a", "x")])
def test_it_is_asked_of_two_attributes_of_the_domain(clique):
    with pytest.raises(ValueError, match=r"unpack|'x'"):
        DependenceQuery(clique).shape(Domain(("a", "b", "c"), (2, 2, 2)))


def test_no_small_table_moves_by_more_and_the_bound_for_a_new_record_is_attained():
    """All tables of 2 x 2 cells with up to 7 records, and every neighbor of them."""
    cells = np.eye(4, dtype=np.int64).reshape(4, 2, 2)
    most = {Adjacency.ADD_REMOVE: 0, Adjacency.REPLACE_ONE: 0}
    tables = (np.array(flat).reshape(2, 2) for flat in product(range(8), repeat=4))
    for table in (each for each in tables if each.sum() <= 7):
        here = int(QUERY.of_counts(table)[0])
        more = [int(QUERY.of_counts(table + cell)[0]) for cell in cells]
        most[Adjacency.ADD_REMOVE] = max(
            most[Adjacency.ADD_REMOVE], *(abs(each - here) for each in more)
        )
        most[Adjacency.REPLACE_ONE] = max(most[Adjacency.REPLACE_ONE], max(more) - min(more))
    for adjacency, moved in most.items():
        assert 0 < moved**2 <= QUERY.l2_sensitivity_squared(adjacency)


def near_the_bound(number):
    """A rare code of each attribute goes with the other's, and two others avoid each other."""
    counts = np.full((4, 4), number)
    counts[0], counts[1] = number // 100, number // 100
    counts[:, 0], counts[:, 1] = number // 100, number // 100
    counts[0, 0], counts[1, 1] = number // 1000, 1
    counts[0, 1] = counts[1, 0] = 1
    return counts


def test_the_bound_is_attained_by_a_record_that_moves_and_by_one_that_comes():
    moved, came = 0, 0
    for number in range(1_000_000, 1_000_300, 7):
        counts = near_the_bound(number)
        others = counts.copy()
        others[1, 1] -= 1
        there = others.copy()
        there[0, 0] += 1
        before, after = QUERY.of_counts(counts).item(), QUERY.of_counts(there).item()
        moved = max(moved, after - before)
        came = max(came, after - QUERY.of_counts(others).item())
    assert moved**2 == QUERY.l2_sensitivity_squared(Adjacency.REPLACE_ONE)
    assert came**2 == QUERY.l2_sensitivity_squared(Adjacency.ADD_REMOVE)
