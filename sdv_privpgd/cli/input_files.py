"""Finds the private table that a user names, and opens it: files of text, Parquet or a workbook.

Privacy: messages may name columns and say whether a file can be parsed, and no more.
"""

import math
import re
from argparse import ArgumentTypeError, Namespace
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from glob import has_magic
from importlib.util import find_spec
from pathlib import Path
from shlex import quote
from types import MappingProxyType
from typing import Any, cast

import numpy as np
import pandas as pd

from sdv_privpgd.base.files import KNOWN, Kind, files_of, kind_of
from sdv_privpgd.base.words import listed
from sdv_privpgd.cli.messages import CommandError, own_errors, say
from sdv_privpgd.columns.declarations import Boolean, TimeOfDay
from sdv_privpgd.columns.dialect import Dialect, Facts, missing_words, percent_of
from sdv_privpgd.columns.dtypes import on_unreadable
from sdv_privpgd.sources.csv import CsvSource, TextFile, named, orders_in, parsing
from sdv_privpgd.sources.files import open_files
from sdv_privpgd.sources.frames import FrameSource
from sdv_privpgd.sources.locate import retyped
from sdv_privpgd.sources.source import Source, SourceError
from sdv_privpgd.sources.texts import (
    UNPARSED,
    Signs,
    converted,
    meaning,
    number_in,
    signs_of,
    unparsed,
)

_MODULES = {"parquet": "pyarrow", "excel": "openpyxl"}
_WORDS = (
    "category, id, date:%d.%m.%Y, time:%H:%M, percent or percent:12 %, bool:J/N, number:1.234,5"
)
_FORMS = {"date": ("datetime_format", "datetime"), "number": ("number_format", "numerical")}
_WITH_ZEROS = re.compile(r"0\d+([.,]\d+)?\s*$")
_OF_NUMBERS = {"decimal", "thousands"}
_OF_TEXT = ("sep", "decimal", "thousands", "encoding", "na", "skip_rows", "skip_footer", "unquoted")


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


def _with_module(path: Path, kind: Kind) -> Kind:
    module = _MODULES.get(kind.form)
    if module is not None and find_spec(module) is None:
        raise CommandError(f"{path} needs {module}: pip install {module}.")
    return kind


# How it is written


@dataclass(frozen=True, kw_only=True)
class Typed:
    """What ``--dtype`` says of a column."""

    name: str
    dtype: Any = None  # what its cells are converted to; ``None`` leaves them as they are
    # What it is, in SDV's words; of a type of pandas nothing beyond that.
    words: Mapping[str, Any] = field(default_factory=dict)
    # How its numbers are written, if they are percentages; blank where nobody says it.
    percent: str | None = None

    @classmethod
    def of(cls, text: str) -> "Typed":
        """What ``COLUMN=TYPE`` says. Raises for another text, in words."""
        name, equals, said = text.rpartition("=")
        if not equals or not said:
            raise ArgumentTypeError(f"{text!r} is not COLUMN=TYPE")
        word, _, form = said.partition(":")
        if word in ("date", "number") and form:
            key, sdtype = _FORMS[word]
            return cls(name=name, words={"sdtype": sdtype, key: form})
        if word == "time":
            last = "23:59:59" if "%S" in form or not form else "23:59"
            times = TimeOfDay("00:00", last, **({"datetime_format": form} if form else {}))
            return cls(name=name, words={"sdtype": "datetime", **times})
        if word == "bool" and form:
            true, slash, false = form.partition("/")
            if not (true and slash and false):
                raise ArgumentTypeError(f"{said!r} is not bool:TRUE/FALSE, such as bool:J/N")
            return cls(name=name, words={"sdtype": "boolean", **Boolean(true, false)})
        if word == "percent":
            return cls(name=name, words={"sdtype": "numerical"}, percent=form)
        if said in ("number", "id"):
            return cls(name=name, words={"sdtype": "id" if said == "id" else "numerical"})
        dtype = _dtype("datetime64[ns]" if said == "date" else said)
        words = {"date": "datetime", "category": "categorical"}
        own = {"sdtype": words[said]} if said in words else {}
        return cls(name=name, dtype=dtype, words=own)

    def facts(self, decimal: str, places: int | None = None) -> dict[str, Any]:
        """What it is, in SDV's words, where this sign stands before so many decimals."""
        if self.percent is None:
            return dict(self.words)
        return {**self.words, "number_format": self.percent or percent_of(places, decimal)}


