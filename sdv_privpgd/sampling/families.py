"""Children of synthetic rows: rows of a model, given to the parents that they go with. Public."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pandas as pd

from sdv_privpgd.base.domain import Clique, FieldsAlone, Grouping
from sdv_privpgd.columns.bins import BELOW_ONE
from sdv_privpgd.columns.column import Column
from sdv_privpgd.columns.links import Link
from sdv_privpgd.columns.visits import time_after
from sdv_privpgd.sampling.sampler import Sampler
from sdv_privpgd.synthesize.siblings import Places, exchanged

_MANY = 20
"""More codes than rough numbers of up to 100 have."""


@dataclass(frozen=True, kw_only=True)
class Siblings(FieldsAlone):
    """How children of one parent go together.

    Attributes:
        grouping: The groups of the codes of columns by which it was asked.
        tables: The shares of pairs of groups, by the columns of one child and of the other.
        most: Of how many children of a parent pairs count.
    """

    grouping: Grouping
    tables: Mapping[Clique, np.ndarray]
    most: int


def children_of(
    sampler: Sampler,
    link: Link,
    parents: Mapping[str, pd.Series],
    numbers: np.ndarray,
    weights: np.ndarray,
    siblings: Siblings | None,
    starts: np.ndarray,
    in_family: str | None,
    seed: int,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Children of parents: codes and positions of shape (child, attribute), and whose each one is.

    Each is a row of the model whose parent has as many children. Rows come to parents who have
    what the model says that their parents have, as far as one order of all parents can do that.
    Then they are exchanged until their pairs with parents and with siblings are as they should be.

    Args:
        sampler: Of the model of children, with what their parents have.
        link: What the children lead to.
        parents: What the parents have, by the columns' names in the model.
        numbers: How many children each parent has.
        weights: What a pair of siblings counts as, by the parent.
        siblings: How siblings go together, if that was asked.
        starts: Where each parent's order begins, in ticks; not a number where that is not known.
        in_family: The column of how many children their family has, if there is one.
        seed: Of what is drawn.
    """
    generator = np.random.default_rng(seed)
    names = [each.name for each in sampler.attributes]
    axes = [names.index(name) for name in parents]
    own = [axis for axis, name in enumerate(names) if name not in (*parents, link.place)]
    asked = sampler.encoded(parents)
    whose = np.repeat(np.arange(len(numbers)), numbers)
    first = np.r_[0, np.cumsum(numbers)].astype(np.int64)
    codes, positions = sampler.block(0)
    count = list(parents).index(link.above(link.number))
    fixed = _rough(numbers[whose])
    said = _rough(_read(sampler, link.above(link.number), codes, positions))
    if link.place is not None:
        fixed = fixed * _MANY + _rough(np.arange(len(whose)) - first[whose] + 1)
        said = said * _MANY + _rough(_read(sampler, link.place, codes, positions))
    counts = np.ones(len(codes))
    if in_family is not None:  # the model's rows count the less the more of them a family has
        counts = np.maximum(_read(sampler, in_family, codes, positions), 1).astype(np.float64)
    chosen = _as_many(fixed, said, counts, generator)
    telling = [p for p in _by_strength(codes, axes, own) if p != count]
    # Both in one order of what parents have; of equal ones any.
    here = np.lexsort(
        [generator.random(len(whose)), *(asked[whose, p] for p in telling[::-1]), fixed]
    )
    theirs = np.lexsort(
        [
            generator.random(len(chosen)),
            *(codes[chosen, axes[p]] for p in telling[::-1]),
            np.sort(fixed),
        ]
    )
    rows = np.empty(len(whose), dtype=np.int64)
    rows[here] = chosen[theirs]
    known = {} if siblings is None else siblings.tables
    most = 0 if siblings is None else siblings.most
    groups = codes[rows][:, own].astype(np.int64)
    if siblings is not None:
        for place, axis in enumerate(own):
            if names[axis] in siblings.grouping.attributes:
                groups[:, place] = siblings.grouping[names[axis]][groups[:, place]]
    at = {names[axis]: place for place, axis in enumerate(own)}
    clock = None if link.order is None else _Clock.of(sampler, link, starts)
    times = (np.zeros(0),) * 3 if clock is None else clock.ranked(codes[rows], positions[rows])
    places = Places(
        first=first,
        whose=whose,
        pairs=np.minimum(numbers, most).astype(np.int64),
        weights=weights.astype(np.float64),
        order=here,
        alike=fixed,
        parents=asked.astype(np.int64),
        children=codes[rows][:, own].astype(np.int64),
        groups=groups,
        times=times[0],
        before=times[1],
        starts=times[2],
    )
    sizes = [each.size for each in sampler.attributes]
    targets = {
        (p, c): _shares(codes[rows], (axes[p], own[c]), sizes)
        for p in range(len(axes))
        for c in range(len(own))
    }
    pairs = {(at[a], at[b]): table for (a, b), table in known.items()}
    rows = rows[exchanged(places, targets, pairs, seed)]
    if clock is None:
        return codes[rows], positions[rows], whose
    return *clock.in_order(codes[rows], positions[rows], whose), whose


