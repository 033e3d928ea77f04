"""Differences of columns in order: values to differences and back, and rows made of them."""

import numpy as np
import pandas as pd
import pytest
from columns_of_words import numbers, ranged

from sdv_privpgd.columns.bins import BELOW_ONE
from sdv_privpgd.columns.differences import (
    FINE,
    OrderedPair,
    chosen,
    difference_of,
    differences_of,
    merged,
    put_differences,
)
from sdv_privpgd.columns.encoding import encode_table
from sdv_privpgd.columns.parser import describe
from sdv_privpgd.columns.schema import Schema
from sdv_privpgd.constraints.rules import Order


def dates(name, low, high, written, bins=6, **facts):
    known = {"num_bins": bins, "datetime_format": written, **facts}
    return describe(name, ranged("datetime", low, high, **known))


DAY, HOUR, MONTH = "%Y-%m-%d", "%Y-%m-%d %H:%M", "%Y-%m"
PAIRS = {
    "days": (
        dates("a", "2020-01-01", "2022-12-31", DAY),
        dates("b", "2020-02-01", "2023-03-31", DAY),
    ),
    "days, hours": (
        dates("a", "2020-01-01", "2020-03-31", DAY),
        dates("b", "2020-01-01 00:00", "2020-04-30 23:59", HOUR),
    ),
    "days, months": (
        dates("a", "2020-01-05", "2020-12-31", DAY),
        dates("b", "2020-01", "2021-06", MONTH),
    ),
    "whole": (
        numbers("a", 0, 400, decimal_places=0),
        numbers("b", -20, 500, decimal_places=0, range_is_nullable=False),
    ),
    "decimals": (
        numbers("a", 0, 40, decimal_places=1),
        numbers("b", 0, 50, decimal_places=2, range_is_nullable=False),
    ),
    "increments": (
        numbers("a", 0, 900, increment=30, decimal_places=0),
        numbers("b", 0, 990, increment=45),
    ),
    "rounded": (
        numbers("a", 0, 900, decimal_places=0, rounding=[[10, 0.5]]),
        numbers("b", 0, 950, decimal_places=1, rounding=[[50, 0.5], [5, 0.4]]),
    ),
    "real": (numbers("a", -1.5, 1), numbers("b", 0.25, 2)),
    "real, whole": (numbers("a", 0.5, 90.5), numbers("b", 0, 100, decimal_places=0)),
}  # fmt: skip


def rows_of(pair, difference, number=3_000, seed=0):
    rng = np.random.default_rng(seed)
    attributes = (*pair, difference.column)
    codes = {column.name: rng.integers(0, column.size, number) for column in attributes}
    return codes, {name: rng.random(number) for name in codes}


def values_of(column, codes, places):
    here = codes[column.name] < column.num_values
    return column.at(np.where(here, codes[column.name], 0), places[column.name]), here


def test_a_column_that_follows_from_a_difference_is_as_round_as_it_is():
    low, high = PAIRS["rounded"]
    difference = difference_of(low, high, strict=False, name="d", num_cells=8)
    codes, places = rows_of((low, high), difference)
    there = (codes["a"] < low.num_values) & (codes["d"] < difference.column.num_values)
    there &= codes["b"] < high.num_values
    put_differences([difference], codes, places, held=["a"])
    ticks, _ = values_of(high, codes, places)
    assert (ticks[there] % 50 == 0).mean() > 0.5  # of all ticks a fiftieth are
    assert (values_of(low, codes, places)[0] <= ticks / 10)[there].all()


@pytest.mark.parametrize("strict", [False, True])
@pytest.mark.parametrize("kind", PAIRS)
def test_one_column_and_the_difference_are_the_other(kind, strict):
    """From two values in order to the difference's cell of one value, and back."""
    low, high = PAIRS[kind]
    exact = difference_of(low, high, strict=strict, name="d", num_cells=10**6)
    codes, places = rows_of((low, high), exact)
    order = Order(low, high, strict)
    (lows, _), (highs, _) = values_of(low, codes, places), values_of(high, codes, places)
    sorted_rows = order.holds(codes, places)
    sorted_rows &= (codes["a"] < low.num_values) & (codes["b"] < high.num_values)
    assert sorted_rows.sum() > 100
    between = exact.between(lows, highs)
    codes["d"], places["d"] = exact.column.locate(between)
    for known, other in (("a", high), ("b", low)):
        own_codes = {name: own.copy() for name, own in codes.items()}
        own_places = {name: own.copy() for name, own in places.items()}
        own_codes[other.name][:] = 0
        put_differences([exact], own_codes, own_places, held=[known])
        found, _ = values_of(other, own_codes, own_places)
        expected = highs if known == "a" else lows
        scale = 1e-6 * max(abs(np.asarray(other.cells.ends)))
        assert np.abs(found - expected)[sorted_rows].max() <= (scale if "real" in kind else 0)


