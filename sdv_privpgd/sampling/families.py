"""Children of synthetic rows: rows of a model, given to the parents that they go with. Public."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pandas as pd

from sdv_privpgd.base.domain import Clique, FieldsAlone, Grouping
from sdv_privpgd.columns.column import Column
from sdv_privpgd.columns.encoders import encoder_for
from sdv_privpgd.columns.links import Link
from sdv_privpgd.columns.visits import read_by, time_after
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
    chosen = _as_many(fixed, said, generator)
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
    )
    sizes = [each.size for each in sampler.attributes]
    targets = {
        (p, c): _shares(codes[rows], (axes[p], own[c]), sizes)
        for p in range(len(axes))
        for c in range(len(own))
    }
    pairs = {(at[a], at[b]): table for (a, b), table in known.items()}
    rows = rows[exchanged(places, targets, pairs, seed)]
    return codes[rows], positions[rows], whose


def in_order(
    sampler: Sampler,
    link: Link,
    codes: np.ndarray,
    positions: np.ndarray,
    whose: np.ndarray,
    began: tuple[Column, pd.Series] | None,
) -> tuple[np.ndarray, np.ndarray]:
    """The children of each parent in order, each so long after the one before as it says.

    Those without a time are last. ``began`` is what is public of the parent's column at which the
    order begins, and its cells; without it the first row is when it says.
    """
    axes = {each.name: axis for axis, each in enumerate(sampler.attributes)}
    by, since = axes[str(link.order)], axes[str(link.since)]
    clock, apart = sampler.attributes[by], sampler.attributes[since]
    timeless = codes[:, by] == clock.num_values
    place = _read(sampler, str(link.place), codes, positions)
    order = np.lexsort((place, timeless, whose))
    codes, positions, timeless = codes[order], positions[order], timeless[order]
    first = np.r_[True, whose[1:] != whose[:-1]] if len(whose) else np.zeros(0, bool)
    gaps = apart.at(np.minimum(codes[:, since], apart.num_values - 1), positions[:, since])
    gaps[codes[:, since] == apart.num_values] = 0
    begins = clock.at(np.minimum(codes[:, by], clock.num_values - 1), positions[:, by])
    if began is None:
        gaps[first] = 0
    else:
        column, cells = began
        read, missing = encoder_for(read_by(clock, column.name, column)).read(cells)
        gaps[first & missing[whose]] = 0
        begins = np.where(missing[whose], begins, np.clip(read, *clock.cells.ends)[whose])
    starts = np.flatnonzero(first)[np.cumsum(first) - 1]
    so_far = np.cumsum(gaps)
    since_first = so_far - so_far[starts] + gaps[starts]
    times = time_after(clock, begins[starts], since_first)
    codes[:, by], positions[:, by] = clock.locate(times)
    codes[timeless, by] = clock.num_values
    return codes, positions


def _read(sampler: Sampler, name: str, codes: np.ndarray, positions: np.ndarray) -> np.ndarray:
    """The whole numbers of a column of rows of a model."""
    axis = [each.name for each in sampler.attributes].index(name)
    return sampler.attributes[axis].at(codes[:, axis], positions[:, axis])


def _rough(numbers: np.ndarray) -> np.ndarray:
    """A code for each number from 0 on: its own up to 4, and of larger ones several share one."""
    larger = 5 + np.floor(2 * np.log2(np.maximum(numbers, 5) / 5))
    return np.where(numbers < 5, numbers, larger).astype(np.int64)


def _as_many(asked: np.ndarray, said: np.ndarray, generator: np.random.Generator) -> np.ndarray:
    """Rows of a model, as many of each code as are asked for, by code, each about equally often.

    Where the model has none of a code the nearest one is taken.
    """
    found = [np.zeros(0, np.int64)]
    there = np.unique(said)
    for code, number in zip(*np.unique(asked, return_counts=True), strict=True):
        near = there[np.abs(there.astype(np.int64) - int(code)).argmin()]
        rows = np.flatnonzero(said == near)
        times = -(-number // len(rows))
        found.append(np.concatenate([generator.permutation(rows) for _ in range(times)])[:number])
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
