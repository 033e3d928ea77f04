"""The commands that need no fit: most take a fitted synthesizer."""

import json
from argparse import Namespace
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandas as pd

from sdv_privpgd.base.words import listed
from sdv_privpgd.cli.dialect import reading, told
from sdv_privpgd.cli.documents import columns_of, described_in, metadata_of_types
from sdv_privpgd.cli.files import Kind, check_report, kind_written
from sdv_privpgd.cli.journal import Journal, after, is_unwritten, ledger_of
from sdv_privpgd.cli.keeping import how_to_finish
from sdv_privpgd.cli.models import fitted, paid_for, require_file
from sdv_privpgd.cli.reading import known_types_in, read_table, tables_in
from sdv_privpgd.cli.saying import CommandError, in_options, report_in_options, say
from sdv_privpgd.cli.synthesizing import facts_of, sampled, write_as_asked
from sdv_privpgd.cli.writing import Output, Outputs
from sdv_privpgd.sources import texts

if TYPE_CHECKING:
    from sdv_privpgd.plugin.base import PrivateSynthesizer

_NOT_PRIVATE = "NOT PRIVATE: {} compares with the real table. Do not pass it on."


def describe(arguments: Namespace) -> None:
    """Prints what a saved synthesizer is and what it has spent, and writes its page if asked to."""
    if arguments.report is not None:
        check_report(arguments.report)
    is_page = arguments.report is not None
    synthesizer = fitted(arguments.model) if is_page else paid_for(arguments.model)
    with Outputs(inputs=[arguments.model], force=arguments.force) as outputs:
        outputs.write(outputs.open("--report", arguments.report), synthesizer.report)
    print(type(synthesizer).__name__)
    for name, facts in columns_of(synthesizer.get_metadata()).items():
        print(f"  {name}: {facts['sdtype']}")
    print()
    print(report_in_options(synthesizer.privacy_report()))
    if synthesizer.unfinished is not None:
        print(f"\nA fit has stopped. {how_to_finish(synthesizer, arguments.model)}")


def sample(arguments: Namespace) -> None:
    """Writes the next rows of a saved synthesizer, or with ``--again`` the first of its sequence.

    The file moves on with the rows, so that no later command writes them once more.
    """
    kind_written(arguments.out)
    require_file(arguments.model)
    inputs = [arguments.model] if arguments.again else []
    with Outputs(inputs=inputs, force=arguments.force) as outputs:
        # It is loaded when nobody else can move it on.
        model = None if arguments.again else _moving_on(outputs, arguments.model)
        out = outputs.open("--out", arguments.out)
        synthesizer = fitted(arguments.model)
        if is_unwritten(synthesizer):
            _enter(outputs, arguments, synthesizer, model)
        if arguments.again:
            synthesizer.reset_sampling()
        num_rows = arguments.rows
        if num_rows is None:
            num_rows = synthesizer.estimated_num_rows
        if num_rows is None or num_rows < 0:
            raise CommandError(f"--rows must be 0 or more, got {num_rows}.")
        shows = synthesizer.verbose
        synthesizer.verbose = shows and not arguments.quiet
        rows = _rows(synthesizer, num_rows, _conditions(arguments, synthesizer))
        synthesizer.verbose = shows  # of this command alone: the file stays as it was
        outputs.write(out, partial(write_as_asked, arguments, synthesizer.dialect, rows))
        outputs.write(model, synthesizer.save)


def _enter(
    outputs: Outputs, arguments: Namespace, synthesizer: "PrivateSynthesizer", model: Output | None
) -> None:
    """Has the ledger's file say what a synthesizer has spent, before it gives rows."""
    if model is None:
        raise CommandError(
            f"What {arguments.model} has spent does not stand in the ledger of its run: without "
            "--again it is entered there."
        )
    path = ledger_of(synthesizer, arguments.model, arguments.ledger)
    journal = Journal(outputs, path)
    journal.catch_up(synthesizer, arguments.model)
    journal.together = lambda: journal.earlier or after(None, synthesizer.ledger)
    journal.settle()
    synthesizer.ledger_file = (str(path), len(synthesizer.ledger.charges))
    model.is_paid = True  # so that it knows, whatever becomes of the rows
    outputs.write(model, synthesizer.save)


def _moving_on(outputs: Outputs, path: Path) -> Output | None:
    try:
        return outputs.open("the model", path, grows=True)
    except CommandError as error:
        raise CommandError(
            f"{error} New rows need it to move on; --again leaves it as it is, and writes the "
            "first rows once more."
        ) from None


def evaluate(arguments: Namespace) -> None:
    """Writes a page that compares rows with the real table, and says that it is not private."""
    check_report(arguments.out)
    tables = [tables_in(given) for given in (arguments.table, arguments.held_out) if given]
    synthesizer = fitted(arguments.model)
    inputs = [arguments.model, *(path for each in tables for path in each)]
    with Outputs(inputs=inputs, force=arguments.force) as outputs:
        out = outputs.open("--out", arguments.out)
        table, *held_out = (
            read_table(
                each, reading(arguments, each[0], synthesizer.dialect), facts_of(synthesizer)
            )
            for each in tables
        )
        compare = partial(
            _compare, synthesizer, table, arguments.label, held_out[0] if held_out else None
        )
        outputs.write(out, compare)
    if not arguments.quiet:  # the page itself says it in any case
        say(_NOT_PRIVATE.format(arguments.out))


