"""SDV's words for facts on columns: which of them say something of which column. Public.

``words_of`` writes facts in these words, as people declare them: the way back from ``parser``.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from sdv_privpgd.base.arguments import shown
from sdv_privpgd.columns.date_formats import write_dates
from sdv_privpgd.columns.facts import ColumnFacts, DateFacts, NumberFacts, TruthFacts

_RANGE = ("range_min", "range_max")
_OF_ANY = ("range_is_nullable", "missing_codes")
_CELLS = (*_RANGE, *_OF_ANY, "num_bins", "cut_points", "frequencies")
_CATEGORIES = ("range_values", "other_value", "groups", "prefix", *_OF_ANY, "frequencies")
KEYS = {
    "numerical": (*_CELLS, "decimal_places", "increment", "rounding", "number_format"),
    "datetime": (*_CELLS, "datetime_format", "whole"),
    "categorical": _CATEGORIES,
    "ordinal": _CATEGORIES,
    "boolean": (*_OF_ANY, "true_value", "false_value"),
}
"""The sdtypes that are modelled, and the keys that describe each of them."""

MODELLED = tuple(KEYS)

_ALL_KEYS = {key for keys in KEYS.values() for key in keys}
"""A blank one says nothing about any column: a draft of a column of unknown type has all."""


def named_by_text(domain: Any) -> Any:
    """A public domain under SDV's names, which are text; anything else unchanged."""
    if not isinstance(domain, Mapping):
        return domain
    return {str(name): facts for name, facts in domain.items()}


def facts_in(facts: Mapping, *, keep: bool) -> dict[str, Any]:
    """What SDV's metadata says of a modelled column; ranges and categories if they are to stay."""
    kept = KEYS[facts["sdtype"]] if keep else ("datetime_format",)
    return {key: fact for key, fact in facts.items() if key in ("sdtype", *kept)}


def modelled(columns: Mapping[str, Mapping], keys: Collection[str]) -> list[str]:
    """The names of the columns that are modelled, of which SDV's facts are given."""
    return [
        name for name, facts in columns.items() if facts.get("sdtype") in KEYS and name not in keys
    ]


def as_declared(
    columns: Mapping[str, Mapping], keys: Collection[str], domain: Any
) -> dict[str, Mapping]:
    """SDV's facts on each column, of the type that is declared, as ``Datetime()`` is, if one is."""
    found, domain = dict(columns), named_by_text(domain)
    for name, own in columns.items() if isinstance(domain, Mapping) else ():
        kind = facts if isinstance(facts := domain.get(name), Mapping) else {}
        said = getattr(kind, "sdtype", kind.get("sdtype"))
        if name not in keys and said in KEYS and said != own.get("sdtype"):
            form = {key: fact for key, fact in kind.items() if key == "datetime_format"}
            found[name] = {"sdtype": said, **form}
    return found


def needed(sdtype: str) -> list[str]:
    """The keys that determine the cells of a column."""
    return [key for key in KEYS[sdtype] if key in (*_RANGE, "range_values")]


def blank(facts: Mapping) -> list[str]:
    """The keys that have to be declared for a column and are not."""
    if facts.get("other_value") is not None or not _is_empty(facts.get("groups")):
        return []  # these say categories, too
    return [key for key in needed(facts["sdtype"]) if _is_empty(facts.get(key))]


def problems(
    columns: Mapping[str, Mapping], keys: Collection[str], public_domain: object
) -> Iterator[str]:
    """Sentences on all that names no column, no modelled one, or is no fact on it."""
    yield from _unmapped(public_domain)
    if not isinstance(public_domain, Mapping):
        return
    known = modelled(columns, keys)
    for name, facts in public_domain.items():
        if name not in columns:
            yield (
                f"public_domain names {name!r}, which is not a column of the metadata. Its "
                f"columns are {list(columns)!r}."
            )
        elif name not in known:
            known_facts = facts.values() if isinstance(facts, Mapping) else ()
            if not known_facts or any(fact is not None for fact in known_facts):  # no draft
                yield (
                    f"public_domain names {name!r}, which is not modelled: it is a key, or its "
                    f"sdtype {columns[name].get('sdtype')!r} is none of {list(KEYS)!r}. Remove it "
                    "from public_domain, or declare another sdtype."
                )
        elif isinstance(facts, Mapping):
            yield from misplaced(name, columns[name]["sdtype"], facts)


