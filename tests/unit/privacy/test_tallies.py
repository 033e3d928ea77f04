"""What is added up over parts of the rows is that of all rows, for every tally."""

from decimal import Decimal
from types import MappingProxyType

import numpy as np
import pandas as pd
import pytest

from sdv_privpgd.base.domain import Domain, Grouping
from sdv_privpgd.base.linear_thresholds import Cut, Line
from sdv_privpgd.columns.bins import SIGNED_POWERS, Reals, Ticks
from sdv_privpgd.columns.number_formats import NumberFormat
from sdv_privpgd.columns.parser import read_facts
from sdv_privpgd.columns.readings import Rarer, Readable, Reading
from sdv_privpgd.columns.schema import Schema
from sdv_privpgd.privacy.counting import LookupSums, TableCounts, units_of
from sdv_privpgd.privacy.streams import (
    Encoding,
    InUnits,
    Looking,
    MarginRecords,
    Weighing,
    rarer_counts,
    records_of,
)
from sdv_privpgd.sources.source import free_name

DOMAIN = Domain(("a", "b", "c", "d"), (2, 3, 4, 3))
CODES = np.random.default_rng(0).integers(0, DOMAIN.sizes, (6_000, 4)).T
GROUPS = Grouping.of(
    {"b": np.array([0, 1, 1]), "c": np.array([0, 0, 1, 1]), "d": np.array([0, 1, 2])}
)
PLACES = np.array([5, -3, 0], dtype=np.int64)
PHASES = [np.random.default_rng(at).integers(0, 2**16, (size, 3)) for at, size in enumerate((2, 3))]
PHASES = [each.astype(np.uint16) for each in PHASES]
LOOKED_UP = PLACES[:, None] + 3, np.arange(4)[:, None]
WAVES = np.random.default_rng(9).integers(-(2**14), 2**14, (2, 2**16))
NUMBERS = np.random.default_rng(1).integers(0, 3, CODES.shape[1])
"""How many rows of its person each is one of, less one."""
NAMES = "cliques", "groups", "number", "lookups", "features", "features by label", "cuts"


def tally_of(name):
    lines = tuple(Line(name, tuple(PLACES.tolist())) for name in ("b", "d"))
    cut = Cut(lines, (1, 1), (-4, 0, 3))
    made = {
        "cliques": lambda: TableCounts(
            DOMAIN, [("a",), ("a", "b"), ("a", "c", "b"), (), ("d", "a")]
        ),
        "groups": lambda: TableCounts(DOMAIN, [("c",), ("b", "c"), ("d", "b")], GROUPS),
        "number": lambda: TableCounts(DOMAIN, [()]),
        "lookups": lambda: LookupSums((1, 2), LOOKED_UP, np.arange(12)[None] ** 2),
        "features": lambda: LookupSums((0, 1), PHASES, WAVES),
        "features by label": lambda: LookupSums((0, 1), PHASES, WAVES, 3, 3),
        "cuts": lambda: TableCounts(DOMAIN, [("a", "c")], cuts=[(cut,)]),
    }
    return made[name]()


PEOPLE = "person", 3, True
"""A row of a person with 1, 2 or 3 of them is 6, 3 or 2 units."""


def in_units(name):
    """The same of rows that count as so many units, which the last code says."""
    units = np.array([6, 3, 2])[NUMBERS]
    return InUnits(tally_of(name), Weighing("number", PEOPLE)), np.vstack([CODES, units])


def by_hand(name):
    """The tables, one record after another."""
    sizes = {"cliques": (2, 6, 24, 1, 6), "groups": (2, 4, 6), "cuts": (32,)}
    found = [np.zeros(size, dtype=np.int64) for size in sizes[name]]
    for a, b, c, d in CODES.T.tolist():
        if name == "cliques":
            cells = a, 3 * a + b, 12 * a + 3 * c + b, 0, 2 * d + a
        elif name == "groups":
            b, c = [0, 1, 1][b], [0, 0, 1, 1][c]
            cells = c, 2 * b + c, 2 * d + b
        else:
            interval = sum(PLACES[b] + PLACES[d] > step for step in (-4, 0, 3))
            cells = (4 * (4 * a + c) + interval,)
        for table, cell in zip(found, cells, strict=True):
            table[cell] += 1
    return found


