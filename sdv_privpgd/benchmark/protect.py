"""A protected statistic: the cost of hiding it, over the weight of its penalty. Not private.

In Donhauser et al. 2024, section 4.4 and Figure 3, one threshold over all columns but the label
shall be wrong in the synthetic rows while everything else stays. Here the threshold is the median
of the real rows, so that its share is one half; a user would choose it. The noisy estimate of the
statistic is paid with the pipeline's share of one budget; the paper spends epsilon 0.5 of 2.5 on
it. Every fit has new noise.
"""

import argparse
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from sdv_privpgd.benchmark.compare import add_table_arguments
from sdv_privpgd.benchmark.meters import print_table, write_csv

WEIGHTS = (0.0, 0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0)

_LABELS = {
    "protected": "protected share, absolute error",
    "downstream": "downstream error",
    "counting": "counting queries, absolute error",
    "threshold": "threshold queries, absolute error",
}


def add_command(commands) -> None:
    """Adds ``protect`` to the command line."""
    protect = commands.add_parser("protect", help="errors over the weight of a penalty")
    protect.add_argument("--weights", nargs="+", type=float, default=WEIGHTS)
    protect.add_argument("--epsilon", type=float, default=2.5)
    protect.add_argument("--seeds", type=int, default=1, help="repetitions with fresh noise")
    protect.add_argument("--rows", type=int, help="so many rows of the table, at random")
    protect.add_argument("--num-particles", type=int, default=20_000)
    protect.add_argument("--out", type=Path, help="folder for protect.csv and protect.png")
    add_table_arguments(protect)
    protect.set_defaults(run=_protect, table="acs_income_co_2018")


def _protect(arguments: argparse.Namespace) -> None:
    from sdv_privpgd import ParticleGradientDescent
    from sdv_privpgd.benchmark.fits import fit_dataset
    from sdv_privpgd.benchmark.single import table_of
    from sdv_privpgd.metrics import downstream_error
    from sdv_privpgd.metrics.queries import counting_queries, threshold_queries
    from sdv_privpgd.metrics.rows import columns, embedded
    from sdv_privpgd.privacy.dataset import Dataset
    from sdv_privpgd.synthesize.particles.penalties import ProtectedThreshold

    table = table_of(arguments, arguments.rows)
    train, test = (table.encode(rows) for rows in table.split())
    domain, label = table.domain, table.label
    if label is None:
        raise SystemExit("Name the column to predict with --label.")
    names = [name for name in domain.attributes if name != label]
    real = columns(domain, train)
    places = embedded(domain.project(names), {name: real[name] for name in names})
    rows = []
    for seed in range(arguments.seeds):
        theta = np.random.default_rng(seed).standard_normal(len(names))
        theta /= np.linalg.norm(theta)
        b = float(np.median(places @ theta))
        queries = {
            "counting": counting_queries(domain, train, seed=seed),
            "threshold": threshold_queries(domain, train, seed=seed),
        }
        for weight in arguments.weights:
            penalty = ProtectedThreshold(
                theta=dict(zip(names, theta.tolist(), strict=True)), b=b, weight=weight
            )
            engine = ParticleGradientDescent(
                num_particles=arguments.num_particles, penalties=(penalty,), seed=seed
            )
            release = fit_dataset(Dataset(domain, train), arguments.epsilon, engine)
            synthetic = release.model.sample(len(train), seed)
            found = columns(domain, synthetic)
            beyond = embedded(domain.project(names), {name: found[name] for name in names})
            row = {
                "weight": weight,
                "seed": seed,
                "protected": abs(float((beyond @ theta > b).mean() - (places @ theta > b).mean())),
                "downstream": downstream_error(
                    domain, synthetic, test, label, task=table.task, seed=seed
                ),
                **{kind: _absolute_error(each, real, found) for kind, each in queries.items()},
            }
            rows.append(row)
            print_table([row], header=len(rows) == 1)
    if arguments.out is not None:
        import pandas as pd

        from sdv_privpgd.benchmark.figures import draw_protection  # imports matplotlib

        write_csv(rows, arguments.out / "protect.csv")
        draw_protection(pd.DataFrame(rows), _LABELS, arguments.out / "protect.png")


def _absolute_error(queries: Sequence, real, synthetic) -> float:
    """The mean of |synthetic answer - real answer|, the numerator of the paper's equation 9."""
    return float(np.mean([abs(query.share(real) - query.share(synthetic)) for query in queries]))
