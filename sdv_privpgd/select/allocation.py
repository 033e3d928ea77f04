"""Where more measuring is expected to help most. Public: it sees noisy answers only."""

from collections.abc import Mapping, Sequence

import numpy as np

from sdv_privpgd.domain import Clique


def most_helpful(
    signals: Mapping[Clique, np.ndarray], variance: float, levels: Sequence[float], budget: float
) -> dict[Clique, float]:
    """How much more of which clique to measure, so that the expected square error falls most.

    Args:
        signals: The variances of each clique's signal along orthogonal directions.
        variance: Of the noise that all cliques were measured with.
        levels: The amounts to choose from, ascending from 0, in units of what the first
            measurement cost: level 1 halves the variance of the noise.
        budget: The most that all together may cost, in these units.

    Returns:
        The cliques that get more than level 0, with theirs. What each step up saves a unit falls
        from level to level, so taking the steps in that order is best.
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
