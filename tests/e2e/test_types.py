"""What comes back for each type of column that SDV's users have, with detected metadata.

The rows are so many that what is public about a column is found. A dtype that no cell chooses comes
back as it is; others follow from what is declared or found, never from the private column.
"""

import datetime
import warnings
from decimal import Decimal

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
import sdv_tables
from columns_of_words import arrow
from sdv.metadata import Metadata

from sdv_privpgd import PrivPGDSynthesizer
from sdv_privpgd.methods import Independent, ParticleGradientDescent

pytestmark = pytest.mark.filterwarnings("ignore:.*have the sdtype id")

ROWS = 2_000
RNG = np.random.default_rng(0)
WHOLE = pd.Series(RNG.integers(20, 90, ROWS))
REAL = pd.Series(RNG.normal(50, 10, ROWS))
TRUTH = pd.Series(RNG.random(ROWS) < 0.5)
WORD = pd.Series(RNG.choice(["a", "b", "c"], ROWS).astype(object))
DAY = pd.Series(pd.Timestamp("2020-01-01") + pd.to_timedelta(RNG.integers(0, 900, ROWS), "D"))
HOUR = DAY + pd.to_timedelta(RNG.integers(0, 24, ROWS), "h")
SOME = RNG.random(ROWS) < 0.2
TIME = pd.Series([datetime.time(hour, 30) for hour in RNG.integers(6, 9, ROWS)], dtype=object)
CENTS = pd.Series([Decimal(int(cent)) / 100 for cent in RNG.integers(20, 24, ROWS)], dtype=object)
SAME = None
"""The dtype that went in."""

