"""The commands and their options, in a table of text. An option is described once.

A line is an option, what it takes, in brackets what it is if nobody says it, and its help, two
spaces on. ``!`` has to be given, ``*`` any number of times, ``+`` at least once; what takes nothing
is a flag.
"""

import argparse
import codecs
import csv
import re
from collections.abc import Callable, Mapping
from importlib.metadata import version
from pathlib import Path
from typing import Any, NoReturn

from sdv_privpgd.cli import commands, synthesizing
from sdv_privpgd.cli.reading import Typed
from sdv_privpgd.cli.saying import PROGRAM

_WRITTEN = """
    --sep SEPARATOR     between columns of text; TOLDa comma, in .tsv a tab
    --decimal SIGN      before decimals of text; TOLDa point
    --encoding ENCODING  of text, such as cp1252; TOLDUTF-8, or what its mark says
"""
_READ = """
    --thousands SIGN    in numbers of text, such as . in 1.234,56
    --na WORD*          means missing, such as - or -99: besides empty cells, and besides NA, null
                        and the like where columns are no text or have declared categories
    --sheet NAME        of a workbook with several
    --skip-rows LINES   lines above the names (or the first row) in each file, such as a title;
                        TOLDnone
    --skip-footer LINES  lines below the rows in each file, such as a sum; blank ones do not count,
                        but blank rows of a sheet do; TOLDnone
    --names NAMES       names of the columns; the first record is a row, unless --header
    --header            the first record holds the names, which become public; to be said where
                        nothing else declares them all
    --no-header         it is a row
    --dtype COLUMN=TYPE*  what a column is, before what is detected: category, id,
                        date:%%d.%%m.%%Y, time:%%H:%%M, percent (or percent:12 %%, as a number is
                        written), bool:J/N, number or number:1.234,5 (written as 1234.5 is); or
                        pandas' type of its cells, such as str, Int64, float, boolean or
                        datetime64[ns] (dates in text: ISO 8601)
"""
_PUBLIC = """
    --metadata FILE     SDV's, JSON
    --domain FILE       the public domain: JSON or YAML, or a codebook (.csv, .xlsx)
    --public-metadata   ranges in the metadata are public
"""
_MEASURED = """
    --columns A,B,...   the columns to model; all others are left out
    --drop A,B,...      columns to leave out; with --link they are TABLE.COLUMN
    --method NAME (privpgd)  privpgd (the usual), mst, aim, mwem, privsyn, privmrf, rap,
                        independent, and where rows are made rap++, gem, private_gsd, dp-merf,
                        dp-diffusion or dp-ctgan; aim+particles is one with another engine
    --target COLUMN*    a column that the rows are to predict, which is public
    --num-bins N        cells of numbers and dates; as many as the noise can pay for, 4 to 32, and
                        32 where all is declared
"""
_FITTED = """
    --make-up A,B,...   columns that are not read, and have values that are made up: whole numbers,
                        or the metadata's regex_format
    --constraints FILE  SDV's, JSON: class names and parameters, with --link a table_name, too;
                        never learned
    --discovery-share X (0.2)  the part of the budget that finds what is not declared
    --seed N (0)        of the engine, not of the noise
    --question TEXT*    what the table will be asked, which is public: it gets more of the budget,
                        such as "share where age=30..45 and ward=B", "mean of cost where ward=B",
                        "quantile 0.9 of cost" or "coefficient of cost on age, ward"; of linked
                        tables behind the name of one: "persons: mean of age"
"""
_OF_TABLE = """
    --types {detect,dtypes} (detect)  without metadata, types are detected from cells, or are what
                        dtypes say: of a Parquet file its own, of text those of --dtype
    --allow-lost A,B,...  columns for which a fit does not stop, whatever it would lose of them
    --prior FILE*       public rows that are like the private ones, CSV or Parquet, or a kept model.
                        They cost nothing and must be public
"""
_BUDGET = """
    --epsilon X!        what may be spent
    --delta X           a tenth of 1 / (number of rows), and no more than 1e-5; needed with
                        add_remove
    --adjacency {replace_one,add_remove} (replace_one)  a row may be another one, and the number of
                        rows is public; or it may be there or not, and their number is private
"""
_PEOPLE = """
    --rows-per-person N (1)  the most of one person
    --person-column COLUMN  whose a row is: no more than --rows-per-person rows of a person are read
    --rows-are-people   each row is another person's; else, and without --person-column, a row is
                        protected and no person
    --weigh-people      each row of a person counts as 1 / the number of those that are read
    --weight-column COLUMN  how many of a population a row stands for, as surveys have it: shares in
                        the rows are the population's
    --weight-range LOW,HIGH  public ends that weights are clipped to; a row counts as its weight /
                        HIGH
    --sequence-index COLUMN  dates or numbers by which the rows of a person are in order; each row
                        is told of the row before, and rows come person by person
    --previous COLUMN*  a column of which a row is told what the row before had
    --context-column COLUMN*  a column in which all rows of a person have the same
"""
_BOOKS = """
    --ledger FILE       JSON of what was spent on these people; read, and gone on with
    --max-epsilon X     spend no more, together with what --ledger says
"""
_LINKS = """
    --link CHILD.KEY=PARENT.KEY*  which rows lead to which: each file is a table of its name,
                        --metadata is of all tables and --domain has columns by table; a row of the
                        table without a parent is protected with all that lead to it, and --out is a
                        folder
    --max-children [TABLE=]N*  how many rows of a table are used of each row that they lead to;
                        links are those of the metadata unless --link names them
    --in-order CHILD.COLUMN[=START]*  dates or numbers of a declared range by which the rows that
                        lead to one row are in order, and that row's column at which this begins
    --count CHILD=COLUMN*  the column of the rows that CHILD leads to that says how many of its rows
                        lead there: synthetic rows have as many
    --numbered CHILD=COLUMN*  the column of CHILD that numbers the rows that lead to one row, from
                        the least of its declared range on: so are synthetic rows
"""
_MARK = """
    --mark {column,comment}  say in the rows, too, that they are synthetic: in a column, or in a
                        first line of text that begins with #
"""
_PAGE = """
    --report FILE       write the public page
"""
_QUIET = """
    --quiet             no bars and no report
"""
_FORCE = """
    --force             overwrite files, but never an input
"""
_TABLE = """
    table FILE+         CSV (compressed or not), Parquet or .xlsx; a folder or pattern of such, or
                        several
"""
_ROWS = f"""
    --out FILE!         CSV or Parquet
    --rows N            as many as the table had, or seemed to have
{_MARK}"""
_MODELLED = f"""
    --out FILE!         rows: CSV or Parquet
    --rows N            as many as the tables count
{_PAGE}{_MARK}
    --engine {{particles,pgm,gum,rap,gem,private_gsd}} (particles)  what makes rows of the tables
    --seed N (0)        of the engine and the rows
    --quiet             no report
{_FORCE}"""

