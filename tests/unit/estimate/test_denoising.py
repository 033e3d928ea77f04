"""Denoising: marginals stay, noise goes, signal stays; of groups alone codes get what they can."""

from dataclasses import replace
from itertools import combinations

import numpy as np
import pytest
from answers import answered, noisy_answers, number_of_rows

from sdv_privpgd.base.domain import Domain, Grouping
from sdv_privpgd.estimate.consistency import ConsistentTables, consistent_tables
from sdv_privpgd.estimate.denoising import FINER, denoised, over_groups
from sdv_privpgd.estimate.effects import GroupSums, Residual, independent
from sdv_privpgd.estimate.interactions import grouped_targets
from sdv_privpgd.estimate.noisy_tables import NoisyTable
from sdv_privpgd.estimate.signals import Covariance, Evidence, signal_shares
from sdv_privpgd.privacy.dataset import Dataset
from sdv_privpgd.synthesize.particles.descent import ParticleGradientDescent

ROWS = 200_000
DOMAIN = Domain(("a", "b", "c", "d", "e"), (16, 12, 9, 2, 1))


def true_tables(seed=0, *, dependent=True):
    """The pair tables of rows of which one latent number explains most, or nothing."""
    rng = np.random.default_rng(seed)
    latent = rng.random((ROWS, 1)) if dependent else rng.random((ROWS, len(DOMAIN)))
    places = (0.7 * latent + 0.3 * rng.random((ROWS, len(DOMAIN)))) ** 1.5
    codes = (places * DOMAIN.sizes).astype(int)
    rows = Dataset(DOMAIN, codes)
    return {clique: rows.counts(clique) for clique in DOMAIN.cliques(2)}


def measured(tables, stddev, seed=1):
    """Consistent tables of noisy answers."""
    answers = [number_of_rows(ROWS), *noisy_answers(tables, stddev, seed)]
    return consistent_tables(DOMAIN, answers)


def squared_error(found, tables):
    return sum(float(((found.tables[clique] - tables[clique]) ** 2).sum()) for clique in tables)


@pytest.mark.parametrize(
    ("dependent", "stddev", "left"),
    [
        (True, 10.0, 1.06), (True, 100.0, 0.9), (True, 1000.0, 0.6),
        (False, 10.0, 1.0), (False, 100.0, 0.9), (False, 1000.0, 0.6),
    ],
)  # fmt: skip
def test_squared_error_is_taken_away(stddev, left, dependent):
    """At 10 almost nothing is noise, and the sharp edges of the dependent cells are not smooth."""
    tables = true_tables(dependent=dependent)
    consistent = measured(tables, stddev)
    before, after = (squared_error(each, tables) for each in (consistent, denoised(consistent)))
    assert after < left * before


def test_marginals_total_and_support_stay():
    consistent = measured(true_tables(), 60.0)
    found = denoised(consistent)
    assert found.total == consistent.total
    assert found.variances == consistent.variances
    for clique, table in found.tables.items():
        for axis, attribute in enumerate(clique):
            np.testing.assert_allclose(
                table.sum(axis=1 - axis), consistent.one_way[attribute], rtol=1e-9, atol=1e-6
            )
        empty = np.ones(table.shape, dtype=bool)
        empty[np.ix_(*consistent.support(clique))] = False
        assert (table[empty] == 0).all()


def test_next_to_no_noise_changes_next_to_nothing():
    consistent = measured(true_tables(), 0.0)
    for clique, table in denoised(consistent).tables.items():
        np.testing.assert_array_equal(table, consistent.tables[clique])
    tables = true_tables()
    consistent = measured(tables, 0.3)  # mostly rounded away
    found = denoised(consistent)
    assert squared_error(found, tables) <= 1.1 * squared_error(consistent, tables) + 1


def test_the_order_of_attributes_and_tables_does_not_matter():
    tables = true_tables()
    consistent = measured(tables, 60.0)
    found = denoised(consistent)
    reverse = denoised(
        type(consistent)(
            total=consistent.total,
            one_way=consistent.one_way,
            tables={clique[::-1]: t.T for clique, t in reversed(consistent.tables.items())},
            variances={clique[::-1]: v for clique, v in consistent.variances.items()},
            grouped={},
        )
    )
    for clique, table in found.tables.items():
        np.testing.assert_allclose(reverse.tables[clique[::-1]].T, table, rtol=0, atol=1e-4 * ROWS)


def test_other_degrees_stay_and_nothing_measured_is_no_error():
    rng = np.random.default_rng(0)
    triple = answered("abc", rng.integers(0, 99, (16, 12, 9)), 5.0)
    consistent = consistent_tables(DOMAIN, [triple])
    np.testing.assert_array_equal(
        denoised(consistent).tables["a", "b", "c"], consistent.tables["a", "b", "c"]
    )
    assert denoised(consistent_tables(DOMAIN, [number_of_rows(5)])).tables == {}


