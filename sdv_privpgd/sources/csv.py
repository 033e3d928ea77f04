"""CSV files and other text as a source: each cell read by itself and by public facts alone.

pandas divides a file into records and fields. What a field means is decided here and in ``texts``,
because pandas would decide it by all cells of a part: one missing cell would make floats of whole
numbers, and one word would make text of numbers.

Privacy: a message may say whether a file can be parsed, and what a cell holds never decides that in
a file as programs write them. Records end at line feeds: not all programs quote a carriage return,
so one in a cell would make two records of one. A message names no row, no cell and no number of
rows, so a parser's own messages are not passed on.
"""

import bz2
import codecs
import csv
import gzip
import io
import lzma
import os
import re
import warnings
import zipfile
from collections import defaultdict, deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any, BinaryIO, TextIO, cast

import numpy as np
import pandas as pd

from sdv_privpgd.base import cached_property
from sdv_privpgd.base.files import KNOWN, Kind, files_of, kind_of
from sdv_privpgd.base.words import listed
from sdv_privpgd.columns.column import EXACT_IN_FLOAT
from sdv_privpgd.columns.dialect import RENAME, SAY, Dialect, Facts, missing_words
from sdv_privpgd.columns.scalars import quiet
from sdv_privpgd.sources import texts
from sdv_privpgd.sources.source import Batch, SourceError
from sdv_privpgd.sources.texts import signs_of

_BLOCK = 1 << 16
"""Rows of a batch."""

_COUNTED = 65_521
"""Rows that are counted at a time.

It has no factor in common with those of a batch. pandas misses a record that is too long where a
part begins, and so no record of the first four thousand million is missed by both readings.
"""


class CsvFiles:
    """Files of text and how they are written, for ``fit``, which knows what is public of them."""

    def __init__(self, paths: str | os.PathLike | Sequence, **options: Any) -> None:
        """Takes a path, a pattern or several of them, and the attributes of ``Dialect``.

        Its ``dtypes`` may be in pandas' words, and its ``na`` a list.
        """
        named, na = options.pop("dtypes", {}), options.pop("na", ())
        dtypes = {name: pd.api.types.pandas_dtype(dtype) for name, dtype in named.items()}
        plain = {name: np.dtype(object) if d.kind == "U" else d for name, d in dtypes.items()}
        words = (na,) if isinstance(na, str) else tuple(map(str, na))
        self.paths, self.how = paths, Dialect(dtypes=plain, na=words, **options)


