"""Rows that count as their weights: in which units, and what one row changes at most."""

import math
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from made_up import in_columns
from test_people_weighed import GRID, QUERIES, SCHEMA, SCORE

from sdv_privpgd.columns.facts import WeightFacts
from sdv_privpgd.columns.readings import Readable, Reading, attribute_of
from sdv_privpgd.privacy.boundary import PrivateTable
from sdv_privpgd.privacy.counting import Weights
from sdv_privpgd.privacy.curator import Curator
from sdv_privpgd.privacy.ledger import FitLedger, PrivacyLedger
from sdv_privpgd.privacy.queries import Adjacency, CountQuery, DependenceQuery, MarginalQuery
from sdv_privpgd.sources.frames import FrameSource

ASKED = [*QUERIES, DependenceQuery(("x", "y"))]
WEIGHTS = st.builds(
    lambda low, times: Weights.of("w", low, low * times),
    st.sampled_from([0.07, 1, 30]),
    st.sampled_from([1.01, 7, 300, 2_500]),
)
CELLS = (
    st.floats(allow_nan=True)
    | st.integers()
    | st.sampled_from([None, "3", " 1e2", "much", True, pd.NaT, 10**400, -(10**400), b"1", (1,)])
)
ROW = st.tuples(CELLS, st.integers(0, 2), st.sampled_from("ab"))


def shared(weights):
    return FitLedger(PrivacyLedger.open(100.0, 1e-5, Adjacency.ADD_REMOVE, weights=weights))


def table(rows, weights):
    return PrivateTable(FrameSource(in_columns("wxy", rows)), bound=weights)


def records(rows, weights):
    return table(rows, weights).curator(SCHEMA, shared(weights))._dataset


@given(rows=st.lists(ROW, max_size=15), row=ROW, other=ROW, weights=WEIGHTS)
def test_a_row_changes_answers_by_no_more_than_is_charged_for(rows, row, other, weights):
    """A row comes, whatever its weight; or its values change, and its weight with them."""
    without, within, changed = (records([*rows, *new], weights) for new in ([], [row], [other]))
    unit = weights.units
    for query in ASKED:
        none, here, there = (query.answer(each) for each in (without, within, changed))
        added, replaced = charged(query, weights)
        assert np.square(here - none).sum() <= added, query
        assert np.square(here - there).sum() <= replaced, query
    score = SCORE.in_units(unit)
    none, here = (int(score.answer(each)[0]) for each in (without, within))
    assert abs(none - here) <= unit * math.isqrt(SCORE.l2_sensitivity_squared(Adjacency.ADD_REMOVE))


def charged(query, weights):
    """The squared sensitivities that the ledger has, of a row more and of another one."""
    own = shared(weights)
    Curator(records([(1, 0, "a")], weights), own).measure(
        [query], own.ledger.budget / 2, what="a question"
    )
    found = dict(own.ledger.charges[-1].sensitivity_squared)
    return found[Adjacency.ADD_REMOVE], found[Adjacency.REPLACE_ONE]


@given(rows=st.lists(ROW, max_size=15), row=ROW, weights=WEIGHTS)
def test_a_first_look_weighs_values_as_it_does_rows(rows, row, weights):
    """But where weights are read a row counts as one, whatever it says: as the most there is."""
    reading = Reading(name="y", asks=frozenset(["categories"]), cells=GRID)
    of_weights = Readable(name="w", facts=WeightFacts(low=weights.low, high=weights.high))
    found, read = [], []
    for each in (rows, [*rows, row]):
        first = table(each, weights).first_queries([reading, of_weights], shared(weights))
        read.append(MarginalQuery((attribute_of("read", "w"),)).answer(first._dataset))
        counted = dict(first._values.counts("y").pairs())
        total = CountQuery().answer(first._dataset)[0]
        assert sum(counted.values()) == total
        assert total == CountQuery().answer(records(each, weights))[0]
        found.append(counted)
    changed = [found[1].get(value, 0) - found[0].get(value, 0) for value in ("a", "b", None)]
    assert sum(np.square(changed)) <= weights.units**2
    assert sorted(read[1] - read[0]) == [0, 0, 0, 0, weights.units]


@pytest.mark.parametrize(
    ("cell", "counts_as"),
    [
        (1, 1), (30, 30), (7.5, 7.5), ("12", 12), (0, 1), (-4, 1), (31, 30), (1e300, 30),
        (10**400, 30), (-(10**400), 1), (math.inf, 1), (-math.inf, 1), (math.nan, 1), (None, 1),
        ("much", 1), (b"9", 1), (True, 1), ((9,), 1),
    ],
)  # fmt: skip
def test_what_is_beyond_an_end_counts_as_it_and_what_is_no_number_as_the_lower_one(cell, counts_as):
    weights = Weights.of("w", 1, 30)
    counts = MarginalQuery(("x",)).answer(records([(cell, 1, "a")], weights))
    assert weights.units == 3_000
    assert counts.tolist() == [0, 100 * counts_as, 0, 0]


@given(weight=st.floats(1e-3, 1e3), weights=WEIGHTS)
def test_no_weight_is_off_by_more_than_half_a_percent(weight, weights):
    weight = min(max(weight, weights.low), weights.high)
    (counted,) = CountQuery().answer(records([(weight, 0, "a")], weights))
    assert counted <= weights.units < 2**18
    right = Fraction(weight) / Fraction(weights.high)
    assert abs(Fraction(int(counted), weights.units) / right - 1) <= Fraction(51, 10_000)


@pytest.mark.parametrize(
    "ends",
    [(0, 1), (-1, 1), (2, 2), (3, 2), (1, 2_501), (1, math.inf), (1e306, math.inf), (math.nan, 1)],
)
def test_ranges_that_are_none(ends):
    with pytest.raises(ValueError, match="weight_range must be two numbers above 0"):
        Weights.of("w", *ends)
