"""Cells of numbers and of dates are exact, merged ones too, and keys are counted up once."""

import datetime
import pickle
import re
from decimal import Decimal
from fractions import Fraction
from itertools import product

import numpy as np
import pandas as pd
import pytest
from columns_of_words import dates, numerical
from hypothesis import given
from hypothesis import strategies as st

from sdv_privpgd.columns.bins import BELOW_ONE, Merging, Reals, Ticks, merged_neighbors, merged_rare
from sdv_privpgd.columns.keys import keys_of, on_patterns, too_few
from sdv_privpgd.sampling.sampler import KeyStream


@pytest.mark.parametrize("pattern", ["[0-9]{1,8}", "[1-9][0-9]{5}|0[0-9]{6}", "(0|1)?[1-9]"])
def test_ids_of_whole_numbers_are_written_in_one_way(pattern):
    whole = {"id": np.dtype("int64")}
    assert len(on_patterns({"id": pattern}, whole)) == 1
    for once in ("0|[1-9][0-9]{0,3}", "[0-9]{4}", "[0-9]"):
        assert on_patterns({"id": once}, whole) == []


def test_numbers_get_a_cell_each_if_they_are_few_and_equal_ones_if_many():
    assert numerical(1, 32, decimal_places=0).num_values == 32
    assert numerical(0, 4, decimal_places=0).cells.starts.tolist() == [0, 1, 2, 3, 4]
    described = numerical(0.1, 0.7, decimal_places=1)
    assert described.cells == Ticks(1, 7, 32)
    assert described.num_values == 7
    assert numerical(0.15, 0.79, decimal_places=1).cells == Ticks(2, 7, 32)
    assert numerical(0.5, 9.5, decimal_places=0).cells == Ticks(1, 9, 32)
    cells = numerical(0, 99, decimal_places=0, num_bins=7).cells
    # [0, 100) cut at 100 i / 7, an integer belonging to where it lies
    expected = [int(np.ceil(100 * i / 7)) for i in range(7)]
    assert cells.starts.tolist() == expected
    assert cells.widths.sum() == 100
    described = numerical(0, 8, num_bins=4)
    assert described.cells.edges.tolist() == [0, 2, 4, 6, 8]
    assert described.cells == Reals(0.0, 8.0, 4)
    assert numerical(0, 1000, decimal_places=14).decimal_places == 12
    assert isinstance(numerical(0, 1e16, decimal_places=2).cells, Reals)
    assert numerical(0, 1e-290, decimal_places=400).decimal_places == 300
    assert numerical(1.0, np.nextafter(1.0, 2)).num_values == 1
    assert numerical(0.0, 5e-324).num_values == 1


def test_multiples_of_steps_are_likelier_by_their_weights():
    cells = Ticks(0, 199, 2, rounding=((10, 20.0), (5, 1.0)))
    assert cells.masses.tolist() == [100 + 10 * 20 + 20] * 2
    drawn = cells.at(np.zeros(320, dtype=int), (np.arange(320) + 0.5) / 320)
    assert np.bincount(drawn, minlength=100)[:11].tolist() == [22, 1, 1, 1, 1, 2, 1, 1, 1, 1, 22]
    assert cells.shares(0, 9).tolist() == [0.1, 0]
    assert cells.between(np.array([0, 0]), np.array([0, BELOW_ONE]), 91, 150).tolist() == [91, 99]
    rounded = numerical(0, 1, decimal_places=2, rounding=[[0.5, 0.4], [1_000, 0.1], [0.001, 0.2]])
    assert rounded.cells.rounding == ((50, pytest.approx(50 * 0.4 / 0.6)),)
    assert numerical(0, 99, decimal_places=0, rounding=[[10, 1]]).cells.masses[0] > 1e9


@pytest.mark.parametrize("bound", [3, 3.0, np.int8(3), np.float32(3), Decimal(3), Fraction(3)])
def test_bounds_may_be_any_finite_number(bound):
    assert numerical(bound, bound, decimal_places=0).cells == Ticks(3, 3, 32)


@pytest.mark.parametrize(
    ("datetime_format", "unit"),
    [
        ("%Y-%m-%d", "D"),
        ("%Y-%m", "M"),
        ("%Y", "Y"),
        ("%Y-%m-%d %H", "h"),
        ("%Y-%m-%dT%H:%M", "m"),
        ("%Y-%m-%d %H:%M:%S", "s"),
        ("%Y-%m-%d %H:%M:%S.%f", "us"),
    ],
)
def test_a_format_says_the_resolution(datetime_format, unit):
    bounds = [datetime.datetime(year, 3, 1) for year in (2000, 2010)]
    described = dates(*(bound.strftime(datetime_format) for bound in bounds), datetime_format)
    first, last = (int(np.datetime64(bound, unit).astype(int)) for bound in bounds)
    assert described.unit == unit
    assert described.cells == Ticks(first, last, 32)


