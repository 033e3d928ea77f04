"""Discovery finds what is there, within its noise, and asks the curator for all of it."""

import datetime
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
from discovering import described, found, found_in
from hypothesis import given
from hypothesis import strategies as st

from sdv_privpgd.columns.bins import SignedPowers
from sdv_privpgd.columns.dates import precisions
from sdv_privpgd.columns.encoders import encoder_for
from sdv_privpgd.columns.parsing import describe
from sdv_privpgd.columns.scalars import canonical, cells, decimal_places, key_counts
from sdv_privpgd.columns.schema import Schema
from sdv_privpgd.domain import Domain
from sdv_privpgd.privacy.curator import Curator
from sdv_privpgd.privacy.dataset import Dataset
from sdv_privpgd.privacy.ledger import Books, PrivacyBudgetError, PrivacyLedger
from sdv_privpgd.privacy.noise import rounded_gaussian
from sdv_privpgd.privacy.queries import Adjacency
from sdv_privpgd.privacy.thresholding import threshold_for, thresholded_delta
from sdv_privpgd.privacy.value_counts import ValueCounts

REPLACE, ADD = Adjacency.REPLACE_ONE, Adjacency.ADD_REMOVE
ROWS = 20_000
CELLS = [
    1, 1.0, True, np.True_, np.int8(1), 0, 0.0, -0.0, False, None, float("nan"), pd.NA, pd.NaT,
    "a", "1", b"a", Decimal(1), Fraction(1, 3), 10**400, float("inf"), 2.5, (1,), [1], object(),
]  # fmt: skip


def one_by_one(column):
    """The keys of a column, each cell read by itself."""
    return ValueCounts({"x": ((canonical(cell), 1) for cell in column)})


class TestThresholds:
    @pytest.mark.parametrize("adjacency", Adjacency)
    @pytest.mark.parametrize("shape", [(1, 1), (14, 1), (3, 5)])
    @pytest.mark.parametrize("stddev", [0.5, 7.3, 250.0])
    def test_the_threshold_is_the_smallest_that_keeps_delta(self, stddev, shape, adjacency):
        delta = Fraction(1e-6)
        threshold = threshold_for(stddev, delta, *shape, adjacency)
        assert thresholded_delta(stddev, threshold, *shape, adjacency) <= delta
        assert thresholded_delta(stddev, threshold - 1, *shape, adjacency) > delta

    def test_twice_the_columns_under_replace_one(self):
        one = thresholded_delta(10.0, 60, 4, 1, ADD)
        assert float(thresholded_delta(10.0, 60, 4, 1, REPLACE)) == pytest.approx(
            float(2 * one), rel=1e-6
        )
        assert thresholded_delta(10.0, 60, 8, 1, ADD) == 2 * one

    def test_a_value_of_one_row_is_released_as_rarely_as_reserved(self):
        """At an inflated level: 2 million draws, the count within 5 standard errors from above."""
        delta, stddev, draws = Fraction(1, 1000), 9.0, 2_000_000
        threshold = threshold_for(stddev, delta, 1, 1, ADD)
        released = int((1 + rounded_gaussian(stddev, draws) >= threshold).sum())
        assert released <= 1000 * draws / 1e6 + 5 * (1000 * draws / 1e6) ** 0.5
        lower = int((1 + rounded_gaussian(0.9 * stddev, draws) >= threshold).sum())
        assert lower < 0.6 * released, "the test would not notice a smaller scale"

    def test_one_person_s_rows_may_all_have_one_value(self):
        """P(5 + N >= T) five times covers 5 rows of one value, and 5 values of a row each."""
        threshold = threshold_for(10.0, Fraction(1e-6), 1, 5, ADD)
        assert threshold > threshold_for(10.0, Fraction(1e-6), 1, 1, ADD) + 4


