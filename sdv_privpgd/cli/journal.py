"""The ledger of a command: a ledger's file that is locked, read and written ahead of the table."""

import math
import os
import time
from argparse import Namespace
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

from sdv_privpgd.base.arguments import check_positive
from sdv_privpgd.base.files import DamagedFileError, undamaged
from sdv_privpgd.cli.messages import CommandError, in_options, own_errors, reason, say
from sdv_privpgd.cli.output_files import Outputs
from sdv_privpgd.cli.start import undisturbed
from sdv_privpgd.fitting.fitted_table import FittedTable, UnfinishedTable
from sdv_privpgd.privacy import ledger_file
from sdv_privpgd.privacy.accounting import epsilon_of
from sdv_privpgd.privacy.ledger import Charge, PrivacyLedger
from sdv_privpgd.privacy.ledger_file import PLANNED
from sdv_privpgd.report.about import release_id
from sdv_privpgd.report.privacy import History, own_delta, read_history, release_entry

Model = FittedTable | UnfinishedTable
"""What a fit has paid for, finished or not."""


class Journal:
    """The ledger's file of one command, with what earlier ones have spent on the same people.

    It is locked, then read. What the command may spend is written into it before a table is opened,
    and what was spent takes that place before rows are written. So no two commands count on one
    state of the file, one that is killed stands there with all that it planned, and no rows are
    without a ledger. Without a file, only the plan is checked.

    Attributes:
        path: The file, as the user names it; ``None`` without one.
        earlier: The ledger in the file; ``None`` if there is none yet.
        together: Gives the ledger that the file is to hold at the end; ``None`` leaves it as it
            was, because nothing was spent.
        entry: Gives what the file is to say of this command's release; ``None`` for nothing.
        planned: What stands in the file for what this command may spend.
        failure: Why what was spent could not be written, if so.
    """

    def __init__(self, outputs: Outputs, path: Path | None) -> None:
        lock = outputs.open("--ledger", path, grows=True)
        self.path = path
        self.earlier: PrivacyLedger | None = None
        self.together: Callable[[], PrivacyLedger | None] = lambda: None
        self.entry: Callable[[], Mapping[str, Any] | None] = lambda: None
        self.planned: Charge | None = None
        self.failure: CommandError | None = None
        self._place = None if lock is None else lock.place
        self._found = self._written = self._content()
        self._releases: Sequence[Mapping[str, Any]] = ()
        self._limit: float | None = None
        if self._found is not None:
            self.earlier = self._read(self._found)

    @contextmanager
    def ahead(self, planned: PrivacyLedger | None, *about: Any, **more: Any) -> Iterator[None]:
        """Has what is planned in the file while a table is read, and then what was spent.

        ``planned`` is ``None`` if nothing is; ``plan`` has the arguments and their errors. If the
        file cannot be written at the end, that hides no other error: it is said.
        """
        try:
            if planned is not None:
                self.plan(planned, *about, **more)
            yield
            with undisturbed():
                self.settle()
        except BaseException:
            with undisturbed(), said_only():
                if self.failure is None:
                    self.settle()
            raise

    def plan(
        self,
        planned: PrivacyLedger,
        most: float | None = None,
        what: str = "--epsilon",
        *,
        before: PrivacyLedger | None = None,
    ) -> None:
        """Checks what may be spent, and writes it down. A later plan takes an earlier one's place.

        Args:
            planned: The empty ledger of what may be spent.
            most: The largest epsilon, with all before.
            what: The name of what is planned, for a message.
            before: What was spent before, if there is no file yet.

        Raises:
            CommandError: If more would be spent, or the file cannot be written.
        """
        before = self.earlier if before is None or self.earlier is not None else closed(before)
        together = check_spending(before, planned, most, what)
        if most is None and self._limit is not None and together.epsilon > self._limit:
            say(
                f"--ledger {self.path} would come to epsilon {together.epsilon:.6g}, more than the "
                f"{self._limit:g} that an earlier run was told: --max-epsilon holds it to a limit."
            )
        self._limit = self._limit if most is None else most
        when = time.strftime("%Y-%m-%d %H:%M:%S UTC", time.gmtime())
        name = f"a run of {when} ({os.urandom(4).hex()}) that planned epsilon {planned.epsilon:.6g}"
        ahead = ledger_file.planned(planned, name)
        together = after(before, ahead)
        if self._place is not None and ahead.charges:
            with undisturbed():
                self._put(self._text(together))
                (self.planned,) = ahead.charges

    def settle(self) -> None:
        """Writes what was spent in the place of what was planned.

        Raises ``CommandError`` if it cannot be written: no rows are released then.
        """
        if self._place is None:
            return
        try:
            ledger = self.together()
            text = self._found if ledger is None else self._text(ledger, self.entry())
            if text == self._written and self.planned is None:
                return
            if self._content() != self._written:
                raise CommandError(
                    f"--ledger {self.path} was changed by others meanwhile, so that what this run "
                    "has spent was not written over it. Nobody else may write it while a run does."
                )
            self._put(text)
        except CommandError as failure:
            self.failure = failure
            raise
        self.planned = None

    def follow(self, running: Any, arguments: Namespace, answers: Callable[[], Any]) -> None:
        """Has the file say at the end what this has spent, and the command if it is interrupted.

        ``answers`` gives those of the release; ``None`` where it was not made.
        """
        self.together = lambda: (
            after(self.earlier, running.ledger) if running.ledger.charges else None
        )
        self.entry = lambda: release_entry(
            running.ledger,
            name=arguments.out.name,
            release=None if (own := answers()) is None else release_id(own, str),
            method=arguments.method,
        )
        arguments.say_spent = lambda: say(spent(running.ledger))

    def catch_up(self, model: Model, place: Path) -> None:
        """Counts in what a kept model has spent and the file lacks.

        Raises ``CommandError`` if the two do not protect the same unit.
        """
        if self.earlier is None:
            return
        ledger, (_, _, *names) = model.ledger, model.notes.get("ledger_file", ("", 0))
        after(self.earlier, ledger)
        earlier = self.earlier
        for charge in earlier.charges:
            if charge.mechanism == PLANNED and charge.what in names:
                earlier = _without(earlier, charge)
        lacks = closed(replace(ledger, charges=self._lacking(earlier, model)))
        self.earlier = after(earlier, lacks) if lacks.charges else earlier
        if lacks.charges:
            say(
                f"--ledger {self.path} lacks epsilon {lacks.spent():.4g} that {place} had spent "
                "before: it is counted in."
            )

    def _lacking(self, earlier: PrivacyLedger, model: Model) -> tuple[Charge, ...]:
        """The charges of a model that the file does not have.

        Two releases of one kind have equal charges. So a file has none of those of a model that it
        does not name, and that was not told of a file of its name: rather count twice than not.
        """
        assert self.path is not None
        charges, (name, number, *_) = model.ledger.charges, model.notes.get("ledger_file", ("", 0))
        own = model.about_rows()["release"] if isinstance(model, FittedTable) else None
        is_named = any(each["release"] == own for each in self._releases)
        if not is_named and Path(name).name != self.path.name:
            number = 0
        there, lacking = Counter(earlier.charges), []
        for charge in charges[:number]:
            if there[charge]:
                there[charge] -= 1
            else:
                lacking.append(charge)
        return (*lacking, *charges[number:])

    def _content(self) -> bytes | None:
        """What the file holds now; ``None`` if there is none."""
        if self._place is None or not self._place.exists():
            return None
        try:
            if self._place.stat().st_nlink > 1:
                raise CommandError(
                    f"--ledger {self.path} has another name, a hard link, under which it would "
                    "stay as it is: copy it to a file of its own."
                )
            return self._place.read_bytes()
        except OSError as error:
            raise CommandError(f"Cannot read --ledger {self.path}: {reason(error)}.") from None

    def _read(self, content: bytes) -> PrivacyLedger:
        assert self.path is not None
        try:
            with undamaged(self.path, "ledger"):
                found = read_history(content.decode("utf-8"))
        except DamagedFileError as error:
            raise CommandError(f"--ledger {in_options(error)}") from None
        self._releases, self._limit = found.releases, found.limit
        for charge in found.ledger.charges:
            if charge.mechanism == PLANNED:
                say(f"--ledger {self.path}: {charge.what} has not ended. All of that is spent.")
        return found.ledger

    def _text(self, ledger: PrivacyLedger, entry: Mapping[str, Any] | None = None) -> bytes:
        releases = (*self._releases, *([] if entry is None else [entry]))
        history = History(ledger=ledger, releases=releases, limit=self._limit)
        return f"{history.to_json()}\n".encode()

    def _put(self, content: bytes | None) -> None:
        """Writes the file whole or not at all, to the disk and not to its cache alone."""
        place = self._place
        assert place is not None
        part = place.with_name(f"{place.stem}.part.next{place.suffix}")
        try:
            if content is None:
                place.unlink(missing_ok=True)
            else:
                part.unlink(missing_ok=True)
                # Not by tempfile: the file gets the permissions that any new file has.
                with part.open("xb") as file:
                    file.write(content)
                    file.flush()
                    os.fsync(file.fileno())
                os.replace(part, place)
        except OSError as error:
            with suppress(OSError):
                part.unlink(missing_ok=True)
            raise CommandError(f"Cannot write --ledger {self.path}: {reason(error)}.") from None
        self._written = content
        with suppress(OSError):  # not all systems can: the name may then be the older one
            folder = os.open(place.parent, os.O_RDONLY)
            try:
                os.fsync(folder)
            finally:
                os.close(folder)


