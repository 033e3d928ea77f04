"""Time and memory by rows and columns, on simulated tables with 32 cells in a column.

Every run has a new process. It fits a tiny table before the clock starts, so that imports and
compilation do not count. Memory is what a run takes beyond that and beyond the input. ``sample``
draws as many rows as were fitted, at most a million, and ``sample_MiB`` is its own peak. ``cpu`` is
a fit's processor seconds, summed over the cores.
"""

import argparse
import json
import time
from importlib.util import find_spec
from pathlib import Path

import numpy as np

from sdv_privpgd.benchmark import reading
from sdv_privpgd.benchmark.fits import fit_dataset
from sdv_privpgd.benchmark.meters import (
    PeakMemory,
    Stopwatch,
    in_fresh_process,
    print_table,
    write_csv,
)
from sdv_privpgd.benchmark.simulated import simulated_table
from sdv_privpgd.domain import Domain
from sdv_privpgd.privacy.dataset import Dataset

_MOST_SAMPLED = 1_000_000


def add_command(commands) -> None:
    """Adds ``scale``, and ``scale-once`` for its single runs, to the command line."""
    scale = commands.add_parser("scale", help="time and memory over rows and columns")
    scale.add_argument(
        "--rows", type=int, nargs="+", default=[100_000, 1_000_000], help="1e5 and 1e6 by default"
    )
    scale.add_argument(
        "--columns", type=int, nargs="+", default=[10, 20], help="10 and 20 by default"
    )
    scale.add_argument("--out", type=Path, default=None, help="folder for scale.csv and scale.png")
    scale.add_argument(
        "--from-files",
        dest="folder",
        type=Path,
        metavar="FOLDER",
        help="from rows to counts, by source: 12 columns, in files that are made in this folder",
    )
    scale.add_argument(
        "--sources", nargs="+", choices=reading.SOURCES, default=reading.SOURCES, help="all of them"
    )
    scale.set_defaults(run=_scale)
    reading.add_once(commands)
    once = commands.add_parser("scale-once", help="one run of scale; prints JSON")
    once.add_argument("rows", type=int)
    once.add_argument("columns", type=int)
    once.set_defaults(run=_once)
    for parser in (scale, once):
        parser.add_argument("--num-particles", type=int, default=None)
        parser.add_argument("--epsilon", type=float, default=1.0)
        parser.add_argument(
            "--from-frame",
            action="store_true",
            help="whole fit and sample from a DataFrame, through PrivPGDSynthesizer",
        )


def _scale(arguments: argparse.Namespace) -> None:
    if arguments.folder is not None:
        reading.read_all(arguments)
        return
    rows = []
    for num_columns in arguments.columns:
        for num_rows in arguments.rows:
            passed = ["scale-once", str(num_rows), str(num_columns)]
            passed += ["--epsilon", str(arguments.epsilon)]
            if arguments.num_particles is not None:
                passed += ["--num-particles", str(arguments.num_particles)]
            if arguments.from_frame:
                passed.append("--from-frame")
            rows.append(in_fresh_process(passed))
            print_table(rows[-1:], header=len(rows) == 1)
            if arguments.out is not None:  # after each run: the large ones take minutes
                write_csv(rows, arguments.out / "scale.csv")
    if arguments.out is not None and find_spec("matplotlib"):
        _draw(rows, arguments.out / "scale.png")


def _once(arguments: argparse.Namespace) -> None:
    measured = (_from_frame if arguments.from_frame else _from_codes)(arguments)
    print(json.dumps({"rows": arguments.rows, "columns": arguments.columns, **measured}))


def _from_codes(arguments: argparse.Namespace) -> dict[str, float]:
    """Seconds per stage of the core, and its peak memory."""
    from sdv_privpgd import ParticleGradientDescent

    changes = {} if arguments.num_particles is None else {"num_particles": arguments.num_particles}
    engine = ParticleGradientDescent(**changes)
    fit_dataset(Dataset(*simulated_table(1_000, 3)), arguments.epsilon, engine)
    domain, codes = simulated_table(arguments.rows, arguments.columns)
    memory, watch, cpu = PeakMemory(), Stopwatch(), Stopwatch(time.process_time)
    dataset = Dataset(domain, codes)
    watch.lap("encode")
    release = fit_dataset(dataset, arguments.epsilon, engine, progress=watch)
    watch.lap("finish")
    cpu.lap("cpu")
    fit, peak, memory = sum(watch.seconds.values()), memory.mebibytes(), PeakMemory()
    release.model.sample(min(arguments.rows, _MOST_SAMPLED), seed=0)
    watch.lap("sample")
    peaks = {"peak_MiB": peak, "sample_MiB": memory.mebibytes()}
    return {**watch.seconds, "fit": fit, **cpu.seconds, **peaks}


def _from_frame(arguments: argparse.Namespace) -> dict[str, float]:
    """Seconds of a fit and a sample through SDV, and their peak memory."""
    import pandas as pd
    from sdv.metadata import Metadata

    from sdv_privpgd import PrivPGDSynthesizer

    def new(domain: Domain) -> PrivPGDSynthesizer:
        columns = {name: {"sdtype": "numerical"} for name in domain.attributes}
        facts = {"range_min": 0.0, "range_max": 1.0, "range_is_nullable": False}
        return PrivPGDSynthesizer(
            Metadata.load_from_dict({"tables": {"table": {"columns": columns}}}),
            arguments.epsilon,
            public_domain=dict.fromkeys(domain.attributes, facts),
            num_particles=arguments.num_particles,
        )

    def frame(domain: Domain, codes: np.ndarray) -> pd.DataFrame:
        return pd.DataFrame((codes + 0.5) / domain.sizes, columns=pd.Index(domain.attributes))

    tiny, few = simulated_table(1_000, 3)
    warm = new(tiny)
    warm.fit(frame(tiny, few))
    warm.sample(10)
    domain, codes = simulated_table(arguments.rows, arguments.columns)
    table = frame(domain, codes)
    del codes
    synthesizer = new(domain)
    memory, watch, cpu = PeakMemory(), Stopwatch(), Stopwatch(time.process_time)
    synthesizer.fit(table)
    watch.lap("fit")
    cpu.lap("cpu")
    peak, memory = memory.mebibytes(), PeakMemory()
    synthesizer.sample(min(arguments.rows, _MOST_SAMPLED))
    watch.lap("sample")
    peaks = {"peak_MiB": peak, "sample_MiB": memory.mebibytes()}
    return {**watch.seconds, **cpu.seconds, **peaks}


def _draw(rows: list[dict], path: Path) -> None:
    """Seconds and memory over the number of columns, with a line for each number of rows."""
    import matplotlib as mpl

    mpl.use("Agg")
    from matplotlib import pyplot as plt

    figure, panels = plt.subplots(1, 2, figsize=(9, 3.5), layout="constrained")
    for panel, key, label in zip(
        panels, ("fit", "peak_MiB"), ("seconds of a fit", "peak memory, MiB"), strict=True
    ):
        for num_rows in sorted({row["rows"] for row in rows}):
            those = [row for row in rows if row["rows"] == num_rows]
            panel.plot(
                [row["columns"] for row in those],
                [row[key] for row in those],
                marker="o",
                label=f"{num_rows:,} rows",
            )
        panel.set(xscale="log", yscale="log", xlabel="columns", ylabel=label)
        columns = sorted({row["columns"] for row in rows})
        panel.set_xticks(columns, labels=map(str, columns))
        panel.set_xticks([], minor=True)
    panels[0].legend()
    figure.savefig(path, dpi=150)
    plt.close(figure)
