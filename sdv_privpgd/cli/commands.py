"""The commands that need no fit: most take a model."""

import json
import re
from argparse import Namespace
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pandas as pd

from sdv_privpgd.base.arguments import check_known
from sdv_privpgd.base.files import TREES, DamagedFileError, undamaged
from sdv_privpgd.base.words import listed
from sdv_privpgd.cli import linked_tables
from sdv_privpgd.cli.checkpoint import facts_of, fitted, how_to_finish, kept_in, paid_for
from sdv_privpgd.cli.fit_options import named_value, parse_condition, questions
from sdv_privpgd.cli.input_files import (
    Kind,
    kind_read,
    kind_written,
    known_types_in,
    read_table,
    reading,
    tables_in,
    text_options,
)
from sdv_privpgd.cli.journal import Journal, Model, after, check_most, is_unwritten, ledger_of
from sdv_privpgd.cli.messages import CommandError, own_errors, report_in_options, say
from sdv_privpgd.cli.metadata_files import metadata_of, read_metadata
from sdv_privpgd.cli.output_files import (
    Output,
    Outputs,
    check_report,
    moving_on,
    require_file,
    rows_files,
    sampled,
    write_out,
)
from sdv_privpgd.columns.dtypes import on_unreadable
from sdv_privpgd.drafting.files import FILES, SHEETS, write_domain
from sdv_privpgd.drafting.template import draft_domain as drafted
from sdv_privpgd.drafting.template import sdtype_of
from sdv_privpgd.fitting.families import FittedTables
from sdv_privpgd.fitting.fitted_table import FittedTable, UnfinishedTable
from sdv_privpgd.privacy.ledger_file import read_ledger
from sdv_privpgd.report.about import KEY, card_path, digest_of_file, in_words, read_card
from sdv_privpgd.report.page import Report
from sdv_privpgd.report.privacy import ledger_report, read_history
from sdv_privpgd.sources import texts

_NOT_PRIVATE = "NOT PRIVATE: {} compares with the real table. Do not pass it on."


