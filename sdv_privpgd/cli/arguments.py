"""The commands and their options. An option is described once; a command lists those it has."""

import argparse
import codecs
import csv
from collections.abc import Callable, Mapping
from importlib.metadata import version
from pathlib import Path
from typing import Any, NoReturn

from sdv_privpgd.cli import commands, releasing, synthesizing
from sdv_privpgd.cli.reading import Typed
from sdv_privpgd.cli.saying import PROGRAM

Options = Mapping[str, Mapping[str, Any]]
"""What argparse is told of options, by their names."""


class _Parser(argparse.ArgumentParser):
    """A parser whose errors are two lines, and not all options."""

    def error(self, message: str) -> NoReturn:
        if message.endswith("expected one argument"):
            option = message.split()[1].rstrip(":").split("/")[0]
            message += f"; one that begins with a minus is written {option}=-..."
        self.exit(2, f"{PROGRAM}: {message}\nSee {self.prog} --help.\n")


class _Help(argparse.RawDescriptionHelpFormatter):
    """Help that ends with what an option is if nobody says otherwise."""

    def _get_help_string(self, action: argparse.Action) -> str | None:
        usual = action.default
        is_told = isinstance(usual, str | int | float) and not isinstance(usual, bool)
        is_told = is_told and usual != argparse.SUPPRESS
        return f"{action.help} (default: {usual})" if is_told else action.help


# What text on a command line means.


def _separator(text: str) -> str:
    return _character({"\\t": "\t", "tab": "\t"}.get(text, text))


def _character(text: str) -> str:
    if len(text) != 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not one character")
    return text


def _lines(text: str) -> int:
    if not (text.isascii() and text.isdigit()):
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of lines, 0 or more")
    return int(text)


def _encoding(text: str) -> str:
    try:
        return codecs.lookup(text).name
    except LookupError:
        raise argparse.ArgumentTypeError(f"no encoding is named {text!r}") from None


def _names(text: str) -> tuple[str, ...]:
    names = tuple(name.strip() for name in next(csv.reader([text]), []))
    if not all(names) or not names or len(set(names)) < len(names):
        raise argparse.ArgumentTypeError("names must differ, and none may be empty")
    return names


def _most(text: str) -> tuple[str, int]:
    name, _, number = text.rpartition("=")
    if not (number.isascii() and number.isdigit() and int(number)):
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of rows, or TABLE=NUMBER")
    return name, int(number)


