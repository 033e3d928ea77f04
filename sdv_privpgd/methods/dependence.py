"""How far each pair is from independence, asked of the curator in one act."""

from collections.abc import Iterable, Sequence
from fractions import Fraction

import numpy as np

from sdv_privpgd.base.domain import Clique
from sdv_privpgd.base.progress import Progress
from sdv_privpgd.estimate.noisy_tables import NoisyTable, averaged
from sdv_privpgd.privacy.curator import Curator
from sdv_privpgd.privacy.measurement import Measurement
from sdv_privpgd.privacy.queries import DependenceQuery


def measure_dependences(
    curator: Curator, pairs: Sequence[Clique], mu_squared: Fraction, progress: Progress
) -> list[Measurement]:
    """The noisy dependence of each pair; all of them cost ``mu_squared`` together."""
    return curator.measure(
        [DependenceQuery(pair) for pair in pairs],
        mu_squared,
        what="dependence of all pairs",
        progress=progress,
    )


def dependences(measurements: Iterable[Measurement]) -> dict[Clique, float]:
    """The noisy dependence of each pair; of several answers their best average. Public."""
    found: dict[Clique, list[NoisyTable]] = {}
    for measured in measurements:
        if isinstance(measured.query, DependenceQuery):
            one = NoisyTable(measured.answer.astype(np.float64), measured.stddev**2)
            found.setdefault(measured.query.clique, []).append(one)
    return {pair: float(averaged(each).counts[0]) for pair, each in found.items()}
