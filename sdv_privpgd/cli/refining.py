"""The command that spends more on the table of a kept synthesizer."""

from argparse import Namespace
from dataclasses import replace

from sdv_privpgd.cli.dialect import reading
from sdv_privpgd.cli.files import kind_written
from sdv_privpgd.cli.journal import Journal, ledger_of, rest
from sdv_privpgd.cli.keeping import Purchase
from sdv_privpgd.cli.models import fitted, require_file
from sdv_privpgd.cli.reading import open_table, tables_in
from sdv_privpgd.cli.saying import CommandError, in_options
from sdv_privpgd.cli.synthesizing import (
    check_rows,
    facts_of,
    leave_to_report,
    num_rows,
    own_errors,
    print_report,
    write_results,
)
from sdv_privpgd.cli.writing import Outputs


def refine(arguments: Namespace) -> None:
    """Asks the table of a kept synthesizer again, with more budget on one ledger."""
    kind_written(arguments.out)
    check_rows(arguments)
    tables = tables_in(arguments.table)
    require_file(arguments.model)
    with Outputs(inputs=[*tables, *arguments.table], force=arguments.force) as outputs:
        model = outputs.required("the model", arguments.model, is_paid=True, grows=True)
        synthesizer = fitted(arguments.model)  # it is loaded when nobody else can refine it
        synthesizer.verbose = not arguments.quiet
        journal = Journal(outputs, ledger_of(synthesizer, arguments.model, arguments.ledger))
        journal.catch_up(synthesizer, arguments.model)
        out = outputs.required("--out", arguments.out, is_paid=True)
        report = outputs.open("--report", arguments.report, is_paid=True)
        before = synthesizer.ledger
        try:
            planned = rest(synthesizer.refined_ledger(arguments.epsilon))
            planned = replace(planned, epsilon=arguments.epsilon)  # it is what is added
        except ValueError as error:
            raise CommandError(in_options(error)) from None
        with journal.ahead(planned, arguments.max_epsilon, before=before):
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
                how = reading(arguments, tables[0], synthesizer.dialect)
                table = open_table(tables, how, facts_of(synthesizer))
                leave_to_report(arguments)
                with own_errors():
                    synthesizer.refine(table, arguments.epsilon)
                write_results(arguments, purchase, report, num_rows(arguments, synthesizer, None))
    print_report(arguments, purchase)
