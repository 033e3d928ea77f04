"""The parser of the command line, made of ``options.txt``, which describes each option once."""

import argparse
import codecs
import csv
import re
from collections.abc import Iterator, Mapping, Sequence
from importlib import resources
from importlib.metadata import version
from pathlib import Path
from typing import Any, NoReturn

from sdv_privpgd.cli import commands, fits
from sdv_privpgd.cli.input_files import Typed
from sdv_privpgd.cli.messages import PROGRAM

_COMMANDS = (
    *(fits.synthesize, fits.resume, fits.check, fits.plan),
    *(commands.sample, commands.evaluate, commands.draft_domain, commands.audit),
    *(commands.describe, commands.ledger, commands.registry, commands.identify),
    *(fits.measure, fits.combine, fits.from_tables, fits.add_budget),
)
"""What runs the commands, by their names."""

_AS_KEPT = ("resume", "sample", "evaluate", "add-budget")
"""Commands on a model, which knows how the text was written that it is of."""


def parser() -> argparse.ArgumentParser:
    """The parser. Its result has a function ``run``, which takes the result."""
    whole = _Parser(
        prog=PROGRAM, description="Differentially private synthetic tables.", allow_abbrev=False
    )
    whole.add_argument("--version", action="version", version=f"{PROGRAM} {version(PROGRAM)}")
    each = whole.add_subparsers(required=True, metavar="COMMAND")
    runs = {run.__name__.replace("_", "-"): run for run in _COMMANDS}
    for head, (example, *lines) in _described().items():
        name, _, about = head.partition(": ")
        command = each.add_parser(
            name,
            help=about,
            description=f"{about[0].upper()}{about[1:]}.",
            epilog=f"example:\n  {PROGRAM} {name} {example.strip()}",
            formatter_class=_Help,
            allow_abbrev=False,
        )
        usual: dict[str, Any] = {}
        keywords = "what synthesize was told; else " if name in _AS_KEPT else ""
        own, *groups = re.split(
            r"^  (?=\S)", "\n".join(lines).replace("TOLD", keywords), flags=re.M
        )
        _add(command, own)
        for group in groups:
            title, _, options = group.partition("\n")
            usual |= _add(command.add_argument_group(title), options)
        command.set_defaults(run=runs[name], usual=usual)
        if name == "audit":  # what is not said may be of the model
            command.set_defaults(**dict.fromkeys(usual))
    return whole


def _described() -> dict[str, list[str]]:
    """The lines of ``options.txt`` below each command, with other lines in the place of @NAME."""
    text = (resources.files("sdv_privpgd.cli") / "options.txt").read_text(encoding="utf-8")
    found: dict[str, list[str]] = {}
    for line in filter(None, text.splitlines()):
        if line.startswith(" "):
            found[[*found][-1]].append(line)
        elif not line.startswith("#"):
            found[line] = []

    def expanded(lines: Sequence[str]) -> Iterator[str]:
        for line in lines:
            yield from expanded(found[line.strip()]) if line.strip() in found else [line]

    return {head: [*expanded(own)] for head, own in found.items() if not head.startswith("@")}


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
        keywords: dict[str, Any] = {"help": about, **_KINDS.get(kind, {"type": str})}
        if is_header:
            keywords |= {"dest": "header", "action": "store_const", "const": name == "--header"}
        elif kind is None:
            keywords["action"] = "store_true"
        elif kind.startswith("{"):
            keywords = {"help": about, "choices": kind.strip("{}").split(",")}
        elif is_option:
            keywords = {"metavar": kind, **keywords}
        if how == "!":
            keywords["required"] = True
        elif how == "*" and is_option:
            keywords |= {"action": "append", "default": [], "help": f"{about}; may be repeated"}
        elif how:
            keywords["nargs"] = how
        if usual is not None:
            keywords["default"] = keywords.get("type", str)(usual)
        added.append((one_of if is_header else group).add_argument(name, **keywords))
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
    "[TABLE=]N": {"type": _most},
    "COLUMN=VALUE": {"type": _pair},
    "CHILD=COLUMN": {"type": _pair},
    "COLUMN=TYPE": {"type": Typed.of},
}
"""What options take, and what argparse is told of that; anything else is text."""
