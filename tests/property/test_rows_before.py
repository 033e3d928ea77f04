"""Rows are told of the row before from their person's own rows, of which so many are read alone."""

from decimal import Decimal

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from made_up import in_columns

from sdv_privpgd.columns.parser import describe
from sdv_privpgd.columns.schema import Schema
from sdv_privpgd.columns.visits import Visits
from sdv_privpgd.privacy.boundary import PrivateTable
from sdv_privpgd.privacy.ledger import FitLedger, PrivacyLedger
from sdv_privpgd.privacy.queries import Adjacency, MarginalQuery
from sdv_privpgd.sources import frames
from sdv_privpgd.sources.frames import FrameSource
from sdv_privpgd.sources.source import Batch
from sdv_privpgd.sources.visits import VisitsSource

WHO = st.one_of(st.none(), st.integers(0, 3), st.sampled_from(["B", "1"]), st.just(True))
DAY = st.one_of(st.none(), st.integers(0, 5), st.sampled_from(["soon", -4, 99]))
ROWS = st.lists(st.tuples(WHO, DAY, st.sampled_from([0, 1, 2, None])), max_size=40)

FACTS = {
    "day": {"sdtype": "numerical", "range_min": 0, "range_max": 9, "decimal_places": 0},
    "x": {"sdtype": "categorical", "range_values": [0, 1, 2]},
}
CLOCK = describe("day", FACTS["day"])
ADDED = ["day (since the row before)", "x (row before)", "rows of the person"]


def order_of(most):
    return Visits(person="who", most=most, by="day", previous=("x",))


def source_of(rows, most, block):
    frames.BLOCK = block
    columns = in_columns(["who", "day", "x", "place"], rows)
    source = VisitsSource(FrameSource(columns), order_of(most), CLOCK)
    source._key = b"one key of both tables"
    return source


def numbered(rows):
    return [(*row, place) for place, row in enumerate(rows)]


def kept(source):
    """The rows that are read, with what is added, and ``None`` for what is missing."""
    names = ["who", "day", "x", "place", *ADDED]
    found = []
    for batch in source.batches(names):
        columns = [batch.columns[name].astype(object) for name in names]
        found += zip(*(column.where(column.notna(), None) for column in columns), strict=True)
    return found


def name_of(who):
    """Whose a row is: 1, "1" and true are one person."""
    return None if who is None else str(int(who)) if isinstance(who, int) else who


def day_of(day):
    return min(max(day, 0), 9) if isinstance(day, int) else None


@pytest.fixture(autouse=True)
def whole_blocks(monkeypatch):
    monkeypatch.setattr(frames, "BLOCK", frames.BLOCK)


@given(rows=ROWS, most=st.integers(2, 4), block=st.integers(1, 50))
def test_each_row_is_told_of_the_row_before_it(rows, most, block):
    source = source_of(numbered(rows), most, block)
    found = kept(source)
    assert found == kept(source)  # the same again
    assert len(found) == source.num_rows()
    for who in {name_of(row[0]) for row in rows}:
        own = [row for row in numbered(rows) if name_of(row[0]) == who]
        own.sort(key=lambda row: (day_of(row[1]) is None, day_of(row[1]) or 0))  # it is stable
        got = {row[3]: row[4:] for row in found if name_of(row[0]) == who}
        places = [row[3] for row in own]
        stayed = [place for place in places if place in got]
        start = places.index(stayed[0])
        assert stayed == places[start : start + most]  # they follow each other
        assert len(stayed) == min(len(own), most)
        days = {row[3]: day_of(row[1]) for row in own}
        values = {row[3]: row[2] for row in own}
        for before, now in zip([None, *stayed], stayed, strict=False):
            since, x, number = got[now]
            assert number == len(stayed)
            if before is None:
                assert (since, x) == (None, None)
            else:
                both = days[before] is not None and days[now] is not None
                assert since == (days[now] - days[before] if both else 0)
                assert x == values[before]


@given(rows=ROWS, others=ROWS, most=st.integers(2, 4), block=st.integers(1, 50), data=st.data())
def test_a_whole_person_changes_their_own_rows_alone(rows, others, most, block, data):
    """One person's rows, any number of them, are put among those of all others."""
    rows = [row for row in numbered(rows) if row[0] != "A"]
    mixed = list(rows)
    for place, (_, day, x) in enumerate(others):
        mixed.insert(data.draw(st.integers(0, len(mixed))), ("A", day, x, 100 + place))
    without, with_all = (kept(source_of(each, most, block)) for each in (rows, mixed))
    assert [row for row in with_all if row[0] != "A"] == without
    assert len(with_all) - len(without) <= most


