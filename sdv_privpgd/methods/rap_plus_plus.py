"""RAP++: adaptive questions on numbers that no bins hold, half-spaces and mixed marginals."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from itertools import combinations, product
from typing import TYPE_CHECKING

import numpy as np

from sdv_privpgd.base.arguments import check_fields, check_integer
from sdv_privpgd.base.domain import Clique, Domain
from sdv_privpgd.base.linear_thresholds import Cut, Line
from sdv_privpgd.base.progress import Progress, silent
from sdv_privpgd.base.words import listed
from sdv_privpgd.estimate.consistency import Possible
from sdv_privpgd.estimate.noisy_tables import estimate_total
from sdv_privpgd.methods.adaptive import SELECTING, whole_counts
from sdv_privpgd.methods.method import EngineMethod, Importance, MatchError
from sdv_privpgd.methods.pipeline import noise_of
from sdv_privpgd.privacy.curator import Curator
from sdv_privpgd.privacy.queries import (
    CutMarginalQuery,
    MarginalQuery,
    Measurement,
    ModelErrorQuery,
    exact_answers,
)
from sdv_privpgd.synthesize.engine import RAP_PLUS_PLUS, Engine, Model

if TYPE_CHECKING:
    from sdv_privpgd.columns.column import Column

LENGTH = 1 << 16
"""The length of a line, from the first place to the last."""

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
    others = [name for name, size in domain.size_of.items() if name not in labels and size > 1]
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
    places = {}
    for (name, line), axis in zip(lines.items(), domain.axes(lines), strict=True):
        held = codes[:, axis]
        places[name] = np.array(line.places)[held[held < len(line.places)]]
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
    weight = 1 << 11  # the largest weight of a direction
    rng = np.random.default_rng(seed)
    names = [name for name, line in lines.items() if len(line.places) > 1]
    if len(names) < 2:
        return []
    own = codes[:, domain.axes(names)]
    own = own[(own < [len(lines[name].places) for name in names]).all(axis=1)]
    if not len(own):
        return []
    points = np.stack(
        [np.array(lines[name].places)[own[:, at]] for at, name in enumerate(names)], axis=1
    )
    spread = np.maximum(points.std(axis=0), 1.0)
    conditions = list(labels) or [
        name for name in domain.attributes if name not in lines and domain.size((name,)) > 1
    ]
    found: list[Asked] = []
    for number in range(directions):
        most = len(names) if number % 2 == 0 else min(int(rng.integers(2, 4)), len(names))
        used = np.sort(rng.permutation(len(names))[:most])
        theta = rng.standard_normal(most) / spread[used]
        weights = np.rint(weight * theta / np.abs(theta).max()).astype(np.int64)
        clique = () if not conditions else (conditions[int(rng.integers(len(conditions)))],)
        used, weights = used[weights != 0], weights[weights != 0]
        cut = _at_quantiles(
            tuple(lines[names[place]] for place in used),
            tuple(weights.tolist()),
            points[:, used] @ weights,
            _TOGETHER,
        )
        if cut is not None and domain.size(clique) * cut.size <= _MOST_CELLS:
            found.append(CutMarginalQuery(clique, (cut,)))
    return found


def _evenly(line: Line, number: int) -> Cut:
    """A line cut between codes: all that are few, else into about as many equal numbers of them."""
    # In its own table a number of so many codes has an interval for each: a value that most rows
    # have, as 0, would else be taken for its neighbor.
    each = 256
    last = len(line.places) - 1
    number = len(line.places) if len(line.places) <= each else number
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


FIRST = Fraction(1, 5)
"""Share of the budget for each column's own table."""

FEWEST = 10
"""An ordered attribute of fewer values is a category."""

_ROWS = 20_000
"""Rows of a model whose answers stand for it."""


