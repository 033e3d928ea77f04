"""How much of noisy effects is believed."""

import numpy as np
import pytest

from sdv_privpgd.estimate.signals import signal_shares


def drawn(ratios, freedom, seed):
    """Square norms of effects whose signal has these variances beside the noise's."""
    rng = np.random.default_rng(seed)
    return (1 + np.asarray(ratios)) * rng.chisquare(freedom, len(ratios))


def one_by_one(squares, freedom):
    """What each effect alone would say."""
    return np.maximum(1 - freedom / squares, 0)


@pytest.mark.parametrize("freedom", [3, 9, 27])
def test_noise_is_not_believed(freedom):
    squares = drawn(np.zeros(400), freedom, seed=freedom)
    shares = signal_shares(squares, np.full(400, freedom))
    assert shares.mean() < 0.5 * one_by_one(squares, freedom).mean()
    assert shares.max() < 0.2


@pytest.mark.parametrize("freedom", [9, 27])
def test_what_all_have_is_believed_of_each(freedom):
    squares = drawn(np.full(300, 3.0), freedom, seed=freedom)
    shares = signal_shares(squares, np.full(300, freedom))
    assert np.abs(shares - 0.75).mean() < 0.1


@pytest.mark.parametrize("part", [0.02, 0.2, 0.7])
def test_errors_are_smaller_than_one_by_one(part):
    """Square errors of shrunken values, some effects being ten times the noise."""
    rng = np.random.default_rng(5)
    ratios = np.where(rng.random(500) < part, 10.0, 0.0)
    truth = rng.standard_normal((500, 9)) * np.sqrt(ratios)[:, None]
    seen = truth + rng.standard_normal((500, 9))
    squares = (seen**2).sum(axis=1)

    def error(shares):
        return ((shares[:, None] * seen - truth) ** 2).sum()

    assert error(signal_shares(squares, np.full(500, 9))) < error(one_by_one(squares, 9))


def test_what_stands_out_is_believed_where_all_else_is_noise():
    squares = np.append(drawn(np.zeros(200), 9, seed=0), 9 * 300.0)
    shares = signal_shares(squares, np.full(201, 9))
    assert shares[-1] > 0.95
    assert shares[:-1].mean() < 0.1


def test_without_noise_all_is_signal():
    shares = signal_shares(np.array([np.inf, 4.0, np.inf]), np.array([2, 4, 1]))
    assert shares[0] == shares[2] == 1
    assert 0 <= shares[1] < 0.6
    assert signal_shares(np.full(2, np.inf), np.ones(2)).tolist() == [1, 1]
    assert signal_shares(np.zeros(0), np.zeros(0)).size == 0


def test_an_effect_alone_is_believed_for_what_it_shows():
    shares = [float(signal_shares(np.array([square]), np.array([9]))[0]) for square in (0, 9, 900)]
    assert shares[0] < 0.05
    assert shares[1] < 0.05
    assert shares[2] > 0.95
