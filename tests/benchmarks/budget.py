"""What the default method's questions tell of real tables, before any model is fitted.

Lines are means over fits of the errors of the estimated tables: L1 of single columns (``column``)
and of pairs (``pair``) over codes, of pairs over eight groups (``groups``), the relative error of
the covariances (``covariance``), and the relative one of the shares of codes that 1 to 4 % of the
rows have (``small``). ``shared`` is the error of pairs beside what it is, with the same answers,
without what all pairs share (``estimate/factors.py``), and ``copula`` beside that without copulas
(``estimate/copula.py``). ``seconds`` are those of the processor.
Columns are cut as in ``compare``. Not private.
"""

import time
from unittest import mock

import numpy as np
from answers import open_curator

from benchmarks.experiment import means, options
from sdv_privpgd.benchmark.tables import load
from sdv_privpgd.estimate import denoising
from sdv_privpgd.estimate.consistency import consistent_tables
from sdv_privpgd.estimate.denoising import denoised, equal_groups
from sdv_privpgd.methods import PrivPGD, pipeline
from sdv_privpgd.privacy.dataset import Dataset

TABLES = ["acs_income_ne_2018", "acs_income_co_2018", "adult", "bank", "california_housing",
          "diabetes_task", "diamonds", "flights", "nist"]  # fmt: skip


@options(tables=TABLES, epsilons=[0.2, 1.0], fits=4, cells=32)
def rows(given):
    for name in given.tables:
        table = load(name, given.data, given.cells)
        dataset = Dataset(table.domain, table.encode(table.split()[0]))
        for epsilon in given.epsilons:
            errors = means([_errors(dataset, epsilon) for _ in range(given.fits)])
            yield {"table": name[:13], "epsilon": epsilon, **errors}


def _errors(dataset, epsilon):
    domain, start = dataset.domain, time.process_time()
    curator = open_curator(dataset, epsilon=epsilon, seed=None)
    pipeline.ask(curator, PrivPGD())
    tables = denoised(consistent_tables(domain, curator.measurements))
    seconds = time.process_time() - start
    without = {
        "shared": mock.patch.object(denoising, "with_factors", lambda tables, look: tables),
        "copula": mock.patch.object(denoising, "with_copulas", lambda tables, shared, *_: shared),
    }
    others = {}
    for name, patched in without.items():
        with patched:
            others[name] = denoised(consistent_tables(domain, curator.measurements)).tables
    columns, small, groups, places, square, of_real = [], [], {}, {}, 0.0, 0.0
    for name in domain.attributes:
        real, ours = _shares(dataset.counts((name,))), tables.one_way[name] / tables.total
        columns.append(np.abs(ours - real).sum())
        is_small = (real >= 0.01) & (real <= 0.04)
        small += (np.abs(ours - real) / np.maximum(real, 0.01))[is_small].tolist()
        groups[name] = np.eye(8)[equal_groups(real, 8)]
        places[name] = (np.arange(len(real)) + 0.5) / len(real)
    pairs, coarse, apart = [], [], {name: [] for name in others}
    for pair in domain.cliques(2):
        one, two = pair
        real, ours = _shares(dataset.counts(pair)), _shares(tables.tables[pair])
        pairs.append(np.abs(ours - real).sum())
        for name, them in others.items():
            apart[name].append(np.abs(_shares(them[pair]) - real).sum())
        coarse.append(np.abs(groups[one].T @ (ours - real) @ groups[two]).sum())
        covariances = [
            places[one] @ each @ places[two]
            - (places[one] @ each.sum(axis=1)) * (each.sum(axis=0) @ places[two])
            for each in (real, ours)
        ]
        square += (covariances[1] - covariances[0]) ** 2
        of_real += covariances[0] ** 2
    return {
        "pair": float(np.mean(pairs)),
        **{name: float(np.mean(pairs) / np.mean(them)) for name, them in apart.items()},
        "column": float(np.mean(columns)),
        "groups": float(np.mean(coarse)),
        "covariance": float(np.sqrt(square / of_real)) if of_real else 0.0,
        "small": float(np.mean(small)) if small else 0.0,
        "seconds": seconds,
    }


def _shares(counts):
    """The counts without negative ones, as shares."""
    positive = np.maximum(counts, 0.0)
    return positive / positive.sum()
