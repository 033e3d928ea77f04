"""Keeps what was paid for: the books, the noisy answers and the model, however a command ends."""

import pickle
import shlex
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from sdv_privpgd.cli.interrupts import undisturbed
from sdv_privpgd.cli.journal import Journal, after, closed, said_only, spent_now
from sdv_privpgd.cli.saying import PROGRAM, say
from sdv_privpgd.cli.writing import Output, Outputs
from sdv_privpgd.fitting.account import LOST
from sdv_privpgd.privacy.ledger import PrivacyLedger

if TYPE_CHECKING:
    from sdv_privpgd.plugin.base import PrivateSynthesizer


@dataclass(kw_only=True)
class Purchase:
    """What a command buys, and where it is kept.

    Attributes:
        synthesizer: Its books say what was spent.
        begun: The number of its charges when the command began.
        journal: The file of the ledger, if there is one, with all charges before.
        outputs: The files of the command.
        out: The file of rows.
        model: The file of the synthesizer.
    """

    synthesizer: "PrivateSynthesizer"
    begun: int = 0
    journal: Journal
    outputs: Outputs
    out: Output
    model: Output | None
    _is_kept: bool = field(default=False, init=False)
    _is_said: bool = field(default=False, init=False)

    def __post_init__(self) -> None:
        self.journal.together = lambda: self.together if self._has_spent or self._is_kept else None

    @property
    def together(self) -> PrivacyLedger:
        """The ledger with what was spent since the command began."""
        books, earlier = self.synthesizer.ledger, self.journal.earlier
        if not self.begun or earlier is None:
            return after(earlier, books)
        # The earlier ones are in the file, and so is the budget that this fit may use.
        return after(earlier, closed(replace(books, charges=books.charges[self.begun :])))

    @contextmanager
    def kept(self) -> Iterator[None]:
        """Records what is spent inside, however it ends, and keeps what it was spent on."""
        self.outputs.after_failure = self._tell
        try:
            yield
        except BaseException:
            with undisturbed(), said_only():
                if self._has_spent:
                    self.keep_model()
            raise

    def say_spent(self) -> None:
        """Says what was spent, once."""
        if not self._is_said:
            self._is_said = True
            say(spent_now(self.synthesizer.ledger, self.begun))

    def keep_model(self) -> None:
        """Writes the books, once, and the synthesizer, which knows of them.

        Raises ``CommandError`` for books that cannot be written. The synthesizer is kept then, too.
        """
        if self._is_kept:
            return
        self._is_kept = True
        try:
            with undisturbed():
                self.journal.settle()
        finally:
            self._note()
            if self._is_of_use:
                self.outputs.attempt(self.model, self.synthesizer.save)

    @property
    def _has_spent(self) -> bool:
        return len(self.synthesizer.ledger.charges) > self.begun or self._is_finished

    @property
    def _is_finished(self) -> bool:
        return bool(self.begun) and self.synthesizer.unfinished is None

    @property
    def _is_of_use(self) -> bool:
        return self.synthesizer.unfinished is not None or self.synthesizer.get_info()["is_fit"]

    def _note(self) -> None:
        """Lets the synthesizer know which file has its charges, or what was planned of them."""
        path, planned = self.journal.path, self.journal.planned
        if path is None:
            return
        if self.journal.failure is None:
            self.synthesizer.ledger_file = (str(path), len(self.synthesizer.ledger.charges))
        elif planned is not None:
            self.synthesizer.ledger_file = (str(path), self.begun, planned.what)
        elif self.synthesizer.ledger_file is None:
            self.synthesizer.ledger_file = (str(path), 0)

    def _tell(self, error: BaseException | None) -> None:
        """Says what was spent and where it is, after a failure."""
        books = self.synthesizer.ledger
        if books.charges or isinstance(error, KeyboardInterrupt):
            self.say_spent()
        if not books.charges:
            return
        if self.journal.failure is not None:
            say(
                f"--ledger {self.journal.path} does not say so, and no rows were written. What is "
                "kept knows, and is counted in before it gives any."
            )
        path = self._place_of_model()
        if path is not None:
            say(self._remedy(path))
        elif self._has_spent and not self._is_of_use:
            say(LOST)

    def _place_of_model(self) -> Path | None:
        if not self._is_of_use:
            return None
        if self.model is not None and (
            self.model.is_placed or (self.begun and not self._has_spent)
        ):
            return self.model.path
        return rescued(self.synthesizer.save, self.out.path, ".pkl")

    def _remedy(self, path: Path) -> str:
        if self.synthesizer.unfinished is not None:
            return how_to_finish(self.synthesizer, path)
        model = shlex.quote(str(path))
        return (
            f"The fitted model is in {path}: {PROGRAM} sample {model} writes rows of it, and "
            f"{PROGRAM} describe {model} --report FILE its page."
        )


def how_to_finish(synthesizer: "PrivateSynthesizer", path: Path) -> str:
    """The command that goes on with a fit that stopped, which is kept in a file."""
    kept, told, model = synthesizer.unfinished, synthesizer.ledger_file, shlex.quote(str(path))
    assert kept is not None
    ledger = "" if told is None else f" --ledger {shlex.quote(told[0])}"
    if kept.has_tables:
        more = " With --table TABLE it first spends what is left of the budget."
        return (
            f"The noisy answers are in {path}: {PROGRAM} finish {model} --out FILE{ledger} makes "
            f"rows of them, and spends nothing.{more if kept.ledger.remaining else ''}"
        )
    return (
        f"What was found is in {path}: {PROGRAM} finish {model} --table TABLE --out FILE{ledger} "
        "goes on, and spends what is left of the budget."
    )


def rescued(save: Callable[[Path], object], out: Path, ending: str) -> Path | None:
    """Where it was saved that has no other place: in a new file beside the rows, or else here."""
    name = f"{out.name.split('.')[0] or out.name}.rescued"
    names = [f"{name}{ending}", *(f"{name}-{number}{ending}" for number in range(2, 100))]
    for folder in (out.parent, Path()):
        for path in (folder / each for each in names):
            try:
                path.open("xb").close()
            except FileExistsError:
                continue
            except OSError:
                break
            is_whole = False
            try:
                save(path)
                is_whole = True
            except (OSError, pickle.PicklingError):
                break
            finally:
                if not is_whole:
                    path.unlink(missing_ok=True)
            return path
    return None
