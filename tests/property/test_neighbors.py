"""For every pair of neighbors the answers differ by at most the stated sensitivity."""

import numpy as np
import pytest
from answers import open_curator, squared_change, values_of
from hypothesis import given
from hypothesis import strategies as st
from made_up import in_columns

from sdv_privpgd.base.domain import Domain, Grouping
from sdv_privpgd.base.linear_thresholds import Cut, Line
from sdv_privpgd.columns.bins import SIGNED_POWERS
from sdv_privpgd.columns.differences import difference_of
from sdv_privpgd.columns.encoding import encode_table
from sdv_privpgd.columns.facts import NumberFacts
from sdv_privpgd.columns.parser import describe, read_facts
from sdv_privpgd.columns.readings import Rarer, Reading
from sdv_privpgd.columns.schema import Schema
from sdv_privpgd.discovery.out_of_range import whole_out_of_range
from sdv_privpgd.estimate.features import EmbeddingQuery, SigmoidSumQuery
from sdv_privpgd.privacy.dataset import Dataset
from sdv_privpgd.privacy.queries import (
    Adjacency,
    CountQuery,
    CutMarginalQuery,
    DependenceQuery,
    GroupedMarginalQuery,
    MarginalQuery,
    ModelErrorQuery,
    QuadrantQuery,
)
from sdv_privpgd.privacy.streams import Looking

REPLACE, ADD = Adjacency.REPLACE_ONE, Adjacency.ADD_REMOVE

sizes_of = st.lists(st.integers(1, 7), min_size=1, max_size=4, unique=True)


@st.composite
def neighbors(draw, rows=1):
    """A domain, a table, the table with ``rows`` records replaced, and with them removed."""
    sizes = draw(sizes_of)
    domain = Domain(tuple("abcd"[: len(sizes)]), tuple(sizes))
    # Codes outside the domain, too: clipping must not raise the sensitivity.
    record = st.tuples(*(st.integers(-1, size) for size in sizes))
    shared = draw(st.lists(record, max_size=12))
    one, other = (draw(st.lists(record, min_size=rows, max_size=rows)) for _ in range(2))
    position = draw(st.integers(0, len(shared)))
    tables = [
        Dataset(domain, np.array(records, dtype=np.int64).reshape(-1, len(sizes)))
        for records in (shared[:position] + one + shared[position:], other + shared[::-1], shared)
    ]
    return domain, *tables


@st.composite
def groupings(draw, domain):
    """Groups of any codes, neighbors or not, numbered in the order of their first codes."""
    groups = {}
    for attribute, size in zip(domain.attributes, domain.sizes, strict=True):
        own = draw(st.lists(st.integers(0, 3), min_size=size, max_size=size))
        groups[attribute] = np.array([sorted(set(own)).index(group) for group in own])
    return Grouping.of(groups)


@st.composite
def embeddings(draw, domain):
    """Any coordinates, bandwidth and frequencies, by a label or not."""
    coordinate = st.none() | st.floats(-1e9, 1e9)
    label = draw(st.none() | st.sampled_from(domain.attributes[1:])) if len(domain) > 1 else None
    coordinates = tuple(
        (name, tuple(draw(st.lists(coordinate, min_size=size, max_size=size))))
        for name, size in zip(domain.attributes, domain.sizes, strict=True)
        if name != label
    )
    return EmbeddingQuery(
        coordinates=coordinates,
        bandwidth=draw(st.floats(1e-6, 1e6)),
        num_features=draw(st.integers(1, 5)),
        seed=draw(st.integers(0, 99)),
        label=label,
    )


@st.composite
def cuts(draw, domain):
    """Any places, weights and thresholds, of any attributes; the last code may be missing."""
    places, weight = st.integers(-50, 50), st.integers(-9, 9)
    names = draw(st.lists(st.sampled_from(domain.attributes), min_size=1, unique=True))
    lines = []
    for name, size in zip(names, domain.shape(names), strict=True):
        nullable = size > 1 and draw(st.booleans())
        own = draw(st.lists(places, min_size=size - nullable, max_size=size - nullable))
        lines.append(Line(name, tuple(own), nullable))
    weights = draw(st.lists(weight, min_size=len(lines), max_size=len(lines)))
    thresholds = draw(st.lists(st.integers(-200, 200), min_size=1, max_size=4, unique=True))
    return Cut(tuple(lines), tuple(weights), tuple(sorted(thresholds)))


