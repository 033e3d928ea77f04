"""Rules that single rows obey, in codes: which cells can hold rows that do. Public.

A rule is declared, never learned. What it forbids occurs in no table that obeys it, so noisy tables
may be corrected by it (``possible``), and rows of a model can be repaired.
"""

import math
from bisect import bisect_left
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import chain, combinations
from typing import Any, Protocol

import numpy as np
import pandas as pd

from sdv_privpgd.base.domain import Clique, Domain
from sdv_privpgd.columns.bins import BELOW_ONE, Categories, Reals
from sdv_privpgd.columns.column import EXACT_IN_FLOAT, Column
from sdv_privpgd.columns.date_formats import survive_writing
from sdv_privpgd.columns.differences import Difference
from sdv_privpgd.columns.scalars import LARGEST_WHOLE
from sdv_privpgd.columns.units import UNITS
from sdv_privpgd.columns.visits import Visits

Span = tuple[Any, Any]
"""The first and the last value of a range, as a column's cells hold values."""


class Rule(Protocol):
    """A condition on single rows. Arrays have one entry a row, for each column; they broadcast."""

    @property
    def names(self) -> Clique:
        """The columns that the rule is about."""
        ...

    def allows(self, codes: Mapping[str, np.ndarray]) -> np.ndarray:
        """Marks the rows whose cells can hold values that obey, bool."""
        ...

    def possible(self) -> dict[Clique, np.ndarray]:
        """Marks the cells that can hold rows that obey, for some cliques, bool."""
        ...


@dataclass(frozen=True, eq=False)
class Combinations:
    """Some columns together have one of the listed combinations of codes, shape (entry, column).

    Where columns are ``tied`` in pairs, a table of all of them says no more.
    """

    names: Clique
    sizes: tuple[int, ...]
    codes: np.ndarray
    tied: bool = False

    def allows(self, codes: Mapping[str, np.ndarray]) -> np.ndarray:
        rows = pd.MultiIndex.from_arrays([codes[name] for name in self.names])
        return rows.isin(pd.MultiIndex.from_arrays(list(self.codes.T)))

    def possible(self) -> dict[Clique, np.ndarray]:
        """The listed cells of each pair, and of all columns together if they say more."""
        # A table of several columns with more cells than this is represented by its pairs.
        largest = 1 << 22
        axes: list[Iterable[int]] = list(combinations(range(len(self.names)), 2))
        if not self.tied and np.prod(self.sizes, dtype=float) <= largest and len(self.names) != 2:
            axes.append(range(len(self.names)))
        found = {}
        for clique in map(list, axes):
            allowed = np.zeros([self.sizes[axis] for axis in clique], dtype=bool)
            allowed[tuple(self.codes[:, clique].T)] = True
            found[tuple(self.names[axis] for axis in clique)] = allowed
        return found


def possible_of(rules: Sequence[Rule | Difference], domain: Domain) -> dict[Clique, np.ndarray]:
    """Marks the cells of some cliques, in the domain's order, that can hold rows that obey."""
    found: dict[Clique, np.ndarray] = {}
    for rule in rules:
        for names, allowed in rule.possible().items():
            order = sorted(range(len(names)), key=lambda axis: domain.axes([names[axis]]))
            clique = tuple(names[axis] for axis in order)
            own = allowed.transpose(order)
            found[clique] = own & found[clique] if clique in found else own
    return found


def groups(rules: Sequence[Rule]) -> list[list[Rule]]:
    """Groups of rules that share columns, directly or through other rules."""
    found: list[list[Rule]] = []
    for rule in rules:
        joined = [each for each in found if any(set(rule.names) & set(o.names) for o in each)]
        found = [each for each in found if each not in joined]
        found.append([*chain.from_iterable(joined), rule])
    return found


