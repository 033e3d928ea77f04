"""Tables that were made consistent agree on all that they share."""

from itertools import combinations

import numpy as np
import pytest
from answers import answered, margin, noisy_answers, number_of_rows

from sdv_privpgd.base.domain import Domain, Grouping
from sdv_privpgd.estimate.consistency import consistent_tables, possible_tables
from sdv_privpgd.privacy.dataset import Dataset
from sdv_privpgd.privacy.queries import Measurement, QuadrantQuery

DOMAIN = Domain(("a", "b", "c", "d"), (2, 3, 4, 5))


@pytest.fixture
def records():
    """Correlated and peaked, so that noise leaves most but not all values supported."""
    rng = np.random.default_rng(3)
    a = rng.integers(0, 2, 3000)
    b = np.minimum(rng.geometric(0.6, 3000) - 1, 2)
    c = np.minimum(a + rng.geometric(0.7, 3000) - 1, 3)
    d = np.minimum(rng.geometric(0.8, 3000) - 1, 4)
    return np.column_stack([a, b, c, d])


def measured(domain, records, cliques, stddev, rng=0, total_stddev=0.0):
    """Measurements of the cliques, with float noise: what is after them is public arithmetic."""
    dataset = Dataset(domain, records)
    tables = {clique: dataset.counts(clique) for clique in cliques}
    return [number_of_rows(len(records), total_stddev), *noisy_answers(tables, stddev, rng)]


def check_agreement(domain, tables):
    """All tables sum to the total, agree on shared marginals and respect the support."""
    scale = 1e-9 * tables.total
    for clique, counts in tables.tables.items():
        assert counts.shape == domain.shape(clique)
        assert counts.sum() == pytest.approx(tables.total, abs=scale)
        for degree in range(1, len(clique) + 1):
            for subset in combinations(clique, degree):
                others = tuple(i for i, name in enumerate(clique) if name not in subset)
                margin = counts.sum(axis=others)
                if degree == 1:
                    np.testing.assert_allclose(margin, tables.one_way[subset[0]], atol=scale)
                for other, theirs in tables.tables.items():
                    if set(subset) <= set(other):
                        axes = tuple(i for i, name in enumerate(other) if name not in subset)
                        np.testing.assert_allclose(theirs.sum(axis=axes), margin, atol=scale)
        inside = np.zeros(counts.shape, dtype=bool)
        inside[np.ix_(*tables.support(clique))] = True
        assert not counts[~inside].any()
    for values in tables.one_way.values():
        assert values.min() >= 0
        assert values.sum() == pytest.approx(tables.total, abs=scale)


@pytest.mark.parametrize("stddev", [3.0, 30.0, 300.0, 1e5])
@pytest.mark.parametrize("degree", [1, 2, 3, 4])
def test_tables_agree_on_all_that_they_share(records, degree, stddev):
    tables = consistent_tables(DOMAIN, measured(DOMAIN, records, DOMAIN.cliques(degree), stddev))
    assert set(tables.tables) == set(DOMAIN.cliques(degree))
    assert tables.total == len(records)
    check_agreement(DOMAIN, tables)


@pytest.mark.parametrize("degree", [1, 2, 3])
def test_true_tables_come_back_unchanged(records, degree):
    measurements = measured(DOMAIN, records, DOMAIN.cliques(degree), 0.0)
    tables = consistent_tables(DOMAIN, measurements)
    dataset = Dataset(DOMAIN, records)
    for clique, counts in tables.tables.items():
        np.testing.assert_allclose(counts, dataset.counts(clique), atol=1e-9 * len(records))


def test_two_tables_that_share_an_attribute_have_the_closed_form():
    domain = Domain(("a", "b", "c"), (2, 3, 4))
    rng = np.random.default_rng(5)
    left, right = rng.integers(50, 90, (2, 3)), rng.integers(50, 90, (3, 4))
    total = 500
    answers = [number_of_rows(total), answered("ab", left, 1.0), answered("bc", right, 2.0)]
    tables = consistent_tables(domain, answers)
    # b's margins have variances 2 x 1 and 4 x 4; all values are far above 3 deviations.
    of_left, of_right = left.sum(axis=0), right.sum(axis=1)
    shared = (of_left / 2 + of_right / 16) / (1 / 2 + 1 / 16)
    shared = shared + (total - shared.sum()) / 3
    np.testing.assert_allclose(tables.one_way["b"], shared, rtol=1e-12)
    # Each table moves by what its other margins miss, spread evenly.
    a = left.sum(axis=1)
    a = a + (total - a.sum()) / 2
    expected = left + (a - left.sum(axis=1))[:, None] / 3
    expected = expected + (shared - expected.sum(axis=0)) / 2
    np.testing.assert_allclose(tables.tables["a", "b"], expected, rtol=1e-12)


