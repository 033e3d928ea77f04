"""Children are exchanged between parents until pairs of siblings are as they should be. Public.

The children's own values stay as they are. What is sought is whose child each one is: how children
go with what their parents have, and with each other. Two children of different parents change
places if that brings all tables nearer to their targets, in squares. Their parents have as many
children each, and the two have the same place among these.
"""

import math
from collections.abc import Mapping
from types import MappingProxyType
from typing import NamedTuple, no_type_check

import numpy as np

from sdv_privpgd.synthesize.particles.compiler import inner, mixed, njit

_NEAR = 30
"""Children change places with one of so many whose parents are most alike: so they go with what
these have. In a simulated hospital 9, 10 and 13 % of patients with ill lungs are in the heart's
wards with 10, 30 and 100, where 5 % are right, and the error of siblings is .19, .18 and .18. With
any parents for half of them it is 19 % (``tests/benchmarks linked``, epsilon 3.2)."""

_OF_PAIRS = 3.0
"""What a square error of siblings, or of next ones, counts beside one of parents and children. With
1, 3 the errors of siblings in the survey at epsilon 1 are 0.074, 0.070, and those of others are the
same."""

_FEW = 5
"""Children that may have the same as another one, on average, among which one is looked for. In a
simulated clinic 73 % of visits keep their drug at epsilon 50 if none is looked for, and 76 % so,
where 81 % are right."""

_IN_TIME = 0.1
"""What the distance in time of a child from the one before it counts beside square errors. With 0,
0.01, 0.1 and 1 the error of the time between purchases (``tests/benchmarks linked``, ``cdnow`` at
epsilon 1) is 0.105, 0.050, 0.037 and 0.029, if children are when they say."""


class Places(NamedTuple):
    """Where children are, and what is counted of them."""

    first: np.ndarray  # the place of each parent's first child, and last the number of all places
    whose: np.ndarray  # the parent of each place
    pairs: np.ndarray  # how many of each parent's children, from the first on, make pairs
    weights: np.ndarray  # what a pair of each parent's children counts as
    next_weights: np.ndarray  # what one of them and the next one count as
    order: np.ndarray  # the places in an order in which parents that are alike are near each other
    # A code of each place: children go from place to place of the same code alone.
    alike: np.ndarray
    # The same, of places whose parents are alike in what tells the most of children.
    kin: np.ndarray
    parents: np.ndarray  # what parents have: codes (parent, attribute)
    children: np.ndarray  # what children have: codes (place, attribute)
    # The groups of children's codes by which siblings are counted: (place, attribute).
    groups: np.ndarray
    # Of children in order, where in the order of all times each one is, from 0 to 1.
    times: np.ndarray
    # Where it says that the one before it is; not a number where it says nothing.
    before: np.ndarray
    starts: np.ndarray  # where each parent's start is; not a number where that is not known


class _Lacks(NamedTuple):
    """Target - count of each cell: of parents x children, of siblings and of next ones.

    Each is in the square root of what its square counts. Those of parents' attribute p and
    children's c begin at offsets[p, c], -1 where they are not known, and have widths[c] columns.
    Row k of pair_tables has the attributes of two siblings, where their table begins, and its
    columns; next_tables are of one and the next one.
    """

    values: np.ndarray
    offsets: np.ndarray
    widths: np.ndarray
    pair_tables: np.ndarray
    next_tables: np.ndarray
    units: np.ndarray  # what one child, one pair, one with the next one, and time count


