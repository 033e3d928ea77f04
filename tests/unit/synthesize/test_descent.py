"""Particles descend: visits, targets on the line, displacements, and where they end."""

import math
from itertools import combinations

import numpy as np
import pytest
import torch
from answers import margin, noisy_answers, number_of_rows
from generators import seeded
from hypothesis import given
from hypothesis import strategies as st
from references.wasserstein import cell_centers, sliced_w2_displacement, sliced_w2_squared

from sdv_privpgd.base.domain import Domain
from sdv_privpgd.privacy.queries import Measurement
from sdv_privpgd.synthesize.engine import Particles, default_number
from sdv_privpgd.synthesize.particles.descent import (
    ParticleGradientDescent,
    draw_codes,
    embed,
    nearest_codes,
)
from sdv_privpgd.synthesize.particles.kernels import PackedTargets
from sdv_privpgd.synthesize.particles.paper import AdamStep
from sdv_privpgd.synthesize.particles.penalties import DifferentiablePenalty, ProtectedThreshold
from sdv_privpgd.synthesize.particles.steps import TransportStep, draw_steps, stratified_directions

DOMAIN = Domain(("a", "b", "c"), (2, 3, 4))
QUICK = {"num_particles": 600, "epochs": 20, "local_search": None, "enable_gpu": False}


def joint(seed=0, sizes=DOMAIN.sizes):
    """A random distribution with strong dependence."""
    table = np.random.default_rng(seed).gamma(0.5, size=sizes)
    return table / table.sum()


def measured(table, domain=DOMAIN, degree=2, num_records=100_000, stddev=0.0, seed=0):
    """Noisy tables of all cliques of a degree, and the public number of records."""
    counts = {c: num_records * margin(table, domain, c) for c in domain.cliques(degree)}
    return [number_of_rows(num_records), *noisy_answers(counts, stddev, seed)]


def errors(model, table, degree=2, domain=DOMAIN):
    """Full L1 distance of each marginal from the truth."""
    found = []
    for clique in combinations(domain.attributes, degree):
        others = tuple(axis for axis in range(len(domain)) if axis not in domain.axes(clique))
        found.append(np.abs(model.marginal(clique) - table.sum(axis=others)).sum())
    return np.array(found)


def test_no_epochs_give_independent_attributes_with_the_measured_marginals():
    table = joint()
    model = ParticleGradientDescent(**{**QUICK, "epochs": 0}).fit(DOMAIN, measured(table))
    for axis, name in enumerate(DOMAIN.attributes):
        others = tuple(other for other in range(3) if other != axis)
        exact = table.sum(axis=others)
        # Largest remainders: less than one of 600 particles a value.
        assert (np.abs(model.marginal((name,)) - exact) < 1 / 600 + 1e-4).all()


@pytest.mark.parametrize("step", [TransportStep(), AdamStep()])
@pytest.mark.parametrize("mask_probability", [0.0, 0.8])
@pytest.mark.parametrize("start", ["marginals", "uniform"])
def test_every_configuration_learns(step, mask_probability, start):
    # The authors' code learned nothing at mask probability 0.
    table = joint()
    settings = {**QUICK, "step": step, "mask_probability": mask_probability, "start": start}
    learned = ParticleGradientDescent(**{**settings, "epochs": 120}).fit(DOMAIN, measured(table))
    before = ParticleGradientDescent(**{**settings, "epochs": 0}).fit(DOMAIN, measured(table))
    assert errors(learned, table).mean() < 0.5 * errors(before, table).mean()


@pytest.mark.parametrize("degree", [1, 2, 3])
def test_cliques_of_any_degree_are_fitted(degree):
    table = joint()
    engine = ParticleGradientDescent(**{**QUICK, "epochs": 100})
    model = engine.fit(DOMAIN, measured(table, degree=degree))
    assert errors(model, table, degree=degree).max() < 0.1


@pytest.mark.parametrize("kernel", ["torch", "numba"])
@pytest.mark.parametrize("changes", [{}, {"step": AdamStep(), "mask_probability": 0.5}])
def test_each_kernel_repeats_itself_and_fits_as_well_as_the_other(kernel, changes):
    table = joint()
    settings = {**QUICK, "num_particles": 2_000, "epochs": 100, "kernel": kernel, **changes}
    first, second = (
        ParticleGradientDescent(**settings).fit(DOMAIN, measured(table)) for _ in range(2)
    )
    assert np.array_equal(first.codes, second.codes)
    assert errors(first, table).mean() < 0.1


