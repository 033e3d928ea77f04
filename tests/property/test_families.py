"""What a whole family changes, whatever keys its rows have: no more than one row of one table."""

from itertools import product
from operator import itemgetter
from uuid import UUID
from zlib import crc32

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from made_up import in_columns

from sdv_privpgd.base.domain import Grouping
from sdv_privpgd.columns.bins import SIGNED_POWERS
from sdv_privpgd.columns.links import Link, Tree, following, sibling
from sdv_privpgd.columns.readings import Reading
from sdv_privpgd.columns.schema import Schema
from sdv_privpgd.privacy.boundary import PrivateTable
from sdv_privpgd.privacy.ledger import FitLedger, PrivacyLedger
from sdv_privpgd.privacy.queries import Adjacency, CountQuery, GroupedMarginalQuery, MarginalQuery
from sdv_privpgd.sources.families import Families, FamilySource, KeySource, SiblingSource
from sdv_privpgd.sources.frames import FrameSource
from sdv_privpgd.sources.people import person_of
from sdv_privpgd.sources.source import Batch

TREE, IN_ORDER = (
    Tree(
        (Link("visit", "drug", "visit", 2, "id"), Link("person", "visit", "person", 3, "id", **by))
    )
    for by in ({}, {"order": "y", "start": "x"})
)
MOST = 18
TRUTH = {"sdtype": "boolean", "range_is_nullable": False}
VALUES = {"sdtype": "categorical", "range_values": [0, 1, 2]}
COUNTED = {"sdtype": "numerical", "range_min": 0, "range_max": 9, "decimal_places": 0}
SCHEMAS = {
    "person": {"x": VALUES, "number of visit": COUNTED},
    "visit": {
        "y": VALUES, "person.x": VALUES, "number of drug": COUNTED, "place in person": COUNTED,
    },
    "drug": {
        "z": VALUES, "visit.y": VALUES, "visit.person.x": VALUES, "drug in the family": COUNTED,
    },
}  # fmt: skip
SINCE = IN_ORDER.above("visit").since
PAIRS = {"visit": "y", "drug": "z"}
KEYS = st.sampled_from([1, 2, "3", 3.0, "A", "B", None, " a"])
PERSONS = st.lists(st.tuples(KEYS, st.integers(0, 2)), max_size=8)
VISITS = st.lists(st.tuples(KEYS, KEYS, st.integers(0, 2)), max_size=14)
DRUGS = st.lists(st.tuples(KEYS, st.integers(0, 2)), max_size=20)


def ledger():
    return PrivacyLedger.open(
        1.0, 1e-5, Adjacency.ADD_REMOVE, MOST, people="id", weighed=True, family=TREE.tables
    )


CLOCKS = Schema.from_sdv({name: {**COUNTED, "range_max": 2} for name in "yx"}).columns


class Live(FrameSource):
    """Rows of a table that others write to: another order each time, more of others, some gone.

    At the first reading all are there: what leads to no row then is a family of its own.
    """

    more = (("D", 1), ("D", "D", 1), ("E", "D", 0), (9, 0))
    readings = 0

    def batches(self, names):
        self.readings += 1
        rows = [*zip(*self.columns.values(), strict=True)]
        rows += [each for each in self.more * self.readings if len(each) == len(self.columns)]
        drawn = [(crc32(repr((self.readings, *row)).encode()), row) for row in rows]
        some = 4 if self.readings > 1 else 2**32
        kept = [row for number, row in sorted(drawn, key=itemgetter(0)) if number % some]
        columns = in_columns(self.names, kept)
        yield Batch(1.0, {name: columns[name] for name in names})


def families(persons, visits, drugs, *, in_order=False, kind=FrameSource):
    found = Families(
        {
            "person": kind(in_columns(["id", "x"], persons)),
            "visit": kind(in_columns(["id", "person", "y"], visits)),
            "drug": kind(in_columns(["visit", "z"], drugs)),
        },
        IN_ORDER if in_order else TREE,
        MOST,
        {"visit": CLOCKS} if in_order else {},
    )
    found.key = b"one key of both"
    return found


def opened(rows, **how):
    """Each table of families, and the pairs of siblings, with what their columns are."""
    found, in_order = families(*rows, **how), how["in_order"]
    for named in found.tree.counted:
        yield PrivateTable(KeySource(found, *named)), Schema.from_sdv({"lost": TRUTH})
    for name, facts in SCHEMAS.items():
        since = {SINCE: VALUES} if in_order and name == "visit" else {}
        yield PrivateTable(FamilySource(found, name)), Schema.from_sdv(facts | since)
    for (name, column), follows in product(PAIRS.items(), (False, True)):
        (own,) = found.tree.paired(name, [column])
        facts = {own: VALUES, (following if follows else sibling)(own): VALUES}
        pairs = SiblingSource(found, name, [own], 3, in_order=follows)
        yield PrivateTable(pairs), Schema.from_sdv(facts)


