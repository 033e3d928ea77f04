"""The residuals of all cells, kept up to date while particles change their codes one by one."""

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple, no_type_check

import numpy as np

from sdv_privpgd.base.domain import Clique, Domain
from sdv_privpgd.estimate.interactions import GroupedTargets
from sdv_privpgd.synthesize.particles.compiler import Threads, inner, njit, num_threads
from sdv_privpgd.synthesize.particles.layouts import Levels, Table, tables_of

_STRETCHES = 50
"""Parts of a sweep. Progress is told after each; a part is at least a block."""

_ROW = 8
"""The cost of finding a particle's row of a view, in residuals read."""

_PARALLEL_FROM = 1e9
"""Threads are used from so many residuals a sweep on, about half a second's work. They wait for
each other after each block, so on a busy machine they are slower than one thread at less work."""


class Residuals(NamedTuple):
    """weight * (target * particles - counts) of all tables, once for each of their attributes.

    ``codes``, ``maps`` and ``widths`` are those of ``Levels``.

    View t is a table of one level that serves one attribute. The attribute is its last axis, so
    that its codes are neighbors in memory. They begin, for a particle, at offsets[t] + the sum of
    strides[t] * codes over the other attributes, whose ``axes`` are rows of ``codes``; strides of
    0 fill up where there are fewer than elsewhere. The attribute itself has the row ``own_axes``.
    Views are ordered by attribute and level. The views of one table are siblings. All that is
    added to a place in memory is unsigned: a signed index would be checked for its sign.
    """

    codes: np.ndarray
    maps: np.ndarray
    widths: np.ndarray
    values: np.ndarray
    first_view: np.ndarray
    offsets: np.ndarray
    weights: np.ndarray
    levels: np.ndarray
    axes: np.ndarray
    strides: np.ndarray
    own_axes: np.ndarray
    first_sibling: np.ndarray
    siblings: np.ndarray
    own_strides: np.ndarray

    @classmethod
    def of(
        cls,
        codes: np.ndarray,
        domain: Domain,
        targets: Mapping[Clique, np.ndarray],
        supports: Sequence[np.ndarray],
        grouped: GroupedTargets | None = None,
    ) -> "Residuals":
        """The residuals of compact codes of shape (attribute, particle).

        ``grouped`` are targets over groups of the codes.
        """
        levels = Levels.of(domain, supports, grouped or {})
        codes, num_levels = levels.codes(codes), len(levels.maps)
        tables = tables_of(domain, targets, supports, grouped or {})
        lacks = [table.weight * _lacks(table, codes, len(domain)) for table in tables]
        views = [
            (axis, number)
            for axis in range(len(domain))
            for number, table in enumerate(tables)
            if axis in table.axes
        ]
        values, offsets, terms, strides, start = [], [], [], [], 0
        views_of: dict[int, list[int]] = {}
        for axis, number in views:
            views_of.setdefault(number, []).append(len(terms))
            axes = tables[number].axes
            last = axes.index(axis)
            order = [*(place for place in range(len(axes)) if place != last), last]
            own = lacks[number].transpose(order)
            values.append(own.ravel())
            offsets.append(start)
            terms.append([tables[number].rows(len(domain))[place] for place in order])
            strides.append([math.prod(own.shape[place + 1 :]) for place in range(own.ndim)])
            start += own.size
        siblings = [
            [
                (other, strides[other][terms[other].index(terms[view][-1])])
                for other in views_of[number]
            ]
            for view, (_, number) in enumerate(views)
        ]
        levels_of = np.array([tables[number].level for _, number in views], dtype=np.int64)
        owners = np.array([axis * num_levels for axis, _ in views], dtype=np.int64) + levels_of
        return cls(
            codes=codes,
            maps=levels.maps,
            widths=levels.widths,
            values=np.concatenate([np.empty(0), *values]).astype(np.float32),
            first_view=np.searchsorted(owners, np.arange(len(domain) * num_levels + 1)),
            offsets=np.array(offsets, dtype=np.uint64),
            weights=np.array([tables[number].weight for _, number in views], np.float32),
            levels=levels_of,
            axes=_padded([own[:-1] for own in terms]),
            strides=_padded([own[:-1] for own in strides]),
            own_axes=np.array([own[-1] for own in terms], dtype=np.uint64),
            first_sibling=_starts(siblings),
            siblings=_flat([[other for other, _ in those] for those in siblings]).astype(np.int64),
            own_strides=_flat([[stride for _, stride in those] for those in siblings]),
        )

    @property
    def widest(self) -> int:
        """The most codes of a level, which has all of its codes, supported or not."""
        return max(self.maps.shape[2], int(self.widths.max(initial=1)))

    def sweep(self, order: np.ndarray, key: int, block: int) -> Iterator[tuple[float, int]]:
        """Moves the codes in blocks of particles, attribute by attribute in this order.

        After some blocks it yields the share of the sweep that is done and the number of moves.
        """
        word, proposals = np.uint64(key), np.zeros(block, dtype=np.int32)
        num_levels, num_axes = self.widths.shape
        owners = np.repeat(np.arange(num_axes * num_levels), np.diff(self.first_view))
        read = float((self.widths.T.ravel()[owners] + _ROW).sum())
        number = self.codes.shape[1]
        num_parts = num_threads() if number * read >= _PARALLEL_FROM else 1
        scores = np.zeros((num_parts, 2, self.widest), dtype=np.float32)
        stretch = block * -(-number // (block * _STRETCHES))
        with Threads() as threads:
            for start in range(0, number, stretch):
                stop = min(number, start + stretch)
                moved = 0
                for first in range(start, stop, block):
                    last = min(stop, first + block)
                    for axis in order:
                        own = first, last, axis
                        threads.run(propose, num_parts, *own, word, scores, proposals, self)
                        moved += take_proposals(*own, proposals, self)
                yield stop / number, int(moved)


def _lacks(table: Table, codes: np.ndarray, num_attributes: int) -> np.ndarray:
    """The residual of each cell of a table: target * particles - counts, float32."""
    shape = table.values.shape
    cells = np.ravel_multi_index(tuple(codes[table.rows(num_attributes)]), shape)
    counts = np.bincount(cells, minlength=table.values.size).reshape(shape)
    return (table.values * codes.shape[1] - counts).astype(np.float32)


@njit()
@no_type_check
def propose(part, num_parts, first, last, axis, key, scores, proposals, held):
    """Proposes an improving code of an attribute for a part of a block; -1 for none."""
    chunk = -(-(last - first) // num_parts)
    start = min(last, first + part * chunk)
    stop = min(last, start + chunk)
    codes, values, weights, maps, first_view = (
        held.codes, held.values, held.weights, held.maps, held.first_view
    )  # fmt: skip
    places = (held.offsets, held.axes, held.strides)
    num_levels = len(maps)
    size = held.widths[0, axis]
    score, sums = scores[part]
    for i in range(start, stop):
        old = codes[axis, i]
        for level in range(num_levels):
            begin = first_view[axis * num_levels + level]
            end = first_view[axis * num_levels + level + 1]
            if level > 0 and begin == end:
                continue
            own, width = maps[level, axis], held.widths[level, axis]
            into = sums if level > 0 else score  # the codes of level 0 are the codes
            need = _sum_rows(codes, values, i, begin, end, width, places, weights, into)
            # Only a move to another code of the level takes the particle out of its cell.
            into[own[old]] += need
            if level > 0:
                for b in range(size):
                    score[b] += sums[own[b]]
        proposals[i - first] = _improving(score[:size], score[old], _mixed(key, i, axis))


@njit()
@no_type_check
def take_proposals(first, last, axis, proposals, held):
    """Tries a block's proposals one by one against the present residuals."""
    codes, values, maps, weights, levels = (
        held.codes, held.values, held.maps, held.weights, held.levels
    )  # fmt: skip
    num_moved = 0
    num_levels, num_axes, _ = maps.shape
    places = (held.offsets, held.axes, held.strides)
    begin, end = held.first_view[axis * num_levels], held.first_view[(axis + 1) * num_levels]
    for i in range(first, last):
        new = proposals[i - first]
        if new < 0:
            continue
        old = codes[axis, i]
        gain = np.float32(0)
        for t in range(begin, end):
            there = np.uint64(maps[levels[t], axis, new])
            here = np.uint64(maps[levels[t], axis, old])
            if there != here:
                row = _row(codes, i, t, places)
                gain += values[row + there] - values[row + here] - weights[t]
        if gain <= 0:
            continue
        num_moved += 1
        for t in range(begin, end):
            there = np.uint64(maps[levels[t], axis, new])
            here = np.uint64(maps[levels[t], axis, old])
            if there == here:
                continue
            for place in range(held.first_sibling[t], held.first_sibling[t + 1]):
                sibling, stride = held.siblings[place], held.own_strides[place]
                at = _row(codes, i, sibling, places)
                at += np.uint64(codes[held.own_axes[sibling], i])
                values[at] += weights[t]
                values[at + there * stride - here * stride] -= weights[t]
        for level in range(num_levels):
            codes[level * num_axes + axis, i] = maps[level, axis, new]
    return num_moved


@inner(inline="always")
@no_type_check
def _sum_rows(codes, values, i, begin, end, width, places, weights, part):
    """Adds a particle's rows of the views of one level, and returns the sum of their weights."""
    need = np.float32(0)
    if width == 4:
        # Sums over four groups, of which there are most, stay in registers.
        a, b, c, d = np.float32(0), np.float32(0), np.float32(0), np.float32(0)
        for t in range(begin, end):
            row = _row(codes, i, t, places)
            a += values[row]
            b += values[row + np.uint64(1)]
            c += values[row + np.uint64(2)]
            d += values[row + np.uint64(3)]
            need += weights[t]
        part[0], part[1], part[2], part[3] = a, b, c, d
    else:
        for b in range(width):
            part[b] = 0
        for t in range(begin, end):
            row = np.int64(_row(codes, i, t, places))
            line = values[row : row + width]
            for b in range(width):
                part[b] += line[b]
            need += weights[t]
    return need


@inner()
@no_type_check
def _row(codes, particle, view, places):
    """The place in a view where a particle's residuals begin, one for each code."""
    offsets, axes, strides = places
    i, t = np.uint64(particle), np.uint64(view)
    at = offsets[t]
    if axes.shape[1] == 2:
        at += strides[t, 0] * np.uint64(codes[axes[t, 0], i])
        return at + strides[t, 1] * np.uint64(codes[axes[t, 1], i])
    for term in range(axes.shape[1]):
        at += strides[t, term] * np.uint64(codes[axes[t, term], i])
    return at


@inner(inline="always")
@no_type_check
def _improving(score, level, word):
    """A code whose score exceeds the level, drawn in proportion to the excess; -1 for none."""
    num_better = 0
    for b in range(len(score)):
        num_better += score[b] > level
    if num_better == 0:
        return -1
    excess = np.float32(0)
    for b in range(len(score)):
        excess += max(score[b] - level, np.float32(0))
    left = np.float32(word >> np.uint64(40)) * np.float32(2.0**-24) * excess
    chosen = -1
    for b in range(len(score)):
        if score[b] > level:
            chosen = b
            left -= score[b] - level
            if left < 0:
                break
    return chosen


@inner(inline="always")
@no_type_check
def _mixed(key, particle, axis):
    """64 random bits for a particle's attribute: SplitMix64's finalizer (Steele et al. 2014)."""
    word = key + np.uint64(particle) * np.uint64(0x9E3779B97F4A7C15)
    word += np.uint64(axis) * np.uint64(0xD1342543DE82EF95)
    word = (word ^ (word >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    word = (word ^ (word >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return word ^ (word >> np.uint64(31))


def _starts(parts: Sequence[Sequence]) -> np.ndarray:
    return np.cumsum([0, *(len(part) for part in parts)], dtype=np.int64)


def _flat(parts: Sequence[Sequence[int]]) -> np.ndarray:
    return np.array([value for part in parts for value in part], dtype=np.uint64)


def _padded(parts: Sequence[Sequence[int]]) -> np.ndarray:
    """The parts as rows of two columns or more, filled up with zeros."""
    found = np.zeros((len(parts), max([2, *map(len, parts)])), dtype=np.uint64)
    for row, part in zip(found, parts, strict=True):
        row[: len(part)] = part
    return found
