"""The messages of the command line: one line each, public, in the words of its options."""

import re
import sys
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from textwrap import wrap
from typing import Any, NoReturn

from sdv_privpgd.report.privacy import WIDTH
from sdv_privpgd.sources.source import SourceError

PROGRAM = "sdv-privpgd"

_PACKAGE = Path(__file__).parent.parent

_OPTIONS = (
    (r"CsvFiles\(dtypes=\{'(.*?)': '(.*?)'\}\)", r"--dtype \1=\2"),
    (r"CsvFiles\(dtypes=\.\.\.\)", "--dtype"),
    (r"CsvFiles\(names=\.\.\.\)", "--names A,B,..."),
    (r"CsvFiles\(header=True\)", "--header"),
    (r"CsvFiles\(header=False\)", "--no-header"),
    (r"CsvFiles\(decimal='(.)'\)", r"--decimal \1"),
    (r"CsvFiles\(skip_rows=(\d+)\)", r"--skip-rows \1"),
    (r"CsvFiles\(skip_rows=\.\.\.\)", "--skip-rows"),
    (r"CsvFiles\(skip_footer=\.\.\.\)", "--skip-footer"),
    (r"CsvFiles\(unquoted=True\)", "--unquoted"),
    (r"CsvFiles\((sep|decimal|encoding|na)=\.\.\.\)", r"--\1"),
    (r"public_domain=\{column: \{\.\.\.\}\}( \(without SDV in columns\))?", "--domain FILE"),
    (r"public_metadata=True", "--public-metadata"),
    (r"allow_lost=\[.*?\]", "--allow-lost with their names"),
    (r"allow_lost=\{'(.*?)': \['(.*?)'\]\}", r"--allow-lost '\1.\2'"),
    (r"\ballow_lost(?= names)", "--allow-lost"),
    (r"public_domain\[('[^']*')\]", r"\1 in --domain"),
    (r"public_domain", "--domain"),
    ("prior=", "--prior"),
    (
        r"text with a decimal comma, separators of thousands or units is read in a declared "
        "number_format alone",
        "a comma before decimals needs --decimal, separators of thousands need --thousands, and "
        "units a number_format in --domain",
    ),
    (
        r"the sdtype datetime and a datetime_format"
        r"(, or Datetime\(\) or TimeOfDay\(\) if they are no text)?",
        "--dtype COLUMN=date:%d.%m.%Y or COLUMN=time:%H:%M",
    ),
    (r"give (?:it|them) the sdtype id", "say --dtype COLUMN=id"),
    (r"give (?:it|them) the sdtype categorical", "say --dtype COLUMN=category"),
    (r"(range_values, or ranges of numbers|ranges), choose", r"\1 in --domain, choose"),
    (
        r"the sdtype numerical and a number_format",
        "--dtype COLUMN=percent or COLUMN='number:$1234.5'",
    ),
    (r"people=People\(column, max_rows=\.\.\.\)", "--person-column and --rows-per-person"),
    (r"people=People\(rows_are_people=True\)|rows_are_people=True", "--rows-are-people"),
    (r"people=People\(max_rows=\.\.\.\)", "--rows-per-person"),
    (r"people\.column=('[^']*')", r"--person-column \1"),
    (r"people\.column|column=\.\.\.", "--person-column"),
    (r"(?:people\.)?max_rows|rows_per_person", "--rows-per-person"),
    (r"sequence_index='([^']*)'", r"--sequence-index '\1'"),
    (r"\bprevious(?= (names?|and|need)\b)", "--previous"),
    (r"\bcontext_columns", "--context-column"),
    (r"weighed=True|people\.weighed", "--weigh-people"),
    (r"weight_column=('[^']*')", r"--weight-column \1"),
    (r"max_children(?= says | lets )", "--max-children"),
    (r"Link\.(order|start)", "--in-order"),
    (r"(Link\.count|counts)(?= names )", "--count"),
    (r"(Link\.numbered|numbers)(?= names )", "--numbered"),
    (r"adjacency='add_remove'", "--adjacency add_remove"),
    (r"method='([^']*)'", r"--method \1"),
    (r"num_bins(?! of ')", "--num-bins"),
    (
        r"range_is_nullable=(True|False)",
        lambda found: f"range_is_nullable: {found[1].lower()} in --domain",
    ),
    (r"target(?= names )", "--target"),
    (r"questions(?= names )", "--question"),
    (r"takes no questions", "takes no --question"),
    (r"suppressed_below(=\.\.\.)?", "--suppressed-below"),
    (r"total=\.\.\.|^total(?= says )", "--total"),
    (r"takes no target", "takes no --target"),
    (r"on(?= names ')", "--on"),
    (r"pairs that matter \(target\)", "pairs that matter (--target)"),
    (r"answer\(\) gives", "In Python, answer() of the model gives"),
    (
        r"fit_table\(table, \.\.\., after=earlier\.ledger\), a second fit of the same synthesizer, "
        r"or --ledger on the command line",
        "synthesize with --ledger",
    ),
    (r"constraint (Inequality\(.*?\))", r"constraint \1 in --constraints"),
    (r"columns\[('[^']*')\]", r"\1 in --metadata or --domain"),
    (r"call reset_sampling", "say --again"),
    (r"num_rows", "--rows"),
    (r"(epsilon|delta|adjacency|seed|runs)(?= must )", r"--\1"),
    (r"(epsilon|delta)=([\d.e+-]*\d)", r"--\1 \2"),
    (
        "public_metadata|sequence_index|weight_column|weight_range|discovery_share|rounded_to|"
        "min_rows_like",
        lambda found: f"--{found[0].replace('_', '-')}",
    ),
)
"""Arguments of the Python classes, and the options that set them."""


