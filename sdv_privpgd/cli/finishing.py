"""The commands that go on with a model: they finish a fit that was interrupted, or refine one."""

from argparse import Namespace
from collections.abc import Callable
from dataclasses import replace
from typing import Any, TypeVar

from sdv_privpgd.cli.dialect import reading
from sdv_privpgd.cli.files import kind_written
from sdv_privpgd.cli.journal import Journal, is_unwritten, ledger_of, rest
from sdv_privpgd.cli.keeping import Purchase
from sdv_privpgd.cli.models import facts_of, finished, require_file, unfinished
from sdv_privpgd.cli.reading import open_table, tables_in
from sdv_privpgd.cli.saying import CommandError, own_errors
from sdv_privpgd.cli.synthesizing import check_rows, print_report, rows_files, write_results
from sdv_privpgd.cli.writing import Outputs
from sdv_privpgd.fitting.fitted import FittedTable, RunningFit, UnfinishedTable
from sdv_privpgd.fitting.resume import begun_again
from sdv_privpgd.privacy.ledger import PrivacyLedger

Own = TypeVar("Own", FittedTable, UnfinishedTable)


def finish(arguments: Namespace) -> None:
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


def refine(arguments: Namespace) -> None:
    """Asks the table of a kept model again, with more budget on one ledger."""

    def more(model: FittedTable) -> PrivacyLedger:
        books = begun_again(model.fitted, arguments.epsilon).books.ledger
        return replace(rest(books), epsilon=arguments.epsilon)  # it is what is added

    _go_on(arguments, finished, more, lambda model, table: model.refining(table, arguments.epsilon))


def _go_on(
    arguments: Namespace,
    load: Callable[[Any], Own],
    ahead: Callable[[Own], PrivacyLedger],
    begun: Callable[[Own, Any], RunningFit],
    what: str = "--epsilon",
) -> None:
    """Goes on with a model, and writes the books, the model, rows and the page.

    Args:
        arguments: The options.
        load: Loads the model. That is done when nobody else can go on with it.
        ahead: The empty ledger of what may be spent on a table.
        begun: The fit of a table, or without one.
        what: The name of what is planned.
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
            purchase = Purchase(
                start=model.ledger,
                earlier=model,
                notes=model.notes,
                journal=journal,
                outputs=outputs,
                model=place,
                files=files,
            )
            arguments.say_spent = purchase.say_spent
            with purchase.kept():
                table = None
                if tables:
                    how = reading(arguments, tables[0], model.notes.get("dialect", {}))
                    table = open_table(tables, how, facts_of(model))
                with own_errors(ValueError):
                    running = begun(model, table)
                purchase.run(running, is_quiet=arguments.quiet)
                write_results(arguments, purchase, report)
    print_report(arguments, purchase)
