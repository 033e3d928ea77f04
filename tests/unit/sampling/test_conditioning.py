"""Rows under conditions: fitting ones by turns, and few ones helped out by moved ones."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sdv_privpgd.base.domain import Domain
from sdv_privpgd.sampling.conditioning import ConditionalRows
from sdv_privpgd.synthesize.particles.particles import Particles

SIZES = (2, 3, 300)
DOMAIN = Domain(("a", "b", "c"), SIZES)
ORDERED = {"a": 0, "b": 3, "c": 299}

records = st.lists(st.tuples(*(st.integers(0, size - 1) for size in SIZES)), min_size=1, max_size=9)


def rows_of(codes, domain=DOMAIN, ordered=ORDERED) -> ConditionalRows:
    return ConditionalRows(Particles(domain=domain, codes=np.array(codes)), 0, ordered)


def one(size: int, code: int) -> np.ndarray:
    return (np.arange(size) == code).astype(float)


def codes_of(rows: ConditionalRows) -> np.ndarray:
    return np.stack(list(rows._pool.values()), axis=1)


@given(records, records, st.integers(1, 20), st.integers(0, 99))
def test_every_row_fits_and_takes_the_rest_from_a_row_of_the_model(pool, wanted, number, seed):
    rows = rows_of(pool)
    for record in wanted:
        wish = {"c": one(300, record[2]), "a": one(2, record[0])}
        drawn = rows.draw(wish, number, np.random.default_rng(seed))
        assert drawn.shape == (number, 3)
        assert (drawn[:, [0, 2]] == [record[0], record[2]]).all()
        assert set(drawn[:, 1]) <= {row[1] for row in pool}


@given(records, st.integers(0, 299), st.integers(0, 299), st.integers(0, 99))
def test_codes_of_a_range_are_kept_and_others_moved_into_it(pool, first, last, seed):
    first, last = min(first, last), max(first, last)
    fit = np.zeros(300)
    fit[first : last + 1] = np.linspace(0.1, 1, last + 1 - first)
    drawn = rows_of(pool).draw({"c": fit}, 30, np.random.default_rng(seed))
    assert (fit[drawn[:, 2]] > 0).all()
    whole = {row for row in pool if fit[row[2]] > 0}
    if whole:  # moved rows take codes that the model has
        assert set(drawn[:, 2]) <= {row[2] for row in whole}


def many(num_rows: int, chance: float, seed: int = 0) -> np.ndarray:
    """The first attribute is 1 with a chance; the second one is the first in 9 of 10 rows."""
    rng = np.random.default_rng(seed)
    first = rng.random(num_rows) < chance
    second = np.where(rng.random(num_rows) < 0.9, first, ~first)
    return np.stack([first, second, rng.integers(0, 300, num_rows)], axis=1).astype(int)


@pytest.mark.parametrize("times", [1, 2, 3])
def test_many_fitting_rows_are_used_by_turns(times):
    rows = rows_of(many(4_000, 0.5))
    codes = codes_of(rows)
    fitting = codes[codes[:, 0] == 1]
    number = len(fitting) * times
    drawn = rows.draw({"a": one(2, 1)}, number, np.random.default_rng(0))
    assert sorted(map(tuple, drawn)) == sorted(list(map(tuple, fitting)) * times)
    assert not (drawn == np.concatenate([fitting] * times)).all(), "in random order"


def test_rows_weigh_what_their_cells_share_of_a_range_says():
    rows = rows_of(many(9_000, 0.5))
    fit = one(300, 7) + 0.25 * one(300, 8) + one(300, 9)
    fit[10:] = 1
    indices, weights = rows.weights({"c": fit})
    codes = codes_of(rows)[indices, 2]
    assert sorted(indices) == np.flatnonzero(fit[codes_of(rows)[:, 2]]).tolist()
    assert (weights == np.where(codes == 8, 0.25, 1.0)).all()


def test_moved_rows_together_weigh_as_much_as_a_hundred_fitting_ones():
    rows = rows_of(many(4_000, 0.05))
    fits = np.flatnonzero(codes_of(rows)[:, 0] == 1)
    indices, weights = rows.weights({"a": one(2, 1), "c": np.ones(300)})
    assert set(indices[-len(fits) :]) == set(fits)
    assert (weights[-len(fits) :] == 1).all()
    assert weights[: -len(fits)].sum() == pytest.approx(100)


def test_the_nearest_rows_are_moved_and_those_as_near_as_the_last():
    """400 rows lack one wished code, 3,600 lack two; nothing else tells them apart."""
    pool = np.zeros((4_000, 3), dtype=int)
    pool[:400, 0] = 1
    rows = rows_of(pool)
    indices, weights = rows.weights({"a": one(2, 1), "b": one(3, 2)})
    assert (codes_of(rows)[indices, 0] == 1).all()
    assert len(indices) == 400
    assert np.ptp(weights) == 0


def test_without_a_fitting_row_the_others_follow_near_ones():
    """Wanted: a = b = 1, which no row has. c follows each of them alone in half of the rows."""
    rng = np.random.default_rng(0)
    a, b = rng.integers(0, 2, (2, 8_000))
    b[a == 1] = 0
    c = np.where((a == 1) | (b == 1), 3, rng.integers(0, 4, 8_000))
    domain = Domain(("a", "b", "c"), (2, 2, 4))
    rows = rows_of(np.stack([a, b, c], axis=1), domain, dict.fromkeys("abc", 0))
    drawn = rows.draw({"a": one(2, 1), "b": one(2, 1)}, 4_000, np.random.default_rng(0))
    assert (drawn[:, :2] == 1).all()
    assert (drawn[:, 2] == 3).mean() > 0.95 > np.mean(c == 3)


def test_nearer_rows_weigh_more_and_missing_is_near_to_nothing():
    """All else being equal: codes of b in order, the last of c means missing."""
    pool = [(0, 0, code) for code in (10, 11, 200, 299)]
    rows = rows_of(pool)
    _, weights = rows.weights({"c": one(300, 9)})
    by_code = dict(zip(codes_of(rows)[:, 2].tolist(), weights, strict=True))
    expected = {code: np.exp(-(code - 9) / 300) for code in (10, 11, 200)} | {299: np.exp(-1)}
    for code, weight in by_code.items():
        assert weight / by_code[10] == pytest.approx(expected[code] / expected[10], rel=1e-5)


def test_wishes_on_all_attributes_come_back():
    wish = {name: one(size, size - 1) for name, size in zip("abc", SIZES, strict=True)}
    drawn = rows_of([(0, 0, 0)]).draw(wish, 3, np.random.default_rng(0))
    assert drawn.tolist() == [[1, 2, 299]] * 3


def test_the_same_generator_gives_the_same_rows():
    rows = rows_of(many(500, 0.1))
    first, second, other = (
        rows.draw({"a": one(2, 1)}, 50, np.random.default_rng(seed)) for seed in (0, 0, 1)
    )
    assert (first == second).all()
    assert not (first == other).all()
