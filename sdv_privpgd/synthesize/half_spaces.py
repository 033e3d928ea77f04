"""What noisy tables of half-spaces ask of relaxed rows of numbers and categories.

A number's codes have ranks: each code is as wide as the share of rows that have it.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from sdv_privpgd.base.domain import Clique, Domain
from sdv_privpgd.base.half_spaces import Cut, Line
from sdv_privpgd.estimate.noisy_tables import EXACT, noisy_tables
from sdv_privpgd.privacy.queries import CutMarginalQuery, Measurement


@dataclass(frozen=True, kw_only=True, eq=False)
class Wanted:
    """A noisy table: what it is over, its counts, and the variance of a cell. Public."""

    clique: Clique
    cuts: tuple[Cut, ...]
    counts: np.ndarray
    variance: float

    def along(self, axis: int) -> np.ndarray:
        """The counts along one axis, at least 0."""
        others = tuple(each for each in range(self.counts.ndim) if each != axis)
        return np.maximum(self.counts.sum(axis=others), 0.0)


def lines_of(measurements: Sequence[Measurement]) -> dict[str, Line]:
    """The line of each attribute that some question cuts.

    Raises ``ValueError`` for an attribute on several lines, and for places that do not ascend.
    """
    found: dict[str, Line] = {}
    for each in measurements:
        if isinstance(each.query, CutMarginalQuery):
            for line in (line for cut in each.query.cuts for line in cut.lines):
                if found.setdefault(line.name, line) != line:
                    raise ValueError(f"{line.name!r} lies on several lines: ask along one alone.")
    for name, line in found.items():
        if any(np.diff(line.places) <= 0):
            raise ValueError(f"The places of {name!r} do not ascend: number its codes in order.")
    return found


def wanted_of(
    domain: Domain, measurements: Sequence[Measurement], lines: Mapping[str, Line]
) -> list[Wanted]:
    """What tables and tables of half-spaces want of rows; other answers are left out.

    Codes of an attribute that lies on a line are told apart by thresholds between their places.
    """
    tables = [
        (clique, (), table.counts, table.variance)
        for clique, table in noisy_tables(domain, measurements).items()
    ]
    tables += [
        (each.query.clique, each.query.cuts, each.answer.astype(np.float64), each.stddev**2)
        for each in measurements
        if isinstance(each.query, CutMarginalQuery)
    ]
    return [_told_apart(*table, lines) for table in tables]


def _told_apart(
    clique: Clique,
    cuts: tuple[Cut, ...],
    counts: np.ndarray,
    variance: float,
    lines: Mapping[str, Line],
) -> Wanted:
    """The table with cuts in place of the attributes of its clique that lie on lines."""
    axes = range(len(clique))
    numbers = [
        axis for axis in axes if clique[axis] in lines and len(lines[clique[axis]].places) > 1
    ]
    kept = [axis for axis in axes if axis not in numbers]
    own = [
        Cut((line,), (2,), tuple((np.array(line.places[1:]) + line.places[:-1]).tolist()))
        for line in (lines[clique[axis]] for axis in numbers)
    ]
    order = [*kept, *numbers, *range(len(clique), counts.ndim)]
    names = tuple(clique[axis] for axis in kept)
    return Wanted(
        clique=names, cuts=(*own, *cuts), counts=counts.transpose(order), variance=variance
    )


@dataclass(frozen=True, kw_only=True, eq=False)
class Ranks:
    """Where the codes of a number lie in [0, 1], by its noisy table. Public.

    A relaxed row's number is moved along its rank, not along its value. Half of all rows may have
    one value, and a tenth of them the upper 99 % of a range: a sigmoid that is as wide as their
    distance in values says nothing, and pushes rows away from where they are right. Along ranks all
    rows are equally far apart, so that a sigmoid of any slope leaves a column alone that is right.

    Attributes:
        line: The places of the codes.
        edges: The rank at which each code begins, and 1.
        missing: The share of missing.
    """

    line: Line
    edges: np.ndarray
    missing: float

    @classmethod
    def of(cls, line: Line, wanted: Sequence[Wanted]) -> "Ranks":
        """By the first table that cuts this number alone; codes are alike where there is none."""
        size, even = len(line.places), 0.1  # of the ranks, so that what looks empty can be reached
        shares, missing = np.full(size, 1 / size), 0.0
        for table in wanted:
            alone = (cut.lines == (line,) and cut.weights[0] > 0 for cut in table.cuts)
            number = next((axis for axis, is_alone in enumerate(alone) if is_alone), None)
            if number is not None:
                shares, missing = _shares(line, table, number)
                break
        shares = (1 - even) * shares + even / size
        edges = np.concatenate([[0.0], np.cumsum(shares)])
        return cls(line=line, edges=edges / edges[-1], missing=missing)

    @property
    def middles(self) -> np.ndarray:
        """The rank in the middle of each code."""
        return (self.edges[1:] + self.edges[:-1]) / 2

    def threshold(self, place: float) -> float:
        """The rank that is exceeded by just the codes whose places exceed this one."""
        return float(self.edges[np.searchsorted(self.line.places, place, side="right")])

    def of_values(self, values: np.ndarray) -> np.ndarray:
        """The ranks of values that are 0 where the first code begins, and 1 where the last ends."""
        return np.interp(values, np.linspace(0, 1, len(self.edges)), self.edges)

    def to_values(self, ranks: np.ndarray) -> np.ndarray:
        """The values of ranks."""
        return np.interp(ranks, self.edges, np.linspace(0, 1, len(self.edges)))


def _shares(line: Line, table: Wanted, number: int) -> tuple[np.ndarray, float]:
    """The share of each code, the same for all of an interval, and that of missing."""
    cut, size = table.cuts[number], len(line.places)
    counts = table.along(len(table.clique) + number)
    all_rows = max(float(counts.sum()), 1e-9)
    missing = float(counts[-1]) / all_rows if line.nullable else 0.0
    held = counts[: len(cut.thresholds) + 1]
    # A code is in the interval of as many thresholds as its weighted place exceeds.
    own = np.searchsorted(np.array(cut.thresholds), np.array(line.places) * cut.weights[0])
    codes = np.bincount(own, minlength=len(held))
    each = np.where(codes > 0, held / np.maximum(codes, 1), 0.0)[own]
    return (each / each.sum() if each.sum() > 0 else np.full(size, 1 / size)), missing


class HalfSpaceLoss:
    """The mean squared error of relaxed rows' answers, in standard deviations of the noise.

    A step at a threshold is a sigmoid of a given slope (Vietri et al. 2022, definitions 11 and 12),
    or a step where none is given. Thresholds of one number are thresholds of its rank; half-spaces
    see the numbers of codes, as in rows that are drawn.
    """

    def __init__(
        self,
        domain: Domain,
        ranks: Mapping[str, Ranks],
        wanted: Sequence[Wanted],
        total: float,
        device: torch.device,
    ) -> None:
        """Takes the tables, over ``total`` records, and the ranks of the numbers, in order."""
        self._categories = tuple(name for name in domain.attributes if name not in ranks)
        self._sizes = domain.shape(self._categories)
        self._lines = [_Places.of(own, device) for own in ranks.values()]
        cells = sum(table.counts.size for table in wanted)
        alike: dict[tuple[Clique, int | None], list[Wanted]] = {}
        for table in wanted:
            # What one cut each takes apart is answered together, by clique.
            key = table.clique, None if len(table.cuts) == 1 else len(alike)
            alike.setdefault(key, []).append(table)
        self._blocks: list[_Block] = []
        for (clique, _), tables in alike.items():
            size = domain.size(clique)
            shares = [table.counts.reshape(size, -1) / total for table in tables]
            weights = [
                np.full(own.shape[1], total**2 / max(table.variance, EXACT**2) / cells)
                for table, own in zip(tables, shares, strict=True)
            ]
            self._blocks.append(
                _Block(
                    clique=clique,
                    cuts=[
                        _Cuts.of([table.cuts[at] for table in tables], ranks, device)
                        for at in range(len(tables[0].cuts))
                    ],
                    wanted=torch.tensor(np.concatenate(shares, axis=1), device=device).float(),
                    weights=torch.tensor(np.concatenate(weights), device=device).float(),
                )
            )

    def __call__(
        self,
        values: Float[Tensor, "row number"],
        present: Float[Tensor, "row number"],
        shares: Float[Tensor, "row code"],
        slope: float | None = None,
    ) -> Float[Tensor, ""]:
        """The loss of rows with these ranks, chances that they are there, and shares of codes."""
        own = dict(
            zip(self._categories, torch.split(shares, list(self._sizes), dim=1), strict=True)
        )
        places = [
            line.of_ranks(own, moving=slope is not None)
            for own, line in zip(values.T, self._lines, strict=True)
        ]
        numbers = torch.cat([torch.stack(places, dim=1), values], dim=1) if places else values
        logs = present.clamp_min(1e-12).log()
        one = torch.ones_like(shares[:, :1]) if self._sizes else torch.ones_like(values[:, :1])
        terms = []
        for block in self._blocks:
            if len(block.cuts) == 1:
                cells = _product([one, *(own[name] for name in block.clique)])
                above, there = block.cuts[0].ends(numbers, logs, slope)
                answers = block.cuts[0].apart(cells.T @ above, cells.T @ there, cells.sum(dim=0))
            else:
                parts = [own[name] for name in block.clique]
                for cuts in block.cuts:
                    ends = cuts.ends(numbers, logs, slope)
                    parts.append(cuts.apart(*ends, one[:, 0]))
                answers = _product([one, *parts[:-1]]).T @ (parts[-1] if parts else one)
            errors = answers.reshape(block.wanted.shape) / len(one) - block.wanted
            terms.append((errors.square().sum(dim=0) * block.weights).sum())
        return torch.stack(terms).sum()


@dataclass(frozen=True)
class _Cuts:
    """Cuts whose thresholds stand one beside another."""

    weights: Float[Tensor, "coordinate threshold"]
    """Of all places, then of all ranks."""
    thresholds: Float[Tensor, " threshold"]
    used: Float[Tensor, "number threshold"] | None
    """Where a place may be missing; ``None`` where none may."""
    firsts: list[slice]
    nullable: list[bool]

    @classmethod
    def of(cls, cuts: Sequence[Cut], ranks: Mapping[str, Ranks], device: torch.device) -> "_Cuts":
        # The narrowest intervals of ranks that a sigmoid is told of, and that at an end of all
        # ranks.
        narrow, narrowest = 0.02, 1e-3
        columns, steps, used, firsts = [], [], [], []
        names = list(ranks)
        for cut in cuts:
            column, missing = np.zeros(2 * len(names)), np.zeros(len(names))
            axes = [names.index(line.name) for line in cut.lines]
            missing[axes] = [line.nullable for line in cut.lines]
            if len(cut.lines) == 1 and cut.weights[0] > 0:
                own = ranks[cut.lines[0].name]
                exact = np.array([own.threshold(each / cut.weights[0]) for each in cut.thresholds])
                column[len(names) + axes[0]] = 1.0
                gaps = np.diff([0.0, *exact, 1.0])
                scale = np.maximum(np.minimum(gaps[1:], gaps[:-1]), narrow)
                # Beyond 0 and 1 there are no rows that make up for those a sigmoid loses.
                scale = np.maximum(np.minimum.reduce([scale, exact, 1 - exact]), narrowest)
            else:
                exact = np.array(cut.thresholds, dtype=np.float64)
                weights = np.array(cut.weights, dtype=np.float64)
                column[axes] = weights
                ranges = [line.places[-1] - line.places[0] for line in cut.lines]
                gaps = (
                    np.diff(exact) if len(exact) > 1 else [0.25 * np.linalg.norm(weights * ranges)]
                )
                scale = np.minimum([*gaps, np.inf][: len(exact)], [np.inf, *gaps][-len(exact) :])
                scale = np.maximum(scale, 1.0)
            firsts.append(slice(len(steps), len(steps) + len(exact)))
            columns += [column / each for each in scale]
            used += [missing] * len(exact)
            steps += (exact / scale).tolist()
        nullable = [cut.nullable for cut in cuts]
        held = torch.tensor(np.stack(used, axis=1), device=device).float()
        return cls(
            weights=torch.tensor(np.stack(columns, axis=1), device=device).float(),
            thresholds=torch.tensor(steps, device=device).float(),
            used=held if any(nullable) else None,
            firsts=firsts,
            nullable=nullable,
        )

    def ends(
        self,
        numbers: Float[Tensor, "row coordinate"],
        logs: Float[Tensor, "row number"],
        slope: float | None,
    ) -> tuple[Float[Tensor, "row threshold"], Float[Tensor, "row threshold"]]:
        """How much of each row is above each threshold, and how much has all of its places."""
        gaps = numbers @ self.weights - self.thresholds
        above = (gaps > 0).float() if slope is None else torch.sigmoid(slope * gaps)
        if self.used is None:
            return above, torch.ones_like(above)
        there = torch.exp(logs @ self.used)
        return above * there, there

    def apart(
        self,
        above: Float[Tensor, "cell threshold"],
        there: Float[Tensor, "cell threshold"],
        all_rows: Float[Tensor, " cell"],
    ) -> Float[Tensor, "cell interval"]:
        """How much is in each interval of each cut, the missing in the last one."""
        found = []
        for first, nullable in zip(self.firsts, self.nullable, strict=True):
            held = there[:, first.start : first.start + 1]
            ends = torch.cat([held, above[:, first], torch.zeros_like(held)], dim=1)
            found.append(ends[:, :-1] - ends[:, 1:])
            if nullable:
                found.append(all_rows[:, None] - held)
        return torch.cat(found, dim=1)


@dataclass(frozen=True)
class _Block:
    """Tables that are answered together."""

    clique: Clique
    cuts: list[_Cuts]
    """One for each axis after the clique's."""
    wanted: Float[Tensor, "cell interval"]
    weights: Float[Tensor, " interval"]


