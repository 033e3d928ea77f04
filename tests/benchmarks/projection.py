"""The projection step: seconds for all pairs of a simulated table, and its distances.

The targets are the noisy tables of all pairs, made to agree with each other but not denoised. Those
of a default fit have less negative mass and take less time. On ``--compared`` of the tables the
sliced W1 to the signed measure is compared with that of 5,000 steps and of the published
``SoftmaxProjection``, for the directions that the first two solve for (``own``) and for many new
ones.
"""

import numpy as np
import torch
from answers import open_curator
from generators import seeded
from references.wasserstein import project, sliced_w1

from benchmarks.experiment import options
from benchmarks.simulated import simulated_table
from sdv_privpgd.benchmark.fits import Stopwatch
from sdv_privpgd.methods.k_way import AllKWay
from sdv_privpgd.privacy.dataset import Dataset
from sdv_privpgd.synthesize.particles.descent import goals_of
from sdv_privpgd.synthesize.particles.paper import SoftmaxProjection
from sdv_privpgd.synthesize.particles.projection import CompiledProjection
from sdv_privpgd.synthesize.particles.steps import stratified_directions

_FRESH_SLICES = 1_000


@options(rows=300_000, columns=11, cells=32, epsilon=2.5, repetitions=3, compared=3, steps=5_000)
def rows(given):
    tables, projection = _targets(given), CompiledProjection(max_steps=1_000)
    projection.project_all(tables[:1], seeded(0))  # compiles
    seconds = []
    for _ in range(given.repetitions):
        watch = Stopwatch()
        projection.project_all(tables, seeded(0), progress=watch)
        seconds.append(watch.seconds["project"])
    yield {"tables": len(tables), "seconds": float(np.median(seconds))}
    # Ordered by negative mass, the most first; a table without any is solved already.
    debts = np.array([-float(values.clamp(max=0).sum()) for _, values in tables])
    indebted = np.argsort(-debts)[: np.count_nonzero(debts)]
    few = min(given.compared, len(indebted))
    chosen = indebted[np.linspace(0, len(indebted), few, endpoint=False).astype(int)]
    for index in chosen.tolist():
        (compiled,) = projection.solve_all([tables[index]], seeded(index))
        distances = _distances(tables[index], index, compiled, given.steps)
        yield {"table": index, "negative": debts[index], **distances}


def _targets(given):
    """Signed measures of all pairs on their supported cells."""
    dataset = Dataset(*simulated_table(given.rows, given.columns, num_cells=given.cells))
    curator = open_curator(dataset, epsilon=given.epsilon, seed=None)
    measurements = AllKWay(degree=2).measure(curator)
    _, goals = goals_of(curator.domain, measurements, "consistent", {})
    return list(goals.values())


def _distances(table, seed, compiled, steps):
    """SW1 of the three solvers' results, and the compiled one's over the others'."""
    exact = CompiledProjection(max_steps=steps, tolerance=0.0, precision=0.0)
    (reference,) = exact.solve_all([table], seeded(seed))  # draws the same directions
    directions = stratified_directions(_FRESH_SLICES, 2, seeded(seed + 1), dtype=torch.float64)
    ours, exactly, published = (
        float(sliced_w1(table.centers, probabilities, table.values, directions))
        for probabilities in (
            compiled.probabilities,
            reference.probabilities,
            project(SoftmaxProjection(), *table, seeded(seed)),
        )
    )
    return {
        "own: ours": compiled.distance,
        "own: exact": reference.distance,
        "ratio": compiled.distance / reference.distance,
        "ours": ours,
        "exact": exactly,
        "published": published,
        "to exact": ours / exactly,
        "to published": ours / published,
    }
