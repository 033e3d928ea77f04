"""Merged cells: codes and back, and the frequencies inside them."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sdv_privpgd.columns.bins import BELOW_ONE, Merging, merged_neighbors, merged_rare
from sdv_privpgd.columns.labels import code_labels
from sdv_privpgd.columns.schema import Schema

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


def test_values_are_drawn_as_often_as_they_occur():
    """A hundred thousand even positions: shares are met within a rounding."""
    merging = Merging((1, 0, 1, 1), (2.0, 7.0, 0.0, 6.0))
    positions = (np.arange(100_000) + 0.5) / 100_000
    cells, _ = merging.at(np.ones(100_000, np.int64), positions)
    assert np.bincount(cells, minlength=4).tolist() == [25_000, 0, 0, 75_000]


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


@pytest.mark.parametrize(
    "frequencies", [[1, 2], [1, -1, 0], [1, float("nan"), 1], [1, float("inf"), 1], "abc", 5]
)
def test_frequencies_that_are_none_are_refused_with_the_remedy(frequencies):
    facts = {
        "sdtype": "numerical", "range_min": 0, "range_max": 9, "cut_points": [3, 6],
        "frequencies": frequencies,
    }  # fmt: skip
    with pytest.raises(ValueError, match=r"frequencies of 'x' must be 3 numbers"):
        Schema.from_sdv({"x": facts})


def test_declared_frequencies_merge_the_cells_of_the_cuts():
    facts = {
        "sdtype": "numerical", "range_min": 0, "range_max": 99, "decimal_places": 0,
        "cut_points": list(range(1, 100)), "frequencies": [1000, *range(99)], "num_bins": 10,
    }  # fmt: skip
    (column,) = Schema.from_sdv({"x": facts}).columns
    assert column.num_values == 10
    codes, _ = column.locate(np.arange(100))
    assert np.count_nonzero(codes == 0) == 1
    assert column.at(np.zeros(3, np.int64), np.array([0, 0.5, 0.9])).tolist() == [0, 0, 0]
    # A range that is not cut in ticks has no cell that begins with its end.
    without = {**facts, "decimal_places": None}
    (column,) = Schema.from_sdv({"x": without}).columns
    assert column.num_values == 10


def of_merged_cells():
    """100 whole numbers in 8 codes; those from 50 to 59 never occur."""
    facts = {
        "range_min": 0, "range_max": 99, "decimal_places": 0,
        "num_bins": 8, "cut_points": list(range(1, 100)),
        "frequencies": [0 if 50 <= number < 60 else 1 + number % 7 for number in range(100)],
    }  # fmt: skip
    (column,) = Schema.from_sdv({"x": {"sdtype": "numerical"}}, public_domain={"x": facts}).columns
    assert len(column.merging) == 8
    return column, np.array(facts["frequencies"])


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


def test_merged_codes_are_named_by_their_ends():
    facts = {
        "sdtype": "numerical", "range_min": 0, "range_max": 9, "decimal_places": 0, "num_bins": 3,
        "cut_points": list(range(1, 10)), "frequencies": [9, 1, 1, 1, 1, 1, 1, 1, 1, 9],
        "range_is_nullable": False,
    }  # fmt: skip
    (column,) = Schema.from_sdv({"x": facts}).columns
    codes, _ = column.locate(np.arange(10))
    ends = [np.flatnonzero(codes == code)[[0, -1]].tolist() for code in range(3)]
    named = [str(low) if low == high else f"{low} – {high}" for low, high in ends]
    assert code_labels(column) == named
