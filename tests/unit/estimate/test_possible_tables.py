"""Tables that rows can have: no negative cell, one total, and nearly one set of marginals."""

from itertools import combinations

import numpy as np
import pytest
from answers import margin, noisy_answers, number_of_rows

from sdv_privpgd.base.domain import Domain
from sdv_privpgd.estimate.consistency import consistent_tables, possible_tables

DOMAIN = Domain(("a", "b", "c", "d"), (2, 5, 6, 4))


def noisy(cliques, stddev, seed=0):
    weights = np.random.default_rng(seed).gamma(0.2, size=DOMAIN.sizes)
    counts = np.rint(5_000 * weights / weights.sum())
    tables = {clique: margin(counts, DOMAIN, clique) for clique in cliques}
    measured = [number_of_rows(int(counts.sum())), *noisy_answers(tables, stddev, seed)]
    return counts, consistent_tables(DOMAIN, measured)


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


def test_tables_that_rows_have_already_stay():
    _, agreed = noisy(DOMAIN.cliques(2), 0.0)
    for clique, table in possible_tables(agreed, {}).items():
        np.testing.assert_allclose(table, agreed.tables[clique], atol=1e-6)


def test_they_are_nearer_to_the_truth_than_with_negative_cells_cut_off():
    counts, agreed = noisy(DOMAIN.cliques(2), 30.0)
    found = possible_tables(agreed, {})

    def error(table, clique):
        table = np.maximum(table, 0)
        return np.abs(table * counts.sum() / table.sum() - margin(counts, DOMAIN, clique)).sum()

    ours = sum(error(found[clique], clique) for clique in found)
    assert ours < sum(error(agreed.tables[clique], clique) for clique in found)


def test_impossible_cells_are_empty():
    allowed = np.ones((2, 5), dtype=bool)
    allowed[0, :3] = False
    _, agreed = noisy(DOMAIN.cliques(2), 20.0)
    found = possible_tables(agreed, {("a", "b"): allowed})
    assert found["a", "b"][~allowed].sum() == 0
    assert found["a", "b"].sum() == pytest.approx(agreed.total)
