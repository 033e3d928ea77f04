"""Mean embeddings: the formula, the kernel, and a bound that no cosine can break."""

import itertools
import pickle
from dataclasses import replace

import numpy as np
import pytest

from sdv_privpgd.base.domain import Domain
from sdv_privpgd.estimate.features import EmbeddingQuery, waves
from sdv_privpgd.privacy.dataset import Dataset
from sdv_privpgd.privacy.queries import Adjacency, FeatureSumQuery, Lookup, Query, held

DOMAIN = Domain(("age", "job", "ill"), (5, 3, 2))
AGES = (-1.0, -0.5, 0.0, 0.7, None)
QUERY = EmbeddingQuery(
    coordinates=(("age", AGES), ("job", (None,) * 3)), bandwidth=0.8, num_features=400, seed=7
)
COSINES = np.cos
RNG = np.random.default_rng(0)
CODES = RNG.integers(0, DOMAIN.sizes, (6_000, 3))


def vectors(codes):
    """Rows as numbers and one-hot categories: what the kernel is Gaussian over."""
    age, job = codes[:, 0], codes[:, 1]
    number = np.array([0.0 if x is None else x for x in AGES])[age]
    return np.column_stack([number, age == 4, np.eye(3)[job]])


def features(query, codes):
    """Cosines and sines of each row, by the formula, in floats: (row, 2, feature)."""
    turns = sum(phases[codes[:, axis]].astype(float) for axis, phases in enumerate(query.phases()))
    angles = 2 * np.pi * turns / query.TURN
    return np.stack([np.cos(angles), np.sin(angles)], axis=1)


def test_an_embedding_is_a_query_with_its_sensitivities_and_a_domain():
    assert isinstance(QUERY, Query)
    assert QUERY.describe() == "mean embedding, 400 random features"
    assert replace(QUERY, label="ill").describe().endswith("features by ill")
    whole = 400 * EmbeddingQuery.GRID**2
    assert QUERY.l2_sensitivity_squared(Adjacency.ADD_REMOVE) == whole
    assert QUERY.l2_sensitivity_squared(Adjacency.REPLACE_ONE) == 4 * whole
    with pytest.raises(ValueError, match="'age' has 4 codes, not 5"):
        QUERY.shape(Domain(("age", "job", "ill"), (4, 3, 2)))


@pytest.mark.parametrize("label", [None, "ill"])
def test_the_answer_is_the_sum_of_the_rows_features(label):
    """Each is rounded by half a unit, and shortened by at most one."""
    query = replace(QUERY, label=label)
    found = query.answer(Dataset(DOMAIN, CODES))
    assert found.dtype == np.int64
    assert found.shape == query.shape(DOMAIN)
    each = features(query, CODES)
    groups = [np.full(len(CODES), True)] if label is None else [CODES[:, 2] == c for c in (0, 1)]
    exact = np.stack([each[own].sum(axis=0) for own in groups])
    assert np.abs(found / query.GRID - exact).max() <= 1.5 * len(CODES) / query.GRID


def test_labels_add_up_and_parts_of_the_records_do():
    whole = QUERY.answer(Dataset(DOMAIN, CODES))
    by_label = replace(QUERY, label="ill").answer(Dataset(DOMAIN, CODES))
    np.testing.assert_array_equal(by_label.sum(axis=0, keepdims=True), whole)
    parts = [QUERY.answer(Dataset(DOMAIN, part)) for part in (CODES[:2_500], CODES[2_500:])]
    np.testing.assert_array_equal(sum(parts), whole)


def test_workers_of_a_cluster_sum_parts():
    """The tally travels to them, and their totals are merged."""
    tally = pickle.loads(pickle.dumps(QUERY.tally(DOMAIN)))
    whole, part = tally.zero(), tally.zero()
    tally.add(whole, CODES[:900].T)
    tally.add(part, CODES[900:].T)
    tally.merge(whole, part)
    np.testing.assert_array_equal(whole[0], QUERY.answer(Dataset(DOMAIN, CODES)))


def test_products_of_features_are_the_gaussian_kernel():
    """The mean of F cosines of variance at most 1/2: four standard errors over 200 pairs."""
    query = replace(QUERY, num_features=20_000)
    some = CODES[:20]
    each = features(query, some)
    found = np.einsum("iwf,jwf->ij", each, each) / query.num_features
    points = vectors(some)
    far = np.square(points[:, None] - points[None]).sum(axis=2)
    kernel = np.exp(-far / (2 * query.bandwidth**2))
    assert np.abs(found - kernel).max() < 5 * np.sqrt(0.5 / query.num_features)
    assert np.ptp(kernel) > 0.5