class TestKeys:
    def test_values_are_counted_in_one_spelling_and_sorted(self):
        cells = [
            "b",
            2,
            "a",
            True,
            2.0,
            None,
            Decimal(2),
            float("nan"),
            2.5,
            b"b",
            "a",
            1,
            np.int8(2),
        ]
        keys = one_by_one(cells)
        assert keys.counts("x") == [
            (True, 1), (1, 1), (2, 3), (2.5, 1), (Decimal(2), 1), ("a", 2), ("b", 1), (b"b", 1),
            (None, 2)
        ]  # fmt: skip

    @given(st.lists(st.sampled_from(CELLS), max_size=30))
    def test_counting_by_distinct_cells_changes_nothing(self, cells):
        series = pd.Series(cells, dtype=object)
        apart = one_by_one(cells).counts("x")
        together = ValueCounts({"x": key_counts(series)}).counts("x")
        assert [(type(key), key, n) for key, n in together] == [
            (type(key), key, n) for key, n in apart
        ]

    @pytest.mark.parametrize(
        "dtype", ["int8", "uint64", "float32", "float64", "bool", "Int64", "Float64", "boolean",
                  "category", "string", "object"]
    )  # fmt: skip
    def test_the_dtype_changes_nothing_but_what_it_cannot_hold(self, dtype):
        series = pd.Series([1, 0, 1, 1], dtype=object).astype(dtype)
        expected = one_by_one(cells(series)).counts("x")
        assert ValueCounts({"x": key_counts(series)}).counts("x") == expected
        assert sum(number for _, number in expected) == 4

    def test_missing_categories_are_missing(self):
        series = pd.Series(["a", None, "b", "a"], dtype="category")
        counted = ValueCounts({"x": key_counts(series)}).counts("x")
        assert counted == [("a", 2), ("b", 1), (None, 1)]

    @given(st.lists(st.one_of(st.integers(-3, 3), st.sampled_from("ab"), st.none()), max_size=30))
    def test_the_order_of_rows_changes_nothing(self, cells):
        there, back = (one_by_one(order).counts("x") for order in (cells, cells[::-1]))
        assert there == back

    @pytest.mark.parametrize(
        "cell", [10**400, Decimal("1e999999"), Fraction(1, 3), float("inf"), -(10**400)]
    )
    def test_no_number_is_too_large(self, cell):
        assert isinstance(canonical(cell), int | float)

    def test_they_show_nothing_and_stay_where_they_are(self):
        import pickle

        keys = one_by_one(["secret"])
        assert "secret" not in repr(keys)
        with pytest.raises(TypeError, match="private"):
            pickle.dumps(keys)


class TestNeighbors:
    @given(
        st.lists(st.sampled_from([*"abc", 1, True, 2.5, None]), min_size=1, max_size=12),
        st.data(),
    )
    def test_a_row_that_changes_moves_two_counts_by_one_and_one_that_goes_one(self, cells, data):
        row = data.draw(st.integers(0, len(cells) - 1))
        new = data.draw(st.sampled_from([*"abcd", 7, False, None]))
        replaced = [*cells[:row], new, *cells[row + 1 :]]
        fewer = [*cells[:row], *cells[row + 1 :]]

        def counts(column):
            listed = one_by_one(column).counts("x")
            return {(type(key), key): number for key, number in listed}

        def distance(a, b):
            return sum((a.get(key, 0) - b.get(key, 0)) ** 2 for key in a.keys() | b.keys())

        before = counts(cells)
        assert distance(before, counts(replaced)) <= 2
        assert distance(before, counts(fewer)) <= 1
        # Values that only one of the neighbors has: one of each, of one row. Never missing, which
        # is released whether it has any.
        own = counts(replaced).keys() - before.keys()
        assert (type(None), None) not in own
        assert len(own) <= 1
        assert all(counts(replaced)[key] == 1 for key in own)


