"""What the best attacker reaches is what epsilon and delta allow."""

import math

import numpy as np
import pytest
from scipy import stats

from sdv_privpgd.privacy.accounting import log_delta
from sdv_privpgd.report.privacy import most_caught


@pytest.mark.parametrize("mu", [0.05, 0.3, 1.0, 4.0])
def test_the_best_attacker_reaches_what_the_likelihood_ratio_test_of_two_normals_reaches(mu):
    for alpha in (0.001, 0.01, 0.05, 0.5):
        cut = stats.norm.isf(alpha)
        assert most_caught(alpha, mu) == pytest.approx(stats.norm.sf(cut - mu), rel=1e-9)


@pytest.mark.parametrize("mu", [0.3, 1.0])
def test_no_attacker_beats_epsilon_and_delta_and_some_attacker_attains_them(mu):
    epsilon = 1.2
    delta = math.exp(log_delta(epsilon, mu))
    alphas = np.linspace(1e-6, 1 - 1e-6, 20_001)
    slack = math.exp(epsilon) * alphas + delta - [most_caught(alpha, mu) for alpha in alphas]
    assert slack.min() >= -1e-12
    # On a grid of step 5e-5 the touching point is missed by a second-order term only.
    assert slack.min() < 1e-5


def test_nothing_is_gained_from_nothing():
    assert most_caught(0.05, 0.0) == pytest.approx(0.05, rel=1e-12)