def misplaced(
    name: str, sdtype: str, facts: Mapping, argument: str = "public_domain"
) -> Iterator[str]:
    """A sentence on all keys that say nothing about a column of this sdtype."""
    wrong = [
        key
        for key, fact in facts.items()
        if key not in KEYS[sdtype]
        and (fact is not None or key not in _ALL_KEYS)
        and (key, fact) != ("sdtype", sdtype)
    ]
    if wrong:
        named = ", ".join(map(repr, wrong))
        kind = f"{'an' if sdtype == 'ordinal' else 'a'} {sdtype} column"
        yield (
            f"{argument}[{name!r}] has the key{'s' * (len(wrong) > 1)} {named}, which "
            f"{'say' if len(wrong) > 1 else 'says'} nothing about {kind}. Use some of "
            f"{list(KEYS[sdtype])!r}, or declare another sdtype."
        )


def _unmapped(public_domain: object) -> Iterator[str]:
    """Sentences on everything that is not a mapping of columns to facts."""
    if not isinstance(public_domain, Mapping):
        yield (
            "public_domain must map columns to facts, as in {'age': {'range_min': 0, 'range_max': "
            f"120}}}}, got {shown(public_domain)}."
        )
        return
    for name, facts in public_domain.items():
        if not isinstance(facts, Mapping):
            yield (
                f"public_domain[{name!r}] must map words to values, as in {{'range_min': 0, "
                "'range_max': 120} for numbers and dates or {'range_values': ['A', 'B']} for "
                f"categories, got {shown(facts)}."
            )


def _is_empty(fact: Any) -> bool:
    has_parts = hasattr(fact, "__len__") and getattr(fact, "shape", None) != ()
    return fact is None or (has_parts and len(fact) == 0)


_FIELDS = {
    "decimal_places": "decimal_places", "increment": "increment", "number_format": "number_format",
    "rounding": "rounding", "whole": "whole",
    "range_min": "low", "range_max": "high", "range_values": "values", "other_value": "other",
    "range_is_nullable": "nullable", "true_value": "true", "false_value": "false",
    "cut_points": "cuts", "frequencies": "frequencies", "num_bins": "num_bins",
    "groups": "groups", "prefix": "prefix", "missing_codes": "missing_codes",
}  # fmt: skip
"""The fields of facts, by SDV's words for them."""


def words_of(facts: ColumnFacts | None) -> dict[str, Any]:
    """The facts that are known, by SDV's words; reading them again gives the same facts.

    Dates become text: in their format, or in ISO 8601. So a date should not be finer than what its
    format writes. Whether dates have a format is always said. Frequencies of categories are read
    beside these categories alone. Of ``None`` there are no words.
    """
    said = {word: getattr(facts, name, None) for word, name in _FIELDS.items()}
    if isinstance(facts, NumberFacts):
        said["number_format"] = getattr(facts.number_format, "example", None)
    elif isinstance(facts, DateFacts):
        for word, end in (("range_min", facts.low), ("range_max", facts.high)):
            said[word] = None if end is None else _dates(facts, [end])[0]
        said["cut_points"] = None if facts.cuts is None else _dates(facts, facts.cuts)
    elif isinstance(facts, TruthFacts):
        false, true = facts.values or (None, None)
        said |= {"range_values": None, "true_value": true, "false_value": false}
    found = {word: fact for word, fact in said.items() if fact is not None}
    found = {word: list(fact) if isinstance(fact, tuple) else fact for word, fact in found.items()}
    if "groups" in found:
        found["groups"] = dict(found["groups"])
    if isinstance(facts, DateFacts):
        return {"datetime_format": None if facts.of_times else facts.datetime_format, **found}
    return found


def _dates(facts: DateFacts, moments: Sequence[int]) -> list[str] | list[int]:
    """Moments as they are declared, with an offset if they have a time zone."""
    ticks = np.array(moments, dtype=np.int64)
    written = write_dates(ticks, "ns", facts.datetime_format, facts.utc, offset=facts.offset)
    if facts.datetime_format:
        return [*map(int, written)] if facts.of_numbers else [*map(str, written)]
    return [str(date).removesuffix(" 00:00:00") for date in written]
