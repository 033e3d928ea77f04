"""The batched projection: on the processor, and on a device where there is one (-m gpu)."""

import numpy as np
import pytest
import torch
from devices import DEVICES, needs_numba, seeded, skip_without
from references.primal_dual import PrimalDualProjection
from references.wasserstein import cell_centers, sliced_w1

from sdv_privpgd.synthesize.particles import batched_projection
from sdv_privpgd.synthesize.particles.batched_projection import BatchedProjection
from sdv_privpgd.synthesize.particles.draws import stratified_directions
from sdv_privpgd.synthesize.particles.projection import CompiledProjection, SignedTable, balanced

F64 = torch.float64
ON_DEVICES = pytest.mark.parametrize("device", DEVICES)


def mixed_tables():
    """Tables of many shapes and dimensions; the last holds probabilities already."""
    tables = []
    shapes = [(6, 5), (9,), (1,), (2, 3, 4), (8, 12), (1, 1), (7, 4), (16, 8)]
    for seed, shape in enumerate(shapes):
        centers = cell_centers(shape)
        values = np.random.default_rng(seed).normal(size=len(centers)) * (0.1, 0.01)[seed % 2]
        tables.append(SignedTable(centers, balanced(torch.tensor(values))))
    ridge = torch.arange(1, 31, dtype=F64) ** 2
    return [*tables, SignedTable(cell_centers((5, 6)), ridge / ridge.sum())]


@ON_DEVICES
def test_each_certificate_encloses_what_one_table_alone_reaches(device):
    skip_without(device)
    tables, one_by_one, drawn = mixed_tables(), seeded(), seeded()
    found = BatchedProjection(max_steps=1_000, device=device).solve_all(tables, seeded())
    solver = PrimalDualProjection(max_steps=2_000, tolerance=0.005, precision=1e-6)
    for table, (weights, distance, lower_bound) in zip(tables, found, strict=True):
        reference = solver.solve(*table, one_by_one)
        dim = table.centers.shape[1]
        directions = stratified_directions(32 if dim > 1 else 1, dim, drawn, dtype=F64)
        assert weights.device.type == "cpu"
        assert weights.min() >= 0
        assert float(weights.sum()) == pytest.approx(1.0, abs=1e-12)
        at_solution = sliced_w1(table.centers, weights, table.values, directions)
        assert float(at_solution) == pytest.approx(distance, rel=1e-9, abs=1e-12)
        # Bounds are float64: only rounding puts one on the wrong side of the other's distance.
        assert lower_bound <= reference.distance * (1 + 1e-9) + 1e-12
        assert reference.lower_bound <= distance * (1 + 1e-9) + 1e-12
        assert distance <= 1.01 * reference.distance + 1e-6
    torch.testing.assert_close(found[-1].probabilities, tables[-1].values, rtol=0, atol=1e-12)


@needs_numba
@ON_DEVICES
def test_it_agrees_with_the_compiled_projection(device):
    skip_without(device)
    tables = mixed_tables()
    compiled = CompiledProjection(max_steps=1_000).solve_all(tables, seeded())
    batched = BatchedProjection(max_steps=1_000, device=device).solve_all(tables, seeded())
    for ours, theirs in zip(batched, compiled, strict=True):
        # The same iterates up to the rounding of float32.
        assert ours.distance == pytest.approx(theirs.distance, rel=1e-3, abs=1e-9)
        assert ours.lower_bound == pytest.approx(theirs.lower_bound, rel=1e-2, abs=1e-9)
        assert float((ours.probabilities - theirs.probabilities).abs().sum()) < 1e-3


def test_padding_and_company_change_nothing(monkeypatch):
    tables = mixed_tables()
    together = BatchedProjection(max_steps=100).project_all(tables, seeded())
    monkeypatch.setattr(batched_projection, "_PLACES_AT_ONCE", 1)  # every table alone
    alone = BatchedProjection(max_steps=100).project_all(tables, seeded())
    for first, second in zip(together, alone, strict=True):
        torch.testing.assert_close(first, second, rtol=0, atol=1e-5)


def test_progress_shows_every_table_once():
    seen = []

    def progress(items, stage):
        for item in items:
            yield item
            seen.append((stage, len(item.values)))

    tables = mixed_tables()
    BatchedProjection(max_steps=25).project_all(tables, seeded(), progress)
    assert seen == [("project", len(table.values)) for table in tables]
    assert BatchedProjection().project_all([], seeded()) == []
