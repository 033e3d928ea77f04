"""Reads the names of columns from the first record of a file, which may be a row instead.

The first record alone decides which of the two it is. It is never quoted: if it is data, it is as
private as any row.
"""

import re
from collections.abc import Mapping, Sequence
from typing import Any

from sdv_privpgd.sources.dialect import Facts, Reading
from sdv_privpgd.sources.source import SourceError
from sdv_privpgd.sources.texts import declared_values

MISSING = (
    "", " ", "#N/A", "#N/A N/A", "#NA", "-1.#IND", "-1.#QNAN", "-NaN", "-nan", "1.#IND", "1.#QNAN",
    "<NA>", "N/A", "NA", "NULL", "NaN", "None", "n/a", "nan", "null",
)  # fmt: skip
"""Texts that stand for a missing cell."""

_WORDS = {text.strip().lower() for text in MISSING} | {"true", "false", "inf", "infinity"}

_MONTH = r"(jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[a-z]*\.?"

_DATA = re.compile(
    r"unnamed: \d+(_level_\d+)?"  # pandas' name for an empty one
    r"|[\W\d_]*"  # no letter: numbers, dates, times, money
    r"|[-+]?[\d.,]+e[-+]?\d+"
    r"|\d{4}-\d\d-\d\dt[\d:.,]+(z|[-+]\d\d:?\d\d)?"
    rf"|\d{{1,2}}[-/. ]*{_MONTH}[-/., ]*\d{{2,4}}"
    rf"|{_MONTH} ?\d{{1,2}},? \d{{4}}"
    r"|[0-9a-f]{8}-([0-9a-f]{4}-){3}[0-9a-f]{12}"
    r"|[^@\s]+@[^@\s]+\.[a-z]+"
    r"|(?:[<>≤≥]=?|~) ?[\w.,+-]+"  # a range, such as >50K
    r"|https?://.+"
    r"|[a-z]{2}\d{2}[a-z0-9]{11,30}"  # an account
    r"|(?=.*\d)[0-9a-f]{24,}"  # a hash
    r"|(mr|mrs|ms|dr)\. .+|.+, (mr|mrs|ms|miss|dr)\.?( .*)?"
    r"|\d+[a-z]? .*(street|road|avenue|lane|straße|strasse)"
    r"|.*(street|road|avenue|straße|strasse|str\.) \d+[a-z]?"
    r"|[-+]?\d+([.,]\d+)? ?(kg|mg|cm|mm|mmhg|eur|usd|gbp|chf|%|€|\$|£)"
    r"|\d{1,2}(:\d\d)+ ?[ap]\.?m\.?",
)

_ANSWERS = {"ja", "nein", "oui"}
"""Words that answer a question and name no column."""

_KINDS: tuple[frozenset[str], ...] = (
    frozenset({"yes", "no", "non"}),
    frozenset({"m", "f"}),
    frozenset({"male", "female", "man", "woman", "weiblich", "männlich"}),
    frozenset({"unknown", "not known", "unbekannt"}),
    frozenset({"never", "rarely", "sometimes", "often", "always"}),
    frozenset({"agree", "disagree", "strongly agree", "strongly disagree"}),
    frozenset({"single", "married", "divorced", "widowed"}),
)
"""Usual categories. One of them may be the name of a column, as ``female`` and ``married`` are of
truths, and so may several of one kind; those of two kinds that answer questions hardly are."""

_TRUTHS = 3
"""Kinds of which a header has words from which on it looks like data."""

WAYS_OUT = (
    "If it is a row, give the names with CsvFiles(names=...) or say CsvFiles(header=False); if "
    "these are the names, say CsvFiles(header=True)."
)

_TITLE = (
    "If it is a title above the names, leave it out with CsvFiles(skip_rows=1), or with as many "
    "lines as there are above them."
)

_LIKE_DATA = (
    "The first record looks like data, such as numbers, dates or answers, and not like the names "
    "of columns, which would be published."
)


