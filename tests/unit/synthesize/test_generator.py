"""What engines differentiate: a network that learns an embedding, and penalties."""

from functools import reduce
from itertools import product

import numpy as np
import pytest
import torch
from answers import answered as groups_answered
from answers import margin, noisy_answers, number_of_rows
from jaxtyping import TypeCheckError

from sdv_privpgd.base.domain import Domain, Grouping
from sdv_privpgd.estimate.features import EmbeddingQuery, SigmoidSumQuery
from sdv_privpgd.privacy.queries import Measurement, exact_answers
from sdv_privpgd.synthesize.generator import EmbeddingLoss, GeneratorNetwork
from sdv_privpgd.synthesize.particles.penalties import DifferentiablePenalty, ProtectedThreshold

CPU = torch.device("cpu")
DOMAIN = Domain(("a", "b", "c"), (2, 3, 4))
SMALL = GeneratorNetwork(steps=300, num_inputs=200, num_particles=20_000)


def query(domain, label=None, num_features=60):
    names = zip(domain.attributes, domain.sizes, strict=True)
    return EmbeddingQuery(
        coordinates=tuple((name, (None,) * size) for name, size in names if name != label),
        bandwidth=0.7,
        num_features=num_features,
        seed=3,
        label=label,
    )


def answered(asked, domain, codes):
    (answer,) = exact_answers([asked], domain, codes)
    return Measurement(query=asked, answer=answer, stddev=1.0)


def loss_of(asked, domain, codes):
    answer = answered(asked, domain, codes)
    draws = torch.Generator().manual_seed(0)
    return EmbeddingLoss.of(domain, answer, float(len(codes)), asked.num_features, draws, CPU)


def one_hot(codes, domain):
    sizes = enumerate(domain.sizes)
    return [torch.eye(size)[torch.from_numpy(codes[:, axis])] for axis, size in sizes]


@pytest.mark.parametrize("label", [None, "b"])
def test_rows_that_are_certain_have_the_embedding_that_the_curator_sums(label):
    codes = np.random.default_rng(0).integers(0, DOMAIN.sizes, (50, 3))
    loss = loss_of(query(DOMAIN, label=label), DOMAIN, codes)
    found = loss.embedding(one_hot(codes, DOMAIN), torch.arange(60))
    # A feature is rounded to 1 / GRID; the phases, to 2^-16 turns, are the same.
    np.testing.assert_allclose(found, loss.target, atol=1e-4)
    assert float(loss(one_hot(codes, DOMAIN))) < 1e-6
    assert float(loss(one_hot(codes[::-1][:25].copy(), DOMAIN))) > 1e-3


def test_rows_of_chances_have_the_expected_embedding():
    """By brute force over all cells of two rows, each with independent attributes."""
    rng = np.random.default_rng(1)
    chances = [rng.dirichlet(np.ones(size), 2) for size in DOMAIN.sizes]
    cells = np.array(list(product(*map(range, DOMAIN.sizes))))
    weights = np.prod([own[:, cells[:, axis]] for axis, own in enumerate(chances)], axis=0)
    asked = query(DOMAIN, label="c")
    each = np.stack([answered(asked, DOMAIN, cell[None]).answer for cell in cells]) / asked.GRID
    loss = loss_of(asked, DOMAIN, cells)
    found = loss.embedding([torch.from_numpy(own).float() for own in chances], torch.arange(60))
    np.testing.assert_allclose(found, np.tensordot(weights.mean(axis=0), each, 1), atol=2e-4)


def rows_with_dependence(num_rows=20_000):
    """b follows a, which is uneven; c is the label, and tells which way b follows."""
    rng = np.random.default_rng(4)
    a = rng.choice(4, num_rows, p=(0.4, 0.3, 0.2, 0.1))
    c = rng.integers(0, 2, num_rows)
    b = np.where(rng.random(num_rows) < 0.9, (a + 1 + c) % 4, rng.integers(0, 4, num_rows))
    return Domain(("a", "b", "c"), (4, 4, 2)), np.stack([a, b, c], axis=1)


@pytest.mark.parametrize("label", [None, "c"])
def test_dependence_is_learned_from_an_embedding_alone(label):
    """Independent attributes are five times further away, in total variation."""
    domain, codes = rows_with_dependence()
    asked = query(domain, label, num_features=200)
    answer = answered(asked, domain, codes)
    model = SMALL.fit(domain, [number_of_rows(len(codes)), answer])
    for clique, most in ((("a", "b"), 0.05), (("c", "b", "a"), 0.1)):
        truth = np.zeros(domain.shape(clique))
        np.add.at(truth, tuple(codes[:, domain.axes(clique)].T), 1 / len(codes))
        assert np.abs(model.marginal(clique) - truth).sum() / 2 < most
        alone = [margin(truth, domain.project(clique), (name,)) for name in clique]
        assert np.abs(reduce(np.multiply.outer, alone) - truth).sum() / 2 > 5 * most


def test_noisier_answers_count_less_and_useless_ones_not_at_all():
    domain = Domain(("a", "b"), (2, 2))
    (clear,) = noisy_answers({("a", "b"): np.array([[40.0, 10.0], [10.0, 40.0]])}, 1.0)
    (vague,) = noisy_answers({("a",): np.array([90.0, 10.0])}, 100.0)
    model = GeneratorNetwork(steps=200, num_particles=5_000).fit(
        domain, [number_of_rows(100), clear, vague]
    )
    assert model.marginal(("a",))[0] == pytest.approx(0.5, abs=0.06)
    grouping = Grouping.of({"c": np.array([0, 0, 1, 1])})
    vague = groups_answered("c", [90, 10], 1.0, grouping)
    model = GeneratorNetwork(steps=1, num_particles=8_000).fit(DOMAIN, [vague])
    assert np.abs(model.marginal(("c",)) - 0.25).max() < 0.1


THETA = {"a": 1.0, "c": -0.5}


def measured(penalty, share, num_records=1000):
    answer = np.array([round(share * num_records * SigmoidSumQuery.GRID)], dtype=np.int64)
    statistic = Measurement(query=penalty.query(), answer=answer, stddev=1.0)
    return [number_of_rows(num_records), statistic]


def mean_of_a(positions):
    return positions["a"].mean()


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
    with pytest.raises(ValueError, match=r"theta names \['zip'\].*choose from \['a', 'b', 'c'\]"):
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
