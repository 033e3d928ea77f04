"""What becomes of each column, told before anything is spent. Public: no cell is read.

Names, sdtypes, declarations and dtypes decide it, and where it is public the number of rows: noise
and thresholds follow from the budget, so that it is known beforehand which columns they would hide.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from textwrap import wrap
from typing import Any

from sdv_privpgd.base.words import grouped, in_columns, listed, number_of, share
from sdv_privpgd.columns.schema import PublicDomainError
from sdv_privpgd.discovery.first_queries import FirstQueries
from sdv_privpgd.fitting.description import Description
from sdv_privpgd.fitting.fit import Fit
from sdv_privpgd.fitting.mismatch import on_few
from sdv_privpgd.fitting.options import notes_on
from sdv_privpgd.fitting.settings import Settings
from sdv_privpgd.fitting.tables_settings import TablesSettings
from sdv_privpgd.privacy.queries import Adjacency
from sdv_privpgd.report.measures import MANY, SOME, rows_in
from sdv_privpgd.report.page import Items, Page, Report, Section, Table, Text
from sdv_privpgd.report.privacy import WIDTH
from sdv_privpgd.report.release import on_links, together

IDENTIFYING = frozenset(
    [
        *("name", "first_name", "last_name", "user_name", "email", "phone_number", "ssn"),
        *("address", "street_address", "secondary_address", "passport_full", "license_plate"),
        *("credit_card_number", "iban", "bban", "swift8", "swift11", "vin", "password", "url"),
        *("ipv4_address", "ipv6_address", "mac_address", "user_agent_string", "hostname", "uri"),
    ]
)
"""SDV's sdtypes of what says who somebody is. It is made up, as it must be, and no fit stops."""

_OFTEN = {"categorical": 5, "ordinal": 5}
"""A column of categories is lost if one of them would have to be in one of so many rows to be
found. Of 80 columns with five equal categories, 32 were lost for epsilon .43 of 1 by a threshold of
24 % of 3,000 rows, and all by one of 36 % of 2,000. Of other columns it is 2: only a peak of a
range is found."""


_MANY_LINES, _LONG = 40, 60
"""A screen has about so many lines, and a name in a table at most so many letters."""


class ColumnsLostError(PublicDomainError):
    """Raised before a fit spends anything, for columns that it would make up or could not find.

    Attributes:
        columns: Their names.

    >>> issubclass(ColumnsLostError, ValueError)
    True
    """

    columns: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Fate:
    """What becomes of a column: its type, where its values come from, what rows have of it.

    It says why values are ``lost``, if they are, and what mends that. What several columns share is
    said once, with their names in the place of ``{}``.
    """

    sdtype: str
    values: str
    becomes: str
    lost: str = ""


def fates(settings: Settings, description: Description, num_rows: int | None) -> dict[str, Fate]:
    """Returns what becomes of each column in a fit to so many rows, if their number is public."""
    least = {} if num_rows is None else least_rows(settings, description, num_rows)
    found, sources = {}, description.value_sources
    for name, facts in description.columns.items():
        sdtype, lost, becomes = str(facts.get("sdtype")), "", "modelled"
        if name not in description.facts:
            is_key = name in description.keys or name in description.patterns or sdtype == "id"
            becomes = "numbered anew" if is_key else "made up"
            weighs = name == settings.people.weight_column
            if not (is_key or weighs or sdtype in IDENTIFYING):
                lost = (
                    "{} would be made up, whatever the table holds, as their sdtypes are no "
                    "modelled ones. If they are no personal data, give them the sdtype "
                    "categorical, numerical or datetime."
                )
        elif num_rows is not None and least.get(name, 0) * _OFTEN.get(sdtype, 2) > num_rows:
            becomes = "hidden by noise"
            mend = "range_values, or ranges of numbers" if sdtype in _OFTEN else "ranges"
            few, rows = (rows_in(settings.ledger(), each) for each in (least[name], num_rows))
            lost = (
                f"{{}} would be hidden: at this epsilon noise hides what fewer than {few} share, "
                f"and the table has {rows}. Declare their {mend}, choose a larger epsilon, or "
                "fewer columns."
            )
        elif getattr(description.facts[name], "is_grouped", False):
            becomes = "modelled as groups"
        found[name] = Fate(sdtype=sdtype, values=sources[name], becomes=becomes, lost=lost)
    return found


