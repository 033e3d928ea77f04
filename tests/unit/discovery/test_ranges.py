"""Ranges, precisions and shapes of numbers and dates are found within the noise."""

import numpy as np
import pandas as pd
import pytest
from discovering import described, found
from encoding import Codec
from hypothesis import given
from hypothesis import strategies as st

from sdv_privpgd.columns.bins import SIGNED_POWERS
from sdv_privpgd.columns.dates import precisions
from sdv_privpgd.columns.parser import describe

ROWS = 20_000


class TestNumbers:
    @pytest.mark.parametrize("low", [-1000, -1, 0, 3, 17])
    def test_whole_numbers(self, low):
        numbers = np.random.default_rng(0).integers(low, low + 90, ROWS)
        seen = [found(numbers, {"sdtype": "numerical"}, seed=seed)[0] for seed in range(12)]
        assert all(facts["decimal_places"] == 0 for facts in seen)
        # The first grid has a cell from -1024 to -128: in its rest noise may hide a 100th of rows.
        slack = 800 if low == -1000 else 9
        for key, end in (("range_min", low), ("range_max", low + 89)):
            assert np.median([abs(facts[key] - end) for facts in seen]) <= slack

    def test_years_of_few_rows_stay_years(self):
        """Nobody was born in 1024, nor will be in 3,000."""
        ages = np.random.default_rng(0).normal(55, 18, 2_500).clip(0, 100)
        born, far = (2_024 - ages).round(), 0
        for seed in range(20):
            facts, _ = found(born, {"sdtype": "numerical"}, epsilon=0.4, seed=seed)
            far += facts["range_min"] < 1_800 or facts["range_max"] > 2_100
        assert far <= 5  # 20 with cells of powers of two alone

    def test_decimal_places_and_both_signs_are_found(self):
        rng = np.random.default_rng(0)
        facts, _ = found(np.round(rng.uniform(0.5, 9.5, ROWS), 2), {"sdtype": "numerical"})
        assert facts["decimal_places"] == 2
        facts, _ = found(rng.normal(size=ROWS), {"sdtype": "numerical"})
        assert "decimal_places" not in facts
        assert -4.2 < facts["range_min"] < -1.5 < 1.5 < facts["range_max"] < 4.2
        numbers = np.random.default_rng(0).normal(size=ROWS)
        lows = [found(numbers, {"sdtype": "numerical"}, seed=seed)[0] for seed in range(20)]
        assert all(facts["range_min"] < -1.5 for facts in lows)  # 0 where a 256th is near an end

    @pytest.mark.parametrize("seed", range(4))
    def test_few_rows_beside_zero_are_not_taken_for_zeros(self, seed):
        """Hardly any noise, as of public rows, shows each row that is counted in two cells."""
        numbers = np.random.default_rng(seed).normal(6.4, 1.7, ROWS).round(1)
        facts, _ = found(numbers, {"sdtype": "numerical"}, epsilon=1e4)
        assert facts["range_min"] == pytest.approx(numbers.min(), abs=1.5)
        assert facts["range_max"] == pytest.approx(numbers.max(), abs=1.5)

    def test_frequent_numbers_have_cells_of_their_own_and_even_ones_equal_cells(self):
        rng = np.random.default_rng(0)
        numbers = np.where(rng.random(ROWS) < 0.4, 40, rng.integers(1, 100, ROWS))
        facts, _ = found(numbers, {"sdtype": "numerical"})
        assert {40.0, 41.0} <= set(facts["cut_points"])
        (column,) = described("numerical", facts)
        codes, _ = column.locate(np.arange(1, 100))
        assert np.count_nonzero(codes == codes[39]) == 1
        assert column.num_values == 32
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
        transformer = Codec(column)
        codes, _ = transformer.encode(pd.Series(numbers))
        drawn = transformer.decode(codes, rng.random(ROWS))
        tens = (numbers % 10 == 0).mean(), (drawn % 10 == 0).mean()
        # The noise of a count is 6 of some 100; evenly drawn values would give 0.1 to 0.2.
        assert tens[1] == pytest.approx(tens[0], abs=0.04)

    def test_a_tail_of_few_rows_is_kept_where_the_noise_might_hide_it(self):
        """1,000 of 50,000 rows from 70 to 99, beside noise of a hundred and more a number.

        Noise hides them in 15 of 200 draws.
        """
        rng = np.random.default_rng(0)
        numbers = np.concatenate([rng.integers(20, 60, 49_000), rng.integers(70, 100, 1_000)])
        kept = 0
        for seed in range(10):
            facts, ledger = found(numbers, {"sdtype": "numerical"}, epsilon=0.2, seed=seed)
            assert ledger.charges[-1].stddev > 75
            kept += facts["range_min"] <= 20 and facts["range_max"] >= 99
        assert kept >= 7

    def test_wide_ranges_are_cut_finely_where_the_rows_are(self):
        """A log-normal column: 90 % of the rows lie in a hundredth of the range."""
        rng = np.random.default_rng(0)
        numbers = np.rint(np.exp(rng.normal(5, 1.5, ROWS))).astype(int)
        facts, _ = found(numbers, {"sdtype": "numerical"}, epsilon=1.0)
        median = np.median(numbers)
        assert np.count_nonzero(np.array(facts["cut_points"]) < median) > 40

    @pytest.mark.parametrize(
        "column",
        [[0] * ROWS, [None] * ROWS, [], ["text"] * ROWS, [10**400] * ROWS, [1e-300] * ROWS],
    )
    @pytest.mark.parametrize("sdtype", ["numerical", "datetime", "categorical", "ordinal"])
    def test_whatever_is_in_a_column_makes_a_schema(self, column, sdtype):
        column = pd.Series(column, dtype=object)
        facts, _ = found(column, {"sdtype": sdtype})
        assert described(sdtype, facts)[0].size >= 1

    @pytest.mark.long
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
            known = {"sdtype": sdtype, **facts}
            found_facts, _ = found([1, 2.5] * 4, known, epsilon=0.01, seed=seed)
            assert described(sdtype, {**facts, **found_facts})[0].size >= 1

    @given(st.floats(allow_nan=False))
    def test_every_number_is_in_the_cell_between_its_powers_of_two(self, number):
        codes, _ = SIGNED_POWERS.locate(np.array([number]))
        edges = SIGNED_POWERS.edges
        inside = np.clip(number, edges[0], edges[-1])
        assert edges[codes[0]] <= inside <= edges[codes[0] + 1]