class TestTheCurator:
    @staticmethod
    def curator(cells, *, epsilon=1.0, reserved=Fraction(1e-6)):
        ledger = PrivacyLedger.open(epsilon, 1e-5, REPLACE, reserved=reserved)
        nothing = Dataset(Domain((), ()), np.empty((0, 0), np.uint8))
        words = np.random.default_rng(1).bytes
        return Curator(nothing, Books(ledger, words=words), values=one_by_one(cells))

    def test_frequent_values_are_released_with_noise_and_rare_ones_leave_no_trace(self):
        curator = self.curator(["a"] * 4_000 + ["b"] * 3_000 + ["rare"])
        released = dict(curator.discover(Fraction(1, 100), Fraction(1e-6), what="x")["x"])
        (charge,) = curator.ledger.charges
        assert released.keys() == {"a", "b", None}
        assert abs(released[None]) < 6 * charge.stddev
        assert 0 < abs(released["a"] - 4_000) < 6 * charge.stddev
        assert charge.threshold > 4 * charge.stddev
        assert charge.stddev == pytest.approx((2 / 0.01) ** 0.5)
        assert 0.5e-6 < charge.delta <= Fraction(1e-6) + Fraction(1, 2**120)

    @pytest.mark.parametrize("cells", [[], [None] * 9])
    def test_a_column_of_nothing_is_charged_like_any_other(self, cells):
        curator, other = self.curator(cells), self.curator(["a"] * 500)
        found = curator.discover(Fraction(1, 100), Fraction(1e-6), what="x")
        assert [key for key, _ in found["x"]] == [None]
        other.discover(Fraction(1, 100), Fraction(1e-6), what="x")
        assert curator.ledger == other.ledger

    def test_delta_that_was_not_reserved_is_refused_before_the_values_are_read(self, monkeypatch):
        curator = self.curator(["a"] * 500, reserved=Fraction(0))
        monkeypatch.setattr(ValueCounts, "counts", None)
        with pytest.raises(PrivacyBudgetError, match="delta"):
            curator.discover(Fraction(1, 100), Fraction(1e-6), what="x")
        assert curator.ledger.charges == ()

    def test_noise_that_nobody_could_use_is_refused_before_the_values_are_read(self, monkeypatch):
        curator = self.curator(["a"] * 500)
        monkeypatch.setattr(ValueCounts, "counts", None)
        with pytest.raises(PrivacyBudgetError, match="larger epsilon"):
            curator.discover(Fraction(1, 10**30), Fraction(1e-6), what="x")
        assert curator.ledger.charges == ()

    def test_the_reserve_comes_out_of_delta(self):
        curator = self.curator(["a"] * 500)
        curator.discover(curator.ledger.remaining, Fraction(1e-6), what="x")
        assert 0.98 < curator.ledger.spent() <= 1.0
        assert curator.ledger.budget < PrivacyLedger.open(1.0, 1e-5, REPLACE).budget


