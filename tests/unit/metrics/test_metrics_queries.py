"""Random queries, answered row by row."""

from collections import Counter

import numpy as np
import pytest

from sdv_privpgd.base.domain import Domain
from sdv_privpgd.metrics import (
    categorical_marginal_errors,
    counting_errors,
    linear_threshold_errors,
    mixed_marginal_errors,
    threshold_errors,
)
from sdv_privpgd.metrics.pairs import average
from sdv_privpgd.metrics.queries import (
    IntervalQuery,
    NoQueriesError,
    ThresholdQuery,
    counting_queries,
    threshold_queries,
)

DOMAIN = Domain(("a", "b", "c", "y"), (4, 3, 7, 2))
RELATIVE = [(counting_errors, counting_queries), (threshold_errors, threshold_queries)]


@pytest.fixture
def tables():
    rng = np.random.default_rng(5)
    uniform = rng.integers(0, DOMAIN.sizes, (90, 4))
    skewed = np.floor(rng.random((70, 4)) ** 1.5 * DOMAIN.sizes).astype(np.uint8)
    return uniform, skewed


def places(row):
    """Each attribute's embedded place of a row."""
    return {
        name: (2 * code + 1) / (2 * size)
        for name, size, code in zip(DOMAIN.attributes, DOMAIN.sizes, row, strict=True)
    }


def holds(query, row):
    """Whether a row is counted, from the definition."""
    if isinstance(query, IntervalQuery):
        code = dict(zip(DOMAIN.attributes, row, strict=True))
        bounds = zip(query.attributes, query.lows, query.highs, strict=True)
        return all(low <= code[name] <= high for name, low, high in bounds)
    at = places(row)
    terms = zip(query.attributes, query.direction, strict=True)
    return sum(theta * at[name] for name, theta in terms) > query.threshold


def share(query, table):
    return sum(holds(query, row) for row in table.tolist()) / len(table)


@pytest.mark.parametrize(("errors", "draw"), RELATIVE)
def test_errors_are_those_of_rows_one_by_one_for_queries_of_a_seed(errors, draw, tables):
    real, synthetic = tables
    queries = draw(DOMAIN, real, num_queries=40, seed=2)
    ours, theirs = (
        np.array([share(query, table) for query in queries]) for table in (real, synthetic)
    )
    assert draw is threshold_queries or (ours.min() >= 0.05 and ours.max() <= 0.95)
    expected = np.abs(theirs - ours).sum() / ours.sum()
    each = errors(DOMAIN, real, synthetic, num_queries=40, seed=2)
    assert average(each) == pytest.approx(expected, rel=1e-12)
    assert list(each.values()) == pytest.approx(np.abs(theirs - ours) / ours.mean(), rel=1e-12)
    shuffled = np.random.default_rng(1).permutation(real)
    assert average(errors(DOMAIN, real, shuffled)) == 0
    permuted = np.random.default_rng(1).permutation(synthetic)
    assert errors(DOMAIN, real, synthetic) == errors(DOMAIN, shuffled, permuted)
    again = [average(errors(DOMAIN, *tables, seed=seed)) for seed in (0, 0, 1)]
    assert again[0] == again[1] != again[2]
    assert draw(DOMAIN, tables[0], seed=4) == draw(DOMAIN, tables[0], seed=4)


def test_an_upper_bound_is_uniform_from_the_lower_one_on():
    """One attribute of 4 codes that holds all of each: P(low, high) = 1/4 · 1/(4 − low).

    Kept are the intervals that hold 5 to 95 % of the rows: all but [0, 3], so P / (1 − 1/16).
    """
    single = Domain(("a",), (4,))
    real = np.repeat(np.arange(4), 25)[:, None]
    drawn = counting_queries(single, real, num_queries=20_000)
    counts = Counter((query.lows[0], query.highs[0]) for query in drawn)
    expected = {(low, high): 4 / 15 / (4 - low) for low in range(4) for high in range(low, 4)}
    del expected[0, 3]
    assert set(counts) == set(expected)
    for pair, chance in expected.items():
        # Five standard errors of a share among 20,000.
        error = 5 * np.sqrt(chance * (1 - chance) / 20_000)
        assert counts[pair] / 20_000 == pytest.approx(chance, abs=error)


def test_thresholds_lie_among_the_places_of_the_real_rows(tables):
    for query in threshold_queries(DOMAIN, tables[0], num_queries=100):
        assert np.linalg.norm(query.direction) == pytest.approx(1)
        at = [places(row) for row in tables[0].tolist()]
        terms = list(zip(query.attributes, query.direction, strict=True))
        projected = [sum(theta * place[name] for name, theta in terms) for place in at]
        assert min(projected) <= query.threshold <= max(projected)


