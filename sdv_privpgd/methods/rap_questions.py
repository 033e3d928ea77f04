"""The questions of RAP++: tables of mixed types and half-spaces, whose thresholds are quantiles."""

import math
from collections.abc import Mapping, Sequence
from itertools import combinations, product

import numpy as np

from sdv_privpgd.base.domain import Clique, Domain
from sdv_privpgd.privacy.half_spaces import Cut, Line
from sdv_privpgd.privacy.queries import CutMarginalQuery, MarginalQuery

LENGTH = 1 << 16
"""The length of a line, from the first place to the last."""

_WEIGHT = 1 << 11
"""The largest weight of a direction."""

_EACH = 256
"""In its own table a number of so many codes has an interval for each: a value that most rows have,
as 0, would else be taken for its neighbor."""

_ALONE, _TOGETHER, _PAIRED = 100, 8, 5
"""Intervals of a number of more codes in its own table, of a direction or of a number with
categories, and of each of two numbers in one table."""

_MOST_CELLS = 4_096
"""Tables of more cells are not asked for: their noise would say more than they."""

Asked = MarginalQuery | CutMarginalQuery
"""A question of ``RAPPlusPlus``."""


def line_of(name: str, values: np.ndarray, *, nullable: bool = False) -> Line:
    """The line of numbers that ascend: whole numbers from 0 to ``LENGTH``, or a little more."""
    values = np.asarray(values, dtype=np.float64)
    wide = max(float(values[-1] - values[0]), 1e-300)
    exact = np.rint((values - values[0]) / wide * LENGTH).astype(np.int64)
    steps = np.arange(len(exact))
    # Codes that are too near to each other still follow each other.
    places = np.maximum.accumulate(exact - steps) + steps
    return Line(name, tuple(places.tolist()), nullable)


def own_tables(domain: Domain, lines: Mapping[str, Line], labels: Sequence[str]) -> list[Asked]:
    """Each column's table, by the label if there is one."""
    by = tuple(labels) if len(labels) == 1 else ()
    found: list[Asked] = []
    for name in domain.attributes:
        if name in lines:
            found.append(CutMarginalQuery(by, (_evenly(lines[name], _ALONE),)))
        elif name not in by:
            found.append(MarginalQuery((name, *by)))
    return found or [MarginalQuery(by)]


def planned(
    domain: Domain, lines: Mapping[str, Line], labels: Sequence[str]
) -> list[tuple[Clique, tuple[str, ...]]]:
    """The categories and the numbers of each table of two columns, with each label."""
    sizes = dict(zip(domain.attributes, domain.sizes, strict=True))
    others = [name for name in domain.attributes if name not in labels and sizes[name] > 1]
    pairs = list(combinations(others, 2)) or [(name,) for name in others if labels]
    found = []
    for pair, label in product(pairs, labels or [None]):
        numbers = tuple(name for name in pair if name in lines)
        if any(len(lines[name].places) < 2 for name in numbers):
            continue
        by = () if label is None else (label,)
        if len(pair) > 1 or len(labels) > 1:
            found.append((tuple(name for name in pair if name not in lines) + by, numbers))
    if len(labels) > 1:
        found += [(pair, ()) for pair in combinations(labels, 2)]
    return found


def candidates(
    domain: Domain,
    lines: Mapping[str, Line],
    labels: Sequence[str],
    *,
    codes: np.ndarray,
    directions: int,
    seed: int,
) -> list[Asked]:
    """What can be asked after the own tables, with thresholds at the quantiles of a model's rows.

    Tables of two columns with each label, and random hyperplanes of so many directions, half of
    them over all numbers and the others over two or three.
    """
    axes = dict(zip(lines, domain.axes(lines), strict=True))
    places = {
        name: np.array([*line.places, 0], dtype=np.int64)[codes[:, axes[name]]][
            codes[:, axes[name]] < len(line.places)
        ]
        for name, line in lines.items()
    }
    found: list[Asked] = []
    for clique, names in planned(domain, lines, labels):
        number = _TOGETHER if len(names) == 1 else _PAIRED
        cuts = tuple(_at_quantiles((lines[name],), (1,), places[name], number) for name in names)
        if None not in cuts:
            query = CutMarginalQuery(clique, cuts) if cuts else MarginalQuery(clique)  # pyright: ignore
            if math.prod(query.shape(domain)) <= _MOST_CELLS:
                found.append(query)
    return found + _planes(domain, lines, labels, codes, directions=directions, seed=seed)


