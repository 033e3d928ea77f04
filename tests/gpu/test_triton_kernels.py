"""The Triton kernels: on a device where there is one (-m gpu), and in Triton's interpreter.

A machine with a device need not have what the other tests need:
``pytest -c /dev/null --noconftest tests/gpu``.
"""

import numpy as np
import pytest
import torch
from interpreted import (
    INTERPRETED,
    assert_passes_in_the_interpreter,
    device_or_skip,
    needs_numba,
    needs_triton,
    seeded,
    subprocess_of,
)

from sdv_privpgd.synthesize.particles.directions import stratified_directions
from sdv_privpgd.synthesize.particles.kernels.targets import PackedTargets, Visit
from sdv_privpgd.synthesize.particles.references import displacement as reference
from sdv_privpgd.synthesize.particles.references.wasserstein import (
    quantile_targets,
    sliced_w2_displacement,
)


@pytest.fixture
def device():
    return device_or_skip()


AXES = [[0, -1, -1], [3, 1, -1], [2, 0, 1], [1, 2, -1]]
CELLS = [3, 20, 33, 1]  # ragged; none is a power of two but the table of a single cell


def random_targets(seed=0):
    generator = seeded(seed)
    axes = [[axis for axis in those if axis >= 0] for those in AXES]
    return PackedTargets.of(
        axes,
        [
            torch.rand(cells, len(those), generator=generator)
            for cells, those in zip(CELLS, axes, strict=True)
        ],
        [torch.rand(cells, generator=generator) + 0.01 for cells in CELLS],
    )


def random_directions(tables, num_slices, seed=0):
    directions = torch.zeros(len(tables), num_slices, 3)
    generator = seeded(seed)
    for row, table in enumerate(tables):
        dim = sum(axis >= 0 for axis in AXES[table]) if table >= 0 else 0
        if dim:
            directions[row, :, :dim] = stratified_directions(num_slices, dim, generator)
    return directions


def slices(positions, targets, tables, directions):
    """Columns, direction, cells and weights of each slice, and the batch's table it belongs to."""
    for row, table in enumerate(tables):
        if table < 0:
            continue
        axes = [axis for axis in AXES[table] if axis >= 0]
        cells = slice(int(targets.offsets[table]), int(targets.offsets[table + 1]))
        centers, weights = targets.centers[cells, : len(axes)], targets.weights[cells]
        for theta in directions[row, :, : len(axes)]:
            yield row, axes, theta.double(), centers.double(), weights.double()


