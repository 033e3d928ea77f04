"""How a table is written in text: what separates, what numbers look like, where names are."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd

from sdv_privpgd.sources.source import SourceError
from sdv_privpgd.sources.texts import Signs, is_number

Facts = Mapping[str, Mapping]
"""The public facts on each column, in SDV's words, from the metadata and the domain."""


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
            raise SourceError(
                f"Thousands and decimals are both marked by {self.decimal!r}. Name the sign with "
                "CsvFiles(decimal=...), such as a comma."
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
        """Whether a column holds numbers."""
        if name not in self.dtypes:
            return is_number(facts.get(name, {}))
        return self.dtypes[name].kind in "iuf"

    def stays_text(self, name: str) -> bool:
        """Whether the user declared a column as text, or as dates, which are parsed later."""
        dtype = self.dtypes.get(name)
        return dtype is not None and (
            dtype in (np.dtype(object), pd.StringDtype()) or dtype.kind == "M"
        )

    def check_dtypes(self, names: list[str]) -> None:
        """Raises ``SourceError`` if the user names the dtype of a column that is not there."""
        unknown = [name for name in self.dtypes if name not in names]
        if unknown:
            raise SourceError(
                f"CsvFiles(dtypes=...) names {unknown!r}, which the table does not have."
            )
