"""The commands that fit a table, or plan to."""

import os
from argparse import Namespace
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sdv_privpgd.base.progress import one_step, shown
from sdv_privpgd.cli import linking
from sdv_privpgd.cli.dialect import kept_of, reading, told
from sdv_privpgd.cli.files import check_report, kind_written
from sdv_privpgd.cli.journal import Journal, spent
from sdv_privpgd.cli.keeping import Purchase
from sdv_privpgd.cli.models import finished
from sdv_privpgd.cli.questions import people_of, questions
from sdv_privpgd.cli.reading import open_table, tables_in
from sdv_privpgd.cli.saying import CommandError, in_options, own_errors, report_in_options, say
from sdv_privpgd.cli.writing import Output, Outputs, write_rows
from sdv_privpgd.columns.facts import CategoryFacts
from sdv_privpgd.fitting.description import Description
from sdv_privpgd.fitting.door import FittedTable, checked, prepared
from sdv_privpgd.fitting.fates import check_report as reported
from sdv_privpgd.fitting.fit import Fit
from sdv_privpgd.fitting.plan import planned
from sdv_privpgd.fitting.prior import Prior, as_text, leaning
from sdv_privpgd.fitting.sampled import SampledTable
from sdv_privpgd.fitting.settings import usual_delta
from sdv_privpgd.privacy.ledger import PrivacyLedger
from sdv_privpgd.privacy.queries import Adjacency
from sdv_privpgd.report.about import card_path, in_words, is_card, write_card
from sdv_privpgd.report.warnings import on_delta
from sdv_privpgd.sources.source import Source

if TYPE_CHECKING:
    import pandas as pd


def synthesize(arguments: Namespace) -> None:
    """Fits a table and writes rows, and the other files that were asked for."""
    if arguments.dry_run:
        plan(arguments)
        return
    if arguments.link or arguments.max_children:
        linking.synthesize(arguments)
        return
    if arguments.out is None:
        raise CommandError("--out is needed.")
    check_rows(arguments)
    tables = tables_in(arguments.table)
    kind_written(arguments.out)
    ahead = planned_ledger(arguments)
    # Errors in what is declared are told before anything is opened or read.
    asks = None if arguments.metadata is None else questions(arguments)
    own = arguments.metadata, arguments.domain, arguments.constraints
    with Outputs(inputs=(*tables, *arguments.table, *own), force=arguments.force) as outputs:
        journal = Journal(outputs, arguments.ledger)
        model = outputs.open("--model", arguments.model, is_paid=True)
        files = rows_files(arguments, outputs, is_paid=True)
        report = outputs.open("--report", arguments.report, is_paid=True)
        with journal.ahead(ahead, arguments.max_epsilon):
            asks = questions(arguments, tables) if asks is None else asks
            settings, description = asks.parts
            with own_errors():  # what is reserved of delta follows from what is not declared
                journal.plan(Fit(settings, description).books.ledger, arguments.max_epsilon)
            purchase = Purchase(
                start=settings.ledger(),
                notes={"dialect": kept_of(arguments), "columns": asks.others},
                journal=journal,
                outputs=outputs,
                files=files,
                model=model,
            )
            arguments.say_spent = purchase.say_spent
            with purchase.kept():
                table = open_table(tables, reading(arguments, tables[0]), asks.facts)
                require_rows(arguments, table)
                with own_errors(ValueError):
                    allowed = [n for n in arguments.allow_lost if n in description.columns]
                    running = prepared(
                        settings,
                        description,
                        table,
                        prior=priors_of(arguments, tables, description),
                        allow_lost=allowed,
                    )
                if not arguments.quiet:
                    print(f"{asks.table(running.fit.description)}\n", flush=True)
                asks.say_before(running.fit.description)
                with own_errors():  # the number of rows may have said another delta
                    purchase.start = running.fit.settings.ledger()
                    journal.plan(running.fit.books.ledger, arguments.max_epsilon)
                if arguments.delta is None and not arguments.quiet:
                    say(f"--delta is {purchase.start.delta:g}, as nobody has said another one.")
                days = running.fit.description.on_days
                for sentence in days:
                    say(in_options(sentence))
                purchase.run(running, is_quiet=arguments.quiet, stops=True, said=days)
                write_results(arguments, purchase, report, table)
    print_report(arguments, purchase)


