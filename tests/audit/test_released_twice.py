"""Matched filters on releases: what an attacker learns of one person is what the ledgers say.

As in ``test_matched_filter``: the residuals of all answers, weighted by their precision, projected
on what one person changes. Over many runs the values in two worlds differ by mu of their own
standard deviations.
"""

import math

import numpy as np
import pytest

from sdv_privpgd.base.domain import Domain
from sdv_privpgd.methods.fixed import AllKWay
from sdv_privpgd.methods.pipeline import ask
from sdv_privpgd.privacy import curator as curator_module
from sdv_privpgd.privacy.accounting import stddev_for
from sdv_privpgd.privacy.curator import Curator
from sdv_privpgd.privacy.dataset import Dataset
from sdv_privpgd.privacy.ledger import Books, PrivacyLedger, epsilon_in_all, raised
from sdv_privpgd.privacy.noise import rounded_gaussian
from sdv_privpgd.privacy.queries import Adjacency
from sdv_privpgd.releases.combining import pooled

RUNS, Z = 600, 4.9
DOMAIN = Domain(("a", "b", "c"), (2, 2, 2))
HERE = Dataset(DOMAIN, np.zeros((1, 3), dtype=np.int64))
THERE = Dataset(DOMAIN, np.ones((1, 3), dtype=np.int64))


def answered(world, ledger, words, known=()):
    """All pairs of a table, asked for all that the ledger has left."""
    curator = Curator(world, Books(ledger, words=words), known=known)
    ask(curator, AllKWay(degree=2), again=bool(known))
    return curator


def at_once(world, words):
    ledger = PrivacyLedger.open(2.5, 1e-5, Adjacency.REPLACE_ONE)
    curator = answered(world, ledger, words)
    return curator.measurements, curator.ledger


def in_two_steps(world, words):
    ledger = PrivacyLedger.open(1.25, 1e-5, Adjacency.REPLACE_ONE)
    first = answered(world, ledger, words)
    second = answered(world, raised(first.ledger, 1.25), words, first.measurements)
    return second.measurements, second.ledger


def of_two_holders(world, words):
    """The person is at one holder; the other's table is the same in both worlds."""
    measured, ledger = at_once(world, words)
    other, _ = at_once(HERE, words)
    return pooled(DOMAIN, [measured, other]).measurements, ledger


def audit(release, runs=RUNS):
    """The estimated mu, its standard error and the mu of the ledger."""
    values = []
    for index, world in enumerate((HERE, THERE)):
        words, outcome = np.random.default_rng(index).bytes, []
        for _ in range(runs):
            measurements, ledger = release(world, words)
            noisy = [each for each in measurements if each.stddev]
            changes = [each.query.answer(THERE) - each.query.answer(HERE) for each in noisy]
            outcome.append(
                sum(
                    float(((each.answer - each.query.answer(HERE)) * change).sum()) / each.stddev**2
                    for each, change in zip(noisy, changes, strict=True)
                )
            )
        values.append(np.array(outcome))
    pooled_sd = math.sqrt((values[0].var(ddof=1) + values[1].var(ddof=1)) / 2)
    estimate = (values[1].mean() - values[0].mean()) / pooled_sd
    error = math.sqrt(2 / runs + estimate**2 / (4 * runs))
    return estimate, error, math.sqrt(ledger.mu_squared)


@pytest.mark.parametrize("release", [pytest.param(at_once, marks=pytest.mark.slow), in_two_steps])
def test_the_attacker_gains_the_mu_of_one_ledger_however_often_was_asked(release):
    estimate, error, claimed = audit(release)
    assert claimed == pytest.approx(0.611994, abs=1e-6)  # that of epsilon 2.5
    assert abs(estimate - claimed) < Z * error + 0.01 * claimed


@pytest.mark.slow
def test_another_holder_s_noise_hides_people_further():
    """Of the sum an attacker learns less than of the holder's own release: 1 / sqrt(2) of it."""
    estimate, error, claimed = audit(of_two_holders)
    assert abs(estimate - claimed / math.sqrt(2)) < Z * error + 0.01 * claimed


def test_whoever_is_at_two_holders_is_told_the_sum():
    """Both releases together, with the person in both tables."""

    def both(world, words):
        one, ledger = at_once(world, words)
        two, other = at_once(world, words)
        both.ledgers = [ledger, other]
        return [*one, *two], ledger

    estimate, error, claimed = audit(both)
    assert abs(estimate - math.sqrt(2) * claimed) < Z * error + 0.02 * claimed
    assert epsilon_in_all(both.ledgers) > both.ledgers[0].spent()


def test_a_second_step_with_a_quarter_of_its_noise_is_caught(monkeypatch):
    first = PrivacyLedger.open(1.25, 1e-5, Adjacency.REPLACE_ONE)
    noise_of_first = stddev_for(6, first.budget)  # three pairs, each of sensitivity sqrt(2)

    def quartered(stddev, size, words):
        is_second = stddev < 0.99 * noise_of_first
        return rounded_gaussian(stddev / 4 if is_second else stddev, size, words)

    monkeypatch.setattr(curator_module, "rounded_gaussian", quartered)
    estimate, error, claimed = audit(in_two_steps)
    assert estimate - claimed > Z * error
