"""Whether a plan's forecast of errors is right, on real tables.

The forecast knows what is declared, the number of rows and the settings, as ``plan`` does. Its
columns are the benchmark's, cut where the noise can pay for it. Each fit is that of ``fit_table``
up to the noisy tables. ``share`` and ``pair`` are the forecast over what was found: of the 95 %
error of a column's shares (``CONFIDENT`` times the root of the mean square error over its values),
and of the part of the rows that noise puts elsewhere in a pair's table, both means over all columns
or pairs and over the fits. ``worst_share`` is the same ratio of the column where it is furthest
from 1, by the fits' exact standard deviations: of a few fits chance alone would decide it. With
``--rows`` a model is fitted as well: ``rows`` is the part of the synthetic rows that are in another
cell than in the table, on average over the pairs, and ``least`` and ``most`` what the plan says of
it. With ``--undeclared`` nothing is declared of 5,000 of the rows: ``rows`` is the part of the
sampled rows that are in another cell than in the table (ten of equally many rows for numbers), and
``lost`` what discovery may lose by the plan. Not private.
"""

import numpy as np
import pandas as pd

from benchmarks.experiment import options, parts_of, quiet
from benchmarks.listing import distance
from sdv_privpgd import Boolean, Categorical, Datetime, Numerical, fit_table, plan_table
from sdv_privpgd.benchmark.tables import columns_of, rows_and_facts
from sdv_privpgd.columns.encoding import encode_table
from sdv_privpgd.fitting.description import Description
from sdv_privpgd.fitting.fit import Fit
from sdv_privpgd.fitting.plan import expected_errors
from sdv_privpgd.fitting.settings import Settings
from sdv_privpgd.inference.linear import LinearEstimate
from sdv_privpgd.methods import ParticleGradientDescent, PrivPGD
from sdv_privpgd.metrics.pairs import average, l1_by_pair
from sdv_privpgd.privacy.boundary import PrivateTable
from sdv_privpgd.report.about import CONFIDENT
from sdv_privpgd.report.plan import of_rows

_WHOLE = {"acs_income_ne_2018": ("AGEP", "COW", "SCHL", "MAR", "OCCP", "POBP", "RELP", "WKHP",
                                 "SEX", "RAC1P")}  # fmt: skip
"""Columns of codes that are stored as floats: the codebook says that they are whole numbers."""


@options(
    tables=["adult", "bank", "diamonds", "acs_income_ne_2018"], epsilons=[0.2, 1.0, 2.5], fits=3,
    rows=False, undeclared=False,
)  # fmt: skip
def rows(given):
    for name in given.tables if given.undeclared else ():
        for epsilon in given.epsilons:
            yield {"table": name[:13], "epsilon": epsilon, **_undeclared(name, epsilon, given)}
    for name in () if given.undeclared else given.tables:
        frame, facts = declared_table(name, given.data)
        for epsilon in given.epsilons:
            line = compared(frame, facts, epsilon, given.fits, with_rows=given.rows)
            yield {"table": name[:13], "epsilon": epsilon, **line}


def _undeclared(name, epsilon, given):
    """What a plan says of rows of which nothing is declared, and what fits have."""
    frame, facts = rows_and_facts(name, given.data)
    drawn, lines = np.random.default_rng(0), []
    kinds = {"numerical": Numerical(), "datetime": Datetime(), "boolean": Boolean()}
    declared = {name: kinds.get(own["sdtype"], Categorical()) for name, own in facts.items()}
    plan = plan_table(declared, epsilon, 1e-5, num_rows=5_000).to_dict()["expected"]
    least, most = plan["pairs_mean"]["rows_usually_within"]
    for _ in range(given.fits):
        rows = frame.iloc[drawn.choice(len(frame), 5_000)].reset_index(drop=True)[list(facts)]
        with quiet():
            fitted = fit_table(rows, declared, epsilon, 1e-5, allow_lost=list(declared))
        lines.append(distance(rows, fitted.sample(5_000)) / 2)
    found = {"rows": float(np.mean(lines)), "+-": float(np.std(lines) / np.sqrt(len(lines)))}
    return {**found, "least": least, "most": most, "lost": plan["lost_by_discovery"]}


def declared_table(name, folder):
    """The rows of a table and what a codebook says of its columns. Not private."""
    frame, facts = rows_and_facts(name, folder)
    for column in _WHOLE.get(name, ()):
        facts[column]["decimal_places"] = 0
    return frame, facts


def compared(frame, facts, epsilon, fits, *, with_rows=False):
    """The forecast over what fits to a table found. Not private."""
    settings = Settings(epsilon=epsilon, method=PrivPGD(engine=ParticleGradientDescent()))
    columns, domain = parts_of(facts)
    description = Description.of(columns, domain)
    plan = _planned(settings, description, len(frame)).here
    table = columns_of(frame.loc[:, list(facts)])
    found, exact, rows = [], [], []
    for _ in range(fits):
        fit = Fit(settings, description)
        fit.discover(PrivateTable(table))
        fit.ask(PrivateTable(table))
        codes = encode_table(table, fit.description.attributes)
        errors, variances = _errors(fit.curator, codes)
        found.append(errors)
        exact.append(variances)
        if with_rows:
            model = fit.model().release.model
            rows.append(average(l1_by_pair(fit.curator.domain, codes, model.codes)) / 2)
    shares = [np.sqrt(np.mean([errors[name,] for errors in found])) for name in plan.columns]
    known = [np.sqrt(np.mean([each[name] for each in exact])) for name in plan.columns]
    planned = np.array(list(plan.columns.values()))
    ratios = planned / (CONFIDENT * np.array(known))
    pairs = [np.mean([errors[pair] for pair in plan.pairs]) for errors in found]
    line = {
        "share": float(np.mean(planned) / (CONFIDENT * np.mean(shares))),
        "worst_share": float(ratios[np.abs(np.log(ratios)).argmax()]),
        "pair": float(plan.pair / np.mean(pairs)),
    }
    if with_rows:
        least, most = of_rows(plan.pair, plan.lost)
        line |= {"rows": float(np.mean(rows)), "least": least, "most": most}
    return line


def _errors(curator, codes):
    """The errors of the noisy columns and pairs, and the columns' stated variances."""
    domain, linear = curator.domain, LinearEstimate(curator.domain, curator.measurements)
    errors, variances, number = {}, {}, len(codes)
    for clique in (*domain.cliques(1), *domain.cliques(2)):
        counts, variance = linear.table(clique)
        true = np.zeros(domain.shape(clique))
        np.add.at(true, tuple(codes[:, domain.axes(clique)].T.astype(np.int64)), 1)
        wrong = (counts - true) / number
        if len(clique) == 1:
            errors[clique] = float(np.square(wrong).mean())
            variances[clique[0]] = float(variance.mean()) / number**2
        else:
            errors[clique] = float(np.abs(wrong).sum() / 2)
    return errors, variances


def _planned(settings, description, num_rows):
    """What a plan says."""
    fit = Fit(settings, description)
    missing = pd.Series([None] * num_rows, dtype=object)
    fit.discover(PrivateTable(dict.fromkeys(description.columns, missing)))
    return expected_errors(settings, fit.description, fit.shared.ledger, num_rows)
