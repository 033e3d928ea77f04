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
    nearest = _Nearest(pool, wanted, scales)
    for index in np.flatnonzero(last == first):
        rows = nearest(distinct[index])
        conditions = np.flatnonzero(which == index)
        chosen[conditions] = rows[np.floor(draws[conditions] * len(rows)).astype(np.int64)]
    return chosen


class _Nearest:
    """Finds the indices of all rows of a pool at the smallest cost from wanted codes.

    A row's cost is at least its number of wrong codes. These are counted for all rows in the
    smallest type, and costs are computed only where that number does not exceed the best cost.
    """

    def __init__(self, pool: np.ndarray, wanted: np.ndarray, scales: np.ndarray) -> None:
        largest = max(pool.max(initial=0), wanted.max(initial=0))
        self._columns = np.ascontiguousarray(pool.T.astype(np.min_scalar_type(largest)))
        self._scales = scales
        self._wrong = np.empty(len(pool), dtype=np.min_scalar_type(len(scales)))
        self._differs = np.empty(len(pool), dtype=bool)

    def __call__(self, wanted: np.ndarray) -> np.ndarray:
        self._wrong[:] = 0
        for column, code in zip(self._columns, wanted.astype(self._columns.dtype), strict=True):
            np.not_equal(column, code, out=self._differs)
            np.add(self._wrong, self._differs, out=self._wrong)
        fewest = np.flatnonzero(self._wrong == self._wrong.min())
        best = self._costs(fewest, wanted).min()
        rows = np.flatnonzero(self._wrong <= best)
        costs = self._costs(rows, wanted)
        return rows[costs == costs.min()]

    def _costs(self, rows: np.ndarray, wanted: np.ndarray) -> np.ndarray:
        """The cost of each of the rows."""
        cost = np.zeros(len(rows))
        for column, code, scale in zip(self._columns, wanted, self._scales, strict=True):
            distance = np.abs(column[rows].astype(np.int64) - code)
            cost += (distance > 0) + scale * distance
        return cost