@given(rows=ROWS, others=ROWS, most=st.integers(2, 3))
def test_no_person_changes_counts_by_more_than_is_charged_for(rows, others, most):
    own = Schema.from_sdv(FACTS)
    columns = {column.name: column for column in own.columns}
    schema = Schema((*own.columns, *order_of(most).columns_of(columns)))
    rows = [row for row in numbered(rows) if row[0] != "A"]
    more = [("A", day, x, 100 + place) for place, (_, day, x) in enumerate(others)]
    counts = []
    for each in (rows, [*rows, *more]):
        shared = FitLedger(PrivacyLedger.open(1.0, 1e-5, Adjacency.ADD_REMOVE, most, people="who"))
        curator = PrivateTable(source_of(each, most, 7)).curator(schema, shared)
        cliques = (("x", "x (row before)"), ("day (since the row before)", "rows of the person"))
        counts.append([curator._dataset.counts(clique) for clique in cliques])
    for one, other in zip(*counts, strict=True):
        query = MarginalQuery(("x", "x (row before)"))
        charged = query.l2_sensitivity_squared(Adjacency.ADD_REMOVE) * most**2
        assert np.square(one - other).sum() <= charged


def test_each_first_row_is_as_likely():
    people = 3_000
    rows = [(who, day, 0, day) for who in range(people) for day in range(8)]
    found = pd.DataFrame(kept(source_of(rows, 3, 1 << 18)))
    starts = found.groupby(0)[3].min().value_counts().reindex(range(8), fill_value=0).to_numpy()
    # Six standard deviations of 3,000 draws with a chance of a sixth.
    assert (np.abs(starts[:6] / people - 1 / 6) < 6 * np.sqrt(5 / 36 / people)).all()
    assert not starts[6:].any()


@pytest.mark.parametrize(
    "cells",
    [
        pd.Series([2**60 + 1, 2, 3]),
        pd.Series([1, 2, 3], dtype="uint8"),
        pd.Series([True, False, True]),
        pd.Series([True, None, 0.5], dtype=object),
        pd.Series([Decimal("sNaN"), 10**400, 1], dtype=object),
        pd.Series([0.5, np.nan, 1.5]),
        pd.Series(["a", None, "b"], dtype="category"),
        pd.Series(["a", None, "b"], dtype="string"),
        pd.Series([1, None, 3], dtype="Int8"),
        pd.Series(pd.to_datetime(["2020-01-01", None, "2021-01-01"])),
        pd.Series(pd.to_datetime(["2020-01-01", None, "2021-01-01"])).dt.tz_localize("Asia/Tokyo"),
        pd.Series([0, 0, 5], dtype="Sparse[int]"),
    ],
    ids=lambda cells: str(cells.dtype),
)
@pytest.mark.parametrize("block", [1, 3])
def test_cells_of_the_row_before_are_those_that_were_there(cells, block, monkeypatch):
    """Nothing is said of them either: all warnings are errors here."""
    monkeypatch.setattr(frames, "BLOCK", block)
    who, day = pd.Series(["A"] * 3), pd.Series([0, 1, 2])
    source = VisitsSource(FrameSource({"who": who, "day": day, "x": cells}), order_of(3), CLOCK)
    found = [
        batch.columns["x (row before)"].astype(object)
        for batch in source.batches(["day", ADDED[1]])
    ]
    told = pd.concat(found).tolist()
    assert pd.isna(told[0])
    for one, other in zip(told[1:], cells.astype(object), strict=False):
        assert one is other or (pd.isna(one) and pd.isna(other)) or one == other


class Shuffled:
    """Rows that stand in another order at each reading, as a source should never have them."""

    def __init__(self, frame):
        self.frame, self.read = frame, 0
        self.names, self.dtypes = list(frame), dict(frame.dtypes)

    def num_rows(self):
        return len(self.frame)

    def batches(self, names):
        self.read += 1
        rows = self.frame.sample(frac=1, random_state=self.read)
        yield Batch(1.0, {name: rows[name] for name in names})


def test_a_source_that_changes_gives_no_person_more_rows_and_none_of_others():
    frame = pd.DataFrame({"who": np.arange(200) % 4, "day": 3, "x": np.arange(200) % 4 % 3})
    source = VisitsSource(Shuffled(frame), order_of(2), CLOCK)
    for _ in range(3):
        [batch] = source.batches(["who", "x", "x (row before)"])
        assert (batch.columns["who"].value_counts() <= 2).all()
        told = batch.columns["x (row before)"].reset_index(drop=True)
        own = batch.columns["x"].reset_index(drop=True)
        assert (told[told.notna()] == own[told.notna()]).all()  # x is the same for a person
