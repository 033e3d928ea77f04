"""Reads private tables from text, workbooks and Parquet.

Privacy: messages may name columns and say whether a file can be parsed, and no more (``parsers``).
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, cast

import pandas as pd

from sdv_privpgd.cli import texts
from sdv_privpgd.cli.dialect import Facts, Reading
from sdv_privpgd.cli.files import Kind, kind_read
from sdv_privpgd.cli.headers import MISSING, names_of
from sdv_privpgd.cli.parsers import (
    first_record,
    parsed_parquet,
    parsed_schema,
    parsed_sheet,
    parsed_text,
)
from sdv_privpgd.cli.saying import CommandError, say

_SEPARATORS = {",": "','", ";": "';'", "\t": "tab", "|": "'|'"}


def check_table(path: Path) -> Kind:
    """The kind of a file that holds a table. Raises ``CommandError`` where there is none.

    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     path = Path(folder, "table.csv")
    ...     pd.DataFrame({"age": [34], "ward": ["A"]}).to_csv(path, index=False)
    ...     check_table(path).form
    'text'
    """
    if str(path) == "-":
        raise CommandError("The table must be a file: it is looked at more than once.")
    kind = kind_read(path)
    if not path.exists():
        raise CommandError(f"There is no file {path}.")
    if not path.is_file():
        raise CommandError(f"{path} is no regular file: write the table into one.")
    return kind


def read_table(path: Path, how: Reading, facts: Facts | None) -> pd.DataFrame:
    """Reads the private table.

    Args:
        path: A file that ``check_table`` has found.
        how: The user's options for reading it.
        facts: The public facts on its columns. With ``None`` they are read as pandas would, so
            that types can be detected.

    >>> from tempfile import TemporaryDirectory
    >>> facts = {"age": {"sdtype": "numerical"}, "ward": {"sdtype": "categorical"}}
    >>> with TemporaryDirectory() as folder:
    ...     path = Path(folder, "table.csv")
    ...     pd.DataFrame({"age": [34], "ward": ["01"]}).to_csv(path, index=False, sep=";")
    ...     read_table(path, Reading(sep=";"), facts)["ward"].tolist()
    ['01']
    """
    readers = {"parquet": _read_parquet, "excel": _read_workbook, "text": _read_text}
    form = kind_read(path).form
    if form == "parquet" and (how.names is not None or how.header is not None):
        raise CommandError("A Parquet file names its columns: leave out --names and --no-header.")
    table = readers[form](path, how, facts)
    _check_dtypes(how.dtypes, list(table.columns))
    return table


def types_in(path: Path, how: Reading) -> dict[str, Any]:
    """The dtype of each column. Public, because no cell is read.

    A Parquet file has a schema with dtypes. Text and workbooks have names only, and the user names
    the dtypes.

    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     path = Path(folder, "table.csv")
    ...     pd.DataFrame({"age": [34], "ward": ["A"]}).to_csv(path, index=False)
    ...     types_in(path, Reading(dtypes={"age": "int8", "ward": "str"}))
    {'age': 'int8', 'ward': 'str'}
    """
    if kind_read(path).form == "parquet":
        return {**_with_index(parsed_schema(path)).dtypes.to_dict(), **how.dtypes}
    names = list(_first_names(path, how))
    _check_dtypes(how.dtypes, names)
    unknown = [name for name in names if name not in how.dtypes]
    if unknown:
        raise CommandError(
            f"{path} names columns and says nothing of their types, and what cells look like is no "
            f"public fact. Say the types of {unknown!r} with --dtype COLUMN=TYPE, or give "
            "--metadata."
        )
    return {name: how.dtypes[name] for name in names}


# Text


def _first_names(path: Path, how: Reading) -> list[str]:
    kind = kind_read(path)
    if kind.form == "excel":
        return _names(_first_cells(parsed_sheet(path, how)), how, None)
    record = first_record(path, how, kind)
    _check_separator(record, how, kind, None)
    return _names(record, how, None)


def _read_text(path: Path, how: Reading, facts: Facts | None) -> pd.DataFrame:
    kind = kind_read(path)
    record = first_record(path, how, kind)
    _check_separator(record, how, kind, facts)
    names = _names(record, how, facts)
    _check_dtypes(how.dtypes, names)
    options: dict[str, Any] = {
        "header": 0 if how.has_header else None,
        "names": names,
        "na_values": {name: _missing(facts, name) for name in names},
        "float_precision": "round_trip",
    }
    if facts is None:
        return _converted(_inferred(path, how, kind, options), how)
    # Groups of digits are read by our rule alone: pandas' makes a number of a date, too.
    parsed = [n for n in names if how.is_number(n, facts) and how.thousands is None]
    as_text = {name: str for name in names if name not in parsed or how.stays_text(name)}
    return _understood(parsed_text(path, how, kind, dtype=as_text, **options), how, facts)


def _inferred(path: Path, how: Reading, kind: Kind, options: Mapping[str, Any]) -> pd.DataFrame:
    """The table with the types that its cells have, to detect types by.

    A column with a text such as 0123 is one of texts: as numbers they would lose the zero.
    """
    written = parsed_text(path, how, kind, dtype=str, **options)
    as_text = {
        name: str
        for name in written.columns
        if how.stays_text(str(name)) or texts.written_with_zeros(cast(pd.Series, written[name]))
    }
    table = parsed_text(path, how, kind, dtype=as_text, **options)
    for name in table.columns if how.thousands is not None else []:
        column = cast(pd.Series, written[name])
        if name not in as_text and texts.are_numbers(column, how.signs):
            table[name] = pd.to_numeric(texts.numbers(column, how.signs))
    return table


def _check_separator(record: Sequence[str], how: Reading, kind: Kind, facts: Facts | None) -> None:
    """Raises ``CommandError`` where another separator divides a header as well or better."""
    if not how.has_header:
        if len(record) == 1 and how.names is None and how.sep is None and facts is None:
            raise CommandError(
                "The first record has a single field. If that is right, say so with --sep ','; "
                "if not, name what separates the columns."
            )
        return
    used = how.sep or kind.sep
    text = used.join(map(str, record))
    for other, said in _SEPARATORS.items():
        as_often = text.count(other) >= max(len(record) - 1, 1)
        if other != used and as_often and (how.sep is None or len(record) == 1):
            raise CommandError(
                f"The first record has {said} where columns are separated by "
                f"{_SEPARATORS.get(used, repr(used))}: name what separates them with --sep."
            )


def _missing(facts: Facts | None, name: str) -> list[str]:
    """The texts that stand for a missing cell of a column, without its declared categories."""
    declared = [] if facts is None else texts.declared_values(facts.get(name, {}))
    return [text for text in MISSING if text not in declared]


# Workbooks


def _read_workbook(path: Path, how: Reading, facts: Facts | None) -> pd.DataFrame:
    cells = parsed_sheet(path, how)
    names = _names(_first_cells(cells), how, facts)
    _check_dtypes(how.dtypes, names)
    rows = cells.iloc[1:] if how.has_header else cells
    table: pd.DataFrame = rows.set_axis(names, axis=1).reset_index(drop=True)
    absent = {name: _missing(facts, name) for name in names}
    for name in names:
        table[name] = table[name].mask(table[name].isin(absent[name]))
    if facts is None:
        return _converted(table.infer_objects(), how)
    numbers = [name for name in names if how.is_number(name, facts)]
    for name in names:
        table[name] = table[name].infer_objects() if name in numbers else texts.texts(table[name])
    return _understood(table, how, facts)


def _first_cells(cells: pd.DataFrame) -> list:
    return [None if pd.isna(cell) else cell for cell in cells.iloc[0]]


# Parquet


def _read_parquet(path: Path, how: Reading, facts: Facts | None) -> pd.DataFrame:
    del facts  # a schema has the types
    return _converted(_with_index(parsed_parquet(path)), how)


def _with_index(table: pd.DataFrame) -> pd.DataFrame:
    """The table with the named levels of its index as columns, in front."""
    index = table.index
    named = [place for place, name in enumerate(index.names) if name is not None]
    if len(named) < index.nlevels and not isinstance(index, pd.RangeIndex):
        say("The table has an index without a name: it is left out.")
    levels = pd.DataFrame({index.names[n]: index.get_level_values(n) for n in named})
    return pd.concat([levels, table.reset_index(drop=True)], axis=1) if named else table


# All


def _names(record: Sequence[Any], how: Reading, facts: Facts | None) -> list[str]:
    """The names of the columns, from the user or from the first record."""
    known = None if facts is None else list(facts)
    if how.names is None and how.has_header:
        return names_of(record, known, trusted=bool(how.header))
    if how.names is None and known is None:
        return [f"column {number}" for number in range(1, len(record) + 1)]
    source, names = ("--names", how.names) if how.names else ("The metadata", known)
    assert names is not None
    if len(names) != len(record):
        raise CommandError(
            f"{source} has {len(names)} names, and the first record has {len(record)} fields. If "
            "the number of fields surprises you, see --sep."
        )
    if not how.has_header and [str(each).strip() for each in record] == list(names):
        raise CommandError("The first record is these names: say --header, for it is no row.")
    return list(names)


def _understood(table: pd.DataFrame, how: Reading, facts: Facts | None) -> pd.DataFrame:
    """The table with each cell read by the public facts on its column."""
    if facts is not None:
        for name in table.columns:
            column, known = cast(pd.Series, table[name]), facts.get(name, {})
            if how.is_number(name, facts):
                table[name] = texts.numbers(column, how.signs)
            elif not how.stays_text(name):
                table[name] = texts.meanings(column, known, how.signs)
    return _converted(table, how)


def _converted(table: pd.DataFrame, how: Reading) -> pd.DataFrame:
    """The table with the dtypes that the user names."""
    for name, dtype in how.dtypes.items():
        if name in table:
            table[name] = texts.convert(cast(pd.Series, table[name]), dtype)
    return table


def _check_dtypes(dtypes: Mapping[str, Any], names: Sequence[str]) -> None:
    unknown = [name for name in dtypes if name not in names]
    if unknown:
        raise CommandError(f"--dtype names {unknown!r}, which the table does not have.")
