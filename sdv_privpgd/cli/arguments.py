"""The options of each command."""

import argparse
import codecs
import csv
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

from sdv_privpgd.cli import auditing, commands, finishing, publishing, releasing, synthesizing
from sdv_privpgd.cli.dialect import Typed
from sdv_privpgd.cli.saying import PROGRAM

if TYPE_CHECKING:
    from collections.abc import Callable


_SEVERAL: dict[str, Any] = {"type": Path, "action": "append", "default": []}


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
        return (
            f"{action.help} (default: {usual})"
            if is_told and usual != argparse.SUPPRESS
            else action.help
        )


def parser() -> argparse.ArgumentParser:
    """The parser. Its result has a function ``run``, which takes the result."""
    whole = _Parser(
        prog=PROGRAM, description="Differentially private synthetic tables.", allow_abbrev=False
    )
    whole.add_argument("--version", action="version", version=f"{PROGRAM} {version(PROGRAM)}")
    each = whole.add_subparsers(required=True, metavar="COMMAND")

    synthesize = _command(
        each,
        synthesizing.synthesize,
        "fit a table and write synthetic rows",
        "visits.csv --header --epsilon 1 --rows-are-people --out synthetic.csv",
    )
    about_table = (
        "CSV (compressed or not), Parquet or .xlsx; a folder or pattern of such, or several"
    )
    synthesize.add_argument("table", type=Path, nargs="+", help=about_table)
    synthesize.add_argument("--out", type=Path, help="CSV or Parquet; needed but for --dry-run")
    _settings(synthesize)
    synthesize.add_argument(
        "--rows", type=int, help="synthetic rows; as many as the table has, or as it seems to have"
    )
    synthesize.add_argument("--report", type=Path, help="write the public page")
    synthesize.add_argument("--model", type=Path, help="keep the fitted table")
    _mark(synthesize)
    _books(synthesize)
    _links(synthesize)
    synthesize.add_argument("--dry-run", action="store_true", help="the same as plan")
    synthesize.add_argument("--quiet", action="store_true", help="no bars and no report")
    _table(synthesize)
    _force(synthesize)

    finish = _command(
        each,
        finishing.finish,
        "make rows of what an interrupted fit had paid for, for nothing",
        "model.zip --out synthetic.csv",
    )
    finish.add_argument("model", type=Path, help="its file, which will hold the fitted table")
    finish.add_argument("--out", type=Path, required=True, help="CSV or Parquet")
    about = "the same table: the rest of the budget is spent first; may be repeated"
    finish.add_argument("--table", help=about, **_SEVERAL)
    finish.add_argument("--rows", type=int, help="as many as the table had, or seemed to have")
    finish.add_argument("--report", type=Path, help="write the public page")
    _mark(finish)
    finish.add_argument(
        "--ledger", type=Path, help="of the interrupted run; what is spent now is added"
    )
    finish.add_argument(
        "--max-epsilon",
        type=float,
        help="with --table: spend no more, together with what --ledger or the model says",
    )
    finish.add_argument("--quiet", action="store_true", help="no bars and no report")
    _table(finish, is_kept=True)
    _force(finish)

    check = _command(
        each,
        synthesizing.check,
        "what becomes of each column; reads no cell but to detect types, and spends nothing",
        "visits.csv --header --epsilon 1",
    )
    check.add_argument("table", type=Path, nargs="+", help=about_table)
    _settings(check)
    check.add_argument("--report", type=Path, help="write it as a page")
    _table(check)
    _force(check)

    plan = _command(
        each,
        synthesizing.plan,
        "what a fit would ask, and the noise; spends nothing",
        "visits.csv --header --epsilon 1",
    )
    plan.add_argument(
        "table", type=Path, nargs="*", help="read only to detect types, or to count rows"
    )
    _settings(plan)
    _links(plan)
    plan.add_argument("--rows", type=int, help="as many as the table has")
    plan.add_argument("--report", type=Path, help="write it as a page")
    _table(plan)
    _force(plan)

    sample = _command(
        each,
        commands.sample,
        "write more rows of a model, for nothing",
        "model.zip --rows 500 --condition ward=B --out more.csv",
    )
    sample.add_argument("model", type=Path, help="moves on, so that the next rows are new ones")
    sample.add_argument("--rows", type=int, help="as many as the table had, or seemed to have")
    sample.add_argument(
        "--out", type=Path, required=True, help="CSV or Parquet; a folder of a model of tables"
    )
    _mark(sample)
    sample.add_argument(
        "--condition",
        action="append",
        default=[],
        type=_pair,
        metavar="COLUMN=VALUE",
        help="what all rows have; nothing after = is missing, 30..40 a range, and --decimal stands "
        "before decimals; may be repeated",
    )
    sample.add_argument(
        "--again",
        action="store_true",
        help="the rows from the start, which were written before; the model does not move on",
    )
    sample.add_argument(
        "--ledger", type=Path, help="where the run's ledger is, if it is to be told what was spent"
    )
    sample.add_argument("--quiet", action="store_true", help="no bar")
    _dialect(sample, is_kept=True)
    _force(sample)

    evaluate = _command(
        each,
        commands.evaluate,
        "compare with the real table; NOT PRIVATE",
        "model.zip visits.csv --out comparison.html",
    )
    evaluate.add_argument("model", type=Path)
    evaluate.add_argument("table", type=Path, nargs="+", help="the real table")
    evaluate.add_argument("--out", type=Path, required=True, help="a page that is not private")
    evaluate.add_argument("--label", help="a column that models learn to predict")
    about = "real rows that were not fitted; default: a random fifth; may be repeated"
    evaluate.add_argument("--held-out", help=about, **_SEVERAL)
    evaluate.add_argument("--quiet", action="store_true", help="say nothing; the page does")
    _table(evaluate, is_kept=True)
    _force(evaluate)

    draft = _command(
        each,
        commands.draft_domain,
        "a public domain to fill in; no value is read",
        "visits.csv --header --out domain.json --metadata-out metadata.json",
    )
    draft.add_argument("table", type=Path, nargs="*", help="its names and types are taken")
    draft.add_argument("--metadata", type=Path, help="SDV's, JSON; takes the place of the table")
    draft.add_argument(
        "--out", type=Path, required=True, help=".json, .yaml, .csv or .xlsx, for --domain"
    )
    draft.add_argument("--metadata-out", type=Path, help="write metadata, too: JSON, --metadata")
    _table(draft)
    _force(draft)

    audit = _command(
        each,
        auditing.audit,
        "what an attacker could find out, tried on made-up tables; reads no row, spends nothing",
        "--metadata metadata.json --domain domain.json --epsilon 1",
    )
    _settings(audit, is_audit=True)
    audit.add_argument(
        "--model",
        type=Path,
        help="a model: its settings, and all that it holds; no option of a fit is needed",
    )
    audit.add_argument(
        "--runs",
        type=int,
        default=10_000,
        help="how often a few people are attacked in each of two worlds; 10,000 take seconds",
    )
    # What is not said is the usual, or of the model.
    audit.set_defaults(**dict.fromkeys(auditing.USUAL))
    audit.add_argument("--out", type=Path, help="write the findings: JSON")
    audit.add_argument("--report", type=Path, help="write the page")
    _force(audit)

    describe = _command(
        each,
        commands.describe,
        "what a model is and has spent",
        "model.zip",
    )
    describe.add_argument("model", type=Path)
    describe.add_argument("--report", type=Path, help="write the public page, too")
    describe.add_argument(
        "--officer", type=Path, help="write one page for who decides on the release, too"
    )
    describe.add_argument(
        "--ledger", type=Path, help="of all runs on these people: --officer counts all together"
    )
    describe.add_argument(
        "--methods", action="store_true", help="print a text for a methods section, too"
    )
    _force(describe)

    registry = _command(
        each,
        publishing.registry,
        "what a fit knows of its entry in the public registry of deployments",
        'model.zip --name "Visits 2025" --curator "Northland Health" --out visits_2025.yaml',
    )
    registry.add_argument("model", type=Path)
    registry.add_argument(
        "--out", type=Path, help="the entry: .yaml, or .json; without it, its blanks are named"
    )
    for option, about in (
        ("--name", "what the rows are called"),
        ("--region", "which region they describe, or whose law applies"),
        ("--use", "what they are for"),
    ):
        registry.add_argument(option, default="", help=about)
    for one, about in (("curator", "who publishes them"), ("author", "who fills it in")):
        several = {"dest": f"{one}s", "action": "append", "default": []}
        registry.add_argument(f"--{one}", help=f"{about}; may be repeated", **several)
    registry.add_argument(
        "--ledger", type=Path, help="of all runs on these people: the entry is of all together"
    )
    _force(registry)

    identify = _command(
        each,
        publishing.identify,
        "which release a file of rows is from",
        "synthetic.csv model.zip",
    )
    identify.add_argument("rows", type=Path, help="CSV or Parquet")
    identify.add_argument(
        "releases", type=Path, nargs="*", help="models it may be from, or cards (.about.json)"
    )

    measure = _command(
        each,
        releasing.measure,
        "noisy tables of one holder, to be combined with others'",
        "north.csv --holder North --epsilon 1 --metadata metadata.json --domain domain.json --out "
        "north.zip",
    )
    measure.add_argument(
        "table", type=Path, nargs="+", help="CSV, Parquet or .xlsx; CSV compressed or not"
    )
    measure.add_argument("--holder", required=True, help="whose table it is: a name of its own")
    measure.add_argument("--out", type=Path, required=True, help="the release, .zip")
    _measured(measure)
    _books(measure)
    measure.add_argument(
        "--no-stop",
        action="store_true",
        help="go on where the first noisy counts have none of the declared values of a column",
    )
    measure.add_argument("--quiet", action="store_true", help="no report")
    _table(measure)
    _force(measure)

    combine = _command(
        each,
        releasing.combine,
        "rows of one model of several holders' releases, for nothing",
        "north.zip south.zip --out rows.csv",
    )
    combine.add_argument("releases", type=Path, nargs="+", help="what measure wrote, .zip")
    _modelled(combine)

    published = _command(
        each,
        releasing.from_tables,
        "rows of tables that somebody has published; reads no row",
        'census.parquet --publisher "the census" --metadata metadata.json --out rows.csv',
    )
    published.add_argument("tables", type=Path, nargs="+", help="a cell a row; .parquet or .csv")
    published.add_argument("--publisher", required=True, help="whose tables these are")
    for option, about in (
        ("--suppressed-below", "smaller counts were not told: empty, absent, * or <10"),
        ("--rounded-to", "counts are multiples of it"),
        ("--total", "how many rows per cents are of"),
    ):
        published.add_argument(option, type=int, help=about)
    _declared(published)
    _modelled(published)

    refine = _command(
        each,
        finishing.refine,
        "spend more on the table of a model, on one ledger",
        "model.zip visits.csv --epsilon 0.5 --out finer.csv",
    )
    refine.add_argument("model", type=Path, help="its file, which will hold the finer model")
    refine.add_argument(
        "table", type=Path, nargs="+", help="the table that was fitted, with the same rows"
    )
    refine.add_argument("--epsilon", type=float, required=True, help="what is added to its epsilon")
    refine.add_argument("--out", type=Path, required=True, help="CSV or Parquet")
    refine.add_argument("--rows", type=int, help="as many as the table had, or seemed to have")
    refine.add_argument("--report", type=Path, help="write the public page")
    _mark(refine)
    _books(refine)
    refine.add_argument("--quiet", action="store_true", help="no bars and no report")
    _table(refine, is_kept=True)
    _force(refine)
    return whole


