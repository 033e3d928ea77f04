"""The commands that fit a table, or plan to."""

from argparse import Namespace
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from sdv_privpgd.cli.dialect import Facts, Reading
from sdv_privpgd.cli.documents import (
    columns_of,
    detected_metadata,
    metadata_of_types,
    read_facts,
    read_metadata,
)
from sdv_privpgd.cli.files import kind_written
from sdv_privpgd.cli.interrupts import undisturbed
from sdv_privpgd.cli.reading import check_table, read_table, types_in
from sdv_privpgd.cli.saying import CommandError, in_options, say
from sdv_privpgd.cli.spending import after, check_spending, earlier_ledger, spent
from sdv_privpgd.cli.writing import Output, Outputs, write_rows
from sdv_privpgd.privacy.ledger import PrivacyLedger
from sdv_privpgd.privacy.queries import Adjacency

if TYPE_CHECKING:
    import pandas as pd
    from sdv.metadata import Metadata

    from sdv_privpgd.plugin.base import PrivateSynthesizer


def synthesize(arguments: Namespace) -> None:
    """Fits a table and writes rows, and the other files that were asked for."""
    if arguments.dry_run:
        plan(arguments)
        return
    if arguments.out is None:
        raise CommandError("--out is needed.")
    _check_rows(arguments)
    check_table(arguments.table)
    kind_written(arguments.out)
    earlier = earlier_ledger(arguments.ledger)
    planned = _planned(arguments)
    after(earlier, planned)
    check_spending(earlier, planned, arguments.max_epsilon)
    metadata = None if arguments.metadata is None else read_metadata(arguments.metadata)
    # Errors in it are told before anything is opened or read.
    synthesizer = None if metadata is None else _synthesizer(arguments, metadata)
    inputs = (arguments.table, arguments.metadata, arguments.domain)
    with Outputs(inputs=inputs, force=arguments.force) as outputs:
        ledger = outputs.open("--ledger", arguments.ledger, is_paid=True, grows=True)
        model = outputs.open("--model", arguments.model, is_paid=True)
        out = outputs.open("--out", arguments.out)
        report = outputs.open("--report", arguments.report)
        if synthesizer is None:
            synthesizer = _synthesizer(arguments, _typed(arguments))
        with _on_the_books(synthesizer, earlier, outputs, ledger):
            table = read_table(arguments.table, reading(arguments), facts_of(synthesizer))
            _fit(synthesizer, table)
            outputs.write(model, synthesizer.save)
            rows = sampled(synthesizer, _num_rows(arguments, synthesizer, table))
            outputs.write(out, partial(write_as_asked, arguments, rows))
            outputs.write(report, synthesizer.report)
    if not arguments.quiet:
        print(synthesizer.privacy_report())
        if earlier is not None:
            print(f"\nTogether with all before: {spent(after(earlier, synthesizer.ledger))}")


def plan(arguments: Namespace) -> None:
    """Prints the questions of a fit to so many rows, their noise, and what is wrong with it."""
    from sdv_privpgd import check_domain

    if arguments.metadata is None or arguments.rows is None:
        raise CommandError("--dry-run needs --metadata and --rows: it reads no table.")
    _check_rows(arguments)
    metadata, domain = read_metadata(arguments.metadata), read_facts(arguments.domain)
    if domain is not None:
        for sentence in check_domain(metadata, domain, rows_per_person=arguments.rows_per_person):
            say(in_options(sentence))
    print(_synthesizer(arguments, metadata).plan(arguments.rows))


def reading(arguments: Namespace) -> Reading:
    """The options for reading the table."""
    return Reading(
        sep=arguments.sep,
        decimal=arguments.decimal,
        encoding=arguments.encoding,
        sheet=arguments.sheet,
        header=arguments.header,
        names=arguments.names,
        dtypes=dict(arguments.dtype),
    )


def facts_of(synthesizer: "PrivateSynthesizer") -> Facts:
    """The public facts on each column: the metadata, without ranges that are not used."""
    domain = synthesizer.public_domain or {}
    return {
        name: {**known, **domain.get(name, {})}
        for name, known in columns_of(synthesizer.get_metadata()).items()
    }


def write_as_asked(arguments: Namespace, rows: "pd.DataFrame", part: Path) -> None:
    """Writes rows to ``--out``, with the options of text."""
    write_rows(
        rows,
        part,
        arguments.out,
        sep=arguments.sep,
        decimal=arguments.decimal,
        encoding=arguments.encoding or "utf-8",
    )


