"""Whether a plan's forecast of errors is right, on real tables.

    python -m sdv_privpgd.benchmark forecast --tables adult bank diamonds acs_income_ne_2018

The forecast knows what is declared, the number of rows and the settings, as ``plan`` does. Its
columns are the benchmark's, cut where the noise can pay for it. Each fit is that of ``fit_table``
up to the noisy tables. ``share`` and ``pair`` are the forecast over what was found: of the 95 %
error of a column's shares (``CONFIDENT`` times the root of the mean square error over its values),
and of the part of the rows that noise puts elsewhere in a pair's table, both means over all columns
or pairs and over the fits. ``worst_share`` is the same ratio of the column where it is furthest
from 1, by the fits' exact standard deviations: of a few fits chance alone would decide it. With
``--rows`` a model is fitted as well: ``rows`` is the part of the synthetic rows that are in another
cell than in the table, on average over the pairs, and ``least`` and ``most`` what the plan says of
it. Compared with real rows: not private.
"""

import argparse
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from sdv_privpgd import AllPairs, ParticleGradientDescent
from sdv_privpgd.benchmark.declarations import check_names
from sdv_privpgd.benchmark.fits import FOLDER, columns_of
from sdv_privpgd.benchmark.meters import print_table
from sdv_privpgd.benchmark.tables import rows_and_facts
from sdv_privpgd.columns.encoding import encode_table
from sdv_privpgd.domain import Clique
from sdv_privpgd.fitting.description import Description
from sdv_privpgd.fitting.fit import Fit
from sdv_privpgd.fitting.foreseeing import outlook
from sdv_privpgd.fitting.settings import Settings
from sdv_privpgd.inference.linear import LinearEstimate
from sdv_privpgd.metrics.pairs import mean_l1
from sdv_privpgd.privacy.boundary import PrivateTable
from sdv_privpgd.report.assumed import CONFIDENT
from sdv_privpgd.report.expected import Outlook, of_rows
from sdv_privpgd.synthesize.particles.particles import Particles

_TABLES = ("adult", "bank", "diamonds", "acs_income_ne_2018")

_WHOLE = {"acs_income_ne_2018": ("AGEP", "COW", "SCHL", "MAR", "OCCP", "POBP", "RELP", "WKHP",
                                 "SEX", "RAC1P")}  # fmt: skip
"""Columns of codes that are stored as floats: the codebook says that they are whole numbers."""


def add_command(commands) -> None:
    """Adds ``forecast`` to the command line."""
    parser = commands.add_parser("forecast", help="whether a plan's forecast of errors is right")
    parser.add_argument("--tables", nargs="+", default=list(_TABLES), metavar="TABLE")
    parser.add_argument("--epsilons", nargs="+", type=float, default=[0.2, 1.0, 2.5])
    parser.add_argument("--fits", type=int, default=3)
    parser.add_argument("--rows", action="store_true", help="fit a model, too")
    parser.add_argument("--data", type=Path, default=FOLDER, help="folder of the tables")
    parser.set_defaults(run=_forecast)


def _forecast(arguments: argparse.Namespace) -> None:
    check_names(arguments.tables)
    header = True
    for name in arguments.tables:
        frame, facts = declared_table(name, arguments.data)
        for epsilon in arguments.epsilons:
            row = compared(frame, facts, epsilon, arguments.fits, with_rows=arguments.rows)
            print_table([{"table": name[:13], "epsilon": epsilon, **row}], header=header)
            header = False


def declared_table(name: str, folder: Path) -> tuple[pd.DataFrame, dict[str, dict[str, Any]]]:
    """The rows of a table and what a codebook says of its columns. Not private.

    >>> declared_table("adult", Path("nowhere"))
    Traceback (most recent call last):
    FileNotFoundError: No adult.parquet in nowhere: name the folder of the tables with --data.
    """
    frame, facts = rows_and_facts(name, folder)
    for column in _WHOLE.get(name, ()):
        facts[column]["decimal_places"] = 0
    return frame, facts


def compared(
    frame: pd.DataFrame,
    facts: Mapping[str, Mapping[str, Any]],
    epsilon: float,
    fits: int,
    *,
    with_rows: bool = False,
) -> dict[str, float]:
    """The forecast over what fits to a table found. Not private.

    >>> frame = pd.DataFrame({name: [True, False] * 500 for name in "abc"})
    >>> row = compared(frame, {name: {"sdtype": "boolean"} for name in "abc"}, 1.0, fits=2)
    >>> list(row)
    ['share', 'worst_share', 'pair']
    """
    settings = Settings(epsilon=epsilon, strategy=AllPairs(), engine=ParticleGradientDescent())
    description = Description(
        columns={name: {"sdtype": own["sdtype"]} for name, own in facts.items()},
        public_domain={
            name: {key: fact for key, fact in own.items() if key != "sdtype"}
            for name, own in facts.items()
        },
    )
    foretold = _foretold(settings, description, len(frame))
    table = columns_of(frame.loc[:, list(facts)])
    found, exact, rows = [], [], []
    for _ in range(fits):
        fit = Fit(settings, description)
        fit.discover(PrivateTable(table))
        fit.ask(PrivateTable(table))
        assert fit.curator is not None
        domain = fit.curator.domain
        codes = encode_table(table, fit.description.attributes)
        linear = LinearEstimate(domain, fit.curator.measurements)
        errors: dict[Clique, float] = {}
        variances: dict[str, float] = {}
        for clique in (*domain.cliques(1), *domain.cliques(2)):
            estimate = linear.table(clique)
            assert estimate is not None
            true = np.zeros(domain.shape(clique))
            np.add.at(true, tuple(codes[:, domain.axes(clique)].T.astype(np.int64)), 1)
            wrong = (estimate[0] - true) / len(frame)
            if len(clique) == 1:
                errors[clique] = float(np.square(wrong).mean())
                variances[clique[0]] = float(estimate[1].mean()) / len(frame) ** 2
            else:
                errors[clique] = float(np.abs(wrong).sum() / 2)
        found.append(errors)
        exact.append(variances)
        if with_rows:
            release = fit.model().release
            assert release is not None
            assert isinstance(release.model, Particles)
            rows.append(mean_l1(domain, codes, release.model.codes) / 2)
    columns = foretold.here.columns
    shares = [np.sqrt(np.mean([errors[name,] for errors in found])) for name in columns]
    known = [np.sqrt(np.mean([variances[name] for variances in exact])) for name in columns]
    ratios = np.array(list(columns.values())) / (CONFIDENT * np.array(known))
    pairs = [np.mean([errors[pair] for pair in foretold.here.pairs]) for errors in found]
    noise = foretold.here.pair
    assert noise is not None
    row = {
        "share": float(np.mean(list(columns.values())) / (CONFIDENT * np.mean(shares))),
        "worst_share": float(ratios[np.abs(np.log(ratios)).argmax()]),
        "pair": float(noise / np.mean(pairs)),
    }
    if with_rows:
        least, most = of_rows(noise)
        row |= {"rows": float(np.mean(rows)), "least": least, "most": most}
    return row


def _foretold(settings: Settings, description: Description, num_rows: int) -> Outlook:
    """What a plan foretells."""
    fit = Fit(settings, description)
    missing = pd.Series([None] * num_rows, dtype=object)
    fit.discover(PrivateTable(dict.fromkeys(description.columns, missing)))
    found = outlook(settings, fit.description, fit.books.ledger, num_rows)
    assert found is not None
    return found
