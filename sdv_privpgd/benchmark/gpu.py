"""A fit and its steps on a CUDA device: seconds by stage, and bytes per step beside a roofline.

Needs the package's core alone: numpy, scipy, mpmath, jaxtyping, torch and triton.
"""

import argparse
import sys
import time
from collections.abc import Callable

import numpy as np
import torch

from sdv_privpgd.benchmark.fits import fit_dataset
from sdv_privpgd.benchmark.meters import Stopwatch, print_table
from sdv_privpgd.benchmark.simulated import simulated_table
from sdv_privpgd.privacy.dataset import Dataset
from sdv_privpgd.synthesize.particles.directions import stratified_sets
from sdv_privpgd.synthesize.particles.embedding import cell_centers
from sdv_privpgd.synthesize.particles.kernels import Kernel, choose_kernel
from sdv_privpgd.synthesize.particles.kernels.targets import PackedTargets, Visit

_SHAPES = ((1, 1), (1, 10), (5, 10))
"""Tables and slices of a step: the default, more slices, and the paper's."""

_TABLES = 100  # at most so many targets for the steps, which do not depend on their number


def add_command(commands) -> None:
    """Adds ``gpu`` to the command line."""
    gpu = commands.add_parser("gpu", help="a fit and its steps on a CUDA device")
    gpu.add_argument("--rows", type=int, default=300_000)
    gpu.add_argument("--columns", type=int, nargs="+", default=[11, 50])
    gpu.add_argument("--num-particles", type=int, nargs="+", default=[100_000, 1_000_000])
    gpu.add_argument("--epochs", type=int, default=100)
    gpu.add_argument("--epsilon", type=float, default=2.5)
    gpu.add_argument("--repetitions", type=int, default=5)
    gpu.add_argument(
        "--bandwidth",
        type=float,
        default=4.8e12,
        help="the device's memory, bytes a second; 4.8e12 (H200) by default",
    )
    gpu.set_defaults(run=_gpu)


def _gpu(arguments: argparse.Namespace) -> None:
    if not torch.cuda.is_available():
        print("No CUDA device: torch.cuda.is_available() is false.")
        sys.exit(1)
    print(f"{torch.cuda.get_device_name()}, torch {torch.__version__}, {arguments.rows:,} rows")
    fused = choose_kernel("auto", enable_gpu=True)
    exact = choose_kernel("reference", enable_gpu=True)
    tables = [simulated_table(arguments.rows, columns) for columns in arguments.columns]
    runs = [(table, m) for table in tables for m in arguments.num_particles]
    print("\nSeconds by stage; descend is all epochs")
    for index, ((domain, codes), num_particles) in enumerate(runs):
        dataset = Dataset(domain, codes)
        row = stage_seconds(dataset, arguments.epsilon, num_particles, arguments.epochs)
        print_table([row], header=index == 0)
    print(f"\nA step, medians; the roofline is {arguments.bandwidth:.3g} bytes a second")
    for index, ((domain, codes), num_particles) in enumerate(runs):
        targets = simulated_targets(Dataset(domain, codes))
        rows = [
            step_costs(
                fused,
                exact,
                targets,
                len(domain),
                num_particles,
                shape,
                repetitions=arguments.repetitions,
                bandwidth=arguments.bandwidth,
            )
            for shape in _SHAPES
        ]
        print_table(rows, header=index == 0)


def stage_seconds(
    dataset: Dataset, epsilon: float, num_particles: int, epochs: int
) -> dict[str, float]:
    """Seconds by stage of a fit of all pairs, and its peak memory on the device.

    A short fit of the same shapes comes first, so that compiling does not count.
    """
    # Here, as the package imports torch only for those who fit.
    from sdv_privpgd import ParticleGradientDescent

    engine = ParticleGradientDescent(num_particles=num_particles, epochs=2, enable_gpu=True)
    fit_dataset(dataset, epsilon, engine)
    on_device = torch.cuda.is_available()
    if on_device:
        torch.cuda.reset_peak_memory_stats()
    watch = Stopwatch(_now)  # the last steps of the descent, launched as one, go to the finish
    engine = ParticleGradientDescent(num_particles=num_particles, epochs=epochs, enable_gpu=True)
    fit_dataset(dataset, epsilon, engine, progress=watch)
    watch.lap("finish")
    peak = torch.cuda.max_memory_allocated() / 2**20 if on_device else 0.0
    return {
        "columns": len(dataset.domain),
        "particles": num_particles,
        **watch.seconds,
        "sum": sum(watch.seconds.values()),
        "device MiB": peak,
    }


