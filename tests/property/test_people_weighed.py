"""Rows of a person that count as one: what they weigh, and what a whole person changes."""

from fractions import Fraction
from itertools import count

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from made_up import in_columns

from sdv_privpgd.base.domain import Grouping
from sdv_privpgd.base.linear_thresholds import Cut, Line
from sdv_privpgd.columns.bins import SIGNED_POWERS
from sdv_privpgd.columns.readings import Rarer, Reading
from sdv_privpgd.columns.schema import Schema
from sdv_privpgd.estimate.features import EmbeddingQuery, SigmoidSumQuery
from sdv_privpgd.privacy.boundary import PrivateTable
from sdv_privpgd.privacy.counting import MOST, units_of, weights_of
from sdv_privpgd.privacy.curator import Curator
from sdv_privpgd.privacy.dataset import Records
from sdv_privpgd.privacy.ledger import FitLedger, PrivacyLedger
from sdv_privpgd.privacy.queries import (
    Adjacency,
    CountQuery,
    CutMarginalQuery,
    GroupedMarginalQuery,
    MarginalQuery,
    ModelErrorQuery,
    answers,
)
from sdv_privpgd.privacy.streams import WeighedRecords
from sdv_privpgd.sources.frames import FrameSource
from sdv_privpgd.sources.people import PeopleSource

FACTS = {
    "x": {"sdtype": "categorical", "range_values": [0, 1, 2]},
    "y": {"sdtype": "categorical", "range_values": ["a", "b"]},
}
SCHEMA, GRID = Schema.from_sdv(FACTS), SIGNED_POWERS
ROWS = st.lists(
    st.tuples(st.sampled_from(["B", "C", None, 1]), st.integers(0, 2), st.sampled_from("ab")),
    max_size=25,
)
QUERIES = [
    CountQuery(),
    MarginalQuery(("x",)),
    MarginalQuery(("x", "y")),
    GroupedMarginalQuery(
        ("x", "y"), Grouping.of({"x": np.array([0, 0, 1, 1]), "y": np.array([0, 1, 1])})
    ),
    SigmoidSumQuery.of({"x": 1.0, "y": -0.5}, b=0.2, slope=8.0),
    CutMarginalQuery(("y",), (Cut((Line("x", (0, 3, 7), nullable=True),), (2,), (5, 10)),)),
]
SCORE = ModelErrorQuery(clique=("x",), expected=np.array([3, 1, 2, 0]), bias=2, weight=3)


def ledger(most):
    return PrivacyLedger.open(1.0, 1e-5, Adjacency.ADD_REMOVE, most, people="who", weighed=True)


def table(rows, most):
    source = PeopleSource(
        FrameSource(in_columns(["who", "x", "y"], rows)), "who", most, numbered=True
    )
    source._key = b"one key of both tables"
    return PrivateTable(source)


def curator(rows, most):
    return table(rows, most).curator(SCHEMA, FitLedger(ledger(most)))


@given(rows=ROWS, others=ROWS, most=st.integers(1, 4), data=st.data())
def test_a_whole_person_changes_answers_by_no_more_than_is_charged_for(rows, others, most, data):
    """One person's rows, any number of them, are put among those of all others."""
    mixed = list(rows)
    for _, x, y in others:
        mixed.insert(data.draw(st.integers(0, len(mixed))), ("A", x, y))
    without, within = (curator(each, most) for each in (rows, mixed))
    unit = ledger(most).units
    assert ledger(most).rows_counted == 1
    for query in QUERIES:
        here, there = (query.answer(each._dataset) for each in (without, within))
        most_squared = unit**2 * query.l2_sensitivity_squared(Adjacency.ADD_REMOVE)
        assert np.square(there - here).sum() <= most_squared, query
        assert (there >= here).all()
    scores = SCORE.in_units(unit)
    here, there = (int(scores.answer(each._dataset)[0]) for each in (without, within))
    allowed = unit**2 * SCORE.l2_sensitivity_squared(Adjacency.ADD_REMOVE)
    assert (there - here) ** 2 <= allowed


@given(rows=ROWS, others=ROWS, most=st.integers(1, 4), columns=st.integers(1, 2))
def test_rarer_values_of_a_person_count_as_one_in_few_columns(rows, others, most, columns):
    asks = frozenset(["categories"])
    readings = [Reading(name=name, asks=asks, cells=GRID) for name in "xy"]
    rarer, found = Rarer({"x": [], "y": ["b"]}, columns), []
    for each in (rows, [*rows, *(("A", x, y) for _, x, y in others)]):
        first = table(each, most).first_queries(readings, FitLedger(ledger(most)), rarer=rarer)
        pairs = {name: first._values.counts(name).pairs() for name in "xy"}
        found.append({(name, key): n for name, own in pairs.items() for key, n in own})
        assert (first._values.most, first._values.parts) == (columns, rarer.parts)
        assert ("y", "b") not in found[-1]
    keys = found[0].keys() | found[1].keys()
    changed = [found[1].get(key, 0) - found[0].get(key, 0) for key in keys]
    unit = ledger(most).units * rarer.parts
    assert min(changed, default=0) >= 0
    assert max(changed, default=0) <= unit
    assert sum(np.square(changed)) <= columns * unit**2