def tables_report(
    linked: TablesSettings, tables: Mapping[str, Any], more: Sequence[str] = ()
) -> Report:
    """Returns what becomes of the columns of tables that belong together, and says more. Public.

    No cell is read.
    """
    refused, found = [], {}
    asked = {name: linked.options_of(name) for name in linked.tree.tables}
    try:
        dtypes = {name: table.dtypes for name, table in linked.opened(tables)[0].items()}
    except ValueError as error:
        refused, dtypes = [str(error)], {}
    for name, (settings, description) in asked.items():
        if name in dtypes:
            description = description.of_dtypes(dtypes[name])
        found[name] = check_report(settings, description, None, names=linked.output(name))
    title = f"What becomes of the columns of {listed([*map(repr, found)])}"
    outcome = f"A fit stops before it spends anything: {' '.join(refused)}" if refused else ""
    notes = [*linked.absurd(), *more]
    stops = [*refused, *(said for each in found.values() for said in each.facts["stops"])]
    lead = [*map(Text, (outcome, *notes)), Items(on_links(linked.tree))]
    return together(found, "check of tables", title, lead, stops=stops, warnings=notes)


def least_rows(
    settings: Settings, description: Description, num_rows: float | None
) -> dict[str, int]:
    """How many rows must share a category, or lie in a range that is not declared, to be found."""
    if not description.discovers:
        return {}
    return _first_queries(settings, description).rows_needed(num_rows)


def _first_queries(settings: Settings, description: Description) -> FirstQueries:
    fit = Fit(settings, description)
    return FirstQueries(description.undeclared, fit.shared.ledger, *fit.shares)


def said_before(
    settings: Settings,
    description: Description,
    num_rows: int | None,
    names: Collection[str] | None = None,
) -> list[str]:
    """Returns what every door says of columns before a fit to so many rows spends anything. Public.

    Names, declarations and the budget say it. It is about the columns with these ``names``, or
    about all that are modelled.
    """
    own = description.facts.keys() if names is None else names
    fate_of = fates(settings, description, num_rows)
    kept = [name for name in own if name in fate_of and not fate_of[name].lost]
    return [
        *notes_on(settings, description, own),
        *_on_hidden(settings, description, num_rows, kept),
        *(on_few(settings.ledger(), description.facts, num_rows) if num_rows else ()),
    ]


def _on_hidden(
    settings: Settings, description: Description, num_rows: int | None, names: Collection[str]
) -> list[str]:
    """Returns a sentence on what noise hides of columns that are not lost.

    Where the number of rows is public it is about categories that must be in more than a hundredth
    of them to be found, and ranges in which a tenth of them may be hidden.
    """
    if not description.discovers:
        return []
    look = _first_queries(settings, description)
    own = {name: n for name, n in look.rows_needed(num_rows).items() if name in names}
    if num_rows is None:
        alike = grouped((rows_in(look.ledger, n), repr(name)) for name, n in own.items())
        most = [f"{rows} share in {listed(each)}" for rows, each in alike.items()]
        said = (
            f"At this epsilon noise hides what fewer than {', or '.join(most)}. Declare "
            "categories or ranges that fewer may have, or choose fewer columns or a larger epsilon."
        )
        return [said] if most else []
    said, rare = [], {name: own.pop(name) for name in description.uncategorized if name in own}
    if rare and (least := min(rare.values())) > SOME * num_rows:
        few = rows_in(look.ledger, least)
        said.append(
            f"A category of {listed([*map(repr, rare)])} is found if about {few} share it "
            f"({share(least / num_rows)}). Rows of rarer ones become 'other', or missing among "
            "numbers, unless range_values are declared."
        )
    if own and (least := min(own.values())) > MANY * num_rows:
        few = rows_in(look.ledger, least)
        said.append(
            f"Noise hides where values of {listed([*map(repr, own)])} lie that fewer than about "
            f"{few} have ({share(least / num_rows)}): declare the ranges that you know."
        )
    if vague := [repr(name) for name in names if look.rows_precise.get(name, 0) > num_rows]:
        said.append(
            f"Noise hides whether numbers of {listed(vague)} are whole: declare decimal_places."
        )
    return said


