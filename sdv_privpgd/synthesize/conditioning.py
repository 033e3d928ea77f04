"""Rows of a model under conditions: those that fit, and where they are few, others moved there."""

from collections.abc import Mapping

import numpy as np

from sdv_privpgd.synthesize.engine import Model

_ENOUGH = 1_000
"""So many fitting rows stand for themselves."""

_MOVED = 100
"""Where fewer fit, the moved rows together weigh as much as so many of them."""

Wish = Mapping[str, np.ndarray]
"""How well the codes of attributes fit a condition, each in [0, 1], shape (code,), best 1."""


class ConditionalRows:
    """Draws rows of a model that fit wishes.

    A row of the pool, which is a block of the model's rows, fits as well as the product over the
    wished attributes says. Where the fitting rows are many they are all that is needed. Where they
    are few, they say little about the other attributes, and all rows of the pool join them, moved:
    they get wished codes and keep the others. How much a moved row weighs falls with what has to
    be moved, by exp(-1 - distance) an attribute, the distance in codes over their number. And it
    rises with how likely the wish is given the row's other attributes x_1, ..., x_K: by

        prod_k (P(x_k | wished code) / P(x_k)) ** (1 / sqrt(K))

    for each wished attribute, from the model's 2-way marginals. With the exponent 1 this is naive
    Bayes, right for others that are independent; for K copies of one attribute 1/K would be right.
    ``python -m sdv_privpgd.benchmark conditions`` measures what comes out.

    Args:
        model: The fitted model.
        seed: Of the pool.
        num_ordered: Of each attribute, how many codes, from the first on, have an order.
    """

    def __init__(self, model: Model, seed: int, num_ordered: Mapping[str, int]) -> None:
        self._model, self._num_ordered = model, num_ordered
        attributes, sizes = model.domain.attributes, model.domain.sizes
        self._pool = {
            name: np.ascontiguousarray(column, dtype=np.min_scalar_type(size))
            for name, size, column in zip(
                attributes, sizes, model.sample(model.block, seed).T, strict=True
            )
        }
        self._sizes = dict(zip(attributes, sizes, strict=True))
        self._sorted: dict[str, tuple[np.ndarray, np.ndarray]] = {}
        self._tables: dict[tuple[str, str], np.ndarray] = {}

    def draw(self, wish: Wish, num_rows: int, generator: np.random.Generator) -> np.ndarray:
        """Codes of shape (row, attribute) that fit the wish, int64, in random order.

        A row of the pool is used as often as its weight says, rounded up or down: of rows that
        weigh the same, none is used twice before each is used once.
        """
        rows, weights = self.weights(wish)
        drawn = rows[_systematic(weights, num_rows, generator)]
        codes = np.stack([column[drawn] for column in self._pool.values()], 1).astype(np.int64)
        for axis, fit in zip(self._model.domain.axes(wish), wish.values(), strict=True):
            unfit = np.flatnonzero(fit[codes[:, axis]] == 0)
            chances = fit * self._model.marginal((self._model.domain.attributes[axis],))
            chances = chances if chances.any() else fit
            chances /= chances.sum()
            codes[unfit, axis] = generator.choice(len(fit), len(unfit), p=chances)
        return codes

    def weights(self, wish: Wish) -> tuple[np.ndarray, np.ndarray]:
        """Indices of rows of the pool, and what each of them weighs, above 0."""
        rows, fits = self._fitting(wish)
        if fits.sum() >= _ENOUGH:
            return rows, fits
        weights = self._moved(wish)
        if len(rows):
            weights *= _MOVED / weights.sum()
            weights[rows] += fits
        return np.arange(len(weights)), weights

    def _fitting(self, wish: Wish) -> tuple[np.ndarray, np.ndarray]:
        """The rows that fit, and how well. Searched among those that fit the rarest wish."""
        rows = min(
            (self._between(name, np.flatnonzero(fit)) for name, fit in wish.items()), key=len
        )
        fits = np.prod([fit[self._pool[name][rows]] for name, fit in wish.items()], axis=0)
        found = np.flatnonzero(fits)
        return rows[found], fits[found]

    def _between(self, name: str, codes: np.ndarray) -> np.ndarray:
        """The rows whose code is from the first to the last of ascending codes."""
        if name not in self._sorted:
            column = self._pool[name]
            counts = np.bincount(column, minlength=self._sizes[name])
            ends = np.concatenate(([0], np.cumsum(counts)))
            self._sorted[name] = np.argsort(column, kind="stable"), ends
        order, ends = self._sorted[name]
        return order[ends[codes[0]] : ends[codes[-1] + 1]]

    def _moved(self, wish: Wish) -> np.ndarray:
        """What each row of the pool weighs if it is moved to wished codes, at most 1."""
        others = [name for name in self._pool if name not in wish]
        logs = {name: self._nearness(name, fit) for name, fit in wish.items()}
        for other in others:
            evidence = sum(self._evidence(name, fit, other) for name, fit in wish.items())
            logs[other] = evidence / np.sqrt(len(others))
        total = np.zeros(self._model.block, dtype=np.float32)
        for name, log in logs.items():
            total += log.astype(np.float32)[self._pool[name]]
        return np.exp((total - total.max()).astype(np.float64))

    def _nearness(self, name: str, fit: np.ndarray) -> np.ndarray:
        """The log of the weight of each code of a wished attribute, shape (code,)."""
        ordered = self._num_ordered[name]
        distance = np.full(len(fit), float(ordered > 0))
        wished = np.flatnonzero(fit[:ordered])
        if len(wished):
            codes = np.arange(ordered)
            distance[:ordered] = np.abs(codes[:, None] - wished).min(axis=1) / len(fit)
        return np.log(np.maximum(fit, np.exp(-1 - distance)))

    def _evidence(self, name: str, fit: np.ndarray, other: str) -> np.ndarray:
        """The log of P(x | wished code) / P(x) for each code x of another attribute.

        From counts of the pool's size: half a row more in each cell of P(x), and one row
        distributed like P(x) more with the wished codes.
        """
        if (name, other) not in self._tables:
            self._tables[name, other] = self._model.block * self._model.marginal((name, other))
        table = self._tables[name, other]
        apriori = table.sum(axis=0) + 0.5
        apriori /= apriori.sum()
        counts = fit @ table + apriori
        return np.log(counts / counts.sum() / apriori)


def _systematic(weights: np.ndarray, number: int, generator: np.random.Generator) -> np.ndarray:
    """Indices in random order, each as often as its share of the number, rounded up or down."""
    ends = np.cumsum(weights)
    points = (np.arange(number) + generator.random()) * (ends[-1] / number)
    drawn = np.searchsorted(ends, points, side="right")
    return generator.permutation(np.minimum(drawn, len(weights) - 1))
