"""Checks of a public domain that report all problems at once."""

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from sdv_privpgd.columns.ids import on_repeated_ids, repeated_ids
from sdv_privpgd.columns.naming import on_names
from sdv_privpgd.columns.parsing import read_facts
from sdv_privpgd.columns.scalars import plain
from sdv_privpgd.columns.times_of_day import on_days
from sdv_privpgd.columns.vocabulary import blank, modelled, problems
from sdv_privpgd.drafting.template import format_of, named_by_text, table_of

if TYPE_CHECKING:
    from sdv.metadata import Metadata

_OF_RANGES = {"sdtype", "cut_points", "frequencies"}
"""Facts that mean nothing without the right range."""

_SHOWN = 3


def check_domain(
    metadata: "Metadata | Mapping", domain: Mapping[str, Mapping], *, max_rows: int = 1
) -> list[str]:
    """Sentences on all that does not fit together in a public domain, and on what it leaves open.

    A synthesizer raises for the first thing that it cannot use; here all of them are reported. So
    are things that it accepts but that are hardly meant: categories that are numbers among text, or
    that differ in spaces or capitals only, facts that are left to be found privately, names of ids
    and dates that would be modelled as something else, and ids that are no keys although a person
    is said to have one row. An empty list means that everything is declared and fits. No table is
    read.

    Args:
        metadata: SDV's ``Metadata`` of one table, or its dict. Ranges and categories in it are
            ignored: detection may have read them off the table.
        domain: The facts that ``public_domain`` is to have.
        max_rows: The largest number of rows of one person, as the synthesizer is to have it.

    >>> metadata = {"columns": {"age": {"sdtype": "numerical"}}}
    >>> for sentence in check_domain(metadata, {"age": {"range_min": 99, "range_max": 0}}):
    ...     print(sentence)
    range_min of 'age' must not exceed its range_max, got 99 and 0.
    """
    columns, keys = table_of(metadata)
    domain = named_by_text(domain)
    said = list(problems(columns, keys, domain))
    if isinstance(domain, Mapping):
        for name in modelled(columns, keys):
            own = domain.get(name, {})
            if isinstance(own, Mapping):
                said += _column_problems(name, columns[name], own)
    said += on_repeated_ids(repeated_ids(columns, keys), max_rows)
    own = domain if isinstance(domain, Mapping) else {}
    facts = {
        name: {**columns[name], **(own[name] if isinstance(own.get(name), Mapping) else {})}
        for name in modelled(columns, keys)
    }
    said += on_names(facts)
    said += on_days(facts)
    return list(dict.fromkeys(said))


def refused(metadata: "Metadata | Mapping", domain: Mapping[str, Mapping]) -> list[str]:
    """Sentences on all that a synthesizer refuses in a public domain: it raises for the first."""
    columns, keys = table_of(metadata)
    domain = named_by_text(domain)
    said = list(problems(columns, keys, domain))
    for name in modelled(columns, keys):
        own = domain.get(name, {})
        if isinstance(own, Mapping):
            known = {key: fact for key, fact in own.items() if _applies(columns[name], key)}
            said += _refused(
                name, {"sdtype": columns[name]["sdtype"], **format_of(columns[name]), **known}
            )
    return list(dict.fromkeys(said))


def _column_problems(name: str, known: Mapping, own: Mapping) -> Iterator[str]:
    """Sentences on one column, of which the metadata says ``known``."""
    own = {key: fact for key, fact in own.items() if _applies(known, key)}
    written = known.get("datetime_format")
    if written is not None and own.get("datetime_format", written) is None:
        yield (
            f"datetime_format of {name!r} is blank, which takes the place of the metadata's "
            f"{written!r} and says that dates are no text. Remove the key, or fill it in."
        )
    facts = {"sdtype": known["sdtype"], **format_of(known), **own}
    left = blank(facts)
    if left:
        yield (
            f"{' and '.join(left)} of {name!r} {'is' if len(left) == 1 else 'are'} not "
            "declared: a part of the budget finds the column's domain privately."
        )
    yield from _refused(name, facts)
    yield from _mixed(name, facts.get("range_values"))


def _applies(known: Mapping, key: str) -> bool:
    return not list(problems({"x": known}, (), {"x": {key: 0}}))


def _refused(name: str, facts: Mapping) -> Iterator[str]:
    """Sentences on what the synthesizer refuses: each fact by itself, then all together."""
    kept = {key: facts[key] for key in ("sdtype", "datetime_format") if key in facts}
    for key in facts:
        if key not in _OF_RANGES and facts[key] is not None:
            yield from _raised(name, {**kept, key: facts[key]}, key)
    yield from _raised(name, facts)


def _raised(name: str, facts: Mapping, about: str = "") -> Iterator[str]:
    """The message that reading the facts raises, if it is about the key."""
    try:
        read_facts(name, facts)
    except ValueError as error:
        if str(error).startswith(f"{about} of" if about else ""):
            yield str(error)


def _mixed(name: str, values: Any) -> Iterator[str]:
    """Sentences on categories that are probably not what was meant."""
    values = list(values) if np.iterable(values) and not isinstance(values, str) else []
    texts = [value for value in values if isinstance(value, str)]
    others = [value for value in values if plain(value) is not None and not isinstance(value, str)]
    if texts and others:
        yield (
            f"range_values of {name!r} has {_some(others)} beside text such as {texts[0]!r}: a "
            f"cell with the text {str(others[0])!r} is not found. Write {str(others[0])!r} if it "
            "is meant."
        )
    alike: dict[str, list[str]] = {}
    for text in texts:
        alike.setdefault(text.strip().casefold(), []).append(text)
    for same in alike.values():
        if len(set(same)) > 1:
            yield (
                f"range_values of {name!r} has {_some(same)}, which differ in spaces or capitals "
                "only. Keep one of them if they are the same."
            )


def _some(values: list) -> str:
    shown = ", ".join(map(repr, values[:_SHOWN]))
    return shown if len(values) <= _SHOWN else f"{shown} and {len(values) - _SHOWN} more"
