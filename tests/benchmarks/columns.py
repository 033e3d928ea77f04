"""Many columns: seconds by stage, peak memory and errors per pair of one fit, on simulated tables.

Every run has a new process, with everything compiled before its clock starts. Errors are means over
at most 600 pairs, the same ones in each run with as many columns: ``l1`` is that of the synthetic
rows, ``alone`` that of independent columns with the table's own marginals. ``over codes`` is the
number of pairs that were measured over codes.
"""

import numpy as np

from benchmarks.experiment import apart, metered_fit, options
from benchmarks.simulated import simulated_table
from sdv_privpgd.methods.privpgd import PrivPGD
from sdv_privpgd.privacy.dataset import Dataset
from sdv_privpgd.privacy.queries import MarginalQuery

_MOST_PAIRS = 600


@options(columns=[50, 100, 200], rows=[1_000_000, 1_000_000, 100_000], epsilon=1.0, most_pairs=int)
def rows(given):
    for columns, number in zip(given.columns, given.rows, strict=True):
        size = {"rows": number, "columns": columns}
        yield {**size, **apart(once, **size, epsilon=given.epsilon, most_pairs=given.most_pairs)}


def once(rows, columns, epsilon, most_pairs):
    method = PrivPGD() if most_pairs is None else PrivPGD(most_pairs=most_pairs)
    domain, codes = simulated_table(rows, columns)
    release, found = metered_fit(lambda: Dataset(domain, codes), epsilon, method)
    queries = [each.query for each in release.measurements if isinstance(each.query, MarginalQuery)]
    found["over codes"] = len({each.clique for each in queries if len(each.clique) == 2})
    sampled = release.model.sample(min(rows, 100_000), seed=0)
    pairs = list(domain.cliques(2))
    chosen = np.random.default_rng(0).permutation(len(pairs))[:_MOST_PAIRS]
    errors = {"l1": [], "alone": []}
    for pair in (pairs[place] for place in sorted(chosen.tolist())):
        real, ours = (_shares(domain, pair, each) for each in (codes, sampled))
        errors["l1"].append(np.abs(real - ours).sum())
        alone = np.outer(real.sum(axis=1), real.sum(axis=0))
        errors["alone"].append(np.abs(real - alone).sum())
    return found | {name: float(np.mean(each)) for name, each in errors.items()}


def _shares(domain, pair, rows):
    shape = domain.shape(pair)
    first, second = (rows[:, axis].astype(np.int64) for axis in domain.axes(pair))
    counts = np.bincount(first * shape[1] + second, minlength=shape[0] * shape[1])
    return counts.reshape(shape) / len(rows)
