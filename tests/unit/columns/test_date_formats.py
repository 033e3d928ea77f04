"""Dates that are counted in days are named where nobody said that they have no time."""

import datetime

import numpy as np
import pandas as pd
import pyarrow
import pytest

from sdv_privpgd import Datetime, fit_table, measure
from sdv_privpgd.columns.date_formats import on_dates, survive_writing
from sdv_privpgd.columns.facts import DateFacts
from sdv_privpgd.columns.parser import read_facts, read_words

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
    assert on_dates({"came": read_words("came", {**DAYS, **facts})[0]}) == []


@pytest.mark.parametrize("kind", [str, pd.Timestamp, datetime.datetime.fromisoformat])
def test_ends_that_are_days_are_named(kind):
    ends = {key: kind(DAYS[key]) for key in ("range_min", "range_max")}
    (said,) = on_dates({"at": DateFacts(datetime_format="%H:%M %z")})
    assert "'at'] come back in UTC" in said
    (said,) = on_dates({"came": read_facts("came", {**DAYS, **ends}), "born": DateFacts()})
    assert "['came'] are counted in days" in said


def test_a_fit_and_a_holder_are_told_and_an_end_with_a_time_keeps_the_times():
    came = pd.DataFrame({"came": pd.date_range("2024-01-01 08:30", periods=500, freq="h")})
    ends = Datetime("2024-01-01", "2024-01-25", num_bins=24)
    with pytest.warns(UserWarning, match="counted in days"):
        fitted = fit_table(came, {"came": ends}, epsilon=5.0, method="privpgd+pgm")
    assert (fitted.sample(50)["came"].dropna().dt.hour == 0).all()
    ends = Datetime("2024-01-01", "2024-01-25 23:59:59", num_bins=24)
    fitted = fit_table(came, {"came": ends}, epsilon=5.0, method="privpgd+pgm")
    assert (fitted.sample(50)["came"].dropna().dt.hour != 0).any()
    with pytest.warns(UserWarning, match="counted in days"):
        measure(came, {"came": Datetime("2024-01-01", "2024-01-25")}, 5.0, site="North")


def test_a_dtype_of_days_or_a_format_says_that_there_are_none():
    came = pd.Series(pd.date_range("2024-01-01", periods=500)).dt.date
    days = pd.DataFrame({"came": came.astype(pd.ArrowDtype(pyarrow.date32()))})
    ends = Datetime("2024-01-01", "2025-12-31")
    for table in (days, pyarrow.Table.from_pandas(days)):
        fitted = fit_table(table, {"came": ends}, 5.0, method="privpgd+pgm")
        assert not any("counted in days" in each for each in fitted.warnings)
    text = pd.DataFrame({"came": came.astype(str)})
    ends = Datetime("2024-01-01", "2025-12-31", datetime_format="%Y-%m-%d")
    fit_table(text, {"came": ends}, 5.0, method="privpgd+pgm")


def test_dates_survive_writing_if_the_format_says_all_of_them():
    ticks = np.array([0, 40])
    assert survive_writing(ticks, "D", "%d.%m.%Y")
    assert not survive_writing(ticks, "D", "%m.%Y")
