"""Files as sources: a path, a pattern or a list of paths, of Parquet or CSV files."""

import os
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from sdv_privpgd.base.files import PARQUET, files_of
from sdv_privpgd.columns.scalars import quiet
from sdv_privpgd.sources.csv import CsvSource
from sdv_privpgd.sources.source import Source, SourceError


def open_files(
    paths: str | os.PathLike | Sequence,
    facts: Mapping[str, Mapping[str, Any]],
    person: str | None = None,
) -> Source:
    """The rows of all the files, in the order of their names, as ``open_source`` takes them.

    Raises ``SourceError`` if there are no files, if they are of several kinds, or columns differ.
    """
    found = files_of(paths)
    kinds = {path.suffix.lower() in PARQUET for path in found}
    if len(kinds) > 1:
        raise SourceError(f"{_called(found)} are of several kinds: give those of one kind alone.")
    if kinds == {True}:
        return _of_parquet(found, facts if person is None or not facts else {*facts, person})
    return CsvSource(found, facts)


def _of_parquet(paths: Sequence[Path], facts: Collection[str]) -> Source:
    if find_spec("pyarrow") is None:
        raise SourceError(f"{_called(paths)}: reading needs pyarrow: pip install pyarrow.")
    import pyarrow.parquet

    from sdv_privpgd.sources.arrow import BLOCK, ArrowSource, is_text

    called = _called(paths)
    schemas = []
    for path in paths:
        with quiet(str(path)):
            schemas.append(pyarrow.parquet.read_schema(path))
    schema = _common(paths, schemas, facts)
    # A file's texts stay numbers of its dictionary: nobody reads them again and again.
    texts = [field.name for field in schema if is_text(field.type)]

    def scan(names: list[str]) -> Iterator[Any]:
        for path, own in zip(paths, schemas, strict=True):
            if pyarrow.parquet.read_schema(path) != own:
                raise SourceError(f"{path} has other columns than before: it must stay as it is.")
            # Not by a data set: that reads ahead as fast as it can, and up to a gigabyte.
            held = [name for name in texts if name in own.names]
            with pyarrow.parquet.ParquetFile(path, read_dictionary=held, pre_buffer=False) as file:
                yield from file.iter_batches(batch_size=BLOCK, columns=names)

    def count() -> int:
        return sum(pyarrow.parquet.read_metadata(path).num_rows for path in paths)

    return ArrowSource(schema, scan, count, called)


def _common(paths: Sequence[Path], schemas: Sequence[Any], names: Collection[str]) -> Any:
    """One schema for all files. Columns that nobody asks for may be there or not."""
    import pyarrow

    doubled = next((each for each in schemas if len(set(each.names)) < len(each.names)), None)
    if doubled is not None:
        return doubled  # it is refused by its names
    found = {field.name: field for schema in reversed(schemas) for field in schema}
    for name in [name for name in found if not names or name in names]:
        if name.startswith("__index_level_"):
            continue
        for path, schema in zip(paths, schemas, strict=True):
            field = _unified(found[name], schema)
            if field is None:
                raise SourceError(
                    f"The column {name!r} is not in {path}, or is of another type there than in "
                    "other files: a table has one schema."
                )
            found[name] = field
    return pyarrow.schema(list(found.values()), schemas[0].metadata)


def _unified(field: Any, schema: Any) -> Any:
    """A column as it is known and as a file has it, in one; ``None`` if that cannot be."""
    import pyarrow

    with suppress(KeyError, pyarrow.ArrowException):
        other = schema.field(field.name)
        if field.type != other.type:  # text is text, with a dictionary or without
            field, other = (each.with_type(_plain(each.type)) for each in (field, other))
        # A column that is missing in a whole file has no type there.
        both = [pyarrow.schema([field]), pyarrow.schema([other])]
        return pyarrow.unify_schemas(both, promote_options="permissive").field(0)
    return None


def _plain(kind: Any) -> Any:
    """A type without the dictionary that its values are in."""
    import pyarrow

    return kind.value_type if pyarrow.types.is_dictionary(kind) else kind


def _called(paths: Sequence[Path]) -> str:
    return str(paths[0]) if len(paths) == 1 else f"{paths[0]} and {len(paths) - 1} more files"
