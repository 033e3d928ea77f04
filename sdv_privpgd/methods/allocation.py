"""The split of a second round's budget over cliques. Public: it is computed from noisy answers."""

from collections.abc import Mapping, Sequence

import numpy as np

from sdv_privpgd.base.domain import Clique


def most_helpful(
    signals: Mapping[Clique, np.ndarray],
    variances: Mapping[Clique, float],
    levels: Sequence[float],
    budget: float,
    weights: Mapping[Clique, float] | None = None,
) -> dict[Clique, float]:
    """Chooses how much more to measure of each clique to lower the expected square error most.

    Args:
        signals: The variances of each clique's signal along orthogonal directions.
        variances: The variance of the noise that each clique was measured with.
        levels: The amounts to choose from, ascending from 0, in units of what the clique's first
            measurement cost: level 1 halves the variance of its noise.
        budget: The most that all cliques together may cost, in units of a clique of weight 1.
        weights: What the first measurement of a clique cost, in the same units; 1 where none is
            given. Budgets in this ratio are best if square errors count weight^2 times.

    Returns:
        The cliques above level 0, each with its level. A unit spent on a higher step saves less
        than one spent on the step before, so it is best to take steps in the order of what they
        save.
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