_HOW, _ITS_TEXT = "what is modelled, and how", "how the table is written"
_ASKED = {
    "what is public of the table": _PUBLIC,
    "what may be spent": _BUDGET,
    "whose the rows are": _PEOPLE,
}
_FIT = {_HOW: _MEASURED + _FITTED + _OF_TABLE, **_ASKED}
_RUNS = {"the books of several runs": _BOOKS}
_LINKED = {"several tables that belong together": _LINKS}
_AUDITED = {_HOW: _MEASURED + _FITTED, **_ASKED, **_LINKED}
_AUDITED["what may be spent"] = _BUDGET.replace("X!", "X")
_READS = {_ITS_TEXT: (_WRITTEN + _READ).replace("TOLD", "")}
_READS_AS_KEPT = {_ITS_TEXT: (_WRITTEN + _READ).replace("TOLD", "what synthesize was told; else ")}

_Command = tuple[Callable, str, str, str, Mapping[str, str]]
_COMMANDS: tuple[_Command, ...] = (
    (
        synthesizing.synthesize,
        "fit a table and write synthetic rows",
        "visits.csv --header --epsilon 1 --rows-are-people --out synthetic.csv",
        f"""{_TABLE}
    --out FILE          CSV or Parquet; needed but for --dry-run
    --rows N            synthetic rows; as many as the table has, or as it seems to have
{_PAGE}
    --model FILE        keep the fitted table
{_MARK}
    --dry-run           the same as plan
{_QUIET}{_FORCE}""",
        {**_FIT, **_RUNS, **_LINKED, **_READS},
    ),
    (
        synthesizing.finish,
        "make rows of what an interrupted fit had paid for, for nothing",
        "model.zip --out synthetic.csv",
        f"""
    model FILE          its file, which will hold the fitted table
{_ROWS}
    --table FILE*       the same table: the rest of the budget is spent first
    --ledger FILE       of the interrupted run; what is spent now is added
    --max-epsilon X     with --table: spend no more, together with what --ledger or the model says
{_PAGE}{_QUIET}{_FORCE}""",
        _READS_AS_KEPT,
    ),
    (
        synthesizing.check,
        "what becomes of each column; reads no cell but to detect types, and spends nothing",
        "visits.csv --header --epsilon 1",
        f"""{_TABLE}
    --report FILE       write it as a page
{_FORCE}""",
        {**_FIT, **_LINKED, **_READS},
    ),
    (
        synthesizing.plan,
        "what a fit would ask, and the noise; spends nothing",
        "visits.csv --header --epsilon 1",
        f"""
    table FILE*         read only to detect types, or to count rows
    --rows N            as many as the table has
    --report FILE       write it as a page
{_FORCE}""",
        {**_FIT, **_LINKED, **_READS},
    ),
    (
        commands.sample,
        "write more rows of a model, for nothing",
        "model.zip --rows 500 --condition ward=B --out more.csv",
        f"""
    model FILE          moves on, so that the next rows are new ones
{_ROWS}
    --condition COLUMN=VALUE*  what all rows have; nothing after = is missing, 30..40 a range, and
                        --decimal stands before decimals
    --min-rows-like N   no row stands alone: so many at least have each combination of --on; what it
                        costs in error is said
    --on A,B,...        the columns by which somebody might be taken for a row's person
    --again             the rows from the start, which were written before; the model does not move
                        on
    --ledger FILE       where the run's ledger is, if it is to be told what was spent
    --quiet             no bar
{_FORCE}""",
        {_ITS_TEXT: _WRITTEN.replace("TOLD", "what synthesize was told; else ")},
    ),
    (
        commands.evaluate,
        "compare with the real table; NOT PRIVATE",
        "model.zip visits.csv --out comparison.html",
        f"""
    model FILE
    table FILE+         the real table
    --out FILE!         a page that is not private
    --label COLUMN      a column that models learn to predict
    --held-out FILE*    real rows that were not fitted; default: a random fifth
    --quiet             say nothing; the page does
{_FORCE}""",
        _READS_AS_KEPT,
    ),
    (
        commands.draft_domain,
        "a public domain to fill in; no value is read",
        "visits.csv --header --out domain.json --metadata-out metadata.json",
        f"""
    table FILE*         its names and types are taken
    --metadata FILE     SDV's, JSON; takes the place of the table
    --out FILE!         .json, .yaml, .csv or .xlsx, for --domain
    --metadata-out FILE  write metadata, too: JSON, --metadata
{_FORCE}""",
        _READS,
    ),
    (
        commands.audit,
        "what an attacker could find out, tried on made-up tables; reads no row, spends nothing",
        "--metadata metadata.json --domain domain.json --epsilon 1",
        f"""
    --model FILE        a model: its settings, and all that it holds; no option of a fit is needed
    --runs N (10000)    how often a few people are attacked in each of two worlds; 10,000 take
                        seconds
    --out FILE          write the findings: JSON
    --report FILE       write the page
{_FORCE}""",
        _AUDITED,
    ),
    (
        commands.describe,
        "what a model is and has spent",
        "model.zip",
        f"""
    model FILE
    --report FILE       write the public page, too
    --officer FILE      write one page for who decides on the release, too
    --ledger FILE       of all runs on these people: --officer counts all together
    --methods           print a text for a methods section, too
{_FORCE}""",
        {},
    ),
    (
        commands.ledger,
        "what was spent on one population over the years, release by release",
        "ledger.json --html ledger.html",
        f"""
    ledger FILE         what --ledger of other commands names; it stays as it is
    --html FILE         write the page, too
    --max-epsilon X     a limit to count with, in place of the one that runs were told
{_FORCE}""",
        {},
    ),
    (
        commands.registry,
        "what a fit knows of its entry in the public registry of deployments",
        'model.zip --name "Visits 2025" --curator "Northland Health" --out visits_2025.yaml',
        f"""
    model FILE
    --out FILE          the entry: .yaml, or .json; without it, its blanks are named
    --name TEXT         what the rows are called
    --region TEXT       which region they describe, or whose law applies
    --use TEXT          what they are for
    --curator TEXT*     who publishes them
    --author TEXT*      who fills it in
    --ledger FILE       of all runs on these people: the entry is of all together
{_FORCE}""",
        {},
    ),
    (
        commands.identify,
        "which release a file of rows is from",
        "synthetic.csv model.zip",
        """
    rows FILE           CSV or Parquet
    releases FILE*      models it may be from, or cards (.about.json)
""",
        {},
    ),
    (
        synthesizing.measure,
        "noisy tables of one holder, to be combined with others'",
        "north.csv --holder North --epsilon 1 --metadata metadata.json --domain domain.json --out "
        "north.zip",
        f"""
    table FILE+         CSV, Parquet or .xlsx; CSV compressed or not
    --holder NAME!      whose table it is: a name of its own
    --out FILE!         the release, .zip
    --no-stop           go on where the first noisy counts have none of the declared values of a
                        column
    --quiet             no report
{_FORCE}""",
        {_HOW: _MEASURED, **_ASKED, **_RUNS, **_READS},
    ),
    (
        synthesizing.combine,
        "rows of one model of several holders' releases, for nothing",
        "north.zip south.zip --out rows.csv",
        f"""
    releases FILE+      what measure wrote, .zip
{_MODELLED}""",
        {_ITS_TEXT: _WRITTEN.replace("TOLD", "")},
    ),
    (
        synthesizing.from_tables,
        "rows of tables that somebody has published; reads no row",
        'census.parquet --publisher "the census" --metadata metadata.json --out rows.csv',
        f"""
    tables FILE+        a cell a row; .parquet or .csv
    --publisher NAME!   whose tables these are
    --suppressed-below N  smaller counts were not told: empty, absent, * or <10
    --rounded-to N      counts are multiples of it
    --total N           how many rows per cents are of
{_MODELLED}""",
        {"what is public of the table": _PUBLIC, _ITS_TEXT: _WRITTEN.replace("TOLD", "")},
    ),
    (
        synthesizing.refine,
        "spend more on the table of a model, on one ledger",
        "model.zip visits.csv --epsilon 0.5 --out finer.csv",
        f"""
    model FILE          its file, which will hold the finer model
    table FILE+         the table that was fitted, with the same rows
    --epsilon X!        what is added to its epsilon
{_ROWS}{_PAGE}{_QUIET}{_FORCE}""",
        {**_RUNS, **_READS_AS_KEPT},
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
        usual: dict[str, Any] = {}
        _add(command, own)
        for title, options in groups.items():
            usual |= _add(command.add_argument_group(title), options)
        command.set_defaults(run=run, usual=usual)
        if groups is _AUDITED:  # what is not said may be of the model
            command.set_defaults(**dict.fromkeys(usual))
    return whole


def _add(group: Any, options: str) -> dict[str, Any]:
    """Adds a table of options, and returns what each is if nobody says it."""
    one_of = group.add_mutually_exclusive_group() if "--no-header" in options else group
    lines = re.sub(r"\n {8,}", " ", options).split("\n")
    added = []
    for line in filter(None, map(str.strip, lines)):
        found = _LINE.fullmatch(line)
        assert found is not None, line
        name, kind, how, usual, about = found.groups()
        is_option, is_header = name.startswith("--"), name.endswith("header")
        told: dict[str, Any] = {"help": about, **_KINDS.get(kind, {"type": str})}
        if is_header:
            told |= {"dest": "header", "action": "store_const", "const": name == "--header"}
        elif kind is None:
            told["action"] = "store_true"
        elif kind.startswith("{"):
            told = {"help": about, "choices": kind.strip("{}").split(",")}
        elif is_option:
            told = {"metavar": kind, **told}
        if how == "!":
            told["required"] = True
        elif how == "*" and is_option:
            told |= {"action": "append", "default": [], "help": f"{about}; may be repeated"}
        elif how:
            told["nargs"] = how
        if usual is not None:
            told["default"] = told.get("type", str)(usual)
        added.append((one_of if is_header else group).add_argument(name, **told))
    return {each.dest: each.default for each in added}


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


def _character(text: str) -> str:
    text = {"\\t": "\t", "tab": "\t"}.get(text, text)
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
        raise argparse.ArgumentTypeError(f"{text!r} is not NAME=VALUE")
    return name, value


_LINE = re.compile(r"(\S+)(?: (\{.*?\}|[^\s(]\S*?)([!*+]?))?(?: \((.*?)\))?(?: {2,}(.+))?")
_KINDS: Mapping[str | None, dict[str, Any]] = {
    None: {},
    "FILE": {"type": Path},
    "N": {"type": int},
    "X": {"type": float},
    "TEXT": {"default": ""},
    "LOW,HIGH": {"type": float, "nargs": 2, "metavar": ("LOW", "HIGH")},
    "A,B,...": {"type": _names, "default": ()},
    "NAMES": {"type": _names, "metavar": "A,B,..."},
    "SIGN": {"type": _character},
    "SEPARATOR": {"type": _character},
    "ENCODING": {"type": _encoding},
    "LINES": {"type": _lines, "metavar": "N"},
    "[TABLE=]N": {"type": _most},
    "COLUMN=VALUE": {"type": _pair},
    "CHILD=COLUMN": {"type": _pair},
    "COLUMN=TYPE": {"type": Typed.of},
}
"""What options take, and what argparse is told of that; anything else is text."""
