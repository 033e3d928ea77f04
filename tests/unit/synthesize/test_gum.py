"""GUM changes as many rows as its law says, and reaches tables that rows can have."""

import numpy as np
import pytest
from answers import noisy_answers, number_of_rows

from sdv_privpgd.base.domain import Domain
from sdv_privpgd.synthesize.gum import (
    GUM,
    _CliqueTarget,
    _taken,
    changes,
    independent_codes,
    rounded_at_random,
)

DOMAIN = Domain(("a", "b", "c"), (2, 3, 4))


def by_bisection(held, target, alpha):
    """Gains and losses cell by cell, as Zhang et al. describe them; beta is found by halving."""
    gains = []
    for own, goal in zip(held, target, strict=True):
        if own == 0:
            gains.append(alpha * goal)
        elif goal > own:
            gains.append(min((goal - own) / own, alpha) * own)
        else:
            gains.append(0.0)

    def lost(beta):
        over = zip(held, target, strict=True)
        return [min((own - goal) / own, beta) * own if own > goal else 0.0 for own, goal in over]

    low, high = 0.0, 1.0
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if sum(lost(middle)) < sum(gains) else (low, middle)
    return gains, lost(high)


def random_cells(rng):
    number, size = rng.integers(1, 400), rng.integers(2, 12)
    held = rng.multinomial(number, rng.dirichlet(np.full(size, 0.3)))
    return held, number * rng.dirichlet(np.full(size, 0.3))


def test_gains_and_losses_are_those_of_the_rule_and_of_a_hand_computed_step():
    rng = np.random.default_rng(0)
    for _ in range(300):
        held, target = random_cells(rng)
        alpha = rng.random()
        gains, losses = changes(held, target, alpha)
        expected = by_bisection(held, target, alpha)
        np.testing.assert_allclose(gains, expected[0], atol=1e-9)
        np.testing.assert_allclose(losses, expected[1], atol=1e-7)
        assert losses.sum() == pytest.approx(gains.sum(), abs=1e-7)
    gains, losses = changes(np.array([20, 0, 60, 20]), np.array([50.0, 10.0, 40.0, 0.0]), 0.5)
    assert gains.tolist() == [10.0, 5.0, 0.0, 0.0]
    # 15 rows leave at rate beta: min(20, 60 beta) + min(20, 20 beta) = 15 at beta = 3/16.
    np.testing.assert_allclose(losses, [0.0, 0.0, 11.25, 3.75])


def test_rounding_keeps_the_sum_and_moves_no_number_by_one():
    rng = np.random.default_rng(1)
    mean = np.zeros(4)
    numbers = np.array([0.3, 0.0, 1.25, 1.45])
    for _ in range(2_000):
        rounded = rounded_at_random(numbers, 3, rng)
        assert rounded.sum() == 3
        assert (np.abs(rounded - numbers) < 1).all()
        mean += rounded / 2_000
    # 4.5 standard errors: a share is off by less than sqrt(1/4 / 2000) = 0.011 each.
    np.testing.assert_allclose(mean, numbers, atol=0.05)
    assert rounded_at_random(np.zeros(3), 0, rng).tolist() == [0, 0, 0]


def test_rows_are_taken_once_and_from_their_cell():
    rng = np.random.default_rng(2)
    cells = rng.integers(0, 5, 200)
    held = np.bincount(cells, minlength=5)
    wanted = np.array([held[0], 3, 0, 7, 1])
    order = np.argsort(cells, kind="stable")
    rows = _taken(order, held, wanted, rng.random(5))
    assert len(set(rows.tolist())) == wanted.sum()
    np.testing.assert_array_equal(np.bincount(cells[rows], minlength=5), wanted)


def test_an_update_brings_its_table_nearer_and_touches_lost_rows_alone():
    rng = np.random.default_rng(3)
    one_way = {name: np.ones(size) for name, size in zip("abc", DOMAIN.sizes, strict=True)}
    codes = independent_codes(DOMAIN, one_way, 1_200, rng)
    target = np.array([[300.0, 0.0, 350.0], [50.0, 400.0, 100.0]])
    table = _CliqueTarget(DOMAIN.axes(("a", "b")), target.shape, target.ravel())
    before = codes.copy()
    table.update(codes, 0.4, rng)
    assert codes.shape == before.shape
    assert table.error(codes) < table.error(before)
    changed = (codes != before).any(axis=0)
    held = np.bincount(table.cells(before), minlength=6)
    assert set(table.cells(before)[changed]) <= set(np.flatnonzero(held > target.ravel()))
    assert set(table.cells(codes)[changed]) <= set(np.flatnonzero(held < target.ravel()))
    # Half are copies, in which the attribute without a table is another one in three of four.
    assert abs((codes != before)[2, changed].mean() - 3 / 8) < 0.15


def test_tables_are_reached_and_cells_that_no_row_can_be_in_stay_almost_empty():
    target = np.array([[300, 5, 350], [0, 400, 45]])
    engine = GUM(num_rows=1_100, sweeps=20)
    model = engine.fit(DOMAIN, [number_of_rows(1_100), *noisy_answers({("a", "b"): target}, 0.1)])
    # To within a row a cell: what is left to do is rounded at random.
    np.testing.assert_allclose(1_100 * model.marginal(("a", "b")), target, atol=1.5)
    possible = {("a", "b"): np.array([[True, True, False], [True, True, True]])}
    rng = np.random.default_rng(4)
    a = rng.integers(0, 2, 6_000)
    b = np.where(rng.random(6_000) < 0.7, a, rng.integers(0, 3, 6_000))
    counts = np.bincount(3 * a + b, minlength=6).reshape(2, 3)
    answers = [number_of_rows(6_000), *noisy_answers({("a", "b"): counts}, 40.0, 0)]
    free = GUM(num_rows=3_000).fit(DOMAIN, answers).marginal(("a", "b"))[0, 2]
    bound = GUM(num_rows=3_000, possible=possible).fit(DOMAIN, answers).marginal(("a", "b"))[0, 2]
    assert bound < 0.002 < free
    model = GUM(num_rows=120).fit(DOMAIN, [number_of_rows(100)])
    np.testing.assert_allclose(model.marginal(("c",)), 0.25)