@pytest.mark.parametrize("held", [(), ("a",), ("b",), ("a", "b")])
@pytest.mark.parametrize("kind", PAIRS)
def test_rows_are_in_order_wherever_the_ranges_leave_room(kind, held):
    pair = PAIRS[kind]
    difference = difference_of(*pair, strict=False, name="d", num_cells=8)
    codes, places = rows_of(pair, difference)
    before = {name: (codes[name].copy(), places[name].copy()) for name in codes}
    put_differences([difference], codes, places, held)
    for name in (*held, "d"):
        assert (codes[name] == before[name][0]).all()
        assert (places[name] == before[name][1]).all()
    for column in pair:  # nothing becomes missing, and nothing missing becomes a value
        was = before[column.name][0] == column.num_values
        assert ((codes[column.name] == column.num_values) == was).all()
        assert ((places[column.name] >= 0) & (places[column.name] < 1)).all()
    if held == ():
        there = codes["d"] < difference.column.num_values
        assert Order(*pair, False).holds(codes, places)[there].all()


@pytest.mark.parametrize("peak", [{"b": 9_999}, {"a": 0}, {"a": 0, "b": 9_999}, {"a": 500}])
def test_a_value_that_many_rows_share_stays_and_no_other_row_gets_it(peak):
    """Whatever the difference says, which is coarser, where both codes are in order."""
    pair = []
    for name in "ab":
        shared = peak.get(name, 250)
        cuts = sorted({*range(10, 10_000, 10), shared, shared + 1} - {0, 10_000})
        often = [500.0 * (name in peak and cut == shared) + 1 for cut in (0, *cuts)]
        facts = {"decimal_places": 0, "cut_points": cuts, "frequencies": often}
        pair.append(numbers(name, 0, 9_999, 20, range_is_nullable=False, **facts))
    difference = difference_of(*pair, strict=False, name="d", num_cells=8)
    codes, places = rows_of(pair, difference)
    was = {column.name: values_of(column, codes, places)[0] for column in pair}
    put_differences([difference], codes, places)
    apart = was["a"] + 1_000 < was["b"]
    for name, value in peak.items():
        found, _ = values_of(pair["ab".index(name)], codes, places)
        assert ((found == value) == (was[name] == value))[apart].all()


@pytest.mark.parametrize("kind", PAIRS)
def test_cells_that_no_row_in_order_is_in_are_known(kind):
    """All that occurs is allowed; where cells are not too small to be hit, no more is."""
    low, high = PAIRS[kind]
    difference = difference_of(low, high, strict=False, name="d", num_cells=7)
    codes, places = rows_of((low, high), difference, 60_000)
    rows = Order(low, high, False).holds(codes, places)
    (lows, has_low), (highs, has_high) = (
        values_of(low, codes, places),
        values_of(high, codes, places),
    )
    cells, _ = difference.column.locate(difference.between(lows, highs))
    cells = np.where(has_low & has_high, cells, difference.column.num_values)
    for (name, _), allowed in difference.possible().items():
        seen = np.zeros_like(allowed)
        seen[codes[name][rows], cells[rows]] = True
        assert not (seen & ~allowed).any()
        if kind in ("days", "whole", "increments"):
            assert (allowed & ~seen).mean() < 0.05


def test_a_difference_is_worked_out_row_by_row():
    low, high = PAIRS["days"]
    schema = Schema((low, high), (difference_of(low, high, strict=False, name="d", num_cells=40),))
    table = pd.DataFrame(
        {
            "a": ["2020-05-01", "2020-05-01", None, "1066-01-01", "2021-01-01", "nothing"],
            "b": ["2020-05-04", None, "2020-05-04", "2020-02-03", "2020-12-01", "2020-05-05"],
        }
    )
    whole = encode_table(dict(table.items()), schema)
    alone = [encode_table(dict(table.iloc[[row]].items()), schema)[0] for row in range(len(table))]
    assert whole.tolist() == np.array(alone).tolist()
    column, codes = schema.differences[0].column, whole[:, 2]
    assert codes[1] == codes[2] == codes[5] == column.num_values
    assert column.at(codes[[0]], np.zeros(1)) == 3
    assert column.at(codes[[4]], np.zeros(1)) == 0, "the wrong order is none"
    first = column.at(codes[[3]], np.zeros(1)), column.at(codes[[3]], np.full(1, BELOW_ONE))
    assert first[0] <= 33 <= first[1], "clipped to 2020-01-01"


