"""Where a second measurement helps most."""

from itertools import product

import numpy as np
import pytest

from sdv_privpgd.select.allocation import most_helpful

LEVELS = (0.0, 1.0, 2.0, 4.0)


def expected_error(signals, variance, chosen):
    return sum(
        (1 / (1 / own + (1 + chosen.get(clique, 0)) / variance)).sum()
        for clique, own in signals.items()
    )


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("budget", [1.0, 3.0, 6.0])
def test_no_other_choice_of_the_same_cost_is_expected_to_be_better(seed, budget):
    rng = np.random.default_rng(seed)
    signals = {(name,): rng.lognormal(0, 3, rng.integers(1, 5)) for name in "abcd"}
    chosen = most_helpful(signals, 1.0, LEVELS, budget)
    paid = sum(chosen.values())
    assert paid <= budget
    others = [
        dict(zip(signals, levels, strict=True))
        for levels in product(LEVELS, repeat=4)
        if sum(levels) <= paid
    ]
    best = min(expected_error(signals, 1.0, other) for other in others)
    assert expected_error(signals, 1.0, chosen) == pytest.approx(best)


def test_what_is_exact_or_hidden_already_gets_nothing():
    """Square errors of about 1, 1e-9 and, whatever is spent, 1e-9."""
    signals = {("a",): np.ones(9), ("b",): np.array([1e-9]), ("c",): np.full(9, 1e-9)}
    assert most_helpful(signals, 1.0, LEVELS, 4.0) == {("a",): 4.0}


def test_what_has_no_signal_is_chosen_last():
    signals = {("a",): np.zeros(0), ("b",): np.ones(2)}
    assert most_helpful(signals, 1.0, LEVELS, 2.0) == {("b",): 2.0}
    assert most_helpful(signals, 1.0, LEVELS, 5.0) == {("a",): 1.0, ("b",): 4.0}
