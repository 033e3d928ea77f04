"""The commands that fit a table or plan to, go on with a fit that has paid, or model releases."""

from argparse import Namespace
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from sdv_privpgd.cli import linked_tables
from sdv_privpgd.cli.checkpoint import Session, facts_of, finished, rescued, unfinished
from sdv_privpgd.cli.fit_options import declared, people_of, planned_ledger, questions, unweighted
from sdv_privpgd.cli.input_files import (
    kept_of,
    kind_read,
    kind_written,
    open_described,
    open_table,
    reading,
    tables_in,
)
from sdv_privpgd.cli.journal import Journal, is_unwritten, ledger_of, rest, spent
from sdv_privpgd.cli.messages import (
    CommandError,
    in_options,
    own_errors,
    reason,
    report_in_options,
    say,
    say_each,
)
from sdv_privpgd.cli.output_files import (
    Output,
    Outputs,
    check_report,
    check_rows,
    outputs_of,
    require_file,
    rows_files,
    sampled,
    with_page,
    write_out,
)
from sdv_privpgd.columns.dialect import on_words
from sdv_privpgd.columns.facts import CategoryFacts
from sdv_privpgd.fitting.description import Description
from sdv_privpgd.fitting.door import checked, prepared
from sdv_privpgd.fitting.fates import check_report as reported
from sdv_privpgd.fitting.fit import Fit
from sdv_privpgd.fitting.fitted_table import FittedTable, RunningFit, UnfinishedTable
from sdv_privpgd.fitting.mismatch import DomainMismatchError
from sdv_privpgd.fitting.options import on_undeclared
from sdv_privpgd.fitting.plan import planned
from sdv_privpgd.fitting.prior import Prior, as_text, leaning, require_others
from sdv_privpgd.fitting.resume import begun_again
from sdv_privpgd.privacy.ledger import PrivacyLedger
from sdv_privpgd.privacy.queries import Adjacency
from sdv_privpgd.releases import combination, published_tables, site
from sdv_privpgd.releases.combination import ModelledTables
from sdv_privpgd.report.privacy import whose_row
from sdv_privpgd.report.warnings import on_delta
from sdv_privpgd.sources.source import Source

Own = TypeVar("Own", FittedTable, UnfinishedTable)


def synthesize(arguments: Namespace) -> None:
    """Fits a table and writes rows, and the other files that were asked for."""
    if arguments.dry_run:
        plan(arguments)
        return
    if arguments.link or arguments.max_children:
        linked_tables.synthesize(arguments)
        return
    if arguments.out is None:
        raise CommandError("--out is needed.")
    check_rows(arguments)
    tables = tables_in(arguments.table)
    kind_written(arguments.out)
    ahead = planned_ledger(arguments)
    # Errors in what is declared are told before anything is opened or read.
    asks = None if arguments.metadata is None else questions(arguments)
    with outputs_of(arguments, tables) as outputs:
        journal = Journal(outputs, arguments.ledger)
        model = outputs.open("--model", arguments.model, is_paid=True)
        files = rows_files(arguments, outputs, is_paid=True)
        report = outputs.open("--report", arguments.report, is_paid=True)
        with journal.ahead(ahead, arguments.max_epsilon):
            asks = questions(arguments, tables) if asks is None else asks
            settings, description = asks.parts
            with own_errors():  # what is reserved of delta follows from what is not declared
                journal.plan(Fit(settings, description).shared.ledger, arguments.max_epsilon)
            session = Session(
                start=settings.ledger(),
                notes={"dialect": kept_of(arguments), "columns": asks.declared.sdtypes},
                journal=journal,
                outputs=outputs,
                files=files,
                model=model,
            )
            arguments.say_spent = session.say_spent
            with session.kept():
                table = open_described(tables, reading(arguments, tables[0]), asks.facts)
                with own_errors(ValueError):
                    allowed = [n for n in arguments.allow_lost if n in description.columns]
                    running = prepared(
                        settings,
                        description,
                        table,
                        prior=_priors_of(arguments, tables, description),
                        allow_lost=allowed,
                    )
                if not arguments.quiet:
                    print(f"{asks.table(running.fit.description)}\n", flush=True)
                before = running.told_before
                say_each(on_undeclared(settings, running.fit.description))
                say_each(before, but=on_delta(ahead.delta))
                with own_errors():  # the number of rows may have said another delta
                    session.start = running.fit.settings.ledger()
                    journal.plan(running.fit.shared.ledger, arguments.max_epsilon)
                if arguments.delta is None and not arguments.quiet:
                    say(f"--delta is {session.start.delta:g}, as nobody has said another one.")
                session.run(running, is_quiet=arguments.quiet, stops=True, said=before)
                _write_results(arguments, session, report, table)
    _print_report(arguments, session)


