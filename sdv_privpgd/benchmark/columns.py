"""Many columns: seconds by stage, peak memory and errors per pair of one fit, on simulated tables.

Every run has a new process. It fits a tiny table before the clock starts, so that imports and
compilation do not count. Memory is what a fit takes beyond that and beyond the input. Errors are
means over at most ``_MOST_PAIRS`` pairs, the same ones in each run with as many columns: ``l1`` is
that of the synthetic rows, ``alone`` that of independent columns with the table's own marginals.
``over codes`` is the number of pairs that were measured over codes. The comparison with the table
is not private.
"""

import argparse
import json
import time
from dataclasses import replace

import numpy as np

from sdv_privpgd.benchmark.fits import fit_dataset
from sdv_privpgd.benchmark.meters import PeakMemory, Stopwatch, in_fresh_process, print_table
from sdv_privpgd.benchmark.simulated import simulated_table
from sdv_privpgd.domain import Clique, Domain
from sdv_privpgd.pipeline import Release
from sdv_privpgd.privacy.dataset import Dataset
from sdv_privpgd.privacy.queries import MarginalQuery
from sdv_privpgd.select.all_pairs import AllPairs

_SIZES = ((50, 1_000_000), (100, 1_000_000), (200, 100_000))
"""Columns and rows of the runs by default."""

_MOST_PAIRS = 600


def add_command(commands) -> None:
    """Adds ``columns``, and ``columns-once`` for its single runs, to the command line."""
    columns = commands.add_parser("columns", help="time, memory and errors of many columns")
    columns.set_defaults(run=_columns)
    once = commands.add_parser("columns-once", help="one run of columns; prints JSON")
    once.add_argument("rows", type=int)
    once.add_argument("columns", type=int)
    once.set_defaults(run=_once)
    for parser in (columns, once):
        parser.add_argument("--epsilon", type=float, default=1.0)
        parser.add_argument(
            "--most-pairs", type=int, default=None, help="of AllPairs; its default by default"
        )


def _columns(arguments: argparse.Namespace) -> None:
    for index, (num_columns, num_rows) in enumerate(_SIZES):
        passed = [str(num_rows), str(num_columns), "--epsilon", str(arguments.epsilon)]
        if arguments.most_pairs is not None:
            passed += ["--most-pairs", str(arguments.most_pairs)]
        print_table([in_fresh_process(["columns-once", *passed])], header=index == 0)


def _once(arguments: argparse.Namespace) -> None:
    from sdv_privpgd import ParticleGradientDescent

    strategy, engine = AllPairs(), ParticleGradientDescent()
    if arguments.most_pairs is not None:
        strategy = replace(strategy, most_pairs=arguments.most_pairs)
    fit_dataset(Dataset(*simulated_table(1_000, 3)), arguments.epsilon, engine)
    domain, codes = simulated_table(arguments.rows, arguments.columns)
    dataset = Dataset(domain, codes)
    memory, watch, cpu = PeakMemory(), Stopwatch(), Stopwatch(time.process_time)
    release = fit_dataset(dataset, arguments.epsilon, engine, strategy, progress=watch)
    watch.lap("finish")
    cpu.lap("cpu")
    found = {**watch.seconds, "fit": sum(watch.seconds.values()), **cpu.seconds}
    found["peak_MiB"] = memory.mebibytes()
    found["over codes"] = len(_pairs_over_codes(release))
    rows = release.model.sample(min(arguments.rows, 100_000), seed=0)
    found |= errors(domain, codes, rows)
    print(json.dumps({"rows": arguments.rows, "columns": arguments.columns, **found}))


def _pairs_over_codes(release: Release) -> set[Clique]:
    queries = [each.query for each in release.measurements]
    return {
        query.clique
        for query in queries
        if isinstance(query, MarginalQuery) and len(query.clique) == 2
    }


def errors(domain: Domain, codes: np.ndarray, rows: np.ndarray) -> dict[str, float]:
    """Mean L1 distances of pairs: of synthetic rows, and of independent columns. Not private.

    >>> domain, codes = simulated_table(100, 3, num_cells=4)
    >>> found = errors(domain, codes, codes)
    >>> found["l1"], found["alone"] > 0
    (0.0, True)
    """
    pairs = _some(domain)
    ours = [_distance(domain, pair, codes, rows) for pair in pairs]
    alone = [_distance(domain, pair, codes, None) for pair in pairs]
    return {"l1": float(np.mean(ours)), "alone": float(np.mean(alone))}


def _some(domain: Domain) -> list[Clique]:
    """The pairs that errors are means over."""
    pairs = domain.cliques(2)
    if len(pairs) <= _MOST_PAIRS:
        return list(pairs)
    chosen = np.random.default_rng(0).choice(len(pairs), _MOST_PAIRS, replace=False)
    return [pairs[place] for place in sorted(chosen.tolist())]


def _shares(domain: Domain, pair: Clique, rows: np.ndarray) -> np.ndarray:
    shape = domain.shape(pair)
    first, second = (rows[:, axis].astype(np.int64) for axis in domain.axes(pair))
    counts = np.bincount(first * shape[1] + second, minlength=shape[0] * shape[1])
    return counts.reshape(shape) / len(rows)


def _distance(
    domain: Domain, pair: Clique, real: np.ndarray, synthetic: np.ndarray | None
) -> float:
    """The L1 distance of a pair's tables; without synthetic rows, from independent columns."""
    ours = _shares(domain, pair, real)
    if synthetic is None:
        theirs = np.outer(ours.sum(axis=1), ours.sum(axis=0))
    else:
        theirs = _shares(domain, pair, synthetic)
    return float(np.abs(ours - theirs).sum())
