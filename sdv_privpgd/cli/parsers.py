"""Reads files by pandas, and says nothing about the contents of their cells.

Privacy: a message may say whether a file can be parsed. It names no row, no cell and no number of
rows, so a parser's own messages are not passed on.
"""

import bz2
import gzip
import lzma
import warnings
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, BinaryIO, TypeVar

import pandas as pd

from sdv_privpgd.cli.dialect import Reading
from sdv_privpgd.cli.files import Kind
from sdv_privpgd.cli.saying import CommandError, reason

_BOMS = {b"\xef\xbb\xbf": "utf-8-sig", b"\xff\xfe": "utf-16", b"\xfe\xff": "utf-16"}

Read = TypeVar("Read")


def first_record(path: Path, how: Reading, kind: Kind) -> list[str]:
    """The fields of the first record of text.

    >>> from sdv_privpgd.cli.files import kind_read
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     path = Path(folder, "table.csv")
    ...     pd.DataFrame({"age": [34], "ward": ["A"]}).to_csv(path, index=False)
    ...     first_record(path, Reading(), kind_read(path))
    ['age', 'ward']
    """
    return parsed_text(path, how, kind, header=None, nrows=1, dtype=str).iloc[0].tolist()


def parsed_text(path: Path, how: Reading, kind: Kind, **options: Any) -> pd.DataFrame:
    """Reads text by pandas, without an index. No record may be shorter than the first data row.

    >>> from sdv_privpgd.cli.files import kind_read
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     path = Path(folder, "table.csv")
    ...     pd.DataFrame({"age": [34], "ward": ["A"]}).to_csv(path, index=False)
    ...     parsed_text(path, Reading(), kind_read(path))
       age ward
    0   34    A
    """
    encoding = _encoding(path, how, kind)

    def parse() -> pd.DataFrame:
        read: Any = pd.read_csv  # its overloads do not know options that are passed on
        return read(
            path,
            sep=how.sep or kind.sep,
            decimal=how.decimal,
            encoding=encoding,
            compression=kind.compression,
            index_col=False,
            keep_default_na=False,
            low_memory=False,
            **options,
        )

    return _withheld(path, "text", parse)


def parsed_sheet(path: Path, how: Reading) -> pd.DataFrame:
    """The cells of one sheet of a workbook, with their own types and without names."""
    sheets: dict[Any, pd.DataFrame] = _withheld(
        path,
        "a workbook",
        lambda: pd.read_excel(
            path, sheet_name=None, header=None, dtype=object, na_values=[""], keep_default_na=False
        ),
    )
    if how.sheet is None and len(sheets) > 1:
        raise CommandError(f"{path} has several sheets: name one with --sheet.")
    if how.sheet is not None and how.sheet not in sheets:
        raise CommandError(f"{path} has no sheet {how.sheet!r}.")
    cells = next(iter(sheets.values())) if how.sheet is None else sheets[how.sheet]
    if cells.empty:
        raise CommandError(f"{path} is empty.")
    return cells


def parsed_parquet(path: Path) -> pd.DataFrame:
    """The table of a Parquet file, with the index that pandas stored in it.

    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     path = Path(folder, "table.parquet")
    ...     pd.DataFrame({"age": [34, 71]}).to_parquet(path)
    ...     parsed_parquet(path)["age"].tolist()
    [34, 71]
    """
    return _withheld(path, "Parquet", lambda: pd.read_parquet(path))


def parsed_schema(path: Path) -> pd.DataFrame:
    """The table of a Parquet file without its rows.

    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     path = Path(folder, "table.parquet")
    ...     pd.DataFrame({"age": [34, 71]}).to_parquet(path)
    ...     parsed_schema(path)["age"].dtype
    dtype('int64')
    """
    import pyarrow.parquet

    return _withheld(
        path, "Parquet", lambda: pyarrow.parquet.read_schema(path).empty_table().to_pandas()
    )


def _encoding(path: Path, how: Reading, kind: Kind) -> str:
    """The encoding that the user names, or that of the first bytes.

    Raises ``CommandError`` if the two do not fit together.
    """
    with _withheld(path, "text", lambda: _opened(path, kind)) as file:
        start = _withheld(path, "text", lambda: file.read(4096))
    marked = [encoding for mark, encoding in _BOMS.items() if start.startswith(mark)]
    encoding = how.encoding or (marked[0] if marked else "utf-8")
    if b"\0" in start and not encoding.startswith(("utf-16", "utf-32")):
        raise CommandError(f"{path} is not in {encoding}. Name its --encoding, such as utf-16-le.")
    return encoding


def _opened(path: Path, kind: Kind) -> BinaryIO:
    if kind.compression == "zip":
        archive = zipfile.ZipFile(path)
        return archive.open(archive.namelist()[0])  # pyright: ignore[reportReturnType]
    openers: dict[str | None, Callable] = {
        "gzip": gzip.open,
        "bz2": bz2.open,
        "xz": lzma.open,
        None: open,
    }
    return openers[kind.compression](path, "rb")


def _withheld(path: Path, what: str, read: Callable[[], Read]) -> Read:
    """Calls a parser and hides its messages, which may quote the file's cells."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            # The first data row has more fields than there are names.
            warnings.simplefilter("error", pd.errors.ParserWarning)
            return read()
    except UnicodeError:
        raise CommandError(
            f"{path} is not in the encoding that it is read with. Name its --encoding: utf-8, "
            "cp1252 and utf-16 are usual."
        ) from None
    except pd.errors.EmptyDataError:
        raise CommandError(f"{path} is empty.") from None
    except (pd.errors.ParserError, pd.errors.ParserWarning):
        raise CommandError(
            f"Cannot read {path}: rows have more fields than there are names, or a quote is open. "
            "Correct the file, or name what separates its columns with --sep."
        ) from None
    except OSError as error:
        raise CommandError(f"Cannot read {path}: {reason(error)}.") from None
    except Exception as error:  # noqa: BLE001 - any parser's
        raise CommandError(f"Cannot read {path} as {what}: {type(error).__name__}.") from None
