"""The user's options for reading a table, and what is kept of them beside a model."""

from argparse import Namespace
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
import pandas as pd

from sdv_privpgd.cli.files import Kind, kind_read
from sdv_privpgd.cli.saying import CommandError
from sdv_privpgd.cli.texts import Signs

Facts = Mapping[str, Mapping]
"""The public facts on each column, in SDV's words, from the metadata and the domain."""

_OF_NUMBERS = {"decimal", "thousands"}
_OF_TEXT = ("sep", "decimal", "thousands", "encoding")


@dataclass(frozen=True, kw_only=True)
class Reading:
    """The options for reading a table.

    Attributes:
        sep: The separator of columns in text; ``None`` takes the one of the file's ending.
        decimal: The sign before decimals.
        thousands: The sign between groups of three digits; ``None`` allows none.
        encoding: The encoding of text; ``None`` takes the one of the file's first bytes, or UTF-8.
        sheet: The sheet of a workbook; ``None`` takes its only one.
        header: Whether the first record holds names; ``None`` decides by the record itself.
        names: The names of the columns.
        dtypes: The pandas dtypes of columns, by name.

    >>> how = Reading(decimal=",", names=("age", "ward"))
    >>> how.has_header, how.signs.plain("3,5")
    (False, '3.5')
    """

    sep: str | None = None
    decimal: str = "."
    thousands: str | None = None
    encoding: str | None = None
    sheet: str | None = None
    header: bool | None = None
    names: tuple[str, ...] | None = None
    dtypes: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.thousands is not None and self.thousands == self.decimal:
            raise CommandError(
                f"--thousands and --decimal are both {self.decimal!r}. Name the --decimal, such "
                "as a comma."
            )

    @property
    def signs(self) -> Signs:
        """The signs in numbers of text."""
        return Signs(self.decimal, self.thousands)

    @property
    def has_header(self) -> bool:
        """Whether the first record is a header and not a row."""
        return self.names is None if self.header is None else self.header

    def is_number(self, name: str, facts: Facts) -> bool:
        """Whether a column holds numbers, so that a parser may read it at once."""
        if name not in self.dtypes:
            return facts.get(name, {}).get("sdtype") == "numerical"
        return self.dtypes[name].kind in "iuf"

    def stays_text(self, name: str) -> bool:
        """Whether the user declared a column as text, or as dates, which are parsed later."""
        dtype = self.dtypes.get(name)
        return dtype is not None and (
            dtype in (np.dtype(object), pd.StringDtype()) or dtype.kind == "M"
        )


def reading(
    arguments: Namespace, path: Path | None = None, kept: Mapping[str, str] = MappingProxyType({})
) -> Reading:
    """The options for reading the table, or another one that is written as the model's was.

    >>> asked = {"sep": ";", "decimal": ",", "thousands": None, "encoding": None, "sheet": None}
    >>> asked |= {"table": Path("a.csv"), "header": None, "names": None, "dtype": [("age", "int8")]}
    >>> reading(Namespace(**asked)).dtypes
    {'age': 'int8'}
    """
    of_text = told(arguments, kept, kind_read(path or arguments.table))
    return Reading(
        sep=of_text.get("sep"),
        decimal=of_text.get("decimal", "."),
        thousands=of_text.get("thousands"),
        encoding=of_text.get("encoding"),
        sheet=arguments.sheet,
        header=arguments.header,
        names=arguments.names,
        dtypes=dict(arguments.dtype),
    )


def kept_of(arguments: Namespace) -> dict[str, str]:
    """The options of text that a command was told, for the model's file. No cell decides them.

    >>> kept_of(Namespace(sep=";", decimal=",", thousands=None, encoding=None))
    {'sep': ';', 'decimal': ','}
    """
    told = {name: getattr(arguments, name, None) for name in _OF_TEXT}
    return {name: value for name, value in told.items() if value is not None}


def told(arguments: Namespace, kept: Mapping[str, str], kind: Kind) -> dict[str, str]:
    """The options of text for a file of a kind: those of the command, and else those kept.

    An ending such as .tsv says what separates columns, whatever separated them in the table.

    >>> asked = Namespace(sep=None, decimal=None, encoding="cp1252")
    >>> told(asked, {"sep": ";", "decimal": ","}, Kind(form="text"))
    {'sep': ';', 'decimal': ',', 'encoding': 'cp1252'}
    """
    own, before = kept_of(arguments), dict(kept)
    if kind.sep != ",":
        before.pop("sep", None)
    if own.keys() & _OF_NUMBERS:
        before = {name: value for name, value in before.items() if name not in _OF_NUMBERS}
    return {**before, **own}
