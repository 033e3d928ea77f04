"""The projection step finds a probability measure near a signed measure in sliced W1.

The default one is compiled: it solves the tables in parallel, each on one core.
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol, no_type_check, runtime_checkable

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from sdv_privpgd.base.progress import Progress, silent
from sdv_privpgd.estimate.support import simplex_projection
from sdv_privpgd.synthesize.particles.compiler import Threads, inner, njit
from sdv_privpgd.synthesize.particles.steps import stratified_directions


class SignedTable(NamedTuple):
    """The centers of a table's cells and their signed values, which sum to about 1."""

    centers: Float[Tensor, "cell dim"]
    values: Float[Tensor, " cell"]


@runtime_checkable
class Projection(Protocol):
    """Solves argmin over probabilities w of SW1(w, values) (Donhauser et al. 2024, Eq. 5)."""

    def project_all(
        self, tables: Sequence[SignedTable], generator: torch.Generator, progress: Progress = silent
    ) -> list[Float[Tensor, " cell"]]:
        """Probabilities of the cells of each table, float64, summing to 1.

        Values should sum to 1. What is missing is first spread evenly over the cells, because
        measures of different mass are infinitely far apart. Leave out cells that must stay empty.
        """
        ...


class CertifiedProjection(NamedTuple):
    """Probabilities, their SW1 to the signed measure, and a lower bound on the smallest SW1."""

    probabilities: Float[Tensor, " cell"]
    distance: float
    lower_bound: float


CHECK_EVERY = 25
"""Steps between two looks at the gap; a look costs about two steps."""

MOST_WORK = 2**32
"""Most cells times slices times steps of one table, about 10 seconds. Tables of more than 130,000
cells get fewer steps: the first steps are the most useful, and such tables have the most noise."""

RELAXATION = 1.8
"""Overrelaxation of both iterates. The two fast solvers use it, and the two constants below."""

PRIMAL_SHARE = 0.5
"""Factor of the primal step over the dual step, besides the ratio of the distances to go. After
1,200 steps small distances exceed the optimum by half as much as with 1; 0.2 and 2 are worse."""

SMALLEST_GAP = 1e-3
"""Gaps below this share of the largest gap count as this share when dual steps are chosen."""


