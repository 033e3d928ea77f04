"""Finds the private table that a user names, and opens it: files of text, Parquet or a workbook.

Privacy: messages may name columns and say whether a file can be parsed, and no more.
"""

from collections.abc import Callable, Collection, Sequence
from glob import has_magic
from pathlib import Path
from typing import Any, cast

import pandas as pd

from sdv_privpgd.cli.files import kind_read
from sdv_privpgd.cli.parsers import parsed_parquet, parsed_schema, parsed_sheet
from sdv_privpgd.cli.saying import CommandError, say, spoken
from sdv_privpgd.sources import texts
from sdv_privpgd.sources.csv import CsvSource, Retyped, TextFile, names_in, orders_in
from sdv_privpgd.sources.dialect import Facts, Reading
from sdv_privpgd.sources.files import files_of, open_files
from sdv_privpgd.sources.frames import FrameSource
from sdv_privpgd.sources.source import Source


@spoken()
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


@spoken()
def open_table(paths: Sequence[Path], how: Reading, facts: Facts) -> Source:
    """The rows of files that ``tables_in`` has found. Text and Parquet are read in batches."""
    form = _form(paths, how)
    how.check_dates(facts)
    if form == "text":
        return CsvSource(paths, facts, how)
    if form == "excel":
        return FrameSource.of(read_table(paths, how, facts))
    for path in paths:
        _with_index(parsed_schema(path))  # says what is left out
    source = open_files(paths, facts)
    how.check_dtypes(list(source.names))
    return Retyped(source, how.dtypes) if how.dtypes else source


@spoken()
def read_table(paths: Path | Sequence[Path], how: Reading, facts: Facts | None) -> pd.DataFrame:
    """Reads the private table into memory.

    Args:
        paths: Files that ``tables_in`` has found.
        how: The user's options for reading them.
        facts: The public facts on its columns. With ``None`` they are read as pandas would, so
            that types can be detected.
    """
    paths = [paths] if isinstance(paths, Path) else list(paths)
    how.check_dates(facts or {})
    readers: dict[str, Callable[..., pd.DataFrame]] = {
        "parquet": _read_parquet,
        "excel": _read_workbook,
        "text": _read_text,
    }
    table = readers[_form(paths, how)](paths, how, facts)
    how.check_dtypes(list(table.columns))
    return table


@spoken()
def types_in(paths: Sequence[Path], how: Reading, typed: Collection[str] = ()) -> dict[str, Any]:
    """The dtype of each column; those ``typed`` otherwise may have none. Public: no cell is read.

    A Parquet file has a schema with dtypes. Text and workbooks have names only, and the user names
    the dtypes.
    """
    types = {str(name): dtype for name, dtype in known_types_in(paths, how).items()}
    unknown = [name for name, dtype in types.items() if dtype is None and name not in typed]
    if unknown:
        raise CommandError(
            f"{paths[0]} names columns and says nothing of their types, and what cells look like "
            f"is no public fact. Say the types of {unknown!r} with --dtype COLUMN=TYPE, or give "
            "--metadata."
        )
    return types


@spoken()
def known_types_in(paths: Sequence[Path], how: Reading) -> dict[str, Any]:
    """The same, but that a dtype that nobody says is ``None``."""
    if kind_read(paths[0]).form == "parquet":
        return {**_with_index(parsed_schema(paths[0])).dtypes.to_dict(), **how.dtypes}
    names = _first_names(paths, how)
    how.check_dtypes(names)
    return {name: how.dtypes.get(name) for name in names}


def _form(paths: Sequence[Path], how: Reading) -> str:
    form = kind_read(paths[0]).form
    if form == "parquet" and (how.names is not None or how.header is not None):
        raise CommandError(
            "A Parquet file names its columns: leave out --names, --header and --no-header."
        )
    if form == "parquet" and how.na:
        raise CommandError(
            "A Parquet file has missing cells of its own: --na is for text, and missing_codes in "
            "--domain are for any table."
        )
    if form == "parquet" and (how.skip_rows or how.skip_footer):
        raise CommandError(
            "A Parquet file has no lines around its rows: leave out --skip-rows and --skip-footer."
        )
    return form


def _first_names(paths: Sequence[Path], how: Reading) -> list[str]:
    how.check_header(None)  # before a cell is read
    if kind_read(paths[0]).form == "excel":
        return how.named(_first_cells(parsed_sheet(paths[0], how)), None)
    return names_in([TextFile.at(path, how) for path in paths], how, None)


# Text


def _read_text(paths: Sequence[Path], how: Reading, facts: Facts | None) -> pd.DataFrame:
    if facts is None:
        return _converted(_inferred(paths, how), how)
    source = CsvSource(paths, facts, how)
    batches = [batch.columns for batch in source.batches(source.names)]
    table = pd.DataFrame(
        {name: _together([batch[name] for batch in batches]) for name in source.names}
    )
    return _converted(table, how)


