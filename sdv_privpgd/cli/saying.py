"""The messages of the command line: one line each, public, in the words of its options."""

import re
import sys
from collections.abc import Collection, Iterable, Iterator
from contextlib import contextmanager
from importlib import resources
from pathlib import Path
from textwrap import wrap
from typing import Any

from sdv_privpgd.report.privacy import WIDTH
from sdv_privpgd.sources.source import SourceError

PROGRAM = "sdv-privpgd"

_PACKAGE = Path(__file__).parent.parent


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


def _read_options() -> list[tuple[str, str]]:
    """Reads ``words.txt``: arguments of the Python classes, and the options that set them."""
    text = (resources.files("sdv_privpgd.cli") / "words.txt").read_text(encoding="utf-8")
    lines = [line for line in text.splitlines() if line and not line.startswith("#")]
    return [(argument, option) for argument, _, option in (e.partition(" -> ") for e in lines)]


_OPTIONS = _read_options()


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
    told, lines = in_options(part), part.splitlines()
    # Columns of tables are further apart than words.
    if told == " ".join(part.split()) or any("   " in line.strip() for line in lines):
        return part
    indent = "  " if part.startswith("- ") else ""
    return "\n".join(wrap(told, WIDTH, subsequent_indent=indent, break_on_hyphens=False))


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
