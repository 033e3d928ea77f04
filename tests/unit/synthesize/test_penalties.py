import copy
import pickle

import numpy as np
import pytest
import torch
from answers import number_of_rows
from jaxtyping import TypeCheckError

from sdv_privpgd.base.domain import Domain
from sdv_privpgd.privacy.queries import Measurement, SigmoidSumQuery
from sdv_privpgd.synthesize.particles.penalties import (
    DifferentiablePenalty,
    Penalty,
    ProtectedThreshold,
)

DOMAIN = Domain(("a", "b", "c"), (2, 3, 4))
THETA = {"a": 1.0, "c": -0.5}


def measured(penalty, share, num_records=1000):
    answer = np.array([round(share * num_records * SigmoidSumQuery.GRID)], dtype=np.int64)
    statistic = Measurement(query=penalty.query(), answer=answer, stddev=1.0)
    return [number_of_rows(num_records), statistic]


def mean_of_a(positions):
    return positions["a"].mean()


@pytest.mark.parametrize(
    "penalty", [ProtectedThreshold(theta=THETA, b=0.1), DifferentiablePenalty(function=mean_of_a)]
)
def test_penalties_can_be_copied_and_pickled(penalty):
    assert isinstance(penalty, Penalty)
    assert copy.deepcopy(penalty) == penalty
    assert pickle.loads(pickle.dumps(penalty)) == penalty


def test_the_threshold_penalty_is_the_papers_formula_and_largest_at_the_estimate():
    penalty = ProtectedThreshold(theta=THETA, b=0.1, slope=5.0)
    z = torch.rand(50, 3, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    share = (1 / (1 + np.exp(-5.0 * (z[:, 0] - 0.5 * z[:, 2] - 0.1).numpy()))).mean()
    expected = 0.01 / (1e-4 + (share - 0.4) ** 2)
    found = penalty.loss(DOMAIN, measured(penalty, 0.4))(z)
    # The stored answer is rounded to 1 / (1000 * 2^20) of the share.
    assert float(found) == pytest.approx(expected, rel=1e-6)
    penalty = ProtectedThreshold(theta={"b": 1.0}, b=0.5)
    loss = penalty.loss(DOMAIN, measured(penalty, 0.5))
    at_estimate = loss(torch.full((4, 3), 0.5))
    assert float(at_estimate) == pytest.approx(100.0, rel=1e-3)
    assert loss(torch.full((4, 3), 0.7)) < at_estimate
    penalty = ProtectedThreshold(theta=THETA, b=0.1)
    z = torch.rand(5, 3, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    loss = penalty.loss(DOMAIN, measured(penalty, 0.3))
    assert torch.autograd.gradcheck(loss, z.requires_grad_())


@pytest.mark.parametrize(("share", "clipped"), [(-0.3, 0.0), (1.4, 1.0)])
def test_an_impossible_estimate_is_clipped(share, clipped):
    penalty = ProtectedThreshold(theta=THETA, b=0.1)
    z = torch.rand(9, 3, generator=torch.Generator().manual_seed(0))
    found = penalty.loss(DOMAIN, measured(penalty, share))(z)
    torch.testing.assert_close(found, penalty.loss(DOMAIN, measured(penalty, clipped))(z))


def test_missing_statistics_and_columns_are_named():
    penalty = ProtectedThreshold(theta=THETA, b=0.1)
    assert penalty.queries(DOMAIN) == (SigmoidSumQuery.of(THETA, 0.1, 5.0),)
    assert DifferentiablePenalty(function=mean_of_a).queries(DOMAIN) == ()
    with pytest.raises(ValueError, match="measurements lack 'smoothed threshold over a, c'"):
        penalty.loss(DOMAIN, measured(penalty, 0.4)[:1])
    penalty = ProtectedThreshold(theta={"zip": 1.0}, b=0.1)
    with pytest.raises(ValueError, match=r"theta names \['zip'\].*choose from \('a', 'b', 'c'\)"):
        penalty.queries(DOMAIN)


def test_a_users_function_is_called_with_names_and_returns_one_number():
    z = torch.rand(9, 3, generator=torch.Generator().manual_seed(0))
    found = DifferentiablePenalty(function=mean_of_a).loss(DOMAIN, [])(z)
    torch.testing.assert_close(found, z[:, 0].mean())
    loss = DifferentiablePenalty(function=lambda positions: positions["a"]).loss(DOMAIN, [])
    with pytest.raises(ValueError, match="one number"):
        loss(torch.rand(9, 3))
    # The shape checks of the tests see it first.
    with pytest.raises((ValueError, TypeCheckError), match="function"):
        DifferentiablePenalty(function=3)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"theta": {}}, "theta is empty"),
        ({"theta": {"a": float("nan")}}, r"theta\['a'\] must be a finite number, got nan"),
        ({"b": float("inf")}, "b must be a finite number, got inf"),
        ({"slope": float("nan")}, "slope must be a finite number"),
        ({"weight": -1.0}, "weight must be a finite number of at least 0, got -1.0"),
        ({"weight": float("nan")}, "weight must be a finite number"),
    ],
)
def test_errors_name_the_argument_and_the_value(changes, message):
    with pytest.raises(ValueError, match=message):
        ProtectedThreshold(**{"theta": THETA, "b": 0.1, **changes})
