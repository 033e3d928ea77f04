"""The door without SDV: a table and what is public of it go in, a fitted table comes out."""

import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date
from functools import partial
from pathlib import Path
from typing import Any

from sdv_privpgd.base.progress import Progress, silent
from sdv_privpgd.constraints.kinds import Constraint
from sdv_privpgd.fitting.asking import asked
from sdv_privpgd.fitting.checks import check_match
from sdv_privpgd.fitting.description import Description
from sdv_privpgd.fitting.fit import Fit, Fitted
from sdv_privpgd.fitting.mismatch import CAN_GO_ON, DomainMismatchError
from sdv_privpgd.fitting.opening import opened
from sdv_privpgd.fitting.plan import planned
from sdv_privpgd.fitting.refining import Refinable, composed, gone
from sdv_privpgd.fitting.reporting import report_of
from sdv_privpgd.fitting.sampled import SampledTable
from sdv_privpgd.fitting.settings import People, Settings
from sdv_privpgd.fitting.unfinished import Unfinished, note_on
from sdv_privpgd.inference.refits import Refits
from sdv_privpgd.methods.importance import Target
from sdv_privpgd.methods.method import Method
from sdv_privpgd.privacy.boundary import PrivateTable
from sdv_privpgd.privacy.ledger import PrivacyLedger
from sdv_privpgd.privacy.measurement import Measurement
from sdv_privpgd.report.page import Report
from sdv_privpgd.report.privacy import privacy_report
from sdv_privpgd.report.warnings import in_one, on_delta


@dataclass(frozen=True, kw_only=True, repr=False)
class FittedTable(SampledTable, Refinable):
    """A differentially private model of a table. All that it shows is public, pickles included.

    Attributes:
        fitted: The model, and what is known of the columns.
        settings: What the fit might spend, and by which method.
        ledger: What it spent.
        warnings: What is worth a look before the rows are used, a sentence each.
        date: When it was fitted.
        name: The table's name.

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

    def report(self, path: str | Path | None = None) -> Report:
        """What was spent and how well the rows fit the noisy answers, as text, page and numbers.

        Args:
            path: Where to save it as well: the page, or the text (``.txt``) or the numbers
                (``.json``). Nothing is written without one.

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
        told = self.fitted.told
        if told is None:
            bins, seed = self.fitted.description.num_bins, self.settings.seed
            told = {"num_bins": bins, "seed": seed}
        report = report_of(
            self.fitted,
            self.ledger,
            self.settings,
            table=self.name,
            date=self.date,
            told=told,
            notes=self.warnings,
        )
        if path is not None:
            report.save(path)
        return report

    def _refits(self) -> Refits:
        return self.fitted.refits

    def privacy_report(self) -> str:
        """The text of ``report``: what was spent, on what and under which adjacency."""
        return privacy_report(self.ledger, notes=self.warnings)