def test_the_width_of_a_cell_fits_int64():
    """292 years of nanoseconds do, 500 do not."""
    described = dates("1700-01-01 00:00:00.0000005", "2200-01-01", num_bins=1)
    assert described.unit == "us"
    assert described.cells.widths.tolist() == [described.cells.last - described.cells.first + 1]
    assert dates("1720-01-01 00:00:00.0000005", "2011-01-01", num_bins=1).unit == "ns"


@pytest.mark.parametrize(
    "bound",
    [
        "2020-02-03",
        datetime.date(2020, 2, 3),
        pd.Timestamp("2020-02-03"),
        np.datetime64("2020-02-03"),
    ],
)
@pytest.mark.parametrize("datetime_format", [None, "%Y-%m-%d", "%d.%m.%Y"])
def test_bounds_of_dates_may_be_strings_or_dates(bound, datetime_format):
    described = dates(bound, bound, datetime_format)
    assert described.cells == Ticks(18_295, 18_295, 32)  # days since 1970
    assert described.unit == "D"


def test_a_time_zone_makes_dates_utc_and_a_number_is_no_date():
    assert dates("2020-01-01 00:00+0200", "2020-01-02 00:00+0000", "%Y-%m-%d %H:%M%z").utc
    assert dates("2020-01-01T00:00Z", "2020-01-02T00:00Z").utc
    assert not dates("2020-01-01", "2020-01-02").utc
    with pytest.raises(ValueError, match="range_min of 'x' must be a date"):
        dates(5, "2020-01-01")


PATTERNS = ["a{2}[ab]", "a|b|a", "(a?b?){2}", "[a-c]{0,2}c?", "b(aa|a(b|c)){1,2}", "", "[aa]"]


@pytest.mark.parametrize("pattern", PATTERNS)
def test_all_texts_that_match_are_written_once(pattern):
    texts = ("".join(each) for size in range(7) for each in product("abc", repeat=size))
    keys = list(keys_of("id", pattern))
    assert too_few({"id": pattern}, len(keys)) == []
    assert len(set(keys)) == len(keys)
    assert set(keys) == {text for text in texts if re.fullmatch(pattern, text)}


@pytest.mark.parametrize("pattern", ["[0-9]+", "[^a]", ".", r"\w", "^a", "(a)(?=b)", "[a"])
def test_what_cannot_be_counted_up_is_refused(pattern):
    with pytest.raises(ValueError, match=r"key 'id' .* cannot be counted up"):
        keys_of("id", pattern)


def test_a_stream_goes_on_where_it_was_and_says_when_it_ends():
    stream = KeyStream(patterns={"code": "[A-C][0-9]", "id": None})
    first = stream.take(7)
    again = pickle.loads(pickle.dumps(stream))
    for each in (stream, again):
        assert each.take(3)["id"].tolist() == [7, 8, 9]
    with pytest.raises(ValueError, match=r"has 30 values .* 10 of them were taken"):
        stream.take(21)
    assert stream.take(20)["code"].iloc[-1] == "C9"
    stream.restart()
    assert stream.take(7)["code"].tolist() == first["code"].tolist()


@pytest.mark.parametrize(
    ("pattern", "dtype", "written"),
    [
        (None, None, [0, 1]),
        (None, pd.StringDtype(), ["0", "1"]),
        (None, np.dtype("float32"), ["0", "1"]),
        ("[1-9][0-9]", np.dtype("int16"), [10, 11]),
        ("X[0-9]", np.dtype("int16"), ["X0", "X1"]),
    ],
)
def test_keys_have_the_dtype_of_the_table_where_it_holds_them(pattern, dtype, written):
    found = KeyStream(patterns={"id": pattern}, dtypes={"id": dtype}).take(2)["id"]
    assert found.tolist() == written
    assert found.dtype == dtype or isinstance(dtype, np.dtype | None)


FREQUENCIES = st.lists(
    st.one_of(st.just(0.0), st.floats(1e-3, 1e6)), min_size=1, max_size=40
)  # fmt: skip


@st.composite
def mergings(draw):
    frequencies = draw(FREQUENCIES)
    size = draw(st.integers(1, len(frequencies)))
    others = draw(
        st.lists(
            st.integers(0, size - 1),
            min_size=len(frequencies) - size,
            max_size=len(frequencies) - size,
        )
    )
    codes = draw(st.permutations([*range(size), *others]))
    return Merging(tuple(codes), tuple(frequencies))


POSITIONS = st.one_of(st.floats(0, BELOW_ONE), st.just(BELOW_ONE))


@given(mergings(), POSITIONS, st.data())
def test_every_position_of_a_code_is_in_one_of_its_cells(merging, position, data):
    code = data.draw(st.integers(0, len(merging) - 1))
    cells, inside = merging.at(np.array([code]), np.array([position]))
    assert merging.codes[cells[0]] == code
    assert 0 <= inside[0] < 1
    held = sum(f for c, f in zip(merging.codes, merging.frequencies, strict=True) if c == code)
    assert merging.frequencies[cells[0]] > 0 or held == 0


