"""A number that many rows have, far from all others, is told; long tails and zeros are not."""

import numpy as np
import pytest

from sdv_privpgd.cli.saying import in_options
from sdv_privpgd.columns.parsing import describe
from sdv_privpgd.report.sentinels import far_away

AGE = {"range_min": -99, "range_max": 90, "cut_points": [-98, 18, 30, 42, 54, 66, 78]}
ABOVE = {"range_min": 0, "range_max": 999, "cut_points": [20, 40, 60, 80, 100, 999]}
TAIL = {"range_min": 0, "range_max": 5_000, "cut_points": [1, 100, 300, 1_000]}
NEAR = {**AGE, "range_min": -9, "cut_points": [-8, 18, 30, 42, 54, 66, 78]}
BELL = [0, 2, 3, 4, 3, 2, 1]


def said(facts, parts, seed=0, error=0.01, declared=None):
    column = describe("x", {"sdtype": "numerical", "decimal_places": 0, **facts})
    shares = np.append(parts, 0.0) / np.sum(parts)
    noise = np.random.default_rng(seed).normal(0, error / 3, len(shares))
    return far_away(column, shares + noise, error, declared or {})


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize(
    ("facts", "parts", "told"),
    [(AGE, [2.5, *BELL], "are -99, far"), (ABOVE, [3, 4, 3, 2, 1, 0, 2], "are 999, far")],
    ids=["below", "above"],
)
def test_a_code_is_told(facts, parts, told, seed):
    sentence = said(facts, parts, seed)
    assert sentence is not None
    assert told in sentence
    assert "with --na where" in in_options(sentence)
    declared = {"range_min": -99, "range_max": 999}
    assert said(facts, parts, seed, declared=declared) is None


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize(
    ("facts", "parts", "error"),
    [
        (AGE, [0.8, *BELL], 0.01),
        (AGE, [1] * 8, 0.2),
        (TAIL, [9, 2, 2, 2, 1], 0.01),
        (NEAR, [2.5, *BELL], 0.01),
        (AGE, [1] * 8, 0.01),
    ],
    ids=["few rows", "loud noise", "zeros and a tail", "near", "even"],
)
def test_other_numbers_are_met_with_silence(facts, parts, error, seed):
    assert said(facts, parts, seed, error) is None


def test_a_column_of_one_number_is_met_with_silence():
    column = describe("x", {"sdtype": "numerical", "decimal_places": 0, **AGE})
    below_none = np.array([1.0, *[-0.001] * 8])  # noise: the other shares add up to less than 0
    assert far_away(column, below_none, 0.01, {}) is None
