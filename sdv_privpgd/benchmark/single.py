"""One run of the comparison: a fit, its seconds and memory, and the scores. Not private.

Synthetic rows are compared by codes, and by values: codes of a declared domain hide what it does to
the real rows, for numbers beyond a range count as its ends in both tables, and all values of a cell
count as one. Each run has a process of its own, whose seconds and memory are measured.
"""

import argparse
import json
import math
import signal
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from statistics import fmean

import numpy as np
import pandas as pd

from sdv_privpgd.base.domain import Domain
from sdv_privpgd.benchmark.fits import PeakMemory, Stopwatch, fit_dataset
from sdv_privpgd.benchmark.methods import REAL, Compared
from sdv_privpgd.benchmark.tables import SPLIT_SEED, RealTable, columns_of, decoded, load, load_own
from sdv_privpgd.columns.schema import Schema
from sdv_privpgd.methods.pipeline import Release, run
from sdv_privpgd.methods.privpgd import PrivPGD
from sdv_privpgd.metrics import l1_by_pair
from sdv_privpgd.metrics.learning import downstream_error, scores, usefulness
from sdv_privpgd.metrics.pairs import average
from sdv_privpgd.metrics.values import Described, as_codes, common_cells, out_of_domain
from sdv_privpgd.privacy.boundary import PrivateTable
from sdv_privpgd.privacy.curator import Curator
from sdv_privpgd.privacy.dataset import Dataset
from sdv_privpgd.privacy.ledger import FitLedger, PrivacyLedger
from sdv_privpgd.privacy.queries import Adjacency


def value_scores(table: RealTable, real: pd.DataFrame, synthetic: pd.DataFrame) -> dict[str, float]:
    """The errors of values, under their names in a file of results.

    ``decoded_l1`` is the mean L1 distance of pairs, ``decoded_column_l1`` that of columns, both 0
    to 2. ``decoded_w1`` is the mean W1 distance of the columns of numbers and dates that vary, in
    units of their mean distance from the median. ``outside`` is the mean over columns of the share
    of real rows that the declared domain does not hold.
    """
    columns = [Described.of(column) for column in table.schema.columns]
    ours, theirs = columns_of(real), columns_of(synthetic)
    cells = common_cells(columns, ours, theirs)
    found = {
        "decoded_column_l1": 2 * fmean(each.distance for each in cells.values()),
        "outside": fmean(each.share for each in out_of_domain(table.schema, ours).values()),
    }
    if len(cells) > 1:
        found["decoded_l1"] = average(l1_by_pair(*as_codes(cells)))
    far = [each.w1 for each in cells.values() if np.isfinite(each.w1)]
    return found | ({"decoded_w1": fmean(far)} if far else {})


def decoded_scores(
    table: RealTable,
    real: pd.DataFrame,
    held_out: pd.DataFrame,
    synthetic: pd.DataFrame,
    *,
    seed: int,
) -> dict[str, float]:
    """``value_scores``, and what the rows are good for beside rows that no fit has seen.

    The latter are those of ``metrics.learning``: ``decoded_auroc``, ``decoded_linear_auroc``,
    ``decoded_tv3`` and so on. Those of the fitted real rows are what a fresh real sample has.
    """
    columns = [Described.of(column) for column in table.schema.columns]
    found = usefulness(columns, columns_of(synthetic), columns_of(held_out), table.label, seed=seed)
    useful = {f"decoded_{name}": value for name, value in found.items()}
    return value_scores(table, real, synthetic) | useful


def clipped(table: RealTable) -> list[str]:
    """Sentences on the values that the declared domain does not hold, one for each column."""
    from sdv_privpgd.report.evaluation import said

    lost = out_of_domain(table.schema, columns_of(table.frame))
    return [said(name, each) for name, each in lost.items() if each.share > 0]