@contextmanager
def said_only() -> Iterator[None]:
    """Says a ``CommandError`` where another error is on its way."""
    try:
        yield
    except CommandError as failure:
        say(str(failure))


def ledger_of(model: Model, place: Path, given: Path | None = None) -> Path | None:
    """The file of the ledger that a command goes on with before it spends more.

    It is the one that is given, and else that of the runs before: without it their ledger would
    not be told of what is spent now. ``None`` if these had none.

    Raises ``CommandError`` if that file is not there any more.
    """
    if given is not None or "ledger_file" not in model.notes:
        return given
    name, *_ = model.notes["ledger_file"]
    for path in (Path(name), place.parent / name):
        if path.is_file():
            say(f"What is spent is added to {path}, the ledger of the run that made {place}.")
            return path
    raise CommandError(
        f"What {place} has spent stands in the ledger {name}, which is not there: say with "
        "--ledger where it is. A new file gets all that the model has spent."
    )


def is_unwritten(model: Model) -> bool:
    """Whether a model had a ledger's file that lacks some of its charges."""
    entry = model.notes.get("ledger_file")
    return entry is not None and entry[1] < len(model.ledger.charges)


def check_most(most: float) -> float:
    """The value of ``--max-epsilon``, once checked. Raises ``CommandError``."""
    with own_errors(ValueError):
        return check_positive("--max-epsilon", most)


