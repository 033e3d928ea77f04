"""Diabetes, 48 columns of up to 790 categories: seconds by stage, memory and mean 2-way error.

"Diabetes 130-US hospitals" (UCI 296), 101,766 rows, without its two id columns. Its categories are
looked up in the table, in place of a codebook. That is not private, nor is the comparison with the
real table. The settings are those of ``PrivPGDSynthesizer``.
"""

import argparse
from pathlib import Path

from sdv_privpgd.benchmark.fits import FOLDER, columns_of, fit_dataset
from sdv_privpgd.benchmark.meters import PeakMemory, Stopwatch, print_table
from sdv_privpgd.benchmark.simulated import simulated_table
from sdv_privpgd.metrics.pairs import mean_l1
from sdv_privpgd.privacy.dataset import Dataset
from sdv_privpgd.select.all_pairs import AllPairs


def add_command(commands) -> None:
    """Adds ``diabetes`` to the command line."""
    parser = commands.add_parser("diabetes", help="time, memory and error on 48 columns")
    parser.add_argument("--data", type=Path, default=FOLDER, help="folder of the tables")
    parser.add_argument("--epsilon", type=float, default=1.0)
    parser.add_argument("--num-particles", type=int, default=None)
    parser.add_argument("--most-pairs", type=int, default=None, help="that are all measured alike")
    parser.set_defaults(run=_diabetes)


def _diabetes(arguments: argparse.Namespace) -> None:
    from sdv_privpgd import ParticleGradientDescent
    from sdv_privpgd.benchmark.tables import load  # imports pandas
    from sdv_privpgd.columns.encoding import encode_table

    changes = {} if arguments.num_particles is None else {"num_particles": arguments.num_particles}
    engine = ParticleGradientDescent(**changes)
    few = {} if arguments.most_pairs is None else {"most_pairs": arguments.most_pairs}
    strategy = AllPairs(**few)
    table = load("diabetes", arguments.data, cells=32)
    # All categories: the table's own domain lets neighbors share a cell.
    domain = table.schema.domain()
    print(f"{len(table.frame):,} rows, {len(domain)} columns, sizes {domain.sizes}")
    print(f"epsilon {arguments.epsilon:g}\n")
    fit_dataset(Dataset(*simulated_table(1_000, 3)), 1.0, engine)  # compiles

    memory, watch = PeakMemory(), Stopwatch()
    codes = encode_table(columns_of(table.frame), table.schema)
    watch.lap("encode")
    dataset = Dataset(domain, codes)
    release = fit_dataset(dataset, arguments.epsilon, engine, strategy, progress=watch)
    watch.lap("finish")
    measured = {**watch.seconds, "fit": sum(watch.seconds.values())}
    measured["peak_MiB"] = memory.mebibytes()
    rows = release.model.sample(len(codes), seed=0)
    measured["half L1"] = mean_l1(domain, codes, rows) / 2
    print_table([measured], header=True)
