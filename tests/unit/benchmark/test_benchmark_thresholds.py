"""The parts of ``benchmark thresholds``: what is asked, what it does to particles, what is said."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sdv_privpgd.benchmark.hyperplanes import HyperplaneQuery, WithHyperplanes
from sdv_privpgd.benchmark.thresholds import compared
from sdv_privpgd.benchmark.tilting import (
    HyperplaneFinish,
    ParticlesWithHyperplanes,
    memberships,
    tilted,
)
from sdv_privpgd.domain import Domain
from sdv_privpgd.privacy.curator import Curator
from sdv_privpgd.privacy.dataset import Dataset
from sdv_privpgd.privacy.ledger import Books, PrivacyLedger
from sdv_privpgd.privacy.measurement import Measurement
from sdv_privpgd.privacy.queries import Adjacency, CountQuery
from sdv_privpgd.synthesize.particles.descent import ParticleGradientDescent

DOMAIN = Domain(("age", "pay", "ill"), (6, 5, 2))
QUERY = HyperplaneQuery(features=("age", "pay"), nullable=("pay",), label="ill", number=40, seed=3)


def rows(number, seed=0):
    """Pay rises with age, and the ill are old and poor."""
    rng = np.random.default_rng(seed)
    age = rng.integers(0, 6, number)
    pay = np.where(rng.random(number) < 0.1, 4, np.clip(age - rng.integers(0, 4, number), 0, 3))
    ill = rng.random(number) < np.where((age > 3) & (pay < 2), 0.8, 0.1)
    return np.stack([age, pay, ill.astype(int)], axis=1)


def test_rows_are_counted_on_the_side_where_they_lie():
    """Beside the real scores, without any rounding, for rows that are not close to a cut."""
    codes = rows(500)
    generator = np.random.default_rng(QUERY.seed)
    normals, points = generator.standard_normal((40, 2)), generator.random((40, 2))
    pay = np.where(codes[:, 1] == 4, 0.5, (codes[:, 1] + 0.5) / 4)
    places = np.stack([(codes[:, 0] + 0.5) / 6, pay], axis=1)
    scores = normals @ places.T - (normals * points).sum(axis=1)[:, None]
    is_clear = np.abs(scores) > 1e-2
    members = memberships(QUERY, DOMAIN, codes).reshape(40, 2, 2, -1)
    assert is_clear.mean() > 0.9
    for ill in (0, 1):
        for side in (0, 1):
            wanted = (codes[:, 2] == ill) & ((scores > 0) == side)
            np.testing.assert_array_equal(members[:, ill, side][is_clear], wanted[is_clear])


def test_the_answer_is_the_sum_of_memberships():
    codes = rows(500)
    found = memberships(QUERY, DOMAIN, codes).sum(axis=1).reshape(40, 2, 2)
    np.testing.assert_array_equal(QUERY.answer(Dataset(DOMAIN, codes)), found)


def test_without_a_label_all_rows_are_counted_together():
    query = HyperplaneQuery(features=("age", "pay"), number=7, seed=1)
    assert query.shape(DOMAIN) == (7, 1, 2)
    assert (query.of_codes(DOMAIN, rows(300)).sum(axis=(1, 2)) == 300).all()


def test_hyperplanes_cut_the_cube():
    """Each goes through a point of it, so a grid of points has some on both sides of most."""
    grid = np.stack(np.meshgrid(np.arange(50), np.arange(50)), axis=-1).reshape(-1, 2)
    query = HyperplaneQuery(features=("a", "b"), number=100, seed=0)
    found = query.of_codes(Domain(("a", "b"), (50, 50)), grid)
    assert (found > 0).all(axis=(1, 2)).mean() > 0.95


@given(
    sizes=st.tuples(st.integers(1, 6), st.integers(1, 6), st.integers(1, 3)),
    number=st.integers(1, 6),
    seed=st.integers(0, 99),
    has_label=st.booleans(),
    data=st.data(),
)
def test_neighbors_differ_by_at_most_the_sensitivity(sizes, number, seed, has_label, data):
    domain = Domain(("a", "b", "c"), sizes)
    query = HyperplaneQuery(
        features=("a", "b"), nullable=("a",), label="c" if has_label else None,
        number=number, seed=seed,
    )  # fmt: skip
    record = st.tuples(*(st.integers(-1, size) for size in sizes))
    shared = data.draw(st.lists(record, max_size=6))
    one, other = data.draw(record), data.draw(record)
    tables = [
        query.answer(Dataset(domain, np.array(records, dtype=np.int64).reshape(-1, 3)))
        for records in ([*shared, one], [*shared, other], shared)
    ]
    for adjacency, after in zip(
        (Adjacency.REPLACE_ONE, Adjacency.ADD_REMOVE), tables[1:], strict=True
    ):
        change = int(np.square(tables[0] - after).sum())
        assert change <= query.l2_sensitivity_squared(adjacency)


@pytest.mark.parametrize(
    "wrong", [{"features": ()}, {"features": ("a", "a")}, {"label": "a"}, {"number": 0}]
)
def test_what_is_no_query_is_refused(wrong):
    with pytest.raises(ValueError, match="must be"):
        HyperplaneQuery(**{"features": ("a",), "number": 3, "seed": 0, **wrong})


def test_a_strategy_asks_for_its_share_and_spends_all():
    books = Books(PrivacyLedger.open(1.0, 1e-5, Adjacency.REPLACE_ONE))
    curator = Curator(Dataset(DOMAIN, rows(1_000)), books)
    curator.measure([CountQuery()], Fraction(0), what="number of rows")
    WithHyperplanes(query=QUERY, share=Fraction(1, 5)).run(curator, ParticlesWithHyperplanes())
    (charge,) = (each for each in curator.ledger.charges if each.what == QUERY.describe())
    assert charge.mu_squared == curator.ledger.budget / 5
    assert curator.ledger.remaining == 0


def test_a_tilt_meets_exact_answers_and_leaves_noise_alone():
    codes, truth = rows(4_000), rows(4_000, seed=1)
    truth = truth[truth[:, 0] + truth[:, 1] > 2]
    members = memberships(QUERY, DOMAIN, codes)
    shares = QUERY.of_codes(DOMAIN, truth).ravel() / len(truth)
    weights = tilted(members, shares, 0.0)
    before = np.abs(members.mean(axis=1) - shares).mean()
    assert np.abs(members @ weights - shares).mean() < before / 4
    noisy = members.mean(axis=1) + np.random.default_rng(0).normal(0, 0.05, len(members))
    almost_even = tilted(members, noisy, 0.05)
    assert almost_even is None or np.abs(4_000 * almost_even - 1).max() < 0.1
    assert tilted(members, members.mean(axis=1), 0.05) is None


def test_fitted_hyperplanes_tell_of_others():
    """Particles whose tables know no interaction learn of it from hyperplanes alone."""
    truth = rows(20_000)
    apart = {
        (name,): np.bincount(truth[:, axis], minlength=size) / len(truth)
        for axis, (name, size) in enumerate(zip(DOMAIN.attributes, DOMAIN.sizes, strict=True))
    }
    rng = np.random.default_rng(0)
    codes = np.stack([rng.permutation(column) for column in truth.T], axis=1)[:5_000]
    finish = HyperplaneFinish(
        query=QUERY, shares=QUERY.of_codes(DOMAIN, truth) / len(truth), stddev=0.001
    )
    fresh = HyperplaneQuery(
        features=("age", "pay"), nullable=("pay",), label="ill", number=50, seed=77
    )
    wanted = fresh.of_codes(DOMAIN, truth) / len(truth)

    def error(found):
        return np.abs(fresh.of_codes(DOMAIN, found) / len(found) - wanted).mean()

    assert error(finish(codes, DOMAIN, apart, seed=0)) < error(codes) / 3


def test_an_engine_without_hyperplanes_is_the_default_one():
    count = Measurement(query=CountQuery(), answer=np.array([1_000]), stddev=0.0)
    base = ParticleGradientDescent(num_particles=200, epochs=2)
    own = ParticlesWithHyperplanes(base=base).fit(DOMAIN, [count])
    np.testing.assert_array_equal(own.codes, base.fit(DOMAIN, [count]).codes)


def test_changes_are_means_over_tables():
    means = {
        ("PrivPGD", 1.0, "a"): {"r2": 0.5, "tv3": 0.2, "fit_s": 3.0},
        ("PrivPGD", 1.0, "b"): {"auroc": 0.8, "tv3": 0.1, "fit_s": 3.0},
        ("finer", 1.0, "a"): {"r2": 0.6, "tv3": 0.22, "fit_s": 4.0},
        ("finer", 1.0, "b"): {"auroc": 0.7, "tv3": 0.13, "fit_s": 4.0},
        ("finer", 0.2, "a"): {"r2": 0.0, "tv3": 9.0, "fit_s": 4.0},
    }
    assert compared(means, 1.0, ["a", "b"]) == {
        "finer": {"r2": "0.1", "tv3 %": "20+-1e+01", "auroc": "-0.1"}
    }
