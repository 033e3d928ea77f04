"""What every back end of the descent keeps to: the sort is exact, the histogram within its bound.

A new one is one line of ``BACK_ENDS``.
"""

import pytest
import torch
from generators import seeded
from references.wasserstein import cell_centers, quantile_targets, sliced_w2_displacement

from sdv_privpgd.synthesize.particles import binned_displacement, compiler
from sdv_privpgd.synthesize.particles import kernels as reference
from sdv_privpgd.synthesize.particles.kernels import KERNELS, PackedTargets, Visit, choose_kernel
from sdv_privpgd.synthesize.particles.steps import stratified_directions

AXES = [[0], [3, 1], [2, 0, 1], [1, 2]]
CELLS = [3, 20, 33, 1]
NUM_BINS = 64
BACK_ENDS = ("torch", "numba")
SHAPES = [(6,), (4, 5), (3, 2, 4), (7, 2)]
PARTICLES = 3_000


def random_targets(seed=0):
    generator = seeded(seed)
    return PackedTargets.of(
        AXES,
        [torch.rand(n, len(a), generator=generator) for n, a in zip(CELLS, AXES, strict=True)],
        [torch.rand(n, generator=generator) + 0.01 for n in CELLS],
    )


def random_directions(tables, num_slices, seed=0):
    directions = torch.zeros(len(tables), num_slices, 3)
    for row, table in enumerate(tables):
        if table >= 0:
            dim = len(AXES[table])
            drawn = stratified_directions(num_slices, dim, seeded(seed + row))
            directions[row, :, :dim] = drawn
    return directions


def one_slice(num_particles, table, seed=0):
    positions = torch.rand(4, num_particles, generator=seeded(seed))
    return positions, random_targets(), torch.tensor([table]), random_directions([table], 1, seed)


def along(total, directions, table):
    """The way along the only slice, back from the displacement: theta has length 1."""
    theta = directions[0, 0, : len(AXES[table])].double()
    return theta @ total[AXES[table]].double()


def projections(positions, directions, table):
    return directions[0, 0, : len(AXES[table])].double() @ positions[AXES[table]].double()


def bin_width(directions, table, num_bins):
    return float(directions[0, 0, : len(AXES[table])].abs().sum()) / (num_bins - 1)


def exact_targets(positions, targets, directions, table):
    """The targets of all ranks, in order."""
    cells = slice(int(targets.offsets[table]), int(targets.offsets[table + 1]))
    dim = len(AXES[table])
    lines = directions[0, :, :dim].double() @ targets.centers[cells, :dim].double().T
    return quantile_targets(lines, targets.weights[cells], positions.shape[1])[0]


def random_visits(num_visits, batch, num_slices):
    generator = seeded()
    for step in range(num_visits):
        tables = torch.randperm(len(AXES), generator=generator)[:batch]
        rates = torch.rand(4, generator=generator)
        yield Visit(tables, random_directions(tables.tolist(), num_slices, step), rates)


@pytest.mark.parametrize("table", range(4))
def test_the_reference_is_the_gradient_of_sliced_w2(table):
    positions, targets = torch.rand(4, 19, generator=seeded()).double(), random_targets()
    directions = random_directions([table], 3)
    total, losses = reference.displacement(positions, targets, torch.tensor([table]), directions)
    cells = slice(int(targets.offsets[table]), int(targets.offsets[table + 1]))
    axes, dim = AXES[table], len(AXES[table])
    moved = sliced_w2_displacement(
        positions[axes].T,
        targets.centers[cells, :dim].double(),
        targets.weights[cells],
        directions[0, :, :dim].double(),
    )
    torch.testing.assert_close(total[axes], moved.T, rtol=1e-12, atol=1e-14)
    others = [axis for axis in range(4) if axis not in axes]
    assert not total[others].any()
    assert losses.shape == (1,)


@pytest.mark.parametrize("num_particles", [1, 37, 2048, 5000])
@pytest.mark.parametrize("table", range(4))
def test_a_target_lies_among_the_exact_ones_of_particles_within_two_bins(table, num_particles):
    positions, targets, tables, directions = one_slice(num_particles, table)
    total, _ = binned_displacement.displacement(
        positions, targets, tables, directions, num_bins=NUM_BINS
    )
    projected = projections(positions, directions, table)
    goals = along(total, directions, table) + projected
    exact = exact_targets(positions, targets, directions, table)
    ordered = projected.sort().values
    reach = 2 * bin_width(directions, table, NUM_BINS)
    lowest = torch.searchsorted(ordered, projected - reach)
    highest = torch.searchsorted(ordered, projected + reach, right=True) - 1
    assert (goals >= exact[lowest] - 1e-6).all()
    assert (goals <= exact[highest] + 1e-6).all()
    # And so does the target of the exact rank.
    order = projected.argsort(stable=True)
    assert (exact >= exact[lowest[order]]).all()
    assert (exact <= exact[highest[order]]).all()


