"""How far relaxed rows of numbers and categories are from the noisy tables of half-spaces."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from sdv_privpgd.domain import Clique, Domain
from sdv_privpgd.estimate.noisy_tables import noisy_tables
from sdv_privpgd.privacy.half_spaces import Cut, Line
from sdv_privpgd.privacy.measurement import Measurement
from sdv_privpgd.privacy.queries import CutMarginalQuery

_EXACT = 1e-3
"""Standard deviation, in records, that stands for an answer without noise."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Wanted:
    """A noisy table: what it is over, its counts, and the variance of a cell. Public.

    >>> Wanted(clique=("ill",), cuts=(), counts=np.array([3.0, 4.0]), variance=1.0).clique
    ('ill',)
    """

    clique: Clique
    cuts: tuple[Cut, ...]
    counts: np.ndarray
    variance: float


def lines_of(measurements: Sequence[Measurement]) -> dict[str, Line]:
    """The line of each attribute that some question cuts.

    Raises ``ValueError`` for an attribute on several lines, and for places that do not ascend.

    >>> lines_of([])
    {}
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

    >>> wanted_of(Domain(("ill",), (2,)), [], {})
    []
    """
    found: list[Wanted] = []
    for clique, table in noisy_tables(domain, measurements).items():
        found.append(_told_apart(clique, (), table.counts, table.variance, lines))
    for each in measurements:
        if isinstance(each.query, CutMarginalQuery):
            counts = each.answer.astype(np.float64)
            query, variance = each.query, each.stddev**2
            found.append(_told_apart(query.clique, query.cuts, counts, variance, lines))
    return found


def _told_apart(
    clique: Clique,
    cuts: tuple[Cut, ...],
    counts: np.ndarray,
    variance: float,
    lines: Mapping[str, Line],
) -> Wanted:
    """The table with cuts in place of the attributes of its clique that lie on lines."""
    numbers = [axis for axis, name in enumerate(clique) if _size(lines.get(clique[axis])) > 1]
    kept = [axis for axis in range(len(clique)) if axis not in numbers]
    own = [
        Cut((line,), (2,), tuple((np.array(line.places[1:]) + line.places[:-1]).tolist()))
        for line in (lines[clique[axis]] for axis in numbers)
    ]
    order = [*kept, *numbers, *range(len(clique), counts.ndim)]
    names = tuple(clique[axis] for axis in kept)
    return Wanted(
        clique=names, cuts=(*own, *cuts), counts=counts.transpose(order), variance=variance
    )


def _size(line: Line | None) -> int:
    return 0 if line is None else len(line.places)


class HalfSpaceLoss:
    """The mean squared error of relaxed rows' answers, in standard deviations of the noise.

    A step at a threshold is a sigmoid of a given slope (Vietri et al. 2022, definitions 11 and 12),
    or a step where none is given: then numbers are those of their codes, as in rows that are drawn.

    >>> line = Line("age", (0, 10))
    >>> halves = Wanted(
    ...     clique=(), cuts=(Cut((line,), (1,), (5,)),), counts=np.array([5.0, 5.0]), variance=1.0
    ... )
    >>> loss = HalfSpaceLoss(
    ...     Domain(("age",), (2,)), {"age": line}, [halves], 10.0, torch.device("cpu")
    ... )
    >>> empty = torch.zeros(2, 0)
    >>> float(loss(torch.tensor([[0.0], [1.0]]), torch.ones(2, 1), empty))
    0.0
    >>> float(loss(torch.tensor([[1.0], [1.0]]), torch.ones(2, 1), empty))
    25.0
    """

    def __init__(
        self,
        domain: Domain,
        lines: Mapping[str, Line],
        wanted: Sequence[Wanted],
        total: float,
        device: torch.device,
    ) -> None:
        """Takes the tables, over ``total`` records, and the lines of the numbers, in order."""
        self._categories = tuple(name for name in domain.attributes if name not in lines)
        self._sizes = domain.shape(self._categories)
        self._lines = [torch.tensor(line.places, device=device).float() for line in lines.values()]
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
                np.full(own.shape[1], total**2 / max(table.variance, _EXACT**2) / cells)
                for table, own in zip(tables, shares, strict=True)
            ]
            self._blocks.append(
                _Block(
                    clique=clique,
                    cuts=[
                        _Cuts.of([table.cuts[at] for table in tables], tuple(lines), device)
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
        """The loss of rows with these values, chances that they are there, and shares of codes."""
        own = dict(
            zip(self._categories, torch.split(shares, list(self._sizes), dim=1), strict=True)
        )
        if slope is None:
            last = torch.tensor([max(len(line) - 1, 1) for line in self._lines])
            values = (values * last.to(values)).round() / last.to(values)
        places = [_between(own, line) for own, line in zip(values.T, self._lines, strict=True)]
        numbers = torch.stack(places, dim=1) if places else values
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

    weights: Float[Tensor, "number threshold"]
    thresholds: Float[Tensor, " threshold"]
    used: Float[Tensor, "number threshold"] | None
    """Where a place may be missing; ``None`` where none may."""
    firsts: list[slice]
    nullable: list[bool]

    @classmethod
    def of(cls, cuts: Sequence[Cut], names: Sequence[str], device: torch.device) -> "_Cuts":
        columns, steps, used, firsts = [], [], [], []
        for cut in cuts:
            own = np.array(cut.weights, dtype=np.float64)
            exact = np.array(cut.thresholds, dtype=np.float64)
            ranges = [line.places[-1] - line.places[0] for line in cut.lines]
            scale = exact.std() if len(exact) > 1 else 0.25 * np.linalg.norm(own * ranges)
            scale = max(float(scale), 1.0)
            column, missing = np.zeros((2, len(names)))
            axes = [names.index(line.name) for line in cut.lines]
            column[axes] = own / scale
            missing[axes] = [line.nullable for line in cut.lines]
            firsts.append(slice(len(steps), len(steps) + len(exact)))
            columns += [column] * len(exact)
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
        numbers: Float[Tensor, "row number"],
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


def _between(values: Float[Tensor, " row"], line: Float[Tensor, " code"]) -> Float[Tensor, " row"]:
    """The place of each value: linear between the places of neighboring codes."""
    if len(line) == 1:
        return values * 0 + line[0]
    reached = values * (len(line) - 1)
    below = reached.detach().floor().clamp(0, len(line) - 2).long()
    return line[below] + (reached - below) * (line[below + 1] - line[below])
