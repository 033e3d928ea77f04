"""Dates to codes and back, whatever they are written as."""

import datetime
import zoneinfo
from decimal import Decimal

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from encoding import codes, dates, decoded
from processes import python_says

from sdv_privpgd.columns import dates as dates_
from sdv_privpgd.columns.date_formats import write_dates
from sdv_privpgd.columns.parser import describe
from sdv_privpgd.columns.units import has_zone, is_aware

pytestmark = pytest.mark.filterwarnings("error")


def test_dates_and_all_forms_of_iso_are_read_without_a_format():
    days = dates("2000-01-01", "2000-01-20")
    third = ("2000-01-03", "2000-01-03 23:59", " 2000-01-03 ", datetime.date(2000, 1, 3),
             datetime.datetime(2000, 1, 3, 5), pd.Timestamp("2000-01-03"),
             np.datetime64("2000-01-03T07"), "2000-01-03T00:00Z")  # fmt: skip
    assert codes(days, *third) == [2] * len(third)
    days = dates("2000-01-01", "2000-12-31", num_bins=366)
    forms = ("2000-02-01", "20000201", "2000-02", "2000-02-01T10", "2000-02-01 10:30:15.123456789Z",
             "2000-02-01T10:30:15,5+09:00", "2000-02-01 10:30 +0900")  # fmt: skip
    assert codes(days, *forms) == [31] * len(forms)
    assert codes(days, "2000") == [0]


def test_order_and_bounds_of_text_are_not_guessed():
    days = dates("2000-01-01", "2000-12-31", num_bins=366)
    ambiguous = ("05.01.2000", "01/05/2000", "13.01.2000", "5.1.00", "05-01-2000", "Jan 3, 2000",
                 "2000/01/05", "2000-13-05", "2000-02-30", "05012000", "200001", "10:00",
                 "2000-01-05 10:00 EST", "٢٠٠٠-01-05")  # fmt: skip
    assert codes(days, *ambiguous) == [366] * len(ambiguous)
    declared = dates("01.01.2000", "31.12.2000", "%d.%m.%Y", num_bins=366)
    assert codes(declared, "05.01.2000") == [4]
    for key in ("range_min", "range_max"):
        facts = {"sdtype": "datetime", "num_bins": 9}
        facts |= {"range_min": "2022-01-01", "range_max": "2022-12-31", key: "01.06.2022"}
        with pytest.raises(ValueError, match=rf"{key} of 'seen'.*declared datetime_format"):
            describe("seen", facts)