def describe(arguments: Namespace) -> None:
    """Prints what a model is and what it has spent, and writes its page if asked to."""
    for path in (arguments.report, arguments.officer):
        check_report(path)
    if arguments.ledger is not None and arguments.officer is None:
        raise CommandError("--ledger is for --officer, whose page counts all runs together.")
    kept = kept_in(arguments.model)
    if isinstance(kept, FittedTables):
        linked_tables.describe(arguments, kept)
        return
    model = paid_for(arguments.model, kept)
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

    The file moves on with the rows, so that no later command writes them once more. A folder gets
    rows of each of several tables that belong together.
    """
    if arguments.out.is_dir():
        linked_tables.sample(arguments, _conditions)
        return
    kind_written(arguments.out)
    if bool(arguments.on) != (arguments.min_rows_like is not None):
        raise CommandError("--min-rows-like and --on go together: how many rows, by which columns.")
    with moving_on(arguments) as (outputs, place):
        files = rows_files(arguments, outputs)
        model = paid_for(arguments.model)
        table = fitted(arguments.model, model)
        if is_unwritten(model):
            model = _entered(outputs, arguments, model, place)
        if arguments.again:
            table.reset_sampling()
        where = _conditions(arguments, table, model.notes.get("dialect", {}))
        rows = sampled(table, arguments, table.num_rows, where)
        if arguments.min_rows_like is not None:
            with own_errors(ValueError):
                made = table.crowded(rows, arguments.on, min_rows_like=arguments.min_rows_like)
            rows = made.rows
            print(made)
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
    entry = str(path), len(model.ledger.charges)
    entered = replace(model, notes={**model.notes, "ledger_file": entry})
    place.is_paid = True  # so that it knows, whatever becomes of the rows
    outputs.write(place, entered.save)
    return entered


def evaluate(arguments: Namespace) -> None:
    """Writes a page that compares rows with the real table, and says that it is not private."""
    check_report(arguments.out)
    kept = kept_in(arguments.model)
    is_linked = isinstance(kept, FittedTables)
    given = [arguments.table, *([] if arguments.held_out is None else [arguments.held_out])]
    tables = given if is_linked else [tables_in(each) for each in given if each]
    inputs = [arguments.model, *(path for each in tables for path in each)]
    with Outputs(inputs=inputs, force=arguments.force) as outputs:
        out = outputs.open("--out", arguments.out)
        if is_linked:
            compare = linked_tables.comparing(arguments, kept)
        else:
            model = fitted(arguments.model, paid_for(arguments.model, kept))
            dialect, facts = model.notes.get("dialect", {}), facts_of(model)
            table, *held_out = (
                read_table(each, reading(arguments, each[0], dialect), facts) for each in tables
            )
            real = {"held_out": held_out[0] if held_out else None, "label": arguments.label}
            compare = lambda part: model.evaluate(table, path=part, **real)
        with own_errors(ImportError, ValueError):  # ours, about names, dtypes and packages
            outputs.write(out, compare)
    if not arguments.quiet:  # the page itself says it in any case
        say(_NOT_PRIVATE.format(arguments.out))


def draft_domain(arguments: Namespace) -> None:
    """Writes a public domain to fill in, and metadata if asked to. It reads no value."""
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
            known = {n: dtype for n, dtype in source.items() if dtype is not None}
            for name in [each for each, dtype in known.items() if on_unreadable({each: dtype})]:
                say(f"Left out. {on_unreadable({name: source.pop(name)})[0]}")
            unknown = [n for n, dtype in source.items() if dtype is None and n not in typed]
        else:
            source = read_metadata(arguments.metadata)
            unknown = []
        with own_errors(ValueError):  # of a dtype that has no sdtype
            domain, metadata = drafted(source), source
            if tables:
                kinds = {str(n): kind and sdtype_of(str(n), kind) for n, kind in source.items()}
                metadata = metadata_of(kinds | {name: own["sdtype"] for name, own in typed.items()})
        for name, own in typed.items():
            domain[name] |= {key: fact for key, fact in own.items() if key != "sdtype"}
            if own["sdtype"] == "id":
                del domain[name]
        with own_errors(ImportError):
            outputs.write(out, partial(write_domain, domain))
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


def _stand_in(sdtype: str) -> Any:
    """A dtype of a type that ``--dtype`` says; ``None`` for an id."""
    dtypes = {"numerical": "float64", "datetime": "datetime64[ns]", "boolean": "bool"}
    return None if sdtype == "id" else pd.api.types.pandas_dtype(dtypes.get(sdtype, "category"))


def _conditions(
    arguments: Namespace, model: FittedTable, dialect: Mapping[str, Any]
) -> dict[str, Any]:
    """What all rows are to have. Numbers are written as in the model's table, or as is said."""
    of_text = text_options(arguments, dialect, Kind(form="text"))
    signs = texts.signs_of(Namespace(**of_text))
    own = model.fitted.description
    facts = {name: {**known, **own.in_words.get(name, {})} for name, known in own.words.items()}
    asked = [named_value("=".join(pair), facts) or pair for pair in arguments.condition]
    with own_errors(ValueError):
        check_known("--condition", [name for name, _ in asked], facts, "columns of the model")
    if len({name for name, _ in asked}) < len(asked):
        raise CommandError("--condition names a column twice: a range is written as LOW..HIGH.")
    return {
        name: parse_condition("--condition", name, text, facts[name], signs) for name, text in asked
    }


# What is published with rows


def registry(arguments: Namespace) -> None:
    """Names the blanks of a model's registry entry, and writes the entry if asked to."""
    out, model = arguments.out, fitted(arguments.model)
    if out is not None and out.suffix.lower() not in TREES:
        raise CommandError(f"--out {out} must end in one of {', '.join(TREES)}.")
    model = of_all_runs(model, arguments.ledger)
    said = {name: getattr(arguments, name) for name in ("name", "region", "use")}
    said |= {"curators": arguments.curator, "authors": arguments.author}
    entry = model.registry_entry(**said)
    inputs = [arguments.model, arguments.ledger]
    with own_errors(ImportError), Outputs(inputs=inputs, force=arguments.force) as outputs:
        outputs.write(outputs.open("--out", out), entry.save)
    print(entry)


def ledger(arguments: Namespace) -> None:
    """Prints the releases in a ledger's file, what each cost, the sum and what is left."""
    path, limit = arguments.ledger, arguments.max_epsilon
    check_report(arguments.html)
    require_file(path)
    with own_errors(DamagedFileError), undamaged(path, "ledger"):
        history = read_history(path.read_text(encoding="utf-8"))
    if limit is not None:
        history = replace(history, limit=check_most(limit))
    report = ledger_report(history, path.stem)
    with Outputs(inputs=[path], force=arguments.force) as outputs:
        outputs.write(outputs.open("--html", arguments.html), report.save)
    print(report)


