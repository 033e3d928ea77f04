"""What is added up over parts of the rows is that of all rows, for every tally."""

from types import MappingProxyType

import numpy as np
import pandas as pd
import pytest

from sdv_privpgd.columns.bins import SignedPowers
from sdv_privpgd.columns.readings import Reading
from sdv_privpgd.columns.schema import Schema
from sdv_privpgd.domain import Domain, Grouping
from sdv_privpgd.privacy.counting import (
    CliqueCounts,
    CutCounts,
    FeatureSums,
    LookupSum,
    RecordNumber,
)
from sdv_privpgd.privacy.looking import Looking
from sdv_privpgd.privacy.units import units_of
from sdv_privpgd.privacy.value_counts import ValueCounts
from sdv_privpgd.privacy.weighing import ByNumber, ColumnsByNumber, Encoding, records_of
from sdv_privpgd.sources.source import Numbered

DOMAIN = Domain(("a", "b", "c", "d"), (2, 3, 4, 3))
CODES = np.random.default_rng(0).integers(0, DOMAIN.sizes, (6_000, 4)).T
GROUPS = Grouping.of(
    {"b": np.array([0, 1, 1]), "c": np.array([0, 0, 1, 1]), "d": np.array([0, 1, 2])}
)
PLACES = np.array([5, -3, 0], dtype=np.int64)
PHASES = [np.random.default_rng(at).integers(0, 2**16, (size, 3)) for at, size in enumerate((2, 3))]
PHASES = [each.astype(np.uint16) for each in PHASES]
WAVES = np.random.default_rng(9).integers(-(2**14), 2**14, (2, 2**16))
TALLIES = {
    "cliques": CliqueCounts(DOMAIN, [("a",), ("a", "b"), ("a", "c", "b"), (), ("d", "a")]),
    "groups": CliqueCounts(DOMAIN, [("c",), ("b", "c"), ("d", "b")], GROUPS),
    "number": RecordNumber(),
    "lookups": LookupSum((1, 2), (PLACES + 3, np.arange(4)), np.arange(12) ** 2),
    "features": FeatureSums((0, 1), PHASES, WAVES, None, 1),
    "features by label": FeatureSums((0, 1), PHASES, WAVES, 3, 3),
    "cuts": CutCounts([((0, 2), (2, 4), [([(1, PLACES), (3, PLACES)], np.array([-4, 0, 3]))])]),
}
NUMBERS = np.random.default_rng(1).integers(0, 3, CODES.shape[1])
"""How many rows of its person each is one of, less one."""
CASES = {name: (tally, CODES) for name, tally in TALLIES.items()} | {
    f"{name} by number": (ByNumber(tally, 3), np.vstack([CODES, NUMBERS]))
    for name, tally in TALLIES.items()
}


def by_hand(name):
    """The tables, one record after another."""
    tally = TALLIES[name]
    found = [np.zeros_like(table) for table in tally.zero()]
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
    assert all(table.dtype == np.int64 for table in flat(one))


def flat(total):
    return [each for part in total for each in (flat(part) if isinstance(part, list) else [part])]


def of_all(tally, items):
    total = tally.zero()
    for item in items:
        tally.add(total, item)
    return total


@pytest.mark.parametrize("cut", [0, 1, 2_500, 6_000])
@pytest.mark.parametrize("name", CASES)
def test_parts_are_merged_to_the_whole(name, cut):
    tally, codes = CASES[name]
    whole = of_all(tally, [codes])
    parts = codes[:, :cut], codes[:, cut:]
    same(of_all(tally, parts), whole)
    one, other = (of_all(tally, [part]) for part in parts)
    kept = [table.copy() for table in flat(other)]
    tally.merge(one, other)
    same(one, whole)
    same(flat(other), kept)
    same(flat(tally.zero()), [0 * table for table in flat(whole)])


@pytest.mark.parametrize("name", ["cliques", "groups", "cuts"])
def test_tables_are_counted_as_by_hand(name):
    same(of_all(TALLIES[name], [CODES]), by_hand(name))


def test_sums_are_those_of_all_records():
    a, b, c, d = CODES
    (looked_up,) = of_all(TALLIES["lookups"], [CODES])
    assert looked_up == np.sum((PLACES[b] + 3 + c) ** 2)
    values = WAVES[:, (PHASES[0][a] + PHASES[1][b])]  # wave, record, feature
    (sums,) = of_all(TALLIES["features"], [CODES])
    same([sums], [values.sum(axis=1)[None]])
    (sums,) = of_all(TALLIES["features by label"], [CODES])
    same([sums], [np.stack([values[:, d == code].sum(axis=1) for code in range(3)])])


