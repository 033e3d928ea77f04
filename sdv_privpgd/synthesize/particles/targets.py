"""Makes the tables that a fit aims at: signed measures of noisy answers, then packed targets."""

from collections.abc import Sequence
from itertools import product
from typing import NamedTuple

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from sdv_privpgd.base.domain import Clique, Domain
from sdv_privpgd.base.progress import Progress, silent
from sdv_privpgd.estimate.consistency import (
    ConsistentTables,
    Possible,
    consistent_tables,
    emptied,
    possible_cells,
)
from sdv_privpgd.estimate.denoising import denoised
from sdv_privpgd.estimate.noisy_tables import noisy_tables
from sdv_privpgd.estimate.prior import WeightedRows, believed
from sdv_privpgd.privacy.queries import Measurement
from sdv_privpgd.synthesize.particles.embedding import embed, nearest_codes
from sdv_privpgd.synthesize.particles.kernels.targets import PackedTargets


class Goal(NamedTuple):
    """A clique's supported cells and their signed values, which sum to about 1."""

    axes: tuple[int, ...]
    centers: Float[Tensor, "cell dim"]
    values: Float[Tensor, " cell"]


class Goals(NamedTuple):
    """The goals of a fit, and the tables of counts that they come from."""

    tables: ConsistentTables
    each: list[Goal]


TARGETS = ("denoised", "consistent", "raw")
"""Kinds of targets: tables made to agree and denoised, only made to agree, or as measured."""


def goals_of(
    domain: Domain,
    measurements: Sequence[Measurement],
    kind: str,
    possible: Possible,
    progress: Progress = silent,
    prior: WeightedRows | None = None,
) -> Goals:
    """A goal for each clique, without the cells that ``possible`` says no row can be in."""
    agreed = consistent_tables(domain, measurements)
    if prior is not None:
        agreed = believed(agreed, measurements, prior, progress)
    elif kind == "denoised":
        agreed = denoised(agreed, progress)
    if possible:
        agreed = emptied(agreed, possible)
    if kind != "raw":
        counts = agreed.tables
        support = {clique: agreed.support(clique) for clique in counts}
    else:
        noisy = noisy_tables(domain, measurements)
        counts = {clique: table.counts for clique, table in noisy.items()}
        support = {
            clique: tuple(np.arange(size) for size in table.shape)
            for clique, table in counts.items()
        }
    goals = []
    for clique, table in counts.items():
        cells = np.array(list(product(*support[clique])))
        cells = cells[possible_cells(clique, table.shape, possible)[tuple(cells.T)]]
        if not len(cells):  # all cells with support are impossible
            continue
        values = torch.from_numpy(table[tuple(cells.T)] / agreed.total)
        centers = embed(torch.from_numpy(cells), domain.shape(clique), torch.float64)
        goals.append(Goal(domain.axes(clique), centers, values))
    return Goals(agreed, goals)


def probabilities(
    domain: Domain, goals: Sequence[Goal], weights: Sequence[Float[Tensor, " _"]]
) -> dict[Clique, np.ndarray]:
    """The cells' weights as full tables, with 0 in cells without support."""
    found = {}
    for goal, own in zip(goals, weights, strict=True):
        clique = tuple(domain.attributes[axis] for axis in goal.axes)
        found[clique] = np.zeros(domain.shape(clique))
        cells = nearest_codes(goal.centers, domain.shape(clique)).numpy()
        found[clique][tuple(cells.T)] = own.numpy()
    return found


def packed(goals: Sequence[Goal], weights: Sequence[Float[Tensor, " _"]]) -> PackedTargets:
    """The targets of all goals, without the cells of weight 0."""
    filled = [those > 0 for those in weights]
    return PackedTargets.of(
        [goal.axes for goal in goals],
        [goal.centers[those] for goal, those in zip(goals, filled, strict=True)],
        [own[those] for own, those in zip(weights, filled, strict=True)],
    )