def sampled(synthesizer: "PrivateSynthesizer", num_rows: int) -> "pd.DataFrame":
    """The next rows of a synthesizer."""
    rows = synthesizer.sample(num_rows)
    return next(iter(rows.values())) if isinstance(rows, dict) else rows


def _typed(arguments: Namespace) -> "Metadata":
    """Metadata with types only, for a table that has no metadata."""
    if arguments.types == "dtypes":
        return metadata_of_types(types_in(arguments.table, reading(arguments)))
    return detected_metadata(read_table(arguments.table, reading(arguments), None))


def _check_rows(arguments: Namespace) -> None:
    if arguments.rows is not None and arguments.rows < 0:
        raise CommandError(f"--rows must be 0 or more, got {arguments.rows}.")


def _planned(arguments: Namespace) -> PrivacyLedger:
    """The empty ledger of the fit."""
    try:
        return PrivacyLedger.open(
            arguments.epsilon,
            arguments.delta,
            Adjacency.parse(arguments.adjacency),
            arguments.rows_per_person,
        )
    except ValueError as error:
        raise CommandError(in_options(error)) from None


def _synthesizer(arguments: Namespace, metadata: "Metadata") -> "PrivateSynthesizer":
    """Makes the synthesizer. Errors in its arguments are public."""
    from sdv.errors import SynthesizerInputError

    import sdv_privpgd

    makers = {
        "privpgd": sdv_privpgd.PrivPGDSynthesizer,
        "mst": sdv_privpgd.MSTSynthesizer,
        "aim": sdv_privpgd.AIMSynthesizer,
    }
    try:
        return makers[arguments.method](
            metadata,
            arguments.epsilon,
            arguments.delta,
            adjacency=arguments.adjacency,
            rows_per_person=arguments.rows_per_person,
            public_domain=read_facts(arguments.domain),
            public_metadata=arguments.public_metadata,
            discovery_share=arguments.discovery_share,
            seed=arguments.seed,
            verbose=not getattr(arguments, "quiet", True),
        )
    except (ValueError, SynthesizerInputError) as error:
        raise CommandError(in_options(error)) from None


def _fit(synthesizer: "PrivateSynthesizer", table: "pd.DataFrame") -> None:
    """Fits. Only our own errors are passed on, which speak of public facts."""
    from sdv.errors import InvalidDataError, SynthesizerInputError

    from sdv_privpgd import PrivacyBudgetError, PublicDomainError

    try:
        synthesizer.fit(table)
    except (
        InvalidDataError,
        SynthesizerInputError,
        PrivacyBudgetError,
        PublicDomainError,
    ) as error:
        raise CommandError(in_options(error)) from None


@contextmanager
def _on_the_books(
    synthesizer: "PrivateSynthesizer",
    earlier: PrivacyLedger | None,
    outputs: Outputs,
    ledger: Output | None,
) -> Iterator[None]:
    """Records what is spent inside, however it ends, and prints it after an error."""
    try:
        yield
    except BaseException as error:
        with undisturbed():
            if synthesizer.ledger.charges or isinstance(error, KeyboardInterrupt):
                say(spent(synthesizer.ledger))
            if synthesizer.ledger.charges:
                _write_down(synthesizer, earlier, outputs, ledger)
        raise
    _write_down(synthesizer, earlier, outputs, ledger)


def _write_down(
    synthesizer: "PrivateSynthesizer",
    earlier: PrivacyLedger | None,
    outputs: Outputs,
    ledger: Output | None,
) -> None:
    text = after(earlier, synthesizer.ledger).to_json() + "\n"
    outputs.write(ledger, lambda part: part.write_text(text, encoding="utf-8"))


def _num_rows(
    arguments: Namespace, synthesizer: "PrivateSynthesizer", table: "pd.DataFrame"
) -> int:
    """The number of rows to write. It is never the true number of rows if that is private."""
    if arguments.rows is not None:
        return arguments.rows
    if synthesizer.adjacency == Adjacency.REPLACE_ONE.value:
        return len(table)
    known = synthesizer.estimated_num_rows
    if known is None:
        raise CommandError("--rows is needed: no column is modelled, so no rows were counted.")
    return known
