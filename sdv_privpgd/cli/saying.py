"""What the command line says: one line, of public facts, in the words of its options."""

import re
import sys
from pathlib import Path
from typing import Any

PROGRAM = "sdv-privpgd"

_PACKAGE = Path(__file__).parent.parent

_OPTIONS = (
    (r"public_domain=\{column: \{\.\.\.\}\}", "--domain FILE"),
    (r"public_metadata=True", "--public-metadata"),
    (r"public_domain\[('[^']*')\]", r"\1 in --domain"),
    (r"public_domain", "--domain"),
    (r"public_metadata", "--public-metadata"),
    (r"rows_per_person", "--rows-per-person"),
    (r"discovery_share", "--discovery-share"),
    (r"num_rows", "--rows"),
    (r"(epsilon|delta|adjacency|seed)(?= must )", r"--\1"),
    (r"(epsilon|delta)=", r"--\1 "),
)
"""Arguments of the Python classes, and the options that set them."""


class CommandError(Exception):
    """What is said to the user, in one line. Public."""


def say(text: str) -> None:
    """One line on stderr."""
    print(f"{PROGRAM}: {' '.join(text.split())}", file=sys.stderr)


def in_options(error: Exception | Warning | str) -> str:
    """What our Python classes say, in one line and in the words of the command line."""
    line = " ".join(str(error).split())
    for argument, option in _OPTIONS:
        line = re.sub(rf"(?<![\w'-]){argument}(?![\w'])", option, line)
    return line


def reason(error: OSError) -> str:
    """Why the operating system refused, in its own words."""
    return error.strerror or type(error).__name__


def say_warning(message: Warning | str, category: type, filename: str, *_: Any) -> None:
    """Ours; what other libraries warn of may hold a value of the table.

    They, too, may name a file of ours as the place: the category tells them apart where it can.
    """
    ours = category is UserWarning or category.__module__.startswith("sdv_privpgd")
    if ours and Path(filename).is_relative_to(_PACKAGE):
        for line in str(message).splitlines():
            say(in_options(line))
