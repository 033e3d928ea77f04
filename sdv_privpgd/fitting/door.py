"""The door without SDV: a table and what is public of it go in, a fitted table comes out."""

import warnings
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import date
from pathlib import Path
from typing import Any

from sdv_privpgd.base.arguments import check_names
from sdv_privpgd.base.progress import Progress, silent
from sdv_privpgd.constraints.kinds import Constraint
from sdv_privpgd.fitting.asking import asked
from sdv_privpgd.fitting.checks import check_match
from sdv_privpgd.fitting.description import Description
from sdv_privpgd.fitting.fates import ColumnsLostError, check_report, fates, require_kept
from sdv_privpgd.fitting.fit import Fit, Fitted
from sdv_privpgd.fitting.mismatch import CAN_GO_ON, DomainMismatchError
from sdv_privpgd.fitting.opening import opened
from sdv_privpgd.fitting.plan import planned
from sdv_privpgd.fitting.prior import leaning
from sdv_privpgd.fitting.refining import (
    asked_again,
    begun_again,
    composed,
    gone,
    opened_again,
    own_ledger,
)
from sdv_privpgd.fitting.reporting import about_of
from sdv_privpgd.fitting.sampled import SampledTable, SavedModel
from sdv_privpgd.fitting.settings import People, Settings
from sdv_privpgd.fitting.unfinished import Unfinished, booked, note_on
from sdv_privpgd.inference.refits import Refits
from sdv_privpgd.methods.method import Method
from sdv_privpgd.methods.workload import Target
from sdv_privpgd.privacy.boundary import EncodedTable, PrivateTable
from sdv_privpgd.privacy.ledger import PrivacyLedger
from sdv_privpgd.privacy.queries import Measurement
from sdv_privpgd.report.about import About, promise_of
from sdv_privpgd.report.officer import officer_report
from sdv_privpgd.report.page import Report
from sdv_privpgd.report.privacy import privacy_report
from sdv_privpgd.report.registry import RegistryEntry, methods_of, registry_entry
from sdv_privpgd.report.release import release_report
from sdv_privpgd.report.warnings import in_one


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
    >>> from sdv_privpgd import Boolean
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
            path: Where to save it as well: the page, or the text (``.txt``) or the numbers
                (``.json``). Nothing is written without one.
            audience: ``"officer"`` gives one printed page for who decides on the release: whose
                data are protected and how, what an attacker could gain, what is not covered, what
                to write in a privacy notice, and what is left for you to answer.

        >>> import pandas as pd
        >>> from tempfile import TemporaryDirectory
        >>> from sdv_privpgd import Boolean
        >>> table = pd.DataFrame({"ill": [True, False] * 500})
        >>> fitted = fit_table(table, {"ill": Boolean()}, epsilon=1.0, method="mst")
        >>> with TemporaryDirectory() as folder:
        ...     report = fitted.report(Path(folder, "report.txt"))
        >>> report.to_dict()["num_rows"]
        1000.0
        """
        if audience not in ("analyst", "officer"):
            raise ValueError(f"audience is 'analyst' or 'officer', got {audience!r}.")
        release, notes = self.fitted.release, self.warnings
        if audience == "officer":
            own = self.about_rows()["release"]
            report = officer_report(release, self.ledger, self._about, own, notes)
        else:
            schema = self.fitted.schema
            report = release_report(release, self.ledger, schema, self._about, notes=notes)
        if path is not None:
            report.save(path)
        return report

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

        >>> import pandas as pd
        >>> from sdv_privpgd import Boolean
        >>> table = pd.DataFrame({"ill": [True, False] * 500})
        >>> fitted = fit_table(table, {"ill": Boolean()}, epsilon=1.0, method="mst")
        >>> entry = fitted.registry_entry(name="Illness in Northland", curators="Northland")
        >>> entry.to_dict()["deployment"]["basic"]["data_product_type"]
        'Synthetic data'
        >>> entry.blanks[:2]
        ['deployment.basic.description', 'deployment.basic.intended_use']
        """
        said = {"name": name, "region": region, "use": use}
        said |= {"curators": curators, "authors": authors}
        return registry_entry(self.fitted.release, self.ledger, self._about, said)

    @property
    def _about(self) -> About:
        return about_of(self.fitted, self.settings, table=self.name, date=self.date)

    def _promise(self) -> dict[str, Any]:
        return {"method": " + ".join(self.settings.method.parts), **promise_of(self.ledger)}

    def _refits(self) -> Refits:
        return self.fitted.refits

    def privacy_report(self) -> str:
        """The text of ``report``: what was spent, on what and under which adjacency."""
        return privacy_report(self.ledger, notes=self.warnings)

    def refine(self, table: Any, epsilon: float, *, progress: Progress = silent) -> "FittedTable":
        """The same fit with more budget: the table is asked again, and all answers are fitted.

        Privacy: one ledger. Its epsilon grows by ``epsilon`` at the same delta, and all that was
        ever released of the table is within it: 0.5 and 0.5 more spend exactly what 1 does.
        Answers to the same question are averaged by inverse variance, so that errors fall as if
        all had been asked at once (``tests/benchmarks holders --refine``). Nothing is discovered
        anew, and the new model starts from this one.

        Args:
            table: The table that was fitted, with the same rows, as ``fit`` takes it. For a table
                that has grown, make a second release: ``fit_table(..., after=earlier.ledger)``.
            epsilon: What is added.
            progress: Told of the steps.

        Warns if this fit was refined before: each of the results has a ledger that knows nothing of
        the other. Refine the last one.

        Raises:
            ValueError: For a table of other columns or, where it is public, another number of rows;
                for fits whose tables were not kept; and for an epsilon that is not positive.
        """
        running = self.refining(table, epsilon)
        if vars(self).get("_is_refined"):
            warnings.warn(
                "This fit was refined before. Now two fits ask its table, and their ledgers know "
                "nothing of each other: what both cost adds up. Refine the last one instead.",
                stacklevel=2,
            )
        vars(self)["_is_refined"] = True
        with _noted(running):
            return running.run(progress)

    def refining(self, table: Any, epsilon: float) -> "RunningFit":
        """Returns what ``refine`` does, before a row is read. It raises for the same."""
        return RunningFit(
            fit=begun_again(self.fitted, epsilon),
            private=opened_again(self.fitted, table),
            before=self.ledger,
            refined=self,
        )


