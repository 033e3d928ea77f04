"""The projection step, compiled, as published, and in batches, on a device where there is one."""

from functools import partial

import numpy as np
import pytest
import torch
from devices import DEVICES, needs_numba, seeded, skip_without
from references.wasserstein import cell_centers, project, sliced_w1
from scipy.optimize import linprog

from sdv_privpgd.synthesize.particles import batched_projection
from sdv_privpgd.synthesize.particles.batched_projection import BatchedProjection
from sdv_privpgd.synthesize.particles.kernels import SEGMENT_STEPS
from sdv_privpgd.synthesize.particles.paper import SoftmaxProjection
from sdv_privpgd.synthesize.particles.projection import CompiledProjection, SignedTable, balanced
from sdv_privpgd.synthesize.particles.steps import independent_directions, stratified_directions

F64 = torch.float64
COMPILED = CompiledProjection(max_steps=1_000)
BOTH = pytest.mark.parametrize(
    "projection", [COMPILED, SoftmaxProjection(num_slices=1, max_steps=900)]
)


@pytest.fixture(params=[pytest.param("compiled", marks=needs_numba), *DEVICES])
def solver(request):
    """Makes a certified projection of some settings."""
    if request.param == "compiled":
        return CompiledProjection
    return partial(BatchedProjection, device=str(skip_without(request.param)))


def noisy_table(shape=(6, 5), stddev=0.05, seed=0):
    """A smooth table plus noise, as one signed measure of mass 1, and the table."""
    generator = np.random.default_rng(seed)
    table = np.exp(-8 * np.subtract.outer(*(np.linspace(0, 1, k) for k in shape)) ** 2)
    table = torch.tensor(table.ravel() / table.sum())
    return balanced(table + torch.tensor(generator.normal(size=len(table)) * stddev)), table


def noise(shape, stddev, seed=1):
    values = np.random.default_rng(seed).normal(size=np.prod(shape, dtype=int)) * stddev
    return balanced(torch.tensor(values))


def mixed_tables():
    """Tables of many shapes and dimensions; the last holds probabilities already."""
    shapes = [(6, 5), (9,), (1,), (2, 3, 4), (8, 12), (1, 1), (7, 4), (16, 8)]
    tables = [
        SignedTable(cell_centers(shape), noise(shape, (0.1, 0.01)[seed % 2], seed))
        for seed, shape in enumerate(shapes)
    ]
    ridge = torch.arange(1, 31, dtype=F64) ** 2
    return [*tables, SignedTable(cell_centers((5, 6)), ridge / ridge.sum())]


def optimal_distance(centers, values, directions):
    """Eq. 5 as a linear program: variables w and, per slice and gap, the absolute values."""
    positions, order = (directions @ centers.T).sort(dim=1)
    gaps = (positions.diff(dim=1) / len(directions)).numpy()
    num_cells = len(values)
    sums = []
    for row in order.numpy():
        indicator = np.zeros((num_cells - 1, num_cells))
        for j in range(num_cells - 1):
            indicator[j, row[: j + 1]] = 1
        sums.append(indicator)
    sums = np.concatenate(sums)
    levels = sums @ values.numpy()
    slack = -np.eye(len(sums))
    found = linprog(
        np.concatenate([np.zeros(num_cells), gaps.ravel()]),
        A_ub=np.block([[sums, slack], [-sums, slack]]),
        b_ub=np.concatenate([levels, -levels]),
        A_eq=np.concatenate([np.ones(num_cells), np.zeros(len(sums))])[None],
        b_eq=[1.0],
    )
    assert found.success
    return found.fun


@pytest.mark.parametrize("shape", [(12,), (20,), (4, 3), (2, 2, 3)])
def test_the_certificate_encloses_the_optimum_of_the_linear_program(shape, solver):
    centers, values = cell_centers(shape), noise(shape, 0.2)
    own = solver(num_slices=4, max_steps=5_000, tolerance=0.01)
    (found,) = own.solve_all([SignedTable(centers, values)], seeded())
    num_slices = 4 if len(shape) > 1 else 1
    directions = stratified_directions(num_slices, len(shape), seeded(), dtype=F64)
    optimum = optimal_distance(centers, values, directions)
    # Both bounds are evaluated in float64: only rounding may put them on the wrong side.
    assert found.lower_bound <= optimum * (1 + 1e-9)
    assert found.distance >= optimum * (1 - 1e-9)
    assert found.distance - found.lower_bound <= 1e-5 + 0.01 * found.distance
    at_solution = sliced_w1(centers, found.probabilities, values, directions)
    assert float(at_solution) == pytest.approx(found.distance, rel=1e-9)


@pytest.mark.long
def test_many_steps_come_within_one_percent_of_the_optimum(solver):
    values, _ = noisy_table()
    table = SignedTable(cell_centers((6, 5)), values)
    (found,) = solver(num_slices=8, max_steps=1_000).solve_all([table], seeded())
    directions = stratified_directions(8, 2, seeded(), dtype=F64)
    assert found.distance <= 1.01 * optimal_distance(*table, directions)
    for stddev in (0.002, 0.02):
        values, _ = noisy_table((16, 16), stddev)
        table = SignedTable(cell_centers((16, 16)), values)
        (found,) = solver(max_steps=1_000).solve_all([table], seeded())
        long = solver(max_steps=5_000, tolerance=0.0, precision=0.0)
        assert found.distance <= 1.01 * long.solve_all([table], seeded())[0].distance


