"""Particle gradient descent: from noisy tables to a point cloud."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import product
from typing import Any, NamedTuple

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from sdv_privpgd.consistency import consistent_tables
from sdv_privpgd.domain import Domain
from sdv_privpgd.measure import Measurement, estimate_total, noisy_tables
from sdv_privpgd.progress import Progress, silent
from sdv_privpgd.queries import Query
from sdv_privpgd.synthesize.engine import Model
from sdv_privpgd.synthesize.particles.embedding import draw_codes, embed, nearest_codes
from sdv_privpgd.synthesize.particles.particles import Particles
from sdv_privpgd.synthesize.particles.penalties import Loss, Penalty
from sdv_privpgd.synthesize.particles.projection import (
    PrimalDualProjection,
    Projection,
    SoftmaxProjection,
)
from sdv_privpgd.synthesize.particles.steps import AdamStep, Pull, StepRule, TransportStep
from sdv_privpgd.synthesize.particles.wasserstein import (
    displacement_to_targets,
    independent_directions,
    quantile_targets,
    stratified_directions,
)


@dataclass(frozen=True, kw_only=True)
class ParticleGradientDescent:
    """Moves particles until their marginals match the measured tables in sliced W2.

    Minimizes the sum over cliques of SW2^2(particles, target) + the sum over penalties of
    weight * penalty(particles) (Donhauser et al. 2024, Algorithm 3, Eq. 7). The targets are the
    measured tables, projected to probability measures. It sees noisy answers only, so all it
    does is post-processing, and it can be repeated from ``seed`` bit for bit on one CPU.

    Attributes:
        num_particles: Points of the cloud. Rows can be sampled in any number.
        epochs: How often each table is visited.
        num_slices: Directions per visit of a table.
        batch_size: Tables per step.
        mask_probability: Share of the coordinates that a step leaves where they are.
        step: The optimizer.
        start: Every attribute drawn from its own estimate ("marginals"), or the whole cube.
        targets: Tables first made to agree with each other ("consistent"), or as measured.
        projection: Signed measure to probability measure.
        penalties: Terms added to the loss.
        stratified: Directions that cover the sphere evenly, or independent ones.
        seed: Of all random choices here. Nothing private hangs on it.
        enable_gpu: Whether to use CUDA where there is a device.
    """

    num_particles: int = 20_000
    epochs: int = 200
    num_slices: int = 1
    batch_size: int = 1
    mask_probability: float = 0.0
    step: StepRule = field(default_factory=TransportStep)
    start: str = "marginals"
    targets: str = "consistent"
    projection: Projection = field(default_factory=PrimalDualProjection)
    penalties: tuple[Penalty, ...] = ()
    stratified: bool = True
    seed: int = 0
    enable_gpu: bool = True

    def __post_init__(self) -> None:
        for name, least in (("num_particles", 1), ("epochs", 0), ("num_slices", 1)):
            _require_integer(name, getattr(self, name), least)
        _require_integer("batch_size", self.batch_size, 1)
        if not 0 <= self.mask_probability < 1:
            raise ValueError(f"mask_probability must lie in [0, 1), got {self.mask_probability!r}.")
        for name, choices in (
            ("start", ("marginals", "uniform")),
            ("targets", ("consistent", "raw")),
        ):
            if getattr(self, name) not in choices:
                raise ValueError(f"{name} must be one of {choices!r}, got {getattr(self, name)!r}.")

    @classmethod
    def as_published(cls, **changes: Any) -> "ParticleGradientDescent":
        """The configuration of the paper's experiments (section 4.1), with ``changes``.

        The learning rate falls in 20 phases of equal length, 50 epochs each of the published
        1,000; a shorter run gets shorter phases.
        """
        published = cls(
            num_particles=100_000,
            epochs=1_000,
            num_slices=10,
            batch_size=5,
            mask_probability=0.8,
            step=AdamStep(),
            start="uniform",
            targets="raw",
            projection=SoftmaxProjection(),
            stratified=False,
        )
        return replace(published, **changes)

    def statistics(self, domain: Domain) -> tuple[Query, ...]:
        """Queries that the penalties want answered besides the tables."""
        return tuple(query for penalty in self.penalties for query in penalty.queries(domain))

    def fit(
        self,
        domain: Domain,
        measurements: Sequence[Measurement],
        *,
        warm_start: Model | None = None,
        progress: Progress = silent,
    ) -> Particles:
        """A point cloud that matches the measurements. ``warm_start`` replaces the start."""
        generator = torch.Generator().manual_seed(self.seed)
        device = torch.device("cuda" if self.enable_gpu and torch.cuda.is_available() else "cpu")
        one_way, tables = self._signed_tables(domain, measurements)
        targets = [self._target(table, generator, device) for table in progress(tables, "project")]
        losses = [(each.weight, each.loss(domain, measurements)) for each in self.penalties]
        positions = self._start(domain, one_way, warm_start, generator).to(device)
        positions = self._descend(positions, targets, losses, generator, progress)
        codes = nearest_codes(positions.T.cpu(), domain.sizes)
        return Particles(domain=domain, codes=codes.numpy())

    def _signed_tables(
        self, domain: Domain, measurements: Sequence[Measurement]
    ) -> tuple[Mapping[str, np.ndarray], list["_SignedTable"]]:
        """1-way estimates, and a signed measure of mass 1 per clique on its supported cells."""
        consistent = consistent_tables(domain, measurements)
        if self.targets == "consistent":
            counts, total = consistent.tables, consistent.total
            support = {clique: consistent.support(clique) for clique in counts}
        else:
            noisy = noisy_tables(domain, measurements)
            counts = {clique: table.counts for clique, table in noisy.items()}
            total = estimate_total(domain, measurements).value
            support = {
                clique: tuple(np.arange(size) for size in table.shape)
                for clique, table in counts.items()
            }
        tables = []
        for clique, table in counts.items():
            codes = torch.from_numpy(np.array(list(product(*support[clique]))))
            values = torch.from_numpy(table[np.ix_(*support[clique])].ravel() / total)
            centers = embed(codes, domain.shape(clique), torch.float64)
            tables.append(_SignedTable(domain.axes(clique), centers, values))
        return consistent.one_way, tables

    def _target(
        self, table: "_SignedTable", generator: torch.Generator, device: torch.device
    ) -> "_Target":
        weights = self.projection(table.centers, table.values, generator)
        filled = weights > 0
        return _Target(
            list(table.axes), table.centers[filled].float().to(device), weights[filled].to(device)
        )

    def _start(
        self,
        domain: Domain,
        one_way: Mapping[str, np.ndarray],
        warm_start: Model | None,
        generator: torch.Generator,
    ) -> Float[Tensor, "attribute particle"]:
        """Positions to start from; starts at codes are spread evenly over the cells."""
        shape = (len(domain), self.num_particles)
        uniform = torch.rand(shape, generator=generator)
        if warm_start is not None:
            codes = torch.from_numpy(warm_start.sample(self.num_particles, self.seed)).T
        elif self.start == "uniform":
            return uniform
        else:
            codes = torch.stack(
                [
                    draw_codes(torch.from_numpy(one_way[name]), self.num_particles, generator)
                    for name in domain.attributes
                ]
            )
        return (codes + uniform) / torch.tensor(domain.sizes)[:, None]

    def _descend(
        self,
        positions: Float[Tensor, "attribute particle"],
        targets: Sequence["_Target"],
        losses: Sequence[tuple[float, Loss]],
        generator: torch.Generator,
        progress: Progress,
    ) -> Float[Tensor, "attribute particle"]:
        """The positions after all epochs: each visits every table once, in random order."""
        if not targets:
            return positions
        touching = [[t for t in targets if q in t.axes] for q in range(len(positions))]
        num_tables = [len(those) for those in touching]
        # A coordinate's curvature is that of its lowest-dimensional table: safe for all of them.
        curvatures = [max((1 / len(t.axes) for t in those), default=1.0) for those in touching]
        move = self.step.begin(positions)
        starts = range(0, len(targets), self.batch_size)
        num_steps = self.epochs * len(starts)
        for epoch in progress(range(self.epochs), "descend"):
            order = torch.randperm(len(targets), generator=generator).tolist()
            for index, first in enumerate(starts):
                batch = [targets[i] for i in order[first : first + self.batch_size]]
                columns = sorted({axis for target in batch for axis in target.axes})
                counts = [sum(q in target.axes for target in batch) for q in columns]
                gradient = -self._displacement(positions, batch, columns, generator)
                if losses:
                    # A column that n tables share meets the whole penalty in n visits.
                    shares = [c / num_tables[q] for c, q in zip(counts, columns, strict=True)]
                    penalty = _penalty_gradient(positions, losses)[columns]
                    gradient += penalty * gradient.new_tensor(shares)[:, None]
                curvature = gradient.new_tensor(
                    [c * curvatures[q] for c, q in zip(counts, columns, strict=True)]
                )
                pull = Pull(columns, gradient, curvature, self._moving(gradient, generator))
                change = move(pull, (epoch * len(starts) + index) / num_steps)
                for row, q in enumerate(columns):
                    positions[q].add_(change[row]).clamp_(0, 1)
        return positions

    def _displacement(
        self,
        positions: Float[Tensor, "attribute particle"],
        batch: Sequence["_Target"],
        columns: Sequence[int],
        generator: torch.Generator,
    ) -> Float[Tensor, "column particle"]:
        """The sum over a batch's tables of the mean over slices of the way to the targets."""
        draw = stratified_directions if self.stratified else independent_directions
        device, num_particles = positions.device, positions.shape[1]
        directions = [draw(self.num_slices, len(t.axes), generator).to(device) for t in batch]
        pairs = list(zip(directions, batch, strict=True))
        # One sort for all slices of the batch: torch spreads its rows over the cores.
        projected = torch.cat([theta @ positions[target.axes] for theta, target in pairs])
        goals = torch.cat(
            [
                quantile_targets(theta @ target.centers.T, target.weights, num_particles)
                for theta, target in pairs
            ]
        )
        ways = displacement_to_targets(projected, goals).split(self.num_slices)
        total = positions.new_zeros(len(columns), num_particles)
        rows = {q: row for row, q in enumerate(columns)}
        for (theta, target), way in zip(pairs, ways, strict=True):
            total[[rows[axis] for axis in target.axes]] += theta.T @ way / self.num_slices
        return total

    def _moving(self, gradient: Tensor, generator: torch.Generator) -> Tensor | None:
        if self.mask_probability == 0:
            return None
        drawn = torch.rand(gradient.shape, generator=generator) >= self.mask_probability
        return drawn.to(gradient.device)


class _SignedTable(NamedTuple):
    """A clique's supported cells and their signed values, which sum to about 1."""

    axes: tuple[int, ...]
    centers: Float[Tensor, "cell dim"]
    values: Float[Tensor, " cell"]


class _Target(NamedTuple):
    """Where a clique's particles should be: cells with positive weights."""

    axes: list[int]
    centers: Float[Tensor, "cell dim"]
    weights: Float[Tensor, " cell"]


def _penalty_gradient(
    positions: Float[Tensor, "attribute particle"], losses: Sequence[tuple[float, Loss]]
) -> Float[Tensor, "attribute particle"]:
    """The gradient of the weighted penalties in units of 2 / particles (see ``Pull``)."""
    free = positions.detach().T.requires_grad_()
    loss = sum((weight * penalty(free) for weight, penalty in losses), positions.new_zeros(()))
    (gradient,) = torch.autograd.grad(loss, free)
    return gradient.T * (positions.shape[1] / 2)


def _require_integer(name: str, value: int, least: int) -> None:
    if not isinstance(value, int) or value < least:
        raise ValueError(f"{name} must be an integer of at least {least}, got {value!r}.")
