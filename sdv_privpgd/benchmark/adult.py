"""Adult, from the DataFrame to synthetic rows: seconds, memory and mean 2-way error, side by side.

    python -m sdv_privpgd.benchmark adult                                    # ours and independent
    python -m sdv_privpgd.benchmark adult --published-epochs 20 --seeds 1    # and as published

The errors compare with the real table and are not private. The error is half the L1 distance
between 2-way tables, averaged over all pairs of columns, in the codes of the declared domain.
``independent`` spends the same epsilon on the 1-way marginals alone and draws columns
independently; ``as_published`` is the paper's configuration with fewer epochs.
"""

import argparse
import resource
import time
from pathlib import Path

import numpy as np

from sdv_privpgd.benchmark.fits import FOLDER, columns_of, fit_dataset
from sdv_privpgd.metrics.pairs import mean_l1
from sdv_privpgd.privacy.dataset import Dataset
from sdv_privpgd.select.fixed import AllKWay
from sdv_privpgd.select.independent import Independent

SCHOOL = [
    "Preschool", "1st-4th", "5th-6th", "7th-8th", "9th", "10th", "11th", "12th", "HS-grad",
    "Some-college", "Assoc-voc", "Assoc-acdm", "Bachelors", "Masters", "Prof-school", "Doctorate",
]  # fmt: skip
COUNTRIES = [
    "Cambodia", "Canada", "China", "Columbia", "Cuba", "Dominican-Republic", "Ecuador",
    "El-Salvador", "England", "France", "Germany", "Greece", "Guatemala", "Haiti",
    "Holand-Netherlands", "Honduras", "Hong", "Hungary", "India", "Iran", "Ireland", "Italy",
    "Jamaica", "Japan", "Laos", "Mexico", "Nicaragua", "Outlying-US(Guam-USVI-etc)", "Peru",
    "Philippines", "Poland", "Portugal", "Puerto-Rico", "Scotland", "South", "Taiwan", "Thailand",
    "Trinadad&Tobago", "United-States", "Vietnam", "Yugoslavia",
]  # fmt: skip
CATEGORIES = {  # from the table's codebook (UCI "adult.names"); "?" there means missing
    "workclass": [
        "Private", "Self-emp-not-inc", "Self-emp-inc", "Federal-gov", "Local-gov", "State-gov",
        "Without-pay", "Never-worked",
    ],
    "education": SCHOOL,
    "marital-status": [
        "Married-civ-spouse", "Divorced", "Never-married", "Separated", "Widowed",
        "Married-spouse-absent", "Married-AF-spouse",
    ],
    "occupation": [
        "Tech-support", "Craft-repair", "Other-service", "Sales", "Exec-managerial",
        "Prof-specialty", "Handlers-cleaners", "Machine-op-inspct", "Adm-clerical",
        "Farming-fishing", "Transport-moving", "Priv-house-serv", "Protective-serv",
        "Armed-Forces",
    ],
    "relationship": [
        "Wife", "Own-child", "Husband", "Not-in-family", "Other-relative", "Unmarried",
    ],
    "race": ["White", "Asian-Pac-Islander", "Amer-Indian-Eskimo", "Other", "Black"],
    "sex": ["Female", "Male"],
    "native-country": COUNTRIES,
    "income": ["<=50K", ">50K"],
}  # fmt: skip
RANGES = {
    "age": (17, 90),
    "education-num": (1, 16),
    "capital-gain": (0, 99_999),
    "capital-loss": (0, 5_000),
    "hours-per-week": (1, 99),
}
PUBLIC_DOMAIN = {name: {"range_values": values} for name, values in CATEGORIES.items()} | {
    name: {"range_min": low, "range_max": high, "decimal_places": 0, "range_is_nullable": False}
    for name, (low, high) in RANGES.items()
}