def _priors_of(
    arguments: Namespace, tables: Sequence[Path], description: Description
) -> list[Prior] | None:
    """Returns the public rows of ``--prior``, named by their files.

    Categories of a table in a file of text are text, and so are theirs.
    """
    found, is_text = [], any(table.suffix != ".parquet" for table in tables)
    texts = [name for name, own in description.facts.items() if isinstance(own, CategoryFacts)]
    with own_errors(ValueError):
        require_others(arguments.prior, [*tables])
    for path in arguments.prior or ():
        with own_errors(ValueError, OSError):
            rows: Any = finished(path) if path.suffix == ".zip" else Prior(path).frame
        if path.suffix != ".zip" and is_text:
            rows = as_text(rows, texts)
        found.append(Prior(rows, name=path.name))
    return found or None


def _print_report(arguments: Namespace, session: Session) -> None:
    """Prints what was spent, or if it is to be quiet, that no person is protected."""
    if arguments.quiet:
        say_each(filter(None, [whose_row(session.fitted.ledger)]))
        return
    print(report_in_options(session.fitted.privacy_report()))
    if session.journal.earlier is not None:
        print(f"\nTogether with all before: {spent(session.together)}")


def _write_results(
    arguments: Namespace, session: Session, report: Output | None, table: Source | None = None
) -> None:
    """Writes the ledger, the model that goes on after the rows, these, and the page.

    Without a ledger there are no rows and no page. Otherwise one failure stops no other.
    """
    fitted, outputs = session.fitted, session.outputs
    number = fitted.num_rows
    if number is None and table is not None and fitted.settings.adjacency is Adjacency.REPLACE_ONE:
        number = table.num_rows()  # no column is modelled
    rows = sampled(fitted, arguments, number)
    session.keep_model()
    write_out(arguments, session.files, fitted, fitted.notes, rows, outputs.attempt)
    outputs.attempt(report, fitted.report)


def plan(arguments: Namespace) -> None:
    """Prints the questions of a fit and the errors to be expected. It spends nothing.

    A table is read only where there is no metadata, to detect types, or no number of rows.
    """
    from sdv_privpgd import check_domain

    check_rows(arguments)
    if arguments.link or arguments.max_children:
        linked_tables.plan(arguments)
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
        table = open_described(tables, reading(arguments, tables[0]), asks.facts)
        rows = table.num_rows()
        if not rows:
            raise CommandError(f"{arguments.table[0]} has no rows.")
    with own_errors(ValueError):
        prior = _priors_of(arguments, tables, description)
        description = leaning(settings, description, prior, rows)
    expected = with_page(arguments, lambda: planned(settings, description, rows), tables)
    if arguments.domain is not None:
        found, is_said = asks.declared, settings.people.is_said
        sentences = check_domain(found.metadata, found.domain, says_whose=is_said)
        say_each(sentences, but=expected.to_dict()["warnings"])
    print(f"{asks.table(description)}\n")
    print(report_in_options(str(expected)))