def _command(each: Any, run: "Callable", about: str, example: str) -> argparse.ArgumentParser:
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
    return command


def _settings(command: argparse.ArgumentParser, *, is_audit: bool = False) -> None:
    """Adds the options of a fit; of an audit those that follow from no table."""
    group = command.add_argument_group("what is modelled, and how")
    if not is_audit:
        group.add_argument(
            "--types",
            choices=["detect", "dtypes"],
            default="detect",
            help="without metadata, types are detected from cells, or are what dtypes say: of a "
            "Parquet file its own, of text those of --dtype",
        )
    _measured(command, group, is_audit=is_audit)
    group.add_argument(
        "--make-up",
        type=_names,
        default=(),
        metavar="A,B,...",
        help="columns that are not read, and have values that are made up: whole numbers, or the "
        "metadata's regex_format",
    )
    if not is_audit:
        group.add_argument(
            "--allow-lost",
            type=_names,
            default=(),
            metavar="A,B,...",
            help="columns for which a fit does not stop, whatever it would lose of them",
        )
        group.add_argument(
            "--prior",
            type=Path,
            action="append",
            metavar="FILE",
            help="public rows that are like the private ones, CSV or Parquet, or a kept model; may "
            "be given several times. They cost nothing and must be public",
        )
    group.add_argument(
        "--constraints", type=Path, help="SDV's, JSON: class names and parameters; never learned"
    )
    group.add_argument(
        "--discovery-share",
        type=float,
        default=0.2,
        help="the part of the budget that finds what is not declared",
    )
    group.add_argument("--seed", type=int, default=0, help="of the engine, not of the noise")