def test_tables_projected_together_get_what_each_gets_alone(solver, monkeypatch):
    tables, generator, own = mixed_tables(), seeded(), solver(max_steps=100)
    together = own.solve_all(tables, seeded())
    monkeypatch.setattr(batched_projection, "_PLACES_AT_ONCE", 1)  # every table alone
    drawn = seeded()
    for table, (weights, distance, lower_bound) in zip(tables, together, strict=True):
        alone = project(own, *table, generator)
        torch.testing.assert_close(weights, alone, rtol=0, atol=1e-5)
        assert weights.device.type == "cpu"
        assert weights.min() >= 0
        assert float(weights.sum()) == pytest.approx(1.0, abs=1e-12)
        dim = table.centers.shape[1]
        directions = stratified_directions(32 if dim > 1 else 1, dim, drawn, dtype=F64)
        at_solution = sliced_w1(table.centers, weights, table.values, directions)
        assert float(at_solution) == pytest.approx(distance, rel=1e-9, abs=1e-12)
        assert lower_bound <= distance + 1e-12
    torch.testing.assert_close(together[-1].probabilities, tables[-1].values, rtol=0, atol=1e-12)
    assert own.project_all([], seeded()) == []


@needs_numba
@pytest.mark.parametrize("device", DEVICES)
def test_batches_agree_with_the_compiled_projection(device):
    skip_without(device)
    tables, batched = mixed_tables(), BatchedProjection(max_steps=1_000, device=device)
    both = batched.solve_all(tables, seeded()), COMPILED.solve_all(tables, seeded())
    for ours, theirs in zip(*both, strict=True):
        # The same iterates up to the rounding of float32.
        assert ours.distance == pytest.approx(theirs.distance, rel=1e-3, abs=1e-9)
        assert ours.lower_bound == pytest.approx(theirs.lower_bound, rel=1e-2, abs=1e-9)
        assert float((ours.probabilities - theirs.probabilities).abs().sum()) < 1e-3


def test_progress_of_batches_shows_every_table_once():
    seen = []

    def progress(items, stage):
        for item in items:
            yield item
            seen.append((stage, len(item.values)))

    tables = mixed_tables()
    BatchedProjection(max_steps=25).project_all(tables, seeded(), progress)
    assert seen == [("project", len(table.values)) for table in tables]


@BOTH
def test_two_points_give_the_nearer_end(projection):
    centers = torch.tensor([[0.25], [0.75]], dtype=F64)
    found = project(projection, centers, torch.tensor([1.2, -0.2], dtype=F64), seeded())
    # Softmax never reaches a corner; its logits move by at most lr * steps.
    assert found.tolist() == pytest.approx([1.0, 0.0], abs=2e-3)


def test_missing_mass_is_spread_evenly():
    values, _ = noisy_table()
    centers = cell_centers((6, 5))
    found, plain = (project(COMPILED, centers, each, seeded()) for each in (values + 0.01, values))
    torch.testing.assert_close(found, plain, rtol=0, atol=1e-6)


def test_no_cell_is_frozen_at_the_start():
    # The authors' code starts negative cells at 1e-9, where the gradient of softmax, at most the
    # probability itself, is lost beside Adam's eps of 1e-8.
    values, _ = noisy_table()
    start = project(SoftmaxProjection(max_steps=0), cell_centers((6, 5)), values, seeded())
    assert start.min() > 1e-4


def published_in_torch(projection, centers, values, generator):
    """Section 4.1 by autograd and torch's own Adam, in float64."""
    seed = int(torch.randint(2**63 - 1, (), generator=generator))
    own = torch.Generator().manual_seed(seed)
    start = project(SoftmaxProjection(max_steps=0), centers, values, seeded())
    logits = start.log().requires_grad_()
    optimizer = torch.optim.Adam([logits], lr=projection.learning_rate)
    schedule = torch.optim.lr_scheduler.StepLR(optimizer, projection.decay_every, projection.decay)
    while (left := projection.max_steps - schedule.last_epoch) > 0:
        num_steps, dim = min(left, SEGMENT_STEPS), centers.shape[1]
        drawn = independent_directions(
            num_steps * projection.num_slices, dim, own, dtype=torch.float64
        )
        for directions in drawn.split(projection.num_slices):
            optimizer.zero_grad()
            sliced_w1(centers, logits.softmax(0), values, directions).backward()
            optimizer.step()
            schedule.step()
    return logits.detach().softmax(0)


@pytest.mark.parametrize("shape", [(12,), (6, 5), (3, 4, 2), (16, 12)])
def test_the_published_projection_takes_the_steps_of_autograd_and_torchs_adam(shape):
    centers = cell_centers(shape)
    values = np.random.default_rng(3).normal(size=len(centers)) * 0.1 + 1 / len(centers)
    values = balanced(torch.tensor(values))
    projection = SoftmaxProjection(num_slices=7, max_steps=12, decay_every=4)
    found = project(projection, centers, values, seeded(5))
    expected = published_in_torch(projection, centers, values, seeded(5))
    # Twelve steps of about 0.1 in the logits: a wrong sign of one cell would show as 0.1.
    torch.testing.assert_close(found, expected, rtol=1e-4, atol=0)
    start = project(SoftmaxProjection(max_steps=0), centers, values, seeded())
    assert float((found / start).log().abs().max()) > 0.3


@BOTH
def test_a_table_of_one_cell_is_certain(projection):
    found = project(
        projection, torch.tensor([[0.5]], dtype=F64), torch.tensor([0.9], dtype=F64), seeded()
    )
    assert found.tolist() == [1.0]
