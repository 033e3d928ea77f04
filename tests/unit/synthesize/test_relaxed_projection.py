"""Relaxed tables: their answers beside brute force, their gradient beside finite differences."""

import numpy as np
import pytest
import torch
from answers import margin
from mixed import CLIQUES, DOMAIN, GROUPS, mixed_answers

from sdv_privpgd import MatchError
from sdv_privpgd.base.domain import Domain
from sdv_privpgd.methods.k_way import Independent
from sdv_privpgd.privacy.queries import GroupedMarginalQuery
from sdv_privpgd.synthesize.engine import Goals
from sdv_privpgd.synthesize.relaxed_projection import (
    GenerativeNetwork,
    Mixture,
    RelaxedLoss,
    RelaxedProjection,
    first_weights,
    logits_of,
    softmaxes,
)

CPU = torch.device("cpu")


def relaxed(components, seed=0):
    logits = torch.randn((components, sum(DOMAIN.sizes)), generator=torch.manual_seed(seed))
    return softmaxes(logits.double(), DOMAIN)


def joint(shares):
    """The probabilities of all cells of a relaxed table, cell by cell."""
    parts = np.split(shares.numpy(), np.cumsum(DOMAIN.sizes)[:-1], axis=1)
    found = np.zeros(DOMAIN.sizes)
    for cell in np.ndindex(*DOMAIN.sizes):
        products = np.ones(len(shares))
        for part, code in zip(parts, cell, strict=True):
            products *= part[:, code]
        found[cell] = products.mean()
    return found


def test_the_loss_is_the_mean_squared_error_in_deviations_of_the_answers_by_brute_force():
    shares, answers = relaxed(7), mixed_answers()
    table = joint(shares)
    total = float(answers[0].answer[0])
    squares, cells = 0.0, 0
    for each in answers[1:]:
        clique = each.query.clique
        own = margin(table, DOMAIN, clique)
        if isinstance(each.query, GroupedMarginalQuery):
            own = GROUPS.sums(own, clique)
        squares += (((total * own - each.answer) / each.stddev) ** 2).sum()
        cells += own.size
    loss = RelaxedLoss(Goals.of(DOMAIN, answers), CPU)
    # Wanted shares are float32: a relative error of 6e-8 each.
    assert float(loss(shares.float())) == pytest.approx(squares / cells, rel=1e-5)


@pytest.mark.parametrize("clique", [*CLIQUES, ("d", "b", "a"), ("a", "b", "c", "d")], ids=str)
def test_a_mixtures_marginals_are_those_of_brute_force(clique):
    shares = relaxed(6)
    model = Mixture(domain=DOMAIN, shares=shares.float().numpy())
    expected = margin(joint(shares), DOMAIN, clique)
    np.testing.assert_allclose(model.marginal(clique), expected, rtol=1e-5)


def test_rows_follow_shares_also_where_cells_are_impossible():
    model = Mixture(domain=DOMAIN, shares=relaxed(1).float().numpy())
    rows = model.sample(1_000, seed=3)
    for axis, size in enumerate(DOMAIN.sizes):
        found = np.bincount(rows[:, axis], minlength=size)
        assert np.abs(found - 1_000 * model.marginal(DOMAIN.attributes[axis : axis + 1])).max() < 1
    possible = {("b", "a"): np.array([[True, False], [True, True], [True, True]])}
    goals = Goals.of(DOMAIN, mixed_answers(), possible)
    assert goals.shares[1][1, 0] == 0
    assert (Goals.of(DOMAIN, mixed_answers()).shares[1] != goals.shares[1]).sum() == 1


def test_the_gradient_of_a_tiny_network_is_that_of_finite_differences():
    generator = torch.Generator().manual_seed(0)
    weights = {
        name: own.double().requires_grad_()
        for name, own in first_weights(3, (4, 2), sum(DOMAIN.sizes), generator).items()
    }
    noise = torch.randn((5, 3), generator=generator).double()

    def made(*own):
        return softmaxes(logits_of(noise, dict(zip(weights, own, strict=True))), DOMAIN)

    assert torch.autograd.gradcheck(made, [*weights.values()])


@pytest.mark.parametrize(
    "engine",
    [
        RelaxedProjection(num_components=50, steps=20),
        GenerativeNetwork(num_components=50, latent=4, widths=(8,), steps=20),
    ],
    ids=["rap", "gem"],
)
def test_an_engine_goes_on_from_its_own_model(engine):
    answers = mixed_answers()
    loss = RelaxedLoss(Goals.of(DOMAIN, answers), CPU)
    model = engine.fit(DOMAIN, answers)
    warm = engine.fit(DOMAIN, answers, warm_start=model)
    assert float(loss(torch.tensor(warm.shares))) < float(loss(torch.tensor(model.shares)))


@pytest.mark.parametrize("engine", [RelaxedProjection(), GenerativeNetwork()])
def test_a_domain_that_memory_cannot_hold_is_refused_before_anything_is_spent(engine):
    with pytest.raises(MatchError, match="Ask for fewer components"):
        Independent(engine=engine).require(Domain(("a",), (900_000,)))
    assert engine.refusal(DOMAIN, [("a",)]) is None