class TestNumbers:
    @pytest.mark.parametrize("low", [-1000, -1, 0, 3, 17])
    def test_whole_numbers(self, low):
        numbers = np.random.default_rng(0).integers(low, low + 90, ROWS)
        facts, _ = found(numbers, {"sdtype": "numerical"})
        assert facts["decimal_places"] == 0
        # Within a 256th of the power of two around it, and a cell of the fine grid for the noise.
        slack = 64 if low == -1000 else 9  # a part of a power of two that may hold rows
        assert abs(facts["range_min"] - low) <= slack
        assert abs(facts["range_max"] - (low + 89)) <= slack

    def test_decimal_places_are_found_and_real_numbers_have_none(self):
        rng = np.random.default_rng(0)
        facts, _ = found(np.round(rng.uniform(0.5, 9.5, ROWS), 2), {"sdtype": "numerical"})
        assert facts["decimal_places"] == 2
        facts, _ = found(rng.normal(size=ROWS), {"sdtype": "numerical"})
        assert "decimal_places" not in facts
        assert -4.2 < facts["range_min"] < -1.5 < 1.5 < facts["range_max"] < 4.2

    def test_decimal_places_that_were_declared_stay(self):
        numbers = np.random.default_rng(0).integers(0, 10**10, ROWS) / 4
        facts, _ = found(numbers, {"sdtype": "numerical", "decimal_places": 6})
        assert "decimal_places" not in facts  # 5 are kept up to 2**33, the end of the fine grid

    def test_a_frequent_number_has_a_cell_of_its_own(self):
        rng = np.random.default_rng(0)
        numbers = np.where(rng.random(ROWS) < 0.4, 40, rng.integers(1, 100, ROWS))
        facts, _ = found(numbers, {"sdtype": "numerical"})
        assert {40.0, 41.0} <= set(facts["cut_points"])
        (column,) = described("numerical", facts)
        codes, _ = column.locate(np.arange(1, 100))
        assert np.count_nonzero(codes == codes[39]) == 1
        assert column.num_values == 32

    def test_even_numbers_have_cells_of_equal_width(self):
        numbers = np.random.default_rng(0).integers(0, 128, ROWS)
        facts, _ = found(numbers, {"sdtype": "numerical"}, epsilon=0.5)
        (column,) = described("numerical", facts)
        codes, _ = column.locate(np.arange(128))
        assert np.bincount(codes).max() <= 20

    def test_frequent_numbers_of_a_cell_are_drawn_more_often(self):
        """Of 200 numbers in 32 cells every tenth holds a third more: 6,000 of 20,000 rows."""
        rng = np.random.default_rng(0)
        numbers = np.where(
            rng.random(ROWS) < 0.3, 10 * rng.integers(0, 20, ROWS), rng.integers(0, 200, ROWS)
        )
        facts, _ = found(numbers, {"sdtype": "numerical"})
        (column,) = described("numerical", facts)
        transformer = encoder_for(column)
        codes, _ = transformer.encode(pd.Series(numbers))
        drawn = transformer.decode(codes, rng.random(ROWS))
        tens = (numbers % 10 == 0).mean(), (drawn % 10 == 0).mean()
        # The noise of a count is 6 of some 100; evenly drawn values would give 0.1 to 0.2.
        assert tens[1] == pytest.approx(tens[0], abs=0.04)

    def test_a_tail_of_few_rows_is_kept_where_the_noise_might_hide_it(self):
        """1,000 of 50,000 rows from 70 to 99, beside noise of a hundred and more a number."""
        rng = np.random.default_rng(0)
        numbers = np.concatenate([rng.integers(20, 60, 49_000), rng.integers(70, 100, 1_000)])
        for seed in range(5):
            facts, ledger = found(numbers, {"sdtype": "numerical"}, epsilon=0.2, seed=seed)
            assert ledger.charges[-1].stddev > 75
            assert facts["range_max"] >= 99
            assert facts["range_min"] <= 20

    def test_wide_ranges_are_cut_finely_where_the_rows_are(self):
        """A log-normal column: 90 % of the rows lie in a hundredth of the range."""
        rng = np.random.default_rng(0)
        numbers = np.rint(np.exp(rng.normal(5, 1.5, ROWS))).astype(int)
        facts, _ = found(numbers, {"sdtype": "numerical"}, epsilon=1.0)
        median = np.median(numbers)
        assert np.count_nonzero(np.array(facts["cut_points"]) < median) > 40

    def test_a_bound_that_was_declared_stays(self):
        numbers = np.random.default_rng(0).integers(20, 60, ROWS)
        facts, _ = found(numbers, {"sdtype": "numerical", "range_min": 0})
        assert facts["range_min"] == 0
        assert 55 <= facts["range_max"] <= 64
        facts, _ = found(numbers, {"sdtype": "numerical", "range_min": 1000})
        assert (facts["range_min"], facts["range_max"]) == (1000, 1000)

    @pytest.mark.parametrize(
        "column",
        [[0] * ROWS, [None] * ROWS, [], ["text"] * ROWS, [10**400] * ROWS, [1e-300] * ROWS],
    )
    @pytest.mark.parametrize("sdtype", ["numerical", "datetime", "categorical", "ordinal"])
    def test_whatever_is_in_a_column_makes_a_schema(self, column, sdtype):
        column = pd.Series(column, dtype=object)
        facts, _ = found(column, {"sdtype": sdtype})
        schema = Schema.from_sdv({"x": {"sdtype": sdtype}}, public_domain={"x": facts})
        assert schema.domain().sizes[0] >= 1

    @pytest.mark.parametrize(
        ("sdtype", "facts"),
        [
            ("numerical", {}),
            ("numerical", {"range_min": 5}),
            ("numerical", {"decimal_places": 0}),
            ("datetime", {}),
            ("datetime", {"range_min": "1999-05-05"}),
            ("datetime", {"range_max": "1999-05-05T10:00:00.5+01:00"}),
            ("datetime", {"datetime_format": "%d.%m.%Y", "range_max": "05.05.1999"}),
            ("datetime", {"datetime_format": "%y%m"}),
            ("datetime", {"datetime_format": "%Y-%m-%d %H:%M:%S.%f %z"}),
        ],
    )
    def test_whatever_the_noise_says_makes_a_schema(self, sdtype, facts):
        """Nothing but noise: 60 draws, so that each end of the grid is among the ranges."""
        for seed in range(60):
            found_facts, _ = found(
                [1, 2.5] * 4, {"sdtype": sdtype, **facts}, epsilon=0.01, seed=seed
            )
            described = {"sdtype": sdtype, **facts}
            schema = Schema.from_sdv({"x": described}, public_domain={"x": found_facts})
            assert schema.domain().sizes[0] >= 1

    @given(st.floats(allow_nan=False))
    def test_every_number_is_in_the_cell_between_its_powers_of_two(self, number):
        codes, _ = SignedPowers().locate(np.array([number]))
        edges = SignedPowers().edges
        inside = np.clip(number, edges[0], edges[-1])
        assert edges[codes[0]] <= inside <= edges[codes[0] + 1]

    def test_decimal_places_of_cells(self):
        cells = [3, 2.5, 0.1 + 0.2, 1e-7, None, "0.25", float("inf"), Decimal("1.125"), True]
        expected = [0, 1, 1, 7, 8, 2, 8, 3, 0]
        assert decimal_places(pd.Series(cells, dtype=object), 6).tolist() == expected