def exchanged(
    places: Places,
    targets: Mapping[tuple[int, int], np.ndarray],
    siblings: Mapping[tuple[int, ...], np.ndarray],
    seed: int,
    *,
    followed: Mapping[tuple[int, ...], np.ndarray] = MappingProxyType({}),
) -> np.ndarray:
    """Which child is to be in each place.

    Args:
        places: Where children are.
        targets: The shares of parents' and children's codes, by the attributes of both.
        siblings: The shares of pairs of siblings, by their attributes; each pair counts in both
            orders.
        followed: The same of children and the next ones.
        seed: Of the exchanges.

    One is tried for each child, again and again as long as all squares fall by more than a 200th
    each time. With a 50th, a 100th and a 200th the squares of ``survey``, ``cdnow``, ``shop`` and
    ``hospital`` at epsilon 1 end 3 to 6, 2 and at most 1 % above those of 15 exchanges for each
    child. In the survey 8, 10 and 13 are tried so, and 3 among a million children of no relation.
    """
    number = len(places.whose)
    if not number or not (targets or siblings or followed):
        return np.arange(number)
    lacks = _lacks(places, targets, siblings, followed)
    # Places of one code, in order, and where each of these begins.
    order = places.order[np.argsort(places.alike[places.order], kind="stable")]
    changes = np.diff(places.alike[order]) != 0
    starts = np.flatnonzero(np.r_[True, changes])
    which = np.cumsum(np.r_[0, changes])
    starts, ends = starts[which], np.r_[starts[1:], number][which]
    found = np.arange(number)
    moving = "children", "groups", "times", "before"
    own = places._replace(**{name: getattr(places, name).copy() for name in moving})
    left, part = math.inf, 0
    for kin in (places.kin, places.alike):  # those of others where kin have too few
        likes, falls = _Likes.of(places, kin, followed or siblings), True
        while falls:
            word = np.uint64(seed * 2 + 1 + (part << 40))
            now = _exchange(found, order, starts, ends, own, lacks, likes, word)
            falls = now < 0.995 * left
            left, part = now, part + 1
    return found


def _lacks(
    places: Places,
    targets: Mapping[tuple[int, int], np.ndarray],
    siblings: Mapping[tuple[int, ...], np.ndarray],
    followed: Mapping[tuple[int, ...], np.ndarray],
) -> _Lacks:
    number = len(places.whose)
    all_pairs = float((places.weights * places.pairs * (places.pairs - 1.0)).sum())
    all_next = float((places.next_weights * np.maximum(np.diff(places.first) - 1.0, 0)).sum())
    more = math.sqrt(_OF_PAIRS)
    units = np.array(
        [1 / number, more / max(all_pairs, 1e-9), more / max(all_next, 1e-9), _IN_TIME / number]
    )
    offsets = np.full((places.parents.shape[1], places.children.shape[1]), -1, dtype=np.int64)
    values: list[np.ndarray] = [np.zeros(0)]
    start = 0
    widths = places.children.max(axis=0, initial=0) + 1
    for (p, c), table in targets.items():
        widths[c] = table.shape[1]  # as all tables of these children have
        cells = places.parents[places.whose, p] * table.shape[1] + places.children[:, c]
        counts = np.bincount(cells, minlength=table.size)
        values.append(units[0] * (table.ravel() * number - counts))
        offsets[p, c] = start
        start += table.size
    first, second = pairs_of(places.whose, int(places.pairs.max(initial=0)))
    later = np.flatnonzero(np.diff(places.whose) == 0) + 1
    listed = []
    for tables, pairs, weights, unit in (
        (siblings, [(first, second), (second, first)], places.weights, units[1]),
        (followed, [(later - 1, later)], places.next_weights, units[2]),
    ):
        rows = [np.zeros((0, 4), np.int64)]
        for (a, *others), table in tables.items():
            # A table of one attribute is of whether both have the same code of it.
            own, width = (places.groups if others else places.children)[:, a], 0
            counts = np.zeros(table.size)
            for one, other in pairs:
                cells = own[one] == own[other]
                for b in others:
                    width = table.shape[1]
                    cells = own[one] * width + places.groups[other, b]
                counts += np.bincount(cells, weights[places.whose[one]], table.size)
            values.append(unit * (table.ravel() * counts.sum() - counts))
            rows.append(np.array([[a, *(others or [a]), start, width]]))
            start += table.size
        listed.append(np.concatenate(rows))
    of_pairs, of_next = listed
    return _Lacks(
        np.concatenate(values), offsets, widths.astype(np.int64), of_pairs, of_next, units
    )


