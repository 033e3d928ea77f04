"""Kinds of files that tables are read from and rows are written to, by their endings."""

from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Literal

from sdv_privpgd.cli.saying import CommandError

_TEXT = (".csv", ".tsv", ".txt")
_PARQUET = (".parquet", ".pq")
_COMPRESSED = {".gz": "gzip", ".bz2": "bz2", ".xz": "xz", ".zip": "zip"}
_MODULES = {"parquet": "pyarrow", "excel": "openpyxl"}
_KNOWN = f"{', '.join(_TEXT)} (also with {', '.join(_COMPRESSED)}) and {', '.join(_PARQUET)}"


@dataclass(frozen=True, kw_only=True)
class Kind:
    """The kind of a file, by its name.

    Attributes:
        form: The form of its rows.
        sep: The separator of columns in text, unless the user names another.
        compression: pandas' word for its compression.

    >>> Kind(form="text", sep=";", compression="gzip").form
    'text'
    """

    form: Literal["text", "parquet", "excel"]
    sep: str = ","
    compression: str | None = None


def kind_read(path: Path) -> Kind:
    """The kind of a table's file. Raises ``CommandError`` for a kind that cannot be read.

    >>> kind_read(Path("table.csv.gz"))
    Kind(form='text', sep=',', compression='gzip')
    """
    kind = _kind(path)
    if kind is None:
        raise CommandError(f"Cannot tell what {path} is: tables end in {_KNOWN}, or .xlsx.")
    return _with_module(path, kind)


def kind_written(path: Path) -> Kind:
    """The kind of a file for rows. Raises ``CommandError`` for a kind that cannot be written.

    >>> kind_written(Path("synthetic.parquet")).form
    'parquet'
    """
    kind = _kind(path)
    if kind is None or kind.form == "excel":
        raise CommandError(f"Cannot write rows to {path}: give a name that ends in {_KNOWN}.")
    return _with_module(path, kind)


def _kind(path: Path) -> Kind | None:
    endings = [ending.lower() for ending in path.suffixes]
    last = endings[-1] if endings else ""
    if last in _PARQUET:
        return Kind(form="parquet")
    if last == ".xlsx":
        return Kind(form="excel")
    compression = _COMPRESSED.get(last)
    ending = last if compression is None else ([""] + endings)[-2]
    if ending not in _TEXT:
        return None
    return Kind(form="text", sep="\t" if ending == ".tsv" else ",", compression=compression)


def _with_module(path: Path, kind: Kind) -> Kind:
    module = _MODULES.get(kind.form)
    if module is not None and find_spec(module) is None:
        raise CommandError(f"{path} needs {module}: pip install {module}.")
    return kind