def priors_of(
    arguments: Namespace, tables: Sequence[Path], description: Description
) -> list[Prior] | None:
    """Returns the public rows of ``--prior``, named by their files.

    Categories of a table in a file of text are text, and so are theirs.
    """
    found, is_text = [], any(table.suffix != ".parquet" for table in tables)
    for path in arguments.prior or ():
        with own_errors(ValueError, OSError):
            rows: Any = finished(path) if path.suffix == ".zip" else Prior(path).frame
        if path.suffix != ".zip" and is_text:
            facts = description.facts.items()
            rows = as_text(rows, [name for name, own in facts if isinstance(own, CategoryFacts)])
        found.append(Prior(rows, name=path.name))
    return found or None


def require_rows(arguments: Namespace, table: Source) -> None:
    """Raises ``CommandError`` for a table without rows, where their number is public."""
    with own_errors():
        if arguments.adjacency == Adjacency.REPLACE_ONE.value and not table.num_rows():
            raise CommandError(f"{arguments.table[0]} has no rows. Nothing was spent.")


def print_report(arguments: Namespace, purchase: Purchase) -> None:
    """Prints what was spent, unless it is to be quiet."""
    if arguments.quiet:
        return
    print(report_in_options(purchase.fitted.privacy_report()))
    if purchase.journal.earlier is not None:
        print(f"\nTogether with all before: {spent(purchase.together)}")


def write_results(
    arguments: Namespace, purchase: Purchase, report: Output | None, table: Source | None = None
) -> None:
    """Writes the books, the model that goes on after the rows, these, and the page.

    Without books there are no rows and no page. Otherwise one failure stops no other. Rows are as
    many as the table has, which may be known here, if that is public.
    """
    fitted, outputs = purchase.fitted, purchase.outputs
    number = fitted.num_rows
    if number is None and table is not None and fitted.settings.adjacency is Adjacency.REPLACE_ONE:
        number = table.num_rows()  # no column is modelled
    rows = sampled(fitted, arguments, number)
    purchase.keep_model()
    write_out(arguments, purchase.files, fitted, fitted.notes, rows, outputs.attempt)
    outputs.attempt(report, fitted.report)


def plan(arguments: Namespace) -> None:
    """Prints the questions of a fit and the errors to be expected. It spends nothing.

    A table is read only where there is no metadata, to detect types, or no number of rows.
    """
    from sdv_privpgd import check_domain

    check_rows(arguments)
    if arguments.link or arguments.max_children:
        linking.plan(arguments)
        return
    rows = arguments.rows
    tables = tables_in(arguments.table) if rows is None or arguments.metadata is None else []
    if arguments.metadata is None and not tables:
        raise CommandError("A plan needs --metadata and --rows, or a table.")
    asks = questions(arguments, tables)
    settings, description = asks.parts
    if rows is None:
        if settings.adjacency is not Adjacency.REPLACE_ONE:
            raise CommandError("--rows is needed: under add_remove their number is private.")
        if not tables:
            raise CommandError("A plan needs --rows, or a table to count them in.")
        table = open_table(tables, reading(arguments, tables[0]), asks.facts)
        require_rows(arguments, table)
        rows = table.num_rows()
    with own_errors(ValueError):
        prior = priors_of(arguments, tables, description)
        description = leaning(settings, description, prior, rows, {})
    own = arguments.metadata, arguments.domain, arguments.constraints
    with Outputs(inputs=(*tables, *arguments.table, *own), force=arguments.force) as outputs:
        report = outputs.open("--report", arguments.report)
        expected = planned(settings, description, rows)
        outputs.write(report, expected.save)
    if arguments.domain is not None:
        in_plan, found = expected.to_dict()["warnings"], asks.declared
        for sentence in check_domain(
            found.metadata, found.domain, says_whose=settings.people.is_said
        ):
            if sentence not in in_plan:
                say(in_options(sentence))
    print(f"{asks.table(description)}\n")
    print(report_in_options(str(expected)))


