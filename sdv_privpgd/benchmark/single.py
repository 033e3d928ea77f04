"""Runs one method of the comparison on one table, from the rows to the scores. Not private."""

import argparse
import json
import math
import signal
from dataclasses import replace
from pathlib import Path

import numpy as np

from sdv_privpgd.benchmark.compare import REAL, method_of
from sdv_privpgd.benchmark.fits import fit_dataset
from sdv_privpgd.benchmark.meters import PeakMemory, Stopwatch
from sdv_privpgd.benchmark.simulated import simulated_table
from sdv_privpgd.benchmark.tables import SPLIT_SEED, Table, load, load_own
from sdv_privpgd.benchmark.values import useful_scores, value_scores
from sdv_privpgd.metrics.learning import downstream_error
from sdv_privpgd.metrics.overview import scores
from sdv_privpgd.pipeline import run
from sdv_privpgd.privacy.curator import Curator
from sdv_privpgd.privacy.dataset import Dataset
from sdv_privpgd.privacy.ledger import Books, PrivacyLedger
from sdv_privpgd.privacy.queries import Adjacency


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
    if arguments.method == REAL:
        synthetic, facts["spent_epsilon"] = train, math.inf
    else:
        method = method_of(arguments, arguments.method)
        if method.has_particles:
            _compile()
        ledger = PrivacyLedger.open(
            method.spends(arguments.epsilon, arguments.delta),
            arguments.delta,
            Adjacency.REPLACE_ONE,
        )
        strategy, engine = method.strategy(), method.engine(seed)
        memory = PeakMemory()
        watch.lap("before")
        release = run(Curator(Dataset(domain, train), Books(ledger)), strategy, engine)
        watch.lap("fit")
        synthetic = release.model.sample(len(train), seed)
        watch.lap("sample")
        facts |= {
            "spent_epsilon": release.ledger.spent(),
            "fit_seconds": watch.seconds["fit"],
            "sample_seconds": watch.seconds["sample"],
            "peak_mebibytes": memory.mebibytes(),
        }
    found = scores_of(table, train, synthetic, test, seed=seed, all_metrics=arguments.all_metrics)
    decoded = rows if arguments.method == REAL else table.decode(synthetic, seed)
    found |= value_scores(table, rows, decoded)
    found |= useful_scores(table, test_rows, decoded, seed=seed)
    watch.lap("score")
    facts["score_seconds"] = watch.seconds["score"]
    print(json.dumps({"facts": facts, "scores": found}))


def table_of(arguments: argparse.Namespace, num_rows: int | None = None) -> Table:
    """The table that the arguments name, or ``num_rows`` of its rows."""
    if arguments.metadata is None:
        table = load(arguments.table, arguments.data, arguments.cells)
    else:
        table = load_own(
            Path(arguments.table),
            arguments.metadata,
            arguments.domain,
            arguments.label,
            arguments.cells,
        )
    if num_rows is None:
        return table
    drawn = table.frame.sample(n=min(num_rows, len(table.frame)), random_state=SPLIT_SEED)
    return replace(table, frame=drawn)


def scores_of(
    table: Table,
    real: np.ndarray,
    synthetic: np.ndarray,
    test: np.ndarray,
    *,
    seed: int,
    all_metrics: bool,
) -> dict[str, float]:
    """The paper's metrics of synthetic rows, or all of them. Not private."""
    domain, label = table.domain, table.label
    if all_metrics:
        return scores(
            domain,
            real,
            synthetic,
            test=test,
            label=label,
            task=table.task,
            nominal=[column.name for column in table.schema.columns if not column.is_ordered],
            seed=seed,
        )
    found = scores(domain, real, synthetic, seed=seed)
    if label is not None:
        found["downstream"] = downstream_error(
            domain, synthetic, test, label, task=table.task, seed=seed
        )
    return found


def _compile() -> None:
    """Fits a tiny table, so that compilation does not count."""
    from sdv_privpgd import ParticleGradientDescent

    engine = ParticleGradientDescent(num_particles=1_000, epochs=2)
    fit_dataset(Dataset(*simulated_table(1_000, 3)), 1.0, engine)