@pytest.mark.parametrize("table", range(4))
def test_the_ways_sum_to_the_exact_sum(table):
    positions, targets, tables, directions = one_slice(5000, table)
    total, _ = binned_displacement.displacement(
        positions, targets, tables, directions, num_bins=NUM_BINS
    )
    exact, _ = reference.displacement(positions, targets, tables, directions)
    # Float32 particles: relative rounding 6e-8 each.
    torch.testing.assert_close(
        total.double().mean(dim=1), exact.double().mean(dim=1), rtol=0, atol=1e-6
    )


@pytest.mark.parametrize("num_bins", [16, 256, 4096])
@pytest.mark.parametrize("table", range(4))
def test_the_loss_exceeds_the_exact_one_by_two_bins_at_most(table, num_bins):
    positions, targets, tables, directions = one_slice(3000, table)
    _, losses = binned_displacement.displacement(
        positions, targets, tables, directions, num_bins=num_bins
    )
    _, exact = reference.displacement(positions, targets, tables, directions)
    width = bin_width(directions, table, num_bins)
    assert float(losses[0]) ** 0.5 <= float(exact[0]) ** 0.5 + 2 * width + 1e-6
    if num_bins == 4096:
        torch.testing.assert_close(losses, exact, rtol=0.01, atol=1e-6)


@pytest.mark.parametrize(("tables", "num_slices"), [([2, 0, -1, 1, 3], 3), ([1], 1), ([-1], 2)])
def test_a_batch_is_the_sum_of_its_tables_and_means_over_slices(tables, num_slices):
    positions, targets = torch.rand(4, 3000, generator=seeded()), random_targets()
    directions = random_directions(tables, num_slices)
    total, losses = binned_displacement.displacement(
        positions, targets, torch.tensor(tables), directions
    )
    expected, each = torch.zeros(4, 3000), []
    for row, table in enumerate(tables):
        for line in range(num_slices):
            one, loss = binned_displacement.displacement(
                positions, targets, torch.tensor([table]), directions[row : row + 1, line, None]
            )
            expected += one / num_slices
            each.append(loss / num_slices)
    torch.testing.assert_close(total, expected, rtol=0, atol=1e-6)
    torch.testing.assert_close(
        losses, torch.cat(each).view(len(tables), num_slices).sum(dim=1), rtol=1e-5, atol=0
    )
    sorted_total, sorted_losses = reference.displacement(
        positions, targets, torch.tensor(tables), directions
    )
    torch.testing.assert_close(losses, sorted_losses, rtol=0.01, atol=1e-6)
    assert (total - sorted_total).abs().mean() < 1e-3


def test_particles_at_the_target_stay_and_those_on_one_point_part():
    shape = (8, 9)
    centers = cell_centers(shape)
    targets = PackedTargets.of([[0, 1]], [centers], [torch.ones(72)])
    positions = centers.T.float().repeat_interleave(50, dim=1)
    positions = positions[:, torch.randperm(3600, generator=seeded())].contiguous()
    for seed in range(20):
        directions = stratified_directions(1, 2, seeded(seed))[None]
        moved, losses = binned_displacement.displacement(
            positions, targets, torch.tensor([0]), directions
        )
        width = float(directions.abs().sum()) / (binned_displacement.NUM_BINS - 1)
        assert moved.norm(dim=0).max() <= 2 * width + 1e-6
        assert float(losses[0]) <= (2 * width + 1e-6) ** 2
    # Half of them belong to either cell. If all of a bin had one target, they would never part.
    targets = PackedTargets.of([[0]], [torch.tensor([[0.25], [0.75]])], [torch.ones(2)])
    visit = Visit(torch.tensor([0]), torch.ones(1, 1, 1), torch.ones(1))
    found = binned_displacement.descend(torch.full((1, 4000), 0.4), targets, [visit] * 20)
    assert (found < 0.3).sum() == pytest.approx(2000, abs=20)
    assert (found > 0.7).sum() == pytest.approx(2000, abs=20)