def check(arguments: Namespace) -> None:
    """Prints what becomes of each column. It spends nothing.

    A table's cells are read only where there is no metadata, to detect types.
    """
    check_report(arguments.report)
    if arguments.link or arguments.max_children:
        found = linked_tables.check(arguments)
    else:
        tables = tables_in(arguments.table)
        asks = questions(arguments, tables, stops=False)
        table = open_described(tables, reading(arguments, tables[0]), asks.facts)
        with own_errors(ValueError):
            prior = _priors_of(arguments, tables, asks.parts[1])
            settings, description, rows, refused = checked(*asks.parts, table, prior)
        lost = [*asks.lost, *refused]
        more = [] if kind_read(tables[0]).form == "parquet" else on_words(description.words)
        make = lambda: reported(settings, description, rows, lost, more=more)
        found = with_page(arguments, make, tables)
    print(report_in_options(str(found)))
    if found.to_dict()["stops"]:
        raise CommandError("A fit would stop before it spends anything.")


def resume(arguments: Namespace) -> None:
    """Finishes a fit that had paid before it was interrupted, and writes what it should have."""

    def begun(model: UnfinishedTable, table: Any) -> RunningFit:
        if table is None and not model.kept.has_tables:
            raise CommandError(
                "No rows can be made of what is kept: give the same table with --table, which "
                "spends what is left of the budget."
            )
        return model.resumed(table)

    left: Callable[[UnfinishedTable], PrivacyLedger] = lambda model: rest(model.kept.ledger)
    _go_on(arguments, unfinished, left, begun, "The rest of epsilon")


def add_budget(arguments: Namespace) -> None:
    """Asks the table of a kept model again, with more budget on one ledger."""

    def more(model: FittedTable) -> PrivacyLedger:
        ledger = begun_again(model.fitted, arguments.epsilon).shared.ledger
        return replace(rest(ledger), epsilon=arguments.epsilon)  # it is what is added

    _go_on(
        arguments, finished, more, lambda model, table: model.more_budget(table, arguments.epsilon)
    )


def _go_on(
    arguments: Namespace,
    load: Callable[[Any], Own],
    ahead: Callable[[Own], PrivacyLedger],
    begun: Callable[[Own, Any], RunningFit],
    what: str = "--epsilon",
) -> None:
    """Goes on with a model, loaded when nobody else can: writes the ledger, model, rows and page.

    ``ahead`` gives what may be spent on a table, and ``begun`` the fit of one, or without one.
    """
    kind_written(arguments.out)
    check_rows(arguments)
    tables = tables_in(arguments.table)
    require_file(arguments.model)
    with Outputs(inputs=[*tables, *arguments.table], force=arguments.force) as outputs:
        place = outputs.required("the model", arguments.model, is_paid=True, grows=True)
        model, path = load(arguments.model), arguments.ledger
        if tables or is_unwritten(model):
            path = ledger_of(model, arguments.model, path)
        journal = Journal(outputs, path)
        journal.catch_up(model, arguments.model)
        files = rows_files(arguments, outputs, is_paid=True)
        report = outputs.open("--report", arguments.report, is_paid=True)
        with own_errors(ValueError):
            planned = ahead(model) if tables else None
        with journal.ahead(planned, arguments.max_epsilon, what, before=model.ledger):
            session = Session(
                start=model.ledger,
                earlier=model,
                notes=model.notes,
                journal=journal,
                outputs=outputs,
                model=place,
                files=files,
            )
            arguments.say_spent = session.say_spent
            with session.kept():
                table = None
                if tables:
                    how = reading(arguments, tables[0], model.notes.get("dialect", {}))
                    table = open_table(tables, how, facts_of(model))
                with own_errors(ValueError):
                    running = begun(model, table)
                session.run(running, is_quiet=arguments.quiet)
                _write_results(arguments, session, report)
    _print_report(arguments, session)


# Tables of several sites, and those that were published


_AGAIN = (
    "Correct what is declared, for all sites, and measure again, which spends again; or say "
    "--no-stop if that is how this table is."
)


