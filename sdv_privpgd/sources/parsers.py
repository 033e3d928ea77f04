"""Parses files of text by pandas, and says nothing about the contents of their cells.

Privacy: a message may say whether a file can be parsed. It names no row, no cell and no number of
rows, so a parser's own messages are not passed on.
"""

import bz2
import gzip
import io
import lzma
import warnings
import zipfile
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any, BinaryIO, TextIO

import pandas as pd

from sdv_privpgd.sources.dialect import Reading
from sdv_privpgd.sources.files import KNOWN, Kind, kind_of
from sdv_privpgd.sources.source import SourceError

_BOMS = {b"\xef\xbb\xbf": "utf-8-sig", b"\xff\xfe": "utf-16", b"\xfe\xff": "utf-16"}

_SEPARATORS = {",": "','", ";": "';'", "\t": "tab", "|": "'|'"}


class EmptyFileError(SourceError):
    """Raised for a file without any record."""


@dataclass(frozen=True, kw_only=True)
class TextFile:
    """A file of text, compressed or not, with a record a row.

    A file with a header and nothing else has no rows. One without any record has lost its header,
    as an export that failed, and is refused. Where files have no header it is one without rows:
    to refuse it would tell that a row is missing.
    """

    path: Path
    how: Reading
    kind: Kind

    @classmethod
    def at(cls, path: Path, how: Reading) -> "TextFile":
        """The file of a path. Raises ``SourceError`` if its ending is not one of text."""
        kind = kind_of(path)
        if kind is None or kind.form != "text":
            raise SourceError(f"Cannot tell what {path} is: tables end in {KNOWN}.")
        return cls(path=path, how=how, kind=kind)

    @property
    def sep(self) -> str:
        """What separates columns."""
        return self.how.sep or self.kind.sep

    def first_record(self) -> list[str]:
        """The fields of the first record, whether it is a header or a row."""
        return self.parsed(header=None, nrows=1, dtype=str).iloc[0].tolist()

    def parsed(self, **options: Any) -> pd.DataFrame:
        """All records, without an index. None may be longer than the first data row."""
        encoding = self._encoding()
        try:
            with parsing(self.path):
                return self._read(encoding, **options)
        except EmptyFileError:
            if self.how.has_header or "names" not in options:
                raise
            return pd.DataFrame(columns=options["names"], dtype=object)

    def parts(self, size: int, **options: Any) -> Iterator[pd.DataFrame]:
        """All records, so many at a time. No part is empty.

        pandas does not see that the first record of a part is too long: its last fields are lost.
        """
        encoding = self._encoding()
        try:
            with parsing(self.path):
                reader = self._read(encoding, chunksize=size, **options)
        except EmptyFileError:
            if self.how.has_header:
                raise
            return
        with reader:
            while True:
                with parsing(self.path):
                    part = next(reader, None)
                if part is None:
                    return
                if len(part):
                    yield part

    def check_separator(self, record: Sequence[str], *, is_known: bool) -> None:
        """Raises ``SourceError`` where another separator divides a header as well or better.

        ``is_known`` says whether there are facts that say how many columns there are.
        """
        how = self.how
        if not how.has_header:
            if len(record) == 1 and how.names is None and how.sep is None and not is_known:
                raise SourceError(
                    "The first record has a single field. If that is right, name a comma with "
                    "CsvFiles(sep=...); if not, name what separates the columns."
                )
            return
        text = self.sep.join(map(str, record))
        for other, said in _SEPARATORS.items():
            as_often = text.count(other) >= max(len(record) - 1, 1)
            if other != self.sep and as_often and (how.sep is None or len(record) == 1):
                raise SourceError(
                    f"The first record has {said} where columns are separated by "
                    f"{_SEPARATORS.get(self.sep, repr(self.sep))}: name what separates them with "
                    "CsvFiles(sep=...)."
                )

    def _read(self, encoding: str, **options: Any) -> Any:
        read: Any = pd.read_csv  # its overloads do not know options that are passed on
        above = int(self.how.skip_rows)
        packed = self.kind.compression
        place: Any = self.path
        if self.how.skip_footer:
            text = io.TextIOWrapper(_opened(self.path, self.kind), encoding, newline="")
            place, packed = _Footless(text, above + self.how.has_header, self.how.skip_footer), None
        return read(
            place,
            sep=self.sep,
            decimal=self.how.signs.decimal,
            encoding=encoding,
            compression=packed,
            index_col=False,
            skiprows=above,
            keep_default_na=False,
            low_memory=False,
            **options,
        )

    def _encoding(self) -> str:
        """The encoding that the user names, or that of the first bytes.

        Raises ``SourceError`` if the two do not fit together.
        """
        with parsing(self.path), _opened(self.path, self.kind) as file:
            start = file.read(4096)
        marked = [encoding for mark, encoding in _BOMS.items() if start.startswith(mark)]
        encoding = self.how.encoding or (marked[0] if marked else "utf-8")
        if b"\0" in start and not encoding.startswith(("utf-16", "utf-32")):
            raise SourceError(
                f"{self.path} is not in {encoding}. Name its encoding, such as utf-16-le, with "
                "CsvFiles(encoding=...)."
            )
        return encoding


class _Footless:
    """A file of text without its last lines, but for those at its begin, which always are there.

    Blank lines at the end are no lines. So whether a header is left depends on no row.
    """

    def __init__(self, text: TextIO, begin: int, last: int) -> None:
        self._lines, self._text = self._kept(text, begin, last), text

    def read(self, size: int = -1) -> str:
        """Returns whole lines of at least so many characters together; empty at the end."""
        found, length = [], 0
        for line in self._lines:
            found.append(line)
            length += len(line)
            if 0 <= size <= length:
                break
        return "".join(found)

    def __iter__(self) -> Iterator[str]:
        return self._lines

    @staticmethod
    def _kept(text: TextIO, begin: int, last: int) -> Iterator[str]:
        held: deque[str] = deque()
        number = 0
        with text:
            yield from islice(text, begin)
            for line in text:
                held.append(line)
                number += bool(line.strip())
                while number > last:
                    number -= bool(held[0].strip())
                    yield held.popleft()


@contextmanager
def parsing(path: Path, what: str = "text") -> Iterator[None]:
    """Hides a parser's messages, which may quote the file's cells, behind a ``SourceError``."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            # The first data row has more fields than there are names.
            warnings.simplefilter("error", pd.errors.ParserWarning)
            yield
    except UnicodeError:
        raise SourceError(
            f"{path} is not in the encoding that it is read with. Name another one with "
            "CsvFiles(encoding=...): utf-8, cp1252 and utf-16 are usual."
        ) from None
    except pd.errors.EmptyDataError:
        raise EmptyFileError(
            f"{path} is empty, without even a header: write it again, or leave it out. If there "
            "are no rows in it, its header alone says so."
        ) from None
    except (pd.errors.ParserError, pd.errors.ParserWarning):
        raise SourceError(
            f"Cannot read {path}: rows have more fields than there are names, or a quote is open. "
            "Correct the file, or name what separates its columns with CsvFiles(sep=...). If lines "
            "such as a title are above the names, or others below the rows, leave them out with "
            "CsvFiles(skip_rows=...) and CsvFiles(skip_footer=...)."
        ) from None
    except (SourceError, MemoryError):
        raise
    except OSError as error:
        raise SourceError(
            f"Cannot read {path}: {error.strerror or type(error).__name__}."
        ) from None
    except Exception as error:  # noqa: BLE001 - any parser's
        raise SourceError(f"Cannot read {path} as {what}: {type(error).__name__}.") from None


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
