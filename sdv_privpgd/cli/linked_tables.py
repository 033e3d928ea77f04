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
from sdv_privpgd.cli.fit_options import Declared, detected, question
from sdv_privpgd.cli.input_files import (
    kept_of,
    open_described,
    open_table,
    read_table,
    reading,
    tables_in,
)
from sdv_privpgd.cli.journal import Journal
from sdv_privpgd.cli.messages import CommandError, own_errors, report_in_options, say, say_each
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
    "names", "mark", "dtype",
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
        real[name] = read_table(own, reading(arguments, own[0]), facts)
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
        how = reading(arguments, own[0])
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
    is_said = arguments.metadata is not None
    metadata, written = (read_json(arguments.metadata), {}) if is_said else _typed(arguments, paths)
    domain: Any = {} if arguments.domain is None else read_json(arguments.domain)
    try:
        with own_errors(ValueError):
            metadata, most, starts = _linked(arguments, metadata)
            declared = {name: dict(own) for name, own in domain.items()}
            for name, own in written.items():
                found = declared.setdefault(name, {})
                found |= {column: facts | found.get(column, {}) for column, facts in own.items()}
            keep = arguments.public_metadata
            named = {"starts": starts, "counts": dict(arguments.count)}
            named |= {"numbers": dict(arguments.numbered)}
            columns, links = read_tables(metadata, declared, most, keep=keep, **named)
            for name, made_up in _by_table(getattr(arguments, "make_up", ())).items():
                described, known = metadata["tables"][name]["columns"], columns[name]
                known |= {each: Key(described[each].get("regex_format")) for each in made_up}
                columns[name] = {each: known[each] for each in described if each in known}
    except (AttributeError, KeyError, TypeError):
        raise CommandError(
            f"{arguments.metadata} is not SDV's metadata of several tables, or --domain has not "
            "the facts of each by table and column."
        ) from None
    out = _left_out(arguments, metadata, {each.child: each.key for each in links}, is_said=is_said)
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


def _typed(
    arguments: Namespace, paths: Mapping[str, Path]
) -> tuple[dict[str, Any], dict[str, dict[str, dict]]]:
    """The metadata of tables whose types are detected, with the keys of links, and formats."""
    if not paths or not arguments.link:
        raise CommandError(
            "--metadata is needed, SDV's of all tables, or the tables and their --link."
        )
    links = [*map(_link, arguments.link)]
    named = {table for child, _, above, _ in links for table in (child, above)}
    if unknown := sorted(named - paths.keys()):
        raise CommandError(
            f"--link names {unknown[0]!r}, and the tables are {sorted(paths)!r} by their files."
        )
    keys, found, written = {above: to for _, _, above, to in links}, {}, {}
    for name, path in paths.items():
        tables = tables_in([path])
        how = reading(arguments, tables[0])
        own = {n: _by_table(getattr(arguments, n, ())).get(name, []) for n in ("drop", "make_up")}
        given = Namespace(**{**vars(arguments), **own})
        columns, _, own = detected(given, tables, how, is_said=bool(found))
        columns |= {column: {"sdtype": words["sdtype"]} for column, words in own.items()}
        found[name] = {"columns": columns}
        if name in keys:
            found[name]["primary_key"] = keys[name]
        ends = {keys.get(name), *(key for child, key, _, _ in links if child == name)} - {None}
        if unknown := sorted(ends - columns.keys()):
            raise CommandError(f"--link names {name}.{unknown[0]}, and {path} has no such column.")
        columns |= {key: {"sdtype": "id"} for key in ends}
        written[name] = {column: words for column, words in own.items() if column not in ends}
    return {"tables": found}, written


def _left_out(
    arguments: Namespace, metadata: Mapping[str, Any], leads: Mapping[str, str], *, is_said: bool
) -> list[str]:
    """The columns that are left out, and says so.

    Raises ``CommandError`` for those that identify nobody and are not allowed to be lost.
    """
    out, lost = [], []
    made_up = _by_table(getattr(arguments, "make_up", ()))
    for name, own in metadata["tables"].items():
        keys = {own.get("primary_key"), leads.get(name), *made_up.get(name, ())} - {None}
        source = "--metadata" if is_said else "detected"
        found = Declared(columns=own["columns"], keys=sorted(keys), domain={}, source=source)
        names = [
            column
            for column, facts in own["columns"].items()
            if facts["sdtype"] not in MODELLED and column not in keys
        ]
        out += [f"{name}.{column}" for column in names]
        lost += [f"{name}.{column}" for column in found.lost(People()) if column in names]
    # An audit has no rows to lose.
    allowed = [*getattr(arguments, "allow_lost", lost), *getattr(arguments, "drop", ())]
    if lost := [column for column in lost if column not in allowed]:
        names = ",".join(lost)
        raise CommandError(
            f"Nothing was spent. {listed([*map(repr, lost)])} would not be in the rows: by their "
            "types they are no numbers, dates or categories. Say what they are in --metadata, "
            f"leave them out (--allow-lost {names}), or have values made up (--make-up {names})."
        )
    if out:
        say(f"Left out: {listed(out)}. Ids, and what identifies people, are not in the rows.")
    return out


def _linked(
    arguments: Namespace, metadata: Mapping[str, Any]
) -> tuple[dict[str, Any], dict[str, int], dict[str, str]]:
    """The metadata with the links and orders that options name.

    By table, how many rows lead to one, and where its order starts.
    """
    links = [
        dict(zip(_ENDS, ends, strict=True)) for ends in map(_link, arguments.link)
    ] or metadata.get("relationships", ())
    tables = {
        name: {**own, "columns": {**own["columns"]}} for name, own in metadata["tables"].items()
    }
    ends = {(each[_ENDS[end]], each[_ENDS[end + 1]]) for each in links for end in (0, 2)}
    for option, sdtype in (("drop", "unknown"), ("make_up", "id")):
        for each in getattr(arguments, option, ()):
            table, _, name = each.partition(".")
            if name not in tables.get(table, {}).get("columns", ()) or (table, name) in ends:
                said = f"--{option.replace('_', '-')} {each}"
                raise CommandError(f"{said} is no TABLE.COLUMN, or a key of --link.")
            tables[table]["columns"][name] = {**tables[table]["columns"][name], "sdtype": sdtype}
    children = [each["child_table_name"] for each in links]
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
    return {**metadata, "tables": tables, "relationships": links}, most, starts


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
