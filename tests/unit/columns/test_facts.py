"""Facts on columns: what is known of them, and what is checked when they are read."""

import numpy as np
import pandas as pd
import pytest

from sdv_privpgd.columns.cutting import column_of
from sdv_privpgd.columns.facts import CategoryFacts, DateFacts, NumberFacts, single
from sdv_privpgd.columns.parsing import read_facts, read_table
from sdv_privpgd.columns.schema import PublicDomainError, Schema

DAY = 86_400 * 10**9


def test_what_was_found_takes_the_place_of_what_was_not_known():
    stated = NumberFacts(low=0, num_bins=8, nullable=True)
    found = NumberFacts(low=0, high=50.0, cuts=(10.0,), decimal_places=1)
    expected = NumberFacts(
        low=0, high=50.0, cuts=(10.0,), decimal_places=1, num_bins=8, nullable=True
    )
    assert stated.and_found(found) == expected
    assert stated.and_found(NumberFacts()) == stated
    many = CategoryFacts(values=("A", "B"), is_ordered=True)
    assert many.and_found(CategoryFacts(frequencies=(3.0, 1.0), is_ordered=True)) == CategoryFacts(
        values=("A", "B"), frequencies=(3.0, 1.0), is_ordered=True
    )


def test_formats_that_were_given_up_stay_so_and_zones_are_those_of_format_or_bound():
    stated = DateFacts(low=0, datetime_format="%H:%M", num_bins=8)
    found = DateFacts(low=DAY, high=9 * DAY, datetime_format=None, aware=True)
    known = stated.and_found(found)
    assert (known.datetime_format, known.unit, known.utc, known.num_bins) == (None, "D", True, 8)
    assert stated.and_found(DateFacts(high=DAY, datetime_format="%H:%M")).unit == "m"
    ends = {"range_min": "2020-01-01", "range_max": pd.Timestamp("2020-02-01", tz="Asia/Tokyo")}
    assert read_facts("x", {"sdtype": "datetime", **ends}).utc
    written = {"sdtype": "datetime", "datetime_format": "%Y", "range_max": ends["range_max"]}
    assert not read_facts("x", written).utc
    assert read_facts("x", {"sdtype": "datetime", "datetime_format": "%Y %z"}).utc


@pytest.mark.parametrize(
    ("places", "end", "bound", "kept"),
    [
        (0, "low", 0.5, 1), (0, "high", 0.5, 0), (1, "low", 0.25, 0.3), (1, "high", 0.25, 0.2),
        (1, "low", 0.3, 0.3), (None, "low", 0.25, 0.25), (0, "high", -7, -7),
    ],
)  # fmt: skip
def test_a_single_value_is_one_that_the_column_can_hold(places, end, bound, kept):
    facts = single(NumberFacts(**{end: bound}, decimal_places=places), end)
    assert (facts.low, facts.high) == (kept, kept)
    assert column_of("x", facts).num_values == 1


def test_numbers_are_kept_as_they_are_written():
    facts = {"sdtype": "numerical", "range_min": np.float32(0.5), "range_max": np.int64(9)}
    read = read_facts("x", facts)
    assert (type(read.low), type(read.high)) == (float, int)
    assert (read.low, read.high) == (0.5, 9)


@pytest.mark.parametrize(
    ("facts", "told"),
    [
        ({"sdtype": "numerical", "decimal_places": "x"}, "decimal_places of 'x'"),
        ({"sdtype": "numerical", "increment": "x"}, "increment of 'x'"),
        ({"sdtype": "numerical", "increment": 0.5}, "increment of 'x'"),
        ({"sdtype": "numerical", "increment": 5, "range_max": 2**53 + 1}, r"within 2\*\*53"),
        ({"sdtype": "numerical", "decimal_places": 0, "range_min": -(2**62)}, r"within 2\*\*62"),
        ({"sdtype": "numerical", "num_bins": 0}, "num_bins of 'x'"),
        ({"sdtype": "numerical", "range_is_nullable": "no"}, "range_is_nullable of 'x'"),
        ({"sdtype": "datetime", "datetime_format": "mixed"}, "datetime_format of 'x'"),
        ({"sdtype": "datetime", "num_bins": 1.5}, "num_bins of 'x'"),
        ({"sdtype": "categorical", "range_is_nullable": 1}, "range_is_nullable of 'x'"),
        ({"sdtype": "categorical", "other_value": ["x"]}, "other_value of 'x'"),
    ],
)
def test_facts_on_a_column_without_a_domain_are_checked_at_once(facts, told):
    """Else the fit would fail after it had paid for the domain."""
    with pytest.raises(ValueError, match=told):
        read_table({"x": {"sdtype": facts["sdtype"]}}, public_domain={"x": {
            key: fact for key, fact in facts.items() if key != "sdtype"
        }})  # fmt: skip


def test_a_schema_of_facts_needs_all_domains():
    known = {"age": NumberFacts(low=0, high=9, decimal_places=0), "ward": CategoryFacts()}
    with pytest.raises(PublicDomainError, match="'ward'"):
        Schema.of(known)
    (column,) = Schema.of({"age": known["age"]}, num_bins=3).columns
    assert (column.name, column.num_values) == ("age", 3)
    for wrong in (0, True, None):
        with pytest.raises(ValueError, match="num_bins must be"):
            Schema.of({}, num_bins=wrong)