class CsvSource:
    """Rows of one or more files of text with the same header, compressed or not."""

    def __init__(
        self,
        paths: str | os.PathLike | Sequence,
        facts: Mapping[str, Mapping[str, Any]],
        how: Dialect | None = None,
    ) -> None:
        """Takes files, the facts on their columns in SDV's words, and how they are written.

        Without facts texts stay texts. Raises ``SourceError`` if a file cannot be read, or the
        first record does not name its columns.
        """
        self._facts: Facts = facts
        self._how = Dialect() if how is None else how
        self._files = [TextFile.at(path, self._how) for path in files_of(paths)]
        self._orders = orders_in(self._files, self._how, facts or None)
        self.names = self._orders[0]
        self._how.check_dtypes(self.names)
        self._how.check_dates(facts)
        self._how.check_decimal(self._files[0].sep, self.names, facts)
        plain, named = np.dtype(object), self._how.dtypes
        self.dtypes = {name: public_dtype(named.get(name, plain), plain) for name in self.names}

    def num_rows(self) -> int:
        return self._number

    def batches(self, names: Sequence[str]) -> Iterator[Batch]:
        number, read, how = self._number, 0, self._how
        absent = {name: missing_words(self._facts.get(name, {}), how.na) for name in self.names}
        for place in range(len(self._files)):
            for part in self._parts(place, _BLOCK, str, na_values=absent):
                read += len(part)
                columns = {name: self._column(cast(pd.Series, part[name])) for name in names}
                yield Batch(min(read / max(number, 1), 1.0), columns)
        if read != number:
            changed = f"{self._files[0].path}, or a file beside it,"
            raise SourceError(f"{changed} changed while it was read.")

    @cached_property
    def _number(self) -> int:
        """The number of rows. No cell is kept for it, and records that are too long are found."""
        places = range(len(self._files))
        return sum(len(part) for place in places for part in self._parts(place, _COUNTED, "S1"))

    def _parts(self, place: int, size: int, dtype: Any, **options: Any) -> Iterator[pd.DataFrame]:
        # Only as an object a field without a name, after a last separator, is empty for pandas 3.
        dtypes = defaultdict(lambda: object, dict.fromkeys(self.names, dtype))
        return self._files[place].parts(
            size,
            header=0 if self._how.has_header else None,
            names=self._orders[place],
            dtype=dtypes,
            **options,
        )

    def _column(self, written: pd.Series) -> pd.Series:
        """What the texts of a column mean. Each different one is read once."""
        name, how = str(written.name), self._how
        codes, found = pd.factorize(written)
        different, unparsed = found.tolist(), np.array([], dtype=bool)
        if how.stays_text(name):
            column = texts.repeated(different, codes)
        elif how.is_number(name, self._facts):
            present = texts.without_numbers(different, how.na, signs_of(how))
            numbers = texts.numbers_in(present, signs_of(how))
            column, unparsed = _numbers(numbers, codes), texts.unparsed(numbers, present)
        else:
            means = texts.meaning(self._facts.get(name, {}), signs_of(how))
            column = texts.repeated([means(text) for text in different], codes)
        if unparsed.any():
            column = column.astype(object).mask(np.append(unparsed, False)[codes], texts.UNPARSED)
        return texts.converted(column, how.dtypes[name]) if name in how.dtypes else column


_BOMS = {b"\xef\xbb\xbf": "utf-8-sig", b"\xff\xfe": "utf-16", b"\xfe\xff": "utf-16"}

_IN_NO_NAME = re.compile("[\0\ufffd]")
"""A byte of 0, and what stands for bytes that are not in a file's encoding."""


def _as_windows(error: UnicodeError) -> tuple[str, int]:
    """Reads the bytes that are not in a file's encoding."""
    assert isinstance(error, UnicodeDecodeError)
    return error.object[error.start : error.end].decode("cp1252", "replace"), error.end


codecs.register_error(_as_windows.__name__, _as_windows)

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
    how: Dialect
    kind: Kind

    @classmethod
    def at(cls, path: Path, how: Dialect) -> "TextFile":
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
        try:
            with self._text() as text, parsing(self.path):
                return self._read(text, **options)
        except EmptyFileError:
            if self.how.has_header or "names" not in options:
                raise
            return pd.DataFrame(columns=options["names"], dtype=object)

    def parts(self, size: int, **options: Any) -> Iterator[pd.DataFrame]:
        """All records, so many at a time. No part is empty.

        pandas does not see that the first record of a part is too long: its last fields are lost.
        """
        with self._text() as text:
            try:
                with parsing(self.path):
                    reader = self._read(text, chunksize=size, **options)
            except EmptyFileError:
                if self.how.has_header:
                    raise
                return
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

    def _read(self, text: "_Lines", **options: Any) -> Any:
        read: Any = pd.read_csv  # its overloads do not know options that are passed on
        above = int(self.how.skip_rows)
        place: Any = text
        if self.how.skip_footer:
            place = _Footless(text, above + self.how.has_header, self.how.skip_footer)
        form = {"sep": self.sep, "decimal": signs_of(self.how).decimal, "skiprows": above}
        usual = {"index_col": False, "keep_default_na": False, "low_memory": False}
        usual["skip_blank_lines"] = len(options.get("names", "  ")) > 1  # else it is a missing cell
        quoting = csv.QUOTE_NONE if self.how.unquoted else csv.QUOTE_MINIMAL
        return read(place, quoting=quoting, **form, **usual, **options)

    @contextmanager
    def _text(self) -> Iterator["_Lines"]:
        """The text while it is open, in the encoding that the user names or its first bytes do.

        A header says whether lines end as they once did on a Mac. Raises ``SourceError`` if it is
        not in that encoding. A cell that is not is read as Windows writes it: no row is refused.
        """
        how = self.how
        with parsing(self.path), _opened(self.path, self.kind) as file:
            start = file.read(4)
            marked = [encoding for mark, encoding in _BOMS.items() if start.startswith(mark)]
            encoding = how.encoding or (marked[0] if marked else "utf-8")
            file.seek(0)
            lines = io.TextIOWrapper(file, encoding, "replace", newline="")
            *_, header = "", *(lines.readline() for _ in range(how.skip_rows + how.has_header))
        if how.has_header and _IN_NO_NAME.search(header):
            raise SourceError(
                f"The first record of {self.path} is not in {encoding}, or has a byte of 0, as no "
                "names have: name its encoding with CsvFiles(encoding=...), or take the byte out. "
                "cp1252 and utf-16-le are usual."
            )
        end = "\r" if how.has_header and header.endswith("\r") else "\n"
        with parsing(self.path):
            file = _opened(self.path, self.kind)
            text = io.TextIOWrapper(file, encoding, _as_windows.__name__, newline=end)
        with text:
            yield _Lines(text, end)


