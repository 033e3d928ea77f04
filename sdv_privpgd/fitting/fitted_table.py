"""A fitted table, the fit that makes it, and the ledger of several fits. All of it is public."""

import threading
import warnings
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import date
from pathlib import Path
from typing import Any

from sdv_privpgd.base.arguments import check_choice
from sdv_privpgd.base.progress import Progress, heard, silent
from sdv_privpgd.constraints.kinds import Constraint
from sdv_privpgd.fitting import resume
from sdv_privpgd.fitting.fates import ColumnsLostError, fates, require_kept, said_before
from sdv_privpgd.fitting.fit import Fit, Fitted
from sdv_privpgd.fitting.mismatch import CAN_GO_ON, DomainMismatchError
from sdv_privpgd.fitting.model_rows import SampledTable, SavedModel
from sdv_privpgd.fitting.settings import Settings
from sdv_privpgd.privacy.boundary import EncodedTable, PrivateTable
from sdv_privpgd.privacy.ledger import PrivacyLedger
from sdv_privpgd.privacy.queries import Measurement
from sdv_privpgd.report.about import About, promise_of
from sdv_privpgd.report.page import Report
from sdv_privpgd.report.privacy import privacy_report
from sdv_privpgd.report.registry import RegistryEntry, methods_of, registry_entry
from sdv_privpgd.report.release import officer_report, release_report