def smooth(correlation, total=40_000):
    """Counts of two normal numbers of this correlation, each cut into 32 codes of equal counts."""
    rng = np.random.default_rng(0)
    first = rng.normal(size=200_000)
    second = correlation * first + np.sqrt(1 - correlation**2) * rng.normal(size=200_000)
    ranks = [np.argsort(np.argsort(each)) * 32 // 200_000 for each in (first, second)]
    return np.histogram2d(*ranks, bins=(32, 32), range=((0, 32), (0, 32)))[0] * (total / 200_000)


@pytest.mark.parametrize("groups", [None, 4])
def test_a_smooth_dependence_never_vanishes_in_the_noise_of_many_cells(groups):
    """All cells' noise together is larger than the dependence, and each draw shows it all the same.

    4,000 rows in 32 x 32 cells: a correlation of 0.6.
    """
    codes, counts = np.arange(32), smooth(0.6, 4_000)
    centered = codes - 15.5
    found = []
    for seed in range(20):
        noise = np.random.default_rng(seed)
        grouped = {}
        if groups is not None:
            of_code = codes * groups // 32
            grouping = Grouping.of({"a": of_code, "b": of_code})
            sums = np.zeros((groups, groups))
            np.add.at(sums, (of_code[:, None], of_code[None, :]), counts)
            table = NoisyTable(sums + noise.normal(0, 50, sums.shape), 50.0**2)
            grouped = {grouping: {("a", "b"): table}}
        tables = ConsistentTables(
            total=4_000.0,
            one_way=dict.fromkeys("ab", np.full(32, 125.0)),
            tables={("a", "b"): counts + noise.normal(0, 14, counts.shape)},
            variances={("a", "b"): 14.0**2},
            grouped=grouped,
        )
        table = denoised(tables).tables["a", "b"]
        found.append(centered @ table @ centered / (4_000 * np.square(centered).mean()))
    assert min(found) > 0.2
    assert 0.35 < np.mean(found) < 0.7


def test_pairs_that_look_like_noise_are_taken_for_noise():
    """Of 120 yes/no pairs one depends: what looks large among the others is not believed."""
    names = tuple("abcdefghijklmnop")
    pairs = list(combinations(names, 2))
    rng = np.random.default_rng(3)
    tables = {}
    for pair in pairs:
        shift = 4000.0 if pair == ("a", "b") else rng.normal(0.0, 50.0)
        tables[pair] = 2500.0 + shift / 2 * np.array([[1.0, -1.0], [-1.0, 1.0]])
    noisy = ConsistentTables(
        total=10_000.0,
        one_way={name: np.array([5000.0, 5000.0]) for name in names},
        tables=tables,
        variances=dict.fromkeys(pairs, 2500.0),
        grouped={},
    )
    found = denoised(noisy).tables
    assert abs(found["a", "b"][0, 0] - tables["a", "b"][0, 0]) < 50
    left = [abs(found[pair][0, 0] - 2500.0) for pair in pairs[1:]]
    seen = [abs(tables[pair][0, 0] - 2500.0) for pair in pairs[1:]]
    assert np.mean(left) < 0.2 * np.mean(seen)
    alone = denoised(
        replace(noisy, tables={pairs[1]: tables["a", "b"]}, variances={pairs[1]: 2500.0})
    )
    assert alone.tables[pairs[1]][0, 0] > 0.9 * tables["a", "b"][0, 0]


def drawn(ratios, freedom, seed):
    """Square norms of effects whose signal has these variances beside the noise's."""
    rng = np.random.default_rng(seed)
    return (1 + np.asarray(ratios)) * rng.chisquare(freedom, len(ratios))


@pytest.mark.parametrize("freedom", [9, 27])
def test_what_all_have_is_believed_of_each(freedom):
    squares = drawn(np.full(300, 3.0), freedom, seed=freedom)
    shares = signal_shares(squares, np.full(300, freedom))
    assert np.abs(shares - 0.75).mean() < 0.1


def test_without_noise_all_is_signal_and_with_it_what_stands_out_is():
    shares = signal_shares(np.array([np.inf, 4.0, np.inf]), np.array([2, 4, 1]))
    assert shares[0] == shares[2] == 1
    assert 0 <= shares[1] < 0.6
    assert signal_shares(np.full(2, np.inf), np.ones(2)).tolist() == [1, 1]
    assert signal_shares(np.zeros(0), np.zeros(0)).size == 0
    shares = [float(signal_shares(np.array([square]), np.array([9]))[0]) for square in (0, 9, 900)]
    assert shares[0] < 0.05
    assert shares[1] < 0.05
    assert shares[2] > 0.95
    squares = np.append(drawn(np.zeros(200), 9, seed=0), 9 * 300.0)
    shares = signal_shares(squares, np.full(201, 9))
    assert shares[-1] > 0.95
    assert shares[:-1].mean() < 0.1


def covariance(rng, size):
    root = rng.normal(size=(size, size))
    return Covariance.of(root @ root.T)


def nats(values, spread):
    """The negative logarithm of a normal density, but for a constant."""
    flat = values.ravel()
    return (np.linalg.slogdet(spread)[1] + flat @ np.linalg.solve(spread, flat)) / 2


def test_scales_are_as_likely_as_whole_tables_say():
    rng = np.random.default_rng(0)
    known = {name: covariance(rng, size) for name, size in (("a", 5), ("b", 4), ("c", 1))}
    whole = {n: (own.directions * own.variances) @ own.directions.T for n, own in known.items()}
    scales = np.array([0.0, 1.0, 10.0, 1e3, 1e5])
    residuals, sums, wanted = [], {}, []
    for pair in (("a", "b"), ("b", "c"), ("a", "c")):
        sizes = [len(known[name].variances) for name in pair]
        noise = np.inf if pair == ("a", "c") else 4.0  # of one pair there are sums alone
        residuals.append(Residual(pair, 3 * rng.normal(size=sizes), noise))
        maps = [rng.normal(size=(2, size)) for size in sizes]
        sums[pair] = [GroupSums(*maps, 5 * rng.normal(size=(2, 2)), 1.5)]
        spread, member = np.kron(*(whole[name] for name in pair)), np.kron(*maps)
        wanted.append([])
        for scale in scales:
            of_sums = scale * member @ spread @ member.T + 1.5 * np.eye(4)
            wanted[-1].append(nats(sums[pair][0].values, of_sums))
            if np.isfinite(noise):
                of_cells = scale * spread + noise * np.eye(len(spread))
                wanted[-1][-1] += nats(residuals[-1].values, of_cells)
    found = Evidence(residuals, sums, known).nats(np.tile(scales, (3, 1)))
    # Variances that differ by less than a fifth count as one.
    np.testing.assert_allclose(found, wanted, rtol=0.01)


TOTAL = 40_000.0
GROUPING = Grouping.of(dict.fromkeys("abc", np.arange(32) // 8))


def tables_of(pairs, stddev, seed=0):
    """What is known of these pairs where their sums over groups alone were measured."""
    rng = np.random.default_rng(seed)
    sums = {pair: GROUPING.sums(counts, pair) for pair, counts in pairs.items()}
    measured = {
        pair: NoisyTable(exact + stddev * rng.normal(size=exact.shape), stddev**2)
        for pair, exact in sums.items()
    }
    one_way = {name: np.full(32, TOTAL / 32) for name in "abc"}
    return ConsistentTables(
        total=TOTAL, one_way=one_way, tables={}, variances={}, grouped={GROUPING: measured}
    )


def completed(tables):
    ((grouping, found),) = denoised(tables).completed.items()
    return grouping, found


def test_a_completed_pair_has_its_sums_and_goes_on_without_the_noise():
    truth = smooth(0.8)
    _, found = completed(tables_of({("a", "b"): truth}, 1.0))
    pair = found["a", "b"]
    assert pair.shape == (FINER, FINER)
    np.testing.assert_allclose(pair.sum(axis=0), np.full(FINER, TOTAL / FINER))
    np.testing.assert_allclose(pair.sum(axis=1), np.full(FINER, TOTAL / FINER))
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
        assert np.abs(counts - TOTAL / FINER**2).sum() < 0.3 * noise


def test_only_groups_are_completed_and_are_aimed_at_as_measured():
    truth = smooth(0.8)
    alone = tables_of({("a", "b"): truth, ("a", "c"): truth}, 30.0)
    both = ConsistentTables(
        total=TOTAL,
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
    np.testing.assert_allclose(found.one_way["a"], np.full(4, TOTAL / 4))
    assert found.tables["a", "b"].shape == independent(found, ("a", "b")).shape == (4, 4)
    assert found.variances["a", "b"] == 900.0
    tables = tables_of({("a", "b"): smooth(0.8)}, 1.0)
    target = grouped_targets(tables, {})[GROUPING]["a", "b"].values
    expected = tables.grouped[GROUPING]["a", "b"].counts / TOTAL
    np.testing.assert_allclose(target, expected, atol=1e-3)


@pytest.mark.parametrize("alone", ["abc", "c"])
@pytest.mark.parametrize("targets", ["denoised", "consistent"])
def test_particles_follow_pairs_that_were_measured_over_groups_alone(targets, alone):
    """Also where their attributes are in no table over codes."""
    truth, pair = smooth(0.8), ("a", "b")
    answers = [
        number_of_rows(int(TOTAL)),
        *(answered(name, np.full(32, TOTAL / 32)) for name in alone),
        answered(pair, GROUPING.sums(truth, pair), 10.0, GROUPING),
    ]
    engine = ParticleGradientDescent(num_particles=5_000, epochs=2, targets=targets)
    model = engine.fit(Domain(tuple("abc"), (32,) * 3), answers)
    found = GROUPING.sums(model.marginal(pair), pair)
    assert np.abs(found - GROUPING.sums(truth, pair) / TOTAL).sum() < 0.05
