"""The projection step compiled: all tables at once, each solved on one core."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import no_type_check

import numpy as np
import torch
from jaxtyping import Float
from numba import njit, prange
from torch import Tensor

from sdv_privpgd.progress import Progress, silent
from sdv_privpgd.synthesize.particles.projection import CertifiedProjection, SignedTable, balanced
from sdv_privpgd.synthesize.particles.wasserstein import stratified_directions


@dataclass(frozen=True, kw_only=True)
class CompiledProjection:
    """The problem, the start and the certificate of ``PrimalDualProjection`` in fewer steps.

    The iteration is the same but for two changes, which halve the excess over the optimum after
    a given number of steps. Each entry of the dual has its own step, in inverse proportion to
    its gap (diagonal preconditioning, Pock & Chambolle 2011, section 2), and every step is
    overrelaxed by ``RELAXATION`` (Condat 2013, theorem 3.2: any factor below 2 converges).

    Tables are solved in parallel and independently, each by one thread in a fixed order of
    operations: results have the same bits for any number of threads. Iterates are float32, both
    bounds float64.

    Attributes:
        num_slices: Directions per table, fixed while it is solved.
        max_steps: 600 end within 1 % of the distance after 5,000, summed over the 55 tables of
            11 columns, whether made consistent or as measured.
        tolerance: Relative duality gap to stop at.
        precision: Absolute gap to stop at. The noise of a table is hundreds of times larger.
    """

    num_slices: int = 32
    max_steps: int = 600
    tolerance: float = 0.01
    precision: float = 1e-6

    def __call__(
        self,
        centers: Float[Tensor, "cell dim"],
        values: Float[Tensor, " cell"],
        generator: torch.Generator,
    ) -> Float[Tensor, " cell"]:
        """Probabilities of one table's cells (see ``Projection``)."""
        return self.solve_all([SignedTable(centers, values)], generator)[0].probabilities

    def project_all(
        self,
        tables: Sequence[SignedTable],
        generator: torch.Generator,
        progress: Progress = silent,
    ) -> list[Float[Tensor, " cell"]]:
        """Probabilities of the cells of each table (see ``Projection``)."""
        found: list[CertifiedProjection] = []
        waiting: list[SignedTable] = []
        for table in progress(tables, "project"):
            waiting.append(table)
            if len(waiting) == _TABLES_AT_ONCE:
                found += self.solve_all(waiting, generator)
                waiting = []
        found += self.solve_all(waiting, generator)
        return [each.probabilities for each in found]

    def solve_all(
        self, tables: Sequence[SignedTable], generator: torch.Generator
    ) -> list[CertifiedProjection]:
        """The projections with their certificates, for the directions drawn."""
        if not tables:
            return []
        projected, signed = [], []
        for centers, values in tables:
            dim = centers.shape[1]
            num_slices = self.num_slices if dim > 1 else 1
            directions = stratified_directions(num_slices, dim, generator, dtype=torch.float64)
            projected.append((centers.double().cpu() @ directions.T).numpy())
            signed.append(balanced(values.double().cpu()).numpy())
        # Tables differ in shape: they go to the kernel end to end.
        first_cell = np.cumsum([0, *(len(values) for values in signed)])
        first_place = np.cumsum([0, *(positions.size for positions in projected)])
        weights = np.empty(first_cell[-1])
        bounds = np.empty((len(tables), 2))
        _solve_all(
            np.concatenate(signed),
            np.concatenate([positions.ravel() for positions in projected]),
            first_cell,
            first_place,
            np.int64(self.max_steps),
            float(self.tolerance),
            float(self.precision),
            weights,
            bounds,
        )
        return [
            CertifiedProjection(torch.from_numpy(part), float(distance), float(lower_bound))
            for part, (distance, lower_bound) in zip(
                np.split(weights, first_cell[1:-1]), bounds, strict=True
            )
        ]


RELAXATION = 1.8
"""Overrelaxation of both iterates."""

_TABLES_AT_ONCE = 64
"""Enough for all threads; bounds the memory and lets progress show."""

_CHECK_EVERY = 25
"""Steps between two looks at the gap; a look costs about two steps."""

_SMALLEST_GAP = 1e-3
"""Gaps below this share of the largest count as so large in the choice of the dual's steps."""


@njit(cache=True, parallel=True)
@no_type_check
def _solve_all(
    signed, projected, first_cell, first_place, max_steps, tolerance, precision, weights, bounds
):
    """Solves table after table; fills weights and bounds (distance, lower bound)."""
    for t in prange(len(bounds)):
        v = signed[first_cell[t] : first_cell[t + 1]]
        positions = projected[first_place[t] : first_place[t + 1]].reshape(len(v), -1)
        w = weights[first_cell[t] : first_cell[t + 1]]
        bounds[t, 0], bounds[t, 1] = _solve(v, positions, max_steps, tolerance, precision, w)