def visit_rules(visits: Visits, columns: Sequence[Column]) -> tuple[Rule, ...]:
    """The rules that the added columns obey, as far as the columns are there.

    A first row has no row before it, and a person of one row has no other than a first one.
    """
    known = {column.name: column for column in columns}
    if visits.since not in known:
        return ()
    since, number = known[visits.since], known[visits.number]
    rules: list[Rule] = []
    for name in visits.previous:
        if visits.before(name) in known:
            before = known[visits.before(name)]
            allowed = np.ones((since.size, before.size), dtype=bool)
            allowed[-1, :-1] = False
            rules.append(_rule(since, before, allowed))
    allowed = np.ones((since.size, number.size), dtype=bool)
    allowed[:-1, 0] = False
    return (*rules, _rule(since, number, allowed))


def count_rule(number: Column, count: Column) -> Rule:
    """That a count is the number of children, or no less where that is the largest one."""
    (least,) = Order(number, count, strict=False).possible().values()
    (most,) = Order(count, number, strict=False).possible().values()
    is_full = np.arange(number.size) == number.num_values - 1
    return _rule(number, count, least & (most.T | is_full[:, None]))


def _rule(one: Column, other: Column, allowed: np.ndarray) -> Rule:
    return Combinations((one.name, other.name), allowed.shape, np.argwhere(allowed))


