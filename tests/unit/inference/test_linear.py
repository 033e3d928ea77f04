"""The linear estimate is generalized least squares, to the last digits: estimate and covariance."""

from itertools import combinations

import numpy as np
import pytest
from scipy.stats import norm

from sdv_privpgd.base.domain import Domain, Grouping
from sdv_privpgd.estimate.noisy_tables import rounded_variance
from sdv_privpgd.inference.linear import LinearEstimate
from sdv_privpgd.privacy.queries import CountQuery, GroupedMarginalQuery, MarginalQuery, Measurement

DOMAIN = Domain(("a", "b", "c", "d"), (3, 5, 4, 2))
GROUPS = {"a": [0, 0, 1], "b": [0, 1, 1, 1, 2], "c": [0, 1, 1, 0], "d": [0, 1]}
GROUPING = Grouping.of({name: np.array(groups) for name, groups in GROUPS.items()})
OTHER = Grouping.of({name: np.zeros(size, dtype=int) for name, size in
                     zip(DOMAIN.attributes, DOMAIN.sizes, strict=True)})  # fmt: skip
CELLS = np.array(list(np.ndindex(DOMAIN.sizes)))

SINGLE = [(MarginalQuery(("b",)), 3.0)]
PAIRS = [(MarginalQuery(pair), 2.5) for pair in combinations("abcd", 2)]
AGAIN = [(MarginalQuery(pair[::-1]), 1.5) for pair in list(combinations("abcd", 2))[::2]]
IN_GROUPS = [(GroupedMarginalQuery(three, GROUPING), 1.9) for three in combinations("abcd", 3)]
UNLIKE = {
    clique: Grouping.of({name: np.array(groups) for name, groups in zip(clique, own, strict=True)})
    for clique, own in {
        ("a", "b"): ([0, 1, 0], [0, 0, 1, 2, 0]),
        ("c",): ([0, 1, 0, 2],),
        ("b", "c", "d"): ([1, 1, 0, 1, 1], [0, 0, 1, 1], [1, 0]),
    }.items()
}  # fmt: skip
LISTED = [(GroupedMarginalQuery(clique, own), 1.1) for clique, own in UNLIKE.items()]
DESIGNS = {
    "listed": [*SINGLE, *PAIRS, *IN_GROUPS, *LISTED],
    "listed beside a tree": [*SINGLE, *PAIRS[:3], *LISTED],
    "listed beside groups": [*IN_GROUPS, *LISTED],
    "all pairs": PAIRS,
    "two rounds and single columns": [*SINGLE, *PAIRS, *AGAIN],
    "a tree": [*SINGLE, *PAIRS[:3]],
    "groups": [*SINGLE, *PAIRS, *AGAIN, *IN_GROUPS],
    "groups alone": IN_GROUPS,
    "one of three": [*SINGLE, (MarginalQuery(("a", "c", "d")), 2.0), *PAIRS[2:4]],
}
COUNTS = {"public": [(CountQuery(), 0.0)], "noisy": [(CountQuery(), 2.0)], "unknown": []}


def design_matrix(query):
    """The query as a matrix that maps the full table's counts to the answer."""
    if isinstance(query, CountQuery):
        return np.ones((1, len(CELLS)))
    columns = [CELLS[:, axis] for axis in DOMAIN.axes(query.clique)]
    if isinstance(query, GroupedMarginalQuery):
        columns = [
            query.grouping[name][own] for name, own in zip(query.clique, columns, strict=True)
        ]
    places = np.ravel_multi_index(columns, query.shape(DOMAIN))
    return (np.arange(np.prod(query.shape(DOMAIN)))[:, None] == places).astype(float)


def measured(design, rng):
    truth = rng.integers(0, 50, len(CELLS))
    found = []
    for query, stddev in design:
        answer = (design_matrix(query) @ truth).reshape(query.shape(DOMAIN))
        answer = np.rint(answer + stddev * rng.standard_normal(answer.shape)).astype(np.int64)
        found.append(Measurement(query=query, answer=answer, stddev=stddev))
    return found


def dense(measurements):
    """Generalized least squares by brute force: counts of all cells, and their covariance.

    What is exact is met exactly: the rest is fitted in the space that it leaves. The third value
    projects functionals of the counts on what was asked.
    """
    noisy = [each for each in measurements if each.stddev]
    scales = [np.sqrt(each.stddev**2 + 1 / 12) for each in noisy]
    matrix = np.vstack([design_matrix(n.query) / s for n, s in zip(noisy, scales, strict=True)])
    answers = np.concatenate([n.answer.ravel() / s for n, s in zip(noisy, scales, strict=True)])
    exact = [each for each in measurements if not each.stddev]
    start, space, asked = np.zeros(len(CELLS)), np.eye(len(CELLS)), matrix
    if exact:
        start += exact[0].answer[0] / len(CELLS)
        space = np.linalg.svd(np.ones((1, len(CELLS))))[2][1:].T
        asked = np.vstack([matrix, np.ones(len(CELLS))])
    inner = matrix @ space
    covariance = np.linalg.pinv(inner.T @ inner, rcond=1e-11)
    found = start + space @ covariance @ inner.T @ (answers - matrix @ start)
    return found, space @ covariance @ space.T, np.linalg.pinv(asked) @ asked


def products(rng):
    """Functions of up to three attributes: of all codes, of two, and of whole groups."""
    found = [{}]
    for _ in range(40):
        names = rng.choice(DOMAIN.attributes, rng.integers(1, 4), replace=False)
        found.append({name: rng.random(*DOMAIN.shape((name,))) for name in names})
        found.append({name: (own > 0.5).astype(float) for name, own in found[-1].items()})
        found.append({name: rng.random(3)[GROUPING[name]] for name in names})
        found.append({name: 1.0 * (GROUPING[name] == rng.integers(2)) for name in names})
    for clique, own in UNLIKE.items():
        found += [{name: rng.random(3)[own[name]] for name in clique} for _ in range(5)]
    return found


