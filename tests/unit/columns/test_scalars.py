"""Cells one by one: values in one spelling, and numbers of every dtype."""

import datetime
from collections import Counter
from decimal import Decimal
from fractions import Fraction
from uuid import UUID

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from sdv_privpgd.base.arguments import SourceError
from sdv_privpgd.columns import scalars
from sdv_privpgd.columns.encoders import encode
from sdv_privpgd.columns.readings import STEPS, steps_of
from sdv_privpgd.columns.schema import Schema

pytestmark = pytest.mark.filterwarnings("error")

LONG = Decimal("9" * 34 + "." + "9" * 34)
MOST = 2**62


class Large(int):
    def __int__(self):
        raise AssertionError

    __index__ = __trunc__ = __int__


@pytest.mark.parametrize(
    ("cell", "value"),
    [
        (Large(3), 3), (3.0, 3), (Fraction(6, 2), 3), (Decimal("1E+2"), Decimal(100)),
        (Decimal("0.50"), Decimal("0.5")), (LONG, LONG), (Decimal("1E-34"), Decimal("1E-34")),
        (Decimal("1E-35"), 1e-35), (Decimal("1E33"), Decimal(10**33)), (Decimal("1E34"), 1e34),
        (Decimal("-Infinity"), -np.inf), (Decimal("-1E999"), -np.inf), (Decimal("1E999"), np.inf),
        (-(10**400), -np.inf), (2**70 + 1, 2**70 + 1),
        (datetime.date(2020, 1, 2), datetime.date(2020, 1, 2)), (UUID(int=5), f"{UUID(int=5)}"),
        (pd.Timestamp("2020-01-02 00:00:00.000000001"), datetime.datetime(2020, 1, 2)),
    ],
    ids=str,
)  # fmt: skip
def test_a_value_has_one_spelling(cell, value):
    found = scalars.canonical(cell)
    assert (type(found), str(found)) == (type(value), str(value))


@pytest.mark.parametrize(
    "categories", [[2**60 + 1, 2**60 + 3], [0.5, 1e300], ["a", "b"]], ids=["whole", "real", "text"]
)
def test_a_missing_cell_and_an_unused_category_change_no_other(categories):
    column = pd.Series(pd.Categorical([categories[0], None], categories=categories))
    assert scalars.cells(column) == [categories[0], None]
    assert scalars.distinct(column)[0] == [categories[0], None]
    assert list(scalars.key_counts(column)) == [(categories[0], 1), (None, 1)]


def test_cells_are_python_s_objects_and_equal_ones_of_two_types_are_two():
    assert [type(cell) for cell in scalars.cells(pd.Series([1]))] == [int]
    zoned = pd.Series(["2020-01-01T03"]).astype("datetime64[s, UTC]").dt.tz_convert("Etc/GMT-9")
    assert [*map(str, scalars.cells(zoned))] == ["2020-01-01 12:00:00+09:00"]
    assert scalars.plain(UUID.__new__(UUID)) is None  # one that is not finished
    counted = Counter()  # it may come in several parts
    for key, number in scalars.key_counts(pd.Series([1, True, 1], dtype=object)):
        counted[type(key), key] += number
    assert counted == {(int, 1): 2, (bool, True): 1}


@pytest.mark.parametrize(
    "cell", [np.datetime64("2020-01-01"), pd.Timestamp("2020-01-01"), 10**400], ids=repr
)
def test_a_category_among_words_is_what_it_is_alone(cell):
    categories = pd.Index([cell, "word"], dtype=object)
    alone = pd.Series(pd.Categorical.from_codes([0], categories))
    assert [type(each) for each in scalars.cells(alone)] == [type(cell)]
    assert [type(each) for each in scalars.distinct(alone)[0]] == [type(cell), type(None)]


ENDS = np.array([-(2**63) + 1, 0, 2**63 - 1])


@pytest.mark.parametrize("zone", ["Pacific/Kiritimati", "America/New_York"])
def test_the_first_and_the_last_moments_have_a_clock(zone):
    moments = pd.Series(ENDS.view("M8[ns]")).dt.tz_localize("UTC").dt.tz_convert(zone)
    arrows = pd.ArrowDtype(pa.timestamp("ns", zone))
    for column in (moments, moments.astype("category"), moments.astype(arrows)):
        cells = scalars.cells(column)
        assert [cell.tz_convert("UTC").year for cell in cells] == [1678, 1970, 2262]


@pytest.mark.parametrize(
    ("kind", "ends"), [(pa.date32(), [-(2**31), 0, 2**31 - 1]), (pa.date64(), ENDS)], ids=str
)
def test_days_of_arrow_that_python_has_not_are_its_first_and_last_ones(kind, ends):
    held = np.array(ends, f"i{kind.bit_width // 8}")
    days = pa.Array.from_buffers(kind, 3, [None, pa.py_buffer(held)])
    column = pd.Series(pd.arrays.ArrowExtensionArray(days))
    assert [cell.year for cell in scalars.cells(column)] == [1, 1970, 9999]


def test_a_moment_beyond_the_years_of_python_is_no_category():
    assert scalars.category(pd.Timestamp(np.datetime64("12000-01-01", "s"))) is None


