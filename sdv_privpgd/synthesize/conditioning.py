"""Choosing rows of a model that fit conditions."""

import numpy as np


def choose_rows(
    pool: np.ndarray,
    wanted: np.ndarray,
    scales: np.ndarray,
    generator: np.random.Generator,
) -> np.ndarray:
    """For each condition the index of a row of the pool that fits it best, shape (condition,).

    ``pool`` holds codes of shape (row, attribute), ``wanted`` of shape (condition, attribute).
    Among rows with exactly the wanted codes one is drawn at random. Where there is none, one of
    the nearest is: a wrong code costs 1, plus ``scales`` times the distance of the codes
    (0 for attributes whose codes have no order).
    """
    distinct, which = np.unique(wanted, axis=0, return_inverse=True)
    which = which.reshape(-1)
    _, keys = np.unique(np.concatenate([pool, distinct]), axis=0, return_inverse=True)
    pool_keys, wanted_keys = keys.reshape(-1)[: len(pool)], keys.reshape(-1)[len(pool) :]
    order = np.argsort(pool_keys, kind="stable")
    first = np.searchsorted(pool_keys, wanted_keys, side="left", sorter=order)
    last = np.searchsorted(pool_keys, wanted_keys, side="right", sorter=order)

    draws = generator.random(len(wanted))
    count = (last - first)[which]
    at = first[which] + np.floor(draws * count).astype(np.int64)
    chosen = order[np.minimum(at, len(pool) - 1)]
    for index in np.flatnonzero(last == first):
        nearest = _nearest(pool, distinct[index], scales)
        conditions = np.flatnonzero(which == index)
        chosen[conditions] = nearest[np.floor(draws[conditions] * len(nearest)).astype(np.int64)]
    return chosen


def _nearest(pool: np.ndarray, wanted: np.ndarray, scales: np.ndarray) -> np.ndarray:
    """The indices of all rows of the pool at the smallest cost from the wanted codes."""
    cost = np.zeros(len(pool))
    for axis, scale in enumerate(scales):
        distance = np.abs(pool[:, axis] - wanted[axis])
        cost += (distance > 0) + scale * distance
    return np.flatnonzero(cost == cost.min())