def _product(parts: Sequence[Float[Tensor, "row _"]]) -> Float[Tensor, "row cell"]:
    """The products of one entry of each part, in order."""
    found = parts[0]
    for part in parts[1:]:
        found = (found[:, :, None] * part[:, None, :]).flatten(1)
    return found


@dataclass(frozen=True)
class _Places:
    """What places the ranks of a number have."""

    inner: Float[Tensor, " edge"]
    middles: Float[Tensor, " code"]
    places: Float[Tensor, " code"]

    @classmethod
    def of(cls, ranks: Ranks, device: torch.device) -> "_Places":
        parts = ranks.edges[1:-1], ranks.middles, np.array(ranks.line.places)
        return cls(*(torch.tensor(part, device=device).float() for part in parts))

    def of_ranks(self, ranks: Float[Tensor, " row"], *, moving: bool) -> Float[Tensor, " row"]:
        """The place of the code that each rank lies in.

        Where rows are ``moving``, its gradient is that of the place that is linear between the
        middles of neighboring codes.
        """
        exact = self.places[torch.searchsorted(self.inner, ranks.contiguous())]
        if not moving:
            return exact
        between = ranks * 0 + self.places[0]
        if len(self.places) > 1:
            below = torch.searchsorted(self.middles, ranks.detach().contiguous()) - 1
            below = below.clamp(0, len(self.places) - 2)
            low, high = self.middles[below], self.middles[below + 1]
            part = ((ranks - low) / (high - low)).clamp(0.0, 1.0)
            between = self.places[below] + part * (self.places[below + 1] - self.places[below])
        return between + (exact - between).detach()
