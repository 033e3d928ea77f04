"""Differences of two columns in order, each an attribute of its own. Public arithmetic.

The cells of two dates say almost nothing about the days between them. So the difference is modelled
as well: a row's difference follows from the row's two cells, and nothing is learned. When rows are
decoded, one of the two columns is computed from the other one and the difference.
"""

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from sdv_privpgd.base import cached_property
from sdv_privpgd.base.domain import Clique, FieldsAlone
from sdv_privpgd.columns.bins import BELOW_ONE, HARDLY, Merging, Reals, Ticks, merged_neighbors
from sdv_privpgd.columns.column import EXACT_IN_FLOAT, Column
from sdv_privpgd.columns.scalars import LARGEST_WHOLE
from sdv_privpgd.columns.units import IN_A_SECOND, UNITS

_SMALL = 1e-6
"""Real differences below this part of the largest share the first cell with zero."""

_FAR = 5.0
"""A value with so many times the rows of those around it is shared by many; beside a cell of the
column, one of the difference that is so many times as wide says nothing."""


@dataclass(frozen=True)
class Difference(FieldsAlone):
    """A row's ``high`` minus its ``low``; missing if one of them is.

    ``column`` holds its cells, in steps that both columns' values are whole multiples of: for dates
    these are the finer of two units. If a column has real numbers, so has the difference.
    """

    low: Column
    high: Column
    column: Column

    @property
    def name(self) -> str:
        """The attribute's name."""
        return self.column.name

    def between(self, low: np.ndarray, high: np.ndarray) -> np.ndarray:
        """The differences of what the columns' cells hold, each clipped to its column's range."""
        own, other = (
            self._steps(column, np.clip(values, *column.cells.ends))
            for column, values in ((self.low, low), (self.high, high))
        )
        return np.clip(other - own, *self.column.cells.ends)

    def possible(self) -> dict[Clique, np.ndarray]:
        """The cells of each column and the difference that can hold rows, bool."""
        return {
            (own.name, self.name): self._possible(own, other)
            for own, other in ((self.low, self.high), (self.high, self.low))
        }

    def _possible(self, own: Column, other: Column) -> np.ndarray:
        """Marks codes of a column and the difference that leave the other column a value."""
        sign = 1 if own is self.low else -1
        least, most = (self._at(own, position) for position in (0.0, BELOW_ONE))
        near, far = (self._at(self.column, position) for position in (0.0, BELOW_ONE))
        near, far = (near, far) if sign > 0 else (far, near)
        first, last = self.ends_of(other)
        allowed = np.zeros((own.size, self.column.size), dtype=bool)
        allowed[: own.num_values, : self.column.num_values] = (
            least[:, None] + sign * near <= last
        ) & (most[:, None] + sign * far >= first)
        if self.column.nullable:
            allowed[: own.num_values, -1] = other.nullable
            allowed[own.num_values :, -1] = True
        return allowed

    def widths(self, column: Column) -> np.ndarray:
        """The width, in steps, of each of a column's codes."""
        return self._at(column, BELOW_ONE) - self._at(column, 0.0)

    def _at(self, column: Column, position: float) -> np.ndarray:
        """The value, in steps, at a position of each of a column's codes."""
        codes = np.arange(column.num_values)
        return self._steps(column, column.at(codes, np.full(codes.shape, position)))

    def put(
        self,
        known: str,
        codes: Mapping[str, np.ndarray],
        places: Mapping[str, np.ndarray],
        *,
        moves: bool,
    ) -> None:
        """Computes the column that is not ``known``, in place, in rows that have both columns.

        A row that has both columns but no difference takes the difference of another row.

        A value outside its column's range becomes the nearest end of it. If ``moves`` is set, the
        known value is first moved to where the difference has room: evenly inside its cell, or to
        the nearest value.

        Values that many rows share stay, and no other row gets one. Beside them, and
        where its own cell is very wide, the difference only says where in its code a value is.
        """
        upwards = known == self.low.name
        own, other = (self.low, self.high) if upwards else (self.high, self.low)
        rows = np.flatnonzero(np.all([codes[c.name] < c.num_values for c in (own, other)], axis=0))
        there = np.flatnonzero(codes[self.name][rows] < self.column.num_values)
        if not there.size:
            return
        lent = np.arange(rows.size)
        lacks = codes[self.name][rows] == self.column.num_values
        lent[lacks] = np.resize(there, int(lacks.sum()))
        code, place = codes[known][rows], places[known][rows]
        step = self.column.at(codes[self.name][rows[lent]], places[self.name][rows[lent]])
        step = step if upwards else -step
        was, there = (code, place), (codes[other.name][rows], places[other.name][rows])
        is_shared, stays = _are_shared(own, *was), _are_shared(other, *there)
        if moves:
            for is_most, end in enumerate(self.ends_of(other)):
                code, place = self._moved(own, code, place, end - step, bool(is_most))
            beside = self._located(own, self._steps(other, other.at(*there)) - step, not upwards)
            code, place = _either(stays, beside, (code, place))
            code, place = _either(is_shared | (stays & (code != was[0])), was, (code, place))
            codes[known][rows], places[known][rows] = code, place
        value = self._steps(own, own.at(code, place))
        reached = value + step
        if getattr(other.cells, "rounding", ()):
            how = codes[self.name][rows[lent]], places[self.name][rows[lent]]
            reached = self._round(other, value, *how, upwards=upwards)
        found = self._located(other, reached, upwards)
        wide, fine = self.widths(self.column), self.widths(other)
        coarse = wide[codes[self.name][rows[lent]]] > _FAR * fine[there[0]]
        least = self.column.cells.ends[0] * (1 if upwards else -1)
        kept = self._moved(other, *there, value + least, not upwards)
        keeps = (is_shared | coarse | _are_shared(other, *found)) & (found[0] != there[0])
        found = _either(keeps & (kept[0] == there[0]), kept, found)
        codes[other.name][rows], places[other.name][rows] = _either(stays, there, found)

    def _round(
        self,
        other: Column,
        value: np.ndarray,
        code: np.ndarray,
        place: np.ndarray,
        *,
        upwards: bool,
    ) -> np.ndarray:
        """What the difference's codes reach from values, as round as the other column is."""
        ends = [self.column.at(code, np.full(code.shape, part)) for part in (0.0, BELOW_ONE)]
        low, high = (
            (value + end for end in ends) if upwards else (value - end for end in ends[::-1])
        )
        low, high = (
            np.clip(self._values(other, reached, is_least), *other.cells.ends)
            for reached, is_least in ((low, True), (high, False))
        )
        assert isinstance(other.cells, Ticks)
        return self._steps(other, other.cells.inside(low, np.maximum(low, high), place))

    def _moved(
        self, own: Column, code: np.ndarray, place: np.ndarray, limit: np.ndarray, is_most: bool
    ) -> tuple[np.ndarray, np.ndarray]:
        """The codes and positions, moved where their values are beyond a limit."""
        value = self._steps(own, own.at(code, place))
        beyond = value > limit if is_most else value < limit
        nearest, edge = self._located(own, limit, not is_most)
        inside = np.minimum(place * edge if is_most else edge + place * (1 - edge), BELOW_ONE)
        return _either(beyond, (nearest, np.where(nearest == code, inside, edge)), (code, place))

    @cached_property
    def unit(self) -> str:
        """The finer of the two units of dates."""
        return min((str(self.low.unit), str(self.high.unit)), key=UNITS.index)

    def ends_of(self, column: Column) -> np.ndarray:
        """The first and the last value of a column, in steps."""
        return self._steps(column, np.array(column.cells.ends))

    def _steps(self, column: Column, values: np.ndarray) -> np.ndarray:
        """Values as a column's cells hold them, in steps of the difference: int64 or float64."""
        if column is self.column:
            return values
        if column.unit is not None:
            moments = values.astype(np.int64).astype(f"M8[{column.unit}]")
            return moments.astype(f"M8[{self.unit}]").astype(np.int64)
        if isinstance(self.column.cells, Reals):
            return column.numbers(values).astype(np.float64)
        return values * int(column.tick / self.column.tick)

    def _located(
        self, column: Column, steps: np.ndarray, upwards: bool
    ) -> tuple[np.ndarray, np.ndarray]:
        """The codes and positions in a column that are nearest to steps, rounded up or down."""
        return column.locate(np.clip(self._values(column, steps, upwards), *column.cells.ends))

    def _values(self, column: Column, steps: np.ndarray, upwards: bool) -> np.ndarray:
        """Steps of the difference as values of a column's cells, rounded up or down."""
        if isinstance(column.cells, Reals):
            return steps
        if column.unit is not None:
            moments = steps.astype(f"M8[{self.unit}]").astype(f"M8[{column.unit}]")
            values = moments.astype(np.int64)
            return values + (self._steps(column, values) < steps) if upwards else values
        if isinstance(self.column.cells, Reals):
            ticks = steps / float(column.tick)
            whole = (np.ceil if upwards else np.floor)(ticks)
            return np.clip(whole, *column.cells.ends).astype(np.int64)  # floats may be far beyond
        many = int(column.tick / self.column.tick)
        return -(-steps // many) if upwards else steps // many


def difference_of(
    low: Column, high: Column, *, strict: bool, name: str, num_cells: int
) -> Difference | None:
    """The difference of two columns, in cells that widen from the smallest difference on.

    It is ``None`` if it says nothing new: every value of both columns has a code, or there is only
    one possible difference. It is also ``None`` if it is too large for whole numbers.
    """
    facts = _described(low, high)
    empty = Column(name=name, sdtype="numerical", cells=Reals(0.0, 1.0, 1), **facts)
    if facts["decimal_places"] is None and facts["increment"] is None:
        largest = _largest(Difference(low, high, empty))
        if not 0 < largest < math.inf:
            return None
        cuts = largest * np.geomspace(_SMALL, 1.0, num_cells)[:-1]  # growing by one factor
        cells = Reals(0.0, largest, num_cells, tuple(cuts.tolist()))
        return Difference(low, high, replace(empty, cells=cells))
    draft = Difference(low, high, replace(empty, cells=Ticks(0, 0, 1)))
    if not _fits(draft) or all(_is_exact(column) for column in (low, high)):
        return None
    smallest, largest = int(strict), _largest(draft)
    if largest <= smallest:
        return None
    return replace(draft, column=replace(empty, cells=_cells(smallest, largest, num_cells)))


def _largest(draft: Difference) -> Any:
    """The largest possible difference of values in the columns' ranges."""
    return (draft.ends_of(draft.high)[1] - draft.ends_of(draft.low)[0]).item()


def _described(low: Column, high: Column) -> dict[str, Any]:
    """The facts on a difference that make its step fit both columns."""
    nullable = low.nullable or high.nullable
    real = any(isinstance(column.cells, Reals) for column in (low, high))
    places = max(low.decimal_places or 0, high.decimal_places or 0)
    increment = None
    if low.increment is not None and high.increment is not None:
        places, increment = 0, math.gcd(low.increment, high.increment)
    return {
        "nullable": nullable,
        "decimal_places": None if real else places,
        "increment": increment,
    }


def _fits(draft: Difference) -> bool:
    """Whether the steps of both columns, and their differences, are exact."""
    columns = draft.low, draft.high
    if draft.low.unit is not None:
        moments = [
            np.array(column.cells.ends).astype(f"M8[{column.unit}]").astype("M8[s]")
            for column in columns
            if isinstance(column.cells, Ticks)
        ]
        seconds = np.concatenate(moments).astype(np.int64)
        return int(seconds.max() - seconds.min() + 1) * IN_A_SECOND.get(draft.unit, 1) < (
            LARGEST_WHOLE
        )
    ends = [
        int(end) * int(column.tick / draft.column.tick)
        for column in columns
        for end in column.cells.ends
    ]
    real = any(column.decimal_places not in (None, 0) for column in columns)
    largest = EXACT_IN_FLOAT if real else LARGEST_WHOLE
    return max(ends) - min(ends) < largest and max(map(abs, ends)) < largest


def _either(which: np.ndarray, first: tuple, second: tuple) -> tuple[np.ndarray, np.ndarray]:
    """The codes and positions of the first where ``which`` is set, else of the second."""
    code, place = (np.where(which, *both) for both in zip(first, second, strict=True))
    return code, place


def _are_shared(column: Column, codes: np.ndarray, places: np.ndarray) -> np.ndarray:
    """Marks values that many rows share, as caps and open ends: most of a code, and a peak."""
    values, cells, merging = column.at(codes, places), column.cells, column.merging
    middle = [column.at(codes, np.full(codes.shape, part)) == values for part in (0.25, 0.75)]
    if merging is None or not isinstance(cells, Ticks):
        return np.all(middle, axis=0)
    dense = np.array(merging.frequencies) / cells.widths
    usual = np.median(sliding_window_view(np.pad(dense, 4, mode="reflect"), 9), axis=1)
    return np.all([*middle, (dense > _FAR * usual)[merging.at(codes, places)[0]]], axis=0)


def _is_exact(column: Column) -> bool:
    """Whether each value of a column has a code of its own."""
    cells = column.cells
    return isinstance(cells, Ticks) and cells.last - cells.first < column.num_values


def _cells(smallest: int, largest: int, number: int) -> Ticks:
    """About ``number`` cells: one step each at first, then each wider than the one before."""
    if largest - smallest < number:
        return Ticks(smallest, largest, number)
    slow, fast = 1.0, float(largest - smallest + 1)
    for _ in range(50):
        factor = (slow + fast) / 2
        if len(_widening(smallest, largest, factor, number)) < number:
            fast = factor
        else:
            slow = factor
    return Ticks(smallest, largest, number, tuple(_widening(smallest, largest, fast, number)))


def _widening(smallest: int, largest: int, factor: float, most: int) -> list[int]:
    """The starts of all cells but the first; the distance from ``smallest`` grows by ``factor``."""
    found, step = [], 1
    while smallest + step <= largest and len(found) < most:
        found.append(smallest + step)
        step = max(step + 1, math.ceil(step * factor))
    return found


def merged(difference: Difference, frequencies: Sequence[float], num_bins: int) -> Difference:
    """The difference with at most ``num_bins`` codes, given how frequent its cells are.

    Cells before the first and after the last that hold rows get no code of their own: the noise of
    a code of very large differences would be seen in every mean.
    """
    held = np.flatnonzero(frequencies)
    first, last = int(held[0]), int(held[-1])
    inner = merged_neighbors(frequencies[first : last + 1], num_bins)
    codes = np.pad(inner.codes, (first, len(frequencies) - 1 - last), mode="edge")
    least = sum(frequencies) * HARDLY
    merging = Merging(tuple(codes.tolist()), tuple(max(each, least) for each in frequencies))
    return replace(difference, column=replace(difference.column, merging=merging))


FINE = 128
"""The number of cells of a difference whose shape is to be found."""

_FEWEST = 8
"""The smallest number of codes of a difference, however few the columns have."""

_MOST = 6
"""The largest number of differences in a table: each makes all answers a little noisier."""

_MUCH = 1.5
"""A later column decides in place of a column whose cells are at least this many times as wide."""


@dataclass(frozen=True)
class OrderedPair:
    """Two columns of a constraint, by name."""

    low: str
    high: str
    strict: bool

    @property
    def name(self) -> str:
        """The name of the difference."""
        return f"{self.high} - {self.low}"


def chosen(pairs: Iterable[OrderedPair]) -> list[OrderedPair]:
    """The pairs that get a difference: the first ones, and none that follows from others."""
    group: dict[str, str] = {}

    def first(name: str) -> str:
        while group.setdefault(name, name) != name:
            name = group[name]
        return name

    found = []
    for pair in pairs:
        low, high = first(pair.low), first(pair.high)
        if low != high and len(found) < _MOST:
            group[high] = low
            found.append(pair)
    return found


def differences_of(
    pairs: Iterable[OrderedPair],
    columns: Iterable[Column],
    *,
    num_bins: int,
    shapes: Mapping[str, Sequence[float]] | None,
) -> tuple[Difference, ...]:
    """The differences of pairs of columns, each of ``num_bins`` codes.

    ``shapes`` say how frequent each of the ``FINE`` cells of a difference is; these are merged. One
    without a shape has cells that widen. ``None`` keeps the fine cells.
    """
    by_name = {column.name: column for column in columns}
    found = []
    for pair in chosen(pairs):
        own = by_name[pair.low], by_name[pair.high]
        name = pair.name
        while name in by_name:  # a column of the user's has the name
            name += "'"
        make = lambda number, own=own, pair=pair, name=name: difference_of(
            *own, strict=pair.strict, name=name, num_cells=number
        )
        fine = make(FINE)
        if fine is None:
            continue
        shape = None if shapes is None else shapes.get(name)
        codes = max(num_bins, _FEWEST)
        if shapes is None:
            found.append(fine)
        elif shape is not None and len(shape) == len(fine.column.cells):
            found.append(merged(fine, shape, codes))
        else:
            found.append(make(codes))
    return tuple(found)


def told_apart(column: Column) -> Column:
    """The column with a place for each of its values, also for those that seem never to occur."""
    merging = column.merging
    if merging is None:
        return column
    least = max(sum(merging.frequencies), 1.0) * HARDLY
    frequencies = tuple(max(each, least) for each in merging.frequencies)
    return replace(column, merging=replace(merging, frequencies=frequencies))


def put_differences(
    differences: Sequence[Difference],
    codes: Mapping[str, np.ndarray],
    places: Mapping[str, np.ndarray],
    held: Collection[str] = (),
) -> None:
    """Computes columns in order from the others and the differences, in place.

    Columns in ``held`` stay as they are, and the others are computed from them. Where none of
    related columns is held, the lowest stays, or the next if its cells are much finer.
    """
    settled = set(held)
    while left := [d for d in differences if not {d.low.name, d.high.name} <= settled]:
        known = [d for d in left if {d.low.name, d.high.name} & settled]
        if not known:
            low, high = left[0].low, left[0].high
            widths = [np.median(left[0].widths(column)) for column in (low, high)]
            settled.add(high.name if widths[1] * _MUCH < widths[0] else low.name)
            continue
        difference = known[0]
        (name,) = {difference.low.name, difference.high.name} & settled
        (other,) = {difference.low.name, difference.high.name} - settled
        alone = sum(name in (d.low.name, d.high.name) for d in differences) == 1
        difference.put(name, codes, places, moves=alone and name not in held)
        settled.add(other)