@dataclass(frozen=True, kw_only=True, repr=False)
class UnfinishedTable(SavedModel):
    """A fit that ended after it had paid: noisy answers that no model was made of. Public.

    Attributes:
        kept: The answers.
        settings: What the fit might spend, and by which method.
        ledger: What was spent, and what earlier releases did.
        last: The fitted table that was to be refined, if one was.
        notes: As a ``FittedTable`` has them.
    """

    kept: Unfinished
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
        fit = Fit(
            self.settings,
            kept.description,
            doubts=kept.doubts,
            begun=kept.ledger,
            answered=kept.looked,
        )
        return RunningFit(
            fit=fit, private=private, before=self.ledger, known=kept.answers, resumed=self
        )

    def goes_on(self, table: Any) -> Callable[[], FittedTable]:
        """Checks the table of the fit, and returns what goes on with it."""
        running = self.resumed(table)

        def run() -> FittedTable:
            with _noted(running):
                return running.run()

        return run

    def privacy_report(self) -> str:
        """The text of what was spent, on what and under which adjacency."""
        return privacy_report(self.ledger)


@dataclass(kw_only=True, eq=False)
class RunningFit:
    """A fit that is about to run, or did: it holds the books, however it ends.

    Attributes:
        fit: The questions, and the books of this fit.
        private: The table, which shows nothing; ``None`` makes a model of what is known.
        before: All that was spent when it began, with earlier releases.
        known: Answers that it goes on with.
        refined: The fitted table that gets more budget.
        resumed: What it goes on with.
        allow_lost: The columns for which it does not stop.
        begun: The books of this fit when it began, or went on.
    """

    fit: Fit
    private: PrivateTable | EncodedTable | None
    before: PrivacyLedger | None = None
    known: Sequence[Measurement] = ()
    refined: FittedTable | None = None
    resumed: UnfinishedTable | None = None
    allow_lost: Collection[str] = ()
    begun: PrivacyLedger = field(init=False)

    def __post_init__(self) -> None:
        self.begun = self.fit.books.ledger
        if self.refined is not None:  # without what is added
            self.begun = own_ledger(self.refined.fitted, self.refined.ledger)

    @property
    def ledger(self) -> PrivacyLedger:
        """What was spent so far, with all before. Public."""
        return booked(self.before, self.begun, self.fit.books.ledger) or self.fit.books.ledger

    @property
    def has_charged(self) -> bool:
        """Whether something was spent since it began. Public."""
        return len(self.fit.books.ledger.charges) > len(self.begun.charges)

    @property
    def unfinished(self) -> UnfinishedTable | None:
        """What it has paid for until now; ``None`` where nothing of it is of use. Public."""
        paid = self.begun.mu_squared if self.refined is not None else 0
        if self.fit.books.ledger.mu_squared <= paid or not self.fit.has_answers:
            return self.resumed
        return UnfinishedTable(
            kept=Unfinished.of(self.fit),
            settings=self.fit.settings,
            ledger=self.ledger,
            last=self.refined or (None if self.resumed is None else self.resumed.last),
            notes=self._notes,
        )

    @property
    def _notes(self) -> Mapping[str, Any]:
        earlier = self.refined or self.resumed
        return {} if earlier is None else earlier.notes

    def run(self, progress: Progress = silent, *, stops: bool = False) -> FittedTable:
        """Asks for all that is left of the budget, and makes the model.

        If it ``stops``, it raises ``ColumnsLostError`` before anything is spent, and
        ``DomainMismatchError``, as ``fit_table`` does.
        """
        fit = self.fit
        stops_at = set(fit.description.modelled) - set(self.allow_lost) if stops else set()
        if stops and self.private is not None:
            rows = self.private.known_rows(fit.settings.adjacency)
            require_kept(fates(fit.settings, fit.description, rows), self.allow_lost)
        if self.refined is not None:
            assert isinstance(self.private, PrivateTable)
            fitted = asked_again(fit, self.refined.fitted, self.private, progress)
        else:
            fit.settings.method.prepare(progress)
            if isinstance(self.private, PrivateTable) and not fit.has_discovered:
                fit.discover(self.private, progress, stops_at=stops_at)
            fit.ask(self.private, progress, known=self.known)
            fitted = fit.model(progress)
        return FittedTable(
            fitted=fitted,
            settings=fit.settings,
            ledger=self.ledger,
            warnings=composed(fitted, self.ledger),
            date=date.today().isoformat(),
            name="table" if self.refined is None else self.refined.name,
            notes=self._notes,
        )


