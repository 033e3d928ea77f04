"""A pandas table as a source."""

from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType

import pandas as pd

from sdv_privpgd.base import cached_property
from sdv_privpgd.columns.recoding import Recoding, recoded
from sdv_privpgd.sources.source import BLOCK, Batch, Columns


class FrameSource:
    """The columns of a pandas table, of one length."""

    def __init__(
        self,
        columns: Mapping[str, pd.Series],
        names: Sequence[str] | None = None,
        *,
        rules: Mapping[str, Recoding] = MappingProxyType({}),
    ) -> None:
        """Takes columns by name, and all names if some are there twice.

        The ``rules`` of columns say what their cells are taken for.
        """
        self._held, self._rules = dict(columns), rules
        self.names = list(columns) if names is None else list(names)
        self.dtypes = {name: column.dtype for name, column in columns.items()}

    @classmethod
    def of(cls, table: pd.DataFrame) -> "FrameSource":
        """The columns of a table, under their names as text."""
        names = list(table.columns.to_flat_index().astype(str))
        return cls({name: table.iloc[:, place] for place, name in enumerate(names)}, names)

    def recoded(self, rules: Mapping[str, Recoding]) -> "FrameSource":
        """The same columns, whose cells are recoded when one is read."""
        return FrameSource(self._held, self.names, rules=rules)

    @cached_property
    def columns(self) -> Columns:
        """The columns, as they are to be read. Private."""
        return recoded(self._held, self._rules)

    def num_rows(self) -> int:
        return len(next(iter(self._held.values()), ()))

    def batches(self, names: Sequence[str]) -> Iterator[Batch]:
        number = self.num_rows()
        for start in range(0, number, BLOCK):
            part = slice(start, start + BLOCK)
            rows = {name: self.columns[name].iloc[part] for name in names}
            yield Batch(min(start + BLOCK, number) / number, rows)
