"""The tables that a fit aims at, as points of the unit cube and their values."""

from collections.abc import Mapping, Sequence

import numpy as np
import torch
from jaxtyping import Float, Int
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
from sdv_privpgd.estimate.prior import WeightedRows, towards
from sdv_privpgd.privacy.queries import Measurement
from sdv_privpgd.synthesize.particles.kernels import PackedTargets
from sdv_privpgd.synthesize.particles.projection import SignedTable


def embed(
    codes: Int[Tensor, "particle dim"], sizes: Sequence[int], dtype: torch.dtype = torch.float32
) -> Float[Tensor, "particle dim"]:
    """Cell centers (2 c + 1) / (2 k) of codes c = 0, ..., k - 1 (Donhauser et al. 2024, Eq. 4)."""
    shape = torch.tensor(sizes, dtype=dtype, device=codes.device)
    return (2 * codes + 1).to(dtype) / (2 * shape)


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


TARGETS = ("denoised", "consistent", "raw")
"""Kinds of targets: tables made to agree and denoised, only made to agree, or as measured."""

Goals = dict[Clique, SignedTable]
"""For each clique its supported cells and their signed values, which sum to about 1."""


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
            centers = embed(cells, domain.shape(clique), torch.float64)
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
