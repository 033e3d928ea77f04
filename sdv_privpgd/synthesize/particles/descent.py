"""Particle gradient descent: from noisy tables to a point cloud."""

from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from itertools import islice
from typing import Any

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from sdv_privpgd.base.arguments import check_choice, check_fields, check_integer, check_share
from sdv_privpgd.base.domain import Clique, Domain
from sdv_privpgd.base.progress import Progress, one_step, silent
from sdv_privpgd.estimate.consistency import (
    ConsistentTables,
    Possible,
    consistent_tables,
    emptied,
    possible_cells,
)
from sdv_privpgd.estimate.denoising import denoised
from sdv_privpgd.estimate.interactions import grouped_targets
from sdv_privpgd.estimate.noisy_tables import noisy_tables
from sdv_privpgd.estimate.prior import (
    LEAST_DRAWN,
    PublicRows,
    WeightedRows,
    are_as_good_as_own,
    towards,
    use_of,
    weighted,
)
from sdv_privpgd.privacy.queries import MarginalQuery, Measurement, Query
from sdv_privpgd.synthesize.engine import Engine, Model, Particles, default_number
from sdv_privpgd.synthesize.particles import binned_displacement
from sdv_privpgd.synthesize.particles.batched_local_search import BatchedSearch
from sdv_privpgd.synthesize.particles.batched_projection import BatchedProjection
from sdv_privpgd.synthesize.particles.compiler import HAS_NUMBA, is_compiled
from sdv_privpgd.synthesize.particles.kernels import (
    KERNELS,
    Kernel,
    PackedTargets,
    Positions,
    choose_kernel,
)
from sdv_privpgd.synthesize.particles.local_search import (
    ExchangeSearch,
    LocalSearch,
    emptied_targets,
    propose,
    take_proposals,
)
from sdv_privpgd.synthesize.particles.penalties import Loss, Penalty
from sdv_privpgd.synthesize.particles.projection import (
    CompiledProjection,
    Projection,
    SignedTable,
    improve,
)
from sdv_privpgd.synthesize.particles.steps import (
    StepRule,
    TransportStep,
    draw_steps,
    draw_views,
    mean_loss,
    steps_by_pulls,
    stretches,
    transport_visits,
)

TARGETS = ("denoised", "consistent", "raw")
"""Kinds of targets: tables made to agree and denoised, only made to agree, or as measured."""

Goals = dict[Clique, SignedTable]
"""For each clique its supported cells and their signed values, which sum to about 1."""

_EPOCHS, _EPOCHS_ALONE = 30, 100
"""The epochs of a descent that a local search completes, and of one that is alone."""

_WARM_EPOCHS, _WARM_SWEEPS = 5, 2
"""Epochs and sweeps of a fit that starts from the fitted model, and epochs from public rows. On ACS
Income refits after 5 epochs are as far from the model as after 30 from a fresh start, in pairs
(0.0176 both) and in triples (0.104 and 0.107, total L1); without any epoch triples stay where the
model had them (0.066). The third sweep changes pairs by 2 %. From public rows pairs of 24 fits of
four tables are as near without any epoch as after 30 (0.2 % on average, 4 % at most)."""

_WARM_PARTICLES = 50_000
"""Of such a fit. On ACS Income, with 30,000 in place of 86,000, the spread of pairs is the same."""


