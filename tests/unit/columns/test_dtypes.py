"""Which dtypes are kept, and values written in them."""

import datetime
import io
import pickle
import warnings
from decimal import Decimal

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from columns_of_words import arrow
from encoding import Codec
from made_up import quiet

from sdv_privpgd.columns.dtypes import (
    cast,
    categories_in,
    chosen,
    facts_of_dtype,
    holds_missing,
    key_dtype,
)
from sdv_privpgd.columns.facts import NumberFacts
from sdv_privpgd.columns.schema import Schema

pytestmark = pytest.mark.filterwarnings("error")


NUMBERS = [
    *[np.dtype(f"{sign}int{bits}") for sign in ("", "u") for bits in (8, 16, 32)],
    *[pd.api.types.pandas_dtype(f"{sign}nt{bits}") for sign in ("I", "UI")
      for bits in (8, 16, 32, 64)],
    *[arrow(getattr(pa, f"{sign}int{bits}")()) for sign in ("", "u") for bits in (8, 16, 32, 64)],
    *map(np.dtype, ("float16", "float32")), pd.Float32Dtype(), pd.Float64Dtype(),
    *[arrow(kind) for kind in (pa.float16(), pa.float32(), pa.float64(), pa.decimal128(12, 2),
                               pa.decimal256(60, 3), pa.decimal128(20, 0))],
]  # fmt: skip
MOMENTS = [
    *[pd.DatetimeTZDtype("ns", zone) for zone in ("UTC", "Asia/Tokyo", "America/St_Johns")],
    *[arrow(pa.timestamp(unit, zone)) for unit in ("s", "ms", "us", "ns")
      for zone in (None, "Europe/Vienna")],
    arrow(pa.date32()), arrow(pa.date64()),
]  # fmt: skip
OF_UNITS = [
    *[np.dtype(f"M8[{unit}]") for unit in ("s", "ms", "us", "ns")],
    *[pd.DatetimeTZDtype(unit, "Asia/Tokyo") for unit in ("s", "ms", "us")],
]
TEXTS = [
    pd.StringDtype("python"), pd.StringDtype("pyarrow"), arrow(pa.string()),
    arrow(pa.large_string()), arrow(pa.dictionary(pa.int8(), pa.string())),
    pd.CategoricalDtype(ordered=False), pd.CategoricalDtype(ordered=True),
]  # fmt: skip
TRUTHS = [pd.BooleanDtype(), arrow(pa.bool_())]


def of(sdtype, dtype, **facts):
    """The transformer of a column that is written in a dtype."""
    schema = Schema.from_sdv({"x": {"sdtype": sdtype, **facts}})
    return Codec(schema.typed({"x": dtype}).columns[0])


def rows(transformer) -> pd.Series:
    """A value of each code, and a missing one last if there is any."""
    size = transformer.column.size
    return transformer.decode(np.arange(size), np.full(size, 0.5))


@pytest.mark.parametrize(
    "cells",
    [
        [1, 2], [1, None], [1, 2.5], [1, "a"], [True, False], [True, None], ["a", None], [2**63],
        [2**64], [Decimal(1)], [datetime.time(1)], [datetime.date(2020, 1, 1)], [1j], [b"a"],
        [pd.Timestamp("2020-01-01 00:00:00.000000001"), None], [datetime.datetime(2020, 1, 1)],
        [np.int8(1), 1], [np.float32(1), 1.0], [None], [],
        [datetime.datetime(2020, 1, 1, tzinfo=datetime.timezone(datetime.timedelta(hours=1)))],
    ],
    ids=repr,
)  # fmt: skip
def test_no_dtype_that_cells_choose_is_kept(cells):
    text = io.StringIO("x\n" + "\n".join("" if cell is None else f'"{cell}"' for cell in cells))
    read = pd.read_csv(text, skip_blank_lines=False)["x"]
    with quiet():  # which format dates are in is guessed
        dates = pd.to_datetime(read.astype(str), errors="coerce")
    for column in (pd.Series(cells), pd.DataFrame({"x": cells})["x"], read, dates):
        assert chosen(column.dtype) is None, column.dtype