def test_queries_of_no_row_are_refused_or_infinite_and_few_attributes_make_short_ones(tables):
    constant = np.zeros((50, 4), dtype=int)
    with pytest.raises(NoQueriesError, match="Not enough counting queries hold 5% to 95%"):
        average(counting_errors(DOMAIN, constant, constant, num_queries=5))
    assert average(threshold_errors(DOMAIN, constant, constant)) == 0
    assert average(threshold_errors(DOMAIN, constant, tables[1])) == np.inf
    domain = Domain(("a", "b"), (6, 5))
    real = np.random.default_rng(0).integers(0, domain.sizes, (80, 2))
    for draw in (counting_queries, threshold_queries):
        (query,) = draw(domain, real, num_queries=1)
        assert sorted(query.attributes) == ["a", "b"]
    interval = IntervalQuery(attributes=("a", "b"), lows=(1, 0), highs=(3, 0.5))
    assert str(interval) == "a in [1, 3] and b in [0, 0.5]"
    query = ThresholdQuery(attributes=("a", "c"), sizes=(4, 7), direction=(0.6, -0.8), threshold=0)
    assert str(query) == "+0.6 a -0.8 c > 0"


def test_categorical_marginals_are_counted_cell_by_cell(tables):
    real, synthetic = tables
    errors = []
    for pair in [(0, 1), (0, 2), (1, 2)]:
        for cell in np.ndindex(DOMAIN.sizes[pair[0]], DOMAIN.sizes[pair[1]], DOMAIN.sizes[3]):
            ours, theirs = (
                sum(tuple(row[[*pair, 3]]) == cell for row in table) / len(table)
                for table in (real, synthetic)
            )
            errors.append(abs(ours - theirs))
    found = categorical_marginal_errors(
        DOMAIN, real, synthetic, features=["a", "b", "c"], labels=["y"]
    )
    assert found == pytest.approx((np.mean(errors), np.max(errors)), rel=1e-12)


def test_mixed_marginals_are_averages_over_all_thresholds(tables):
    """Their expectation: every prefix of codes weighted by the chance of its threshold."""
    real, synthetic = tables
    expected = []
    for pair in [(0, 1), (0, 2), (1, 2)]:
        sizes = [DOMAIN.sizes[axis] for axis in pair]
        for value in range(2):
            for below in np.ndindex(sizes[0] + 1, sizes[1] + 1):
                # τ is in [0, 1/2k) for no code, 1/k wide for each code and 1/2k for all of them.
                sides = zip(below, sizes, strict=True)
                chance = np.prod([(0.5 if end in (0, size) else 1) / size for end, size in sides])
                ours, theirs = (
                    np.mean((table[:, pair] < below).all(axis=1) & (table[:, 3] == value))
                    for table in (real, synthetic)
                )
                expected.append((chance, abs(ours - theirs)))
    chances, errors = np.array(expected).T
    assert chances.sum() == pytest.approx(6)
    mean = chances @ errors / 6
    deviation = np.sqrt(chances @ errors**2 / 6 - mean**2)
    found = mixed_marginal_errors(
        DOMAIN, real, synthetic, features=["a", "b", "c"], labels=["y"], num_queries=40_000
    )
    assert found.mean == pytest.approx(mean, abs=5 * deviation / np.sqrt(40_000))
    assert found.max == pytest.approx(errors.max(), rel=1e-12)  # the likeliest is drawn for sure


def test_linear_thresholds_are_counted_row_by_row(tables):
    features, labels = ["a", "c"], ["b", "y"]
    many = (np.tile(table, (600, 1)) for table in tables)  # several blocks, of the same shares
    found = linear_threshold_errors(
        DOMAIN, *many, features=features, labels=labels, num_queries=50, seed=9
    )
    generator = np.random.default_rng(9)  # drawn in the order of the definition
    directions = generator.standard_normal((50, 2)) / np.sqrt(2)
    thresholds = generator.standard_normal(50)
    label_of = generator.integers(0, 2, size=50)
    value_of = generator.integers(0, np.array([3, 2])[label_of])
    errors = []
    for theta, tau, number, value in zip(directions, thresholds, label_of, value_of, strict=True):
        answers = [
            np.mean(
                [
                    theta[0] * places(row)["a"] + theta[1] * places(row)["c"] <= tau
                    and row[DOMAIN.axes([labels[number]])[0]] == value
                    for row in table.tolist()
                ]
            )
            for table in tables
        ]
        errors.append(abs(answers[0] - answers[1]))
    assert found == pytest.approx((np.mean(errors), np.max(errors)), rel=1e-12)


CONDITIONAL = [categorical_marginal_errors, mixed_marginal_errors, linear_threshold_errors]


@pytest.mark.parametrize("errors", CONDITIONAL)
def test_conditional_errors_are_symmetric_and_zero_for_the_same_rows(errors, tables):
    real, synthetic = tables
    asked = {"features": ["a", "b"], "labels": ["y"]}
    shuffled = np.random.default_rng(1).permutation(real)
    assert errors(DOMAIN, real, shuffled, **asked) == (0, 0)
    found = errors(DOMAIN, real, synthetic, **asked)
    assert 0 < found.mean < found.max
    assert errors(DOMAIN, synthetic, real, **asked) == pytest.approx(found, rel=1e-12)
    for features, labels in ((["a"], ["y"]), (["a", "b"], []), (["a", "y"], ["y"])):
        with pytest.raises(ValueError, match="at least two features and a label"):
            errors(DOMAIN, *tables, features=features, labels=labels)