def _dtype(word: str) -> Any:
    try:
        dtype = pd.api.types.pandas_dtype(word)
    except TypeError:
        raise ArgumentTypeError(f"{word!r} is neither a type of pandas nor {_WORDS}") from None
    if dtype.kind in "mcVS":
        raise ArgumentTypeError(f"{word} is no type that SDV has a word for")
    return np.dtype(object) if dtype.kind == "U" else dtype


@own_errors()
def reading(
    arguments: Namespace, path: Path, kept: Mapping[str, Any] = MappingProxyType({})
) -> Dialect:
    """The options for reading a table, which may be written as the model's was."""
    of_text = text_options(arguments, kept, kind := kind_read(path))
    return Dialect(
        **{**of_text, "na": tuple(of_text.get("na", ()))},
        sheet=arguments.sheet,
        header=None if kind.form == "parquet" and vars(arguments).get("link") else arguments.header,
        names=arguments.names,
        dtypes={each.name: each.dtype for each in arguments.dtype if each.dtype is not None},
    )


def kept_of(arguments: Namespace) -> dict[str, Any]:
    """The options of text that a command was told, for the model's file. No cell decides them."""
    options = {name: getattr(arguments, name, None) for name in _OF_TEXT}
    return {name: value for name, value in options.items() if value or type(value) is int}


def text_options(arguments: Namespace, kept: Mapping[str, Any], kind: Kind) -> dict[str, Any]:
    """The options of text for a file of a kind: those of the command, and else those kept.

    An ending such as .tsv says what separates columns, whatever separated them in the table.
    """
    own, before = kept_of(arguments), dict(kept)
    if kind.sep != ",":
        before.pop("sep", None)
    if kind.form == "parquet":
        before = {name: value for name, value in before.items() if not name.startswith("skip_")}
    if own.keys() & _OF_NUMBERS:
        before = {name: value for name, value in before.items() if name not in _OF_NUMBERS}
    return {**before, **own}


# The table


@own_errors()
def tables_in(given: Sequence[Path]) -> list[Path]:
    """The files that hold a table, which paths, folders and patterns name.

    Raises ``CommandError`` where there is none, and if they are of several kinds.
    """
    found = []
    for path in given:
        if str(path) == "-":
            raise CommandError("The table must be a file: it is looked at more than once.")
        if not path.exists() and not has_magic(str(path)):
            kind_read(path)  # an ending that is not known is worse than a file that is not there
        found += files_of(path)
    for path in found:
        kind_read(path)
        if not path.is_file():
            raise CommandError(f"{path} is no regular file: write the table into one.")
    if len({kind_read(path).form for path in found}) > 1:
        raise CommandError("The table's files are of several kinds: give those of one kind alone.")
    if len(found) > 1 and kind_read(found[0]).form == "excel":
        raise CommandError("A table of several files has to be CSV or Parquet, and no workbook.")
    return found


def open_described(
    paths: Sequence[Path], how: Dialect, facts: Facts, out: Collection[str] = ()
) -> Source:
    """The table, of which it says the columns that nothing describes, and that are not left out."""
    table = open_table(paths, how, facts)
    if others := [name for name in table.names if name not in facts and name not in out]:
        say(f"Left out of {paths[0].name}: {listed(others)}. Nothing given describes them.")
    return table


@own_errors()
def open_table(paths: Sequence[Path], how: Dialect, facts: Facts) -> Source:
    """The rows of files that ``tables_in`` has found. Text and Parquet are read in batches."""
    form = _form(paths, how)
    how.check_dates(facts)
    if form == "text":
        return CsvSource(paths, facts, how)
    if form == "excel":
        source: Source = FrameSource.of(_read_workbook(paths, how, facts))
    else:
        for path in paths:
            _with_index(_parsed_schema(path))  # says what is left out
        source = open_files(paths, facts)
    how.check_dtypes(list(source.names))
    return retyped(source, how.dtypes) if how.dtypes else source