@st.composite
def cut_marginals(draw, domain):
    clique = draw(st.lists(st.sampled_from(domain.attributes), max_size=2, unique=True))
    own = draw(st.lists(cuts(domain), min_size=1, max_size=2))
    return CutMarginalQuery(tuple(clique), tuple(own))


@st.composite
def queries(draw, domain):
    degree = draw(st.integers(0, len(domain)))
    grouping = draw(groupings(domain))
    marginals = [
        query
        for clique in domain.cliques(degree)
        for query in (MarginalQuery(clique), GroupedMarginalQuery(clique, grouping))
    ]
    coefficient = st.floats(-1e6, 1e6)
    weights = draw(st.dictionaries(st.sampled_from(domain.attributes), coefficient, min_size=1))
    statistic = SigmoidSumQuery.of(weights, draw(coefficient), draw(coefficient))
    dependences = [DependenceQuery(pair) for pair in domain.cliques(2)]
    sides = Grouping.of({name: grouping[name] % 2 for name in grouping.attributes})
    quadrants = [QuadrantQuery(p, sides) for p in domain.cliques(2) if sides.domain.size(p) == 4]
    cut = draw(cut_marginals(domain))
    tables = [*marginals, *dependences, *quadrants]
    return [*tables, CountQuery(), draw(embeddings(domain)), cut, statistic]


@st.composite
def scores(draw, domain):
    """What a choice weighs against each other: errors of any model, with any weight and bias."""
    found = []
    for degree in range(1, len(domain) + 1):
        for clique in domain.cliques(degree):
            seed = draw(st.integers(0, 100))
            expected = np.random.default_rng(seed).integers(-3, 9, domain.shape(clique))
            weight, bias = draw(st.integers(1, 9)), draw(st.integers(-50, 50))
            found.append(
                ModelErrorQuery(clique=clique, expected=expected, weight=weight, bias=bias)
            )
    cut = draw(cut_marginals(domain))
    expected = np.random.default_rng(1).integers(-3, 9, cut.shape(domain))
    found.append(
        ModelErrorQuery(clique=cut.clique, cuts=cut.cuts, expected=expected, weight=2, bias=5)
    )
    return found


@given(st.data())
def test_no_neighbor_changes_an_answer_by_more_than_its_sensitivity(data):
    domain, table, replaced, removed = data.draw(neighbors())
    workload = data.draw(queries(domain))
    for adjacency, neighbor in ((REPLACE, replaced), (ADD, removed)):
        changes = [squared_change(query, table, neighbor) for query in workload]
        limits = [query.l2_sensitivity_squared(adjacency) for query in workload]
        assert all(x <= limit for x, limit in zip(changes, limits, strict=True))
        # All answers together, as the curator releases them in one act.
        assert sum(changes) <= sum(limits)


ORDERED = [
    describe(name, {"sdtype": "numerical", "decimal_places": 0, "num_bins": 3, **facts})
    for name, facts in (
        ("low", {"range_min": 0, "range_max": 20}),
        ("high", {"range_min": 5, "range_max": 90, "range_is_nullable": False}),
    )
]
WITH_DIFFERENCE = Schema(
    tuple(ORDERED), (difference_of(*ORDERED, strict=True, name="difference", num_cells=6),)
)

cells = st.none() | st.integers(-9, 99) | st.sampled_from(["7", "no", 1e300, b"1"])
two_cells = st.tuples(cells, cells)


@given(st.lists(two_cells, max_size=6), two_cells, two_cells, st.integers(0, 6))
def test_no_neighbor_s_differences_change_an_answer_by_more_than_its_sensitivity(
    shared, one, other, place
):
    """From the tables themselves: a difference is a record's own, whatever is in the others."""

    def encoded(rows):
        codes = encode_table(in_columns(["low", "high"], rows), WITH_DIFFERENCE)
        return Dataset(WITH_DIFFERENCE.domain(), codes)

    place = min(place, len(shared))
    table = encoded([*shared[:place], one, *shared[place:]])
    for adjacency, neighbor in ((REPLACE, encoded([other, *shared])), (ADD, encoded(shared))):
        for degree in (1, 2, 3):
            for clique in WITH_DIFFERENCE.domain().cliques(degree):
                query = MarginalQuery(clique)
                limit = query.l2_sensitivity_squared(adjacency)
                assert squared_change(query, table, neighbor) <= limit


@given(st.data(), st.integers(2, 4))
def test_all_rows_of_a_person_change_answers_by_at_most_their_number_times_as_much(data, rows):
    domain, table, replaced, removed = data.draw(neighbors(rows=rows))
    workload = data.draw(queries(domain))
    for adjacency, neighbor in ((REPLACE, replaced), (ADD, removed)):
        for query in workload:
            limit = rows**2 * query.l2_sensitivity_squared(adjacency)
            assert squared_change(query, table, neighbor) <= limit


