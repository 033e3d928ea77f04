"""Codebooks as tables: a row for each column of the data, with what is documented about it."""

import json
import re
import warnings
from collections.abc import Callable, Mapping
from contextlib import suppress
from difflib import get_close_matches
from typing import Any

import pandas as pd

from sdv_privpgd.columns.declarations import Boolean, TimeOfDay
from sdv_privpgd.columns.dialect import percent_of
from sdv_privpgd.columns.scalars import number_in

_HEADERS = {
    "name": ("name", "column", "variable", "field", "attribute"),
    "sdtype": ("type", "sdtype", "dtype", "kind", "datatype"),
    "range_min": ("min", "minimum", "rangemin", "lowest", "from", "lower"),
    "range_max": ("max", "maximum", "rangemax", "highest", "to", "upper"),
    "range_values": ("values", "rangevalues", "categories", "codes", "levels", "allowed"),
    "decimal_places": ("decimals", "decimalplaces", "places"),
    "range_is_nullable": ("missing", "nullable", "rangeisnullable", "optional"),
    "other_value": ("other", "othervalue"),
    "format": ("format", "datetimeformat", "dateformat", "numberformat"),
    "missing_codes": ("missingcodes", "missingcode", "na", "codesformissing"),
    "groups": ("groups", "group", "groupsofcodes", "map"),
    "prefix": ("prefix", "firstcharacters"),
}
"""The facts that a codebook's columns may give, and the names of such columns: letters alone, in
lower case."""

_TYPES = {
    "numerical": (
        "number", "integer", "percent", "int", "float", "real", "decimal", "double", "numerical",
        "numeric", "continuous", "money", "count", "bigint", "smallint",
    ),
    "datetime": ("date", "time", "datetime", "timestamp"),
    "categorical": (
        "category", "text", "categorical", "nominal", "string", "str", "char", "varchar", "enum",
        "factor", "code", "object",
    ),
    "ordinal": ("ordinal", "ordered"),
    "boolean": ("boolean", "bool", "logical", "truth", "flag"),
}  # fmt: skip
"""The words for types; digits and text in brackets, as in ``varchar(20)``, do not matter."""

_WHOLE = ("integer", "int", "bigint", "smallint", "count")
_TEXT = ("text", "string", "str", "char", "varchar")
_GENERATED = ("id", "key", "identifier", "email", "phone", "address", "personname", "unknown")
_IDS = ("id", "key", "identifier")
_YES = ("yes", "y", "true", "1", "allowed", "possible", "nullable", "optional", "ja", "j", "oui")
_NO = ("no", "n", "false", "0", "never", "none", "required", "notnull", "nein", "non")

_SEPARATORS = (";", "|", "\n", ",")
"""Separators of categories; the first one that occurs is used."""


