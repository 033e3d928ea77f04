"""What comes back for each type of column that SDV's users have, with detected metadata.

The rows are so many that what is public about a column is found; dtypes follow from what is
declared or found, never from the private column: but whether all of its dates have a time zone, its
dtype says.
"""

import datetime
import warnings
from decimal import Decimal

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
import sdv_tables
from sdv.metadata import Metadata

from sdv_privpgd import PrivPGDSynthesizer

ROWS = 2_000
RNG = np.random.default_rng(0)
WHOLE = pd.Series(RNG.integers(20, 90, ROWS))
REAL = pd.Series(RNG.normal(50, 10, ROWS))
TRUTH = pd.Series(RNG.random(ROWS) < 0.5)
WORD = pd.Series(RNG.choice(["a", "b", "c"], ROWS).astype(object))
DAY = pd.Series(pd.Timestamp("2020-01-01") + pd.to_timedelta(RNG.integers(0, 900, ROWS), "D"))
HOUR = DAY + pd.to_timedelta(RNG.integers(0, 24, ROWS), "h")
SOME = RNG.random(ROWS) < 0.2


def arrow(kind) -> pd.ArrowDtype:
    return pd.ArrowDtype(kind)


NUMERICAL = {
    "ints": (WHOLE, "int64"),
    "nullable ints": (WHOLE.astype("Int64"), "int64"),
    "nullable ints, some missing": (WHOLE.astype("Int64").mask(SOME), "float64"),
    "bytes": (WHOLE.astype("uint8"), "int64"),
    "Arrow's ints": (WHOLE.astype("int64[pyarrow]"), "int64"),
    "reals": (REAL, "float64"),
    "nullable reals, some missing": (REAL.astype("Float32").mask(SOME), "float64"),
    "half precision": (REAL.astype("float16"), "float64"),
    "Arrow's reals": (REAL.astype("double[pyarrow]"), "float64"),
}
CATEGORICAL = {
    "truths": (TRUTH, "bool"),
    "nullable truths": (TRUTH.astype("boolean"), "bool"),
    "nullable truths, some missing": (TRUTH.astype("boolean").mask(SOME), "object"),
    "Arrow's truths": (TRUTH.astype("bool[pyarrow]"), "bool"),
    "strings": (WORD.astype("string"), "object"),
    "Arrow's strings": (WORD.astype("string[pyarrow]"), "object"),
    "dictionaries": (WORD.astype(arrow(pa.dictionary(pa.int32(), pa.string()))), "object"),
    "categoricals": (WORD.astype("category"), "object"),
    "categoricals of ints": (WHOLE.floordiv(30).astype("category"), "int64"),
    "few ints": (WHOLE.floordiv(30), "int64"),
    "mixed objects": (pd.Series([1, "a", 2.5, True] * (ROWS // 4), dtype=object), "object"),
    "one category": (pd.Series(["x"] * ROWS), "object"),
    "one int": (pd.Series([5] * ROWS), "int64"),
}
DATES = {
    "days": (DAY, "datetime64[ns]"),
    "seconds": (HOUR.astype("M8[s]"), "datetime64[ns]"),
    "Arrow's timestamps": (HOUR.astype("timestamp[us][pyarrow]"), "datetime64[ns]"),
    "dates of a time zone": (HOUR.dt.tz_localize("Asia/Tokyo"), "datetime64[ns, UTC]"),
    "Arrow's dates of a time zone": (
        HOUR.astype("timestamp[us][pyarrow]").dt.tz_localize("Asia/Tokyo"),
        "datetime64[ns, UTC]",
    ),
    "moments with time zones as objects": (
        HOUR.dt.tz_localize("Asia/Tokyo").astype(object),
        "datetime64[ns]",
    ),
    "Arrow's days": (DAY.astype(arrow(pa.date32())), "datetime64[ns]"),
    "formatted days": (DAY.dt.strftime("%Y-%m-%d"), "object"),
    "day objects": (DAY.dt.date, "object"),
}


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
        metadata, 20.0, public_domain=public_domain, strategy="independent", num_particles=500
    )
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="The ranges or categories")
        synthesizer.fit(table)
    return synthesizer.sample(500)["x"], sdtype


@pytest.mark.parametrize("name", NUMERICAL)
def test_numbers_have_the_real_ones_range_and_a_natural_dtype(name):
    real, dtype = NUMERICAL[name]
    rows, sdtype = came_back(real)
    assert sdtype == "numerical"
    assert rows.dtype == dtype
    middle = real.astype(float).median()
    assert abs(rows.astype(float).median() - middle) < 10
    assert abs(rows.isna().mean() - real.isna().mean()) < 0.1


@pytest.mark.parametrize("name", CATEGORICAL)
def test_categories_are_the_real_ones_in_their_dtype(name):
    real, dtype = CATEGORICAL[name]
    rows, sdtype = came_back(real)
    assert sdtype in ("categorical", "ordinal")
    assert rows.dtype == dtype
    assert set(rows.dropna()) - {"other"} == set(real.dropna())
    assert abs(rows.isna().mean() - real.isna().mean()) < 0.1


@pytest.mark.parametrize("name", DATES)
def test_dates_have_the_real_ones_range_and_format(name):
    real, dtype = DATES[name]
    rows, sdtype = came_back(real)
    assert sdtype == "datetime"
    assert rows.dtype == dtype
    dates = pd.to_datetime(rows, utc=True).dt.tz_convert(None)
    assert dates.between("2019-12-01", "2022-08-31").mean() > 0.98
    if dtype == "object":
        assert rows.str.fullmatch(r"\d{4}-\d{2}-\d{2}").all()


def test_a_format_that_cannot_write_the_dates_is_given_up_where_it_was_declared_too():
    """Two digits are read as years from 1969 to 2068."""
    real = DAY - pd.Timedelta(days=25_000)
    facts = {"datetime_format": "%d.%m.%y"}
    rows, _ = came_back(real, {"x": facts}, sdtype="datetime")
    assert rows.dtype == "datetime64[ns]"
    assert rows.between("1951-06-01", "1954-03-01").mean() > 0.98


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


def test_duplicated_rows_are_rows_like_any_other():
    rows, _ = came_back(pd.concat([WORD[:20]] * (ROWS // 20), ignore_index=True))
    assert set(rows) - {"other"} == set(WORD[:20])


def test_durations_are_refused_by_detection_and_are_numbers_in_seconds():
    durations = pd.Series(pd.to_timedelta(WHOLE, unit="s"))
    with pytest.raises(Exception, match="Unsupported data type"):
        came_back(durations)
    rows, _ = came_back(durations.dt.total_seconds())
    assert pd.to_timedelta(rows, unit="s").dropna().lt(datetime.timedelta(seconds=120)).all()
