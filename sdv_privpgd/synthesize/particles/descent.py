"""Particle gradient descent: from noisy tables to a point cloud."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import product
from typing import Any, NamedTuple

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from sdv_privpgd.consistency import consistent_tables
from sdv_privpgd.domain import Clique, Domain
from sdv_privpgd.measure import Measurement, estimate_total, noisy_tables
from sdv_privpgd.progress import Progress, silent
from sdv_privpgd.queries import Query
from sdv_privpgd.synthesize.engine import Model
from sdv_privpgd.synthesize.particles.distributed import (
    require_same_answers,
    split_over_processes,
)
from sdv_privpgd.synthesize.particles.embedding import draw_codes, embed, nearest_codes
from sdv_privpgd.synthesize.particles.finish import ExchangeFinish
from sdv_privpgd.synthesize.particles.kernels import KERNELS, Kernel, choose_kernel
from sdv_privpgd.synthesize.particles.kernels.targets import PackedTargets
from sdv_privpgd.synthesize.particles.particles import Particles
from sdv_privpgd.synthesize.particles.penalties import Loss, Penalty, penalty_gradient
from sdv_privpgd.synthesize.particles.primal_dual import CompiledProjection
from sdv_privpgd.synthesize.particles.projection import Projection, SignedTable, SoftmaxProjection
from sdv_privpgd.synthesize.particles.steps import AdamStep, Pull, StepRule, TransportStep
from sdv_privpgd.synthesize.particles.visits import (
    Draw,
    draw_steps,
    memberships,
    transport_visits,
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
        finish: Settles what the descent leaves, cell by cell, after the positions are rounded to
            codes; it keeps the attributes that a penalty reads.
        penalties: Terms added to the loss.
        stratified: Directions that cover the sphere evenly, or independent ones.
        seed: Of all random choices here. Nothing private hangs on it.
        enable_gpu: Whether to use CUDA where there is a device.
        kernel: What computes the ways to the targets: the fastest of this machine ("auto"),
            "reference", "numba" or "triton".
    """

    num_particles: int = 20_000
    epochs: int = 100
    num_slices: int = 1
    batch_size: int = 1
    mask_probability: float = 0.0
    step: StepRule = field(default_factory=TransportStep)
    start: str = "marginals"
    targets: str = "consistent"
    projection: Projection = field(default_factory=CompiledProjection)
    finish: ExchangeFinish | None = field(default_factory=ExchangeFinish)
    penalties: tuple[Penalty, ...] = ()
    stratified: bool = True
    seed: int = 0
    enable_gpu: bool = True
    kernel: str = "auto"

    def __post_init__(self) -> None:
        for name in ("num_particles", "epochs", "num_slices", "batch_size"):
            _require_integer(name, getattr(self, name), 0 if name == "epochs" else 1)
        if not 0 <= self.mask_probability < 1:
            raise ValueError(f"mask_probability must lie in [0, 1), got {self.mask_probability!r}.")
        for name, choices in (
            ("start", ("marginals", "uniform")),
            ("targets", ("consistent", "raw")),
            ("kernel", KERNELS),
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
            finish=None,
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
        require_same_answers(measurements)
        one_way, tables = self._signed_tables(domain, measurements)
        weights = self.projection.project_all(
            [SignedTable(table.centers, table.values) for table in tables], generator, progress
        )
        losses = [(each.weight, each.loss(domain, measurements)) for each in self.penalties]
        positions = self._start(domain, one_way, warm_start, generator)
        if tables:
            targets = _packed(tables, weights)
            positions = self._descend(positions, targets, losses, generator, progress)
        codes = nearest_codes(positions.T.cpu(), domain.sizes).numpy()
        if self.finish is not None and tables:
            fixed = {name for each in self.penalties for name in each.attributes(domain)}
            goals = _probabilities(domain, tables, weights)
            codes = self.finish(codes, domain, goals, self.seed, fixed=fixed)
        return Particles(domain=domain, codes=codes)

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
        targets: PackedTargets,
        losses: Sequence[tuple[float, Loss]],
        generator: torch.Generator,
        progress: Progress,
    ) -> Float[Tensor, "attribute particle"]:
        """The positions after all epochs: each visits every table once, in random order."""
        kernel = split_over_processes(choose_kernel(self.kernel, enable_gpu=self.enable_gpu))
        draws = draw_steps(
            targets,
            len(positions),
            progress(range(self.epochs), "descend"),
            self.epochs,
            generator,
            batch_size=self.batch_size,
            num_slices=self.num_slices,
            stratified=self.stratified,
        )
        held = memberships(targets, len(positions))[:-1]
        # A coordinate's curvature is that of its lowest-dimensional table: safe for all of them.
        curvatures = (held / targets.dims[:, None]).amax(dim=0)
        positions, targets = positions.to(kernel.device), targets.to(kernel.device)
        if isinstance(self.step, TransportStep) and not losses and self.mask_probability == 0:
            visits = transport_visits(draws, self.step.fraction, curvatures)
            return kernel.descend(positions, targets, visits)
        pulls = self._pulls(positions, targets, losses, kernel, draws, held, curvatures, generator)
        move = self.step.begin(positions)
        for elapsed, pull in pulls:
            columns = torch.tensor(pull.columns, device=positions.device)
            positions.index_add_(0, columns, move(pull, elapsed)).clamp_(0, 1)
        return positions

    def _pulls(
        self,
        positions: Float[Tensor, "attribute particle"],
        targets: PackedTargets,
        losses: Sequence[tuple[float, Loss]],
        kernel: Kernel,
        draws: Iterable[Draw],
        held: Float[Tensor, "table attribute"],
        curvatures: Float[Tensor, " attribute"],
        generator: torch.Generator,
    ) -> Iterator[tuple[float, Pull]]:
        """The pull of each step on the positions as they are by then."""
        num_tables = held.sum(dim=0)
        for elapsed, tables, directions, counts in draws:
            columns = counts.nonzero().flatten()
            total, _ = kernel.displacement(positions, targets, tables, directions)
            gradient = -total[columns.to(total.device)]
            if losses:
                # A column that n tables share meets the whole penalty in n visits.
                shares = (counts / num_tables)[columns].to(gradient)
                rows = columns.to(gradient.device)
                gradient += penalty_gradient(positions, losses)[rows] * shares[:, None]
            curvature = (counts * curvatures)[columns].to(gradient)
            moving = self._moving(gradient, generator)
            yield elapsed, Pull(columns.tolist(), gradient, curvature, moving)

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


def _probabilities(
    domain: Domain, tables: Sequence[_SignedTable], weights: Sequence[Float[Tensor, " _"]]
) -> dict[Clique, np.ndarray]:
    """The targets as full tables, 0 where nothing is supported."""
    found = {}
    for table, own in zip(tables, weights, strict=True):
        clique = tuple(domain.attributes[axis] for axis in table.axes)
        found[clique] = np.zeros(domain.shape(clique))
        cells = nearest_codes(table.centers, domain.shape(clique)).numpy()
        found[clique][tuple(cells.T)] = own.numpy()
    return found


def _packed(
    tables: Sequence[_SignedTable], weights: Sequence[Float[Tensor, " _"]]
) -> PackedTargets:
    """The cells of all tables that have a positive weight."""
    filled = [those > 0 for those in weights]
    return PackedTargets.of(
        [table.axes for table in tables],
        [table.centers[those] for table, those in zip(tables, filled, strict=True)],
        [own[those] for own, those in zip(weights, filled, strict=True)],
    )


def _require_integer(name: str, value: int, least: int) -> None:
    if not isinstance(value, int) or value < least:
        raise ValueError(f"{name} must be an integer of at least {least}, got {value!r}.")