def fit_table(
    table: Any,
    columns: Mapping[str, Mapping],
    epsilon: float,
    delta: float | None = None,
    *,
    adjacency: str = "replace_one",
    people: People | None = None,
    discovery_share: float = 0.2,
    method: Method | str = "privpgd",
    target: Target = None,
    seed: int = 0,
    constraints: Sequence[Constraint] = (),
    prior: Any = None,
    allow_lost: Collection[str] = (),
    after: PrivacyLedger | None = None,
    progress: Progress = silent,
) -> FittedTable:
    """Fits a differentially private model to a table, without SDV.

    Privacy: what is returned, warned or raised is (epsilon, delta)-differentially private for one
    row, or for the rows of one of the ``people`` (guide, page 12). Columns
    of the table that are not named in ``columns`` are not read. A fit of 50,000 rows and 15 columns
    takes some ten seconds on two cores; it grows with the pairs of columns more than with the rows.

    Args:
        table: The private table: a DataFrame of pandas, Polars or Spark, a path, a pattern or a
            list of paths of Parquet or CSV files, an Arrow table or data set, a DuckDB relation or
            an Ibis table. What is no frame of pandas is read in batches, more than once, and must
            stay as it is.
        columns: What is public of each column to model, in order: ``Numerical(0, 120)``,
            ``Categorical(["A", "B"])``, ``Ordinal``, ``Datetime``, ``TimeOfDay``, ``Boolean``, or a
            dictionary of the same facts with its ``sdtype``. What is left out is found privately. A
            ``Key`` is not modelled: it is made anew for each row.
        epsilon: What the fit may spend. 1 is usual; below 0.2 only large tables have much to show.
        delta: Choose it well below 1 / (number of rows). By default it is a tenth of that, and no
            more than 1e-5; where the number of rows is private it has to be given.
        adjacency: ``"replace_one"``, where the number of rows is public, or ``"add_remove"``.
        people: Whose the rows are: ``People("patient", max_rows=4)`` reads no more than so many
            rows of a person, and protects all of them; ``People(rows_are_people=True)`` says that
            each row is another person's. Without either, one row is protected and no person. It
            also names the column of a survey's weights, if rows are to count as theirs.
        discovery_share: Part of the budget, at most, for what is not declared.
        method: What is asked, and what makes rows of the answers: ``"privpgd"``, ``"independent"``,
            ``"mst"``, ``"aim"``, ``"mwem"``, ``"privsyn"``, ``"privmrf"``, ``"rap"``, ``"rap++"``,
            ``"gem"``, ``"private_gsd"``, ``"dp-merf"``, ``"dp-diffusion"`` or ``"dp-ctgan"``; one
            of them with another engine, such as ``"aim+particles"``; or an object of
            ``sdv_privpgd.methods`` with settings, such as ``AIM(max_megabytes=20)`` or
            ``PrivPGD(num_bins=20)``.
        target: The column that the rows are to predict, or several. They are public. Pairs with it
            are measured more precisely, others less: with 6 times the budget of another pair, or
            as many times as a dictionary says, such as ``{"income": 10}``.
        seed: Of an engine that is named and of the rows, never of the noise.
        constraints: What all sampled rows will meet: ``Inequality``, ``Range``,
            ``FixedIncrements``, ``OneHotEncoding``, ``FixedCombinations`` and
            ``ProgrammableConstraint`` of ``sdv_privpgd.constraints``. They are public, and the
            table is not checked against them.
        prior: Public rows that are like the private ones: a DataFrame, the path of a Parquet or CSV
            file, an earlier fitted table, a ``Prior`` that says more of these, or a list. They must
            be public or released already, and cost nothing. Ranges, categories and cells that
            are not declared are theirs, and noisy answers decide how far rows follow them.
        allow_lost: Columns for which the fit does not stop, whatever it would lose of them.
        after: The ledger of an earlier release of a table with some of the same people, such as
            last year's. The ledger that is returned holds both, and the report says what people in
            both, and in this one alone, are promised.
        progress: Told of the steps.

    Raises:
        ValueError: For settings and declarations that cannot be meant, for columns that are
            missing, and for a table without rows if their number is public, before a row is read.
        MatchError: A ``ValueError``, before anything is spent, for a method that cannot model
            what it would ask of such columns.
        PrivacyBudgetError: Before a row is read, if the plan does not fit the budget.
        ColumnsLostError: A ``ValueError``, before anything is spent, for columns that noise would
            hide in so few rows. ``check`` says the same.
        SourceError: If rows cannot be read. A note says what was spent.
        DomainMismatchError: After the first question, if more than a tenth of the cells of a column
            are there and no declared values; after others, if no categories are found, or nearly
            all rows lie beyond a declared range. The error's ``finish(table)`` goes on all the
            same.

    >>> import pandas as pd
    >>> from sdv_privpgd import Categorical, Numerical, fit_table
    >>> visits = pd.DataFrame({"ward": ["A", "B"] * 500, "age": [30, 60] * 500, "id": range(1000)})
    >>> described = {"ward": Categorical(["A", "B"]), "age": Numerical(0, 99, decimal_places=0)}
    >>> fitted = fit_table(visits, described, epsilon=5.0)
    >>> rows = fitted.sample(200)
    >>> list(rows.columns), len(rows), set(rows["ward"].dropna()) == {"A", "B"}
    (['ward', 'age'], 200, True)
    >>> fitted.ledger.spent() <= 5.0
    True
    """
    settings, description = asked(
        columns,
        epsilon,
        delta,
        adjacency=adjacency,
        people=people,
        discovery_share=discovery_share,
        method=method,
        target=target,
        seed=seed,
        constraints=constraints,
    )
    for sentence in settings.absurd:
        warnings.warn(sentence, stacklevel=2)
    check_match(settings, description)
    if after is not None:
        if not isinstance(after, PrivacyLedger):
            raise ValueError(
                "after takes the ledger of an earlier release, as in after=earlier.ledger, got "
                f"{type(after).__name__}."
            )
        after.followed_by(settings.ledger())  # refuses, if it does, before a row is read
    running = prepared(
        settings, description, table, prior=prior, after=after, allow_lost=allow_lost
    )
    before = running.fit.told_before
    for sentence in before:
        warnings.warn(sentence, stacklevel=2)
    with _noted(running):
        done = running.run(progress, stops=True)
    said = [sentence for sentence in done.warnings if sentence not in before]
    if said:  # what was said before the fit is not said again
        warnings.warn(in_one(said), stacklevel=2)
    return done


