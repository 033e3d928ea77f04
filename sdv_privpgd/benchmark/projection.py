"""The projection step: seconds for all pairs of a simulated table, and its distances.

The targets are the noisy tables of all pairs, made to agree with each other but not denoised. Those
of a default fit have less negative mass and take less time. On some of the tables the sliced W1 to
the signed measure is compared with that of 5,000 steps of ``PrimalDualProjection`` and of the
published ``SoftmaxProjection``, for the directions that the first two solve for and for many new
ones.
"""

import argparse

import numpy as np
import torch

from sdv_privpgd.benchmark.meters import Stopwatch, print_table
from sdv_privpgd.benchmark.simulated import simulated_table
from sdv_privpgd.privacy.curator import Curator
from sdv_privpgd.privacy.dataset import Dataset
from sdv_privpgd.privacy.ledger import Books, PrivacyLedger
from sdv_privpgd.privacy.queries import Adjacency
from sdv_privpgd.select.fixed import AllKWay
from sdv_privpgd.synthesize.particles.descent import ParticleGradientDescent
from sdv_privpgd.synthesize.particles.directions import stratified_directions
from sdv_privpgd.synthesize.particles.projection import SignedTable
from sdv_privpgd.synthesize.particles.references.primal_dual import PrimalDualProjection
from sdv_privpgd.synthesize.particles.references.wasserstein import sliced_w1
from sdv_privpgd.synthesize.particles.targets import goals_of

_NUM_ROWS = 300_000
_REFERENCE_STEPS = 5_000
_FRESH_SLICES = 1_000


def add_command(commands) -> None:
    """Adds ``projection`` to the command line."""
    parser = commands.add_parser("projection", help="the projection step beside its references")
    parser.add_argument("--columns", type=int, default=11)
    parser.add_argument("--cells", type=int, default=32)
    parser.add_argument("--epsilon", type=float, default=2.5)
    parser.add_argument("--repetitions", type=int, default=3)
    parser.add_argument("--compared", type=int, default=3, help="tables beside the references")
    parser.set_defaults(run=_projection)


def _projection(arguments: argparse.Namespace) -> None:
    tables = simulated_targets(arguments.columns, arguments.cells, arguments.epsilon)
    # Here, because its compiler need not be installed where other benchmarks run.
    from sdv_privpgd.synthesize.particles.primal_dual import CompiledProjection

    projection = CompiledProjection()
    projection.project_all(tables[:1], _seeded(0))  # compiles
    watches = []
    for _ in range(arguments.repetitions):
        watches.append(Stopwatch())
        projection.project_all(tables, _seeded(0), progress=watches[-1])
    seconds = float(np.median([watch.seconds["project"] for watch in watches]))
    print(f"{len(tables)} tables: {seconds:.2f} s, median of {arguments.repetitions}\n")
    # Ordered by negative mass, the most first; a table without any is solved already.
    debts = np.array([-float(values.clamp(max=0).sum()) for _, values in tables])
    indebted = np.argsort(-debts)[: np.count_nonzero(debts)]
    chosen = indebted[np.linspace(0, len(indebted), arguments.compared, endpoint=False).astype(int)]
    for row, index in enumerate(chosen.tolist()):
        found = {"table": index, "negative": debts[index], **_distances(tables[index], index)}
        print_table([found], header=row == 0)


def simulated_targets(num_columns: int, num_cells: int, epsilon: float) -> list[SignedTable]:
    """Signed measures of all pairs on their supported cells.

    >>> tables = simulated_targets(num_columns=3, num_cells=4, epsilon=1.0)
    >>> len(tables)
    3
    """
    dataset = Dataset(*simulated_table(_NUM_ROWS, num_columns, num_cells=num_cells))
    ledger = PrivacyLedger.open(epsilon, 1e-5, Adjacency.REPLACE_ONE)
    curator = Curator(dataset, Books(ledger))
    measurements = AllKWay(degree=2).run(curator, ParticleGradientDescent())
    goals = goals_of(curator.domain, measurements, "consistent", {}).each
    return [SignedTable(goal.centers, goal.values) for goal in goals]


def _distances(table: SignedTable, seed: int) -> dict[str, float]:
    """SW1 of the three solvers' results, and the compiled one's over the others'."""
    from sdv_privpgd.synthesize.particles.primal_dual import CompiledProjection
    from sdv_privpgd.synthesize.particles.published.softmax import SoftmaxProjection

    (compiled,) = CompiledProjection().solve_all([table], _seeded(seed))
    exact = PrimalDualProjection(max_steps=_REFERENCE_STEPS, tolerance=0.0, precision=0.0)
    reference = exact.solve(*table, _seeded(seed))  # draws the same directions
    published = SoftmaxProjection()(*table, _seeded(seed))
    directions = stratified_directions(_FRESH_SLICES, 2, _seeded(seed + 1), dtype=torch.float64)
    fresh = {
        name: float(sliced_w1(table.centers, probabilities, table.values, directions))
        for name, probabilities in (
            ("ours", compiled.probabilities),
            ("5,000 steps", reference.probabilities),
            ("published", published),
        )
    }
    return {
        "own: ours": compiled.distance,
        "5,000 steps": reference.distance,
        "ratio": compiled.distance / reference.distance,
        **{f"new: {name}" if name == "ours" else f"{name} ": way for name, way in fresh.items()},
        "to 5,000": fresh["ours"] / fresh["5,000 steps"],
        "to published": fresh["ours"] / fresh["published"],
    }


def _seeded(seed: int) -> torch.Generator:
    return torch.Generator().manual_seed(seed)
