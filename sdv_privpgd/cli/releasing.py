"""The commands for tables of several holders, and for tables that were published."""

from argparse import Namespace
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from sdv_privpgd.cli.journal import Journal, spent
from sdv_privpgd.cli.keeping import rescued
from sdv_privpgd.cli.questions import declared, people_of, planned_ledger, unweighted
from sdv_privpgd.cli.reading import kind_written, open_table, reading, tables_in
from sdv_privpgd.cli.saying import (
    CommandError,
    in_options,
    own_errors,
    reason,
    report_in_options,
    say,
    say_each,
)
from sdv_privpgd.cli.writing import Outputs, check_rows, outputs_of, rows_files, write_out
from sdv_privpgd.fitting.mismatch import DomainMismatchError
from sdv_privpgd.releases import combining, published
from sdv_privpgd.releases.combining import ModelledTables
from sdv_privpgd.releases.measuring import prepared
from sdv_privpgd.report.warnings import on_delta

_AGAIN = (
    "Correct what is declared, for all holders, and measure again, which spends again; or say "
    "--no-stop if that is how this table is."
)


def measure(arguments: Namespace) -> None:
    """Measures one holder's table, and writes the release that may leave."""
    tables = tables_in(arguments.table)
    if arguments.out.suffix.lower() != ".zip":
        raise CommandError(f"--out {arguments.out} must end in .zip: a release is such a file.")
    if arguments.metadata is None:
        raise CommandError(
            "--metadata is needed, the same for all holders: types that are detected in one "
            "holder's cells may be others than in another's."
        )
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
                table = open_table(tables, reading(arguments, tables[0]), {**weights, **columns})
                said = ("epsilon", "delta", "holder", "adjacency", "method", "num_bins", "target")
                told = {name: getattr(arguments, name) for name in said}
                with own_errors(ValueError):  # public: no cell was read
                    measuring = prepared(table, columns, people=people, **told)
                say_each(measuring.told_before, but=on_delta(planned.delta))
                answers = lambda: None if measured is None else measured.answers
                journal.follow(measuring, arguments, answers)
                with own_errors():
                    try:
                        measured = measuring.run(stops=not arguments.no_stop)
                    except DomainMismatchError as error:
                        raise CommandError(f"{in_options(error)} {_AGAIN}") from None
        finally:
            if journal.failure is not None and measured is not None:
                path = rescued(measured.save, arguments.out)
                if path is not None:
                    say(
                        f"The release is in {path}, and --ledger {arguments.ledger} does not have "
                        "it: where it has not what this run planned, do not pass the release on."
                    )
        assert measured is not None
        outputs.write(out, measured.save)
    if not arguments.quiet:
        say_each(measured.warnings)
        print(report_in_options(measured.privacy_report()))
        print(f"\n{arguments.out} holds the release of {measured.holder}. {spent(measured.ledger)}")


def combine(arguments: Namespace) -> None:
    """Writes rows of one model of several holders' releases, and their page."""
    told = {"engine": arguments.engine, "seed": arguments.seed}
    _model(arguments, arguments.releases, partial(combining.combine, arguments.releases, **told))


def from_tables(arguments: Namespace) -> None:
    """Writes rows of a model of published tables, and their page."""
    if arguments.metadata is None:
        raise CommandError("--metadata is needed: it says what kinds of columns the tables have.")
    columns = declared(arguments).for_fit(public_metadata=arguments.public_metadata)
    said = ("publisher", "suppressed_below", "rounded_to", "total", "engine", "seed")
    told = {name: getattr(arguments, name) for name in said}
    inputs = [*arguments.tables, arguments.metadata, arguments.domain]
    _model(arguments, inputs, partial(published.from_tables, arguments.tables, columns, **told))


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