class _Likes(NamedTuple):
    """Where children are that have again what others have, as siblings or next ones often do."""

    part: float  # the part of them that have again what tells it best, more than chance would make
    codes: np.ndarray  # what each child has of that
    kin: np.ndarray  # the kin of each place
    rows: np.ndarray  # the children by kin and code
    first: np.ndarray  # where those of each kin and code begin, of shape (kin, code)

    @classmethod
    def of(
        cls, places: Places, kin: np.ndarray, tables: Mapping[tuple[int, ...], np.ndarray]
    ) -> "_Likes":
        """Those of next ones, or of any two, whose tables these are, by a code of each place."""
        number, again = len(places.whose), {}
        for (a, *others), table in tables.items():
            if not others:
                shares = np.bincount(places.children[:, a]) / number
                again[a] = table[1] - shares @ shares, places.children[:, a]
            elif a == others[0] and (a,) not in tables:
                chance = table.sum(axis=0) @ table.sum(axis=1)
                again[a] = np.trace(table) - chance, places.groups[:, a]
        many, kin = np.unique(kin, return_inverse=True)
        codes, size = np.zeros(number, dtype=np.int64), 1
        for more, own in sorted(again.values(), key=lambda each: -each[0]):
            width = int(own.max(initial=0)) + 1
            if more > 0 and size * width * len(many) * _FEW <= number:
                codes, size = codes * width + own, size * width
        cells = kin * size + codes
        first = np.searchsorted(np.sort(cells), np.arange(len(many) * size + 1))
        first = np.column_stack([first[:-1].reshape(-1, size), first[size::size]])
        part = float(max([0.0, *(more for more, _ in again.values())]))
        return cls(part, codes, kin, np.argsort(cells, kind="stable"), first)


def pairs_of(whose: np.ndarray, most: int) -> np.ndarray:
    """The places of each pair of the first ``most`` children of one parent, once: (2, pair).

    ``whose`` is the number of each child's parent. It rises.
    """
    place = np.arange(len(whose)) - np.searchsorted(whose, whose)
    parts = [np.zeros((2, 0), np.int64)]
    for apart in range(1, most):
        one = np.flatnonzero((whose[apart:] == whose[:-apart]) & (place[apart:] < most))
        parts.append(np.stack([one, one + apart]))
    return np.concatenate(parts, axis=1)


@njit()
@no_type_check
def _exchange(found, order, starts, ends, places, lacks, likes, word):
    """Tries one exchange for each child, and keeps those that help; all that is left then."""
    number, whose, is_timed = len(order), places.whose, len(places.times) > 0
    children, groups = places.children, places.groups
    place_of = np.argsort(found)
    most = 4 * (
        lacks.offsets.size
        + places.pairs.max() * len(lacks.pair_tables) * 2
        + len(lacks.next_tables) * 2
    )
    undo = _Undo(np.zeros(most, np.int64), np.zeros(most), np.zeros(1, np.int64))
    for turn in range(number):
        word = _next(word)
        at = np.int64(mixed(word) % np.uint64(number))
        word = _next(word)
        x, drawn = order[at], mixed(word)
        low, high = max(starts[at], at - _NEAR), min(ends[at], at + _NEAR)
        y = order[low + np.int64(drawn % np.uint64(high - low))]
        z = x + 2 * (turn % 2) - 1  # the one before or the next one
        is_one = 0 <= z < number and whose[z] == whose[x]
        if is_one and np.float64(mixed(drawn)) < likes.part * 2.0**64:
            kin, code = likes.kin[x], likes.codes[found[z]]
            first, end = likes.first[kin, code], likes.first[kin, code + 1]
            if end > first:
                y = place_of[likes.rows[first + np.int64(drawn % np.uint64(end - first))]]
        if whose[x] == whose[y]:
            continue
        undo.number[0] = 0
        gain = _counted(x, y, places, lacks, undo)
        for one, other in ((x, y), (y, x)):
            gain += _paired(one, other, places, lacks, undo)
        if is_timed:
            gain += _in_time(x, y, places, lacks.units[3])
        if gain > 0:
            found[x], found[y] = found[y], found[x]
            place_of[found[x]], place_of[found[y]] = x, y
            for c in range(children.shape[1]):
                children[x, c], children[y, c] = children[y, c], children[x, c]
                groups[x, c], groups[y, c] = groups[y, c], groups[x, c]
            continue
        for k in range(undo.number[0] - 1, -1, -1):
            lacks.values[undo.cells[k]] = undo.values[k]
        if is_timed:
            _in_time(x, y, places, lacks.units[3])
    left = 0.0
    for value in lacks.values:
        left += value * value
    for x in range(number if is_timed else 0):
        left += lacks.units[3] * _since(x, places)
    return left


