"""How a user says that a table is to be read."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd

Facts = Mapping[str, Mapping]
"""What is public of each column, in SDV's words: the metadata's and those of the domain."""


@dataclass(frozen=True, kw_only=True)
class Reading:
    """What the options say of a table.

    Attributes:
        sep: What separates columns of text; ``None`` as the ending of the file says.
        decimal: What stands before decimals.
        encoding: Of text; ``None`` is UTF-8, or what the file's first bytes say.
        sheet: Of a workbook; ``None`` is its only one.
        header: Whether the first record is the names: ``None`` if it looks like it.
        names: The names of the columns.
        dtypes: Columns and the pandas dtypes that they get.
    """

    sep: str | None = None
    decimal: str = "."
    encoding: str | None = None
    sheet: str | None = None
    header: bool | None = None
    names: tuple[str, ...] | None = None
    dtypes: Mapping[str, Any] = field(default_factory=dict)

    @property
    def has_header(self) -> bool:
        """Whether the first record is not a row."""
        return self.names is None if self.header is None else self.header

    def is_number(self, name: str, facts: Facts) -> bool:
        """Whether a column holds numbers, so that a parser may read it in one go."""
        if name not in self.dtypes:
            return facts.get(name, {}).get("sdtype") == "numerical"
        return self.dtypes[name].kind in "iuf"

    def stays_text(self, name: str) -> bool:
        """Whether the user says that a column is text, or dates, which are read as such later."""
        dtype = self.dtypes.get(name)
        return dtype is not None and (
            dtype in (np.dtype(object), pd.StringDtype()) or dtype.kind == "M"
        )