def _pair(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not equals:
        raise argparse.ArgumentTypeError(f"{text!r} is not COLUMN=VALUE")
    return name, value


def _typed(text: str) -> Typed:
    try:
        return Typed.of(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


# Kinds of options.


def _read_as(kind: Callable[[str], Any], about: str | None, **more: Any) -> dict[str, Any]:
    return {"type": kind, "help": about, **more}


def _path(about: str | None = None, **more: Any) -> dict[str, Any]:
    return _read_as(Path, about, **more)


def _number(about: str, kind: type = int, **more: Any) -> dict[str, Any]:
    return _read_as(kind, about, **more)


def _flag(about: str) -> dict[str, Any]:
    return {"action": "store_true", "help": about}


def _repeated(about: str, **more: Any) -> dict[str, Any]:
    return {"action": "append", "default": [], "help": f"{about}; may be repeated", **more}


def _columns(about: str) -> dict[str, Any]:
    return {"type": _names, "default": (), "metavar": "A,B,...", "help": about}


def _column(about: str) -> dict[str, Any]:
    return {"metavar": "COLUMN", "help": about}


_FORCE = {"--force": _flag("overwrite files, but never an input")}
_QUIET = {"--quiet": _flag("no bars and no report")}
_PAGE = {"--report": _path("write the public page")}
_PLAN_PAGE = {"--report": _path("write it as a page")}
_MODEL = {"model": _path()}
_ROWS_OUT = {
    "--out": _path("CSV or Parquet", required=True),
    "--rows": _number("as many as the table had, or seemed to have"),
}
_MARK = {
    "--mark": {
        "choices": ["column", "comment"],
        "help": "say in the rows, too, that they are synthetic: in a column, or in a first line of "
        "text that begins with #",
    }
}
_TABLE = {
    "table": _path(
        "CSV (compressed or not), Parquet or .xlsx; a folder or pattern of such, or several",
        nargs="+",
    )
}
_ENGINE_SEED = {"--seed": _number("of the engine, not of the noise", default=0)}

_PUBLIC: Options = {
    "--metadata": _path("SDV's, JSON"),
    "--domain": _path("the public domain: JSON or YAML, or a codebook (.csv, .xlsx)"),
    "--public-metadata": _flag("ranges in the metadata are public"),
}
_TYPES: Options = {
    "--types": {
        "choices": ["detect", "dtypes"],
        "default": "detect",
        "help": "without metadata, types are detected from cells, or are what dtypes say: of a "
        "Parquet file its own, of text those of --dtype",
    }
}
_MEASURED: Options = {
    "--columns": _columns("the columns to model; all others are left out"),
    "--drop": _columns("columns to leave out"),
    "--method": {
        "default": "privpgd",
        "help": "privpgd (the usual), mst, aim, mwem, privsyn, privmrf, rap, independent, and "
        "where rows are made rap++, gem, private_gsd, dp-merf, dp-diffusion or dp-ctgan; "
        "aim+particles is one with another engine",
    },
    "--target": _repeated(
        "a column that the rows are to predict, which is public", metavar="COLUMN"
    ),
    "--num-bins": _number(
        "cells of numbers and dates; as many as the noise can pay for, 4 to 32, and 32 where all "
        "is declared"
    ),
}
_MADE_UP: Options = {
    "--make-up": _columns(
        "columns that are not read, and have values that are made up: whole numbers, or the "
        "metadata's regex_format"
    )
}
_OF_TABLE: Options = {
    "--allow-lost": _columns(
        "columns for which a fit does not stop, whatever it would lose of them"
    ),
    "--prior": _path(
        "public rows that are like the private ones, CSV or Parquet, or a kept model; may be given "
        "several times. They cost nothing and must be public",
        action="append",
        metavar="FILE",
    ),
}
_FITTED: Options = {
    "--constraints": _path("SDV's, JSON: class names and parameters; never learned"),
    "--discovery-share": _number(
        "the part of the budget that finds what is not declared", float, default=0.2
    ),
    **_ENGINE_SEED,
}
_BUDGET: Options = {
    "--epsilon": _number("what may be spent", float),
    "--delta": _number(
        "a tenth of 1 / (number of rows), and no more than 1e-5; needed with add_remove", float
    ),
    "--adjacency": {
        "choices": ["replace_one", "add_remove"],
        "default": "replace_one",
        "help": "a row may be another one, and the number of rows is public; or it may be there or "
        "not, and their number is private",
    },
}
_PEOPLE: Options = {
    "--rows-per-person": _number("the most of one person", default=1),
    "--person-column": _column(
        "whose a row is: no more than --rows-per-person rows of a person are read"
    ),
    "--rows-are-people": _flag(
        "each row is another person's; else, and without --person-column, a row is protected and "
        "no person"
    ),
    "--weigh-people": _flag("each row of a person counts as 1 / the number of those that are read"),
    "--weight-column": _column(
        "how many of a population a row stands for, as surveys have it: shares in the rows are the "
        "population's"
    ),
    "--weight-range": _number(
        "public ends that weights are clipped to; a row counts as its weight / HIGH",
        float,
        nargs=2,
        metavar=("LOW", "HIGH"),
    ),
    "--sequence-index": _column(
        "dates or numbers by which the rows of a person are in order; each row is told of the row "
        "before, and rows come person by person"
    ),
    "--previous": _repeated(
        "a column of which a row is told what the row before had", metavar="COLUMN"
    ),
    "--context-column": _repeated(
        "a column in which all rows of a person have the same", metavar="COLUMN"
    ),
}
_BOOKS: Options = {
    "--ledger": _path("JSON of what was spent on these people; read, and gone on with"),
    "--max-epsilon": _number("spend no more, together with what --ledger says", float),
}
_LINKS: Options = {
    "--link": _repeated(
        "which rows lead to which: each file is a table of its name, --metadata is of all tables "
        "and --domain has columns by table; a row of the table without a parent is protected with "
        "all that lead to it, and --out is a folder",
        metavar="CHILD.KEY=PARENT.KEY",
    ),
    "--max-children": _repeated(
        "how many rows of a table are used of each row that they lead to; links are those of the "
        "metadata unless --link names them",
        type=_most,
        metavar="[TABLE=]N",
    ),
}


def _dialect(usual: str) -> Options:
    """How text is read and written; ``usual`` says what else may know it."""
    return {
        "--sep": _read_as(_separator, f"between columns of text; {usual}a comma, in .tsv a tab"),
        "--decimal": _read_as(_character, f"before decimals of text; {usual}a point"),
        "--encoding": _read_as(
            _encoding, f"of text, such as cp1252; {usual}UTF-8, or what its mark says"
        ),
    }


def _written(usual: str) -> Options:
    """How a table is written that is read."""
    above = "lines above the names (or the first row) in each file, such as a title"
    below = "lines below the rows in each file, such as a sum; blank ones do not count"
    return {
        **_dialect(usual),
        "--thousands": _read_as(_character, "in numbers of text, such as . in 1.234,56"),
        "--na": _repeated(
            "means missing, besides empty cells, NA, null and the like: -, n/a, -99", metavar="WORD"
        ),
        "--sheet": {"help": "of a workbook with several"},
        "--skip-rows": _read_as(_lines, f"{above}; {usual}none", metavar="N"),
        "--skip-footer": _read_as(_lines, f"{below}; {usual}none", metavar="N"),
        "--names": {
            **_columns("names of the columns; the first record is a row, unless --header"),
            "default": None,
        },
        "--header": {
            "action": "store_const",
            "const": True,
            "help": "the first record holds the names, which become public; to be said where "
            "nothing else declares them all",
        },
        "--no-header": {
            "action": "store_const",
            "const": False,
            "dest": "header",
            "help": "it is a row",
        },
        "--dtype": _repeated(
            "what a column is, before what is detected: category, id, date:%%d.%%m.%%Y, "
            "time:%%H:%%M, percent (or percent:12 %%, as a number is written), bool:J/N, number or "
            "number:1.234,5 (written as 1234.5 is); or pandas' type of its cells, such as str, "
            "Int64, float, boolean or datetime64[ns] (dates in text: ISO 8601)",
            type=_typed,
            metavar="COLUMN=TYPE",
        ),
    }


_HOW, _WRITTEN = "what is modelled, and how", "how the table is written"
_TOLD = "what synthesize was told; else "
_READ = {_WRITTEN: _written("")}
_READ_AS_KEPT = {_WRITTEN: _written(_TOLD)}


def _of_fit(how: Options, *, needs_epsilon: bool = True) -> dict[str, Options]:
    """The groups of options of a fit, and of what is like one."""
    epsilon = {"--epsilon": {**_BUDGET["--epsilon"], "required": needs_epsilon}}
    return {
        _HOW: how,
        "what is public of the table": _PUBLIC,
        "what may be spent": {**_BUDGET, **epsilon},
        "whose the rows are": _PEOPLE,
    }


_FIT = _of_fit({**_TYPES, **_MEASURED, **_MADE_UP, **_OF_TABLE, **_FITTED})
_AUDITED = _of_fit({**_MEASURED, **_MADE_UP, **_FITTED}, needs_epsilon=False)
_RUNS = {"the books of several runs": _BOOKS}
_LINKED = {"several tables that belong together": _LINKS}
_MODELLED: Options = {
    "--out": _path("rows: CSV or Parquet", required=True),
    "--rows": _number("as many as the tables count"),
    **_PAGE,
    **_MARK,
    "--engine": {
        "choices": ["particles", "pgm", "gum", "rap", "gem", "private_gsd"],
        "default": "particles",
        "help": "what makes rows of the tables",
    },
    "--seed": _number("of the engine and the rows", default=0),
    "--quiet": _flag("no report"),
    **_FORCE,
}

_Command = tuple[Callable, str, str, Options, Mapping[str, Options]]
_COMMANDS: tuple[_Command, ...] = (
    (
        synthesizing.synthesize,
        "fit a table and write synthetic rows",
        "visits.csv --header --epsilon 1 --rows-are-people --out synthetic.csv",
        {
            **_TABLE,
            "--out": _path("CSV or Parquet; needed but for --dry-run"),
            "--rows": _number("synthetic rows; as many as the table has, or as it seems to have"),
            **_PAGE,
            "--model": _path("keep the fitted table"),
            **_MARK,
            "--dry-run": _flag("the same as plan"),
            **_QUIET,
            **_FORCE,
        },
        {**_FIT, **_RUNS, **_LINKED, **_READ},
    ),
    (
        synthesizing.finish,
        "make rows of what an interrupted fit had paid for, for nothing",
        "model.zip --out synthetic.csv",
        {
            "model": _path("its file, which will hold the fitted table"),
            **_ROWS_OUT,
            "--table": _repeated(
                "the same table: the rest of the budget is spent first", type=Path
            ),
            **_PAGE,
            **_MARK,
            "--ledger": _path("of the interrupted run; what is spent now is added"),
            "--max-epsilon": _number(
                "with --table: spend no more, together with what --ledger or the model says", float
            ),
            **_QUIET,
            **_FORCE,
        },
        _READ_AS_KEPT,
    ),
    (
        synthesizing.check,
        "what becomes of each column; reads no cell but to detect types, and spends nothing",
        "visits.csv --header --epsilon 1",
        {**_TABLE, **_PLAN_PAGE, **_FORCE},
        {**_FIT, **_READ},
    ),
    (
        synthesizing.plan,
        "what a fit would ask, and the noise; spends nothing",
        "visits.csv --header --epsilon 1",
        {
            "table": _path("read only to detect types, or to count rows", nargs="*"),
            "--rows": _number("as many as the table has"),
            **_PLAN_PAGE,
            **_FORCE,
        },
        {**_FIT, **_LINKED, **_READ},
    ),
    (
        commands.sample,
        "write more rows of a model, for nothing",
        "model.zip --rows 500 --condition ward=B --out more.csv",
        {
            "model": _path("moves on, so that the next rows are new ones"),
            **_ROWS_OUT,
            **_MARK,
            "--condition": _repeated(
                "what all rows have; nothing after = is missing, 30..40 a range, and --decimal "
                "stands before decimals",
                type=_pair,
                metavar="COLUMN=VALUE",
            ),
            "--again": _flag(
                "the rows from the start, which were written before; the model does not move on"
            ),
            "--ledger": _path("where the run's ledger is, if it is to be told what was spent"),
            "--quiet": _flag("no bar"),
            **_FORCE,
        },
        {_WRITTEN: _dialect(_TOLD)},
    ),
    (
        commands.evaluate,
        "compare with the real table; NOT PRIVATE",
        "model.zip visits.csv --out comparison.html",
        {
            **_MODEL,
            "table": _path("the real table", nargs="+"),
            "--out": _path("a page that is not private", required=True),
            "--label": {"help": "a column that models learn to predict"},
            "--held-out": _repeated(
                "real rows that were not fitted; default: a random fifth", type=Path
            ),
            "--quiet": _flag("say nothing; the page does"),
            **_FORCE,
        },
        _READ_AS_KEPT,
    ),
    (
        commands.draft_domain,
        "a public domain to fill in; no value is read",
        "visits.csv --header --out domain.json --metadata-out metadata.json",
        {
            "table": _path("its names and types are taken", nargs="*"),
            "--metadata": _path("SDV's, JSON; takes the place of the table"),
            "--out": _path(".json, .yaml, .csv or .xlsx, for --domain", required=True),
            "--metadata-out": _path("write metadata, too: JSON, --metadata"),
            **_FORCE,
        },
        _READ,
    ),
    (
        commands.audit,
        "what an attacker could find out, tried on made-up tables; reads no row, spends nothing",
        "--metadata metadata.json --domain domain.json --epsilon 1",
        {
            "--model": _path(
                "a model: its settings, and all that it holds; no option of a fit is needed"
            ),
            "--runs": _number(
                "how often a few people are attacked in each of two worlds; 10,000 take seconds",
                default=10_000,
            ),
            "--out": _path("write the findings: JSON"),
            "--report": _path("write the page"),
            **_FORCE,
        },
        _AUDITED,
    ),
    (
        commands.describe,
        "what a model is and has spent",
        "model.zip",
        {
            **_MODEL,
            "--report": _path("write the public page, too"),
            "--officer": _path("write one page for who decides on the release, too"),
            "--ledger": _path("of all runs on these people: --officer counts all together"),
            "--methods": _flag("print a text for a methods section, too"),
            **_FORCE,
        },
        {},
    ),
    (
        commands.registry,
        "what a fit knows of its entry in the public registry of deployments",
        'model.zip --name "Visits 2025" --curator "Northland Health" --out visits_2025.yaml',
        {
            **_MODEL,
            "--out": _path("the entry: .yaml, or .json; without it, its blanks are named"),
            "--name": {"default": "", "help": "what the rows are called"},
            "--region": {"default": "", "help": "which region they describe, or whose law applies"},
            "--use": {"default": "", "help": "what they are for"},
            "--curator": _repeated("who publishes them", dest="curators"),
            "--author": _repeated("who fills it in", dest="authors"),
            "--ledger": _path("of all runs on these people: the entry is of all together"),
            **_FORCE,
        },
        {},
    ),
    (
        commands.identify,
        "which release a file of rows is from",
        "synthetic.csv model.zip",
        {
            "rows": _path("CSV or Parquet"),
            "releases": _path("models it may be from, or cards (.about.json)", nargs="*"),
        },
        {},
    ),
    (
        releasing.measure,
        "noisy tables of one holder, to be combined with others'",
        "north.csv --holder North --epsilon 1 --metadata metadata.json --domain domain.json --out "
        "north.zip",
        {
            "table": _path("CSV, Parquet or .xlsx; CSV compressed or not", nargs="+"),
            "--holder": {"required": True, "help": "whose table it is: a name of its own"},
            "--out": _path("the release, .zip", required=True),
            "--no-stop": _flag(
                "go on where the first noisy counts have none of the declared values of a column"
            ),
            "--quiet": _flag("no report"),
            **_FORCE,
        },
        {**_of_fit(_MEASURED), **_RUNS, **_READ},
    ),
    (
        releasing.combine,
        "rows of one model of several holders' releases, for nothing",
        "north.zip south.zip --out rows.csv",
        {"releases": _path("what measure wrote, .zip", nargs="+"), **_MODELLED},
        {_WRITTEN: _dialect("")},
    ),
    (
        releasing.from_tables,
        "rows of tables that somebody has published; reads no row",
        'census.parquet --publisher "the census" --metadata metadata.json --out rows.csv',
        {
            "tables": _path("a cell a row; .parquet or .csv", nargs="+"),
            "--publisher": {"required": True, "help": "whose tables these are"},
            "--suppressed-below": _number("smaller counts were not told: empty, absent, * or <10"),
            "--rounded-to": _number("counts are multiples of it"),
            "--total": _number("how many rows per cents are of"),
            **_MODELLED,
        },
        {"what is public of the table": _PUBLIC, _WRITTEN: _dialect("")},
    ),
    (
        synthesizing.refine,
        "spend more on the table of a model, on one ledger",
        "model.zip visits.csv --epsilon 0.5 --out finer.csv",
        {
            "model": _path("its file, which will hold the finer model"),
            "table": _path("the table that was fitted, with the same rows", nargs="+"),
            "--epsilon": _number("what is added to its epsilon", float, required=True),
            **_ROWS_OUT,
            **_PAGE,
            **_MARK,
            **_QUIET,
            **_FORCE,
        },
        {**_RUNS, **_READ_AS_KEPT},
    ),
)


def parser() -> argparse.ArgumentParser:
    """The parser. Its result has a function ``run``, which takes the result."""
    whole = _Parser(
        prog=PROGRAM, description="Differentially private synthetic tables.", allow_abbrev=False
    )
    whole.add_argument("--version", action="version", version=f"{PROGRAM} {version(PROGRAM)}")
    each = whole.add_subparsers(required=True, metavar="COMMAND")
    for run, about, example, own, groups in _COMMANDS:
        name = run.__name__.replace("_", "-")
        command = each.add_parser(
            name,
            help=about,
            description=f"{about[0].upper()}{about[1:]}.",
            epilog=f"example:\n  {PROGRAM} {name} {example}",
            formatter_class=_Help,
            allow_abbrev=False,
        )
        command.set_defaults(run=run)
        for title, options in {None: own, **groups}.items():
            group: Any = command if title is None else command.add_argument_group(title)
            one_of = group.add_mutually_exclusive_group() if "--header" in options else group
            added = [
                (one_of if option in ("--header", "--no-header") else group).add_argument(
                    option, **told
                )
                for option, told in options.items()
            ]
            if groups is _AUDITED and title is not None:  # what is not said may be of the model
                usual = {one.dest: one.default for one in added}
                before = command.get_default("usual") or {}
                command.set_defaults(usual={**before, **usual}, **dict.fromkeys(usual))
    return whole
