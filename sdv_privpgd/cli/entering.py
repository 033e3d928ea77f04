"""Which ledger's file a kept synthesizer goes on with, and what of its charges that file has."""

from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from sdv_privpgd.cli.saying import CommandError, say
from sdv_privpgd.cli.spending import after, closed
from sdv_privpgd.privacy.ledger import Charge, PrivacyLedger

if TYPE_CHECKING:
    from sdv_privpgd.plugin.base import PrivateSynthesizer


def ledger_of(
    synthesizer: "PrivateSynthesizer", model: Path, given: Path | None = None
) -> Path | None:
    """The file of the ledger that a command goes on with before it spends more.

    It is the one that is given, and else that of the runs before: without it their ledger would
    not be told of what is spent now. ``None`` if these had none.

    Raises ``CommandError`` if that file is not there any more.

    >>> from types import SimpleNamespace
    >>> ledger_of(SimpleNamespace(ledger_file=None), Path("model.pkl")) is None
    True
    >>> ledger_of(SimpleNamespace(ledger_file=("gone.json", 2)), Path("model.pkl"))
    Traceback (most recent call last):
    sdv_privpgd.cli.saying.CommandError: What model.pkl has spent stands in the ledger gone.json, \
which is not there: say with --ledger where it is. A new file gets all that the model has spent.
    """
    if given is not None or synthesizer.ledger_file is None:
        return given
    name, _ = synthesizer.ledger_file
    for path in (Path(name), model.parent / name):
        if path.is_file():
            say(f"What is spent is added to {path}, the ledger of the run that made {model}.")
            return path
    raise CommandError(
        f"What {model} has spent stands in the ledger {name}, which is not there: say with "
        "--ledger where it is. A new file gets all that the model has spent."
    )


def caught_up(
    earlier: PrivacyLedger | None,
    synthesizer: "PrivateSynthesizer",
    model: Path,
    path: Path | None,
) -> PrivacyLedger | None:
    """The ledger of a file with all that a kept synthesizer has spent, counted in where it lacks.

    ``None`` if there is no such file yet.

    Raises ``CommandError`` if the two do not protect the same unit.

    >>> from types import SimpleNamespace
    >>> caught_up(None, SimpleNamespace(), Path("model.pkl"), None) is None
    True
    """
    if earlier is None:
        return None
    books = synthesizer.ledger
    after(earlier, books)
    lacks = closed(replace(books, charges=_lacking(earlier, synthesizer, path)))
    if not lacks.charges:
        return earlier
    say(
        f"--ledger {path} lacks epsilon {lacks.spent():.4g} that {model} had spent before: it is "
        "counted in."
    )
    return after(earlier, lacks)


def _lacking(
    earlier: PrivacyLedger, synthesizer: "PrivateSynthesizer", path: Path | None
) -> tuple[Charge, ...]:
    """The charges of a synthesizer that a ledger does not have.

    Two releases of one kind have equal charges. So no ledger has those of a synthesizer that was
    not told of a file of this name: rather count twice than not at all.
    """
    charges, (name, number) = synthesizer.ledger.charges, synthesizer.ledger_file or ("", 0)
    if path is None or Path(name).name != path.name:
        number = 0
    there, lacking = Counter(earlier.charges), []
    for charge in charges[:number]:
        if there[charge]:
            there[charge] -= 1
        else:
            lacking.append(charge)
    return (*lacking, *charges[number:])
