"""The commands that need no fit: most take a model."""

import json
from argparse import Namespace
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pandas as pd

from sdv_privpgd.base.words import listed
from sdv_privpgd.cli.dialect import reading, told
from sdv_privpgd.cli.documents import metadata_of, read_metadata
from sdv_privpgd.cli.files import Kind, check_report, kind_written
from sdv_privpgd.cli.journal import Journal, after, is_unwritten, ledger_of
from sdv_privpgd.cli.keeping import how_to_finish
from sdv_privpgd.cli.models import Model, facts_of, fitted, paid_for, require_file
from sdv_privpgd.cli.publishing import of_all_runs
from sdv_privpgd.cli.reading import known_types_in, read_table, tables_in
from sdv_privpgd.cli.saying import CommandError, in_options, report_in_options, say
from sdv_privpgd.cli.synthesizing import rows_files, sampled, write_out
from sdv_privpgd.cli.writing import Output, Outputs
from sdv_privpgd.drafting.files import FILES, SHEETS
from sdv_privpgd.drafting.template import sdtype_of
from sdv_privpgd.fitting.door import FittedTable, UnfinishedTable
from sdv_privpgd.sources import texts

_NOT_PRIVATE = "NOT PRIVATE: {} compares with the real table. Do not pass it on."


def describe(arguments: Namespace) -> None:
    """Prints what a model is and what it has spent, and writes its page if asked to."""
    for path in filter(None, (arguments.report, arguments.officer)):
        check_report(path)
    if arguments.ledger is not None and arguments.officer is None:
        raise CommandError("--ledger is for --officer, whose page counts all runs together.")
    model = paid_for(arguments.model)
    inputs = [arguments.model, arguments.ledger]
    with Outputs(inputs=inputs, force=arguments.force) as outputs:
        report = outputs.open("--report", arguments.report)
        officer = outputs.open("--officer", arguments.officer)
        if report is not None:
            outputs.write(report, fitted(arguments.model, model).report)
        if officer is not None:
            own = of_all_runs(fitted(arguments.model, model), arguments.ledger)
            outputs.write(officer, partial(own.report, audience="officer"))
    print(type(model).__name__)
    for name, facts in facts_of(model).items():
        print(f"  {name}: {facts['sdtype']}")
    print()
    print(report_in_options(model.privacy_report()))
    if arguments.methods:
        print(f"\n{fitted(arguments.model, model).methods_text()}")
    if isinstance(model, UnfinishedTable):
        print(f"\nA fit has stopped. {how_to_finish(model, arguments.model)}")


def sample(arguments: Namespace) -> None:
    """Writes the next rows of a model, or with ``--again`` the first of its sequence.

    The file moves on with the rows, so that no later command writes them once more.
    """
    kind_written(arguments.out)
    require_file(arguments.model)
    inputs = [arguments.model] if arguments.again else []
    with Outputs(inputs=inputs, force=arguments.force) as outputs:
        # It is loaded when nobody else can move it on.
        place = None if arguments.again else _moving_on(outputs, arguments.model)
        files = rows_files(arguments, outputs)
        model = paid_for(arguments.model)
        table = fitted(arguments.model, model)
        if is_unwritten(model):
            model = _entered(outputs, arguments, model, place)
        if arguments.again:
            table.reset_sampling()
        where = _conditions(arguments, table, model.notes.get("dialect", {}))
        rows = sampled(table, arguments, table.num_rows, where)
        write_out(arguments, files, table, model.notes, rows, outputs.write)
        outputs.write(place, model.save)


def _entered(outputs: Outputs, arguments: Namespace, model: Model, place: Output | None) -> Model:
    """Has the ledger's file say what a model has spent, before it gives rows."""
    if place is None:
        raise CommandError(
            f"What {arguments.model} has spent does not stand in the ledger of its run: without "
            "--again it is entered there."
        )
    path = ledger_of(model, arguments.model, arguments.ledger)
    journal = Journal(outputs, path)
    journal.catch_up(model, arguments.model)
    journal.together = lambda: journal.earlier or after(None, model.ledger)
    journal.settle()
    told = str(path), len(model.ledger.charges)
    entered = replace(model, notes={**model.notes, "ledger_file": told})
    place.is_paid = True  # so that it knows, whatever becomes of the rows
    outputs.write(place, entered.save)
    return entered


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
    model = fitted(arguments.model)
    inputs = [arguments.model, *(path for each in tables for path in each)]
    with Outputs(inputs=inputs, force=arguments.force) as outputs:
        out = outputs.open("--out", arguments.out)
        table, *held_out = (
            read_table(
                each,
                reading(arguments, each[0], model.notes.get("dialect", {})),
                facts_of(model),
            )
            for each in tables
        )
        real = {"held_out": held_out[0] if held_out else None, "label": arguments.label}
        try:
            outputs.write(out, lambda part: model.evaluate(table, path=part, **real))
        except (ImportError, ValueError) as error:  # ours, about names, dtypes and packages
            raise CommandError(in_options(error)) from None
    if not arguments.quiet:  # the page itself says it in any case
        say(_NOT_PRIVATE.format(arguments.out))