def bins_of(projected, theta, num_bins):
    low, high = theta.clamp(max=0).sum(), theta.clamp(min=0).sum()
    index = np.arange(len(projected)) % 2048
    shifts = (index * 2654435769 % 2**32 // 256) / 2**24
    exact = ((projected - low) / (high - low) * (num_bins - 1)).numpy() + shifts
    assert np.abs(exact - np.rint(exact)).min() > 1e-4, "rounding decides: take another seed"
    return np.floor(exact).astype(int)


def binned_displacement(positions, targets, tables, directions, num_bins):
    """The definition in float64, each bin's mean as a sum over the overlaps with all cells."""
    total = np.zeros(positions.shape)
    losses = np.zeros(len(tables))
    num_slices = directions.shape[1]
    for row, axes, theta, centers, weights in slices(positions, targets, tables, directions):
        projected = theta @ positions[axes].double()
        bins = bins_of(projected, theta, num_bins)
        ends = np.cumsum(np.bincount(bins, minlength=num_bins)) / len(bins)
        starts = np.append(0, ends[:-1])
        cells = (centers @ theta).numpy()
        order = cells.argsort()
        upper = np.cumsum(weights.numpy()[order]) / weights.sum().item()
        lower = np.append(0, upper[:-1])
        overlap = np.minimum(ends[:, None], upper) - np.maximum(starts[:, None], lower)
        goals = overlap.clip(0) @ cells[order] / np.maximum(ends - starts, 1e-300)
        way = goals[bins] - projected.numpy()
        for axis, component in zip(axes, theta.tolist(), strict=True):
            total[axis] += component * way / num_slices
        losses[row] += np.mean(way**2) / num_slices
    return total, losses


def run(positions, targets, tables, directions, device, num_bins):
    from sdv_privpgd.synthesize.particles.cuda.displacement import displacement

    total, losses = displacement(
        positions.to(device),
        targets.to(device),
        torch.tensor(tables),
        directions,
        num_bins=num_bins,
    )
    assert total.dtype == torch.float32
    assert losses.dtype == torch.float64
    return total.cpu(), losses.cpu()


@needs_triton
@pytest.mark.gpu
@pytest.mark.parametrize(
    ("num_particles", "num_slices", "tables", "num_bins"),
    [(700, 1, [1], 64), (300, 3, [2, 0, -1, 1, 3], 300), (37, 2, [0], 7), (1, 2, [3, 2], 16)],
    ids=["a pair", "all dimensions", "a single column", "one particle"],
)
def test_the_device_computes_the_binned_displacement(
    num_particles, num_slices, tables, num_bins, device
):
    positions = torch.rand(4, num_particles, generator=seeded(1))
    targets, directions = random_targets(), random_directions(tables, num_slices)
    total, losses = run(positions, targets, tables, directions, device, num_bins)
    expected = binned_displacement(positions, targets, tables, directions, num_bins)
    # float32 positions and goals of size 1, at most 12 of them added up
    np.testing.assert_allclose(total, expected[0], rtol=0, atol=3e-6)
    np.testing.assert_allclose(losses, expected[1], rtol=1e-5, atol=1e-9)


@needs_triton
@pytest.mark.gpu
def test_the_device_and_the_processor_agree(device):
    cpu = pytest.importorskip("sdv_privpgd.synthesize.particles.kernels.cpu", exc_type=ImportError)
    positions, tables = torch.rand(4, 5000, generator=seeded(5)), [2, 0, 3, 1]
    targets, directions = random_targets(), random_directions(tables, 3)
    total, losses = run(positions, targets, tables, directions, device, 256)
    other = cpu.displacement(positions, targets, torch.tensor(tables), directions, num_bins=256)
    # The same operations in the same order, but for the integrals of the goals, in float64.
    np.testing.assert_allclose(total, other[0], rtol=0, atol=1e-6)
    np.testing.assert_allclose(losses, other[1], rtol=1e-6)


@needs_triton
@pytest.mark.gpu
@pytest.mark.parametrize(("place", "goals"), [(0.0, 1), (0.3, 2), (1.0, 1)])
def test_particles_on_one_point_lie_in_two_bins_at_most(place, goals, device):
    positions = torch.full((4, 1030), place)
    targets, directions = random_targets(), torch.tensor([[[1.0, 0.0, 0.0]]])
    total, _ = run(positions, targets, [1], directions, device, 32)
    cells = slice(*targets.offsets[1:3].tolist())
    mean = float(targets.weights[cells] @ targets.centers[cells, 0].double())
    assert len(total[3].unique()) == goals
    np.testing.assert_allclose(total[3].double().mean(), mean - place, rtol=0, atol=1e-6)
    assert not total[:3].any(), "only the first column of the table is in the slice"


@needs_triton
@pytest.mark.gpu
def test_the_error_against_the_exact_ranks_is_the_spread_of_targets_around(device):
    num_bins, tables = 24, [2, 1]
    positions = torch.rand(4, 500, generator=seeded(2))
    targets, directions = random_targets(), random_directions(tables, 2)
    total, _ = run(positions, targets, tables, directions, device, num_bins)
    exact, _ = reference.displacement(positions.double(), targets, torch.tensor(tables), directions)
    bound = torch.zeros_like(exact)
    for _, axes, theta, centers, weights in slices(positions, targets, tables, directions):
        projected = theta @ positions[axes].double()
        goals = quantile_targets((centers @ theta)[None], weights, positions.shape[1])[0]
        # Both goals are among the exact ones of the particles less than two bins away.
        around = 2 * theta.abs().sum() / (num_bins - 1)
        ranks = projected.sort().values
        least = torch.searchsorted(ranks, projected - around)
        most = torch.searchsorted(ranks, projected + around, right=True) - 1
        bound[axes] += theta.abs()[:, None] * (goals[most] - goals[least]) / 2
    assert ((total - exact).abs() <= bound + 1e-6).all()
    assert (total - exact).abs().max() > 1e-3, "there is an error to bound"
    # Means of bins keep the sum: all particles together move as they would with exact ranks.
    np.testing.assert_allclose(total.double().mean(dim=1), exact.mean(dim=1), rtol=0, atol=1e-6)


@needs_triton
@pytest.mark.gpu
def test_alone_in_their_bins_particles_get_the_exact_displacement(device):
    steps = torch.randperm(90, generator=seeded(3))
    positions = ((steps + 0.5) / 90).repeat(4, 1)
    targets, directions = random_targets(), torch.tensor([[[0.8, 0.6, 0.0]]])
    total, _ = run(positions, targets, [1], directions, device, 251)
    for _, axes, theta, centers, weights in slices(positions, targets, [1], directions):
        particles = positions[axes].double()
        assert len(set(bins_of(theta @ particles, theta, 251))) == 90
        exact = sliced_w2_displacement(particles.T, centers, weights, theta[None])
        np.testing.assert_allclose(total[axes].T, exact, rtol=0, atol=1e-6)


@needs_triton
@pytest.mark.gpu
@pytest.mark.parametrize("batch", [[[1], [2], [0], [3]], [[1, 2], [0, -1]]], ids=["one", "two"])
def test_the_whole_descent_takes_the_steps_one_by_one(batch, device, monkeypatch):
    from sdv_privpgd.synthesize.particles.cuda import displacement as cuda

    monkeypatch.setattr(cuda, "SEGMENT_STEPS", 4)
    start, targets = torch.rand(4, 530, generator=seeded(4)), random_targets()
    visits, expected, num_bins = [], start, 32
    for step in range(10):  # two segments and a part: run, replayed, filled up
        tables = batch[step % len(batch)]
        # Powers of two: no rounding in the products, so that fused additions round alike.
        rates = torch.full((4,), 0.5 if step < 5 else 0.25)
        directions = random_directions(tables, 2, seed=step)
        total, _ = run(expected, targets, tables, directions, device, num_bins)
        expected = (expected + rates[:, None] * total).clamp(0, 1)
        visits.append(Visit(torch.tensor(tables), directions, rates))
    positions = start.to(device)
    ends = [cuda.descend(positions, targets.to(device), iter(visits), num_bins=num_bins).cpu()
            for _ in range(2)]  # fmt: skip
    assert torch.equal(ends[0], ends[1]), "the same visits end in the same bits"
    assert torch.equal(ends[0], expected)
    assert torch.equal(positions.cpu(), start), "the caller's positions stay as they are"
    assert torch.equal(
        cuda.descend(positions, targets.to(device), iter(()), num_bins=4).cpu(), start
    )


@needs_triton
@needs_numba  # or one of the tests is skipped there
@pytest.mark.skipif(INTERPRETED, reason="this is the interpreter")
def test_the_kernels_pass_in_the_interpreter():
    assert_passes_in_the_interpreter(__file__)


COMPILE = """
import triton
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource
from sdv_privpgd.synthesize.particles.cuda import triton_kernels

types = {"counts": "*i32", "axes": "*i64", "tables": "*i64", "squares": "*fp64"}
types |= dict.fromkeys(("heights", "levels", "integrals"), "*fp64")
types |= dict.fromkeys(("positions", "directions", "goals", "total", "rates"), "*fp32")
sizes = {"BATCH": 2, "SLICES": 3, "COPIES": 4, "DIM": 4, "ALL": 4096, "DEPTH": 10, "BLOCK": 256}
for name in ("count", "goal", "displace", "transport"):
    kernel = getattr(triton_kernels, "_" + name)
    constants = {each: sizes[each] for each in kernel.arg_names if each in sizes}
    signature = {each: types.get(each, "i32") for each in kernel.arg_names}
    source = ASTSource(kernel, signature | dict.fromkeys(constants, "constexpr"), constants)
    options = {"enable_fp_fusion": False}
    ptx = triton.compile(source, target=GPUTarget("cuda", 80, 32), options=options).asm["ptx"]
    assert "fma." not in ptx, name
    atomics = "red.global" in ptx or "atom.global" in ptx
    assert atomics == (name == "count"), "atomics count, and do nothing else"
"""


@needs_triton
@pytest.mark.skipif(INTERPRETED, reason="needs the compiler")
def test_the_kernels_compile_where_there_is_no_device():
    done = subprocess_of(["-c", COMPILE])
    assert done.returncode == 0, done.stderr
