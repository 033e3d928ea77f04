"""How long a bootstrap takes, and with ``--regression`` whether regressions find what rows say.

The first fits tables, drawn with replacement to so many rows, and repeats each fit: ``fit_s`` and
``boot_s`` are seconds of the clock, ``refit_cpu_s`` the processor's for one repetition.

The second draws Adult anew with replacement for each fit, so that the truth of the population is
what its rows say. Ten coefficients are compared: of hours worked on age, education, sex and income
(least squares), and of income above 50K on age, education, sex and hours (logistic). The real ones
are of the same terms, with numbers by the means of their cells. ``held`` is the part of 95 %
intervals that hold the real coefficient, ``z`` the standard deviation of estimate less truth over
the stated one, ``best`` the mean stated one over that of a real analysis plus the same noise.
``refused`` counts the fits where the noise was larger than what the regression leaves, so that
there are no standard errors; they are in none of the other figures. Not private.
"""

import os
import time
from dataclasses import dataclass

import numpy as np

from benchmarks.experiment import options, particles
from sdv_privpgd import pipeline
from sdv_privpgd.benchmark.fits import columns_of, fit_dataset
from sdv_privpgd.benchmark.tables import load
from sdv_privpgd.columns.encoding import encode_table
from sdv_privpgd.columns.schema import Schema
from sdv_privpgd.inference.bootstrap import bootstrap
from sdv_privpgd.inference.questions import Questions
from sdv_privpgd.inference.refits import Refits
from sdv_privpgd.inference.regression import regression
from sdv_privpgd.methods import PrivPGD
from sdv_privpgd.privacy.dataset import Dataset
from sdv_privpgd.privacy.ledger import PrivacyLedger
from sdv_privpgd.privacy.measurement import Measurement
from sdv_privpgd.privacy.queries import Adjacency, CountQuery, MarginalQuery
from sdv_privpgd.sampling.sampler import Sampler
from sdv_privpgd.synthesize.particles.particles import Particles

_PEOPLE = ["age", "education-num", "sex"]
_REGRESSIONS = (
    ("hours-per-week", [*_PEOPLE, "income"], "linear", None),
    ("income", [*_PEOPLE, "hours-per-week"], "logistic", ">50K"),
)


@options(
    tables=["acs_income_co_2018"],
    rows=343_000,
    repetitions=50,
    processes=int,
    regression=False,
    epsilons=[1.0],
    fits=10,
    cells=32,
    num_particles=int,
)
def rows(given):
    if given.regression:
        yield from (_regressions(epsilon, given) for epsilon in given.epsilons)
    else:
        yield from (_bootstrap(name, given) for name in given.tables)


@dataclass(frozen=True)
class _Rows:
    """Makes samplers of models of a table."""

    schema: Schema
    held: dict

    def __call__(self, model, seed):
        return Sampler(self.schema, model, seed, held=self.held)


def _statistic(rows):
    return rows.select_dtypes("number").corr().to_numpy()


def _bootstrap(name, given):
    """The seconds of a fit and of its repetitions."""
    codes, schema = _coded(name, given)
    drawn = codes[np.random.default_rng(0).integers(len(codes), size=given.rows)]
    engine, begun = particles(given.num_particles), time.perf_counter()
    release = fit_dataset(
        Dataset(schema.domain(), drawn), given.epsilons[0], PrivPGD(engine=engine)
    )
    fit = time.perf_counter() - begun
    refits = Refits(release=release, engine=engine, sampler_of=_Rows(schema, dict(release.held)))
    refits.refit(0)  # compiles
    begun = time.process_time()
    refits.refit(1)
    processor, begun = time.process_time() - begun, time.perf_counter()
    bootstrap(refits, _statistic, given.repetitions, num_processes=given.processes)
    seconds = {"fit_s": fit, "refit_cpu_s": processor, "boot_s": time.perf_counter() - begun}
    size = {"table": name[:13], "rows": given.rows, "columns": len(schema.domain())}
    return {**size, **seconds, "repetitions": given.repetitions, "load": os.getloadavg()[0]}


def _regressions(epsilon, given):
    """How often intervals of ten coefficients held the real ones, and how wide they were."""
    codes, schema = _coded("adult", given)
    real = _coefficients(_noiseless(codes, schema))
    truth = np.concatenate([found.coefficients for found in real])
    sampled = np.concatenate([found.stddev for found in real])
    rng, scores, best, refused = np.random.default_rng(1), [], [], 0
    for _ in range(given.fits):
        drawn = codes[rng.integers(len(codes), size=len(codes))]
        engine = particles(given.num_particles, epochs=5)
        release = fit_dataset(Dataset(schema.domain(), drawn), epsilon, PrivPGD(engine=engine))
        try:
            found = _coefficients(Questions(release, schema))
        except ValueError:
            refused += 1
            continue
        values = np.concatenate([each.coefficients for each in found])
        stddevs = np.concatenate([each.stddev for each in found])
        noise = np.concatenate([np.diagonal(each.noise) for each in found])
        scores.append((values - truth) / stddevs)
        best.append(stddevs / np.sqrt(sampled**2 + noise))
    counts = {"epsilon": epsilon, "fits": given.fits, "refused": refused}
    counts["coefficients"] = len(truth)
    if not scores:
        return counts | dict.fromkeys(("held", "worst", "z", "best"), np.nan)
    z = np.array(scores)
    held = np.abs(z) < 1.959964
    return {
        **counts,
        "held": float(held.mean()),
        "worst": float(held.mean(axis=0).min()),
        "z": float(np.sqrt((z**2).mean())),
        "best": float(np.mean(best)),
    }


def _coefficients(questions):
    return [
        regression(questions, outcome, on, kind, event=event)
        for outcome, on, kind, event in _REGRESSIONS
    ]


def _coded(name, given):
    """The codes of a table's rows, and its columns."""
    table = load(name, given.data, given.cells)
    return encode_table(columns_of(table.frame), table.schema), table.schema


def _noiseless(codes, schema):
    """What can be asked of the real rows, without any noise."""
    domain = schema.domain()
    model = Particles(domain=domain, codes=codes)
    names = {name for outcome, on, _, _ in _REGRESSIONS for name in [outcome, *on]}
    measured = [Measurement(query=CountQuery(), answer=np.array([len(codes)]), stddev=0.0)]
    for pair in domain.cliques(2):
        if set(pair) <= names:
            counts = np.rint(model.marginal(pair) * len(codes)).astype(np.int64)
            measured.append(Measurement(query=MarginalQuery(pair), answer=counts, stddev=0.0))
    ledger = PrivacyLedger.open(1.0, 1e-5, Adjacency.REPLACE_ONE)
    release = pipeline.Release(
        domain=domain, ledger=ledger, measurements=tuple(measured), model=model
    )
    return Questions(release, schema)
