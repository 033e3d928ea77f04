"""PrivSyn asks for the pairs that are worth their noise, with budgets that suit their sizes."""

import math
from fractions import Fraction
from itertools import combinations

import numpy as np
import pytest
from answers import open_curator
from selecting import HUGE, chain, cliques_of, dependence
from small_engine import MaximumEntropy, measured_by

from sdv_privpgd.base.domain import Domain
from sdv_privpgd.methods.privsyn import PrivSyn, combined, dense_pairs
from sdv_privpgd.privacy.dataset import Dataset
from sdv_privpgd.privacy.queries import Adjacency, DependenceQuery, MarginalQuery

ENGINE = MaximumEntropy()


@pytest.mark.parametrize("seed", range(20))
def test_each_choice_lowers_the_objective_most_and_the_last_can_not_be_lowered(seed):
    rng = np.random.default_rng(seed)
    domain = Domain(tuple("abcd"), tuple(rng.integers(2, 9, 4).tolist()))
    known = {pair: float(rng.normal(20, 30)) for pair in domain.cliques(2)}
    unit = float(rng.uniform(0.1, 3))
    found, chosen = dense_pairs(known, domain, unit), []

    def value(pairs):
        """The expected L1 error: dependence of what is left out, noise of what is measured."""
        held = sum(domain.size(pair) ** (2 / 3) for pair in pairs)
        return sum(own for pair, own in known.items() if pair not in pairs) + unit * held**1.5

    for pair in [*found, None]:
        others = {each: value([*chosen, each]) for each in known if each not in chosen}
        if pair is None:
            assert all(each >= value(chosen) for each in others.values())
        else:
            assert others[pair] == min(others.values()) < value(chosen)
            chosen.append(pair)


def test_with_much_budget_dependent_pairs_are_measured_and_dependences_are_exact():
    table = chain()
    curator = open_curator(table, epsilon=HUGE)
    measured = measured_by(PrivSyn(max_cells=0), curator, ENGINE)
    asked = [each for each in measured if isinstance(each.query, DependenceQuery)]
    assert [each.query.clique for each in asked] == list(table.domain.cliques(2))
    for each in asked:
        exact = dependence(table, each.query.clique)
        assert abs(each.answer[0] - exact) < 5 * each.stddev + 1
    pairs = {clique for clique in cliques_of(measured) if len(clique) == 2}
    assert {("a", "b"), ("b", "c"), ("c", "d"), ("b", "e")} <= pairs


def test_independent_attributes_keep_their_budget_and_small_cliques_are_tables():
    domain = Domain(tuple("abc"), (10, 11, 12))
    table = Dataset(domain, np.indices(domain.sizes).reshape(3, -1).T)
    curator = open_curator(table, epsilon=2.0)
    measured = measured_by(PrivSyn(), curator, ENGINE)
    assert cliques_of(measured) == [("a",), ("b",), ("c",)]
    shares = [charge.mu_squared / curator.ledger.budget for charge in curator.ledger.charges]
    assert shares == [Fraction(1, 10), Fraction(9, 10)]
    rng = np.random.default_rng(0)
    one = rng.integers(0, 3, 3_000)
    codes = np.stack([np.where(rng.random(3_000) < 0.9, one, 0) for _ in range(3)], axis=1)
    table = Dataset(Domain(tuple("abc"), (3, 3, 3)), codes)
    together = measured_by(PrivSyn(), open_curator(table, epsilon=5.0), ENGINE)
    assert cliques_of(together)[-1] == ("a", "b", "c")
    apart = measured_by(PrivSyn(max_cells=20), open_curator(table, epsilon=5.0), ENGINE)
    assert set(cliques_of(apart)[3:]) == set(table.domain.cliques(2))


@pytest.mark.parametrize("rows", [1, 3])
@pytest.mark.parametrize("adjacency", Adjacency)
def test_budgets_are_those_of_the_paper_and_noise_is_the_ledger_s(adjacency, rows):
    rng = np.random.default_rng(0)
    one = rng.integers(0, 12, 4_000)
    codes = np.stack([one, one // 2, rng.integers(0, 2, 4_000), one % 4], axis=1)
    table = Dataset(Domain(tuple("abcd"), (12, 6, 2, 4)), codes)
    curator = open_curator(table, epsilon=3.0, adjacency=adjacency, rows=rows)
    measured = measured_by(PrivSyn(max_cells=0), curator, ENGINE)
    budget = curator.ledger.budget
    asked, one_way, *pairs = curator.ledger.charges
    assert asked.mu_squared == one_way.mu_squared == budget / 10
    number = rows * math.sqrt(6) * {Adjacency.REPLACE_ONE: 6, Adjacency.ADD_REMOVE: 4}[adjacency]
    assert asked.stddev == pytest.approx(number / math.sqrt(budget / 10), rel=1e-6)
    held = {m.query.clique: m.stddev for m in measured if isinstance(m.query, MarginalQuery)}
    chosen = {clique: stddev for clique, stddev in held.items() if len(clique) == 2}
    assert len(chosen) > 1
    assert sum(charge.mu_squared for charge in pairs) == budget * 8 / 10
    # A table's budget goes with cells^(2/3), so its noise with cells^(-1/3).
    scale = [stddev * table.domain.size(clique) ** (1 / 3) for clique, stddev in chosen.items()]
    np.testing.assert_allclose(scale, scale[0], rtol=1e-2)


def test_pairs_of_important_attributes_are_chosen_sooner():
    asks = (PrivSyn(max_cells=0, importance=own) for own in ({}, {"e": 30.0}))
    curator = lambda: open_curator(chain(), epsilon=0.35)
    plain, weighed = (cliques_of(measured_by(each, curator(), ENGINE)) for each in asks)
    number = lambda found: sum("e" in clique for clique in found)
    assert number(weighed) > number(plain)


def by_enumeration(domain, pairs, max_cells):
    """All cliques, from the largest on; the first that may be taken is."""
    edges = {frozenset(pair) for pair in pairs}
    taken, used = [], set()
    for degree in range(len(domain), 2, -1):
        for clique in combinations(domain.attributes, degree):
            if (
                all(frozenset(pair) in edges for pair in combinations(clique, 2))
                and len(used & set(clique)) <= 2
                and domain.size(clique) <= max_cells
            ):
                taken.append(clique)
                used |= set(clique)
    covered = {frozenset(pair) for clique in taken for pair in combinations(clique, 2)}
    return taken, edges - covered


@pytest.mark.parametrize("seed", range(12))
def test_cliques_are_those_of_an_enumeration(seed):
    rng = np.random.default_rng(seed)
    domain = Domain(tuple("abcdefg"), tuple(rng.integers(2, 6, 7).tolist()))
    pairs = [pair for pair in domain.cliques(2) if rng.random() < 0.7]
    for max_cells in (0, 30, 100, 5_000):
        found = combined(domain, pairs, max_cells)
        taken, left = by_enumeration(domain, pairs, max_cells)
        assert [clique for clique in found if len(clique) > 2] == taken
        assert {frozenset(clique) for clique in found if len(clique) == 2} == left