@pytest.mark.parametrize("kernel", [reference, binned_displacement])
@pytest.mark.parametrize(("batch", "num_slices"), [(1, 1), (3, 2)])
def test_a_descent_takes_the_displacements_one_by_one(kernel, batch, num_slices):
    start, targets = torch.rand(4, 2500, generator=seeded()), random_targets()
    visits = list(random_visits(90, batch, num_slices))
    positions = start.clone()
    for visit in visits:
        total, _ = kernel.displacement(positions, targets, visit.tables, visit.directions)
        positions = (positions + visit.rates[:, None] * total).clamp(0, 1)
    untouched = start.clone()
    found = kernel.descend(start, targets, iter(visits))
    assert torch.equal(found, positions)
    assert torch.equal(start, untouched)
    assert torch.equal(kernel.descend(start, targets, []), start)


def test_the_bits_do_not_depend_on_the_number_of_threads(monkeypatch):
    monkeypatch.setattr(binned_displacement, "_THREAD_WORK", 1)
    start, targets = torch.rand(4, 9000, generator=seeded()), random_targets()
    found = []
    for num_threads in (1, 2, 3):
        monkeypatch.setattr(compiler.numba.config, "NUMBA_NUM_THREADS", num_threads)
        total, losses = binned_displacement.displacement(
            start, targets, torch.tensor([2, 1]), random_directions([2, 1], 2)
        )
        end = binned_displacement.descend(start, targets, random_visits(40, 2, 2))
        found.append((total, losses, end))
    for other in found[1:]:
        for ours, theirs in zip(found[0], other, strict=True):
            assert torch.equal(ours, theirs)


@pytest.fixture(scope="module", params=BACK_ENDS)
def back_end(request):
    return choose_kernel(request.param, enable_gpu=True)


@pytest.fixture
def targets():
    weights = [torch.rand(len(cell_centers(shape)), generator=seeded(1)) ** 3 for shape in SHAPES]
    return PackedTargets.of(AXES, [cell_centers(shape) for shape in SHAPES], weights)


def cloud(seed=0):
    return torch.rand(4, PARTICLES, generator=seeded(seed))


def moved(back_end, positions, targets, tables, directions):
    total, losses = back_end.displacement(
        positions.to(back_end.device), targets.to(back_end.device), torch.tensor(tables), directions
    )
    return total.cpu(), losses.cpu()


def visits(number):
    for step in range(number):
        table = step % len(AXES)
        rates = torch.zeros(4).index_fill_(0, torch.tensor(AXES[table]), 0.5)
        yield Visit(torch.tensor([table]), random_directions([table], 2, step), rates)


def descended(back_end, positions, targets, steps):
    device = back_end.device
    return back_end.descend(positions.to(device), targets.to(device), steps).cpu()


def test_every_back_end_is_tested_and_chosen_by_what_there_is(monkeypatch):
    assert set(BACK_ENDS) == set(KERNELS) - {"auto"}
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    assert choose_kernel("auto", enable_gpu=True).displacement is binned_displacement.displacement
    assert choose_kernel("torch", enable_gpu=True).displacement is reference.displacement
    monkeypatch.setattr(reference, "HAS_NUMBA", False)
    assert choose_kernel("auto", enable_gpu=True).descend is reference.descend


def test_a_descent_comes_closer_with_the_same_bits_for_the_same_visits_alone(back_end, targets):
    start = cloud()
    before = start.clone()
    end = descended(back_end, start, targets, visits(60))
    assert torch.equal(start, before)
    assert end.shape == start.shape
    assert ((end >= 0) & (end <= 1)).all()
    every = list(range(len(AXES)))
    far, near = (
        moved(back_end, each, targets, every, random_directions(every, 8))[1]
        for each in (start, end)
    )
    assert near.sum() < far.sum() / 2  # what is left is what the tables disagree about
    first, second = (descended(back_end, cloud(), targets, visits(8)) for _ in range(2))
    assert torch.equal(first, second)
    assert not torch.equal(first, descended(back_end, cloud(1), targets, visits(8)))
    assert torch.equal(descended(back_end, cloud(), targets, []), cloud())
    total, losses = moved(back_end, cloud(), targets, [-1], random_directions([-1], 2))
    assert not total.any()
    assert not losses.any()
