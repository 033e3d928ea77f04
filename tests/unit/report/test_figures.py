"""Figures have titles, plain numbers and ticks where cells begin."""

import math

import numpy as np
import pytest

from sdv_privpgd.columns.labels import Names, code_names
from sdv_privpgd.columns.schema import Schema
from sdv_privpgd.report.figures import heat_figure, shares_figure
from sdv_privpgd.words import number, share, short_number


def test_no_share_above_all_rows_is_drawn_and_axes_have_titles():
    names = Names.plain(["a", "b"])
    noisy = np.array([1.3, -0.3])
    figure = shares_figure(
        "x", names, np.array([1.0, 0.0]), noisy, "measured", margins=np.array([0.1, 0.1])
    )
    assert figure["data"][1]["y"] == [1.0, -0.3]
    layout = figure["layout"]
    assert layout["yaxis"]["range"] == [-0.4, 1.0]
    assert layout["yaxis"]["title"]["text"] == "share of rows"
    assert layout["xaxis"]["title"]["text"] == "x"
    heat = heat_figure(("<v>", "h"), names, names, np.eye(2), largest=1.0)
    assert heat["layout"]["yaxis"]["title"]["text"] == "&lt;v&gt;"
    assert heat["layout"]["xaxis"]["title"]["text"] == "h"
    bar = heat["data"][0]["colorbar"]
    assert bar["title"]["text"] == "share of rows"
    assert bar["ticktext"] == ["0 %", "25 %", "50 %", "75 %", "100 %"]


@pytest.mark.parametrize(
    ("part", "words"),
    [
        (0.0, "0 %"),
        (1e-9, "below 0.01 %"),
        (0.0123, "1.2 %"),
        (0.0999, "10 %"),
        (0.999, "nearly 100 %"),
        (1.7, "100 %"),
        (math.nan, "none"),
    ],
)
def test_shares_are_said_in_plain_words(part, words):
    assert share(part) == words


@pytest.mark.parametrize(
    ("value", "words", "short"),
    [
        (157_899.0, "157,899", "157.9k"),
        (1_234_567.891, "1,234,568", "1.235M"),
        (0.000123456, "0.000123456", "0.0001235"),
        (2_000, "2,000", "2000"),
        (-15.889533, "-15.8895", "-15.89"),
        (1.5e17, "1.5e+17", "1.5e+17"),
    ],
)
def test_numbers_are_written_without_exponents(value, words, short):
    assert number(value) == words
    assert short_number(value) == short


def test_ticks_are_where_cells_begin_and_dates_no_finer_than_they_need():
    columns = {
        "income": {"sdtype": "numerical", "range_min": 0, "range_max": 10**7, "num_bins": 4},
        "born": {"sdtype": "datetime", "range_min": "1920-01-01", "range_max": "2004-12-31"},
        "seen": {
            "sdtype": "datetime",
            "range_min": "01/02/2020",
            "range_max": "29/02/2020",
            "datetime_format": "%d/%m/%Y",
        },
    }
    income, born, seen = map(code_names, Schema.from_sdv(columns, num_bins=4).columns)
    assert income.ticks[:4] == ["0", "2.5M", "5M", "7.5M"]
    assert income.labels[0] == "0 – 2,500,000"
    assert born.ticks[:2] == ["1920", "1941"]
    assert seen.labels[0] == "01/02/2020 – 08/02/2020"
    assert seen.ticks[0] == "2020-02-01"


def test_colors_keep_the_order_of_the_values_and_blanks_stay_blank():
    values = np.array([[0.0, 0.04, np.nan], [0.25, -0.09, 1.0]])
    rows, columns = Names.plain(["a", "b"]), Names.plain(["x", "y", "z"])
    trace = heat_figure(("v", "h"), rows, columns, values, largest=1.0)["data"][0]
    assert trace["z"] == [[0.0, 0.2, None], [0.5, -0.3, 1.0]]
    assert trace["colorbar"]["tickvals"][-1] <= trace["zmax"]