def test_a_table_measured_twice_uses_both_answers():
    truth = joint()
    low, high = (measured(table, stddev=10.0)[1:] for table in (truth, np.roll(truth, 1, axis=1)))
    # Without the rounding of counts the two are averaged with equal weights.
    both = ParticleGradientDescent(**{**QUICK, "epochs": 100}).fit(
        DOMAIN, [*measured(truth)[:1], *low, *high]
    )
    middle = (truth + np.roll(truth, 1, axis=1)) / 2
    assert errors(both, middle).max() < 0.1
    assert errors(both, truth).max() > 0.2


def test_values_without_support_stay_empty_and_raw_targets_are_the_tables():
    table = joint()
    table[:, :, 3] = 0
    table /= table.sum()
    model = ParticleGradientDescent(**QUICK).fit(DOMAIN, measured(table, stddev=20.0))
    assert model.marginal(("c",))[3] == 0
    table = joint()
    engine = ParticleGradientDescent(**{**QUICK, "epochs": 100, "targets": "raw"})
    assert errors(engine.fit(DOMAIN, measured(table)), table).max() < 0.1
    domain = Domain(("a", "b", "x"), (2, 3, 4))
    measurements = measured(joint(sizes=(2, 3)), domain=Domain(("a", "b"), (2, 3)))
    model = ParticleGradientDescent(**QUICK).fit(domain, measurements)
    assert model.marginal(("x",)) == pytest.approx(np.full(4, 0.25))


def test_a_warm_start_continues_from_an_earlier_model():
    measurements = measured(joint())
    earlier = ParticleGradientDescent(**QUICK).fit(DOMAIN, measurements)
    idle = ParticleGradientDescent(**{**QUICK, "epochs": 0})
    again = idle.fit(DOMAIN, measurements, warm_start=earlier)
    rows = lambda codes: sorted(map(tuple, codes.tolist()))
    assert rows(again.codes) == rows(earlier.codes)
    larger = ParticleGradientDescent(**{**QUICK, "num_particles": 900, "epochs": 0})
    assert larger.fit(DOMAIN, measurements, warm_start=earlier).codes.shape == (900, 3)


@pytest.mark.parametrize(
    ("num_particles", "batch_size"), [(200, 1), (200, 2), (200, 3), (2_000, 3)]
)
def test_the_weight_of_a_penalty_means_what_equation_7_says(num_particles, batch_size):
    """Whatever the number of particles and the batches.

    Two of three pairs hold "a", each with target 1/4 and SW2^2 = (z - 1/4)^2 / 2 along it. The
    penalty pulls its mean up.
    """
    seen, one_value = [], np.zeros(DOMAIN.sizes)
    one_value[0, 1, 2] = 1.0

    def watch(positions):
        seen.append(float(positions["a"].detach().mean()))
        return -positions["a"].mean()

    ParticleGradientDescent(
        num_particles=num_particles, epochs=40, batch_size=batch_size, num_slices=2,
        step=TransportStep(first=0.5, last=0.05), enable_gpu=False,
        penalties=(DifferentiablePenalty(function=watch, weight=0.2),),
    ).fit(DOMAIN, measured(one_value))  # fmt: skip
    # Minimizer of 2 * (z - 1/4)^2 / 2 - 0.2 z.
    assert seen[-1] == pytest.approx(0.25 + 0.1, abs=0.01)


def test_a_protected_statistic_is_driven_away_and_the_rest_is_kept():
    table = joint()
    domain_mean = float(((np.arange(4) + 0.5) / 4) @ table.sum(axis=(0, 1)))
    penalty = ProtectedThreshold(theta={"c": 1.0}, b=domain_mean, weight=0.01)
    share = 1 / (1 + np.exp(-5 * ((np.arange(4) + 0.5) / 4 - domain_mean)))
    exact = float(share @ table.sum(axis=(0, 1)))
    statistic = Measurement(
        query=penalty.query(),
        answer=np.array([round(exact * 100_000 * penalty.query().GRID)]),
        stddev=1.0,
    )
    settings = {**QUICK, "num_particles": 1_000, "epochs": 100}
    plain = ParticleGradientDescent(**settings).fit(DOMAIN, measured(table))
    engine = ParticleGradientDescent(**settings, penalties=(penalty,))
    assert engine.statistics(DOMAIN) == (penalty.query(),)
    protected = engine.fit(DOMAIN, [*measured(table), statistic])
    distance = lambda model: abs(share @ model.marginal(("c",)) - exact)
    # Over seeds it ends 0.047 to 0.096 away, with either kernel.
    assert distance(protected) > 0.02
    assert distance(plain) < 0.004
    assert errors(protected, table)[0] < 0.1  # the pair (a, b), which theta does not name


