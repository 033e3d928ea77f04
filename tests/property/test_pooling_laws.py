"""What sites' answers add up to: the table of all their people, and one person's part in it."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from sdv_privpgd.base.domain import Domain, Grouping
from sdv_privpgd.privacy.dataset import Dataset
from sdv_privpgd.privacy.queries import (
    Adjacency,
    CountQuery,
    GroupedMarginalQuery,
    MarginalQuery,
    Measurement,
)
from sdv_privpgd.releases.combination import pooled

DOMAIN = Domain(("a", "b", "c"), (2, 3, 4))
GROUPING = Grouping.of({"a": np.array([0, 1]), "b": np.array([0, 1, 1]), "c": np.arange(4) // 2})
ASKED_BY_ALL = [
    CountQuery(),
    *map(MarginalQuery, DOMAIN.cliques(2)),
    GroupedMarginalQuery(("a", "b", "c"), GROUPING),
]

record = st.tuples(*(st.integers(0, size - 1) for size in DOMAIN.sizes))
tables = st.lists(record, max_size=8)


def answered(records, stddev, more=()):
    """What a site of these records would say if there were no noise."""
    data = Dataset(DOMAIN, np.array(records, dtype=np.int64).reshape(-1, len(DOMAIN)))
    return [
        Measurement(query=query, answer=query.answer(data), stddev=stddev)
        for query in (*ASKED_BY_ALL, *more)
    ]


@given(
    st.lists(st.tuples(tables, st.floats(0.5, 50), st.booleans()), min_size=1, max_size=4),
    st.permutations(range(4)),
)
def test_exact_answers_add_up_to_the_table_of_all(sites, order):
    """Also where some have measured more, within what all have, and once or twice."""
    extra = [MarginalQuery(("b",)), MarginalQuery(("a", "b"))]
    of_sites = [
        answered(records, stddev, extra if asks_more else ())
        for records, stddev, asks_more in sites
    ]
    whole = answered([each for records, _, _ in sites for each in records], 1.0)
    places = [place for place in order if place < len(sites)]
    found = pooled(DOMAIN, [of_sites[place] for place in places])
    assert found.left_out == ()
    known = {measured.query: measured.answer for measured in found.measurements}
    for measured in whole:
        np.testing.assert_allclose(known[measured.query], measured.answer, atol=1e-9)


@given(tables, record, record, st.lists(tables, max_size=3), st.floats(0.5, 50))
def test_a_person_of_one_holder_moves_the_sums_by_no_more_than_that_holder_s_answers(
    shared, one, other, others, stddev
):
    untouched = [answered(records, stddev) for records in others]
    worlds = [
        pooled(DOMAIN, [answered([*shared, *own], stddev), *untouched]).measurements
        for own in ([one], [other], [])
    ]
    for adjacency, neighbor in (
        (Adjacency.REPLACE_ONE, worlds[1]),
        (Adjacency.ADD_REMOVE, worlds[2]),
    ):
        changes, limits = 0.0, 0
        for here, there in zip(worlds[0], neighbor, strict=True):
            change = float(np.square(here.answer - there.answer).sum())
            limit = here.query.l2_sensitivity_squared(adjacency)
            assert change <= limit + 1e-9
            changes, limits = changes + change, limits + limit
        assert changes <= limits + 1e-9
