"""Bins of numbers and of dates are exact."""

import datetime
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
from columns_of_words import dates, numerical

from sdv_privpgd.columns.bins import Interval, Ticks


def test_few_numbers_get_a_cell_each_between_bounds_that_move_inwards():
    assert numerical(1, 32, decimal_places=0).num_values == 32
    assert numerical(0, 4, decimal_places=0).cells.starts.tolist() == [0, 1, 2, 3, 4]
    described = numerical(0.1, 0.7, decimal_places=1)
    assert described.cells == Ticks(1, 7, 32)
    assert described.num_values == 7
    assert numerical(0.15, 0.79, decimal_places=1).cells == Ticks(2, 7, 32)
    assert numerical(0.5, 9.5, decimal_places=0).cells == Ticks(1, 9, 32)


def test_many_integers_and_real_numbers_are_cut_equally():
    cells = numerical(0, 99, decimal_places=0, num_bins=7).cells
    # [0, 100) cut at 100 i / 7, an integer belonging to where it lies
    expected = [int(np.ceil(100 * i / 7)) for i in range(7)]
    assert cells.starts.tolist() == expected
    assert cells.widths.sum() == 100
    described = numerical(0, 8, num_bins=4)
    assert described.cells.edges.tolist() == [0, 2, 4, 6, 8]
    assert described.cells == Interval(0.0, 8.0, 4)


def test_float64_limits_decimal_places_and_cells():
    assert numerical(0, 1000, decimal_places=14).decimal_places == 12
    assert isinstance(numerical(0, 1e16, decimal_places=2).cells, Interval)
    assert numerical(0, 1e-290, decimal_places=400).decimal_places == 300
    assert numerical(1.0, np.nextafter(1.0, 2)).num_values == 1
    assert numerical(0.0, 5e-324).num_values == 1


@pytest.mark.parametrize("facts", [{}, {"decimal_places": 0}, {"decimal_places": 3}])
def test_a_constant_range_is_one_cell(facts):
    assert numerical(5, 5, **facts).num_values == 1


@pytest.mark.parametrize("bound", [3, 3.0, np.int8(3), np.float32(3), Decimal(3), Fraction(3)])
def test_bounds_may_be_any_finite_number(bound):
    assert numerical(bound, bound, decimal_places=0).cells == Ticks(3, 3, 32)


@pytest.mark.parametrize(
    ("datetime_format", "unit"),
    [
        ("%Y-%m-%d", "D"),
        ("%d%b%Y", "D"),
        ("%Y-%j", "D"),
        ("%Y-%m", "M"),
        ("%Y", "Y"),
        ("%Y-%m-%d %H", "h"),
        ("%Y-%m-%dT%H:%M", "m"),
        ("%Y-%m-%d %H:%M:%S", "s"),
        ("%Y-%m-%d %I:%M:%S %p", "s"),
        ("%Y-%m-%d %H:%M:%S.%f", "us"),
    ],
)
def test_a_format_says_the_resolution(datetime_format, unit):
    bounds = [datetime.datetime(year, 3, 1) for year in (2000, 2010)]
    described = dates(*(bound.strftime(datetime_format) for bound in bounds), datetime_format)
    first, last = (int(np.datetime64(bound, unit).astype(int)) for bound in bounds)
    assert described.unit == unit
    assert described.cells == Ticks(first, last, 32)


@pytest.mark.parametrize(
    ("low", "unit"),
    [("2020-01-01", "D"), ("2020-01-01 10:00", "s"), ("2020-01-01 10:00:00.25", "ns")],
)
def test_without_a_format_the_bounds_say_the_resolution(low, unit):
    assert dates(low, "2020-12-31").unit == unit


def test_the_width_of_a_cell_fits_int64():
    """292 years of nanoseconds do, 500 do not."""
    described = dates("1700-01-01 00:00:00.5", "2200-01-01", num_bins=1)
    assert described.unit == "us"
    assert described.cells.widths.tolist() == [described.cells.last - described.cells.first + 1]
    assert dates("1720-01-01 00:00:00.5", "2011-01-01", num_bins=1).unit == "ns"


@pytest.mark.parametrize(
    "bound",
    [
        "2020-02-03",
        datetime.date(2020, 2, 3),
        pd.Timestamp("2020-02-03"),
        np.datetime64("2020-02-03"),
    ],
)
@pytest.mark.parametrize("datetime_format", [None, "%Y-%m-%d"])
def test_bounds_of_dates_may_be_strings_or_dates(bound, datetime_format):
    described = dates(bound, bound, datetime_format)
    assert described.cells == Ticks(18_295, 18_295, 32)  # days since 1970
    assert described.unit == "D"


def test_a_time_zone_makes_dates_utc_and_a_number_is_no_date():
    assert dates("2020-01-01 00:00+0200", "2020-01-02 00:00+0000", "%Y-%m-%d %H:%M%z").utc
    assert dates("2020-01-01T00:00Z", "2020-01-02T00:00Z").utc
    assert not dates("2020-01-01", "2020-01-02").utc
    with pytest.raises(ValueError, match="range_min of 'x' must be a date"):
        dates(5, "2020-01-01")