@dataclass(frozen=True)
class Order:
    """A row's ``low`` is at most its ``high``, or below it if ``strict``, or one is missing.

    Both are numerical columns or both are dates. Dates of different units are compared strictly in
    the coarser unit, as SDV compares them.
    """

    low: Column
    high: Column
    strict: bool

    @property
    def names(self) -> Clique:
        """The names of the two columns."""
        return (self.low.name, self.high.name)

    def allows(self, codes: Mapping[str, np.ndarray]) -> np.ndarray:
        """Marks the rows whose cells can hold values in order, bool."""
        lowest = self.values(self.low, codes[self.low.name], 0.0)
        highest = self.values(self.high, codes[self.high.name], BELOW_ONE)
        return self._missing(codes) | self._in_order(lowest, highest)

    def holds(
        self, codes: Mapping[str, np.ndarray], places: Mapping[str, np.ndarray]
    ) -> np.ndarray:
        """Marks the rows that are in order with their values at these places of cells, bool."""
        low, high = (
            self.values(column, codes[column.name], places[column.name])
            for column in (self.low, self.high)
        )
        return self._missing(codes) | self._in_order(low, high)

    def possible(self) -> dict[Clique, np.ndarray]:
        """The cells of the pair that can hold rows."""
        low, high = (np.arange(column.size) for column in (self.low, self.high))
        return {
            self.names: self.allows({self.low.name: low[:, None], self.high.name: high[None, :]})
        }

    @property
    def has_room(self) -> bool:
        """Whether some values of the two columns are in order."""
        (cells,) = self.possible().values()
        return bool(cells[: self.low.num_values, : self.high.num_values].any())

    def values(
        self, column: Column, codes: np.ndarray, positions: np.ndarray | float
    ) -> np.ndarray:
        """The values that rows are compared by, int64 or float64; arbitrary where missing."""
        codes = np.minimum(codes, column.num_values - 1)
        return self._compared(column, column.at(codes, np.broadcast_to(positions, codes.shape)))

    def _compared(self, column: Column, values: np.ndarray) -> np.ndarray:
        """The form in which values of cells are compared."""
        if column.unit is not None:
            moments = values.astype(np.int64).astype(f"M8[{column.unit}]")
            return moments.astype(f"M8[{self._unit}]").astype(np.int64)
        numbers = column.numbers(values)
        whole = self.low.decimal_places == 0 == self.high.decimal_places
        return numbers if whole else numbers.astype(np.float64)

    def bound(self, values: np.ndarray, upwards: bool) -> np.ndarray:
        """The nearest values that may lie above, or below, the given ones."""
        if not self.strict:
            return values
        if values.dtype.kind == "f":
            return np.nextafter(values, np.inf if upwards else -np.inf)
        return values + (1 if upwards else -1)

    def narrowed(self, low: Span, high: Span) -> tuple[Span, Span]:
        """What is left of ranges of the two columns' values: what some value of the other allows.

        Where that is nothing, the first value is above the last.
        """
        least = self._compared(self.low, np.array(low[:1]))
        most = self._compared(self.high, np.array(high[1:]))

        def from_on(column: Column, own: Span, is_met: Callable[[np.ndarray], np.ndarray]) -> int:
            """The first whole number of a range from which on it is met."""
            met = lambda value: bool(is_met(self._compared(column, np.array([value])))[0])
            return own[0] + bisect_left(range(own[0], own[1] + 1), True, key=met)

        if isinstance(self.high.cells, Reals):
            first = max(high[0], self.bound(least, True)[0])
        else:
            first = from_on(self.high, high, lambda values: self._in_order(least, values))
        if isinstance(self.low.cells, Reals):
            last = min(low[1], self.bound(most, False)[0])
        else:
            last = from_on(self.low, low, lambda values: ~self._in_order(values, most)) - 1
        return (low[0], last), (first, high[1])

    def widened(self, name: str) -> Column:
        """The column ``name``, with an end cell widened until all values of the other have room.

        The column is returned unchanged if it cannot hold the new end, or if its
        ``datetime_format`` cannot write it.
        """
        # The number of places of a cell that can be told apart reliably: a widened cell ends this
        # part of its width further out.
        steps = 2**50
        upwards = name == self.high.name
        column, other = (self.high, self.low) if upwards else (self.low, self.high)
        code, place = (other.num_values - 1, BELOW_ONE) if upwards else (0, 0.0)
        end = self.bound(self.values(other, np.array([code]), place), upwards)
        cells, merging = column.cells, column.merging
        assert not isinstance(cells, Categories)
        if isinstance(cells, Reals):
            bound = float(end[0])
            if upwards:
                bound += (bound - float(cells.edges[len(cells) - 1])) / steps
            cells = replace(cells, **{"high" if upwards else "low": bound})
        else:
            tick = self._tick(column, end, upwards)
            if upwards:
                tick += (tick - int(cells.starts[-1])) // steps
            if not _holds(column, tick):
                return column
            cells = replace(cells, **{"last" if upwards else "first": tick})
        if merging is not None:  # a cell that never occurs has no place in a shared code
            merging = merging.split(len(cells) - 1 if upwards else 1)
        return replace(column, cells=cells, merging=merging)

    def _tick(self, column: Column, end: np.ndarray, upwards: bool) -> int:
        """The tick of a column at a value that rows are compared by, rounded up or down."""
        if column.unit is None:
            steps = Fraction(end[0].item()) / column.tick
            return math.ceil(steps) if upwards else math.floor(steps)
        ticks = end.astype(f"M8[{self._unit}]").astype(f"M8[{column.unit}]").astype(np.int64)
        return int(ticks[0]) + bool(upwards and self._compared(column, ticks)[0] < end[0])

    @property
    def _unit(self) -> str:
        units = [unit for unit in (self.low.unit, self.high.unit) if unit is not None]
        return max(units, key=UNITS.index) if self.strict else "ns"

    def _in_order(self, low: np.ndarray, high: np.ndarray) -> np.ndarray:
        return low < high if self.strict else low <= high

    def _missing(self, codes: Mapping[str, np.ndarray]) -> np.ndarray:
        low, high = (codes[column.name] >= column.num_values for column in (self.low, self.high))
        return low | high


def _holds(column: Column, tick: int) -> bool:
    """Whether a column of ticks can hold this tick, and write it if it writes dates."""
    if column.unit is None:
        largest = LARGEST_WHOLE if column.decimal_places == 0 else EXACT_IN_FLOAT
        return abs(tick) * (column.increment or 1) < largest
    if column.datetime_format is None:
        return True
    return survive_writing(np.array([tick]), column.unit, column.datetime_format)


