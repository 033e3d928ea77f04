"""Files as sources: a path, a pattern or a list of paths, of Parquet or CSV files."""

import os
from collections.abc import Mapping, Sequence
from glob import glob, has_magic
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from sdv_privpgd.sources.source import Source, SourceError
from sdv_privpgd.sources.withheld import withheld

_PARQUET = (".parquet", ".pq")


def open_files(
    paths: str | os.PathLike | Sequence, facts: Mapping[str, Mapping[str, Any]]
) -> Source:
    """The rows of all the files, in the order of their names.

    Args:
        paths: A path, of a folder too, a pattern such as ``visits/*.parquet``, or several of them.
        facts: What is public of each column, in SDV's words: texts of CSV files are read by it.

    Raises:
        SourceError: If there are no files, if they are of several kinds, or their columns differ.

    >>> import pandas as pd
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     pd.DataFrame({"age": [34, 71]}).to_parquet(f"{folder}/a.parquet")
    ...     pd.DataFrame({"age": [25]}).to_parquet(f"{folder}/b.parquet")
    ...     open_files(f"{folder}/*.parquet", {}).num_rows()
    3
    """
    found = files_of(paths)
    kinds = {path.suffix.lower() in _PARQUET for path in found}
    if len(kinds) > 1:
        raise SourceError(f"{_called(found)} are of several kinds: give those of one kind alone.")
    if kinds == {True}:
        return _of_parquet(found)
    from sdv_privpgd.sources.csv import CsvSource

    return CsvSource(found, facts)


def files_of(paths: str | os.PathLike | Sequence) -> list[Path]:
    """The files that paths and patterns name, in order. Raises ``SourceError`` if there are none.

    Of a folder it takes all files whose names begin with no point and no underscore.

    >>> files_of("nowhere/*.parquet")
    Traceback (most recent call last):
    ...
    sdv_privpgd.sources.source.SourceError: There is no file nowhere/*.parquet.
    """
    if not isinstance(paths, str | os.PathLike):
        return [path for each in paths for path in files_of(each)]
    text = os.path.expanduser(os.fspath(paths))
    if os.path.isdir(text):
        inside = (path for path in Path(text).rglob("*") if path.is_file())
        found = sorted(path for path in inside if not path.name.startswith((".", "_")))
    elif os.path.exists(text) or not has_magic(text):
        found = [Path(text)] if os.path.exists(text) else []
    else:
        found = [Path(each) for each in sorted(glob(text, recursive=True)) if os.path.isfile(each)]
    if not found:
        raise SourceError(f"There is no file {os.fspath(paths)}.")
    return found


def _of_parquet(paths: Sequence[Path]) -> Source:
    if find_spec("pyarrow") is None:
        raise SourceError(f"{_called(paths)}: reading needs pyarrow: pip install pyarrow.")
    import pyarrow.dataset
    import pyarrow.parquet

    from sdv_privpgd.sources.arrow import is_text
    from sdv_privpgd.sources.tables import of_dataset

    called = _called(paths)
    schemas = []
    for path in paths:
        with withheld(str(path)):
            schemas.append(pyarrow.parquet.read_schema(path))
    schema = schemas[0]
    for path, own in zip(paths, schemas, strict=True):
        try:
            # A column that is missing in a whole file has no type there.
            schema = pyarrow.unify_schemas([schema, own], promote_options="permissive")
            fits = set(own.names) == set(schemas[0].names)
        except pyarrow.ArrowException:
            fits = False
        if not fits:
            raise SourceError(
                f"The columns of {path}, or their types, are not those of {paths[0]}: a table has "
                "one schema."
            )
    with withheld(called):
        # A file's texts stay numbers of its dictionary: nobody reads them again and again.
        texts = [field.name for field in schema if is_text(field.type)]
        form = pyarrow.dataset.ParquetFileFormat(dictionary_columns=texts)
        kept = pyarrow.schema(
            [
                field.with_type(pyarrow.dictionary(pyarrow.int32(), field.type))
                if field.name in texts
                else field
                for field in schema
            ],
            schema.metadata,
        )
        dataset = pyarrow.dataset.dataset([str(path) for path in paths], schema=kept, format=form)
    return of_dataset(dataset, called, schema)


def _called(paths: Sequence[Path]) -> str:
    return str(paths[0]) if len(paths) == 1 else f"{paths[0]} and {len(paths) - 1} more files"