def of_all_runs(model: FittedTable, path: Path | None) -> FittedTable:
    """The model with the ledger of all runs, if it is given; else it says where that is.

    Raises ``CommandError`` for a ledger that lacks what the model has spent.
    """
    if path is None:
        if (entry := model.notes.get("ledger_file")) is not None:
            say(f"What other runs spent on these people is in {entry[0]}: --ledger counts it in.")
        return model
    with own_errors(DamagedFileError), undamaged(path, "ledger"):
        ledger = read_ledger(path.read_text(encoding="utf-8"))
    own = model.ledger.charges
    starts = range(len(ledger.charges) - len(own) + 1)
    if not any(ledger.charges[start : start + len(own)] == own for start in starts):
        raise CommandError(f"--ledger {path} does not have what the model has spent.")
    return replace(model, ledger=ledger)


def identify(arguments: Namespace) -> None:
    """Says which release a file of rows is from, by its digest or by what it says of itself."""
    rows = arguments.rows
    require_file(rows)
    cards = [each for each in arguments.releases if each.suffix.lower() == ".json"]
    models = [each for each in arguments.releases if each not in cards]
    cards += [beside] if (beside := card_path(rows)).is_file() else []
    with own_errors(DamagedFileError):
        release, said = _release_of(rows, cards)
    ids = {str(path): fitted(path).about_rows()["release"] for path in models}
    print(said)
    if own := [path for path, known in ids.items() if known == release]:
        print(f"The release is that of {', '.join(own)}.")
    elif ids:
        raise CommandError(f"It is the release of none of {', '.join(ids)}.")


def _release_of(rows: Path, cards: Sequence[Path]) -> tuple[str, str]:
    """The release that a file is from, and a sentence. Raises where nobody can tell."""
    digest, kind = digest_of_file(rows), kind_read(rows)
    for facts in map(read_card, cards):
        if facts.get("sha256") == digest:
            return facts["release"], f"{in_words(facts)} The file is as it was written."
    caveat = "That is what the file says of itself: cells may have been changed since."
    if kind.form == "parquet":
        import pyarrow.parquet

        with undamaged(rows, "Parquet file"):
            facts = json.loads((pyarrow.parquet.read_schema(rows).metadata or {}).get(KEY, "{}"))
        if facts:
            return facts["release"], f"{in_words(facts)} {caveat}"
    elif kind.form == "text" and kind.compression is None:
        with rows.open("rb") as file:
            line = file.readline(10_000).replace(b"\0", b"").decode(errors="replace")  # of UTF-16
        if found := re.search("# (Synthetic rows of release ([0-9a-f]{32}),.*)", line):
            return found[2], f"{found[1].strip()} {caveat}"
    tried = [f"It is not the file that {each} describes, or was changed since." for each in cards]
    raise CommandError(
        f"Cannot tell which release {rows} is from: nothing in it says so. "
        f"{' '.join([*tried, 'It may be synthetic, and it may be not.'])}"
    )


# Audits: no table is read


def audit(arguments: Namespace) -> None:
    """Audits settings, and what a model holds. Raises ``CommandError`` for a fault."""
    if arguments.metadata is None and arguments.model is None:
        raise CommandError("An audit needs --metadata and --epsilon, or --model.")
    if arguments.metadata is not None and arguments.epsilon is None and arguments.model is None:
        raise CommandError("--epsilon is needed: it is what is claimed.")
    for name in filter(None, (arguments.out, arguments.report)):
        if name.suffix.lower() not in (".json", ".html", ".txt"):
            raise CommandError(f"{name} must end in .json, .html or .txt.")
    inputs = (arguments.metadata, arguments.domain, arguments.constraints, arguments.model)
    with Outputs(inputs=inputs, force=arguments.force) as outputs:
        out = outputs.open("--out", arguments.out)
        page = outputs.open("--report", arguments.report)
        report = _audited(arguments)
        outputs.write(out, report.save)
        outputs.write(page, report.save)
    print(report)
    if wrong := report.to_dict()["failed"]:
        raise CommandError(f"The audit found faults: {', '.join(wrong)}.")


def _audited(arguments: Namespace) -> Report:
    """The audit of a model, or of what the options describe."""
    from sdv_privpgd.audit.door import audit_fit, audit_fitted

    if arguments.model is None:
        for name, usual in arguments.usual.items():
            if getattr(arguments, name) is None:
                setattr(arguments, name, usual)
        audited = partial(linked_tables.audit, arguments)
        if not (arguments.link or arguments.max_children):
            audited = partial(audit_fit, **questions(arguments).options, runs=arguments.runs)
    else:
        for name in arguments.usual:
            if getattr(arguments, name) is not None:
                raise CommandError(
                    f"--{name.replace('_', '-')} is not needed: {arguments.model} has its own."
                )
        audited = partial(audit_fitted, fitted(arguments.model), runs=arguments.runs)
    say("Auditing made-up tables: no row is read.")
    with own_errors(ValueError):  # ours, of made-up tables
        return audited()
