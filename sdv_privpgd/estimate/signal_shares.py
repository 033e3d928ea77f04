"""How much of each of many noisy effects is signal: what they all show tells what one of them is.

An effect's square norm beside its noise says little of one effect with few directions: half of
those that are pure noise look larger than noise. Together they say how effects are spread, and so
how likely it is that this one is noise. That is nonparametric empirical Bayes: the spread is the
one of largest likelihood (Robbins 1956; Kiefer & Wolfowitz 1956), on a grid, by the EM algorithm.

Everything here is post-processing of noisy answers: public and free.
"""

import numpy as np

_FINEST = -6.0
"""The smallest signal of the grid beside the noise, as a power of two."""

_STEPS = 200
"""Of the EM algorithm."""

_NO_SIGNAL = 0.5
"""So many effects without any signal are added to those that were seen: one effect alone is not
believed for a little more than its noise."""


def signal_shares(squares: np.ndarray, freedoms: np.ndarray) -> np.ndarray:
    """The expected share of signal in each effect, 0 to 1: what to multiply its values by.

    Args:
        squares: Each effect's square norm in units of the noise's variance in a direction, so that
            it is chi-squared without signal; infinite where there is no noise.
        freedoms: In how many directions each effect can vary, at least 1.
    """
    shares = np.ones(len(squares))
    noisy = np.isfinite(squares)
    if not noisy.any():
        return shares
    squares, freedoms = squares[noisy], freedoms[noisy]
    largest = max(float((squares / freedoms).max()), 1.0)
    # Of signal beside noise, variance by variance: none, or a power of the square root of two.
    ratios = np.append(0.0, 2.0 ** np.arange(_FINEST, np.log2(largest) + 1, 0.5))
    # The density of (1 + ratio) times a chi-squared number, but for what no ratio changes.
    logs = -0.5 * (freedoms[:, None] * np.log1p(ratios) + squares[:, None] / (1 + ratios))
    chances = shared_chances(logs, ratios == 0)
    shares[noisy] = chances @ (ratios / (1 + ratios))
    return shares


def shared_chances(logs: np.ndarray, is_none: np.ndarray) -> np.ndarray:
    """How likely each size of signal is for each effect, as all effects show it together.

    Args:
        logs: The log-likelihood of each size for each effect, shape (effect, size), but for a
            constant of each effect.
        is_none: Which of the sizes is no signal.

    Returns:
        Probabilities, shape (effect, size).
    """
    likelihoods = np.exp(logs - logs.max(axis=1, keepdims=True))
    added = _NO_SIGNAL * is_none
    spread = np.full(len(is_none), 1 / len(is_none))
    for _ in range(_STEPS):
        spread = _posterior(likelihoods, spread).sum(axis=0) + added
        spread /= spread.sum()
    return _posterior(likelihoods, spread)


def _posterior(likelihoods: np.ndarray, spread: np.ndarray) -> np.ndarray:
    """How likely each ratio is for each effect, shape (effect, ratio)."""
    joint = likelihoods * spread
    return joint / joint.sum(axis=1, keepdims=True)