def on_lost(fate_of: Mapping[str, Fate], allowed: Collection[str] = ()) -> list[str]:
    """Returns a sentence for each reason why columns would be lost that are not allowed to be."""
    lost = {name: fate.lost for name, fate in fate_of.items() if fate.lost and name not in allowed}
    reasons = grouped((why, repr(name)) for name, why in lost.items())
    return [reason.format(listed(names)) for reason, names in reasons.items()]


def require_kept(fate_of: Mapping[str, Fate], allowed: Collection[str] = ()) -> None:
    """Raises ``ColumnsLostError`` if columns would be lost that are not allowed to be."""
    if not (said := on_lost(fate_of, allowed)):
        return
    names = tuple(name for name, fate in fate_of.items() if fate.lost and name not in allowed)
    short = repr([*names]) if len(names) < 8 else "[*error.columns]"
    error = ColumnsLostError(
        f"Nothing was spent. {' '.join(said)} To fit all the same: allow_lost={short}."
    )
    error.columns = names
    raise error


def _on_a_screen(table: Sequence[tuple[str, ...]]) -> list[tuple[str, ...]]:
    """Returns a line for each column, of very many for each kind, with names that are not long."""
    short = [
        (name if len(name) <= _LONG else f"{name[: _LONG - 1]}…", *kind) for name, *kind in table
    ]
    if len(short) <= _MANY_LINES:
        return short
    kinds = grouped((tuple(kind), name) for name, *kind in short)
    return [(listed(names, 3), *kind) for kind, names in kinds.items()]


def check_report(
    settings: Settings,
    description: Description,
    num_rows: int | None,
    refused: Sequence[str] = (),
    names: Collection[str] | None = None,
    more: Sequence[str] = (),
) -> Report:
    """Returns what becomes of each column as text, page and numbers. Public.

    The settings have the delta for so many rows, if their number is public. ``refused`` are
    sentences on what keeps a fit from reading the table. Nothing is said of the budget, and of
    columns other than those with these ``names``, where they are one table's of several: links add
    others. ``more`` is said at last.
    """
    fate_of, ledger = fates(settings, description, num_rows), settings.ledger()
    if names is not None:
        fate_of = {name: each for name, each in fate_of.items() if name in names}
    stops = {name for name in fate_of if any(repr(name) in said for said in refused)}
    fate_of |= {name: replace(fate_of[name], becomes="a fit stops") for name in stops}
    lost = [*refused, *on_lost(fate_of)]
    of_all = [*settings.people.on_counts, *settings.absurd(num_rows)] if names is None else []
    found = [*of_all, *said_before(settings, description, num_rows, names), *more]
    notes = [each for each in found if each not in lost]
    is_private = ledger.adjacency is Adjacency.ADD_REMOVE
    number = " of rows whose number is private" if is_private else ""
    number = number if num_rows is None else f" of {number_of(num_rows)}"
    title = f"What becomes of the columns{number} at epsilon {ledger.epsilon:.3g}"
    header = ("column", "type", "values", "in the rows")
    table = [(name, each.sdtype, each.values, each.becomes) for name, each in fate_of.items()]
    outcome = "A fit stops before it spends anything:" if lost else "No column is lost."
    lines = [f"{title}. Nothing is spent.", "", *in_columns([header, *_on_a_screen(table)])]
    for sentence in (outcome, *lost, *notes):
        lines += ["", *wrap(sentence, WIDTH, break_on_hyphens=False)]
    return Report(
        text="\n".join(lines),
        page=Page(
            title=title,
            lead=[Text("Nothing is spent."), Text(outcome), Items(lost)],
            sections=[
                Section("Columns", [Table(title, header, table, texts=4), *map(Text, notes)])
            ],
        ),
        facts={
            "report": "check",
            "public": True,
            "num_rows": num_rows,
            "columns": {
                row[0]: dict(zip(("sdtype", "values", "becomes"), row[1:], strict=True))
                for row in table
            },
            "lost": [name for name, each in fate_of.items() if each.lost],
            "stops": lost,
            "warnings": notes,
        },
    )
