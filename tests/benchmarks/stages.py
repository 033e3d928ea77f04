"""The stages of a fit and a sample, one by one: medians of several repetitions, and peak memory.

Each stage has a new process. Before the clock starts, its input is made and it has run once on a
tiny input; memory is what it takes beyond that. ``cpu`` is processor seconds, summed over the
cores. The tables are simulated; ``--share`` is the part of each stage's rows.
"""

import math
import time

import numpy as np

from benchmarks.experiment import apart, metadata_of, options
from benchmarks.simulated import MIXED_COLUMNS, MIXED_DOMAIN, mixed_table, simulated_table
from sdv_privpgd.benchmark.single import PeakMemory, Stopwatch
from sdv_privpgd.benchmark.tables import columns_of
from sdv_privpgd.privacy.dataset import Dataset
from sdv_privpgd.privacy.noise import rounded_gaussian


@options(repetitions=5, share=1.0)
def rows(given):
    for stage in STAGES:
        once = apart(measured, stage=stage, repetitions=given.repetitions, share=given.share)
        yield {"stage": stage, **once}


def measured(stage, repetitions, share):
    prepare, size = STAGES[stage]
    work = prepare(math.ceil(size * share))
    laps, memory = [], PeakMemory()
    for _ in range(repetitions):
        wall, cpu = Stopwatch(), Stopwatch(time.process_time)
        work()
        wall.lap("seconds")
        cpu.lap("cpu")
        laps.append(wall.seconds | cpu.seconds)
    medians = {name: float(np.median([lap[name] for lap in laps])) for name in laps[0]}
    return {**medians, "peak_MiB": memory.mebibytes()}


def _counting(num_columns):
    """All pairs of a table of so many columns."""

    def prepare(num_rows):
        domain, codes = simulated_table(num_rows, num_columns)
        dataset, cliques = Dataset(domain, codes), domain.cliques(2)
        return lambda: dataset.counts_of(cliques)

    return prepare


def _noise(num_counts):
    """The noise of 231 tables of 1,024 cells, the pairs of 22 columns, at about epsilon 1."""
    rounded_gaussian(80.0, 10)  # loads its libraries
    return lambda: rounded_gaussian(80.0, num_counts)


def _keys(num_rows):
    """The values of 8 columns of text, counted as discovery does."""
    import pandas as pd

    from sdv_privpgd.columns.scalars import key_counts
    from sdv_privpgd.privacy.value_counts import ValueCounts

    domain, codes = simulated_table(num_rows, 8)
    words = np.array([f"word {code}" for code in range(32)], dtype=object)
    columns = dict(zip(domain.attributes, map(pd.Series, words[codes].T), strict=True))
    return lambda: ValueCounts({name: key_counts(each) for name, each in columns.items()})


def _encode(num_rows):
    from sdv_privpgd.columns.encoding import encode_table
    from sdv_privpgd.columns.schema import Schema

    schema = Schema.from_sdv(MIXED_COLUMNS, public_domain=MIXED_DOMAIN)
    table = columns_of(mixed_table(num_rows))
    encode_table(columns_of(mixed_table(10)), schema)
    return lambda: encode_table(table, schema)


def _sample(num_rows):
    synthesizer = _fitted()
    synthesizer.sample(10)
    return lambda: synthesizer.sample(num_rows)


def _complete(num_rows):
    """Rows of four known columns, no two alike, completed by the other columns."""
    synthesizer = _fitted()
    known = mixed_table(2 * num_rows, seed=1)[["length", "year", "city", "joined"]]
    known = known.dropna().drop_duplicates().head(num_rows)
    synthesizer.sample_remaining_columns(known.head(10))
    return lambda: synthesizer.sample_remaining_columns(known)


def _fitted():
    """A synthesizer that was fitted to 20,000 mixed rows with the default settings."""
    from sdv_privpgd import PrivPGDSynthesizer

    metadata = metadata_of(MIXED_COLUMNS, primary_key="key")
    synthesizer = PrivPGDSynthesizer(metadata, 1.0, public_domain=MIXED_DOMAIN)
    synthesizer.fit(mixed_table(20_000))
    return synthesizer


STAGES = {
    "count 11": (_counting(11), 300_000),
    "count 14": (_counting(14), 5_000_000),
    "noise": (_noise, 231 * 1_024),
    "keys": (_keys, 1_000_000),
    "encode": (_encode, 200_000),
    "sample": (_sample, 1_000_000),
    "complete": (_complete, 10_000),
}
"""The function that prepares each stage and returns it, and the stage's rows or counts."""
