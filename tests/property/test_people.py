"""At most so many rows of a person are read, and a whole person changes no more than they can."""

from collections import Counter
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
import sdv_tables
from hypothesis import given
from hypothesis import strategies as st
from sdv.errors import SynthesizerInputError

from sdv_privpgd import Boolean, Categorical, MSTSynthesizer, combine, fit_table, measure
from sdv_privpgd.columns.schema import Schema
from sdv_privpgd.privacy.boundary import PrivateTable
from sdv_privpgd.privacy.ledger import Books, PrivacyLedger
from sdv_privpgd.privacy.queries import Adjacency, MarginalQuery
from sdv_privpgd.sources import frames
from sdv_privpgd.sources.frames import FrameSource
from sdv_privpgd.sources.people import PeopleSource
from sdv_privpgd.sources.source import SourceError

WHO = st.one_of(st.none(), st.integers(0, 4), st.sampled_from(["A", "1"]), st.just(True))
ROWS = st.lists(st.tuples(WHO, st.integers(0, 2)), max_size=40)


def source_of(rows, most, block):
    frames._BLOCK = block
    who = pd.Series([row[0] for row in rows], dtype=object)
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
    return type(who), who


@pytest.fixture(autouse=True)
def whole_blocks(monkeypatch):
    monkeypatch.setattr(frames, "_BLOCK", frames._BLOCK)


@given(rows=ROWS, most=st.integers(1, 4), block=st.integers(1, 50))
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
    """One person's rows, any number of them, are put among those of all others."""
    rows = [row for row in rows if row[0] != "A"]
    mine = [("A", x) for _, x in others]
    mixed = list(rows)
    for row in mine:
        mixed.insert(data.draw(st.integers(0, len(mixed))), row)
    without, with_all = (kept(source_of(each, most, block)) for each in (rows, mixed))
    assert [row for row in with_all if row[0] != "A"] == without
    assert len(with_all) - len(without) <= most


class Changing:
    """A source with other rows at each reading, as a table that somebody writes to."""

    def __init__(self, *readings):
        self._readings = iter(readings)
        self.names = ["who", "x"]

    def batches(self, names):
        rows = next(self._readings)
        columns = {"who": [row[0] for row in rows], "x": [row[1] for row in rows]}
        held = {name: pd.Series(cells, dtype=object) for name, cells in columns.items()}
        return FrameSource(held).batches(names)


@given(
    first=ROWS, second=ROWS, grows=st.booleans(), most=st.integers(1, 4), block=st.integers(1, 9)
)
def test_a_table_that_changes_between_two_readings_gives_no_person_more_rows(
    first, second, grows, most, block
):
    """Nor more weight than one row's, where each counts as 1 / the number of those that stay."""
    frames._BLOCK = block
    later = [*first, *second] if grows else second
    source = PeopleSource(Changing(first, later), "who", most, numbered=True)
    rows, weights = Counter(), Counter()
    for batch in source.batches(["who", "x", source.numbered.name]):
        numbers = batch.columns[source.numbered.name]
        for who, number in zip(batch.columns["who"], numbers, strict=True):
            rows[name(who)] += 1
            weights[name(who)] += Fraction(1, int(number))
    assert all(number <= most for number in rows.values())
    assert all(weight <= 1 for weight in weights.values())


@given(rows=ROWS, others=ROWS, most=st.integers(1, 3))
def test_no_person_changes_counts_by_more_than_is_charged_for(rows, others, most):
    facts = {"x": {"sdtype": "categorical", "range_values": [0, 1, 2]}}
    schema = Schema.from_sdv(facts)
    tables = []
    rows = [row for row in rows if row[0] != "A"]
    for each in (rows, [*rows, *(("A", x) for _, x in others)]):
        books = Books(PrivacyLedger.open(1.0, 1e-5, Adjacency.ADD_REMOVE, most, people="who"))
        curator = PrivateTable(source_of(each, most, 7)).curator(schema, books)
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


COLUMNS = {"ward": Categorical(["A", "B"]), "ill": Boolean()}


class TestFits:
    def table(self, num_rows=1_000):
        rng = np.random.default_rng(0)
        return pd.DataFrame(
            {
                "patient": rng.integers(0, 300, num_rows),
                "ward": rng.choice(["A", "B"], num_rows).astype(object),
                "ill": rng.random(num_rows) < 0.4,
            }
        )

    def test_the_report_says_whom_it_protects(self):
        fitted = fit_table(
            self.table(), COLUMNS, 20.0, adjacency="add_remove", person_column="patient",
            rows_per_person=2, engine="pgm",
        )  # fmt: skip
        own = self.table()["patient"].value_counts().clip(upper=2).sum()
        assert abs(fitted.num_rows - own) < 60  # far beyond the noise
        said = "all rows of one person, of which 2 at most are used (told apart by 'patient')"
        assert said in " ".join(fitted.privacy_report().split())
        assert "told apart by" in fitted.report().html()

    def test_it_needs_a_private_number_of_rows(self):
        with pytest.raises(ValueError, match="person_column needs adjacency='add_remove'"):
            fit_table(self.table(), COLUMNS, 1.0, person_column="patient")

    def test_a_column_that_is_not_there_or_is_modelled_is_refused(self):
        settings = {"adjacency": "add_remove", "person_column": "who"}
        with pytest.raises(ValueError, match="no column 'who' to tell people apart"):
            fit_table(self.table(), COLUMNS, 1.0, **settings)
        with pytest.raises(ValueError, match="is a modelled column: rows would name people"):
            fit_table(self.table(), COLUMNS, 1.0, adjacency="add_remove", person_column="ward")

    def test_a_holder_can_bound_people_too(self):
        released = measure(
            self.table(), COLUMNS, 20.0, holder="North", adjacency="add_remove",
            person_column="patient", rows_per_person=2,
        )  # fmt: skip
        own = self.table()["patient"].value_counts().clip(upper=2).sum()
        assert abs(released.num_rows - own) < 60
        assert released.ledger.people == "patient"
        assert "told apart by 'patient'" in " ".join(str(combine([released]).report()).split())

    def test_codes_cannot_keep_the_bound_so_none_is_claimed(self):
        facts = {"patient": {"sdtype": "id"}, "ill": {"sdtype": "boolean"}}
        settings = {"adjacency": "add_remove", "person_column": "patient"}
        bounded = MSTSynthesizer(sdv_tables.metadata_of(facts), 1.0, **settings)
        unbounded = MSTSynthesizer(sdv_tables.metadata_of(facts), 1.0)
        rows = self.table()[["patient", "ill"]]
        with pytest.raises(SourceError, match="in memory alone"):
            bounded.preprocess(rows)
        with pytest.raises(SynthesizerInputError, match="person_column needs the table itself"):
            bounded.fit_processed_data(unbounded.preprocess(rows))
        assert bounded.ledger is None or not bounded.ledger.charges
