"""A step of the descent: the fused kernel beside the exact sort of ``reference``, in one run.

Simulated targets have 32 x 32 cells; each shape is a number of tables times slices in a step. The
two kernels are timed alternately, and their medians compared. ``excess`` is the difference of a
table's root mean square way from the exact one, and ``bound`` its bound by the binned ranks, two
bins (``kernels.cpu``, 3). ``first-calls`` times a fit with nothing compiled, and in a second
process.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from functools import partial

import numpy as np
import torch

from sdv_privpgd.benchmark.fits import fit_dataset
from sdv_privpgd.benchmark.meters import print_table
from sdv_privpgd.benchmark.simulated import simulated_table
from sdv_privpgd.privacy.dataset import Dataset
from sdv_privpgd.synthesize.particles.directions import stratified_sets
from sdv_privpgd.synthesize.particles.kernels import Kernel, choose_kernel
from sdv_privpgd.synthesize.particles.kernels.targets import PackedTargets, Visit
from sdv_privpgd.synthesize.particles.mini_batches import memberships

_SHAPES = ((1, 1), (1, 2), (1, 10), (5, 10), (16, 1), (110, 1))
"""Tables and slices of a step: our default, and the paper's (5, 10), among others."""

_NUM_ATTRIBUTES, _NUM_CELLS = 11, 32


def add_command(commands) -> None:
    """Adds ``kernels``, ``first-calls`` and its single runs to the command line."""
    kernels = commands.add_parser("kernels", help="a step of the descent against the exact sort")
    kernels.add_argument("--num-particles", type=int, default=100_000)
    kernels.add_argument("--repetitions", type=int, default=7)
    kernels.set_defaults(run=_kernels)
    first = commands.add_parser("first-calls", help="seconds of a first fit, and of later ones")
    first.set_defaults(run=_first_calls)
    once = commands.add_parser("first-calls-once", help="two tiny fits; prints JSON")
    once.set_defaults(run=_once)


def _kernels(arguments: argparse.Namespace) -> None:
    # Here, because its compiler need not be installed where other benchmarks run.
    from sdv_privpgd.synthesize.particles.kernels.cpu import NUM_BINS

    fused = choose_kernel("numba", enable_gpu=False)
    exact = choose_kernel("reference", enable_gpu=False)
    print(f"{arguments.num_particles:,} particles, {torch.get_num_threads()} threads, medians\n")
    targets, positions = _simulated(arguments.num_particles)
    for index, shape in enumerate(_SHAPES):
        (visit,) = _visits(targets, shape, 1)
        way = (positions, targets, visit.tables, visit.directions)
        excess = fused.displacement(*way)[1].sqrt() - exact.displacement(*way)[1].sqrt()
        many = max(4096 // (shape[0] * shape[1]), 128)  # it finds the number of threads meanwhile
        descend = partial(_milliseconds_a_step, positions, targets, shape)
        descend(fused, many)  # compiles
        times = [(descend(exact, 2), descend(fused, many)) for _ in range(arguments.repetitions)]
        slow, fast = np.median(times, axis=0).tolist()
        row = {"tables": shape[0], "slices": shape[1], "exact ms": slow, "fused ms": fast}
        row |= {"ratio": slow / fast, "excess": float(excess.max()), "bound": 2 * 2**0.5 / NUM_BINS}
        print_table([row], header=index == 0)


def _simulated(num_particles: int) -> tuple[PackedTargets, torch.Tensor]:
    """The pair tables of a simulated table, and particles spread over the cube."""
    domain, codes = simulated_table(50_000, _NUM_ATTRIBUTES, num_cells=_NUM_CELLS)
    cliques = domain.cliques(2)
    centers = (torch.arange(_NUM_CELLS, dtype=torch.float64) + 0.5) / _NUM_CELLS
    targets = PackedTargets.of(
        [domain.axes(clique) for clique in cliques],
        [torch.cartesian_prod(centers, centers)] * len(cliques),
        [torch.from_numpy(table.ravel()) for table in Dataset(domain, codes).counts_of(cliques)],
    )
    generator = torch.Generator().manual_seed(0)
    return targets, torch.rand(_NUM_ATTRIBUTES, num_particles, generator=generator)


def _visits(targets: PackedTargets, shape: tuple[int, int], number: int) -> Iterator[Visit]:
    """Visits to random tables along stratified directions, the same ones at each call."""
    generator = torch.Generator().manual_seed(1)
    holds = memberships(targets, _NUM_ATTRIBUTES)
    for _ in range(number):
        tables = torch.randint(len(targets.dims), shape[:1], generator=generator)
        touched = holds[tables].sum(dim=0) > 0
        yield Visit(tables, stratified_sets(*shape, 2, generator), 0.1 * touched)


def _milliseconds_a_step(
    positions: torch.Tensor,
    targets: PackedTargets,
    shape: tuple[int, int],
    kernel: Kernel,
    number: int,
) -> float:
    visits = list(_visits(targets, shape, number))
    started = time.perf_counter()
    kernel.descend(positions, targets, visits)
    return 1e3 * (time.perf_counter() - started) / number


def _first_calls(arguments: argparse.Namespace) -> None:
    del arguments
    with tempfile.TemporaryDirectory() as folder:
        rows = []
        for process in ("nothing compiled", "new process"):
            done = subprocess.run(
                [sys.executable, "-m", "sdv_privpgd.benchmark", "first-calls-once"],
                env={**os.environ, "NUMBA_CACHE_DIR": folder},
                stdout=subprocess.PIPE,
                text=True,
                check=True,
            )
            rows.append({"process": process, **json.loads(done.stdout.splitlines()[-1])})
        print_table(rows, header=True)


def _once(arguments: argparse.Namespace) -> None:
    del arguments
    from sdv_privpgd import ParticleGradientDescent

    def fit() -> None:
        engine = ParticleGradientDescent(num_particles=1_000, epochs=5)
        fit_dataset(Dataset(*simulated_table(1_000, 3)), 1.0, engine)

    print(json.dumps({"first fit": _seconds(fit), "second fit": _seconds(fit)}))


def _seconds(work: Callable[[], None]) -> float:
    started = time.perf_counter()
    work()
    return time.perf_counter() - started
