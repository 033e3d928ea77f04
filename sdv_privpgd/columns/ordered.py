"""The differences of columns in order, and rows computed from a difference. Public."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from sdv_privpgd.columns.column import Column
from sdv_privpgd.columns.differences import Difference, difference_of, merged
from sdv_privpgd.columns.merging import HARDLY

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
    """The differences of pairs of columns.

    Args:
        pairs: The pairs in order.
        columns: All columns.
        num_bins: The number of codes of a difference.
        shapes: How frequent each of the ``FINE`` cells of a difference is; these cells are merged.
            A difference without a shape has cells that widen. ``None`` keeps the fine cells.
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
            root = _finest(left[0])
            settled.add(root)
            continue
        difference = known[0]
        (name,) = {difference.low.name, difference.high.name} & settled
        (other,) = {difference.low.name, difference.high.name} - settled
        alone = sum(name in (d.low.name, d.high.name) for d in differences) == 1
        difference.put(name, codes, places, moves=alone and name not in held)
        settled.add(other)


def _finest(difference: Difference) -> str:
    """The low column of a difference, or the high one if its cells are much finer."""
    low, high = difference.low, difference.high
    widths = [np.median(difference.widths(column)) for column in (low, high)]
    return high.name if widths[1] * _MUCH < widths[0] else low.name
