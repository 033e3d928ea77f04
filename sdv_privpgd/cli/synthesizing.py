"""The commands that fit a table, or plan to."""

import re
import warnings
from argparse import Namespace
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sdv_privpgd.cli.constraining import add_constraints
from sdv_privpgd.cli.dialect import kept_of, reading, told
from sdv_privpgd.cli.documents import (
    columns_of,
    detected_metadata,
    has_format,
    metadata_of_types,
    read_facts,
    read_metadata,
    with_types_of,
)
from sdv_privpgd.cli.files import check_report, kind_read, kind_written
from sdv_privpgd.cli.foretelling import described, require_rows, say_before
from sdv_privpgd.cli.journal import Journal, spent
from sdv_privpgd.cli.keeping import Purchase
from sdv_privpgd.cli.reading import open_table, read_table, tables_in, types_in
from sdv_privpgd.cli.saying import CommandError, in_options, own_errors, report_in_options, say
from sdv_privpgd.cli.writing import Output, Outputs, write_rows
from sdv_privpgd.fitting.settings import People, with_bins
from sdv_privpgd.privacy.ledger import PrivacyLedger
from sdv_privpgd.privacy.queries import Adjacency
from sdv_privpgd.report.warnings import on_delta
from sdv_privpgd.sources.dialect import Facts
from sdv_privpgd.sources.source import Source

if TYPE_CHECKING:
    import pandas as pd
    from sdv.metadata import Metadata

    from sdv_privpgd.plugin.base import PrivateSynthesizer


_WITHOUT_METADATA = {
    "correct its sdtype in the metadata": "say its sdtype with --metadata",
    "correct the metadata": "say its sdtype with --metadata",
}


def synthesize(arguments: Namespace) -> None:
    """Fits a table and writes rows, and the other files that were asked for."""
    if arguments.dry_run:
        plan(arguments)
        return
    if arguments.out is None:
        raise CommandError("--out is needed.")
    check_rows(arguments)
    tables = tables_in(arguments.table)
    kind_written(arguments.out)
    planned = planned_ledger(arguments)
    metadata = None if arguments.metadata is None else read_metadata(arguments.metadata)
    # Errors in it are told before anything is opened or read.
    synthesizer = None if metadata is None else synthesizer_of(arguments, metadata)
    own = arguments.metadata, arguments.domain, arguments.constraints
    inputs = (*tables, *arguments.table, *own)
    with Outputs(inputs=inputs, force=arguments.force) as outputs:
        journal = Journal(outputs, arguments.ledger)
        model = outputs.open("--model", arguments.model, is_paid=True)
        out = outputs.required("--out", arguments.out, is_paid=True)
        report = outputs.open("--report", arguments.report, is_paid=True)
        with journal.ahead(planned, arguments.max_epsilon):
            if synthesizer is None:
                synthesizer = synthesizer_of(arguments, typed(arguments, tables))
            synthesizer.dialect = kept_of(arguments)
            with own_errors():  # what is reserved of delta follows from what is not declared
                journal.plan(synthesizer.planned_ledger, arguments.max_epsilon)
            purchase = Purchase(
                synthesizer=synthesizer, journal=journal, outputs=outputs, out=out, model=model
            )
            arguments.say_spent = purchase.say_spent
            with purchase.kept():
                table = open_table(tables, reading(arguments, tables[0]), facts_of(synthesizer))
                require_rows(arguments, table)
                if not arguments.quiet:
                    print(f"{described(arguments, synthesizer)}\n", flush=True)
                say_before(synthesizer)
                leave_to_report(arguments)
                _fit(synthesizer, table)
                write_results(arguments, purchase, report, num_rows(arguments, synthesizer, table))
    print_report(arguments, purchase)


def leave_to_report(arguments: Namespace) -> None:
    """Warns of nothing that is worth a look, where the report that is printed says it."""
    from sdv_privpgd.report.warnings import OPENING

    if not arguments.quiet:
        warnings.filterwarnings("ignore", message=re.escape(OPENING))


def print_report(arguments: Namespace, purchase: Purchase) -> None:
    """Prints what was spent, unless it is to be quiet."""
    if arguments.quiet:
        return
    print(report_in_options(purchase.synthesizer.privacy_report()))
    if purchase.journal.earlier is not None:
        print(f"\nTogether with all before: {spent(purchase.together)}")


