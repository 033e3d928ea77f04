"""A pandas table as a source."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pandas as pd

from sdv_privpgd.sources.source import Batch, Columns

_BLOCK = 1 << 18
"""Rows of a batch."""


class FrameSource:
    """The columns of a pandas table, of one length."""

    def __init__(
        self, columns: Mapping[str, pd.Series], names: Sequence[str] | None = None
    ) -> None:
        """Takes columns by name, and all names if some are there twice."""
        self.columns: Columns = dict(columns)
        self.names = list(columns) if names is None else list(names)

    @classmethod
    def of(cls, table: pd.DataFrame) -> "FrameSource":
        """The columns of a table, under their names as text."""
        names = list(table.columns.to_flat_index().astype(str))
        return cls({name: table.iloc[:, place] for place, name in enumerate(names)}, names)

    @property
    def dtypes(self) -> dict[str, Any]:
        return {name: column.dtype for name, column in self.columns.items()}

    def num_rows(self) -> int:
        return len(next(iter(self.columns.values()), ()))

    def batches(self, names: Sequence[str]) -> Iterator[Batch]:
        number = self.num_rows()
        for start in range(0, number, _BLOCK):
            part = slice(start, start + _BLOCK)
            rows = {name: self.columns[name].iloc[part] for name in names}
            yield Batch(min(start + _BLOCK, number) / number, rows)