def _measured(
    command: argparse.ArgumentParser, modelled: Any = None, *, is_audit: bool = False
) -> None:
    """Adds what a fit and a measurement are told: what is declared, spent and asked."""
    _declared(command)
    how = modelled or command.add_argument_group("what is modelled, and how")
    budget = command.add_argument_group("what may be spent")
    people = command.add_argument_group("whose the rows are")
    for option, about in (
        ("--columns", "the columns to model; all others are left out"),
        ("--drop", "columns to leave out"),
    ):
        how.add_argument(option, type=_names, default=(), metavar="A,B,...", help=about)
    budget.add_argument("--epsilon", type=float, required=not is_audit, help="what may be spent")
    budget.add_argument(
        "--delta",
        type=float,
        help="a tenth of 1 / (number of rows), and no more than 1e-5; needed with add_remove",
    )
    how.add_argument(
        "--method",
        default="privpgd",
        help="privpgd (the usual), mst, aim, mwem, privsyn, privmrf, rap, independent, and where "
        "rows are made rap++, gem, private_gsd, dp-merf, dp-diffusion or dp-ctgan; aim+particles "
        "is one with another engine",
    )
    how.add_argument(
        "--target",
        action="append",
        default=[],
        metavar="COLUMN",
        help="a column that the rows are to predict, which is public; may be repeated",
    )
    budget.add_argument(
        "--adjacency",
        choices=["replace_one", "add_remove"],
        default="replace_one",
        help="a row may be another one, and the number of rows is public; or it may be there or "
        "not, and their number is private",
    )
    people.add_argument("--rows-per-person", type=int, default=1, help="the most of one person")
    people.add_argument(
        "--person-column",
        metavar="COLUMN",
        help="whose a row is: no more than --rows-per-person rows of a person are read",
    )
    people.add_argument(
        "--rows-are-people",
        action="store_true",
        help="each row is another person's; else, and without --person-column, a row is protected "
        "and no person",
    )
    people.add_argument(
        "--weigh-people",
        action="store_true",
        help="each row of a person counts as 1 / the number of those that are read",
    )
    people.add_argument(
        "--weight-column",
        metavar="COLUMN",
        help="how many of a population a row stands for, as surveys have it: shares in the rows "
        "are the population's",
    )
    people.add_argument(
        "--weight-range",
        type=float,
        nargs=2,
        metavar=("LOW", "HIGH"),
        help="public ends that weights are clipped to; a row counts as its weight / HIGH",
    )
    people.add_argument(
        "--sequence-index",
        metavar="COLUMN",
        help="dates or numbers by which the rows of a person are in order; each row is told of the "
        "row before, and rows come person by person",
    )
    for option, what in (
        ("--previous", "of which a row is told what the row before had"),
        ("--context-column", "in which all rows of a person have the same"),
    ):
        people.add_argument(
            option,
            action="append",
            default=[],
            metavar="COLUMN",
            help=f"a column {what}; may be repeated",
        )
    how.add_argument(
        "--num-bins",
        type=int,
        help="cells of numbers and dates; as many as the noise can pay for, 4 to 32, and 32 where "
        "all is declared",
    )


