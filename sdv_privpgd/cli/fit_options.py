"""What the options ask of a table: declared columns, settings, conditions and questions. Public."""

import re
from argparse import Namespace
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date, time
from decimal import Decimal
from pathlib import Path
from shlex import quote
from typing import Any

import numpy as np
import pandas as pd
from pandas.api.types import is_numeric_dtype

from sdv_privpgd._lazy import need
from sdv_privpgd.base import cached_property
from sdv_privpgd.base.arguments import check_known
from sdv_privpgd.base.words import grouped, in_columns, listed
from sdv_privpgd.cli.input_files import (
    Typed,
    kind_read,
    known_types_in,
    meanings,
    read_table,
    reading,
    require_read,
    types_in,
)
from sdv_privpgd.cli.messages import CommandError, own_errors, refuse, say, say_each
from sdv_privpgd.cli.metadata_files import (
    declared_type,
    has_format,
    metadata_of,
    read_constraints,
    read_facts,
    read_metadata,
)
from sdv_privpgd.columns.dialect import Facts, is_number
from sdv_privpgd.columns.dtypes import is_of_times
from sdv_privpgd.columns.names import WHOSE, is_id, on_repeated_ids, repeated_ids
from sdv_privpgd.columns.vocabulary import KEYS, as_declared, facts_in, modelled
from sdv_privpgd.drafting.checks import refused
from sdv_privpgd.drafting.formats import (
    are_all,
    are_seldom_categories,
    detectable,
    exactly,
    may_swap,
    places_of,
    type_of,
)
from sdv_privpgd.drafting.template import facts_of, sdtype_of, table_of
from sdv_privpgd.fitting.description import Description
from sdv_privpgd.fitting.fates import IDENTIFYING
from sdv_privpgd.fitting.options import check_match, parse_options, require_plain_weights
from sdv_privpgd.fitting.settings import People, Settings, usual_delta, with_bins, with_sequence
from sdv_privpgd.inference.question_list import Question
from sdv_privpgd.privacy.ledger import PrivacyLedger
from sdv_privpgd.report.measures import MANY
from sdv_privpgd.report.warnings import on_delta
from sdv_privpgd.sources.texts import Signs, number_in, signs_of

_ENDS = {"range_min", "range_max", "range_values", "groups", "prefix"}
"""Facts that say where the values of a column lie."""

_ZONE = re.compile("(Z|[+-][0-9]{2}:?[0-9]{2})$")
"""The time zone of a moment in text."""

_AMOUNT = re.compile("234[.,]5|[€$£%]")
"""What the format of 1234.5 has that is of no id: decimals, or what amounts are in."""

_NOT_MODELLED = (
    "{} would not be in the rows: by their types they are no numbers, dates or categories."
)
_NAMED = "{} would not be in the rows: by their names they identify people, and by their cells not."
_TEXT = (
    "{} would not be in the rows: no number, date or time is read in all of their cells, or dates "
    "in two ways (05/01/2024 is in January or in May), and most of these differ, or are numbers or "
    "dates. --skip-footer 1 leaves out a line of sums, --na WORD says which word among them is "
    "missing, and --thousands SIGN what is between thousands."
)
_EMPTY = "{} would not be in the rows: nothing is in their cells, which says no type."
_NUMBERED = "{} would get new numbers, whatever the table says there: their cells look like ids."
_NO_KEYS = "{} are ids by their names and no keys, so that several rows may have the same."
"""Why a column would be lost, with its name in the place of ``{}``."""