def test_rows_use_each_particle_once_and_marginals_follow_the_clique():
    codes = np.array([[i % 2, i % 3, i % 4] for i in range(12)])
    model = Particles(domain=DOMAIN, codes=codes)
    for num_rows in (0, 1, 12, 30):
        rows = model.sample(num_rows, seed=5)
        assert rows.shape == (num_rows, 3)
        assert rows.dtype == np.int64
        uses = [(rows == code).all(axis=1).sum() for code in codes]
        assert max(uses) - min(uses) <= 1
        assert np.array_equal(rows, model.sample(num_rows, seed=5))
    assert not np.array_equal(model.sample(12, seed=5), model.sample(12, seed=6))
    model = Particles(domain=DOMAIN, codes=np.array([[1, 2, 3], [0, 2, 3], [0, 2, 1], [0, 0, 1]]))
    assert model.marginal(("c", "a")).tolist() == [[0, 0], [0.5, 0], [0, 0], [0.25, 0.25]]
    assert model.codes.dtype == np.uint8
    assert not model.codes.flags.writeable


def test_a_descent_is_longer_where_nothing_moves_the_particles_afterwards():
    few = {"num_particles": 50, "enable_gpu": False}
    penalty = DifferentiablePenalty(function=lambda at: at["a"].mean())
    for changes, expected in (
        ({}, 30),
        ({"local_search": None}, 100),
        ({"penalties": (penalty,)}, 100),
        ({"penalties": (penalty,), "epochs": 7}, 7),
    ):
        model = ParticleGradientDescent(**few, **changes).fit(DOMAIN, measured(joint()))
        assert max(model.losses) == expected


@given(st.integers(1, 10**8), st.integers(1, 5_000))
def test_by_default_as_many_rows_use_each_particle_equally_often(total, num_tables):
    number = default_number(float(total), num_tables)
    decks = -(-total // number)
    assert 5_000 <= number <= 100_000
    assert number == 5_000 or number * decks - total < decks
    assert number * num_tables <= max(11_000_000, 20_000 * num_tables)


def test_without_a_number_the_default_is_taken():
    measurements = measured(joint(), num_records=250_001)
    model = ParticleGradientDescent(epochs=1, enable_gpu=False).fit(DOMAIN, measurements)
    assert model.block == default_number(250_001.0, 3) == 83_334


AXES = [[0], [3, 1], [2, 0, 1], [1, 2], [0, 3]]


def targets():
    return PackedTargets.of(
        AXES, [torch.full((1, len(those)), 0.5) for those in AXES], [torch.ones(1)] * len(AXES)
    )


def draws(num_epochs=3, **changes):
    settings = {"batch_size": 2, "num_slices": 4, "stratified": True, **changes}
    generator = torch.Generator().manual_seed(0)
    return list(draw_steps(targets(), 5, range(num_epochs), num_epochs, generator, **settings))


@pytest.mark.parametrize("batch_size", [1, 2, 5, 9])
def test_each_epoch_visits_every_table_once_in_steps_of_one_shape(batch_size):
    steps = draws(batch_size=batch_size)
    per_epoch = -(-5 // min(batch_size, 5))
    assert len(steps) == 3 * per_epoch
    assert len({tuple(step.directions.shape) for step in steps}) == 1
    for epoch in range(3):
        own = steps[epoch * per_epoch : (epoch + 1) * per_epoch]
        tables = torch.cat([step.tables for step in own])
        assert sorted(tables[tables >= 0].tolist()) == [0, 1, 2, 3, 4]
    assert [step.elapsed for step in steps] == pytest.approx(
        [index / len(steps) for index in range(len(steps))]
    )


@pytest.mark.parametrize("stratified", [True, False])
def test_directions_are_unit_vectors_in_the_dimensions_of_the_table(stratified):
    for step in draws(stratified=stratified):
        for table, directions in zip(step.tables.tolist(), step.directions, strict=True):
            dim = len(AXES[table]) if table >= 0 else 0
            assert not directions[:, dim:].any()
            if dim:
                assert directions.norm(dim=1) == pytest.approx(torch.ones(4))


def test_counts_say_how_many_tables_hold_an_attribute():
    for step in draws():
        held = [axis for table in step.tables.tolist() if table >= 0 for axis in AXES[table]]
        every = torch.tensor([3, 3, 2, 2, 1])  # the last one is in none
        assert (step.shares * every).tolist() == [held.count(axis) for axis in range(5)]


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


def test_displacements_are_gradients():
    particles, centers, weights, directions = random_problem()
    particles.requires_grad_()
    sliced_w2_squared(particles, centers, weights, directions).backward()
    expected = -len(particles) / 2 * particles.grad
    found = sliced_w2_displacement(particles.detach(), centers, weights, directions)
    torch.testing.assert_close(found, expected, rtol=1e-10, atol=1e-14)
