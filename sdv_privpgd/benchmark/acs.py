"""ACS Income from the DataFrame: seconds, memory, and errors over all pairs of columns.

The American Community Survey's income task of 2018 over seven states, 342,989 rows: the paper's
"Inc" (Donhauser et al. 2024, section 4.1). Every feature is cut into 32 cells of equal width over
its range in the codebook; the label has two. The errors compare with the real table and are not
private.
"""

import argparse
import json
from pathlib import Path

import numpy as np

from sdv_privpgd.benchmark.fits import FOLDER, columns_of, fit_dataset
from sdv_privpgd.benchmark.meters import PeakMemory, Stopwatch, in_fresh_process, print_table
from sdv_privpgd.benchmark.simulated import simulated_table
from sdv_privpgd.metrics.pairs import covariance_error, mean_l1, mean_sw1
from sdv_privpgd.privacy.dataset import Dataset

BOUNDS = {  # from the codebook "2018 ACS PUMS data dictionary"
    "AGEP": (17, 99),  # the task leaves out people under 17
    "COW": (1, 9),
    "SCHL": (1, 24),
    "MAR": (1, 5),
    "OCCP": (10, 9920),
    "POBP": (1, 554),
    "RELP": (0, 17),
    "WKHP": (1, 99),
    "SEX": (1, 2),
    "RAC1P": (1, 9),
}
COLUMNS = {
    **{name: {"sdtype": "numerical"} for name in BOUNDS},
    "PINCP": {"sdtype": "boolean"},
}
PUBLIC_DOMAIN = {
    **{
        name: {"range_min": low, "range_max": high, "range_is_nullable": False}
        for name, (low, high) in BOUNDS.items()
    },
    "PINCP": {"range_is_nullable": False},
}


def add_command(commands) -> None:
    """Adds ``acs``, and ``acs-once`` for its single runs, to the command line."""
    acs = commands.add_parser("acs", help="errors, time and memory on ACS Income")
    acs.add_argument("--seeds", type=int, default=1, help="repetitions with fresh noise")
    acs.add_argument(
        "--published",
        action="store_true",
        help="as_published(), too, and ratios: half an hour or more",
    )
    acs.set_defaults(run=_acs)
    once = commands.add_parser("acs-once", help="one run of acs; prints JSON")
    once.add_argument("method", choices=["PrivPGD", "published"])
    once.set_defaults(run=_once)
    for parser in (acs, once):
        parser.add_argument("--data", type=Path, default=FOLDER, help="folder of the tables")
        parser.add_argument("--epsilon", type=float, default=2.5)
        parser.add_argument("--num-particles", type=int, default=100_000)
        parser.add_argument("--published-epochs", type=int, default=1_000)


def _acs(arguments: argparse.Namespace) -> None:
    methods = ["PrivPGD", *(["published"] if arguments.published else [])]
    passed = ["--data", str(arguments.data), "--epsilon", str(arguments.epsilon)]
    passed += ["--num-particles", str(arguments.num_particles)]
    passed += ["--published-epochs", str(arguments.published_epochs)]
    found = {}
    for method in methods:
        found[method] = []
        for seed in range(arguments.seeds):
            found[method].append(in_fresh_process(["acs-once", method, *passed]))
            print_table(found[method][-1:], header=seed == 0)
    if arguments.published:
        print()
        for name in ("L1 particles", "SW1 particles", "Cov particles"):
            ours, theirs = (
                float(np.median([row[name] for row in found[each]])) for each in methods
            )
            print(f"{name:<14}PrivPGD / published: {ours:.3g} / {theirs:.3g} = {ours / theirs:.3f}")


def _once(arguments: argparse.Namespace) -> None:
    import pandas as pd

    from sdv_privpgd import ParticleGradientDescent
    from sdv_privpgd.columns.encoding import encode_table
    from sdv_privpgd.columns.schema import Schema
    from sdv_privpgd.select.all_pairs import AllPairs
    from sdv_privpgd.select.fixed import AllKWay

    particles = arguments.num_particles
    if arguments.method == "PrivPGD":
        strategy, engine = AllPairs(), ParticleGradientDescent(num_particles=particles)
    else:
        strategy = AllKWay(degree=2)
        engine = ParticleGradientDescent.as_published(
            num_particles=particles, epochs=arguments.published_epochs
        )
    paths = sorted(arguments.data.glob("acs_income_*.parquet"))
    real = pd.concat([pd.read_parquet(path) for path in paths], ignore_index=True)
    schema = Schema.from_sdv(COLUMNS, public_domain=PUBLIC_DOMAIN)
    domain = schema.domain()
    if arguments.method == "PrivPGD":
        fit_dataset(Dataset(*simulated_table(1_000, 3)), arguments.epsilon, engine)  # compiles

    memory, watch = PeakMemory(), Stopwatch()
    codes = encode_table(columns_of(real), schema)
    dataset = Dataset(domain, codes)
    watch.lap("encode")
    release = fit_dataset(dataset, arguments.epsilon, engine, strategy, progress=watch)
    watch.lap("finish")
    fit = sum(watch.seconds.values())
    synthetic = release.model.sample(len(real), seed=0)
    watch.lap("sample")
    measured = {"method": arguments.method, "rows": len(real), **watch.seconds, "fit": fit}
    measured["peak_MiB"] = memory.mebibytes()
    # Each particle is used once, so that drawing rows adds no error.
    points = release.model.sample(release.model.block, seed=0)
    for name, rows in (("particles", points), ("rows", synthetic)):
        measured[f"L1 {name}"] = mean_l1(domain, codes, rows)
        measured[f"SW1 {name}"] = mean_sw1(domain, codes, rows)
        measured[f"Cov {name}"] = covariance_error(domain, codes, rows)
    print(json.dumps(measured))