def plan_table(
    columns: Mapping[str, Mapping],
    epsilon: float,
    delta: float | None = None,
    *,
    num_rows: int,
    prior: Any = None,
    **told: Any,
) -> Report:
    """Returns what ``fit_table`` would ask of so many rows, and how large its errors would be.

    Public: no table is read and nothing is spent. The questions are put to rows of missing values.
    What depends on answers (choices among pairs, domains that are discovered) will be others.
    ``print`` shows the text; ``to_dict()`` has the numbers, ``save("plan.html")`` writes the page.

    Args:
        columns: As ``fit_table`` takes them.
        epsilon: What the fit may spend.
        delta: At this delta.
        num_rows: How many rows the table has, about.
        prior: As ``fit_table`` takes it. A simulated fit then foretells what it is worth.
        told: Other arguments of ``fit_table``, such as ``method``, but for ``after``.

    Raises:
        ValueError: As ``fit_table``, before it would read a row.

    >>> from sdv_privpgd import Boolean, plan_table
    >>> plan = plan_table({"ill": Boolean()}, epsilon=1.0, num_rows=5_000)
    >>> [charge["what"] for charge in plan.to_dict()["ledger"]["charges"]][1:]
    ['cells that are no declared values', 'number of rows', 'all 1-way marginals']
    """
    settings, description = asked(columns, epsilon, delta, **told)
    check_match(settings, description)
    return planned(settings, leaning(settings, description, prior, num_rows, {}), num_rows)