def write_results(
    arguments: Namespace, purchase: Purchase, report: Output | None, num_rows: int
) -> None:
    """Writes the books, the model that goes on after the rows, these, and the page.

    Without books there are no rows and no page. Otherwise one failure stops no other.
    """
    synthesizer, outputs = purchase.synthesizer, purchase.outputs
    rows = sampled(synthesizer, num_rows)
    purchase.keep_model()
    outputs.attempt(purchase.out, partial(write_as_asked, arguments, synthesizer.dialect, rows))
    outputs.attempt(report, synthesizer.report)


def plan(arguments: Namespace) -> None:
    """Prints the questions of a fit and the errors to be expected. It spends nothing.

    A table is read only where there is no metadata, to detect types, or no number of rows.
    """
    from sdv_privpgd import check_domain

    check_rows(arguments)
    rows = arguments.rows
    tables = tables_in(arguments.table) if rows is None or arguments.metadata is None else []
    if arguments.metadata is not None:
        metadata = read_metadata(arguments.metadata)
    elif tables:
        metadata = typed(arguments, tables)
    else:
        raise CommandError("A plan needs --metadata and --rows, or a table.")
    synthesizer = synthesizer_of(arguments, metadata)
    if rows is None:
        if synthesizer.adjacency != Adjacency.REPLACE_ONE.value:
            raise CommandError("--rows is needed: under add_remove their number is private.")
        if not tables:
            raise CommandError("A plan needs --rows, or a table to count them in.")
        table = open_table(tables, reading(arguments, tables[0]), facts_of(synthesizer))
        require_rows(arguments, table)
        rows = table.num_rows()
    inputs = (
        *tables,
        *arguments.table,
        arguments.metadata,
        arguments.domain,
        arguments.constraints,
    )
    with Outputs(inputs=inputs, force=arguments.force) as outputs:
        report = outputs.open("--report", arguments.report)
        domain, planned = read_facts(arguments.domain), synthesizer.plan(rows)
        outputs.write(report, planned.save)
    if domain is not None:
        in_plan = planned.to_dict()["warnings"]
        for sentence in check_domain(metadata, domain, max_rows=arguments.rows_per_person):
            if sentence not in in_plan:
                say(in_options(sentence))
    print(f"{described(arguments, synthesizer)}\n")
    print(report_in_options(str(planned)))


def facts_of(synthesizer: "PrivateSynthesizer") -> Facts:
    """The public facts on each column: the metadata, without ranges that are not used."""
    domain = synthesizer.public_domain or {}
    return {
        name: {**known, **domain.get(name, {})}
        for name, known in columns_of(synthesizer.get_metadata()).items()
    }


def write_as_asked(
    arguments: Namespace, kept: Mapping[str, Any], rows: "pd.DataFrame", part: Path
) -> None:
    """Writes rows to ``--out``, with the options of text, or those that are kept with the model."""
    of_text = told(arguments, kept, kind_written(arguments.out))
    write_rows(
        rows,
        part,
        arguments.out,
        sep=of_text.get("sep"),
        decimal=of_text.get("decimal", "."),
        encoding=of_text.get("encoding", "utf-8"),
    )


def sampled(synthesizer: "PrivateSynthesizer", num_rows: int) -> "pd.DataFrame":
    """The next rows of a synthesizer."""
    rows = synthesizer.sample(num_rows)
    return next(iter(rows.values())) if isinstance(rows, dict) else rows


def typed(arguments: Namespace, tables: Sequence[Path]) -> "Metadata":
    """Metadata with types only, for a table that has no metadata. Detection reads all of it."""
    domain = read_facts(arguments.domain)
    how = replace(reading(arguments, tables[0]), declared=tuple(domain or ()))
    if arguments.types == "dtypes":
        found = metadata_of_types(types_in(tables, how))
        if kind_read(tables[0]).form != "parquet":
            _say_iso([name for name, dtype in how.dtypes.items() if dtype.kind == "M"], domain)
    else:
        found = detected_metadata(read_table(tables, how, None))
    return with_types_of(found, domain)


def _say_iso(names: Sequence[str], domain: Mapping[str, Mapping] | None) -> None:
    """Says which columns are read as dates in one form alone, because nobody says another."""
    unsaid = [name for name in names if not has_format((domain or {}).get(name))]
    if unsaid:
        say(
            f"The dates of {unsaid!r} are read in ISO 8601, such as 2024-01-31, and all others "
            "count as missing: a datetime_format in --domain says another form."
        )


def check_rows(arguments: Namespace) -> None:
    """Raises ``CommandError`` for a number of rows or a page that cannot be."""
    if arguments.report is not None:
        check_report(arguments.report)
    if arguments.rows is not None and arguments.rows < 0:
        raise CommandError(f"--rows must be 0 or more, got {arguments.rows}.")


