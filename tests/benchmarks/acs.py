"""ACS Income from the DataFrame: seconds, memory, and errors over all pairs of columns.

The American Community Survey's income task of 2018 over seven states, 342,989 rows: the paper's
"Inc" (Donhauser et al. 2024, section 4.1). Every feature is cut into 32 cells of equal width over
its range in the codebook; the label has two. With ``--published`` its configuration as well, half
an hour or more, and the ratios. Not private.
"""

from dataclasses import replace
from pathlib import Path

import numpy as np

from benchmarks.experiment import apart, metered_fit, options, particles
from sdv_privpgd.benchmark.fits import Stopwatch
from sdv_privpgd.benchmark.tables import load
from sdv_privpgd.methods import ParticleGradientDescent
from sdv_privpgd.methods.fixed import AllKWay
from sdv_privpgd.methods.privpgd import PrivPGD
from sdv_privpgd.metrics.pairs import average, covariance_error, l1_by_pair, sw1_by_pair
from sdv_privpgd.privacy.dataset import Dataset

_ERRORS = {
    "L1": lambda *tables: average(l1_by_pair(*tables)),
    "SW1": lambda *tables: average(sw1_by_pair(*tables)),
    "Cov": covariance_error,
}


@options(
    seeds=1, published=False, table="acs_income", epsilon=2.5, num_particles=100_000,
    published_epochs=1_000,
)  # fmt: skip
def rows(given):
    names = ("table", "data", "epsilon", "num_particles", "published_epochs")
    passed = {name: getattr(given, name) for name in names}
    found = {}
    for method in ["PrivPGD", *(["published"] if given.published else [])]:
        for _ in range(given.seeds):
            run = {"method": method, **apart(once, method=method, **passed)}
            found.setdefault(method, []).append(run)
            yield run
    if given.published:
        for name in (f"{name} particles" for name in _ERRORS):
            ours, theirs = (
                float(np.median([run[name] for run in runs])) for runs in found.values()
            )
            yield {"median": name, "PrivPGD": ours, "published": theirs, "ratio": ours / theirs}


def once(method, table, data, epsilon, num_particles, published_epochs):
    real = load(table, Path(data), 32)
    domain = real.domain
    strategy, engine = PrivPGD(), particles(num_particles)
    if method == "published":
        strategy, engine = (
            AllKWay(degree=2),
            ParticleGradientDescent.as_published(
                num_particles=num_particles, epochs=published_epochs
            ),
        )
    coded = []

    def dataset():
        coded.append(real.encode(real.frame))
        return Dataset(domain, coded[0])

    release, found = metered_fit(dataset, epsilon, replace(strategy, engine=engine))
    watch = Stopwatch()
    synthetic = release.model.sample(len(real.frame), seed=0)
    watch.lap("sample")
    # Each particle is used once, so that drawing rows adds no error.
    points = release.model.sample(release.model.block, seed=0)
    errors = {
        f"{name} {kind}": error(domain, coded[0], rows)
        for kind, rows in (("particles", points), ("rows", synthetic))
        for name, error in _ERRORS.items()
    }
    return {"rows": len(synthetic), **found, **watch.seconds, **errors}
