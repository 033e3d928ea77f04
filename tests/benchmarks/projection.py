"""The projection step: seconds for all pairs of a simulated table, and its distances.

The targets are the noisy tables of all pairs, made to agree with each other but not denoised. Those
of a default fit have less negative mass and take less time. On ``--compared`` of the tables the
sliced W1 to the signed measure is compared with that of 5,000 steps for the same directions.
"""

import numpy as np
from answers import open_curator
from generators import seeded

from benchmarks.experiment import options
from benchmarks.simulated import simulated_table
from sdv_privpgd.benchmark.fits import Stopwatch
from sdv_privpgd.methods.k_way import AllKWay
from sdv_privpgd.privacy.dataset import Dataset
from sdv_privpgd.synthesize.particles.descent import goals_of
from sdv_privpgd.synthesize.particles.projection import CompiledProjection


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
        # The same seed draws the same directions.
        exact = CompiledProjection(max_steps=given.steps, tolerance=0.0, precision=0.0)
        ours, best = (
            each.solve_all([tables[index]], seeded(index))[0].distance
            for each in (projection, exact)
        )
        line = {"table": index, "negative": debts[index], "ours": ours, "exact": best}
        yield {**line, "ratio": ours / best}


def _targets(given):
    """Signed measures of all pairs on their supported cells."""
    dataset = Dataset(*simulated_table(given.rows, given.columns, num_cells=given.cells))
    curator = open_curator(dataset, epsilon=given.epsilon, seed=None)
    measurements = AllKWay(degree=2).measure(curator)
    _, goals = goals_of(curator.domain, measurements, "consistent", {})
    return list(goals.values())
