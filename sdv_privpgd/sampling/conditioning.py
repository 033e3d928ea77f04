"""Rows of a model under conditions: fitting rows, and near ones moved where few fit."""

from collections.abc import Mapping

import numpy as np

from sdv_privpgd.synthesize.engine import Model

Wish = Mapping[str, np.ndarray]
"""The fit of each code of attributes to a condition: in [0, 1], shape (code,), the best is
1."""


class ConditionalRows:
    """Draws rows of a model that fit wishes.

    The rows come from a pool, one block of the model's rows. A row's fit is the product of its fits
    over the wished attributes. Many fitting rows are used alone. If they are few, they say little
    about the other attributes, and the nearest rows join them, moved: these get wished codes and
    keep their other codes. A moved row weighs exp(-1 - distance) for each moved attribute; the
    distance is that of the codes divided by their number. ``tests/benchmarks
    conditions`` measures the errors.

    Args:
        model: The fitted model.
        seed: The seed of the pool.
        num_ordered: The number of codes of each attribute, from the first on, that have an order.
    """

    def __init__(self, model: Model, seed: int, num_ordered: Mapping[str, int]) -> None:
        self._model, self._num_ordered = model, num_ordered
        columns = np.ascontiguousarray(model.sample(model.block, seed).T)
        self._pool = dict(zip(model.domain.attributes, columns, strict=True))
        self._sorted: dict[str, tuple[np.ndarray, np.ndarray]] = {}

    def draw(self, wish: Wish, num_rows: int, generator: np.random.Generator) -> np.ndarray:
        """Codes of shape (row, attribute) that fit the wish, int64, in random order.

        A row of the pool is used as often as its weight says, rounded up or down: among rows of
        equal weight none is used twice before each is used once.
        """
        rows, weights = self.weights(wish)
        drawn = rows[_systematic(weights, num_rows, generator)]
        codes = np.stack([column[drawn] for column in self._pool.values()], axis=1)
        for name, axis in zip(wish, self._model.domain.axes(wish), strict=True):
            unfit = np.flatnonzero(wish[name][codes[:, axis]] == 0)
            if len(unfit):
                codes[unfit, axis] = self._wished(name, wish[name], len(unfit), generator)
        return codes

    def weights(self, wish: Wish) -> tuple[np.ndarray, np.ndarray]:
        """Indices of rows of the pool, and the weight of each; a row may occur twice."""
        all_moved = 100  # the moved rows together weigh as much as this many fitting ones
        enough = 1_000  # this many fitting rows need no help
        fitting, fits = self._fitting(wish)
        if fits.sum() >= enough:
            return fitting, fits
        moved, nearness = self._nearest(wish)
        if len(fitting):
            nearness *= all_moved / nearness.sum()
        return np.concatenate([moved, fitting]), np.concatenate([nearness, fits])

    def _fitting(self, wish: Wish) -> tuple[np.ndarray, np.ndarray]:
        """The rows that fit, and how well. Only rows that fit the rarest wish are searched."""
        rows = min(
            (self._between(name, np.flatnonzero(fit)) for name, fit in wish.items()), key=len
        )
        fits = np.prod([fit[self._pool[name][rows]] for name, fit in wish.items()], axis=0)
        found = np.flatnonzero(fits)
        return rows[found], fits[found]

    def _between(self, name: str, codes: np.ndarray) -> np.ndarray:
        """The rows whose code lies between the first and the last of ascending codes."""
        if name not in self._sorted:
            order = np.argsort(self._pool[name], kind="stable")
            self._sorted[name] = order, self._pool[name][order]
        order, ascending = self._sorted[name]
        start = np.searchsorted(ascending, codes[0], side="left")
        return order[start : np.searchsorted(ascending, codes[-1], side="right")]

    def _nearest(self, wish: Wish) -> tuple[np.ndarray, np.ndarray]:
        """The rows that have to move least, and their weights, the largest 1."""
        times_as_many = 16  # the nearest rows are first searched among this many times as many
        # If fewer fit, this many of the nearest rows, and those as near as the last one, are moved.
        nearest = 300
        costs = np.zeros(self._model.block, dtype=np.float32)
        for name, fit in wish.items():
            of_codes = self._costs(name, fit).astype(np.float32)
            costs += of_codes.take(
                self._pool[name], mode="clip"
            )  # clip skips the check of each row
        last = min(nearest, len(costs)) - 1
        # A sample of the rows gives a bound on the distance, so that few rows need sorting.
        part = costs[:: max(1, len(costs) // (times_as_many * nearest))]
        rows = np.flatnonzero(costs <= np.partition(part, last)[last])
        near = costs[rows]
        rows = rows[near <= np.partition(near, last)[last]]
        return rows, np.exp(costs.min() - costs[rows].astype(np.float64))

    def _costs(self, name: str, fit: np.ndarray) -> np.ndarray:
        """Minus the log of the weight of each code of a wished attribute, shape (code,)."""
        ordered = self._num_ordered[name]
        distances = np.full(len(fit), float(ordered > 0))
        wished = np.flatnonzero(fit[:ordered])
        if len(wished):
            codes = np.arange(ordered)
            distances[:ordered] = np.abs(codes[:, None] - wished).min(axis=1) / len(fit)
        return -np.log(np.maximum(fit, np.exp(-1 - distances)))

    def _wished(
        self, name: str, fit: np.ndarray, number: int, generator: np.random.Generator
    ) -> np.ndarray:
        """Wished codes of an attribute, as frequent as in the model; if it has none, by fit."""
        codes = np.flatnonzero(fit)
        if len(codes) == 1:
            return np.repeat(codes, number)
        chances = fit * self._model.marginal((name,))
        chances = chances if chances.any() else fit
        return generator.choice(len(fit), number, p=chances / chances.sum())


def _systematic(weights: np.ndarray, number: int, generator: np.random.Generator) -> np.ndarray:
    """Indices in random order, each as often as its share of the number, rounded up or down."""
    ends = np.cumsum(weights)
    points = (np.arange(number) + generator.random()) * (ends[-1] / number)
    drawn = np.searchsorted(ends, points, side="right")
    return generator.permutation(np.minimum(drawn, len(weights) - 1))
