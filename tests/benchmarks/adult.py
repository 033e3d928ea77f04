"""Adult, from the DataFrame to synthetic rows: seconds, memory and mean 2-way error, side by side.

The error is half the L1 distance between 2-way tables, averaged over all pairs of columns, in the
codes of the declared domain. ``independent`` spends the same epsilon on the 1-way marginals alone
and draws columns independently; ``as_published`` is the paper's configuration with fewer epochs
(``--published-epochs 20``; 0 leaves it out). Not private.
"""

from dataclasses import replace

import numpy as np
import pandas as pd

from benchmarks.experiment import metadata_of, options, particles, parts_of
from sdv_privpgd import PrivPGDSynthesizer
from sdv_privpgd.benchmark.declarations import TABLES
from sdv_privpgd.benchmark.fits import columns_of, fit_dataset
from sdv_privpgd.benchmark.meters import PeakMemory, Stopwatch
from sdv_privpgd.columns.encoding import encode_table
from sdv_privpgd.columns.schema import Schema
from sdv_privpgd.methods import ParticleGradientDescent, PrivPGD
from sdv_privpgd.methods.fixed import AllKWay, Independent
from sdv_privpgd.metrics.pairs import mean_l1
from sdv_privpgd.privacy.dataset import Dataset
from sdv_privpgd.synthesize.particles.published.softmax import SoftmaxProjection


@options(
    epsilon=1.0,
    seeds=3,
    published_epochs=0,
    published_projection_steps=50,
    published_particles=20_000,
    num_particles=int,
)
def rows(given):
    real = pd.read_parquet(given.data / "adult.parquet").drop(columns="fnlwgt")
    facts = {name: TABLES["adult"].facts[name] for name in real.columns}
    columns, public = parts_of(facts)
    schema = Schema.from_sdv(facts)
    domain, codes = schema.domain(), encode_table(columns_of(real), schema)
    dataset, found, memory = Dataset(domain, codes), {}, PeakMemory()

    def ours():
        more = {
            "public_domain": public,
            "method": PrivPGD(engine=ParticleGradientDescent(num_particles=given.num_particles)),
        }
        synthesizer = PrivPGDSynthesizer(metadata_of(columns), given.epsilon, **more)
        synthesizer.fit(real)
        return encode_table(columns_of(synthesizer.sample(len(real))), schema)

    def of_codes(engine, strategy):
        release = fit_dataset(dataset, given.epsilon, replace(strategy, engine=engine))
        return release.model.sample(len(real), seed=0)

    def independent():
        return of_codes(particles(len(real), epochs=0, finish=None), Independent())

    def as_published():
        engine = ParticleGradientDescent.as_published(
            epochs=given.published_epochs,
            num_particles=given.published_particles,
            projection=SoftmaxProjection(max_steps=given.published_projection_steps),
        )
        return of_codes(engine, AllKWay(degree=2))

    methods = {"PrivPGD": ours, "independent": independent}
    if given.published_epochs:
        methods["as_published"] = as_published
    for seed in range(given.seeds):
        for name, method in methods.items():
            watch = Stopwatch()
            synthetic = method()
            watch.lap("seconds")
            found.setdefault(name, []).append(mean_l1(domain, codes, synthetic) / 2)
            line = {"method": name, "seed": seed, **watch.seconds, "half L1": found[name][-1]}
            yield line | {"peak_MiB": memory.mebibytes()}
    medians = {name: float(np.median(errors)) for name, errors in found.items()}
    for name, median in medians.items():
        yield {"method": name, "median": median, "PrivPGD over": medians["PrivPGD"] / median}
