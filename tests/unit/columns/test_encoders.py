"""Values to codes and back, one kind of column at a time, and a table of all of them."""

import datetime
from dataclasses import replace
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
import sdv_tables
from encoding import EACH, Codec, categories, codes, dates, decoded, numerical, transformer

from sdv_privpgd.columns.dtypes import clock_in
from sdv_privpgd.columns.encoders import moments_of
from sdv_privpgd.columns.encoding import encode_table
from sdv_privpgd.columns.schema import Schema

pytestmark = pytest.mark.filterwarnings("error")


def test_numbers_are_read_from_all_that_are_and_clipped():
    whole = numerical(0, 9, decimal_places=0)
    assert codes(whole, -5, 10**400, -(10**400), 9.4) == [0, 9, 0, 9]
    three = (3, 3.0, "3", " 3.0 ", np.int8(3), np.uint64(3), np.float32(3), np.longdouble(3),
             Decimal(3), Fraction(3), "3e0")  # fmt: skip
    assert codes(whole, *three) == [3] * len(three)
    assert codes(whole, True, np.True_, False) == [1, 1, 0]
    strange = ("three", "", b"3", 3 + 0j, [3], None, pd.NA, pd.NaT, float("nan"), "nan",
               object(), Decimal("NaN"), Decimal("sNaN"), pd.Timedelta(3),
               np.timedelta64(3, "D"))  # fmt: skip
    assert codes(whole, *strange) == [10] * len(strange)


@pytest.mark.parametrize("places", [0, None])
def test_infinite_numbers_are_missing(places):
    endless = (float("inf"), -np.inf, "inf", "-Infinity", np.float32("inf"), Decimal("-Infinity"))
    encoder = numerical(0, 9, decimal_places=places, num_bins=10)
    assert codes(encoder, *endless) == [10] * len(endless)
    for dtype in ("float64", "float32", "Float64", "category"):
        assert encoder.encode(pd.Series([np.inf, 2.0], dtype=dtype))[0].tolist() == [10, 2]


@pytest.mark.parametrize(
    "dtype",
    ["object", "category", "boolean", "bool[pyarrow]", "Int8", "uint8[pyarrow]", "Float32",
     "double[pyarrow]"],
)  # fmt: skip
@pytest.mark.parametrize("places", [0, 1, None])
def test_a_cell_may_be_missing_beside_a_number_of_any_dtype(dtype, places):
    column = pd.Series([1, None], dtype=object).astype(dtype)
    read = numerical(0, 9, decimal_places=places).encode(column)[0]
    assert read.tolist() == codes(numerical(0, 9, decimal_places=places), 1, None)


def test_where_nothing_may_be_missing_it_is_the_first_cell_or_other():
    assert codes(numerical(5, 9, decimal_places=0, range_is_nullable=False), None, "x") == [0, 0]
    assert codes(categories("a", "b", range_is_nullable=False), None, "x") == [0, 0]
    assert codes(dates(range_is_nullable=False), None, "x") == [0, 0]
    each = categories("a", "b", other_value="rest", range_is_nullable=False)
    assert codes(each, None, "x", "a") == [2, 2, 0]
    assert codes(categories("a", "b", other_value="rest"), None, "x", "a") == [3, 2, 0]
    assert each.column.size == 3


def test_positions_are_shared_equally_and_stay_in_their_cell():
    cell_of_five = numerical(0, 9, decimal_places=0, num_bins=2)
    grid = (np.arange(1000) + 0.5) / 1000
    values = cell_of_five.decode(np.ones(1000, dtype=int), grid)
    assert values.value_counts().to_dict() == dict.fromkeys(range(5, 10), 200)
    real = numerical(0, 1, num_bins=3)
    below_one = np.nextafter(1, 0)
    for code in range(3):
        ends = real.decode(np.array([code, code]), np.array([0.0, below_one]))
        assert real.encode(ends)[0].tolist() == [code, code]
    assert codes(real, 1.0) == [2]
    assert decoded(real, 0, position=0.25).tolist() == [pytest.approx(1 / 12, rel=1e-15)]
    values = cell_of_five.decode(np.array([1, 1]), np.array([-1.0, 7.0]))
    assert (values.name, values.tolist()) == ("x", [5, 9])
    assert cell_of_five.rewrite(pd.Series([3])).dtype == np.int64
    assert cell_of_five.within(np.array([0]), np.array([0.5]), (1, 3)).dtype == np.int64
    tenths = numerical(0.1, 2.5, decimal_places=1)
    given = decoded(tenths, *range(25)).tolist()
    assert given == [float(f"{number // 10}.{number % 10}") for number in range(1, 26)]
    assert codes(tenths, *given) == list(range(25))