@pytest.mark.parametrize("dtype", [*NUMBERS, *MOMENTS, *TRUTHS, *TEXTS[:-2], *OF_UNITS], ids=str)
def test_a_dtype_that_no_cell_chooses_is_kept_and_no_unit_of_dates(dtype):
    zoned = pd.DatetimeTZDtype("ns", dtype.tz) if isinstance(dtype, pd.DatetimeTZDtype) else None
    kept = zoned if dtype in OF_UNITS else dtype
    assert chosen(pd.Series([], dtype=dtype).dtype) == kept


def test_whole_numbers_stay_whole():
    for dtype in ("int64", "uint64"):  # how large they are decides between them
        assert key_dtype(np.dtype(dtype)) == "int64"
    assert key_dtype(pd.DataFrame({"id": [], "age": []})["id"].dtype) is None  # text, maybe
    assert key_dtype(pd.Int32Dtype()) == "Int32"
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        rows = cast(pd.Series([7, 10**9, -(10**9)]), np.dtype("float16"))
    assert rows.dtype == np.float16
    assert rows.tolist() == [7.0, 65504.0, -65504.0]


@pytest.mark.parametrize("ordered", [True, False])
def test_no_category_is_kept(ordered):
    private = pd.CategoricalDtype(["CANARY", "a"], ordered=ordered)
    kept = chosen(private)
    assert b"CANARY" not in pickle.dumps(kept)
    assert kept.ordered == ordered
    assert chosen(pd.CategoricalDtype(pd.Index([7], dtype="int8"))).categories.dtype == "int8"
    assert chosen(pd.CategoricalDtype([7])) == chosen(pd.CategoricalDtype(["a"]))


def test_a_dtype_of_whole_numbers_says_so_and_one_without_a_missing_value_that():
    assert facts_of_dtype(np.dtype("int8")) == NumberFacts(decimal_places=0, nullable=False)
    assert facts_of_dtype(pd.Int64Dtype()) == NumberFacts(decimal_places=0)
    assert facts_of_dtype(arrow(pa.decimal128(9, 0))) == NumberFacts(decimal_places=0)
    assert (
        facts_of_dtype(arrow(pa.decimal128(9, 2)))
        == facts_of_dtype(np.dtype("float32"))
        == NumberFacts()
    )


@pytest.mark.parametrize("places", [0, 2, None])
@pytest.mark.parametrize("dtype", NUMBERS, ids=str)
def test_numbers_come_back_in_their_dtype(dtype, places):
    column = of("numerical", dtype, range_min=1, range_max=100, decimal_places=places)
    written = rows(column)
    assert written.dtype == dtype or (written.dtype == "float64" and not holds_missing(dtype))
    present = written.dropna().astype(float)
    assert present.between(1, 100).all()
    assert written.isna().tolist() == [False] * (len(written) - 1) + [True]
    without = column.decode(np.arange(5), np.zeros(5))
    assert without.dtype == dtype
    assert len(column.decode(np.array([], dtype=int), np.array([]))) == 0


@pytest.mark.parametrize("dtype", NUMBERS[:22], ids=str)
def test_numbers_that_their_dtype_cannot_hold_are_clipped(dtype):
    ends = {"range_min": -(2.0**70), "range_max": 2.0**70, "range_is_nullable": False}
    written = rows(of("numerical", dtype, **ends))
    assert written.dtype == dtype
    limits = np.iinfo(getattr(dtype, "numpy_dtype", dtype))
    assert limits.min <= int(written.iloc[0]) <= int(written.iloc[-1]) <= limits.max
    assert int(written.iloc[-1]) >= 0.99 * limits.max


