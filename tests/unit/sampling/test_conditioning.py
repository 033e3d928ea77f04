"""Rows under conditions: fitting ones by turns, and few ones helped out by moved ones."""

import datetime
from decimal import Decimal

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sdv_privpgd.base.domain import Domain
from sdv_privpgd.columns.bins import BELOW_ONE, Categories, Reals, Ticks
from sdv_privpgd.columns.parser import describe
from sdv_privpgd.sampling.conditions import Between, ConditionalRows, shares, span
from sdv_privpgd.synthesize.engine import Particles

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


whole = st.integers(-50, 150)
positions = st.one_of(st.just(0.0), st.just(BELOW_ONE), st.floats(0, 1, exclude_max=True))
ticks = st.builds(
    lambda first, count, bins, cuts: Ticks(
        first, first + count, bins, tuple(sorted({first + c for c in cuts if c <= count}))
    ),
    st.integers(-20, 20),
    st.integers(0, 100),
    st.integers(1, 12),
    st.sets(st.integers(1, 100), max_size=4),
)
intervals = st.builds(
    lambda low, width, bins: Reals(low, low + width, bins),
    st.floats(-1e3, 1e3),
    st.one_of(st.just(0.0), st.floats(1e-9, 1e3)),
    st.integers(1, 12),
)


@given(ticks, whole, whole, st.lists(positions, min_size=1, max_size=20))
def test_whole_numbers_of_a_range_are_counted_and_drawn_in_their_cells(cells, low, high, drawn):
    numbers = np.arange(cells.first, cells.last + 1)
    codes, _ = cells.locate(numbers)
    inside = (numbers >= low) & (numbers <= high)
    expected = [inside[codes == code].mean() for code in range(len(cells))]
    assert cells.shares(low, high) == pytest.approx(expected, abs=1e-12)
    for code in np.flatnonzero(expected):
        numbers = cells.between(np.full(len(drawn), code), np.array(drawn), low, high)
        assert ((numbers >= low) & (numbers <= high)).all()
        assert (cells.locate(numbers)[0] == code).all()


def test_values_of_a_part_are_as_likely_as_long_and_none_is_missing_or_other():
    cells = Ticks(0, 19, 2)  # 0 to 9, 10 to 19
    numbers = cells.between(np.zeros(60, dtype=np.int64), (np.arange(60) + 0.5) / 60, 7, 30)
    assert np.bincount(numbers).tolist() == [0] * 7 + [20] * 3
    cells = Reals(0.0, 4.0, 4)
    assert cells.shares(0.5, 2.25).tolist() == [0.5, 1, 0.25, 0]
    assert cells.shares(2.0, 2.0).tolist() == [0, 0, 1, 0]
    assert cells.shares(-9.0, np.inf).tolist() == [1, 1, 1, 1]
    assert not cells.shares(5.0, 7.0).any()
    assert not cells.shares(3.0, 1.0).any()
    assert Reals(2.0, 2.0, 4).shares(1.0, 3.0).tolist() == [1]
    cells = Categories(("low", "high", "other"), has_other=True)
    assert cells.shares(*cells.ends).tolist() == [1, 1, 0]
    assert shares(AGE, span(AGE, Between(0, 200))).tolist() == [1, 1, 1, 1, 0]
    not_nullable = column(range_min=0, range_max=3, decimal_places=0, range_is_nullable=False)
    assert shares(not_nullable, (1, 2)).tolist() == [0, 1, 1, 0]


@given(intervals, st.floats(0, 1), st.floats(0, 1), st.lists(positions, min_size=1, max_size=20))
def test_real_numbers_inside_a_range_are_in_it_up_to_rounding(cells, a, b, drawn):
    low, high = (cells.low + (cells.high - cells.low) * at for at in (min(a, b), max(a, b)))
    covered = cells.shares(low, high)
    assert covered.any()
    assert (covered >= 0).all()
    assert (covered <= 1 + 1e-12).all()
    for code in np.flatnonzero(covered):
        reals = cells.between(np.full(len(drawn), code), np.array(drawn), low, high)
        assert ((reals >= low) & (reals <= high)).all()
        assert (cells.locate(reals)[0] == code).all()


def column(**facts):
    return describe("x", {"num_bins": 4, "sdtype": "numerical", **facts})


AGE = column(range_min=0, range_max=110, decimal_places=0)
PRICE = column(range_min=-1, range_max=9, decimal_places=2)
REAL = column(range_min=0, range_max=1)
DAY = column(sdtype="datetime", range_min="2020-01-01", range_max="2020-12-31")
MONTH = column(sdtype="datetime", range_min="2020-01", range_max="2021-12", datetime_format="%Y-%m")
PAID = column(range_min=0, range_max=2_000, number_format="1.234,50 €")
GRADE = column(sdtype="ordinal", range_values=["poor", "fair", "good"])


@pytest.mark.parametrize(
    ("of", "between", "expected"),
    [
        (AGE, Between(30, 40), (30, 40)),
        (AGE, Between(29.2, 40.9), (30, 40)),
        (AGE, Between(30.2, 30.8), (31, 30)),
        (AGE, Between(None, 40), (0, 40)),
        (AGE, Between(np.int8(30), None), (30, 110)),
        (AGE, Between(-np.inf, 1e300), (-1, 111)),
        (AGE, Between(Decimal(200), 300), (111, 111)),
        (PRICE, Between(0.1, 0.3), (10, 30)),
        (PRICE, Between(0.1 + 0.2, 0.9), (31, 90)),  # just above 0.3
        (PRICE, Between(-0.005, 0.005), (0, 0)),
        (PAID, Between("1.000,10 €", "1200"), (100_010, 120_000)),
        (REAL, Between(0.25, None), (0.25, 1.0)),
        (REAL, Between(-np.inf, 3), (-np.inf, 3.0)),
        (DAY, Between("2020-01-02", "2020-01-04"), (18263, 18265)),
        (DAY, Between("2020-01-02 00:00:01", datetime.date(2020, 1, 4)), (18264, 18265)),
        (DAY, Between(None, pd.Timestamp("2020-01-02 23:59")), (18262, 18263)),
        (MONTH, Between("2020-02", "2020-04"), (601, 603)),
        (MONTH, Between(pd.Timestamp("2020-02-02"), pd.Timestamp("2020-04-05")), (602, 603)),
        (GRADE, Between("fair", None), (1, 2)),
    ],
)
def test_ends_are_read_exactly_and_rounded_into_the_range(of, between, expected):
    assert span(of, between) == expected
