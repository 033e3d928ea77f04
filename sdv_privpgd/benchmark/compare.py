r"""The comparison: methods x tables x epsilons x seeds, each run in a fresh process. Not private.

    python -m sdv_privpgd.benchmark compare --methods PrivPGD MST --tables adult --out r.parquet
    python -m sdv_privpgd.benchmark compare --preset paper --out r.parquet
    python -m sdv_privpgd.benchmark compare --tables bank --out r.parquet \
        --preprocess equal_width equal_mass --select mst aim --synthesize pgm particles

80 % of a table's rows are fitted and compared with as many synthetic rows; the other 20 % test
models that are trained on synthetic rows. "Real" stands for the fitted rows themselves. Every
column is cut into at most ``--cells`` cells (see ``tables``). The paper's metrics compare these
cells, which real rows are put into as well; the metric ``outside`` is the share that this clips.
The metrics ``decoded_*`` are on values (see ``single``); those of models, of three columns and of
tails are beside the other 20 %, where "Real" is a fresh real sample of the same size. A seed is
that of the engine, the sample and the metrics; the noise comes from the operating system and
differs in every run. With ``--preprocess``, ``--select`` or ``--synthesize`` the methods are all
arms of these parts (``methods``, ``preprocessing``), whose values are put into the same cells;
an arm's seconds have those of encoding in them. Runs that the file holds are skipped, so an
interrupted comparison goes on where it was. Most of a run's time are the papers' models on codes,
which ``--no-code-models`` leaves out. A run that fails has one row with its error's class, and with
the reason where an arm's parts do not go together.

    python -m sdv_privpgd.benchmark split --table adult --out adult
    python -m sdv_privpgd.benchmark score --rows rows.csv --table adult --out results.parquet \
        --method "dpmm MST" --epsilon 1

``split`` is for another program: it writes the rows that ``compare`` fits, the rows that it tests
with, and the columns' numbers of cells, and prints the shares of the table that the declared domain
clips. ``score`` reads that program's rows, with the same columns, and adds their scores to a file
of results.

The file is Parquet with one row a metric of a run, written whole and atomically. A run is one
method on one table at one epsilon with one seed and one set of settings.
"""

import argparse
import json
import math
import os
import platform
import signal
import subprocess
import sys
import traceback
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, fields
from datetime import datetime, timezone
from fractions import Fraction
from importlib.metadata import distributions
from itertools import product
from pathlib import Path
from typing import Any

from sdv_privpgd import MatchError
from sdv_privpgd.benchmark.fits import FOLDER, Stopwatch, print_table
from sdv_privpgd.benchmark.methods import KINDS, METHODS, REAL, SHARE, names_of
from sdv_privpgd.benchmark.single import (
    clipped,
    decoded_scores,
    method_of,
    run_once,
    scores_of,
    table_of,
)
from sdv_privpgd.benchmark.tables import TABLES, check_names, read_rows

_COLUMNS = {
    "method": "string",
    "table": "string",
    "epsilon": "float64",  # as claimed
    "seed": "int64",
    "settings": "string",  # JSON
    "metric": "string",
    "value": "float64",
    "error": "string",
    "reason": "string",  # why an arm's parts do not go together
    "delta": "float64",
    "adjacency": "string",
    "spent_epsilon": "float64",
    "rows": "int64",
    "columns": "int64",
    "fit_seconds": "float64",
    "sample_seconds": "float64",
    "score_seconds": "float64",
    "peak_mebibytes": "float64",
    "versions": "string",  # JSON
    "finished": "string",  # ISO 8601, UTC
}

_PACKAGES = ("sdv-privpgd", "numpy", "scipy", "torch", "numba", "scikit-learn")


@dataclass(frozen=True, kw_only=True)
class Run:
    """The identity of a run. ``settings`` is JSON with sorted keys."""

    method: str
    table: str
    epsilon: float
    seed: int
    settings: str


def _run(row: Mapping) -> Run:
    return Run(**{each.name: row[each.name] for each in fields(Run)})


def canonical(settings: Mapping) -> str:
    """Settings as JSON. The same settings always give the same text."""
    return json.dumps(settings, sort_keys=True)


