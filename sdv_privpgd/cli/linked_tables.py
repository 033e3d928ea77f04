"""Tables that belong together, from the shell: ``synthesize`` and ``plan`` with several tables."""

from argparse import Namespace
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from sdv_privpgd.base.progress import one_step, shown
from sdv_privpgd.base.words import grouped, listed
from sdv_privpgd.cli.checkpoint import kept_in
from sdv_privpgd.cli.fit_options import Declared, described, on_lost, question
from sdv_privpgd.cli.input_files import (
    kept_of,
    open_described,
    open_table,
    read_table,
    reading,
    tables_in,
)
from sdv_privpgd.cli.journal import Journal
from sdv_privpgd.cli.messages import (
    CommandError,
    own_errors,
    refuse,
    report_in_options,
    say,
    say_each,
)
from sdv_privpgd.cli.metadata_files import read_constraints, read_json
from sdv_privpgd.cli.output_files import (
    Outputs,
    check_report,
    moving_on,
    outputs_of,
    with_page,
    write_rows,
)
from sdv_privpgd.columns.declarations import Key
from sdv_privpgd.columns.links import read_tables
from sdv_privpgd.columns.vocabulary import MODELLED
from sdv_privpgd.fitting.families import FittedTables
from sdv_privpgd.fitting.fates import tables_report
from sdv_privpgd.fitting.linked_tables import RunningTables
from sdv_privpgd.fitting.plan import planned_tables
from sdv_privpgd.fitting.prior import Prior, require_others
from sdv_privpgd.fitting.settings import People
from sdv_privpgd.fitting.tables_settings import TablesSettings
from sdv_privpgd.inference.question_list import Question
from sdv_privpgd.privacy.queries import Measurement
from sdv_privpgd.report.page import Report
from sdv_privpgd.sources.source import Source
from sdv_privpgd.sources.texts import signs_of

_NOT_TAKEN = (
    "rows_per_person", "person_column", "rows_are_people", "weigh_people", "weight_column",
    "sequence_index", "target", "columns", "num_bins",
    "names", "mark",
)  # fmt: skip
"""Options of one table."""


def synthesize(arguments: Namespace) -> None:
    """Fits tables that belong together, and writes rows of each into a folder."""
    linked, paths, out = _linked_settings(arguments)
    if arguments.out is None:
        raise CommandError("--out is needed: a folder, for a file of rows of each table.")
    if not arguments.out.is_dir():
        raise CommandError(
            f"There is no folder {arguments.out}: make it, for a file of each table."
        )
    check_report(arguments.report)
    with outputs_of(arguments) as outputs:
        journal = Journal(outputs, arguments.ledger)
        model = outputs.open("--model", arguments.model, is_paid=True)
        report = outputs.open("--report", arguments.report, is_paid=True)
        files = {
            name: outputs.required("--out", arguments.out / f"{name}.csv", is_paid=True)
            for name in paths
        }
        with journal.ahead(linked.ledger, arguments.max_epsilon):
            sources = _opened(arguments, linked, paths, out)
            with own_errors(ValueError):
                allowed = _by_table(name for name in arguments.allow_lost if name not in out)
                running = RunningTables.of(linked, sources, allowed, _prior(arguments, linked))
            before = running.told_before
            say_each(before)
            fitted = None
            journal.follow(running, arguments, lambda: _answers(fitted))
            with own_errors(), shown("Fitting", not arguments.quiet) as progress:
                fitted = running.run(progress)
        try:
            with shown("Sampling", not arguments.quiet) as progress, one_step(progress, "sample"):
                rows = fitted.sample(arguments.rows)
        finally:  # it goes on after the rows, and is kept without them
            outputs.attempt(model, fitted.save)
        for name, own in rows.items():
            outputs.attempt(files[name], _writing(arguments, name, own))
        outputs.attempt(report, fitted.report)
    if arguments.quiet:
        say_each(fitted.warnings, but=before)
    else:
        print(report_in_options(str(fitted.report())))