NUMERICAL = {
    "ints": (WHOLE, "int64"),
    "ints as reals, some missing": (WHOLE.astype("float64").mask(SOME), "float64"),
    "small ints": (WHOLE.astype("int8"), SAME),
    "nullable ints, some missing": (WHOLE.astype("Int64").mask(SOME), SAME),
    "nullable bytes, some missing": (WHOLE.astype("UInt8").mask(SOME), SAME),
    "Arrow's ints, some missing": (WHOLE.astype("int16[pyarrow]").mask(SOME), SAME),
    "reals": (REAL, "float64"),
    "nullable reals, some missing": (REAL.astype("Float32").mask(SOME), SAME),
    "single precision": (REAL.astype("float32"), SAME),
    "Arrow's reals": (REAL.astype("double[pyarrow]"), SAME),
}
CATEGORICAL = {
    "truths": (TRUTH, "bool"),
    "nullable truths, some missing": (TRUTH.astype("boolean").mask(SOME), SAME),
    "Arrow's truths": (TRUTH.astype("bool[pyarrow]"), SAME),
    "strings, some missing": (WORD.astype("string").mask(SOME), SAME),
    "Arrow's strings": (WORD.astype("string[pyarrow]"), SAME),
    "dictionaries": (WORD.astype(arrow(pa.dictionary(pa.int32(), pa.string()))), SAME),
    "categoricals": (WORD.astype("category"), SAME),
    "ordered categoricals": (WORD.astype(pd.CategoricalDtype(list("cab"), ordered=True)), SAME),
    "few small ints": (WHOLE.floordiv(30).astype("int8"), SAME),
    "mixed objects": (pd.Series([1, "a", 2.5, True] * (ROWS // 4), dtype=object), "object"),
    "one category": (pd.Series(["x"] * ROWS), "object"),
    "digits": (pd.Series(RNG.choice(["01234", "00501"], ROWS).astype(object)), "object"),
    "categoricals of digits": (pd.Series(RNG.choice(["01", "1"], ROWS)).astype("category"), SAME),
}
IN_ARROW, IN_TOKYO = HOUR.astype("timestamp[us][pyarrow]"), HOUR.dt.tz_localize("Asia/Tokyo")
DATES = {
    "days": (DAY, "datetime64[ns]"),
    "milliseconds": (HOUR.astype("M8[ms]"), "datetime64[ns]"),
    "Arrow's timestamps": (IN_ARROW, SAME),
    "dates of a time zone": (IN_TOKYO, SAME),
    "dates of an offset": (HOUR.dt.tz_localize("+02:00"), "datetime64[ns, UTC]"),
    "Arrow's dates of a time zone": (IN_ARROW.dt.tz_localize("Asia/Tokyo"), SAME),
    "moments with time zones as objects": (IN_TOKYO.astype(object), "datetime64[ns]"),
    "Arrow's days": (DAY.astype(arrow(pa.date32())), SAME),
    "formatted days": (DAY.dt.strftime("%Y-%m-%d"), "object"),
    "day objects": (DAY.dt.date, "object"),
}
WORDLESS = {
    "times of day": (TIME, "object", "categorical"),
    "Arrow's times of day": (TIME.astype(arrow(pa.time64("us"))), SAME, "categorical"),
    "Arrow's text": (WORD.astype(arrow(pa.string())), SAME, "categorical"),
    "Arrow's decimals": (CENTS.astype(arrow(pa.decimal128(9, 2))), SAME, "numerical"),
    "decimals as categories": (CENTS, "object", "categorical"),
}
"""What SDV's detection has no word for, or the wrong one."""


def came_back(
    column: pd.Series, public_domain: dict | None = None, **facts
) -> tuple[pd.Series, str]:
    """The synthetic column and its sdtype: as in ``facts``, or as SDV detects it."""
    table = pd.DataFrame({"x": column, "y": TRUTH})
    if facts:
        metadata = sdv_tables.metadata_of({"x": facts, "y": {"sdtype": "boolean"}})
    else:
        with np.errstate(all="ignore"):  # SDV rounds in the column's own precision
            metadata = Metadata.detect_from_dataframes({"table": table})
    sdtype = metadata.tables["table"].columns["x"]["sdtype"]
    synthesizer = PrivPGDSynthesizer(
        metadata,
        20.0,
        public_domain=public_domain,
        method=Independent(engine=ParticleGradientDescent(num_particles=500)),
    )
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="The ranges or categories")
        synthesizer.fit(table, allow_lost=["x"] if facts.get("sdtype") == "unknown" else ())
    return synthesizer.sample(500)["x"], sdtype


@pytest.mark.parametrize("name", NUMERICAL)
def test_numbers_have_the_real_ones_range_and_a_natural_dtype(name):
    real, dtype = NUMERICAL[name]
    rows, sdtype = came_back(real)
    assert sdtype == "numerical"
    assert rows.dtype == (dtype or real.dtype)
    middle = real.astype(float).median()
    assert abs(rows.astype(float).median() - middle) < 10
    assert abs(rows.isna().mean() - real.isna().mean()) < 0.1


@pytest.mark.parametrize("name", CATEGORICAL)
def test_categories_are_the_real_ones_in_their_dtype(name):
    real, dtype = CATEGORICAL[name]
    rows, sdtype = came_back(real)
    assert sdtype in ("categorical", "ordinal")
    assert str(rows.dtype) == str(dtype or real.dtype)
    assert set(rows.dropna()) - {"other"} == set(real.dropna())
    assert abs(rows.isna().mean() - real.isna().mean()) < 0.1


@pytest.mark.parametrize("name", DATES)
def test_dates_have_the_real_ones_range_and_format(name):
    real, dtype = DATES[name]
    rows, sdtype = came_back(real)
    assert sdtype == "datetime"
    assert rows.dtype == (dtype or real.dtype)
    dates = pd.to_datetime(rows, utc=True).dt.tz_convert(None)
    assert dates.between("2019-12-01", "2022-08-31").mean() > 0.98
    if rows.dtype in ("object", "string"):
        assert rows.str.fullmatch(r"\d{4}-\d{2}-\d{2}").all()


@pytest.mark.parametrize("name", WORDLESS)
def test_what_sdv_has_no_word_for_comes_back_where_it_is_declared(name):
    real, dtype, sdtype = WORDLESS[name]
    rows, _ = came_back(real, sdtype=sdtype)
    assert rows.dtype == (dtype or real.dtype)
    assert set(map(type, rows.dropna())) - {str} == set(map(type, real)) - {str}
    if sdtype == "categorical":
        assert set(rows.dropna()) - {"other"} == set(real)


def test_the_categories_of_a_categorical_are_those_that_were_found_or_declared():
    """The private column's own list has another, which no row has; what is found has no order."""
    real = WORD.astype(pd.CategoricalDtype([*"cab", "CANARY"], ordered=True))
    rows, _ = came_back(real)
    assert not rows.cat.ordered
    assert set(rows.cat.categories) - {"other"} == set("abc")
    rows, _ = came_back(real, {"x": {"range_values": [*"dcba"]}}, sdtype="ordinal")
    assert rows.cat.categories.tolist() == [*"dcba"]
    assert rows.cat.ordered


@pytest.mark.parametrize("ordered", [True, False])
@pytest.mark.parametrize("sdtype", ["categorical", "ordinal"])
def test_declared_categories_that_no_row_has_stay_in_the_dtype(sdtype, ordered):
    """In the declared order. Those of the private column alone may be somebody's only value."""
    own = pd.CategoricalDtype([*"abc", "declared", "CANARY"], ordered=ordered)
    declared = ["unused", *"cab", "declared"]
    rows, _ = came_back(WORD.astype(own), {"x": {"range_values": declared}}, sdtype=sdtype)
    assert rows.dtype == pd.CategoricalDtype(declared, ordered=ordered)


@pytest.mark.parametrize(
    ("dtype", "expected"),
    [("int64", "int64"), ("int8", "int8"), ("Int64", "Int64"), ("object", "int64")],
)
def test_whole_numbers_of_a_declared_range_come_back_whole_and_none_is_missing(dtype, expected):
    domain = {"range_min": 0, "range_max": 120}
    if dtype in ("int64", "object"):  # no dtype says it
        domain["decimal_places"] = 0
    for _ in range(3):
        rows, _ = came_back(WHOLE.astype(dtype), {"x": domain}, sdtype="numerical")
        assert rows.dtype == expected
        assert rows.notna().all()


def test_dates_of_two_digits_duplicates_and_durations_are_columns_like_others():
    real = DAY - pd.Timedelta(days=25_000)
    facts = {"datetime_format": "%d.%m.%y"}
    rows, _ = came_back(real, {"x": facts}, sdtype="datetime")
    assert rows.str[-2:].astype(int).between(51, 54).mean() > 0.98
    rows, _ = came_back(pd.concat([WORD[:20]] * (ROWS // 20), ignore_index=True))
    assert set(rows) - {"other"} == set(WORD[:20])
    durations = pd.Series(pd.to_timedelta(WHOLE, unit="s"))
    with pytest.raises(Exception, match="Unsupported data type"):
        came_back(durations)
    rows, _ = came_back(durations.dt.total_seconds())
    assert pd.to_timedelta(rows, unit="s").dropna().lt(datetime.timedelta(seconds=120)).all()


@pytest.mark.parametrize("sdtype", ["numerical", "categorical", "datetime"])
def test_a_column_without_a_value_stays_without(sdtype):
    rows, _ = came_back(pd.Series([None] * ROWS, dtype=object), sdtype=sdtype)
    assert rows.isna().mean() > 0.9


def test_decimals_are_numbers_where_they_are_declared_to_be():
    """SDV's detection takes them for keys, or fails."""
    cents = pd.Series([Decimal(int(cent)) / 100 for cent in WHOLE], dtype=object)
    rows, _ = came_back(cents, sdtype="numerical")
    assert rows.dtype == "float64"
    assert rows.between(0.1, 1).mean() > 0.9
    ends = {"range_min": Decimal(0), "range_max": Decimal(1), "decimal_places": 2}
    rows, _ = came_back(cents, {"x": ends}, sdtype="numerical")
    assert set(map(type, rows)) == {Decimal}
    assert rows.between(Decimal("0.1"), Decimal(1)).mean() > 0.9


@pytest.mark.parametrize("dtype", ["int32", "Int64", "uint8", "int64[pyarrow]"])
def test_ids_of_whole_numbers_are_whole_numbers(dtype):
    real = pd.Series(np.arange(ROWS) % 200).astype(dtype)
    rows, _ = came_back(real, sdtype="id")
    assert rows.dtype == (dtype if dtype != "uint8" else "int64")  # 500 of them need more
    assert rows.is_unique


@pytest.mark.parametrize("facts", [{}, {"regex_format": "[0-9]{4}"}])
def test_ids_are_no_numbers_where_one_missing_cell_would_decide_it(facts):
    real = pd.Series(np.arange(ROWS) % 200)
    whole, _ = came_back(real, sdtype="id", **facts)
    lacking, _ = came_back(real.mask(real.index == 3), sdtype="id", **facts)
    assert whole.tolist() == lacking.tolist()
    assert {type(each) for each in whole} == {str}


@pytest.mark.parametrize("dtype", ["string", "category", "string[pyarrow]"])
def test_what_is_generated_has_the_dtype_that_went_in(dtype):
    real = pd.Series([f"REAL{row}" for row in range(ROWS)]).astype(dtype)
    rows, _ = came_back(real, sdtype="email", pii=True)
    assert rows.dtype == dtype if dtype != "category" else str(rows.dtype) == dtype
    assert rows.str.contains("@").all()


@pytest.mark.parametrize(
    ("facts", "pattern"),
    [
        ({"sdtype": "id"}, r"sdv-id-\d+"),
        ({"sdtype": "id", "regex_format": "P[0-9]{6}"}, r"P\d{6}"),
        ({"sdtype": "email", "pii": True}, r"[^@]+@[^@]+"),
        ({"sdtype": "unknown", "pii": True}, r"sdv-pii-\w+"),
    ],
)
def test_what_names_a_person_is_generated(facts, pattern):
    real = pd.Series([f"REAL{row}" for row in range(ROWS)])
    rows, _ = came_back(real, **facts)
    assert rows.astype(str).str.fullmatch(pattern).all()
    assert not set(rows) & set(real)
