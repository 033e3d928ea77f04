"""Checks of a public domain that report all problems at once."""

from collections.abc import Collection, Iterator, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from sdv_privpgd.base.words import grouped
from sdv_privpgd.columns.date_formats import on_dates
from sdv_privpgd.columns.names import on_names, on_repeated_ids, repeated_ids
from sdv_privpgd.columns.parser import read_words
from sdv_privpgd.columns.scalars import plain
from sdv_privpgd.columns.vocabulary import (
    KEYS,
    as_declared,
    blank,
    modelled,
    named_by_text,
    problems,
)
from sdv_privpgd.drafting.template import format_of, table_of

if TYPE_CHECKING:
    from sdv.metadata import Metadata

_SHOWN = 3


def check_domain(
    metadata: "Metadata | Mapping", domain: Mapping[str, Mapping], *, says_whose: bool = False
) -> list[str]:
    """Sentences on all that does not fit together in a public domain, and on what it leaves open.

    A synthesizer raises for the first thing that it cannot use; here all of them are reported. So
    are things that it accepts but that are hardly meant: categories that are numbers among text, or
    that differ in spaces or capitals only, facts that are left to be found privately, names of ids
    and dates that would be modelled as something else, and ids that are no keys although nobody has
    said whose the rows are. An empty list means that everything is declared and fits. No table is
    read.

    Args:
        metadata: SDV's ``Metadata`` of one table, or its dict. Ranges and categories in it are
            ignored: detection may have read them off the table.
        domain: The facts that ``public_domain`` is to have.
        says_whose: Whether the synthesizer is told whose the rows are, by ``people``.

    >>> metadata = {"columns": {"age": {"sdtype": "numerical"}}}
    >>> for sentence in check_domain(metadata, {"age": {"range_min": 99, "range_max": 0}}):
    ...     print(sentence)
    range_min of 'age' must not exceed its range_max, got 99 and 0.
    """
    columns, keys = table_of(metadata)
    domain = named_by_text(domain)
    columns = as_declared(columns, keys, domain)
    said, read = list(problems(columns, keys, domain)), {}
    for name, words in _described(columns, keys, domain):
        read[name], wrong = read_words(name, words)
        said += [*_blanks(name, columns[name], words), *wrong]
        said += _mixed(name, words.get("range_values"))
    said += on_repeated_ids(repeated_ids(columns, keys), says_whose=says_whose)
    said += on_names(read, says_whose=says_whose)
    said += on_dates(read)
    return list(dict.fromkeys(said))


def refused(metadata: "Metadata | Mapping", domain: Mapping[str, Mapping]) -> list[str]:
    """Sentences on all that a synthesizer refuses in a public domain: it raises for the first."""
    columns, keys = table_of(metadata)
    domain = named_by_text(domain)
    said = list(problems(columns, keys, domain))
    for name, words in _described(columns, keys, domain):
        said += read_words(name, words)[1]
    return said


def _described(
    columns: Mapping[str, Mapping], keys: Collection[str], domain: object
) -> Iterator[tuple[str, dict[str, Any]]]:
    """What each column is told to be: its sdtype, the metadata's format, and what applies to it."""
    domain = domain if isinstance(domain, Mapping) else {}
    for name in modelled(columns, keys):
        own, sdtype = domain.get(name, {}), columns[name]["sdtype"]
        if isinstance(own, Mapping):
            applies = {key: fact for key, fact in own.items() if key in KEYS[sdtype]}
            yield name, {"sdtype": sdtype, **format_of(columns[name]), **applies}


def _blanks(name: str, known: Mapping, words: Mapping) -> Iterator[str]:
    """Sentences on what is left to be found of a column, of which the metadata says ``known``."""
    written = known.get("datetime_format")
    if written is not None and words.get("datetime_format") is None:
        yield (
            f"datetime_format of {name!r} is blank, which takes the place of the metadata's "
            f"{written!r} and says that dates are no text. Remove the key, or fill it in."
        )
    if left := blank(words):
        yield (
            f"{' and '.join(left)} of {name!r} {'is' if len(left) == 1 else 'are'} not "
            "declared: a part of the budget finds the column's domain privately."
        )


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
    for same in grouped((text.strip().casefold(), text) for text in texts).values():
        if len(set(same)) > 1:
            yield (
                f"range_values of {name!r} has {_some(same)}, which differ in spaces or capitals "
                "only. Keep one of them if they are the same."
            )


def _some(values: list) -> str:
    shown = ", ".join(map(repr, values[:_SHOWN]))
    return shown if len(values) <= _SHOWN else f"{shown} and {len(values) - _SHOWN} more"
