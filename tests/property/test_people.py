"""At most so many rows of a person are read, and a whole person changes no more than they can."""

import ast
import datetime
from collections import Counter
from decimal import Decimal
from fractions import Fraction
from itertools import cycle
from pathlib import Path
from uuid import UUID

import numpy as np
import pandas as pd
import pytest
import sdv_tables
from hypothesis import example, given
from hypothesis import strategies as st
from made_up import in_columns, made_up
from sdv.errors import SynthesizerInputError

import sdv_privpgd
from sdv_privpgd import Boolean, Categorical, MSTSynthesizer, People, combine, fit_table, measure
from sdv_privpgd.columns.parser import describe
from sdv_privpgd.columns.schema import Schema
from sdv_privpgd.columns.visits import Visits
from sdv_privpgd.privacy.boundary import EncodedTable, PrivateTable
from sdv_privpgd.privacy.ledger import FitLedger, PrivacyLedger
from sdv_privpgd.privacy.queries import Adjacency, MarginalQuery
from sdv_privpgd.sources import frames
from sdv_privpgd.sources.frames import FrameSource
from sdv_privpgd.sources.locate import of_people, of_visits
from sdv_privpgd.sources.people import (
    PeopleSource,
    numbers_in,
    person_of,
    rank_of,
    starts_of,
    staying,
)
from sdv_privpgd.sources.source import Batch

SPELLED = {
    "nobody": (None, np.nan, pd.NA, pd.NaT, "", " ", "nan", "None", "\u00a0", Decimal("NaN"),
               "NULL", "NaT", "NA", "n/a", "#N/A", "<NA>", object()),
    "one": (1, 1.0, True, "1", "01", " 1", "1.0", "+1", "1e0", "1E0", "\uff11", "\ufeff1", b"1",
            "true", Decimal("1.00"), np.uint8(1), np.float32(1)),
    "none at all": (0, -0.0, "0", "-0.0", False, "False", f"1e-{10**20}"),
    "large": (10**17 + 1, 1e17, "100000000000000001", "1e+17", Decimal(10**17)),
    "infinite": (10**400, 10**5_000, "1" + 400 * "0", np.inf, "inf"),
    "part": (1.5, "1.50", Decimal("1.5")),
    "day": (datetime.date(2024, 1, 31), pd.Timestamp("2024-01-31"), "2024-01-31 00:00:00",
            "2024-01-31T00:00:00"),
    "accented": ("Zo\u00e9", "Zoe\u0301", " Zo\u00e9\x00"),
    "A": ("A", "A ", b"A", "\tA"),
    "a": ("a",),
    "hexadecimal": ("12e4567",),
    "another": ("12e4568",),
    "two words": ("Ann B", "Ann  B", " Ann\tB"),
    "no text": (b"\xff", "\ufffd"),
    "uuid": (UUID(int=10**36), "00c097ce-7bc9-0715-b34b-9f1000000000",
             "{00C097CE-7BC9-0715-B34B-9F1000000000} "),
    "another uuid": ("00c097cf-7bc9-0715-b34b-9f1000000000",),
    "padded": (b"padded\0\0", "padded"),
}  # fmt: skip
"""Cells that name a person, of some people."""

PERSON = {id(cell): who for who, spelled in SPELLED.items() for cell in spelled}
WHO = st.sampled_from([cell for spelled in SPELLED.values() for cell in spelled])
ROWS = st.lists(st.tuples(WHO, st.integers(0, 2)), max_size=40)


def source_of(rows, most, block):
    frames.BLOCK = block
    who = pd.Series(np.fromiter((row[0] for row in rows), dtype=object), dtype=object)
    held = PeopleSource(
        FrameSource({"who": who, "x": pd.Series([row[1] for row in rows], dtype=object)}),
        "who",
        most,
    )
    held._key = b"one key of both tables"
    return held