def counted(rows, **how):
    """The exact answers to several questions about each table, in units of a count."""
    for table, schema in opened(rows, **how):
        records = table.curator(schema, FitLedger(ledger()))._dataset
        names = schema.domain().attributes
        groups = {name: np.arange(size) // 2 for name, size in
                  zip(names, schema.domain().sizes, strict=True)}  # fmt: skip
        queries = [CountQuery(), *map(MarginalQuery, schema.domain().cliques(1))]
        queries += map(MarginalQuery, schema.domain().cliques(2))
        queries += [GroupedMarginalQuery(names[:2], Grouping.of(groups))] * bool(names)
        yield from (query.answer(records).astype(float) / ledger().units for query in queries)


def whose(cell):
    return person_of(cell, True)


def without(rows, gone, *, all_of_the_key):
    """The tables without a row of the root, and without all that leads to it."""
    persons, visits, drugs = rows
    key = whose(persons[gone][0])
    kept = [p for n, p in enumerate(persons) if n != gone and not (
        all_of_the_key and key is not None and whose(p[0]) == key)]  # fmt: skip
    lost = [key is not None and whose(visit[1]) == key for visit in visits]
    ids = {whose(v[0]) for v, is_lost in zip(visits, lost, strict=True) if is_lost} - {None}
    return (
        kept,
        [visit for visit, is_lost in zip(visits, lost, strict=True) if not is_lost],
        [drug for drug in drugs if whose(drug[0]) not in ids],
    )


@pytest.mark.parametrize(
    ("all_of_the_key", "in_order", "kind"),
    [
        (False, True, FrameSource), (True, False, FrameSource),
        (True, True, Live), (True, False, Live),
    ],
)  # fmt: skip
@given(persons=PERSONS.filter(bool), visits=VISITS, drugs=DRUGS, data=st.data())
def test_a_whole_family_changes_answers_by_no_more_than_one_row(
    persons, visits, drugs, data, all_of_the_key, in_order, kind
):
    rows = persons, visits, drugs
    gone = data.draw(st.integers(0, len(persons) - 1))
    other = without(rows, gone, all_of_the_key=all_of_the_key)
    both = (counted(each, in_order=in_order, kind=kind) for each in (rows, other))
    for here, there in zip(*both, strict=True):
        assert np.square(here - there).sum() <= 1 + 1e-9


def test_a_family_that_is_replaced_may_take_another_with_it_and_is_said_to():
    here, there = ([("A", 0), ("B", 0)], [], []), ([("B", 0), ("B", 0)], [], [])
    both = (counted(each, in_order=False) for each in (here, there))
    changed = [np.square(one - other).sum() for one, other in zip(*both, strict=True)]
    of_one = ledger().squares(MarginalQuery(("x",)).l2_sensitivity_squared)
    assert max(changed) == of_one[Adjacency.REPLACE_ONE] / ledger().units ** 2 == 4


@given(persons=PERSONS, visits=VISITS, drugs=DRUGS, data=st.data())
def test_a_first_look_counts_a_family_as_one(persons, visits, drugs, data):
    reading = Reading(name="x", asks=frozenset(["categories"]), cells=SIGNED_POWERS)
    found = []
    for each in ((persons, visits, drugs), (persons[1:], visits, drugs)):
        table = PrivateTable(FamilySource(families(*each), "person"))
        looked = table.first_queries([reading], FitLedger(ledger()))
        found.append(dict(looked._values.counts("x").pairs()))
    values = {*found[0], *found[1]}
    changed = [(found[0].get(v, 0) - found[1].get(v, 0)) / ledger().units for v in values]
    assert sum(np.square(changed)) <= 1


@given(persons=PERSONS, visits=VISITS, drugs=DRUGS)
def test_rows_lead_to_rows_that_are_used_and_no_more_than_may_be(persons, visits, drugs):
    found = families(persons, visits, drugs)
    numbers = {name: found.plans[name].numbers for name in TREE.tables}
    for link in TREE.links:
        above, own = found.plans[link.parent], found.plans[link.child]
        parents = own.parent[own.stays]
        assert above.stays[parents].all()
        held = numbers[link.parent][link.number]
        assert held.max(initial=0) <= link.max_children
        assert held.sum() == np.count_nonzero(own.stays)
        assert (own.family[own.stays] == above.family[parents]).all()