@dataclass(frozen=True, kw_only=True, repr=False)
class FittedTable(SampledTable):
    """A differentially private model of a table. All that it shows is public, files included.

    Attributes:
        fitted: The model, and what is known of the columns.
        settings: What the fit might spend, and by which method.
        ledger: What it spent.
        warnings: What is worth a look before the rows are used, a sentence each.
        date: When it was fitted.
        name: The table's name.
        notes: What the command line keeps with it, such as where its ledger is. No cell decides it.

    >>> import pandas as pd
    >>> from sdv_privpgd import Boolean, fit_table
    >>> table = pd.DataFrame({"ill": [True, False] * 500})
    >>> fitted = fit_table(table, {"ill": Boolean()}, epsilon=1.0, method="mst")
    >>> fitted.num_rows, fitted.sample(3).shape
    (1000, (3, 1))
    >>> fitted.ledger.spent() <= 1.0
    True
    """

    fitted: Fitted
    settings: Settings
    ledger: PrivacyLedger
    warnings: tuple[str, ...]
    date: str
    name: str = "table"
    notes: Mapping[str, Any] = field(default_factory=dict)

    def __repr__(self) -> str:
        """What matters of it in a line: what it is of, what it spent, whether to read on."""
        rows = "" if self.num_rows is None else f", {self.num_rows:,} rows"
        unit = self.ledger.unit + ("" if self.ledger.says_whose else ", not one person")
        noted = len(self.warnings)
        return (
            f"FittedTable({len(self.fitted.schema.columns)} columns{rows}, by "
            f"{' + '.join(self.settings.method.parts)}; epsilon {self.ledger.spent():.4g} at delta "
            f"{self.ledger.delta:g} for {unit}; {noted} warning{'s' * (noted != 1)})"
        )

    def report(self, path: str | Path | None = None, *, audience: str = "analyst") -> Report:
        """What was spent and how well the rows fit the noisy answers, as text, page and numbers.

        Args:
            path: Where to save it as well, as ``Report.save`` takes it.
            audience: ``"officer"`` gives one printed page for who decides on the release: whose
                data are protected and how, what an attacker could gain, what is not covered, what
                to write in a privacy notice, and what is left for you to answer.
        """
        check_choice("audience", audience, ("analyst", "officer"))
        release, ledger, about, notes = self.fitted.release, self.ledger, self._about, self.warnings
        if audience == "officer":
            report = officer_report(release, ledger, about, self.about_rows()["release"], notes)
        else:
            report = release_report(release, ledger, self.fitted.schema, about, notes=notes)
        return report.saved(path)

    def methods_text(self) -> str:
        """What was done, in sentences for a methods section, with the works that they name."""
        return str(methods_of(self._about, self.fitted.release, self.ledger))

    def registry_entry(
        self,
        *,
        name: str = "",
        curators: Sequence[str] | str = (),
        region: str = "",
        use: str = "",
        authors: Sequence[str] | str = (),
    ) -> RegistryEntry:
        """Returns the record of this fit for the public registry of deployments, at tier 3.

        What the fit knows is filled in (unit, epsilon, delta and rho, composition, mechanisms, what
        was taken to be public). ``print`` names the blanks, and ``save`` writes YAML.

        Args:
            name: What the rows are called, as all that is not said is a blank.
            curators: Who publishes them.
            region: Which region they describe, or whose law applies.
            use: What they are for.
            authors: Who fills in the record.
        """
        said = {"name": name, "region": region, "use": use}
        said |= {"curators": curators, "authors": authors}
        return registry_entry(self.fitted.release, self.ledger, self._about, said)

    @property
    def _about(self) -> About:
        """The description of the fit that its report, texts and registry entry begin with."""
        description, options = self.fitted.description, self.fitted.options
        usual = {"num_bins": description.num_bins, "seed": self.settings.seed}
        return About(
            table=self.name,
            date=self.date,
            method=self.settings.method,
            columns=description.columns,
            keys=tuple(description.keys),
            declared=description.facts,
            discovered=description.discovered,
            settings=usual if options is None else options,
            visits=description.visits,
            prior=() if description.public is None else description.public.said,
            doubted=() if description.public is None else description.public.doubted,
            constraints=tuple(map(_in_words, description.constraints.declared)),
        )

    def _promise(self) -> dict[str, Any]:
        return {"method": " + ".join(self.settings.method.parts), **promise_of(self.ledger)}

    def privacy_report(self) -> str:
        """The text of ``report``: what was spent, on what and under which adjacency."""
        return privacy_report(self.ledger, notes=self.warnings)

    def add_budget(
        self, table: Any, epsilon: float, *, progress: Progress = silent
    ) -> "FittedTable":
        """The same fit with more budget: the table is asked again, and all answers are fitted.

        Privacy: one ledger. Its epsilon grows by ``epsilon`` at the same delta, and all that was
        ever released of the table is within it: 0.5 and 0.5 more spend exactly what 1 does.
        Answers to the same question are averaged by inverse variance, so that errors fall as if
        all had been asked at once (``tests/benchmarks sites --add-budget``). Nothing is discovered
        anew, and the new model starts from this one.

        Args:
            table: The table that was fitted, with the same rows, as ``fit`` takes it. For a table
                that has grown, make a second release: ``fit_table(..., after=earlier.ledger)``.
            epsilon: What is added.
            progress: Told of the steps.

        Warns if this fit got budget before: each of the results has a ledger that knows nothing of
        the other. Add to the last one.

        Raises:
            ValueError: For a table of other columns or, where it is public, another number of rows;
                for fits whose tables were not kept; and for an epsilon that is not positive.
        """
        running = self.more_budget(table, epsilon)
        resume.warn_of_more(self.fitted)
        vars(self.fitted)["has_more"] = True
        return running.noted(progress)

    def more_budget(self, table: Any, epsilon: float) -> "RunningFit":
        """Returns what ``add_budget`` does, before a row is read. It raises for the same."""
        fit = resume.begun_again(self.fitted, epsilon)
        private = resume.opened_again(self.fitted, table)
        return RunningFit(fit=fit, private=private, before=self.ledger, extended=self)


