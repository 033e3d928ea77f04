"""Kinds of files that tables are read from and rows are written to, by their endings."""

from importlib.util import find_spec
from pathlib import Path

from sdv_privpgd.cli.saying import CommandError
from sdv_privpgd.sources.files import KNOWN, Kind, kind_of

_MODULES = {"parquet": "pyarrow", "excel": "openpyxl"}


def kind_read(path: Path) -> Kind:
    """The kind of a table's file. Raises ``CommandError`` for a kind that cannot be read."""
    kind = kind_of(path)
    if kind is None:
        raise CommandError(f"Cannot tell what {path} is: tables end in {KNOWN}, or .xlsx.")
    return _with_module(path, kind)


def kind_written(path: Path) -> Kind:
    """The kind of a file for rows. Raises ``CommandError`` for a kind that cannot be written."""
    kind = kind_of(path)
    if kind is None or kind.form == "excel":
        raise CommandError(f"Cannot write rows to {path}: give a name that ends in {KNOWN}.")
    return _with_module(path, kind)


def check_report(path: Path) -> None:
    """Raises ``CommandError`` for a file whose ending no report has."""
    from sdv_privpgd.report.page import checked_ending

    try:
        checked_ending(path)
    except ValueError as error:
        raise CommandError(str(error)) from None


def _with_module(path: Path, kind: Kind) -> Kind:
    module = _MODULES.get(kind.form)
    if module is not None and find_spec(module) is None:
        raise CommandError(f"{path} needs {module}: pip install {module}.")
    return kind