class TestDates:
    @pytest.mark.parametrize(
        ("unit", "last"), [("D", "2024-02-29"), ("s", "2024-02-29T12:00:01"), ("us", "2024-03-01")]
    )
    def test_ranges_and_units(self, unit, last):
        rng = np.random.default_rng(0)
        start = np.datetime64("2021-03-01", unit)
        steps = int((np.datetime64(last, unit) - start) / np.timedelta64(1, unit))
        dates = start + rng.integers(0, steps, ROWS).astype(f"m8[{unit}]")
        facts, _ = found(pd.Series(dates), {"sdtype": "datetime"})
        column = Schema.from_sdv({"x": {"sdtype": "datetime"}}, public_domain={"x": facts}).columns[
            0
        ]
        assert column.unit == {"D": "D", "s": "s", "us": "ns"}[unit]
        slack = pd.Timedelta(days=20)  # four or five years in some 200 cells, twice
        assert abs(pd.Timestamp(facts["range_min"]) - pd.Timestamp("2021-03-01")) < slack
        assert abs(pd.Timestamp(facts["range_max"]) - pd.Timestamp(last)) < slack

    def test_frequent_days_of_a_cell_are_drawn_more_often(self):
        """Of 600 days in 32 cells each first of a month holds some 300 of 20,000 rows."""
        rng = np.random.default_rng(0)
        days = pd.Series(pd.date_range("2021-03-04", periods=600))
        firsts = days[days.dt.day == 1]
        drawn_from = np.concatenate([rng.choice(firsts, 6_000), rng.choice(days, 14_000)])
        facts, _ = found(drawn_from, {"sdtype": "datetime", "range_min": "2021-01-01"})
        (column,) = described("datetime", facts)
        assert len(facts["cut_points"]) + 1 == len(facts["frequencies"]) > 150
        assert column.num_values == 32
        transformer = encoder_for(column)
        codes, _ = transformer.encode(pd.Series(drawn_from))
        drawn = transformer.decode(codes, rng.random(ROWS))
        real, made = ((pd.Series(each).dt.day == 1).mean() for each in (drawn_from, drawn))
        # Fine cells have two to four days, codes about 19: evenly drawn days would give 0.03 to
        # 0.1 of them, days of a fine cell drawn evenly 0.1 to 0.2.
        assert real > 0.3
        assert made > 0.1

    def test_wide_ranges_are_cut_finely_where_the_dates_are(self):
        """Three of four rows lie in the last two of 40 years."""
        rng = np.random.default_rng(0)
        ages = np.where(rng.random(ROWS) < 0.75, 700, 15_000) * rng.random(ROWS)
        days = pd.Timestamp("2024-12-31") - pd.to_timedelta(ages.astype(int), unit="D")
        facts, _ = found(pd.Series(days), {"sdtype": "datetime"}, epsilon=1.0)
        assert sum(cut > "2023" for cut in facts["cut_points"]) > 40
        (column,) = described("datetime", facts)
        starts = np.flatnonzero(np.diff(column.merging.codes)) + 1
        begun = column.cells.starts[starts].astype("M8[D]")
        assert np.count_nonzero(begun > np.datetime64("2023-01-01")) > 12

    @pytest.mark.parametrize("written", ["%d.%m.%Y", "%Y-%m", "%Y"])
    def test_the_cuts_are_in_the_format(self, written):
        days = pd.Series(pd.date_range("1981-01-01", periods=14_000)).dt.strftime(written)
        described_as = {"sdtype": "datetime", "datetime_format": written}
        facts, _ = found(np.random.default_rng(0).choice(days, ROWS), described_as)
        cuts = pd.to_datetime(pd.Series(facts["cut_points"]), format=written)
        assert cuts.is_monotonic_increasing
        assert len(facts["frequencies"]) == len(cuts) + 1
        assert len(cuts) > (30 if written == "%Y" else 200)

    @pytest.mark.parametrize(
        "dtype", ["datetime64[ns, Europe/Vienna]", "timestamp[us, tz=Asia/Tokyo][pyarrow]"]
    )
    def test_the_time_zone_of_a_dtype_makes_dates_utc(self, dtype):
        hours = pd.date_range("2020-01-01", periods=9_000, freq="h", tz="UTC")
        dates = pd.Series(np.random.default_rng(0).choice(hours, ROWS)).astype(dtype)
        facts, _ = found(dates, {"sdtype": "datetime"})
        assert facts["range_min"].endswith("+00:00")
        assert described("datetime", facts)[0].utc
        facts, _ = found(dates, {"sdtype": "datetime", "range_min": "2020-01-01"})
        assert described("datetime", facts)[0].utc
        facts, _ = found(dates.astype(object), {"sdtype": "datetime"})
        assert not described("datetime", facts)[0].utc

    def test_what_was_declared_of_missing_dates_stays(self):
        days = pd.Series(pd.date_range("1950-01-01", periods=ROWS))
        known = {"sdtype": "datetime", "range_is_nullable": True}
        for facts in ({}, {"datetime_format": "%m/%d/%y"}):  # a format that is given up
            facts, _ = found(days, {**known, **facts})
            assert "range_is_nullable" not in facts

    def test_a_format_that_was_declared_writes_the_range(self):
        days = pd.date_range("1999-01-01", periods=400).strftime("%d.%m.%Y")
        facts, _ = found(
            np.random.default_rng(0).choice(days, ROWS),
            {"sdtype": "datetime", "datetime_format": "%d.%m.%Y"},
        )
        assert facts["datetime_format"] == "%d.%m.%Y"
        assert facts["range_min"].endswith((".1998", ".1999"))

    @pytest.mark.parametrize("written", ["%d.%m.", "%H:%M", "%y%m%d"])
    def test_a_format_that_cannot_write_all_dates_is_given_up(self, written):
        days = pd.date_range("1960-01-01", periods=30_000, freq="h").strftime(written)
        facts, _ = found(
            np.random.default_rng(0).choice(days, ROWS),
            {"sdtype": "datetime", "datetime_format": written},
        )
        described = {"sdtype": "datetime", "datetime_format": written}
        column = Schema.from_sdv({"x": described}, public_domain={"x": facts}).columns[0]
        assert column.size >= 1

    @pytest.mark.parametrize("ends", [("0001-01-01", "1500-01-01"), ("2300-01-01", "9999-12-31")])
    def test_dates_beyond_the_grid_are_at_its_end(self, ends):
        first, last = (np.datetime64(end, "s").astype(int) for end in ends)
        dates = np.random.default_rng(0).integers(first, last, ROWS).astype("M8[s]")
        for precision in ("s", "D"):
            facts, _ = found(pd.Series(dates.astype(f"M8[{precision}]")), {"sdtype": "datetime"})
            assert describe("x", {"sdtype": "datetime", "num_bins": 9, **facts}).num_values >= 1

    @pytest.mark.parametrize("written", ["%Y-%m-%dT%H:%M:%S%z", "%Y-%m-%d %H:%M %Z"])
    def test_a_format_with_a_time_zone_writes_the_range(self, written):
        hours = pd.date_range("2020-01-01", periods=400, freq="h", tz="UTC").strftime(written)
        facts, _ = found(
            np.random.default_rng(0).choice(hours, ROWS),
            {"sdtype": "datetime", "datetime_format": written},
        )
        assert facts["datetime_format"] == written
        assert describe("x", {"sdtype": "datetime", "num_bins": 9, **facts}).utc

    def test_two_digits_of_a_year_are_given_up_where_they_could_be_another_century_s(self):
        """From 1969 to 2068 they are read as they were written, but not before."""
        described = {"sdtype": "datetime", "datetime_format": "%m/%d/%y"}
        facts, _ = found(["02/01/99", "03/30/24"] * (ROWS // 2), described)
        assert facts["datetime_format"] == "%m/%d/%y"
        old = pd.Series(pd.to_datetime(["1950-02-01", "1999-03-30"] * (ROWS // 2)))
        facts, _ = found(old, described)
        assert facts["datetime_format"] is None
        assert facts["range_min"] < "1950-02-02"
        assert facts["range_max"] > "1999-03-29"

    def test_precisions_of_cells(self):
        cells = [
            "2020-01-01", datetime.date(2020, 1, 1), "2020-01-01 10:00", None, "no date",
            pd.Timestamp("2020-01-01T00:00:00.5"),
        ]  # fmt: skip
        assert precisions(pd.Series(cells, dtype=object)).tolist() == [0, 0, 1, 3, 3, 2]


class TestCategories:
    def test_frequent_values_are_named_and_the_rest_is_other(self):
        column = ["b"] * 9_000 + ["a"] * 9_000 + [f"name {row}" for row in range(2_000)]
        facts, ledger = found(column, {"sdtype": "categorical"})
        assert facts == {"range_values": ["a", "b"], "other_value": "other"}
        assert float(ledger.mu_squared / ledger.budget) == pytest.approx(0.05)

    def test_the_second_look_goes_to_the_columns_that_the_first_left_open(self):
        """150 rows of one value are too few for three columns' look, enough for one column's."""
        rng = np.random.default_rng(0)
        names = np.repeat(["common", "rare 1", "rare 2"], [ROWS - 300, 150, 150])
        columns = {
            "x": pd.Series(names),
            "y": pd.Series(rng.choice(["a", "b"], ROWS)),
            "z": pd.Series(rng.choice(["a", None], ROWS)),
        }
        undeclared = {name: {"sdtype": "categorical", "num_bins": 32} for name in columns}
        facts, ledger = found_in(columns, undeclared, epsilon=2.0)
        first, second = (charge for charge in ledger.charges if charge.threshold)
        assert first.threshold > 160
        assert (first.num_queries, second.num_queries) == (3, 1)
        assert facts["x"]["range_values"] == ["common", "rare 1", "rare 2"]
        assert facts["y"]["range_values"] == ["a", "b"]
        assert first.delta + second.delta <= ledger.reserved + Fraction(1, 2**100)

    def test_what_no_column_left_open_is_not_spent(self):
        facts, ledger = found(["a", "b"] * (ROWS // 2), {"sdtype": "categorical"})
        assert facts["range_values"] == ["a", "b"]
        assert float(ledger.mu_squared / ledger.budget) == pytest.approx(0.025)

    def test_other_takes_another_name_where_that_is_a_value(self):
        facts, _ = found(["other"] * 9_000 + ["a"] * 9_000, {"sdtype": "categorical"})
        assert facts == {"range_values": ["a", "other"], "other_value": "any other"}

    def test_of_equal_values_the_more_frequent_one_stays(self):
        facts, _ = found([True] * 9_000 + [1] * 4_000 + [0] * 7_000, {"sdtype": "categorical"})
        assert facts == {"range_values": [True, 0]}
        assert facts["range_values"][0] is True

    def test_names_alone_are_all_other(self):
        facts, _ = found([f"name {row}" for row in range(ROWS)], {"sdtype": "categorical"})
        assert facts == {"range_values": [], "other_value": "other"}
        column = Schema.from_sdv(
            {"x": {"sdtype": "categorical"}}, public_domain={"x": facts}
        ).columns[0]
        assert column.cells.values == ("other",)

    @pytest.mark.parametrize("adjacency", Adjacency)
    @pytest.mark.parametrize("rows_per_person", [1, 4])
    def test_it_fits_the_books_under_each_adjacency(self, adjacency, rows_per_person):
        facts, ledger = found(
            ["a"] * ROWS,
            {"sdtype": "categorical"},
            adjacency=adjacency,
            rows_per_person=rows_per_person,
        )
        assert facts["range_values"] == ["a"]
        assert ledger.spent() < 5.0


class TestManyCategories:
    def test_declared_ones_are_counted_and_the_rare_ones_share_a_code(self):
        rng = np.random.default_rng(0)
        values = [f"v{rank}" for rank in range(10_000)]
        frequent = rng.integers(0, 100, ROWS) * 97
        column = np.where(rng.random(ROWS) < 0.9, frequent, rng.integers(0, 10_000, ROWS))
        column = np.array(values, dtype=object)[column]
        known = {"sdtype": "categorical", "range_values": values}
        facts, ledger = found(column, known)
        assert len(facts["frequencies"]) == 10_000
        assert [charge.what for charge in ledger.charges] == ["values of columns on fine grids"]
        (merged,) = Schema.from_sdv({"x": known}, public_domain={"x": facts}).columns
        assert merged.num_values == 256
        codes, _ = merged.locate(np.arange(10_000))
        # About 180 rows a frequent value, and noise of 10: all 100 have codes of their own.
        assert np.bincount(codes).max() == 10_000 - 255
        assert np.unique(codes[np.arange(100) * 97]).size == 100
        assert (codes[np.arange(100) * 97] < 255).all()

    def test_many_that_are_discovered_are_merged_and_the_rest_is_apart(self):
        rng = np.random.default_rng(0)
        column = np.array([f"v{rank}" for rank in range(400)], dtype=object)
        column = column[rng.integers(0, 400, 10 * ROWS)]
        facts, _ = found(column, {"sdtype": "categorical"})
        assert len(facts["frequencies"]) == len(facts["range_values"]) == 400
        (merged,) = described("categorical", facts)
        assert merged.num_values == 257
        codes, _ = merged.locate(np.arange(401))
        assert np.count_nonzero(codes == codes[400]) == 1

    @pytest.mark.parametrize("sdtype", ["categorical", "ordinal"])
    def test_neighbors_share_codes_where_nothing_is_known(self, sdtype):
        known = {"sdtype": sdtype, "range_values": list(range(1000)), "other_value": -1}
        (merged,) = Schema.from_sdv({"x": known}).columns
        codes, _ = merged.locate(np.arange(1001))
        assert set(np.diff(codes)) == {0, 1}
        assert merged.num_values == 257
        assert np.bincount(codes).max() <= 8
