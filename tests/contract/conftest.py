"""What is fitted once for all tests of sampling; noise that is the same in two fits."""

import copy

import numpy as np
import pytest
import sdv_tables
from small_synthesizers import new

from sdv_privpgd.privacy import curator


@pytest.fixture(scope="module")
def fitted_once():
    """One fit for the tests of sampling, with noise that is the same in every run."""
    rng = np.random.default_rng(0)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(
            "sdv_privpgd.privacy.curator._noisy",
            lambda answer, stddev, words: (
                answer + np.rint(rng.normal(0, stddev, answer.shape)).astype(np.int64)
            ),
        )
        synthesizer = new()
        synthesizer.fit(sdv_tables.table(400))
    return synthesizer


@pytest.fixture
def fitted(fitted_once):
    return copy.deepcopy(fitted_once)


@pytest.fixture
def frozen(monkeypatch):
    """The same noise for each answer of the same shape, and no chance in choices.

    Other counts are other answers.
    """

    def noisy(answer, stddev, words):
        if stddev == 0:
            return answer
        return answer + np.random.default_rng(answer.size).integers(-9, 10, answer.shape)

    monkeypatch.setattr(curator, "_noisy", noisy)
    monkeypatch.setattr(curator, "exponential_choice", lambda scores, *_: int(np.argmax(scores)))