def held(path: Path, *, failed: bool = True) -> set[Run]:
    """The runs that a file holds, with or without those that failed."""
    return {_run(row) for row in _rows(path) if failed or row["error"] is None}


def append(path: Path, run: Run, facts: Mapping, scores: Mapping[str, float]) -> None:
    """Adds a run to a file, or replaces the same run in it.

    A reader sees the file before or after, never half of it. Only one process may write at a time,
    because the file is read and replaced.
    """
    import pyarrow as pa
    from pyarrow import parquet

    installed = {found.metadata["Name"]: found.version for found in distributions()}
    own = {name: installed[name] for name in _PACKAGES if name in installed}
    versions = {"python": platform.python_version(), **own}
    now = datetime.now(timezone.utc).isoformat(timespec="seconds")
    common = {**asdict(run), **facts, "versions": json.dumps(versions), "finished": now}
    metrics: Sequence[dict] = [{"metric": name, "value": value} for name, value in scores.items()]
    added = [{**common, **metric} for metric in metrics or [{}]]
    kept = [row for row in _rows(path) if _run(row) != run]
    schema = pa.schema([(name, getattr(pa, kind)()) for name, kind in _COLUMNS.items()])
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = path.with_name(f".{path.name}.{os.getpid()}")
    parquet.write_table(pa.Table.from_pylist([*kept, *added], schema=schema), draft)
    os.replace(draft, path)


def _rows(path: Path) -> list[dict]:
    """A file's rows as plain values, ``None`` where there is none."""
    from pyarrow import parquet

    return parquet.read_table(path).to_pylist() if path.exists() else []


PAPER = {
    "methods": ["PrivPGD", "PrivPGD-published", "PrivPGD-published-noise", "MST", "AIM", REAL],
    "tables": ["acs_income", "acs_mobility", "acs_traveltime", "diabetes_task"],
    "epsilons": [2.5, 1.0, 0.2],
    "seeds": 5,
}
"""The grid of Donhauser et al. 2024, section 4, as far as its tables are at hand."""

_DEFAULTS = {"methods": ["PrivPGD", "Independent"], "tables": [], "epsilons": [1.0], "seeds": 1}


def add_command(commands) -> None:
    """Adds ``compare``, its single runs, ``split`` and ``score`` to the command line."""
    compare = commands.add_parser("compare", help="methods x tables x epsilons x seeds")
    compare.add_argument("--preset", choices=["paper"], help="the paper's grid, where not given")
    methods = (*METHODS, REAL)
    compare.add_argument(
        "--methods", nargs="+", choices=methods, metavar="METHOD", help=", ".join(methods)
    )
    whats = "what makes codes of the table", "what is asked", "what makes rows of the answers"
    for (kind, choices), what in zip(KINDS.items(), whats, strict=True):
        said = f"exchange: {what}: {', '.join(choices)}"
        compare.add_argument(f"--{kind}", nargs="+", choices=choices, metavar="PART", help=said)
    compare.add_argument("--tables", nargs="+", metavar="TABLE", help=", ".join(TABLES))
    compare.add_argument("--epsilons", nargs="+", type=float)
    compare.add_argument("--seeds", type=int, help="repetitions with fresh noise")
    compare.add_argument("--out", type=Path, required=True, help="the Parquet file of results")
    compare.add_argument("--retry", action="store_true", help="run again what failed")
    add_table_arguments(compare)
    compare.add_argument("--rows", type=int, help="so many rows of the table, at random")
    compare.add_argument("--delta", type=float, default=1e-5)
    compare.add_argument("--num-particles", type=int, help="instead of a method's own number")
    compare.add_argument("--published-epochs", type=int, help="instead of 1,000")
    compare.add_argument("--max-megabytes", type=float, default=80.0, help="of AIM's model")
    compare.add_argument(
        "--share", type=Fraction, default=SHARE, help="of the budget, for preprocessing"
    )
    compare.add_argument(
        "--no-code-models",
        action="store_true",
        help="leave out models that learn codes, most of the time; those of values stay",
    )
    compare.add_argument("--most-seconds", type=int, default=0, help="of a run; 0: no limit")
    compare.set_defaults(run=_compare)
    once = commands.add_parser("compare-once", help="one run of compare; prints JSON")
    once.add_argument("options", type=json.loads, help="those of compare, and of the run, as JSON")
    once.set_defaults(run=_once)
    split = commands.add_parser("split", help="a table's rows as CSV for another program")
    split.add_argument("--out", type=Path, required=True, help="folder for the files")
    split.set_defaults(run=_split)
    score = commands.add_parser("score", help="scores synthetic rows of another program")
    score.add_argument("--rows", type=Path, required=True, help="CSV or Parquet")
    score.add_argument("--split", choices=["train", "test"], default="train", help="real rows")
    score.add_argument("--method", required=True, help="what it is called in the results")
    score.add_argument("--epsilon", type=float, required=True, help="as the program claims")
    score.add_argument("--delta", type=float, default=1e-5)
    score.add_argument("--adjacency", default="replace_one", choices=["replace_one", "add_remove"])
    score.add_argument("--seed", type=int, default=0, help="tells repetitions apart")
    score.add_argument("--out", type=Path, required=True, help="the Parquet file of results")
    score.set_defaults(run=_score)
    for parser in (split, score):
        add_table_arguments(parser)


