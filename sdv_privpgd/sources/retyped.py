"""A source whose columns are converted to dtypes that the user names."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from sdv_privpgd.sources.source import Batch, Source
from sdv_privpgd.sources.texts import convert


class Retyped:
    """The rows of a source, with some columns in other dtypes."""

    def __init__(self, source: Source, dtypes: Mapping[str, Any]) -> None:
        self._source, self._named = source, dtypes
        self.names = list(source.names)

    @property
    def dtypes(self) -> dict[str, Any]:
        own = self._source.dtypes
        return {
            name: public_dtype(self._named[name], own[name]) if name in self._named else own[name]
            for name in own
        }

    def num_rows(self) -> int:
        return self._source.num_rows()

    def batches(self, names: Sequence[str]) -> Iterator[Batch]:
        chosen = {name: self._named[name] for name in names if name in self._named}
        for batch in self._source.batches(names):
            columns = dict(batch.columns)
            for name, dtype in chosen.items():
                columns[name] = converted(columns[name].rename(name), dtype)
            yield Batch(batch.done, columns)


def converted(column: pd.Series, dtype: Any) -> pd.Series:
    """A column of a batch in the dtype that the user names. Raises ``SourceError``."""
    is_plain = not isinstance(column.dtype, pd.CategoricalDtype)
    return convert(column if is_plain else column.astype(object), dtype)


def public_dtype(dtype: Any, own: Any) -> Any:
    """The dtype of a converted column as it is without any cell. ``own`` is what it was before."""
    if dtype.kind == "M" and own == np.dtype(object):  # dates of text are read one by one
        return own
    if isinstance(dtype, pd.CategoricalDtype) and dtype.categories is None:
        return pd.CategoricalDtype(pd.Index([], dtype=object), dtype.ordered)
    return dtype