def _declared(command: argparse.ArgumentParser) -> None:
    group = command.add_argument_group("what is public of the table")
    group.add_argument("--metadata", type=Path, help="SDV's, JSON")
    group.add_argument(
        "--domain", type=Path, help="the public domain: JSON or YAML, or a codebook (.csv, .xlsx)"
    )
    group.add_argument(
        "--public-metadata", action="store_true", help="ranges in the metadata are public"
    )


def _books(command: argparse.ArgumentParser) -> None:
    group = command.add_argument_group("the books of several runs")
    group.add_argument(
        "--ledger", type=Path, help="JSON of what was spent on these people; read, and gone on with"
    )
    group.add_argument(
        "--max-epsilon", type=float, help="spend no more, together with what --ledger says"
    )


def _links(command: argparse.ArgumentParser) -> None:
    group = command.add_argument_group("several tables that belong together")
    group.add_argument(
        "--link",
        action="append",
        default=[],
        metavar="CHILD.KEY=PARENT.KEY",
        help="which rows lead to which: each file is a table of its name, --metadata is of all "
        "tables and --domain has columns by table; a row of the table without a parent is "
        "protected with all that lead to it, and --out is a folder; may be repeated",
    )
    group.add_argument(
        "--max-children",
        action="append",
        default=[],
        type=_most,
        metavar="[TABLE=]N",
        help="how many rows of a table are used of each row that they lead to; links are those of "
        "the metadata unless --link names them; may be repeated",
    )