def check(arguments: Namespace) -> None:
    """Prints what becomes of each column. It spends nothing.

    A table's cells are read only where there is no metadata, to detect types.
    """
    if arguments.report is not None:
        check_report(arguments.report)
    tables = tables_in(arguments.table)
    asks = questions(arguments, tables, stops=False)
    table = open_table(tables, reading(arguments, tables[0]), asks.facts)
    with own_errors(ValueError):
        prior = priors_of(arguments, tables, asks.parts[1])
        settings, description, rows, refused = checked(*asks.parts, table, prior)
    own = arguments.metadata, arguments.domain, arguments.constraints
    with Outputs(inputs=(*tables, *arguments.table, *own), force=arguments.force) as outputs:
        report = outputs.open("--report", arguments.report)
        found = reported(settings, description, rows, [*asks.lost, *refused])
        outputs.write(report, found.save)
    print(report_in_options(str(found)))
    if found.to_dict()["stops"]:
        raise CommandError("A fit would stop before it spends anything.")


def rows_files(
    arguments: Namespace, outputs: Outputs, *, is_paid: bool = False
) -> tuple[Output, Output | None]:
    """The file of rows, and of text the card beside it, as they will be written.

    A card whose rows are gone is written anew. Raises ``CommandError`` for a first line that the
    file cannot have.
    """
    kind = kind_written(arguments.out)
    if arguments.mark == "comment" and (kind.form != "text" or kind.compression is not None):
        raise CommandError("--mark comment needs a file of text that is not compressed.")
    out = outputs.required("--out", arguments.out, is_paid=is_paid)
    path = None if kind.form == "parquet" else card_path(arguments.out)
    is_left = path is not None and is_card(path) and not os.path.lexists(arguments.out)
    return out, outputs.open("the card of --out,", path, is_paid=is_paid, grows=is_left)


def write_out(
    arguments: Namespace,
    files: tuple[Output, Output | None],
    table: SampledTable,
    notes: Mapping[str, Any],
    rows: "pd.DataFrame",
    write: Callable[[Output | None, Callable[[Path], object]], None],
) -> None:
    """Writes rows of a model, and what they are beside them or in them."""
    (out, card), about = files, table.about_rows()
    write(out, partial(write_as_asked, arguments, notes, rows, about))
    if out.is_whole:
        write(card, lambda part: write_card(part, out.part, about))


def write_as_asked(
    arguments: Namespace,
    notes: Mapping[str, Any],
    rows: "pd.DataFrame",
    about: Mapping[str, Any],
    part: Path,
) -> None:
    """Writes rows to ``--out``, with the options of text, or those that are kept with the model."""
    of_text = told(arguments, notes.get("dialect", {}), kind_written(arguments.out))
    if arguments.mark == "column":
        name = "synthetic"
        while name in rows:
            name += "_"
        rows = rows.assign(**{name: True})
    write_rows(
        rows,
        part,
        arguments.out,
        sep=of_text.get("sep"),
        decimal=of_text.get("decimal", "."),
        encoding=of_text.get("encoding", "utf-8"),
        comment=in_words(about) if arguments.mark == "comment" else None,
        about=about,
    )


def sampled(
    fitted: FittedTable,
    arguments: Namespace,
    number: int | None,
    where: Mapping[str, Any] | None = None,
) -> "pd.DataFrame":
    """The next rows of a model: as many as the options say, or else this number."""
    number = arguments.rows if arguments.rows is not None else number
    if number is None or number < 0:
        raise CommandError(f"--rows must be 0 or more, got {number}.")
    try:
        with shown("Sampling rows", not arguments.quiet) as progress, one_step(progress, "sample"):
            return fitted.sample(number, where=where if number else None)
    except ValueError as error:  # public, as the model is
        raise CommandError(in_options(error)) from None


def check_rows(arguments: Namespace) -> None:
    """Raises ``CommandError`` for a number of rows or a page that cannot be."""
    if arguments.report is not None:
        check_report(arguments.report)
    if arguments.rows is not None and arguments.rows < 0:
        raise CommandError(f"--rows must be 0 or more, got {arguments.rows}.")


def planned_ledger(arguments: Namespace) -> PrivacyLedger:
    """The empty ledger of the fit. A delta that is too large for any table is said at once."""
    try:
        delta = arguments.delta
        ledger = PrivacyLedger.open(
            arguments.epsilon,
            usual_delta(arguments.adjacency) if delta is None else delta,
            Adjacency.parse(arguments.adjacency),
            arguments.rows_per_person,
            people=arguments.person_column,
            weighed=arguments.weigh_people,
            rows_are_people=arguments.rows_are_people,
            weights=people_of(arguments, {}).weights,
        )
    except ValueError as error:
        raise CommandError(in_options(error)) from None
    for sentence in on_delta(ledger.delta):
        say(in_options(sentence))
    return ledger
