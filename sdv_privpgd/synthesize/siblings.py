"""Children are exchanged between parents until pairs of siblings are as they should be. Public.

The children's own values stay as they are. What is sought is whose child each one is: how children
go with what their parents have, and with each other. Two children of different parents change
places if that brings all tables nearer to their targets, in squares. Their parents have as many
children each, and the two have the same place among these.
"""

import math
from collections.abc import Mapping, Sequence
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
    """Target - count of each cell: of parents x children, and of siblings; all tables flat.

    Those of parents' attribute p and children's c begin at offsets[p, c], -1 where they are not
    known, and have widths[c] columns; row k of pair_tables has the attributes of two siblings,
    where their table begins, and its columns; next_tables are of one and the next one.
    """

    values: np.ndarray
    offsets: np.ndarray
    widths: np.ndarray
    pair_values: np.ndarray
    pair_tables: np.ndarray
    next_values: np.ndarray
    next_tables: np.ndarray


def exchanged(
    places: Places,
    targets: Mapping[tuple[int, int], np.ndarray],
    siblings: Mapping[tuple[int, ...], np.ndarray],
    seed: int,
    *,
    followed: Mapping[tuple[int, ...], np.ndarray] = MappingProxyType({}),
    tries: int = 10,
) -> np.ndarray:
    """Which child is to be in each place.

    Args:
        places: Where children are.
        targets: The shares of parents' and children's codes, by the attributes of both.
        siblings: The shares of pairs of siblings, by their attributes; each pair counts in both
            orders.
        followed: The same of children and the next ones.
        seed: Of the exchanges.
        tries: How many are tried for each child, half of them at a time. There are more as long as
            squares fall by a tenth each time. On the survey at epsilon 1 the error of siblings is
            0.059 with one, 0.050 with 10, in 3 seconds, and 0.050 with 60. Where siblings are much
            alike, more help: the couples of ``test_siblings`` have half the error.
    """
    number = len(places.whose)
    if not number or not (targets or siblings or followed):
        return np.arange(number)
    lacks = _lacks(places, targets, siblings, followed)
    # Places of one code, in order, and where each of these begins.
    order = places.order[np.argsort(places.alike[places.order], kind="stable")]
    changes = np.diff(places.alike[order]) != 0
    starts = np.flatnonzero(np.r_[True, changes])
    ends, which = np.r_[starts[1:], number], np.cumsum(np.r_[0, changes])
    found = np.arange(number)
    whole = float((places.weights * places.pairs * (places.pairs - 1.0)).sum())
    moving = "children", "groups", "times", "before"
    own = places._replace(**{name: getattr(places, name).copy() for name in moving})
    next_ones = (places.next_weights * np.maximum(np.diff(places.first) - 1.0, 0)).sum()
    scales = (
        1.0 / number**2, _OF_PAIRS / max(whole, 1e-9) ** 2, _IN_TIME / number,
        _OF_PAIRS / max(next_ones, 1e-9) ** 2,
    )  # fmt: skip
    tables, of_each = (lacks.values, lacks.pair_values, lacks.next_values), (*scales[:2], scales[3])
    left, part = math.inf, 0
    for kin in (places.kin, places.alike):  # those of others where kin have too few
        likes, falls = _Likes.of(places, kin, followed or siblings), True
        while falls:
            _exchange(
                found, order, starts[which], ends[which], own, lacks, likes, scales,
                -(-number * tries // 2), np.uint64(seed * 2 + 1 + (part << 40)),
            )  # fmt: skip
            before, part = left, part + 1
            squares = (scale * float(e @ e) for scale, e in zip(of_each, tables, strict=True))
            left = sum(squares)
            falls = left < 0.9 * before
    return found


def _lacks(
    places: Places,
    targets: Mapping[tuple[int, int], np.ndarray],
    siblings: Mapping[tuple[int, ...], np.ndarray],
    followed: Mapping[tuple[int, ...], np.ndarray],
) -> _Lacks:
    number = len(places.whose)
    offsets = np.full((places.parents.shape[1], places.children.shape[1]), -1, dtype=np.int64)
    values: list[np.ndarray] = [np.zeros(0)]
    start = 0
    widths = places.children.max(axis=0, initial=0) + 1
    for (p, c), table in targets.items():
        widths[c] = table.shape[1]  # as all tables of these children have
        cells = places.parents[places.whose, p] * table.shape[1] + places.children[:, c]
        counts = np.bincount(cells, minlength=table.size)
        values.append(table.ravel() * number - counts)
        offsets[p, c] = start
        start += table.size
    first, second = pairs_of(places.whose, int(places.pairs.max(initial=0)))
    later = np.flatnonzero(np.diff(places.whose) == 0) + 1
    return _Lacks(
        np.concatenate(values),
        offsets,
        widths.astype(np.int64),
        *_of_pairs(places, siblings, [(first, second), (second, first)], places.weights),
        *_of_pairs(places, followed, [(later - 1, later)], places.next_weights),
    )


def _of_pairs(
    places: Places,
    tables: Mapping[tuple[int, ...], np.ndarray],
    pairs: Sequence[tuple[np.ndarray, np.ndarray]],
    weights: np.ndarray,
) -> tuple[np.ndarray, np.ndarray]:
    """What tables of pairs lack, and their attributes, beginnings and columns.

    A table of one attribute is of whether both have the same code of it, and has no columns.
    The ``weights`` are those of a pair of each parent's children.
    """
    values, listed, start = [np.zeros(0)], [np.zeros((0, 4), np.int64)], 0
    for (a, *others), table in tables.items():
        own = (places.groups if others else places.children)[:, a]
        counts, width = np.zeros(table.size), table.shape[1] if others else 0
        for one, other in pairs:
            cells = own[one] == own[other]
            for b in others:
                cells = own[one] * width + places.groups[other, b]
            counts += np.bincount(cells, weights[places.whose[one]], table.size)
        values.append(table.ravel() * counts.sum() - counts)
        listed.append(np.array([[a, *(others or [a]), start, width]]))
        start += table.size
    return np.concatenate(values), np.concatenate(listed)


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
def _exchange(found, order, starts, ends, places, lacks, likes, scales, tries, word):
    """Tries exchanges of the children in two places, and keeps those that help."""
    number, whose = len(order), places.whose
    place_of = np.argsort(found)
    for turn in range(tries):
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
        if _moved(x, y, places, lacks, scales) > 0:
            found[x], found[y] = found[y], found[x]
            place_of[found[x]], place_of[found[y]] = x, y
        else:
            _moved(x, y, places, lacks, scales)


@inner()
@no_type_check
def _moved(x, y, places, lacks, scales):
    """Exchanges two children, and returns by how much all squares fall."""
    gain = 0.0
    values, offsets, widths = lacks.values, lacks.offsets, lacks.widths
    parents, children, groups = places.parents, places.children, places.groups
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
                (row + own, 1.0), (row + other, -1.0), (second + other, 1.0), (second + own, -1.0)
            ):  # fmt: skip
                gain -= scales[0] * change * (2 * values[cell] + change)
                values[cell] += change
    for sign in (1.0, -1.0):  # out of the counts, exchanged, and in again
        for z, h in ((x, f), (y, g)):
            gain += _paired(z, sign, h, places, lacks, scales[1])
        for z, h in ((x, f), (y, g)):
            gain += _in_row(z, sign, h, places, lacks, scales[3])
        for c in range(children.shape[1] if sign > 0 else 0):
            children[x, c], children[y, c] = children[y, c], children[x, c]
            groups[x, c], groups[y, c] = groups[y, c], groups[x, c]
    times, before = places.times, places.before
    if len(times):
        gain += scales[2] * (_apart(x, places) + _apart(y, places))
        times[x], times[y] = times[y], times[x]
        before[x], before[y] = before[y], before[x]
        gain -= scales[2] * (_apart(x, places) + _apart(y, places))
    return gain


