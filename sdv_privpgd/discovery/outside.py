"""Rows beyond declared ends of a range: counted beside the fine cells, at no further cost. Public.

Beyond each declared end lies one cell more. A row is in one cell either way, so the question costs
the same.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np

from sdv_privpgd.columns.bins import Interval, Ticks
from sdv_privpgd.columns.column import Column
from sdv_privpgd.columns.facts import ColumnFacts, DateFacts, NumberFacts
from sdv_privpgd.columns.wording import words_of
from sdv_privpgd.estimate.noisy_tables import Total
from sdv_privpgd.privacy.measurement import Measurement

_CLEAR = 4.0
"""Rows lie outside if their count is this many standard deviations of the noise."""

_MANY = 0.02
"""The share of all rows beyond an end that is worth a word."""

NEARLY_ALL, _MOST = 0.9, 0.5
"""The share of rows that surely have none of the declared values, from which on a fit stops; and
the share of all rows that must lie outside a range."""


@dataclass(frozen=True, kw_only=True)
class Beyond:
    """The rows of a column that clearly lie beyond declared ends of its range. Public.

    Attributes:
        name: The column's name.
        is_date: Whether it has dates.
        ends: These ends, in SDV's words.
        count: The noisy number of rows beyond them, ``missing`` that of rows without a value, and
            ``within`` that of the other rows.
        cells: The number of cells that these others were counted in.
        stddev: Of the noise of each count.

    >>> counts = {"count": 960, "missing": -3, "within": 42, "cells": 10, "stddev": 5.0}
    >>> ages = Beyond(name="age", is_date=False, ends={"range_max": 9}, **counts)
    >>> ages.misfit(Total(1_000.0, 0.0))[:56]
    "About 96 % of the rows of 'age' lie outside its declared"
    >>> ages.misfit(Total(1_200.0, 0.0)) is None
    True
    """

    name: str
    is_date: bool
    ends: Mapping[str, Any]
    count: int
    missing: int
    within: int
    cells: int
    stddev: float

    def misfit(self, total: Total) -> str | None:
        """A sentence if nearly all rows with a value, and most of all rows, are surely among them.

        Args:
            total: The number of all rows.
        """
        error = _CLEAR * self.stddev
        rows = total.value + _CLEAR * total.stddev
        with_value = rows - max(self.missing - error, 0.0)
        surely = self.count - error * math.sqrt(len(self.ends))
        if surely < max(_MOST * rows, NEARLY_ALL * with_value):
            return None
        if self.within - error * math.sqrt(self.cells) > (1 - NEARLY_ALL) * rows:
            return None
        ends = " and ".join(f"{key}={end!r}" for key, end in self.ends.items())
        wrong = "the year" if self.is_date else "the unit"
        return (
            f"About {_percent(min(self.count / total.value, 1.0))} % of the rows of {self.name!r} "
            f"lie outside its declared {ends}. Check {wrong}, or declare a wider range; if these "
            "are codes for missing, make them missing before a fit."
        )


@dataclass(frozen=True, kw_only=True)
class Fenced:
    """A column on its fine grid, with a cell for all that lies beyond each declared end.

    Attributes:
        inner: The column without these cells. Missing has a code.
        declared: The declared ends that it has, in SDV's words.

    >>> from sdv_privpgd.columns.cutting import column_of
    >>> age = column_of("age", NumberFacts(low=0, high=9, decimal_places=0))
    >>> fenced = Fenced(inner=age, declared={"range_min": 0, "range_max": 9})
    >>> fenced.column.locate(np.array([-1, 0, 9, 999]))[0]
    array([ 0,  1, 10, 11])
    """

    inner: Column
    declared: Mapping[str, Any] = field(default_factory=dict)

    @cached_property
    def column(self) -> Column:
        """The column that is counted."""
        if not self.declared:
            return self.inner
        cells = self.inner.cells
        below, above = (key in self.declared for key in ("range_min", "range_max"))
        if isinstance(cells, Ticks):
            cuts = (*[cells.first] * below, *cells.starts[1:].tolist(), *[cells.last + 1] * above)
            ends = {"first": cells.first - below, "last": cells.last + above}
            return replace(self.inner, cells=replace(cells, **ends, cuts=cuts))
        assert isinstance(cells, Interval)
        low, *between, high = cells.edges.tolist()
        after = math.nextafter(high, math.inf)  # the last cell has its end
        cuts = (*[low] * below, *between, *[after] * above)
        low = math.nextafter(low, -math.inf) if below else low
        high = math.nextafter(after, math.inf) if above else high
        return replace(self.inner, cells=replace(cells, low=low, high=high, cuts=cuts))

    def counted(self, answer: Measurement) -> Measurement:
        """The counts of the inner cells. Where rows clearly lie beyond an end, they are in its."""
        number, start = self.inner.num_values, int("range_min" in self.declared)
        counts = np.append(answer.answer[start : start + number], answer.answer[-1])
        for key, beyond in self._beyond(answer).items():
            counts[0 if key == "range_min" else number - 1] += beyond
        return replace(answer, answer=counts)

    def sentences(self, answer: Measurement) -> list[str]:
        """A sentence on each end beyond which many rows clearly lie.

        >>> from sdv_privpgd.columns.cutting import column_of
        >>> from sdv_privpgd.privacy.queries import MarginalQuery
        >>> age = column_of("age", NumberFacts(low=0, high=2, decimal_places=0))
        >>> counts = np.array([40, 300, 300, 300, 0])  # the last is missing
        >>> answer = Measurement(query=MarginalQuery(("age",)), answer=counts, stddev=2.0)
        >>> said = Fenced(inner=age, declared={"range_min": 0}).sentences(answer)
        >>> said[0][:54]
        "About 4.3 % of the rows of 'age' lie below its declare"
        """
        total = max(float(answer.answer.sum()), 1.0)
        return [
            self._sentence(key, min(beyond / total, 1.0))
            for key, beyond in self._beyond(answer).items()
            if beyond > _MANY * total
        ]

    def beyond(self, answer: Measurement) -> "Beyond | None":
        """The rows that clearly lie beyond the ends, if there are any."""
        found = self._beyond(answer)
        if not found:
            return None
        return Beyond(
            name=self.inner.name,
            is_date=self.inner.sdtype == "datetime",
            ends={key: self.declared[key] for key in found},
            count=sum(found.values()),
            missing=int(answer.answer[-1]),
            within=int(answer.answer[:-1].sum()) - sum(found.values()),
            cells=len(answer.answer) - 1 - len(found),
            stddev=answer.stddev,
        )

    def _beyond(self, answer: Measurement) -> dict[str, int]:
        """The noisy numbers of rows beyond the ends, where there clearly are any."""
        places = {"range_min": 0, "range_max": -2}  # the last is the count of missing
        counts = {key: int(answer.answer[places[key]]) for key in self.declared}
        return {key: count for key, count in counts.items() if count > _CLEAR * answer.stddev}

    def _sentence(self, key: str, share: float) -> str:
        where, code = ("below", "-1") if key == "range_min" else ("above", "999")
        if self.inner.sdtype == "datetime":
            code = "the year 1900" if key == "range_min" else "the year 2099"
        return (
            f"About {_percent(share)} % of the rows of {self.inner.name!r} lie {where} its "
            f"declared {key}={self.declared[key]!r} and were moved to it. If these are codes, such "
            f"as {code} for missing, make them missing before a fit; if not, declare a wider range."
        )


def _percent(share: float) -> str:
    return f"{100 * share:.0f}" if share >= 0.1 else f"{100 * share:.2g}"


def fenced(inner: Column, known: ColumnFacts, found: ColumnFacts) -> Fenced:
    """A column that was cut finely, with the ends that were declared and that it still has.

    >>> from sdv_privpgd.columns.cutting import column_of
    >>> known, found = NumberFacts(low=0), NumberFacts(low=0, high=128)
    >>> dict(fenced(column_of("age", found), known, found).declared)
    {'range_min': 0}
    """
    if not (
        isinstance(known, NumberFacts | DateFacts) and isinstance(found, NumberFacts | DateFacts)
    ):
        return Fenced(inner=inner)
    if isinstance(inner.cells, Interval) and len(inner.cells.edges) == 1:
        return Fenced(inner=inner)
    words, is_had = words_of(known), {"range_min": known.low == found.low}
    is_had["range_max"] = known.high == found.high
    return Fenced(
        inner=inner,
        declared={key: words[key] for key, had in is_had.items() if had and key in words},
    )
