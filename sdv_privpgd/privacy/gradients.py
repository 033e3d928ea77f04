"""Sums of clipped gradients over a random sample of the records, as integers: steps of DP-SGD.

Abadi et al. 2016, Algorithm 1. Each record's gradient is made of this record alone, one at a time:
no other record is in the same arithmetic. It is shortened, rounded to integers, and left out if
these are still too long. So the bound on what a record adds holds exactly, whatever the gradient
was, also where it is no number.

What is weaker than for counts. The gradient is the caller's function, which the core cannot look
into. It must depend on its record and on public values alone, keep nothing and say nothing. It is
handed a copy that is wiped afterwards, and is tried on made-up records before anything is charged.
It is computed in floating point: the bound on what one record changes needs that the same record
and weights give the same integers, whoever else is in the table. That they do is a property of the
processor and of numpy, and not of these lines. And a step takes the longer the more records are in
its sample: who can measure that learns of their number.
"""

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Protocol, runtime_checkable

import numpy as np

from sdv_privpgd.domain import Domain
from sdv_privpgd.privacy.counting import Tables, add_all
from sdv_privpgd.privacy.dataset import Records
from sdv_privpgd.privacy.noise import WordSource
from sdv_privpgd.privacy.queries import Adjacency

SAMPLED = "Gaussian, rounded, of samples"
"""The mechanism of a training, in the ledger's words."""

_WORDS = 1 << 32
"""A record is in a sample if its word of 32 bits is less than the rate times this."""


@runtime_checkable
class Learner(Protocol):
    """Weights that are moved by noisy sums of gradients. Public."""

    def gradient(self, codes: np.ndarray) -> np.ndarray:
        """The gradient of one record's loss, float64 (weight,), a pure function of its codes."""
        ...

    def update(self, gradient: np.ndarray) -> None:
        """Moves the weights: the noisy sum over the sample, in units of the clip."""
        ...

    def weights(self) -> np.ndarray:
        """All weights, float64 (weight,)."""
        ...


@dataclass(frozen=True, kw_only=True)
class TrainingQuery:
    """Weights that were trained by noisy sums of clipped gradients over Poisson samples.

    Attributes:
        network: What the weights are of, in words for the ledger.
        num_weights: How many there are.
        clip: The largest norm of a record's gradient.
        rate: The chance of each record to be in a sample, a whole number of 2^-32.
        steps: The number of samples.
        num_public: Further weights, which no gradient of a record moves.
    """

    network: str
    num_weights: int
    clip: float
    rate: Fraction
    steps: int
    num_public: int = 0

    GRID = 1 << 20
    """Units of a gradient of the norm ``clip``; a sum over 2^40 records still fits int64."""

    def __post_init__(self) -> None:
        if not 0 < self.clip < math.inf:
            raise ValueError(f"clip must be a positive number, got {self.clip!r}.")
        for name in ("num_weights", "steps"):
            value = getattr(self, name)
            if type(value) is not int or value < 1:
                raise ValueError(f"{name} must be an integer of at least 1, got {value!r}.")
        if not 0 < self.rate <= 1 or (self.rate * _WORDS).denominator > 1:
            raise ValueError(f"rate must be a whole number of 2^-32 up to 1, got {self.rate!r}.")
        if math.sqrt(self.num_weights) > self.GRID / 64:
            raise ValueError(f"{self.num_weights!r} weights are too many for integers of 2^20.")

    def describe(self) -> str:
        return (
            f"{self.network}, {self.num_weights:,} weights, by gradients of {self.steps:,} samples "
            f"at a rate of {float(self.rate):.4g}"
        )

    def l2_sensitivity_squared(self, adjacency: Adjacency) -> int:
        """Of one step's sum: GRID^2 when a record is added or removed, 4 GRID^2 when it changes."""
        return (4 if adjacency is Adjacency.REPLACE_ONE else 1) * self.GRID**2

    def shape(self, domain: Domain) -> tuple[int, ...]:
        del domain
        return (self.num_weights + self.num_public,)

    def answer(self, dataset: Records) -> np.ndarray:
        """Never: weights have no answer without noise."""
        del dataset
        raise TypeError("Weights are trained by Curator.train alone.")

    def tried(self, learner: Learner, domain: Domain) -> None:
        """Raises ``ValueError`` if gradients of made-up records have not as many numbers."""
        for codes in (np.zeros(len(domain), np.int64), np.array(domain.sizes, np.int64) - 1):
            found = learner.gradient(codes)
            if found.shape != (self.num_weights,) or found.dtype != np.float64:
                raise ValueError(
                    f"Gradients must be float64 of shape {(self.num_weights,)}, got {found.dtype} "
                    f"of shape {found.shape}."
                )

    def clipped(self, gradient: np.ndarray) -> np.ndarray:
        """The gradient in units of clip / ``GRID``: whole float64s of norm ``GRID`` at most.

        Rounding adds sqrt(num_weights) / 2 to the norm at most, for which room is left. Then the
        norm is taken of the whole numbers themselves, and exactly: squares that add up to less
        than 2^53 do so without rounding, and larger ones are too long whatever is rounded. A
        gradient that is no number is 0.
        """
        with np.errstate(all="ignore"):  # a warning would tell of the record
            norm = math.sqrt(gradient @ gradient) / self.clip * self.GRID
            room = self.GRID - math.sqrt(self.num_weights)
            found = np.rint(gradient * (self.GRID / self.clip * min(1.0, room / max(norm, 1.0))))
            is_short = bool(found @ found <= self.GRID**2)
        return found if is_short else np.zeros(self.num_weights)


class GradientSums:
    """The sum over a fresh Poisson sample of the clipped gradients, which is private.

    Whether a record is in the sample, its own 32 random bits say.
    """

    def __init__(self, query: TrainingQuery, learner: Learner, words: WordSource) -> None:
        self._query, self._learner, self._words = query, learner, words
        self._below = np.uint64(query.rate * _WORDS)

    def zero(self) -> Tables:
        return [np.zeros(self._query.num_weights, dtype=np.int64)]

    def add(self, total: Tables, item: np.ndarray) -> None:
        drawn = np.frombuffer(self._words(4 * item.shape[1]), dtype="<u4")
        codes = np.empty(item.shape[0], dtype=np.int64)
        found = np.zeros(self._query.num_weights)  # whole numbers below 2^53: exact in float64
        for row in np.flatnonzero(drawn < self._below):
            codes[:] = item[:, row]
            found += self._of_one(codes)
            codes[:] = 0  # who kept it has nothing
        total[0] += found.astype(np.int64)

    def _of_one(self, codes: np.ndarray) -> np.ndarray:
        """The clipped gradient; one that fails or is no such numbers is 0, and nobody is told."""
        try:
            with np.errstate(all="ignore"):  # a warning would tell of the record, as would an error
                found = self._learner.gradient(codes)
            if found.shape == (self._query.num_weights,) and found.dtype == np.float64:
                return self._query.clipped(found)
        except Exception:  # noqa: BLE001
            pass
        return np.zeros(self._query.num_weights)

    def merge(self, total: Tables, other: Tables) -> None:
        add_all(total, other)
