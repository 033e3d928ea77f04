"""RAP++: relaxed rows of numbers and categories, moved while soft thresholds become steep."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from sdv_privpgd.base.arguments import check_fields, check_integer, check_positive, check_share
from sdv_privpgd.base.domain import Clique, Domain
from sdv_privpgd.base.progress import Progress, Shares, silent
from sdv_privpgd.estimate.noisy_tables import estimate_total
from sdv_privpgd.privacy.queries import Measurement
from sdv_privpgd.synthesize.engine import TABLES, Engine, Model, dealt
from sdv_privpgd.synthesize.goals import too_many_components
from sdv_privpgd.synthesize.graphical import allotted
from sdv_privpgd.synthesize.half_spaces import HalfSpaceLoss, Ranks, Wanted, lines_of, wanted_of
from sdv_privpgd.synthesize.relaxed import Adam, device_of, mean_product, shares_of, softmaxes


@dataclass(frozen=True, kw_only=True, eq=False)
class MixedRows:
    """Equally likely relaxed rows, in each of which the attributes are independent. Public.

    Attributes:
        domain: The attributes of its rows and their numbers of codes.
        numbers: The attributes of which a relaxed row has one place, in the domain's order.
        missing: For each of them the share of missing in each relaxed row, (row, number), float32;
            the last code is missing's, where there is one.
        nullable: For each of them whether there is one.
        values: Where a number lies among its codes, 0 where the first one begins and 1 where the
            last one ends, (row, number), float32.
        shares: The shares of all codes of the other attributes, in order, (row, code), float32.
    """

    domain: Domain
    numbers: tuple[str, ...]
    nullable: tuple[bool, ...]
    missing: np.ndarray
    values: np.ndarray
    shares: np.ndarray

    def __post_init__(self) -> None:
        rows, others = len(self.values), sum(self.domain.shape(self.categories))
        expected = {
            "values": (rows, len(self.numbers)),
            "missing": (rows, len(self.numbers)),
            "shares": (rows, others),
        }
        for name, shape in expected.items():
            if getattr(self, name).shape != shape or not rows:
                raise ValueError(f"{name} needs shape {shape}, got {getattr(self, name).shape}.")
            getattr(self, name).setflags(write=False)

    @property
    def categories(self) -> tuple[str, ...]:
        """The other attributes, in order."""
        return tuple(name for name in self.domain.attributes if name not in self.numbers)

    @property
    def block(self) -> int:
        """The number of relaxed rows; a sample of so many rows uses each of them once."""
        return len(self.values)

    def marginal(self, clique: Clique) -> np.ndarray:
        """The probabilities of a clique's cells, axes in the clique's order."""
        return mean_product([self._of(name) for name in clique]).reshape(self.domain.shape(clique))

    def sample(self, num_rows: int, seed: int) -> np.ndarray:
        """Codes of shape (row, attribute), int64. The same seed gives the same rows.

        Relaxed rows are dealt like decks of cards. Among the rows of one of them each category gets
        its share, rounded up or down, and all numbers are its own.
        """
        rng = np.random.default_rng(seed)
        given = dealt(self.block, num_rows, rng)
        codes = np.zeros((num_rows, len(self.domain)), dtype=np.int64)
        for axis, name in enumerate(self.domain.attributes):
            if name not in self.numbers:
                codes[:, axis] = allotted(self._of(name), given, rng)
                continue
            place = self.numbers.index(name)
            codes[:, axis] = self._codes(place)[given]
            if self.nullable[place]:
                share = self.missing[:, place].astype(np.float64)
                is_missing = allotted(np.stack([1 - share, share], axis=1), given, rng) == 1
                codes[is_missing, axis] = self.domain.sizes[axis] - 1
        return codes

    def _codes(self, place: int) -> np.ndarray:
        """The code of each relaxed row's number where it is not missing."""
        size = self.domain.size((self.numbers[place],)) - self.nullable[place]
        codes = np.floor(self.values[:, place].astype(np.float64) * size)
        return np.clip(codes, 0, size - 1).astype(np.int64)

    def _of(self, name: str) -> np.ndarray:
        """An attribute's probabilities in each relaxed row, float64, which sum to 1."""
        if name not in self.numbers:
            others = self.domain.project(self.categories)
            return shares_of(self.shares, others, self.categories.index(name))
        place = self.numbers.index(name)
        found = np.zeros((self.block, self.domain.size((name,))))
        share = self.missing[:, place] if self.nullable[place] else np.zeros(self.block)
        found[np.arange(self.block), self._codes(place)] = 1 - share
        found[:, -1] += share
        return found