def _prior(arguments: Namespace, linked: TablesSettings) -> Prior | None:
    """The families of ``--prior``: a kept model, or public tables whose files have their names."""
    if not (given := arguments.prior):
        return None
    require_others(given, arguments.table)
    if len(given) == 1 and given[0].suffix == ".zip":
        return Prior(kept_in(given[0]), name=given[0].name)
    public = {_table_of(path): path for path in given}
    if public.keys() != set(linked.tree.tables):
        raise CommandError(
            "--prior takes one kept model of such tables here, a .zip file, or a file of each "
            f"table, named as it: {', '.join(linked.tree.tables)}."
        )
    opened = _opened(arguments, linked, public)
    return Prior(opened, name=", ".join(map(str, given)))


def _table_of(path: Path) -> str:
    """The name of a file's table."""
    return path.name.split(".")[0]


def _answers(fitted: FittedTables | None) -> list[Measurement] | None:
    """All noisy answers of what was fitted; ``None`` if it was not."""
    if fitted is None:
        return None
    releases = [each.fitted.release for each in fitted.tables.values()]
    return [answer for each in releases if each is not None for answer in each.measurements]


def _writing(arguments: Namespace, name: str, rows: Any) -> Callable[[Path], None]:
    """Writes rows of a table into its file of the folder."""
    return partial(write_rows, rows, path=arguments.out / f"{name}.csv", of_text=kept_of(arguments))


def describe(arguments: Namespace, tables: FittedTables) -> None:
    """Prints what a model of tables is and what it has spent, and writes its page if asked to."""
    if arguments.officer or arguments.methods:
        raise CommandError("--officer, --methods: not taken with tables that belong together.")
    with Outputs(inputs=[arguments.model], force=arguments.force) as outputs:
        outputs.write(outputs.open("--report", arguments.report), tables.report)
    print(type(tables).__name__)
    for name, columns in tables.columns.items():
        facts = tables.tables[name].fitted.description.columns
        print(f"  {name}")
        for column in columns:
            print(f"    {column}: {facts.get(column, {'sdtype': 'id'})['sdtype']}")
    print(f"\n{report_in_options(tables.privacy_report())}")


def sample(arguments: Namespace, conditions: Callable[..., dict[str, Any]]) -> None:
    """Writes the next rows of a model of tables, a file each in a folder.

    ``conditions`` makes those on rows of the root, of what a model of it is.
    """
    if arguments.mark or arguments.on:
        raise CommandError("--mark, --on: not taken with tables that belong together.")
    with moving_on(arguments) as (outputs, place):
        tables = kept_in(arguments.model)
        if not isinstance(tables, FittedTables):
            raise CommandError(f"--out {arguments.out} is a folder, and the model of one table.")
        if arguments.again:
            tables.reset_sampling()
        files = {n: outputs.open("--out", arguments.out / f"{n}.csv") for n in tables.tables}
        where = conditions(arguments, tables.tables[tables.tree.root], {})
        with (
            own_errors(ValueError),
            shown("Sampling", not arguments.quiet) as progress,
            one_step(progress, "sample"),
        ):
            rows = tables.sample(arguments.rows, where=where)
        for name, own in rows.items():
            outputs.write(files[name], _writing(arguments, name, own))
        outputs.write(place, tables.save)


def comparing(arguments: Namespace, tables: FittedTables) -> Callable[[Path], Any]:
    """Reads real tables, and returns what writes a page that compares with them. Not private."""
    if arguments.label or arguments.held_out:
        raise CommandError("--label, --held-out: not taken with tables that belong together.")
    real = {}
    for path in arguments.table:
        name = _table_of(path)
        if name not in tables.tables:
            known = ", ".join(tables.tables)
            raise CommandError(f"{path} is of no table of the model: those are {known}.")
        own, words = tables_in([path]), tables.tables[name].fitted.description.words
        facts = {column: words.get(column, {"sdtype": "id"}) for column in tables.columns[name]}
        real[name] = read_table(own, reading(_of_table(arguments, name), own[0]), facts)
    return lambda path: tables.evaluate(real, path=path)