def _planes(
    domain: Domain,
    lines: Mapping[str, Line],
    labels: Sequence[str],
    codes: np.ndarray,
    *,
    directions: int,
    seed: int,
) -> list[Asked]:
    """Random hyperplanes, each by a random label, or by a category where there is none."""
    rng = np.random.default_rng(seed)
    names = [name for name, line in lines.items() if len(line.places) > 1]
    if len(names) < 2:
        return []
    held = [np.array(lines[name].places) for name in names]
    columns = [codes[:, axis] for axis in domain.axes(names)]
    there = np.all([own < len(line) for own, line in zip(columns, held, strict=True)], axis=0)
    points = np.stack([line[own[there]] for own, line in zip(columns, held, strict=True)], axis=1)
    if not len(points):
        return []
    spread = np.maximum(points.std(axis=0), 1.0)
    conditions = list(labels) or [
        name for name in domain.attributes if name not in lines and domain.size((name,)) > 1
    ]
    found: list[Asked] = []
    for number in range(directions):
        most = len(names) if number % 2 == 0 else min(int(rng.integers(2, 4)), len(names))
        used = np.sort(rng.permutation(len(names))[:most])
        theta = rng.standard_normal(most) / spread[used]
        weights = np.rint(_WEIGHT * theta / np.abs(theta).max()).astype(np.int64)
        clique = () if not conditions else (conditions[int(rng.integers(len(conditions)))],)
        used = used[weights != 0]
        weights = weights[weights != 0]
        cut = _at_quantiles(
            tuple(lines[names[place]] for place in used),
            tuple(weights.tolist()),
            points[:, used] @ weights,
            _TOGETHER,
        )
        if cut is not None and domain.size(clique) * cut.size <= _MOST_CELLS:
            found.append(CutMarginalQuery(clique, (cut,)))
    return found


def columns_of(asked: Asked) -> frozenset[str]:
    """The columns that a question is about."""
    cuts = asked.cuts if isinstance(asked, CutMarginalQuery) else ()
    return frozenset([*asked.clique, *(line.name for cut in cuts for line in cut.lines)])


def kind_of(asked: Asked) -> int:
    """0 for a table of categories alone, 1 for one of mixed types, 2 for a half-space."""
    if isinstance(asked, MarginalQuery):
        return 0
    return 2 if any(len(cut.lines) > 1 for cut in asked.cuts) else 1


def _evenly(line: Line, number: int) -> Cut:
    """A line cut between codes: all that are few, else into about as many equal numbers of them."""
    last = len(line.places) - 1
    number = len(line.places) if len(line.places) <= _EACH else number
    after = np.unique(np.linspace(0, last + 1, number + 1).round().astype(int)[1:-1]) - 1
    after = after[(after >= 0) & (after < last)]
    return Cut((line,), (1,), tuple(_between(np.array(line.places), after)) or (line.places[0],))


def _at_quantiles(
    lines: tuple[Line, ...], weights: tuple[int, ...], sums: np.ndarray, number: int
) -> Cut | None:
    """The cut of sums into about as many intervals of as many rows; ``None`` if all is one."""
    if not len(sums):
        return None
    held = np.unique(sums)
    ends = np.quantile(sums, np.arange(1, number) / number, method="lower")
    after = np.unique(np.searchsorted(held, ends))
    after = after[after < len(held) - 1]
    return Cut(lines, weights, tuple(_between(held, after))) if len(after) else None


def _between(sums: np.ndarray, after: np.ndarray) -> list[int]:
    """Thresholds that lie in the middle between the sums at some places and those that follow."""
    return sorted({int(each) for each in (sums[after] + sums[after + 1]) // 2})