def read_codebook(
    codebook: pd.DataFrame, *, keeps_ids: bool = False, decimal: str = "."
) -> dict[str, dict]:
    """The facts that a codebook gives on each column, in SDV's words: its sdtype, and any others.

    There must be a column of names (``name``, ``column``, ``variable`` or ``field``) and one of
    types (``type``, ``kind`` or ``dtype``, with words like integer, date, time, percent, text,
    ordinal, boolean). Rows of ids, keys, emails and the like are left out; those of ids may be
    kept, with nothing but that. Percentages without a format have the ``decimal`` sign. A row
    without a type gets it from its values or its range. There may be ``min``, ``max``, ``values``,
    ``decimals``, ``missing`` (yes or no), ``missing codes``, ``other``, ``format`` (of dates or
    numbers, or J/N for true and false), ``groups`` of codes (``A00 = I; A01 = I``, or JSON) and
    ``prefix`` (so many first characters), or SDV's words for them. Capitals, spaces and underscores
    do not matter, and other columns, such as a unit, are ignored.

    Of true and false the values may say yes and no (``J = ja; N = nein``) in place of a format.
    Values are lists, also as JSON, or text with semicolons, bars, line breaks or commas between
    them; of ``1 = male`` the ``1`` is taken. They become numbers if all of them are written as
    numbers are (``01`` is not) and the type is no word for text.

    Raises:
        ValueError: For a table that is no codebook, and for rows that cannot be read. The message
            names rows and no values, because the table may be the private one by mistake.
    """
    where = _headers(codebook)
    _warn_of_others(codebook, where)
    cells = {
        key: [None if _is_blank(cell) else cell for cell in codebook.iloc[:, place]]
        for key, place in where.items()
    }
    rows = [dict(zip(cells, row, strict=True)) for row in zip(*cells.values(), strict=True)]
    names = [None if row["name"] is None else str(row["name"]).strip() for row in rows]
    _refuse([n is None or names.count(n) > 1 for n in names], "have no name, or one that is taken")
    words = [_letters(re.sub(r"\(.*", "", str(row["sdtype"] or ""))) for row in rows]
    sdtypes = [_sdtype(word, row) for word, row in zip(words, rows, strict=True)]
    known = ", ".join(word for words in _TYPES.values() for word in words[:3])
    _refuse([sdtype is None for sdtype in sdtypes], f"have none of the types {known}")
    of_numbers = ("range_min", "range_max", "decimal_places")
    _refuse(
        [
            sdtype in ("categorical", "ordinal")
            and not any(row.get(key) is not None for key in ("range_values", "groups", "prefix"))
            and any(row.get(key) is not None for key in of_numbers)
            for row, sdtype in zip(rows, sdtypes, strict=True)
        ],
        "have a range or decimals, and a type that has none: call them number or date, or list "
        "their values",
    )
    said = [row.get("range_is_nullable") for row in rows]
    _refuse(
        [cell is not None and _truth(cell) is None for cell in said],
        "say neither yes nor no of missing values",
    )
    for row, sdtype in zip(rows, sdtypes, strict=True):
        if sdtype == "boolean" and row.get("format") is None:
            row["format"] = _true_and_false(row.get("range_values"))
    _refuse(
        [row.get("format") == "" for row in rows],
        "have values of which none says that it is true: give them as format, such as J/N",
    )
    return {
        name: {"sdtype": sdtype, **_facts(sdtype, word, row, decimal)}
        for name, sdtype, word, row in zip(names, sdtypes, words, rows, strict=True)
        if name is not None and sdtype is not None and sdtype not in _GENERATED
    } | {
        name: {"sdtype": "id"}
        for name, sdtype in zip(names, sdtypes, strict=True)
        if keeps_ids and name is not None and sdtype in _IDS
    }


def filled_in(codebook: pd.DataFrame) -> pd.DataFrame:
    """A codebook without the rows that a draft has left blank but for their name and unit."""
    facts = [place for key, place in _headers(codebook).items() if key != "name"]
    blank = codebook.iloc[:, facts].map(_is_blank).all(axis=1)
    return pd.DataFrame(codebook[~blank]).reset_index(drop=True)


def codebook_of(domain: Mapping[str, Mapping]) -> pd.DataFrame:
    """A public domain, or the draft of one, as a codebook to fill in.

    Raises ``ValueError`` for facts that a codebook has no column for.
    """
    rows = [_row(name, facts) for name, facts in domain.items()]
    more = [name for name in _OF_CODES if any(row[name] != "" for row in rows)]
    return pd.DataFrame(rows, columns=pd.Index([*_COLUMNS, *more]), dtype=object)


_COLUMNS = (
    *("column", "type", "format", "min", "max", "values", "missing codes", "unit"),
    *("decimals", "missing", "other"),
)

_OF_CODES = ("groups", "prefix")
"""Columns of a codebook that are there if some row says them."""

_IN_ROWS = {*_HEADERS, "datetime_format", "number_format", "true_value", "false_value"}


def _row(name: str, facts: Mapping) -> dict[str, Any]:
    """The row of a column."""
    others = [key for key, fact in facts.items() if fact is not None and key not in _IN_ROWS]
    if others:
        raise ValueError(
            f"A codebook has no column for {others!r} of {name!r}: write .json or .yaml."
        )
    values, places = facts.get("range_values"), facts.get("decimal_places")
    written = facts.get("datetime_format") or facts.get("number_format")
    if facts.get("true_value") is not None:
        written = f"{facts['true_value']}/{facts['false_value']}"
    kind, groups = _kind(facts), facts.get("groups")
    cells = {
        "column": name,
        "type": kind,
        "format": written,
        "min": facts.get("range_min"),
        "max": facts.get("range_max"),
        "values": None if values is None else _together(list(values), kind),
        "unit": None,
        "missing codes": _together(list(facts.get("missing_codes") or ()), kind),
        "decimals": None if kind == "integer" else places,
        "missing": {None: None, True: "yes", False: "no"}[facts.get("range_is_nullable")],
        "other": facts.get("other_value"),
        "groups": json.dumps(groups, ensure_ascii=False) if groups else None,
        "prefix": facts.get("prefix"),
    }
    return {key: "" if cell is None else cell for key, cell in cells.items()}