def same(one, other):
    np.testing.assert_equal(one, other)
    assert [table.dtype for table in one] == [table.dtype for table in other]


def of_all(tally, items):
    total = tally.zero()
    for item in items:
        tally.add(total, item)
    return total


@pytest.mark.parametrize("cut", [0, 1, 2_500, 6_000])
@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("made", [lambda name: (tally_of(name), CODES), in_units])
def test_parts_are_merged_to_the_whole(name, made, cut):
    tally, codes = made(name)
    whole = of_all(tally, [codes])
    parts = codes[:, :cut], codes[:, cut:]
    same(of_all(tally, parts), whole)
    one, other = (of_all(tally, [part]) for part in parts)
    kept = [table.copy() for table in other]
    tally.merge(one, other)
    same(one, whole)
    same(other, kept)
    same(tally.zero(), [0 * table for table in whole])


@pytest.mark.parametrize("name", ["cliques", "groups", "cuts"])
def test_tables_are_counted_as_by_hand(name):
    same(of_all(tally_of(name), [CODES]), by_hand(name))


def test_sums_are_those_of_all_records():
    same(of_all(tally_of("number"), [CODES]), [np.array([6_000])])
    a, b, c, d = CODES
    (looked_up,) = of_all(tally_of("lookups"), [CODES])
    assert looked_up == np.sum((PLACES[b] + 3 + c) ** 2)
    values = WAVES[:, (PHASES[0][a] + PHASES[1][b])]  # wave, record, feature
    (sums,) = of_all(tally_of("features"), [CODES])
    same([sums], [values.sum(axis=1)[None]])
    (sums,) = of_all(LookupSums((0,), PHASES[:1], WAVES), [CODES])
    same([sums], [WAVES[:, PHASES[0][a]].sum(axis=1)[None]])
    (sums,) = of_all(tally_of("features by label"), [CODES])
    same([sums], [np.stack([values[:, d == code].sum(axis=1) for code in range(3)])])


@pytest.mark.parametrize("name", NAMES)
def test_a_row_counts_as_its_units(name):
    tally, codes = in_units(name)
    found = of_all(tally, [codes])
    each = [of_all(tally_of(name), [CODES[:, number == NUMBERS]]) for number in range(3)]
    expected = [6 * one + 3 * two + 2 * three for one, two, three in zip(*each, strict=True)]
    np.testing.assert_equal(found, expected)
    exact = object if isinstance(tally_of(name), LookupSums) else np.int64
    assert all(table.dtype == exact for table in found)


GRID = SIGNED_POWERS
READINGS = [
    Reading(name="word", asks=frozenset(["categories"]), cells=GRID),
    Reading(name="size", asks=frozenset(["numbers", "grid", "precision"]), cells=GRID),
]
COLUMNS = {
    "word": pd.Series(["A", "B", None, "A", 1, True], dtype=object),
    "size": pd.Series([1.5, np.nan, 7, 1.5, -2, np.inf]),
    "number": pd.Series([1, 2, 2, 3, 3, 3]),
}


def seen(found):
    assert all(table.dtype == np.int64 for table in found.tables.values())
    # Each row has one code of each kind.
    assert all(table.min() >= 0 for table in found.tables.values())
    (number,) = {int(table.sum()) for table in found.tables.values()}
    values = {name: own.counted().pairs() for name, own in found.values.items()}
    return (number, found.tables, values)


def rows(part):
    return {name: column[part] for name, column in COLUMNS.items()}


