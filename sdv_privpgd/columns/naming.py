"""Columns that are named like ids or dates and are to be modelled as something else. Public.

It follows from names and declarations alone, so it is said before anything is spent.
"""

import re
from collections.abc import Mapping

from sdv_privpgd.columns.facts import ColumnFacts

_IDS = {"id", "ids", "uuid", "guid", "nr", "nbr", "key"}
"""The last words of names of ids, the last three only behind another word."""

_ALONE = {"id", "ids", "uuid", "guid"}

_OF_KINDS = {"type", "kind", "category", "class", "group", "status", "code"}
"""With one of these words before it, an id is one of a few kinds."""

_OF_PEOPLE = {
    "patient", "person", "subject", "participant", "mrn", "ssn", "iban", "email", "mail", "phone",
    "telefon", "surname", "lastname", "firstname", "fullname", "nachname", "vorname",
}  # fmt: skip
"""Names, alone or behind one other word, of columns that say who somebody is."""

_DATES = {"date", "datum", "dob", "birthdate", "birthday", "geburtstag", "datetime", "timestamp"}

_WORDS = re.compile(r"[A-ZÄÖÜ]+(?![a-zäöüß])|[A-ZÄÖÜ]?[a-zäöüß]+|[0-9]+")


def on_names(facts: Mapping[str, ColumnFacts]) -> list[str]:
    """Sentences on modelled columns of which nothing is declared, and which may be ids or dates."""
    unknown = {name: each.sdtype for name, each in facts.items() if each.is_blank}
    ids = [name for name, kind in unknown.items() if kind != "datetime" and is_id(name)]
    dates = [
        name
        for name, kind in unknown.items()
        if kind in ("categorical", "ordinal") and _is_date(name)
    ]
    said = []
    if ids:
        said.append(
            f"The names of {ids!r} are those of ids, and they are to be modelled. If they are ids, "
            "give them the sdtype id, or leave them out: an id that many rows share could be "
            "published, and all others would be lost in noise."
        )
    if dates:
        said.append(
            f"The names of {dates!r} are those of dates, and they are to be modelled as "
            "categories. If they are dates, give them the sdtype datetime, and their "
            "datetime_format, such as '%d.%m.%Y' for 31.01.2024: of categories only those are "
            "found that many rows share."
        )
    return said


def _words(name: str) -> list[str]:
    return [word.lower() for word in _WORDS.findall(name)]


def is_id(name: str) -> bool:
    """Whether a name is one of ids."""
    words = _words(name)
    if words and len(words) <= 2 and (words[-1] in _OF_PEOPLE or words[-1].endswith("nummer")):
        return True
    if words in (["name"], ["last", "name"], ["first", "name"], ["full", "name"]):
        return True
    if not words or words[-1] not in _IDS:
        return False
    if len(words) == 1:
        return words[0] in _ALONE
    return words[-2] not in _OF_KINDS


def _is_date(name: str) -> bool:
    words = _words(name)
    if not words:
        return False
    return words[-1] in _DATES or words[-1].endswith("datum") or words[:2] == ["date", "of"]