@pytest.mark.parametrize("written_as", [None, "%d.%m.%Y"])
@pytest.mark.parametrize("dtype", [*MOMENTS, *OF_UNITS], ids=str)
def test_dates_come_back_in_their_dtype(dtype, written_as):
    ends = {"range_min": "2020-01-01", "range_max": "2020-12-30"}
    if written_as:
        ends = {key: pd.Timestamp(end).strftime(written_as) for key, end in ends.items()}
    column = of("datetime", dtype, datetime_format=written_as, **ends)
    written = rows(column)
    assert written.dtype == dtype
    assert column.encode(written)[0].tolist() == list(range(column.column.size))


@pytest.mark.parametrize("dtype", TEXTS, ids=str)
def test_text_comes_back_in_its_dtype_and_keeps_its_zeros(dtype):
    values = ["01234", "1e5", "nan", "", "10"]
    kept = chosen(pd.Series(["b", "a"]).astype(dtype).dtype)
    written = rows(of("categorical", kept, range_values=values))
    assert str(written.dtype) == str(dtype)
    assert written.iloc[:-1].tolist() == values
    assert pd.isna(written.iloc[-1])
    if isinstance(dtype, pd.CategoricalDtype):
        assert written.cat.categories.tolist() == values
        assert written.cat.ordered == dtype.ordered


@pytest.mark.parametrize("values", [[1, 2], [True, False], ["a", "b"], [1.5, 2.5]])
def test_a_missing_category_stays_missing(values):
    dtype = pd.CategoricalDtype(values)
    for series in (pd.Series([*values, None]), pd.Series([*values, None], dtype=object)):
        written = cast(series, dtype)
        assert written.dtype == dtype
        assert written.tolist()[:2] == values
        assert written.isna().tolist() == [False, False, True]


def test_categories_and_decimals_are_those_that_were_declared():
    kept = chosen(pd.Series([1, 2], dtype="UInt8").astype("category").dtype)
    assert categories_in(kept, [3, 5]).categories.dtype == "UInt8"
    assert rows(of("ordinal", kept, range_values=[3, 5])).cat.categories.dtype == "UInt8"
    column = of("categorical", None, range_values=[0.1, 0.25])
    cells = pd.Series([Decimal("0.1"), Decimal("0.25"), Decimal("0.10")], dtype=object)
    assert column.encode(cells)[0].tolist() == [0, 1, 0]
    with pytest.raises(ValueError, match="none of the categories"):
        cast(pd.Series(["a", "c"], dtype=object), pd.CategoricalDtype(["a", "b"]))


@pytest.mark.parametrize(
    ("values", "dtype"),
    [
        ([1, "a"], pd.Int64Dtype()), ([1, 2.5], np.dtype("int8")), ([1, 2], pd.StringDtype()),
        (["1", "2"], pd.Int64Dtype()), ([300], np.dtype("uint8")), ([0.1], np.dtype("float32")),
        (["a"], arrow(pa.time64("us"))), (["a"], np.dtype("M8[s]")), ([2, 3], pd.BooleanDtype()),
        ([2**70, 1], np.dtype("int32")),
        ([datetime.time(1)], arrow(pa.int8())),
    ],
    ids=str,
)  # fmt: skip
def test_a_dtype_that_would_change_a_category_is_given_up(values, dtype):
    assert rows(of("categorical", dtype, range_values=values)).iloc[:-1].tolist() == values


def test_times_and_decimals_come_back_as_themselves():
    times = [datetime.time(8), datetime.time(12, 30, 1, 5)]
    assert rows(of("categorical", None, range_values=times)).tolist() == [*times, None]
    written = rows(of("ordinal", arrow(pa.time64("us")), range_values=times))
    assert written.dtype == arrow(pa.time64("us"))
    assert written.iloc[:-1].tolist() == times
    prices = [Decimal("0.1"), Decimal(5)]
    assert rows(of("categorical", None, range_values=prices)).tolist() == [*prices, None]