@inner()
@no_type_check
def _apart(x, places):
    """How far a child is from the one before it and from the one after it, as they say."""
    f, times, before = places.whose[x], places.times, places.before
    earlier = places.starts[f] if x == places.first[f] else times[x - 1]
    apart = abs(earlier - before[x])
    found = apart if apart == apart else 0.0
    if x + 1 < places.first[f + 1]:
        apart = abs(times[x] - before[x + 1])
        found += apart if apart == apart else 0.0
    return found


@inner()
@no_type_check
def _paired(x, sign, f, places, lacks, scale):
    """Takes a child's pairs out of the counts, or puts them in; by how much squares fall."""
    first, groups, children, gain = places.first[f], places.groups, places.children, 0.0
    values, tables, change = lacks.pair_values, lacks.pair_tables, sign * places.weights[f]
    if x - first >= places.pairs[f]:
        return gain
    for z in range(first, first + places.pairs[f]):
        if z == x:
            continue
        for t in range(len(tables)):
            a, b, start, width = tables[t]
            for one, other in ((x, z), (z, x)):
                cell = start + groups[one, a] * width + groups[other, b]
                if not width:
                    cell = start + np.int64(children[one, a] == children[other, a])
                gain -= scale * change * (2 * values[cell] + change)
                values[cell] += change
    return gain


@inner()
@no_type_check
def _in_row(x, sign, f, places, lacks, scale):
    """The same of a child's pairs with the one before it and with the next one."""
    groups, children, gain = places.groups, places.children, 0.0
    values, tables, change = lacks.next_values, lacks.next_tables, sign * places.next_weights[f]
    for later in (x, x + 1):
        if later == places.first[f] or later == places.first[f + 1]:
            continue
        for t in range(len(tables)):
            a, b, start, width = tables[t]
            cell = start + groups[later - 1, a] * width + groups[later, b]
            if not width:
                cell = start + np.int64(children[later - 1, a] == children[later, a])
            gain -= scale * change * (2 * values[cell] + change)
            values[cell] += change
    return gain


@inner(inline="always")
@no_type_check
def _next(word):
    return word + np.uint64(0x9E3779B97F4A7C15)
