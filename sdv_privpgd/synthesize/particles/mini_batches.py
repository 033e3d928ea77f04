"""Draws the tables that each step visits, and the directions of each visit."""

from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor

from sdv_privpgd.synthesize.particles.directions import stratified_sets
from sdv_privpgd.synthesize.particles.kernels.targets import PackedTargets, Visit
from sdv_privpgd.synthesize.particles.published.directions import independent_directions


class Draw(NamedTuple):
    """The random choices of one step, and the share of the descent that is done before it.

    ``counts`` says how many of the step's tables hold each attribute. A batch that is not full is
    padded with table -1, whose directions are 0.
    """

    elapsed: float
    tables: Int[Tensor, " batch"]
    directions: Float[Tensor, "batch slice dim"]
    counts: Float[Tensor, " attribute"]


def draw_steps(
    targets: PackedTargets,
    num_attributes: int,
    epochs: Iterable[int],
    num_epochs: int,
    generator: torch.Generator,
    *,
    batch_size: int,
    num_slices: int,
    stratified: bool,
) -> Iterator[Draw]:
    """The steps of all epochs: each epoch visits every table once, in random order."""
    num_tables = len(targets.dims)
    batch_size = min(batch_size, num_tables)
    num_steps = -(-num_tables // batch_size)
    holds = memberships(targets, num_attributes)
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
        for step in range(num_steps):
            elapsed = (epoch * num_steps + step) / (num_epochs * num_steps)
            yield Draw(elapsed, tables[step], directions[step], counts[step])


def memberships(targets: PackedTargets, num_attributes: int) -> Float[Tensor, "row attribute"]:
    """1 where a table holds an attribute, else 0. The last row, of zeros, is that of table -1."""
    holds = torch.zeros(len(targets.dims) + 1, num_attributes + 1)
    holds[:-1].scatter_(1, targets.axes % (num_attributes + 1), 1.0)
    return holds[:, :num_attributes]


def transport_visits(
    draws: Iterable[Draw],
    fraction: Callable[[float], float],
    curvatures: Float[Tensor, " attribute"],
) -> Iterator[Visit]:
    """The visits of transport steps: each goes a fraction of the way, divided by the curvature."""
    for elapsed, tables, directions, counts in draws:
        rates = fraction(elapsed) / (counts * curvatures)
        yield Visit(tables, directions, rates.where(counts > 0, 0.0))
