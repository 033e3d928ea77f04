"""A fit on a CUDA device, and beside it on the processor: seconds by stage, and peak memory there.

Needs the package's core alone: numpy, scipy, mpmath, jaxtyping and torch.
"""

import sys
import time

import torch

from benchmarks.experiment import options
from benchmarks.simulated import simulated_table
from sdv_privpgd.benchmark.fits import Stopwatch, fit_dataset
from sdv_privpgd.methods import PrivPGD
from sdv_privpgd.privacy.dataset import Dataset


@options(
    rows=300_000, columns=[11, 50], num_particles=[100_000, 1_000_000], epochs=100, epsilon=2.5
)
def rows(given):
    if not torch.cuda.is_available():
        print("No CUDA device: torch.cuda.is_available() is false.")
        sys.exit(1)
    print(f"{torch.cuda.get_device_name()}, torch {torch.__version__}, {given.rows:,} rows")
    for columns in given.columns:
        dataset = Dataset(*simulated_table(given.rows, columns))
        for number in given.num_particles:
            for enable_gpu in (True, False):
                yield stage_seconds(dataset, given.epsilon, number, given.epochs, enable_gpu)


def stage_seconds(dataset, epsilon, num_particles, epochs, enable_gpu=True):
    """Seconds by stage of a fit of all pairs, and its peak memory on the device.

    A short fit of the same shapes comes first, so that compiling does not count. ``descend`` is
    all epochs.
    """
    # Here, as the package imports torch only for those who fit.
    from sdv_privpgd.methods import ParticleGradientDescent

    engine = ParticleGradientDescent(num_particles=num_particles, epochs=2, enable_gpu=enable_gpu)
    fit_dataset(dataset, epsilon, PrivPGD(engine=engine))
    on_device = torch.cuda.is_available()
    if on_device:
        torch.cuda.reset_peak_memory_stats()
    watch = Stopwatch(_now)  # the last steps of the descent, launched as one, go to the finish
    engine = ParticleGradientDescent(
        num_particles=num_particles, epochs=epochs, enable_gpu=enable_gpu
    )
    fit_dataset(dataset, epsilon, PrivPGD(engine=engine), progress=watch)
    watch.lap("local_search")
    peak = torch.cuda.max_memory_allocated() / 2**20 if on_device else 0.0
    return {
        "columns": len(dataset.domain),
        "particles": num_particles,
        "device": "cuda" if enable_gpu else "cpu",
        **watch.seconds,
        "sum": sum(watch.seconds.values()),
        "device MiB": peak,
    }


def _now():
    """Seconds on the wall clock, once the device has done all its work."""
    if torch.cuda.is_available():
        torch.cuda.synchronize()
    return time.perf_counter()