def add_table_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the options that ``table_of`` reads."""
    parser.add_argument("--table", help="a table by name, or a file with its --metadata")
    parser.add_argument("--metadata", type=Path, help="SDV's metadata of your own table, JSON")
    parser.add_argument("--domain", type=Path, help="its public domain, JSON: column to facts")
    parser.add_argument("--label", help="its column to predict")
    parser.add_argument("--data", type=Path, default=FOLDER, help="folder of the named tables")
    parser.add_argument("--cells", type=int, default=32, help="the most cells of a column")
    parser.add_argument("--all-metrics", action="store_true", help="not only the paper's six")


@contextmanager
def _own_errors() -> Iterator[None]:
    """Ends with a sentence and no traceback where a table or what is said of it cannot be used."""
    try:
        yield
    except (OSError, ValueError) as error:
        raise SystemExit(str(error)) from None


def _compare(arguments: argparse.Namespace) -> None:
    from tqdm import tqdm

    given = PAPER if arguments.preset == "paper" else _DEFAULTS
    grid = {
        key: value if getattr(arguments, key) is None else getattr(arguments, key)
        for key, value in given.items()
    }
    if arms := names_of(arguments.preprocess, arguments.select, arguments.synthesize):
        grid["methods"] = [*(arguments.methods or []), *arms]
    tables = grid["tables"] if arguments.table is None else [arguments.table]
    if not tables:
        raise SystemExit("Name tables: --tables, --table with --metadata, or --preset paper.")
    with _own_errors():  # each run would fail for it
        _ = check_names(tables) if arguments.metadata is None else table_of(arguments)
    # Seeds are the outer loop, so that an interrupted comparison has runs of every method.
    cells = [
        (str(method), str(table), math.inf if method == REAL else float(epsilon), int(seed))
        for seed, table, epsilon, method in product(
            range(grid["seeds"]), tables, grid["epsilons"], grid["methods"]
        )
    ]
    runs = {cell: _run_of(arguments, *cell) for cell in cells}
    done = held(arguments.out, failed=not arguments.retry)
    missing = {cell: each for cell, each in runs.items() if each not in done}
    print(f"{len(runs)} runs, {len(runs) - len(missing)} of them held by {arguments.out}.")
    num_failed = 0
    with tqdm(missing.items(), unit="run") as bar:
        for (method, table, epsilon, seed), each in bar:
            bar.set_postfix_str(f"{method} {each.table} epsilon {epsilon:g} seed {seed}")
            chosen = {"method": method, "table": table, "epsilon": epsilon, "seed": seed}
            try:
                found = _in_fresh_process(arguments, **chosen)
            except subprocess.CalledProcessError as failure:
                found = {"facts": _error_of(failure), "scores": {}}
                num_failed += "reason" not in found["facts"]
                if "reason" in found["facts"]:
                    bar.write(f"{method} on {each.table}: {found['facts']['reason']}")
            append(arguments.out, each, found["facts"], found["scores"])
    if num_failed:
        print(f"{num_failed} runs failed: --retry runs them again.")


def _run_of(
    arguments: argparse.Namespace, method: str, table: str, epsilon: float, seed: int
) -> Run:
    own = {} if method == REAL else method_of(arguments, method).settings()
    read = ("delta", "cells", "rows", "label", "all_metrics")
    known = {key: getattr(arguments, key) for key in read if getattr(arguments, key) is not None}
    known |= {"models_on_codes": False} if arguments.no_code_models else {}
    return Run(
        method=method,
        table=table if arguments.metadata is None else Path(table).stem,
        epsilon=epsilon,
        seed=seed,
        settings=canonical({**known, **own}),
    )


def _in_fresh_process(arguments: argparse.Namespace, **chosen: Any) -> dict:
    """The JSON that ``compare-once`` prints as its last line, run by a new interpreter."""
    given = {key: each for key, each in vars(arguments).items() if key not in ("run", "out")}
    options = json.dumps({**given, **chosen}, default=str)
    command = [sys.executable, "-m", "sdv_privpgd.benchmark", "compare-once", options]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    return json.loads(done.stdout.splitlines()[-1])


def _error_of(failure: subprocess.CalledProcessError) -> dict[str, str]:
    """The class of the error that ended a run, or the signal; SIGKILL means too little memory.

    And the reason where parts do not go together.
    """
    if failure.returncode < 0:
        return {"error": signal.Signals(-failure.returncode).name}
    lines = failure.stdout.splitlines()
    return json.loads(lines[-1]) if lines else {"error": f"exit status {failure.returncode}"}


def _once(arguments: argparse.Namespace) -> None:
    sys.excepthook = _say_error
    options = {**arguments.options, "share": Fraction(arguments.options["share"])}
    run_once(argparse.Namespace(**options))


def _say_error(kind: type[BaseException], error: BaseException, trace) -> None:
    """Prints the usual traceback, and the error's class for the process that waits."""
    traceback.print_exception(kind, error, trace)
    reason = {"reason": str(error)} if issubclass(kind, MatchError) else {}
    print(json.dumps({"error": kind.__name__, **reason}), flush=True)


