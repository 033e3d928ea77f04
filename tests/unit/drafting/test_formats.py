"""How text is written is told by all of its cells, and only where there is one way to read them."""

import numpy as np
import pytest

from sdv_privpgd.columns.decoders import written_as
from sdv_privpgd.columns.number_formats import NumberFormat
from sdv_privpgd.drafting.formats import are_seldom_categories, type_of


@pytest.mark.parametrize(
    ("cells", "said"),
    [
        (["31.01.2024", "1.2.2024"], "date:%d.%m.%Y"),
        (["31.1.2024", "1.2.2024"], "date:%-d.%-m.%Y"),
        (["1/31/2024 9:05", "12/1/2024 10:10"], "date:%-m/%-d/%Y %-H:%M"),
        (["01/31/2024", "02/01/2024"], "date:%m/%d/%Y"),
        (["31.01.24 10:05", "01.02.24 23:59"], "date:%d.%m.%y %H:%M"),
        (["10:30", "9:15"], "time:%-H:%M"),
        (["10:30", "11:15"], "time:%H:%M"),
        (["nein", "ja"], "bool:ja/nein"),
        (["VRAI", "FAUX"], "bool:VRAI/FAUX"),
        (["10:30 PM", "09:15 AM"], "time:%I:%M %p"),
        (["01/31/2024 10:30:59 PM"], "date:%m/%d/%Y %I:%M:%S %p"),
        (["20240131", "19991231"], "date:%Y%m%d"),
        (["2024-01-31", "9999-12-31"], "date:%Y-%m-%d"),
        (["31.01.2024", "31.12.9999"], "date:%d.%m.%Y"),
        (["0001-01-01 00:00:00", "2024-01-31 10:05:07"], "date:%Y-%m-%d %H:%M:%S"),
        (["2024-01-31 10:05:00", "2024-02-01 23:59:00"], "date:%Y-%m-%d %H:%M:00"),
        (["$3,012.20", "$9.00"], "number:$1,234.50"),
        (["12,5", "3,75"], "number:1234,50"),
        (["CHF 3'012", "CHF 12"], "number:CHF 1'234"),
        (["12%", "3.5%"], "number:1234.5%"),
        (["-$5", "$1,200"], None),  # 1.2 or 1200
        (["(1,234.50)", "12.00"], "number:(1,234.50)"),
        (["5 mg", "10 mg"], "number:1234 mg"),
        (["3", "\u22125"], "number:\u22121234"),
        (["1.234,56-", "2,50"], "number:1.234,50-"),
        (["  9.07%", " 15.51%"], "number:1234.50%"),  # lined up
        (["Jan-2015", "May-2016"], "date:%b-%Y"),
        (["03/2019", "12/2020"], "date:%m/%Y"),
        (["120/80", "90/2000"], None),
        (["2015-01", "2016-12"], "date:%Y-%m"),
    ],
)
def test_cells_that_are_all_written_alike_say_how(cells, said):
    assert type_of(cells) == said


@pytest.mark.parametrize(
    "cells",
    [
        ["05/01/2024", "06/02/2024"],  # of two ways to read them
        ["1,234", "2,500"],
        ["C17", "C18"],
        ["007", "012"],
        ["3B", "4B"],
        ["20240131", "20240230"],  # numbers, and no dates
        ["123", "456"],  # whoever has them as text means it
        ["20-30", "30-40"],
        ["10.0.0.1", "10.0.0.2"],
        ["31.01.2024", "never"],
        ["2:1", "10:12", "0:3"],  # scores: minutes have two digits
        ["12 %", "few"],
        ["m", "f"],
    ],
)
def test_codes_and_what_can_be_read_in_two_ways_say_nothing(cells):
    assert type_of(cells) is None


@pytest.mark.parametrize(
    ("numbers", "others", "told"),
    [
        (99, ["Sum: 1,200"], True),
        (99, [f"V{code}" for code in range(20)], False),  # of a fifth it is no accident
        (9, ["Sum"], False),  # few categories
        (0, [f"0{code}" for code in range(10, 99)], False),
        (0, [f"{degrees:04.1f}" for degrees in range(99)], True),
        (0, ["open", *(f"{day % 28}.{day % 9}.2024" for day in range(99))], True),
    ],
)
def test_a_word_beside_numbers_or_dates_is_found(numbers, others, told):
    assert are_seldom_categories([*map(str, range(numbers)), *others]) == told


@pytest.mark.parametrize("example", ["$1,234.50", "1.234,50 EUR", "1'234", "1 234,5", "1234,5 kg"])
def test_a_format_is_found_again_by_what_it_writes(example):
    own = NumberFormat(example)
    written = [
        written_as(own, each) for each in np.random.default_rng(0).integers(0, 10**7, 99) / 100
    ]
    found = NumberFormat(type_of(written).removeprefix("number:"))
    assert [found.plain(each) for each in written] == [own.plain(each) for each in written]