def kept(source):
    parts = [pd.DataFrame(batch.columns) for batch in source.batches(["who", "x"])]
    return [row for part in parts for row in part.itertuples(index=False, name=None)]


def name(who):
    """Whose a cell is, by the list above, which has the very object."""
    return PERSON[id(who)]


@pytest.fixture(autouse=True)
def whole_blocks(monkeypatch):
    monkeypatch.setattr(frames, "BLOCK", frames.BLOCK)


def test_all_spellings_of_a_person_are_one_and_no_other_person():
    for exact in (False, True):
        found = {
            who: {person_of(cell, exact) for cell in spelled} for who, spelled in SPELLED.items()
        }
        assert [w for w, own in found.items() if len(own) > 1] == ["large", "no text"] * exact
        assert len(set.union(*found.values())) == len(SPELLED) + 2 * exact
    assert person_of(b"padded\0X", True) != person_of("paddedX", True)
    long = [9 * 10**17 + 1, "900000000000000001", "+0900000000000000001.0"]
    assert {person_of(cell, True) for cell in long} == {"900000000000000001"}
    assert {person_of(cell) for cell in long} == {"9e+17"}


UNEVEN = [(SPELLED[who][0], 0) for who in "aaaAaAAaa"]


@given(rows=ROWS, most=st.integers(1, 4), block=st.integers(1, 50))
@example(rows=UNEVEN, most=2, block=3)
@example(rows=UNEVEN, most=1, block=3)
@example(rows=UNEVEN[::-1], most=1, block=3)
def test_each_person_has_as_many_rows_as_may_be(rows, most, block):
    source = source_of(rows, most, block)
    found = kept(source)
    assert found == kept(source)  # the same again
    assert len(found) == source.num_rows()
    for who in {name(row[0]) for row in rows}:
        number = sum(name(row[0]) == who for row in rows)
        assert sum(name(row[0]) == who for row in found) == min(number, most)


@given(rows=ROWS, others=ROWS, most=st.integers(1, 4), block=st.integers(1, 50), data=st.data())
def test_a_whole_person_changes_their_own_rows_alone(rows, others, most, block, data):
    """One person's rows, any number of them in all spellings, are put among those of all others."""
    who = data.draw(st.sampled_from(list(SPELLED)))
    rows = [row for row in rows if name(row[0]) != who]
    mine = [(cell, x) for cell, (_, x) in zip(cycle(SPELLED[who]), others, strict=False)]
    mixed = list(rows)
    for row in mine:
        mixed.insert(data.draw(st.integers(0, len(mixed))), row)
    without, with_all = (kept(source_of(each, most, block)) for each in (rows, mixed))
    assert [row for row in with_all if name(row[0]) != who] == without
    assert len(with_all) - len(without) <= most


def whose(cells):
    """The people of cells, each by its number among those who are known."""
    known = {}
    numbers = numbers_in(cells, False, known, grows=True)
    assert (numbers == numbers_in(cells, False, known, grows=False)).all()
    return [[*known][number] for number in numbers]


@pytest.mark.parametrize("dtype", [object, "category", np.float64, "Float64", np.float32])
def test_cells_of_all_dtypes_say_whose_a_row_is(dtype):
    people = whose(pd.Series([2, None, 1, 2, None, 2], dtype=dtype))
    assert people == ["2.0", None, "1.0", "2.0", None, "2.0"]
    assert whose(pd.Series([], dtype=dtype)) == []


@pytest.mark.parametrize(
    ("dtype", "people"), [(np.int64, 2), (np.uint64, 2), ("Int64", 2), (object, 1)]
)
def test_whole_numbers_of_a_source_that_has_nothing_else_keep_their_digits(dtype, people):
    who = pd.Series([2**53, 2**53 + 1], dtype=dtype)
    source = PeopleSource(FrameSource({"who": who, "x": who}), "who", 1)
    assert source.num_rows() == people == len(kept(source))


