"""Where differences lie: what holds rows, and what may."""

import numpy as np
import pytest

from sdv_privpgd.discovery.density import Density
from sdv_privpgd.discovery.plan import _frequencies
from sdv_privpgd.estimate.noisy_tables import NoisyTable


def noisy(counts, stddev, seed, starts):
    noise = np.random.default_rng(seed).normal(0.0, stddev, len(counts))
    edges = np.append(starts, 2 * starts[-1] - starts[-2])
    return Density.of(edges, NoisyTable(np.asarray(counts) + noise, stddev**2))


def widening(number, factor=1.05):
    """The starts of cells that widen from zero on, as those of differences do."""
    starts = [0.0]
    while len(starts) < number:
        starts.append(starts[-1] + max(1.0, np.floor(starts[-1] * (factor - 1))))
    return np.array(starts)


STARTS = widening(160)


def counts_of(values):
    return np.histogram(values, [*STARTS, np.inf])[0]


def test_noise_alone_has_no_shape():
    found = [_frequencies(noisy(np.zeros(160), 30.0, seed, STARTS)) for seed in range(20)]
    assert sum(each is None for each in found) >= 18


@pytest.mark.parametrize("seed", range(20))
def test_ages_of_children_stay_though_each_of_their_cells_is_lost_in_noise(seed):
    """Ages in days, alike often up to 100 years: one in ten is below ten years."""
    ages = np.random.default_rng(seed).integers(0, 36_500, 6_000)
    starts = widening(160, factor=1.07)
    counts = np.histogram(ages, [*starts, np.inf])[0]
    found = _frequencies(noisy(counts, 45.0, seed, starts))
    assert found is not None
    assert (found[starts < 36_000] > 0).all()
    young = found[starts < 3_650].sum() / found.sum()
    assert 0.01 < young < 0.25


def test_stays_of_some_days_do_not_become_years():
    means = []
    for seed in range(20):
        days = np.random.default_rng(seed).lognormal(1.2, 0.9, 6_000).round()
        days = np.minimum(days, 200)
        found = _frequencies(noisy(counts_of(days), 30.0, seed, STARTS))
        assert found is not None
        held = np.flatnonzero(found)
        assert held[0] == 0
        assert STARTS[held[-1]] > np.quantile(days, 0.99) * 0.7
        middles = STARTS + np.diff(STARTS, append=STARTS[-1] * 1.05) / 2
        means.append((found * middles).sum() / found.sum() / days.mean())
    assert np.median(means) == pytest.approx(1, abs=0.5)
    assert np.mean(np.array(means) > 1.8) <= 0.2