def test_three_way_tables_average_their_shared_two_way_margin():
    domain = Domain(("a", "b", "c", "d"), (2, 3, 2, 5))
    rng = np.random.default_rng(6)
    left, right = rng.integers(900, 999, (2, 3, 2)), rng.integers(350, 400, (3, 2, 5))
    answers = [number_of_rows(11_000), answered("abc", left), answered("bcd", right)]
    tables = consistent_tables(domain, answers)
    check_agreement(domain, tables)

    # What no smaller set fixes, the interaction of b and c, is averaged with weights 1/2, 1/5.
    def interaction(margin):
        rows, columns = margin.mean(axis=1, keepdims=True), margin.mean(axis=0, keepdims=True)
        return margin - rows - columns + margin.mean()

    found = interaction(tables.tables["a", "b", "c"].sum(axis=0))
    weights = np.array([1 / 2, 1 / 5]) / (1 / 2 + 1 / 5)
    expected = weights[0] * interaction(left.sum(axis=0)) + weights[1] * interaction(
        right.sum(axis=2)
    )
    np.testing.assert_allclose(found, expected, atol=1e-9 * 11_000)


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("stddev", [0.0, 5.0])
def test_an_empty_table_gives_tables_that_sum_to_one(stddev):
    empty = np.zeros((0, 4), dtype=np.int64)
    tables = consistent_tables(DOMAIN, measured(DOMAIN, empty, DOMAIN.cliques(2), stddev))
    assert tables.total == 1.0
    check_agreement(DOMAIN, tables)


def test_renaming_the_order_of_attributes_permutes_the_tables(records):
    order = (2, 0, 3, 1)
    permuted = Domain(
        tuple(DOMAIN.attributes[i] for i in order), tuple(DOMAIN.sizes[i] for i in order)
    )
    measurements = measured(DOMAIN, records, DOMAIN.cliques(3), 25.0)
    here, there = (consistent_tables(domain, measurements) for domain in (DOMAIN, permuted))
    for clique, counts in there.tables.items():
        axes = DOMAIN.axes(clique)
        mine = here.tables[tuple(DOMAIN.attributes[i] for i in sorted(axes))]
        np.testing.assert_allclose(
            counts, mine.transpose(np.argsort(np.argsort(axes))), atol=1e-9 * here.total
        )


FOUR = Domain(("a", "b", "c", "d"), (2, 5, 6, 4))


def noisy(cliques, stddev, seed=0):
    weights = np.random.default_rng(seed).gamma(0.2, size=FOUR.sizes)
    counts = np.rint(5_000 * weights / weights.sum())
    tables = {clique: margin(counts, FOUR, clique) for clique in cliques}
    measured = [number_of_rows(int(counts.sum())), *noisy_answers(tables, stddev, seed)]
    return counts, consistent_tables(FOUR, measured)


@pytest.mark.parametrize("stddev", [1.0, 30.0, 200.0])
def test_they_are_not_negative_and_agree_to_a_thousandth(stddev):
    cliques = [("a", "b", "c"), ("b", "c"), ("c", "d"), ("a", "d"), ("b", "c", "d")]
    counts, agreed = noisy(cliques, stddev)
    found = possible_tables(agreed, {})
    total = counts.sum()
    for table in found.values():
        assert table.min() >= 0
        assert table.sum() == pytest.approx(total)
    for one, other in combinations(found, 2):
        shared = tuple(name for name in one if name in other)
        margins = [
            found[clique].sum(axis=tuple(clique.index(n) for n in clique if n not in shared))
            for clique in (one, other)
        ]
        assert np.abs(margins[0] - margins[1]).sum() < 0.01 * total


def test_impossible_cells_are_empty_and_tables_that_rows_have_stay():
    _, agreed = noisy(FOUR.cliques(2), 0.0)
    for clique, table in possible_tables(agreed, {}).items():
        np.testing.assert_allclose(table, agreed.tables[clique], atol=1e-6)
    allowed = np.ones((2, 5), dtype=bool)
    allowed[0, :3] = False
    _, agreed = noisy(FOUR.cliques(2), 20.0)
    found = possible_tables(agreed, {("a", "b"): allowed})
    assert found["a", "b"][~allowed].sum() == 0
    assert found["a", "b"].sum() == pytest.approx(agreed.total)


def test_quadrants_and_marginals_make_a_table_of_two_sides(records):
    sides = Grouping.of({name: np.arange(n) > 0 for name, n in DOMAIN.size_of.items()})
    dataset, query = Dataset(DOMAIN, records), QuadrantQuery(("c", "a"), sides)
    answer = Measurement(query=query, answer=query.answer(dataset), stddev=6.0)
    exact = measured(DOMAIN, records, DOMAIN.cliques(1), 0.0)
    tables = consistent_tables(DOMAIN, [*exact, answer])
    (((clique, table),),) = (own.items() for own in tables.grouped.values())
    assert clique == ("a", "c")
    assert table.variance == 9.0  # of a cell, so that its quadrants have 36
    np.testing.assert_allclose(table.counts, sides.sums(dataset.counts(clique), clique))
    # What was measured over the same sides is averaged with it.
    own = answered(("a", "c"), table.counts, stddev=4.0, grouping=sides)
    (both,) = consistent_tables(DOMAIN, [*exact, answer, own]).grouped.values()
    assert both["a", "c"].variance == pytest.approx(1 / (1 / 9 + 1 / 16))