@pytest.mark.parametrize(
    "dtype", ["category", "Sparse[float]", "Int8", "float32", object]
)  # fmt: skip
def test_a_difference_is_read_from_columns_of_any_dtype(dtype):
    cells = pd.Series([1, 2, None], dtype=dtype)
    low, high = numbers("a", 0, 99, decimal_places=0), numbers("b", 0, 99, decimal_places=0)
    schema = Schema((low, high), (difference_of(low, high, strict=False, name="d", num_cells=40),))
    codes = encode_table({"a": cells, "b": pd.Series([5, 5, 5])}, schema)[:, 2]
    assert codes.tolist() == [4, 3, schema.differences[0].column.num_values]


class TestCells:
    def test_they_are_single_at_first_and_widen_where_there_are_any(self):
        low, high = PAIRS["days"]
        column = difference_of(low, high, strict=True, name="d", num_cells=32).column
        widths = column.cells.widths
        assert column.cells.starts[:4].tolist() == [1, 2, 3, 4]
        assert 28 <= len(widths) <= 32
        assert (np.diff(widths)[:-1] >= 0).all()
        assert column.cells.last == 1185, "from the first day to the last one"
        low, high = (numbers(name, 0, 5, decimal_places=0) for name in "ab")
        assert difference_of(low, high, strict=False, name="d", num_cells=32) is None
        low = numbers("a", 0, 50, decimal_places=0)
        high = numbers("b", -50, 0, decimal_places=0)
        assert difference_of(low, high, strict=False, name="d", num_cells=32) is None
        low, high = (numbers(name, -(2**61), 2**61, decimal_places=0) for name in "ab")
        assert difference_of(low, high, strict=False, name="d", num_cells=32) is None

    def test_frequent_ones_have_codes_of_their_own_and_empty_ends_have_none(self):
        low, high = PAIRS["days"]
        fine = difference_of(low, high, strict=False, name="d", num_cells=FINE)
        frequencies = np.zeros(len(fine.column.cells))
        frequencies[2:60] = 1
        frequencies[14] = 500
        column = merged(fine, frequencies.tolist(), 8).column
        codes = column.merging.codes
        assert column.num_values == 8
        assert codes.count(codes[14]) == 1
        assert codes[0] == codes[2]
        assert codes[-1] == codes[59]
        places = np.linspace(0, 0.999, 1_000)
        drawn = column.at(np.full(1_000, codes[-1]), places)
        assert drawn.max() <= fine.column.cells.starts[60]


class TestWhichPairs:
    def test_they_are_few_and_none_has_what_follows_or_is_the_user_s(self):
        pairs = [OrderedPair(*pair, False) for pair in ("ab", "bc", "ac", "ba", "de")]
        assert [pair.name for pair in chosen(pairs)] == ["b - a", "c - b", "e - d"]
        pairs = [OrderedPair(str(k), str(k + 1), False) for k in range(20)]
        assert len(chosen(pairs)) == 6
        columns = [numbers(name, 0, 500, decimal_places=0) for name in ("a", "b", "b - a")]
        (found,) = differences_of([OrderedPair("a", "b", False)], columns, num_bins=32, shapes={})
        assert found.name == "b - a'"

    def test_a_chain_follows_from_any_of_its_columns(self):
        columns = [numbers(name, 0, 500, 4, decimal_places=0) for name in "abc"]
        pairs = [OrderedPair("a", "b", False), OrderedPair("b", "c", False)]
        both = differences_of(pairs, columns, num_bins=32, shapes={})
        for held in ((), ("a",), ("b",), ("c",)):
            codes, places = rows_of(columns, both[0])
            more, there = rows_of(columns, both[1], seed=1)
            codes[both[1].name], places[both[1].name] = more[both[1].name], there[both[1].name]
            for column in columns:
                codes[column.name] %= column.num_values
            put_differences(both, codes, places, held)
            here = np.all([codes[each.name] < each.column.num_values for each in both], axis=0)
            a, b, c = (values_of(column, codes, places)[0][here] for column in columns)
            steps = [values_of(each.column, codes, places)[0][here] for each in both]
            inside = (a > 0) & (c < 500) & (b > 0) & (b < 500)
            assert inside.sum() > 20
            assert (b - a == steps[0])[inside].all()
            assert (c - b == steps[1])[inside].all()