class _Lines:
    """A file of text whose lines end in one way: any other carriage return in it is a space."""

    def __init__(self, text: TextIO, end: str) -> None:
        self._text, self._alone = text, re.compile("\r(?!\n)" if end == "\n" else "(?!)")

    def read(self, size: int = -1) -> str:
        """Returns so many characters, or some more; empty at the end."""
        part = self._text.read(size)
        while part.endswith("\r") and (more := self._text.read(1)):
            part += more
        return self._alone.sub(" ", part)

    def __iter__(self) -> Iterator[str]:
        return (self._alone.sub(" ", line) for line in self._text)


class _Footless:
    """A file of text without its last lines, but for those at its begin, which always are there.

    Blank lines at the end are no lines. So whether a header is left depends on no row.
    """

    def __init__(self, text: Iterable[str], begin: int, last: int) -> None:
        self._lines = self._kept(iter(text), begin, last)

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
    def _kept(text: Iterator[str], begin: int, last: int) -> Iterator[str]:
        held: deque[str] = deque()
        number = 0
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
    with quiet(f"{path}, as {what},"):
        # The first data row has more fields than there are names.
        warnings.simplefilter("error", pd.errors.ParserWarning)
        try:
            yield
        except pd.errors.EmptyDataError:
            raise EmptyFileError(
                f"{path} is empty, without even a header: write it again, or leave it out. If "
                "there are no rows in it, its header alone says so."
            ) from None
        except (pd.errors.ParserError, pd.errors.ParserWarning):
            raise SourceError(
                f"Cannot read {path}: rows have more fields than there are names, or a quote is "
                "open. Correct the file, say CsvFiles(unquoted=True) if quotes are a cell's, or "
                "name what separates its columns with CsvFiles(sep=...). If lines such as a "
                "title are above the names, or others below the rows, leave them out with "
                "CsvFiles(skip_rows=...) and CsvFiles(skip_footer=...)."
            ) from None


def _opened(path: Path, kind: Kind) -> BinaryIO:
    if kind.compression == "zip":
        archive = zipfile.ZipFile(path)
        return archive.open(archive.namelist()[0])  # pyright: ignore[reportReturnType]
    openers = {"gzip": gzip.open, "bz2": bz2.open, "xz": lzma.open, None: open}
    return cast(Any, openers[kind.compression])(path, "rb")


def orders_in(files: Sequence[TextFile], how: Dialect, facts: Facts | None) -> list[list[str]]:
    """The names of the columns of each file, in its own order. Headers have the same names."""
    how.check_header(facts)
    written = _with_records(files, how, facts)
    if not written:  # there are no rows, and no header
        return [list(how.names or facts or ())] * len(files)
    first = written[0].first_record()
    written[0].check_separator(first, is_known=facts is not None)
    names = named(how, first, facts)
    if how.has_header:
        return [_order(file, written[0], names) for file in files]
    for file in written[1:]:
        if len(file.first_record()) != len(first):
            both = f"{file.path} is not that of {written[0].path}"
            raise SourceError(f"The number of fields of {both}: a table has one.")
    return [names] * len(files)


