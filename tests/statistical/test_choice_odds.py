"""Choices are made as often as the exact probabilities say, and no other law passes.

Words come from a seeded generator, so that the tests cannot fail by chance; each also shows that
it would reject a wrong law.
"""

import math
from fractions import Fraction

import numpy as np
import pytest
from scipy.stats import chi2

from sdv_privpgd.base.domain import Domain
from sdv_privpgd.privacy import selection
from sdv_privpgd.privacy.accounting import range_epsilon_of
from sdv_privpgd.privacy.curator import Curator
from sdv_privpgd.privacy.dataset import Dataset
from sdv_privpgd.privacy.ledger import FitLedger, PrivacyLedger
from sdv_privpgd.privacy.queries import Adjacency, ModelErrorQuery
from sdv_privpgd.privacy.selection import exponential_choice

ALPHA = 1e-6
DRAWS = 10_000
CASES = [
    ([4, 1, 0, -3, 2], Fraction(5, 2)),
    ([10**12, 10**12 - 7, 10**12 + 3], Fraction(4)),
    (list(range(-30, 30, 4)), Fraction(33, 2)),
]


def softmax(scores, temperature):
    weights = [math.exp(float(Fraction(score - max(scores)) / temperature)) for score in scores]
    return np.array(weights) / math.fsum(weights)


def p_value(chosen, chances):
    """Of the choices against exact chances, by chi-square."""
    expected = chances * len(chosen)
    assert expected.min() >= 10, "too few draws for the chi-square approximation"
    seen = np.bincount(chosen, minlength=len(chances))
    return chi2.sf(np.sum((seen - expected) ** 2 / expected), len(chances) - 1)


def draw(scores, temperature, seed, size=DRAWS):
    words = np.random.default_rng(seed).bytes
    return [exponential_choice(scores, temperature, words) for _ in range(size)]


@pytest.mark.parametrize(("scores", "temperature"), CASES)
def test_choices_follow_the_exact_probabilities(scores, temperature):
    chances = softmax(scores, temperature)
    assert p_value(draw(scores, temperature, 1), chances) > ALPHA
    for factor in (Fraction(3, 2), Fraction(2, 3)):
        assert p_value(draw(scores, factor * temperature, 1), chances) < ALPHA


def test_the_slow_way_of_choosing_follows_them_too(monkeypatch):
    monkeypatch.setattr(selection, "_ERROR", 1.0)
    monkeypatch.setattr(selection, "PRECISION", 200)  # faster, and exact enough to count
    scores, temperature = CASES[0]
    assert p_value(draw(scores, temperature, 2, 3_000), softmax(scores, temperature)) > ALPHA


@pytest.mark.parametrize("adjacency", Adjacency)
def test_the_curators_choices_have_the_range_epsilon_of_the_ledger(adjacency):
    domain = Domain(("a", "b", "c"), (2, 2, 3))
    table = Dataset(domain, np.random.default_rng(0).integers(0, domain.sizes, (30, 3)))
    weights, bias = (3, 1, 2), (10, -10, -5)
    scores = [
        ModelErrorQuery(
            clique=clique,
            expected=np.full(domain.shape(clique), 7),
            weight=weights[index],
            bias=bias[index],
        )
        for index, clique in enumerate(domain.cliques(1))
    ]
    values = [int(score.answer(table)[0]) for score in scores]
    words = np.random.default_rng(3).bytes
    ledger = PrivacyLedger.open(5.0, 1e-5, adjacency)
    chosen = []
    for _ in range(3_000):
        curator = Curator(table, FitLedger(ledger, words=words))
        chosen.append(curator.select(scores, ledger.budget, what="a column"))
    # By the definition: exp(epsilon score / (2 D)), where a record moves a score of weight 3 most.
    unit = 2 if adjacency is Adjacency.REPLACE_ONE else 1
    temperature = 2 * 3 * unit / Fraction(range_epsilon_of(ledger.budget))
    assert p_value(chosen, softmax(values, temperature)) > ALPHA
    for factor in (Fraction(3, 2), Fraction(2, 3)):
        assert p_value(chosen, softmax(values, temperature * factor)) < ALPHA