def test_words_that_differ_in_what_ends_them_are_two():
    listed, places = scalars.distinct(pd.Series(["a", "a\0", "a"], dtype=object))
    assert (listed, places.tolist()) == (["a", "a\0", None], [0, 1, 0])


def test_a_word_with_a_nul_is_read_as_it_is_alone():
    facts = {"sdtype": "categorical", "range_values": ["a", "b"], "other_value": "other"}
    (column,) = Schema.from_sdv({"x": facts}).columns
    codes = [encode(column, pd.Series([first, "a\0"]))[0].tolist() for first in "ab"]
    assert codes == [[0, 2], [1, 2]]


def test_what_is_raised_while_cells_are_read_says_its_kind_alone():
    with pytest.raises(SourceError) as caught, scalars.quiet():
        raise KeyError("Jane")
    assert str(caught.value) == "A column cannot be read: KeyError."
    with pytest.raises(SourceError, match="has no cells"), scalars.quiet("x"):
        raise SourceError("The column has no cells")


def test_a_cell_is_there_unless_it_is_missing_or_of_spaces_alone():
    there = ["a", b"", 0, Decimal(1), np.float32(1), np.datetime64("2020-01-01"), [1]]
    none = [None, " ", np.nan, np.float32("nan"), Decimal("NaN"), pd.NA, pd.NaT]
    none.append(np.datetime64("NaT"))
    found = scalars.are_there(pd.Series([*there, *none], dtype=object))
    assert found.tolist() == [True] * len(there) + [False] * len(none)
    assert scalars.are_there(pd.Series([], dtype=object)).dtype == bool
    for dtype in ("float64", "Int64", "datetime64[ns]"):
        assert scalars.are_there(pd.Series([1, None], dtype=dtype)).tolist() == [True, False]


@pytest.mark.parametrize(
    ("read", "dtype"),
    [
        (scalars.whole_numbers, np.int64),
        (scalars.real_numbers, np.float64),
        (scalars.truths, np.int64),
        (lambda series: scalars.indices(series, {}), np.int64),
    ],
)
def test_no_cells_are_of_the_dtype_of_some(read, dtype):
    nothing = 0 if read in (scalars.whole_numbers, scalars.real_numbers) else -1
    for cells in ([], [None, "x"]):
        values, missing = read(pd.Series(cells, dtype=object))
        assert (values.dtype, values.tolist()) == (dtype, [nothing] * len(cells))
        assert missing.tolist() == [True] * len(cells)


@pytest.mark.parametrize(
    ("dtype", "cells", "expected"),
    [
        ("int64", [-(2**63), 3, 2**63 - 1], [-MOST, 3, MOST]),
        ("Int8", [-7, 3, None], [-7, 3]),
        ("uint64", [0, 2**64 - 1], [0, MOST]),
        ("uint8", [7], [7]),
        ("UInt8", [7, None], [7]),
        (pd.ArrowDtype(pa.uint8()), [7, None], [7]),
        ("float64", [-1e300, 2.5, np.nan, 1e300], [-MOST, 2, MOST]),
        (pd.ArrowDtype(pa.float32()), [1.5, None], [2]),
        (pd.ArrowDtype(pa.bool_()), [True, None, False], [1, 0]),
        ("object", [-(10**400), MOST, "1.5", None], [-MOST, MOST, 2]),
    ],
    ids=str,
)
def test_whole_numbers_of_every_dtype_are_clipped_and_exact(dtype, cells, expected):
    with np.errstate(all="raise"), scalars.quiet():
        found, missing = scalars.whole_numbers(pd.Series(cells, dtype=object).astype(dtype))
        assert found.dtype == np.int64
        assert np.float64(1) / 0 == np.inf
    assert found[~missing].tolist() == expected
    assert missing.tolist() == [pd.isna(cell) for cell in cells]


def places(cells, dtype=object):
    return scalars.decimal_places(*scalars.real_numbers(pd.Series(cells, dtype=dtype)), 6).tolist()


def test_decimal_places_are_the_fewest_that_write_a_number():
    cells = [3, 2.5, 0.1 + 0.2, 1.000001, 1e-9, None, "0.25", np.inf, Decimal("1.125"), True]
    assert places(cells) == [0, 1, 1, 6, 7, 8, 2, 8, 3, 0]
    for dtype in ("float32", "Float32", "float32[pyarrow]"):
        tenths = pd.Series([20.4, 1 / 3, 5]).astype(dtype)
        for own in (tenths, tenths.astype(object)):  # that other cells of a batch may decide
            assert places(own, own.dtype) == [1, 7, 0]
    assert places([8388607.5, 1 / 1024, 1 + 1e-8, 1e300], float) == [1, 7, 7, 0]


def test_steps_are_the_largest_that_a_number_is_a_multiple_of():
    numbers = [0, -7, 3e6, 2.5e6, 12_000, -500, 45, 1.5, 0.3, 0.05, 19.99, 5e-6, 1e-7, np.inf]
    with np.errstate(all="raise"):
        found = steps_of(np.array(numbers), np.isinf(numbers))
    steps = [10**6, 1, 10**6, 500_000, 1_000, 500, 5, 0.5, 0.1, 0.05, 0.01, 5e-6]
    assert [float(STEPS[place]) for place in found[:12]] == steps
    assert found[12:].tolist() == [len(STEPS), len(STEPS) + 1]
