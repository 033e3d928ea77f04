"""Synthetic rows of another program: the same rows to fit, the same scores. Not private.

    python -m sdv_privpgd.benchmark split --table adult --out adult
    python -m sdv_privpgd.benchmark score --rows rows.csv --table adult --out results.parquet
        --method "dpmm MST" --epsilon 1

``split`` writes the rows that ``compare`` fits, the rows that it tests with, and the columns'
numbers of cells. It prints the shares of the table that the declared domain clips. ``score`` reads
rows with the same columns and adds their scores to a file of results.
"""

import argparse
import json
from pathlib import Path

from sdv_privpgd.benchmark.compare import Run, add_table_arguments, append, canonical
from sdv_privpgd.benchmark.fits import Stopwatch, print_table


def add_command(commands) -> None:
    """Adds ``split`` and ``score`` to the command line."""
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


def _split(arguments: argparse.Namespace) -> None:
    from sdv_privpgd.benchmark.single import clipped, table_of  # imports pandas

    table = table_of(arguments)
    for sentence in clipped(table):
        print(sentence)
    arguments.out.mkdir(parents=True, exist_ok=True)
    for name, rows in zip(("train", "test"), table.split(), strict=True):
        rows.to_csv(arguments.out / f"{name}.csv", index=False)
    sizes = dict(zip(table.domain.attributes, table.domain.sizes, strict=True))
    described = {"label": table.label, "task": table.task, "cells": sizes}
    (arguments.out / "table.json").write_text(json.dumps(described, indent=1))


def _score(arguments: argparse.Namespace) -> None:
    from sdv_privpgd.benchmark.single import decoded_scores, scores_of, table_of  # imports pandas
    from sdv_privpgd.benchmark.tables import read_rows

    table = table_of(arguments)
    watch = Stopwatch()
    real = dict(zip(("train", "test"), table.split(), strict=True))
    train, test = (table.encode(rows) for rows in real.values())
    rows = read_rows(arguments.rows, table.schema)
    synthetic = table.encode(rows)
    watch.lap("encode")
    found = scores_of(
        table,
        train if arguments.split == "train" else test,
        synthetic,
        test,
        seed=arguments.seed,
        all_metrics=arguments.all_metrics,
    )
    found |= decoded_scores(table, real[arguments.split], real["test"], rows, seed=arguments.seed)
    watch.lap("score")
    settings = {"delta": arguments.delta, "cells": arguments.cells, "split": arguments.split}
    each = Run(
        method=arguments.method,
        table=table.name,
        epsilon=arguments.epsilon,
        seed=arguments.seed,
        settings=canonical(settings | {"all_metrics": arguments.all_metrics}),
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
