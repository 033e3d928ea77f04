"""Pairs that were measured over groups alone: spread over codes as far as the model tells how."""

import numpy as np
import pytest
from answers import answered, number_of_rows

from sdv_privpgd.base.domain import Domain, Grouping
from sdv_privpgd.estimate.consistency import ConsistentTables
from sdv_privpgd.estimate.denoising import FINER, denoised, over_groups
from sdv_privpgd.estimate.effects import independent
from sdv_privpgd.estimate.interactions import grouped_targets
from sdv_privpgd.estimate.noisy_tables import NoisyTable
from sdv_privpgd.synthesize.particles.descent import ParticleGradientDescent

ROWS = 40_000.0
CODES = np.arange(32)
GROUPING = Grouping.of(dict.fromkeys("abc", CODES // 8))


def smooth(correlation, seed=0):
    """Counts of two normal numbers of this correlation, each cut into 32 codes of equal counts."""
    rng = np.random.default_rng(seed)
    first = rng.normal(size=200_000)
    second = correlation * first + np.sqrt(1 - correlation**2) * rng.normal(size=200_000)
    ranks = [np.argsort(np.argsort(each)) * 32 // 200_000 for each in (first, second)]
    return np.histogram2d(*ranks, bins=(32, 32), range=((0, 32), (0, 32)))[0] * (ROWS / 200_000)


def tables_of(pairs, stddev, seed=0):
    """What is known of these pairs where their sums over groups alone were measured."""
    rng = np.random.default_rng(seed)
    sums = {pair: GROUPING.sums(counts, pair) for pair, counts in pairs.items()}
    measured = {
        pair: NoisyTable(exact + stddev * rng.normal(size=exact.shape), stddev**2)
        for pair, exact in sums.items()
    }
    one_way = {name: np.full(32, ROWS / 32) for name in "abc"}
    return ConsistentTables(
        total=ROWS, one_way=one_way, tables={}, variances={}, grouped={GROUPING: measured}
    )


def completed(tables):
    ((grouping, found),) = denoised(tables).completed.items()
    return grouping, found


def test_a_completed_pair_has_its_sums_and_goes_on_without_the_noise():
    truth = smooth(0.8)
    _, found = completed(tables_of({("a", "b"): truth}, 1.0))
    pair = found["a", "b"]
    assert pair.shape == (FINER, FINER)
    np.testing.assert_allclose(pair.sum(axis=0), np.full(FINER, ROWS / FINER))
    np.testing.assert_allclose(pair.sum(axis=1), np.full(FINER, ROWS / FINER))
    coarse = pair.reshape(4, FINER // 4, 4, FINER // 4).sum(axis=(1, 3))
    np.testing.assert_allclose(coarse, GROUPING.sums(truth, ("a", "b")), rtol=0.02, atol=20)
    grouping, found = completed(tables_of({("a", "b"): truth}, 30.0))
    exact = grouping.sums(truth, ("a", "b"))
    even = np.kron(GROUPING.sums(truth, ("a", "b")), np.ones((FINER // 4,) * 2)) / (FINER / 4) ** 2
    assert np.abs(found["a", "b"] - exact).sum() < 0.8 * np.abs(even - exact).sum()
    pairs = dict.fromkeys(Domain(("a", "b", "c"), (32,) * 3).cliques(2), smooth(0.0))
    _, found = completed(tables_of(pairs, 500.0))
    noise = 500.0 * np.sqrt(2 / np.pi) * 16
    for counts in found.values():
        assert np.abs(counts - ROWS / FINER**2).sum() < 0.3 * noise


def test_only_groups_are_completed_and_are_aimed_at_as_measured():
    truth = smooth(0.8)
    alone = tables_of({("a", "b"): truth, ("a", "c"): truth}, 30.0)
    both = ConsistentTables(
        total=ROWS,
        one_way=alone.one_way,
        tables={("a", "b"): truth},
        variances={("a", "b"): 900.0},
        grouped=alone.grouped,
    )
    found = denoised(both)
    assert list(found.tables) == [("a", "b")]
    ((_, pairs),) = found.completed.items()
    assert list(pairs) == [("a", "c")]
    found = over_groups(tables_of({("a", "b"): smooth(0.8)}, 30.0), GROUPING)
    np.testing.assert_allclose(found.one_way["a"], np.full(4, ROWS / 4))
    assert found.tables["a", "b"].shape == independent(found, ("a", "b")).shape == (4, 4)
    assert found.variances["a", "b"] == 900.0
    tables = tables_of({("a", "b"): smooth(0.8)}, 1.0)
    target = grouped_targets(tables, {})[GROUPING]["a", "b"].values
    expected = tables.grouped[GROUPING]["a", "b"].counts / ROWS
    np.testing.assert_allclose(target, expected, atol=1e-3)


@pytest.mark.parametrize("alone", ["abc", "c"])
@pytest.mark.parametrize("targets", ["denoised", "consistent"])
def test_particles_follow_pairs_that_were_measured_over_groups_alone(targets, alone):
    """Also where their attributes are in no table over codes."""
    truth, pair = smooth(0.8), ("a", "b")
    answers = [
        number_of_rows(int(ROWS)),
        *(answered(name, np.full(32, ROWS / 32)) for name in alone),
        answered(pair, GROUPING.sums(truth, pair), 10.0, GROUPING),
    ]
    engine = ParticleGradientDescent(num_particles=5_000, epochs=2, targets=targets)
    model = engine.fit(Domain(tuple("abc"), (32,) * 3), answers)
    found = GROUPING.sums(model.marginal(pair), pair)
    assert np.abs(found - GROUPING.sums(truth, pair) / ROWS).sum() < 0.05