def plan(arguments: Namespace) -> None:
    """Prints what would be asked of the tables, and the errors to be expected."""
    linked, _, _ = _linked_settings(arguments, "prior")
    if arguments.rows is None:
        raise CommandError("--rows is needed, about how many rows the table has that is protected.")
    expected = with_page(arguments, lambda: planned_tables(linked, arguments.rows))
    print(report_in_options(str(expected)))


def check(arguments: Namespace) -> Report:
    """Returns what becomes of the columns of the tables, and writes it as a page if asked to."""
    linked, paths, out = _linked_settings(arguments, "prior")
    sources = _opened(arguments, linked, paths, out)
    return with_page(arguments, lambda: tables_report(linked, sources))


def audit(arguments: Namespace) -> Report:
    """Returns the audit of what the options say, on families that are made up."""
    from sdv_privpgd.audit.families import audited_tables

    linked, _, _ = _linked_settings(arguments)
    return audited_tables(linked, runs=arguments.runs)


def _opened(
    arguments: Namespace,
    linked: TablesSettings,
    paths: Mapping[str, Path],
    out: Sequence[str] | None = None,
) -> dict[str, Source]:
    """The tables, of which no row is read yet.

    It says which columns nothing describes, but for those that are left ``out``. Without these
    the tables are public, and may lack columns.
    """
    names, found = _by_table(out or ()), {}
    for name, path in paths.items():
        own, facts = tables_in([path]), _facts(linked, name)
        how = reading(_of_table(arguments, name), own[0])
        if out is None:
            held = open_table(own, how, {}).names
            found[name] = open_table(own, how, {c: each for c, each in facts.items() if c in held})
        else:
            found[name] = open_described(own, how, facts, names.get(name, ()))
    return found


def _linked_settings(
    arguments: Namespace, *refused: str
) -> tuple[TablesSettings, dict[str, Path], list[str]]:
    """What the options say of tables, the file of each, and the columns that are left out.

    Other options are ``refused``, too. No table is opened but to detect types.
    """
    usual = arguments.usual
    if given := [n for n in (*_NOT_TAKEN, *refused) if getattr(arguments, n, None) != usual.get(n)]:
        options = ", ".join(f"--{name.replace('_', '-')}" for name in given)
        raise CommandError(f"{options}: not taken with tables that belong together (--link).")
    if arguments.delta is None:
        raise CommandError("--delta is needed: the number of rows is private.")
    paths = {_table_of(path): path for path in getattr(arguments, "table", ())}  # an audit has none
    known: Any = None if arguments.metadata is None else read_json(arguments.metadata)
    domain: Any = {} if arguments.domain is None else read_json(arguments.domain)
    try:
        with own_errors(ValueError):
            links = [*map(_link, arguments.link)] or [
                tuple(each[end] for end in _ENDS)
                for each in (known or {}).get("relationships") or ()
            ]
            tables = _declared(arguments, paths, links, known, domain)
            metadata, most, starts = _linked(arguments, tables, links)
            told = {**domain, **{name: each.domain for name, each in tables.items()}}
            keep = arguments.public_metadata
            named = {"starts": starts, "counts": dict(arguments.count)}
            named |= {"numbers": dict(arguments.numbered)}
            columns, links = read_tables(metadata, told, most, keep=keep, **named)
            for name, each in tables.items():
                own = {
                    column: Key(each.columns[column].get("regex_format")) for column in each.made_up
                }
                own |= columns[name]
                columns[name] = {column: own[column] for column in each.columns if column in own}
    except (AttributeError, KeyError, TypeError):
        if known is None and not domain:
            raise
        raise CommandError(
            f"{arguments.metadata} is not SDV's metadata of several tables, or --domain has not "
            "the facts of each by table and column."
        ) from None
    out = _left_out(arguments, tables)
    if paths and set(paths) != set(columns):
        raise CommandError(
            f"The tables are {sorted(paths)!r} by their files, and {sorted(columns)!r} by "
            "--metadata: give each file the name of its table."
        )
    with own_errors(ValueError):
        linked = TablesSettings.of(
            columns,
            links,
            arguments.epsilon,
            arguments.delta,
            read_constraints(getattr(arguments, "constraints", None), columns),
            discovery_share=arguments.discovery_share,
            method=arguments.method,
            seed=arguments.seed,
        )
        linked = replace(linked, questions=_questions(arguments, linked))
        linked.require()
    return linked, paths, [*out, *getattr(arguments, "drop", ())]


