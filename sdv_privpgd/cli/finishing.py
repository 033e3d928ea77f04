"""The command that makes rows of what an interrupted fit had paid for."""

from argparse import Namespace
from typing import TYPE_CHECKING

from sdv_privpgd.cli.dialect import reading
from sdv_privpgd.cli.files import kind_written
from sdv_privpgd.cli.journal import Journal, is_unwritten, ledger_of, rest
from sdv_privpgd.cli.keeping import Purchase
from sdv_privpgd.cli.models import require_file, unfinished
from sdv_privpgd.cli.reading import open_table, tables_in
from sdv_privpgd.cli.saying import CommandError, own_errors
from sdv_privpgd.cli.synthesizing import (
    check_rows,
    facts_of,
    leave_to_report,
    num_rows,
    print_report,
    write_results,
)
from sdv_privpgd.cli.writing import Outputs
from sdv_privpgd.sources.source import Source

if TYPE_CHECKING:
    from sdv_privpgd.plugin.base import PrivateSynthesizer


def finish(arguments: Namespace) -> None:
    """Finishes a fit that had paid before it was interrupted, and writes what it should have."""
    kind_written(arguments.out)
    check_rows(arguments)
    tables = tables_in(arguments.table)
    require_file(arguments.model)
    with Outputs(inputs=[*tables, *arguments.table], force=arguments.force) as outputs:
        model = outputs.required("the model", arguments.model, is_paid=True, grows=True)
        synthesizer = unfinished(arguments.model)  # it is loaded when nobody else can finish it
        synthesizer.verbose = not arguments.quiet
        path, kept = arguments.ledger, synthesizer.unfinished
        if tables or is_unwritten(synthesizer):
            path = ledger_of(synthesizer, arguments.model, path)
        journal = Journal(outputs, path)
        journal.catch_up(synthesizer, arguments.model)
        out = outputs.required("--out", arguments.out, is_paid=True)
        report = outputs.open("--report", arguments.report, is_paid=True)
        assert kept is not None
        planned, before = rest(kept.ledger) if tables else None, synthesizer.ledger
        most = arguments.max_epsilon
        with journal.ahead(planned, most, "The rest of epsilon", before=before):
            purchase = Purchase(
                synthesizer=synthesizer,
                begun=len(before.charges),
                journal=journal,
                outputs=outputs,
                model=model,
                out=out,
            )
            arguments.say_spent = purchase.say_spent
            with purchase.kept():
                table = None
                if tables:
                    how = reading(arguments, tables[0], synthesizer.dialect)
                    table = open_table(tables, how, facts_of(synthesizer))
                leave_to_report(arguments)
                _finish(synthesizer, table)
                write_results(arguments, purchase, report, num_rows(arguments, synthesizer, None))
    print_report(arguments, purchase)


def _finish(synthesizer: "PrivateSynthesizer", table: Source | None) -> None:
    kept = synthesizer.unfinished
    assert kept is not None
    if table is None and not kept.has_tables:
        raise CommandError(
            "No rows can be made of what is kept: give the same table with --table, which spends "
            "what is left of the budget."
        )
    with own_errors():
        synthesizer.finish(table)
