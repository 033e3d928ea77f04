"""Dates that are counted in days are named where nobody said that they have no time."""

import datetime

import pandas as pd
import pytest

from sdv_privpgd import Datetime, fit_table
from sdv_privpgd.columns.times_of_day import on_days

DAYS = {"sdtype": "datetime", "range_min": "2020-01-01", "range_max": "2024-12-31"}


@pytest.mark.parametrize(
    "facts",
    [
        {"range_max": "2024-12-31 23:59"},
        {"datetime_format": "%Y-%m-%d"},
        {"range_min": datetime.date(2020, 1, 1), "range_max": datetime.date(2024, 12, 31)},
        {"range_min": None},
        {"range_min": "the first day"},
    ],
    ids=["a time", "a format", "dates", "no end", "no date"],
)
def test_nothing_is_said_where_somebody_says_it(facts):
    assert on_days({"came": {**DAYS, **facts}}) == []


@pytest.mark.parametrize("kind", [str, pd.Timestamp, datetime.datetime.fromisoformat])
def test_ends_that_are_days_are_named(kind):
    ends = {key: kind(DAYS[key]) for key in ("range_min", "range_max")}
    (said,) = on_days({"came": {**DAYS, **ends}, "born": {"sdtype": "datetime"}})
    assert "['came'] are counted in days" in said


def test_it_is_said_before_a_fit_and_an_end_with_a_time_keeps_the_times():
    came = pd.DataFrame({"came": pd.date_range("2024-01-01 08:30", periods=500, freq="h")})
    ends = Datetime("2024-01-01", "2024-01-25", num_bins=24)
    with pytest.warns(UserWarning, match="counted in days"):
        fitted = fit_table(came, {"came": ends}, epsilon=5.0, engine="pgm")
    assert (fitted.sample(50)["came"].dropna().dt.hour == 0).all()
    ends = Datetime("2024-01-01", "2024-01-25 23:59:59", num_bins=24)
    fitted = fit_table(came, {"came": ends}, epsilon=5.0, engine="pgm")
    assert (fitted.sample(50)["came"].dropna().dt.hour != 0).any()
