"""An attacker who sees one choice gains what the ledger was charged, and broken odds are caught.

Two neighbors of the worst kind: one candidate's score rises by the sensitivity where the other's
falls. The choice is then one bit, and mu is the sum of its normal quantiles in the two worlds.
"""

import math

import numpy as np
import pytest
from scipy.stats import norm

from sdv_privpgd.base.domain import Domain
from sdv_privpgd.privacy import curator as curator_module
from sdv_privpgd.privacy.accounting import range_epsilon_of
from sdv_privpgd.privacy.curator import Curator
from sdv_privpgd.privacy.dataset import Dataset
from sdv_privpgd.privacy.ledger import Books, PrivacyLedger
from sdv_privpgd.privacy.queries import Adjacency, ModelErrorQuery

REPLACE, ADD = Adjacency.REPLACE_ONE, Adjacency.ADD_REMOVE
RUNS = 2_000
Z = 4.9  # two-sided alpha 1e-6


def audit(epsilon, adjacency, *, rows=1):
    """The estimated mu of one choice, its standard error and the mu that was charged."""
    domain = Domain(("a", "b"), (2, 2))
    one = Dataset(domain, np.zeros((rows, 2), dtype=np.int64))
    other = Dataset(domain, np.ones((rows if adjacency is REPLACE else 0, 2), dtype=np.int64))
    # Each model is right in one world: there its score is 0, and largest in the other.
    scores = [
        ModelErrorQuery(clique=("a",), expected=one.counts(("a",))),
        ModelErrorQuery(clique=("b",), expected=other.counts(("b",))),
    ]
    quantiles, variance = [], 0.0
    for index, world in enumerate((one, other)):
        words = np.random.default_rng(index).bytes
        chosen = []
        for _ in range(RUNS):
            ledger = PrivacyLedger.open(epsilon, 1e-5, adjacency, rows)
            curator = Curator(world, Books(ledger, words=words))
            chosen.append(curator.select(scores, ledger.budget, what="a column"))
        rate = (sum(chosen) + 0.5) / (RUNS + 1)
        quantiles.append(norm.ppf(rate))
        variance += rate * (1 - rate) / RUNS / norm.pdf(quantiles[-1]) ** 2
    return quantiles[0] - quantiles[1], math.sqrt(variance), math.sqrt(curator.ledger.mu_squared)


def is_caught(estimate, error, claimed):
    return estimate - claimed > Z * error


@pytest.mark.parametrize("adjacency", Adjacency)
@pytest.mark.parametrize(("epsilon", "rows"), [(2.5, 1), (8.0, 1), (4.0, 3)])
def test_the_attacker_gains_what_the_ledger_says(epsilon, rows, adjacency):
    estimate, error, claimed = audit(epsilon, adjacency, rows=rows)
    assert error < 0.06
    assert abs(estimate - claimed) < Z * error  # on this pair the bound is attained


def test_a_record_that_moves_counted_as_one_that_comes_is_caught(monkeypatch):
    monkeypatch.setattr(ModelErrorQuery, "l2_sensitivity_squared", lambda self, adjacency: 1)
    assert is_caught(*audit(2.5, REPLACE))


@pytest.mark.parametrize("adjacency", Adjacency)
def test_odds_of_twice_the_range_epsilon_are_caught(adjacency, monkeypatch):
    # As with exp(epsilon q / D) for a score that is not monotone.
    monkeypatch.setattr(curator_module, "range_epsilon_of", lambda mu2: 2 * range_epsilon_of(mu2))
    assert is_caught(*audit(2.5, adjacency))


def test_a_persons_rows_counted_as_one_are_caught(monkeypatch):
    # A temperature for one row instead of three is a range epsilon three times as large.
    monkeypatch.setattr(curator_module, "range_epsilon_of", lambda mu2: 3 * range_epsilon_of(mu2))
    assert is_caught(*audit(2.5, REPLACE, rows=3))