def _questions(arguments: Namespace, linked: TablesSettings) -> dict[str, list[Question]]:
    """The listed questions by table, each behind the name of its table."""
    found: dict[str, list[Question]] = {}
    for text in getattr(arguments, "question", ()):
        table, _, asks = text.partition(":")
        if table not in linked.tree.tables:
            raise CommandError(
                f"--question {text!r} is not TABLE: QUESTION, of one of "
                f"{list(linked.tree.tables)!r}."
            )
        facts = linked.options_of(table)[1].words
        found.setdefault(table, []).append(question(asks, facts, signs_of(arguments)))
    return found


def _declared(
    arguments: Namespace,
    paths: Mapping[str, Path],
    links: Sequence[tuple[str, str, str, str]],
    known: Mapping[str, Any] | None,
    domain: Mapping[str, Mapping[str, dict]],
) -> dict[str, Declared]:
    """What is public of the columns of each table, of which those of links are made up.

    It is what SDV's metadata says, if it is ``known``, or else types that the tables have; and what
    the options and the domain say.
    """
    if known is None and not (paths and links):
        raise CommandError(
            "--metadata is needed, SDV's of all tables, or the tables and their --link."
        )
    tables = paths if known is None else known["tables"]
    named = {table for child, _, above, _ in links for table in (child, above)}
    if unknown := sorted(named - {*tables}):
        raise CommandError(f"--link names {unknown[0]!r}, and the tables are {sorted(tables)!r}.")
    ends = [(child, key) for child, key, _, _ in links] + [each[2:] for each in links]
    for option in ("drop", "make_up", "dtype"):
        for given in getattr(arguments, option, ()):
            name = getattr(given, "name", given)
            table, _, own = name.partition(".")
            is_key = (table, own) in ends and option != "dtype"  # whose cells may have a type
            if table not in tables or not own or is_key:
                said = f"--{option.replace('_', '-')} {name}"
                raise CommandError(f"{said} is no TABLE.COLUMN, or a key of --link.")
    found: dict[str, Declared] = {}
    for name in tables:
        own = Namespace(**vars(_of_table(arguments, name)), is_said=bool(found))
        files = tables_in([paths[name]]) if name in paths else []
        facts = None if known is None else {"tables": {name: tables[name]}}
        own_domain = domain.get(name, {})
        each = described(own, files, own_domain, facts)
        keys = [key for table, key in ends if table == name]
        if known is None and (unknown := sorted({*keys} - each.columns.keys())):
            path = paths[name]
            raise CommandError(f"--link names {name}.{unknown[0]}, and {path} has no such column.")
        made_up = (*each.made_up, *keys)
        aside = {column: {"sdtype": "unknown"} for column in each.dropped}
        for column in made_up:
            aside[column] = {**each.columns.get(column, {}), "sdtype": "id"}
        declared = {n: e for n, e in each.domain.items() if n in own_domain or n not in made_up}
        found[name] = replace(
            each, columns={**each.columns, **aside}, domain=declared, made_up=made_up
        )
    return found