@dataclass(frozen=True, kw_only=True)
class Declared:
    """What is public of each column of a table."""

    # SDV's facts on each, by the metadata or by types that were found.
    columns: Mapping[str, Mapping]
    keys: Sequence[str]  # those of which no two rows have the same
    domain: Mapping[str, Mapping]  # what goes before the metadata
    source: str = "--metadata"  # what says the types
    # Columns of which something else does, and what.
    said: Mapping[str, str] = field(default_factory=dict)
    table: Mapping[str, Any] = field(default_factory=dict)  # SDV's other facts on the table
    dropped: Collection[str] = ()  # those that are to be left out
    made_up: Collection[str] = ()  # those that are not read, and are made up

    @property
    def metadata(self) -> dict[str, Any]:
        """The columns and the keys as SDV has them."""
        return {"columns": self.columns, "alternate_keys": list(self.keys)}

    @property
    def sdtypes(self) -> Facts:
        """The sdtype of each column that is described, also of those that are not modelled."""
        return {name: {"sdtype": each.get("sdtype")} for name, each in self.columns.items()}

    def lost(self, people: People) -> dict[str, str]:
        """Why columns would be left out or made up, though they identify nobody, by their names.

        Detection takes for an id whatever is never the same twice, and whatever is called so. It is
        a key if both are the case. What else is called like an id and modelled is lost where nobody
        says whose the rows are.
        """
        kept, names = modelled(self.columns, self.keys), (*self.dropped, *self.made_up)
        lost = {}
        for name, known in self.columns.items():
            sdtype, is_named = known.get("sdtype"), is_id(name)
            is_said = self.source == "--metadata" or name in self.said
            if name in (*names, people.column) or sdtype in IDENTIFYING:
                continue
            if sdtype == "id" or name in self.keys:
                if not (is_said or (name in self.keys and is_named)):
                    lost[name] = _NO_KEYS if is_named else _NUMBERED
            elif name not in kept:
                said = {"unknown": _TEXT, "empty": _EMPTY, "personal": _NAMED}
                why = said.get(str(sdtype), _NOT_MODELLED)
                lost[name] = _NOT_MODELLED if is_said else why
            elif is_named and not (
                is_said or people.is_said or self.domain.get(name, {}).keys() & _ENDS
            ):
                lost[name] = _NO_KEYS
        return lost

    def for_fit(self, *, public_metadata: bool, people: People | None = None) -> dict[str, dict]:
        """What ``fit_table`` is told of each column; for other ``people`` than none, of ids, too.

        Ranges in the metadata count only if they are public.
        """
        names, person = modelled(self.columns, self.keys), people and people.column
        found, left = {}, []
        for name, known in self.columns.items():
            key = {"sdtype": "id"}
            if pattern := known.get("regex_format"):
                key["regex_format"] = pattern
            is_key = known.get("sdtype") == "id" or name in (person, *self.keys)
            if name in self.dropped:
                continue
            if name in self.made_up:
                found[name] = key
            elif name in names and name != person:
                own = self.domain.get(name, {})
                found[name] = {**facts_in(known, keep=public_metadata), **own}
            elif people is None or not is_key:
                left.append(name)
            elif name != person or people.sequence_index is None:  # else persons are numbered
                found[name] = {**key, "repeats": name not in self.keys}
        if left:
            say(
                f"Left out: {listed(left)}. {'Keys, ids, and w' if people is None else 'W'}hat an "
                "sdtype says is no number, date or category, such as personal data, is not in the "
                "rows."
            )
            ids = repeated_ids({name: self.columns[name] for name in left}, self.keys)
            if people is not None:
                say_each(on_repeated_ids(ids, says_whose=people.is_said))
        return found


def declared(arguments: Namespace, tables: Sequence[Path] = ()) -> Declared:
    """What metadata, or types that a table has, and a domain file say of its columns.

    All that is wrong with the domain is said, in order; ``CommandError`` is raised for the last.
    """
    domain = read_facts(arguments.domain, getattr(arguments, "decimal", None) or ".")
    known = read_metadata(arguments.metadata) if arguments.metadata else None
    found = described(arguments, tables, domain, known)
    if wrong := refused(found.metadata, found.domain):
        refuse(wrong)
    return found


