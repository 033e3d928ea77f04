"""Paths of tables: patterns, and kinds of files by their names. Public."""

import os
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from glob import glob, has_magic
from pathlib import Path
from typing import Any, Literal

from sdv_privpgd.base.arguments import SourceError

TEXT = (".csv", ".tsv", ".txt")
PARQUET = (".parquet", ".pq")
COMPRESSED = {".gz": "gzip", ".bz2": "bz2", ".xz": "xz", ".zip": "zip"}
KNOWN = f"{', '.join(TEXT)} (also with {', '.join(COMPRESSED)}) and {', '.join(PARQUET)}"
"""The endings that are both read and written, in words."""


@dataclass(frozen=True, kw_only=True)
class Kind:
    """The kind of a file, by its name.

    Attributes:
        form: The form of its rows.
        sep: The separator of columns in text, unless the user names another.
        compression: pandas' word for its compression.
    """

    form: Literal["text", "parquet", "excel"]
    sep: str = ","
    compression: str | None = None


def kind_of(path: Path) -> Kind | None:
    """The kind of a file; ``None`` if its ending says none that is known."""
    endings = [ending.lower() for ending in path.suffixes]
    last = endings[-1] if endings else ""
    if last in PARQUET:
        return Kind(form="parquet")
    if last == ".xlsx":
        return Kind(form="excel")
    compression = COMPRESSED.get(last)
    ending = last if compression is None else ([""] + endings)[-2]
    if ending not in TEXT:
        return None
    return Kind(form="text", sep="\t" if ending == ".tsv" else ",", compression=compression)


_DOCUMENTS = ("readme", "license", "licence", "changelog")


def files_of(paths: str | os.PathLike | Sequence) -> list[Path]:
    """The files that paths and patterns name, in order.

    Raises ``SourceError`` if there are none, and for a file that is named twice: its rows would
    count twice, and their people have a half of the protection.

    Of a folder it takes all files whose names begin with no point and no underscore; documents
    beside tables, such as a README, are passed over.
    """
    found = _files_of(paths)
    _require_each_once(found)
    return found


def are_text(paths: Any) -> bool:
    """Whether a path or a pattern, the first of several, names a file of text by its ending."""
    first = next(iter(paths), None) if isinstance(paths, list | tuple) else paths
    if isinstance(first, str | os.PathLike):
        with suppress(SourceError):
            kind = kind_of(_files_of(first)[0])
            return kind is not None and kind.form == "text"
    return False


def _files_of(paths: str | os.PathLike | Sequence) -> list[Path]:
    if not isinstance(paths, str | os.PathLike):
        return [path for each in paths for path in _files_of(each)]
    text = os.path.expanduser(os.fspath(paths))
    if os.path.isdir(text):
        inside = (path for path in Path(text).rglob("*") if path.is_file())
        shown = sorted(path for path in inside if not path.name.startswith((".", "_")))
        found = [path for path in shown if _is_table(path)] or shown
    elif os.path.exists(text) or not has_magic(text):
        found = [Path(text)] if os.path.exists(text) else []
    else:
        found = [Path(each) for each in sorted(glob(text, recursive=True)) if os.path.isfile(each)]
    if not found and os.path.isdir(text):
        raise SourceError(
            f"The folder {os.fspath(paths)} holds no file whose name begins with a letter or digit."
        )
    if not found:
        raise SourceError(f"There is no file {os.fspath(paths)}.")
    return found


def _is_table(path: Path) -> bool:
    """Whether a file's name is that of a table, and of no document."""
    return kind_of(path) is not None and not path.stem.lower().startswith(_DOCUMENTS)


def _require_each_once(paths: Sequence[Path]) -> None:
    seen: dict[Any, Path] = {}
    for path in paths:
        facts = path.stat()
        unpacked = path.with_suffix("") if path.suffix.lower() in COMPRESSED else path
        for mark in ((facts.st_dev, facts.st_ino), unpacked.resolve()):
            if seen.setdefault(mark, path) is not path:
                raise SourceError(
                    f"{seen[mark]} and {path} are the same table: its rows would be read twice, "
                    "and count as those of two. Name each file once."
                )