def draft_domain(arguments: Namespace) -> None:
    """Writes a public domain to fill in, and metadata if asked to. It reads no value."""
    import sdv_privpgd

    if bool(arguments.table) == (arguments.metadata is not None):
        raise CommandError("A draft is made of a table's names and types, or of --metadata.")
    if arguments.out.suffix.lower() not in (".json", ".yaml", ".yml"):
        raise CommandError(f"--out {arguments.out} must end in .json, .yaml or .yml.")
    tables = tables_in(arguments.table)
    with Outputs(inputs=[*tables, arguments.metadata], force=arguments.force) as outputs:
        out = outputs.open("--out", arguments.out)
        metadata_out = outputs.open("--metadata-out", arguments.metadata_out)
        if tables:
            source: Any = known_types_in(tables, reading(arguments, tables[0]))
            metadata = {} if metadata_out is None else _drafted_metadata(source)
            unknown = [name for name, dtype in source.items() if dtype is None]
        else:
            source = metadata = described_in(arguments.metadata)
            unknown = []
        try:
            domain = sdv_privpgd.draft_domain(source)
        except ValueError as error:  # of a dtype that has no sdtype
            raise CommandError(str(error)) from None
        outputs.write(out, lambda part: _written(domain, part))
        text = json.dumps(metadata, indent=2) + "\n"
        outputs.write(metadata_out, lambda part: part.write_text(text, encoding="utf-8"))
    say(f"Fill in what is null in {arguments.out}, from documentation and not from the table.")
    if unknown:
        say(
            f"Their names do not say what {listed([*map(repr, unknown)], 6)} hold: fill in the "
            "facts that apply, and the sdtypes in the metadata, or draft again with --dtype "
            "COLUMN=TYPE."
        )


def _drafted_metadata(types: Mapping[str, Any]) -> dict:
    """Metadata of columns, with a blank to fill in where a type is not known."""
    known = {name: dtype for name, dtype in types.items() if dtype is not None}
    metadata = metadata_of_types(known).to_dict()
    (table,) = metadata["tables"].values()
    columns = table.get("columns", {})
    table["columns"] = {name: columns.get(name, {"sdtype": None}) for name in types}
    return metadata


def _written(domain: dict, part: Path) -> None:
    import sdv_privpgd

    try:
        sdv_privpgd.write_domain(domain, part)
    except ImportError:
        raise CommandError("--out in YAML needs PyYAML: pip install pyyaml.") from None


def _compare(
    synthesizer: "PrivateSynthesizer",
    table: pd.DataFrame,
    label: str | None,
    held_out: pd.DataFrame | None,
    part: Path,
) -> None:
    from sdv.errors import InvalidDataError

    try:
        synthesizer.evaluate(table, label=label, held_out=held_out, path=part)
    except (InvalidDataError, ValueError) as error:  # ours, about names and dtypes
        raise CommandError(in_options(error)) from None


def _rows(
    synthesizer: "PrivateSynthesizer", num_rows: int, wanted: Mapping[str, Any]
) -> pd.DataFrame:
    """Rows of the model, under conditions if there are any. Rows and errors are public."""
    from sdv.sampling import Condition

    if wanted and num_rows:
        try:
            rows = synthesizer.sample_from_conditions([Condition(dict(wanted), num_rows=num_rows)])
        except ValueError as error:
            raise CommandError(in_options(error)) from None
    else:
        rows = sampled(synthesizer, num_rows)
    return rows if isinstance(rows, pd.DataFrame) else next(iter(rows.values()))


def _conditions(arguments: Namespace, synthesizer: "PrivateSynthesizer") -> dict[str, Any]:
    """What all rows are to have. Numbers are written as in the model's table, or as is said."""
    asked: Sequence[tuple[str, str]] = arguments.condition
    of_text = told(arguments, synthesizer.dialect, Kind(form="text"))
    signs = texts.Signs(of_text.get("decimal", "."), of_text.get("thousands"))
    found = synthesizer.discovered_domain()
    facts = {
        name: {**known, **found.get(name, {})} for name, known in facts_of(synthesizer).items()
    }
    unknown = [name for name, _ in asked if name not in facts]
    if unknown:
        raise CommandError(
            f"--condition names {unknown!r}; the columns of the model are {list(facts)!r}."
        )
    if len({name for name, _ in asked}) < len(asked):
        raise CommandError("--condition names a column twice: a range is written as LOW..HIGH.")
    return {name: _wanted(name, text, facts[name], signs) for name, text in asked}


def _wanted(name: str, text: str, facts: Mapping, signs: texts.Signs) -> Any:
    """The condition on a column: a value, ``None`` for missing, or a range."""
    from sdv_privpgd import Between

    if not text:
        return None
    if ".." in text and facts["sdtype"] in ("numerical", "datetime", "ordinal"):
        low, _, high = text.partition("..")
        return Between(*(_value(name, end, facts, signs) if end else None for end in (low, high)))
    return _value(name, text, facts, signs)


def _value(name: str, text: str, facts: Mapping, signs: texts.Signs) -> Any:
    given = pd.Series([text], dtype=object)
    if not texts.is_number(facts):
        return texts.meanings(given, facts, signs).iloc[0]
    number = texts.numbers(given, signs).iloc[0]
    if number is None:
        raise CommandError(
            f"--condition {name}={text}: the column holds numbers, and {signs.decimal!r} stands "
            "before their decimals; --decimal names another sign."
        )
    return number
