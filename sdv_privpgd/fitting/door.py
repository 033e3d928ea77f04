"""The door without SDV: a table and what is public of it go in, a fitted table comes out."""

import warnings
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Any

from sdv_privpgd.base.files import are_text
from sdv_privpgd.base.progress import Progress, silent
from sdv_privpgd.columns.dialect import on_words
from sdv_privpgd.columns.links import Link
from sdv_privpgd.columns.schema import Schema
from sdv_privpgd.constraints.kinds import Constraint
from sdv_privpgd.discovery.transcript import Answered
from sdv_privpgd.fitting.description import Description
from sdv_privpgd.fitting.fates import check_report, tables_report
from sdv_privpgd.fitting.fit import Fit
from sdv_privpgd.fitting.fitted_table import FittedTable, RunningFit
from sdv_privpgd.fitting.model_file import on_unkept
from sdv_privpgd.fitting.options import check_match, checked_lost, opened, parse_options
from sdv_privpgd.fitting.plan import planned, planned_tables
from sdv_privpgd.fitting.prior import leaning, require_others
from sdv_privpgd.fitting.settings import People, Settings, usual_delta
from sdv_privpgd.fitting.tables_settings import TablesSettings
from sdv_privpgd.inference.question_list import Question
from sdv_privpgd.methods.method import Method, Target
from sdv_privpgd.privacy.boundary import PrivateTable
from sdv_privpgd.privacy.ledger import PrivacyLedger
from sdv_privpgd.privacy.queries import Measurement
from sdv_privpgd.report.page import Report
from sdv_privpgd.report.warnings import warn_after


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
    questions: Sequence[Question] = (),
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
        questions: What the table will be asked, such as ``Question(what="mean", of="cost",
            where={"ward": "B"})`` of ``sdv_privpgd.inference``, or its acceptance criteria. Each
            gets a table of its own and cells that begin where its conditions do; all else has more
            noise. They are public.
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
        MatchError: A ``ValueError`` for a method that cannot model what it would ask of such
            columns: before anything is spent, or once categories were found, which is said before.
        PrivacyBudgetError: Before a row is read, if the plan does not fit the budget.
        ColumnsLostError: A ``ValueError``, before anything is spent, for columns that noise would
            hide in so few rows. ``check`` says the same.
        SourceError: If rows cannot be read. A note says what was spent.
        DomainMismatchError: After the first question, if more than a tenth of the cells of a column
            are there and no declared values; after others, if categories are too rare, or nearly
            all rows lie beyond a declared range. The error's ``resume(table)`` goes on all the
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
    settings, description = parse_options(
        columns,
        epsilon,
        delta,
        adjacency=adjacency,
        people=people,
        discovery_share=discovery_share,
        method=method,
        target=target,
        questions=questions,
        seed=seed,
        constraints=constraints,
    )
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
    before = running.told_before
    if said := [*before, *on_labels([columns]), *on_unkept(description.constraints)]:
        warnings.warn(" ".join(said), stacklevel=2)
    done = running.noted(progress, stops=True)
    warn_after(done.warnings, but=before, kept=done)
    return done


def on_labels(columns: Iterable[Mapping]) -> list[str]:
    """A sentence on names of tables' columns that are no text, if there are any."""
    names = [str(name) for own in columns for name in own if not isinstance(name, str)]
    return [f"Names of columns are text in the rows: {names}."] if names else []