def planned_ledger(arguments: Namespace) -> PrivacyLedger:
    """The empty ledger of the fit. A delta that is too large for any table is said at once."""
    try:
        ledger = PrivacyLedger.open(
            arguments.epsilon,
            arguments.delta,
            Adjacency.parse(arguments.adjacency),
            arguments.rows_per_person,
            people=getattr(arguments, "person_column", None),
            weighed=getattr(arguments, "weigh_people", False),
        )
    except ValueError as error:
        raise CommandError(in_options(error)) from None
    for sentence in on_delta(ledger.delta):
        say(in_options(sentence))
        warnings.filterwarnings("ignore", message=re.escape(sentence))  # it is said once
    return ledger


def synthesizer_of(arguments: Namespace, metadata: "Metadata") -> "PrivateSynthesizer":
    """The synthesizer that the options describe. Errors in its arguments are public."""
    from sdv.errors import SynthesizerInputError

    import sdv_privpgd

    classes = {"mst": sdv_privpgd.MSTSynthesizer, "aim": sdv_privpgd.AIMSynthesizer}
    make = classes.get(arguments.method, sdv_privpgd.PrivPGDSynthesizer)
    names = list(columns_of(metadata))
    unknown = [name for name in arguments.target if name not in names]
    if unknown:
        raise CommandError(
            f"--target names {unknown!r}, which are no columns: choose from {names!r}."
        )
    people = people_of(arguments)
    if (person := people.column) is not None:
        if person not in names:
            raise CommandError(f"--person-column {person!r} is no column: choose from {names!r}.")
        if columns_of(metadata)[person]["sdtype"] != "id":
            metadata.update_column(column_name=person, sdtype="id")  # rows must not name people
    try:
        synthesizer = make(
            metadata,
            arguments.epsilon,
            arguments.delta,
            adjacency=arguments.adjacency,
            people=people,
            public_domain=read_facts(arguments.domain),
            public_metadata=arguments.public_metadata,
            discovery_share=arguments.discovery_share,
            method=with_bins(
                arguments.method, getattr(arguments, "num_bins", None), seed=arguments.seed
            ),
            target=arguments.target,
            seed=arguments.seed,
            verbose=not getattr(arguments, "quiet", True),
        )
    except (ValueError, SynthesizerInputError) as error:
        raise CommandError(_last_of_all(arguments, metadata, str(error))) from None
    if arguments.constraints is not None:
        add_constraints(synthesizer, arguments.constraints)
    return synthesizer


def people_of(arguments: Namespace) -> People:
    """Whose the rows are, by the options. Raises ``CommandError`` for what contradicts itself."""
    try:
        return People(
            getattr(arguments, "person_column", None),
            arguments.rows_per_person,
            weighed=getattr(arguments, "weigh_people", False),
            sequence_index=getattr(arguments, "sequence_index", None),
            previous=getattr(arguments, "previous", ()),
            context_columns=getattr(arguments, "context_column", ()),
        )
    except ValueError as error:
        raise CommandError(in_options(error)) from None


def _last_of_all(arguments: Namespace, metadata: "Metadata", first: str) -> str:
    """Says all that is wrong with the domain, in order, and not one at a run; gives the last."""
    from sdv_privpgd.drafting.checking import refused

    domain = read_facts(arguments.domain)
    others = [] if domain is None else refused(metadata, domain)
    sentences = others if first in others else [*others, first]
    *before, last = (_of_types(arguments, in_options(sentence)) for sentence in sentences)
    for sentence in before:
        say(sentence)
    return last


def _of_types(arguments: Namespace, sentence: str) -> str:
    """A sentence that speaks of metadata, where there is none to correct."""
    if arguments.metadata is None:
        for said, instead in _WITHOUT_METADATA.items():
            sentence = sentence.replace(said, instead)
    return sentence


def _fit(synthesizer: "PrivateSynthesizer", table: Source) -> None:
    with own_errors():
        synthesizer.fit(table)


def num_rows(arguments: Namespace, synthesizer: "PrivateSynthesizer", table: Source | None) -> int:
    """The number of rows to write. It is never the true number of rows if that is private."""
    if arguments.rows is not None:
        return arguments.rows
    if table is not None and synthesizer.adjacency == Adjacency.REPLACE_ONE.value:
        return table.num_rows()
    known = synthesizer.estimated_num_rows
    if known is None:
        raise CommandError("--rows is needed: no column is modelled, so no rows were counted.")
    return known