@_own_errors()
def _split(arguments: argparse.Namespace) -> None:
    table = table_of(arguments)
    for sentence in clipped(table):
        print(sentence)
    arguments.out.mkdir(parents=True, exist_ok=True)
    for name, rows in zip(("train", "test"), table.split(), strict=True):
        rows.to_csv(arguments.out / f"{name}.csv", index=False)
    sizes = dict(zip(table.domain.attributes, table.domain.sizes, strict=True))
    described = {"label": table.label, "task": table.task, "cells": sizes}
    (arguments.out / "table.json").write_text(json.dumps(described, indent=1))


@_own_errors()
def _score(arguments: argparse.Namespace) -> None:
    table = table_of(arguments)
    watch = Stopwatch()
    real = dict(zip(("train", "test"), table.split(), strict=True))
    train, test = (table.encode(rows) for rows in real.values())
    rows = read_rows(arguments.rows, table.schema)
    synthetic = table.encode(rows)
    watch.lap("encode")
    known = {"seed": arguments.seed, "all_metrics": arguments.all_metrics}
    found = scores_of(
        table, train if arguments.split == "train" else test, synthetic, test, **known
    )
    found |= decoded_scores(table, real[arguments.split], real["test"], rows, seed=arguments.seed)
    watch.lap("score")
    names = ("delta", "cells", "split", "all_metrics")
    each = Run(
        method=arguments.method,
        table=table.name,
        epsilon=arguments.epsilon,
        seed=arguments.seed,
        settings=canonical({key: getattr(arguments, key) for key in names}),
    )
    facts = {
        "delta": arguments.delta,
        "adjacency": arguments.adjacency,
        "rows": len(train),
        "columns": len(table.domain),
        "score_seconds": watch.seconds["score"],
    }
    append(arguments.out, each, facts, found)
    print_table([{"method": arguments.method, **found}], header=True)