class TestDates:
    @pytest.mark.parametrize(
        ("unit", "last"),
        [
            ("D", "2024-02-29"),
            ("s", "2024-02-29T12:00:01"),
            ("ms", "2024-03-01"),
            ("us", "2024-03-01"),
        ],
    )
    def test_ranges_and_units(self, unit, last):
        rng = np.random.default_rng(0)
        start = np.datetime64("2021-03-01", unit)
        steps = int((np.datetime64(last, unit) - start) / np.timedelta64(1, unit))
        dates = start + rng.integers(0, steps, ROWS).astype(f"m8[{unit}]")
        facts, _ = found(pd.Series(dates), {"sdtype": "datetime"})
        (column,) = described("datetime", facts)
        assert column.unit == unit
        slack = pd.Timedelta(days=60)  # a cell of the look before; 37 of 40 were within 5 days
        assert abs(pd.Timestamp(facts["range_min"]) - pd.Timestamp("2021-03-01")) < slack
        assert abs(pd.Timestamp(facts["range_max"]) - pd.Timestamp(last)) < slack

    @pytest.mark.parametrize("written", [None, "%d.%m.%Y %H:%M:%S", "%Y-%m-%dT%H:%M"])
    @pytest.mark.parametrize("is_declared", [False, True])
    @pytest.mark.parametrize("step", ["Y", "M", "D", "h", "15m"])
    def test_moments_stay_whole_in_the_coarsest_unit(self, written, is_declared, step):
        ends = np.array(["2019-01-01", "2023-01-01", "2030-12-31T23:59:59"], "M8[s]")
        whole = ends[:2].astype(f"M8[{step}]").astype(int)
        dates = pd.Series(np.random.default_rng(0).integers(*whole, ROWS).astype(f"M8[{step}]"))
        write = pd.Series.to_numpy if written is None else lambda some: some.dt.strftime(written)
        words = dict(zip(("range_min", "range_max"), write(pd.Series(ends[[0, 2]])), strict=True))
        known = {"datetime_format": written, **(words if is_declared else {})}
        facts, _ = found(write(dates.astype("M8[ns]")), {"sdtype": "datetime", **known})
        assert described("datetime", {**known, **facts})[0].unit == step[-1]

    @pytest.mark.parametrize("written", ["%d.%m.%Y", "%Y-%m", "%Y"])
    def test_the_cuts_are_in_the_format(self, written):
        days = pd.Series(pd.date_range("1981-01-01", periods=14_000)).dt.strftime(written)
        described_as = {"sdtype": "datetime", "datetime_format": written}
        facts, _ = found(np.random.default_rng(0).choice(days, ROWS), described_as)
        cuts = pd.to_datetime(pd.Series(facts["cut_points"]), format=written)
        assert cuts.is_monotonic_increasing
        assert len(facts["frequencies"]) == len(cuts) + 1
        assert len(cuts) > (30 if written == "%Y" else 200)

    @pytest.mark.long
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

    @pytest.mark.parametrize("zone", ["Europe/Vienna", "America/New_York"])
    def test_days_begin_on_the_clock_of_a_dtype(self, zone):
        days = pd.date_range("2020-01-01", periods=400, tz=zone)
        for dtype in (days.dtype, f"timestamp[us, tz={zone}][pyarrow]"):
            dates = pd.Series(np.random.default_rng(0).choice(days, ROWS)).astype(dtype)
            facts, _ = found(dates, {"sdtype": "datetime"})
            assert described("datetime", facts)[0].unit == "D"
            assert facts["range_min"].startswith(("2020-01-01", "2019-12"))
            assert precisions(dates).max() == 2

    @pytest.mark.parametrize("written", ["%d.%m.", "%H:%M", "%y%m%d"])
    def test_a_format_that_cannot_write_all_dates_is_given_up(self, written):
        days = pd.date_range("1960-01-01", periods=30_000, freq="h").strftime(written)
        known = {"sdtype": "datetime", "datetime_format": written}
        facts, _ = found(np.random.default_rng(0).choice(days, ROWS), known)
        assert described("datetime", {"datetime_format": written, **facts})[0].size >= 1

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
        known = {"sdtype": "datetime", "datetime_format": written}
        facts, _ = found(np.random.default_rng(0).choice(hours, ROWS), known)
        assert facts["datetime_format"] == written
        assert describe("x", {"sdtype": "datetime", "num_bins": 9, **facts}).utc