def draft_domain(arguments: Namespace) -> None:
    """Writes a public domain to fill in, and metadata if asked to. It reads no value."""
    import sdv_privpgd

    if bool(arguments.table) == (arguments.metadata is not None):
        raise CommandError("A draft is made of a table's names and types, or of --metadata.")
    if arguments.out.suffix.lower() not in FILES:
        raise CommandError(f"--out {arguments.out} must end in one of {', '.join(FILES)}.")
    tables = tables_in(arguments.table)
    said = {each.name: each.facts(arguments.decimal or ".") for each in arguments.dtype}
    typed = {name: own for name, own in said.items() if own}
    with Outputs(inputs=[*tables, arguments.metadata], force=arguments.force) as outputs:
        out = outputs.open("--out", arguments.out)
        metadata_out = outputs.open("--metadata-out", arguments.metadata_out)
        if tables:
            source: Any = known_types_in(tables, reading(arguments, tables[0]))
            source |= {name: _stand_in(own["sdtype"]) for name, own in typed.items()}
            unknown = [n for n, dtype in source.items() if dtype is None and n not in typed]
        else:
            source = read_metadata(arguments.metadata)
            unknown = []
        try:
            domain = sdv_privpgd.draft_domain(source)
            kinds = {name: own["sdtype"] for name, own in typed.items()}
            metadata = source if arguments.metadata else metadata_of({**_sdtypes(source), **kinds})
        except ValueError as error:  # of a dtype that has no sdtype
            raise CommandError(str(error)) from None
        for name, own in typed.items():
            domain[name] |= {key: fact for key, fact in own.items() if key != "sdtype"}
            if own["sdtype"] == "id":
                del domain[name]
        outputs.write(out, lambda part: _written(domain, part))
        text = json.dumps(metadata, indent=2) + "\n"
        outputs.write(metadata_out, lambda part: part.write_text(text, encoding="utf-8"))
    blank = "blank" if arguments.out.suffix.lower() in SHEETS else "null"
    say(f"Fill in what is {blank} in {arguments.out}, from documentation and not from the table.")
    if unknown:
        say(
            f"Their names do not say what {listed([*map(repr, unknown)], 6)} hold: fill in the "
            "facts that apply, and the sdtypes in the metadata, or draft again with --dtype "
            "COLUMN=TYPE."
        )


def _sdtypes(dtypes: Mapping[str, Any]) -> dict[str, str | None]:
    """What dtypes say of columns; ``None``, to be filled in, of one that is not known."""
    names = {str(name): dtype for name, dtype in dtypes.items()}
    return {name: kind and sdtype_of(name, kind) for name, kind in names.items()}


def _stand_in(sdtype: str) -> Any:
    """A dtype of a type that ``--dtype`` says; ``None`` for an id."""
    dtypes = {"numerical": "float64", "datetime": "datetime64[ns]", "boolean": "bool"}
    return None if sdtype == "id" else pd.api.types.pandas_dtype(dtypes.get(sdtype, "category"))


def _written(domain: dict, part: Path) -> None:
    import sdv_privpgd

    try:
        sdv_privpgd.write_domain(domain, part)
    except ImportError as error:
        raise CommandError(str(error)) from None


def _conditions(
    arguments: Namespace, model: FittedTable, dialect: Mapping[str, Any]
) -> dict[str, Any]:
    """What all rows are to have. Numbers are written as in the model's table, or as is said."""
    asked: Sequence[tuple[str, str]] = arguments.condition
    of_text = told(arguments, dialect, Kind(form="text"))
    signs = texts.Signs(of_text.get("decimal", "."), of_text.get("thousands"))
    own = model.fitted.description
    facts = {name: {**known, **own.in_words.get(name, {})} for name, known in own.words.items()}
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
