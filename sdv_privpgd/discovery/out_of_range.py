"""Rows beyond the ends of a range. Public.

Beyond each end lies one cell more than the fine ones, which costs nothing: a row is in one cell
either way. Short ranges, without fine cells, get a small question of their own.
"""

import math
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np

from sdv_privpgd.base import cached_property
from sdv_privpgd.columns.bins import Reals, Ticks
from sdv_privpgd.columns.column import Column
from sdv_privpgd.columns.cuts import can_write, column_of
from sdv_privpgd.columns.facts import ColumnFacts, DateFacts, NumberFacts
from sdv_privpgd.columns.vocabulary import words_of
from sdv_privpgd.discovery.density import CLEAR, HINT
from sdv_privpgd.discovery.ranges import SINGLE, edges_of
from sdv_privpgd.estimate.noisy_tables import NoisyTable, Total
from sdv_privpgd.privacy.queries import Measurement

_MANY = 0.02
"""The share of all rows beyond an end that is worth a word; half of that is, of an error."""

_SHORT = Fraction(1, 50)
"""Of the whole budget: for the small questions about all short ranges at most, and half for one.
So, at epsilon 1, a code in an eighth of 2,500 rows is found beside two short ranges."""


class EndCounts(NamedTuple):
    """The noisy numbers of rows ``beyond`` each declared end and ``missing`` ones. Public."""

    out_of_range: Mapping[str, float]
    missing: float
    stddev: float

    def held(self, total: Total) -> Total:
        """All rows but those without a value and those that do not clearly lie beyond an end."""
        unclear = [rows for key, rows in self.out_of_range.items() if key not in self.clear]
        noise = self.stddev * math.sqrt(len(unclear) + 1)
        left = max(total.value - self.missing - sum(unclear), 1.0)
        return Total(left, math.hypot(total.stddev, noise))

    @property
    def clear(self) -> dict[str, float]:
        """The numbers beyond the ends, where there clearly are any."""
        return {key: rows for key, rows in self.out_of_range.items() if rows > CLEAR * self.stddev}


@dataclass(frozen=True, kw_only=True)
class OutOfRange:
    """A column on its fine grid, with a cell for all that lies beyond each ``declared`` end.

    ``inner`` is the column without these cells. Missing has a code. Some of the ends were ``found``
    by earlier looks: what lies beyond counts at them.
    """

    inner: Column
    declared: Mapping[str, Any] = field(default_factory=dict)
    found: Collection[str] = ()

    @cached_property
    def column(self) -> Column:
        """The column that is counted."""
        return self._with_cells(self.declared)

    def opened(self, clear: Collection[str]) -> "OutOfRange":
        """The same, with the cells beyond found ends of numbers among the inner ones, if clear.

        They are where the last cell is one number: where a look saw zeros alone and rows lie above,
        ones are nearer to them than zeros are.
        """
        cells, near = self.inner.cells, set()
        if isinstance(cells, Ticks) and self.inner.sdtype == "numerical":
            ends = {"range_min": cells.widths[0], "range_max": cells.widths[-1]}
            near = {key for key, width in ends.items() if width == 1} & {*clear} & {*self.found}
        left = {key: end for key, end in self.declared.items() if key not in near}
        return OutOfRange(inner=self._with_cells(near), declared=left, found={*self.found} - near)

    def _with_cells(self, keys: Collection[str]) -> Column:
        """The column with one cell more beyond these ends."""
        if not keys:
            return self.inner
        cells = self.inner.cells
        below, above = (key in keys for key in ("range_min", "range_max"))
        if isinstance(cells, Ticks):
            cuts = (*[cells.first] * below, *cells.starts[1:].tolist(), *[cells.last + 1] * above)
            ends = {"first": cells.first - below, "last": cells.last + above}
            return replace(self.inner, cells=replace(cells, **ends, cuts=cuts))
        assert isinstance(cells, Reals)
        low, *between, high = cells.edges.tolist()
        after = math.nextafter(high, math.inf)  # the last cell has its end
        ends = {
            "low": math.nextafter(low, -math.inf) if below else low,
            "high": math.nextafter(after, math.inf) if above else high,
            "cuts": (*[low] * below, *between, *[after] * above),
        }
        return replace(self.inner, cells=replace(cells, **ends))

    @property
    def _inside(self) -> slice:
        start = int("range_min" in self.declared)
        return slice(start, start + self.inner.num_values)

    def groups(self, answer: Measurement, total: Total | None = None) -> EndCounts:
        """The numbers of rows beyond the ends, of the cells of ``column``.

        If that of all rows is known, all cells make up for what they miss of it.
        """
        counts, stddev = answer.answer.astype(np.float64), answer.stddev
        if total is not None and not total.stddev:
            counts += (total.value - counts.sum()) / counts.size
            stddev *= math.sqrt(1 - 1 / counts.size)
        *beyond, missing = np.delete(counts, self._inside).tolist()
        return EndCounts(dict(zip(self.declared, beyond, strict=True)), missing, stddev)

    def seen(self, answer: Measurement) -> tuple[np.ndarray, NoisyTable]:
        """The edges of the inner cells, and their counts."""
        counts = answer.answer[self._inside].astype(np.float64)
        return edges_of(self.inner), NoisyTable(counts, answer.stddev**2)

    def counted(self, answer: Measurement, clear: Mapping[str, float]) -> Measurement:
        """The counts of the inner cells, with the rows beyond an end in its own.

        Rows beyond a declared end are in it if they clearly lie there, and all beyond a found one.
        """
        counts = np.append(answer.answer[self._inside], answer.answer[-1])
        of_all = self.groups(answer).out_of_range
        moved = {**clear, **{key: of_all[key] for key in self.found}}
        for key in moved.keys() & self.declared.keys():
            counts[0 if key == "range_min" else -2] += round(moved[key])
        return replace(answer, answer=counts)

    def sentences(self, groups: EndCounts, total: Total) -> list[str]:
        """A sentence on each end beyond which many rows clearly lie."""
        return [
            self._sentence(key, _about(beyond, groups.stddev, total))
            for key, beyond in groups.clear.items()
            if beyond > _MANY * total.value or key in self.found
        ]

    def _sentence(self, key: str, about: str) -> str:
        where, code = ("below", "-1") if key == "range_min" else ("above", "999")
        if self.inner.sdtype == "datetime":
            code = "the year 1900" if key == "range_min" else "the year 2099"
        if key in self.found:
            return (
                f"{about} of the rows of {self.inner.name!r} lie {where} the range that was found, "
                f"and come out at its end, {self.declared[key]!r}, or beside it: declare the range."
            )
        return (
            f"{about} of the rows of {self.inner.name!r} lie {where} its "
            f"declared {key}={self.declared[key]!r} and were moved to it. If these are codes, such "
            f"as {code} for missing, declare them as missing_codes; if not, declare a wider range."
        )