def described(
    arguments: Namespace, tables: Sequence[Path], domain: Mapping[str, dict], known: Facts | None
) -> Declared:
    """The same of what is ``known`` by SDV's metadata, if there is one, and a domain that is read.

    Nothing is said of what is wrong with the domain.
    """
    decimal, said, domain = getattr(arguments, "decimal", None) or ".", {}, dict(domain)
    for each in getattr(arguments, "dtype", ()):
        places = domain.get(each.name, {}).get("decimal_places")
        if words := each.facts(decimal, places):
            own = {key: fact for key, fact in domain.get(each.name, {}).items() if fact is not None}
            domain[each.name] = {**words, **own, "sdtype": words["sdtype"]}
            said[each.name] = "--dtype"
    if known is None and tables:
        found = _typed(arguments, tables, domain, said)
    else:
        facts = _metadata_in(domain) if known is None else known
        (table,) = facts["tables"].values()
        columns, keys = table_of(facts)
        named = as_declared(columns, keys, domain)
        others = {n: "--domain" for n, own in named.items() if own != columns[n]}
        found = Declared(columns=named, keys=keys, domain=domain, table=table)
        found = _retyped(found, {n: domain[n]["sdtype"] for n in said}, {**others, **said})
    _ = _among(found.columns, "--dtype", list(said))
    dropped = left_out(arguments, list(found.columns))
    made_up = _among(found.columns, "--make-up", getattr(arguments, "make_up", ()))
    read = {
        name: facts
        for name, facts in found.domain.items()
        if name not in (*dropped, *made_up) and (facts or name not in found.said)
    }
    return replace(found, domain=read, dropped=dropped, made_up=made_up)


def _metadata_in(domain: Mapping[str, dict]) -> dict[str, Any]:
    """SDV's metadata of columns whose types the domain says. Raises ``CommandError`` for others."""
    kinds = {name: declared_type(facts) for name, facts in domain.items()}
    if not kinds or None in kinds.values():
        raise CommandError(
            "--metadata is needed, or all types in --domain, the same for all sites: types that "
            "are detected in one site's cells may be others than in another's."
        )
    return metadata_of(kinds)


def left_out(arguments: Namespace, names: Sequence[str]) -> list[str]:
    """The columns that the options leave out. Raises ``CommandError`` for what is no column."""
    kept = _among(names, "--columns", getattr(arguments, "columns", ()))
    dropped = _among(names, "--drop", getattr(arguments, "drop", ()))
    if twice := sorted({*kept} & {*dropped}):
        raise CommandError(f"--columns and --drop both name {twice!r}.")
    found = [name for name in names if name in dropped or (kept and name not in kept)]
    if len(found) == len(names):
        raise CommandError(f"{'--drop leaves' if dropped else 'The table has'} no column.")
    return found


def _among(names: Collection[str], option: str, named: Sequence[str]) -> Sequence[str]:
    """The same names. Raises ``CommandError`` for one that is none of the columns."""
    with own_errors(ValueError):
        check_known(option, named, names, "columns")
    return named


