"""What the particles lack in each cell, kept up to date while they move code by code."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple, no_type_check

import numpy as np
from numba import njit, prange

from sdv_privpgd.domain import Clique, Domain

_NUM_CHUNKS = 32
"""Parts of a block for the threads. Fixed, though the result would not depend on it."""

_PARALLEL_FROM = 1e9
"""Residuals read in a sweep from which threads are used, about half a second's work. They wait
for each other after each block: on a busy machine smaller work takes them longer than one."""


class Residuals(NamedTuple):
    """weight * (target * particles - counts) of all tables, once for each of their attributes.

    View t serves one attribute, the last of its axes, so that its codes are neighbors in memory:
    the cell of a particle lies at offsets[t] + the sum of strides * codes over the view's terms,
    the attribute itself the last of them. Views are ordered by attribute, those of one clique
    are siblings.
    """

    values: np.ndarray
    sizes: np.ndarray
    first_view: np.ndarray
    offsets: np.ndarray
    weights: np.ndarray
    first_term: np.ndarray
    axes: np.ndarray
    strides: np.ndarray
    first_sibling: np.ndarray
    siblings: np.ndarray
    own_strides: np.ndarray

    @classmethod
    def of(
        cls,
        codes: np.ndarray,
        domain: Domain,
        targets: Mapping[Clique, np.ndarray],
        weights: Mapping[Clique, float],
        supports: Sequence[np.ndarray],
    ) -> "Residuals":
        """The residuals of compact codes of shape (attribute, particle)."""
        num_particles = codes.shape[1]
        sizes = np.array([len(support) for support in supports], dtype=np.int64)
        views: list[tuple[int, Clique, tuple[int, ...]]] = []
        for axis, attribute in enumerate(domain.attributes):
            for clique in targets:
                if attribute in clique:
                    others = [other for other in domain.axes(clique) if other != axis]
                    views.append((axis, clique, (*others, axis)))
        values, offsets, terms, strides, start = [], [], [], [], 0
        for _, clique, axes in views:
            shape = tuple(int(sizes[axis]) for axis in axes)
            members = domain.axes(clique)
            table = np.asarray(targets[clique], dtype=np.float64)
            table = table.transpose([members.index(axis) for axis in axes])
            table = table[np.ix_(*(supports[axis] for axis in axes))]
            cells = np.ravel_multi_index(tuple(codes[list(axes)]), shape)
            counts = np.bincount(cells, minlength=table.size)
            values.append(weights.get(clique, 1.0) * (table.ravel() * num_particles - counts))
            offsets.append(start)
            terms.append(axes)
            strides.append([int(np.prod(shape[place + 1 :])) for place in range(len(shape))])
            start += table.size
        siblings = [
            [
                (other, strides[other][axes.index(axis)])
                for other, (_, theirs, axes) in enumerate(views)
                if theirs == clique
            ]
            for axis, clique, _ in views
        ]
        owners = np.array([axis for axis, _, _ in views], dtype=np.int64)
        return cls(
            values=np.concatenate([np.empty(0), *values]).astype(np.float32),
            sizes=sizes,
            first_view=np.searchsorted(owners, np.arange(len(domain) + 1)),
            offsets=np.array(offsets, dtype=np.int64),
            weights=np.array([weights.get(clique, 1.0) for _, clique, _ in views], np.float32),
            first_term=_starts(terms),
            axes=_flat(terms),
            strides=_flat(strides),
            first_sibling=_starts(siblings),
            siblings=_flat([[other for other, _ in those] for those in siblings]),
            own_strides=_flat([[stride for _, stride in those] for those in siblings]),
        )

    def sweep(self, codes: np.ndarray, order: np.ndarray, key: int, block: int) -> int:
        """Moves codes of shape (attribute, particle) in place; returns how many moved."""
        scores = np.zeros((_NUM_CHUNKS, int(self.sizes.max(initial=1))), dtype=np.float32)
        proposals = np.zeros(block, dtype=np.int32)
        owners = np.repeat(np.arange(len(self.sizes)), np.diff(self.first_view))
        in_parallel = codes.shape[1] * float(self.sizes[owners].sum()) >= _PARALLEL_FROM
        return int(_sweep(codes, order, np.uint64(key), scores, proposals, in_parallel, *self))


@njit(cache=True)
@no_type_check
def _sweep(
    codes,
    order,
    key,
    scores,
    proposals,
    in_parallel,
    values,
    sizes,
    first_view,
    offsets,
    weights,
    first_term,
    axes,
    strides,
    first_sibling,
    siblings,
    own_strides,
):
    """One sweep: the attributes in this order, block by block of particles."""
    num_moved = 0
    places = (offsets, first_term, axes, strides)
    for first in range(0, codes.shape[1], len(proposals)):
        last = min(codes.shape[1], first + len(proposals))
        for axis in order:
            begin, end = first_view[axis], first_view[axis + 1]
            need = np.float32(0)
            for t in range(begin, end):
                need += weights[t]
            block = (first, last, axis, begin, end, sizes[axis], need)
            if in_parallel:
                _score_in_parallel(codes, values, places, key, block, scores, proposals)
            else:
                _score(codes, values, places, key, block, first, last, scores[0], proposals)
            for i in range(first, last):
                new = proposals[i - first]
                if new < 0:
                    continue
                old = codes[axis, i]
                gain = -need
                for t in range(begin, end):
                    row = _row(codes, i, t, places)
                    gain += values[row + new] - values[row + old]
                if gain <= 0:
                    continue
                num_moved += 1
                for t in range(begin, end):
                    for place in range(first_sibling[t], first_sibling[t + 1]):
                        sibling = siblings[place]
                        at = _row(codes, i, sibling, places)
                        at += codes[axes[first_term[sibling + 1] - 1], i]
                        values[at] += weights[t]
                        values[at + (new - old) * own_strides[place]] -= weights[t]
                codes[axis, i] = new
    return num_moved


@njit(cache=True, parallel=True)
@no_type_check
def _score_in_parallel(codes, values, places, key, block, scores, proposals):
    """``_score`` for a block, whose particles are split between the threads."""
    first, last = block[0], block[1]
    chunk = -(-(last - first) // len(scores))
    for part in prange(len(scores)):
        start = min(last, first + part * chunk)
        stop = min(last, start + chunk)
        _score(codes, values, places, key, block, start, stop, scores[part], proposals)


@njit(cache=True)
@no_type_check
def _score(codes, values, places, key, block, start, stop, score, proposals):
    """Proposes for particles of a block an improving code of one attribute; -1 for none."""
    first, _, axis, begin, end, size, need = block
    for i in range(start, stop):
        for b in range(size):
            score[b] = 0
        for t in range(begin, end):
            row = _row(codes, i, t, places)
            lacks = values[row : row + size]
            for b in range(size):
                score[b] += lacks[b]
        level = score[codes[axis, i]] + need
        proposals[i - first] = _improving(score[:size], level, _mixed(key, i, axis))


@njit(cache=True)
@no_type_check
def _row(codes, particle, view, places):
    """Where the residuals of a particle begin in a view, one per code of its attribute."""
    offsets, first_term, axes, strides = places
    at = offsets[view]
    for term in range(first_term[view], first_term[view + 1] - 1):
        at += strides[term] * codes[axes[term], particle]
    return at


@njit(cache=True)
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


@njit(cache=True)
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
    return np.array([value for part in parts for value in part], dtype=np.int64)