def test_days_are_those_that_cells_show_and_moments_are_in_utc():
    zone = zoneinfo.ZoneInfo("Asia/Tokyo")
    cells = ["2000-01-03T00:00+09:00", "2000-01-03 23:30 -05", pd.Timestamp("2000-01-03", tz=zone),
             datetime.datetime(2000, 1, 3, 23, tzinfo=zone)]  # fmt: skip
    days = dates("2000-01-01", "2000-01-20")
    assert codes(days, *cells) == [2] * len(cells)
    fixed = pd.Series(cells[2:3]).dt.tz_convert("+09:00")
    assert [days.encode(each)[0].tolist() for each in (fixed, fixed.astype(object))] == [[2], [2]]
    hours = dates("2000-01-01 00:00:00", "2000-01-04 23:59:59")
    found, _ = hours.read(pd.Series(cells, dtype=object))
    assert (found // 3600 % 24).tolist() == [15, 4, 15, 14]
    midnights = [*cells[:1], cells[2], "2000-01-03T00:00Z", "2000-01-03T05:30+05:30"]
    assert dates_.precisions(pd.Series(midnights, dtype=object)).tolist() == [2, 2, 2, 3]
    indian = pd.Series(pd.to_datetime(["2000-01-03 05:00"]).tz_localize("Asia/Kolkata"))
    assert dates_.precisions(indian).tolist() == [3]
    text = pd.Series(["03.01.2000 05:30 +0530", "03.01.2000 05:40 +0530"], dtype=object)
    assert dates_.precisions(text, "%d.%m.%Y %H:%M %z").tolist() == [3, 4]


@pytest.mark.parametrize("offset", ["+0200", "-05:00", "Z"])
def test_days_that_a_format_writes_with_an_offset_are_those_that_cells_show(offset):
    days = dates(f"2000-01-01 {offset}", f"2000-01-20 {offset}", "%Y-%m-%d %z")
    cells = [f"2000-01-03 {offset}", "2000-01-03 +1000", "2000-01-03 -1000", "2000-01-03"]
    assert codes(days, *cells) == [2, 2, 2, 20]
    assert decoded(days, 2).tolist() == cells[:1]


@pytest.mark.parametrize("datetime_format", [None, "%Y-%m-%d"])
def test_dates_that_nanoseconds_cannot_hold_go_to_the_ends_and_others_are_missing(datetime_format):
    days = dates(datetime_format=datetime_format)
    utc_14 = datetime.timezone(datetime.timedelta(hours=14))
    early = (datetime.date(1, 1, 1), "1066-10-14", np.datetime64(-(10**10), "Y"),
             datetime.datetime(1, 1, 1, tzinfo=utc_14), np.datetime64("1066-10-14", "W"),
             pd.Timestamp("1066-10-14"), np.datetime64(-(2**63) + 1, "ns"))  # fmt: skip
    late = (datetime.date(9999, 12, 31), "9999-12-31", np.datetime64(10**10, "Y"),
            pd.Timestamp("9999-12-31"), np.datetime64(2**63 - 1, "s"))  # fmt: skip
    assert codes(days, *early) == [0] * len(early)
    assert codes(days, *late) == [31] * len(late)
    for unit in ("s", "ms", "us"):
        column = pd.Series(np.array(["1066-10-14", "9999-12-31", "NaT"], dtype=f"M8[{unit}]"))
        assert days.encode(column)[0].tolist() == [0, 31, 32]
    days, called = dates(datetime_format=datetime_format), []
    spy = type("Spy", (), {"year": property(lambda _: called.append(1))})()
    kind = type("Kind", (type,), {"__eq__": lambda *_: called.append(2), "__hash__": None})
    strange = (spy, kind("Strange", (), {})(), "soon", "", "now", "today", " Today ", "NaT",
               "\ud800", 20_050_101, 1.5, True, b"2005-01-01", None, pd.NA, pd.NaT,
               np.datetime64("NaT", "s"), datetime.time(1), pd.Timedelta(1))  # fmt: skip
    assert codes(days, *strange) == [32] * len(strange)
    assert called == []


ZONE = datetime.timezone(-datetime.timedelta(hours=9, seconds=1, microseconds=3))
DAY = 86_400 * 10**9


@pytest.mark.parametrize(
    ("cell", "nanoseconds"),
    [
        (datetime.datetime(1970, 2, 1, 0, 0, 1, 5, ZONE), 31 * DAY + 32_402 * 10**9 + 8_000),
        (datetime.datetime(9999, 1, 1), dates_.LATEST),
        (datetime.datetime(1, 1, 1, tzinfo=ZONE), dates_.EARLIEST),
        (np.datetime64("9999-12-31", "D"), dates_.LATEST),
        (np.datetime64("2262-04-10T23:47:16", "s"), 9_223_285_636 * 10**9),
        (np.datetime64(1_000 * (2**53 + 1), "ps"), 2**53 + 1),
        (np.datetime64("1678-01-02", "D"), dates_.BEYOND[0]),
        (np.datetime64("2262-05-01", "D"), dates_.LATEST),
        (np.datetime64("2262-04", "M"), dates_.LATEST // DAY * DAY - 10 * DAY),
        (np.datetime64(9 * 10**18, "fs"), 9 * 10**12),
        *((np.datetime64(7 * 1_000**n, unit), 7) for n, unit in enumerate(("fs", "as"), 2)),
    ],
    ids=str,
)
def test_an_instant_is_exact(cell, nanoseconds):
    for written in (None, "%Y-%m-%d"):  # which is of text
        found, missing = dates_.instants(pd.Series([cell], dtype=object), written)
        assert (found.tolist(), missing.tolist()) == ([nanoseconds], [False])


def test_never_has_its_own_day_in_a_format_without_a_year():
    cells = pd.Series(
        [datetime.date(9999, 12, 31), "31.12.", datetime.date(1, 1, 1), "01.01."], dtype=object
    )
    found, _ = dates_.instants(cells, "%d.%m.")
    assert found[0] == found[1] != found[2] == found[3]
    cells = [pd.Timestamp("2020-05-01 10:00", tz="Asia/Tokyo"), "01.05. 01:00 +0000"]
    found, missing = dates_.instants(pd.Series(cells, dtype=object), "%d.%m. %H:%M %z")
    assert found[0] == found[1]
    assert not missing.any()


def test_precisions_are_those_of_cells():
    cells = ["2020-01-01", datetime.date(2020, 2, 1), "2020-01-02", "2020-01-01 10:00", None,
             "no date", pd.Timestamp("2020-01-01T00:00:00.5"), "9999-12-31",
             "2020-01-01 00:00:00.000125", "2020-01-01 00:00:00.000000125"]  # fmt: skip
    found = dates_.precisions(pd.Series(cells, dtype=object))
    assert found.tolist() == [0, 1, 2, 3, 9, 9, 6, 0, 7, 8]
    times = ["08:31", datetime.time(8, 30, 1), datetime.time(0), "08:30:00.5", "half past", None]
    for clock, second in (("%H:%M:%S", 5), ("%H:%M", 4)):
        found = dates_.precisions(pd.Series(times, dtype=object), clock)
        assert found.tolist() == [4, second, 0, 4, 9, 9]  # no clock has parts of a second
    days = pd.Series(np.array(["1066-10-14T12", "2020-01-01T15"], "M8[s]")).dt.tz_localize("UTC")
    assert dates_.precisions(days.dt.tz_convert("Etc/GMT-9")).tolist() == [0, 2]
    moments, _ = dates_.instants(pd.Series(times[2:3], dtype=object), "%H:%M on day %w of week %U")
    assert moments.tolist() == [int(np.datetime64("2000-01-01", "ns"))]


_LONG_AGO = """
import pandas as pd
import pyarrow as pa
from sdv_privpgd.columns.scalars import cells
from sdv_privpgd.sources.arrow import series_of
from sdv_privpgd.sources.visits import joined
own = pd.Series(["1066-10-14T12", "2020-01-01"]).astype("datetime64[s, UTC]")
own = own.dt.tz_convert("Asia/Tokyo")
arrows = pa.array(own)
for each in (own, own.astype(pd.ArrowDtype(arrows.type)), series_of(arrows.dictionary_encode())):
    print([cell.year for cell in cells(each)], joined([each, pd.Series(["x"])]).tolist()[2])
"""


def test_no_date_of_long_ago_ends_the_process():
    assert python_says("-c", _LONG_AGO) == "[1678, 2020] x\n" * 3


def aware(series, datetime_format):
    """Which dates have a time zone: a clock in another one shows other times of these."""
    moments, zone = np.full(len(series), 2**60), "Etc/GMT-9"
    return list(dates_.by_zone(moments, series, datetime_format, zone, zone) != moments)


def test_instants_have_zones_of_their_dtype_or_their_own():
    empty = pd.Series([], dtype=object)
    assert dates_.instants(empty, None)[0].dtype == np.int64
    assert aware(empty, None) == []
    moment = pd.Timestamp("2020-01-02", tz="Asia/Tokyo")
    cells = [moment, moment.to_pydatetime(), moment.tz_localize(None), "2020-01-02T00:00Z", None]
    assert aware(pd.Series(cells, dtype=object), None) == [1, 1, 0, 1, 0]
    assert aware(pd.Series(["01 +0100", "x"]), "%d %z") == [1, 1]
    assert aware(pd.Series(["2020-01-02T00:00Z"]), "%Y") == [0]
    arrow = pd.ArrowDtype(pa.timestamp("us", "Asia/Tokyo"))
    for dtype in ("datetime64[ns, Asia/Tokyo]", arrow, "datetime64[s]"):
        found = aware(pd.Series([None], dtype=dtype), None)
        assert found == [is_aware(pd.Series([], dtype=dtype).dtype)]
        assert found == [dtype != "datetime64[s]"]
    assert [has_zone(each) for each in ("%d %z", "%d %Z", "%d")] == [True, True, False]
    first, last = dates_.BEYOND
    shown = dates_.on_the_clock(np.array([first, 2**60 + 1, last]), "Etc/GMT-9")
    assert shown.dtype == np.int64
    assert shown.tolist() == [first, 2**60 + 1 + 9 * DAY // 24, last]
    twice_and_never = pd.Series(pd.to_datetime(["2020-10-25 02:30", "2020-03-29 02:30"]))
    found = dates_.in_zone(twice_and_never, "Europe/Berlin").map(str).tolist()
    assert found == ["2020-10-25 02:30:00+01:00", "2020-03-29 03:00:00+02:00"]
    plain = pd.Series(["x"] * 3), None, "Etc/GMT-9", None
    back = dates_.by_zone(np.array([first, 2**60 + 1 + 9 * DAY // 24, last]), *plain)
    assert back.tolist() == [first, 2**60 + 1, last]
    at_the_end = dates_.by_zone(np.array([last - 1]), pd.Series(["x"]), None, "Etc/GMT+9", None)
    assert at_the_end.tolist() == [last]
    assert dates_.by_zone(np.zeros(0, np.int64), empty, None, "Etc/GMT+9", None).size == 0
    days = dates("1969-12-30", "1970-01-02")
    assert codes(days, "1969-12-31T23:59", "1970-01-01T00:00") == [1, 2]


def test_a_format_reads_what_is_written_in_it_also_as_numbers():
    days = dates("01.01.2000", "20.01.2000", "%d.%m.%Y")
    assert codes(days, "03.01.2000", "2000-01-03", "3.1.2000 10:00") == [2, 20, 20]
    days = dates("1.1.2000", "20.1.2000", "%-d.%-m.%Y")
    assert codes(days, "3.1.2000", "03.01.2000") == [2, 2]
    days = dates("20000101", "20000120", "%Y%m%d")
    assert codes(days, "20000103", 20000103, 20000103.0, Decimal(20000103)) == [2] * 4
    assert codes(days, 20000103.5, float("inf"), 10**400, True, b"20000103") == [20] * 5
    for dtype in ("int64", "float64", "Int64", "category"):
        assert days.encode(pd.Series([20000103]).astype(dtype))[0].tolist() == [2]


@pytest.mark.parametrize(
    ("low", "high", "datetime_format"),
    [
        ("2000-01", "2002-01", "%Y-%m"),
        ("1990", "2010", "%Y"),
        ("01/02/2000 00:05", "01/02/2000 00:20", "%d/%m/%Y %H:%M"),
        (
            "2000-01-01 00:00:00.000005+0000",
            "2000-01-01 00:00:00.000025+0000",
            "%Y-%m-%d %H:%M:%S.%f%z",
        ),
        ("2000-01-01T00:00+02:00", "2000-01-01T00:15+02:00", "%Y-%m-%dT%H:%M%z"),
        ("2000-01-01T00:00Z", "2000-01-01T00:15Z", "%Y-%m-%dT%H:%M%z"),
        ("31.01.2000 23:59:59.990 x", "01.02.2000 00:00:00.010 x", "%d.%m.%Y %H:%M:%S.%f x"),
    ],
)
def test_dates_are_written_in_their_format_and_resolution(low, high, datetime_format):
    written = dates(low, high, datetime_format)
    every = range(written.column.num_values)
    values = decoded(written, *every)
    assert values.iloc[0] == low
    assert values.iloc[-1] == high
    assert written.encode(values)[0].tolist() == list(every)


def test_dates_without_a_format_are_timestamps():
    assert decoded(dates(), 0, 31).dtype == "datetime64[ns]"
    assert decoded(dates(), 0, 32).isna().tolist() == [False, True]
    for end, unit in (("00.125", "ms"), ("00.000125", "us"), ("00.000000125", "ns")):
        assert dates("2000-01-01", f"2000-01-02 00:00:{end}").column.unit == unit
    aware = dates("2000-01-01T00:00Z", "2000-01-20T00:00Z")
    assert decoded(aware, 0).tolist() == [pd.Timestamp("2000-01-01", tz="UTC")]


def test_dates_beyond_the_calendar_are_read_as_the_days_that_stand_for_them():
    days = dates("0001-01-01", "9999-12-31")
    found, missing = days.read(pd.Series(["0001-01-01", "9999-12-31"]))
    assert found.tolist() == dates_.to_ticks(np.array(dates_.BEYOND), "D").tolist()
    assert not missing.any()
    first, last = dates_.BEYOND
    ticks = np.array([first, first + DAY - 1, first + DAY, last])
    for far, years in (((), [1678, 1678, 1678, 2262]), ((True,), [1, 1, 1678, 9999])):
        assert write_dates(ticks, "ns", None, False, *far).year.tolist() == years
        for is_shared in (False, True):  # pandas then gives arrays that nobody may write into
            with pd.option_context("mode.copy_on_write", is_shared):
                written = write_dates(ticks, "ns", "%Y", False, *far)
            assert written.tolist() == [f"{year:04}" for year in years]