class Unknown:
    """An object that is not to be asked anything."""

    def __eq__(self, other):
        raise AssertionError("It was compared.")

    def __hash__(self):
        raise AssertionError("It was looked up.")


def test_unknown_objects_are_nobody_and_are_not_asked():
    cells = pd.Series([1, Unknown(), True, Unknown()], dtype=object)
    assert whose(cells) == ["1.0", None, "1.0", None]


class Gappy(FrameSource):
    """Rows of which some parts are empty, as those of a file can be."""

    def batches(self, names):
        for part in (slice(0), slice(2), slice(0), slice(2, None)):
            yield Batch(1.0, {name: self.columns[name].iloc[part] for name in names})


def test_a_part_without_rows_changes_nothing():
    rows = {"who": pd.Series([1, 1, 1]), "x": pd.Series([0, 1, 2])}
    for most in (1, 2, 3):
        sources = [PeopleSource(made(rows), "who", most) for made in (Gappy, FrameSource)]
        for source in sources:
            source._key = b"one key of both"
        assert kept(sources[0]) == kept(sources[1])


class OneReading(FrameSource):
    """As a connection to a database, which has one reading at a time."""

    under_way = False

    def batches(self, names):
        assert not self.under_way
        self.under_way = True
        yield from super().batches(names)
        self.under_way = False


def test_a_reading_ends_before_the_next_one_begins():
    rows = {"who": pd.Series([1, 1, 2]), "x": pd.Series([0, 1, 2])}
    found = kept(PeopleSource(OneReading(rows), "who", 1, numbered=True))
    assert [len(row) for row in found] == [2, 2]  # with the columns that were asked for


class Changing:
    """A source with other rows at each reading, as a table that somebody writes to."""

    def __init__(self, *readings):
        self._readings = iter(readings)
        self.names, self.dtypes = ["who", "x"], {}

    def batches(self, names):
        return FrameSource(in_columns(["who", "x"], next(self._readings))).batches(names)


@given(
    first=ROWS, second=ROWS, grows=st.booleans(), most=st.integers(1, 4), block=st.integers(1, 9)
)
def test_a_table_that_changes_between_two_readings_gives_no_person_more_rows(
    first, second, grows, most, block
):
    """Nor more weight than one row's, where each counts as 1 / the number of those that stay."""
    frames.BLOCK = block
    later = [*first, *second] if grows else second
    source = PeopleSource(Changing(first, later), "who", most, numbered=True)
    rows, weights = Counter(), Counter()
    for batch in source.batches(["who", "x", source.numbered]):
        numbers = batch.columns[source.numbered]
        for who, number in zip(batch.columns["who"], numbers, strict=True):
            rows[name(who)] += 1
            weights[name(who)] += Fraction(1, int(number))
    assert all(number <= most for number in rows.values())
    assert all(weight <= 1 for weight in weights.values())


def test_who_comes_after_the_first_reading_has_no_rows_and_changes_nobody_elses():
    frames.BLOCK = 1
    first = [(SPELLED[who][0], x) for x in range(3) for who in "Aa"]
    found = []
    for place in range(7):
        for later in (first, [*first[:place], (SPELLED["one"][0], 9), *first[place:]]):
            source = PeopleSource(Changing(first, later), "who", 1)
            source._key = b"one key of both tables"
            found.append(kept(source))
    assert (len({str(each) for each in found}), len(found[0])) == (1, 2)


def test_rows_stay_from_any_place_on_or_from_one_that_has_enough_after_it():
    names, numbers = range(200), np.array([5] * 150 + [3] * 50)
    for in_order, places in ((False, range(5)), (True, range(3))):
        starts = starts_of(names, numbers, 3, b"a key", in_order=in_order)
        assert (set(starts), set(starts[150:]), starts.dtype) == (set(places), {0}, np.int64)
    stays = staying(np.array([0, 0, 0, 0, -1]), np.arange(5), np.array([4, 0]), np.array([1, 0]), 2)
    assert stays.tolist() == [False, True, True, False, False]
    ranks = rank_of(np.array([1, 0, 1, 1]), np.array([2, 9, 0, 1]))
    assert (ranks.tolist(), ranks.dtype) == ([2, 0, 0, 1], np.int64)


