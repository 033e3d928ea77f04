"""RAP++: relaxed rows of numbers and categories, moved while soft thresholds become steep.

A number's codes have ranks: each code is as wide as the share of rows that have it.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from sdv_privpgd.base.arguments import check_fields, check_integer, check_positive
from sdv_privpgd.base.domain import Clique, Domain
from sdv_privpgd.base.linear_thresholds import Cut, Line
from sdv_privpgd.base.progress import Progress, Shares, silent
from sdv_privpgd.estimate.noisy_tables import EXACT, estimate_total, noisy_tables
from sdv_privpgd.privacy.queries import CutMarginalQuery, Measurement
from sdv_privpgd.synthesize.engine import RAP_PLUS_PLUS, TABLES, Model
from sdv_privpgd.synthesize.relaxed_projection import (
    Adam,
    Mixture,
    MixtureEngine,
    device_of,
    products,
    softmaxes,
)


@dataclass(frozen=True, kw_only=True, eq=False)
class Target:
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
    """The line of each attribute that some question cuts."""
    asked = [each.query for each in measurements if isinstance(each.query, CutMarginalQuery)]
    return {line.name: line for query in asked for cut in query.cuts for line in cut.lines}


def targets_of(
    domain: Domain, measurements: Sequence[Measurement], lines: Mapping[str, Line]
) -> list[Target]:
    """What tables and tables of half-spaces want of rows; other answers are left out.

    Codes of an attribute that lies on a line are told apart by thresholds between their places.
    """
    tables = [
        _told_apart(clique, (), table.counts, table.variance, lines)
        for clique, table in noisy_tables(domain, measurements).items()
    ]
    for each in measurements:
        if isinstance(each.query, CutMarginalQuery):
            own, counts = each.query, each.answer.astype(np.float64)
            tables.append(_told_apart(own.clique, own.cuts, counts, each.stddev**2, lines))
    return tables


def _told_apart(
    clique: Clique,
    cuts: tuple[Cut, ...],
    counts: np.ndarray,
    variance: float,
    lines: Mapping[str, Line],
) -> Target:
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
    return Target(
        clique=names, cuts=(*own, *cuts), counts=counts.transpose(order), variance=variance
    )


@dataclass(frozen=True, kw_only=True, eq=False)
class Ranks:
    """Where the codes of a number lie in [0, 1], by its noisy table. Public.

    A relaxed row's number is moved along its rank, not along its value. Half of all rows may have
    one value, and a tenth of them the upper 99 % of a range: a sigmoid that is as wide as their
    distance in values says nothing, and pushes rows away from where they are right. Along ranks all
    rows are equally far apart, so that a sigmoid of any slope leaves a column alone that is right.
    """

    line: Line  # the places of the codes
    edges: np.ndarray  # the rank at which each code begins, and 1
    missing: float  # the share of missing

    @classmethod
    def of(cls, line: Line, targets: Sequence[Target]) -> "Ranks":
        """By the first table that cuts this number alone; codes are alike where there is none."""
        size, even = len(line.places), 0.1  # of the ranks, so that what looks empty can be reached
        shares, missing = np.full(size, 1 / size), 0.0
        for table in targets:
            alone = (cut.lines == (line,) and cut.weights[0] > 0 for cut in table.cuts)
            number = next((axis for axis, is_alone in enumerate(alone) if is_alone), None)
            if number is not None:
                shares, missing = _code_shares(line, table, number)
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

    def to_values(self, ranks: np.ndarray) -> np.ndarray:
        """The values of ranks: 0 where the first code begins, and 1 where the last ends."""
        return np.interp(ranks, self.edges, np.linspace(0, 1, len(self.edges)))


def _code_shares(line: Line, table: Target, number: int) -> tuple[np.ndarray, float]:
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
        targets: Sequence[Target],
        total: float,
        device: torch.device,
    ) -> None:
        """Takes the tables, over ``total`` records, and the ranks of the numbers, in order."""
        self._categories = tuple(name for name in domain.attributes if name not in ranks)
        self._sizes = domain.shape(self._categories)
        self._lines = [_RankPlaces.of(own, device) for own in ranks.values()]
        cells = sum(table.counts.size for table in targets)
        alike: dict[tuple[Clique, int | None], list[Target]] = {}
        for table in targets:
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
                    targets=torch.tensor(np.concatenate(shares, axis=1), device=device).float(),
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
                cells = products([one, *(own[name] for name in block.clique)])
                above, there = block.cuts[0].ends(numbers, logs, slope)
                answers = block.cuts[0].apart(cells.T @ above, cells.T @ there, cells.sum(dim=0))
            else:
                parts = [own[name] for name in block.clique]
                for cuts in block.cuts:
                    ends = cuts.ends(numbers, logs, slope)
                    parts.append(cuts.apart(*ends, one[:, 0]))
                answers = products([one, *parts[:-1]]).T @ (parts[-1] if parts else one)
            errors = answers.reshape(block.targets.shape) / len(one) - block.targets
            terms.append((errors.square().sum(dim=0) * block.weights).sum())
        return torch.stack(terms).sum()


@dataclass(frozen=True)
class _Cuts:
    """Cuts whose thresholds stand one beside another."""

    weights: Float[Tensor, "coordinate threshold"]  # of all places, then of all ranks
    thresholds: Float[Tensor, " threshold"]
    used: Float[Tensor, "number threshold"] | None
    """Where a place may be missing; ``None`` where none may."""
    firsts: list[slice]
    nullable: list[bool]

    @classmethod
    def of(cls, cuts: Sequence[Cut], ranks: Mapping[str, Ranks], device: torch.device) -> "_Cuts":
        # The narrowest intervals of ranks that a sigmoid is told of, and that at an end of all.
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
    cuts: list[_Cuts]  # one for each axis after the clique's
    targets: Float[Tensor, "cell interval"]
    weights: Float[Tensor, " interval"]


@dataclass(frozen=True)
class _RankPlaces:
    """What places the ranks of a number have."""

    inner: Float[Tensor, " edge"]
    middles: Float[Tensor, " code"]
    places: Float[Tensor, " code"]

    @classmethod
    def of(cls, ranks: Ranks, device: torch.device) -> "_RankPlaces":
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


_FINER = 10.0
"""Adam moves a log-share by the learning rate, and a rank by so many times less."""


@dataclass(frozen=True, kw_only=True)
class AnnealedProjection(MixtureEngine):
    """Moves relaxed rows of numbers and categories until their answers are the noisy ones.

    Vietri et al. 2022 (RAP++), Algorithm 1: a relaxed row has one real number for each numeric
    column, which no bins hold, and a distribution for each category. Thresholds are sigmoids, whose
    slope is doubled whenever it has brought all that it can. It sees noisy answers only, so all it
    does is post-processing. With ``RAPPlusPlus`` it is the published method; other strategies ask
    for tables alone, of which it makes what RAP does. Ours differs in six ways:

    - A number lies among the codes of its column's fine grid, and is drawn from its cell. It is
      moved along its rank in the column's noisy table (``Ranks``), theirs along its value: of a
      skewed number nearly all rows then lie within one sigmoid, which pushes them all away from
      where they were right. A sigmoid is as wide as its neighboring thresholds are far apart.
    - A half-space sees the exact number of each row, with the gradient of the one between codes:
      else a value that many rows share, as 40 hours a week, is taken apart by thresholds near it.
    - Shares are softmaxes of free numbers; the published code takes a sparse projection.
    - An error counts by the noise of its table, and each answer is used with the one noise that was
      paid for: the published code noises the answers of earlier rounds anew in each, at no charge.
    - It starts at the columns' noisy tables, put together at random; theirs starts uniformly.
    - All questions are fitted together; theirs takes turns between the classes of questions.

    Attributes:
        num_components: Relaxed rows. Time and memory grow in proportion.
        steps: The largest number of steps at one slope.
        slopes: How many slopes there are, each twice the one before.
        first_slope: The slope at the start, in neighboring thresholds' distances. The published
            code begins at 2 over a whole range, and doubles ten times. From 4 on (8 slopes) one
            fit is nearer to answers without noise; on Adult at epsilon 1 all rounds together came
            out worse with it, in three fits of either, whose spread is not much less.
        learning_rate: Adam's, of numbers whose softmax is a share. It is halved with each second
            doubling.
        tolerance: A slope is done when 20 steps lower the loss by less than this share of itself.
        seed: The seed of the start. No private noise depends on it.
        enable_gpu: Whether to use CUDA where there is a device.
    """

    steps: int = 200
    slopes: int = 10
    first_slope: float = 1.0
    tolerance: float = 0.02

    title = (
        "Relaxed rows, with numbers that were not binned, were fitted to the noisy counts by Adam, "
        "with thresholds as sigmoids of growing slope"
    )
    citation = RAP_PLUS_PLUS
    quick = {"num_components": 50, "steps": 10, "slopes": 2}  # noqa: RUF012
    takes = (TABLES, "half-spaces")
    takes_groups = False
    nanoseconds = 15

    def __post_init__(self) -> None:
        super().__post_init__()
        check_fields(self, check_integer, "slopes")
        check_fields(self, check_positive, "first_slope")

    def seconds(self, domain: Domain) -> float:
        return self.slopes * super().seconds(domain)

    def fit(
        self,
        domain: Domain,
        measurements: Sequence[Measurement],
        *,
        warm_start: Model | None = None,
        progress: Progress = silent,
    ) -> Mixture:
        """The relaxed rows that are nearest to the measured tables, by steps and not by sigmoids.

        Each fit starts anew, and ``warm_start`` is not used: steep sigmoids leave the numbers of
        a model of other answers where they are.
        """
        del warm_start
        device = device_of(enable_gpu=self.enable_gpu)
        lines = lines_of(measurements)
        total = estimate_total(domain, measurements).value
        targets = targets_of(domain, measurements, lines)
        ranks = {
            name: Ranks.of(lines[name], targets) for name in domain.attributes if name in lines
        }
        rows = self._started(domain, ranks, targets, device)
        shares = Shares(progress, "fit")
        model = rows.mixture()
        if targets:
            loss = HalfSpaceLoss(domain, ranks, targets, total, device)
            model = self._annealed(rows, loss, shares)
        shares.reach(1.0)
        return model

    def _annealed(self, rows: "_RelaxedRows", loss: HalfSpaceLoss, shares: Shares) -> Mixture:
        """The rows, moved slope by slope, where their exact answers were best."""
        lot = 20  # steps after which it is asked whether a slope still brings anything
        best, kept = float(loss(*rows.relaxed()).detach()), rows.mixture()
        for number in range(self.slopes):
            slope, before = self.first_slope * 2**number, float("inf")
            adam = Adam(rows.parameters)
            rate = self.learning_rate * 0.5 ** (number / 2)
            for step in range(1, self.steps + 1):
                found = loss(*rows.relaxed(), slope=slope)
                adam.step(found, rate)
                with torch.no_grad():
                    rows.ranks.clamp_(0.0, _FINER)
                if step % lot == 0:
                    now = float(found.detach())
                    if now > (1 - self.tolerance) * before:
                        break
                    before = now
            exact = float(loss(*rows.relaxed()).detach())
            if exact <= best:
                best, kept = exact, rows.mixture()
            shares.reach((number + 1) / self.slopes)
        return kept

    def _started(
        self,
        domain: Domain,
        ranks: Mapping[str, Ranks],
        targets: Sequence[Target],
        device: torch.device,
    ) -> "_RelaxedRows":
        categories = tuple(name for name in domain.attributes if name not in ranks)
        number = self.num_components
        rng = np.random.default_rng(self.seed)
        placed = [(rng.permutation(number) + 0.5) / number for _ in ranks]
        missing = np.tile([own.missing for own in ranks.values()], (number, 1))
        drawn = [_shares(domain.size((name,)), name, targets) for name in categories]
        mean = np.concatenate([np.zeros(0), *drawn])
        # Each relaxed row is a little different from the others: else they would stay alike.
        shares = mean * np.exp(rng.standard_normal((number, len(mean))))
        chance = np.clip(missing, 1e-4, 1 - 1e-4)
        moved = np.stack(placed, axis=1) if placed else np.zeros((number, 0))
        nullable = torch.tensor([own.line.nullable for own in ranks.values()], device=device)
        tensor = lambda values: torch.tensor(values, device=device).float().requires_grad_()
        return _RelaxedRows(
            ranks=tensor(moved * _FINER),
            absent=tensor(np.log(chance / (1 - chance))),
            logits=tensor(np.log(np.maximum(shares, 1e-6))),
            nullable=nullable.bool(),
            categories=domain.project(categories),
            domain=domain,
            numbers=ranks,
        )


@dataclass(frozen=True)
class _RelaxedRows:
    """The numbers that are moved: ranks, log-odds of missing, and log-shares."""

    ranks: Tensor
    absent: Tensor
    logits: Tensor
    nullable: Tensor
    categories: Domain
    domain: Domain
    numbers: Mapping[str, Ranks]

    @property
    def parameters(self) -> list[Tensor]:
        absent = [self.absent] if bool(self.nullable.any()) else []
        return [each for each in (self.ranks, *absent, self.logits) if each.numel()]

    def relaxed(self) -> tuple[Tensor, Tensor, Tensor]:
        """Ranks in [0, 1], the chances that they are there, and the shares of codes."""
        there = torch.where(self.nullable, torch.sigmoid(-self.absent), 1.0 + 0.0 * self.absent)
        shares = softmaxes(self.logits, self.categories) if self.logits.numel() else self.logits
        return self.ranks / _FINER, there, shares

    @torch.no_grad()
    def mixture(self) -> Mixture:
        """The rows as components: in each of them a number has one code, or is missing."""
        placed, there, shares = (each.cpu().numpy() for each in self.relaxed())
        number, missing = len(shares), 1 - there
        parts = np.split(shares, np.cumsum(self.categories.sizes)[:-1].astype(int), axis=1)
        of_names = dict(zip(self.categories.attributes, parts, strict=False))
        for at, (name, own) in enumerate(self.numbers.items()):
            size, values = len(own.line.places), own.to_values(placed[:, at])
            codes = np.floor(values * size).clip(0, size - 1)
            of_names[name] = np.zeros((number, own.line.size), dtype=np.float32)
            of_names[name][np.arange(number), codes.astype(np.int64)] = 1 - missing[:, at]
            of_names[name][:, -1] += missing[:, at]
        return Mixture(
            domain=self.domain,
            shares=np.concatenate([of_names[name] for name in self.domain.attributes], axis=1),
        )


def _shares(size: int, name: str, targets: Sequence[Target]) -> np.ndarray:
    """The shares of a category by the first noisy table that has it.

    A code that surely holds no rows gets 1e-4: the logarithm must be finite.
    """
    held = (table.along(table.clique.index(name)) for table in targets if name in table.clique)
    counts = next(held, np.ones(size))
    return counts / max(counts.sum(), 1.0) + 1e-4