class _Undo(NamedTuple):
    """What cells of ``_Lacks`` were before an exchange."""

    cells: np.ndarray
    values: np.ndarray
    number: np.ndarray  # of one entry: how many there are


@inner(inline="always")
@no_type_check
def _changed(cell, change, lacks, undo):
    """Adds to a cell; by how much its square falls."""
    value, k = lacks.values[cell], undo.number[0]
    undo.cells[k], undo.values[k], undo.number[0] = cell, value, k + 1
    lacks.values[cell] = value + change
    return -change * (2 * value + change)


@inner()
@no_type_check
def _counted(x, y, places, lacks, undo):
    """Exchanges two children in the counts of parents and children; by how much squares fall."""
    gain, unit = 0.0, lacks.units[0]
    parents, children, offsets, widths = (
        places.parents, places.children, lacks.offsets, lacks.widths
    )  # fmt: skip
    f, g = places.whose[x], places.whose[y]
    for c in range(children.shape[1]):
        own, other = children[x, c], children[y, c]
        if own == other:
            continue
        for p in range(parents.shape[1]):
            here, there = parents[f, p], parents[g, p]
            if here == there or offsets[p, c] < 0:
                continue
            row, second = offsets[p, c] + here * widths[c], offsets[p, c] + there * widths[c]
            for cell, change in (
                (row + own, unit), (row + other, -unit), (second + other, unit),
                (second + own, -unit),
            ):  # fmt: skip
                gain += _changed(cell, change, lacks, undo)
    return gain


@inner()
@no_type_check
def _paired(x, y, places, lacks, undo):
    """Puts another child in a place in the counts of pairs; by how much squares fall."""
    f, gain = places.whose[x], 0.0
    first, end = places.first[f], places.first[f + 1]
    if x - first < places.pairs[f]:
        change = lacks.units[1] * places.weights[f]
        for z in range(first, first + places.pairs[f]):
            if z != x:
                for is_first in (True, False):
                    gain += _of_pair(
                        x, y, z, is_first, lacks.pair_tables, change, places, lacks, undo
                    )
    change = lacks.units[2] * places.next_weights[f]
    for z in (x - 1, x + 1):
        if first <= z < end:
            gain += _of_pair(x, y, z, z > x, lacks.next_tables, change, places, lacks, undo)
    return gain


@inner()
@no_type_check
def _of_pair(x, y, z, is_first, tables, change, places, lacks, undo):
    """The same of one pair, of which the other child is in z."""
    groups, children, gain = places.groups, places.children, 0.0
    for t in range(len(tables)):
        a, b, start, width = tables[t]
        if not width:
            old = start + np.int64(children[x, a] == children[z, a])
            new = start + np.int64(children[y, a] == children[z, a])
        elif is_first:
            old = start + groups[x, a] * width + groups[z, b]
            new = start + groups[y, a] * width + groups[z, b]
        else:
            old = start + groups[z, a] * width + groups[x, b]
            new = start + groups[z, a] * width + groups[y, b]
        if old != new:
            gain += _changed(old, change, lacks, undo)
            gain += _changed(new, -change, lacks, undo)
    return gain


@inner()
@no_type_check
def _in_time(x, y, places, unit):
    """Exchanges when two children are; by how much nearer they are to those before them."""
    times, before = places.times, places.before
    gain = _apart(x, places) + _apart(y, places)
    times[x], times[y] = times[y], times[x]
    before[x], before[y] = before[y], before[x]
    return unit * (gain - _apart(x, places) - _apart(y, places))


@inner()
@no_type_check
def _apart(x, places):
    """How far a child is from the one before it and from the one after it, as they say."""
    is_last = x + 1 == places.first[places.whose[x] + 1]
    return _since(x, places) + (0.0 if is_last else _since(x + 1, places))


@inner()
@no_type_check
def _since(x, places):
    """How far a child is from where it says that the one before it is; 0 if that is not known."""
    f = places.whose[x]
    earlier = places.starts[f] if x == places.first[f] else places.times[x - 1]
    apart = abs(earlier - places.before[x])
    return apart if apart == apart else 0.0


@inner(inline="always")
@no_type_check
def _next(word):
    return word + np.uint64(0x9E3779B97F4A7C15)
