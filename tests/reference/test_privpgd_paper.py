"""Claims of Donhauser et al. 2024 and its published settings, held against the particle engine."""

import math

import numpy as np
import pytest
import torch
from answers import margin, noisy_answers, number_of_rows
from references.wasserstein import cell_centers, sliced_w1

from sdv_privpgd.base.domain import Domain
from sdv_privpgd.synthesize.particles.descent import ParticleGradientDescent
from sdv_privpgd.synthesize.particles.paper import AdamStep, SoftmaxProjection
from sdv_privpgd.synthesize.particles.steps import Pull, stratified_directions


def measured(table, num_records=1_000_000):
    """All pairs without noise, and the public number of records."""
    domain = Domain(tuple("abcdef"[: table.ndim]), table.shape)
    truth = {clique: margin(table, domain, clique) for clique in domain.cliques(2)}
    counts = {clique: num_records * each for clique, each in truth.items()}
    return domain, [number_of_rows(num_records), *noisy_answers(counts)], truth


def distances(model, truth):
    """Full L1 (the paper's TV, Eq. 11) and SW1 (Eq. 10) of each clique."""
    directions = stratified_directions(
        100, 2, torch.Generator().manual_seed(0), dtype=torch.float64
    )
    l1, sw1 = [], []
    for clique, table in truth.items():
        found = model.marginal(clique)
        l1.append(np.abs(found - table).sum())
        flat = (torch.from_numpy(array.ravel()) for array in (found, table))
        sw1.append(float(sliced_w1(cell_centers(table.shape), *flat, directions)))
    return np.array(l1), np.array(sw1)


def chain(size=6):
    """A - B - C: B follows A, and C follows B, up to neighbors."""
    follow = np.exp(-1.5 * np.abs(np.subtract.outer(np.arange(size), np.arange(size))))
    follow /= follow.sum(axis=1, keepdims=True)
    first = np.linspace(1, 2, size) / np.linspace(1, 2, size).sum()
    return first[:, None, None] * follow[:, :, None] * follow[None, :, :]


@pytest.mark.parametrize("kind", ["one table", "all pairs of a chain"])
def test_exact_tables_are_reproduced(kind):
    table = np.random.default_rng(0).gamma(0.5, size=(8, 9))
    domain, answers, truth = measured(table / table.sum() if kind == "one table" else chain())
    model = ParticleGradientDescent(num_particles=10_000, epochs=400, enable_gpu=False).fit(
        domain, answers
    )
    l1, sw1 = distances(model, truth)
    assert l1.max() < 0.02
    assert sw1.max() < 1e-3


def test_the_published_settings_are_those_of_section_4():
    engine = ParticleGradientDescent.as_published()
    assert (engine.num_particles, engine.epochs, engine.num_slices) == (100_000, 1_000, 10)
    assert (engine.batch_size, engine.mask_probability) == (5, 0.8)
    assert (engine.start, engine.targets, engine.stratified) == ("uniform", "raw", False)
    assert engine.step == AdamStep(learning_rate=0.1, decay=0.75, num_phases=20)
    assert engine.projection == SoftmaxProjection(
        num_slices=200, max_steps=1750, learning_rate=0.1, decay=0.8, decay_every=100
    )


def test_a_short_published_run_fits_too():
    domain, answers, truth = measured(chain(4))
    engine = ParticleGradientDescent.as_published(
        num_particles=1_000,
        epochs=200,
        projection=SoftmaxProjection(num_slices=10, max_steps=90, decay_every=5),
        enable_gpu=False,
    )
    l1, sw1 = distances(engine.fit(domain, answers), truth)
    assert l1.max() < 0.1
    assert sw1.max() < 0.01


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])  # in torch, and compiled
def test_masked_adam_is_torchs_sparse_adam(dtype):
    generator = torch.Generator().manual_seed(0)
    start = torch.rand(3, 5, generator=generator, dtype=dtype)
    theirs = torch.nn.Parameter(start.clone())
    optimizer = torch.optim.SparseAdam([theirs], lr=0.1)
    ours = start.clone()
    move = AdamStep(num_phases=1).begin(ours)
    for _ in range(20):
        gradient = torch.randn(3, 5, generator=generator, dtype=dtype)
        moving = torch.rand(3, 5, generator=generator) < 0.4
        theirs.grad = (gradient * moving).to_sparse()
        optimizer.step()
        ours += move(Pull([0, 1, 2], gradient, torch.ones(3), moving), 0.0)
    # Ours adds eps after the bias correction, like torch.optim.Adam; eps is 1e-8 of a gradient.
    torch.testing.assert_close(ours, theirs.detach(), rtol=0, atol=1e-5)


@pytest.mark.parametrize(
    ("epoch", "expected"), [(0, 0.1), (49, 0.1), (50, 0.075), (999, 0.1 * 0.75**19)]
)
def test_the_learning_rate_falls_every_50_of_1000_epochs(epoch, expected):
    move = AdamStep().begin(torch.zeros(1, 1, dtype=torch.float64))
    pull = Pull([0], torch.ones(1, 1, dtype=torch.float64), torch.ones(1), None)
    # The first step of Adam has the length of the learning rate.
    assert math.isclose(float(-move(pull, epoch / 1000)), expected, rel_tol=1e-6)