def check(
    table: Any,
    columns: Mapping[str, Mapping],
    epsilon: float,
    delta: float | None = None,
    *,
    prior: Any = None,
    **told: Any,
) -> Report:
    """Returns what ``fit_table`` would make of each column of a table. Public.

    No cell is read and nothing is spent: names, dtypes, declarations, the budget and, where it is
    public, the number of rows say it. ``print`` shows the text; ``to_dict()`` has the columns that
    would be lost, for which ``fit_table`` stops.

    Args:
        table: As ``fit_table`` takes it.
        columns: As ``fit_table`` takes them.
        epsilon: What the fit may spend.
        delta: At this delta.
        prior: As ``fit_table`` takes it. What it has is not lost.
        told: Other arguments of ``fit_table`` that settings are made of, such as ``method``.

    Raises:
        ValueError: For declarations and settings that cannot be meant.

    >>> import pandas as pd
    >>> from sdv_privpgd import Categorical, check
    >>> table = pd.DataFrame({"ward": ["A", "B"] * 75, "drug": ["C", "D"] * 75})
    >>> columns = {"ward": Categorical(["A", "B"]), "drug": Categorical()}
    >>> check(table, columns, epsilon=0.1).to_dict()["lost"]
    ['drug']
    """
    settings, description = asked(columns, epsilon, delta, **told)
    check_match(settings, description)
    return check_report(*checked(settings, description, table, prior))


