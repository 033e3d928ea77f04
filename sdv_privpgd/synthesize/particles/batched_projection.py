"""The projection step in torch's own operations, for many tables at once on any device."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from sdv_privpgd.base.progress import Progress, silent
from sdv_privpgd.synthesize.particles.projection import (
    CHECK_EVERY,
    PRIMAL_SHARE,
    RELAXATION,
    SMALLEST_GAP,
    CertifiedProjection,
    CertifiedSolver,
    SignedTable,
    balanced,
)

Cells = Float[Tensor, "table cell"]
Steps = Float[Tensor, "table slice step"]

_PLACES_AT_ONCE = 2**24
"""Cells times slices of one group: about 1 GB."""


@dataclass(frozen=True, kw_only=True)
class BatchedProjection(CertifiedSolver):
    """Runs the iteration of ``CompiledProjection`` on devices of many cores, or without numba.

    Tables of similar size are padded to one layout (table, slice, cell) and advance together.
    Solved tables drop out at each look at the gaps, which is the only wait for the device. The bits
    may differ from device to device.

    Attributes:
        device: The device that solves it. The results are on the processor.
    """

    device: str = "cpu"

    def solve_all(
        self, tables: Sequence[SignedTable], generator: torch.Generator, progress: Progress = silent
    ) -> list[CertifiedProjection]:
        directions = self.draw_directions(tables, generator)
        # Sizes in a group differ by less than a factor of two: padding no more than doubles them.
        groups: list[list[int]] = []
        filling: dict[tuple[int, int], list[int]] = {}
        for place, (theta, (_, values)) in enumerate(zip(directions, tables, strict=True)):
            key = (len(theta), (len(values) - 1).bit_length())
            group = filling.get(key)
            if group is None or len(group) >= _PLACES_AT_ONCE // (key[0] << key[1]):
                group = filling[key] = []
                groups.append(group)
            group.append(place)
        left, found = iter(groups), dict[int, CertifiedProjection]()
        for place, _ in enumerate(progress(tables, "project")):
            while place not in found:
                group = next(left)
                solved = self._solve([tables[i] for i in group], [directions[i] for i in group])
                found.update(zip(group, solved, strict=True))
        return [found[place] for place in range(len(tables))]

    def _solve(
        self, tables: Sequence[SignedTable], directions: Sequence[Float[Tensor, "slice _"]]
    ) -> list[CertifiedProjection]:
        """One group of tables with equally many directions."""
        sizes = [len(values) for _, values in tables]
        problem = _Problem.of(tables, directions, torch.device(self.device))
        weights = simplex_projection(problem.signed, problem.real).double()
        distances = problem.distances(weights)
        bounds = torch.zeros_like(distances)
        ways = (weights - problem.signed).norm(dim=1)
        primal_steps, dual_steps = _steps(problem, ways)
        state = _State(
            places=torch.arange(len(weights), device=weights.device),
            problem=problem,
            signed=problem.signed.float(),
            gaps=problem.gaps.float(),
            primal_step=primal_steps.float()[:, None],
            dual_steps=dual_steps.float(),
            w=weights.float(),
            y=torch.zeros_like(problem.gaps, dtype=torch.float32),
            pull=torch.zeros_like(weights, dtype=torch.float32),
        )
        # A table of one cell, or of cells on one point, has no gap and no distance.
        left = (distances > self.precision) & (ways > 0) & (primal_steps > 0)
        elapsed = 0
        most_steps = self.most_steps(problem.order[0].numel())
        while elapsed < most_steps and bool(left.any()):
            state = state.of_tables(left)
            index = state.places
            num_steps = min(CHECK_EVERY, most_steps - elapsed)
            last = state.advance(num_steps)
            elapsed += num_steps
            probabilities = last.double()
            probabilities /= probabilities.sum(dim=1, keepdim=True)
            reached = state.problem.distances(probabilities)
            closer = reached < distances[index]
            weights[index] = torch.where(closer[:, None], probabilities, weights[index])
            distances[index] = distances[index].minimum(reached)
            bounds[index] = bounds[index].maximum(state.problem.lower_bounds(state.y))
            gaps = distances - bounds
            left = (gaps > self.precision + self.tolerance * distances)[index]
        weights, distances, bounds = weights.cpu(), distances.tolist(), bounds.tolist()
        return [
            CertifiedProjection(row[:size].clone(), distance, bound)
            for row, size, distance, bound in zip(weights, sizes, distances, bounds, strict=True)
        ]


class _Problem(NamedTuple):
    """Signed tables and the operator K of ``CertifiedSolver``, padded to equal size.

    Cells that a table lacks come last in each slice's order, at no distance from each other, and
    hold nothing.
    """

    signed: Cells
    real: Bool[Tensor, "table cell"]
    order: Int[Tensor, "table slice cell"]
    rank: Int[Tensor, "table slice cell"]
    gaps: Steps

    @classmethod
    def of(
        cls,
        tables: Sequence[SignedTable],
        directions: Sequence[Float[Tensor, "slice _"]],
        device: torch.device,
    ) -> "_Problem":
        num_cells = max(len(values) for _, values in tables)
        dim = max(centers.shape[1] for centers, _ in tables)
        centers = torch.zeros(len(tables), num_cells, dim, dtype=torch.float64)
        thetas = torch.zeros(len(tables), len(directions[0]), dim, dtype=torch.float64)
        signed = torch.zeros(len(tables), num_cells, dtype=torch.float64)
        real = torch.zeros(signed.shape, dtype=torch.bool)
        for row, ((own, values), theta) in enumerate(zip(tables, directions, strict=True)):
            centers[row, : len(own), : own.shape[1]] = own
            thetas[row, :, : own.shape[1]] = theta
            signed[row, : len(own)] = balanced(values.double())
            real[row, : len(own)] = True
        signed, real = signed.to(device), real.to(device)
        projected = thetas.to(device) @ centers.to(device).transpose(1, 2)
        projected = projected.masked_fill(~real[:, None], torch.inf)
        positions, order = projected.sort(dim=2)
        gaps = positions.diff(dim=2).masked_fill(~positions[..., 1:].isfinite(), 0.0)
        return cls(signed, real, order, order.argsort(dim=2), gaps / thetas.shape[1])

    def sums(self, signed: Cells) -> Steps:
        """The cumulative sums in the order of each slice: K without its gaps."""
        wide = signed[:, None].expand_as(self.order)
        return wide.gather(2, self.order[..., :-1]).cumsum(dim=2)

    def adjoint(self, dual: Steps, gaps: Steps) -> Cells:
        """K^T dual up to a constant for each table, which measures of equal mass do not see."""
        before = torch.nn.functional.pad((dual * gaps).cumsum(dim=2), (1, 0))
        return -before.gather(2, self.rank).sum(dim=1)

    def distances(self, weights: Cells) -> Float[Tensor, " table"]:
        """SW1 of each table's weights to its signed values, float64."""
        return (self.sums(weights - self.signed).abs() * self.gaps).sum(dim=(1, 2))

    def lower_bounds(self, dual: Steps) -> Float[Tensor, " table"]:
        """min_i (K^T y)_i - <K^T y, signed> for y clipped to [-1, 1], float64."""
        pull = self.adjoint(dual.double().clamp(-1, 1), self.gaps)
        least = pull.masked_fill(~self.real, torch.inf).amin(dim=1)
        return least - (pull * self.signed).sum(dim=1)

    def norms(self, gaps: Steps) -> Float[Tensor, " table"]:
        """The largest singular values of K with these gaps, by 20 power iterations, plus 2 %."""
        num_cells = self.real.sum(dim=1, keepdim=True)
        cell = torch.arange(self.real.shape[1], dtype=gaps.dtype, device=gaps.device)
        vector = (1.7 * cell).cos() + (2 * cell / (num_cells - 1).clamp(min=1) - 1)
        lengths = gaps.new_zeros(len(gaps))
        for _ in range(20):
            vector = _centered(vector * self.real, num_cells) * self.real
            vector = self.adjoint(self.sums(vector) * gaps, gaps) * self.real
            vector = _centered(vector, num_cells) * self.real
            lengths = vector.norm(dim=1)
            vector = vector / lengths.clamp(min=torch.finfo(gaps.dtype).tiny)[:, None]
        return 1.02 * lengths.sqrt()