def test_large_integers_are_exact_beside_neighbors_and_missing_cells():
    low, high = -(2**62) + 1, 2**62
    large = numerical(low, high, decimal_places=0, num_bins=3, range_is_nullable=False)
    assert codes(large, low, 0, high) == [0, 1, 2]
    ends = large.decode(np.array([0, 2]), np.array([0.0, np.nextafter(1, 0)]))
    assert ends.dtype == np.int64
    assert ends[0] == low
    assert high - 2**12 <= ends[1] <= high  # 2**-53 of a cell of 2**61.4 integers
    cut = numerical(0, 2**60, decimal_places=0, num_bins=2)  # cut at 2**59 + 1
    assert codes(cut, 2**59, 2**59 + 1, str(2**59 + 1)) == [0, 1, 1]
    series = pd.Series([2**59, 2**59 + 1])
    for dtype in ("int64", "uint64", "Int64", "int64[pyarrow]", "category", "object"):
        assert cut.encode(series.astype(dtype))[0].tolist() == [0, 1]
    cells = pd.Series([2**59, 2**59 + 1, None], dtype=object)
    for dtype in ("object", "Int64", "int64[pyarrow]", "category"):
        assert cut.encode(cells.astype(dtype))[0].tolist() == [0, 1, 2]


@pytest.mark.parametrize("count", [2**53 - 1, 2**53 + 1, 2**54 + 3, 2**60 + 385, 2**62 - 1])
def test_rounding_does_not_carry_an_integer_out_of_its_range(count):
    wide = numerical(0, count - 1, decimal_places=0, num_bins=1)
    largest = decoded(wide, 0, position=np.nextafter(1, 0))[0]
    assert count - count / 2**52 <= largest <= count - 1


@pytest.mark.parametrize(
    ("low", "high", "with_missing"),
    [
        (0, 100, "float64"),
        (0, 2**53, "float64"),
        (0, 2**53 + 1, "Int64"),
        (-(2**53) - 1, 0, "Int64"),
    ],
)
def test_integers_keep_an_exact_dtype(low, high, with_missing):
    whole = numerical(low, high, decimal_places=0)
    last, missing = whole.column.num_values - 1, whole.column.num_values
    assert decoded(whole, last).dtype == "int64"
    assert decoded(whole, last, holds_missing=True).dtype == with_missing
    given = decoded(whole, last, missing)
    assert given.dtype == with_missing
    assert given.isna().tolist() == [False, True]


@pytest.mark.parametrize(
    ("column", "cells", "held"),
    [
        (numerical(0, 9, decimal_places=0), [0, 9, 3.5, 10, -1, 3 + 5e-9], [1, 1, 0, 0, 0, 0]),
        (numerical(-3, 2e6, decimal_places=1), [0.1 + 0.2, 1234567.84, -3], [1, 0, 1]),
        (numerical(0, 99, decimal_places=2), np.array([20.59, 20.595], "f4"), [1, 0]),
        (numerical(0, 1), [0, 1, 1.5, -1], [1, 1, 0, 0]),
        (dates(), ["2000-01-01", "1999-12-31", "2009-12-31 23:59", "x"], [1, 0, 0, 0]),
        (dates("1700-01-01", "9999-12-31"), ["9999-12-31", "2009-12-31 00:00"], [1, 1]),
        (categories("a", "b", other_value="c"), ["a", "x", None, "c"], [1, 0, 1, 1]),
    ],
    ids=["whole", "decimal", "short", "real", "date", "never", "category"],
)
def test_what_a_column_declares_it_holds(column, cells, held):
    assert column.holds(pd.Series(cells)).tolist() == held
    assert column.read(pd.Series(cells))[0].dtype == (float if cells[-1] == -1 else np.int64)


def test_categories_are_what_python_says_is_equal_and_others_are_missing():
    mixed = categories("a", 1, 0.5, b"b", "1")
    assert codes(mixed, "a", np.str_("a")) == [0, 0]
    assert codes(mixed, 1, 1.0, True, np.int64(1)) == [1] * 4
    assert codes(mixed, Decimal("0.5"), Fraction(1, 2), b"b", "1") == [2, 2, 3, 4]
    assert codes(categories("a", "b"), "c", "A", 1, None, float("nan"), ["a"]) == [2] * 6
    column = categories(2**64 - 1, 3)
    written = column.decode(np.array([0, 1, 2]), np.full(3, 0.5))
    assert written.tolist() == [2**64 - 1, 3, pd.NA]
    moments = categories(datetime.datetime(2020, 1, 1), datetime.datetime(2020, 1, 2, 3))
    assert {decoded(moments, 0, holds_missing=each).dtype.kind for each in (True, False)} == {"M"}