def _together(parts: Sequence[pd.Series]) -> pd.Series:
    """The cells of all parts, as numbers if all of them are."""
    if {part.dtype.kind for part in parts} <= {"i", "f"} and parts:
        return pd.concat(parts, ignore_index=True)
    objects = [pd.Series([], dtype=object), *(part.astype(object) for part in parts)]
    return pd.concat(objects, ignore_index=True)


def _inferred(paths: Sequence[Path], how: Reading) -> pd.DataFrame:
    """The table with the types that its cells have, to detect types by.

    A column with a text such as 0123 is one of texts: as numbers they would lose the zero.
    """
    files = [TextFile.at(path, how) for path in paths]
    orders = orders_in(files, how, None)
    names = orders[0]
    how.check_dtypes(names)
    how.check_decimal(files[0].sep, names, None)
    options: dict[str, Any] = {
        "header": 0 if how.has_header else None,
        "na_values": texts.missing_words({}, how.na),
        "float_precision": "round_trip",
    }
    each = list(zip(files, orders, strict=True))
    written = _stacked([file.parsed(dtype=str, names=own, **options) for file, own in each])
    as_text = {
        name: str
        for name in names
        if how.stays_text(name) or texts.written_with_zeros(cast(pd.Series, written[name]))
    }
    parts = [file.parsed(dtype=as_text, names=own, **options) for file, own in each]
    for name in names:
        if len({part[name].dtype == object for part in parts}) > 1:  # numbers in some files alone
            for part in parts:
                part[name] = part[name].astype(object)
    table = _stacked(parts)
    for name in names if how.thousands is not None else []:
        column = cast(pd.Series, written[name])
        if name not in as_text and texts.are_numbers(column, how.signs):
            table[name] = pd.to_numeric(texts.numbers(column, how.signs))
    return table


def _stacked(parts: Sequence[pd.DataFrame]) -> pd.DataFrame:
    return parts[0] if len(parts) == 1 else pd.concat(parts, ignore_index=True)


# Workbooks


def _read_workbook(paths: Sequence[Path], how: Reading, facts: Facts | None) -> pd.DataFrame:
    how.check_header(facts)  # before a cell is read
    cells = parsed_sheet(paths[0], how)
    names = how.named(_first_cells(cells), facts)
    how.check_dtypes(names)
    rows = cells.iloc[1:] if how.has_header else cells
    table: pd.DataFrame = rows.set_axis(names, axis=1).reset_index(drop=True)
    for name in names:
        absent = texts.missing_words((facts or {}).get(name, {}), how.na)
        absent = [*absent, *(number for word in how.na if (number := _number(word)) is not None)]
        table[name] = table[name].mask(table[name].isin(absent))
    if facts is None:
        return _converted(table.infer_objects(), how)
    for name in names:
        column, known = cast(pd.Series, table[name]), facts.get(name, {})
        if how.is_number(name, facts):
            table[name] = texts.numbers(cast(pd.Series, column.infer_objects()), how.signs)
        elif how.stays_text(name):
            table[name] = texts.texts(column)
        else:
            table[name] = texts.meanings(texts.texts(column), known, how.signs)
    return _converted(table, how)


def _number(word: str) -> float | None:
    """The number that a word for missing cells is, as a workbook has it."""
    try:
        return float(word)
    except ValueError:
        return None


def _first_cells(cells: pd.DataFrame) -> list:
    return [None if pd.isna(cell) else cell for cell in cells.iloc[0]]


# Parquet


def _read_parquet(paths: Sequence[Path], how: Reading, facts: Facts | None) -> pd.DataFrame:
    del facts  # a schema has the types
    return _converted(_stacked([_with_index(parsed_parquet(path)) for path in paths]), how)


def _with_index(table: pd.DataFrame) -> pd.DataFrame:
    """The table with the named levels of its index as columns, in front."""
    index = table.index
    is_named = [place for place, name in enumerate(index.names) if name is not None]
    if len(is_named) < index.nlevels and not isinstance(index, pd.RangeIndex):
        say("The table has an index without a name: it is left out.")
    levels = pd.DataFrame({index.names[n]: index.get_level_values(n) for n in is_named})
    return pd.concat([levels, table.reset_index(drop=True)], axis=1) if is_named else table


# All


def _converted(table: pd.DataFrame, how: Reading) -> pd.DataFrame:
    """The table with the dtypes that the user names."""
    for name, dtype in how.dtypes.items():
        if name in table:
            table[name] = texts.convert(cast(pd.Series, table[name]), dtype)
    return table