_FINER = 10.0
"""Adam moves a log-share by the learning rate, and a rank by so many times less."""


@dataclass(frozen=True, kw_only=True)
class AnnealedProjection(Engine):
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

    >>> from sdv_privpgd.base.half_spaces import Cut, Line
    >>> from sdv_privpgd.privacy.queries import CutMarginalQuery
    >>> line = Line("age", tuple(range(100)))
    >>> noisy = Measurement(
    ...     query=CutMarginalQuery(("ill",), (Cut((line,), (1,), (24,)),)),
    ...     answer=np.array([[41, 0], [-1, 60]]), stddev=1.0,
    ... )
    >>> domain = Domain(("age", "ill"), (100, 2))
    >>> model = AnnealedProjection(num_components=100).fit(domain, [noisy])
    >>> model.marginal(("ill", "age"))[:, :25].sum(axis=1).round(1)
    array([0.4, 0. ])
    """

    num_components: int = 1_000
    steps: int = 200
    slopes: int = 10
    first_slope: float = 1.0
    learning_rate: float = 0.1
    tolerance: float = 0.02
    seed: int = 0
    enable_gpu: bool = False

    title = (
        "Relaxed rows, with numbers that were not binned, were fitted to the noisy counts by Adam, "
        "with thresholds as sigmoids of growing slope"
    )
    citation = (
        "Vietri, G., Archambeau, C., Aydore, S., Brown, W., Kearns, M., Roth, A., Siva, A., "
        "Tang, S. & Wu, Z. S. (2022). Private synthetic data for multitask learning and marginal "
        "queries. NeurIPS 35."
    )
    quick = {"num_components": 50, "steps": 10, "slopes": 2}  # noqa: RUF012
    takes = (TABLES, "half-spaces")
    takes_groups = False

    def __post_init__(self) -> None:
        check_fields(self, check_integer, "num_components", "steps", "slopes")
        check_fields(self, check_positive, "learning_rate", "first_slope")
        check_fields(self, check_share, "tolerance")

    def refusal(self, domain: Domain, cliques: Sequence[Clique]) -> str | None:
        """Why the rows cannot be held, ``None`` where they can. Any cliques can be fitted."""
        del cliques
        return too_many_components(domain, self.num_components)

    def fit(
        self,
        domain: Domain,
        measurements: Sequence[Measurement],
        *,
        warm_start: Model | None = None,
        progress: Progress = silent,
    ) -> MixedRows:
        """The relaxed rows that are nearest to the measured tables, by steps and not by sigmoids.

        ``warm_start`` is where the descent starts if it has as many relaxed rows of the same kinds.
        """
        device = device_of(enable_gpu=self.enable_gpu)
        lines = lines_of(measurements)
        total = estimate_total(domain, measurements).value
        wanted = wanted_of(domain, measurements, lines)
        ranks = {name: Ranks.of(lines[name], wanted) for name in domain.attributes if name in lines}
        rows = self._started(domain, ranks, wanted, warm_start, device)
        shares = Shares(progress, "fit")
        if wanted:
            loss = HalfSpaceLoss(domain, ranks, wanted, total, device)
            self._anneal(rows, loss, shares, is_warm=isinstance(warm_start, MixedRows))
        shares.reach(1.0)
        return rows.model(domain, ranks)

    def _anneal(self, rows: "_Rows", loss: HalfSpaceLoss, shares: Shares, *, is_warm: bool) -> None:
        """Moves the rows, slope by slope, to where their exact answers were best."""
        lot = 20  # steps after which it is asked whether a slope still brings anything
        best, kept = float(loss(*rows.relaxed()).detach()), rows.copies()
        begun = self.slopes // 2 if is_warm else 0
        for number in range(begun, self.slopes):
            slope, before = self.first_slope * 2**number, float("inf")
            adam = Adam(rows.parameters)
            rate = self.learning_rate * 0.5 ** (number / 2)
            for step in range(1, self.steps + 1):
                found = loss(*rows.relaxed(), slope=slope)
                adam.step(found, rate)
                rows.confine()
                if step % lot == 0:
                    now = float(found.detach())
                    if now > (1 - self.tolerance) * before:
                        break
                    before = now
            exact = float(loss(*rows.relaxed()).detach())
            if exact <= best:
                best, kept = exact, rows.copies()
            shares.reach((number + 1 - begun) / (self.slopes - begun))
        rows.restore(kept)

    def _started(
        self,
        domain: Domain,
        ranks: Mapping[str, Ranks],
        wanted: Sequence[Wanted],
        warm_start: Model | None,
        device: torch.device,
    ) -> "_Rows":
        categories = tuple(name for name in domain.attributes if name not in ranks)
        number = self.num_components
        if isinstance(warm_start, MixedRows) and (
            warm_start.domain == domain
            and warm_start.numbers == tuple(ranks)
            and warm_start.block == number
        ):
            placed = [
                own.of_values(warm_start.values[:, at]) for at, own in enumerate(ranks.values())
            ]
            missing, shares = warm_start.missing, warm_start.shares
        else:
            rng = np.random.default_rng(self.seed)
            placed = [(rng.permutation(number) + 0.5) / number for _ in ranks]
            missing = np.tile([own.missing for own in ranks.values()], (number, 1))
            drawn = [_shares(domain.size((name,)), name, wanted) for name in categories]
            mean = np.concatenate([np.zeros(0), *drawn])
            # Each relaxed row is a little different from the others: else they would stay alike.
            shares = mean * np.exp(rng.standard_normal((number, len(mean))))
        chance = np.clip(missing, 1e-4, 1 - 1e-4)
        logits = torch.tensor(np.log(np.maximum(shares, 1e-6)), device=device).float()
        absent = torch.tensor(np.log(chance / (1 - chance)), device=device).float()
        moved = np.stack(placed, axis=1) if placed else np.zeros((number, 0))
        moved = torch.tensor(moved * _FINER, device=device).float()
        nullable = torch.tensor(
            [own.line.nullable for own in ranks.values()], dtype=torch.bool, device=device
        )
        return _Rows(
            moved.requires_grad_(),
            absent.requires_grad_(),
            logits.requires_grad_(),
            nullable,
            domain.project(categories),
        )


@dataclass(frozen=True)
class _Rows:
    """The numbers that are moved: ranks, log-odds of missing, and log-shares."""

    ranks: Tensor
    absent: Tensor
    logits: Tensor
    nullable: Tensor
    categories: Domain

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
    def confine(self) -> None:
        """Puts ranks outside [0, 1] to its end."""
        self.ranks.clamp_(0.0, _FINER)

    def copies(self) -> list[Tensor]:
        return [each.detach().clone() for each in self.parameters]

    @torch.no_grad()
    def restore(self, copies: Sequence[Tensor]) -> None:
        for each, copy in zip(self.parameters, copies, strict=True):
            each.copy_(copy)

    @torch.no_grad()
    def model(self, domain: Domain, ranks: Mapping[str, Ranks]) -> MixedRows:
        placed, there, shares = (each.cpu().numpy() for each in self.relaxed())
        values = [own.to_values(placed[:, at]) for at, own in enumerate(ranks.values())]
        return MixedRows(
            domain=domain,
            numbers=tuple(ranks),
            nullable=tuple(own.line.nullable for own in ranks.values()),
            missing=1 - there,
            values=np.stack(values, axis=1).astype(np.float32) if values else placed,
            shares=shares,
        )


def _shares(size: int, name: str, wanted: Sequence[Wanted]) -> np.ndarray:
    """The shares of a category by the first noisy table that has it.

    A code that surely holds no rows gets 1e-4: the logarithm must be finite.
    """
    for table in wanted:
        if name in table.clique:
            counts = table.along(table.clique.index(name))
            return counts / max(counts.sum(), 1.0) + 1e-4
    return np.full(size, 1 / size)
