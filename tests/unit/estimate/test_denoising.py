"""Denoising: marginals stay, noise goes, signal stays, and a table without noise is itself."""

from dataclasses import replace
from itertools import combinations

import numpy as np
import pytest
from answers import answered, noisy_answers, number_of_rows

from sdv_privpgd.base.domain import Domain, Grouping
from sdv_privpgd.estimate.consistency import ConsistentTables, consistent_tables
from sdv_privpgd.estimate.denoising import denoised
from sdv_privpgd.estimate.noisy_tables import NoisyTable
from sdv_privpgd.estimate.signals import signal_shares
from sdv_privpgd.privacy.dataset import Dataset

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


@pytest.mark.parametrize("groups", [None, 4])
def test_a_smooth_dependence_never_vanishes_in_the_noise_of_many_cells(groups):
    """All cells' noise together is larger than the dependence, and each draw shows it all the same.

    4,000 rows in 32 x 32 cells: a correlation of 0.6.
    """
    rng, codes = np.random.default_rng(0), np.arange(32)
    first = rng.normal(size=100_000)
    second = 0.6 * first + 0.8 * rng.normal(size=100_000)
    ranks = [np.argsort(np.argsort(each)) * 32 // 100_000 for each in (first, second)]
    counts = np.histogram2d(*ranks, bins=(32, 32), range=((0, 32), (0, 32)))[0] * 0.04
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
