"""What networks that are trained by private gradients have in common: weights, chances, Adam."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from sdv_privpgd.domain import Domain
from sdv_privpgd.estimate.noisy_tables import estimate_total, margin_estimates, noisy_tables
from sdv_privpgd.estimate.support import supported_one_way
from sdv_privpgd.privacy.gradients import TrainingQuery
from sdv_privpgd.privacy.measurement import Measurement

_LEAST = 1e-5
"""Share of a value that surely holds no rows when training starts: its logarithm must be finite."""


@dataclass(frozen=True)
class Codes:
    """The codes of all attributes in one row of numbers, side by side.

    Attributes:
        sizes: Codes of each attribute.
        shares: The estimated share of each code of each attribute; those of one add up to 1.
    """

    sizes: tuple[int, ...]
    shares: np.ndarray

    @classmethod
    def of(cls, domain: Domain, measurements: Sequence[Measurement]) -> "Codes":
        """By the noisy tables among the answers."""
        total = estimate_total(domain, measurements).value
        margins = margin_estimates(noisy_tables(domain, measurements), 1)
        found: list[np.ndarray] = []
        for name, size in zip(domain.attributes, domain.sizes, strict=True):
            shares = supported_one_way(margins.get((name,)), size, total) / total + _LEAST
            found.append(shares / shares.sum())
        return cls(tuple(domain.sizes), np.concatenate(found))

    @property
    def number(self) -> int:
        """Of all codes."""
        return sum(self.sizes)

    @property
    def first(self) -> np.ndarray:
        """The place of each attribute's first code."""
        return np.cumsum((0, *self.sizes[:-1]))

    def softmax(self, logits: np.ndarray) -> np.ndarray:
        """The chances (row, code) of each attribute's codes."""
        first = self.first
        most = np.maximum.reduceat(logits, first, axis=1)
        raised = np.exp(logits - np.repeat(most, self.sizes, axis=1))
        return raised / np.repeat(np.add.reduceat(raised, first, axis=1), self.sizes, axis=1)

    def drawn(self, chances: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """A code of each attribute by its chances (row, code): codes (row, attribute)."""
        found = np.empty((len(chances), len(self.sizes)), dtype=np.int64)
        for axis, (start, size) in enumerate(zip(self.first, self.sizes, strict=True)):
            sums = np.cumsum(chances[:, start : start + size], axis=1)
            uniform = rng.random((len(chances), 1)) * sums[:, -1:]
            found[:, axis] = np.minimum((uniform >= sums).sum(axis=1), size - 1)
        return found


class Adam:
    """Kingma & Ba 2015, Algorithm 1, at a rate that falls to 0 along a cosine."""

    def __init__(self, rate: float, steps: int) -> None:
        self._rate, self._steps, self._step = rate, steps, 0
        self._mean = self._square = 0.0

    def move(self, gradient: np.ndarray) -> np.ndarray:
        """What is to be taken off the weights."""
        rate = self._rate * (1 + math.cos(math.pi * min(self._step / self._steps, 1.0))) / 2
        self._step += 1
        self._mean = 0.9 * self._mean + 0.1 * gradient
        self._square = 0.99 * self._square + 0.01 * gradient**2
        scale = rate * math.sqrt(1 - 0.99**self._step) / (1 - 0.9**self._step)
        return scale * self._mean / (np.sqrt(self._square) + 1e-12)


class Momentum:
    """Gradient descent along a mean of the last gradients, at a rate that falls to 0.

    Noise of the same size is in all coordinates of a private gradient. Adam would let those of
    which little else is known move as far as others.
    """

    def __init__(self, rate: float, steps: int) -> None:
        self._rate, self._steps, self._step, self._mean = rate, steps, 0, 0.0

    def move(self, gradient: np.ndarray) -> np.ndarray:
        """What is to be taken off the weights."""
        rate = self._rate * (1 + math.cos(math.pi * min(self._step / self._steps, 1.0))) / 2
        self._step += 1
        self._mean = 0.9 * self._mean + 0.1 * gradient
        return rate * self._mean


def trained(measurements: Sequence[Measurement], network: str) -> np.ndarray | None:
    """The weights of such a network among the answers, ``None`` where it was not trained."""
    for each in reversed(measurements):
        if isinstance(each.query, TrainingQuery) and each.query.network == network:
            return each.answer
    return None


def place_of(codes: np.ndarray, number: int) -> int:
    """A number below ``number``, which a row's codes alone decide.

    Each row gets its part of what is drawn for a step by it: what is drawn may not depend on other
    rows, nor on how many there are.
    """
    mixed = 0x9E3779B97F4A7C15
    for code in codes.tolist():
        mixed = ((mixed ^ code) * 0xBF58476D1CE4E5B9 + 0x94D049BB133111EB) % 2**64
        mixed ^= mixed >> 29
    return mixed % number