def _modelled(command: argparse.ArgumentParser) -> None:
    """Adds the options of rows of tables that others have measured."""
    command.add_argument("--out", type=Path, required=True, help="rows: CSV or Parquet")
    command.add_argument("--rows", type=int, help="as many as the tables count")
    command.add_argument("--report", type=Path, help="write the public page")
    _mark(command)
    command.add_argument(
        "--engine",
        choices=["particles", "pgm", "gum", "rap", "gem", "private_gsd"],
        default="particles",
        help="what makes rows of the tables",
    )
    command.add_argument("--seed", type=int, default=0, help="of the engine and the rows")
    command.add_argument("--quiet", action="store_true", help="no report")
    _dialect(command)
    _force(command)


def _table(command: argparse.ArgumentParser, *, is_kept: bool = False) -> None:
    """Adds the options for reading a table; of some the model's file may know what to take."""
    group = _dialect(command, is_kept=is_kept)
    group.add_argument(
        "--thousands", type=_character, help="in numbers of text, such as . in 1.234,56"
    )
    group.add_argument(
        "--na",
        action="append",
        default=[],
        metavar="WORD",
        help="means missing, besides empty cells, NA, null and the like: -, n/a, -99; may be "
        "repeated",
    )
    group.add_argument("--sheet", help="of a workbook with several")
    usual = "what synthesize was told; else " if is_kept else ""
    for option, about in (
        ("--skip-rows", "above the names (or the first row) in each file, such as a title"),
        ("--skip-footer", "below the rows in each file, such as a sum; blank ones do not count"),
    ):
        group.add_argument(option, type=_lines, metavar="N", help=f"lines {about}; {usual}none")
    group.add_argument(
        "--names",
        type=_names,
        metavar="A,B,...",
        help="names of the columns; the first record is a row, unless --header",
    )
    header = group.add_mutually_exclusive_group()
    header.add_argument(
        "--header",
        action="store_const",
        const=True,
        help="the first record holds the names, which become public; to be said where nothing else "
        "declares them all",
    )
    header.add_argument(
        "--no-header", dest="header", action="store_const", const=False, help="it is a row"
    )
    group.add_argument(
        "--dtype",
        action="append",
        default=[],
        type=_typed,
        metavar="COLUMN=TYPE",
        help="what a column is, before what is detected: category, id, date:%%d.%%m.%%Y, "
        "time:%%H:%%M, percent (or percent:12 %%, as a number is written), bool:J/N, number or "
        "number:1.234,5 (written as 1234.5 is); or pandas' type of its cells, such as str, Int64, "
        "float, boolean or datetime64[ns] (dates in text: ISO 8601); may be repeated",
    )


def _dialect(command: argparse.ArgumentParser, *, is_kept: bool = False) -> Any:
    """Adds the options for reading and writing text, and returns their group."""
    group = command.add_argument_group("how the table is written")
    usual = "what synthesize was told; else " if is_kept else ""
    group.add_argument(
        "--sep", type=_separator, help=f"between columns of text; {usual}a comma, in .tsv a tab"
    )
    group.add_argument(
        "--decimal", type=_character, help=f"before decimals of text; {usual}a point"
    )
    group.add_argument(
        "--encoding",
        type=_encoding,
        help=f"of text, such as cp1252; {usual}UTF-8, or what its mark says",
    )
    return group


def _mark(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "--mark",
        choices=["column", "comment"],
        help="say in the rows, too, that they are synthetic: in a column, or in a first line of "
        "text that begins with #",
    )


def _force(command: argparse.ArgumentParser) -> None:
    command.add_argument("--force", action="store_true", help="overwrite files, but never an input")


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