def _kind(facts: Mapping) -> str:
    """The word for the type of a column, by its sdtype or, in a draft, by what is to be filled in.

    It is empty where a draft does not know.
    """
    sdtype = facts.get("sdtype")
    if sdtype is None:
        numbers, values = "decimal_places" in facts, "range_values" in facts
        if numbers and values:
            return ""
        dates = "datetime" if "range_min" in facts else "boolean"
        sdtype = "numerical" if numbers else "categorical" if values else dates
    if sdtype == "numerical":
        return "integer" if facts.get("decimal_places") == 0 else "number"
    values = facts.get("range_values")
    if sdtype == "categorical" and values and all(isinstance(each, str) for each in values):
        return "text"
    return {"categorical": "category", "datetime": "date"}.get(sdtype, sdtype)


def _together(values: list, kind: str) -> str:
    """Values in one cell: with semicolons, or as JSON where these would be read as others."""
    text = "; ".join(map(str, values))
    found = _values(text, kind)
    is_same = found == values and list(map(type, found)) == list(map(type, values))
    return text if is_same else json.dumps(values, ensure_ascii=False)


def _headers(codebook: pd.DataFrame) -> dict[str, int]:
    """The place of each column of the codebook that gives facts."""
    letters = [_letters(str(name)) for name in codebook.columns]
    found = {}
    for key, names in _HEADERS.items():
        places = [place for place, name in enumerate(letters) if name in names]
        if len(places) > 1:
            raise ValueError(f"Several columns of the codebook are about {key}. Keep one of them.")
        if places:
            found[key] = places[0]
    if {"name", "sdtype"} <= found.keys():
        return found
    raise ValueError(
        "A codebook needs the columns 'column' and 'type', or 'variable' and 'kind'. If this is a "
        "table of data, its values are private: a draft takes its dtypes."
    )


def _warn_of_others(codebook: pd.DataFrame, found: Mapping[str, int]) -> None:
    """Warns of columns that are not read and are nearly called as one that could be."""
    known = [name for key, names in _HEADERS.items() if key not in found for name in names]
    for place, name in enumerate(codebook.columns):
        near = get_close_matches(_letters(str(name)), known, 1, 0.85)
        if near and place not in found.values():
            warnings.warn(
                f"The codebook's column {str(name)!r} is not read. If it says {near[0]!r}, call it "
                "so.",
                stacklevel=3,
            )


def _refuse(wrong: list[bool], what: str) -> None:
    if rows := [row for row, is_wrong in enumerate(wrong) if is_wrong]:
        raise ValueError(
            f"Rows {[row + 2 for row in rows[:10]]!r} of the codebook, of which the first is its "
            f"header, {what}. If this is a table of data, a draft takes its dtypes."
        )


def _sdtype(word: str, row: dict) -> str | None:
    if word in _GENERATED:
        return word
    for sdtype, words in _TYPES.items():
        if word in words:
            # Codes that are numbers are categories.
            listed = sdtype == "numerical" and row.get("range_values") is not None
            return "categorical" if listed else sdtype
    if word:
        return None
    if row.get("range_values") is not None:
        return "categorical"
    bounded = row.get("range_min") is not None or row.get("range_max") is not None
    return "numerical" if bounded else None


