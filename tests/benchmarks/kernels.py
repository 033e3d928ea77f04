"""A step of the descent: the fused kernel beside the exact sort of ``reference``, in one run.

Simulated targets have 32 x 32 cells; each shape is a number of tables times slices in a step. The
two kernels are timed alternately, and their medians compared. ``excess`` is the difference of a
table's root mean square way from the exact one, and ``bound`` its bound by the binned ranks, two
bins (``kernels.cpu``, 3). ``--first-calls`` instead times a fit with nothing compiled, and in a
second process.
"""

import os
import tempfile
import time
from unittest import mock

import numpy as np
import torch

from benchmarks.experiment import apart, options, particles
from benchmarks.simulated import simulated_table
from sdv_privpgd.benchmark.fits import fit_dataset
from sdv_privpgd.methods import PrivPGD
from sdv_privpgd.privacy.dataset import Dataset
from sdv_privpgd.synthesize.particles.directions import stratified_sets
from sdv_privpgd.synthesize.particles.kernels import choose_kernel
from sdv_privpgd.synthesize.particles.kernels.targets import PackedTargets, Visit
from sdv_privpgd.synthesize.particles.mini_batches import memberships

_SHAPES = ((1, 1), (1, 2), (1, 10), (5, 10), (16, 1), (110, 1))
"""Tables and slices of a step: our default, and the paper's (5, 10), among others."""

_NUM_ATTRIBUTES, _NUM_CELLS = 11, 32


@options(num_particles=100_000, repetitions=7, steps=4_096, first_calls=False)
def rows(given):
    if given.first_calls:
        with tempfile.TemporaryDirectory() as folder:
            for process in ("nothing compiled", "new process"):
                with mock.patch.dict(os.environ, {"NUMBA_CACHE_DIR": folder}):
                    yield {"process": process, **apart(two_fits)}
        return
    # Here, because its compiler need not be installed where other benchmarks run.
    from sdv_privpgd.synthesize.particles.kernels.cpu import NUM_BINS

    fused = choose_kernel("numba", enable_gpu=False)
    exact = choose_kernel("torch", enable_gpu=False)
    targets, positions = _simulated(given.num_particles)
    for shape in _SHAPES:
        (visit,) = _visits(targets, shape, 1)
        way = (positions, targets, visit.tables, visit.directions)
        excess = fused.displacement(*way)[1].sqrt() - exact.displacement(*way)[1].sqrt()
        # It finds the number of threads meanwhile.
        many = max(given.steps // (shape[0] * shape[1]), given.steps // 32)

        def descend(kernel, number, shape=shape):
            visits, started = list(_visits(targets, shape, number)), time.perf_counter()
            kernel.descend(positions, targets, visits)
            return 1e3 * (time.perf_counter() - started) / number

        descend(fused, many)  # compiles
        times = [(descend(exact, 2), descend(fused, many)) for _ in range(given.repetitions)]
        slow, fast = np.median(times, axis=0).tolist()
        line = {"tables": shape[0], "slices": shape[1], "exact ms": slow, "fused ms": fast}
        yield line | {
            "ratio": slow / fast,
            "excess": float(excess.max()),
            "bound": 2 * 2**0.5 / NUM_BINS,
            "threads": torch.get_num_threads(),
        }


def _simulated(num_particles):
    """The pair tables of a simulated table, and particles spread over the cube."""
    domain, codes = simulated_table(50_000, _NUM_ATTRIBUTES, num_cells=_NUM_CELLS)
    cliques = domain.cliques(2)
    centers = (torch.arange(_NUM_CELLS, dtype=torch.float64) + 0.5) / _NUM_CELLS
    targets = PackedTargets.of(
        [domain.axes(clique) for clique in cliques],
        [torch.cartesian_prod(centers, centers)] * len(cliques),
        [
            torch.from_numpy(table.ravel() + 0.0)
            for table in Dataset(domain, codes).counts_of(cliques)
        ],
    )
    generator = torch.Generator().manual_seed(0)
    return targets, torch.rand(_NUM_ATTRIBUTES, num_particles, generator=generator)


def _visits(targets, shape, number):
    """Visits to random tables along stratified directions, the same ones at each call."""
    generator = torch.Generator().manual_seed(1)
    holds = memberships(targets, _NUM_ATTRIBUTES)
    for _ in range(number):
        tables = torch.randint(len(targets.dims), shape[:1], generator=generator)
        touched = holds[tables].sum(dim=0) > 0
        yield Visit(tables, stratified_sets(*shape, 2, generator), 0.1 * touched)


def two_fits():
    found = {}
    for name in ("first fit", "second fit"):
        started = time.perf_counter()
        fit_dataset(
            Dataset(*simulated_table(1_000, 3)), 1.0, PrivPGD(engine=particles(1_000, epochs=5))
        )
        found[name] = time.perf_counter() - started
    return found