@dataclass(frozen=True, kw_only=True, repr=False)
class UnfinishedTable(SavedModel):
    """A fit that ended after it had paid: noisy answers that no model was made of. Public.

    Attributes:
        kept: The answers.
        settings: What the fit might spend, and by which method.
        ledger: What was spent, and what earlier releases did.
        last: The fitted table that was to get more budget, if one was.
        notes: As a ``FittedTable`` has them.
    """

    kept: resume.Unfinished
    settings: Settings
    ledger: PrivacyLedger
    last: FittedTable | None = None
    notes: Mapping[str, Any] = field(default_factory=dict)

    def resumed(self, table: Any = None) -> "RunningFit":
        """Returns the rest of the fit: without a table a model of the answers, for nothing.

        With the table of that fit, what is left of the budget is spent first.

        Raises:
            ValueError: Without a table, if no table of counts was answered; and for another table,
                as far as that is public.
        """
        kept = self.kept
        kept.require(self.settings, kept.description, with_data=table is not None)
        private = None if table is None else kept.opened(table, self.settings)
        fit = kept.fit(self.settings, kept.description)
        return RunningFit(
            fit=fit, private=private, before=self.ledger, known=kept.answers, resumed=self
        )

    def goes_on(self, table: Any) -> Callable[[], FittedTable]:
        """Checks the table of the fit, and returns what goes on with it."""
        return self.resumed(table).noted

    def privacy_report(self) -> str:
        """The text of what was spent, on what and under which adjacency."""
        return privacy_report(self.ledger)


@dataclass(kw_only=True, eq=False)
class RunningFit:
    """A fit that is about to run, or did: it holds the ledger, however it ends.

    Attributes:
        fit: The questions, and the ledger of this fit.
        private: The table, which shows nothing; ``None`` makes a model of what is known.
        before: All that was spent when it began, with earlier releases.
        known: Answers that it goes on with.
        extended: The fitted table that gets more budget.
        resumed: What it goes on with.
        allow_lost: The columns for which it does not stop.
        begun: The ledger of this fit when it began, or went on.
    """

    fit: Fit
    private: PrivateTable | EncodedTable | None
    before: PrivacyLedger | None = None
    known: Sequence[Measurement] = ()
    extended: FittedTable | None = None
    resumed: UnfinishedTable | None = None
    allow_lost: Collection[str] = ()
    begun: PrivacyLedger = field(init=False)

    def __post_init__(self) -> None:
        self.begun = self.fit.shared.ledger
        if self.extended is not None:  # without what is added
            self.begun = resume.own_ledger(self.extended.fitted, self.extended.ledger)

    @property
    def ledger(self) -> PrivacyLedger:
        """What was spent so far, with all before. Public."""
        now = self.fit.shared.ledger
        return resume.booked(self.before, self.begun, now) or now

    @property
    def has_charged(self) -> bool:
        """Whether something was spent since it began. Public."""
        return len(self.fit.shared.ledger.charges) > len(self.begun.charges)

    @property
    def unfinished(self) -> UnfinishedTable | None:
        """What it has paid for until now; ``None`` where nothing of it is of use. Public."""
        paid = self.begun.mu_squared if self.extended is not None else 0
        earlier = self.extended or self.resumed
        if self.fit.shared.ledger.mu_squared <= paid or not self.fit.has_answers:
            return self.resumed
        return UnfinishedTable(
            kept=resume.Unfinished.of(self.fit),
            settings=self.fit.settings,
            ledger=self.ledger,
            last=self.extended or (None if self.resumed is None else self.resumed.last),
            notes={} if earlier is None else earlier.notes,
        )

    @property
    def told_before(self) -> list[str]:
        """Sentences on what is worth a look before it spends anything. Public."""
        settings, description = self.fit.settings, self.fit.description
        rows = None if self.private is None else self.private.known_rows(settings.adjacency)
        return [*settings.absurd(rows), *said_before(settings, description, rows)]

    def run(self, progress: Progress = silent, *, stops: bool = False) -> FittedTable:
        """Asks for all that is left of the budget, and makes the model.

        If it ``stops``, it raises ``ColumnsLostError`` before anything is spent, and
        ``DomainMismatchError``, as ``fit_table`` does.
        """
        progress = heard(progress)
        fit, earlier = self.fit, self.extended or self.resumed
        stops_at = set(fit.description.modelled) - set(self.allow_lost) if stops else set()
        if stops and self.private is not None:
            rows = self.private.known_rows(fit.settings.adjacency)
            require_kept(fates(fit.settings, fit.description, rows), self.allow_lost)
        fit.settings.method.prepare(progress)
        if isinstance(self.private, PrivateTable) and not fit.has_discovered:
            fit.discover(self.private, progress, stops_at=stops_at)
        known, start, starts = self.known, None, ()
        if self.extended is not None:
            before = self.extended.fitted
            assert before.release is not None
            known, start = before.release.measurements, before.release.model
            starts = (*before.starts, len(known))
        fit.ask(self.private, progress, known=known, again=self.extended is not None)
        fitted = fit.model(progress, warm_start=start, starts=starts)
        return FittedTable(
            fitted=fitted,
            settings=fit.settings,
            ledger=self.ledger,
            warnings=resume.composed(fitted, self.ledger),
            date=date.today().isoformat(),
            name="table" if self.extended is None else self.extended.name,
            notes={} if earlier is None else earlier.notes,
        )

    def noted(self, progress: Progress = silent, *, stops: bool = False) -> FittedTable:
        """As ``run``. Errors say what was spent, and one that stops a fit how it goes on.

        They hold no table: an error may be kept, and printed, by anybody.
        """
        try:
            return self.run(progress, stops=stops)
        except ColumnsLostError:  # before anything is spent
            raise
        except DomainMismatchError as error:
            left = self.unfinished
            assert left is not None
            error.ledger, error.goes_on = self.ledger, left.goes_on
            resume.note_on(error, CAN_GO_ON)
            raise
        except BaseException as error:
            resume.note_on(error, resume.gone(self.fit.shared.ledger, self.fit.settings.epsilon))
            raise