def check_spending(
    earlier: PrivacyLedger | None,
    planned: PrivacyLedger,
    most: float | None,
    what: str = "--epsilon",
) -> PrivacyLedger:
    """What a fit and all earlier ones may spend. Raises ``CommandError`` beyond ``most``."""
    together = planned if earlier is None else after(closed(earlier), planned)
    if most is None or together.epsilon <= check_most(most):
        return together
    before = "" if earlier is None else f" after {earlier.spent():.6g} before"
    raise CommandError(
        f"{what} {planned.epsilon:.6g}{before} would come to epsilon {together.epsilon:.6g} at "
        f"delta {together.delta:g}, more than --max-epsilon {most:g}. Nothing was read."
    )


def rest(begun: PrivacyLedger) -> PrivacyLedger:
    """What is left of the budget of a fit that has begun, as the empty ledger of another."""
    reserved = max(begun.reserved - own_delta(begun), Fraction(0))
    return replace(
        begun,
        epsilon=epsilon_of(begun.remaining, float(Fraction(begun.delta) - reserved)),
        budget=begun.remaining,
        charges=(),
        reserved=reserved,
    )


def after(earlier: PrivacyLedger | None, later: PrivacyLedger) -> PrivacyLedger:
    """Both ledgers together. Raises ``CommandError`` if they do not protect the same unit."""
    if earlier is None:
        return later
    try:
        return earlier.followed_by(later)
    except ValueError as error:
        raise CommandError(f"--ledger: {in_options(error)}") from None


def spent(ledger: PrivacyLedger) -> str:
    """The charges in words."""
    if not ledger.charges:
        return "Nothing was spent."
    return (
        f"Epsilon {ledger.spent():.4g} of {ledger.epsilon:.4g} at delta {ledger.delta:g} was spent."
    )


def spent_now(ledger: PrivacyLedger, begun: int) -> str:
    """What a command has spent that began after so many charges, and all charges, in words."""
    if not begun:
        return spent(ledger)
    own = closed(replace(ledger, charges=ledger.charges[begun:]))
    by_run = "Nothing was spent by this run"
    if own.charges:
        by_run = f"This run spent epsilon {own.spent():.4g}"
    return (
        f"{by_run}; the model stands at epsilon {ledger.spent():.4g} of {ledger.epsilon:.4g} at "
        f"delta {ledger.delta:g}."
    )


def closed(ledger: PrivacyLedger) -> PrivacyLedger:
    """The same charges with nothing left: an ended fit cannot use the rest of its budget."""
    return replace(ledger, budget=ledger.mu_squared, reserved=own_delta(ledger))


def _without(ledger: PrivacyLedger, planned: Charge) -> PrivacyLedger:
    """The same ledger as if that run had never been planned."""
    budget, reserved = ledger.budget - planned.mu_squared, ledger.reserved - planned.delta
    left = float(Fraction(ledger.delta) - reserved)
    return replace(
        ledger,
        epsilon=epsilon_of(budget, left) if left > 0 else math.inf,
        budget=budget,
        reserved=reserved,
        charges=tuple(charge for charge in ledger.charges if charge is not planned),
    )