@own_errors()
def read_table(paths: Path | Sequence[Path], how: Dialect, facts: Facts | None) -> pd.DataFrame:
    """Reads the private table into memory.

    Args:
        paths: Files that ``tables_in`` has found.
        how: The user's options for reading them.
        facts: The public facts on its columns. With ``None`` they are read as pandas would, so
            that types can be detected.
    """
    paths = [paths] if isinstance(paths, Path) else list(paths)
    if facts is None:
        readers = {"parquet": _read_parquet, "excel": _read_workbook, "text": _inferred}
        table = readers[_form(paths, how)](paths, how)
        how.check_dtypes(list(table.columns))
    else:
        table = _whole(open_table(paths, how, facts))
    for name, dtype in how.dtypes.items():
        typed = convert if facts is None else converted  # of detection all cells are public
        table[name] = typed(cast(pd.Series, table[name]), dtype)
    return table


def _whole(source: Source) -> pd.DataFrame:
    """All rows of a source: columns as numbers if all parts are."""
    batches = [batch.columns for batch in source.batches(source.names)]
    return pd.DataFrame(
        {name: _together([batch[name] for batch in batches]) for name in source.names}
    )


def _together(parts: Sequence[pd.Series]) -> pd.Series:
    if {part.dtype.kind for part in parts} <= {"i", "f"} and parts:
        return pd.concat(parts, ignore_index=True)
    objects = [pd.Series([], dtype=object), *(part.astype(object) for part in parts)]
    return pd.concat(objects, ignore_index=True)


@own_errors()
def require_read(
    paths: Sequence[Path], how: Dialect, but: Collection[str], found: Mapping = MappingProxyType({})
) -> None:
    """Raises ``CommandError`` for other columns with types that none of columns reads.

    Files of Parquet say the types, and of others cells do, where dtypes were ``found`` of them.
    """
    dtypes = open_table(paths, how, {}).dtypes if kind_read(paths[0]).form == "parquet" else found
    unreadable = {
        n: each for n, each in dtypes.items() if n not in but and on_unreadable({n: each})
    }
    for said in on_unreadable(unreadable):
        raise CommandError(f"{said} Or leave them out: --drop {quote(','.join(unreadable))}.")


def types_in(paths: Sequence[Path], how: Dialect, typed: Collection[str] = ()) -> dict[str, Any]:
    """The dtype of each column; those ``typed`` otherwise may have none. Public: no cell is read.

    A Parquet file has a schema with dtypes. Text and workbooks have names only, and the user names
    the dtypes.
    """
    types = {str(name): dtype for name, dtype in known_types_in(paths, how).items()}
    if unknown := [name for name, own in types.items() if own is None and name not in typed]:
        raise CommandError(
            f"{paths[0]} names columns and says nothing of their types, and what cells look like "
            f"is no public fact. Say the types of {unknown!r} with --dtype COLUMN=TYPE, or give "
            "--metadata."
        )
    return types


@own_errors()
def known_types_in(paths: Sequence[Path], how: Dialect) -> dict[str, Any]:
    """The same, but that a dtype that nobody says is ``None``."""
    if kind_read(paths[0]).form == "parquet":
        return {**_with_index(_parsed_schema(paths[0])).dtypes.to_dict(), **how.dtypes}
    names = _first_names(paths, how)
    how.check_dtypes(names)
    return {name: how.dtypes.get(name) for name in names}


def _form(paths: Sequence[Path], how: Dialect) -> str:
    form = kind_read(paths[0]).form
    if form != "parquet":
        return form
    if how.names is not None or how.header is not None:
        what = "names its columns: leave out --names, --header and --no-header."
    elif how.na:
        what = (
            "has missing cells of its own: --na is for text, and missing_codes in --domain are for "
            "any table."
        )
    elif how.skip_rows or how.skip_footer:
        what = "has no lines around its rows: leave out --skip-rows and --skip-footer."
    else:
        return form
    raise CommandError(f"A Parquet file {what}")