@given(rows=ROWS, others=ROWS, most=st.integers(1, 4))
def test_a_first_look_weighs_values_as_it_does_rows(rows, others, most):
    reading = Reading(name="y", asks=frozenset(["categories"]), cells=GRID)
    found = []
    for each in (rows, [*rows, *(("A", x, y) for _, x, y in others)]):
        first = table(each, most).first_queries([reading], FitLedger(ledger(most)))
        counted = dict(first._values.counts("y").pairs())
        found.append(counted)
        people = {(type(row[0]), row[0]) for row in each}
        assert sum(counted.values()) == ledger(most).units * len(people)
        assert CountQuery().answer(first._dataset)[0] == ledger(most).units * len(people)
    changed = [found[1].get(value, 0) - found[0].get(value, 0) for value in ("a", "b", None)]
    assert sum(np.square(changed)) <= ledger(most).units ** 2


@given(rows=ROWS, most=st.integers(1, 12))
def test_all_people_weigh_the_same(rows, most):
    counts = MarginalQuery(("x",)).answer(curator(rows, most)._dataset)
    people = {(type(row[0]), row[0]) for row in rows}
    whole = units_of(most) * len(people)
    assert whole * (1 - 1 / 2_500) <= counts.sum() <= whole
    if most <= 10:
        assert counts.sum() == whole


def test_each_row_weighs_as_much_as_any_other_of_its_person():
    rows = [("A", 0, "a"), ("B", 1, "a"), ("A", 2, "b"), ("A", 2, "a"), ("B", 2, "b")]
    counts = MarginalQuery(("x",)).answer(curator(rows, 3)._dataset)
    assert (counts / units_of(3))[:3] == pytest.approx([1 / 3, 1 / 2, 2 / 3 + 1 / 2])


@pytest.mark.parametrize("most", range(1, MOST + 1))
def test_there_are_as_many_units_as_let_up_to_ten_rows_weigh_the_same_and_no_more(most):
    exact = min(most, 10)
    least = next(n for n in count(exact, exact) if all(n % each == 0 for each in range(1, exact)))
    assert units_of(most) == least * (most if most > 10 else 1)
    assert weights_of(most) == [units_of(most) // number for number in range(1, most + 1)]


@pytest.mark.parametrize("most", [1, 2, 7, 10, 11, 57, MOST])
def test_no_person_weighs_more_than_one_row_and_hardly_less(most):
    for number, weight in enumerate(weights_of(most), start=1):
        assert units_of(most) * (1 - Fraction(1, 2_520)) <= number * weight <= units_of(most)
    assert units_of(most) * 2**44 + 2**46 < 2**63  # the noise is no larger than 2^46


class Crowd(Records):
    """So many times the records, of which one more has come."""

    def __init__(self, inner, times):
        super().__init__(inner.domain)
        self.inner, self.times, self.one_more = inner, times, 0

    def total(self, tally):
        found = self.inner.total(tally)
        if not self.one_more:
            return [table * self.times for table in found]
        return [table * self.times + table for table in found]


@pytest.mark.parametrize(
    ("query", "times"),
    [
        (SigmoidSumQuery.of({"x": 1.0, "y": -0.5}, b=-9.0, slope=8.0), 35_000_000),  # 1 of each
        (SigmoidSumQuery.of({"x": 1.0, "y": -0.5}, b=0.2, slope=8.0), 2**40),
        (
            EmbeddingQuery(
                coordinates=(("x", (0.1, 0.5, 0.9, None)),), bandwidth=0.5, num_features=5, seed=0,
                label="y",
            ),
            2**40,
        ),
        (MarginalQuery(("x", "y")), 2**40),
        (QUERIES[-1], 2**40),
        (CountQuery(), 2**40),
    ],
)  # fmt: skip
def test_sums_over_a_crowd_do_not_wrap_around(query, times):
    """A million million of a person, and one more: the difference is one, and answers are right."""
    shared = FitLedger(ledger(MOST))
    alone = table([("A", 2, "a")], MOST).curator(SCHEMA, shared)._dataset
    (one,) = answers([query], alone)
    crowd = Crowd(alone._inner, times)
    many = WeighedRecords(crowd, alone.domain, alone._weighing)
    (before,) = answers([query], many)
    crowd.one_more = 1
    (after,) = answers([query], many)
    assert (after - before).tolist() == one.tolist()
    assert before.tolist() == (one.astype(object) * times).tolist()
    (noisy,) = Curator(many, shared).measure([query], shared.ledger.budget, what="a crowd")
    assert noisy.answer.dtype == np.float64
    expected = (one.astype(object) * (times + 1) / units_of(MOST)).astype(float)
    assert (
        np.abs(noisy.answer - expected).max() <= 10 * noisy.stddev + 1e-9 * np.abs(expected).max()
    )