def _about(count: float, stddev: float, total: Total) -> str:
    """The share of rows, and how far it may be off, if that is more than a point."""
    share = min(max(count / total.value, 0.0), 1.0)
    error = HINT * math.hypot(stddev, share * total.stddev) / total.value
    if error < _MANY / 2:
        return f"About {_percent(share)} %"
    return f"About {_percent(share)} % (give or take {_percent(error)})"


def _percent(share: float) -> str:
    return f"{100 * share:.0f}" if share >= 0.1 else f"{100 * share:.2g}"


def part_for_short(number: int) -> Fraction:
    """The part of the whole budget for the small questions about so many short ranges."""
    return min(_SHORT / 2 * number, _SHORT)


def whole_out_of_range(name: str, known: Any) -> OutOfRange:
    """A column in three groups: what lies below its declared range, inside, and above."""
    return out_of_range(name, replace(known, cuts=None, frequencies=None), known, 1)


def out_of_range(
    name: str,
    found: ColumnFacts,
    known: ColumnFacts,
    num_bins: int = SINGLE,
    *,
    at_last: bool = False,
) -> OutOfRange:
    """A column in the cells that were found, with the ends that were declared and it still has.

    It is without a format that cannot write all of its dates. In the last look it has all ends.
    """
    is_ranged = isinstance(found, NumberFacts | DateFacts)
    found = replace(found, nullable=True, **({"num_bins": num_bins} if is_ranged else {}))
    inner = replace(column_of(name, found), merging=None)
    if isinstance(found, DateFacts) and not can_write(inner):
        found = replace(found, datetime_format=None, aware=found.utc)
        return out_of_range(name, found, known, num_bins, at_last=at_last)
    is_one = isinstance(inner.cells, Reals) and len(inner.cells.edges) == 1
    words = words_of(known) if is_ranged and not is_one else {}
    ends = {"range_min": "low", "range_max": "high"}
    had = {
        key: words[key]
        for key, end in ends.items()
        if key in words and getattr(known, end) == getattr(found, end)
    }
    if is_one or not (is_ranged and at_last):
        return OutOfRange(inner=inner, declared=had)
    both = {key: words_of(found)[key] for key in ends}
    return OutOfRange(inner=inner, declared={**both, **had}, found=both.keys() - had.keys())