def checked(
    settings: Settings, description: Description, table: Any, prior: Any = None
) -> tuple[Settings, Description, int | None, list[str]]:
    """Returns what ``check_report`` says of a table: what a fit is told, and what it would raise.

    No cell is read.
    """
    try:
        private = opened(table, description, settings.people.limit, settings.objections)
    except ValueError as error:
        return settings, description, None, [str(error)]
    rows = private.known_rows(settings.adjacency)
    settings = settings.for_rows(rows)
    return settings, _leaning(settings, description, prior, private), rows, []


def prepared(
    settings: Settings,
    description: Description,
    table: Any,
    *,
    prior: Any = None,
    after: PrivacyLedger | None = None,
    allow_lost: Collection[str] = (),
) -> RunningFit:
    """Returns what ``fit_table`` does, before a row is read: all is checked, nothing is spent.

    Raises ``ValueError`` if the table is not as it is described, or has no rows if that is public.
    """
    private = opened(table, description, settings.people.limit, settings.objections)
    settings = settings.for_rows(private.known_rows(settings.adjacency))
    description = _leaning(settings, description, prior, private)
    timeless = frozenset(name for name in description.modelled if private.has_days(name))
    running = running_fit(settings, replace(description, timeless=timeless), private, after=after)
    running.allow_lost = checked_lost(allow_lost, description)
    return running


def _leaning(
    settings: Settings, description: Description, prior: Any, table: PrivateTable
) -> Description:
    """Returns the description of a table whose fit leans on a prior, if there is one."""
    kept = table.dtypes_kept(description.columns, description.modelled, description.keys)
    return leaning(settings, description, prior, table.known_rows(settings.adjacency), kept)


def checked_lost(allow_lost: Collection[str], description: Description) -> tuple[str, ...]:
    """Returns the columns that may be lost. Raises ``ValueError`` for names of no column."""
    names = check_names("allow_lost", allow_lost)
    unknown = [name for name in names if name not in description.columns]
    if unknown:
        raise ValueError(
            f"allow_lost names {unknown!r}, which are no columns: choose from "
            f"{list(description.columns)!r}."
        )
    return tuple(names)


def running_fit(
    settings: Settings,
    description: Description,
    private: PrivateTable,
    *,
    after: PrivacyLedger | None = None,
) -> RunningFit:
    """Returns the fit of a table that was opened as the description says."""
    dtypes = private.dtypes_kept(description.columns, description.modelled, description.keys)
    fit = Fit(settings, replace(description, dtypes=dtypes))
    return RunningFit(fit=fit, private=private, before=after)


@contextmanager
def _noted(running: RunningFit) -> Iterator[None]:
    """Has an error say what was spent, and one that stops a fit how it goes on.

    It holds no table: an error may be kept, and printed, by anybody.
    """
    try:
        yield
    except ColumnsLostError:  # before anything is spent
        raise
    except DomainMismatchError as error:
        left = running.unfinished
        assert left is not None
        error.ledger, error.goes_on = running.ledger, left.goes_on
        note_on(error, CAN_GO_ON)
        raise
    except BaseException as error:
        note_on(error, gone(running.fit.books.ledger, running.fit.settings))
        raise