def run_once(arguments: argparse.Namespace) -> None:
    """Prints the facts and the scores of one run as JSON."""
    if arguments.most_seconds:
        signal.alarm(arguments.most_seconds)  # ends the process, also inside compiled code
    table = table_of(arguments, arguments.rows)
    rows, test_rows = table.split()
    train, test = table.encode(rows), table.encode(test_rows)
    domain, seed = table.domain, arguments.seed
    facts = {
        "delta": arguments.delta,
        "adjacency": Adjacency.REPLACE_ONE.value,
        "rows": len(train),
        "columns": len(domain),
    }
    watch = Stopwatch()
    shown = rows
    if arguments.method == REAL:
        synthetic, facts["spent_epsilon"] = train, math.inf
    else:
        method = method_of(arguments, arguments.method)
        if method.has_particles:
            _compile()
        memory = PeakMemory()
        watch.lap("before")
        release, schema = _fit(method, table, rows, train, arguments)
        watch.lap("fit")
        codes = release.model.sample(len(train), seed)
        watch.lap("sample")
        if schema is None:
            synthetic, shown = codes, table.decode(codes, seed)
        else:  # an arm's codes are its own: its values are put into the table's cells
            shown = decoded(schema, codes, seed)
            synthetic = table.encode(shown)
        facts |= {
            "spent_epsilon": release.ledger.spent(),
            "fit_seconds": watch.seconds["fit"],
            "sample_seconds": watch.seconds["sample"],
            "peak_mebibytes": memory.mebibytes(),
        }
    asked = {"all_metrics": arguments.all_metrics, "models": not arguments.no_code_models}
    found = scores_of(table, train, synthetic, test, seed=seed, **asked)
    found |= decoded_scores(table, rows, test_rows, shown, seed=seed)
    watch.lap("score")
    facts["score_seconds"] = watch.seconds["score"]
    print(json.dumps({"facts": facts, "scores": found}))


def method_of(arguments: argparse.Namespace, name: str) -> Compared:
    """The method or arm of that name with the settings that the arguments name."""
    said = ("share", "num_particles", "published_epochs", "max_megabytes")
    return Compared(name=name, **{each: getattr(arguments, each) for each in said})


def _fit(
    method: Compared,
    table: RealTable,
    rows: pd.DataFrame,
    codes: np.ndarray,
    arguments: argparse.Namespace,
) -> tuple[Release, Schema | None]:
    """Fits a method to the table's codes, or an arm to its own codes, with their columns."""
    preprocessing, seed = method.preprocessing, arguments.seed
    epsilon, delta = method.spends(arguments.epsilon, arguments.delta), arguments.delta
    if preprocessing is None:
        nominal = tuple(each.name for each in table.schema.columns if not each.is_ordered)
        label = table.label if table.task == "classification" else None
        made = method.made(seed, nominal, label)
        reserved = Fraction(delta) * made.own_delta
    else:
        made = method.made(seed)
        small = (min(size, 16) for size in table.domain.sizes)  # as many codes as it may make
        made.require(Domain(table.domain.attributes, tuple(small)))
        reserved = preprocessing.reserved(table, delta)
    shared = FitLedger(PrivacyLedger.open(epsilon, delta, Adjacency.REPLACE_ONE, reserved=reserved))
    if preprocessing is None:
        return run(Curator(Dataset(table.domain, codes), shared), made), None
    schema = preprocessing.schema(table, rows, shared, made)
    return run(PrivateTable(columns_of(rows)).curator(schema, shared), made), schema


def table_of(arguments: argparse.Namespace, num_rows: int | None = None) -> RealTable:
    """The table that the arguments name, or ``num_rows`` of its rows."""
    if arguments.metadata is None:
        table = load(arguments.table, Path(arguments.data), arguments.cells)
    else:
        domain = None if arguments.domain is None else Path(arguments.domain)
        own = Path(arguments.table), Path(arguments.metadata), domain
        table = load_own(*own, arguments.label, arguments.cells)
    if num_rows is None:
        return table
    drawn = table.frame.sample(n=min(num_rows, len(table.frame)), random_state=SPLIT_SEED)
    return replace(table, frame=drawn)


def scores_of(
    table: RealTable,
    real: np.ndarray,
    synthetic: np.ndarray,
    test: np.ndarray,
    *,
    seed: int,
    all_metrics: bool,
    models: bool = True,
) -> dict[str, float]:
    """The paper's metrics of synthetic rows, or all of them. Not private.

    Without ``models`` those that train models on codes are left out.
    """
    domain, label = table.domain, table.label
    if all_metrics:
        nominal = [column.name for column in table.schema.columns if not column.is_ordered]
        known = {"test": test, "label": label, "task": table.task, "nominal": nominal}
        return scores(domain, real, synthetic, **known, seed=seed, models=models)
    found = scores(domain, real, synthetic, seed=seed)
    if models and label is not None:
        known = {"task": table.task, "seed": seed}
        found["downstream"] = downstream_error(domain, synthetic, test, label, **known)
    return found


def _compile() -> None:
    """Fits a tiny table, so that compilation does not count."""
    from sdv_privpgd.synthesize.particles.descent import ParticleGradientDescent

    method = PrivPGD(engine=ParticleGradientDescent(num_particles=1_000, epochs=2))
    codes = np.random.default_rng(0).integers(0, 32, (1_000, 3))
    fit_dataset(Dataset(Domain(("a", "b", "c"), (32, 32, 32)), codes), 1.0, method)
