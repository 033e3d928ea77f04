"""Which columns in order have a difference, and rows made of it and one of the columns. Public."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from sdv_privpgd.columns.bins import Interval, Ticks
from sdv_privpgd.columns.column import Column
from sdv_privpgd.columns.differences import Difference, difference_of, merged

FINE = 128
"""Cells of a difference whose shape is looked for."""

_FEWEST = 8
"""Codes of a difference, however few the columns have."""

_MOST = 6
"""Differences of a table: each makes all answers a little noisier. Other orders have none."""

_HARDLY = 1e-9
"""How frequent, as a part of all rows, a cell is at least that a sum may fall in."""

_MUCH = 1.5
"""So many times as wide must the cells of a column be, for a later one to decide in its place."""

_SECONDS = {
    "ns": 1e-9, "us": 1e-6, "s": 1.0, "m": 60.0, "h": 3_600.0, "D": 86_400.0, "M": 2.63e6,
    "Y": 3.156e7,
}  # fmt: skip
"""Of NumPy's units of time."""


@dataclass(frozen=True)
class OrderedPair:
    """Two columns of a constraint, by name."""

    low: str
    high: str
    strict: bool

    @property
    def name(self) -> str:
        """What the difference is called."""
        return f"{self.high} - {self.low}"


def chosen(pairs: Iterable[OrderedPair]) -> list[OrderedPair]:
    """The pairs that get a difference: the first ones, none that follows from others."""
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
    """The differences of pairs of columns.

    With ``shapes``, how frequent each of ``FINE`` cells is, these are merged; without, for a pair
    whose shape is not known, cells widen. Without any (None), the fine ones are given.
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
    """The column, each of whose values has a place: also those that seem never to occur."""
    merging = column.merging
    if merging is None:
        return column
    least = max(sum(merging.frequencies), 1.0) * _HARDLY
    frequencies = tuple(max(each, least) for each in merging.frequencies)
    return replace(column, merging=replace(merging, frequencies=frequencies))


def put_differences(
    differences: Sequence[Difference],
    codes: Mapping[str, np.ndarray],
    places: Mapping[str, np.ndarray],
    held: Collection[str] = (),
) -> None:
    """Makes columns in order the others and the differences, in place.

    Columns in ``held`` stay as they are and decide. Of columns that belong together and of which
    none is held, the lowest does, or the one with the finest cells if they are much finer.
    """
    settled = set(held)
    while left := [d for d in differences if not {d.low.name, d.high.name} <= settled]:
        known = [d for d in left if {d.low.name, d.high.name} & settled]
        if not known:
            root = _finest(left[0], left)
            settled.add(root)
            continue
        difference = known[0]
        (name,) = {difference.low.name, difference.high.name} & settled
        (other,) = {difference.low.name, difference.high.name} - settled
        alone = sum(name in (d.low.name, d.high.name) for d in differences) == 1
        difference.put(name, codes, places, moves=alone and name not in held)
        settled.add(other)


def _finest(difference: Difference, differences: Sequence[Difference]) -> str:
    """Of the columns that belong to a difference's the one with the finest cells."""
    together = {difference.low.name: difference.low, difference.high.name: difference.high}
    for _ in differences:
        for each in differences:
            if {each.low.name, each.high.name} & together.keys():
                together |= {each.low.name: each.low, each.high.name: each.high}
    widths = {name: _mean_width(column) for name, column in together.items()}
    finest = min(widths, key=lambda name: widths[name])
    first = difference.low.name
    return finest if widths[finest] * _MUCH < widths[first] else first


def _mean_width(column: Column) -> float:
    """How wide the code of a value is on average, in seconds or as a number."""
    cells, merging = column.cells, column.merging
    if isinstance(cells, Interval):
        widths = np.diff(cells.edges)
    else:
        assert isinstance(cells, Ticks)
        tick = float(column.tick) if column.unit is None else _SECONDS[column.unit]
        widths = cells.widths * tick
    if merging is None:
        return float(widths.mean())
    of_codes = np.bincount(merging.codes, weights=widths)
    masses = np.bincount(merging.codes, weights=merging.frequencies)
    return float(np.average(of_codes, weights=masses if masses.sum() > 0 else None))