@dataclass(frozen=True, kw_only=True)
class _Clock:
    """When children in order are, and how long after the one before.

    Attributes:
        by: The column that says when, and its axis.
        since: The column that says how long, and its axis.
        starts: When each parent's order begins, in ticks; not a number where that is not known.
    """

    by: tuple[Column, int]
    since: tuple[Column, int]
    starts: np.ndarray

    @classmethod
    def of(cls, sampler: Sampler, link: Link, starts: np.ndarray) -> "_Clock":
        axes = {each.name: (each, axis) for axis, each in enumerate(sampler.attributes)}
        return cls(by=axes[str(link.order)], since=axes[str(link.since)], starts=starts)

    def ranked(
        self, codes: np.ndarray, positions: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Where rows, those before them and starts are in the order of all times, from 0 to 1."""
        (times, timeless), (gaps, first) = self._read(codes, positions)
        order = np.sort(times[~timeless])
        rank = lambda own, unknown: np.where(
            unknown, np.nan, np.searchsorted(order, own) / max(len(order), 1)
        )
        before = time_after(self.by[0], times, -gaps)
        unknown = np.isnan(self.starts)
        return (
            rank(times, timeless),
            rank(before, timeless | first),
            rank(np.where(unknown, 0, self.starts), unknown),
        )

    def in_order(
        self, codes: np.ndarray, positions: np.ndarray, whose: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """The children of each parent in order, those without a time last; none before the start.

        A child is as long after the one before as it says, unless that is longer than the cell of
        its time: then it is when it says.
        """
        clock, axis = self.by
        (times, timeless), (gaps, alone) = self._read(codes, positions)
        is_first = np.diff(whose, prepend=-1) != 0
        place = np.arange(len(whose)) - np.flatnonzero(is_first)[np.cumsum(is_first) - 1]
        starts = self.starts[whose]
        cells = np.where(timeless, 0, codes[:, axis])
        low, high = (clock.at(cells, np.full(len(cells), at)) for at in (0.0, BELOW_ONE))
        is_short = ~alone & ~timeless & (time_after(clock, low, gaps) <= high)
        for number in range(int(place.max(initial=-1)) + 1):
            here = np.flatnonzero((place == number) & is_short)
            unknown = timeless[here - 1] if number else np.isnan(starts[here])
            here = here[~unknown]
            before = times[here - 1] if number else starts[here].astype(times.dtype)
            times[here] = time_after(clock, before, gaps[here])
        early = times < starts
        times[early] = starts[early].astype(times.dtype)
        placed, inside = clock.locate(times)
        codes[~timeless, axis], positions[~timeless, axis] = placed[~timeless], inside[~timeless]
        order = np.lexsort((positions[:, axis], codes[:, axis], whose))
        return codes[order], positions[order]

    def _read(
        self, codes: np.ndarray, positions: np.ndarray
    ) -> list[tuple[np.ndarray, np.ndarray]]:
        """When rows are and how long after the one before, 0 if unknown; and which are unknown."""
        found = []
        for column, axis in (self.by, self.since):
            unknown = codes[:, axis] == column.num_values
            values = column.at(np.where(unknown, 0, codes[:, axis]), positions[:, axis])
            found.append((np.where(unknown, 0, values), unknown))
        return found


def _read(sampler: Sampler, name: str, codes: np.ndarray, positions: np.ndarray) -> np.ndarray:
    """The whole numbers of a column of rows of a model."""
    axis = [each.name for each in sampler.attributes].index(name)
    return sampler.attributes[axis].at(codes[:, axis], positions[:, axis])


def _rough(numbers: np.ndarray) -> np.ndarray:
    """A code for each number from 0 on: its own up to 4, and of larger ones several share one."""
    larger = 5 + np.floor(2 * np.log2(np.maximum(numbers, 5) / 5))
    return np.where(numbers < 5, numbers, larger).astype(np.int64)


def _as_many(
    asked: np.ndarray, said: np.ndarray, counts: np.ndarray, generator: np.random.Generator
) -> np.ndarray:
    """Rows of a model, as many of each code as are asked for, by code, each as often as it counts.

    Where the model has none of a code the nearest one is taken.
    """
    found = [np.zeros(0, np.int64)]
    there = np.unique(said)
    for code, number in zip(*np.unique(asked, return_counts=True), strict=True):
        near = there[np.abs(there.astype(np.int64) - int(code)).argmin()]
        rows = generator.permutation(np.flatnonzero(said == near))
        so_far = np.cumsum(counts[rows])
        places = (np.arange(number) + generator.random()) * so_far[-1] / number
        found.append(generator.permutation(rows[np.searchsorted(so_far, places, side="right")]))
    return np.concatenate(found)


def _by_strength(codes: np.ndarray, axes: list[int], own: list[int]) -> list[int]:
    """The parents' attributes, the most telling of children first."""
    said = []
    for axis in axes:
        apart = 0.0
        for each in own:
            sizes = int(codes[:, axis].max()) + 1, int(codes[:, each].max()) + 1
            table = np.zeros(sizes)
            cells = codes[:, axis].astype(np.int64) * sizes[1] + codes[:, each]
            table = np.bincount(cells, minlength=sizes[0] * sizes[1]).reshape(sizes) / len(codes)
            apart += np.abs(table - np.outer(table.sum(axis=1), table.sum(axis=0))).sum()
        said.append(apart)
    return np.argsort(-np.array(said), kind="stable").tolist()


def _shares(codes: np.ndarray, axes: tuple[int, int], sizes: list[int]) -> np.ndarray:
    shape = sizes[axes[0]], sizes[axes[1]]
    cells = codes[:, axes[0]].astype(np.int64) * shape[1] + codes[:, axes[1]]
    return np.bincount(cells, minlength=shape[0] * shape[1]).reshape(shape) / max(len(codes), 1)