class _State(NamedTuple):
    """The iterates of the tables that are not solved yet, float32, and where they come from."""

    places: Int[Tensor, " table"]
    problem: _Problem
    signed: Cells
    gaps: Steps
    primal_step: Float[Tensor, "table 1"]
    dual_steps: Steps
    w: Cells
    y: Steps
    pull: Cells

    def of_tables(self, kept: Bool[Tensor, " table"]) -> "_State":
        """The part of these tables."""
        if bool(kept.all()):
            return self
        rest = {name: part[kept] for name, part in self._asdict().items() if name != "problem"}
        return _State(problem=_Problem(*(part[kept] for part in self.problem)), **rest)

    def advance(self, num_steps: int) -> Cells:
        """Takes so many steps in place; returns the last probabilities."""
        last = self.w
        for _ in range(num_steps):
            last = simplex_projection(self.w - self.primal_step * self.pull, self.problem.real)
            reflected = 2 * last - self.w - self.signed
            self.w.lerp_(last, RELAXATION)
            following = self.problem.sums(reflected).mul_(self.dual_steps).add_(self.y)
            self.y.lerp_(following.clamp_(-1, 1), RELAXATION)
            self.pull.copy_(self.problem.adjoint(self.y, self.gaps))
        return last


def _steps(
    problem: _Problem, ways: Float[Tensor, " table"]
) -> tuple[Float[Tensor, " table"], Steps]:
    """The step of the primal, 0 where there is nothing to do, and of each entry of the dual."""
    gaps = problem.gaps
    largest = gaps.flatten(1).amax(dim=1) if gaps.shape[2] else gaps.new_zeros(len(gaps))
    tiny = torch.finfo(gaps.dtype).tiny
    floor = (SMALLEST_GAP * largest).clamp(min=tiny)[:, None, None]
    scales = largest[:, None, None] / gaps.maximum(floor)  # squares of the dual's
    norms = problem.norms(gaps * scales.sqrt())
    entries = gaps.shape[1] * (problem.real.sum(dim=1) - 1).clamp(min=1)
    ratios = PRIMAL_SHARE * ways / entries.sqrt()
    duals = scales * gaps / (ratios * norms).clamp(min=tiny)[:, None, None]
    return torch.where(norms > 0, ratios / norms, 0.0), duals


def simplex_projection(
    values: Float[Tensor, "*table cell"], real: Bool[Tensor, "*table cell"]
) -> Float[Tensor, "*table cell"]:
    """The nearest probability vectors in L2 on the real cells (Held, Wolfe & Crowder 1974)."""
    values = values.masked_fill(~real, -torch.inf)
    descending = values.sort(dim=-1, descending=True).values
    ranks = torch.arange(1, values.shape[-1] + 1, device=values.device)
    thresholds = (descending.cumsum(dim=-1, dtype=torch.float64) - 1) / ranks
    support = (descending > thresholds).sum(dim=-1, keepdim=True).clamp(min=1)
    return (values - thresholds.gather(-1, support - 1)).clamp(min=0).to(values.dtype)


def _centered(vector: Cells, num_cells: Int[Tensor, "table 1"]) -> Cells:
    return vector - vector.sum(dim=1, keepdim=True) / num_cells
