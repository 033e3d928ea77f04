"""Where more measuring is expected to help most. Public: it sees noisy answers only."""

from collections.abc import Mapping, Sequence

import numpy as np

from sdv_privpgd.domain import Clique


def most_helpful(
    signals: Mapping[Clique, np.ndarray],
    variances: Mapping[Clique, float],
    levels: Sequence[float],
    budget: float,
    weights: Mapping[Clique, float] | None = None,
) -> dict[Clique, float]:
    """How much more of which clique to measure, so that the expected square error falls most.

    Args:
        signals: The variances of each clique's signal along orthogonal directions.
        variances: Of the noise that each clique was measured with.
        levels: The amounts to choose from, ascending from 0, in units of what the clique's first
            measurement cost: level 1 halves the variance of the noise.
        budget: The most that all together may cost, in units of a clique of weight 1.
        weights: What the first measurement of a clique cost, in the same units: 1 where none is
            given. Budgets in this ratio are best for square errors that count weight^2 times.

    Returns:
        The cliques that get more than level 0, with theirs. What each step up saves a unit falls
        from level to level, so taking the steps in that order is best.
    """
    cliques, weights = list(signals), weights or {}
    own = np.array([weights.get(clique, 1.0) for clique in cliques])[:, None]
    costs = own * np.diff(levels)
    errors = np.array(
        [
            [
                (signal * variances[clique] / (signal * (1 + level) + variances[clique])).sum()
                for level in levels
            ]
            for clique, signal in signals.items()
        ]
    )
    saved = -np.diff(own**2 * errors, axis=1) / costs
    order = np.argsort(-saved, axis=None, kind="stable")
    paid = np.cumsum(costs.ravel()[order])
    steps = order[: np.searchsorted(paid, budget, side="right")] // (len(levels) - 1)
    reached = np.bincount(steps, minlength=len(cliques))
    return {
        clique: levels[step] for clique, step in zip(cliques, reached.tolist(), strict=True) if step
    }
