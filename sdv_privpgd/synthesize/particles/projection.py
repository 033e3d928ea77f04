"""The projection step finds a probability measure near a signed measure in sliced W1."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import NamedTuple, Protocol, TypeVar, runtime_checkable

import torch
from jaxtyping import Float
from torch import Tensor

from sdv_privpgd.base.progress import Progress, Shares, silent
from sdv_privpgd.synthesize.particles.directions import stratified_directions

Drawn = TypeVar("Drawn")
Solved = TypeVar("Solved")


class SignedTable(NamedTuple):
    """The centers of a table's cells and their signed values, which sum to about 1."""

    centers: Float[Tensor, "cell dim"]
    values: Float[Tensor, " cell"]


@runtime_checkable
class Projection(Protocol):
    """Solves argmin over probabilities w of SW1(w, values) (Donhauser et al. 2024, Eq. 5)."""

    def __call__(
        self,
        centers: Float[Tensor, "cell dim"],
        values: Float[Tensor, " cell"],
        generator: torch.Generator,
    ) -> Float[Tensor, " cell"]:
        """Probabilities of the cells, float64, summing to 1.

        ``values`` should sum to 1. What is missing is first spread evenly over the cells, because
        measures of different mass are infinitely far apart. Leave out cells that must stay empty.
        """
        ...

    def project_all(
        self,
        tables: Sequence[SignedTable],
        generator: torch.Generator,
        progress: Progress = silent,
    ) -> list[Float[Tensor, " cell"]]:
        """The probabilities of the cells of many tables, solved one by one or together."""
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


class CertifiedSolver(ABC):
    """A ``Projection`` that solves all tables together and gives each a certificate."""

    num_slices: int

    @abstractmethod
    def solve_all(
        self,
        tables: Sequence[SignedTable],
        generator: torch.Generator,
        progress: Progress = silent,
    ) -> list[CertifiedProjection]:
        """The projections with their certificates, for the directions drawn."""

    def __call__(
        self,
        centers: Float[Tensor, "cell dim"],
        values: Float[Tensor, " cell"],
        generator: torch.Generator,
    ) -> Float[Tensor, " cell"]:
        """Probabilities of one table's cells (see ``Projection``)."""
        return self.project_all([SignedTable(centers, values)], generator)[0]

    def project_all(
        self,
        tables: Sequence[SignedTable],
        generator: torch.Generator,
        progress: Progress = silent,
    ) -> list[Float[Tensor, " cell"]]:
        """Probabilities of the cells of each table (see ``Projection``)."""
        return [found.probabilities for found in self.solve_all(tables, generator, progress)]

    def draw_directions(
        self, tables: Sequence[SignedTable], generator: torch.Generator
    ) -> list[Float[Tensor, "slice _"]]:
        """The directions of each table, float64. A table of one attribute has only one."""
        drawn = []
        for centers, _ in tables:
            dim = centers.shape[1]
            num_slices = self.num_slices if dim > 1 else 1
            drawn.append(stratified_directions(num_slices, dim, generator, dtype=torch.float64))
        return drawn


def solved_in_threads(
    solve: Callable[[SignedTable, Drawn], Solved],
    tables: Sequence[SignedTable],
    drawn: Sequence[Drawn],
    progress: Progress,
) -> list[Solved]:
    """Calls ``solve`` for each table and what was drawn for it, each table in one thread.

    Compiled code that releases the interpreter's lock runs in parallel this way.
    """
    # Here, because its compiler need not be installed where CUDA does this work.
    from sdv_privpgd.synthesize.particles.compiler import Threads

    largest_first = sorted(range(len(tables)), key=lambda place: -len(tables[place].values))
    with Threads() as threads:
        found = {
            place: threads.submit(solve, tables[place], drawn[place]) for place in largest_first
        }
        shares, done = Shares(progress, "project"), 0
        total = sum(len(table.values) for table in tables)
        for place in largest_first:
            found[place].result()
            done += len(tables[place].values)
            shares.reach(done / total)
        shares.reach(1.0)  # also without a table
        return [found[place].result() for place in range(len(tables))]


def balanced(values: Float[Tensor, " cell"]) -> Float[Tensor, " cell"]:
    """The values shifted evenly to sum to 1."""
    return values + (1 - values.sum()) / len(values)


def simplex_projection(values: Float[Tensor, " cell"]) -> Float[Tensor, " cell"]:
    """The nearest probability vector in L2 (Held, Wolfe & Crowder 1974).

    One threshold is subtracted from all values and the rest clipped at 0.
    """
    descending = values.sort(descending=True).values
    ranks = torch.arange(1, len(values) + 1, dtype=values.dtype, device=values.device)
    thresholds = (descending.cumsum(0) - 1) / ranks
    support = (descending > thresholds).sum().clamp(min=1)
    return (values - thresholds[support - 1]).clamp(min=0)