def named(how: Dialect, record: Sequence[Any], facts: Facts | None) -> list[str]:
    """The names of the columns, from the user or from the first record.

    Of a record that may be a row the number of fields is asked alone: what they hold is private.

    Raises ``SourceError``, which quotes no field, if they are not those that are declared.
    """
    if how.names is None and how.has_header:
        return _compared(how, record, facts)
    if how.names is None and not facts:
        return [f"column {number}" for number in range(1, len(record) + 1)]
    source = "CsvFiles(names=...)" if how.names else "The metadata"
    names = list(how.names or facts or ())
    if len(names) != len(record):
        raise SourceError(
            f"{source} has {len(names)} names, and the first record has {len(record)} fields. "
            "If the number of fields surprises you, say what separates them with "
            "CsvFiles(sep=...)."
        )
    return names


def _compared(how: Dialect, record: Sequence[Any], facts: Facts | None) -> list[str]:
    """The first record as names. Where no facts and no user say so, all must be declared."""
    names = ["" if field is None else str(field).strip() for field in record]
    declared = list(facts or ([] if how.header else how.all_declared))
    missing = [name for name in declared if name not in names]
    others = 0 if facts or how.header else len(set(names) - set(declared))
    if missing:
        problem = f"lacks the columns {missing!r}, which are declared"
    elif others:
        problem = f"has {others} fields besides the columns that are declared"
    elif wrong := [str(n) for n, name in enumerate(names, 1) if name in {"", *names[: n - 1]}]:
        problem = f"cannot name the columns: its fields {listed(wrong)} are empty or repeated"
    else:
        return names
    say = RENAME if how.header and not missing else SAY
    raise SourceError(
        f"The first record {problem}. {say} If lines such as a title are above the names, "
        "leave them out with CsvFiles(skip_rows=1), or with as many as there are."
    )


def _order(file: TextFile, first: TextFile, names: list[str]) -> list[str]:
    """The names in a file's own order. Raises ``SourceError`` for a header of other names."""
    own, record = first.first_record(), file.first_record()
    name_of = dict(zip(own, names, strict=True))
    if record == own:
        return names
    if len(name_of) == len(record) and {*record} == {*own}:
        return [name_of[each] for each in record]
    raise SourceError(
        f"The header of {file.path} is not that of {first.path}: a table has one. The order of its "
        "names does not matter."
    )


def _with_records(files: Sequence[TextFile], how: Dialect, facts: Facts | None) -> list[TextFile]:
    """The files that have a record. Raises ``EmptyFileError`` for one that has lost its header."""
    if how.has_header:
        return list(files)
    found = []
    for file in files:
        with suppress(EmptyFileError):
            file.first_record()
            found.append(file)
    if not found and how.names is None and not facts:
        files[0].first_record()  # raises: nobody says how many columns there are
    return found


def _numbers(values: np.ndarray, codes: np.ndarray) -> pd.Series:
    """A number a code, none for -1. Whole numbers keep all their digits beside missing ones."""
    if (codes < 0).any():
        is_exact = values.dtype == object
        is_exact = is_exact or np.abs(values, dtype=float).max(initial=0) > EXACT_IN_FLOAT
        missing = np.array([None if is_exact else np.nan], dtype=object if is_exact else float)
        values = np.append(values.astype(missing.dtype), missing)
    # Without its dtype pandas would look at all cells, and fail on a whole number beyond floats.
    return pd.Series(values[codes], dtype=values.dtype)


def public_dtype(dtype: Any, own: Any) -> Any:
    """The dtype of a converted column as it is without any cell. ``own`` is what it was before."""
    if dtype.kind == "M" and own == np.dtype(object):  # dates of text are read one by one
        return own
    if isinstance(dtype, pd.CategoricalDtype) and dtype.categories is None:
        return pd.CategoricalDtype(pd.Index([], dtype=object), dtype.ordered)
    return dtype