def settle(
    orders: Sequence[Order],
    codes: Mapping[str, np.ndarray],
    places: dict[str, np.ndarray],
    generator: np.random.Generator,
    held: Collection[str] = (),
) -> None:
    """Moves values inside their cells, in place, until rows are in order as far as cells allow it.

    Only values of rows in the wrong order move. First, values move that leave the other column no
    room in its cell. Then one of the two, chosen at random, moves evenly to where its cell and the
    other value leave it room. Columns in ``held`` stay as they are.
    """
    # The largest number of moves of each column of rows in the wrong order; one order needs one.
    sweeps = 4
    columns = {column.name: column for order in orders for column in (order.low, order.high)}
    for _ in range(sweeps):
        wrong = np.flatnonzero(~np.all([order.holds(codes, places) for order in orders], axis=0))
        if not wrong.size:
            return
        free = [name for name in columns if name not in held]
        for name in free:
            _move(columns[name], orders, codes, places, wrong, generator, fixed=held)
        first = generator.random(wrong.size) < 0.5
        for rows, names in ((wrong[first], free), (wrong[~first], free[::-1])):
            for name in names:
                _move(columns[name], orders, codes, places, rows, generator, fixed=columns)


def _move(
    column: Column,
    orders: Sequence[Order],
    codes: Mapping[str, np.ndarray],
    places: dict[str, np.ndarray],
    rows: np.ndarray,
    generator: np.random.Generator,
    *,
    fixed: Collection[str],
) -> None:
    """Moves a column's values in those rows where they are in the wrong order with another column.

    They go where the values of the fixed columns, and the cells of the others, leave them room;
    values that already lie there stay.
    """
    orders = [order for order in orders if column.name in order.names]
    here = {name: codes[name][rows] for order in orders for name in order.names}
    now = {name: places[name][rows] for name in here}
    wrong = ~np.all([order.holds(here, now) for order in orders], axis=0)
    wrong &= here[column.name] < column.num_values
    if not wrong.any():
        return
    here, now = ({name: each[wrong] for name, each in of.items()} for of in (here, now))
    own = here[column.name]
    least, most = np.zeros(own.size), np.full(own.size, BELOW_ONE)
    for order in orders:
        is_high = order.high.name == column.name
        other = order.low if is_high else order.high
        place = now[other.name] if other.name in fixed else 0.0 if is_high else BELOW_ONE
        limit = order.bound(order.values(other, here[other.name], place), is_high)
        free = here[other.name] >= other.num_values
        at = lambda positions, order=order: order.values(column, own, positions)
        if is_high:
            edge = _first(lambda p, at=at, limit=limit: at(p) >= limit, own.size)
            least = np.where(free, least, np.maximum(least, edge))
        else:
            edge = _first(lambda p, at=at, limit=limit: at(p) > limit, own.size)
            most = np.where(free, most, np.minimum(most, np.nextafter(edge, -1.0)))
    drawn = least + generator.random(own.size) * (most - least)
    was = now[column.name]
    moves = (least <= most) & ((was < least) | (was > most))
    places[column.name][rows[wrong][moves]] = np.clip(drawn, least, most)[moves]


def _first(condition: Callable[[np.ndarray], np.ndarray], count: int) -> np.ndarray:
    """The smallest positions at which a monotone condition is true; 1 where it never is."""
    # Halvings of the positions: down to the smallest difference that float64 has below 1.
    halvings = 54
    low, high = np.zeros(count), np.ones(count)
    at_start = condition(low)
    for _ in range(halvings):
        middle = (low + high) / 2
        true = condition(np.minimum(middle, BELOW_ONE))
        low, high = np.where(true, low, middle), np.where(true, middle, high)
    return np.where(at_start, 0.0, np.where(condition(np.full(count, BELOW_ONE)), high, 1.0))
