"""The options of the commands for several holders, published tables and more budget."""

import argparse
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sdv_privpgd.cli import refining, releasing


@dataclass(frozen=True, kw_only=True)
class Adding:
    """What adds a command, and options that several commands have."""

    command: Callable[..., argparse.ArgumentParser]
    table: Callable[..., None]
    dialect: Callable[..., None]
    force: Callable[..., None]
    order: Callable[..., None]


def add_commands(each: Any, adding: Adding) -> None:
    """Adds the commands ``measure``, ``combine``, ``from-tables`` and ``refine``."""
    _add_measure(each, adding)
    combine = adding.command(
        each, releasing.combine, "rows of one model of several holders' releases, for nothing"
    )
    combine.add_argument("releases", type=Path, nargs="+", help="what measure wrote, .zip")
    _rows(combine, adding)

    published = adding.command(
        each, releasing.from_tables, "rows of tables that somebody has published; reads no row"
    )
    published.add_argument("tables", type=Path, nargs="+", help="a cell a row; .parquet or .csv")
    published.add_argument("--publisher", required=True, help="whose tables these are")
    _declared(published)
    _rows(published, adding)

    refine = adding.command(
        each, refining.refine, "spend more on the table of a kept synthesizer, on one ledger"
    )
    refine.add_argument("model", type=Path, help="its file, which will hold the finer model")
    refine.add_argument(
        "table", type=Path, nargs="+", help="the table that was fitted, with the same rows"
    )
    refine.add_argument("--epsilon", type=float, required=True, help="what is added to its epsilon")
    refine.add_argument("--out", type=Path, required=True, help="CSV or Parquet")
    refine.add_argument("--rows", type=int, help="as many as the table had, or seemed to have")
    refine.add_argument("--report", type=Path, help="write the public page")
    _books(refine)
    refine.add_argument("--quiet", action="store_true", help="no bars and no report")
    adding.table(refine, is_kept=True)
    adding.force(refine)


def _add_measure(each: Any, adding: Adding) -> None:
    measure = adding.command(
        each, releasing.measure, "noisy tables of one holder, to be combined with others'"
    )
    measure.add_argument(
        "table", type=Path, nargs="+", help="CSV, Parquet or .xlsx; CSV compressed or not"
    )
    measure.add_argument("--holder", required=True, help="whose table it is: a name of its own")
    measure.add_argument("--out", type=Path, required=True, help="the release, .zip")
    measure.add_argument("--epsilon", type=float, required=True, help="what may be spent")
    measure.add_argument("--delta", type=float, default=1e-5)
    _declared(measure)
    measure.add_argument(
        "--method",
        default="privpgd",
        help="privpgd (the usual), mst, aim, mwem, privsyn, privmrf, rap or independent",
    )
    measure.add_argument(
        "--target",
        action="append",
        default=[],
        metavar="COLUMN",
        help="a column that the rows are to predict, the same for all holders; may be repeated",
    )
    measure.add_argument(
        "--adjacency", choices=["replace_one", "add_remove"], default="replace_one"
    )
    measure.add_argument("--rows-per-person", type=int, default=1)
    measure.add_argument(
        "--person-column",
        metavar="COLUMN",
        help="whose a row is: no more than --rows-per-person rows of a person are read",
    )
    adding.order(measure)
    measure.add_argument(
        "--weigh-people",
        action="store_true",
        help="each row of a person counts as 1 / the number of those that are read",
    )
    measure.add_argument("--num-bins", type=int, help="cells of numbers and dates; 32")
    _books(measure)
    measure.add_argument(
        "--no-stop",
        action="store_true",
        help="go on where the first noisy counts have none of the declared values of a column",
    )
    measure.add_argument("--quiet", action="store_true", help="no report")
    adding.table(measure)
    adding.force(measure)


def _declared(command: argparse.ArgumentParser) -> None:
    command.add_argument("--metadata", type=Path, help="SDV's, JSON; needed")
    command.add_argument(
        "--domain", type=Path, help="the public domain, JSON or YAML: column to facts"
    )
    command.add_argument(
        "--public-metadata", action="store_true", help="ranges in the metadata are public"
    )


def _books(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "--ledger", type=Path, help="JSON of what was spent on these people; read, and gone on with"
    )
    command.add_argument(
        "--max-epsilon", type=float, help="spend no more, together with what --ledger says"
    )


def _rows(command: argparse.ArgumentParser, adding: Adding) -> None:
    command.add_argument("--out", type=Path, required=True, help="rows: CSV or Parquet")
    command.add_argument("--rows", type=int, help="as many as the tables count")
    command.add_argument("--report", type=Path, help="write the public page")
    command.add_argument(
        "--engine",
        choices=["particles", "pgm", "gum", "rap", "gem", "private_gsd"],
        default="particles",
    )
    command.add_argument("--seed", type=int, default=0, help="of the engine and the rows")
    command.add_argument("--quiet", action="store_true", help="no report")
    adding.dialect(command)
    adding.force(command)