LOST = (
    "The fit ended in the middle of a question. What that had cost stays on the ledger, and of its "
    "answers nothing could be kept: a new fit asks again."
)
"""What is said where a fit has spent something and nothing of it is of use."""


class CombinedLedger:
    """The ledger of all fits of an object. Public, and so are its pickles.

    The ``ledger`` is ``None`` before the first charge. ``unfinished`` is what a fit that failed had
    paid for, until another succeeds.
    """

    def __init__(
        self, ledger: PrivacyLedger | None = None, unfinished: resume.Unfinished | None = None
    ) -> None:
        self.ledger = ledger
        self.unfinished = unfinished
        self.lock = threading.RLock()

    @contextmanager
    def charged(
        self, running: RunningFit, names: tuple[bool, Any], *, goes_on: bool = False
    ) -> Iterator[None]:
        """Lets a fit run while one thread has the object to itself. What it charges stays booked.

        If it fails, its answers are kept with the ``names`` of its table, and all else is as it
        was. One that ``goes_on`` has been warned of before.
        """
        with self.lock:
            if not goes_on and self.ledger is not None:
                self._warn_of_refit(self.ledger.followed_by(running.fit.shared.ledger))
            running.before = self.ledger
            try:
                yield
                self.unfinished = None
            except BaseException as error:
                left = running.unfinished
                if left is not None:
                    self.unfinished = replace(left.kept, names=names)
                    resume.note_on(error, self.unfinished.remedy())
                elif running.has_charged:
                    resume.note_on(error, LOST)
                raise
            finally:
                if running.has_charged:
                    self.ledger = running.ledger

    def _warn_of_refit(self, composed: PrivacyLedger) -> None:
        kept = " One failed after it had paid: resume() makes use of its answers instead."
        warnings.warn(
            f"This synthesizer was fitted before. Together the fits spend epsilon "
            f"{composed.epsilon:.4g} at delta {composed.delta:g} on the people in the table."
            f"{kept if self.unfinished is not None else ''}",
            stacklevel=6,
        )

    def __getstate__(self) -> dict[str, Any]:
        return {"ledger": self.ledger, "unfinished": self.unfinished}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        self.lock = threading.RLock()


def _in_words(constraint: Constraint) -> str:
    of = ", ".join(map(repr, constraint.columns))
    return f"{type(constraint).__name__} of {of}" if of else type(constraint).__name__