def _first_names(paths: Sequence[Path], how: Dialect) -> list[str]:
    how.check_header(None)  # before a cell is read
    if kind_read(paths[0]).form == "excel":
        return named(how, _first_cells(_parsed_sheet(paths[0], how)), None)
    return orders_in([TextFile.at(path, how) for path in paths], how, None)[0]


# Text


def _inferred(paths: Sequence[Path], how: Dialect) -> pd.DataFrame:
    """The table with the types that its cells have, to detect types by.

    They are numbers, True and False, and else text, as a cell such as 0123 would lose its zero.
    """
    names, plain = _first_names(paths, how), replace(how, dtypes={})
    how.check_decimal(TextFile.at(paths[0], how).sep, names, None)
    kinds = {name: {"sdtype": "datetime"} for name in names}  # text, where NA is missing
    written = _whole(CsvSource(paths, kinds, plain))
    for name in (each for each in names if not how.stays_text(each)):
        cells = pd.Series(written[name].dropna().unique())
        if {*cells} <= {"True", "False"}:
            kinds[name] = {"sdtype": "boolean"}
        finite: Any = cells[~cells.str.lower().str.lstrip("+-").isin(["inf", "infinity"])]
        if are_numbers(finite, signs_of(how)) and not written_with_zeros(finite):
            kinds[name] = {"sdtype": "numerical"}
    table = _whole(CsvSource(paths, kinds, plain))
    numeric = [name for name, own in kinds.items() if own["sdtype"] == "numerical"]
    return table.assign(**{n: pd.to_numeric(table[n], errors="coerce") for n in numeric})


# Workbooks


def _parsed_sheet(path: Path, how: Dialect) -> pd.DataFrame:
    """The cells of one sheet of a workbook, with their own types and without names."""
    with parsing(path, "a workbook"):
        sheets: dict[Any, pd.DataFrame] = pd.read_excel(
            path, sheet_name=None, header=None, dtype=object, na_values=[""], keep_default_na=False
        )
    if how.sheet is None and len(sheets) > 1:
        raise CommandError(f"{path} has several sheets: name one with --sheet.")
    if how.sheet is not None and how.sheet not in sheets:
        raise CommandError(f"{path} has no sheet {how.sheet!r}.")
    cells = next(iter(sheets.values())) if how.sheet is None else sheets[how.sheet]
    if cells.empty:
        raise CommandError(f"{path} is empty.")
    if how.skip_rows >= len(cells):
        raise CommandError(f"{path} has no lines below those that --skip-rows leaves out.")
    kept = cells.iloc[how.skip_rows :]
    return kept.iloc[: max(len(kept) - how.skip_footer, int(how.has_header))]


def _read_workbook(paths: Sequence[Path], how: Dialect, facts: Facts | None = None) -> pd.DataFrame:
    how.check_header(facts)  # before a cell is read
    cells = _parsed_sheet(paths[0], how)
    names = named(how, _first_cells(cells), facts)
    how.check_dtypes(names)
    rows = cells.iloc[1:] if how.has_header else cells
    table: pd.DataFrame = rows.set_axis(names, axis=1).reset_index(drop=True)
    for name in names:
        absent = missing_words(None if facts is None else facts.get(name, {}), how.na)
        absent += [number for word in how.na if (number := number_in(word, Signs())) is not None]
        table[name] = table[name].mask(table[name].isin(absent))
    if facts is None:
        cells = {name: _of_one_kind(cast(pd.Series, table[name]), signs_of(how)) for name in names}
        return pd.DataFrame(cells).infer_objects()
    for name in names:
        column, known = cast(pd.Series, table[name]), facts.get(name, {})
        if how.is_number(name, facts):
            table[name] = numbers(cast(pd.Series, column.infer_objects()), signs_of(how))
        elif how.stays_text(name):
            table[name] = as_texts(column)
        else:
            if "%" in (known.get("number_format") or ""):  # whether 0.12 is 12 % is not told
                column = column.map(
                    lambda cell: cell if isinstance(cell, str) else UNPARSED, "ignore"
                )
            table[name] = meanings(as_texts(column), known, signs_of(how))
    return table