def _typed(
    arguments: Namespace, tables: Sequence[Path], domain: Mapping[str, dict], options: Mapping
) -> Declared:
    """The types of a table that has no metadata. Detection reads all of it.

    Columns are of the types that what is declared of them says: to detection, and to the dtype of
    text, dates such as 05.01.2024 are categories or ids, and to detection numbers of which there
    are few different ones are categories.
    """
    how, keys = replace(reading(arguments, tables[0]), declared=tuple(domain)), []
    source = "dtype" if arguments.types == "dtypes" else "detected"
    kinds = {name: kind for name, facts in domain.items() if (kind := declared_type(facts))}
    said = {**dict.fromkeys(kinds, "--domain"), **options}
    columns: dict[str, dict] = {}
    if arguments.types == "dtypes":
        dtypes = types_in(tables, how, options)
        ignored = (*left_out(arguments, list(dtypes)), *getattr(arguments, "make_up", ()))
        require_read(tables, how, (*ignored, *options))
        for name, dtype in dtypes.items():
            kind = "unknown" if name in ignored else kinds.get(name) if name in options else None
            columns[name] = {"sdtype": kind or sdtype_of(name, dtype)}
            if is_of_times(dtype) and name not in said:
                domain = {**domain, name: facts_of(dtype)}
        if kind_read(tables[0]).form != "parquet":
            dates = [name for name, dtype in how.dtypes.items() if dtype.kind == "M"]
            if unsaid := [name for name in dates if not has_format(domain.get(name))]:
                say(
                    f"The dates of {unsaid!r} are read in ISO 8601, such as 2024-01-31, and all "
                    "others count as missing: a datetime_format in --domain says another form."
                )
    elif said and set(names := list(map(str, known_types_in(tables, how)))) <= set(said):
        columns = {name: {"sdtype": kinds[name]} for name in names}
    else:
        columns, keys, written = detected(arguments, tables, how)
        for name, dtype in how.dtypes.items():  # what is personal by its name alone is modelled
            own = columns.get(name, {}).get("sdtype", "id")
            if own != "id" and own not in KEYS:
                columns[name] = {"sdtype": sdtype_of(name, dtype)}
                said[name] = "--dtype"
        for name, words in written.items():
            own = {key: fact for key, fact in domain.get(name, {}).items() if fact is not None}
            is_said = kinds.get(name, words["sdtype"]) != words["sdtype"] or name in options
            # Declared ends of dates are written as nobody may have said.
            if not (is_said or (own and "datetime_format" in words)):
                domain = {**domain, name: {**words, **own}}
                kinds[name] = words["sdtype"]
    found = Declared(columns=columns, keys=keys, domain=domain, source=source)
    return _retyped(found, kinds, said)


def _retyped(found: Declared, kinds: Mapping[str, str], said: Mapping[str, str]) -> Declared:
    """The same, with columns of the types that the domain or ``--dtype`` says they are."""
    columns, keys, domain = dict(found.columns), found.keys, found.domain
    for name in columns.keys() & kinds.keys():
        own, is_told = columns[name]["sdtype"], has_format(domain[name])
        is_ordered = own == "ordinal" and "sdtype" not in domain[name]
        if is_told or (own != kinds[name] and not (is_ordered and kinds[name] == "categorical")):
            form = {"datetime_format": domain[name]["datetime_format"]} if is_told else {}
            columns[name] = {"sdtype": kinds[name], **form}
            keys = [key for key in keys if key != name]  # what is unique is taken for a key
    plain = {name: dict(facts) for name, facts in domain.items()}
    for name, facts in plain.items():
        if name in kinds or facts.get("sdtype") is None:
            facts.pop("sdtype", None)
    return replace(found, columns=columns, keys=keys, domain=plain, said=said)


