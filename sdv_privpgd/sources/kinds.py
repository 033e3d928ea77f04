"""Kinds of files that hold tables, by their endings."""

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

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
