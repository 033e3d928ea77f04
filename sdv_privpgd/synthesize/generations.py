"""The genetic engine's loop over generations, which numba compiles and caches on disk.

All arrays are arguments, never captured: the compiled code holds no data.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple, no_type_check

import numpy as np

from sdv_privpgd.base.domain import Domain
from sdv_privpgd.base.progress import Shares
from sdv_privpgd.estimate.noisy_tables import estimate_total
from sdv_privpgd.privacy.dataset import Dataset
from sdv_privpgd.privacy.queries import CountQuery, GroupedMarginalQuery, MarginalQuery, Measurement
from sdv_privpgd.synthesize.goals import Goals
from sdv_privpgd.synthesize.particles.compiler import inner, njit


class PackedGoals(NamedTuple):
    """The goals as flat arrays, in numbers of rows.

    The cell of a row in a table is the table's first cell plus what each view adds for the row's
    code. A *look* is one view of one table.
    """

    wanted: np.ndarray
    """The number of rows that each cell of each table should hold, float64."""
    weights: np.ndarray
    """What a squared error of a number of rows counts, for each table."""
    first: np.ndarray
    """The first cell of each table."""
    starts: np.ndarray
    """The first look of each table, and their number."""
    axes: np.ndarray
    """The attribute of each look."""
    offsets: np.ndarray
    """Where in ``places`` the codes of each look begin."""
    places: np.ndarray
    """What each code of a look adds to the number of the cell."""
    tables: np.ndarray
    """The table of each look."""
    looks: np.ndarray
    """The looks at each attribute, attribute by attribute."""
    looks_from: np.ndarray
    """Where in ``looks`` each attribute begins, and their number."""

    @classmethod
    def of(cls, goals: Goals, num_rows: int) -> "PackedGoals":
        """The goals for a table of so many rows."""
        axes, offsets, tables, places, starts = [], [], [], [], [0]
        at = 0
        for table, (views, shares) in enumerate(zip(goals.tables, goals.shares, strict=True)):
            for place, view in enumerate(views):
                step = int(np.prod(shares.shape[place + 1 :]))
                adds = np.array(goals.views[view].groups, dtype=np.int64) * step
                axes.append(goals.views[view].axis)
                offsets.append(at)
                tables.append(table)
                places.append(adds)
                at += len(adds)
            starts.append(len(axes))
        sizes = [shares.size for shares in goals.shares]
        axis_of = np.array(axes, dtype=np.int64)
        counts = np.bincount(axis_of, minlength=len(goals.domain))
        return cls(
            wanted=num_rows * np.concatenate([np.empty(0), *(s.ravel() for s in goals.shares)]),
            weights=np.array(goals.weights) / num_rows**2,
            first=np.cumsum([0, *sizes[:-1]], dtype=np.int64)[: len(sizes)],
            starts=np.array(starts, dtype=np.int64),
            axes=axis_of,
            offsets=np.array(offsets, dtype=np.int64),
            places=np.concatenate([np.empty(0, dtype=np.int64), *places]),
            tables=np.array(tables, dtype=np.int64),
            looks=np.argsort(axis_of, kind="stable"),
            looks_from=np.concatenate([[0], np.cumsum(counts)]).astype(np.int64),
        )

    def errors(self, codes: np.ndarray) -> np.ndarray:
        """For each cell the number of rows that it holds, less those it should hold."""
        found = -self.wanted
        for table, first in enumerate(self.first):
            cells = np.full(len(codes), first)
            for look in range(self.starts[table], self.starts[table + 1]):
                cells += self.places[self.offsets[look] + codes[:, self.axes[look]]]
            found += np.bincount(cells, minlength=len(found))
        return found

    def loss(self, errors: np.ndarray) -> float:
        """The weighted sum of squared errors."""
        sizes = np.diff([*self.first, len(errors)])
        return float(np.repeat(self.weights, sizes) @ errors**2)


@njit()
@no_type_check
def evolve(elite, losses, best, errors, sizes, goals, generations, mutations, crossovers, state):
    """Lets the elite evolve, in place, and returns the place of its best member.

    ``elite`` has shape (member, row, attribute); ``errors`` are those of the best member. A child
    is the best member with one other code: a mutation takes any code of the attribute, a crossover
    the code of a row of a member. Children that are better than the worst members replace them.
    """
    members, num_rows, num_axes = elite.shape
    children = mutations + crossovers
    rows, axes, codes = np.zeros((3, children), dtype=np.int64)
    changes = np.zeros(children)
    placed = np.zeros(members, dtype=np.int64)
    for _ in range(generations):
        for child in range(children):
            row = _below(state, num_rows)
            axis = _below(state, num_axes)
            if child < mutations:
                code = _below(state, sizes[axis])
            else:
                code = elite[_below(state, members), _below(state, num_rows), axis]
            rows[child], axes[child], codes[child] = row, axis, code
            changes[child] = change(elite[best, row], axis, code, errors, goals)
            if code == elite[best, row, axis]:
                changes[child] = np.inf
        parent, parents_loss = best, losses[best]
        placed[:] = -1
        for _ in range(members):
            child, worst = np.argmin(changes), np.argmax(losses)
            if not parents_loss + changes[child] < losses[worst]:
                break
            placed[worst], losses[worst] = child, parents_loss + changes[child]
            changes[child] = np.inf
        if placed.max() < 0:
            continue
        for member in range(members):
            if losses[member] < losses[best]:
                best = member
        if placed[best] >= 0:
            child = placed[best]
            replace(elite[parent, rows[child]], axes[child], codes[child], errors, goals)
        for member in range(members):
            if placed[member] >= 0 and member != parent:
                child = placed[member]
                elite[member] = elite[parent]
                elite[member, rows[child], axes[child]] = codes[child]
        if placed[parent] >= 0:
            child = placed[parent]
            elite[parent, rows[child], axes[child]] = codes[child]
    return best


@njit()
@no_type_check
def change(row, axis, code, errors, goals):
    """How much the loss grows if a row gets another code of an attribute."""
    found = 0.0
    for place in range(goals.looks_from[axis], goals.looks_from[axis + 1]):
        look = goals.looks[place]
        old = _cell(row, goals.tables[look], goals)
        first = goals.offsets[look]
        new = old - goals.places[first + row[axis]] + goals.places[first + code]
        if new != old:
            found += goals.weights[goals.tables[look]] * 2 * (errors[new] - errors[old] + 1)
    return found


@njit()
@no_type_check
def replace(row, axis, code, errors, goals):
    """Brings the errors up to date with a row that gets another code of an attribute."""
    for place in range(goals.looks_from[axis], goals.looks_from[axis + 1]):
        look = goals.looks[place]
        old = _cell(row, goals.tables[look], goals)
        first = goals.offsets[look]
        errors[old] -= 1
        errors[old - goals.places[first + row[axis]] + goals.places[first + code]] += 1


@inner()
@no_type_check
def _cell(row, table, goals):
    """The cell of a row in a table."""
    found = goals.first[table]
    for look in range(goals.starts[table], goals.starts[table + 1]):
        found += goals.places[goals.offsets[look] + row[goals.axes[look]]]
    return found


@inner()
@no_type_check
def _below(state, number):
    """A random number below another, by splitmix64 (Steele, Lea & Flood 2014), of the seed."""
    state[0] += np.uint64(0x9E3779B97F4A7C15)
    word = state[0]
    word = (word ^ (word >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    word = (word ^ (word >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    word ^= word >> np.uint64(31)
    return np.int64((word >> np.uint64(32)) * np.uint64(number) >> np.uint64(32))


@dataclass(frozen=True, kw_only=True, eq=False)
class Asked:
    """Measured queries that synthetic rows are to answer alike, whatever they are. Public."""

    domain: Domain
    total: float
    measurements: tuple[Measurement, ...]

    @classmethod
    def of(cls, domain: Domain, measurements: Sequence[Measurement]) -> "Asked":
        """Those of the measurements that are neither a table nor the number of rows."""
        known = MarginalQuery | GroupedMarginalQuery | CountQuery
        others = tuple(each for each in measurements if not isinstance(each.query, known))
        total = estimate_total(domain, measurements).value
        return cls(domain=domain, total=total, measurements=others)

    def loss(self, codes: np.ndarray) -> float:
        """The sum over queries of their mean squared error, in standard deviations of the noise.

        Answers of the rows are scaled to the estimated number of records.
        """
        rows = Dataset(self.domain, codes)
        scale, found = self.total / len(codes), 0.0
        for each in self.measurements:
            errors = scale * each.query.answer(rows) - each.answer
            found += float(np.square(errors / max(each.stddev, 1.0)).mean())
        return found


def evolve_by_recounts(
    codes: np.ndarray,
    goals: PackedGoals,
    asked: Asked,
    rng: np.random.Generator,
    *,
    generations: int,
    children: int,
    shares: Shares,
) -> list[float]:
    """Lets rows evolve, in place, and returns the loss after each generation, which never rises.

    The loss is that of the tables, whose change is counted, and that of the queries, which are
    asked of each child as a whole. Every second child is a crossover. The best child replaces its
    parent if it is better.
    """
    errors = goals.errors(codes)
    of_tables, of_queries = goals.loss(errors), asked.loss(codes)
    losses = []
    for generation in range(generations):
        rows = rng.integers(len(codes), size=children)
        axes = rng.integers(codes.shape[1], size=children)
        news = rng.integers(0, np.array(asked.domain.sizes)[axes])
        crossed = np.arange(children) % 2 == 1
        news[crossed] = codes[rng.integers(len(codes), size=children), axes][crossed]
        best = None
        for row, axis, new in zip(rows, axes, news, strict=True):
            old = codes[row, axis]
            if new == old:
                continue
            own = of_tables + change(codes[row], axis, new, errors, goals)
            codes[row, axis] = new
            answered = asked.loss(codes)
            codes[row, axis] = old
            if own + answered < (of_tables + of_queries if best is None else sum(best[:2])):
                best = own, answered, row, axis, new
        if best is not None:
            of_tables, of_queries, row, axis, new = best
            replace(codes[row], axis, new, errors, goals)
            codes[row, axis] = new
        losses.append(of_tables + of_queries)
        shares.reach((generation + 1) / generations)
    return losses
