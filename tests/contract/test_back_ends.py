"""What every back end of the descent keeps to. A new one is one line of ``BACK_ENDS``."""

import pytest
import torch
from generators import seeded
from references.wasserstein import cell_centers

from sdv_privpgd.synthesize.particles.draws import stratified_directions
from sdv_privpgd.synthesize.particles.kernels import KERNELS, PackedTargets, Visit, choose_kernel

BACK_ENDS = ("torch", "numba")

AXES = [[0], [3, 1], [2, 0, 1], [1, 2]]
SHAPES = [(6,), (4, 5), (3, 2, 4), (7, 2)]
PARTICLES = 3_000


@pytest.fixture(scope="module", params=BACK_ENDS)
def back_end(request):
    return choose_kernel(request.param, enable_gpu=True)


@pytest.fixture
def targets():
    weights = [torch.rand(len(cell_centers(shape)), generator=seeded(1)) ** 3 for shape in SHAPES]
    return PackedTargets.of(AXES, [cell_centers(shape) for shape in SHAPES], weights)


def directions_of(tables, num_slices, seed=0):
    found = torch.zeros(len(tables), num_slices, 3)
    for row, each in enumerate(tables):
        if each >= 0:
            dim = len(AXES[each])
            found[row, :, :dim] = stratified_directions(num_slices, dim, seeded(seed + row))
    return found


def cloud(seed=0):
    return torch.rand(4, PARTICLES, generator=seeded(seed))


def moved(back_end, positions, targets, tables, directions):
    total, losses = back_end.displacement(
        positions.to(back_end.device), targets.to(back_end.device), torch.tensor(tables), directions
    )
    return total.cpu(), losses.cpu()


def visits(number, rate=0.5):
    for step in range(number):
        table = step % len(AXES)
        rates = torch.zeros(4)
        rates[AXES[table]] = rate
        yield Visit(torch.tensor([table]), directions_of([table], 2, step), rates)


def descended(back_end, positions, targets, steps):
    device = back_end.device
    return back_end.descend(positions.to(device), targets.to(device), steps).cpu()


def test_every_back_end_is_tested():
    assert set(BACK_ENDS) == set(KERNELS) - {"auto"}


@pytest.mark.parametrize("tables", [[0], [2], [1, 3], [2, 0, -1, 1]], ids=str)
def test_the_way_and_the_losses_are_those_of_the_sort(back_end, targets, tables):
    """Ranks from histograms are off by two of 4,096 bins; a target is off where ranks are."""
    directions = directions_of(tables, 3)
    total, losses = moved(back_end, cloud(), targets, tables, directions)
    exact, exactly = moved(
        choose_kernel("torch", enable_gpu=False), cloud(), targets, tables, directions
    )
    assert total.shape == (4, PARTICLES)
    assert losses.shape == (len(tables),)
    torch.testing.assert_close(losses, exactly.to(losses.dtype), rtol=0.01, atol=1e-6)
    assert (total - exact).abs().mean() < 1e-3
    assert exact.abs().mean() > 1e-2
    others = [axis for axis in range(4) if all(axis not in AXES[q] for q in tables if q >= 0)]
    assert not total[others].any()


def test_no_table_is_no_way(back_end, targets):
    total, losses = moved(back_end, cloud(), targets, [-1], directions_of([-1], 2))
    assert not total.any()
    assert not losses.any()


def test_a_descent_leaves_its_start_and_comes_closer(back_end, targets):
    start = cloud()
    before = start.clone()
    end = descended(back_end, start, targets, visits(60))
    assert torch.equal(start, before)
    assert end.shape == start.shape
    assert ((end >= 0) & (end <= 1)).all()
    every = list(range(len(AXES)))
    far, near = (
        moved(back_end, each, targets, every, directions_of(every, 8))[1] for each in (start, end)
    )
    assert near.sum() < far.sum() / 2  # what is left is what the tables disagree about


def test_without_visits_nothing_moves(back_end, targets):
    assert torch.equal(descended(back_end, cloud(), targets, []), cloud())


def test_the_same_visits_lead_to_the_same_bits(back_end, targets):
    first, second = (descended(back_end, cloud(), targets, visits(8)) for _ in range(2))
    assert torch.equal(first, second)
    assert not torch.equal(first, descended(back_end, cloud(1), targets, visits(8)))
