"""The genetic engine: its incremental answers beside recounted ones; its loss never rises."""

import numpy as np
import pytest
from mixed import DOMAIN, mixed_answers

from sdv_privpgd.synthesize.engine import Goals
from sdv_privpgd.synthesize.genetic import PackedGoals, change, evolve, replace

SIZES = np.array(DOMAIN.sizes)
ROWS = 60


def goals():
    return Goals.of(DOMAIN, mixed_answers())


def recounted(asked, codes):
    """The loss of rows, from tables that are counted by numpy."""
    total = 0.0
    for views, shares, weight in zip(asked.tables, asked.shares, asked.weights, strict=True):
        counts = np.zeros(shares.shape)
        cells = [np.array(asked.views[at].groups)[codes[:, asked.views[at].axis]] for at in views]
        np.add.at(counts, tuple(cells), 1)
        total += weight * ((counts / len(codes) - shares) ** 2).sum()
    return total


def test_after_500_changes_the_incremental_answers_are_the_recounted_ones():
    asked, rng = goals(), np.random.default_rng(2)
    packed = PackedGoals.of(asked, ROWS)
    codes = rng.integers(0, SIZES, (ROWS, 4))
    errors = packed.errors(codes)
    loss = packed.loss(errors)
    for _ in range(500):
        row, axis = rng.integers(ROWS), rng.integers(4)
        code = rng.integers(SIZES[axis])
        loss += change(codes[row], axis, code, errors, packed)
        replace(codes[row], axis, code, errors, packed)
        codes[row, axis] = code
    np.testing.assert_allclose(errors, packed.errors(codes), rtol=0, atol=1e-9)
    assert loss == pytest.approx(recounted(asked, codes), rel=1e-9)


@pytest.mark.long
@pytest.mark.parametrize("members", [1, 2, 5])
def test_the_best_never_gets_worse_and_the_elite_is_what_its_losses_say(members):
    asked, rng = goals(), np.random.default_rng(3)
    packed = PackedGoals.of(asked, ROWS)
    elite = rng.integers(0, SIZES, (members, ROWS, 4))
    losses = np.array([recounted(asked, codes) for codes in elite])
    best = int(losses.argmin())
    errors = packed.errors(elite[best])
    state = np.array([7], dtype=np.uint64)
    before = [losses[best]]
    for _ in range(60):
        best = evolve(elite, losses, best, errors, SIZES, packed, 5, 10, 10, state)
        assert best == losses.argmin()
        assert losses[best] <= before[-1]
        before.append(losses[best])
        np.testing.assert_allclose(losses, [recounted(asked, codes) for codes in elite], rtol=1e-9)
    np.testing.assert_allclose(errors, packed.errors(elite[best]), rtol=0, atol=1e-9)
    assert before[-1] < before[0] / 5