def plan_table(
    columns: Mapping[str, Mapping],
    epsilon: float,
    delta: float | None = None,
    *,
    num_rows: int,
    prior: Any = None,
    **options: Any,
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
        options: Other arguments of ``fit_table``, such as ``method``, but for ``after``.

    Raises:
        ValueError: As ``fit_table``, before it would read a row.

    >>> from sdv_privpgd import Boolean, plan_table
    >>> plan = plan_table({"ill": Boolean()}, epsilon=1.0, num_rows=5_000)
    >>> [charge["what"] for charge in plan.to_dict()["ledger"]["charges"]][1:]
    ['cells that are no declared values', 'number of rows', 'all 1-way marginals']
    """
    settings, description = parse_options(columns, epsilon, delta, **options)
    check_match(settings, description)
    return planned(settings, leaning(settings, description, prior, num_rows), num_rows)


def plan_tables(
    columns: Mapping[str, Mapping[str, Mapping]],
    relationships: Link | Iterable[Link],
    epsilon: float,
    delta: float,
    *,
    num_rows: int,
    constraints: Mapping[str, Sequence[Constraint]] = MappingProxyType({}),
    **others: Any,
) -> Report:
    """Returns what ``fit_tables`` would ask of each table, and how large its errors would be.

    Public: no table is read and nothing is spent. Rows are families: each counts as one.

    Args:
        columns: As ``fit_tables`` takes them.
        relationships: As ``fit_tables`` takes them.
        epsilon: What all tables together may spend.
        delta: At this delta.
        num_rows: How many rows the root has, about.
        constraints: As ``fit_tables`` takes them.
        others: Other arguments of ``fit_tables``, such as ``method``.

    >>> from sdv_privpgd import Boolean, Link, plan_tables
    >>> declared = {"shops": {"open": Boolean()}, "sales": {"big": Boolean()}}
    >>> link = Link("shops", "sales", "shop", max_children=3)
    >>> plan = plan_tables(declared, link, 1.0, 1e-6, num_rows=5_000)
    >>> sorted(plan.to_dict()["tables"])
    ['sales', 'shops']
    """
    linked = TablesSettings.of(columns, relationships, epsilon, delta, constraints, **others)
    return planned_tables(linked, num_rows)


def check(
    table: Any,
    columns: Mapping[str, Mapping],
    epsilon: float,
    delta: float | None = None,
    *,
    prior: Any = None,
    relationships: Link | Iterable[Link] | None = None,
    **options: Any,
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
        relationships: As ``fit_tables`` takes them. Tables and columns are then those of it, too.
        options: Other arguments of ``fit_table`` that settings are made of, such as ``method``.

    Raises:
        ValueError: For declarations and settings that cannot be meant.

    >>> import pandas as pd
    >>> from sdv_privpgd import Categorical, check
    >>> table = pd.DataFrame({"ward": ["A", "B"] * 75, "drug": ["C", "D"] * 75})
    >>> columns = {"ward": Categorical(["A", "B"]), "drug": Categorical()}
    >>> check(table, columns, epsilon=0.1).to_dict()["lost"]
    ['drug']
    """
    if relationships is not None:
        if prior is not None:
            raise ValueError("prior takes one table: check tables that belong together without it.")
        delta = usual_delta("add_remove") if delta is None else delta
        own = TablesSettings.of(columns, relationships, epsilon, delta, **options)
        return tables_report(own, table, on_unkept(dict(own.constraints)))
    if isinstance(table, Mapping):
        raise ValueError(
            "Several tables are checked with their links: relationships=Link(parent, child, key, "
            "max_children=...)."
        )
    settings, description = parse_options(columns, epsilon, delta, **options)
    check_match(settings, description)
    more = on_words(description.words) if are_text(getattr(table, "paths", table)) else []
    more += [*on_labels([columns]), *on_unkept(description.constraints)]
    return check_report(*checked(settings, description, table, prior), more=more)


def checked(
    settings: Settings, description: Description, table: Any, prior: Any = None
) -> tuple[Settings, Description, int | None, list[str]]:
    """Returns what ``check_report`` says of a table: what a fit is told, and what it would raise.

    No cell is read. Raises ``ValueError`` for a prior that is the table.
    """
    require_others(prior, table)
    try:
        private = opened(table, description, settings.people.limit, settings.objections)
    except ValueError as error:
        return settings, description, None, [str(error)]
    settings, description = seen(settings, description, private, prior)
    return settings, description, private.known_rows(settings.adjacency), []


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

    Raises ``ValueError`` if the table is not as it is described, or has no rows if that is public,
    and for a prior that is the table.
    """
    require_others(prior, table)
    private = opened(table, description, settings.people.limit, settings.objections)
    settings, description = seen(settings, description, private, prior)
    allowed = checked_lost(allow_lost, description)
    return running_fit(settings, description, private, after=after, allow_lost=allowed)


def seen(
    settings: Settings, description: Description, table: PrivateTable, prior: Any = None
) -> tuple[Settings, Description]:
    """Returns the same with what a table's dtypes and public number of rows say, and a prior."""
    rows = table.known_rows(settings.adjacency)
    settings, description = settings.for_rows(rows), description.of_dtypes(table.dtypes)
    return settings, leaning(settings, description, prior, rows, table.dtypes)


def running_fit(
    settings: Settings,
    description: Description,
    private: PrivateTable,
    *,
    after: PrivacyLedger | None = None,
    begun: PrivacyLedger | None = None,
    allow_lost: Collection[str] = (),
    given: Callable[[Schema], Sequence[Measurement]] | None = None,
    answered: Sequence[Answered] = (),
) -> RunningFit:
    """Returns the fit of a table that was opened as the description says."""
    description = description.of_dtypes(private.dtypes)
    fit = Fit(settings, description, begun=begun, given=given, answered=answered)
    return RunningFit(fit=fit, private=private, before=after, allow_lost=allow_lost)