@pytest.mark.parametrize("weighing", [None, Weighing("number", PEOPLE)])
@pytest.mark.parametrize("cut", [0, 2, 5, 6])
def test_first_looks_are_merged_to_the_whole(cut, weighing):
    tally = Looking(READINGS, weighing)
    whole = of_all(tally, [COLUMNS])
    items = [rows(part) for part in (slice(cut), slice(cut, None))]
    parts = [of_all(tally, [item]) for item in items]
    tally.merge(*parts)
    for added in (parts[0], of_all(tally, items)):
        np.testing.assert_equal(seen(added), seen(whole))


def test_what_is_seen_is_by_column_and_weight_and_the_numbers_of_rows_have_their_own_name():
    assert of_all(Looking([]), [{}, {}]).tables == {(): [0]}
    number, _, values = seen(of_all(Looking(READINGS, Weighing("number", PEOPLE)), [COLUMNS]))
    assert number == 6 + 3 + 3 + 2 + 2 + 2
    assert values["word"] == [(True, 2), (1, 2), ("A", 6 + 2), ("B", 3), (None, 3)]
    assert values["size"] == [(-2.0, 2), (1.5, 6 + 2), (7.0, 3), (None, 3 + 2)]
    assert free_name(["a"]) == "number"
    assert free_name(["number_", "number", "Number"]) == "number__"


def test_a_row_counts_in_all_its_columns_of_rarer_values_as_much_as_in_few():
    cells = np.random.default_rng(0).integers(0, 10**6, (8, 4_000))
    columns = {
        name: pd.Series(own).astype(str) for name, own in zip("abcdefgh", cells, strict=True)
    }
    columns["a"][:1_000], columns["b"][1_000:] = "known", None
    rarer = Rarer({**dict.fromkeys(columns, ()), "a": ["known"]}, 3)
    ones = np.ones(4_000, dtype=np.int64)
    found = {name: sum(n for _, n in own) for name, own in rarer_counts(rarer, columns, ones)}
    # Seven columns of each row have rarer values: 256 times the root of 3/7 is 167.6.
    assert found == dict.fromkeys(columns, 167 * 4_000) | {"a": 167 * 3_000, "b": 167 * 1_000}
    # Columns that say the same leave no value to each other: 256 times the root of 1/2 is 181.02.
    same = dict.fromkeys("ab", columns["c"])
    (_, one), (_, other) = rarer_counts(Rarer(dict.fromkeys("ab", ()), 1), same, ones)
    assert one == other
    assert sum(n for _, n in one) == 181 * 4_000
    # Of few each is one, and a truth is no number.
    few = {name: pd.Series([1, 1, True, None, "x"], dtype=object) for name in "ab"}
    counted = dict(rarer_counts(Rarer({"a": [True], "b": []}, 2), few, ones[:5]))
    assert [key for key, _ in counted["a"]] == [1, 1, "x"]
    assert sum(n for _, n in counted["b"]) == 4 * 256
    ((_, alone),) = rarer_counts(Rarer({"a": ()}, 1), {"a": pd.Series(range(50))}, 6 * ones[:50])
    assert alone == [(number, 6 * 256) for number in range(50)]


@pytest.mark.parametrize(
    ("cells", "cuts", "column", "precision", "codes"),
    [
        (
            Reals(0, 8, 4), {},
            [2.5, None, "x", 9, np.inf, 1e-7],
            27, [[1, 4, 4, 3, 4, 0], [13, 26, 26, 12, 26, 25]],
        ),
        (
            Ticks(0, 3, 4), {},
            ["1970-01-02", None, "3.1.1970", "1970-01-09T00:00:01", "1960-01-01 01:00:00.1"],
            10, [[1, 4, 4, 3, 0], [2, 9, 9, 5, 6]],
        ),
        (
            Ticks(0, 3, 4), {"datetime_format": "%d.%m.%Y"},
            ["1970-01-02", "3.1.1970"], 10, [[4, 2], [9, 2]],
        ),
        (
            Reals(0, 8, 4), {"number_format": NumberFormat("1234,5")},
            ["2,5", "2.5"], 27, [[1, 4], [13, 26]],
        ),
    ],
)  # fmt: skip
def test_little_is_read_as_codes_of_each_kind(cells, cuts, column, precision, codes):
    asks = frozenset(["grid", "precision"])
    reading = Reading(name="x", asks=asks, cells=cells, **cuts)
    assert reading.sizes == {"grid": 5, "precision": precision}
    found = reading.codes(pd.Series(column, dtype=object))
    assert [each.tolist() for each in found] == codes


