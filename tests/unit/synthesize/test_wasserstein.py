import math

import numpy as np
import pytest
import torch
from generators import seeded
from references.wasserstein import (
    cell_centers,
    displacement_to_targets,
    quantile_targets,
    sliced_w1,
    sliced_w2_displacement,
    sliced_w2_squared,
)
from scipy.stats import wasserstein_distance

from sdv_privpgd.synthesize.particles.draws import independent_directions, stratified_directions
from sdv_privpgd.synthesize.particles.targets import draw_codes, embed, nearest_codes

F64 = torch.float64


def random_problem(num_particles=17, shape=(3, 4), num_slices=3):
    generator = seeded()
    particles = torch.rand(num_particles, len(shape), generator=generator, dtype=F64)
    centers = cell_centers(shape)
    weights = torch.rand(len(centers), generator=generator, dtype=F64)
    weights[1] = 0.0
    directions = stratified_directions(num_slices, len(shape), generator, dtype=F64)
    return particles, centers, weights / weights.sum(), directions


def test_codes_survive_embedding_and_finalization_takes_the_nearest_center():
    sizes = (1, 2, 7, 32)
    codes = torch.stack([torch.arange(64) % size for size in sizes], dim=1)
    assert torch.equal(nearest_codes(embed(codes, sizes), sizes), codes)
    z = torch.rand(1000, 1, generator=seeded(), dtype=F64)
    nearest = (z - cell_centers((5,)).T).abs().argmin(dim=1, keepdim=True)
    assert torch.equal(nearest_codes(z, (5,)), nearest)
    assert nearest_codes(torch.tensor([[0.0], [0.2], [1.0]], dtype=F64), (5,)).tolist() == [
        [0],
        [1],
        [4],
    ]
    table = np.arange(6).reshape(2, 3)
    for (i, j), value in np.ndenumerate(table):
        expected = [(2 * i + 1) / 4, (2 * j + 1) / 6]
        assert cell_centers((2, 3))[value].tolist() == pytest.approx(expected, rel=1e-15)


def test_drawn_codes_are_within_one_particle_of_their_weights():
    weights = torch.tensor([0.1, 0.0, 0.55, 0.35])
    counts = torch.bincount(draw_codes(weights, 33, seeded()), minlength=4)
    assert int(counts.sum()) == 33
    assert ((counts - 33 * weights).abs() < 1).all()


@pytest.mark.parametrize("dim", [1, 2, 3, 4])
@pytest.mark.parametrize("draw", [stratified_directions, independent_directions])
def test_directions_are_unit_vectors(draw, dim):
    lengths = draw(5, dim, seeded(), dtype=F64).norm(dim=1)
    torch.testing.assert_close(lengths, torch.ones(5, dtype=F64), rtol=1e-12, atol=0)


@pytest.mark.parametrize("dim", [1, 2, 3, 4])
def test_a_full_set_of_stratified_directions_weighs_all_axes_alike(dim):
    directions = stratified_directions(2 * dim, dim, seeded(), dtype=F64)
    moment = directions.T @ directions / len(directions)
    torch.testing.assert_close(moment, torch.eye(dim, dtype=F64) / dim, rtol=0, atol=1e-12)


@pytest.mark.parametrize("dim", [2, 3])
def test_each_stratified_direction_is_uniform(dim):
    generator, repeats = seeded(), 300
    drawn = [stratified_directions(1, dim, generator, dtype=F64) for _ in range(repeats)]
    first = torch.cat(drawn)
    # Signs do not matter, so second moments decide; each entry has a sd below 0.5.
    moment = first.T @ first / repeats
    assert ((moment - torch.eye(dim) / dim).abs() < 4 * 0.5 / math.sqrt(repeats)).all()


def test_w1_on_the_line_is_scipys():
    generator = np.random.default_rng(0)
    centers, first, second = generator.random(9), generator.random(9), generator.random(9)
    first, second = first / first.sum(), second / second.sum()
    found = sliced_w1(
        torch.tensor(centers)[:, None],
        torch.tensor(first),
        torch.tensor(second),
        torch.ones(1, 1, dtype=F64),
    )
    assert float(found) == pytest.approx(wasserstein_distance(centers, centers, first, second))


