"""Models: they are loaded, and what was paid for is kept, however a command ends."""

import shlex
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from sdv_privpgd.base.files import DamagedFileError
from sdv_privpgd.base.progress import shown
from sdv_privpgd.cli.journal import Journal, Model, after, closed, said_only, spent_now
from sdv_privpgd.cli.messages import PROGRAM, CommandError, own_errors, say, say_each
from sdv_privpgd.cli.output_files import Output, Outputs, require_file
from sdv_privpgd.cli.start import undisturbed
from sdv_privpgd.columns.dialect import Facts
from sdv_privpgd.fitting.families import FittedTables
from sdv_privpgd.fitting.fitted_table import LOST, FittedTable, RunningFit, UnfinishedTable
from sdv_privpgd.fitting.model_file import NotKeptError
from sdv_privpgd.fitting.model_rows import SavedModel
from sdv_privpgd.privacy.ledger import PrivacyLedger
from sdv_privpgd.report.privacy import release_entry


@dataclass(kw_only=True)
class Session:
    """What a command buys, and where it is kept."""

    # What had been spent on the model when the command began; empty where it has none.
    start: PrivacyLedger
    notes: Mapping[str, Any]  # what is kept with the model
    earlier: Model | None = None  # the model that the command goes on with
    journal: Journal  # the file of the ledger, if there is one, with all charges before
    outputs: Outputs  # the files of the command
    files: tuple[Output, Output | None]  # the file of rows and its card, if it has one
    model: Output | None  # the file of the model
    _running: RunningFit | None = field(default=None, init=False)
    _fitted: FittedTable | None = field(default=None, init=False)
    _release: str | None = field(default=None, init=False)
    _is_kept: bool = field(default=False, init=False)
    _is_said: bool = field(default=False, init=False)

    def __post_init__(self) -> None:
        self.journal.together = lambda: self.together if self._has_spent or self._is_kept else None
        self.journal.entry = self._entry

    @property
    def ledger(self) -> PrivacyLedger:
        """All that was spent on the model."""
        return self.start if self._running is None else self._running.ledger

    @property
    def together(self) -> PrivacyLedger:
        """The ledger with what was spent since the command began."""
        ledger, earlier = self.ledger, self.journal.earlier
        if not self._begun or earlier is None:
            return after(earlier, ledger)
        # The earlier ones are in the file, and so is the budget that this fit may use.
        return after(earlier, closed(replace(ledger, charges=ledger.charges[self._begun :])))

    @property
    def fitted(self) -> FittedTable:
        """The fitted table, once there is one."""
        assert self._fitted is not None
        return replace(self._fitted, notes=self.notes)

    def run(
        self,
        running: RunningFit,
        *,
        is_quiet: bool,
        stops: bool = False,
        said: Collection[str] = (),
    ) -> None:
        """Runs a fit. Where no report will say what is worth a look, it is said here.

        ``said`` are sentences that were said before.
        """
        self._running = running
        with own_errors(), shown("Fitting", not is_quiet) as progress:
            self._fitted = running.run(progress, stops=stops)
        self._release = self._fitted.about_rows()["release"]
        if is_quiet:
            say_each(self._fitted.warnings, but=said)

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
            say(spent_now(self.ledger, self._begun))

    def keep_model(self) -> None:
        """Writes the ledger, once, and the model, which knows of them.

        Raises ``CommandError`` for a ledger that cannot be written. The model is kept then, too.
        """
        if self._is_kept:
            return
        self._is_kept = True
        try:
            with undisturbed():
                self.journal.settle()
        finally:
            self._note()
            if (own := self._own) is not None:
                self.outputs.attempt(self.model, own.save)

    def _entry(self) -> dict[str, Any]:
        """What the ledger's file is to say of the release."""
        ledger = self.ledger
        own = replace(ledger, charges=ledger.charges[self._begun :])
        settings = None if self._running is None else self._running.fit.settings
        return release_entry(
            own,
            name=self.files[0].path.name,
            release=self._release,
            method="" if settings is None else " + ".join(settings.method.parts),
        )

    @property
    def _begun(self) -> int:
        return len(self.start.charges)

    @property
    def _has_spent(self) -> bool:
        is_finished = bool(self._begun) and self._fitted is not None
        return len(self.ledger.charges) > self._begun or is_finished

    @property
    def _own(self) -> Model | None:
        """What is to be kept: the fitted table, or else what was paid for, or what there was."""
        paid = None if self._running is None else self._running.unfinished
        own = self._fitted or paid or self.earlier
        return None if own is None else replace(own, notes=self.notes)

    def _note(self) -> None:
        """Lets the model know which file has its charges, or what was planned of them."""
        path, planned = self.journal.path, self.journal.planned
        if path is None:
            return
        ledger_file = self.notes.get("ledger_file", (str(path), 0))
        if self.journal.failure is None:
            ledger_file = str(path), len(self.ledger.charges)
        elif planned is not None:
            ledger_file = str(path), self._begun, planned.what
        self.notes = {**self.notes, "ledger_file": ledger_file}

    def _tell(self, error: BaseException | None) -> None:
        """Says what was spent and where it is, after a failure."""
        ledger = self.ledger
        if ledger.charges or isinstance(error, KeyboardInterrupt):
            self.say_spent()
        if not ledger.charges:
            return
        if self.journal.failure is not None:
            say(
                f"--ledger {self.journal.path} does not say so, and no rows were written. What is "
                "kept knows, and is counted in before it gives any."
            )
        if path := self._place_of_model():
            say(self._remedy(path))
        elif self._has_spent and self._own is None:
            say(LOST)

    def _place_of_model(self) -> Path | None:
        if (own := self._own) is None:
            return None
        if self.model is not None and (
            self.model.is_placed or (self._begun and not self._has_spent)
        ):
            return self.model.path
        return rescued(own.save, self.files[0].path)

    def _remedy(self, path: Path) -> str:
        if isinstance(own := self._own, UnfinishedTable):
            return how_to_finish(own, path)
        model = shlex.quote(str(path))
        return (
            f"The fitted model is in {path}: {PROGRAM} sample {model} writes rows of it, and "
            f"{PROGRAM} describe {model} --report FILE its page."
        )