def columns(names) -> dict:
    """SDV's description of the columns: sdtypes only.

    >>> columns(["age", "education"])
    {'age': {'sdtype': 'numerical'}, 'education': {'sdtype': 'ordinal'}}
    """
    kinds = dict.fromkeys(CATEGORIES, "categorical") | dict.fromkeys(RANGES, "numerical")
    return {name: {"sdtype": "ordinal" if name == "education" else kinds[name]} for name in names}


def add_command(commands) -> None:
    """Adds ``adult`` to the command line."""
    parser = commands.add_parser("adult", help="error against independent columns on Adult")
    parser.add_argument("--data", type=Path, default=FOLDER, help="folder of adult.parquet")
    parser.add_argument("--epsilon", type=float, default=1.0)
    parser.add_argument("--seeds", type=int, default=3, help="repetitions with fresh noise")
    parser.add_argument("--published-epochs", type=int, default=0, help="0 leaves it out")
    parser.add_argument("--published-projection-steps", type=int, default=50)
    parser.add_argument("--published-particles", type=int, default=20_000)
    parser.set_defaults(run=_adult)


def _adult(arguments: argparse.Namespace) -> None:
    import pandas as pd
    from sdv.metadata import Metadata

    from sdv_privpgd import ParticleGradientDescent, PrivPGDSynthesizer
    from sdv_privpgd.columns.encoding import encode_table
    from sdv_privpgd.columns.schema import Schema
    from sdv_privpgd.synthesize.particles.published.softmax import SoftmaxProjection

    real = pd.read_parquet(arguments.data / "adult.parquet").drop(columns="fnlwgt")
    described = columns(real.columns)
    metadata = Metadata.load_from_dict({"tables": {"adult": {"columns": described}}})
    schema = Schema.from_sdv(described, public_domain=PUBLIC_DOMAIN)
    domain, codes = schema.domain(), encode_table(columns_of(real), schema)
    print(f"{len(real):,} rows, {len(domain)} columns, sizes {domain.sizes}")
    print(f"epsilon {arguments.epsilon:g}, delta 1e-5, replace-one\n")
    print(f"{'method':<14}{'seed':>5}{'seconds':>10}{'half L1':>10}")

    found: dict[str, list[float]] = {}

    def report(method: str, seed: int, started: float, synthetic: np.ndarray) -> None:
        seconds = time.perf_counter() - started
        error = mean_l1(domain, codes, synthetic) / 2
        found.setdefault(method, []).append(error)
        print(f"{method:<14}{seed:>5}{seconds:>10.1f}{error:>10.4f}", flush=True)

    for seed in range(arguments.seeds):
        started = time.perf_counter()
        synthesizer = PrivPGDSynthesizer(metadata, arguments.epsilon, public_domain=PUBLIC_DOMAIN)
        synthesizer.fit(real)
        rows = synthesizer.sample(len(real))
        assert isinstance(rows, pd.DataFrame)  # as the table was
        report("PrivPGD", seed, started, encode_table(columns_of(rows), schema))

        started = time.perf_counter()
        engine = ParticleGradientDescent(num_particles=len(real), epochs=0, finish=None)
        release = fit_dataset(Dataset(domain, codes), arguments.epsilon, engine, Independent())
        report("independent", seed, started, release.model.sample(len(real), seed=0))

        if arguments.published_epochs:
            started = time.perf_counter()
            engine = ParticleGradientDescent.as_published(
                epochs=arguments.published_epochs,
                num_particles=arguments.published_particles,
                projection=SoftmaxProjection(max_steps=arguments.published_projection_steps),
            )
            pairs = AllKWay(degree=2)
            release = fit_dataset(Dataset(domain, codes), arguments.epsilon, engine, pairs)
            report("as_published", seed, started, release.model.sample(len(real), seed=0))

    ours = float(np.median(found["PrivPGD"]))
    print()
    for method, errors in found.items():
        ratio = ours / float(np.median(errors))
        print(f"median half L1 {np.median(errors):.4f}  PrivPGD / {method}: {ratio:.3f}")
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    print(f"peak memory of the process {peak:.2f} GiB")