@dataclass(frozen=True, kw_only=True)
class ParticleGradientDescent(Engine):
    """Moves particles until their marginals match the measured tables in sliced W2.

    It minimizes the sum over cliques of SW2^2(particles, target) plus the sum over penalties of
    weight * penalty(particles) (Donhauser et al. 2024, Algorithm 3, Eq. 7). The targets are the
    measured tables, projected to probability measures. It sees noisy answers only, so all it
    does is post-processing. On one CPU the same ``seed`` gives the same bits.

    The defaults are meant to be kept. All pairs of 10 columns of 32 cells take about 3 seconds of
    one core, of 20 columns 6 and of 50 columns 19, with 50, 70 and 180 MB of memory, for 100,000
    as for 10,000,000 rows (``tests/benchmarks scale``).

    Attributes:
        num_particles: Points of the cloud. ``None`` takes between 5,000 and 100,000, a part of the
            estimated number of rows. Time and memory grow in proportion. Rows can be sampled in
            any number, whatever the number of particles.
        epochs: How often each table is visited. ``None`` takes 30, and 100 where nothing moves the
            particles afterwards: without a local search or with penalties. Before one, 100 epochs
            give the same errors as 30: on ten tables the means differ by less than 0.5 %. Without
            any epoch pairs are as near on most tables, and on ACS Income, where noise is low, the
            error of 3-way tables is 7 % higher. "PrivPGD-with-100-epochs" and
            "PrivPGD-without-descent" are methods of ``benchmark compare``.
        num_slices: Directions along which a table is looked at in one visit.
        batch_size: Tables that pull together in one step. Leave it at 1 on one device.
        mask_probability: Share of the coordinates that a step leaves where they are.
        step: The optimizer. ``TransportStep`` has no rate to tune.
        start: "marginals" draws every attribute from its own estimate; "uniform" fills the cube.
        targets: "denoised" makes the tables agree with each other and takes noise out of them,
            "consistent" only makes them agree, and "raw" takes them as measured.
        projection: Turns each signed measure into a probability measure.
        local_search: Moves single codes until the tables fit cell by cell, after the positions are
            rounded to codes. It leaves attributes alone that a penalty reads. ``None`` leaves it
            out.
        penalties: Terms that are added to the loss.
        possible: For some cliques, the cells that can hold rows at all. The targets have nothing
            in the other cells; a few particles may lie there unless they have few other codes.
        stratified: Whether directions cover the sphere evenly or are drawn independently.
        prior: Public rows. Unless most of their columns surely lie elsewhere, particles start from
            them, and what noise hides is believed to be as in them. Where the weighted
            ones are as good as rows of the table, particles are these rows.
        seed: The seed of all random choices here. No private noise depends on it.
        enable_gpu: Whether to use CUDA where there is a device: the same code in torch that the
            tests run on the processor. Sixteen cores are faster than a GPU (the guide's page on
            methods).
        kernel: The code that computes the ways to the targets: "auto" takes the fastest for this
            machine; "torch" and "numba" name one.

    >>> from sdv_privpgd.privacy.queries import MarginalQuery, Measurement
    >>> noisy = Measurement(
    ...     query=MarginalQuery(("a", "b")), answer=np.array([[41, -1], [2, 58]]), stddev=1.0
    ... )
    >>> engine = ParticleGradientDescent(num_particles=1_000, epochs=20)
    >>> model = engine.fit(Domain(("a", "b"), (2, 2)), [noisy])
    >>> model.marginal(("a", "b")).round(1).tolist()
    [[0.4, 0.0], [0.0, 0.6]]
    """

    num_particles: int | None = None
    epochs: int | None = None
    num_slices: int = 1
    batch_size: int = 1
    mask_probability: float = 0.0
    step: StepRule = field(default_factory=TransportStep)
    start: str = "marginals"
    targets: str = "denoised"
    projection: Projection = field(
        default_factory=CompiledProjection if HAS_NUMBA else BatchedProjection
    )
    local_search: LocalSearch | None = field(default_factory=ExchangeSearch)
    penalties: Sequence[Penalty] = ()
    possible: Possible = field(default_factory=dict, compare=False)
    stratified: bool = True
    prior: PublicRows | None = field(default=None, compare=False, repr=False)
    seed: int = 0
    enable_gpu: bool = False
    kernel: str = "auto"

    title = (
        "The noisy counts were projected to probability distributions, and the rows were fitted to "
        "these by particle gradient descent on the sliced Wasserstein distance"
    )
    citation = (
        "Donhauser, K., Abad, J., Hulkund, N. & Yang, F. (2024). Privacy-preserving data release "
        "leveraging optimal transport and particle gradient descent. arXiv:2401.17823."
    )
    repeats = True
    quick = {"num_particles": 300, "epochs": 2}  # noqa: RUF012

    def __post_init__(self) -> None:
        object.__setattr__(self, "penalties", tuple(self.penalties))
        check_fields(self, check_integer, "num_particles", "num_slices", "batch_size")
        check_fields(self, check_integer, "epochs", "seed", least=0)
        check_fields(self, check_share, "mask_probability")
        starts = "marginals", "uniform"
        for name, choices in {"start": starts, "targets": TARGETS, "kernel": KERNELS}.items():
            check_choice(name, getattr(self, name), choices)

    @property
    def takes_prior(self) -> bool:  # pyright: ignore[reportIncompatibleVariableOverride]
        """Whether it can lean on public rows, as it does where targets are denoised."""
        return self.targets == "denoised"

    @classmethod
    def as_published(cls, **changes: Any) -> "ParticleGradientDescent":
        """The configuration of the paper's experiments (section 4.1), with ``changes``.

        The learning rate falls in 20 phases of equal length, 50 epochs each of the published
        1,000; a shorter run gets shorter phases. It is for comparisons: on ACS Income a fit takes
        360 seconds of one core where the defaults take 3, and the L1 error of pairs, with the
        paper's noise, is 0.083 instead of 0.014 (see the guide).

        >>> ParticleGradientDescent.as_published(epochs=200).num_slices
        10
        """
        # Here, because the default needs none of it.
        from sdv_privpgd.synthesize.particles.paper import AdamStep, SoftmaxProjection

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
            local_search=None,
            stratified=False,
        )
        return replace(published, **changes)

    @property
    def num_epochs(self) -> int:
        """How often a fit visits each table."""
        if self.epochs is not None:
            return self.epochs
        return _EPOCHS if self.local_search is not None and not self.penalties else _EPOCHS_ALONE

    @property
    def takes_quadrants(self) -> bool:  # pyright: ignore[reportIncompatibleVariableOverride]
        """Whether tables are denoised: others are made to agree by their cells alone."""
        return self.targets == "denoised"

    def statistics(self, domain: Domain) -> tuple[Query, ...]:
        """The queries that the penalties need answered besides the tables."""
        return tuple(query for penalty in self.penalties for query in penalty.queries(domain))

    def warm(self, model: Model, num_rows: int, seed: int) -> "ParticleGradientDescent":
        """Returns the engine with few epochs and sweeps, and no more particles than it needs."""
        local_search, number = self.local_search, model.block
        if local_search is not None:
            local_search = replace(local_search, sweeps=min(local_search.sweeps, _WARM_SWEEPS))
        if number > _WARM_PARTICLES:  # about a part of the rows, as by default
            number = -(-num_rows // -(-num_rows // _WARM_PARTICLES))
        epochs, number = min(self.num_epochs, _WARM_EPOCHS), min(number, model.block)
        return replace(
            self, seed=seed, epochs=epochs, num_particles=number, local_search=local_search
        )

    def reads(self, domain: Domain) -> set[str]:
        """Returns the attributes that penalties read."""
        return {name for penalty in self.penalties for name in penalty.attributes(domain)}

    def prepare(self, progress: Progress = silent) -> None:
        """Compiles all loops where that was not done on this machine before."""
        if must_compile(enable_gpu=self.enable_gpu):
            with one_step(progress, "compile"):
                compile_all()

    def fit(
        self,
        domain: Domain,
        measurements: Sequence[Measurement],
        *,
        warm_start: Model | None = None,
        progress: Progress = silent,
    ) -> Particles:
        """Returns a point cloud that matches the measurements, by the lines of Algorithm 3.

        ``warm_start`` replaces the start.
        """
        generator = torch.Generator().manual_seed(self.seed)
        kernel = choose_kernel(self.kernel, enable_gpu=self.enable_gpu)
        projection, local_search = self._on(kernel.device)
        prior = None
        if self.prior is not None and self.takes_prior:
            prior = weighted(domain, measurements, self.prior, seed=self.seed, progress=progress)
        # The signed measures, and line 1: their projections to probability measures.
        agreed, goals = goals_of(domain, measurements, self.targets, self.possible, progress, prior)
        use = None if self.prior is None else use_of(self.prior, prior, agreed)
        number = self.num_particles
        if number is None:
            # Tables of single attributes take hardly any work beside those of pairs.
            larger = sum(len(clique) > 1 for clique in goals)
            number = default_number(agreed.total, larger or len(goals))
        is_free = warm_start is None and not (self.penalties or self.possible)
        if prior is not None and is_free and are_as_good_as_own(agreed, prior):
            if self.num_particles is None:
                number *= -(-LEAST_DRAWN // number)
            return Particles(domain=domain, codes=prior.sample(number, self.seed), prior=use)
        found = projection.project_all(list(goals.values()), generator, progress)
        weights = dict(zip(goals, found, strict=True))
        losses = [(each.weight, each.loss(domain, measurements)) for each in self.penalties]
        # Line 2: the start.
        start, epochs = prior if warm_start is None else warm_start, self.num_epochs
        if start is prior is not None and local_search is not None and not self.penalties:
            epochs = min(epochs, _WARM_EPOCHS)
        positions = self._start(domain, number, agreed.one_way, start, generator)
        curve: dict[int, float] = {}
        if goals:  # Lines 3 to 7: the descent.
            targets = packed(domain, goals, weights)
            positions, curve = self._descend(
                positions, targets, losses, epochs, kernel, generator, progress
            )
        # Line 8: finalization.
        codes = nearest_codes(positions.T, domain.sizes).cpu().numpy()
        if goals and local_search is not None:
            full = probabilities(domain, goals, weights)
            grouped = grouped_targets(agreed, full) if self.targets != "raw" else {}
            full, fixed = emptied_targets(full, self.possible), self.reads(domain)
            codes = local_search(
                codes, domain, full, self.seed, grouped=grouped, fixed=fixed, progress=progress
            )
        return Particles(domain=domain, codes=codes, losses=curve, prior=use)

    def _on(self, device: torch.device) -> tuple[Projection, LocalSearch | None]:
        """The projection and local search of a device: on CUDA the default ones work in batches."""
        projection, local_search = self.projection, self.local_search
        if isinstance(projection, BatchedProjection):
            projection = replace(projection, device=str(device))
        elif isinstance(projection, CompiledProjection) and device.type == "cuda":
            projection = BatchedProjection(**asdict(projection), device=str(device))
        is_batched = (
            isinstance(local_search, BatchedSearch) or device.type == "cuda" or not HAS_NUMBA
        )
        if local_search is not None and is_batched:
            local_search = BatchedSearch(sweeps=local_search.sweeps, device=str(device))
        return projection, local_search

    def _start(
        self,
        domain: Domain,
        number: int,
        one_way: Mapping[str, np.ndarray],
        start: Model | WeightedRows | None,
        generator: torch.Generator,
    ) -> Positions:
        """Positions to start from. A particle that starts at a code lies anywhere in its cell."""
        shape = (len(domain), number)
        uniform = torch.rand(shape, generator=generator)
        if start is not None:
            codes = torch.from_numpy(start.sample(number, self.seed)).T
        elif self.start == "uniform":
            return uniform
        else:
            codes = torch.stack(
                [
                    draw_codes(torch.from_numpy(one_way[name]), number, generator)
                    for name in domain.attributes
                ]
            )
        return (codes + uniform) / torch.tensor(domain.sizes)[:, None]

    def _descend(
        self,
        positions: Positions,
        targets: PackedTargets,
        losses: Sequence[tuple[float, Loss]],
        epochs: int,
        kernel: Kernel,
        generator: torch.Generator,
        progress: Progress,
    ) -> tuple[Positions, dict[int, float]]:
        """The positions after all epochs, and the mean loss after some.

        Each epoch visits every table once, in random order.
        """
        draws = draw_steps(
            targets,
            len(positions),
            progress(range(epochs), "descend"),
            epochs,
            generator,
            batch_size=self.batch_size,
            num_slices=self.num_slices,
            stratified=self.stratified,
        )
        views = draw_views(targets, len(positions), self.seed)
        positions, targets = positions.to(kernel.device), targets.to(kernel.device)
        curve = {0: mean_loss(positions, targets, kernel, views)}
        visits = None
        if isinstance(self.step, TransportStep) and not losses and self.mask_probability == 0:
            visits = transport_visits(draws, self.step.fraction)
        how = self.step, losses, self.mask_probability, generator
        steps = steps_by_pulls(positions, targets, draws, kernel, *how)
        number = len(targets.dims)
        steps_per_epoch = -(-number // min(self.batch_size, number))
        for epoch, num_epochs in stretches(epochs):
            # The last stretch runs the draws to their end, which ends the progress as well.
            num_steps = None if epoch == epochs else num_epochs * steps_per_epoch
            if visits is None:
                deque(islice(steps, num_steps), maxlen=0)
            else:
                positions = kernel.descend(positions, targets, islice(visits, num_steps))
            curve[epoch] = mean_loss(positions, targets, kernel, views)
        return positions, curve


def embed(
    codes: Int[Tensor, "particle dim"], sizes: Sequence[int]
) -> Float[Tensor, "particle dim"]:
    """Cell centers (2 c + 1) / (2 k) of codes c = 0, ..., k - 1 (Donhauser et al. 2024, Eq. 4)."""
    return (2 * codes + 1).double() / (2 * torch.tensor(sizes))


def nearest_codes(
    positions: Float[Tensor, "particle dim"], sizes: Sequence[int]
) -> Int[Tensor, "particle dim"]:
    """Codes of the nearest cell centers.

    The cell of z is floor(z k). A position on the border of two cells goes to the upper one, and
    z = 1 belongs to the last cell.
    """
    shape = torch.tensor(sizes, device=positions.device)
    return (positions * shape).floor().long().clamp(min=0).minimum(shape - 1)


def draw_codes(
    weights: Float[Tensor, " value"], num_particles: int, generator: torch.Generator
) -> Int[Tensor, " particle"]:
    """Codes in random order; the number of each is in proportion to its weight, within one.

    Numbers are rounded down, and the particles that are left go to the largest remainders.
    """
    exact = weights.double() / weights.double().sum() * num_particles
    counts = exact.floor().long()
    left = num_particles - int(counts.sum())
    counts[(exact - counts).argsort(descending=True, stable=True)[:left]] += 1
    codes = torch.repeat_interleave(torch.arange(len(weights)), counts)
    return codes[torch.randperm(num_particles, generator=generator)]


def goals_of(
    domain: Domain,
    measurements: Sequence[Measurement],
    kind: str,
    possible: Possible,
    progress: Progress = silent,
    prior: WeightedRows | None = None,
) -> tuple[ConsistentTables, Goals]:
    """The tables of counts, and a goal for each clique that has cells with support.

    Goals lack the cells that ``possible`` says no row can be in.
    """
    agreed = consistent_tables(domain, measurements)
    if prior is not None:
        agreed = towards(agreed, measurements, prior)
    if kind == "denoised":
        agreed = denoised(agreed, progress)
    if possible:
        agreed = emptied(agreed, possible)
    counts = agreed.tables
    if kind == "raw":
        noisy = noisy_tables(domain, measurements)
        counts = {clique: table.counts for clique, table in noisy.items()}
    goals = {}
    for clique, table in counts.items():
        held = np.full(table.shape, kind == "raw")
        if kind != "raw":
            held[np.ix_(*agreed.support(clique))] = True
        held &= possible_cells(clique, table.shape, possible)
        if held.any():
            cells = torch.from_numpy(np.argwhere(held))
            centers = embed(cells, domain.shape(clique))
            goals[clique] = SignedTable(centers, torch.from_numpy(table[held] / agreed.total))
    return agreed, goals


def probabilities(
    domain: Domain, goals: Goals, weights: Mapping[Clique, Float[Tensor, " _"]]
) -> dict[Clique, np.ndarray]:
    """The cells' weights as full tables, with 0 in cells without support."""
    found = {}
    for clique, goal in goals.items():
        found[clique] = np.zeros(domain.shape(clique))
        cells = nearest_codes(goal.centers, domain.shape(clique)).numpy()
        found[clique][tuple(cells.T)] = weights[clique].numpy()
    return found


def packed(
    domain: Domain, goals: Goals, weights: Mapping[Clique, Float[Tensor, " _"]]
) -> PackedTargets:
    """The targets of all goals, without the cells of weight 0."""
    filled = {clique: own > 0 for clique, own in weights.items()}
    return PackedTargets.of(
        [domain.axes(clique) for clique in goals],
        [goal.centers[filled[clique]] for clique, goal in goals.items()],
        [weights[clique][filled[clique]] for clique in goals],
    )


def must_compile(*, enable_gpu: bool) -> bool:
    """Whether numba would have to compile something for a fit, because it is not on disk yet."""
    if not HAS_NUMBA or choose_kernel("auto", enable_gpu=enable_gpu).device.type != "cpu":
        return False
    loops = (
        binned_displacement.sort_cells,
        binned_displacement.pass_part,
        binned_displacement.set_goals,
        improve,
        propose,
        take_proposals,
    )
    return not all(map(is_compiled, loops))


def compile_all() -> None:
    """Compiles everything that a fit calls: it fits a few particles to made-up tables."""
    domain, rng = Domain(("a", "b", "c"), (3, 3, 3)), np.random.default_rng(0)
    measurements = [
        Measurement(
            query=MarginalQuery(pair), answer=rng.integers(-9, 60, domain.shape(pair)), stddev=9.0
        )
        for pair in domain.cliques(2)
    ]
    # Denoised tables of so few cells may have nothing to project.
    engine = ParticleGradientDescent(num_particles=50, epochs=1, targets="raw", enable_gpu=False)
    engine.fit(domain, measurements)