def fit_table(
    table: Any,
    columns: Mapping[str, Mapping],
    epsilon: float,
    delta: float = 1e-5,
    *,
    adjacency: str = "replace_one",
    people: People | None = None,
    discovery_share: float = 0.2,
    method: Method | str = "privpgd",
    target: Target = None,
    seed: int = 0,
    constraints: Sequence[Constraint] = (),
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
        delta: Choose it well below 1 / (number of rows).
        adjacency: ``"replace_one"``, where the number of rows is public, or ``"add_remove"``.
        people: Whose the rows are: ``People("patient", max_rows=4)`` reads no more than so many
            rows of a person, and protects all of them. By default each person has one row.
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
        SourceError: If rows cannot be read. A note says what was spent.
        DomainMismatchError: After the first noisy counts, if nearly no values of a column are
            the declared ones, or if nearly all rows lie beyond its declared range. The error's
            ``finish(table)`` goes on all the same.

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
    for sentence in on_delta(settings.delta):
        warnings.warn(sentence, stacklevel=2)
    check_match(settings, description)
    if after is not None:
        if not isinstance(after, PrivacyLedger):
            raise ValueError(
                "after takes the ledger of an earlier release, as in after=earlier.ledger, got "
                f"{type(after).__name__}."
            )
        after.followed_by(settings.ledger())  # refuses, if it does, before a row is read
    private = opened(table, description, settings.people.limit, settings.objections)
    timeless = frozenset(name for name in description.modelled if private.has_days(name))
    description = replace(description, timeless=timeless)
    for sentence in description.on_days:
        warnings.warn(sentence, stacklevel=2)
    done = fit_opened(settings, description, private, progress, after=after, stops=True)
    said = [sentence for sentence in done.warnings if sentence not in description.on_days]
    if said:  # what was said before the fit is not said again
        warnings.warn(in_one(said), stacklevel=2)
    return done


def plan_table(
    columns: Mapping[str, Mapping],
    epsilon: float,
    delta: float = 1e-5,
    *,
    num_rows: int,
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
        told: Other arguments of ``fit_table``, such as ``method``, but for ``after``.

    Raises:
        ValueError: As ``fit_table``, before it would read a row.

    >>> from sdv_privpgd import Boolean, plan_table
    >>> plan = plan_table({"ill": Boolean()}, epsilon=1.0, num_rows=5_000)
    >>> [charge["what"] for charge in plan.to_dict()["ledger"]["charges"]]
    ['number of rows', 'all 1-way marginals']
    """
    settings, description = asked(columns, epsilon, delta, **told)
    check_match(settings, description)
    return planned(settings, description, num_rows)


def fit_opened(
    settings: Settings,
    description: Description,
    private: PrivateTable,
    progress: Progress = silent,
    *,
    after: PrivacyLedger | None = None,
    stops: bool = False,
) -> FittedTable:
    """Fits a table that was opened as the description says, and warns of nothing.

    What it spends is composed with the ledger that it comes ``after``. If it ``stops``, it raises
    ``DomainMismatchError``, as ``fit_table`` does.
    """
    dtypes = private.dtypes_kept(description.columns, description.modelled, description.keys)
    fit = Fit(settings, replace(description, dtypes=dtypes))
    return _done(fit, private, progress, after, stops=stops)


def _done(
    fit: Fit,
    private: PrivateTable,
    progress: Progress,
    after: PrivacyLedger | None,
    known: Sequence[Measurement] = (),
    *,
    stops: bool = False,
) -> FittedTable:
    """What comes of a fit, or of one that stopped, which goes on with the answers it had."""
    try:
        fitted = _fitted(fit, private, progress, known, stops=stops)
    except DomainMismatchError as error:
        error.ledger = _together(after, fit.books.ledger)
        error.goes_on = partial(_gone_on, fit.settings, Unfinished.of(fit, (True, None)), after)
        note_on(error, CAN_GO_ON)
        raise
    except BaseException as error:
        note_on(error, gone(fit.books.ledger, fit.settings))
        raise
    ledger = _together(after, fit.books.ledger)
    return FittedTable(
        fitted=fitted,
        settings=fit.settings,
        ledger=ledger,
        warnings=composed(fitted, ledger),
        date=date.today().isoformat(),
    )


def _together(after: PrivacyLedger | None, own: PrivacyLedger) -> PrivacyLedger:
    return own if after is None else after.followed_by(own)


def _fitted(
    fit: Fit, table: PrivateTable, progress: Progress, known: Sequence[Measurement], *, stops: bool
) -> Fitted:
    """The steps of a fit in order."""
    fit.settings.method.prepare(progress)
    if not fit.has_discovered:
        fit.discover(table, progress)
    fit.ask(table, progress, known=known, stops=stops)
    return fit.model(progress)


def _gone_on(
    settings: Settings, kept: Unfinished, after: PrivacyLedger | None, table: Any
) -> Callable[[], FittedTable]:
    """What goes on with a fit that stopped, and spends what is left. The table is checked first."""
    private = kept.opened(table, settings)
    fit = Fit(
        settings, kept.description, doubts=kept.doubts, begun=kept.ledger, answered=kept.looked
    )
    return lambda: _done(fit, private, silent, after, kept.answers)
