"""Targets over groups: they keep the pairs' marginals and what of the rest is signal."""

import numpy as np
import pytest
from answers import answered, margin, noisy_answers, number_of_rows

from sdv_privpgd.base.domain import Domain, Grouping
from sdv_privpgd.estimate.consistency import consistent_tables
from sdv_privpgd.estimate.denoising import denoised
from sdv_privpgd.estimate.interactions import grouped_targets
from sdv_privpgd.estimate.noisy_tables import estimate_total

DOMAIN = Domain(("a", "b", "c"), (8, 6, 4))
GROUPING = Grouping(("a", "b", "c"), ((0, 0, 0, 1, 1, 2, 2, 2), (0, 0, 1, 1, 2, 2), (0, 1, 1, 2)))
ROWS = 50_000
PAIRS = DOMAIN.cliques(2)
TRIPLE = ("a", "b", "c")


def joint(seed=0, *, interaction=0.5):
    rng = np.random.default_rng(seed)
    a, b, c = (rng.normal(size=(size, 3)) for size in DOMAIN.sizes)
    score = np.einsum("i,j->ij", a[:, 0], b[:, 0])[:, :, None]
    score = score + np.einsum("i,k->ik", a[:, 1], c[:, 1])[:, None, :]
    score = score + interaction * np.einsum("i,j,k->ijk", a[:, 2], b[:, 2], c[:, 2])
    table = np.exp(0.5 * score)
    return ROWS * table / table.sum()


def measured(table, stddev, *, coarse=0.0, seed=1, cliques=PAIRS):
    rng = np.random.default_rng(seed)
    tables = {clique: margin(table, DOMAIN, clique) for clique in cliques}
    found = [number_of_rows(ROWS), *noisy_answers(tables, stddev, rng)]
    exact = GROUPING.sums(table, TRIPLE)
    noisy = exact + coarse * rng.normal(size=exact.shape)
    return [*found, answered(TRIPLE, noisy, coarse, GROUPING)]


def target(measurements):
    tables = denoised(consistent_tables(DOMAIN, measurements))
    pairs = {clique: table / tables.total for clique, table in tables.tables.items()}
    return tables, grouped_targets(tables, pairs)[GROUPING][TRIPLE].values


def test_targets_have_the_marginals_of_pairs_and_interactions_without_noise():
    tables, found = target(measured(joint(), 5.0, coarse=20.0))
    assert found.sum() == pytest.approx(1)
    for place, pair in ((2, ("a", "b")), (1, ("a", "c")), (0, ("b", "c"))):
        expected = GROUPING.sums(tables.tables[pair], pair) / ROWS
        np.testing.assert_allclose(found.sum(axis=place), expected, atol=2e-5)
    table = joint()
    _, found = target(measured(table, 1.0, coarse=1.0))
    np.testing.assert_allclose(found, GROUPING.sums(table, TRIPLE) / ROWS, atol=2e-4)
    _, found = target(measured(table, 1.0, coarse=1.0, cliques=DOMAIN.cliques(1)))
    np.testing.assert_allclose(found, GROUPING.sums(table, TRIPLE) / ROWS, atol=3e-4)
    for coarse, weight in ((50.0, 0.01), (1.0, 1.0), (0.0, 1.0)):
        tables = consistent_tables(DOMAIN, measured(joint(), 5.0, coarse=coarse))
        found = grouped_targets(tables, {})[GROUPING][TRIPLE]
        assert found.weight == pytest.approx(weight)


def test_where_all_is_noise_nothing_of_it_is_kept():
    """Without an interaction the table of largest entropy is true, and noise only harms."""
    table = joint(interaction=0.0)
    exact = GROUPING.sums(table, TRIPLE) / ROWS
    before = after = 0.0
    for seed in range(20):
        measurements = measured(table, 1.0, coarse=300.0, seed=seed)
        _, found = target(measurements)
        after += ((found - exact) ** 2).sum()
        before += ((measurements[-1].answer / ROWS - exact) ** 2).sum()
    assert after < 0.2 * before


def test_sums_over_groups_sharpen_one_way_and_pair_tables():
    """Cells of a triple that are hardly noisy: what they say of the pairs' sums is all but true."""
    table = joint()
    pair = ("a", "b")
    exact = GROUPING.sums(table.sum(axis=2), pair)
    errors = {}
    for coarse in (1.0, None):
        measurements = measured(table, 60.0, coarse=coarse or 1.0)
        measurements = measurements if coarse else measurements[:-1]
        tables = denoised(consistent_tables(DOMAIN, measurements))
        errors[coarse] = (
            np.abs(GROUPING.sums(tables.tables[pair], pair) - exact).max(),
            np.abs(GROUPING.sums(tables.one_way["a"], ("a",)) - exact.sum(axis=1)).max(),
        )
    assert max(errors[1.0]) < 25
    assert min(errors[None]) > 3 * max(errors[1.0])


def test_groups_tell_of_the_total_and_are_no_error_where_they_tell_nothing():
    table = joint()
    table[:3] = 0
    table *= ROWS / table.sum()
    _, found = target(measured(table, 5.0, coarse=0.0))
    np.testing.assert_allclose(found, GROUPING.sums(table, TRIPLE) / ROWS, atol=1e-3)
    assert np.abs(found[0]).max() < 1e-12
    table = joint()
    only = measured(table, 5.0, coarse=0.0, cliques=())
    tables = consistent_tables(DOMAIN, only)
    exact = GROUPING.sums(table.sum(axis=(1, 2)), ("a",))
    np.testing.assert_allclose(
        tables.one_way["a"], (exact / np.bincount(GROUPING["a"]))[GROUPING["a"]], atol=2
    )
    count = number_of_rows(ROWS + 900, 300.0)
    (*_, triple) = measured(joint(), 5.0, coarse=1.0)
    total = estimate_total(DOMAIN, [count, triple])
    assert abs(total.value - ROWS) < 60
    assert total.stddev < 7
