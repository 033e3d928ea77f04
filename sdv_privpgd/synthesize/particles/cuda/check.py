"""Triton's kernels against the reference on small problems, before a fit trusts them.

The problems are made up, so what is found is public. They are chosen such that the kernels have
to agree with the reference: particles that are alone in their bins get the exact displacement
(``kernels.cpu`` says why), and bins that many share keep its sum.
"""

import math
from collections.abc import Callable
from functools import cache

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor
from triton import TritonError

from sdv_privpgd.domain import Clique, Domain
from sdv_privpgd.synthesize.particles.cuda import displacement as kernels
from sdv_privpgd.synthesize.particles.cuda.batched_finish import BatchedFinish
from sdv_privpgd.synthesize.particles.embedding import cell_centers
from sdv_privpgd.synthesize.particles.kernels.targets import PackedTargets, Visit
from sdv_privpgd.synthesize.particles.references import displacement as reference

_TOLERANCE = 1e-5  # of float32 positions of size 1, a few of them added up

_AXES = ((0,), (2, 1), (0, 1, 2))
_SHAPES = ((4,), (3, 5), (2, 3, 2))


@cache
def faults(device: torch.device) -> tuple[str, ...]:
    """The steps whose kernels fail on a device: "descent", "finish", both or none.

    A process checks a device once. A kernel that cannot be compiled or launched fails, too.
    """
    checks: dict[str, Callable[[torch.device], bool]] = {
        "descent": displaces_and_descends,
        "finish": exchanges,
    }
    return tuple(step for step, is_right in checks.items() if not _holds(is_right, device))


def _holds(is_right: Callable[[torch.device], bool], device: torch.device) -> bool:
    try:
        return is_right(device)
    except (RuntimeError, TritonError):
        return False


def displaces_and_descends(device: torch.device) -> bool:
    """Whether one displacement and two descents are those of the reference."""
    targets = _targets()
    sparse, dense = _sparse_positions(24), _dense_positions(700)
    tables = torch.tensor([2, 0, -1, 1])
    directions = _directions(tables)
    found, losses = kernels.displacement(
        sparse.to(device), targets.to(device), tables, directions, num_bins=512
    )
    exact, exact_losses = reference.displacement(sparse, targets, tables, directions)
    shared, _ = kernels.displacement(
        dense.to(device), targets.to(device), tables, directions, num_bins=16
    )
    all_exact, _ = reference.displacement(dense, targets, tables, directions)
    return (
        _agree(found, exact)
        and _agree(losses, exact_losses)
        and _agree(shared.double().mean(dim=1), all_exact.double().mean(dim=1))
        and all(_descends(device, targets, torch.tensor(batch)) for batch in ([1], [2, 0]))
    )


def _descends(device: torch.device, targets: PackedTargets, tables: Tensor) -> bool:
    """Whether the first step and the first one that is replayed as a graph are right."""
    positions, directions = _sparse_positions(24), _directions(tables)
    still, moving = torch.zeros(3), torch.full((3,), 0.5)
    visits = [Visit(tables, directions, rates) for rates in (moving, still)]
    exact = reference.descend(positions, targets, visits[:1])
    first_steps = [visits[0]]
    replayed = [visits[1]] * kernels.SEGMENT_STEPS + [visits[0]]
    return all(
        _agree(
            kernels.descend(positions.to(device), targets.to(device), steps, num_bins=512), exact
        )
        for steps in (first_steps, replayed)
    )


def exchanges(device: torch.device) -> bool:
    """Whether a sweep takes particles that are independent most of the way to a table.

    The objective is counted anew, from the codes that come back.
    """
    domain = Domain(("a", "b"), (4, 3))
    target = np.eye(4, 3) + 0.05
    targets: dict[Clique, np.ndarray] = {("a", "b"): target / target.sum()}
    codes = np.stack([np.arange(240) % 4, np.arange(240) // 4 % 3], axis=1)
    moved = BatchedFinish(sweeps=1, device=str(device))(codes, domain, targets, 0)
    if (moved < 0).any() or (moved >= domain.sizes).any():
        return False
    before, after = (_squares(each, domain, targets) for each in (codes, moved))
    return after < 0.1 * before


def _squares(codes: np.ndarray, domain: Domain, targets: dict[Clique, np.ndarray]) -> float:
    total = 0.0
    for clique, target in targets.items():
        cells = np.ravel_multi_index(tuple(codes[:, domain.axes(clique)].T), target.shape)
        counts = np.bincount(cells, minlength=target.size).reshape(target.shape)
        total += float(np.square(target * len(codes) - counts).sum())
    return total


def _agree(found: Tensor, expected: Tensor) -> bool:
    found = found.cpu()
    return bool(found.isfinite().all()) and bool(
        ((found - expected).abs() <= _TOLERANCE * (1 + expected.abs())).all()
    )


def _targets() -> PackedTargets:
    """A table of each dimension, whose cells have unequal weights."""
    sizes = [math.prod(shape) for shape in _SHAPES]
    return PackedTargets.of(
        _AXES,
        [cell_centers(shape) for shape in _SHAPES],
        [1.0 + torch.arange(size, dtype=torch.float64) * 7 % 5 for size in sizes],
    )


def _directions(tables: Tensor) -> Float[Tensor, "batch slice dim"]:
    """Two directions for each table, of both signs; 0 in the dimensions that it lacks."""
    directions = torch.zeros(len(tables), 2, 3)
    for place, table in enumerate(tables.tolist()):
        if table >= 0:
            dim = len(_AXES[table])
            rows = torch.tensor([[1.0, 0.5, 2.0], [2.0, -0.5, 1.0]])[:, :dim]
            directions[place, :, :dim] = rows / rows.norm(dim=1, keepdim=True)
    return directions


def _sparse_positions(number: int) -> Float[Tensor, "attribute particle"]:
    """Evenly on the diagonal, out of order: along both directions one in many bins."""
    steps = torch.arange(number) * 7 % number
    return ((steps + 0.5) / number).repeat(3, 1)


def _dense_positions(number: int) -> Float[Tensor, "attribute particle"]:
    """Spread over the cube, many to a bin."""
    steps = torch.arange(1, number + 1, dtype=torch.float64)
    return torch.stack([(steps * root**0.5) % 1 for root in (2, 3, 5)]).float()