def _of_table(arguments: Namespace, table: str) -> Namespace:
    """The options of one of the tables: columns that are named as TABLE.COLUMN are its own."""
    own = {n: _by_table(getattr(arguments, n, ())).get(table, []) for n in ("drop", "make_up")}
    typed = [(each, each.name.partition(".")) for each in getattr(arguments, "dtype", ())]
    own["dtype"] = [replace(each, name=name) for each, (of, _, name) in typed if of == table]
    return Namespace(**{**vars(arguments), **own})


_NO_LINK = "{} would not be in the rows: they look like ids, and no --link names them."


def _left_out(arguments: Namespace, tables: Mapping[str, Declared]) -> list[str]:
    """The columns that are left out, and says so.

    Raises ``CommandError`` for those that identify nobody and are not allowed to be lost.
    """
    people, out, lost = People(rows_are_people=True), [], {}  # nobody is asked whose rows they are
    for table, found in tables.items():
        for name, facts in found.columns.items():
            if facts["sdtype"] not in MODELLED and name not in found.made_up:
                out.append(f"{table}.{name}")
        for name, why in found.lost(people).items():
            is_id = found.columns[name]["sdtype"] == "id" or name in found.keys
            lost[f"{table}.{name}"] = _NO_LINK if is_id else why
    # An audit has no rows to lose.
    said = on_lost(lost, getattr(arguments, "allow_lost", lost), people)
    if said:
        refuse(["Nothing was spent. " + said[0], *said[1:]])
    if out:
        say(f"Left out: {listed(out)}. Ids, and what identifies people, are not in the rows.")
    return out


def _linked(
    arguments: Namespace,
    declared: Mapping[str, Declared],
    links: Sequence[tuple[str, str, str, str]],
) -> tuple[dict[str, Any], dict[str, int], dict[str, str]]:
    """SDV's metadata of the tables, with the links and orders that options name.

    By table, how many rows lead to one, and where its order starts.
    """
    tables: dict[str, dict[str, Any]] = {}
    for name, each in declared.items():
        tables[name] = {**each.table, "columns": each.columns}
        for _, _, above, key in links:
            if above == name:
                tables[name].setdefault("primary_key", key)
    children = [child for child, _, _, _ in links]
    most, starts = dict(arguments.max_children), {}
    if "" in most:
        most = {**dict.fromkeys(children, most[""]), **most}
    for text in arguments.in_order:
        column, _, start = text.partition("=")
        child, _, order = column.partition(".")
        if child not in children or not order:
            raise CommandError(f"--in-order {text} names no column of a table that leads to one.")
        tables[child]["sequence_index"] = order
        starts |= {child: start} if start else {}
    relationships = [dict(zip(_ENDS, ends, strict=True)) for ends in links]
    return {"tables": tables, "relationships": relationships}, most, starts


_ENDS = "child_table_name", "child_foreign_key", "parent_table_name", "parent_primary_key"
"""SDV's words for what ``--link`` names."""


def _by_table(names: Iterable[str]) -> dict[str, list[str]]:
    """Columns that are named as TABLE.COLUMN, by table."""
    return grouped((table, own) for table, _, own in (name.partition(".") for name in names))


def _link(text: str) -> tuple[str, str, str, str]:
    child, _, parent = text.partition("=")
    (own, _, key), (above, _, to) = child.partition("."), parent.partition(".")
    if not (own and key and above and to):
        raise CommandError(f"--link {text} is not CHILD.KEY=PARENT.KEY.")
    return own, key, above, to


def _facts(linked: TablesSettings, name: str) -> dict[str, Any]:
    """What is public of a table's columns, by which its file is read."""
    own = {c: {"sdtype": getattr(f, "sdtype", "id"), **f} for c, f in linked.columns[name].items()}
    return {**own, **{each: {"sdtype": "id"} for each in linked.tree.keys_of(name)}}