@njit(cache=True)
@no_type_check
def _solve(v, positions, max_steps, tolerance, precision, best):
    """Writes the best probabilities; returns their distance and a lower bound on it.

    Arrays over slices have shape (step, slice), so that the slices of one step lie side by side
    and their cumulative sums advance together.
    """
    num_cells, num_slices = positions.shape
    order = np.empty((num_cells, num_slices), np.int32)
    gaps = np.empty((num_cells - 1, num_slices))
    for s in range(num_slices):
        order[:, s] = np.argsort(positions[:, s])
        for j in range(num_cells - 1):
            gaps[j, s] = (positions[order[j + 1, s], s] - positions[order[j, s], s]) / num_slices
    _to_simplex(v, best)
    distance, lower_bound = _distance(best - v, order, gaps), 0.0
    way = math.sqrt(((best - v) ** 2).sum())
    if num_cells == 1 or distance <= precision or way == 0:
        return distance, lower_bound

    largest = gaps.max()
    scales = largest / np.maximum(gaps, _SMALLEST_GAP * largest)  # squares of the dual's
    norm = _norm(order, gaps * np.sqrt(scales))
    if norm == 0:
        return distance, lower_bound
    ratio = way / math.sqrt(gaps.size)
    primal_step = np.float32(ratio / norm)
    dual_steps = (scales * gaps / (ratio * norm)).astype(np.float32)
    narrow, signed = gaps.astype(np.float32), v.astype(np.float32)
    relaxation, one = np.float32(RELAXATION), np.float32(1)
    w = best.astype(np.float32)
    y = np.zeros(gaps.shape, np.float32)
    pull = np.zeros_like(w)
    moved, w_new, reflected = np.empty_like(w), np.empty_like(w), np.empty_like(w)
    sums = np.empty(num_slices, np.float32)
    for step in range(1, max_steps + 1):
        for i in range(num_cells):
            moved[i] = w[i] - primal_step * pull[i]
        _to_simplex(moved, w_new)
        for i in range(num_cells):
            reflected[i] = 2 * w_new[i] - w[i] - signed[i]
            w[i] += relaxation * (w_new[i] - w[i])
        sums[:] = 0
        for j in range(num_cells - 1):
            for s in range(num_slices):
                sums[s] += reflected[order[j, s]]
                y_new = min(max(y[j, s] + dual_steps[j, s] * sums[s], -one), one)
                y[j, s] += relaxation * (y_new - y[j, s])
        _adjoint(y, order, narrow, sums, pull)
        if step % _CHECK_EVERY == 0 or step == max_steps:
            found = w_new.astype(np.float64)
            found /= found.sum()
            found_distance = _distance(found - v, order, gaps)
            if found_distance < distance:
                distance = found_distance
                best[:] = found
            lower_bound = max(lower_bound, _lower_bound(y, v, order, gaps))
            if distance - lower_bound <= precision + tolerance * distance:
                break
    return distance, lower_bound


@njit(cache=True)
@no_type_check
def _to_simplex(values, out):
    """The nearest probability vector in L2: values minus a threshold, clipped at 0.

    The threshold climbs to its place as values below it drop out (Michelot 1986): no sort.
    """
    total = 0.0
    for i in range(len(values)):
        total += values[i]
    threshold = (total - 1) / len(values)
    while True:
        above, count = 0.0, 0
        for i in range(len(values)):
            if values[i] > threshold:
                above += values[i]
                count += 1
        following = (above - 1) / max(count, 1)
        if following <= threshold or count == 0:
            break
        threshold = following
    for i in range(len(values)):
        out[i] = max(values[i] - threshold, 0.0)


@njit(cache=True)
@no_type_check
def _adjoint(y, order, gaps, sums, pull):
    """K^T y into pull: sums over the steps at and after each cell's place, over all slices."""
    pull[:] = 0
    sums[:] = 0
    for j in range(gaps.shape[0] - 1, -1, -1):
        for s in range(gaps.shape[1]):
            sums[s] += y[j, s] * gaps[j, s]
            pull[order[j, s]] += sums[s]


@njit(cache=True)
@no_type_check
def _distance(difference, order, gaps):
    """|K difference|_1."""
    sums = np.zeros(gaps.shape[1])
    distance = 0.0
    for j in range(gaps.shape[0]):
        for s in range(gaps.shape[1]):
            sums[s] += difference[order[j, s]]
            distance += abs(sums[s]) * gaps[j, s]
    return distance


@njit(cache=True)
@no_type_check
def _lower_bound(y, v, order, gaps):
    """min_i (K^T y)_i - <K^T y, v> for y clipped to [-1, 1]."""
    clipped = np.minimum(np.maximum(y.astype(np.float64), -1.0), 1.0)
    pull = np.empty_like(v)
    _adjoint(clipped, order, gaps, np.empty(gaps.shape[1]), pull)
    return pull.min() - (pull * v).sum()


@njit(cache=True)
@no_type_check
def _norm(order, gaps):
    """The largest singular value of K on measures of mass 0, by 20 power iterations, plus 2 %."""
    num_cells, num_slices = order.shape
    vector = np.cos(1.7 * np.arange(num_cells)) + np.linspace(-1, 1, num_cells)
    image = np.empty(gaps.shape)
    sums = np.empty(num_slices)
    length = 0.0
    for _ in range(20):
        vector -= vector.mean()
        sums[:] = 0
        for j in range(num_cells - 1):
            for s in range(num_slices):
                sums[s] += vector[order[j, s]]
                image[j, s] = sums[s] * gaps[j, s]
        _adjoint(image, order, gaps, sums, vector)
        vector -= vector.mean()
        length = math.sqrt((vector**2).sum())
        if length == 0:
            break
        vector /= length
    return 1.02 * math.sqrt(length)