@given(rows=ROWS, others=ROWS, most=st.integers(1, 3))
def test_no_person_changes_counts_by_more_than_is_charged_for(rows, others, most):
    facts = {"x": {"sdtype": "categorical", "range_values": [0, 1, 2]}}
    schema = Schema.from_sdv(facts)
    tables = []
    rows = [row for row in rows if name(row[0]) != "one"]
    mine = [(cell, x) for cell, (_, x) in zip(cycle(SPELLED["one"]), others, strict=False)]
    for each in (rows, [*rows, *mine]):
        shared = FitLedger(PrivacyLedger.open(1.0, 1e-5, Adjacency.ADD_REMOVE, most, people="who"))
        curator = PrivateTable(source_of(each, most, 7)).curator(schema, shared)
        tables.append(curator._dataset.counts(("x",)))
    (charged,) = {MarginalQuery(("x",)).l2_sensitivity_squared(Adjacency.ADD_REMOVE) * most**2}
    assert np.square(tables[0] - tables[1]).sum() <= charged


def test_each_row_of_a_person_is_as_likely():
    rows, counts = [("A", place) for place in range(10)], np.zeros(10)
    for _ in range(2_000):
        source = PeopleSource(
            FrameSource({"who": pd.Series(["A"] * 10), "x": pd.Series([row[1] for row in rows])}),
            "who",
            3,
        )
        counts[[row[1] for row in kept(source)]] += 1
    # Six standard deviations of 2,000 draws with a chance of .3.
    assert (np.abs(counts / 2_000 - 0.3) < 6 * np.sqrt(0.3 * 0.7 / 2_000)).all()


def test_whose_rows_they_are_decides_which_of_them_stay():
    """And not how many they are alone: those of two people, all alike, do not stay together."""
    rows = {"who": pd.Series(["A", "B"] * 10), "x": pd.Series(range(20))}
    found = [[x for _, x in kept(PeopleSource(FrameSource(rows), "who", 1))] for _ in range(50)]
    assert any(one // 2 != other // 2 for one, other in found)


class Unreadable(FrameSource):
    """Rows that nobody may read."""

    def batches(self, names):
        raise AssertionError(f"{names} were read.")


BOUNDS = [None, ("who", 2, False), ("who", 3, False), ("who", 2, True), ("x", 2, False), "visits"]


@pytest.mark.parametrize("read", BOUNDS)
@pytest.mark.parametrize("said", BOUNDS[:-1])
def test_no_row_is_read_for_ledger_that_say_another_bound(read, said):
    """Whichever of them is the stricter one."""
    source = Unreadable({"who": pd.Series([1]), "x": pd.Series([1])})
    day = describe("x", {"sdtype": "numerical", "range_min": 0, "range_max": 9})
    bounded = (
        source
        if read is None
        else of_visits(source, Visits(person="who", most=2, by="x"), day)
        if read == "visits"
        else of_people(source, *read)
    )
    person, most, weighed = said or (None, 2, False)
    ledger = PrivacyLedger.open(
        1.0, 1e-5, Adjacency.ADD_REMOVE, most, people=person, weighed=weighed
    )
    schema, table = Schema.from_sdv({"x": {"sdtype": "boolean"}}), PrivateTable(bounded)
    are_one = read == said or (read == "visits" and said == ("who", 2, False))
    error, words = (
        (AssertionError, "were read") if are_one else (ValueError, "is not what its ledger says")
    )
    for looked in (
        lambda: table.curator(schema, FitLedger(ledger)),
        lambda: table.first_queries([], FitLedger(ledger)),
    ):
        if are_one and read is None:
            continue  # a frame is read as it is
        with pytest.raises(error, match=words):
            looked()


def test_codes_are_asked_about_with_the_bound_that_their_owner_says():
    schema = Schema.from_sdv({"x": {"sdtype": "boolean"}})
    shared = FitLedger(PrivacyLedger.open(1.0, 1e-5, Adjacency.ADD_REMOVE, 2, people="who"))
    with pytest.raises(
        ValueError, match=r"= None is not what its ledger says, \('who', 2, False\)"
    ):
        EncodedTable(pd.DataFrame({"x": [0]})).curator(schema, shared)


def test_nobody_but_the_boundary_makes_curators():
    """In a fit: audits and benchmarks make their own, of rows that are nobody's."""
    package = Path(sdv_privpgd.__file__).parent
    made = {
        str(path.relative_to(package))
        for path in package.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Call) and getattr(node.func, "id", None) == "Curator"
    }
    outside = {path for path in made if not path.startswith(("audit/", "benchmark/"))}
    assert outside == {"privacy/boundary.py"}


