"""Ranges of values: what part of each cell they cover, and numbers drawn inside them."""

import datetime
from decimal import Decimal

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sdv_privpgd.columns.bins import BELOW_ONE, Categories, Interval, Ticks
from sdv_privpgd.columns.parsing import describe
from sdv_privpgd.sampling.conditions import Between, shares, span

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
    lambda low, width, bins: Interval(low, low + width, bins),
    st.floats(-1e3, 1e3),
    st.one_of(st.just(0.0), st.floats(1e-9, 1e3)),
    st.integers(1, 12),
)


@given(ticks, whole, whole)
def test_a_cell_s_share_of_whole_numbers_is_counted(cells, low, high):
    numbers = np.arange(cells.first, cells.last + 1)
    codes, _ = cells.locate(numbers)
    inside = (numbers >= low) & (numbers <= high)
    expected = [inside[codes == code].mean() for code in range(len(cells))]
    assert cells.shares(low, high) == pytest.approx(expected, abs=1e-12)


@given(ticks, whole, whole, st.lists(positions, min_size=1, max_size=20))
def test_whole_numbers_inside_a_range_are_in_their_cells_and_in_the_range(cells, a, b, drawn):
    low, high = min(a, b), max(a, b)
    covered = np.flatnonzero(cells.shares(low, high))
    for code in covered:
        codes, ends = np.full(len(drawn), code), np.full((2, len(drawn)), [[low], [high]])
        moved = cells.inside(codes, np.array(drawn), *ends)
        numbers = cells.at(codes, moved)
        assert ((numbers >= low) & (numbers <= high)).all()
        assert (cells.locate(numbers)[0] == code).all()


def test_each_whole_number_of_the_part_is_as_likely():
    cells = Ticks(0, 19, 2)  # 0 to 9, 10 to 19
    places = (np.arange(60) + 0.5) / 60
    zeros = np.zeros(60, dtype=np.int64)
    numbers = cells.at(zeros, cells.inside(zeros, places, zeros + 7, zeros + 30))
    assert np.bincount(numbers).tolist() == [0] * 7 + [20] * 3


@given(intervals, st.floats(0, 1), st.floats(0, 1), st.lists(positions, min_size=1, max_size=20))
def test_real_numbers_inside_a_range_are_in_it_up_to_rounding(cells, a, b, drawn):
    low, high = (cells.low + (cells.high - cells.low) * at for at in (min(a, b), max(a, b)))
    covered = cells.shares(low, high)
    assert covered.any()
    assert (covered >= 0).all()
    assert (covered <= 1 + 1e-12).all()
    for code in np.flatnonzero(covered):
        codes, ends = np.full(len(drawn), code), np.full((2, len(drawn)), [[low], [high]])
        moved = cells.inside(codes, np.array(drawn), *ends)
        assert ((moved >= 0) & (moved < 1)).all()
        reals = cells.at(codes, moved)
        slack = 1e-12 * max(abs(cells.low), abs(cells.high), 1)
        assert ((reals >= low - slack) & (reals <= high + slack)).all()


def test_real_numbers_share_by_length():
    cells = Interval(0.0, 4.0, 4)
    assert cells.shares(0.5, 2.25).tolist() == [0.5, 1, 0.25, 0]
    assert cells.shares(2.0, 2.0).tolist() == [0, 0, 1, 0]
    assert cells.shares(-9.0, np.inf).tolist() == [1, 1, 1, 1]
    assert not cells.shares(5.0, 7.0).any()
    assert not cells.shares(3.0, 1.0).any()
    assert Interval(2.0, 2.0, 4).shares(1.0, 3.0).tolist() == [1]


def test_the_other_category_is_in_no_open_range():
    cells = Categories(("low", "high", "other"), has_other=True)
    assert cells.shares(*cells.ends).tolist() == [1, 1, 0]


def column(**facts):
    return describe("x", {"num_bins": 4, "sdtype": "numerical", **facts})


AGE = column(range_min=0, range_max=110, decimal_places=0)
PRICE = column(range_min=-1, range_max=9, decimal_places=2)
REAL = column(range_min=0, range_max=1)
DAY = column(sdtype="datetime", range_min="2020-01-01", range_max="2020-12-31")
MONTH = column(sdtype="datetime", range_min="2020-01", range_max="2021-12", datetime_format="%Y-%m")
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


def test_missing_is_in_no_range():
    assert shares(AGE, span(AGE, Between(0, 200))).tolist() == [1, 1, 1, 1, 0]
    not_nullable = column(range_min=0, range_max=3, decimal_places=0, range_is_nullable=False)
    assert shares(not_nullable, (1, 2)).tolist() == [0, 1, 1, 0]
