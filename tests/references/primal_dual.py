"""The projection step in plain torch, one table after the other: the fast ones are tested by it."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor

from sdv_privpgd.base.progress import Progress, silent
from sdv_privpgd.synthesize.particles.batched_projection import simplex_projection
from sdv_privpgd.synthesize.particles.draws import stratified_directions
from sdv_privpgd.synthesize.particles.projection import (
    CHECK_EVERY,
    CertifiedProjection,
    Projection,
    SignedTable,
    balanced,
)


def on_simplex(values: Float[Tensor, " cell"]) -> Float[Tensor, " cell"]:
    return simplex_projection(values, torch.ones_like(values, dtype=torch.bool))


def project(
    projection: Projection,
    centers: Float[Tensor, "cell dim"],
    values: Float[Tensor, " cell"],
    generator: torch.Generator,
) -> Float[Tensor, " cell"]:
    """The projection of one table."""
    return projection.project_all([SignedTable(centers, values)], generator)[0]


@dataclass(frozen=True, kw_only=True)
class PrimalDualProjection:
    """Solves the projection as a saddle-point problem, to a duality gap.

    With fixed directions, Eq. 5 reads min over w in the simplex, max over |y| <= 1 of
    <y, K (w - v)>, where K maps a measure to its cumulative sums in the order of each slice,
    times the gaps between neighbors, divided by the number of slices. Both proximal maps are
    exact, so the primal-dual hybrid gradient method applies (Chambolle & Pock 2011, algorithm
    1), and any y gives the lower bound min_i (K^T y)_i - <K^T y, v>.

    Starts from the nearest probability vector in L2, which settles the single cells; the slices
    then settle the low frequencies. Stops when distance - bound <= precision + tolerance *
    distance, or after ``max_steps``; returns the best iterate seen, never worse than the start.

    The plain form in torch, one table after the other, is the reference of ``CompiledProjection``.
    """

    num_slices: int = 32
    max_steps: int = 200
    tolerance: float = 0.05
    precision: float = 1e-5

    def project_all(
        self, tables: Sequence[SignedTable], generator: torch.Generator, progress: Progress = silent
    ) -> list[Float[Tensor, " cell"]]:
        """Probabilities of the cells of each table (see ``Projection``)."""
        return [
            self.solve(*table, generator).probabilities for table in progress(tables, "project")
        ]

    def solve(
        self,
        centers: Float[Tensor, "cell dim"],
        values: Float[Tensor, " cell"],
        generator: torch.Generator,
    ) -> CertifiedProjection:
        """The projection with its certificate, both for the directions drawn."""
        dim = centers.shape[1]
        num_slices = self.num_slices if dim > 1 else 1
        directions = stratified_directions(num_slices, dim, generator, dtype=torch.float64)
        signed = balanced(values.double())
        start = on_simplex(signed)
        slices = _Slices.of(centers.double(), directions)
        best = CertifiedProjection(start, slices.distance(start - signed), 0.0)
        norm = slices.norm(generator)
        if norm == 0 or self._is_solved(best):
            return best

        # float32 halves the time; both bounds are evaluated in float64. The ratio of the steps is
        # that of the ways to go: |w - v| for the primal, at most 1 an entry for the dual.
        fast, v = slices.single(), signed.float()
        ratio = float((start - signed).norm()) / math.sqrt(slices.gaps.numel())
        primal_step, dual_step = ratio / norm, 1 / (ratio * norm)
        w = start.float()
        y = torch.zeros_like(fast.gaps)
        pull = torch.zeros_like(w)
        for step in range(1, self.max_steps + 1):
            previous = w
            w = on_simplex(w - primal_step * pull)
            y = (y + dual_step * fast.differences(2 * w - previous - v)).clamp(-1, 1)
            pull = fast.adjoint(y)
            if step % CHECK_EVERY == 0 or step == self.max_steps:
                best = _better(best, _certified(slices, signed, w, y))
                if self._is_solved(best):
                    break
        return best

    def _is_solved(self, found: CertifiedProjection) -> bool:
        gap = found.distance - found.lower_bound
        return gap <= self.precision + self.tolerance * found.distance


class _Slices(NamedTuple):
    """The operator K of ``PrimalDualProjection`` for fixed directions, and its adjoint."""

    order: Int[Tensor, "slice cell"]
    rank: Int[Tensor, "slice cell"]
    gaps: Float[Tensor, "slice step"]

    @classmethod
    def of(
        cls, centers: Float[Tensor, "cell dim"], directions: Float[Tensor, "slice dim"]
    ) -> "_Slices":
        positions, order = (directions @ centers.T).sort(dim=1)
        return cls(order, order.argsort(dim=1), positions.diff(dim=1) / len(directions))

    def single(self) -> "_Slices":
        return self._replace(gaps=self.gaps.float())

    def differences(self, signed: Float[Tensor, " cell"]) -> Float[Tensor, "slice step"]:
        return signed[self.order].cumsum(dim=1)[:, :-1] * self.gaps

    def adjoint(self, dual: Float[Tensor, "slice step"]) -> Float[Tensor, " cell"]:
        remaining = (dual * self.gaps).flip(1).cumsum(dim=1).flip(1)
        padded = torch.nn.functional.pad(remaining, (0, 1))
        return padded.gather(1, self.rank).sum(dim=0)

    def distance(self, signed: Float[Tensor, " cell"]) -> float:
        return float(self.differences(signed).abs().sum())

    def norm(self, generator: torch.Generator) -> float:
        """The largest singular value of K on measures of mass 0, by 20 power iterations."""
        num_cells = self.order.shape[1]
        vector = torch.randn(num_cells, generator=generator, dtype=self.gaps.dtype)
        length = torch.zeros((), dtype=self.gaps.dtype)
        for _ in range(20):
            vector = vector - vector.mean()
            vector = self.adjoint(self.differences(vector))
            vector = vector - vector.mean()
            length = vector.norm()
            if length == 0:
                break
            vector = vector / length
        # The iteration approaches the square of the norm from below; 2 % more is on the safe side.
        return 1.02 * math.sqrt(float(length))


def _certified(
    slices: _Slices,
    signed: Float[Tensor, " cell"],
    w: Float[Tensor, " cell"],
    y: Float[Tensor, "slice step"],
) -> CertifiedProjection:
    probabilities = w.double() / w.double().sum()
    pull = slices.adjoint(y.double())
    lower_bound = float(pull.min() - pull @ signed)
    return CertifiedProjection(probabilities, slices.distance(probabilities - signed), lower_bound)


def _better(first: CertifiedProjection, second: CertifiedProjection) -> CertifiedProjection:
    """The smaller distance with the larger bound: each holds for both."""
    closer = min(first, second, key=lambda found: found.distance)
    return closer._replace(lower_bound=max(first.lower_bound, second.lower_bound))