def named(record: Sequence[Any], how: Reading, facts: Facts | None) -> list[str]:
    """The names of the columns, from the user or from the first record.

    >>> named(["age", "ward"], Reading(), None)
    ['age', 'ward']
    """
    known = None if facts is None else list(facts)
    if how.names is None and how.has_header:
        return names_of(record, known, trusted=bool(how.header))
    if how.names is None and known is None:
        return [f"column {number}" for number in range(1, len(record) + 1)]
    source, names = ("CsvFiles(names=...)", how.names) if how.names else ("The metadata", known)
    assert names is not None
    if len(names) != len(record):
        raise SourceError(
            f"{source} has {len(names)} names, and the first record has {len(record)} fields. If "
            "the number of fields surprises you, say what separates them with CsvFiles(sep=...)."
        )
    if not how.has_header and [str(each).strip() for each in record] == list(names):
        raise SourceError(
            "The first record is these names: say CsvFiles(header=True), for it is no row."
        )
    return list(names)


def missing_words(facts: Mapping, more: Sequence[str] = ()) -> list[str]:
    """The texts that stand for a missing cell of a column, without its declared categories.

    ``more`` are those that the user names, besides the usual ones.

    >>> "NA" in missing_words({}), "NA" in missing_words({"range_values": ["NA", "Grvl"]})
    (True, False)
    """
    declared = declared_values(facts)
    return [text for text in (*MISSING, *more) if text not in declared]


def names_of(fields: Sequence[Any], known: Sequence[str] | None, *, trusted: bool) -> list[str]:
    """The names of columns in a header.

    Args:
        fields: The first record, as the file has it.
        known: The columns of which something is known, if there are any. There may be others.
        trusted: Whether the user says that these are names.

    Raises:
        SourceError: If they do not look like names, or are not those of the metadata.

    >>> names_of(["age", "ward"], known=None, trusted=False)
    ['age', 'ward']
    """
    names = ["" if field is None else str(field).strip() for field in fields]
    if not all(names) or len(set(names)) < len(names):
        raise SourceError(
            "The first record has empty or repeated fields, so it cannot name the columns. If it "
            "is a row, give the names with CsvFiles(names=...) or say CsvFiles(header=False); if "
            "it is a header, give better names with CsvFiles(header=True, names=...)."
            + (f" {_TITLE}" if _is_title(names) else "")
        )
    is_known = known is not None and set(known) <= set(names)
    if not trusted and not is_known and _are_answers(names):
        raise SourceError(f"{_LIKE_DATA} {WAYS_OUT}")
    if not trusted and not all(
        (known is not None and name in known and set(known) <= set(names))  # whatever it looks like
        or (isinstance(field, str) and _is_name(name))
        for field, name in zip(fields, names, strict=True)
    ):
        raise SourceError(f"{_LIKE_DATA} {WAYS_OUT}")
    if known is not None and not set(known) <= set(names):
        _raise_unlike(names, known)
    return names


def looks_like_data(field: str) -> bool:
    """Whether a field of a header looks like a cell and not like a name.

    >>> looks_like_data("34.5"), looks_like_data("age")
    (True, False)
    """
    return field.lower() in _WORDS or _DATA.fullmatch(field.lower()) is not None


def _is_title(names: Sequence[str]) -> bool:
    """Whether all fields but the first are empty, as beside a title above the names of columns."""
    return len(names) > 1 and bool(names[0]) and not any(names[1:])


def _are_answers(names: Sequence[str]) -> bool:
    """Whether names are usual categories of several kinds, and so the answers of somebody."""
    words = {name.lower() for name in names}
    if words & _ANSWERS:
        return True
    kinds = sum(bool(words & kind) for kind in _KINDS)
    return kinds >= min(_TRUTHS, max(len(words) - 1, 2))


def _is_name(field: str) -> bool:
    return not looks_like_data(field)


def _raise_unlike(names: Sequence[str], known: Sequence[str]) -> None:
    """Names the columns of the metadata that are missing. It quotes no field of the header."""
    missing = [name for name in known if name not in names]
    unknown = [name for name in names if name not in known]
    parts = [f"lacks the columns {missing!r} of the metadata"] if missing else []
    parts += [f"has {len(unknown)} that the metadata does not know"] if unknown else []
    above = f" {_TITLE}" if len(names) == 1 else ""
    raise SourceError(f"The first record {' and '.join(parts)}. {WAYS_OUT}{above}")