def how_to_finish(unfinished: UnfinishedTable, path: Path) -> str:
    """The command that goes on with a fit that stopped, which is kept in a file."""
    kept, model = unfinished.kept, shlex.quote(str(path))
    ledger_file = unfinished.notes.get("ledger_file")
    ledger = "" if ledger_file is None else f" --ledger {shlex.quote(ledger_file[0])}"
    if kept.has_tables:
        more = " With --table TABLE it first spends what is left of the budget."
        return (
            f"The noisy answers are in {path}: {PROGRAM} resume {model} --out FILE{ledger} makes "
            f"rows of them, and spends nothing.{more if kept.ledger.remaining else ''}"
        )
    return (
        f"What was found is in {path}: {PROGRAM} resume {model} --table TABLE --out FILE{ledger} "
        "goes on, and spends what is left of the budget."
    )


def rescued(save: Callable[[Path], object], out: Path) -> Path | None:
    """Where it was saved that has no other place: in a new file beside the rows, or else here."""
    name = f"{out.name.split('.')[0] or out.name}.rescued"
    names = [f"{name}.zip", *(f"{name}-{number}.zip" for number in range(2, 100))]
    for folder in (out.parent, Path()):
        for path in (folder / each for each in names):
            try:
                path.open("xb").close()
            except FileExistsError:
                continue
            except OSError:
                break
            try:
                save(path)
            except BaseException as error:
                path.unlink(missing_ok=True)
                if isinstance(error, OSError | NotKeptError):
                    break
                raise
            return path
    return None


# Models that are there

_STOPPED = (
    f"holds a fit that was interrupted after it had paid: {PROGRAM} resume makes a model of it"
)


def kept_in(path: Path) -> SavedModel:
    """Loads any kept model. Raises ``CommandError`` for any other file."""
    require_file(path)
    with own_errors(DamagedFileError):
        return SavedModel.load(path)


def paid_for(path: Path, model: SavedModel | None = None) -> Model:
    """Loads what a fit of a table has paid for. Raises ``CommandError`` for any other file."""
    model = kept_in(path) if model is None else model
    if isinstance(model, FittedTable | UnfinishedTable):
        return model
    if isinstance(model, FittedTables):
        raise CommandError(
            f"{path} holds several tables: {PROGRAM} describe and evaluate take them, and sample "
            "with a folder as --out. To spend more on them, synthesize them once more, on the same "
            "--ledger."
        )
    raise CommandError(f"{path} holds a {type(model).__name__}, and no fitted table.")


def fitted(path: Path, model: Model | None = None) -> FittedTable:
    """The fitted table in a file, that before more budget if this was interrupted."""
    found = paid_for(path) if model is None else model
    table = found.last if isinstance(found, UnfinishedTable) else found
    if table is None:
        raise CommandError(f"{path} {_STOPPED}.")
    return table


def unfinished(path: Path) -> UnfinishedTable:
    """Loads a fit that can be finished."""
    if isinstance(found := paid_for(path), UnfinishedTable):
        return found
    raise CommandError(f"{path} is finished: {PROGRAM} sample writes rows of it.")


def finished(path: Path) -> FittedTable:
    """Loads a fitted table of which all is finished, what was added too."""
    if isinstance(found := paid_for(path), FittedTable):
        return found
    raise CommandError(f"{path} {_STOPPED}, which more budget can be added to.")


def facts_of(model: Model) -> Facts:
    """The public facts on each column of the model's table."""
    own = model.fitted if isinstance(model, FittedTable) else model.kept
    return {**model.notes.get("columns", {}), **own.description.words}