@pytest.mark.parametrize(
    ("values", "dtype", "with_missing"),
    [
        (["a", "b"], pd.Series(["a"]).dtype, pd.Series(["a"]).dtype),
        ([1, 2], "int64", "float64"),
        ([1, 2**60], "int64", "Int64"),
        ([0.5, 1.5], "float64", "float64"),
        ([True, False], "bool", "object"),
        (["a", 1], "object", "object"),
        ([2**70, 1], "object", "object"),
    ],
)
def test_categories_have_their_natural_dtype(values, dtype, with_missing):
    declared = categories(*values)
    assert decoded(declared, 0, 1).tolist() == values
    assert decoded(declared, 0, 1).dtype == dtype
    assert decoded(declared, 0, 1, holds_missing=True).dtype == with_missing
    assert decoded(declared, 0, 2).isna().tolist() == [False, True]


def test_truth_is_read_from_truths_numbers_and_words():
    truth = transformer("boolean")
    assert codes(truth, True, np.True_, 1, 1.0, "true", "TRUE", Decimal(1)) == [1] * 7
    assert codes(truth, False, np.False_, 0, -0.0, "false", "False") == [0] * 6
    assert codes(truth, "yes", "1", 2, None, b"true") == [2] * 5
    assert decoded(truth, 0, 1).dtype == bool
    assert decoded(truth, 0, 1, 2).tolist() == [False, True, None]
    assert decoded(truth, 0, 1, holds_missing=True).dtype == object


@pytest.mark.parametrize("each", EACH.values(), ids=EACH)
def test_columns_and_samples_may_be_empty_in_any_dtype_and_stay_as_they_were(each):
    arrow = [pd.ArrowDtype(kind) for kind in (pa.int64(), pa.timestamp("us"), pa.null())]
    for dtype in ("object", "float64", "Int64", "boolean", "string", "category", "M8[ns]", *arrow):
        assert each.encode(pd.Series([], dtype=dtype))[0].shape == (0,)
        filled = pd.Series([None, None], dtype=dtype)
        assert each.encode(filled)[0].tolist() == [each.column.num_values] * 2
    for cells in ([np.nan, np.nan], np.array(["NaT", "NaT"], "M8[ns]")):
        sparse = pd.Series(pd.arrays.SparseArray(cells))
        assert each.encode(sparse)[0].tolist() == [each.column.num_values] * 2
    empty = np.array([], dtype=np.int64)
    assert each.decode(empty, empty.astype(float)).shape == (0,)
    assert decoded(each, -7, each.column.size + 7).isna().tolist() == [False, True]
    cells = pd.Series(["3", None, 4, "a", "2005-01-01"], dtype=object)
    before = cells.copy()
    each.encode(cells)
    pd.testing.assert_series_equal(cells, before)


def test_a_table_is_encoded_in_the_schema_s_order_into_compact_codes():
    facts = {
        "job": {"sdtype": "categorical", "range_values": ["cook", "nurse"]},
        "age": {"sdtype": "numerical", "range_min": 0, "range_max": 5, "decimal_places": 0},
    }
    table = pd.DataFrame({"age": [5, 0, 3], "id": [1, 2, 3], "job": ["nurse", "cook", None]})
    assert encode_table(table, Schema.from_sdv(facts)).tolist() == [[1, 5], [0, 0], [2, 3]]


@pytest.mark.parametrize("number", [0, 1, 2])
def test_a_table_may_have_any_number_of_columns_and_the_reading_is_a_stage(number):
    facts = {
        name: {"sdtype": "categorical", "range_values": list(range(size))}
        for name, size in (("few", 3), ("many", 255))[:number]  # and missing: 256 codes
    }
    schema, seen = Schema.from_sdv(facts), []
    columns = {name: pd.Series([0, 1, 2]) for name in facts}
    codes = encode_table(columns, schema, lambda items, stage: seen.append(stage) or items)
    assert codes.shape == (3 * bool(number), number)
    assert codes.dtype == np.uint8
    assert seen == ["encode"]


