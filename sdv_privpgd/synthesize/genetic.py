"""Private-GSD: rows evolve, one code at a time, until their tables are the noisy ones.

Numba compiles the loop over generations. All its arrays are arguments, never captured: the compiled
code holds no data.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, no_type_check

import numpy as np

from sdv_privpgd.base.arguments import check_fields, check_integer, check_share
from sdv_privpgd.base.domain import Domain
from sdv_privpgd.base.progress import Progress, Shares, silent
from sdv_privpgd.estimate.consistency import Possible
from sdv_privpgd.privacy.queries import Measurement
from sdv_privpgd.synthesize.engine import Engine, Goals, Model, Particles
from sdv_privpgd.synthesize.particles.compiler import inner, mixed, njit


@dataclass(frozen=True, kw_only=True)
class PrivateGSD(Engine):
    """Lets rows evolve by mutation and crossover to match the measured tables.

    Liu, Tang, Vietri & Wu 2023 (Private-GSD), Algorithm 1: each generation makes children of the
    best table of rows, each with one code changed, and keeps the best of them and of the elite. No
    gradient is needed. Only the cells that a changed code leaves and enters are counted. It sees
    noisy answers only, so all it does is post-processing. Ours differs in three ways: an error
    counts by the noise of its table, answers are not cut at 0 and 1 before, and queries that are no
    tables are left out.

    All pairs of Adult take about 2 seconds of one core. The loops are compiled at the first fit on
    a machine, which takes some 10 seconds more.

    Attributes:
        num_rows: Rows that evolve. More of them follow the tables more finely, and need more
            generations.
        generations: The largest number of generations.
        mutations: Children of a generation with any code of the attribute.
        crossovers: Children of a generation with the code of another row of the elite.
        elite: Tables of rows that live on.
        tolerance: The evolution ends when ``num_rows`` generations lower the loss by less than this
            share of itself.
        possible: For some cliques, the cells that can hold rows at all; the others are wanted
            empty.
        seed: The seed of all random choices here. No private noise depends on it.
    """

    num_rows: int = 2_000
    generations: int = 200_000
    mutations: int = 50
    crossovers: int = 50
    elite: int = 2
    tolerance: float = 1e-3
    possible: Possible = field(default_factory=dict, compare=False)
    seed: int = 0

    title = "The rows were fitted to the noisy counts by a genetic algorithm"
    citation = (
        "Liu, T., Tang, J., Vietri, G. & Wu, Z. S. (2023). Generating private synthetic data with "
        "genetic algorithms. ICML, PMLR 202, 22009–22027."
    )
    quick = {"num_rows": 50, "generations": 50}  # noqa: RUF012

    def __post_init__(self) -> None:
        check_fields(self, check_integer, "num_rows", "generations", "mutations", "elite")
        check_fields(self, check_integer, "crossovers", least=0)
        check_fields(self, check_share, "tolerance")

    def fit(
        self,
        domain: Domain,
        measurements: Sequence[Measurement],
        *,
        warm_start: Model | None = None,
        progress: Progress = silent,
    ) -> Particles:
        """The best table of rows, all equally likely.

        ``warm_start`` is a model from which the first elite is drawn; without one it is uniform.
        """
        rng = np.random.default_rng(self.seed)
        goals = PackedGoals.of(Goals.of(domain, measurements, self.possible), self.num_rows)
        shape = (self.elite, self.num_rows, len(domain))
        if warm_start is None:
            elite = rng.integers(0, domain.sizes, shape)
        else:
            seeds = rng.integers(2**32, size=self.elite).tolist()
            elite = np.stack([warm_start.sample(self.num_rows, seed) for seed in seeds])
        elite = np.ascontiguousarray(elite, dtype=np.int64)
        shares = Shares(progress, "fit")
        best = 0
        if len(goals.first) and len(domain):
            losses = np.array([goals.loss(goals.errors(codes)) for codes in elite])
            best = int(losses.argmin())
            errors = goals.errors(elite[best])
            state = rng.integers(2**64, size=1, dtype=np.uint64)
            sizes, left = np.array(domain.sizes, dtype=np.int64), self.generations
            while left:
                lot, before = min(self.num_rows, left), losses[best]
                best = evolve(
                    elite, losses, best, errors, sizes, goals, lot,
                    self.mutations, self.crossovers, state,
                )  # fmt: skip
                left -= lot
                if before - losses[best] <= self.tolerance * before:
                    break
                shares.reach(1 - left / self.generations)
        shares.reach(1.0)
        return Particles(domain=domain, codes=elite[best])


class PackedGoals(NamedTuple):
    """The goals as flat arrays, in numbers of rows.

    The cell of a row in a table is the table's first cell plus what each view adds for the row's
    code. A *look* is one view of one table.
    """

    wanted: np.ndarray  # the number of rows that each cell of each table should hold, float64
    weights: np.ndarray  # what a squared error of a number of rows counts, for each table
    first: np.ndarray  # the first cell of each table
    starts: np.ndarray  # the first look of each table, and their number
    axes: np.ndarray  # the attribute of each look
    offsets: np.ndarray  # where in ``places`` the codes of each look begin
    places: np.ndarray  # what each code of a look adds to the number of the cell
    tables: np.ndarray  # the table of each look
    looks: np.ndarray  # the looks at each attribute, attribute by attribute
    looks_from: np.ndarray  # where in ``looks`` each attribute begins, and their number

    @classmethod
    def of(cls, goals: Goals, num_rows: int) -> "PackedGoals":
        """The goals for a table of so many rows."""
        axes, offsets, tables, places, at = [], [], [], [], 0
        for table, (views, shares) in enumerate(zip(goals.tables, goals.shares, strict=True)):
            for place, view in enumerate(views):
                step = int(np.prod(shares.shape[place + 1 :]))
                axes.append(goals.views[view].axis)
                offsets.append(at)
                tables.append(table)
                places.append(np.array(goals.views[view].groups, dtype=np.int64) * step)
                at += len(places[-1])
        whole = lambda values: np.array(values, dtype=np.int64)
        before = lambda sizes: np.cumsum([0, *sizes], dtype=np.int64)
        sizes = [shares.size for shares in goals.shares]
        return cls(
            wanted=num_rows * np.concatenate([np.empty(0), *(s.ravel() for s in goals.shares)]),
            weights=np.array(goals.weights) / num_rows**2,
            first=before(sizes)[:-1],
            starts=before(map(len, goals.tables)),
            axes=whole(axes),
            offsets=whole(offsets),
            places=np.concatenate([whole([]), *places]),
            tables=whole(tables),
            looks=np.argsort(whole(axes), kind="stable"),
            looks_from=before(np.bincount(whole(axes), minlength=len(goals.domain))),
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
    """A random number below another, of the seed."""
    state[0] += np.uint64(0x9E3779B97F4A7C15)
    word = mixed(state[0])
    return np.int64((word >> np.uint64(32)) * np.uint64(number) >> np.uint64(32))