@given(FREQUENCIES, st.data())
def test_a_split_cuts_one_code_and_no_other(frequencies, data):
    merging = merged_neighbors(frequencies, data.draw(st.integers(1, 40)))
    for cell in range(1, len(frequencies)):
        split = merging.split(cell)
        starts = np.flatnonzero(np.diff(merging.codes)) + 1
        assert set(np.flatnonzero(np.diff(split.codes)) + 1) == {*starts, cell}
        assert max(np.diff(split.codes)) == 1
        assert split.frequencies == merging.frequencies


@given(mergings(), POSITIONS)
def test_a_cell_that_occurs_is_found_again(merging, position):
    cells = np.flatnonzero(merging.frequencies)
    codes, positions = merging.locate(cells, np.full(cells.size, 0.5))
    shares = [
        merging.frequencies[cell]
        / sum(f for c, f in zip(merging.codes, merging.frequencies, strict=True) if c == code)
        for cell, code in zip(cells, codes, strict=True)
    ]
    # A position is a double below the number of codes: smaller shares are lost in its rounding.
    kept = np.array(shares) > 1e-9
    assert np.array_equal(merging.at(codes, positions)[0][kept], cells[kept])
    positions = merging.locate(cells, np.full(cells.size, position))[1]
    assert ((positions >= 0) & (positions < 1)).all()


@given(FREQUENCIES, st.integers(1, 50))
def test_neighbors_are_merged_in_order(frequencies, most):
    codes = np.array(merged_neighbors(frequencies, most).codes)
    assert codes.size == len(frequencies)
    assert set(np.diff(codes)) <= {0, 1}
    assert codes[0] == 0
    if codes[-1] + 1 < min(most, len(frequencies)):
        masses = np.bincount(codes, weights=frequencies)
        assert masses[np.bincount(codes) > 1].max() < 1e-4 * sum(frequencies)


def test_rare_values_share_codes_and_frequent_ones_do_not():
    frequencies = [5.0] * 20 + [1e-6] * 1_000
    codes = np.array(merged_neighbors(frequencies, 32).codes)
    assert codes[:20].tolist() == list(range(20))
    assert set(codes[20:]) == {20}
    frequencies = [0.0] * 10 + [1, 1, 50, 1, 1] + [0.0] * 10
    codes = np.array(merged_neighbors(frequencies, 6).codes)
    assert np.count_nonzero(codes == codes[12]) == 1
    assert codes[:10].max() == 0
    merging = merged_rare([5.0, 0.0, 9.0, 1.0, 5.0], 3)
    assert merging.codes == (0, 2, 1, 2, 2)
    assert merged_rare([1.0, 2.0], 1).codes == (0, 0)
    codes = merged_neighbors([1e-9] * 3 + [1.0] * 40 + [1e-9] * 2, 6).codes
    assert codes[2] < codes[3]
    assert codes[42] < codes[43] == codes[44]


def test_declared_frequencies_merge_the_cells_of_the_cuts():
    facts = {"cut_points": list(range(1, 100)), "frequencies": [1000, *range(99)], "num_bins": 10}
    column = numerical(0, 99, decimal_places=0, **facts)
    assert column.num_values == 10
    codes, _ = column.locate(np.arange(100))
    assert np.count_nonzero(codes == 0) == 1
    assert column.at(np.zeros(3, np.int64), np.array([0, 0.5, 0.9])).tolist() == [0, 0, 0]
    # A range that is not cut in ticks has no cell that begins with its end.
    assert numerical(0, 99, **facts).num_values == 10


def of_merged_cells():
    """100 whole numbers in 8 codes; those from 50 to 59 never occur."""
    often = [0 if 50 <= number < 60 else 1 + number % 7 for number in range(100)]
    facts = {"num_bins": 8, "cut_points": list(range(1, 100)), "frequencies": often}
    column = numerical(0, 99, decimal_places=0, **facts)
    assert len(column.merging) == 8
    return column, np.array(often)


@pytest.mark.parametrize(("low", "high"), [(0, 99), (13, 27), (48, 61), (40, 40)])
def test_a_range_covers_of_a_code_what_its_numbers_are_of_it(low, high):
    column, frequencies = of_merged_cells()
    inside = np.where((np.arange(100) >= low) & (np.arange(100) <= high), frequencies, 0)
    codes, _ = column.locate(np.arange(100))
    expected = np.bincount(codes, inside) / np.bincount(codes, frequencies)
    assert column.shares(low, high) == pytest.approx(expected, abs=1e-6)
    covered = np.flatnonzero(column.shares(low, high))
    places = (np.arange(70_000) + 0.5) / 70_000
    for code in covered:
        values = column.within(np.full(70_000, code), places, low, high)
        drawn = np.bincount(values, minlength=100) / 70_000
        assert drawn == pytest.approx(
            np.where(codes == code, inside, 0) / inside[codes == code].sum(), abs=1e-4
        )


def test_a_range_of_numbers_that_never_occur_is_met_all_the_same():
    column, _ = of_merged_cells()
    covered = np.flatnonzero(column.shares(52, 55))
    places = np.linspace(0, BELOW_ONE, 1_000)
    found = [column.within(np.full(1_000, code), places, 52, 55) for code in covered]
    assert set(np.concatenate(found)) == {52, 53, 54, 55}
