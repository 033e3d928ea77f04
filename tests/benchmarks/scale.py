"""Time and memory by rows and columns, on simulated tables with 32 cells in a column.

Every run has a new process, with everything compiled before its clock starts. Memory is what a run
takes beyond that and beyond the input. ``sample`` draws as many rows as were fitted, at most a
million, and ``sample_MiB`` is its own peak. ``cpu`` is a fit's processor seconds, summed over the
cores. ``--from-files FOLDER`` times the way from rows to counts by source, of 12 columns in files
that it makes in this folder.
"""

from pathlib import Path

from benchmarks import reading
from benchmarks.experiment import apart, metered_fit, options, particles
from benchmarks.simulated import simulated_table
from sdv_privpgd.benchmark.fits import PeakMemory, Stopwatch
from sdv_privpgd.methods import PrivPGD
from sdv_privpgd.privacy.dataset import Dataset

_MOST_SAMPLED = 1_000_000


@options(
    rows=[100_000, 1_000_000], columns=[10, 20], num_particles=int, epsilon=1.0, from_files=Path,
    sources=reading.SOURCES,
)  # fmt: skip
def rows(given):
    if given.from_files is not None:
        yield from reading.lines(given.from_files, given.rows, given.sources)
        return
    for columns in given.columns:
        for number in given.rows:
            size = {"rows": number, "columns": columns}
            more = {"epsilon": given.epsilon, "num_particles": given.num_particles}
            yield {**size, **apart(from_codes, **size, **more)}


def from_codes(rows, columns, epsilon, num_particles):
    """Seconds per stage of the core, and its peak memory."""
    domain, codes = simulated_table(rows, columns)
    engine = particles(num_particles)
    release, found = metered_fit(lambda: Dataset(domain, codes), epsilon, PrivPGD(engine=engine))
    return {**found, **_sampled(lambda number: release.model.sample(number, seed=0), rows)}


def _sampled(sample, rows):
    memory, watch = PeakMemory(), Stopwatch()
    sample(min(rows, _MOST_SAMPLED))
    watch.lap("sample")
    return {**watch.seconds, "sample_MiB": memory.mebibytes()}