def detected(
    arguments: Namespace, tables: Sequence[Path], how: Any
) -> tuple[dict[str, dict], list[str], dict[str, dict]]:
    """Returns the types that cells have, keys, and how text is written. They become public.

    It says so, unless the arguments tell that it ``is_said``.

    SDV finds them. Numbers are numbers here, however few different ones there are: their range is
    found among fewer rows than a category. Whole numbers, and dates, times and numbers of text, are
    told by all of their cells, and text of which most cells differ is of no category.
    """
    try:
        need("Detecting types", "sdv")
    except ImportError as error:
        raise CommandError(
            f"{error} Or say the types: with --metadata, with --types dtypes, or with an sdtype of "
            "each column in --domain."
        ) from None
    from sdv.metadata import Metadata

    dropped = left_out(arguments, list(map(str, known_types_in(tables, how))))
    table = read_table(tables, how, None).drop(columns=dropped)
    require_read(tables, how, dropped, table.dtypes.to_dict())
    if not getattr(arguments, "is_said", False):
        say(
            "The types and formats of the columns were detected from the table and are taken as "
            "public; --metadata says them without looking, and so does --types dtypes."
        )
    try:
        columns, keys = table_of(Metadata.detect_from_dataframes({"table": detectable(table)}))
    except Exception as error:  # noqa: BLE001 - its text may hold a value of the table
        kind = type(error).__name__
        raise CommandError(
            f"SDV cannot detect the columns' types ({kind}). Give them with --metadata."
        ) from None
    written: dict[str, dict] = {}
    for name, kind in [(name, own["sdtype"]) for name, own in columns.items()]:
        column = pd.Series(table[name].dropna())
        is_open, cells = name not in (*keys, *how.dtypes) and len(column) > 0, []
        is_number = kind in ("ordinal", "numerical") and is_numeric_dtype(column.dtype)
        if len(column) == 0 < len(table) and name not in how.dtypes:
            columns[name] = {"sdtype": "empty"}
        elif is_open and are_all(time, column):
            written[name] = dict(Typed.of("=time").words)
        elif kind == "datetime" and (column.dtype.kind == "M" or are_all(date, column)):
            written[name] = {"sdtype": kind}
            columns[name].pop("datetime_format", None)  # they are no text
        elif is_number or (is_open and are_all(Decimal, column)):
            named = 0 if column.dtype.kind in "iu" else None
            places = places_of(column, MANY) if is_open else named
            written[name] = {"sdtype": "numerical", "decimal_places": places}
            is_whole = is_number and is_open and places == 0
            if is_whole and column.between(1900_01_01, 2099_12_31).all():
                cells = [str(int(number)) for number in column.unique()]
        elif len(column) > 0 and name not in how.dtypes and kind in ("categorical", "id"):
            cells = [*column.unique()]
            if all(isinstance(cell, bool | np.bool_) for cell in cells):
                written[name] = {"sdtype": "boolean"}
        if kind in IDENTIFYING and _tells_nobody(column):
            columns[name] = {"sdtype": "personal"}  # by its name alone: it is asked for
        form = columns[name].get("datetime_format") or ""
        zones = {"".join(_ZONE.findall(str(cell))) for cell in column.unique()} if form else set()
        if form.endswith("%z") and len(zones) == 1 and all(zones):
            form = f"{form[:-2]}{zones.pop()}"  # as it is written
        if form and all(isinstance(cell, str) for cell in column.unique()):
            if may_swap(days := [*column.unique()], form):
                form = (type_of(days) or "").removeprefix("date:")
            columns[name] = {"sdtype": "unknown"}
            if form:
                columns[name] = {"sdtype": kind, "datetime_format": exactly(days, form)}
        if cells and all(isinstance(cell, str) for cell in cells):
            said = type_of(cells)
            may_be_id = kind == "id" and (said or "").startswith("number")
            if said and (not may_be_id or _AMOUNT.search(said)):
                written[name] = Typed.of(f"{name}={said}").facts(arguments.decimal or ".")
            elif kind == "categorical" and (
                2 * len(cells) > len(column) or are_seldom_categories(cells)
            ):
                columns[name] = {"sdtype": "unknown"}
    for words in written.values():
        words["range_is_nullable"] = True  # all cells that are there can be read
    return {**columns, **{name: {"sdtype": "unknown"} for name in dropped}}, keys, written


def _tells_nobody(column: pd.Series) -> bool:
    """Whether cells that many rows share are numbers, or true and false."""
    different = [*column.unique()]
    is_truth = len(different) == 2 and (type_of(list(map(str, different))) or "").startswith("bool")
    return (is_numeric_dtype(column.dtype) or is_truth) and 2 * len(different) <= len(column)


