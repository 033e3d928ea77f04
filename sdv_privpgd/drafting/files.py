"""Public domains in files that people can read and write: JSON, YAML and spreadsheets."""

import datetime
import json
from collections.abc import Mapping
from decimal import Decimal
from fractions import Fraction
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from pandas.api.typing import NaTType

from sdv_privpgd.base.files import TREES, undamaged, write_tree, yaml_for
from sdv_privpgd.columns.scalars import plain
from sdv_privpgd.drafting.codebook import codebook_of, filled_in, read_codebook

_VALUES = "range_values", "other_value"

SHEETS = (".csv", ".xlsx")

FILES = (*TREES, *SHEETS)
"""The endings of files that hold a domain."""

_MOST_PRINTED = 40
"""Items of a list that are all printed."""


def read_domain(path: str | Path, *, decimal: str = ".") -> dict[str, dict]:
    """The public domain that a file holds, for ``public_domain``.

    Args:
        path: A JSON file (``.json``), a YAML file (``.yaml`` or ``.yml``, which needs PyYAML), or a
            codebook, which has a row for each column: ``.csv``, or ``.xlsx``, which needs openpyxl.
            It says the sdtypes, too; ``drafting.codebook.read_codebook`` describes its columns.
        decimal: What stands before the decimals of a codebook's percentages in the table.

    Raises:
        ValueError: For another ending, and for a file that does not map columns to facts.
        ImportError: For YAML or a workbook if what reads it is not installed.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = write_domain({"age": {"range_min": 0, "range_max": 110}}, f"{folder}/d.json")
    ...     print(read_domain(path))
    {'age': {'range_min': 0, 'range_max': 110}}
    """
    path = Path(path)
    if path.suffix.lower() in SHEETS:
        return _of_codebook(path, decimal)
    yaml = yaml_for(path, FILES)
    kind, load = ("JSON", json.loads) if yaml is None else ("YAML", yaml.safe_load)
    with undamaged(path, kind, OSError):
        found = load(path.read_text(encoding="utf-8"))
    if not isinstance(found, Mapping) or not all(
        isinstance(facts, Mapping | None) for facts in found.values()
    ):
        raise ValueError(
            f"{path} must map columns to facts, as in {{'age': {{'range_min': 0, 'range_max': "
            "120}}."
        )
    return {str(name): dict(facts or {}) for name, facts in found.items()}


def write_domain(domain: Mapping[str, Mapping], path: str | Path) -> Path:
    """Writes a public domain to a file that ``read_domain`` reads, and returns the file's path.

    The type of a declaration is written with its facts, and dates as text in their column's format,
    or in ISO 8601. A codebook (``.csv`` or ``.xlsx``) has a row for each column.

    Raises:
        ValueError: For another ending than those that ``read_domain`` reads, and for a fact that
            such files cannot hold, such as bytes.
        ImportError: For YAML or a workbook if what writes it is not installed.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_domain({"age": {"range_min": 0}}, f"{folder}/domain.json").name
    'domain.json'
    """
    path = Path(path)
    kinds = {str(name): getattr(own, "sdtype", None) for name, own in domain.items()}
    types = {name: {"sdtype": kind} if kind else {} for name, kind in kinds.items()}
    facts = {name: {**types[name], **own} for name, own in plain_domain(domain).items()}
    if path.suffix.lower() in SHEETS:
        sheet = codebook_of(facts)
        if path.suffix.lower() == ".csv":
            sheet.to_csv(path, index=False)
        else:
            _require_openpyxl(path)
            sheet.to_excel(path, index=False)
        return path
    return write_tree(facts, path, FILES)


def _of_codebook(path: Path, decimal: str) -> dict[str, dict]:
    """The facts of a codebook in a file. Text stays as it is written."""
    options: dict[str, Any] = {"dtype": object, "na_values": [""], "keep_default_na": False}
    with undamaged(path, "codebook", OSError, ImportError):
        if path.suffix.lower() == ".csv":
            # Excel writes semicolons where a comma stands before decimals.
            first = path.read_text(encoding="utf-8-sig").partition("\n")[0]
            sep = ";" if first.count(";") > first.count(",") else ","
            sheet = pd.read_csv(path, sep=sep, encoding="utf-8-sig", **options)
        else:
            _require_openpyxl(path)
            sheet = pd.read_excel(path, **options)
        return read_codebook(filled_in(sheet), keeps_ids=True, decimal=decimal)


def _require_openpyxl(path: Path) -> None:
    if find_spec("openpyxl") is None:
        raise ImportError(f"{path} needs openpyxl: pip install openpyxl. A .csv needs nothing.")


def plain_domain(domain: Mapping[str, Mapping], *, keeps: bool = False) -> dict[str, dict]:
    """The same domain in lists, text, numbers, booleans and ``None``, which files can hold.

    What has no such form, as a time of the day among the categories, raises ``ValueError``, unless
    it ``keeps`` such values as they are.
    """
    return {
        str(name): {
            str(key): (_categories if key in _VALUES else _plain)(
                f"{key} of {name!r}", fact, facts.get("datetime_format"), keeps
            )
            for key, fact in facts.items()
        }
        for name, facts in domain.items()
    }


class ShortList(list):
    """A list that is printed with its first and last items alone, if it is long."""

    def __repr__(self) -> str:
        if len(self) <= _MOST_PRINTED:
            return super().__repr__()
        first, last = (", ".join(map(repr, each)) for each in (self[:3], self[-3:]))
        return f"[{first}, ... {len(self) - 6} more ..., {last}]"


def shortly(domain: Mapping[str, Mapping]) -> dict[str, dict]:
    """The same domain, of which long lists are printed shortly."""
    return {
        name: {
            key: ShortList(fact) if isinstance(fact, list) else fact for key, fact in facts.items()
        }
        for name, facts in domain.items()
    }


def _categories(what: str, fact: Any, datetime_format: str | None, keeps: bool) -> Any:
    """As ``_plain``, but a date among categories is kept, or refused: its text is another value."""
    listed = isinstance(fact, list | tuple | np.ndarray | pd.Index | pd.Series)
    if any(isinstance(each, datetime.date) for each in (fact if listed else [fact])):
        if not keeps:
            raise ValueError(f"{what} cannot be written to a file: it has dates. Write text.")
        return list(fact) if listed else fact
    return _plain(what, fact, datetime_format, keeps)


def _plain(what: str, fact: Any, datetime_format: str | None, keeps: bool) -> Any:
    if isinstance(fact, Mapping):
        return {str(code): _plain(what, group, None, keeps) for code, group in fact.items()}
    if isinstance(fact, list | tuple | range | np.ndarray | pd.Index | pd.Series):
        return [_plain(what, each, datetime_format, keeps) for each in fact]
    if isinstance(fact, datetime.date | np.datetime64):
        moment = pd.Timestamp(fact)
        if datetime_format is None or isinstance(moment, NaTType):
            return None if isinstance(moment, NaTType) else str(moment).removesuffix(" 00:00:00")
        return moment.strftime(datetime_format)
    read = plain(fact)  # NumPy's scalars and enumerations become built-in types
    if isinstance(read, Decimal | Fraction):
        return int(read) if read == int(read) else float(read)
    is_read = read is not None or fact is None or fact is pd.NA or fact != fact
    if is_read and not isinstance(read, bytes):
        return read
    if keeps:
        return fact
    raise ValueError(f"{what} cannot be written to a file, got {fact!r}. Write it as text.")
