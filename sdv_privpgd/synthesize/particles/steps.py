"""What the steps of a descent draw, and how they move particles.

A step visits tables along directions; the loss is looked at after some of the epochs, and public.
The default descent is all in a kernel. Under penalties, masks, or another optimizer each step goes
by the pull of a mini-batch.
"""

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol, runtime_checkable

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from sdv_privpgd.synthesize.particles.kernels import Kernel, PackedTargets, Positions, Visit
from sdv_privpgd.synthesize.particles.penalties import Loss, penalty_gradient


def stratified_directions(
    num_slices: int, dim: int, generator: torch.Generator, *, dtype: torch.dtype = torch.float32
) -> Float[Tensor, "slice dim"]:
    """Unit vectors that cover all directions more evenly than independent draws.

    Each is uniform on the sphere, and whole sets satisfy mean(theta theta^T) = I / dim exactly:
    in the plane the angles (j + U) / L * pi share one uniform U; from three dimensions on,
    the vectors come in random orthonormal bases.
    """
    return stratified_sets(1, num_slices, dim, generator, dtype=dtype)[0]


def stratified_sets(
    num_sets: int,
    num_slices: int,
    dim: int,
    generator: torch.Generator,
    *,
    dtype: torch.dtype = torch.float32,
) -> Float[Tensor, "set slice dim"]:
    """Independent sets of stratified directions, drawn at once."""
    if dim == 1:
        return torch.ones(num_sets, num_slices, 1, dtype=dtype)
    if dim == 2:
        offsets = torch.rand(num_sets, 1, generator=generator, dtype=torch.float64)
        angles = (torch.arange(num_slices) + offsets) * (math.pi / num_slices)
        return torch.stack((angles.cos(), angles.sin()), dim=2).to(dtype)
    num_bases = -(-num_slices // dim)
    normal = torch.randn(num_sets, num_bases, dim, dim, generator=generator, dtype=torch.float64)
    bases = torch.linalg.qr(normal).Q
    # An orthonormal basis is its matrix's columns; the sign of a direction has no effect.
    return bases.transpose(2, 3).reshape(num_sets, -1, dim)[:, :num_slices].to(dtype)


def independent_directions(
    num_slices: int, dim: int, generator: torch.Generator, *, dtype: torch.dtype = torch.float32
) -> Float[Tensor, "slice dim"]:
    """Independent uniform unit vectors, as in the paper's experiments (section 4.1)."""
    normal = torch.randn(num_slices, dim, generator=generator, dtype=torch.float64)
    return torch.nn.functional.normalize(normal, dim=1).to(dtype)


class Draw(NamedTuple):
    """The random choices of one step, and the share of the descent that is done before it.

    ``curvatures`` are those of the step's tables together along each attribute, 0 where none holds
    it, and ``shares`` says which part of all tables with the attribute these are. A batch that is
    not full is padded with table -1, whose directions are 0.
    """

    elapsed: float
    tables: Int[Tensor, " batch"]
    directions: Float[Tensor, "batch slice dim"]
    curvatures: Float[Tensor, " attribute"]
    shares: Float[Tensor, " attribute"]


def draw_steps(
    targets: PackedTargets,
    num_attributes: int,
    epochs: Iterable[int],
    num_epochs: int,
    generator: torch.Generator,
    *,
    batch_size: int,
    num_slices: int = 1,
    stratified: bool = True,
) -> Iterator[Draw]:
    """The steps of all epochs: each epoch visits every table once, in random order."""
    num_tables = len(targets.dims)
    batch_size = min(batch_size, num_tables)
    num_steps = -(-num_tables // batch_size)
    holds = _memberships(targets, num_attributes)
    # A coordinate gets the curvature of its lowest-dimensional table, the largest of all.
    curvatures = (holds[:-1] / targets.dims[:, None]).amax(dim=0)
    for epoch in epochs:
        order = torch.randperm(num_tables, generator=generator)
        directions = torch.zeros(num_steps * batch_size, num_slices, targets.axes.shape[1])
        dims = targets.dims[order]
        for dim in dims.unique().tolist():
            (places,) = torch.where(dims == dim)
            if stratified:
                drawn = stratified_sets(len(places), num_slices, dim, generator)
            else:
                drawn = independent_directions(len(places) * num_slices, dim, generator)
            directions[places, :, :dim] = drawn.view(-1, num_slices, dim)
        tables = torch.full((num_steps * batch_size,), -1)
        tables[:num_tables] = order
        tables = tables.view(num_steps, batch_size)
        directions = directions.view(num_steps, batch_size, num_slices, -1)
        counts = holds[tables].sum(dim=1)
        parts = tables, directions, counts * curvatures, counts / holds.sum(dim=0).clamp(min=1)
        for step, own in enumerate(zip(*parts, strict=True)):
            yield Draw((epoch * num_steps + step) / (num_epochs * num_steps), *own)


def _memberships(targets: PackedTargets, num_attributes: int) -> Float[Tensor, "row attribute"]:
    """1 where a table holds an attribute, else 0. The last row, of zeros, is that of table -1."""
    holds = torch.zeros(len(targets.dims) + 1, num_attributes + 1)
    holds[:-1].scatter_(1, targets.axes % (num_attributes + 1), 1.0)
    return holds[:, :num_attributes]


def transport_visits(draws: Iterable[Draw], fraction: Callable[[float], float]) -> Iterator[Visit]:
    """The visits of transport steps: each goes a fraction of the way, divided by the curvature."""
    for elapsed, tables, directions, curvatures, _ in draws:
        rates = fraction(elapsed) / curvatures
        yield Visit(tables, directions, rates.where(curvatures > 0, 0.0))


_BATCH = 64
"""Tables whose loss is looked at together."""


def stretches(num_epochs: int) -> Iterator[tuple[int, int]]:
    """The epochs after which to look, and how many epochs each one is after the look before.

    There are four looks at most, from an eighth of the epochs on: a look takes as long as an epoch.
    """
    before = 0
    for epoch in sorted({num_epochs >> halvings for halvings in range(4)} - {0}) or [0]:
        yield epoch, epoch - before
        before = epoch


def draw_views(targets: PackedTargets, num_attributes: int, seed: int) -> list[Draw]:
    """One visit of each table along one direction, to be taken again at each look."""
    generator = torch.Generator().manual_seed(seed)
    return list(draw_steps(targets, num_attributes, [0], 1, generator, batch_size=_BATCH))


def mean_loss(
    positions: Positions, targets: PackedTargets, kernel: Kernel, draws: Sequence[Draw]
) -> float:
    """The mean over tables of SW2^2 to the target along the draws' directions."""
    total = 0.0
    for draw in draws:
        _, losses = kernel.displacement(positions, targets, draw.tables, draw.directions)
        total += float(losses.cpu()[draw.tables >= 0].sum())
    return total / len(targets.dims)


class Pull(NamedTuple):
    """The gradient of a mini-batch on the coordinates it touches, in units of 2 / particles.

    In these units the gradient of one table's SW2 squared is minus the displacement, and its
    curvature in one coordinate is 1 / (dimension of the table).
    """

    columns: list[int]
    gradient: Float[Tensor, "column particle"]
    curvature: Float[Tensor, " column"]
    moving: Bool[Tensor, "column particle"] | None
    """True where the gradient is not masked; None if it is masked nowhere."""


Move = Callable[[Pull, float], Float[Tensor, "column particle"]]
"""Takes a pull and the share of the descent that is done; returns the change of positions."""


@runtime_checkable
class StepRule(Protocol):
    """A first-order optimizer of the particles."""

    def begin(self, positions: Positions) -> Move:
        """A move for these positions, with a state of its own."""
        ...


@dataclass(frozen=True, kw_only=True)
class TransportStep:
    """Goes a fraction of the way to the targets: a Gauss-Newton step of SW2 squared.

    Dividing by the curvature turns the displacement along few slices into the displacement in
    space, because E[theta theta^T] = I / dim. There is no rate to tune and no state to keep.
    The fraction falls geometrically from ``first`` to ``last``: whole steps explore, and small
    steps average the pulls of tables that cannot all be satisfied.
    """

    first: float = 1.0
    last: float = 0.2

    def fraction(self, elapsed: float) -> float:
        """The fraction of the way after a share of the descent, both from 0 to 1."""
        return self.first * (self.last / self.first) ** elapsed

    def begin(self, positions: Positions) -> Move:
        del positions

        def move(pull: Pull, elapsed: float) -> Tensor:
            change = pull.gradient * (-self.fraction(elapsed) / pull.curvature)[:, None]
            return change if pull.moving is None else change * pull.moving

        return move


def steps_by_pulls(
    positions: Positions,
    targets: PackedTargets,
    draws: Iterable[Draw],
    kernel: Kernel,
    step: StepRule,
    losses: Sequence[tuple[float, Loss]],
    mask_probability: float,
    generator: torch.Generator,
) -> Iterator[None]:
    """Moves these positions in place, a step for each draw, whenever it is asked for one."""
    move = step.begin(positions)
    for elapsed, tables, directions, curvatures, shares in draws:
        columns = curvatures.nonzero().flatten()
        total, _ = kernel.displacement(positions, targets, tables, directions)
        rows = columns.to(total.device)
        gradient = -total[rows]
        if losses:
            # A column that n tables share meets the whole penalty in n visits.
            share = shares[columns].to(gradient)[:, None]
            gradient += penalty_gradient(positions, losses)[rows] * share
        moving = None
        if mask_probability:
            drawn = torch.rand(gradient.shape, generator=generator) >= mask_probability
            moving = drawn.to(gradient.device)
        pull = Pull(columns.tolist(), gradient, curvatures[columns].to(gradient), moving)
        change = move(pull, elapsed)
        positions.index_add_(0, rows, change).clamp_(0, 1)
        yield