def test_numbers_are_read_in_their_format_and_days_by_the_clock_of_their_dtype():
    reading = Reading(
        name="x", asks=frozenset(), cells=Reals(0, 8, 4), number_format=NumberFormat("1234,5")
    )
    numbers = reading.finite_numbers(pd.Series(["2,5", "2.5"], dtype=object))
    np.testing.assert_equal(numbers, [2.5, np.nan])
    reading = Reading(name="x", asks=frozenset(["grid", "precision"]), cells=Ticks(0, 3, 4))
    late = pd.Series(pd.to_datetime(["1970-01-02T23:00Z"]).tz_convert("Asia/Tokyo"))
    sparse = pd.Series(pd.arrays.SparseArray(np.array(["1970-01-03", "NaT"], "datetime64[ns]")))
    found = [[each.tolist() for each in reading.codes(days)] for days in (late, sparse)]
    assert found == [[[2], [3]], [[2, 4], [2, 9]]]


@pytest.mark.parametrize(
    ("words", "cells", "codes"),
    [
        ({"sdtype": "numerical", "range_min": 0, "range_max": 9},
         [0, 9, -0.1, 9.1, None, "x", 5], [0, 0, 3, 4, 1, 2, 0]),
        ({"sdtype": "numerical", "range_min": 0}, [-1, 1e300, 2.0**61], [3, 4, 0]),
        ({"sdtype": "numerical", "range_max": 9, "number_format": "1.234,5"},
         ["9,5", "-1.000,5", "9.5"], [4, 0, 2]),
        ({"sdtype": "datetime", "range_min": "01.02.2020", "range_max": "31.12.2020",
          "datetime_format": "%d.%m.%Y"},
         ["01.02.2020", "31.12.2020", "31.01.2020", "01.01.2021", None, "2020-03-03"],
         [0, 0, 3, 4, 1, 2]),
        ({"sdtype": "datetime", "range_min": "1678-01-02", "range_max": "2020-12-31"},
         ["0001-01-01", "2020-12-31 15:00", "2021-01-01"], [0, 0, 4]),
        ({"sdtype": "datetime", "range_min": "2020-01-01"},
         ["2019-12-31", "9999-12-31", "2020-01-02"], [3, 4, 0]),
        ({"sdtype": "datetime", "range_max": "2020-01-01"}, ["2020-01-02", "0001-01-01"], [4, 3]),
        ({"sdtype": "boolean"}, [True, False, "yes", None, 1], [0, 0, 2, 1, 0]),
        ({"sdtype": "boolean", "true_value": "J", "false_value": "N"}, ["J", "N", True], [0, 0, 2]),
        ({"sdtype": "categorical", "range_values": ["A", "B", "12:30"]},
         ["A", "B", "a", None, "12:30", "12:31"], [0, 0, 2, 1, 0, 2]),
        ({"sdtype": "categorical"}, ["A", " 12:30 ", 7 * "so long ", None, [1], 0.12345, 10**5000,
          pd.Timestamp(0, tz="UTC"), pd.Timestamp(0), Decimal("3.28301")],
         [0, 5, 0, 1, 2, 6, 0, 5, 0, 6]),
    ],
)  # fmt: skip
def test_a_cell_is_as_declared_or_missing_or_no_such_value_or_beyond_the_range(words, cells, codes):
    reading = Readable(name="x", facts=read_facts("x", words))
    is_open = words == {"sdtype": "categorical"}
    assert reading.sizes == {"read": 8 if is_open else 5}
    for at, cell in enumerate(cells):
        (found,) = reading.codes(pd.Series([cell], dtype=object))
        assert found.tolist() == [codes[at]], cell
    (found,) = reading.codes(pd.Series(cells, dtype=object))
    assert found.tolist() == codes
    assert next(reading.codes(pd.Series([], dtype=object))).tolist() == []
    sparse = pd.Series(pd.arrays.SparseArray(np.array(["2020-03-03", "NaT"], "datetime64[ns]")))
    assert next(reading.codes(sparse)).tolist()[1] == 1