class CommandError(Exception):
    """An error that is shown to the user in one line. Public."""


def say(text: str) -> None:
    """Prints one line to stderr."""
    print(f"{PROGRAM}: {' '.join(text.split())}", file=sys.stderr)


def say_each(sentences: Iterable[str], but: Collection[str] = ()) -> None:
    """Says sentences of our Python classes, except those that were said before."""
    for sentence in sentences:
        if sentence not in but:
            say(in_options(sentence))


def refuse(sentences: Sequence[str]) -> NoReturn:
    """Says what is wrong, if there are several things, and raises ``CommandError`` for the last."""
    say_each(sentences[:-1])
    raise CommandError(in_options(sentences[-1]))


def in_options(error: Exception | Warning | str) -> str:
    """A message of our Python classes in one line, in the words of the command line."""
    line = " ".join(str(error).split())
    for argument, option in _OPTIONS:
        line = re.sub(rf"(?<![\w'-])(?:{argument})(?![\w'])", option, line)
    return line


def report_in_options(text: str) -> str:
    r"""A printed report, of which sentences in the words of Python are in those of the options.

    Tables stay as they are, and so do the lines of all other sentences.
    """
    parts = re.split(r"(\n\n|\n(?=- ))", text)
    return "".join(part if part.isspace() else _part_in_options(part) for part in parts)


def _part_in_options(part: str) -> str:
    plain, lines = in_options(part), part.splitlines()
    # Columns of tables are further apart than words.
    if plain == " ".join(part.split()) or any("   " in line.strip() for line in lines):
        return part
    indent = "  " if part.startswith("- ") else ""
    return "\n".join(wrap(plain, WIDTH, subsequent_indent=indent, break_on_hyphens=False))


@contextmanager
def own_errors(*more: type[Exception]) -> Iterator[None]:
    """Passes on only our own errors, which speak of public facts, and ``more``."""
    from sdv_privpgd import PrivacyBudgetError, PublicDomainError

    try:
        yield
    except (PrivacyBudgetError, PublicDomainError, SourceError, *more) as error:
        raise CommandError(in_options(error)) from None


def reason(error: OSError) -> str:
    """The operating system's own reason for an error."""
    return error.strerror or type(error).__name__


def say_warning(message: Warning | str, category: type, filename: str, *_: Any) -> None:
    """Prints a warning if it is ours. Other libraries' warnings may hold a value of the table.

    Their warnings may also name a file of ours as their place, so the category is checked, too.
    """
    ours = category is UserWarning or category.__module__.startswith("sdv_privpgd")
    if ours and Path(filename).is_relative_to(_PACKAGE):
        for line in str(message).splitlines():
            say(in_options(line))
