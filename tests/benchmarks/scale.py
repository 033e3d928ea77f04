"""Time and memory by rows and columns, on simulated tables with 32 cells in a column.

Every run has a new process, with everything compiled before its clock starts. Memory is what a run
takes beyond that and beyond the input. ``sample`` draws as many rows as were fitted, at most a
million, and ``sample_MiB`` is its own peak. ``cpu`` is a fit's processor seconds, summed over the
cores. ``--from-frame`` fits and samples through PrivPGDSynthesizer. ``--from-files FOLDER`` times
the way from rows to counts by source, of 12 columns in files that it makes in this folder.
"""

import time
from pathlib import Path

from benchmarks import reading
from benchmarks.experiment import apart, metadata_of, metered_fit, options, particles
from benchmarks.simulated import simulated_table
from sdv_privpgd.benchmark.fits import PeakMemory, Stopwatch
from sdv_privpgd.methods import ParticleGradientDescent, PrivPGD
from sdv_privpgd.privacy.dataset import Dataset

_MOST_SAMPLED = 1_000_000


@options(
    rows=[100_000, 1_000_000],
    columns=[10, 20],
    num_particles=int,
    epsilon=1.0,
    from_frame=False,
    from_files=Path,
    sources=reading.SOURCES,
)
def rows(given):
    if given.from_files is not None:
        yield from reading.lines(given.from_files, given.rows, given.sources)
        return
    once = from_frame if given.from_frame else from_codes
    for columns in given.columns:
        for number in given.rows:
            size = {"rows": number, "columns": columns}
            more = {"epsilon": given.epsilon, "num_particles": given.num_particles}
            yield {**size, **apart(once, **size, **more)}


def from_codes(rows, columns, epsilon, num_particles):
    """Seconds per stage of the core, and its peak memory."""
    domain, codes = simulated_table(rows, columns)
    engine = particles(num_particles)
    release, found = metered_fit(lambda: Dataset(domain, codes), epsilon, PrivPGD(engine=engine))
    return {**found, **_sampled(lambda number: release.model.sample(number, seed=0), rows)}


def from_frame(rows, columns, epsilon, num_particles):
    """Seconds of a fit and a sample through SDV, and their peak memory."""
    import pandas as pd

    from sdv_privpgd import PrivPGDSynthesizer

    def new(number, columns):
        domain, codes = simulated_table(number, columns)
        facts = {"range_min": 0.0, "range_max": 1.0, "range_is_nullable": False}
        synthesizer = PrivPGDSynthesizer(
            metadata_of({name: {"sdtype": "numerical"} for name in domain.attributes}),
            epsilon,
            public_domain=dict.fromkeys(domain.attributes, facts),
            method=PrivPGD(engine=ParticleGradientDescent(num_particles=num_particles)),
        )
        frame = pd.DataFrame((codes + 0.5) / domain.sizes, columns=pd.Index(domain.attributes))
        return synthesizer, frame

    warm, few = new(min(rows, 1_000), 3)
    warm.fit(few)
    warm.sample(10)
    synthesizer, table = new(rows, columns)
    memory, watch, cpu = PeakMemory(), Stopwatch(), Stopwatch(time.process_time)
    synthesizer.fit(table)
    watch.lap("fit")
    cpu.lap("cpu")
    found = {**watch.seconds, **cpu.seconds, "peak_MiB": memory.mebibytes()}
    return {**found, **_sampled(synthesizer.sample, rows)}


def _sampled(sample, rows):
    memory, watch = PeakMemory(), Stopwatch()
    sample(min(rows, _MOST_SAMPLED))
    watch.lap("sample")
    return {**watch.seconds, "sample_MiB": memory.mebibytes()}