def _of_one_kind(column: pd.Series, signs: Signs) -> pd.Series:
    """A column of a workbook with cells of several kinds as all of text, or as numbers."""
    kinds = {*column.dropna().map(type)}
    if len(kinds) < 2 or kinds <= {bool, int, float}:
        return column
    if are_numbers(column, signs) and not written_with_zeros(column):
        return numbers(column, signs)
    return column.map(str, na_action="ignore")


def _first_cells(cells: pd.DataFrame) -> list:
    return [None if pd.isna(cell) else cell for cell in cells.iloc[0]]


# Columns


def convert(column: pd.Series, dtype: Any) -> pd.Series:
    """The column in the dtype that the user names. Raises ``SourceError``, without a cell."""
    is_object = column.dtype == object
    found = converted(column.mask(column == UNPARSED) if is_object else column, dtype)
    if str(found.dtype) != str(dtype) and (dtype.kind != "M" or not is_object):
        raise SourceError(
            f"Column {column.name!r} cannot be read with CsvFiles(dtypes={{{column.name!r}: "
            f"'{dtype}'}}): not all of its cells can be such. Correct the file, or choose "
            "another dtype."
        ) from None
    return found


def numbers(column: pd.Series, signs: Signs) -> pd.Series:
    """A column of numbers, whatever dtype the parser gave it.

    The parser gives a dtype of numbers only if all cells are numbers. So each cell is decided here
    by itself.
    """
    if column.dtype.kind in "iuf":
        return column
    read = [number_in(cell, signs) for cell in column]
    found = pd.Series(read, index=column.index, name=column.name, dtype=object)
    return found.mask(unparsed(found, column), UNPARSED)


def meanings(column: pd.Series, facts: Mapping, signs: Signs) -> pd.Series:
    """A column of text with the meanings of its texts, as objects. Other objects stay."""
    means = meaning(facts, signs)
    # Each text is read once: long columns have few different ones.
    texts = {cell for cell in column if isinstance(cell, str)}
    found = {text: means(text) for text in texts}
    read = [found[cell] if isinstance(cell, str) else cell for cell in column]
    return pd.Series(read, index=column.index, name=column.name, dtype=object)


def written_with_zeros(column: pd.Series) -> bool:
    """Whether some text of a column begins with a zero that a number would lose."""
    return any(_WITH_ZEROS.match(cell) is not None for cell in column if isinstance(cell, str))


def are_numbers(column: pd.Series, signs: Signs) -> bool:
    """Whether all texts of a column, which may lack some, are numbers."""
    cells = column.dropna()
    return len(cells) > 0 and all(number_in(cell, signs) is not None for cell in cells)


def as_texts(column: pd.Series) -> pd.Series:
    """A column of a workbook, whose cells have types of their own, with numbers as text."""
    is_plain = lambda cell: isinstance(cell, int | float) and not math.isnan(cell)
    return column.map(lambda cell: str(cell) if is_plain(cell) else cell).astype(object)


# Parquet


def _read_parquet(paths: Sequence[Path], how: Dialect) -> pd.DataFrame:
    del how  # a schema has the types
    parts = []
    for path in paths:
        with parsing(path, "Parquet"):
            parts.append(pd.read_parquet(path))  # with the index that pandas stored in it
    return pd.concat(map(_with_index, parts), ignore_index=True)


def _parsed_schema(path: Path) -> pd.DataFrame:
    """The table of a Parquet file without its rows."""
    import pyarrow.parquet

    from sdv_privpgd.columns.arrow_dtypes import typed

    with parsing(path, "Parquet"):
        return typed(pyarrow.parquet.read_schema(path))


def _with_index(table: pd.DataFrame) -> pd.DataFrame:
    """The table with the named levels of its index as columns, in front."""
    index = table.index
    is_named = [place for place, name in enumerate(index.names) if name is not None]
    if len(is_named) < index.nlevels and not isinstance(index, pd.RangeIndex):
        say("The table has an index without a name: it is left out.")
    levels = pd.DataFrame({index.names[n]: index.get_level_values(n) for n in is_named})
    return pd.concat([levels, table.reset_index(drop=True)], axis=1) if is_named else table