@given(st.data(), st.integers(1, 3))
def test_no_score_of_a_choice_moves_by_more_than_its_sensitivity(data, rows):
    domain, table, replaced, removed = data.draw(neighbors(rows=rows))
    for adjacency, neighbor in ((REPLACE, replaced), (ADD, removed)):
        for score in data.draw(scores(domain)):
            unit = {REPLACE: 2, ADD: 1}[adjacency]
            limit = score.l2_sensitivity_squared(adjacency)
            assert limit == (unit * score.weight) ** 2
            assert squared_change(score, table, neighbor) <= rows**2 * limit


@given(st.data())
def test_a_record_falls_into_exactly_one_cell_of_each_marginal(data):
    domain, table, replaced, removed = data.draw(neighbors())
    for degree in range(len(domain) + 1):
        for clique in domain.cliques(degree):
            counts = table.counts(clique)
            assert counts.sum() == table.counts(())
            assert np.abs(counts - replaced.counts(clique)).sum() in (0, 2)
            gone = counts - removed.counts(clique)
            assert gone.min() >= 0
            assert gone.sum() == 1


@given(st.data())
def test_values_of_the_statistic_lie_on_the_grid_and_add_up(data):
    domain, table, _, removed = data.draw(neighbors())
    statistic = data.draw(queries(domain))[-1]
    value = int(statistic.answer(table)[0]) - int(statistic.answer(removed)[0])
    assert 0 <= value <= SigmoidSumQuery.GRID
    assert 0 <= statistic.answer(table)[0] <= SigmoidSumQuery.GRID * table.counts(())


@given(st.data())
def test_a_record_falls_into_exactly_one_cell_of_each_table_of_half_spaces(data):
    domain, table, replaced, removed = data.draw(neighbors())
    query = data.draw(cut_marginals(domain))
    found = query.answer(table)
    assert found.shape == query.shape(domain)
    assert found.sum() == table.counts(())
    assert np.abs(found - query.answer(replaced)).sum() in (0, 2)
    gone = found - query.answer(removed)
    assert (gone.min(), gone.sum()) == (0 if gone.size > 1 else 1, 1)


def half_a_turn():
    """An embedding of two records half a turn apart, which a single frequency can have."""
    (phases,) = embedding_of(1.0).phases()
    return embedding_of(0.5 / (phases.view(np.int16)[1, 0] / EmbeddingQuery.TURN))


def embedding_of(place):
    return EmbeddingQuery(coordinates=(("a", (0.0, place)),), bandwidth=1.0, num_features=1, seed=0)


CUTS = (Cut((Line("a", (0, 5)),), (2,), (4,)),)


@pytest.mark.parametrize("adjacency", Adjacency)
@pytest.mark.parametrize(
    ("query", "part"),
    [
        (ModelErrorQuery(clique=("a",), expected=np.array([1, 0]), weight=3), 1),
        (ModelErrorQuery(clique=(), cuts=CUTS, expected=np.array([1, 0]), weight=3), 1),
        (CutMarginalQuery((), CUTS), 1),
        (half_a_turn(), 0.999),
    ],
    ids=["a score", "a half-space's score", "a half-space", "an embedding"],
)
def test_the_sensitivity_is_attained(query, part, adjacency):
    here = Dataset(Domain(("a",), (2,)), np.array([[0]]))
    there = Dataset(here.domain, np.array([[1]] if adjacency is REPLACE else []).reshape(-1, 1))
    limit = query.l2_sensitivity_squared(adjacency)
    assert part * limit <= squared_change(query, here, there) <= limit


values = st.sampled_from([None, "a", "b", "", 1, 1.5, True, b"a"])


def charged(adjacency):
    """The squared sensitivity that a curator charges for the values of one column."""
    empty = Dataset(Domain(("a",), (2,)), np.zeros((0, 1)))
    values = values_of({"x": []})
    curator = open_curator(empty, adjacency=adjacency, reserved=1e-6, values=values)
    curator.discover(curator.ledger.budget, curator.ledger.reserved, what="x")
    return dict(curator.ledger.charges[0].sensitivity_squared)[adjacency]