def step_costs(
    fused: Kernel,
    exact: Kernel,
    targets: PackedTargets,
    num_attributes: int,
    num_particles: int,
    shape: tuple[int, int],
    *,
    repetitions: int,
    bandwidth: float,
) -> dict[str, float]:
    """Microseconds of a step of so many tables and slices, and the bytes that it must move."""
    batch, num_slices = shape
    generator = torch.Generator().manual_seed(0)
    start = torch.rand(num_attributes, num_particles, generator=generator)

    def visits(number: int) -> list[Visit]:
        rng = torch.Generator().manual_seed(1)
        rates = torch.full((num_attributes,), 0.1)
        return [
            Visit(
                torch.randint(len(targets.dims), (batch,), generator=rng),
                stratified_sets(batch, num_slices, 2, rng),
                rates,
            )
            for _ in range(number)
        ]

    def microseconds(kernel: Kernel, number: int) -> float:
        """A step's, from the difference of two descents, so that work done once drops out."""
        positions, goals = start.to(kernel.device), targets.to(kernel.device)
        few, many = visits(number), visits(3 * number)
        kernel.descend(positions, goals, iter(many))  # compiles
        found = []
        for _ in range(repetitions):
            short = _seconds(lambda: kernel.descend(positions, goals, iter(few)))
            long = _seconds(lambda: kernel.descend(positions, goals, iter(many)))
            found.append((long - short) / (len(many) - len(few)))
        return 1e6 * float(np.median(found))

    step = microseconds(fused, 256 // batch)
    moved = step_bytes(
        num_particles, num_attributes, shape, num_cells=int(targets.offsets.diff().max())
    )
    return {
        "columns": num_attributes,
        "particles": num_particles,
        "tables": batch,
        "slices": num_slices,
        "us": step,
        "MB": moved / 1e6,
        "GB/s": moved / step / 1e3,
        "of roofline": moved / bandwidth / (step / 1e6),
        "exact us": microseconds(exact, 2),
    }


def step_bytes(
    num_particles: int, num_attributes: int, shape: tuple[int, int], *, num_cells: int
) -> int:
    """Bytes between the device and its memory in a step along pairs, each array passed once.

    Counting reads a pair's two attributes for every slice. A step of one table then reads and
    writes them once more. A step of several tables reads, for each attribute, the attributes of the
    tables that hold it, and writes the displacement of all attributes; then it reads displacement
    and positions to move them. Each slice has copies of a histogram, which are cleared, added to
    and read, goals, which are written and read, and the stairs of its cells.
    """
    # Here, because importing them takes triton.
    from sdv_privpgd.synthesize.particles.cuda.displacement import NUM_BINS
    from sdv_privpgd.synthesize.particles.cuda.triton_kernels import COPIES

    batch, num_slices = shape
    column = 4 * num_particles
    rows = batch * num_slices
    counting = 2 * rows * column
    moving = 4 * column if batch == 1 else 4 * batch * column + 4 * num_attributes * column
    histograms = rows * (3 * COPIES + 2) * NUM_BINS * 4
    stairs = rows * num_cells * 2 * 3 * 8
    return counting + moving + histograms + stairs


def simulated_targets(dataset: Dataset) -> PackedTargets:
    """The pairs of a simulated table, or the first hundred of them.

    >>> from sdv_privpgd.benchmark.simulated import simulated_table
    >>> len(simulated_targets(Dataset(*simulated_table(1_000, 3))).dims)
    3
    """
    domain = dataset.domain
    cliques = domain.cliques(2)[:_TABLES]
    return PackedTargets.of(
        [domain.axes(clique) for clique in cliques],
        [cell_centers(domain.shape(clique)).float() for clique in cliques],
        [torch.from_numpy(table.ravel() + 0.0) for table in dataset.counts_of(cliques)],
    )


def _now() -> float:
    """Seconds on the wall clock, once the device has done all its work."""
    if torch.cuda.is_available():
        torch.cuda.synchronize()
    return time.perf_counter()


def _seconds(work: Callable[[], torch.Tensor]) -> float:
    started = _now()
    work()
    return _now() - started