@dataclass(frozen=True, kw_only=True)
class RAPPlusPlus(EngineMethod):
    """Asks how many rows of each class are beyond hyperplanes, and for marginals of mixed types.

    Vietri et al. 2022 (RAP++), Algorithm 2: numbers stay numbers. In each of T rounds the K
    questions are chosen which the model answers worst. They are class-conditional: tables of two
    categories and the label (their CM), of numbers below thresholds and categories with it (MM),
    and of the side of a random hyperplane with it (LT). ``AnnealedProjection`` makes rows of them.

    The curator holds codes. So that no number is binned, a fit gives each column of numbers a grid
    of up to ``num_bins`` cells, or the still finer ones that it finds; a number stands for the
    middle of its cell, scaled to whole numbers over the column's public range. Questions about
    several columns have the sides of planes alone; a number's own table has an interval for each
    of its codes up to 256 of them, and else 100. Categories that are in order have no distances,
    and are categories. Ours differs in six ways:

    - The published code adds new noise to all earlier answers in each round, and charges for those
      that are new: after 50 rounds it has spent 25 times what it says. Here each answer is bought
      once, the choices are paid for, and the sensitivities are exact.
    - Ranges are declared or found privately; theirs are the private table's own.
    - A question is a table: all classes, and several parallel hyperplanes. That changes by as
      little as a single count between neighbors, so it costs no more and says more.
    - Thresholds are at quantiles of the noisy columns' rows. Theirs are standard normal over
      numbers in [0, 1], so that most of their half-spaces hold all rows or none.
    - The exponential mechanism chooses one question after another, by L1 errors less the noise;
      the kinds of questions take turns, and no two of a round are about the same columns.
    - Each column's own table, by the label, comes first.

    When to use it: where thresholds of wide-ranging numbers and a linear model of a label matter
    more than anything else, and to compare (the guide has the errors).

    Attributes:
        importance: The columns that it names are the labels. Without any, each question that needs
            one has a category in its place.
        rounds: T; the published code takes 50, each with a new optimization.
        queries: K, of a round.
        directions: Random hyperplanes' directions that are candidates: half of them over all
            numbers, the others over two or three.
        num_bins: The cells of a number that a fit gives it, unless it is told how many.
        nominal: Attributes whose codes have no order. A fit knows them from the declarations.
        lines: Where codes of numbers lie. A fit knows it, too; without it they are equally far
            apart.
        seed: Of the directions, which are public. No noise depends on it.

    Raises:
        ValueError: For settings that no fit can have, and for other factors than ``TARGET``.

    >>> import pandas as pd
    >>> from sdv_privpgd import Boolean, Numerical, fit_table
    >>> from sdv_privpgd.synthesize.rap_plus_plus import AnnealedProjection
    >>> table = pd.DataFrame({"age": [20, 70] * 500, "ill": [False, True] * 500})
    >>> columns = {"age": Numerical(0, 99, decimal_places=0), "ill": Boolean()}
    >>> method = RAPPlusPlus(engine=AnnealedProjection(num_components=100, steps=20))
    >>> fitted = fit_table(table, columns, epsilon=1.0, method=method)
    >>> "tables of all columns" in [charge.what for charge in fitted.ledger.charges]
    True
    """

    engine: Engine | str = "rap++"
    importance: Importance = field(default_factory=dict)
    rounds: int = 8
    queries: int = 6
    directions: int = 400
    num_bins: int = 1_024
    nominal: tuple[str, ...] = ()
    lines: tuple[Line, ...] = ()
    seed: int = 0

    asks = "half-spaces"
    takes_factors = False
    needs_table = "its answers are half-spaces of numbers, which no other engine can use"

    citation = RAP_PLUS_PLUS

    def __post_init__(self) -> None:
        super().__post_init__()
        check_fields(self, check_integer, "rounds", "queries")
        check_fields(self, check_integer, "directions", "seed", least=0)
        check_fields(self, check_integer, "num_bins", least=2)

    def for_table(self, columns: "Sequence[Column]", possible: Possible) -> "RAPPlusPlus":
        """Returns the method that knows where the codes of numbers lie: in the middle of bins.

        Categories have no line, even those in order: no distance between them is known.
        """
        lines = []
        for column in columns:
            if column.is_ordered and column.sdtype != "ordinal" and column.num_values >= FEWEST:
                codes = np.arange(column.num_values)
                middles = np.asarray(column.at(codes, np.full(len(codes), 0.5)), dtype=np.float64)
                lines.append(line_of(column.name, middles, nullable=column.nullable))
        names = tuple(column.name for column in columns)
        return replace(self.with_possible(possible), lines=tuple(lines), nominal=names)

    def require(self, domain: Domain) -> None:
        super().require(domain)
        numbers = [line.name for line in self.lines if line.name in self.importance]
        if numbers:
            raise MatchError(
                "RAPPlusPlus takes rows apart by the values of its targets, and "
                f"{listed([*map(repr, numbers)])} has too many of them, as far as is declared: "
                "declare few, or groups of them as categories, or choose another method."
            )

    def num_fits(self, domain: Domain) -> int:
        del domain
        return self.rounds + 1

    def counted(self, measurements: Sequence[Measurement]) -> str:
        del measurements
        by = " by ".join(["", *self.importance][:2])
        return (
            f"each column{by}, and what was chosen privately, {self.queries:,} questions a "
            "round, of marginals and of the rows beyond random hyperplanes of numbers"
            f"{by}"
        )

    def measure(self, curator: Curator, *, progress: Progress = silent) -> list[Measurement]:
        """Returns the measurements of all rounds, bought with all that is left of the budget."""
        domain = curator.domain
        lines = self._lines(domain)
        labels = tuple(each for each in self.importance if each in domain.attributes)
        labels = tuple(each for each in labels if each not in lines)
        first = own_tables(domain, lines, labels)
        follows = bool(planned(domain, lines, labels))
        share = curator.ledger.remaining * (FIRST if follows else 1)
        measured = curator.measure(first, share, what="tables of all columns", progress=progress)
        if not follows:
            return measured
        model = self.fit(domain, curator.measurements)
        rows = model.sample(max(_ROWS, model.block), self.seed)
        left = candidates(
            domain, lines, labels, codes=rows, directions=self.directions, seed=self.seed
        )
        if not left:  # all tables are too large, or rows of the model have one value of a number
            rest = curator.ledger.remaining
            return measured + curator.measure(first, rest, what="tables of all columns, again")
        rounds = max(min(self.rounds, len(left) // self.queries), 1)
        for index in progress(range(rounds), "select"):
            if index:
                model = self.fit(domain, curator.measurements)
            remaining = curator.ledger.remaining
            step = remaining / (rounds - index)
            number = min(self.queries, len(left))
            chosen = self._chosen(curator, model, left, number, step)
            # The tables get all that the choices left of the round; a free choice leaves all.
            measured += curator.measure(
                chosen,
                curator.ledger.remaining - (remaining - step),
                what="worst fitted half-spaces and marginals",
            )
        return measured

    def _chosen(
        self, curator: Curator, model: Model, left: list[Asked], number: int, step: Fraction
    ) -> list[Asked]:
        """Takes the worst fitted questions out of those that are left, one after another."""
        domain = curator.domain
        total = estimate_total(domain, curator.measurements).value
        stddev = noise_of(curator.ledger, left[:1], (1 - SELECTING) * step / number)
        rows = model.sample(max(_ROWS, model.block), self.seed)
        scale = total / len(rows)
        scores = [
            ModelErrorQuery(
                clique=asked.clique,
                cuts=asked.cuts if isinstance(asked, CutMarginalQuery) else (),
                expected=whole_counts(scale * found),
                bias=round(math.sqrt(2 / math.pi) * stddev * found.size),
            )
            for asked, found in zip(left, exact_answers(left, domain, rows), strict=True)
        ]
        chosen: list[Asked] = []
        for turn in range(number):
            places = _open_to(left, chosen, turn)
            at = curator.select(
                [scores[place] for place in places],
                SELECTING * step / number,
                what="worst fitted half-space or marginal",
            )
            best = places[at]
            chosen.append(left.pop(best))
            scores.pop(best)
        return chosen

    def _lines(self, domain: Domain) -> dict[str, Line]:
        """Where the codes of each number lie."""
        lines = {line.name: line for line in self.lines if line.name in domain.attributes}
        if self.lines:
            return {name: lines[name] for name in domain.attributes if name in lines}
        return {
            name: line_of(name, np.arange(size))
            for name, size in domain.size_of.items()
            if size >= FEWEST and name not in self.nominal
        }


def _open_to(left: Sequence[Asked], chosen: Sequence[Asked], turn: int) -> list[int]:
    """The places of the questions whose turn it is, of columns that no other of the round is about.

    Tables of categories alone, those of mixed types and half-spaces take turns. All questions where
    there are none.
    """
    kinds, columns = [], []
    for asked in (*left, *chosen):
        cuts = asked.cuts if isinstance(asked, CutMarginalQuery) else ()
        kinds.append(max((min(len(cut.lines), 2) for cut in cuts), default=0))
        columns.append(frozenset([*asked.clique, *(o.name for cut in cuts for o in cut.lines)]))
    taken, present = columns[len(left) :], sorted(set(kinds[: len(left)]))
    free = [place for place in range(len(left)) if columns[place] not in taken]
    own = [place for place in free if kinds[place] == present[turn % len(present)]]
    return own or free or list(range(len(left)))


METHODS = {"rap++": RAPPlusPlus}