def test_waves_stay_on_the_grid_and_pairs_within_the_bound():
    cosine, sine = held(waves(), EmbeddingQuery.GRID).astype(np.int64)
    norms = cosine**2 + sine**2
    assert norms.max() == EmbeddingQuery.GRID**2
    assert norms.min() > (EmbeddingQuery.GRID - 2) ** 2
    pairs = np.array([[40, 40, -30, 23], [0, 40, 27, -32]])
    assert held(pairs, 40).T.tolist() == [[40, 0], [0, 0], [-29, 26], [23, -32]]
    assert held(np.array([[2**32, -(2**33)], [0, 2**32]]), 40).T.tolist() == [[40, 0], [0, 0]]
    numbers = np.array([[-1, 0, 39, 40, 41]], dtype=np.int16)
    assert held(numbers, 40).tolist() == [[0, 0, 39, 40, 40]]


@pytest.mark.parametrize(
    "libm",
    [
        lambda x: np.nextafter(COSINES(x), 2),
        lambda x: 1.001 * COSINES(x),
        lambda x: np.full_like(x, np.nan),
        lambda x: np.full_like(x, -np.inf),
        lambda x: np.full_like(x, 0.9),
    ],
)
def test_the_bound_holds_whatever_the_machine_s_cosines_are(monkeypatch, libm):
    with monkeypatch.context() as patch, np.errstate(invalid="ignore"):
        patch.setattr(np, "cos", libm)
        patch.setattr(np, "sin", libm)
        found = waves.__wrapped__()
    assert (found.dtype, found.flags.writeable) == (np.int16, False)
    found = held(found, EmbeddingQuery.GRID)
    assert found.dtype == np.int16
    assert (found.astype(np.int64) ** 2).sum(axis=0).max() <= EmbeddingQuery.GRID**2


class Own(FeatureSumQuery):
    """Tables that somebody else gives."""

    size, GRID = None, 40

    def __init__(self, size, tables):
        self.size, self.tables = size, tables

    def describe(self):
        return "own"

    def shape(self, domain):
        return (domain.size([self.tables.label]) if self.tables.label else 1, *self.size)

    def lookup(self, domain):
        return self.tables


@pytest.mark.parametrize("adjacency", Adjacency)
@pytest.mark.parametrize(("waves", "label"), [(1, None), (2, None), (2, "ill")])
def test_no_tables_make_a_record_change_more_than_the_bound(waves, label, adjacency):
    """Numbers are held to 0 to GRID and pairs to its norm, and no sum leaves a table."""
    values = np.array([[-900, 40, 90, -40], [900, 0, 3, 0]])[:waves]
    parts = [np.array([[99, 1], [1, 3], [1, 1], [2, -99], [0, 0]])]
    query = Own((waves, 2), Lookup(["age"], parts, values, label))
    limit, most = query.l2_sensitivity_squared(adjacency), 0
    for one, other in itertools.product(itertools.product(range(5), (0,), (0, 1)), repeat=2):
        tables = [Dataset(DOMAIN, np.array(rows)) for rows in ([one], [other])]
        here, there = (query.answer(table) for table in tables)
        change = here - there if adjacency is Adjacency.REPLACE_ONE else here
        most = max(most, int((change**2).sum()))
    assert most == limit


@pytest.mark.parametrize(
    ("size", "parts", "label"),
    [((2, 2), [np.zeros((3, 2), int)], None), ((1, 1), [np.zeros((3, 2), int)], None),
     ((1, 2), [np.zeros((3, 2), int)], "ill")],
)  # fmt: skip
def test_tables_of_another_size_than_was_charged_for_are_refused(size, parts, label):
    query = Own(size, Lookup(["job"], parts, np.zeros((1, 4), int), label))
    with pytest.raises(ValueError, match="not of its size"):
        query.answer(Dataset(DOMAIN, CODES))


def test_frequencies_are_those_of_the_seed_alone():
    """The numbers of every version: a file that holds the seed can be read again."""
    first = QUERY.phases()
    assert [part.dtype for part in first] == [np.uint16] * 2
    assert first[0][:, 0].tolist() == [13155, 6578, 0, 56327, 24670]
    other = replace(QUERY, seed=8).phases()
    assert (first[0][0] != other[0][0]).mean() > 0.99


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        ({"coordinates": ()}, "one attribute or more"),
        ({"coordinates": (("age", (np.nan,)),)}, "must be finite"),
        ({"label": "age"}, "must be named once"),
        ({"bandwidth": 0.0}, "bandwidth must be a positive"),
        ({"bandwidth": np.inf}, "bandwidth must be a positive"),
        ({"num_features": 0}, "num_features must be an integer of at least 1"),
        ({"num_features": 2.0}, "num_features must be an integer of at least 1"),
        ({"seed": -1}, "seed must be an integer of at least 0"),
    ],
)
def test_what_cannot_be_meant_is_refused(wrong, says):
    with pytest.raises(ValueError, match=says):
        replace(QUERY, **wrong)
