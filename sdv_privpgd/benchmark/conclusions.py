"""How long a bootstrap takes, and whether regressions find what the real rows say.

    python -m sdv_privpgd.benchmark conclusions --tables acs_income_co_2018 --rows 343000
    python -m sdv_privpgd.benchmark conclusions --regression --fits 10

The first fits tables, drawn with replacement to so many rows, and repeats each fit: ``fit_s`` and
``boot_s`` are seconds of the clock, ``refit_cpu_s`` the processor's for one repetition.

The second draws Adult anew with replacement for each fit, so that the truth of the population is
what its rows say. Ten coefficients are compared: of hours worked on age, education, sex and income
(least squares), and of income above 50K on age, education, sex and hours (logistic). The real ones
are of the same terms, with numbers by the means of their cells. ``held`` is the part of 95 %
intervals that hold the real coefficient, ``z`` the standard deviation of estimate less truth over
the stated one, ``best`` the mean stated one over that of a real analysis plus the same noise.
``refused`` counts the fits where the noise was larger than what the regression leaves, so that
there are no standard errors; they are in none of the other figures. Compared with real rows: not
private.
"""

import argparse
import os
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from sdv_privpgd import pipeline
from sdv_privpgd.benchmark.declarations import check_names
from sdv_privpgd.benchmark.fits import FOLDER, columns_of
from sdv_privpgd.benchmark.meters import print_table
from sdv_privpgd.benchmark.tables import load
from sdv_privpgd.columns.schema import Schema
from sdv_privpgd.domain import Clique
from sdv_privpgd.inference.bootstrap import bootstrap
from sdv_privpgd.inference.questions import Questions
from sdv_privpgd.inference.refits import Refits
from sdv_privpgd.inference.regression import regression
from sdv_privpgd.privacy.curator import Curator
from sdv_privpgd.privacy.dataset import Dataset
from sdv_privpgd.privacy.ledger import Books, PrivacyLedger
from sdv_privpgd.privacy.measurement import Measurement
from sdv_privpgd.privacy.queries import Adjacency, CountQuery, MarginalQuery
from sdv_privpgd.sampling.sampler import Sampler
from sdv_privpgd.select.all_pairs import AllPairs
from sdv_privpgd.synthesize.engine import Model
from sdv_privpgd.synthesize.particles.descent import ParticleGradientDescent
from sdv_privpgd.synthesize.particles.particles import Particles

_PEOPLE = ["age", "education-num", "sex"]
_REGRESSIONS = (
    ("hours-per-week", [*_PEOPLE, "income"], "linear", None),
    ("income", [*_PEOPLE, "hours-per-week"], "logistic", ">50K"),
)


def add_command(commands) -> None:
    """Adds ``conclusions`` to the command line."""
    parser = commands.add_parser("conclusions", help="bootstraps and regressions")
    parser.add_argument("--tables", nargs="+", default=["acs_income_co_2018"], metavar="TABLE")
    parser.add_argument("--rows", type=int, default=343_000)
    parser.add_argument("--repetitions", type=int, default=50)
    parser.add_argument("--processes", type=int, default=None)
    parser.add_argument("--regression", action="store_true", help="of Adult")
    parser.add_argument("--epsilons", nargs="+", type=float, default=[1.0])
    parser.add_argument("--fits", type=int, default=10)
    parser.add_argument("--cells", type=int, default=32, help="of a column of numbers")
    parser.add_argument("--data", type=Path, default=FOLDER, help="folder of the tables")
    parser.set_defaults(run=_conclusions)


def _conclusions(arguments: argparse.Namespace) -> None:
    if arguments.regression:
        for place, epsilon in enumerate(arguments.epsilons):
            print_table([_regressions(epsilon, arguments)], header=not place)
        return
    check_names(arguments.tables)
    for place, name in enumerate(arguments.tables):
        print_table([_bootstrap(name, arguments)], header=not place)


@dataclass(frozen=True)
class _Rows:
    """Makes samplers of models of a table."""

    schema: Schema
    held: dict[str, np.ndarray]

    def __call__(self, model: Model, seed: int) -> Sampler:
        return Sampler(self.schema, model, seed, held=self.held)


def _statistic(rows):
    return rows.select_dtypes("number").corr().to_numpy()


