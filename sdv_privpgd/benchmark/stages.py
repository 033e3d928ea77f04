"""The stages of a fit and a sample, one by one: medians of several repetitions, and peak memory.

Each stage has a new process. Before the clock starts, its input is made and it has run once on a
tiny input; memory is what it takes beyond that. ``cpu`` is processor seconds, summed over the
cores. The tables are simulated.
"""

import argparse
import json
import math
import time
from collections.abc import Callable

import numpy as np

from sdv_privpgd.benchmark.fits import columns_of
from sdv_privpgd.benchmark.meters import PeakMemory, Stopwatch, in_fresh_process, print_table
from sdv_privpgd.benchmark.simulated import (
    MIXED_COLUMNS,
    MIXED_DOMAIN,
    mixed_table,
    simulated_table,
)
from sdv_privpgd.privacy.dataset import Dataset
from sdv_privpgd.privacy.noise import rounded_gaussian

Stage = Callable[[], object]


def add_command(commands) -> None:
    """Adds ``stages``, and ``stages-once`` for its single runs, to the command line."""
    stages = commands.add_parser("stages", help="seconds and memory of single stages")
    stages.add_argument("--repetitions", type=int, default=5)
    stages.set_defaults(run=_stages)
    once = commands.add_parser("stages-once", help="one stage; prints JSON")
    once.add_argument("stage", choices=list(STAGES))
    once.add_argument("repetitions", type=int)
    once.set_defaults(run=_once)
    for parser in (stages, once):
        parser.add_argument("--share", type=float, default=1.0, help="of each stage's rows")


def _stages(arguments: argparse.Namespace) -> None:
    for index, stage in enumerate(STAGES):
        passed = [stage, str(arguments.repetitions), "--share", str(arguments.share)]
        print_table([in_fresh_process(["stages-once", *passed])], header=index == 0)


def _once(arguments: argparse.Namespace) -> None:
    prepare, size = STAGES[arguments.stage]
    work = prepare(math.ceil(size * arguments.share))
    laps = []
    memory = PeakMemory()
    for _ in range(arguments.repetitions):
        wall, cpu = Stopwatch(), Stopwatch(time.process_time)
        work()
        wall.lap("seconds")
        cpu.lap("cpu")
        laps.append(wall.seconds | cpu.seconds)
    medians = {name: float(np.median([lap[name] for lap in laps])) for name in laps[0]}
    measured = {"stage": arguments.stage, **medians, "peak_MiB": memory.mebibytes()}
    print(json.dumps(measured))


def _counting(num_columns: int) -> Callable[[int], Stage]:
    """All pairs of a table of so many columns."""

    def prepare(num_rows: int) -> Stage:
        domain, codes = simulated_table(num_rows, num_columns)
        dataset, cliques = Dataset(domain, codes), domain.cliques(2)
        return lambda: dataset.counts_of(cliques)

    return prepare


def _noise(num_counts: int) -> Stage:
    """The noise of 231 tables of 1,024 cells, the pairs of 22 columns, at about epsilon 1."""
    rounded_gaussian(80.0, 10)  # loads its libraries
    return lambda: rounded_gaussian(80.0, num_counts)


def _keys(num_rows: int) -> Stage:
    """The values of 8 columns of text, counted as discovery does."""
    import pandas as pd

    from sdv_privpgd.columns.scalars import key_counts
    from sdv_privpgd.privacy.value_counts import ValueCounts

    domain, codes = simulated_table(num_rows, 8)
    words = np.array([f"word {code}" for code in range(32)], dtype=object)
    columns = {
        name: pd.Series(words[codes[:, axis]]) for axis, name in enumerate(domain.attributes)
    }
    return lambda: ValueCounts({name: key_counts(c) for name, c in columns.items()})


def _encode(num_rows: int) -> Stage:
    from sdv_privpgd.columns.encoding import encode_table
    from sdv_privpgd.columns.schema import Schema

    schema = Schema.from_sdv(MIXED_COLUMNS, public_domain=MIXED_DOMAIN)
    table = columns_of(mixed_table(num_rows))
    encode_table(columns_of(mixed_table(10)), schema)
    return lambda: encode_table(table, schema)


def _sample(num_rows: int) -> Stage:
    synthesizer = _fitted()
    synthesizer.sample(10)
    return lambda: synthesizer.sample(num_rows)


def _complete(num_rows: int) -> Stage:
    """Rows of four known columns, no two alike, completed by the other columns."""
    synthesizer = _fitted()
    known = mixed_table(2 * num_rows, seed=1)[["length", "year", "city", "joined"]]
    known = known.dropna().drop_duplicates().head(num_rows)
    synthesizer.sample_remaining_columns(known.head(10))
    return lambda: synthesizer.sample_remaining_columns(known)


def _fitted():
    """A synthesizer that was fitted to 20,000 mixed rows with the default settings."""
    from sdv.metadata import Metadata

    from sdv_privpgd import PrivPGDSynthesizer

    described = {"columns": MIXED_COLUMNS, "primary_key": "key"}
    synthesizer = PrivPGDSynthesizer(
        Metadata.load_from_dict({"tables": {"table": described}}), 1.0, public_domain=MIXED_DOMAIN
    )
    synthesizer.fit(mixed_table(20_000))
    return synthesizer


STAGES: dict[str, tuple[Callable[[int], Stage], int]] = {
    "count 11": (_counting(11), 300_000),
    "count 14": (_counting(14), 5_000_000),
    "noise": (_noise, 231 * 1_024),
    "keys": (_keys, 1_000_000),
    "encode": (_encode, 200_000),
    "sample": (_sample, 1_000_000),
    "complete": (_complete, 10_000),
}
"""The function that prepares each stage and returns it, and the stage's rows or counts."""