@dataclass(frozen=True, kw_only=True)
class CertifiedSolver(ABC):
    """A ``Projection`` that solves all tables together and gives each a certificate.

    With fixed directions, Eq. 5 reads min over w in the simplex, max over |y| <= 1 of
    <y, K (w - v)>, where K maps a measure to its cumulative sums in the order of each slice, times
    the gaps between neighbors, divided by the number of slices. Both proximal maps are exact, so
    the primal-dual hybrid gradient method applies (Chambolle & Pock 2011, algorithm 1), and any y
    gives the lower bound min_i (K^T y)_i - <K^T y, v>. Two changes halve the excess over the
    optimum after a given number of steps. Each entry of the dual has its own step, in inverse
    proportion to its gap (diagonal preconditioning, Pock & Chambolle 2011, section 2), and every
    step is overrelaxed by ``RELAXATION`` (Condat 2013, theorem 3.2: any factor below 2 converges).

    Attributes:
        num_slices: Directions per table, fixed while it is solved.
        max_steps: The largest number of steps. The largest tables get fewer (``MOST_WORK``). After
            1,000 steps the distance is within 1 % of the reference's after 5,000
            (``python tests/benchmarks projection``); the smallest distances need the most. On Adult
            at epsilon 0.2 and 1 the errors of the projected tables are the same within 0.1 % after
            1,000, which take six times as long as 100.
        tolerance: Relative duality gap to stop at.
        precision: Absolute gap to stop at. The noise of a table is hundreds of times larger.
    """

    num_slices: int = 32
    max_steps: int = 100
    tolerance: float = 0.01
    precision: float = 1e-6

    @abstractmethod
    def solve_all(
        self, tables: Sequence[SignedTable], generator: torch.Generator, progress: Progress = silent
    ) -> list[CertifiedProjection]:
        """The projections with their certificates, for the directions drawn."""

    def project_all(
        self, tables: Sequence[SignedTable], generator: torch.Generator, progress: Progress = silent
    ) -> list[Float[Tensor, " cell"]]:
        """Probabilities of the cells of each table (see ``Projection``)."""
        return [found.probabilities for found in self.solve_all(tables, generator, progress)]

    def draw_directions(
        self, tables: Sequence[SignedTable], generator: torch.Generator
    ) -> list[Float[Tensor, "slice _"]]:
        """The directions of each table, float64. A table of one attribute has only one."""
        dims = [centers.shape[1] for centers, _ in tables]
        return [
            stratified_directions(
                self.num_slices if dim > 1 else 1, dim, generator, dtype=torch.float64
            )
            for dim in dims
        ]

    def most_steps(self, num_places: int) -> int:
        """The largest number of steps for so many cells times slices."""
        return min(self.max_steps, max(CHECK_EVERY, MOST_WORK // num_places))


class CompiledProjection(CertifiedSolver):
    """Solves tables in parallel and independently, each by one thread.

    The order of operations is fixed, so the bits do not depend on the number of threads. Iterates
    are float32, both bounds float64.
    """

    def solve_all(
        self, tables: Sequence[SignedTable], generator: torch.Generator, progress: Progress = silent
    ) -> list[CertifiedProjection]:
        directions = self.draw_directions(tables, generator)
        return solved_in_threads(self._solve, tables, directions, progress)

    def _solve(
        self, table: SignedTable, directions: Float[Tensor, "slice dim"]
    ) -> CertifiedProjection:
        # Arrays over slices have shape (step, slice), so that the slices of one step lie side by
        # side and their cumulative sums advance together.
        positions = table.centers.double().cpu().numpy() @ directions.numpy().T
        order = np.argsort(positions, axis=0)
        gaps = np.diff(np.take_along_axis(positions, order, axis=0), axis=0) / len(directions)
        order = order.astype(np.uint32)  # a signed index would be checked for its sign
        signed = balanced(table.values.double().cpu()).numpy()
        weights = simplex_projection(signed, 1.0)
        largest, (num_cells, num_slices) = gaps.max(initial=0.0), order.shape
        scales = largest / np.maximum(gaps, SMALLEST_GAP * largest)  # squares of the dual's
        distance, lower_bound = improve(
            signed,
            order,
            gaps,
            gaps.astype(np.float32),
            scales * gaps,
            (gaps * np.sqrt(scales)).astype(np.float32),
            float(np.linalg.norm(weights - signed)),
            self.most_steps(order.size),
            float(self.tolerance),
            float(self.precision),
            weights,
            (tuple(np.zeros((5, num_cells), np.float32)), tuple(np.zeros((2, num_cells)))),
            (np.zeros(num_slices, np.float32), np.zeros(num_slices)),
            tuple(np.zeros((2, *gaps.shape), np.float32)),
        )
        return CertifiedProjection(torch.from_numpy(weights), distance, lower_bound)


def solved_in_threads(
    solve: Callable, tables: Sequence[SignedTable], drawn: Sequence, progress: Progress
) -> list:
    """Calls ``solve`` for each table and what was drawn for it, each table in one thread.

    Compiled code that releases the interpreter's lock runs in parallel this way.
    """
    largest_first = sorted(range(len(tables)), key=lambda place: -len(tables[place].values))
    with Threads() as threads:
        found = {
            place: threads.submit(solve, tables[place], drawn[place]) for place in largest_first
        }
        for place in progress(largest_first, "project"):
            found[place].result()
        return [found[place].result() for place in range(len(tables))]


def balanced(values: Float[Tensor, " cell"]) -> Float[Tensor, " cell"]:
    """The values shifted evenly to sum to 1."""
    return values + (1 - values.sum()) / len(values)


# These are loops rather than numpy's functions, memory is handed in, and each argument has one
# type: anything else costs seconds of compiling on every new machine. Memory comes in tuples: what
# is unpacked from an array has no layout that numba knows, and is compiled a second time.
@njit()
@no_type_check
def improve(
    signed, order, gaps, narrow, scaled, steps, way, max_steps, tolerance, precision, best,
    of_cells, of_slices, of_both
):  # fmt: skip
    """Replaces the best probabilities by better ones; returns their distance and a lower bound.

    ``way`` is their L2 distance from the signed measure. ``narrow`` are the gaps in float32,
    ``scaled`` the gaps times their scales and ``steps``, which it overwrites by the dual's steps,
    the gaps times the roots of their scales. The last three are memory in float32 and float64, for
    numbers of cells, of slices, and of cells and slices; that of the dual comes with zeros.
    """
    (w, w_new, moved, reflected, pull), (found, wide_pull) = of_cells
    sums, wide_sums = of_slices
    y, image = of_both
    num_steps, num_slices = gaps.shape
    num_cells = num_steps + 1
    distance, lower_bound = _distance(best, signed, order, gaps, wide_sums), 0.0
    if distance <= precision or way == 0:
        return distance, lower_bound
    norm = _norm(order, steps, w, image, sums)
    ratio = PRIMAL_SHARE * way / math.sqrt(gaps.size)
    primal_step = np.float32(ratio / norm)
    for j in range(num_steps):
        for s in range(num_slices):
            steps[j, s] = scaled[j, s] / (ratio * norm)
    relaxation, one = np.float32(RELAXATION), np.float32(1)
    for i in range(num_cells):
        w[i] = best[i]
    for step in range(1, max_steps + 1):
        for i in range(num_cells):
            moved[i] = w[i] - primal_step * pull[i]
        _to_simplex(moved, w_new)
        for i in range(num_cells):
            reflected[i] = 2 * w_new[i] - w[i] - signed[i]
            w[i] += relaxation * (w_new[i] - w[i])
        for s in range(num_slices):
            sums[s] = 0
        for j in range(num_steps):
            for s in range(num_slices):
                sums[s] += reflected[order[j, s]]
                y_new = min(max(y[j, s] + steps[j, s] * sums[s], -one), one)
                y[j, s] += relaxation * (y_new - y[j, s])
        _adjoint(y, order, narrow, sums, pull)
        if step % CHECK_EVERY == 0 or step == max_steps:
            total = 0.0
            for i in range(num_cells):
                total += w_new[i]
            for i in range(num_cells):
                found[i] = w_new[i] / total
            found_distance = _distance(found, signed, order, gaps, wide_sums)
            if found_distance < distance:
                distance = found_distance
                for i in range(num_cells):
                    best[i] = found[i]
            bound = _lower_bound(y, signed, order, gaps, wide_pull, wide_sums)
            lower_bound = max(lower_bound, bound)
            if distance - lower_bound <= precision + tolerance * distance:
                break
    return distance, lower_bound


@inner(inline="always")
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


@inner()
@no_type_check
def _adjoint(y, order, gaps, sums, pull):
    """Writes K^T y into pull: for each cell, the sum of the steps from its place on."""
    for i in range(len(pull)):
        pull[i] = 0
    for s in range(len(sums)):
        sums[s] = 0
    for j in range(gaps.shape[0] - 1, -1, -1):
        for s in range(gaps.shape[1]):
            sums[s] += y[j, s] * gaps[j, s]
            pull[order[j, s]] += sums[s]


@inner()
@no_type_check
def _distance(first, second, order, gaps, sums):
    """|K (first - second)|_1."""
    for s in range(len(sums)):
        sums[s] = 0
    distance = 0.0
    for j in range(gaps.shape[0]):
        for s in range(gaps.shape[1]):
            cell = order[j, s]
            sums[s] += first[cell] - second[cell]
            distance += abs(sums[s]) * gaps[j, s]
    return distance


@inner(inline="always")
@no_type_check
def _lower_bound(y, signed, order, gaps, pull, sums):
    """min_i (K^T y)_i - <K^T y, signed> for y clipped to [-1, 1]."""
    for i in range(len(pull)):
        pull[i] = 0
    for s in range(len(sums)):
        sums[s] = 0
    for j in range(gaps.shape[0] - 1, -1, -1):
        for s in range(gaps.shape[1]):
            sums[s] += min(max(np.float64(y[j, s]), -1.0), 1.0) * gaps[j, s]
            pull[order[j, s]] += sums[s]
    least, product = pull[0], 0.0
    for i in range(len(signed)):
        least = min(least, pull[i])
        product += pull[i] * signed[i]
    return least - product


@inner(inline="always")
@no_type_check
def _norm(order, gaps, vector, image, sums):
    """The largest singular value of K on measures of mass 0, by 20 power iterations, plus 2 %."""
    num_cells, num_slices = order.shape
    for i in range(num_cells):
        vector[i] = math.cos(1.7 * i) + 2 * i / num_cells
    length = 0.0
    for _ in range(20):
        _center(vector)
        for s in range(num_slices):
            sums[s] = 0
        for j in range(num_cells - 1):
            for s in range(num_slices):
                sums[s] += vector[order[j, s]]
                image[j, s] = sums[s] * gaps[j, s]
        _adjoint(image, order, gaps, sums, vector)
        _center(vector)
        square = 0.0
        for i in range(num_cells):
            square += np.float64(vector[i]) ** 2
        length = math.sqrt(square)
        for i in range(num_cells):
            vector[i] /= length
    return 1.02 * math.sqrt(length)


@inner()
@no_type_check
def _center(vector):
    mean = 0.0
    for i in range(len(vector)):
        mean += vector[i]
    mean /= len(vector)
    for i in range(len(vector)):
        vector[i] -= mean
