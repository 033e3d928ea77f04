"""A protected statistic: the cost of hiding it, over the weight of its penalty. Not private.

In Donhauser et al. 2024, section 4.4 and Figure 3, one threshold over all columns but the label
shall be wrong in the synthetic rows while everything else stays. Here the threshold is the median
of the real rows, so that its share is one half; a user would choose it. The noisy estimate of the
statistic is paid with the pipeline's share of one budget; the paper spends epsilon 0.5 of 2.5 on
it. Every fit has new noise. ``protected`` is the absolute error of the share; ``counting`` and
``threshold`` are mean absolute errors of queries, the numerator of the paper's equation 9.
"""

from dataclasses import replace

import numpy as np

from benchmarks.experiment import options, particles
from sdv_privpgd.benchmark.fits import fit_dataset
from sdv_privpgd.benchmark.tables import SPLIT_SEED, load
from sdv_privpgd.methods import PrivPGD
from sdv_privpgd.metrics import downstream_error
from sdv_privpgd.metrics.queries import counting_queries, threshold_queries
from sdv_privpgd.metrics.rows import columns, embedded
from sdv_privpgd.privacy.dataset import Dataset
from sdv_privpgd.synthesize.particles.penalties import ProtectedThreshold


@options(
    table="acs_income_co_2018",
    weights=[0.0, 0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0],
    epsilon=2.5,
    seeds=1,
    rows=int,
    num_particles=20_000,
    cells=32,
)
def rows(given):
    table = load(given.table, given.data, given.cells)
    if given.rows is not None and given.rows < len(table.frame):
        drawn = table.frame.sample(n=given.rows, random_state=SPLIT_SEED)
        table = replace(table, frame=drawn)
    train, test = (table.encode(rows) for rows in table.split())
    domain, label = table.domain, table.label
    names = [name for name in domain.attributes if name != label]

    def placed(found):
        return embedded(domain.project(names), {name: found[name] for name in names})

    real = columns(domain, train)
    places = placed(real)
    for seed in range(given.seeds):
        theta = np.random.default_rng(seed).standard_normal(len(names))
        theta /= np.linalg.norm(theta)
        b = float(np.median(places @ theta))
        queries = {
            "counting": counting_queries(domain, train, seed=seed),
            "threshold": threshold_queries(domain, train, seed=seed),
        }
        hidden = dict(zip(names, theta.tolist(), strict=True))
        for weight in given.weights:
            penalty = ProtectedThreshold(theta=hidden, b=b, weight=weight)
            engine = particles(given.num_particles, penalties=(penalty,), seed=seed)
            release = fit_dataset(Dataset(domain, train), given.epsilon, PrivPGD(engine=engine))
            synthetic = release.model.sample(len(train), seed)
            found = columns(domain, synthetic)
            beyond = (placed(found) @ theta > b).mean() - (places @ theta > b).mean()
            task = {"task": table.task, "seed": seed}
            line = {"weight": weight, "seed": seed, "protected": abs(float(beyond))}
            line["downstream"] = downstream_error(domain, synthetic, test, label, **task)
            for kind, asked in queries.items():
                errors = [abs(query.share(real) - query.share(found)) for query in asked]
                line[kind] = float(np.mean(errors))
            yield line