@given(st.lists(values, max_size=8), values, values)
def test_no_neighbor_changes_value_counts_by_more_than_their_sensitivity(shared, one, other):
    def counts(cells):
        held = values_of({"x": [(cell, 1) for cell in cells]}).counts("x")
        return {(type(value), value): number for value, number in held.pairs()}

    for adjacency, (first, second) in {
        REPLACE: ([*shared, one], [other, *shared]),
        ADD: ([*shared, one], shared),
    }.items():
        before, after = counts(first), counts(second)
        moved = [before.get(key, 0) - after.get(key, 0) for key in before.keys() | after.keys()]
        assert sum(change**2 for change in moved) <= charged(adjacency)
        # Values that one of them alone has: one of one row, which is never missing.
        own = [(key, after[key]) for key in after.keys() - before.keys()]
        assert all(number == 1 and key[1] is not None for key, number in own)
        assert len(own) <= 1


@pytest.mark.parametrize("adjacency", Adjacency)
def test_the_sensitivity_of_value_counts_is_attained(adjacency):
    before, after = ([("a", 2)], [("a", 1), ("b", 1)] if adjacency is REPLACE else [("a", 1)])
    one, two = (dict(values_of({"x": cells}).counts("x").pairs()) for cells in (before, after))
    moved = sum((one.get(key, 0) - two.get(key, 0)) ** 2 for key in one.keys() | two.keys())
    assert moved == charged(adjacency)


GRID = SIGNED_POWERS
READINGS = [Reading(name=name, asks=frozenset(["categories"]), cells=GRID) for name in "pqr"]
cells_of_three = st.tuples(values, values, values)


@given(
    st.lists(cells_of_three, max_size=8), cells_of_three, cells_of_three,
    st.integers(1, 4), st.lists(values.filter(lambda cell: cell is not None), max_size=3),
)  # fmt: skip
def test_a_row_counts_as_much_as_in_few_columns_of_rarer_values(shared, one, other, most, found):
    rarer = Rarer(dict.fromkeys("pqr", found), most)
    known = {(type(value), value) for value in found}

    def counts(rows):
        tally = Looking(READINGS, None, rarer)
        total = tally.zero()
        for part in (rows[:3], rows[3:]):  # as it is read does not matter
            tally.add(total, in_columns("pqr", part))
        return {
            (name, type(value), value): number
            for name, own in total.values.items()
            for value, number in own.counted().pairs()
            if number
        }

    alone, rest, before = counts([one]), counts(shared), counts([*shared, one])
    others = [cell for cell in one if cell is not None and (type(cell), cell) not in known]
    part = rarer.parts if len(others) <= most else rarer.parts * (most / len(others)) ** 0.5
    assert [*alone.values()] == len(others) * [int(part)]
    assert not {key[1:] for key in before} & {*known, (type(None), None)}
    assert before == {key: alone.get(key, 0) + rest.get(key, 0) for key in {*alone, *rest}}
    after = counts([other, *shared])
    moved = [before.get(key, 0) - after.get(key, 0) for key in before.keys() | after.keys()]
    assert sum(change**2 for change in moved) <= 2 * most * rarer.parts**2


SHORT = Schema(
    tuple(
        whole_out_of_range(name, facts).column
        for name, facts in {
            "few": NumberFacts(low=0, high=20, decimal_places=0, nullable=False),
            "day": read_facts(
                "day", {"sdtype": "datetime", "range_min": "2024-03-01", "range_max": "2024-03-20"}
            ),
        }.items()
    )
)

odd_cells = cells | st.sampled_from(["2024-03-05", "1900-01-01", "9999-12-31", float("nan")])
odd_rows = st.tuples(odd_cells, odd_cells)


@given(st.lists(odd_rows, max_size=6), odd_rows, odd_rows, st.integers(0, 6))
def test_no_neighbor_changes_what_is_counted_beyond_short_ranges_by_more(shared, one, other, place):
    """From the tables themselves: each row is below, inside, above or missing, whatever it says."""

    def encoded(rows):
        codes = encode_table(in_columns(["few", "day"], rows), SHORT)
        return Dataset(SHORT.domain(), codes)

    table = encoded(shared[:place] + [one] + shared[place:])
    assert SHORT.domain().sizes == (4, 4)
    workload = [MarginalQuery(("few",)), MarginalQuery(("day",))]
    for adjacency, rows in ((REPLACE, [other, *shared]), (ADD, shared)):
        neighbor = encoded(rows)
        changes = [squared_change(query, table, neighbor) for query in workload]
        limits = [query.l2_sensitivity_squared(adjacency) for query in workload]
        assert all(x <= limit for x, limit in zip(changes, limits, strict=True))
