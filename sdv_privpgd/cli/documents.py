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
    """Reads SDV's metadata of one table.

    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     path = Path(folder, "metadata.json")
    ...     _ = path.write_text('{"columns": {"age": {"sdtype": "numerical"}}}')
    ...     metadata = read_metadata(path)
    >>> columns_of(metadata)
    {'age': {'sdtype': 'numerical'}}
    """
    from sdv.metadata import Metadata

    facts = read_json(path)
    if isinstance(facts, dict) and "tables" not in facts:
        facts = {"tables": {_TABLE: facts}}
    _require_sdtypes(path, facts)
    try:
        return Metadata.load_from_dict(facts)
    except Exception as error:  # noqa: BLE001 - public as well, whatever SDV raises
        text = " ".join(str(error).split())
        raise CommandError(f"{path} is not SDV's metadata: {text}") from None


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
    """Metadata with the types that SDV detects. They become public.

    >>> import pandas as pd
    >>> metadata = detected_metadata(pd.DataFrame({"age": [34.5, 71.0, 25.0] * 10}))
    >>> columns_of(metadata)["age"]["sdtype"]
    'numerical'
    """
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
    """SDV's facts on each column of one table.

    >>> import numpy as np
    >>> columns_of(metadata_of_types({"age": np.dtype("int64")}))
    {'age': {'sdtype': 'numerical'}}
    """
    tables = list(metadata.tables.values())
    if len(tables) != 1:
        raise CommandError(f"The metadata must be of one table, not of {len(tables)}.")
    return tables[0].columns


def read_facts(path: Path | None) -> dict[str, dict] | None:
    """Reads the public domain, a mapping from columns to facts, from JSON or YAML.

    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     path = Path(folder, "domain.json")
    ...     _ = path.write_text('{"age": {"range_min": 0, "range_max": 110}}')
    ...     read_facts(path)
    {'age': {'range_min': 0, 'range_max': 110}}
    """
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
    """Metadata that follows from the dtypes of columns, which no cell has decided.

    >>> import numpy as np
    >>> metadata_of_types({"age": np.dtype("int64")}).to_dict()["tables"]
    {'table': {'columns': {'age': {'sdtype': 'numerical'}}}}
    """
    from sdv_privpgd import draft_metadata

    try:
        return draft_metadata(types, table_name=_TABLE)
    except ValueError as error:
        raise CommandError(str(error)) from None


def with_dates_of(metadata: "Metadata", facts: Mapping[str, Mapping] | None) -> "Metadata":
    """The same metadata, but that columns with a declared format of dates are dates.

    To detection, and to the dtype of text, dates such as 05.01.2024 are categories or ids.

    >>> import numpy as np
    >>> found = metadata_of_types({"born": np.dtype(object)})
    >>> columns_of(with_dates_of(found, {"born": {"datetime_format": "%d.%m.%Y"}}))["born"]
    {'sdtype': 'datetime', 'datetime_format': '%d.%m.%Y'}
    """
    columns, table = columns_of(metadata), next(iter(metadata.tables.values()))
    for name, known in (facts or {}).items():
        if name in columns and has_format(known):
            if table.primary_key == name:  # dates that are unique are taken for keys
                table.remove_primary_key()
            columns[name] = {"sdtype": "datetime", "datetime_format": known["datetime_format"]}
    return metadata


def has_format(facts: Any) -> bool:
    """Whether facts on a column declare how its dates are written.

    >>> has_format({"datetime_format": "%d.%m.%Y"}), has_format({"range_min": 0})
    (True, False)
    """
    return isinstance(facts, Mapping) and isinstance(facts.get("datetime_format"), str)


def read_json(path: Path) -> Any:
    """Reads a document in JSON.

    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     path = Path(folder, "facts.json")
    ...     _ = path.write_text('{"rows": 3}')
    ...     read_json(path)
    {'rows': 3}
    """
    try:
        return json.loads(path.read_text(encoding="utf-8-sig"))
    except OSError as error:
        raise CommandError(f"Cannot read {path}: {reason(error)}.") from None
    except ValueError as error:  # public: it is documentation
        raise CommandError(f"{path} is not JSON: {error}.") from None