def measure(arguments: Namespace) -> None:
    """Measures one site's table, and writes the release that may leave."""
    tables = tables_in(arguments.table)
    if arguments.out.suffix.lower() != ".zip":
        raise CommandError(f"--out {arguments.out} must end in .zip: a release is such a file.")
    planned, measured = planned_ledger(arguments), None
    found = unweighted(declared(arguments), arguments)
    people = people_of(arguments, found.table)
    columns = found.for_fit(public_metadata=arguments.public_metadata)
    weights = {} if people.weights is None else {people.weights.column: {"sdtype": "numerical"}}
    with outputs_of(arguments, tables) as outputs:
        journal = Journal(outputs, arguments.ledger)
        out = outputs.required("--out", arguments.out, is_paid=True)
        try:
            with journal.ahead(planned, arguments.max_epsilon):
                facts = {**found.sdtypes, **weights, **columns}
                table = open_described(tables, reading(arguments, tables[0]), facts)
                said = ("epsilon", "delta", "site", "adjacency", "method", "num_bins", "target")
                options = {name: getattr(arguments, name) for name in said}
                with own_errors(ValueError):  # public: no cell was read
                    running = site.prepared(table, columns, people=people, **options)
                say_each(running.told_before, but=on_delta(planned.delta))
                answers = lambda: None if measured is None else measured.answers
                journal.follow(running, arguments, answers)
                with own_errors():
                    try:
                        measured = running.run(stops=not arguments.no_stop)
                    except DomainMismatchError as error:
                        raise CommandError(f"{in_options(error)} {_AGAIN}") from None
            if measured is not None:
                outputs.write(out, measured.save)
        finally:
            kept = measured and not out.is_whole and rescued(measured.save, arguments.out)
            if kept:
                say(f"The release is in {kept}.")
                if journal.failure is not None:
                    say(
                        f"--ledger {arguments.ledger} does not have it: where it has not what this "
                        "run planned, do not pass the release on."
                    )
    assert measured is not None
    say_each(measured.warnings)
    if arguments.quiet:
        say_each(filter(None, [whose_row(measured.ledger)]))
    else:
        print(report_in_options(measured.privacy_report()))
        print(f"\n{arguments.out} holds the release of {measured.site}. {spent(measured.ledger)}")


def combine(arguments: Namespace) -> None:
    """Writes rows of one model of several sites' releases, and their page."""
    options = {"engine": arguments.engine, "seed": arguments.seed}
    _model(
        arguments, arguments.releases, partial(combination.combine, arguments.releases, **options)
    )


def from_tables(arguments: Namespace) -> None:
    """Writes rows of a model of published tables, and their page."""
    columns = declared(arguments).for_fit(public_metadata=arguments.public_metadata)
    said = ("publisher", "suppressed_below", "rounded_to", "total", "engine", "seed")
    options = {name: getattr(arguments, name) for name in said}
    inputs = [*arguments.tables, arguments.metadata, arguments.domain]
    _model(
        arguments,
        inputs,
        partial(published_tables.from_tables, arguments.tables, columns, **options),
    )


def _model(
    arguments: Namespace, inputs: list[Path | None], make: Callable[[], ModelledTables]
) -> None:
    """Makes a model of what is public, and writes its rows and its page."""
    kind_written(arguments.out)
    check_rows(arguments)
    with Outputs(inputs=inputs, force=arguments.force) as outputs:
        files = rows_files(arguments, outputs)
        report = outputs.open("--report", arguments.report)
        try:
            with own_errors(ValueError):  # public: nothing private is near
                made: Any = make()
        except OSError as error:
            named = error.filename or "a file"
            raise CommandError(f"Cannot read {named}: {reason(error)}.") from None
        rows = made.sample((made.num_rows or 0) if arguments.rows is None else arguments.rows)
        write_out(arguments, files, made, {}, rows, outputs.write)
        outputs.write(report, made.report)
    if arguments.quiet:
        say_each(made.warnings)
    else:
        print(report_in_options(made.privacy_report()))