@pytest.mark.parametrize("dim", [1, 2, 3])
def test_sw2_squared_of_a_translation_is_its_squared_length_over_the_dimension(dim):
    shape = (2, 3, 4)[:dim]
    centers = cell_centers(shape)
    weights = torch.full((len(centers),), 1 / len(centers), dtype=F64)
    directions = stratified_directions(2 * dim, dim, seeded(), dtype=F64)
    shift = torch.linspace(0.1, 0.3, dim, dtype=F64)
    found = sliced_w2_squared(centers + shift, centers, weights, directions)
    # Whole sets of stratified directions have mean(theta theta^T) = I / dim exactly.
    torch.testing.assert_close(found, shift.square().sum() / dim, rtol=1e-12, atol=0)


def test_targets_are_the_means_of_the_quantile_function():
    _, centers, weights, directions = random_problem()
    projected = directions @ centers.T
    found = quantile_targets(projected, weights, 7)
    fine = 200_000
    for row, positions in enumerate(projected):
        order = positions.argsort()
        levels = weights[order].cumsum(0)
        midpoints = (torch.arange(7 * fine, dtype=F64) + 0.5) / (7 * fine)
        index = torch.searchsorted(levels, midpoints).clamp(max=len(levels) - 1)
        means = positions[order][index].reshape(7, fine).mean(dim=1)
        # Each of the 12 steps is misplaced by at most one of the fine midpoints.
        torch.testing.assert_close(found[row], means, rtol=0, atol=12 * 2 / fine)


def test_targets_of_equal_weights_are_the_cells_on_any_scale():
    projected = torch.tensor([[0.3, 0.1, 0.2]], dtype=F64)
    weights = torch.full((3,), 1 / 3, dtype=F64)
    expected = torch.tensor([[0.1, 0.1, 0.2, 0.2, 0.3, 0.3]], dtype=F64)
    torch.testing.assert_close(quantile_targets(projected, weights, 6), expected)
    _, centers, weights, directions = random_problem()
    projected = directions @ centers.T
    torch.testing.assert_close(
        quantile_targets(projected, weights, 9), quantile_targets(projected, 5 * weights, 9)
    )


def test_sw2_squared_counts_the_variance_within_a_particles_share():
    # One particle at the mean of two equal cells at distance 1: all of W2^2 is variance.
    particle = torch.tensor([[0.5]], dtype=F64)
    centers = torch.tensor([[0.0], [1.0]], dtype=F64)
    weights = torch.tensor([0.5, 0.5], dtype=F64)
    found = sliced_w2_squared(particle, centers, weights, torch.ones(1, 1, dtype=F64))
    assert float(found) == pytest.approx(0.25)


def test_sw2_squared_passes_autograds_check():
    particles, centers, weights, directions = random_problem()
    particles.requires_grad_()
    assert torch.autograd.gradcheck(
        lambda x: sliced_w2_squared(x, centers, weights, directions), particles
    )


def test_displacements_are_gradients_and_follow_permutations():
    particles, centers, weights, directions = random_problem()
    particles.requires_grad_()
    sliced_w2_squared(particles, centers, weights, directions).backward()
    expected = -len(particles) / 2 * particles.grad
    found = sliced_w2_displacement(particles.detach(), centers, weights, directions)
    torch.testing.assert_close(found, expected, rtol=1e-10, atol=1e-14)
    particles, centers, weights, directions = random_problem()
    order = torch.randperm(len(particles), generator=seeded())
    moved = sliced_w2_displacement(particles, centers, weights, directions)
    torch.testing.assert_close(
        sliced_w2_displacement(particles[order], centers, weights, directions), moved[order]
    )
    particles, centers, weights, _ = random_problem()
    directions = stratified_directions(4, 2, seeded(), dtype=F64)
    moved = sliced_w2_displacement(particles, centers, weights, directions)
    expected = (weights @ centers - particles.mean(dim=0)) / 2
    torch.testing.assert_close(moved.mean(dim=0), expected, rtol=1e-12, atol=1e-14)
    projected = torch.zeros(1, 4, dtype=F64)
    targets = torch.arange(4, dtype=F64)[None]
    moved = displacement_to_targets(projected, targets)
    assert sorted(moved[0].tolist()) == [0.0, 1.0, 2.0, 3.0]
