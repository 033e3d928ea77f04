"""Keeps what was paid for: the books, the noisy answers and the model, however a command ends."""

import pickle
import shlex
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from sdv_privpgd.cli.interrupts import undisturbed
from sdv_privpgd.cli.saying import PROGRAM, say
from sdv_privpgd.cli.spending import after, closed, spent_now
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
        earlier: The ledger in the file of the ledger, if there is one, with all charges before.
        outputs: The files of the command.
        out: The file of rows.
        ledger: The file of the ledger.
        model: The file of the synthesizer.
    """

    synthesizer: "PrivateSynthesizer"
    begun: int = 0
    earlier: PrivacyLedger | None
    outputs: Outputs
    out: Output
    ledger: Output | None
    model: Output | None
    _is_written_down: bool = field(default=False, init=False)
    _is_said: bool = field(default=False, init=False)
    _noted: tuple[str, int] | None = field(init=False)

    def __post_init__(self) -> None:
        self._noted = self.synthesizer.ledger_file

    @property
    def together(self) -> PrivacyLedger:
        """The ledger with what was spent since the command began."""
        books = self.synthesizer.ledger
        if not self.begun or self.earlier is None:
            return after(self.earlier, books)
        # The earlier ones are in the file, and so is the budget that this fit may use.
        return after(self.earlier, closed(replace(books, charges=books.charges[self.begun :])))

    @contextmanager
    def kept(self) -> Iterator[None]:
        """Records what is spent inside, however it ends, and keeps what it was spent on."""
        self.outputs.after_failure = self._tell
        try:
            yield
        except BaseException:
            with undisturbed():
                if self._has_spent:
                    self.keep_model()
            raise
        with undisturbed():
            self._write_down()

    def say_spent(self) -> None:
        """Says what was spent, once."""
        if not self._is_said:
            self._is_said = True
            say(spent_now(self.synthesizer.ledger, self.begun))

    def keep_model(self) -> None:
        """Writes the books, and the synthesizer, which knows of them, unless they are written."""
        self._write_down()
        if self.model is not None and not self.model.is_whole and self._is_of_use:
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

    def _write_down(self) -> None:
        if self._is_written_down:
            return
        text = self.together.to_json() + "\n"
        self.outputs.attempt(self.ledger, lambda part: part.write_text(text, encoding="utf-8"))
        self._note(is_there=self.ledger is not None and self.ledger.is_whole)
        self._is_written_down = True

    def _note(self, *, is_there: bool) -> None:
        """Lets the synthesizer know which file has its charges, if they are there."""
        if self.ledger is None:
            return
        if is_there:
            number = len(self.synthesizer.ledger.charges)
            self.synthesizer.ledger_file = (str(self.ledger.path), number)
        else:
            self.synthesizer.ledger_file = self._noted or (str(self.ledger.path), 0)

    def _tell(self, error: BaseException | None) -> None:
        """Says what was spent and where it is, after a failure."""
        books = self.synthesizer.ledger
        if books.charges or isinstance(error, KeyboardInterrupt):
            self.say_spent()
        if not books.charges:
            return
        if self.ledger is not None and self._has_spent and not self.ledger.is_placed:
            say(f"--ledger {self.ledger.path} does not say so. Count it in.")
            self._note(is_there=False)
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
        return _saved(self.synthesizer, _places(self.out.path))

    def _remedy(self, path: Path) -> str:
        if self.synthesizer.unfinished is not None:
            return how_to_finish(self.synthesizer, path)
        model = shlex.quote(str(path))
        return (
            f"The fitted model is in {path}: {PROGRAM} sample {model} writes rows of it, and "
            f"{PROGRAM} describe {model} --report FILE its page."
        )


def how_to_finish(synthesizer: "PrivateSynthesizer", path: Path) -> str:
    """The command that goes on with a fit that stopped, which is kept in a file.

    >>> from types import SimpleNamespace
    >>> kept = SimpleNamespace(has_tables=False)
    >>> stopped = SimpleNamespace(unfinished=kept, ledger_file=("ledger.json", 2))
    >>> how_to_finish(stopped, Path("model.pkl"))[-80:]
    ' --out FILE --ledger ledger.json goes on, and spends what is left of the budget.'
    """
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


def _places(out: Path) -> Sequence[Path]:
    """Where a synthesizer is kept that has no other place: beside the rows, or here."""
    name = f"{out.name.split('.')[0] or out.name}.rescued"
    names = [f"{name}.pkl", *(f"{name}-{number}.pkl" for number in range(2, 100))]
    return [folder / each for folder in (out.parent, Path()) for each in names]


def _saved(synthesizer: "PrivateSynthesizer", places: Sequence[Path]) -> Path | None:
    """The first of the places where a synthesizer can be written to a new file."""
    refused = set()
    for path in places:
        if path.parent in refused or path.exists():
            continue
        try:
            path.open("xb").close()
        except OSError:
            continue
        is_whole = False
        try:
            synthesizer.save(path)
            is_whole = True
        except (OSError, pickle.PicklingError):
            refused.add(path.parent)
        finally:
            if not is_whole:
                path.unlink(missing_ok=True)
        if is_whole:
            return path
    return None