def _bootstrap(name: str, arguments: argparse.Namespace) -> dict[str, float | str]:
    """The seconds of a fit and of its repetitions."""
    codes, schema = _coded(name, arguments)
    drawn = codes[np.random.default_rng(0).integers(len(codes), size=arguments.rows)]
    engine = ParticleGradientDescent()
    begun = time.perf_counter()
    release = _released(drawn, schema, arguments.epsilons[0], engine)
    fit = time.perf_counter() - begun
    refits = Refits(release=release, engine=engine, sampler_of=_Rows(schema, dict(release.held)))
    refits.refit(0)  # compiles
    begun = time.process_time()
    refits.refit(1)
    processor = time.process_time() - begun
    begun = time.perf_counter()
    bootstrap(refits, _statistic, arguments.repetitions, num_processes=arguments.processes)
    return {
        "table": name,
        "rows": arguments.rows,
        "columns": len(schema.domain()),
        "fit_s": fit,
        "refit_cpu_s": processor,
        "repetitions": arguments.repetitions,
        "boot_s": time.perf_counter() - begun,
        "load": os.getloadavg()[0],
    }


def _regressions(epsilon: float, arguments: argparse.Namespace) -> dict[str, float]:
    """How often intervals of ten coefficients held the real ones, and how wide they were."""
    codes, schema = _coded("adult", arguments)
    real = [_coefficients(_noiseless(codes, schema), *each) for each in _REGRESSIONS]
    truth = np.concatenate([found.coefficients for found in real])
    sampled = np.concatenate([found.stddev for found in real])
    rng, scores, best, refused = np.random.default_rng(1), [], [], 0
    for _ in range(arguments.fits):
        drawn = codes[rng.integers(len(codes), size=len(codes))]
        release = _released(drawn, schema, epsilon, ParticleGradientDescent(epochs=5))
        questions = Questions(release, schema)
        try:
            found = [_coefficients(questions, *each) for each in _REGRESSIONS]
        except ValueError:
            refused += 1
            continue
        values = np.concatenate([each.coefficients for each in found])
        stddevs = np.concatenate([each.stddev for each in found])
        noise = np.concatenate([np.diagonal(each.noise) for each in found])
        scores.append((values - truth) / stddevs)
        best.append(stddevs / np.sqrt(sampled**2 + noise))
    counts = {
        "epsilon": epsilon,
        "fits": arguments.fits,
        "refused": refused,
        "coefficients": len(truth),
    }
    if not scores:
        return {**counts, "held": np.nan, "worst": np.nan, "z": np.nan, "best": np.nan}
    z = np.array(scores)
    held = np.abs(z) < 1.959964
    return {
        **counts,
        "held": float(held.mean()),
        "worst": float(held.mean(axis=0).min()),
        "z": float(np.sqrt((z**2).mean())),
        "best": float(np.mean(best)),
    }


def _coefficients(questions: Questions, outcome: str, on: list[str], kind: str, event: str | None):
    return regression(questions, outcome, on, kind, event=event)


def _coded(name: str, arguments: argparse.Namespace) -> tuple[np.ndarray, Schema]:
    """The codes of a table's rows, and its columns."""
    from sdv_privpgd.columns.encoding import encode_table

    table = load(name, arguments.data, arguments.cells)
    return encode_table(columns_of(table.frame), table.schema), table.schema


def _released(
    codes: np.ndarray, schema: Schema, epsilon: float, engine: ParticleGradientDescent
) -> pipeline.Release:
    """A fit by the default strategy."""
    ledger = PrivacyLedger.open(epsilon, 1e-5, Adjacency.REPLACE_ONE)
    curator = Curator(Dataset(schema.domain(), codes), Books(ledger))
    return pipeline.run(curator, AllPairs(), engine)


def _noiseless(codes: np.ndarray, schema: Schema) -> Questions:
    """What can be asked of the real rows, without any noise."""
    domain = schema.domain()
    model = Particles(domain=domain, codes=codes)
    names = {name for outcome, on, _, _ in _REGRESSIONS for name in [outcome, *on]}
    cliques: list[Clique] = [pair for pair in domain.cliques(2) if set(pair) <= names]
    measured = [
        Measurement(
            query=MarginalQuery(pair),
            answer=np.rint(model.marginal(pair) * len(codes)).astype(np.int64),
            stddev=0.0,
        )
        for pair in cliques
    ]
    rows = Measurement(query=CountQuery(), answer=np.array([len(codes)]), stddev=0.0)
    ledger = PrivacyLedger.open(1.0, 1e-5, Adjacency.REPLACE_ONE)
    return Questions(
        pipeline.Release(domain=domain, ledger=ledger, measurements=(rows, *measured), model=model),
        schema,
    )