@dataclass(frozen=True, kw_only=True)
class FitOptions:
    """What a fit is asked for by the options."""

    declared: Declared  # what is public of the columns
    options: Mapping[str, Any]  # the arguments of ``fit_table``
    # A sentence on columns that would be left out unasked, if there are any.
    lost: Sequence[str] = ()

    @cached_property
    def parts(self) -> tuple[Settings, Description]:
        """The settings and the description. Raises ``CommandError`` for what no fit can ask."""
        with own_errors(ValueError):  # public: no table is near
            settings, description = parse_options(**self.options)
            check_match(settings, description)
        return settings, description

    @property
    def facts(self) -> Facts:
        """The public facts on each column that the table has."""
        return {**self.declared.sdtypes, **self.parts[1].words}

    def table(self, description: Description) -> str:
        """A table of the columns: their types, who says so, and what is known of their values.

        The ``description`` may lean on public rows.
        """
        own, known = self.declared, description.value_sources
        rows = [("column", "type", "type from", "values")]
        for name, source in self.parts[1].value_sources.items():
            says = own.said.get(name, own.source)
            values = source if source == known[name] else "of the prior"
            rows.append((name, description.columns[name]["sdtype"], says, values))
        return "\n".join(in_columns(rows))


def questions(
    arguments: Namespace, tables: Sequence[Path] = (), *, stops: bool = True
) -> FitOptions:
    """What the options ask. Raises ``CommandError`` for what is wrong with them.

    If it ``stops``, columns that would be left out unasked are wrong.
    """
    found = declared(arguments, tables)
    people = people_of(arguments, found.table)
    with own_errors(ValueError):
        method = with_bins(arguments.method, arguments.num_bins, seed=arguments.seed)
    _ = _among(found.columns, "--person-column", [*filter(None, [people.column])])
    found = unweighted(found, arguments)
    allowed = _among(found.columns, "--allow-lost", getattr(arguments, "allow_lost", ()))
    said = on_lost(found.lost(people), allowed, people)
    if said and stops:
        refuse(["Nothing was spent. " + said[0], *said[1:]])
    same = ("epsilon", "delta", "adjacency", "discovery_share", "target", "seed")
    options = {
        "columns": found.for_fit(public_metadata=arguments.public_metadata, people=people),
        "people": people,
        "method": method,
        "constraints": read_constraints(arguments.constraints).get("", []),
        **{name: getattr(arguments, name) for name in same},
    }
    if sentences := getattr(arguments, "question", ()):
        signs = signs_of(arguments)
        options["questions"] = [question(each, options["columns"], signs) for each in sentences]
    asks = FitOptions(declared=found, options=options, lost=said)
    _ = asks.parts  # raises
    return asks


def on_lost(lost: Mapping[str, str], allowed: Collection[str], people: People) -> list[str]:
    """Sentences on columns that would be lost and are not allowed to be, and what mends that."""
    reasons = grouped((why, name) for name, why in lost.items() if name not in allowed)
    said = [why.format(listed([*map(repr, names)])) for why, names in reasons.items()]
    if said:
        names = quote(",".join(name for each in reasons.values() for name in each))
        said.append(
            "Say what they are (--dtype COLUMN=number, id, date, date:%d.%m.%Y, or category if "
            f"many rows share each value), leave them out (--drop {names}), or have values made "
            f"up (--make-up {names})."
        )
    return [*said, WHOSE] if _NO_KEYS in reasons and not people.is_said else said


def unweighted(found: Declared, arguments: Namespace) -> Declared:
    """The same without the column of weights, which is not modelled unless ``--columns`` names it.

    Raises ``CommandError`` if there is no such column, or if it is known to be written otherwise
    than weights are read.
    """
    name = arguments.weight_column
    if name is None:
        return found
    _ = _among(found.columns, "--weight-column", [name])
    with own_errors(ValueError):
        require_plain_weights(name, found.domain.get(name, {}).get("number_format"))
    kept = found.dropped if name in arguments.columns else (*found.dropped, name)
    return replace(found, dropped=kept)


def people_of(arguments: Namespace, table: Mapping[str, Any]) -> People:
    """Whose the rows are, by the options and SDV's facts on the table.

    Raises ``CommandError`` for what contradicts itself.
    """
    same = ("rows_are_people", "sequence_index", "previous", "weight_column", "weight_range")
    with own_errors(ValueError):
        said = People(
            arguments.person_column,
            arguments.rows_per_person,
            weighed=arguments.weigh_people,
            context_columns=arguments.context_column,
            **{name: getattr(arguments, name) for name in same},
        )
        return with_sequence(said, table)