def test_of_margins_no_more_is_known():
    records = MarginRecords(DOMAIN, {(): np.array([3]), ("b",): np.arange(3)}, 1)
    found = records.total(TableCounts(DOMAIN, [(), ("b",)]))
    assert [table.tolist() for table in found] == [[3], [0, 1, 2]]
    cuts = tally_of("cuts")._cuts
    for more in ({"cliques": [("b", "c")]}, {"grouping": GROUPS}, {"cuts": cuts}):
        with pytest.raises(ValueError, match="one attribute alone"):
            records.total(TableCounts(DOMAIN, **{"cliques": [("b",)], **more}))
    with pytest.raises(ValueError, match="one attribute alone"):
        records.total(tally_of("lookups"))


def test_a_sum_beyond_the_values_has_the_nearest_and_one_of_no_axes_the_first():
    beyond = LookupSums((1,), [np.array([[-3], [1], [5]])], np.array([[7, 1]]))
    below, *others = np.bincount(CODES[1]).tolist()
    assert of_all(beyond, [CODES])[0].tolist() == [[[7 * below + sum(others)]]]
    assert of_all(LookupSums((), (), np.array([[5]])), [CODES])[0].tolist() == [[[30_000]]]


class TestEncodings:
    facts = MappingProxyType({name: {"sdtype": "boolean"} for name in ("number", "number'")})

    def test_the_last_attribute_has_a_name_of_its_own_and_the_units_as_code(self):
        schema = Schema.from_sdv(dict(self.facts))
        encoding = Encoding(schema, Weighing("of the person", PEOPLE))
        *names, last = encoding.domain.attributes
        assert names == ["number", "number'"]
        assert last not in names
        assert encoding.domain.sizes == (3, 3, 256)
        assert encoding.read == ["number", "number'", "of the person"]
        columns = {name: pd.Series([True, False, None], dtype=object) for name in self.facts}
        (codes,) = encoding.blocks({**columns, "of the person": pd.Series([1, 3, 2])})
        assert codes[-1].tolist() == [6, 2, 3]
        plain = Encoding(schema, None)
        assert plain.domain == schema.domain()
        assert plain.read == ["number", "number'"]
        (others,) = plain.blocks(columns)
        assert (codes[:-1] == others).all()
        assert codes.dtype == others.dtype

    @pytest.mark.parametrize("number", [1, 2, 3])
    def test_codes_alone_are_rows_of_people_of_so_many(self, number):
        schema = Schema.from_sdv(dict(self.facts))
        codes = np.array([[0, 1], [1, 1], [1, 2]])
        records = records_of(schema, codes, PEOPLE, number)
        assert records.units == units_of(3)
        assert records.counts(("number",)).dtype == np.int64
        assert records.counts(("number",)).tolist() == [6 // number, 12 // number, 0]
        one = records_of(schema, codes, PEOPLE)
        assert one.counts(("number",)).tolist() == [6, 12, 0]
        assert records_of(schema, codes, None).counts(("number",)).tolist() == [1, 2, 0]
