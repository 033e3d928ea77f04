"""How far relaxed rows of numbers and categories are from the noisy tables of half-spaces."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from sdv_privpgd.base.domain import Clique, Domain
from sdv_privpgd.privacy.half_spaces import Cut
from sdv_privpgd.synthesize.ranks import Ranks
from sdv_privpgd.synthesize.wanted import Wanted

_EXACT = 1e-3
"""Standard deviation, in records, that stands for an answer without noise."""

_NARROW, _NARROWEST = 0.02, 1e-3
"""The narrowest intervals of ranks that a sigmoid is told of, and that at an end of all ranks."""


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
                np.full(own.shape[1], total**2 / max(table.variance, _EXACT**2) / cells)
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
            line.exact(own) if slope is None else line.straight(own)
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
                scale = np.maximum(np.minimum(gaps[1:], gaps[:-1]), _NARROW)
                # Beyond 0 and 1 there are no rows that make up for those a sigmoid loses.
                scale = np.maximum(np.minimum.reduce([scale, exact, 1 - exact]), _NARROWEST)
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

    def exact(self, ranks: Float[Tensor, " row"]) -> Float[Tensor, " row"]:
        """The place of the code that each rank lies in."""
        return self.places[torch.searchsorted(self.inner, ranks.contiguous())]

    def between(self, ranks: Float[Tensor, " row"]) -> Float[Tensor, " row"]:
        """The place of each rank: linear between the middles of neighboring codes."""
        if len(self.places) == 1:
            return ranks * 0 + self.places[0]
        below = torch.searchsorted(self.middles, ranks.detach().contiguous()) - 1
        below = below.clamp(0, len(self.places) - 2)
        low, high = self.middles[below], self.middles[below + 1]
        part = ((ranks - low) / (high - low)).clamp(0.0, 1.0)
        return self.places[below] + part * (self.places[below + 1] - self.places[below])

    def straight(self, ranks: Float[Tensor, " row"]) -> Float[Tensor, " row"]:
        """The exact place of each rank, with the gradient of the one between."""
        between = self.between(ranks)
        return between + (self.exact(ranks) - between).detach()