def functional(product):
    """A product of functions as weights of all cells."""
    weights = np.ones(len(CELLS))
    for name, function in product.items():
        weights *= function[CELLS[:, DOMAIN.axes((name,))[0]]]
    return weights


@pytest.mark.parametrize("count", COUNTS)
@pytest.mark.parametrize("design", DESIGNS)
def test_it_is_generalized_least_squares(design, count):
    rng = np.random.default_rng(sorted(DESIGNS).index(design))
    measurements = measured([*COUNTS[count], *DESIGNS[design]], rng)
    expected, covariance, asked = dense(measurements)
    asked_for = products(rng)
    weights = np.array([functional(product) for product in asked_for])
    found = LinearEstimate(DOMAIN, measurements).answers(asked_for)
    lengths = np.linalg.norm(weights, axis=1)
    known = np.linalg.norm(weights - weights @ asked, axis=1) <= 1e-6 * lengths
    assert known.any()
    assert not known.all()
    np.testing.assert_array_equal(found.known, known)
    np.testing.assert_allclose(found.values[known], (weights @ expected)[known], rtol=1e-9)
    both = np.ix_(known, known)
    ours, theirs = found.covariance[both], (weights @ covariance @ weights.T)[both]
    np.testing.assert_allclose(ours, theirs, rtol=1e-9, atol=1e-9 * theirs.max())


@pytest.mark.parametrize("count", COUNTS)
@pytest.mark.parametrize("design", DESIGNS)
def test_tables_are_the_cells_answers(design, count):
    rng = np.random.default_rng(1)
    measurements = measured([*COUNTS[count], *DESIGNS[design]], rng)
    estimate = LinearEstimate(DOMAIN, measurements)
    expected, covariance, _ = dense(measurements)
    for clique in (("b",), ("a", "b"), ("c", "d"), ("a", "c", "d")):
        table = estimate.table(clique)
        is_held = any(
            isinstance(each.query, MarginalQuery) and set(clique) <= set(each.query.clique)
            for each in measurements
        )
        assert (table is not None) == is_held
        if table is not None:
            cells = design_matrix(MarginalQuery(clique))
            np.testing.assert_allclose(table[0].ravel(), cells @ expected, rtol=1e-9, atol=1e-8)
            variances = np.diagonal(cells @ covariance @ cells.T)
            np.testing.assert_allclose(table[1].ravel(), variances, rtol=1e-9)


def test_a_table_over_one_group_changes_nothing_and_what_does_not_fit_is_no_answer():
    rng = np.random.default_rng(3)
    later = [(GroupedMarginalQuery(("a", "b"), OTHER), 50.0)]
    measurements = measured([*COUNTS["public"], *PAIRS, *IN_GROUPS, *later], rng)
    weights = {"a": np.array([1.0, 1.0, 0.0])}
    with_them = LinearEstimate(DOMAIN, measurements).answers([weights])
    without = LinearEstimate(DOMAIN, measurements[:-1]).answers([weights])
    assert with_them.values == without.values
    assert not LinearEstimate(DOMAIN, []).answers([{}, {"a": np.ones(3)}]).known.any()
    only_rows = measured(COUNTS["public"], np.random.default_rng(0))
    found = LinearEstimate(DOMAIN, only_rows).answers([{}, {"a": np.eye(3)[0]}])
    assert found.known.tolist() == [True, False]
    estimate = LinearEstimate(DOMAIN, measured(PAIRS, np.random.default_rng(0)))
    with pytest.raises(ValueError, match="'b' needs a number for each of its 5 codes"):
        estimate.answers([{"b": np.ones(3)}])
    with pytest.raises(ValueError, match="'z'"):
        estimate.answers([{"z": np.ones(3)}])


@pytest.mark.parametrize("stddev", [0.2, 0.3, 0.5, 1.0, 3.0])
def test_the_variance_of_rounded_noise_is_that_of_its_law(stddev):
    whole = np.arange(-60, 61)
    law = np.diff(norm.cdf(np.append(whole, 61) - 0.5, scale=stddev))
    assert rounded_variance(stddev) == pytest.approx((law * whole**2).sum(), rel=1e-9)


def interval_coverage(signal, threshold, level):
    """Of the average of two rounds, the second only where the first is above a threshold."""
    first = np.linspace(-9, 9, 4_001)  # the first round's error; its variance is 1
    chance = norm.pdf(first) * (first[1] - first[0])
    half = 1.96 / np.sqrt(1 + level)
    inside = [((1 + level) * side * half - first) / np.sqrt(level) for side in (-1, 1)]
    again = norm.cdf(inside[1]) - norm.cdf(inside[0])
    once = np.abs(first) <= 1.96
    return (chance * np.where(np.abs(signal + first) > threshold, again, once)).sum()


@pytest.mark.parametrize("level", [1, 4, 2_048])
def test_a_second_round_costs_little_coverage_at_worst(level):
    """Of a single interaction at every distance from every threshold; see ``linear``."""
    found = [
        interval_coverage(signal, threshold, level)
        for threshold in np.arange(0, 6, 0.2)
        for signal in np.arange(0, 8, 0.2)
    ]
    assert 0.926 < min(found) < 0.94
    assert max(found) < 0.997
    # On average over all signals an interval covers as often as it says.
    everywhere = [interval_coverage(signal, 2.0, level) for signal in np.arange(-12, 12, 0.05)]
    beyond = np.mean(everywhere) - 0.95
    assert abs(beyond) < 2e-4