@pytest.mark.parametrize("block", [1, 2, 100])
def test_a_table_is_encoded_the_same_in_blocks_of_any_size(block, monkeypatch):
    table = sdv_tables.table(50)
    table["ward"] = table["ward"].astype("category")
    schema = Schema.from_sdv(
        sdv_tables.COLUMNS, keys={"id"}, public_domain=sdv_tables.PUBLIC_DOMAIN
    )
    columns = {name: table[name] for name in schema.domain().attributes}
    monkeypatch.setattr("sdv_privpgd.columns.encoding._BLOCK", block)
    codes = encode_table(columns, schema)
    for column, found in zip(schema.columns, codes.T, strict=True):
        expected, _ = Codec(column).encode(columns[column.name])
        np.testing.assert_array_equal(found, expected)


class TestIncrements:
    @pytest.mark.parametrize("places", [0, None, 2])
    def test_values_are_multiples_and_others_go_to_the_nearest(self, places):
        column = numerical(-7, 1_000, increment=25, num_bins=7, decimal_places=places)
        codes = np.repeat(np.arange(column.column.num_values), 500)
        values = column.decode(codes, np.tile(np.linspace(0, 1, 501)[:-1], len(codes) // 500))
        assert set(values) == set(range(0, 1_001, 25))
        assert column.decode(*column.encode(values)).tolist() == values.tolist()
        assert values.dtype == (np.int64 if places == 0 else np.float64)
        column = numerical(0, 100, increment=10, num_bins=32, decimal_places=places)
        series = pd.Series([3, 6, 100, 104, -20, 1e300, np.nan])
        codes, _ = column.encode(series)
        assert codes.tolist() == [0, 1, 10, 10, 0, 10, 11]
        assert column.holds(series).tolist() == [False, False, True, False, False, False, True]

    def test_a_range_without_a_multiple_and_a_wrong_increment_are_refused(self):
        with pytest.raises(ValueError, match="increment=10 between them"):
            numerical(1, 9, increment=10)
        for wrong in (0, -1, 2.5, "x", float("inf")):
            with pytest.raises(ValueError, match="increment of 'x'"):
                numerical(1, 9, increment=wrong)
        with pytest.raises(ValueError, match="2\\*\\*53"):
            numerical(0, 2**60, increment=10)


@pytest.mark.parametrize("zone", ["America/New_York", "Asia/Tokyo", "America/Sao_Paulo"])
def test_days_are_those_of_the_zone_that_the_dtype_names(zone):
    """A morning and an evening of one day there are on two days in UTC, at one of the ends."""
    facts = {"range_min": "2018-01-01", "range_max": "2018-12-31"}
    dtype = pd.DatetimeTZDtype("ns", zone)
    schema = Schema.from_sdv(
        {"x": {"sdtype": "datetime"}}, public_domain={"x": facts}, num_bins=365
    )
    (column,) = schema.typed({"x": dtype}).columns
    for unit in ("s", "h", "D", "M", "Y"):
        assert (clock_in(replace(column, unit=unit)) is None) == (unit in "sh")
    days = pd.date_range("2018-01-01", "2018-12-31", freq="D")
    for hour in (3, 22):
        moments = pd.Series(days + pd.Timedelta(hours=hour)).dt.tz_localize(zone)
        encoder = Codec(column)
        codes, positions = encoder.encode(moments)
        assert codes.tolist() == list(range(365))
        assert encoder.encode(pd.Series(["2018-01-03 23:00"]))[0].tolist() == [2]
        assert encoder.encode(moments.astype(object))[0].tolist() == codes.tolist()
        back = encoder.decode(codes, positions)
        assert back.dtype == dtype
        assert back.dt.date.tolist() == days.date.tolist()


def test_hours_without_a_zone_are_of_the_one_that_the_dtype_names():
    facts = {"range_min": "2018-01-01 01:00", "range_max": "2018-01-02 01:00"}
    schema = Schema.from_sdv({"x": {"sdtype": "datetime"}}, public_domain={"x": facts})
    (column,) = schema.typed({"x": pd.DatetimeTZDtype("ns", "Asia/Tokyo")}).columns
    ten = pd.Timestamp("2018-01-01 10:00")
    cells = [ten, ten.tz_localize("Asia/Tokyo"), ten.tz_localize("UTC"), "2018-01-01 10:00"]
    moments = moments_of(column, pd.Series(cells, dtype=object))[0]
    assert [(moment - ten.value) / 36e11 for moment in moments] == [-9, -9, 0, -9]
    told = replace(column, datetime_format="%H:%M %d.%m.%Y %z")
    assert moments_of(told, pd.Series(["10:00 01.01.2018 +0000"]))[0].tolist() == [ten.value]
