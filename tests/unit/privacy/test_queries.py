"""What queries answer, and examples that attain their sensitivities."""

import math

import numpy as np
import pytest
from answers import squared_change as change

from sdv_privpgd.base.domain import Domain, Grouping
from sdv_privpgd.base.linear_thresholds import Cut, Line
from sdv_privpgd.estimate.features import SigmoidSumQuery
from sdv_privpgd.privacy.dataset import Dataset
from sdv_privpgd.privacy.queries import (
    Adjacency,
    CountQuery,
    CutMarginalQuery,
    GroupedMarginalQuery,
    MarginalQuery,
    Measurement,
    ModelErrorQuery,
    QuadrantQuery,
    Query,
    answers,
)

REPLACE, ADD = Adjacency.REPLACE_ONE, Adjacency.ADD_REMOVE
GRID = SigmoidSumQuery.GRID
GROUPING = Grouping(("a", "b", "c"), ((0, 1), (0, 0, 1), (1, 0, 0, 2)))


@pytest.mark.parametrize(
    "query",
    [
        MarginalQuery(("b", "a")),
        GroupedMarginalQuery(("b", "a"), GROUPING),
        CountQuery(),
        SigmoidSumQuery.of({"a": 1.0}, 0.3, 5.0),
    ],
)
def test_answers_are_int64_of_the_stated_shape(query, dataset, domain):
    assert isinstance(query, Query)
    answer = query.answer(dataset)
    assert answer.dtype == np.int64
    assert answer.shape == query.shape(domain)
    assert query.describe()


def test_counts_descriptions_and_refusals_name_attributes_alone(dataset, codes, domain):
    assert CountQuery().answer(dataset).tolist() == [len(codes)]
    assert MarginalQuery(("a", "b")).describe() == "marginal of a x b"
    assert CountQuery().describe() == "number of rows"
    described = SigmoidSumQuery.of({"a": 0.123, "b": 4.5}, 6.7, 8.9).describe()
    assert described == "smoothed threshold over a, b"
    for query in (MarginalQuery(("x",)), SigmoidSumQuery.of({"x": 1.0}, 0.0, 1.0)):
        with pytest.raises(ValueError, match="not in the domain"):
            query.answer(dataset)


def test_sensitivities_are_those_of_the_notes():
    table, count = MarginalQuery(("a", "b")), CountQuery()
    statistic = SigmoidSumQuery.of({"a": 1.0}, 0.0, 1.0)
    assert table.l2_sensitivity_squared(REPLACE) == 2
    assert table.l2_sensitivity_squared(ADD) == 1
    assert count.l2_sensitivity_squared(REPLACE) == 0
    assert count.l2_sensitivity_squared(ADD) == 1
    # A bounded value is exchanged for another: no factor 2 under replace-one.
    assert statistic.l2_sensitivity_squared(REPLACE) == GRID**2
    assert statistic.l2_sensitivity_squared(ADD) == GRID**2


def test_the_sensitivities_are_attained(domain, codes):
    base, moved = codes.copy(), codes.copy()
    base[0], moved[0] = (0, 0, 0), (1, 2, 3)
    full, other = Dataset(domain, base), Dataset(domain, moved)
    short = Dataset(domain, base[1:])
    for degree in (1, 2, 3):
        workload = [
            query
            for clique in domain.cliques(degree)
            for query in (MarginalQuery(clique), GroupedMarginalQuery(clique, GROUPING))
        ]
        for query in workload:
            assert change(query, full, other) == 2
            assert change(query, full, short) == 1
        assert sum(change(query, full, other) for query in workload) == 2 * len(workload)
    assert change(CountQuery(), full, other) == 0
    assert change(CountQuery(), full, short) == 1
    # A steep sigmoid tells the two records apart altogether.
    steep = SigmoidSumQuery.of({"a": 1.0, "c": 1.0}, 1.0, 1e4)
    assert change(steep, full, other) == GRID**2
    assert change(steep, other, Dataset(domain, moved[1:])) == GRID**2


def test_quadrants_are_rows_on_the_same_side_less_those_on_opposite_sides(domain):
    sides = Grouping.of({"a": np.array([0, 1]), "b": np.array([0, 1, 1]), "c": np.arange(4)})
    query = QuadrantQuery(("b", "a"), sides)
    rows = Dataset(domain, np.array([(0, 0, 0), (1, 1, 0), (1, 2, 3), (0, 2, 1)]))
    assert query.shape(domain) == query.answer(rows).shape == (1, 1)
    assert query.answer(rows) == 2
    same, other = (Dataset(domain, np.array([codes])) for codes in ((0, 0, 0), (1, 0, 0)))
    none = Dataset(domain, np.zeros((0, 3), dtype=np.int64))
    assert change(query, same, other) == query.l2_sensitivity_squared(REPLACE) == 4
    assert change(query, same, none) == query.l2_sensitivity_squared(ADD) == 1
    for clique in (("a",), ("a", "c"), ("a", "b", "c")):
        with pytest.raises(ValueError, match="two attributes of two sides"):
            QuadrantQuery(clique, sides).shape(domain)


def test_all_rows_of_one_person_attain_the_square_of_their_number(domain):
    rows = 5
    here = Dataset(domain, np.zeros((rows, 3), dtype=np.int64))
    there = Dataset(domain, np.tile([1, 2, 3], (rows, 1)))
    assert change(MarginalQuery(("a", "c")), here, there) == rows**2 * 2