def planned_ledger(arguments: Namespace) -> PrivacyLedger:
    """The empty ledger of the fit. A delta that is too large for any table is said at once."""
    delta = arguments.delta
    with own_errors(ValueError):
        ledger = Settings(
            epsilon=arguments.epsilon,
            delta=usual_delta(arguments.adjacency) if delta is None else delta,
            adjacency=arguments.adjacency,
            people=people_of(arguments, {}),
            method="independent",  # pyright: ignore[reportArgumentType]  (whichever it is)
        ).ledger()
    say_each(on_delta(ledger.delta))
    return ledger


# How options write conditions and questions


def parse_condition(option: str, name: str, text: str, facts: Mapping, signs: Signs) -> Any:
    """The condition on a column: a value, ``None`` for missing, or a range."""
    from sdv_privpgd import Between

    if not text:
        return None
    if ".." in text and facts["sdtype"] in ("numerical", "datetime", "ordinal"):
        low, _, high = text.partition("..")
        ends = (_value(option, name, end, facts, signs) if end else None for end in (low, high))
        with own_errors(ValueError):
            return Between(*ends)
    return _value(option, name, text, facts, signs)


def _value(option: str, name: str, text: str, facts: Mapping, signs: Signs) -> Any:
    if not is_number(facts):
        return meanings(pd.Series([text], dtype=object), facts, signs).iloc[0]
    if (number := number_in(text, signs)) is None:
        raise CommandError(
            f"{option} {name}={text}: the column holds numbers, and {signs.decimal!r} stands "
            "before their decimals; --decimal names another sign."
        )
    return number


def question(text: str, facts: Mapping[str, Mapping], signs: Signs) -> Question:
    """The question that a sentence asks, such as "mean of cost where age=30..45 and ward=B".

    Raises ``CommandError`` for what is none.
    """
    head, *rest = re.split(r"\s+(of|where|among|minus|on)\s+", text.strip())
    parts = dict(zip(rest[::2], rest[1::2], strict=True))
    what, *q = head.split()
    options: dict[str, Any] = {"what": what}
    try:
        if q:
            options["q"] = number_in(" ".join(q), signs)
            if options["q"] is None:
                raise ValueError(f"{' '.join(q)!r} is no number, as 0.9 in 'quantile 0.9 of cost'.")
        if "of" in parts:
            named = re.split(r"\s*,\s*|\s+x\s+", parts["of"])
            options["of"] = named if what == "table" else parts["of"]
        if "on" in parts:
            options["on"] = re.split(r"\s*,\s*", parts["on"])
        for word in ("where", "among", "minus"):
            if word in parts:
                options[word] = dict(
                    _condition(each, facts, signs) for each in re.split(r"\s+and\s+", parts[word])
                )
        return Question(**options)
    except ValueError as error:
        raise CommandError(f"--question {text!r}: {error}") from None


def named_value(text: str, names: Collection[str], sign: str = "=") -> tuple[str, str] | None:
    """The name and the value on both sides of a sign, which may be in one of these names, too.

    ``None`` where no sign is.
    """
    pairs = [(text[: each.start()], text[each.end() :]) for each in re.finditer(sign, text)]
    return next((pair for pair in reversed(pairs) if pair[0] in names), pairs[0] if pairs else None)


def _condition(text: str, facts: Mapping[str, Mapping], signs: Signs) -> tuple[str, Any]:
    pair = named_value(f"{text} ", facts, r"\s*=\s*|\s+in\s+")
    if pair is None:
        raise ValueError(f"{text!r} is no condition: write COLUMN=VALUE, or LOW..HIGH.")
    name, said = pair
    if name not in facts:
        raise ValueError(f"{name!r} is no column: choose from {list(facts)!r}.")
    own, several = facts[name], said.strip().split(" or ")
    values = [parse_condition("--question", name, each, own, signs) for each in several]
    return name, values[0] if len(values) == 1 else values
