"""The user's options for reading a table, and what is kept of them beside a model."""

from argparse import Namespace
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

from sdv_privpgd.cli.files import Kind, kind_read
from sdv_privpgd.cli.saying import spoken
from sdv_privpgd.sources.dialect import Reading

_OF_NUMBERS = {"decimal", "thousands"}
_OF_TEXT = ("sep", "decimal", "thousands", "encoding", "na", "skip_rows")


@spoken()
def reading(
    arguments: Namespace, path: Path, kept: Mapping[str, Any] = MappingProxyType({})
) -> Reading:
    """The options for reading a table, which may be written as the model's was."""
    of_text = told(arguments, kept, kind_read(path))
    return Reading(
        sep=of_text.get("sep"),
        decimal=of_text.get("decimal"),
        thousands=of_text.get("thousands"),
        encoding=of_text.get("encoding"),
        sheet=arguments.sheet,
        header=arguments.header,
        names=arguments.names,
        dtypes=dict(arguments.dtype),
        na=tuple(of_text.get("na", ())),
        skip_rows=of_text.get("skip_rows", 0),
    )


def kept_of(arguments: Namespace) -> dict[str, Any]:
    """The options of text that a command was told, for the model's file. No cell decides them."""
    told = {name: getattr(arguments, name, None) for name in _OF_TEXT}
    return {name: value for name, value in told.items() if value or value == 0}


def told(arguments: Namespace, kept: Mapping[str, Any], kind: Kind) -> dict[str, Any]:
    """The options of text for a file of a kind: those of the command, and else those kept.

    An ending such as .tsv says what separates columns, whatever separated them in the table.
    """
    own, before = kept_of(arguments), dict(kept)
    if kind.sep != ",":
        before.pop("sep", None)
    if kind.form == "parquet":
        before.pop("skip_rows", None)
    if own.keys() & _OF_NUMBERS:
        before = {name: value for name, value in before.items() if name not in _OF_NUMBERS}
    return {**before, **own}
