"""A synthesizer that is fitted once for all tests of sampling."""

import copy

import numpy as np
import pytest
import sdv_tables
from small_synthesizers import new


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
