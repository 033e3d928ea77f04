"""Reads the documents that a user writes about a table: metadata and domain. Public."""

import json
import re
from collections.abc import Mapping
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sdv_privpgd._lazy import is_there
from sdv_privpgd.base.damage import DamagedFileError, undamaged
from sdv_privpgd.cli.saying import CommandError, reason, say

if TYPE_CHECKING:
    import pandas as pd
    from sdv.metadata import Metadata

_TABLE = "table"

_TYPE_OF_KEY = {
    "datetime_format": "datetime",
    "range_min": "numerical",
    "range_max": "numerical",
    "decimal_places": "numerical",
    "increment": "numerical",
    "range_values": "categorical",
    "other_value": "categorical",
}
"""What each fact says a column holds, the ends of ranges if they are numbers."""

_ISO = re.compile(r"\d{4}-\d\d?(-|$)")


def read_metadata(path: Path) -> "Metadata":
    """Reads SDV's metadata of one table."""
    from sdv.metadata import Metadata

    facts = _read_tables(path)
    try:
        return Metadata.load_from_dict(facts)
    except Exception as error:  # noqa: BLE001 - public as well, whatever SDV raises
        text = " ".join(str(error).split())
        raise CommandError(f"{path} is not SDV's metadata: {text}") from None


def described_in(path: Path) -> dict[str, Any]:
    """SDV's metadata of one table as a dictionary. SDV checks it where it is installed."""
    from sdv_privpgd.drafting.template import table_of

    facts = read_metadata(path).to_dict() if is_there("sdv") else _read_tables(path)
    try:
        table_of(facts)
    except (AttributeError, TypeError, ValueError) as error:
        raise CommandError(f"{path} is not SDV's metadata: {error}") from None
    return facts


def _read_tables(path: Path) -> Any:
    """The JSON of SDV's metadata, that of one table alone as the only one of several."""
    facts = read_json(path)
    if isinstance(facts, dict) and "tables" not in facts:
        facts = {"tables": {_TABLE: facts}}
    _require_sdtypes(path, facts)
    return facts


def _require_sdtypes(path: Path, facts: Any) -> None:
    """Raises ``CommandError`` for columns whose sdtype a draft has left to be filled in."""
    tables = facts.get("tables") if isinstance(facts, dict) else None
    for table in tables.values() if isinstance(tables, dict) else []:
        columns = table.get("columns") if isinstance(table, dict) else None
        blank = [
            name
            for name, known in (columns.items() if isinstance(columns, dict) else [])
            if isinstance(known, dict) and known.get("sdtype", "") is None
        ]
        if blank:
            raise CommandError(
                f"{path}: fill in the sdtype of {blank!r}: numerical, categorical, ordinal, "
                "boolean, datetime or, where a column is not to be modelled, id."
            )


def detected_metadata(table: "pd.DataFrame") -> "Metadata":
    """Metadata with the types that SDV detects. They become public."""
    from sdv.metadata import Metadata

    say(
        "The types of the columns were detected from the table and are taken as public; "
        "--metadata says them without looking, and so does --types dtypes."
    )
    try:
        return Metadata.detect_from_dataframes({_TABLE: table})
    except Exception as error:  # noqa: BLE001 - its text may hold a value of the table
        kind = type(error).__name__
        raise CommandError(
            f"SDV cannot detect the columns' types ({kind}). Give them with --metadata."
        ) from None


def columns_of(metadata: "Metadata") -> dict[str, dict]:
    """SDV's facts on each column of one table."""
    tables = list(metadata.tables.values())
    if len(tables) != 1:
        raise CommandError(f"The metadata must be of one table, not of {len(tables)}.")
    return tables[0].columns


def read_facts(path: Path | None) -> dict[str, dict] | None:
    """Reads the public domain, a mapping from columns to facts, from JSON or YAML."""
    from sdv_privpgd import read_domain

    if path is None:
        return None
    try:
        return read_domain(path)
    except OSError as error:
        raise CommandError(f"Cannot read {path}: {reason(error)}.") from None
    except (ValueError, ImportError) as error:  # public: it is documentation
        raise CommandError(str(error)) from None


def metadata_of_types(types: Mapping[str, Any]) -> "Metadata":
    """Metadata that follows from the dtypes of columns, which no cell has decided."""
    from sdv_privpgd import draft_metadata

    try:
        return draft_metadata(types, table_name=_TABLE)
    except ValueError as error:
        raise CommandError(str(error)) from None


def with_types_of(metadata: "Metadata", facts: Mapping[str, Mapping] | None) -> "Metadata":
    """The same metadata, but that columns are of the types that what is declared of them says.

    To detection, and to the dtype of text, dates such as 05.01.2024 are categories or ids, and to
    detection numbers of which there are few different ones are categories.
    """
    columns, table = columns_of(metadata), next(iter(metadata.tables.values()))
    for name, known in (facts or {}).items():
        said = declared_type(known)
        if name not in columns or said is None:
            continue
        is_ordered = said == "categorical" and columns[name]["sdtype"] == "ordinal"
        if not has_format(known) and (columns[name]["sdtype"] == said or is_ordered):
            continue
        if table.primary_key == name:  # what is unique is taken for a key
            table.remove_primary_key()
        form = {"datetime_format": known["datetime_format"]} if has_format(known) else {}
        columns[name] = {"sdtype": said, **form}
    return metadata


def declared_type(facts: Any) -> str | None:
    """The type that facts on a column say it has; ``None`` if they say none, or several."""
    if not isinstance(facts, Mapping):
        return None
    said = {
        kind
        for key, kind in _TYPE_OF_KEY.items()
        for fact in [facts.get(key)]
        if fact is not None and (kind != "numerical" or _is_number(fact))
    }
    if any(_is_date(facts.get(key)) for key in ("range_min", "range_max")):
        said.add("datetime")
    return said.pop() if len(said) == 1 else None


def _is_number(fact: Any) -> bool:
    return isinstance(fact, int | float) and not isinstance(fact, bool)


def _is_date(fact: Any) -> bool:
    """Whether an end of a range is a date of YAML, or text that begins as one in ISO 8601."""
    return isinstance(fact, date) or (isinstance(fact, str) and bool(_ISO.match(fact)))


def has_format(facts: Any) -> bool:
    """Whether facts on a column declare how its dates are written."""
    return isinstance(facts, Mapping) and isinstance(facts.get("datetime_format"), str)


def read_json(path: Path) -> Any:
    """Reads a document in JSON."""
    try:
        with undamaged(path, "JSON"):  # public: it is documentation
            return json.loads(path.read_text(encoding="utf-8-sig"))
    except DamagedFileError as error:
        raise CommandError(str(error)) from None