def _facts(sdtype: str, word: str, row: dict, decimal: str) -> dict:
    """The documented facts that apply to a column of the sdtype."""
    read: dict[str, Callable] = {
        "range_is_nullable": _truth,
        "missing_codes": lambda cell: _values(cell, word),
    }
    if sdtype in ("categorical", "ordinal"):
        read |= {"range_values": lambda cell: _values(cell, word), "other_value": lambda cell: cell}
        read |= {"groups": _groups, "prefix": _whole}
    elif sdtype != "boolean":
        moment = lambda cell: cell.strip() if isinstance(cell, str) else cell
        end = _bound if sdtype == "numerical" else moment
        read |= {"range_min": end, "range_max": end}
        read |= {"decimal_places": _whole} if sdtype == "numerical" else {}
    facts = {key: reader(row[key]) for key, reader in read.items() if row.get(key) is not None}
    if sdtype == "numerical" and word in _WHOLE:
        facts.setdefault("decimal_places", 0)
    form, places = row.get("format"), facts.get("decimal_places")
    if form is None and word == "percent":
        form = percent_of(places, decimal)
    return {**_written(sdtype, word, form), **facts}


def _written(sdtype: str, word: str, form: Any) -> dict:
    """What a word for a type and a format say of how cells are written."""
    form = None if form is None else str(form).strip()
    if word == "time":
        return dict(TimeOfDay(**({} if form is None else {"datetime_format": form})))
    if sdtype == "numerical":
        return {} if form is None else {"number_format": form}
    if sdtype == "boolean" and form is not None:
        return dict(Boolean(*_values("; ".join(map(str.strip, form.split("/", 1))), word)))
    return {"datetime_format": form} if sdtype == "datetime" and form is not None else {}


def _values(cell: Any, word: str) -> list:
    if not isinstance(cell, str):
        return list(cell) if isinstance(cell, list | tuple | range) else [cell]
    with suppress(ValueError):
        if isinstance(found := json.loads(cell), list):
            return found
    texts = [code for code, _ in _coded(cell)]
    if word in _TEXT:
        return texts
    numbers = [number_in(text, None) for text in texts]
    written = [str(number) == text for number, text in zip(numbers, texts, strict=True)]
    return numbers if all(written) else texts


def _coded(cell: str) -> list[tuple[str, str]]:
    """The codes of a cell with what each stands for: itself, where no equals sign says it."""
    separator = next((each for each in _SEPARATORS if each in cell), ";")
    pairs = [text.partition("=") for text in cell.split(separator)]
    return [(code.strip(), (said or code).strip()) for code, _, said in pairs if code.strip()]


def _true_and_false(cell: Any) -> str | None:
    """The format of values of which one says yes and one no; empty if they do not.

    There is none where there are no values, and where true and false are read without.
    """
    if cell is None:
        return None
    pairs = _coded(cell if isinstance(cell, str) else "; ".join(map(str, cell)))
    is_plain = {code.lower() for code, _ in pairs} in ({"true", "false"}, {"1", "0"})
    if is_plain and all(_truth(said) in (None, _truth(code)) for code, said in pairs):
        return None
    codes = {_truth(said): code for code, said in pairs}
    return f"{codes[True]}/{codes[False]}" if codes.keys() == {True, False} else ""


def _groups(cell: Any) -> Any:
    """Codes and their groups: JSON, or pairs with an equals sign. What is neither stays text."""
    with suppress(TypeError, ValueError):
        return json.loads(cell)
    separator = next((each for each in _SEPARATORS if each in str(cell)), ";")
    pairs = [text.partition("=") for text in str(cell).split(separator) if text.strip()]
    if not all(equals for _, equals, _ in pairs):
        return cell
    return {code.strip(): group.strip() for code, _, group in pairs}


def _bound(cell: Any) -> Any:
    """The number that the text is, if it is one; dates stay text."""
    if not isinstance(cell, str):
        return cell
    number = number_in(cell.strip(), None)
    return cell.strip() if number is None else number


def _whole(cell: Any) -> Any:
    """An integer if pandas has made it a float, because other rows have none."""
    number = _bound(cell)
    return int(number) if isinstance(number, float) and number.is_integer() else number


def _truth(cell: Any) -> bool | None:
    """Whether values may be missing; ``None`` if the codebook's word is unknown."""
    if isinstance(cell, bool):
        return cell
    word = re.sub("[^a-z0-9]", "", str(_whole(cell)).lower())
    return {**dict.fromkeys(_YES, True), **dict.fromkeys(_NO, False)}.get(word)


def _letters(text: str) -> str:
    return re.sub("[^a-z]", "", text.lower())


def _is_blank(cell: Any) -> bool:
    if isinstance(cell, str):
        return not cell.strip()
    return pd.api.types.is_scalar(cell) and bool(pd.isna(cell))
