"""Where a second measurement helps most."""

from itertools import product

import numpy as np
import pytest

from sdv_privpgd.methods.coarse_pairs import most_helpful

LEVELS = (0.0, 1.0, 2.0, 4.0)


EQUAL = dict.fromkeys([(name,) for name in "abcd"], 1.0)


def expected_error(signals, variances, chosen, weights):
    return sum(
        weights[clique] ** 2
        * (1 / (1 / own + (1 + chosen.get(clique, 0)) / variances[clique])).sum()
        for clique, own in signals.items()
    )


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("budget", [1.0, 3.0, 6.0])
@pytest.mark.parametrize("is_weighted", [False, True])
def test_no_other_choice_of_the_same_cost_is_expected_to_be_better(seed, budget, is_weighted):
    rng = np.random.default_rng(seed)
    signals = {(name,): rng.lognormal(0, 3, rng.integers(1, 5)) for name in "abcd"}
    weights = EQUAL | {("b",): 4.0, ("c",): 2.0} if is_weighted else EQUAL
    variances = {clique: 1 / weight for clique, weight in weights.items()}
    chosen = most_helpful(signals, variances, LEVELS, budget, *([weights] if is_weighted else []))

    def cost(levels):
        return sum(level * weights[clique] for clique, level in levels.items())

    assert cost(chosen) <= budget
    choices = [
        dict(zip(signals, levels, strict=True)) for levels in product(LEVELS, repeat=len(signals))
    ]
    best = min(
        expected_error(signals, variances, other, weights)
        for other in choices
        if cost(other) <= cost(chosen)
    )
    assert expected_error(signals, variances, chosen, weights) == pytest.approx(best)


def test_what_counts_more_is_measured_again_first():
    signals = {("a",): np.ones(2), ("b",): np.ones(2)}
    assert most_helpful(signals, EQUAL, LEVELS, 2.0, {("b",): 2.0}) == {("b",): 1.0}


def test_what_is_exact_or_hidden_already_gets_nothing():
    """Square errors of about 1, 1e-9 and, whatever is spent, 1e-9."""
    signals = {("a",): np.ones(9), ("b",): np.array([1e-9]), ("c",): np.full(9, 1e-9)}
    assert most_helpful(signals, EQUAL, LEVELS, 4.0) == {("a",): 4.0}


def test_what_has_no_signal_is_chosen_last():
    signals = {("a",): np.zeros(0), ("b",): np.ones(2)}
    assert most_helpful(signals, EQUAL, LEVELS, 2.0) == {("b",): 2.0}
    assert most_helpful(signals, EQUAL, LEVELS, 5.0) == {("a",): 1.0, ("b",): 4.0}