@pytest.mark.parametrize("name", TALLIES)
def test_the_rows_of_people_of_each_number_are_apart(name):
    tally, codes = CASES[f"{name} by number"]
    parts = of_all(tally, [codes])
    assert len(parts) == 3
    for number, own in enumerate(parts):
        same(own, of_all(TALLIES[name], [CODES[:, number == NUMBERS]]))


GRID = SignedPowers()
READINGS = [
    Reading(name="word", asks=frozenset(["categories"]), cells=GRID, groups=(0,) * len(GRID)),
    Reading(
        name="size",
        asks=frozenset(["numbers", "grid", "precision"]),
        cells=GRID,
        groups=(0,) * len(GRID),
    ),
]
COLUMNS = {
    "word": pd.Series(["A", "B", None, "A", 1, True], dtype=object),
    "size": pd.Series([1.5, np.nan, 7, 1.5, -2, np.inf]),
    "number": pd.Series([1, 2, 2, 3, 3, 3]),
}


def seen(found):
    values = ValueCounts.of(found.values, found.numbers)
    return (
        found.num_rows,
        found.tables,
        {name: values.counts(name).pairs() for name in values.names},
    )


def rows(part):
    return {name: column[part] for name, column in COLUMNS.items()}


@pytest.mark.parametrize("cut", [0, 2, 5, 6])
def test_first_looks_are_merged_to_the_whole(cut):
    one, other = Looking(READINGS), ColumnsByNumber(Looking(READINGS), Numbered("number", 3))
    for tally in (one, other):
        whole = of_all(tally, [COLUMNS])
        parts = [of_all(tally, [rows(part)]) for part in (slice(cut), slice(cut, None))]
        tally.merge(*parts)
        pairs = [(parts[0], whole)] if tally is one else zip(parts[0], whole, strict=True)
        for found, expected in pairs:
            np.testing.assert_equal(seen(found), seen(expected))
    assert [each.num_rows for each in whole] == [1, 2, 3]
    assert seen(whole[1])[2]["word"] == [("B", 1), (None, 1)]


def test_what_is_seen_counts_as_often_as_it_weighs():
    once = of_all(Looking(READINGS), [COLUMNS])
    number, tables, values = seen(once.times(6))
    assert number == 36
    np.testing.assert_equal(tables, {name: 6 * table for name, table in once.tables.items()})
    assert values["word"] == [(value, 6 * n) for value, n in seen(once)[2]["word"]]
    assert values["size"] == [(value, 6 * n) for value, n in seen(once)[2]["size"]]
    assert values["size"] == [(-2.0, 6), (1.5, 12), (7.0, 6), (None, 12)]


class TestEncodings:
    facts = MappingProxyType({name: {"sdtype": "boolean"} for name in ("number", "number'")})

    def test_the_last_attribute_has_a_name_of_its_own_and_a_code_for_each_number(self):
        schema = Schema.from_sdv(dict(self.facts))
        encoding = Encoding(schema, Numbered("of the person", 3))
        assert encoding.domain.attributes == ("number", "number'", "number''")
        assert encoding.domain.sizes == (3, 3, 3)
        assert encoding.read == ["number", "number'", "of the person"]
        columns = {name: pd.Series([True, False, None], dtype=object) for name in self.facts}
        codes = encoding.codes({**columns, "of the person": pd.Series([1, 3, 2])})
        assert codes[-1].tolist() == [0, 2, 1]
        plain = Encoding(schema, None)
        assert plain.domain == schema.domain()
        assert plain.read == ["number", "number'"]
        assert (codes[:-1] == plain.codes(columns)).all()
        assert codes.dtype == plain.codes(columns).dtype

    @pytest.mark.parametrize("number", [1, 2, 3])
    def test_codes_alone_are_rows_of_people_of_so_many(self, number):
        schema = Schema.from_sdv(dict(self.facts))
        codes = np.array([[0, 1], [1, 1], [1, 2]])
        records = records_of(schema, codes, 3, number)
        assert records.units == units_of(3)
        assert records.counts(("number",)).tolist() == [6 // number, 12 // number, 0]
        assert records_of(schema, codes, None).counts(("number",)).tolist() == [1, 2, 0]