@pytest.mark.parametrize(
    ("theta", "b", "slope"),
    [
        ({"a": 1.0}, 0.5, 10.0),
        ({"a": 0.3, "b": -1.2, "c": 2.0}, 0.4, 25.0),
        ({"c": -0.7}, -0.2, -8.0),
        ({"a": 1e-3, "c": 1e-3}, 1e-3, 1.0),
        ({"b": 0.0}, 0.1, 3.0),
    ],
)
def test_the_statistic_is_the_paper_formula_up_to_its_grid(dataset, domain, codes, theta, b, slope):
    centers = {
        name: (2 * np.arange(size) + 1) / (2 * size)
        for name, size in zip(domain.attributes, domain.sizes, strict=True)
    }
    scores = sum(
        weight * centers[name][codes[:, domain.axes((name,))[0]]] for name, weight in theta.items()
    )
    expected = (1 / (1 + np.exp(-slope * (scores - b)))).sum()
    found = SigmoidSumQuery.of(theta, b, slope).answer(dataset)[0] / GRID
    # A record's score is off by at most half a unit an attribute (plus one of rounding), the
    # sigmoid's derivative is at most slope / 4, and its value is rounded to 1 / GRID.
    span = sum(abs(weight) for weight in theta.values())
    unit = max(span, 1e-12) / SigmoidSumQuery._SCORES
    tolerance = len(codes) * (abs(slope) / 4 * unit * (len(theta) / 2 + 1) + 0.5 / GRID)
    assert abs(found - expected) <= tolerance
    assert tolerance < 0.3  # of 100 records: tight enough to see one record


def single(query, domain, record):
    return int(query.answer(Dataset(domain, np.array([record])))[0])


def test_a_records_contribution_depends_on_no_other_record(domain, codes):
    query = SigmoidSumQuery.of({"a": 0.31, "b": -1.7, "c": 2.9}, 0.4, 13.0)
    alone = [single(query, domain, record) for record in codes]
    assert all(0 <= value <= GRID for value in alone)
    for count in (1, 2, 37, 100):
        assert query.answer(Dataset(domain, codes[:count]))[0] == sum(alone[:count])
    shuffled = np.random.default_rng(1).permutation(codes)
    assert query.answer(Dataset(domain, shuffled))[0] == sum(alone)
    assert query.answer(Dataset(domain, codes[:0]))[0] == 0


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize(
    ("theta", "b", "slope"),
    [
        ({"a": 1e20, "b": 1.0, "c": -3.0}, 1e20, 1.0),  # where high - low would cancel
        ({"one": 1e20, "c": 1.0}, 0.0, 1.0),
        ({"a": 1e100, "c": -1e100}, 0.0, 1e100),
        ({"a": 1e-300}, 0.0, 1e100),
        ({}, 0.0, 1.0),
        ({"a": 1.0}, 0.25, 1e100),
    ],
)
def test_extreme_coefficients_stay_inside_the_grid_for_every_record(theta, b, slope):
    domain = Domain(("one", "a", "b", "c"), (1, 2, 3, 4))
    query = SigmoidSumQuery.of(theta, b, slope)
    for record in np.ndindex(domain.sizes):
        assert 0 <= single(query, domain, record) <= GRID


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf, 1e101])
def test_coefficients_that_would_leave_the_grid_are_refused(bad):
    for arguments in (({"a": bad}, 0.0, 1.0), ({"a": 1.0}, bad, 1.0), ({"a": 1.0}, 0.0, bad)):
        with pytest.raises(ValueError, match="finite"):
            SigmoidSumQuery.of(*arguments)


def test_queries_answered_together_are_answered_as_one_by_one(dataset, domain):
    queries = [
        MarginalQuery(("b", "a")),
        CountQuery(),
        MarginalQuery(domain.attributes),
        SigmoidSumQuery.of({"a": 1.0}, 0.3, 5.0),
        GroupedMarginalQuery(("b", "a"), GROUPING),
        MarginalQuery(("b", "a")),
        GroupedMarginalQuery(("c",), GROUPING),
        MarginalQuery(()),
    ]
    together = answers(queries, dataset)
    for query, answer in zip(queries, together, strict=True):
        assert answer.dtype == np.int64
        np.testing.assert_array_equal(answer, query.answer(dataset))
    assert answers([], dataset) == []


@pytest.mark.parametrize("kind", [GroupedMarginalQuery, QuadrantQuery, CutMarginalQuery])
def test_groups_and_cuts_are_said(kind):
    with pytest.raises(TypeError, match=r"grouping|cuts"):
        kind(("a",))


def test_questions_of_cuts_and_adjacencies_are_named():
    cut = Cut((Line("b", (0, 1, 2)), Line("c", (0, 1, 2, 3))), (1, 1), (3,))
    described = CutMarginalQuery(("a",), (cut,)).describe()
    assert described == "marginal of a x a threshold over b, c"
    assert [Adjacency(each) for each in ("add_remove", "replace_one", ADD)] == [
        ADD, REPLACE, ADD,
    ]  # fmt: skip
    count = Measurement(query=CountQuery(), answer=np.array([3]), stddev=1.0)
    assert count.units == 1


@pytest.mark.parametrize("units", [1, 2, 60])
def test_a_score_in_units_is_that_many_times_itself(units):
    score = ModelErrorQuery(clique=("a",), expected=np.array([3, 1]), bias=2)
    found = score.in_units(units)
    counts = np.array([7, 4])
    assert found.of_counts(counts * units) == units * score.of_counts(counts)