def test_what_is_added_to_rows_is_that_of_their_family():
    rows = (
        [("A", 0), ("B", 1), ("C", 2)],
        [(1, "A", 0), (2, "B", 1), (3, "A", 2)],
        [(1, 0), ("3", 1), (3, 2), (9, 0)],
    )
    found = families(*rows)
    (batch,) = FamilySource(found, "drug").batches(["z", "visit.y", "drug in the family"])
    assert batch.columns["z"].tolist() == [0, 1, 2]
    assert batch.columns["visit.y"].tolist() == [0, 2, 2]
    assert batch.columns["drug in the family"].tolist() == [3, 3, 3]
    (batch,) = FamilySource(found, "visit").batches(["place in person"])
    assert batch.columns["place in person"].tolist() == [1, 1, 2]
    (batch,) = FamilySource(found, "person").batches(["x", "number of visit"])
    assert batch.columns["number of visit"].tolist() == [2, 1, 0]
    pairs = SiblingSource(found, "visit", ["y"], 3)
    (batch,) = pairs.batches(["y", sibling("y"), pairs.numbered])
    assert [*zip(*(own.tolist() for own in batch.columns.values()), strict=True)] == [
        (0, 2, 2), (2, 0, 2),
    ]  # fmt: skip
    pairs = SiblingSource(found, "visit", ["y"], 3, in_order=True)
    (batch,) = pairs.batches(["y", following("y"), pairs.numbered])
    assert [own.tolist() for own in batch.columns.values()] == [[0], [2], [1]]


def test_each_child_of_many_is_used_as_often_as_any_other():
    visits = [(number, "A", 0) for number in range(5)]
    times = np.zeros(5)
    for draw in range(2_000):
        found = families([("A", 0)], visits, [])
        found.key = draw.to_bytes(4, "big")
        times += found.plans["visit"].stays
    share = 0.6
    error = 5 * np.sqrt(2_000 * share * (1 - share))  # five standard deviations
    assert np.abs(times - 1_200).max() < error


def test_rows_in_order_are_used_one_after_the_other_and_know_their_place():
    visits = [(place, "A", value) for place, value in enumerate([2, None, 0, 1, 2])]
    places = set()
    for draw in range(40):
        found = families([("A", 0)], visits, [], in_order=True)
        found.key = bytes([draw])
        plan = found.plans["visit"]
        used = sorted(np.flatnonzero(plan.stays), key=lambda row: plan.place[row])
        assert plan.place[used].tolist() == [1, 2, 3]
        places.add(tuple(used))
    assert places == {(2, 3, 0), (3, 0, 4), (0, 4, 1)}  # a row without a value comes last


def test_a_key_that_two_rows_have_leads_nowhere():
    rows = [("A", 0), ("A", 1), ("B", 2)], [(1, "A", 0), (2, "B", 0), (2, "B", 1)], [(2, 0)]
    found = families(*rows)
    assert found.plans["person"].stays.tolist() == [False, False, True]
    assert found.plans["visit"].stays.tolist() == [False, True, True]
    assert found.plans["drug"].stays.tolist() == [False]


def test_of_keys_it_is_told_whether_what_leads_by_them_is_lost():
    persons = [("A", 0), ("B", 1), ("B", 2), (None, 0), (None, 1), ("C", 0)]
    visits = [(1, "A", 0), (2, "A", 0), (1, "C", 0), (None, "C", 1), (1, "C", 0), (2, "B", 0)]
    found = families(persons, [*visits, (3, "X", 0), (4, "X", 0), (5, None, 0), (6, None, 0)], [])
    (batch,) = KeySource(found, "person", "id").batches(["lost"])
    assert batch.columns["lost"].tolist() == [False] * 5
    (batch,) = KeySource(found, "visit", "id").batches(["lost", "number"])
    assert batch.columns["lost"].tolist() == [False, False, True, False]  # two of each family
    assert batch.columns["number"].tolist() == [2] * 4
    (batch,) = KeySource(found, "visit", "person").batches(["lost", "number"])
    assert batch.columns["lost"].tolist() == [False] * 2 + [True] * 4  # A and C; B, X and nobody's
    assert batch.columns["number"].tolist() == [1] * 6
    drugs = [(2, 0), (3, 0), (3, 0), (8, 0), (8, 1), (None, 0), (None, 1), (1, 0)]
    found = families([("A", 0)], [(1, "A", 0), (2, "A", 0), (3, "A", 0)], drugs)
    (batch,) = KeySource(found, "drug", "visit").batches(["lost", "number"])
    assert batch.columns["lost"].tolist() == [False] * 2 + [True] * 3  # two of A; 8 and nobody's
    assert batch.columns["number"].tolist() == [2] * 2 + [1] * 3


def test_long_numbers_and_uuids_are_keys():
    ids = ["89490200001000000001", "89490200001000000002", UUID(int=1), 10**18 + 1, 10**18 + 2]
    written = [*ids[:2], str(ids[2]), *map(str, ids[3:])]
    found = families([(key, 0) for key in ids], [(1, key, 0) for key in written], [])
    assert found.plans["person"].stays.all()
    assert found.plans["visit"].parent.tolist() == [0, 1, 2, 3, 4]