COLUMNS = {"ward": Categorical(["A", "B"]), "ill": Boolean()}


class TestFits:
    def table(self, num_rows=1_000):
        return made_up(num_rows, patient=(0, 300), ward="AB", ill=0.4)

    def test_the_report_says_whom_it_protects(self):
        fitted = fit_table(
            self.table(), COLUMNS, 20.0, adjacency="add_remove", delta=1e-5,
            people=People("patient", max_rows=2),
            method="privpgd+pgm",
        )  # fmt: skip
        own = self.table()["patient"].value_counts().clip(upper=2).sum()
        assert abs(fitted.num_rows - own) < 60  # far beyond the noise
        said = "all rows of one person, of which 2 at most are used (told apart by 'patient')"
        assert said in " ".join(fitted.privacy_report().split())
        assert "told apart by" in fitted.report().html()

    def test_it_needs_a_private_number_of_rows(self):
        with pytest.raises(ValueError, match="needs adjacency='add_remove'"):
            fit_table(self.table(), COLUMNS, 1.0, people=People("patient"))

    def test_a_column_that_is_not_there_or_is_modelled_is_refused(self):
        settings = {"adjacency": "add_remove", "delta": 1e-5, "people": People("who")}
        with pytest.raises(ValueError, match="no column 'who' to tell people apart"):
            fit_table(self.table(), COLUMNS, 1.0, **settings)
        with pytest.raises(ValueError, match="is a modelled column: rows would name people"):
            fit_table(self.table(), COLUMNS, 1.0, **{**settings, "people": People("ward")})

    def test_a_holder_can_bound_people_too(self):
        released = measure(
            self.table(), COLUMNS, 20.0, site="North", adjacency="add_remove", delta=1e-5,
            people=People("patient", max_rows=2), )  # fmt: skip
        own = self.table()["patient"].value_counts().clip(upper=2).sum()
        assert abs(released.num_rows - own) < 60
        assert released.ledger.people == "patient"
        assert "told apart by 'patient'" in " ".join(str(combine([released]).report()).split())

    def test_codes_cannot_keep_the_bound_so_none_is_claimed(self):
        facts = {"patient": {"sdtype": "id"}, "ill": {"sdtype": "boolean"}}
        settings = {"adjacency": "add_remove", "delta": 1e-5, "people": People("patient")}
        bounded = MSTSynthesizer(sdv_tables.metadata_of(facts), 1.0, **settings)
        unbounded = MSTSynthesizer(sdv_tables.metadata_of(facts), 1.0)
        rows = self.table()[["patient", "ill"]]
        with pytest.raises(SynthesizerInputError, match="need the table itself"):
            bounded.preprocess(rows)
        with pytest.raises(SynthesizerInputError, match="need the table itself"):
            bounded.fit_processed_data(unbounded.preprocess(rows))
        assert bounded.ledger is None or not bounded.ledger.charges
