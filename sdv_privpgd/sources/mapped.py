"""A source whose cells are as their columns' public rules map them, whoever reads them."""

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Any

from sdv_privpgd.columns.facts import ColumnFacts
from sdv_privpgd.columns.recoding import Recoding, recoded
from sdv_privpgd.sources.frames import FrameSource
from sdv_privpgd.sources.source import (
    Batch,
    Cluster,
    Columns,
    MappedTally,
    Numbered,
    Orderable,
    Source,
    Tally,
    Total,
)


def as_read(source: Source, facts: Mapping[str, ColumnFacts]) -> Source:
    """The same source with missing codes and groups in the place of codes. No cell is read yet.

    Its dtypes are those of the source. Groups are written in the dtype of their codes where it can
    hold them.
    """
    rules = Recoding.of(facts)
    if not rules:
        return source
    if isinstance(source, FrameSource):
        return source.recoded(rules)
    return (_RecodedCluster if isinstance(source, Cluster) else _Recoded)(source, rules)


class _Recoded:
    """Rows in batches that are recoded as they come."""

    def __init__(self, inner: Any, rules: Mapping[str, Recoding]) -> None:
        self.inner, self.rules = inner, rules

    @property
    def names(self) -> Sequence[str]:
        return self.inner.names

    @property
    def dtypes(self) -> Mapping[str, Any]:
        return self.inner.dtypes

    @property
    def people(self) -> tuple[str, int, bool] | None:
        return getattr(self.inner, "people", None)

    @property
    def numbered(self) -> Numbered | None:
        return getattr(self.inner, "numbered", None)

    def num_rows(self) -> int:
        return self.inner.num_rows()

    def batches(self, names: Sequence[str]) -> Iterator[Batch]:
        for batch in self.inner.batches(names):
            yield batch._replace(columns=recoded(batch.columns, self.rules))

    def ordered(self, by: Sequence[str]) -> Source:
        if not isinstance(self.inner, Orderable):
            return self
        return _Recoded(self.inner.ordered(by), self.rules)


class _RecodedCluster(_Recoded):
    """Rows that are recoded where they are, by a tally that does it before it adds them up."""

    def total(self, names: Sequence[str], tally: Tally[Columns, Total]) -> Total:
        return self.inner.total(names, MappedTally(tally, partial(_recoded, rules=self.rules)))

    def of_people(self, person: str, most: int, *, numbered: bool = False) -> Source:
        found = self.inner.of_people(person, most, numbered=numbered)
        return _RecodedCluster(found, self.rules)


def _recoded(columns: Columns, rules: Mapping[str, Recoding]) -> list[Columns]:
    return [recoded(columns, rules)]
