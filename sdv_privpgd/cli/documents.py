"""Reads the documents that a user writes about a table: metadata and domain. Public."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sdv_privpgd.cli.saying import CommandError, reason, say

if TYPE_CHECKING:
    import pandas as pd
    from sdv.metadata import Metadata

_TABLE = "table"


def read_metadata(path: Path) -> "Metadata":
    """Reads SDV's metadata of one table."""
    from sdv.metadata import Metadata

    facts = read_json(path)
    if isinstance(facts, dict) and "tables" not in facts:
        facts = {"tables": {_TABLE: facts}}
    try:
        return Metadata.load_from_dict(facts)
    except Exception as error:  # noqa: BLE001 - public as well, whatever SDV raises
        text = " ".join(str(error).split())
        raise CommandError(f"{path} is not SDV's metadata: {text}") from None


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


def columns_of(metadata: "Metadata") -> Mapping[str, Mapping]:
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


def read_json(path: Path) -> Any:
    """Reads a document in JSON."""
    try:
        return json.loads(path.read_text(encoding="utf-8-sig"))
    except OSError as error:
        raise CommandError(f"Cannot read {path}: {reason(error)}.") from None
    except ValueError as error:  # public: it is documentation
        raise CommandError(f"{path} is not JSON: {error}.") from None
