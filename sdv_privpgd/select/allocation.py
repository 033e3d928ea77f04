"""The split of a second round's budget over cliques. Public: it is computed from noisy answers."""

from collections.abc import Mapping, Sequence

import numpy as np

from sdv_privpgd.domain import Clique


def most_helpful(
    signals: Mapping[Clique, np.ndarray], variance: float, levels: Sequence[float], budget: float
) -> dict[Clique, float]:
    """Chooses how much more to measure of each clique to lower the expected square error most.

    Args:
        signals: The variances of each clique's signal along orthogonal directions.
        variance: The variance of the noise that all cliques were measured with.
        levels: The amounts to choose from, ascending from 0, in units of what the first measurement
            cost: level 1 halves the variance of the noise.
        budget: The most that all cliques together may cost, in these units.

    Returns:
        The cliques above level 0, each with its level. A unit spent on a higher step saves less
        than one spent on the step before, so it is best to take steps in the order of what they
        save.

    >>> signals = {("a", "b"): np.array([9.0]), ("a", "c"): np.array([0.1])}
    >>> most_helpful(signals, variance=1.0, levels=[0, 1, 2], budget=2)
    {('a', 'b'): 2}
    """
    cliques, costs = list(signals), np.diff(levels)
    errors = np.array(
        [
            [(own * variance / (own * (1 + level) + variance)).sum() for level in levels]
            for own in signals.values()
        ]
    )
    saved = -np.diff(errors, axis=1) / costs
    order = np.argsort(-saved, axis=None, kind="stable")
    paid = np.cumsum(np.tile(costs, len(cliques))[order])
    steps = order[: np.searchsorted(paid, budget, side="right")] // len(costs)
    reached = np.bincount(steps, minlength=len(cliques))
    return {
        clique: levels[step] for clique, step in zip(cliques, reached.tolist(), strict=True) if step
    }
